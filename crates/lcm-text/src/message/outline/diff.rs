//! Unified diffs: which files change, by how much, and where in the diff.
//!
//! In: a diff, with or without the lines of git. Out: files with their first line in the diff and
//! their added and removed lines. The numbers of a hunk say how many lines it has, so that a
//! removed line is never taken for the name of a file.

use alloc::{string::String, vec::Vec};

use super::{
    outline_writer::{OutlineList, OutlineWriter, push_number},
    payload_text::PayloadText,
    prose,
};

/// Files that are shown.
const FILES: usize = 20;
/// Files from which on names are cut, and quarter tokens of a name that is and one that is not.
const MANY_FILES: u64 = 8;
const NAME_MIN: u64 = 26;
const NAME_MAX: u64 = 90;

/// A file of a diff.
#[derive(Default)]
struct DiffFile<'a> {
    /// Its first line in the diff, from 1.
    line: u64,
    name: &'a str,
    added: u64,
    removed: u64,
}

/// What a diff consists of, as far as it was read.
#[derive(Default)]
struct DiffSummary<'a> {
    /// The first files.
    files: Vec<DiffFile<'a>>,
    /// All files, what is added and removed in all, and hunks.
    total: u64,
    added: u64,
    removed: u64,
    hunks: u64,
    /// The file that is read.
    file: DiffFile<'a>,
}

impl<'a> DiffSummary<'a> {
    /// Another file begins, or none any more.
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

    fn read(&mut self, text: &'a str) {
        // Lines that the hunk still has of the old and of the new text.
        let mut left = (0_u64, 0_u64);
        // The name after `---`, until the one after `+++`.
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
                // Git has announced it already.
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

/// Describes a diff.
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
    // Of a long path the end says more.
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

/// A name without what stands around it.
fn strip_path_prefix(name: &str) -> &str {
    let name = name.split('\t').next().unwrap_or(name).trim_end();
    name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name)
}

/// The lengths of a hunk from what follows `@@ -`; a length that is not there is 1.
fn hunk_lengths(ranges: &str) -> (u64, u64) {
    let mut words = ranges.split(' ').map(|range| match range.split_once(',') {
        Some((_, length)) => length.parse().unwrap_or(0),
        None => 1,
    });
    (words.next().unwrap_or(0), words.next().unwrap_or(0))
}
