//! Compaction: old messages become summaries, and old summaries become fewer summaries.
//!
//! No decision calls the model. [`evaluate()`] decides whether anything is due. [`plan()`] proposes
//! tasks as completion requests. [`apply()`] judges an answer and makes one commit of it. [`run()`]
//! does both around a model that may block. A task names its sources, so neither engine nor host
//! remembers anything between the calls.

mod acceptance;
pub(crate) mod advise;
mod apply;
mod evaluate;
mod goal;
mod plan;
mod planner;
pub(crate) mod reason;
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

pub(crate) use apply::apply;
pub(crate) use evaluate::evaluate;
pub(crate) use plan::plan;
pub(crate) use run::run;
pub(crate) use setup::build_model_option;
pub(crate) use source_text::has_previous_context;
