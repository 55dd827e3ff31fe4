//! Alignment of a range of entries with a range of the line: the longest common subsequence.
//!
//! In: entries and positions that lie between, or behind, what is aligned already. Out: the
//! position of each matched entry. A matched run without an anchor counts only next to the ends of
//! the ranges, because short messages are said again.

use alloc::vec::Vec;

use crate::storage::store_session::StoreSession;
use lcm_text::base::{error::Result, int};

use super::{
    alignment::AlignableEntry,
    stored_line::{ComparedMessage, StoredLine},
};

/// Most entries and most messages that are compared. The table then has 4 MB.
const RANGE_MAX: usize = 1_000;

/// A range of entries and the range of the line with which it is compared.
#[derive(Clone, Copy)]
pub(super) struct ComparedRange<'a> {
    pub(super) entries: &'a [AlignableEntry],
    /// Position of the first message.
    pub(super) position_first: u64,
    /// Position after the last message.
    pub(super) position_end: u64,
    /// Whether an aligned message follows both ranges.
    pub(super) is_enclosed: bool,
}

impl ComparedRange<'_> {
    /// Aligns the entries and returns the position of each. Of longer ranges only the first 1,000
    /// entries and messages are compared.
    ///
    /// # Errors
    ///
    /// Errors of the store; `corrupt`.
    pub(super) fn align_range(
        &self,
        session: &mut StoreSession<'_>,
        line: &StoredLine<'_>,
    ) -> Result<Vec<Option<u64>>> {
        let mut positions = alloc::vec![None; self.entries.len()];
        let entries = self.entries.get(..RANGE_MAX).unwrap_or(self.entries);
        let count = int::to_usize(self.position_end.saturating_sub(self.position_first));
        if entries.is_empty() || count == 0 {
            return Ok(positions);
        }
        let mut stored: Vec<ComparedMessage> = Vec::new();
        while stored.len() < count.min(RANGE_MAX) {
            let position = self.position_first + int::to_u64(stored.len());
            stored.extend(line.read_page(session, position)?);
        }
        stored.truncate(count);
        let is_whole = entries.len() == self.entries.len() && stored.len() == count;
        let pairs = find_common(entries, self.position_first, &stored);
        let ends = (entries.len(), stored.len());
        let is_enclosed = self.is_enclosed && is_whole;
        for (index, place) in keep_proven(entries, &pairs, is_enclosed.then_some(ends)) {
            if let Some(slot) = positions.get_mut(index) {
                *slot = Some(self.position_first + int::to_u64(place));
            }
        }
        Ok(positions)
    }
}

/// Finds a longest common subsequence: pairs of an index of an entry and of a message.
fn find_common(
    entries: &[AlignableEntry],
    position_first: u64,
    stored: &[ComparedMessage],
) -> Vec<(usize, usize)> {
    let is_match = |index: usize, place: usize| {
        let pair = entries.get(index).zip(stored.get(place));
        pair.is_some_and(|(entry, message)| {
            let position = position_first + int::to_u64(place);
            entry.is_message(position, &message.mark)
                || (!entry.is_known && entry.may_be_copy_of(&message.text))
        })
    };
    // `lengths` has the length of the longest common subsequence of the rests from each pair on.
    let width = stored.len() + 1;
    let mut lengths = alloc::vec![0_u16; (entries.len() + 1) * width];
    let length_at = |lengths: &[u16], index: usize, place: usize| {
        lengths.get(index * width + place).copied().unwrap_or(0)
    };
    for index in (0..entries.len()).rev() {
        for place in (0..stored.len()).rev() {
            let length = match is_match(index, place) {
                true => length_at(&lengths, index + 1, place + 1) + 1,
                false => {
                    length_at(&lengths, index + 1, place).max(length_at(&lengths, index, place + 1))
                }
            };
            if let Some(slot) = lengths.get_mut(index * width + place) {
                *slot = length;
            }
        }
    }
    let (mut index, mut place, mut pairs) = (0, 0, Vec::new());
    while index < entries.len() && place < stored.len() {
        if is_match(index, place) {
            pairs.push((index, place));
            (index, place) = (index + 1, place + 1);
        } else if length_at(&lengths, index + 1, place) >= length_at(&lengths, index, place + 1) {
            index += 1;
        } else {
            place += 1;
        }
    }
    pairs
}

/// Returns the pairs that are evidence: runs with an anchor, and runs at the start of both ranges
/// or, with `ends`, at the end of both.
fn keep_proven(
    entries: &[AlignableEntry],
    pairs: &[(usize, usize)],
    ends: Option<(usize, usize)>,
) -> Vec<(usize, usize)> {
    let is_next =
        |left: &(usize, usize), right: &(usize, usize)| (left.0 + 1, left.1 + 1) == *right;
    let mut kept = Vec::new();
    for run in pairs.chunk_by(is_next) {
        let is_first = run.first() == Some(&(0, 0));
        let is_last = run.last().map(|(index, place)| (index + 1, place + 1)) == ends;
        let mut anchors = run.iter().filter_map(|(index, _)| entries.get(*index));
        if is_first || (is_last && ends.is_some()) || anchors.any(AlignableEntry::is_anchor) {
            kept.extend_from_slice(run);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::message_mark::MessageMark;
    use alloc::string::String;
    use lcm_text::message::Role;

    fn mark(letter: u8) -> MessageMark {
        MessageMark { meaning: [letter; 8], id: [0; 4] }
    }

    /// Aligns two texts whose letters are messages; capitals are long messages.
    fn align(entries: &str, stored: &str, is_enclosed: bool) -> Vec<(usize, usize)> {
        let entries: Vec<AlignableEntry> = entries
            .bytes()
            .map(|letter| AlignableEntry {
                mark: mark(letter),
                role: Role::User,
                list_hash: [0; 16],
                is_known: false,
                position: None,
                is_discriminating: letter.is_ascii_uppercase(),
                redacted_copy: None,
            })
            .collect();
        let message =
            |letter| ComparedMessage { mark: mark(letter), role: Role::User, text: String::new() };
        let stored: Vec<ComparedMessage> = stored.bytes().map(message).collect();
        let pairs = find_common(&entries, 1, &stored);
        keep_proven(&entries, &pairs, is_enclosed.then_some((entries.len(), stored.len())))
    }

    #[test]
    fn long_messages_are_aligned_in_order() {
        assert_eq!(align("AXB", "AB", false), [(0, 0), (2, 1)]);
        assert_eq!(align("BA", "AB", false), [(1, 0)]);
        assert_eq!(align("ABAB", "AB", false), [(0, 0), (1, 1)]);
    }

    #[test]
    fn short_messages_count_next_to_what_is_aligned() {
        assert_eq!(align("okX", "okY", false), [(0, 0), (1, 1)]);
        assert_eq!(align("Xok", "Yok", false), []);
        assert_eq!(align("Xok", "Yok", true), [(1, 1), (2, 2)]);
        assert_eq!(align("XaB", "YaB", false), [(1, 1), (2, 2)]);
    }
}
