//! Methods of [`Lcm`](crate::Lcm) for the exported functions of the component, one call each.
//!
//! In: arguments under the names of `wit/`. Out: the results of the function. `setup.configure` is
//! in `lcm`, `drive` calls its functions by name, and loops over several calls are in `drive`,
//! `ask`, `tools`, `pages` and `portable`.
//!
//! Every method can fail with the codes of the component, with `conflict` after
//! `CONFLICT_RETRIES_MAX` repeats, and with `internal` after a trap of the component.

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
