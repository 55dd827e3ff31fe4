//! Writes the outline of a table: columns, number of rows, first row.
//!
//! In: text whose columns are separated by one character, with or without quotes around fields.
//! Out: names of the columns, number of rows below the header, and the first row below the header.
//! The first row counts as the header.

use super::{
    outline_writer::{OutlineList, OutlineWriter},
    payload_text::{PayloadFormat, PayloadText},
};

/// Separators of columns, the preferred first.
const SEPARATORS: [u8; 4] = [b'\t', b',', b';', b'|'];
/// Most lines that are compared to recognise a table.
const LINES_MAX: usize = 12;
/// Fewest lines of a table.
const LINES_MIN: usize = 2;
/// Most column names shown.
const COLUMNS: usize = 40;
/// Most quarter tokens of the column names.
const NAMES_MAX: u64 = 560;
/// Most quarter tokens of the first row; 180 characters of ASCII.
const ROW_MAX: u64 = 180;

/// Returns the separator of a text that looks like a table; `None`: no table. In a table, each of
/// the first lines, at least two, has the same number of separators. A text that can be prose or
/// source code is no table.
pub(super) fn detect_separator(text: &str, is_whole: bool) -> Option<u8> {
    let mut lines: alloc::vec::Vec<&str> = text.lines().take(LINES_MAX + 1).collect();
    // The last line may be incomplete.
    if lines.len() > LINES_MAX || !is_whole {
        lines.pop();
    }
    let (header, rest) = lines.split_first()?;
    SEPARATORS.into_iter().find(|separator| {
        let columns = count_fields(header, *separator);
        let same = |line: &&str| count_fields(line, *separator) == columns;
        // Prose can have one comma in each of a few lines, or commas before spaces.
        let clear = *separator == b'\t' || columns > 2 || lines.len() > LINES_MIN;
        let prose = *separator != b'\t' && header.contains(". ") || header.ends_with('{');
        let enough = columns > 1 && lines.len() >= LINES_MIN && clear && !prose;
        enough && (columns > 2 || !header.contains(", ")) && rest.iter().all(same)
    })
}

/// Writes the outline of a table.
pub(super) fn outline_table(
    writer: &mut OutlineWriter,
    payload: &PayloadText<'_>,
    format: PayloadFormat,
) {
    let text = payload.head;
    let (header, rest) = split_row(text);
    let is_tsv = format == PayloadFormat::Tsv;
    let separator = if is_tsv { b'\t' } else { most_frequent_separator(header) };
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
        // The last row of a partial payload may be incomplete.
        if line.trim().is_empty() || (after.is_empty() && !payload.is_whole) {
            continue;
        }
        if rows == 0 {
            first = line;
        }
        rows += 1;
        other += u64::from(count_fields(line, separator) != names.total);
    }
    writer.push_title(payload, if is_tsv { "TSV" } else { "CSV" });
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

/// Returns the most frequent separator of a header; a comma if the header has no separator.
fn most_frequent_separator(header: &str) -> u8 {
    let best =
        SEPARATORS.into_iter().rev().max_by_key(|separator| count_fields(header, *separator));
    best.filter(|separator| count_fields(header, *separator) > 1).unwrap_or(b',')
}

/// Returns the first row without its line break, and the rest of the text. A line break inside
/// quotes does not end a row.
fn split_row(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = text.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b'\n' && !quoted
    });
    // A quote without a closing quote is an ordinary character.
    let end = if quoted && end.is_none() { text.find('\n') } else { end };
    match end.and_then(|end| text.split_at_checked(end)) {
        Some((row, rest)) => {
            (row.strip_suffix('\r').unwrap_or(row), rest.strip_prefix('\n').unwrap_or(rest))
        }
        None => (text, ""),
    }
}

/// Counts the fields of a row. A separator inside quotes ends no field.
fn count_fields(row: &str, separator: u8) -> u64 {
    let mut quoted = false;
    row.bytes().fold(1, |count, byte| {
        quoted ^= byte == b'"';
        count + u64::from(byte == separator && !quoted)
    })
}

/// Returns the fields of a row, quotes included.
fn split_fields(row: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    row.split(move |c: char| {
        quoted ^= c == '"';
        !quoted && c == char::from(separator)
    })
}
