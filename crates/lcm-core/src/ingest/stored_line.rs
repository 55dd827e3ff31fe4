//! The line: the stored messages with which a list of the host is compared.
//!
//! In: the head and the record of withdrawn messages. Out: messages by their position in the line,
//! counted from 1. The line has all messages but those that were set aside and other forms of
//! messages. Messages that a new session withdrew stay in the line, because hosts send them again.

use alloc::{borrow::Cow, string::String, vec::Vec};

use crate::storage::{
    history::MessageHistory,
    message_mark::MessageMark,
    pack::{PlacedMessage, RawText},
    records::withdrawals::{WithdrawalReason, Withdrawals},
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, limits,
    },
    message::{
        self, Role,
        meaning::{self, MEANING_VERSION, SaidPart},
    },
};

use super::{
    alignment::AlignableEntry,
    message_form::{self, MessageForm},
};

/// Most messages of one page.
pub(super) const PAGE_MESSAGES: usize = 64;

/// A stored message as it is compared.
pub(super) struct ComparedMessage {
    pub(super) mark: MessageMark,
    pub(super) role: Role,
    /// The stored text; empty: it is too large to be compared with a redacted copy.
    pub(super) text: String,
    /// What each part of the message says.
    pub(super) parts: Vec<SaidPart>,
    /// What the message says, if that is one text; `None`: something else.
    pub(super) said: Option<String>,
}

impl ComparedMessage {
    /// Returns whether an entry is this message, which is at a position of the line, or a redacted
    /// copy of it.
    pub(super) fn is_entry(&self, position: u64, entry: &AlignableEntry) -> bool {
        entry.is_message(position, &self.mark)
            || (!entry.is_known() && entry.may_be_copy_of(&self.text))
    }

    /// Returns whether an entry is this message or a redacted copy of it; false if an id of the
    /// entry is stored.
    pub(super) fn matches_entry(&self, entry: &AlignableEntry) -> bool {
        !entry.is_known() && (entry.is_same(&self.mark) || entry.may_be_copy_of(&self.text))
    }
}

/// The line of a conversation.
pub(super) struct StoredLine<'a> {
    history: MessageHistory<'a>,
    withdrawals: &'a Withdrawals,
    /// Number of messages in the line.
    length: u64,
    /// Marks of the newest messages of the line, oldest first; empty if the head has marks of other
    /// rules.
    marks: Vec<MessageMark>,
}

impl<'a> StoredLine<'a> {
    /// Creates the line of the conversation of a history.
    pub(super) fn new(history: MessageHistory<'a>, withdrawals: &'a Withdrawals) -> Self {
        let head = history.head;
        let first = head.messages + 1 - int::to_u64(head.recent_marks.len());
        let is_comparable = head.meaning_version == MEANING_VERSION;
        let marks = (first..).zip(&head.recent_marks);
        let marks = marks.filter(|(seq, _)| withdrawals.position_of(*seq).is_some());
        let marks = marks.filter(|_| is_comparable).map(|(_, mark)| *mark).collect();
        let length = withdrawals.count_in_line(head.messages);
        Self { history, withdrawals, length, marks }
    }

    /// Reads more marks if the head has only few of the line, because most of the newest messages
    /// were set aside. So a window is found in the line after a large undo, too.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn with_marks(mut self, session: &mut StoreSession<'_>) -> Result<Self> {
        let known = int::to_u64(self.marks.len());
        let least = self.length.min(int::to_u64(PAGE_MESSAGES));
        if known >= least || !self.is_comparable() {
            return Ok(self);
        }
        let (mut position, end) = (self.length - least + 1, self.length - known + 1);
        let mut marks = Vec::new();
        while position < end {
            let page = self.read_page_before(session, position, end)?;
            if page.is_empty() {
                return Ok(self);
            }
            position += int::to_u64(page.len());
            marks.extend(page.iter().map(|message| message.mark));
        }
        marks.append(&mut self.marks);
        self.marks = marks;
        Ok(self)
    }

    /// Returns the history of the conversation.
    pub(super) fn message_history(&self) -> &MessageHistory<'a> {
        &self.history
    }

    /// Returns whether the marks and hashes of the head follow the rules of this version.
    pub(super) fn is_comparable(&self) -> bool {
        self.history.head.meaning_version == MEANING_VERSION
    }

    /// Returns the positions, newest first, at which lists of the host began other than position 1.
    pub(super) fn list_starts(&self) -> Vec<u64> {
        let starts = self.history.head.list_starts.iter().rev();
        let mut positions: Vec<u64> =
            starts.map(|seq| self.count_through(seq.saturating_sub(1)) + 1).collect();
        positions.retain(|position| (2..=self.length).contains(position));
        positions.dedup();
        positions
    }

    /// Returns the positions, newest first, at which branches begin in the line whose lists go on
    /// from the message at `position`.
    pub(super) fn branch_starts(&self, position: u64) -> Vec<u64> {
        let after = self.seq_at(position);
        let starts = self.withdrawals.branches.iter().rev().filter(|start| start.after == after);
        starts.filter_map(|start| self.position_of(start.seq)).collect()
    }

    /// Returns the mark of the message at a position, if it is one of the newest marks.
    pub(super) fn mark_at(&self, position: u64) -> Option<&MessageMark> {
        let first = self.length + 1 - int::to_u64(self.marks.len());
        self.marks.get(int::to_usize(position.checked_sub(first)?))
    }

    /// Returns the number of messages, which is the position of the newest message.
    pub(super) fn count_messages(&self) -> u64 {
        self.length
    }

    /// Returns the marks of the newest messages, oldest first.
    pub(super) fn newest_marks(&self) -> &[MessageMark] {
        &self.marks
    }

    /// Returns the seq of the message at a position.
    pub(super) fn seq_at(&self, position: u64) -> u64 {
        self.withdrawals.seq_at(position)
    }

    /// Returns the position of a message; `None`: the message is not in the line.
    pub(super) fn position_of(&self, seq: u64) -> Option<u64> {
        self.withdrawals.position_of(seq)
    }

    /// Counts the messages of the line up to and with a seq; the count is also the position of the
    /// last of them.
    pub(super) fn count_through(&self, seq: u64) -> u64 {
        self.withdrawals.count_through(seq)
    }

    /// Reads messages from a position on: at least one if there is one, and at most a page. A large
    /// message ends the page.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn read_page(
        &self,
        session: &mut StoreSession<'_>,
        position: u64,
    ) -> Result<Vec<ComparedMessage>> {
        self.read_page_before(session, position, self.length + 1)
    }

    /// Reads messages as [`Self::read_page`], of those before the position `end`.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn read_page_before(
        &self,
        session: &mut StoreSession<'_>,
        position: u64,
        end: u64,
    ) -> Result<Vec<ComparedMessage>> {
        let last = self.length.min(position + int::to_u64(PAGE_MESSAGES) - 1).min(end - 1);
        let seqs: Vec<u64> = (position..=last).map(|position| self.seq_at(position)).collect();
        let (Some(seq_first), Some(seq_last)) = (seqs.first(), seqs.last()) else {
            return Ok(Vec::new());
        };
        let is_whole = seq_last - seq_first == last - position;
        let placed = match is_whole {
            true => self.history.read_messages(session, *seq_first, *seq_last)?,
            false => self.history.read_messages_at(session, &seqs)?,
        };
        let mut out = Vec::with_capacity(placed.len());
        for placed in placed {
            let message = read_message(session, &self.history, &placed)?;
            let is_small = !message.text.is_empty();
            out.push(message);
            if !is_small {
                break;
            }
        }
        Ok(out)
    }

    /// Reads a message, in the line or not. `None`: there is no such message.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn read_stored(
        &self,
        session: &mut StoreSession<'_>,
        seq: u64,
    ) -> Result<Option<ComparedMessage>> {
        let mut found = None;
        self.visit_stored(session, &[seq], &mut |_, message| {
            found = Some(message);
            false
        })?;
        Ok(found)
    }

    /// Reads messages of ascending seqs, in the line or not. `visit` gets one after the other, each
    /// with its seq, and returns whether to read on. So only one text need fit into memory.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn visit_stored(
        &self,
        session: &mut StoreSession<'_>,
        seqs: &[u64],
        visit: &mut dyn FnMut(u64, ComparedMessage) -> bool,
    ) -> Result<()> {
        for page in seqs.chunks(PAGE_MESSAGES) {
            for placed in self.history.read_messages_at(session, page)? {
                if !visit(placed.seq, read_message(session, &self.history, &placed)?) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns whether a set-aside range that follows the message at `position` begins with an
    /// entry.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn has_branch(
        &self,
        session: &mut StoreSession<'_>,
        position: u64,
        entry: &AlignableEntry,
    ) -> Result<bool> {
        let after = self.withdrawals.ranges_after(self.seq_at(position));
        for range in after {
            let stored = self.read_stored(session, range.seq_first)?;
            let is_equal = |message: &ComparedMessage| entry.mark.is_same_message(&message.mark);
            if entry.known_seq == Some(range.seq_first) || stored.iter().any(is_equal) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a set-aside range that follows the message at `position` begins with an
    /// entry, or with a message of which the entry is another form.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn has_branch_form(
        &self,
        session: &mut StoreSession<'_>,
        position: u64,
        entry: &AlignableEntry,
    ) -> Result<bool> {
        for range in self.withdrawals.ranges_after(self.seq_at(position)) {
            let stored = self.read_stored(session, range.seq_first)?;
            let is_form = |message: &ComparedMessage| {
                let form = message_form::compare_forms(entry, None, message);
                entry.mark.is_same_message(&message.mark) || form == Some(MessageForm::Other)
            };
            if stored.iter().any(is_form) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the marks of the stored messages that are other forms. The record has the marks of
    /// the newest of them; if other rules made these marks, all marks are computed from the texts.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn read_forms(
        &self,
        session: &mut StoreSession<'_>,
    ) -> Result<Cow<'a, [MessageMark]>> {
        match self.is_comparable() {
            true => Ok(Cow::Borrowed(&self.withdrawals.forms)),
            false => Ok(Cow::Owned(read_forms(session, &self.history, self.withdrawals)?)),
        }
    }

    /// Reads the texts of at most `count` newest messages, oldest first. A text in chunks is empty.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn read_newest_texts(
        &self,
        session: &mut StoreSession<'_>,
        count: usize,
    ) -> Result<Vec<String>> {
        let count = count.min(self.marks.len());
        let first = self.length + 1 - int::to_u64(count);
        let seqs: Vec<u64> = (first..=self.length).map(|position| self.seq_at(position)).collect();
        let placed = self.history.read_messages_at(session, &seqs)?;
        let texts = placed.iter().map(|placed| match &placed.stored.raw {
            RawText::Inline(text) => text.clone(),
            RawText::Chunked { .. } => String::new(),
        });
        Ok(texts.collect())
    }
}

/// Reads the marks of all stored messages that are other forms of messages.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(crate) fn read_forms(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    withdrawals: &Withdrawals,
) -> Result<Vec<MessageMark>> {
    let ranges = withdrawals.ranges.iter();
    let of_forms = ranges.filter(|range| range.reason == WithdrawalReason::Revision);
    let seqs: Vec<u64> = of_forms.flat_map(|range| range.seq_first..=range.seq_last).collect();
    read_marks(session, history, &seqs)
}

/// Reads the marks of messages of ascending seqs.
pub(super) fn read_marks(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seqs: &[u64],
) -> Result<Vec<MessageMark>> {
    let mut marks = Vec::with_capacity(seqs.len());
    for page in seqs.chunks(PAGE_MESSAGES) {
        for placed in history.read_messages_at(session, page)? {
            marks.push(read_message(session, history, &placed)?.mark);
        }
    }
    Ok(marks)
}

fn read_message(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    placed: &PlacedMessage,
) -> Result<ComparedMessage> {
    let text = history.read_text(session, &placed.stored)?;
    let message = message::parse(placed.dialect, &text)
        .map_err(|_| Error::corrupt_store(format_args!("message {} cannot be read", placed.seq)))?;
    let (mark, parts) = MessageMark::with_parts(&text, &message);
    let said = meaning::read_text(&text, &message);
    let is_small = text.len() <= limits::PACK_BYTES_MAX;
    let text = if is_small { text.into_owned() } else { String::new() };
    Ok(ComparedMessage { mark, role: message.role, text, parts, said })
}
