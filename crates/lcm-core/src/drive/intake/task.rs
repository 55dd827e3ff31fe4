//! The parsing of an intake task: `append` or `ingest`.
//!
//! In: the fields of a task. Out: an [`IntakeTask`], which [`crate::drive::intake`] uses.

use alloc::{string::String, vec::Vec};

use lcm_text::base::json::{self, JsonFields, JsonKind};

use super::super::instruction::{
    BYTES_MAX, CONTINUED_BYTES_MAX, CONTINUED_MESSAGES_MAX, MESSAGES_MAX,
};

/// The members of a task `append` or `ingest`.
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
    /// Whether every message is new, except a message whose id is stored.
    pub(super) is_new: bool,
    /// Whether the task is `append`, not `ingest`. Several appends of an `append` are parts of a
    /// named list, so that a later task may repeat them.
    pub(super) is_append: bool,
    /// Whether this task repeats an earlier task.
    pub(super) repeat: bool,
    pub(super) refuse_replay: bool,
    /// Whether a new message without a `timestamp` has no time.
    pub(super) is_undated: bool,
    /// Seq up to which the caller has seen every message; `None`: unknown.
    pub(super) seq_seen: Option<u64>,
    /// The system prompt, given separately from the messages, as JSON; `None`: not given.
    pub(super) system: Option<String>,
}

impl IntakeTask {
    /// Takes the members of a task; `is_append`: the task is `append`, not `ingest`.
    pub(in crate::drive) fn read(fields: &mut JsonFields<'_>, is_append: bool) -> Self {
        Self {
            conversation: fields.take_text("conversation"),
            dialect: fields.take_optional_text("dialect").unwrap_or_else(|| "lcm".into()),
            family: fields.take_optional_text("family"),
            count: fields.take_u64("count"),
            bytes: fields.take_u64("bytes"),
            bytes_longest: fields.take_u64("bytes_longest"),
            is_new: fields.take_optional_choice("append_mode", &["transcript", "new"]) == Some(1),
            is_append,
            repeat: fields.take_flag("repeat"),
            refuse_replay: fields.take_flag("refuse_replay"),
            is_undated: fields.take_flag("undated"),
            seq_seen: fields.take_optional_u64("seq_seen"),
            system: fields.take_any("system").and_then(|(value, kind)| match kind {
                JsonKind::Null => None,
                JsonKind::String => {
                    let mut json = String::new();
                    json::write_string(&mut json, &value);
                    Some(json)
                }
                _ => Some(value.into_owned()),
            }),
        }
    }

    /// Returns whether one append takes all messages; a single message always is one append.
    pub(super) fn is_whole(&self) -> bool {
        self.count <= 1 || (self.count <= MESSAGES_MAX && self.bytes <= BYTES_MAX)
    }

    /// Returns whether one append may take all messages, if they begin with an accepted list.
    pub(super) fn may_continue(&self) -> bool {
        // A list of one message is a message of its own (`crate::ingest::list_texts`).
        let is_list = !self.refuse_replay && !self.is_new && !self.has_uploads() && self.count > 1;
        is_list && self.count <= CONTINUED_MESSAGES_MAX && self.bytes <= CONTINUED_BYTES_MAX
    }

    pub(super) fn has_uploads(&self) -> bool {
        self.bytes_longest > BYTES_MAX
    }

    pub(super) fn list_all_ranges(&self) -> Vec<IndexRange> {
        let range = IndexRange { from: 0, end: self.count, kind: RangeKind::Messages };
        (self.count > 0).then_some(range).into_iter().collect()
    }
}

/// A range of message indexes from 0; `end` is the index after the last.
#[derive(Clone, Copy, Default)]
pub(super) struct IndexRange {
    pub(super) from: u64,
    pub(super) end: u64,
    pub(super) kind: RangeKind,
}

/// How the messages of a range are stored.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum RangeKind {
    /// As ordinary messages, which contexts show.
    #[default]
    Messages,
    /// As other forms of stored messages.
    Revisions,
    /// As a version of the system messages, in the slot beside the sequence.
    System,
}

/// All kinds of ranges.
pub(super) const RANGE_KINDS: [RangeKind; 3] =
    [RangeKind::Messages, RangeKind::Revisions, RangeKind::System];
