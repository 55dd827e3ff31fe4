//! Which entries without an id are stored, going by those that are stored by id.
//!
//! In: the entries of a transcript, some of them known by id. Out: for each the seq of its message,
//! when it has one. No message is taken for two entries.
//!
//! From every known entry on, forwards and then backwards, entries are compared with the messages
//! beside the known one, up to the next known one on either side. An entry that was put in later,
//! or edited, is stored behind what there was. So one before the last known entry can be any
//! message that no other entry is, for nobody can have said it since; one behind it can be any that
//! stands behind that.

use alloc::vec::Vec;

use crate::storage::{history::MessageHistory, store_session::StoreSession};
use lcm_text::base::{error::Result, int, sort};

use super::{
    identity::AlignableEntry,
    transcript_diff::{ComparedMessage, read_page},
};

/// Messages of a page, which begins at a multiple of it.
const PAGE_MESSAGES: u64 = 64;

/// A known message and how far the ones behind it are taken.
struct AlignmentAnchor {
    seq: u64,
    /// The last message behind it that is an entry.
    last_aligned: u64,
    /// Whether what is behind it was compared; several entries can be one message.
    is_following_done: bool,
    /// Whether what is before it was compared.
    is_preceding_done: bool,
}

/// Stored messages, read page by page.
#[derive(Default)]
struct MessagePager {
    first: u64,
    messages: Vec<ComparedMessage>,
}

impl MessagePager {
    /// Whether an entry is the message with this seq, from 1 to the last.
    fn matches_entry(
        &mut self,
        reader: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        seq: u64,
        entry: &AlignableEntry,
    ) -> Result<bool> {
        // A large message ends a page before its time.
        for first in [(seq - 1) / PAGE_MESSAGES * PAGE_MESSAGES + 1, seq] {
            if let Some(kept) = self.get_message(seq) {
                return Ok(kept.matches_entry(entry));
            }
            self.messages = read_page(reader, history, first)?;
            self.first = first;
        }
        Ok(self.get_message(seq).is_some_and(|kept| kept.matches_entry(entry)))
    }

    fn get_message(&self, seq: u64) -> Option<&ComparedMessage> {
        self.messages.get(int::to_usize(seq.checked_sub(self.first)?))
    }
}

/// The seqs of the entries that are stored by id or go by those that are. `has_id` says which
/// entries carry an id, known or not.
///
/// # Errors
///
/// Of the store.
pub(super) fn align_entries(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
    has_id: &dyn Fn(usize) -> bool,
) -> Result<Vec<Option<u64>>> {
    let mut seqs = align_around_anchors(reader, history, entries)?;
    let mut taken: Vec<u64> = seqs.iter().flatten().copied().collect();
    sort::sort(&mut taken);
    let last = seqs.iter().rposition(Option::is_some).unwrap_or(0);
    let after = seqs.get(last).copied().flatten().unwrap_or(0);
    let is_open = |(index, seq): &(usize, &Option<u64>)| seq.is_none() && !has_id(*index);
    let open = seqs.iter().enumerate().filter(is_open).filter_map(|(index, _)| {
        let least = if index < last { 1 } else { after + 1 };
        Some(UnmatchedEntry { hash: entries.get(index)?.hash, index, seq_min: least, seq: None })
    });
    let mut open: Vec<UnmatchedEntry> = open.collect();
    sort::sort_by(&mut open, &mut |a, b| (a.hash, a.index).cmp(&(b.hash, b.index)));
    match_by_content(reader, history, &mut open, &taken)?;
    for UnmatchedEntry { index, seq, .. } in open {
        seqs.get_mut(index).into_iter().for_each(|slot| *slot = slot.or(seq));
    }
    Ok(seqs)
}

/// An entry that is not beside a known one.
struct UnmatchedEntry {
    hash: [u8; 16],
    index: usize,
    /// The first message that it can be.
    seq_min: u64,
    /// The message that it is.
    seq: Option<u64>,
}

/// Finds messages that are not taken for open entries, which are given in order; of equal ones the
/// newest. All messages are read, unless everything is found before.
fn match_by_content(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    open: &mut [UnmatchedEntry],
    taken: &[u64],
) -> Result<()> {
    let mut left = open.len();
    let least = open.iter().map(|one| one.seq_min).min().unwrap_or(u64::MAX);
    let mut end = history.head.messages;
    while left > 0 && end >= least {
        let first = (end - 1) / PAGE_MESSAGES * PAGE_MESSAGES + 1;
        let mut seq = first;
        while seq <= end {
            // A page may reach into the last one, which was read before.
            let most = int::to_usize(end + 1 - seq);
            for kept in read_page(reader, history, seq)?.into_iter().take(most) {
                let from = open.partition_point(|one| one.hash < kept.hash());
                let equal = open.iter_mut().skip(from);
                let mut equal = equal.take_while(|one| one.hash == kept.hash());
                if taken.binary_search(&seq).is_err()
                    && let Some(one) = equal.find(|one| one.seq.is_none() && one.seq_min <= seq)
                {
                    one.seq = Some(seq);
                    left -= 1;
                }
                seq += 1;
            }
        }
        end = first - 1;
    }
    Ok(())
}

/// The seqs of the entries that are stored by id, or stand beside such a one as their message does.
fn align_around_anchors(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
) -> Result<Vec<Option<u64>>> {
    let mut seqs: Vec<Option<u64>> = entries.iter().map(|entry| entry.seq).collect();
    let mut known: Vec<u64> = seqs.iter().flatten().copied().collect();
    sort::sort(&mut known);
    known.dedup();
    let known = known.into_iter().map(|seq| AlignmentAnchor {
        seq,
        last_aligned: seq,
        is_following_done: false,
        is_preceding_done: false,
    });
    let mut known: Vec<AlignmentAnchor> = known.collect();
    let mut pages = MessagePager::default();
    for is_forward in [true, false] {
        for at in 0..entries.len() {
            let index = if is_forward { at } else { entries.len() - 1 - at };
            let Some(seq) = entries.get(index).and_then(|entry| entry.seq) else { continue };
            let Ok(place) = known.binary_search_by(|one| one.seq.cmp(&seq)) else { continue };
            // The messages between this known one and the next, which no entry is yet.
            let free = if is_forward {
                let end = known.get(place + 1).map_or(history.head.messages + 1, |next| next.seq);
                end.saturating_sub(seq + 1)
            } else {
                let before = place.checked_sub(1).and_then(|at| known.get(at));
                seq.saturating_sub(1 + before.map_or(0, |one| one.last_aligned))
            };
            let Some(one) = known.get_mut(place) else { continue };
            let is_done =
                if is_forward { &mut one.is_following_done } else { &mut one.is_preceding_done };
            if core::mem::replace(is_done, true) {
                continue;
            }
            for step in 1..=int::to_usize(free) {
                let far = int::to_u64(step);
                let (next, seq) = if is_forward {
                    (index.checked_add(step), seq + far)
                } else {
                    (index.checked_sub(step), seq - far)
                };
                let Some(next) = next else { break };
                let (Some(entry), Some(None)) = (entries.get(next), seqs.get(next)) else { break };
                if !pages.matches_entry(reader, history, seq, entry)? {
                    break;
                }
                if let Some(slot) = seqs.get_mut(next) {
                    *slot = Some(seq);
                }
                if is_forward {
                    one.last_aligned = seq;
                }
            }
        }
    }
    Ok(seqs)
}
