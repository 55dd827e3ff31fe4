//! What a plan of `reconcile` does to the line, as JSON between the plan and its appends.
//!
//! In: the decision about a list. Out: the member `line` of the plan, and the option `line` of the
//! appends that carry the plan out. `reconcile`, `append` and the intake of `drive` use this.

use alloc::vec::Vec;

use lcm_text::base::{
    error::{Error, Result},
    hash,
    json::{self, JsonFields, JsonWriter},
};

use super::{
    line_change::{LineChange, ListStart, RESTORED_MAX},
    list_decision::{ListDecision, SeenMessages},
    list_texts::ListHashes,
};

/// What a plan does to the line.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedLine {
    /// The change that goes with the first append; `None`: the line does not change.
    pub(super) change: Option<LineChange>,
    /// Seq of the message that the first new message follows in the list, where the line has later
    /// messages before this one; 0: the list begins with it.
    pub(super) branch: Option<u64>,
    /// Whether the messages of the call are other forms of stored messages.
    pub(super) is_revision: bool,
    /// Whether the messages of the call fill the slot of system messages.
    pub(super) is_system: bool,
    /// Whether the list begins with the messages of the first append that does not fill the slot.
    pub(super) is_start: bool,
    /// Hashes of the whole list; `None`: the list is not remembered.
    pub(super) list_hashes: Option<ListHashes>,
    /// Number of messages that the call must take so that the whole list is stored; 0: further
    /// appends follow.
    pub(super) count: u64,
    /// Seq up to which the caller had seen every message before the plan; `None`: with this list
    /// the caller has seen all messages.
    seq_seen: Option<u64>,
}

impl PlannedLine {
    /// Creates the plan of a decision. `hashes`: of the list, if it is to be remembered;
    /// `is_complete`: whether the plan has all missing entries of the list.
    pub(super) fn from_decision(
        decision: &ListDecision,
        hashes: Option<ListHashes>,
        is_complete: bool,
    ) -> Self {
        let SeenMessages { is_all, seq_before } = decision.seen;
        Self {
            change: decision.change.clone(),
            branch: decision.branch,
            is_start: decision.start == ListStart::Unplaced,
            list_hashes: hashes.filter(|_| is_complete),
            seq_seen: (!(is_complete && is_all)).then_some(seq_before),
            ..Self::default()
        }
    }

    /// Returns what the caller has seen once the list is stored.
    pub(super) fn seen_messages(&self) -> SeenMessages {
        let seq_before = self.seq_seen.unwrap_or(0);
        SeenMessages { is_all: self.seq_seen.is_none(), seq_before }
    }

    /// Returns whether the line changes before the messages of the plan.
    pub(crate) fn has_change(&self) -> bool {
        self.change.is_some()
    }

    /// Returns the option of an append whose messages fill the slot. `last_count` as for
    /// [`Self::for_append`].
    #[must_use]
    pub(crate) fn for_system(&self, last_count: Option<u64>) -> Self {
        let of_append = self.for_append(false, last_count);
        Self { is_system: true, is_start: false, branch: None, ..of_append }
    }

    /// Returns the option of one append. `last_count`: number of its messages, if it is the last
    /// append; `None`: further appends follow.
    #[must_use]
    pub(crate) fn for_append(&self, is_revision: bool, last_count: Option<u64>) -> Self {
        Self {
            is_revision,
            branch: self.branch.filter(|_| !is_revision),
            list_hashes: self.list_hashes.filter(|_| last_count.is_some()),
            count: last_count.unwrap_or(0),
            ..self.clone()
        }
    }

    /// Removes what an append has carried out. `is_system`: its messages filled the slot;
    /// `is_revision`: they are other forms of stored messages.
    pub(crate) fn finish_change(&mut self, is_system: bool, is_revision: bool) {
        (self.change, self.is_start) = (None, self.is_start && is_system);
        self.branch = self.branch.filter(|_| is_system || is_revision);
    }

    /// Returns the JSON object, which [`Self::parse`] reads.
    pub(crate) fn to_object(&self) -> JsonWriter {
        let mut line = JsonWriter::new_object();
        if let Some(LineChange { fork, is_grown, restored, ends_doubt }) = &self.change {
            line.add_number("fork", *fork);
            if *is_grown {
                line.add_flag("grown", true);
            }
            if *ends_doubt {
                line.add_flag("ends_doubt", true);
            }
            if !restored.is_empty() {
                let mut ranges = JsonWriter::new_array();
                for (seq_first, seq_last) in restored {
                    let mut range = JsonWriter::new_object();
                    range.add_number("seq_first", *seq_first);
                    range.add_number("seq_last", *seq_last);
                    ranges.push_object(range);
                }
                line.add_array("restored", ranges);
            }
        }
        if let Some(after) = self.branch {
            line.add_number("branch", after);
        }
        let flags =
            [("revision", self.is_revision), ("start", self.is_start), ("system", self.is_system)];
        for (key, value) in flags {
            if value {
                line.add_flag(key, true);
            }
        }
        if self.count > 0 {
            line.add_number("count", self.count);
        }
        if let Some(seq_seen) = self.seq_seen {
            line.add_number("seq_seen", seq_seen);
        }
        let hashes = self.list_hashes.map(|hashes| hash::hex(hashes.as_bytes()));
        line.add_optional_text("list_hash", hashes.as_deref());
        line
    }

    /// Parses the JSON object.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a wrong or unknown member, or too many ranges.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut line = JsonFields::parse_argument("line", text)?;
        let (fork, is_grown) = (line.take_optional_u64("fork"), line.take_flag("grown"));
        let ends_doubt = line.take_flag("ends_doubt");
        let mut restored = Vec::new();
        for range in line.take_optional_list("restored") {
            let text = json::slice_span(text, range.span);
            let mut range = JsonFields::parse_argument("line.restored", text)?;
            restored.push((range.take_u64("seq_first"), range.take_u64("seq_last")));
            range.finish("line.restored")?;
        }
        if restored.len() > RESTORED_MAX {
            return Err(Error::invalid_input(format_args!(
                "`line.restored` must have at most {RESTORED_MAX} items, got {}",
                restored.len()
            )));
        }
        let hash = line.take_optional_text("list_hash");
        let planned = Self {
            change: fork.map(|fork| LineChange { fork, is_grown, restored, ends_doubt }),
            branch: line.take_optional_u64("branch"),
            is_revision: line.take_flag("revision"),
            is_start: line.take_flag("start"),
            is_system: line.take_flag("system"),
            list_hashes: hash.and_then(|hash| ListHashes::from_bytes(&hash::decode_hex(&hash)?)),
            count: line.take_optional_u64("count").unwrap_or(0),
            seq_seen: line.take_optional_u64("seq_seen"),
        };
        line.finish("line")?;
        Ok(planned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_read_as_it_was_written() {
        let full = PlannedLine {
            change: Some(LineChange {
                fork: 3,
                is_grown: true,
                restored: Vec::from([(5, 6)]),
                ends_doubt: true,
            }),
            branch: Some(2),
            is_revision: true,
            is_start: true,
            is_system: true,
            list_hashes: ListHashes::from_bytes(&[7; 80]),
            count: 2,
            seq_seen: Some(4),
        };
        for line in [PlannedLine::default(), full] {
            let text = line.to_object().end_object();
            let read = PlannedLine::parse(&text).expect("an option");
            assert_eq!(read.to_object().end_object(), text);
            assert_eq!(alloc::format!("{read:?}"), alloc::format!("{line:?}"));
        }
    }
}
