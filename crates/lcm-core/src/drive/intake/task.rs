//! The parsing of an intake task: `append` or `ingest`.
//!
//! In: the fields of a task. Out: an [`IntakeTask`], which [`crate::drive::intake`] uses.

use alloc::{string::String, vec::Vec};

use lcm_text::base::{
    int,
    json::{self, JsonFields},
};

use super::super::{
    instruction::{BYTES_MAX, MESSAGES_MAX},
    state::DriveState,
};

/// Most ranges of set-aside messages that a plan brings back.
const RESTORED_MAX: usize = 32;

/// The members of an intake task.
pub(in crate::drive) struct IntakeTask {
    pub(super) conversation: String,
    pub(super) dialect: String,
    pub(super) family: Option<String>,
    /// Number of messages.
    pub(super) count: u64,
    /// Bytes of all messages together.
    pub(super) bytes: u64,
    /// Bytes of the longest message.
    pub(super) bytes_longest: u64,
    /// Whether a message is new unless its id is stored.
    pub(super) is_new: bool,
    /// Whether the task is `append`. Its appends are parts of a named list, so that a later task
    /// may repeat them.
    pub(super) is_list: bool,
    /// Whether this task repeats an earlier task.
    pub(super) repeat: bool,
    pub(super) refuse_replay: bool,
    /// Seq up to which the caller has seen every message; `None`: unknown.
    pub(super) seq_seen: Option<u64>,
    /// Number of first messages that the caller has proved to be stored, and the revision of the
    /// proof; `None`: nothing is proved, or all messages are.
    pub(super) proven: Option<(u64, u64)>,
}

impl IntakeTask {
    /// Takes the members of a task; `is_append`: the task is `append`, not `ingest`.
    pub(in crate::drive) fn read(fields: &mut JsonFields<'_>, is_append: bool) -> Self {
        let proven =
            fields.take_optional_u64("proven").zip(fields.take_optional_u64("proven_revision"));
        let count = fields.take_u64("count");
        Self {
            conversation: fields.take_text("conversation"),
            dialect: fields.take_optional_text("dialect").unwrap_or_else(|| "lcm".into()),
            family: fields.take_optional_text("family"),
            count,
            bytes: fields.take_u64("bytes"),
            bytes_longest: fields.take_u64("bytes_longest"),
            is_new: fields.take_optional_choice("append_mode", &["transcript", "new"]) == Some(1),
            is_list: is_append,
            repeat: fields.take_flag("repeat"),
            refuse_replay: fields.take_flag("refuse_replay"),
            seq_seen: fields.take_optional_u64("seq_seen"),
            proven: proven.filter(|(messages, _)| *messages < count),
        }
    }

    /// Returns whether one append takes all messages; a single message always is one append.
    pub(super) fn is_whole(&self) -> bool {
        self.count <= 1 || (self.count <= MESSAGES_MAX && self.bytes <= BYTES_MAX)
    }

    pub(super) fn has_uploads(&self) -> bool {
        self.bytes_longest > BYTES_MAX
    }

    pub(super) fn list_all_ranges(&self) -> Vec<IndexRange> {
        self.ranges_from(0)
    }

    pub(super) fn ranges_from(&self, from: u64) -> Vec<IndexRange> {
        let range = IndexRange { from, end: self.count, is_revision: false };
        (from < self.count).then_some(range).into_iter().collect()
    }
}

/// A range of message indexes from 0; `end` is the index after the last.
#[derive(Clone, Copy)]
pub(super) struct IndexRange {
    pub(super) from: u64,
    pub(super) end: u64,
    /// Whether the messages are other forms of stored messages.
    pub(super) is_revision: bool,
}

/// What the plan of `reconcile` says of the line; the next append carries the change out.
#[derive(Default)]
pub(super) struct PlannedChange {
    /// Whether there is a plan that says something of the line.
    pub(super) is_planned: bool,
    /// 1 + seq of the last message that stays; 0: the line does not change.
    pub(super) fork: u64,
    /// Whether the messages after it leave the line as shorter forms of a new message.
    pub(super) is_grown: bool,
    /// First and last seqs of the set-aside messages that come back.
    pub(super) restored: Vec<(u64, u64)>,
    /// Whether a list begins with the messages of the plan.
    pub(super) is_start: bool,
    /// Running hash of the whole list; empty: the list is not remembered.
    pub(super) list_hash: String,
    /// 1 + seq up to which the caller has seen every message; 0: it has seen all.
    pub(super) seen: u64,
}

impl PlannedChange {
    /// Reads or writes every value.
    pub(super) fn visit(&mut self, state: &mut DriveState) {
        let mut count = int::to_u64(self.restored.len());
        state.visit_number(&mut count);
        self.restored.resize(int::to_usize(count).min(RESTORED_MAX), (0, 0));
        for (seq_first, seq_last) in &mut self.restored {
            state.visit_number(seq_first);
            state.visit_number(seq_last);
        }
        state.visit_flag(&mut self.is_planned);
        state.visit_number(&mut self.fork);
        state.visit_flag(&mut self.is_grown);
        state.visit_flag(&mut self.is_start);
        state.text(&mut self.list_hash);
        state.visit_number(&mut self.seen);
    }

    /// Reads what a plan says of the line.
    pub(super) fn read(fields: &mut JsonFields<'_>) -> Self {
        let Some((text, _)) = fields.take_any("line") else { return Self::default() };
        let Ok(mut line) = JsonFields::parse_argument("line", &text) else {
            fields.reject_field("line", "an object");
            return Self::default();
        };
        let add_one = |value: Option<u64>| value.map_or(0, |value| value.saturating_add(1));
        let mut restored = Vec::new();
        for range in line.take_optional_list("restored").into_iter().take(RESTORED_MAX) {
            let range = JsonFields::parse_argument("line", json::slice_span(&text, range.span));
            restored.extend(
                range.map(|mut range| (range.take_u64("seq_first"), range.take_u64("seq_last"))),
            );
        }
        Self {
            is_planned: true,
            fork: add_one(line.take_optional_u64("fork")),
            is_grown: line.take_flag("grown"),
            restored,
            is_start: line.take_flag("start"),
            list_hash: line.take_optional_text("list_hash").unwrap_or_default(),
            seen: add_one(line.take_optional_u64("seq_seen")),
        }
    }

    /// Notes that an append carried the change out.
    pub(super) fn finish_change(&mut self) {
        (self.fork, self.is_grown, self.is_start) = (0, false, false);
        self.restored.clear();
    }
}
