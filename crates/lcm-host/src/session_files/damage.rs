//! Splits a file into lines, and finds the whole records of damaged lines.
//!
//! In: the bytes of a file. Out: its lines with their indexes, and counts of what was dropped. A
//! program that was stopped while it wrote leaves a torn line, or NUL bytes; the next program may
//! append its first record to the torn line.
//!
//! A record inside a damaged line counts only if it, or a list of such records, reaches the end of
//! the line, and if its first two members are those of a whole line. So an object inside a torn
//! record is no record.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{DroppedCounts, Growth, LineError, dropped::is_whole_line, formats, line::Object};

/// Most damaged lines that a warning names.
const NAMED_MAX: usize = 10;
/// Most places of a damaged line that are tried as the beginning of a record.
const BEGINNINGS_MAX: usize = 1_000;

/// The lines of a file.
#[derive(Debug, Default)]
pub(super) struct SourceLines {
    /// Lines that are not blank, each with its index in the file.
    lines: Vec<(usize, String)>,
    dropped: DroppedCounts,
}

impl SourceLines {
    /// Returns the lines that are not blank.
    pub(super) fn lines(&self) -> &[(usize, String)] {
        &self.lines
    }

    /// Takes the lines out of the source.
    pub(super) fn take_lines(&mut self) -> Vec<(usize, String)> {
        std::mem::take(&mut self.lines)
    }

    /// Returns the warnings about dropped lines and characters, one line each.
    pub(super) fn dropped_warnings(&self) -> Vec<String> {
        self.dropped.warnings()
    }
}

/// Splits a file into lines. Bytes that are no UTF-8 become U+FFFD, so that such a line is damaged
/// or has the mark in its text.
pub(super) fn split_lines(bytes: &[u8], growth: Growth) -> SourceLines {
    let mut source = SourceLines::default();
    let bytes = source.dropped.strip_mark(bytes);
    // One whole document needs no line end.
    let is_document = serde_json::from_slice::<&RawValue>(bytes).is_ok();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let is_open = growth == Growth::Growing && !line.ends_with(b"\n");
        if is_open && !is_document && !is_whole_line(line) {
            break;
        }
        if let Some(text) = source.dropped.strip_line(line) {
            source.lines.push((index, String::from_utf8_lossy(text).into_owned()));
        }
    }
    source
}

/// The records of lines: their line indexes, their texts, and warnings.
type WholeRecords = (Vec<usize>, Vec<String>, Vec<String>);

/// Separates the whole records from damaged lines, which a warning names.
///
/// # Errors
///
/// Not one line is a whole record.
pub(super) fn take_whole(lines: Vec<(usize, String)>) -> Result<WholeRecords, LineError> {
    let is_whole = |line: &str| Object::read(line).is_ok();
    if lines.iter().all(|(_, line)| is_whole(line)) {
        let (places, texts) = lines.into_iter().unzip();
        return Ok((places, texts, Vec::new()));
    }
    let whole = lines.iter().map(|(_, line)| is_whole(line));
    let whole: Vec<bool> = whole.collect();
    let heads: HashSet<String> = lines
        .iter()
        .zip(&whole)
        .filter(|(_, whole)| **whole)
        .filter_map(|((_, line), _)| first_members(line))
        .collect();
    let (mut places, mut texts, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
    let mut recovered = 0_usize;
    for ((place, line), whole) in lines.into_iter().zip(whole) {
        if whole {
            places.push(place);
            texts.push(line);
            continue;
        }
        let inside = find_records(&line, &heads);
        recovered += inside.len();
        let reason = Object::read(&line).err().unwrap_or_default();
        damaged.push((place, reason));
        for record in inside {
            places.push(place);
            texts.push(record);
        }
    }
    if texts.is_empty() {
        let (line, reason) = damaged.into_iter().next().unwrap_or_default();
        let reason = format!("{reason}; the formats of files are {}", formats::list_names());
        return Err(LineError::at(line, reason));
    }
    Ok((places, texts, describe_damage(&damaged, recovered)))
}

fn describe_damage(damaged: &[(usize, String)], recovered: usize) -> Vec<String> {
    let named = damaged.iter().take(NAMED_MAX);
    let mut shown: Vec<String> =
        named.map(|(line, reason)| format!("line {} {reason}", line + 1)).collect();
    if damaged.len() > NAMED_MAX {
        shown.push(format!("{} more", damaged.len() - NAMED_MAX));
    }
    let found = match recovered {
        0 => String::new(),
        count => format!("; whole records inside them were read ({count})"),
    };
    Vec::from([format!("damaged lines ({}): {}{found}", damaged.len(), shown.join(", "))])
}

/// Returns the names of the first two members of an object, by which records are compared.
fn first_members(line: &str) -> Option<String> {
    let object = Object::read(line).ok()?;
    let names: Vec<&str> = object.members().take(2).map(|(name, _)| name).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// Returns the records inside a damaged line that reach its end.
fn find_records(line: &str, heads: &HashSet<String>) -> Vec<String> {
    let line = line.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    let firsts: HashSet<&str> =
        heads.iter().map(|head| head.split(' ').next().unwrap_or_default()).collect();
    let beginnings =
        line.match_indices('{').map(|(at, _)| (at, line.get(at..).unwrap_or_default()));
    // Text of a torn record may have many braces; only the name of a first member begins a record.
    let beginnings =
        beginnings.filter(|(_, rest)| first_name(rest).is_some_and(|name| firsts.contains(name)));
    for (start, rest) in beginnings.take(BEGINNINGS_MAX) {
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let (mut records, mut is_damaged) = (Vec::new(), false);
        for record in stream.by_ref() {
            match record {
                Ok(record) => records.push(record.get().to_owned()),
                Err(_) => is_damaged = true,
            }
        }
        // Before a torn end, records count only from the beginning of the line on.
        if (!is_damaged || start == 0) && !records.is_empty() && heads_match(&records, heads) {
            return records;
        }
    }
    Vec::new()
}

/// Returns the name of the first member of a text that begins as an object does, as written.
fn first_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.trim_start().strip_prefix('"')?;
    name.split_once('"').map(|(name, _)| name)
}

fn heads_match(records: &[String], heads: &HashSet<String>) -> bool {
    let known = |record: &String| first_members(record).is_some_and(|name| heads.contains(&name));
    records.iter().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(lines: &[&str]) -> (Vec<usize>, Vec<String>, Vec<String>) {
        let lines = lines.iter().map(|line| (*line).to_owned()).enumerate();
        take_whole(lines.collect()).unwrap()
    }

    #[test]
    fn a_record_behind_a_torn_one_is_read_and_one_inside_is_not() {
        let good = r#"{"a":1,"b":{"a":2}}"#;
        let (places, texts, warnings) =
            whole(&[good, r#"{"a":1,"b":{"x":2},"c{"a":7,"b":8}"#, good]);
        assert_eq!((places.as_slice(), texts[1].as_str()), (&[0, 1, 2][..], r#"{"a":7,"b":8}"#));
        assert!(warnings[0].starts_with("damaged lines (1): line 2 "), "{warnings:?}");
        let (places, _, warnings) = whole(&[good, r#"{"a":1,"b":{"x":2}"#]);
        assert_eq!(places, [0]);
        assert!(warnings[0].contains("ends in the middle"), "{warnings:?}");
    }

    #[test]
    fn glued_records_and_nul_bytes_lose_nothing_whole() {
        let (places, texts, _) = whole(&[r#"{"a":1}"#, r#"{"a":2}{"a":3}"#, "\0\0{\"a\":4}"]);
        assert_eq!(places, [0, 1, 1, 2]);
        assert_eq!(texts[3], r#"{"a":4}"#);
        assert_eq!(whole(&[r#"{"a":1}"#, "\0\0\0"]).0, [0]);
        assert_eq!(whole(&[r#"{"a":1}"#, r#"{"a":2}{"a"#]).1[1], r#"{"a":2}"#);
    }

    #[test]
    fn a_record_behind_a_torn_text_with_many_braces_is_read() {
        let torn = format!(
            r#"{{"a":1,"b":"{}"#,
            r"{
{ "
            .repeat(2 * BEGINNINGS_MAX)
        );
        let (places, texts, _) = whole(&[r#"{"a":1}"#, &format!(r#"{torn}{{"a":9}}"#)]);
        assert_eq!((places.as_slice(), texts[1].as_str()), (&[0, 1][..], r#"{"a":9}"#));
    }

    #[test]
    fn a_file_of_damage_is_refused_by_its_first_line() {
        let lines = Vec::from([(3, "nonsense".to_owned())]);
        assert_eq!(take_whole(lines).unwrap_err().line, Some(3));
    }

    #[test]
    fn a_line_that_is_being_written_waits() {
        let growing = |bytes: &[u8]| split_lines(bytes, Growth::Growing).lines.len();
        assert_eq!(growing(b"{}\n{\"a\":{}"), 1);
        assert_eq!(growing(b"{}\n\xE4\xBD"), 1);
        assert_eq!(growing(b"{}\n{\"a\":{}}"), 2);
        let source = split_lines(b"\xEF\xBB\xBF{}\r\n\n  \n{}\n", Growth::Ended);
        let expected =
            ["dropped 2 blank lines", "dropped 1 byte-order mark", "dropped 1 carriage return"];
        assert_eq!(source.dropped_warnings(), expected);
    }
}
