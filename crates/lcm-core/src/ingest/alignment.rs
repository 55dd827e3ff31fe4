//! Entries of a list as they are compared with stored messages, and runs at the end of the line.
//!
//! In: entries and the newest marks of the line. Out: how many entries match. [`super::line_diff`]
//! uses this module.
//!
//! Equal content alone proves nothing: users do say "ok" twice. A run of equal entries counts only
//! if it has an anchor. An anchor is an entry known by id, or an equal entry that is long, has a
//! time or has a unique call id. Ids such as `call_1`, which count calls, are anchors under three
//! conditions: the newest messages have each id once, a message before the run has a call id too,
//! and the list continues behind the run. Then they count the calls of the conversation, not of a
//! turn.

use alloc::{string::String, vec::Vec};
use core::cell::Cell;

use crate::storage::message_mark::MessageMark;
use lcm_text::{base::sort, message::Role};

use super::redaction::RedactedCopy;

/// Fewest anchors of a match that does not end with the newest stored message. One anchor may be a
/// message that was said twice.
pub(super) const INSIDE_ANCHORS_MIN: usize = 2;

/// Most entries that a comparison steps back from the last stored entry, because the entries after
/// may be short texts of a set-aside branch that people said again.
pub(super) const SAID_AGAIN_MAX: usize = 4;

/// Fewest different long texts that prove a run, wherever the run is in the list.
const CERTAIN_TEXTS_MIN: usize = 3;

/// One entry of a list, as it is compared with stored messages.
#[derive(Clone, Debug)]
pub(super) struct AlignableEntry {
    pub(super) mark: MessageMark,
    pub(super) role: Role,
    /// Bytes and hash of the text, if the entry says one text only; `None`: something else.
    pub(super) text: Option<(usize, [u8; 16])>,
    /// Running hash over the parts of the list up to and with the entry, without rendered
    /// summaries.
    pub(super) list_hash: [u8; 16],
    /// Seq of the message that the entry is by its ids; `None`: its ids say nothing.
    pub(super) known_seq: Option<u64>,
    /// Position in the line of the message `known_seq`; `None`: there is no such message, or it is
    /// not in the line.
    pub(super) position: Option<u64>,
    /// Whether equal content is evidence that entry and message are the same.
    pub(super) is_discriminating: bool,
    /// The entry as a redacted copy; `None`: the entry is compared only by mark and id.
    pub(super) redacted_copy: Option<RedactedCopy>,
    /// Whether the entry has ids of the host that do not count.
    pub(super) is_id_taken: bool,
    /// Whether the entry is known to say something else than its message, or was matched with a
    /// result of the same call that does.
    pub(super) may_be_form: Cell<bool>,
    /// Whether the entry has every part of the message that it is by its id, and more parts.
    pub(super) has_grown: bool,
}

impl AlignableEntry {
    /// Returns whether an id of the entry is stored and counts.
    pub(super) fn is_known(&self) -> bool {
        self.known_seq.is_some()
    }

    /// Returns whether an id of the entry is that of a message outside the line: a set-aside one,
    /// because ids of other forms do not count.
    pub(super) fn is_set_aside(&self) -> bool {
        self.is_known() && self.position.is_none()
    }

    /// Returns whether the entry, if it matches, proves that entry and message are the same.
    pub(super) fn is_anchor(&self) -> bool {
        self.is_discriminating || self.is_known()
    }

    /// Returns whether the entry, which matches the message with this mark, proves the match: its
    /// id is stored, or its content is evidence and it is no other form of the message.
    pub(super) fn is_anchor_of(&self, mark: &MessageMark) -> bool {
        self.is_known() || (self.is_discriminating && self.mark.is_same_message(mark))
    }

    /// Returns whether the entry is an anchor even where a list may go another way: people and
    /// models seldom say a long text twice, but tools are called again with the same arguments.
    pub(super) fn is_strong_anchor(&self) -> bool {
        let is_text = matches!(self.role, Role::User | Role::Assistant);
        self.is_known() || (self.is_discriminating && is_text && self.mark.call == [0; 4])
    }

    /// Returns whether the entry is the message with this mark at a position of the line. If an id
    /// of the entry is stored, the position alone decides, else [`Self::is_same`].
    pub(super) fn is_message(&self, position: u64, mark: &MessageMark) -> bool {
        match self.is_known() {
            true => self.position == Some(position),
            false => self.is_same(mark),
        }
    }

    /// Returns whether the entry, of which no id is stored, can be the message with this mark. A
    /// result with the same unique call id and no other id of the host is the same message, however
    /// it is written. Sets `may_be_form` if both are results of one call that say different
    /// things.
    pub(super) fn is_same(&self, mark: &MessageMark) -> bool {
        let is_same = self.mark.is_same_message(mark);
        let is_form = !is_same
            && self.role == Role::Tool
            && self.mark.has_same_call(mark)
            && !self.mark.has_other_id(mark);
        if is_form {
            self.may_be_form.set(true);
        }
        is_same || is_form
    }

    /// Returns whether the entry may be a redacted copy of a stored message with this text.
    pub(super) fn may_be_copy_of(&self, text: &str) -> bool {
        self.redacted_copy.is_some_and(|copy| copy.may_be_copy_of(text))
    }
}

/// The newest messages of the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewestMessages<'a> {
    /// Marks of the messages, oldest first.
    pub(super) marks: &'a [MessageMark],
    /// Texts of the newest messages, oldest first; empty if no entry is a redacted copy.
    pub(super) texts: &'a [String],
    /// Position of the newest message.
    pub(super) position_last: u64,
    /// Whether equal call ids are anchors although they only count calls.
    pub(super) counts_calls: bool,
}

/// A run of matching entries.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct MatchedRun {
    /// Number of entries.
    pub(super) length: usize,
    /// Entries that are anchors.
    pub(super) anchors: usize,
    /// Entries with a stored id or a unique call id that say the same as their message.
    pub(super) named: usize,
}

impl NewestMessages<'_> {
    /// Matches `entries`, from the last on, with the newest messages in their order. There are at
    /// most as many entries as marks.
    pub(super) fn match_suffix(&self, entries: &[AlignableEntry]) -> MatchedRun {
        let mut texts = self.texts.iter().rev();
        let mut run = MatchedRun::default();
        for ((entry, mark), position) in
            entries.iter().rev().zip(self.marks.iter().rev()).zip((1..=self.position_last).rev())
        {
            let text = texts.next();
            if entry.is_message(position, mark) {
                run.anchors += usize::from(entry.is_anchor_of(mark));
                let is_named = entry.is_known() || entry.mark.has_unique_call();
                run.named += usize::from(is_named && entry.mark.says_the_same(mark));
            } else if entry.is_known() || !text.is_some_and(|text| entry.may_be_copy_of(text)) {
                break;
            }
            run.length += 1;
        }
        if run.length > 0 && run.anchors == 0 && self.counts_calls {
            run.anchors = self.count_counted_calls(entries, run.length);
        }
        run
    }

    /// Counts, among the last `length` entries, those whose call id equals that of their message.
    /// Returns 0 if no message before them has a call id: then the ids may start again in each turn
    /// and prove nothing.
    fn count_counted_calls(&self, entries: &[AlignableEntry], length: usize) -> usize {
        if !self.marks.iter().rev().skip(length).any(MessageMark::has_call) {
            return 0;
        }
        let pairs = entries.iter().rev().zip(self.marks.iter().rev()).take(length);
        pairs.filter(|(entry, mark)| mark.has_call() && entry.mark.call == mark.call).count()
    }
}

/// Returns whether a message has a call id, and no two messages have the same.
pub(super) fn has_distinct_calls(marks: &[MessageMark]) -> bool {
    let calls = marks.iter().filter(|mark| mark.has_call());
    let mut calls: Vec<[u8; 4]> = calls.map(|mark| mark.call).collect();
    sort::sort(&mut calls);
    !calls.is_empty() && calls.array_windows().all(|[left, right]| left != right)
}

/// Returns whether matched entries have three different long texts: too much to be a repetition,
/// wherever the entries are in a list.
pub(super) fn have_certain_texts(entries: &[AlignableEntry]) -> bool {
    let texts = entries.iter().filter(|entry| entry.is_strong_anchor() && entry.text.is_some());
    let mut texts: Vec<[u8; 8]> = texts.map(|entry| entry.mark.meaning).collect();
    sort::sort_and_dedup(&mut texts);
    texts.len() >= CERTAIN_TEXTS_MIN
}
