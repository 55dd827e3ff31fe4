//! Rows and columns.
//!
//! In: text whose columns are separated by one character, fields in quotes or not. Out: names of
//! the columns, number of rows, the first row. The first line is taken for the header.

use super::{
    outline_writer::{OutlineList, OutlineWriter},
    payload_text::PayloadText,
};

/// What may stand between columns; of several the first counts.
const SEPARATORS: [u8; 4] = [b'\t', b',', b';', b'|'];
/// Lines that are compared to tell that a text is a table, at most and at least.
const LINES_MAX: usize = 12;
const LINES_MIN: usize = 2;
/// Columns that are named.
const COLUMNS: usize = 40;
/// Quarter tokens of the names and of the first row, which are 180 characters of ASCII.
const NAMES_MAX: u64 = 560;
const ROW_MAX: u64 = 180;

/// The separator of a text that looks like a table: the same number of it in each of its first
/// lines, which are two or more.
pub(super) fn detect_separator(text: &str, is_whole: bool) -> Option<u8> {
    let mut lines: alloc::vec::Vec<&str> = text.lines().take(LINES_MAX + 1).collect();
    // The last may be cut.
    if lines.len() > LINES_MAX || !is_whole {
        lines.pop();
    }
    let (header, rest) = lines.split_first()?;
    SEPARATORS.into_iter().find(|separator| {
        let columns = count_fields(header, *separator);
        let same = |line: &&str| count_fields(line, *separator) == columns;
        // One comma in each of a few lines is found in prose, as is one before a space.
        let clear = *separator == b'\t' || columns > 2 || lines.len() > LINES_MIN;
        let prose = *separator != b'\t' && header.contains(". ") || header.ends_with('{');
        let enough = columns > 1 && lines.len() >= LINES_MIN && clear && !prose;
        enough && (columns > 2 || !header.contains(", ")) && rest.iter().all(same)
    })
}

/// Describes a table.
pub(super) fn outline_table(writer: &mut OutlineWriter, payload: &PayloadText<'_>, tabs: bool) {
    let text = payload.head;
    let (header, rest) = split_row(text);
    let separator = if tabs { b'\t' } else { most_frequent_separator(header) };
    let mut names = OutlineList::new(COLUMNS);
    for field in split_fields(header, separator) {
        let name = field.trim();
        let bare = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        names.push(None, bare.unwrap_or(name), None);
    }
    let (mut rows, mut other, mut first) = (0, 0, "");
    let mut left = rest;
    while !left.is_empty() {
        let (line, after) = split_row(left);
        left = after;
        // The last row of a beginning may be cut.
        if line.trim().is_empty() || (after.is_empty() && !payload.is_whole) {
            continue;
        }
        if rows == 0 {
            first = line;
        }
        rows += 1;
        other += u64::from(count_fields(line, separator) != names.total);
    }
    writer.push_title(payload, if tabs { "TSV" } else { "CSV" });
    writer.push_text(if payload.is_whole { "\n" } else { "\nAt least " });
    writer.push_count(rows, "row");
    writer.push_text(" below the header");
    if other > 0 {
        writer.push_text(", ");
        writer.push_number(other);
        writer.push_text(" with another number of columns");
    }
    writer.push_list("column", &names, ", ", NAMES_MAX);
    writer.push_quote("\nFirst row: ", first, ROW_MAX);
}

/// The separator that a header has most of; a comma when it has none.
fn most_frequent_separator(header: &str) -> u8 {
    let best =
        SEPARATORS.into_iter().rev().max_by_key(|separator| count_fields(header, *separator));
    best.filter(|separator| count_fields(header, *separator) > 1).unwrap_or(b',')
}

/// The first row, without its line break, and what follows; a line break in quotes ends no row.
fn split_row(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = text.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b'\n' && !quoted
    });
    // A quote that nothing closes is a character like any other.
    let end = if quoted && end.is_none() { text.find('\n') } else { end };
    match end.and_then(|end| text.split_at_checked(end)) {
        Some((row, rest)) => {
            (row.strip_suffix('\r').unwrap_or(row), rest.strip_prefix('\n').unwrap_or(rest))
        }
        None => (text, ""),
    }
}

/// How many fields a row has.
fn count_fields(row: &str, separator: u8) -> u64 {
    let mut quoted = false;
    row.bytes().fold(1, |count, byte| {
        quoted ^= byte == b'"';
        count + u64::from(byte == separator && !quoted)
    })
}

/// The fields of a row, quotes included.
fn split_fields(row: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    row.split(move |c: char| {
        quoted ^= c == '"';
        !quoted && c == char::from(separator)
    })
}
