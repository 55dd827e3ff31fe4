//! The instructions that an intake task gives its host.
//!
//! In: a task and its progress. Out: the next instruction. [`crate::drive`] uses this module.

use alloc::string::String;

use lcm_text::base::{int, json::JsonWriter};

use super::super::instruction::{self, DriveInstruction};
use super::{IntakePhase, IntakeProgress, IntakeRoute, IntakeTask, IntakeTotals, task::RangeKind};

impl IntakeProgress {
    /// Returns the next instruction for the host.
    pub(in crate::drive) fn next_instruction(&self, task: &IntakeTask) -> DriveInstruction {
        if self.failure.is_some() {
            return DriveInstruction::new_failed(instruction::build_failure(&self.failure));
        }
        let mut arguments = JsonWriter::new_object();
        match self.phase {
            IntakePhase::Identify => {
                arguments.add_text("dialect", &task.dialect);
                DriveInstruction::call("ingest.identify", arguments)
                    .with_messages(self.place, task.count.saturating_sub(self.place))
                    .with_flag("keep")
            }
            IntakePhase::Reconcile => {
                arguments.add_text("conversation", &task.conversation);
                arguments.add_number("now", self.now);
                arguments.add_text("transcript_json", &self.build_transcript(task));
                DriveInstruction::call("ingest.reconcile", arguments)
                    .with_flag("entries")
                    .with_wait(self.wait_ms)
            }
            IntakePhase::Stage => {
                arguments.add_text("conversation", &task.conversation);
                arguments.add_optional_text("family", task.family.as_deref());
                arguments.add_number("now", self.now);
                let range = self.ranges.get(int::to_usize(self.place));
                let (from, end) = range.map_or((0, 0), |range| (range.from, range.end));
                DriveInstruction::stage(from, end.saturating_sub(from), arguments)
            }
            IntakePhase::Append => self.build_append(task),
            IntakePhase::Done => {
                DriveInstruction::new_done(&self.totals.build_result(task).end_object())
            }
        }
    }

    /// Builds `transcript_json` without its entries, which the host adds.
    fn build_transcript(&self, task: &IntakeTask) -> String {
        let mut asked = JsonWriter::new_object();
        asked.add_text("append_mode", if task.is_new { "new" } else { "transcript" });
        asked.add_number("confirmed", self.confirmed);
        if task.repeat && task.is_append {
            asked.add_text("list", &self.name);
        }
        asked.add_flag("refuse_replay", task.refuse_replay);
        asked.add_optional_number("seq_seen", task.seq_seen);
        asked.end_object()
    }

    fn build_append(&self, task: &IntakeTask) -> DriveInstruction {
        let range = self.ranges.first().copied();
        let (from, count) =
            range.map_or((0, 0), |range| (range.from, range.end.saturating_sub(range.from)));
        // A list without new messages may still bring messages back.
        let has_work = count > 0 || self.has_change();
        let is_planned = self.route == IntakeRoute::Aligned && has_work;
        let is_continued = self.route == IntakeRoute::Continued;
        let is_whole = self.route == IntakeRoute::Whole;
        let is_part = count > 0
            && match self.route {
                IntakeRoute::List => true,
                IntakeRoute::Aligned => task.is_append,
                IntakeRoute::Whole | IntakeRoute::Continued => false,
            };
        let mut extra = JsonWriter::new_object();
        if let Some(family) = &task.family {
            extra.add_text("family", family);
        }
        if is_part {
            extra.add_text("list", &self.name);
            extra.add_number("list_offset", from);
        }
        if is_whole && task.refuse_replay {
            extra.add_flag("refuse_replay", true);
        }
        if task.is_undated {
            extra.add_flag("undated", true);
        }
        let may_repeat = is_whole || is_part || is_continued;
        if self.repeats > 0 || (task.repeat && !is_planned && may_repeat) {
            extra.add_flag("repeat", true);
        }
        if task.seq_seen.is_some() && (self.route != IntakeRoute::Aligned || task.is_new) {
            // An append before this one raised what the caller has seen.
            extra.add_optional_number("seq_seen", task.seq_seen.max(Some(self.totals.seq_seen)));
        }
        if is_planned {
            extra.add_number("revision", self.revision);
        }
        if is_continued {
            extra.add_flag("continues", true);
        }
        self.add_line(&mut extra);
        if let Some(system) = &task.system {
            extra.add_json("system", system);
        }
        let mut options = JsonWriter::new_object();
        if !extra.is_empty() {
            options.add_text("extra_json", &extra.end_object());
        }
        options.add_text(
            "append_mode",
            if task.is_new || !self.is_one_append() { "new" } else { "transcript" },
        );
        options.add_flag("partial", !self.is_one_append());
        let mut arguments = JsonWriter::new_object();
        arguments.add_text("conversation", &task.conversation);
        arguments.add_text("dialect", &task.dialect);
        arguments.add_number("now", self.now);
        arguments.add_object("options", options);
        let call = DriveInstruction::call("ingest.append", arguments).with_wait(self.wait_ms);
        let call = match is_continued {
            true => call.with_list(count),
            false => call.with_messages(from, count),
        };
        if is_planned || is_continued { call.with_flag("once") } else { call }
    }

    /// Adds what the first range does to the line, if a plan says so.
    fn add_line(&self, extra: &mut JsonWriter) {
        let Some(line) = self.line.as_ref().filter(|_| self.route == IntakeRoute::Aligned) else {
            return;
        };
        let range = self.ranges.first().copied().unwrap_or_default();
        let is_last = self.ranges.len() <= 1 && !self.has_more;
        let last_count = is_last.then_some(range.end.saturating_sub(range.from));
        let line = match range.kind {
            RangeKind::Messages => line.for_append(false, last_count),
            RangeKind::Revisions => line.for_append(true, last_count),
            RangeKind::System => line.for_system(last_count),
        };
        extra.add_object("line", line.to_object());
    }
}

impl IntakeTotals {
    fn build_result(&self, task: &IntakeTask) -> JsonWriter {
        let mut result = JsonWriter::new_object();
        result.add_number("context_tokens", self.context_tokens);
        result.add_number("ingested", self.ingested);
        result.add_number("revision", self.revision);
        let stored = |seq: u64| (seq > 0).then_some(seq);
        result.add_optional_number("seq_first", stored(self.seq_first));
        result.add_optional_number("seq_last", stored(self.seq_last));
        result.add_number("seq_seen", self.seq_seen);
        result.add_number("skipped", task.count.saturating_sub(self.ingested));
        result
    }
}
