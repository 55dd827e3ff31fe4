//! Aligns entries without ids to stored messages, with the entries known by id as anchors.
//!
//! In: the entries of a transcript, some of them known by id. Out: for each entry the position of
//! its message, if the message is stored. Two entries get one message only if ids of both name it.
//! [`super::line_diff`] uses this module.
//!
//! From every anchor, first forwards and then backwards, the neighbouring entries are compared with
//! the neighbouring messages, up to the first difference or the next anchor. Other entries without
//! ids are then matched by content with messages that no entry has, if equal content is evidence.
//! An inserted or edited entry is stored after the older messages, so an entry before the last
//! aligned entry may be any such message. The entries after the last aligned entry are left to the
//! caller.

use alloc::vec::Vec;

use crate::storage::{message_mark::MessageMark, store_session::StoreSession};
use lcm_text::base::{error::Result, int, sort};

use super::{
    alignment::AlignableEntry,
    stored_line::{ComparedMessage, PAGE_MESSAGES, StoredLine},
};

/// Returns for each entry the position of its message; `None`: no message was found. `has_id`
/// returns whether the entry at an index has an id, stored or not; only entries without ids are
/// searched for by content.
///
/// # Errors
///
/// Errors of the store; `corrupt`.
pub(super) fn align_entries(
    session: &mut StoreSession<'_>,
    line: &StoredLine<'_>,
    entries: &[AlignableEntry],
    has_id: &dyn Fn(usize) -> bool,
) -> Result<Vec<Option<u64>>> {
    let mut positions = align_around_anchors(session, line, entries)?;
    let mut taken: Vec<u64> = positions.iter().flatten().copied().collect();
    sort::sort(&mut taken);
    // An entry after the last aligned entry can only be a later message, and a short message may
    // well be said again.
    let last = positions.iter().rposition(Option::is_some).unwrap_or(0);
    let is_open = |(index, entry): &(usize, &AlignableEntry)| {
        positions.get(*index) == Some(&None) && entry.is_discriminating && !has_id(*index)
    };
    let open = entries.iter().enumerate().take(last).filter(is_open).map(|(index, entry)| {
        let neighbours = positions.split_at_checked(index);
        let neighbour = neighbours.and_then(|(before, behind)| {
            let before = before.iter().rev().flatten().next();
            before.or_else(|| behind.iter().flatten().next())
        });
        let after = neighbour.copied().unwrap_or(0);
        UnmatchedEntry { mark: entry.mark, index, after, position: None }
    });
    let mut open: Vec<UnmatchedEntry> = open.collect();
    sort::sort_by(&mut open, &mut |a, b| (a.mark.meaning, a.index).cmp(&(b.mark.meaning, b.index)));
    match_by_content(session, line, &mut open, &taken)?;
    for UnmatchedEntry { index, position, .. } in open {
        positions.get_mut(index).into_iter().for_each(|slot| *slot = slot.or(position));
    }
    Ok(positions)
}

/// Returns the first position of the page that contains `position`: 1, 65, 129 and so on.
fn page_start(position: u64) -> u64 {
    let page = int::to_u64(PAGE_MESSAGES);
    (position - 1) / page * page + 1
}

/// A reader of single stored messages that keeps the last page read.
#[derive(Default)]
struct MessagePager {
    /// Position of the first message of the page.
    first: u64,
    messages: Vec<ComparedMessage>,
}

impl MessagePager {
    /// Returns whether an entry equals the message `position`, which must exist, or may be a
    /// redacted copy of the message.
    fn matches_entry(
        &mut self,
        session: &mut StoreSession<'_>,
        line: &StoredLine<'_>,
        position: u64,
        entry: &AlignableEntry,
    ) -> Result<bool> {
        // A large message ends its page, perhaps before `position`; then a page from `position` on
        // is read.
        for first in [page_start(position), position] {
            if let Some(stored) = self.get_message(position) {
                return Ok(stored.matches_entry(entry));
            }
            self.messages = line.read_page(session, first)?;
            self.first = first;
        }
        Ok(self.get_message(position).is_some_and(|stored| stored.matches_entry(entry)))
    }

    fn get_message(&self, position: u64) -> Option<&ComparedMessage> {
        self.messages.get(int::to_usize(position.checked_sub(self.first)?))
    }
}

/// An entry without an id that was not aligned around an anchor.
struct UnmatchedEntry {
    mark: MessageMark,
    index: usize,
    /// Position of the nearest aligned entry before this one; without one, of the nearest behind
    /// it; 0: no entry is aligned. Only later messages can be this entry, because an inserted entry
    /// is stored behind its neighbours.
    after: u64,
    /// Position of the message found by content; `None`: none was found.
    position: Option<u64>,
}

/// Finds messages with equal content for `open`, which is sorted by meaning and index. The
/// positions in `taken`, which are sorted, are left out.
///
/// Reads pages from the newest backwards until every entry has a message, or none can be in an
/// older page. Within a page, the oldest of equal messages is given to the first open entry.
fn match_by_content(
    session: &mut StoreSession<'_>,
    line: &StoredLine<'_>,
    open: &mut [UnmatchedEntry],
    taken: &[u64],
) -> Result<()> {
    let mut left = open.len();
    let mut end = line.count_messages();
    let least = open.iter().map(|entry| entry.after).min().unwrap_or(0);
    while left > 0 && end > least {
        let first = page_start(end);
        let mut position = first;
        while position <= end {
            // A page that begins after a large message may reach beyond `end`.
            let most = int::to_usize(end + 1 - position);
            for stored in line.read_page(session, position)?.into_iter().take(most) {
                let meaning = stored.mark.meaning;
                let from = open.partition_point(|entry| entry.mark.meaning < meaning);
                let equal = open.iter_mut().skip(from);
                let mut equal = equal.take_while(|entry| entry.mark.meaning == meaning);
                let is_open = |entry: &&mut UnmatchedEntry| {
                    entry.position.is_none()
                        && position > entry.after
                        && entry.mark.is_same_message(&stored.mark)
                };
                if taken.binary_search(&position).is_err()
                    && let Some(entry) = equal.find(is_open)
                {
                    entry.position = Some(position);
                    left -= 1;
                }
                position += 1;
            }
        }
        end = first - 1;
    }
    Ok(())
}

/// A message that an id of an entry names. Several entries can name one message; each pass
/// compares the neighbours of only the first of these entries that it meets.
struct AlignmentAnchor {
    position: u64,
    /// Position of the last message that the forward pass aligned after the anchor; `position`:
    /// none.
    last_aligned: u64,
    /// Whether the entries after the anchor were compared.
    is_following_done: bool,
    /// Whether the entries before the anchor were compared.
    is_preceding_done: bool,
}

impl AlignmentAnchor {
    fn new(position: u64) -> Self {
        Self {
            position,
            last_aligned: position,
            is_following_done: false,
            is_preceding_done: false,
        }
    }
}

/// Returns the positions of the entries known by id, and of their neighbouring entries that match
/// the neighbouring messages; `None`: all other entries.
fn align_around_anchors(
    session: &mut StoreSession<'_>,
    line: &StoredLine<'_>,
    entries: &[AlignableEntry],
) -> Result<Vec<Option<u64>>> {
    let mut positions: Vec<Option<u64>> = entries.iter().map(|entry| entry.position).collect();
    let mut known: Vec<u64> = positions.iter().flatten().copied().collect();
    sort::sort_and_dedup(&mut known);
    let mut anchors: Vec<AlignmentAnchor> = known.into_iter().map(AlignmentAnchor::new).collect();
    let mut pages = MessagePager::default();
    for is_forward in [true, false] {
        for count in 0..entries.len() {
            let index = if is_forward { count } else { entries.len() - 1 - count };
            let Some(position) = entries.get(index).and_then(|entry| entry.position) else {
                continue;
            };
            let Ok(place) = anchors.binary_search_by(|anchor| anchor.position.cmp(&position))
            else {
                continue;
            };
            // Number of messages from this anchor to the next in this direction, both excluded. The
            // backward pass also excludes messages that the forward pass aligned.
            let free = if is_forward {
                let next = anchors.get(place + 1);
                let end = next.map_or(line.count_messages() + 1, |next| next.position);
                end.saturating_sub(position + 1)
            } else {
                let before = place.checked_sub(1).and_then(|place| anchors.get(place));
                position.saturating_sub(1 + before.map_or(0, |anchor| anchor.last_aligned))
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
                let (next, position) = if is_forward {
                    (index.checked_add(step), position + distance)
                } else {
                    (index.checked_sub(step), position - distance)
                };
                let Some(next) = next else { break };
                let (Some(entry), Some(None)) = (entries.get(next), positions.get(next)) else {
                    break;
                };
                if !pages.matches_entry(session, line, position, entry)? {
                    break;
                }
                if let Some(slot) = positions.get_mut(next) {
                    *slot = Some(position);
                }
                if is_forward {
                    anchor.last_aligned = position;
                }
            }
        }
    }
    Ok(positions)
}
