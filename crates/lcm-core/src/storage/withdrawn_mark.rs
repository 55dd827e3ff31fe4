//! Marks of withdrawn messages in answers: why a message that was found is not in the line. A
//! summary whose messages are all withdrawn has the mark of its first message.
//!
//! In: the head of a conversation and the seq of a message. Out: the mark, as JSON and in the words
//! that a model reads. The record of a conversation is read at most once in a call, and only if the
//! head shows withdrawn messages. Not here: how messages leave the line (`crate::ingest`).
//!
//! Messages that a new session withdrew have no mark: they are still in the line.

use alloc::{format, rc::Rc, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    context::ContextItem,
    head::ConversationHead,
    history::MessageHistory,
    records::withdrawals::{WithdrawalReason, Withdrawals, WithdrawnRange},
    store_session::StoreSession,
    summary::{Summary, SummarySources},
};
use lcm_text::base::{
    error::Result,
    json::{JsonFields, JsonWriter},
};

/// Name of the member of an answer that holds a mark.
pub(crate) const WITHDRAWN: &str = "withdrawn";
/// Name of the member with the number of withdrawn messages of a conversation.
pub(crate) const WITHDRAWN_MESSAGES: &str = "withdrawn_messages";
/// Text of the mark of a set-aside message, for a model.
const SET_ASIDE_WORDS: &str = "set aside: the conversation went another way";
/// Text of the mark of another form, for a model.
const REVISION_WORDS: &str = "another form of a message that stands";

/// Why a message is not in the line. The store holds the index of the case, so the order must not
/// change.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum WithdrawnMark {
    /// A later list of the host went another way, or a rewind set the message aside.
    SetAside,
    /// The message is another form of a message that is or was in the line.
    Revision,
}

impl WithdrawnMark {
    /// Returns the name of the mark in an answer.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::SetAside => "set-aside",
            Self::Revision => "revision",
        }
    }

    /// Returns the text of the mark, for a model.
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::SetAside => SET_ASIDE_WORDS,
            Self::Revision => REVISION_WORDS,
        }
    }

    /// Adds the text of the mark to a header, before the closing bracket.
    pub(crate) fn write_in_header(self, header: &mut String) {
        if header.pop().is_some() {
            header.push_str(&format!(", {}]", self.describe()));
        }
    }
}

const MARKS: [WithdrawnMark; 2] = [WithdrawnMark::SetAside, WithdrawnMark::Revision];

/// Takes the mark of a row of an answer and returns it as a note for a model; empty: the row has no
/// mark.
pub(crate) fn take_note(fields: &mut JsonFields<'_>) -> String {
    let name = fields.take_optional_text(WITHDRAWN).unwrap_or_default();
    let mark = MARKS.iter().find(|mark| mark.as_str() == name);
    mark.map_or_else(String::new, |mark| format!(" ({})", mark.describe()))
}

/// Returns the mark that [`WithdrawnMark::write_in_header`] wrote; `None`: none.
pub(crate) fn find_in_header(header: &str) -> Option<WithdrawnMark> {
    MARKS.into_iter().find(|mark| header.ends_with(&format!(", {}]", mark.describe())))
}

impl From<WithdrawalReason> for WithdrawnMark {
    fn from(reason: WithdrawalReason) -> Self {
        match reason {
            WithdrawalReason::SetAside { .. } => Self::SetAside,
            WithdrawalReason::Revision => Self::Revision,
        }
    }
}

/// Returns whether a conversation may have withdrawn messages, as its head shows: the ledger counts
/// tokens of withdrawn messages, or the head lists a withdrawn item, which may have no tokens.
fn has_withdrawn(head: &ConversationHead) -> bool {
    let is_withdrawn = |item: &ContextItem| matches!(item, ContextItem::Withdrawn { .. });
    head.ledger.withdrawn_tokens > 0 || head.context.inline_items().iter().any(is_withdrawn)
}

/// Returns the record of withdrawn messages, which a call reads once; empty, without a read, if the
/// head shows no withdrawn messages.
///
/// # Errors
///
/// `corrupt`: the record is damaged; `unsupported`: it has a newer format; errors of the store.
pub(crate) fn read_withdrawals(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
) -> Result<Rc<Withdrawals>> {
    if !has_withdrawn(history.head) {
        return Ok(Rc::default());
    }
    let key = Withdrawals::key(history.keys);
    if let Some(known) = session.find_withdrawals(key.name()) {
        return Ok(known);
    }
    let read = Rc::new(session.read_record(&key)?.unwrap_or_default());
    session.keep_withdrawals(key.name(), &read);
    Ok(read)
}

/// Returns the mark of a message; `None`: the message is in the line.
///
/// # Errors
///
/// Those of [`read_withdrawals`].
pub(crate) fn find_mark(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
) -> Result<Option<WithdrawnMark>> {
    Ok(read_withdrawals(session, history)?.reason_of(seq).map(WithdrawnMark::from))
}

/// Returns the mark of the first message of a summary; `None`: a message of the summary is in the
/// line. For a condensed summary, all messages from its first to its last message count.
///
/// # Errors
///
/// Those of [`read_withdrawals`].
pub(crate) fn find_summary_mark(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    record: &Summary,
) -> Result<Option<WithdrawnMark>> {
    let withdrawals = read_withdrawals(session, history)?;
    let ranges = match &record.sources {
        SummarySources::Messages { span, .. } => span.list_ranges(),
        SummarySources::Summaries(_) => Vec::from([(record.seq_first, record.seq_last)]),
    };
    let is_in_line =
        |(first, last): &(u64, u64)| !withdrawals.list_line_ranges(*first, *last).is_empty();
    let reason = withdrawals.reason_of(record.seq_first);
    Ok(reason.filter(|_| !ranges.iter().any(is_in_line)).map(WithdrawnMark::from))
}

/// Adds the mark of a message to a row of an answer, as its last member; a message of the line has
/// no such member.
///
/// # Errors
///
/// Those of [`read_withdrawals`].
pub(crate) fn add_mark(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq: u64,
    row: &mut JsonWriter,
) -> Result<()> {
    if let Some(mark) = find_mark(session, history, seq)? {
        row.add_text(WITHDRAWN, mark.as_str());
    }
    Ok(())
}

/// Adds the mark of a summary to a row of an answer, as its last member; a summary with a message
/// of the line has no such member.
///
/// # Errors
///
/// Those of [`read_withdrawals`].
pub(crate) fn add_summary_mark(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    record: &Summary,
    row: &mut JsonWriter,
) -> Result<()> {
    if let Some(mark) = find_summary_mark(session, history, record)? {
        row.add_text(WITHDRAWN, mark.as_str());
    }
    Ok(())
}

/// Counts the other forms and the set-aside messages of a conversation, as JSON.
///
/// # Errors
///
/// Those of [`read_withdrawals`].
pub(crate) fn count_withdrawn(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
) -> Result<JsonWriter> {
    let withdrawals = read_withdrawals(session, history)?;
    let count = |mark: WithdrawnMark| -> u64 {
        let of_mark = |range: &&WithdrawnRange| WithdrawnMark::from(range.reason) == mark;
        withdrawals.ranges.iter().filter(of_mark).map(WithdrawnRange::count).sum()
    };
    let mut counts = JsonWriter::new_object();
    counts.add_number("revisions", count(WithdrawnMark::Revision));
    counts.add_number("set_aside", count(WithdrawnMark::SetAside));
    Ok(counts)
}
