//! Entries that a host inserted between stored ones: the first such list stores them behind the
//! newest message, and a later list has them at their place again.
//!
//! In: the entries of a list, and the positions that were found. Out: the inserted entries with the
//! positions of their messages. [`super::line_diff`] uses this module. Every list is searched
//! behind its accepted beginning. Windows need this most: they are not remembered as accepted
//! lists, so each window is compared anew.

use alloc::vec::Vec;

use lcm_text::base::{int, sort};

use super::{alignment::AlignableEntry, line_diff::LineDiff, stored_line::StoredLine};

/// Most entries of a list in which an entry without an id is looked for: each is compared with all
/// others.
const ENTRIES_MAX: usize = 16_384;

/// Finds entries that stand before a stored entry but were stored behind it: pairs of an index and
/// the position of the message. Such an entry has the id of a message of the line; or it is a
/// strong anchor and equals exactly one of the newest messages, and no other entry of the list has
/// its text or is this message by its id.
pub(super) fn find_moved(
    line: &StoredLine<'_>,
    entries: &[AlignableEntry],
    diff: &LineDiff,
) -> Vec<(usize, u64)> {
    let marks = line.newest_marks();
    let position_first = line.count_messages() + 1 - int::to_u64(marks.len());
    let taken = diff.list_taken(entries);
    let mut stored: Vec<u64> = diff.list_stored().collect();
    sort::sort(&mut stored);
    // Position of the next stored entry; `None`: no stored entry follows.
    let mut next: Option<u64> = None;
    let mut moved = Vec::new();
    for (index, entry) in entries.iter().enumerate().skip(diff.accepted).rev() {
        let found = diff.positions.get(index).copied().flatten();
        next = found.or(next);
        let Some(next) = next else { continue };
        if found.is_some() || !entry.is_strong_anchor() {
            continue;
        }
        // An id decides alone. The message of the id may be outside the line.
        if entry.is_known() {
            if let Some(position) = entry.position
                && stored.binary_search(&position).is_err()
            {
                moved.push((index, position));
            }
            continue;
        }
        let (mut count, mut position) = (0, 0);
        for (place, mark) in (position_first..).zip(marks) {
            if entry.mark.is_same_message(mark) {
                (count, position) = (count + 1, place);
            }
        }
        let is_free = position > next && taken.binary_search(&position).is_err();
        let is_equal = |other: &&AlignableEntry| other.mark.is_same_message(&entry.mark);
        if count == 1
            && is_free
            && entries.len() <= ENTRIES_MAX
            && entries.iter().filter(is_equal).count() == 1
        {
            moved.push((index, position));
        }
    }
    moved.reverse();
    moved
}
