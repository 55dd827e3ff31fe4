//! The parsing of a compaction task: `compact`, `maintain` or `turn`.
//!
//! In: the fields of a task. Out: a [`CompactionTask`], which [`crate::drive::compaction`] uses.

use alloc::string::String;

use crate::compaction::build_model_option;
use lcm_text::base::json::JsonFields;

/// The members of a compaction task.
pub(in crate::drive) struct CompactionTask {
    pub(super) kind: CompactionTaskKind,
    pub(super) conversation: String,
    pub(super) budget: u32,
    pub(super) mode: Option<String>,
    pub(super) force: bool,
    pub(super) target: Option<u32>,
    pub(super) observed_tokens: Option<u32>,
    pub(super) requests_max: u32,
    pub(super) lease_ms: Option<u32>,
    pub(super) model: Option<String>,
    pub(super) extra_json: Option<String>,
    /// Whether `apply` is told that a model refused its key or the content.
    pub(super) counts_refusals: bool,
    /// Whether `turn` leaves compaction that can wait to `maintain`; `None`: as configured.
    pub(super) defer: Option<bool>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum CompactionTaskKind {
    Compact,
    Maintain,
    Turn,
}

impl CompactionTask {
    /// Takes the members of a task; `place` is the index of its name among the names of all tasks:
    /// 2: `compact`; 3: `maintain`; any other: `turn`.
    pub(in crate::drive) fn read(fields: &mut JsonFields<'_>, place: usize) -> Self {
        let kind = match place {
            2 => CompactionTaskKind::Compact,
            3 => CompactionTaskKind::Maintain,
            _ => CompactionTaskKind::Turn,
        };
        Self {
            kind,
            conversation: fields.take_text("conversation"),
            budget: fields.take_u32("budget"),
            mode: fields.take_optional_text("mode"),
            force: fields.take_flag("force"),
            target: fields.take_optional_u32("target"),
            observed_tokens: fields.take_optional_u32("observed_tokens"),
            requests_max: fields.take_optional_u32("requests_max").unwrap_or(1),
            lease_ms: fields.take_optional_u32("lease_ms"),
            model: fields.take_optional_text("model"),
            extra_json: fields.take_optional_text("extra_json"),
            counts_refusals: fields.take_optional_flag("counts_refusals").unwrap_or(true),
            defer: fields.take_optional_flag("defer"),
        }
    }

    /// Returns `extra_json` of a call: the model, if the task names a model, else the member
    /// `extra_json`; `None`: the task has neither.
    pub(super) fn build_extra_options(&self) -> Option<String> {
        build_model_option(self.model.as_deref()).or_else(|| self.extra_json.clone())
    }
}
