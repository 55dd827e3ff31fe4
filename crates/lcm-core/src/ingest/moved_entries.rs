//! Entries that a host inserted between stored ones: the first such list stores them behind the
//! newest message, and a later list has them at their place again.
//!
//! In: the entries of a list, and the positions that were found. Out: the inserted entries with the
//! positions of their messages. [`super::line_diff`] uses this module. Every list is searched
//! behind its accepted beginning. Windows need this most: they are not remembered as accepted
//! lists, so each window is compared anew.

use alloc::vec::Vec;

use lcm_text::base::int;

use super::{alignment::AlignableEntry, line_diff::LineDiff, stored_line::StoredLine};

/// Finds entries that stand before a stored entry but were stored behind it: pairs of an index and
/// the position of the message. Such an entry is a strong anchor and equals exactly one of the
/// newest messages, and no other entry of the list has its text or is this message by its id.
pub(super) fn find_moved(
    line: &StoredLine<'_>,
    entries: &[AlignableEntry],
    diff: &LineDiff,
) -> Vec<(usize, u64)> {
    let marks = line.newest_marks();
    let position_first = line.count_messages() + 1 - int::to_u64(marks.len());
    // Position of the next stored entry; `None`: no stored entry follows.
    let mut next: Option<u64> = None;
    let mut moved = Vec::new();
    for (index, entry) in entries.iter().enumerate().skip(diff.accepted).rev() {
        let found = diff.positions.get(index).copied().flatten();
        next = found.or(next);
        let Some(next) = next else { continue };
        // An id decides alone, also that of a message that was set aside.
        if found.is_some() || entry.is_known() || !entry.is_strong_anchor() {
            continue;
        }
        let places = (position_first..).zip(marks);
        let mut equal = places.filter(|(_, mark)| entry.mark.is_same_message(mark));
        let (Some((position, _)), None) = (equal.next(), equal.next()) else { continue };
        let is_equal = |other: &&AlignableEntry| other.mark.is_same_message(&entry.mark);
        let is_taken = diff.positions.contains(&Some(position))
            || entries.iter().any(|other| other.position == Some(position));
        if position > next && !is_taken && entries.iter().filter(is_equal).count() == 1 {
            moved.push((index, position));
        }
    }
    moved
}
