//! Writes the outline of a unified diff: the changed files, each with its position and size.
//!
//! In: a diff, with or without git's headers. Out: files with their first line in the diff and
//! their numbers of added and removed lines. The lengths in a hunk header separate the lines of the
//! hunk from file headers, because a removed line can look like a file header.

use alloc::{string::String, vec::Vec};

use super::{
    outline_writer::{OutlineList, OutlineWriter, push_number},
    payload_text::PayloadText,
    prose,
};

/// Most files shown.
const FILES: usize = 20;
/// Most files of a diff whose names may take [`NAME_MAX`]; with more files, a name may take
/// [`NAME_MIN`].
const MANY_FILES: u64 = 8;
/// Most quarter tokens of a name if the diff has more than [`MANY_FILES`] files.
const NAME_MIN: u64 = 26;
/// Most quarter tokens of a name if the diff has at most [`MANY_FILES`] files.
const NAME_MAX: u64 = 90;

/// A file of a diff.
#[derive(Default)]
struct DiffFile<'a> {
    /// Line number in the diff at which the file starts, from 1; 0 before the first file.
    line: u64,
    name: &'a str,
    added: u64,
    removed: u64,
}

/// Counts of a diff, up to the current line.
#[derive(Default)]
struct DiffSummary<'a> {
    /// The first files that have ended, at most [`FILES`].
    files: Vec<DiffFile<'a>>,
    /// Number of files that have ended.
    total: u64,
    /// Number of added lines in the files that have ended.
    added: u64,
    /// Number of removed lines in the files that have ended.
    removed: u64,
    /// Number of hunks.
    hunks: u64,
    /// The current file.
    file: DiffFile<'a>,
}

impl<'a> DiffSummary<'a> {
    /// Ends the current file and begins the next; line 0 begins no file.
    fn begin_file(&mut self, line: u64, name: &'a str) {
        let next = DiffFile { line, name, ..DiffFile::default() };
        let file = core::mem::replace(&mut self.file, next);
        self.added += file.added;
        self.removed += file.removed;
        self.total += u64::from(file.line > 0);
        if file.line > 0 && self.files.len() < FILES {
            self.files.push(file);
        }
    }

    /// Reads a whole diff.
    fn read(&mut self, text: &'a str) {
        // Remaining lines of the current hunk, in the old text and in the new text.
        let mut left = (0_u64, 0_u64);
        // File name of the last `---` header.
        let mut old = "";
        for (at, line) in (1..).zip(text.lines()) {
            if left != (0, 0) {
                let (minus, plus) = match line.as_bytes().first() {
                    Some(b'+') => (0, 1),
                    Some(b'-') => (1, 0),
                    Some(b'\\') => (0, 0),
                    _ => (1, 1),
                };
                left = (left.0.saturating_sub(minus), left.1.saturating_sub(plus));
                if minus != plus {
                    self.file.added += plus;
                    self.file.removed += minus;
                }
            } else if let Some(names) = line.strip_prefix("diff --git ") {
                self.begin_file(at, names.split_once(" b/").map_or(names, |(_, name)| name));
            } else if let Some(name) = line.strip_prefix("--- ") {
                old = strip_path_prefix(name);
            } else if let Some(name) = line.strip_prefix("+++ ") {
                let name =
                    if name.starts_with("/dev/null") { old } else { strip_path_prefix(name) };
                // If the names are equal, a `diff --git` header has begun the file already.
                if self.file.name != name {
                    self.begin_file(at.saturating_sub(1).max(1), name);
                }
            } else if let Some(ranges) = line.strip_prefix("@@ -") {
                left = hunk_lengths(ranges);
                self.hunks += 1;
            }
        }
        self.begin_file(0, "");
    }
}

/// Writes the outline of a diff.
pub(super) fn outline_diff(writer: &mut OutlineWriter, payload: &PayloadText<'_>) {
    let mut diff = DiffSummary::default();
    diff.read(payload.head);
    writer.push_title(payload, "Diff");
    writer.push_text("\n+");
    writer.push_number(diff.added);
    writer.push_text(" -");
    writer.push_number(diff.removed);
    writer.push_text(" in ");
    writer.push_count(diff.hunks, "hunk");
    let mut list = OutlineList::new(FILES);
    // A long path is cut at its beginning, because the end has the file's name.
    let width = if diff.total > MANY_FILES { NAME_MIN } else { NAME_MAX };
    let mut item = String::new();
    for file in diff.files {
        let end = prose::take_end(file.name, width);
        item.clear();
        item.push_str(if end.len() < file.name.len() { "..." } else { "" });
        item.push_str(end);
        item.push_str(" +");
        push_number(&mut item, file.added);
        item.push_str(" -");
        push_number(&mut item, file.removed);
        list.push(Some(file.line), &item, None);
    }
    list.total = diff.total;
    writer.push_list("file", &list, "\n", writer.quarters_left());
    if diff.total == 0 {
        prose::quote_excerpts(writer, payload);
    }
}

/// Returns a file name without the prefix `a/` or `b/` and without a time stamp.
fn strip_path_prefix(name: &str) -> &str {
    let name = name.split('\t').next().unwrap_or(name).trim_end();
    name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name)
}

/// Reads the old and the new length of a hunk from the text after `@@ -`. A range without a length
/// has the length 1. An invalid length is 0, as is the length of a missing range.
fn hunk_lengths(ranges: &str) -> (u64, u64) {
    let mut words = ranges.split(' ').map(|range| match range.split_once(',') {
        Some((_, length)) => length.parse().unwrap_or(0),
        None => 1,
    });
    (words.next().unwrap_or(0), words.next().unwrap_or(0))
}
