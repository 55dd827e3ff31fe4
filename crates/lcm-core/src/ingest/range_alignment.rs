//! Alignment of a range of entries with a range of the line: the longest common subsequence.
//!
//! In: entries and positions that lie between, or behind, what is aligned already. Out: the
//! position of each matched entry. A matched run without an anchor counts only next to the ends of
//! the ranges, because short messages are said again.

use alloc::{string::String, vec::Vec};

use crate::storage::store_session::StoreSession;
use lcm_text::base::{error::Result, int};

use super::{
    alignment::AlignableEntry,
    stored_line::{ComparedMessage, PAGE_MESSAGES, StoredLine},
};

/// Most entries and most messages that are compared at once. The table then has 1 MB.
const RANGE_MAX: usize = 1_000;

/// Most pairs of a redacted copy and a message that a window compares, because each may cost a hash
/// of the message. In a window with more pairs the copies are new messages.
const COPY_PAIRS_MAX: usize = 1 << 16;

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
    /// Returns whether the range is too large to be compared at once.
    pub(super) fn is_large(&self) -> bool {
        let count = int::to_usize(self.position_end.saturating_sub(self.position_first));
        self.entries.len().max(count) > RANGE_MAX
    }

    /// Aligns the entries and returns for each the position of its message; `None`: the entry has
    /// no equal message. Equal entries at the beginning are found at any length; so are those at
    /// the end, if an aligned message follows both ranges. The rest is compared in windows of 1,000
    /// entries and messages: each begins after the last pair, and one without a pair is the last.
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
        let before = self.count_equal_first(session, line)?;
        let behind = match self.is_enclosed {
            true => self.count_equal_last(session, line, before)?,
            false => 0,
        };
        let last = self.entries.len() - behind;
        for (slot, position) in positions.iter_mut().zip(self.position_first..).take(before) {
            *slot = Some(position);
        }
        let position_last = self.position_end - int::to_u64(behind);
        for (slot, position) in positions.iter_mut().skip(last).zip(position_last..) {
            *slot = Some(position);
        }
        let mut start = before;
        let mut position_first = self.position_first + int::to_u64(before);
        loop {
            let entries = self.entries.get(start..last).unwrap_or(&[]);
            let rest =
                ComparedRange { entries, position_first, position_end: position_last, ..*self };
            let pairs = rest.find_pairs(session, line)?;
            for (index, position) in &pairs {
                positions.get_mut(start + index).into_iter().for_each(|it| *it = Some(*position));
            }
            let Some((index, position)) = pairs.last().filter(|_| rest.is_large()) else {
                return Ok(positions);
            };
            (start, position_first) = (start + index + 1, position + 1);
            let entries = self.entries.get(start..last).unwrap_or(&[]);
            let rest =
                ComparedRange { entries, position_first, position_end: position_last, ..*self };
            let equal = rest.count_equal_first(session, line)?;
            let slots = positions.iter_mut().skip(start).take(equal);
            slots.zip(position_first..).for_each(|(slot, position)| *slot = Some(position));
            (start, position_first) = (start + equal, position_first + int::to_u64(equal));
        }
    }

    /// Counts the first entries that equal the first messages.
    fn count_equal_first(
        &self,
        session: &mut StoreSession<'_>,
        line: &StoredLine<'_>,
    ) -> Result<usize> {
        let mut count = 0;
        loop {
            let position = self.position_first + int::to_u64(count);
            if count >= self.entries.len() || position >= self.position_end {
                return Ok(count);
            }
            let stored = line.read_page_before(session, position, self.position_end)?;
            let pairs =
                self.entries.iter().skip(count).zip((position..self.position_end).zip(stored));
            for (entry, (position, stored)) in pairs {
                if !stored.is_entry(position, entry) {
                    return Ok(count);
                }
                count += 1;
            }
        }
    }

    /// Counts the last entries that equal the last messages, without the first `before`.
    fn count_equal_last(
        &self,
        session: &mut StoreSession<'_>,
        line: &StoredLine<'_>,
        before: usize,
    ) -> Result<usize> {
        let most = int::to_usize(self.position_end.saturating_sub(self.position_first));
        let most = most.min(self.entries.len()).saturating_sub(before);
        let mut count = 0;
        while count < most {
            let end = self.position_end - int::to_u64(count);
            let length = (most - count).min(PAGE_MESSAGES);
            let mut first = end - int::to_u64(length);
            let mut stored = line.read_page_before(session, first, end)?;
            stored.truncate(length);
            if stored.len() < length {
                // A large message ended the page, so the page does not reach the end.
                first = end - 1;
                stored = line.read_page(session, first)?;
                stored.truncate(1);
            }
            let entries = self.entries.iter().rev().skip(count);
            let positions = (first..end).rev();
            for ((entry, stored), position) in entries.zip(stored.iter().rev()).zip(positions) {
                if !stored.is_entry(position, entry) {
                    return Ok(count);
                }
                count += 1;
            }
        }
        Ok(count)
    }

    /// Finds pairs of an index of an entry and a position by the table.
    fn find_pairs(
        &self,
        session: &mut StoreSession<'_>,
        line: &StoredLine<'_>,
    ) -> Result<Vec<(usize, u64)>> {
        let entries = self.entries.get(..RANGE_MAX).unwrap_or(self.entries);
        let count = int::to_usize(self.position_end.saturating_sub(self.position_first));
        if entries.is_empty() || count == 0 {
            return Ok(Vec::new());
        }
        let copies = entries.iter().filter(|entry| entry.redacted_copy.is_some()).count();
        let compares_copies = (1..=COPY_PAIRS_MAX).contains(&(copies * count.min(RANGE_MAX)));
        let mut stored: Vec<ComparedMessage> = Vec::new();
        while stored.len() < count.min(RANGE_MAX) {
            let position = self.position_first + int::to_u64(stored.len());
            for mut message in line.read_page_before(session, position, self.position_end)? {
                // The texts of all messages of a window may need more memory than there is.
                message.said = None;
                if !compares_copies {
                    message.text = String::new();
                }
                stored.push(message);
            }
        }
        stored.truncate(count);
        let is_whole = entries.len() == self.entries.len() && stored.len() == count;
        let pairs = find_common(entries, self.position_first, &stored);
        let ends = (entries.len(), stored.len());
        let kept = match self.is_enclosed {
            true => keep_proven(entries, &pairs, is_whole.then_some(ends)),
            false => keep_beginning(entries, &pairs),
        };
        Ok(kept
            .into_iter()
            .map(|(index, place)| (index, self.position_first + int::to_u64(place)))
            .collect())
    }
}

/// Score of a pair. A pair that directly follows another scores 1 more; all these points together
/// are fewer than the score of one more pair.
const PAIR_SCORE: u32 = 1 << 12;

/// Values of a cell of the table: what is next among the entries and messages from the cell on.
mod step {
    /// The next pair is after this entry.
    pub(super) const SKIP_ENTRY: u8 = 0;
    /// The next pair is after this message.
    pub(super) const SKIP_MESSAGE: u8 = 1;
    /// This entry and message are the next pair.
    pub(super) const PAIR: u8 = 2;
    /// Flag: after this pair, the next entry and message are a pair.
    pub(super) const GOES_ON: u8 = 4;
}

/// Finds a longest common subsequence, of equally long ones one with the fewest gaps: pairs of an
/// index of an entry and of a message. There are at most [`RANGE_MAX`] of each.
fn find_common(
    entries: &[AlignableEntry],
    position_first: u64,
    stored: &[ComparedMessage],
) -> Vec<(usize, usize)> {
    let is_match = |index: usize, place: usize| {
        let pair = entries.get(index).zip(stored.get(place));
        pair.is_some_and(|(entry, message)| {
            message.is_entry(position_first + int::to_u64(place), entry)
        })
    };
    let width = stored.len();
    let steps = fill_steps(entries.len(), width, &is_match);
    let (mut index, mut place, mut pairs, mut goes_on) = (0, 0, Vec::new(), false);
    while index < entries.len() && place < width {
        let step = steps.get(index * width + place).copied().unwrap_or_default();
        match step & !step::GOES_ON {
            step::SKIP_ENTRY if !goes_on => index += 1,
            step::SKIP_MESSAGE if !goes_on => place += 1,
            _ => {
                pairs.push((index, place));
                goes_on = step & step::GOES_ON > 0;
                (index, place) = (index + 1, place + 1);
            }
        }
    }
    pairs
}

/// Returns the table of steps, a row for each of `height` entries.
fn fill_steps(height: usize, width: usize, is_match: &dyn Fn(usize, usize) -> bool) -> Vec<u8> {
    let get = |row: &[(u32, u32)], place: usize| row.get(place).copied().unwrap_or((0, 0));
    let mut steps = alloc::vec![step::SKIP_ENTRY; height * width];
    // Scores of the rests from each message on: of all of them, and of those whose first pair is
    // this entry and message.
    let mut below = alloc::vec![(0_u32, 0_u32); width + 1];
    for index in (0..height).rev() {
        let mut row = alloc::vec![(0_u32, 0_u32); width + 1];
        for place in (0..width).rev() {
            let (skip_entry, skip_message) = (get(&below, place).0, get(&row, place + 1).0);
            let (mut step, mut best) = match skip_entry >= skip_message {
                true => (step::SKIP_ENTRY, skip_entry),
                false => (step::SKIP_MESSAGE, skip_message),
            };
            let mut paired = 0;
            if is_match(index, place) {
                let (rest, next) = get(&below, place + 1);
                let goes_on = next > 0 && next + 1 >= rest;
                paired = PAIR_SCORE + if goes_on { next + 1 } else { rest };
                step |= if goes_on { step::GOES_ON } else { 0 };
                if paired >= best {
                    (step, best) = (step::PAIR | (step & step::GOES_ON), paired);
                }
            }
            row.get_mut(place).into_iter().for_each(|cell| *cell = (best, paired));
            steps.get_mut(index * width + place).into_iter().for_each(|cell| *cell = step);
        }
        below = row;
    }
    steps
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
        if is_first || is_last || anchors.any(AlignableEntry::is_anchor) {
            kept.extend_from_slice(run);
        }
    }
    kept
}

/// Returns the pairs that are evidence in ranges that nothing follows, of which the first messages
/// differ: those up to the last run with a strong anchor. After it the list goes another way, and
/// what it says again is new.
fn keep_beginning(entries: &[AlignableEntry], pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let is_next =
        |left: &(usize, usize), right: &(usize, usize)| (left.0 + 1, left.1 + 1) == *right;
    let is_strong = |run: &[(usize, usize)]| {
        let mut entries = run.iter().filter_map(|(index, _)| entries.get(*index));
        entries.any(AlignableEntry::is_strong_anchor)
    };
    let runs: Vec<&[(usize, usize)]> = pairs.chunk_by(is_next).collect();
    let count = runs.iter().rposition(|run| is_strong(run)).map_or(0, |last| last + 1);
    keep_proven(entries, &runs.get(..count).unwrap_or(&[]).concat(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::message_mark::MessageMark;
    use alloc::string::String;
    use lcm_text::message::Role;

    fn mark(letter: u8) -> MessageMark {
        MessageMark { meaning: [letter; 8], id: [0; 4], call: [0; 4] }
    }

    /// Aligns two texts whose letters are messages; capitals are long messages.
    fn align(entries: &str, stored: &str, is_enclosed: bool) -> Vec<(usize, usize)> {
        let entries: Vec<AlignableEntry> = entries
            .bytes()
            .map(|letter| AlignableEntry {
                is_id_taken: false,
                mark: mark(letter),
                role: Role::User,
                text: None,
                list_hash: [0; 16],
                known_seq: None,
                position: None,
                is_discriminating: letter.is_ascii_uppercase(),
                redacted_copy: None,
                may_be_form: core::cell::Cell::new(false),
                has_grown: false,
            })
            .collect();
        let message = |letter| ComparedMessage {
            mark: mark(letter),
            role: Role::User,
            text: String::new(),
            parts: Vec::new(),
            said: None,
        };
        let stored: Vec<ComparedMessage> = stored.bytes().map(message).collect();
        let pairs = find_common(&entries, 1, &stored);
        match is_enclosed {
            true => keep_proven(&entries, &pairs, Some((entries.len(), stored.len()))),
            false => keep_beginning(&entries, &pairs),
        }
    }

    #[test]
    fn long_messages_are_aligned_in_order() {
        assert_eq!(align("AXB", "AB", true), [(0, 0), (2, 1)]);
        assert_eq!(align("BA", "AB", true), [(1, 0)]);
        assert_eq!(align("ABAB", "AB", true), [(0, 0), (1, 1)]);
    }

    #[test]
    fn short_messages_count_next_to_what_is_aligned() {
        assert_eq!(align("okX", "okY", true), [(0, 0), (1, 1)]);
        assert_eq!(align("Xok", "Yok", true), [(1, 1), (2, 2)]);
        assert_eq!(align("XaB", "YaB", true), [(1, 1), (2, 2)]);
    }

    #[test]
    fn what_is_said_again_behind_the_last_long_text_is_new() {
        assert_eq!(align("XAB", "AB", false), [(1, 0), (2, 1)]);
        assert_eq!(align("XABY", "AB", false), [(1, 0), (2, 1)]);
        assert_eq!(align("XAokY", "ZAB", false), [(1, 1)]);
        assert_eq!(align("XokY", "ZokB", false), []);
        assert_eq!(align("Xok", "Yok", false), []);
    }
}
