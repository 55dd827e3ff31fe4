//! Aligns entries without ids to stored messages, with the entries known by id as anchors.
//!
//! In: the entries of a transcript, some of them known by id. Out: for each entry the seq of its
//! message, if the message is stored. Two entries never get the same message.
//!
//! From every anchor on, first forwards and then backwards, entries are compared with the messages
//! beside the anchor, up to the next anchor. An inserted or edited entry is stored after the older
//! messages. So an entry before the last anchor may be any free message. An entry after the last
//! anchor may only be a message after that anchor.

use alloc::vec::Vec;

use crate::storage::{history::MessageHistory, store_session::StoreSession};
use lcm_text::base::{error::Result, int, sort};

use super::{
    alignment::AlignableEntry,
    compared_messages::{ComparedMessage, PAGE_MESSAGES, read_page},
};

/// Aligns the entries and returns the seq of each; `has_id` tells which entries have an id, stored
/// or not.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(super) fn align_entries(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
    has_id: &dyn Fn(usize) -> bool,
) -> Result<Vec<Option<u64>>> {
    let mut seqs = align_around_anchors(session, history, entries)?;
    let mut taken: Vec<u64> = seqs.iter().flatten().copied().collect();
    sort::sort(&mut taken);
    let last = seqs.iter().rposition(Option::is_some).unwrap_or(0);
    let last_seq = seqs.get(last).copied().flatten().unwrap_or(0);
    let is_open = |(index, seq): &(usize, &Option<u64>)| seq.is_none() && !has_id(*index);
    let open = seqs.iter().enumerate().filter(is_open).filter_map(|(index, _)| {
        let seq_min = if index < last { 1 } else { last_seq + 1 };
        Some(UnmatchedEntry { hash: entries.get(index)?.hash, index, seq_min, seq: None })
    });
    let mut open: Vec<UnmatchedEntry> = open.collect();
    sort::sort_by(&mut open, &mut |a, b| (a.hash, a.index).cmp(&(b.hash, b.index)));
    match_by_content(session, history, &mut open, &taken)?;
    for UnmatchedEntry { index, seq, .. } in open {
        seqs.get_mut(index).into_iter().for_each(|slot| *slot = slot.or(seq));
    }
    Ok(seqs)
}

/// First seq of the page that has a message.
fn page_start(seq: u64) -> u64 {
    let page = int::to_u64(PAGE_MESSAGES);
    (seq - 1) / page * page + 1
}

/// A reader of stored messages that keeps one page.
#[derive(Default)]
struct MessagePager {
    first: u64,
    messages: Vec<ComparedMessage>,
}

impl MessagePager {
    /// Returns whether an entry is the message with this seq, which exists.
    fn matches_entry(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        seq: u64,
        entry: &AlignableEntry,
    ) -> Result<bool> {
        // A large message may end the page before the message.
        for first in [page_start(seq), seq] {
            if let Some(stored) = self.get_message(seq) {
                return Ok(stored.matches_entry(entry));
            }
            self.messages = read_page(session, history, first)?;
            self.first = first;
        }
        Ok(self.get_message(seq).is_some_and(|stored| stored.matches_entry(entry)))
    }

    fn get_message(&self, seq: u64) -> Option<&ComparedMessage> {
        self.messages.get(int::to_usize(seq.checked_sub(self.first)?))
    }
}

/// An entry without a message beside an anchor.
struct UnmatchedEntry {
    hash: [u8; 16],
    index: usize,
    /// The first message that the entry may be.
    seq_min: u64,
    /// The message that the entry is.
    seq: Option<u64>,
}

/// Finds free messages for open entries, which are sorted by hash and index. Of equal messages the
/// newest is taken. All messages are read unless every entry is found before.
fn match_by_content(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    open: &mut [UnmatchedEntry],
    taken: &[u64],
) -> Result<()> {
    let mut left = open.len();
    let seq_min = open.iter().map(|entry| entry.seq_min).min().unwrap_or(u64::MAX);
    let mut end = history.head.messages;
    while left > 0 && end >= seq_min {
        let first = page_start(end);
        let mut seq = first;
        while seq <= end {
            // A page after a large message may reach into the page that was read before.
            let most = int::to_usize(end + 1 - seq);
            for stored in read_page(session, history, seq)?.into_iter().take(most) {
                let from = open.partition_point(|entry| entry.hash < stored.hash);
                let equal = open.iter_mut().skip(from);
                let mut equal = equal.take_while(|entry| entry.hash == stored.hash);
                if taken.binary_search(&seq).is_err()
                    && let Some(entry) =
                        equal.find(|entry| entry.seq.is_none() && entry.seq_min <= seq)
                {
                    entry.seq = Some(seq);
                    left -= 1;
                }
                seq += 1;
            }
        }
        end = first - 1;
    }
    Ok(())
}

/// An entry known by id, and the aligned entries after the anchor.
struct AlignmentAnchor {
    seq: u64,
    /// The last message after the anchor that is aligned.
    last_aligned: u64,
    /// Whether the entries after the anchor were compared; several entries can be one message.
    is_following_done: bool,
    /// Whether the entries before the anchor were compared.
    is_preceding_done: bool,
}

impl AlignmentAnchor {
    fn new(seq: u64) -> Self {
        Self { seq, last_aligned: seq, is_following_done: false, is_preceding_done: false }
    }
}

/// Aligns the entries known by id, and the neighbouring entries that match the neighbouring
/// messages.
fn align_around_anchors(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    entries: &[AlignableEntry],
) -> Result<Vec<Option<u64>>> {
    let mut seqs: Vec<Option<u64>> = entries.iter().map(|entry| entry.seq).collect();
    let mut known: Vec<u64> = seqs.iter().flatten().copied().collect();
    sort::sort(&mut known);
    known.dedup();
    let mut anchors: Vec<AlignmentAnchor> = known.into_iter().map(AlignmentAnchor::new).collect();
    let mut pages = MessagePager::default();
    for is_forward in [true, false] {
        for count in 0..entries.len() {
            let index = if is_forward { count } else { entries.len() - 1 - count };
            let Some(seq) = entries.get(index).and_then(|entry| entry.seq) else { continue };
            let Ok(place) = anchors.binary_search_by(|anchor| anchor.seq.cmp(&seq)) else {
                continue;
            };
            // Messages between this anchor and the next, which are no entry yet.
            let free = if is_forward {
                let next = anchors.get(place + 1);
                let end = next.map_or(history.head.messages + 1, |next| next.seq);
                end.saturating_sub(seq + 1)
            } else {
                let before = place.checked_sub(1).and_then(|place| anchors.get(place));
                seq.saturating_sub(1 + before.map_or(0, |anchor| anchor.last_aligned))
            };
            let Some(anchor) = anchors.get_mut(place) else { continue };
            let is_done = if is_forward {
                &mut anchor.is_following_done
            } else {
                &mut anchor.is_preceding_done
            };
            if core::mem::replace(is_done, true) {
                continue;
            }
            for step in 1..=int::to_usize(free) {
                let distance = int::to_u64(step);
                let (next, seq) = if is_forward {
                    (index.checked_add(step), seq + distance)
                } else {
                    (index.checked_sub(step), seq - distance)
                };
                let Some(next) = next else { break };
                let (Some(entry), Some(None)) = (entries.get(next), seqs.get(next)) else { break };
                if !pages.matches_entry(session, history, seq, entry)? {
                    break;
                }
                if let Some(slot) = seqs.get_mut(next) {
                    *slot = Some(seq);
                }
                if is_forward {
                    anchor.last_aligned = seq;
                }
            }
        }
    }
    Ok(seqs)
}
