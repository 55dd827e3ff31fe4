//! Entries that a host inserted between stored ones: the first such list stores them behind the
//! newest message, and a later list has them at their place again.
//!
//! In: the entries of a list, and the positions that were found. Out: the positions of the inserted
//! entries. [`super::line_diff`] uses this module. A list that begins with an accepted list needs
//! no such search, so it matters for windows, which are not remembered.

use lcm_text::base::int;

use super::{alignment::AlignableEntry, stored_line::StoredLine};

/// Finds the entries from index `first` on, before the last stored one, that say the same as one of
/// the newest messages, which no other entry has. Only strong anchors count, because other messages
/// may well be said again.
pub(super) fn find_moved(
    line: &StoredLine<'_>,
    entries: &[AlignableEntry],
    first: usize,
    positions: &mut [Option<u64>],
) {
    let end = positions.iter().rposition(Option::is_some).unwrap_or(0);
    let marks = line.newest_marks();
    let position_first = line.count_messages() + 1 - int::to_u64(marks.len());
    for (index, entry) in entries.iter().enumerate().take(end).skip(first) {
        if positions.get(index) != Some(&None) || !entry.is_strong_anchor() {
            continue;
        }
        let mut places = (position_first..).zip(marks);
        let found = places.find(|(position, mark)| {
            entry.is_message(*position, mark) && !positions.contains(&Some(*position))
        });
        if let (Some(slot), Some((position, _))) = (positions.get_mut(index), found) {
            *slot = Some(position);
        }
    }
}
