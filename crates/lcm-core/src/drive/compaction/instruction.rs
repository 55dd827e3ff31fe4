//! The instructions that a compaction task gives its host.
//!
//! In: a task and its progress. Out: the next instruction. [`crate::drive`] uses this module.

use alloc::string::String;

use crate::compaction::{build_decision_option, reason};
use lcm_text::{base::json::JsonWriter, types::api::Timestamp};

use super::super::{
    event::{CallFailure, MISSING, STAND_IN, UNASKED},
    instruction::{self, DriveInstruction},
};
use super::{CompactionPhase, CompactionProgress, CompactionTask, CompactionTaskKind};

impl CompactionProgress {
    /// Returns the next instruction for the host.
    pub(in crate::drive) fn next_instruction(
        &self,
        task: &CompactionTask,
        now: Timestamp,
    ) -> DriveInstruction {
        let mut arguments = JsonWriter::new_object();
        match self.phase {
            CompactionPhase::Complete => DriveInstruction::complete(self.place, self.count),
            CompactionPhase::Done if self.error.is_some() => {
                DriveInstruction::new_failed(instruction::build_failure(&self.error))
            }
            CompactionPhase::Done => DriveInstruction::new_done(&self.result),
            CompactionPhase::Apply => self.build_apply(task, now),
            CompactionPhase::ReadDeferred | CompactionPhase::RecordDeferred => {
                let (verb, given) = match task.kind {
                    CompactionTaskKind::Resummarize => {
                        ("resummarize", build_resummarize_arguments(task))
                    }
                    _ => ("maintain", self.build_deferred_arguments(task)),
                };
                arguments.add_text("arguments_json", &given);
                arguments.add_text("conversation", &task.conversation);
                arguments.add_number("now", now);
                arguments.add_text("verb", verb);
                DriveInstruction::call("admin.call", arguments)
            }
            CompactionPhase::Decide | CompactionPhase::Plan | CompactionPhase::Evaluate => {
                let is_plan = self.phase == CompactionPhase::Plan;
                arguments.add_number("budget", task.budget.into());
                arguments.add_text("conversation", &task.conversation);
                arguments.add_number("now", now);
                arguments.add_object("options", self.build_options(task));
                let function = if is_plan { "compaction.plan" } else { "compaction.evaluate" };
                DriveInstruction::call(function, arguments)
            }
        }
    }

    /// Builds the options of `plan` and `evaluate`. The `evaluate` at the end has no `force`, no
    /// sweep token, and no observed tokens, which belong to the context before the passes.
    fn build_options(&self, task: &CompactionTask) -> JsonWriter {
        let is_end = self.phase == CompactionPhase::Evaluate;
        let mut options = JsonWriter::new_object();
        let extra = match (&task.model, &task.extra_json) {
            _ if self.phase == CompactionPhase::Plan => task.build_plan_options(),
            // The append before the decision may have skipped a new conversation.
            (model, None) | (model @ Some(_), _) if self.phase == CompactionPhase::Decide => {
                Some(build_decision_option(model.as_deref()))
            }
            _ => task.build_extra_options(),
        };
        if let Some(extra) = extra {
            options.add_text("extra_json", &extra);
        }
        options.add_flag("force", task.force && !is_end);
        options.add_number("lease_ms", task.lease_ms.into());
        if let Some(mode) = &task.mode {
            options.add_text("mode", mode);
        }
        if let Some(observed) = task.observed_tokens.filter(|_| !is_end) {
            options.add_number("observed_tokens", observed.into());
        }
        options.add_number("requests_max", task.requests_max.into());
        if !self.sweep.is_empty() && !is_end {
            options.add_text("sweep", &self.sweep);
        }
        if let Some(target) = task.target {
            options.add_number("target", target.into());
        }
        options
    }

    /// Builds the arguments of the verb `maintain`. Observed tokens are passed only if no pass was
    /// made, because they belong to the context before the first pass.
    fn build_deferred_arguments(&self, task: &CompactionTask) -> String {
        let mut asked = JsonWriter::new_object();
        asked.add_number("budget", task.budget.into());
        if self.phase == CompactionPhase::ReadDeferred && task.shares_pause() && !self.defers {
            asked.add_flag("dry_run", true);
        }
        if self.exhausted.is_some() {
            // Fallbacks may have ended the sweep well, although every model failed.
            asked.add_text("ended", reason::MODEL_UNAVAILABLE);
        } else if !self.reason.is_empty() {
            asked.add_text("ended", &self.reason);
        }
        if let Some(model) = &task.model {
            asked.add_text("model", model);
        }
        if let Some(observed) = task.observed_tokens.filter(|_| self.passes == 0) {
            asked.add_number("observed_tokens", observed.into());
        }
        asked.end_object()
    }

    fn build_apply(&self, task: &CompactionTask, now: Timestamp) -> DriveInstruction {
        let mut arguments = JsonWriter::new_object();
        let given_back = CallFailure {
            code: "other".into(),
            message: "the task ended before the answer".into(),
            number: None,
        };
        let failed = match self.answer_state(self.place) {
            UNASKED => Some(&self.exhausted),
            MISSING => Some(&given_back),
            _ => None,
        };
        if let Some(failed) = failed {
            let mut answer = JsonWriter::new_object();
            answer.add_object("failed", instruction::build_completion_failure(failed));
            arguments.add_object("answer", answer);
        }
        arguments.add_text("conversation", &task.conversation);
        arguments.add_number("now", now);
        let mut options = JsonWriter::new_object();
        let mut extra = JsonWriter::new_object();
        if let Some(model) = &task.model {
            extra.add_text("model", model);
        }
        let is_stand_in = self.answer_state(self.place) == STAND_IN;
        if is_stand_in {
            extra.add_flag("stand_in", true);
        }
        if is_stand_in || task.model.is_some() {
            options.add_text("extra_json", &extra.end_object());
        }
        if self.is_without_model() {
            options.add_number("fallback_over_tokens", task.budget.into());
        }
        arguments.add_object("options", options);
        DriveInstruction::call("compaction.apply", arguments).with_request(self.place)
    }
}

/// Builds the arguments of the verb `resummarize`.
fn build_resummarize_arguments(task: &CompactionTask) -> String {
    let mut asked = JsonWriter::new_object();
    if let Some(ids) = &task.summary_ids {
        asked.add_texts("summary_ids", ids);
    }
    asked.end_object()
}
