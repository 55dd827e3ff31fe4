//! Aligns entries without ids to stored messages, with the entries known by id as anchors.
//!
//! In: the entries of a transcript, some of them known by id. Out: for each entry the seq of its
//! message, if the message is stored. Two entries get one message only if ids of both name it.
//! `reconcile` uses this module.
//!
//! From every anchor, first forwards and then backwards, the neighbouring entries are compared with
//! the neighbouring messages, up to the first difference or the next anchor. The other entries
//! without ids are then matched by content with messages that no entry has. Inserted and edited
//! entries are stored after the older messages, so an entry before the last aligned entry may be
//! any such message. An entry after the last aligned entry may only be a later message.

use alloc::vec::Vec;

use crate::storage::{history::MessageHistory, store_session::StoreSession};
use lcm_text::base::{error::Result, int, sort};

use super::{
    alignment::AlignableEntry,
    compared_messages::{ComparedMessage, PAGE_MESSAGES, read_page},
};

/// Returns for each entry the seq of its stored message; `None`: not stored. `has_id` returns
/// whether the entry at an index has an id, stored or not; only entries without ids are searched
/// for by content.
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

/// Returns the first seq of the page that contains `seq`: 1, 65, 129 and so on.
fn page_start(seq: u64) -> u64 {
    let page = int::to_u64(PAGE_MESSAGES);
    (seq - 1) / page * page + 1
}

/// A reader of single stored messages that keeps the last page read.
#[derive(Default)]
struct MessagePager {
    /// Seq of the first message of the page.
    first: u64,
    messages: Vec<ComparedMessage>,
}

impl MessagePager {
    /// Returns whether an entry equals the message `seq`, which must exist, or may be a redacted
    /// copy of the message.
    fn matches_entry(
        &mut self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        seq: u64,
        entry: &AlignableEntry,
    ) -> Result<bool> {
        // A large message ends its page, perhaps before `seq`; then a page from `seq` on is read.
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

/// An entry without an id that was not aligned around an anchor.
struct UnmatchedEntry {
    hash: [u8; 16],
    index: usize,
    /// Least seq of a message that the entry may be.
    seq_min: u64,
    /// Seq of the message found by content; `None`: none was found.
    seq: Option<u64>,
}

/// Finds messages with equal content for `open`, which is sorted by hash and index. The seqs in
/// `taken`, which are sorted, are left out.
///
/// Reads pages from the newest backwards until every entry has a message or no entry may be an
/// older message. Within a page, the oldest of equal messages is given to the first open entry.
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
            // A page that begins after a large message may reach beyond `end`.
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

/// A message that an id of an entry names. Several entries can name one message; each pass
/// compares the neighbours of only the first of these entries that it meets.
struct AlignmentAnchor {
    seq: u64,
    /// Seq of the last message that the forward pass aligned after the anchor; `seq`: none.
    last_aligned: u64,
    /// Whether the entries after the anchor were compared.
    is_following_done: bool,
    /// Whether the entries before the anchor were compared.
    is_preceding_done: bool,
}

impl AlignmentAnchor {
    fn new(seq: u64) -> Self {
        Self { seq, last_aligned: seq, is_following_done: false, is_preceding_done: false }
    }
}

/// Returns the seqs of the entries known by id, and of their neighbouring entries that match the
/// neighbouring messages; `None`: all other entries.
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
            // Number of messages from this anchor to the next in this direction, both excluded. The
            // backward pass also excludes messages that the forward pass aligned.
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
