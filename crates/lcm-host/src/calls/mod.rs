//! One method per exported function of the component, with its types.
//!
//! In: arguments as `wit/` names them. Out: its results. `lcm` has `configure`; `drive`, `ask`,
//! `tools`, `pages` and `portable` have loops over several calls.
//!
//! Every method can fail with the codes of the component, with `conflict` after many repeats, and
//! with `internal` after a trap of the component.

mod admin;
mod compaction;
mod context;
mod ingest;
mod recall;
mod tools;

use serde_json::Value;

use crate::{record::completion_result, types::CompletionResult};

fn results(answers: &[CompletionResult]) -> Value {
    answers.iter().map(completion_result).collect()
}
