//! Compaction: replaces old messages by summaries, and summaries by fewer summaries.
//!
//! In: a conversation, a budget and the answers of a model. Out: requests for a model, and commits
//! of summaries. The engine exports the four functions below.
//!
//! [`evaluate()`] decides whether compaction is due. [`plan()`] proposes tasks as completion
//! requests. [`apply()`] settles an answer in at most one commit. [`run()`] plans one task, calls
//! the model itself and settles the answer. A task names its sources, so the engine keeps no state
//! between `plan` and `apply`.

mod acceptance;
pub(crate) mod advise;
mod apply;
mod evaluate;
mod extra;
mod goal;
mod plan;
mod planner;
pub(crate) mod reason;
mod remake;
mod request;
mod run;
mod select;
mod settlement;
mod setup;
mod source_text;
mod spend_limit;
mod splice;
mod sweep;
pub(crate) mod task;

pub(crate) use acceptance::find_answer_fault;
pub(crate) use apply::apply;
pub(crate) use evaluate::evaluate;
pub(crate) use extra::{build_decision_option, build_model_option};
pub(crate) use plan::plan;
pub(crate) use planner::REMAKE_AGE_MS_MIN;
pub(crate) use remake::{count_open_summaries, count_open_with, has_open_summary};
pub(crate) use run::run;
pub(crate) use settlement::find_enclosing_item;
pub(crate) use source_text::has_previous_context;
