//! Entries that a host inserted between stored ones: the first such list stores them behind the
//! newest message, and a later list has them at their place again.
//!
//! In: the entries of a list, and the positions that were found. Out: the positions of the inserted
//! entries. [`super::line_diff`] uses this module. A list that begins with an accepted list needs
//! no such search, so it matters for windows, which are not remembered.

use lcm_text::base::int;

use super::{alignment::AlignableEntry, stored_line::StoredLine};

/// Finds the entries from index `first` on that stand before a stored entry and say the same as one
/// of the newest messages of a greater position. Only strong anchors count, and only if list and
/// line have the text once: what a list repeats is stored again.
pub(super) fn find_moved(
    line: &StoredLine<'_>,
    entries: &[AlignableEntry],
    first: usize,
    positions: &mut [Option<u64>],
) {
    let marks = line.newest_marks();
    let position_first = line.count_messages() + 1 - int::to_u64(marks.len());
    // Position of the next stored entry.
    let mut next = u64::MAX;
    for (index, entry) in entries.iter().enumerate().skip(first).rev() {
        let found = positions.get(index).copied().flatten();
        next = found.unwrap_or(next);
        if found.is_some() || !entry.is_strong_anchor() {
            continue;
        }
        let others = entries.iter().filter(|other| other.mark.is_same_message(&entry.mark));
        let (mut count, mut position) = (others.count(), 0);
        for (place, mark) in (position_first..).zip(marks) {
            if entry.mark.is_same_message(mark) {
                (count, position) = (count + 1, place);
            }
        }
        if count == 2 && position > next && !positions.contains(&Some(position)) {
            positions.get_mut(index).into_iter().for_each(|slot| *slot = Some(position));
        }
    }
}
