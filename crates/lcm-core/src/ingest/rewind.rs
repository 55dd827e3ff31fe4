//! Rewind: sets aside the messages after a point of the line that the caller names, without a list.
//!
//! In: the last message that stays, or a number of units to take back. Out: the changed head and
//! what was set aside. The verb `rewind` of `admin` uses this module.
//!
//! A message that was set aside leads back to its branch: the messages up to it come back, and
//! those that the line has in their place are set aside.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call,
    changes::Changes,
    context::Context,
    fresh_tail,
    head::ConversationHead,
    history::MessageHistory,
    records::withdrawals::{WithdrawalReason, Withdrawals},
    store_session::StoreSession,
};
use lcm_text::base::{
    error::{Error, Result},
    int,
};

use super::{
    branch_window,
    line_change::{LineChange, LineUpdate, NewMessageCounts, RESTORED_MAX},
    stored_line::StoredLine,
};

/// Most messages that one call returns, and their bytes together unless there is only one.
const RETURNED_MAX: usize = 100;
const RETURNED_BYTES_MAX: usize = 256 << 10;
/// Messages of the line, from its end on, among which units are counted.
const UNITS_MESSAGES_MAX: u64 = 1_000;

/// How far the conversation goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RewindTarget {
    /// Seq of the last message that stays, or that comes back; 0: none stays.
    To(u64),
    /// Number of newest units that are set aside.
    Units(u64),
}

/// What a rewind did.
pub(crate) struct Rewound {
    /// Seq of the last message of the line; 0: none.
    pub(crate) seq_last: u64,
    /// Seqs of the messages that were set aside, ascending.
    pub(crate) set_aside: Vec<u64>,
    /// Texts of the newest of them, oldest first: at most 100 and 256 KiB, but at least one.
    pub(crate) messages: Vec<String>,
    /// Number of messages that came back.
    pub(crate) restored: u64,
    /// The context before, and the records to commit; `None`: nothing changes.
    pub(crate) changed: Option<(Context, Changes)>,
}

/// Changes the head. `seq_seen`: seq up to which the caller has seen every message; `None`: the
/// caller sets aside whatever follows.
///
/// # Errors
///
/// `invalid-input`: no such message, too many units, or too many ranges that lead back; `conflict`:
/// others stored messages that the caller did not see; `limit-exceeded`: too many summaries give
/// way, or too many ranges of withdrawn messages; errors of the store.
pub(crate) fn rewind_line(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &mut ConversationHead,
    target: RewindTarget,
    seq_seen: Option<u64>,
) -> Result<Rewound> {
    let withdrawals = session.read_record(&Withdrawals::key(call.keys))?.unwrap_or_default();
    let history = MessageHistory::new(call, head);
    let line = StoredLine::new(history, &withdrawals);
    let newest = line.seq_at(line.count_messages());
    if seq_seen.is_some_and(|seen| seen < newest) {
        return Err(Error::revision_conflict(format_args!(
            "`seq_seen` must be at least {newest}, the newest message, to set it aside; got {}",
            seq_seen.unwrap_or_default()
        )));
    }
    let (fork, restored) = match target {
        RewindTarget::To(seq) => find_target(&line, &withdrawals, seq)?,
        RewindTarget::Units(units) => (find_unit(session, &line, units)?, Vec::new()),
    };
    let places = line.count_through(fork) + 1..=line.count_messages();
    let set_aside: Vec<u64> = places.map(|position| line.seq_at(position)).collect();
    let messages = read_newest(session, line.message_history(), &set_aside)?;
    let restored_count = restored.iter().map(|(first, last)| last + 1 - first).sum();
    let seq_last = restored.last().map_or(fork, |(_, last)| *last);
    let mut rewound =
        Rewound { seq_last, set_aside, messages, restored: restored_count, changed: None };
    if rewound.set_aside.is_empty() && restored.is_empty() {
        return Ok(rewound);
    }
    let change = LineChange { fork, is_grown: false, restored, ends_doubt: false };
    let update = LineUpdate { change: Some(change), withdrawals, ..LineUpdate::default() };
    let before = head.context.clone();
    let mut changes = Changes::default();
    if let Some(prepared) = update.prepare_update(session, call, head, 0)? {
        let tokens_before_line = head.raw_tokens;
        let seq_first = head.messages + 1;
        let new = NewMessageCounts { seq_first, forms: &[], tokens_before_line };
        prepared.apply(call, head, new, &mut changes)?;
    }
    rewound.changed = Some((before, changes));
    Ok(rewound)
}

/// Returns the seq of the message of the line after which the line changes, and the ranges that
/// come back; 0: the line changes from its beginning on.
fn find_target(
    line: &StoredLine<'_>,
    withdrawals: &Withdrawals,
    seq: u64,
) -> Result<(u64, Vec<(u64, u64)>)> {
    let messages = line.message_history().head.messages;
    let is_revision = withdrawals.reason_of(seq) == Some(WithdrawalReason::Revision);
    if seq > messages || is_revision {
        return Err(Error::invalid_input(format_args!(
            "`to` must be 0 or the seq of a message, at most {messages}, that is not another form \
             of a message; got {seq}"
        )));
    }
    if seq == 0 || line.position_of(seq).is_some() {
        return Ok((seq, Vec::new()));
    }
    branch_window::find_path(withdrawals, seq, seq).ok_or_else(|| {
        Error::invalid_input(format_args!(
            "`to` must lead back by at most {} set-aside ranges; got {seq}",
            RESTORED_MAX / 2
        ))
    })
}

/// Returns the seq of the last message before the newest `units` units of the line; 0: none.
fn find_unit(session: &mut StoreSession<'_>, line: &StoredLine<'_>, units: u64) -> Result<u64> {
    let last = line.count_messages();
    let first = last.saturating_sub(UNITS_MESSAGES_MAX) + 1;
    let seqs: Vec<u64> = (first..=last).map(|position| line.seq_at(position)).collect();
    let messages = line.message_history().read_messages_at(session, &seqs)?;
    let found = fresh_tail::group_units(&messages);
    let Some(from) = found.len().checked_sub(int::to_usize(units)) else {
        return match first {
            1 => Ok(0),
            _ => Err(Error::invalid_input(format_args!(
                "`units` must be at most {}, those of the newest {UNITS_MESSAGES_MAX} messages; \
                 got {units}",
                found.len()
            ))),
        };
    };
    let Some(unit) = found.get(from) else { return Ok(line.seq_at(last)) };
    Ok(line.seq_at(line.count_through(unit.seq_first) - 1))
}

/// Reads the texts of as many newest of some messages as one call returns, oldest first.
fn read_newest(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seqs: &[u64],
) -> Result<Vec<String>> {
    let from = seqs.len().saturating_sub(RETURNED_MAX);
    let placed = history.read_messages_at(session, seqs.get(from..).unwrap_or(&[]))?;
    let (mut texts, mut bytes) = (Vec::new(), 0);
    for placed in placed.iter().rev() {
        let text = history.read_text(session, &placed.stored)?;
        bytes += text.len();
        if bytes > RETURNED_BYTES_MAX && !texts.is_empty() {
            break;
        }
        texts.push(text.into_owned());
    }
    texts.reverse();
    Ok(texts)
}
