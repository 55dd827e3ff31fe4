//! The report of a task: what the instructions say of its result.
//!
//! In: instructions. Out: the typed result of the task.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::instruction::Instruction;
use crate::error::{Error, Result};

/// The report of a task in progress.
#[derive(Default)]
pub(super) struct TaskReport {
    result: Map<String, Value>,
    passes: Vec<Value>,
    warnings: Vec<String>,
}

impl TaskReport {
    /// Moves the pass, warnings, note and result out of an instruction. A later member replaces an
    /// earlier one of the same name.
    pub(super) fn take_members(&mut self, next: &mut Instruction) {
        self.passes.extend(next.pass.take());
        self.warnings.append(&mut next.warnings);
        self.result.append(&mut next.note);
        self.result.append(&mut next.result);
    }

    /// Returns the result of the task with its passes and warnings. If the result has the object
    /// `compacted`, the passes and warnings are members of that object.
    ///
    /// # Errors
    ///
    /// `internal`: the result has another shape.
    pub(super) fn finish<T: DeserializeOwned>(mut self) -> Result<T> {
        let mut seen = BTreeSet::new();
        self.warnings.retain(|warning| seen.insert(warning.clone()));
        let report = match self.result.get_mut("compacted") {
            Some(Value::Object(compacted)) => compacted,
            _ => &mut self.result,
        };
        report.insert("passes".to_owned(), self.passes.into());
        report.insert("warnings".to_owned(), self.warnings.into());
        serde_json::from_value(self.result.into())
            .map_err(|error| Error::internal(format!("a task ended unexpectedly: {error}")))
    }
}
