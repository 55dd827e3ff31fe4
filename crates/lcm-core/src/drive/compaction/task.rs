//! The parsing of a compaction task: `compact`, `maintain`, `turn` or `resummarize`.
//!
//! In: the fields of a task. Out: a [`CompactionTask`], which [`crate::drive::compaction`] uses.

use alloc::{string::String, vec::Vec};

use crate::{compaction::build_model_option, storage::records::attempts::LEASE_MS};
use lcm_text::base::json::{JsonFields, JsonWriter};

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
    /// Time for which other plans skip the requests, in milliseconds; 0: other plans do not skip
    /// them.
    pub(super) lease_ms: u32,
    /// Number of passes after which no further plan is completed. With this limit, a failed
    /// completion ends the passes, too. `None`: no limit.
    pub(super) passes_max: Option<u32>,
    pub(super) model: Option<String>,
    pub(super) extra_json: Option<String>,
    /// Whether `apply` gets the failure of a model that refused the API key or the content. `apply`
    /// then counts the refusal in the breaker.
    pub(super) counts_refusals: bool,
    /// Whether `turn` leaves compaction that can wait to `maintain`; `None`: as configured.
    pub(super) defer: Option<bool>,
    /// Whether `compact` belongs to a turn: unless forced, it respects the pause after a failed
    /// model, and records how the compaction ended.
    pub(super) is_turn: bool,
    /// The provisional summaries that `resummarize` makes again; `None`: all provisional summaries.
    pub(super) summary_ids: Option<Vec<String>>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum CompactionTaskKind {
    Compact,
    Maintain,
    Turn,
    Resummarize,
}

impl CompactionTask {
    /// Takes the members of a task; `place` is the index of its name among the names of all tasks:
    /// 2: `compact`; 3: `maintain`; 6: `resummarize`; any other: `turn`.
    pub(in crate::drive) fn read(fields: &mut JsonFields<'_>, place: usize) -> Self {
        let kind = match place {
            2 => CompactionTaskKind::Compact,
            3 => CompactionTaskKind::Maintain,
            6 => CompactionTaskKind::Resummarize,
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
            lease_ms: fields.take_optional_u32("lease_ms").unwrap_or(LEASE_MS),
            passes_max: fields.take_optional_u32("passes_max"),
            model: fields.take_optional_text("model"),
            extra_json: fields.take_optional_text("extra_json"),
            counts_refusals: fields.take_optional_flag("counts_refusals").unwrap_or(true),
            defer: fields.take_optional_flag("defer"),
            is_turn: kind == CompactionTaskKind::Compact && fields.take_flag("turn"),
            summary_ids: match kind {
                CompactionTaskKind::Resummarize => fields.take_optional_texts("summary_ids"),
                _ => None,
            },
        }
    }

    /// Returns `extra_json` of a call: the model, if the task names a model, else the member
    /// `extra_json`; `None`: the task has neither.
    pub(super) fn build_extra_options(&self) -> Option<String> {
        build_model_option(self.model.as_deref()).or_else(|| self.extra_json.clone())
    }

    /// Returns `extra_json` of a plan. For `resummarize`: only remakes, and the member `extra_json`
    /// is ignored. For a `compact` with `is_turn` and without that member: a limit of remakes.
    /// Otherwise: [`Self::build_extra_options`].
    pub(super) fn build_plan_options(&self) -> Option<String> {
        let is_resummarize = self.kind == CompactionTaskKind::Resummarize;
        let is_turn = self.is_turn && self.extra_json.is_none();
        if !is_resummarize && !is_turn {
            return self.build_extra_options();
        }
        let mut object = JsonWriter::new_object();
        if let Some(model) = &self.model {
            object.add_text("model", model);
        }
        if is_turn {
            // A user waits for the turn, so the turn makes one batch of remakes.
            object.add_number("remakes_max", self.requests_max.max(1).into());
            return Some(object.end_object());
        }
        object.add_flag("resummarize", true);
        if let Some(ids) = &self.summary_ids {
            object.add_texts("summary_ids", ids);
        }
        Some(object.end_object())
    }

    /// Returns whether the pause after a failed model is respected and recorded.
    pub(super) fn shares_pause(&self) -> bool {
        !self.force && (self.is_turn || self.kind == CompactionTaskKind::Turn)
    }
}
