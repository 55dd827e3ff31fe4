//! Writes the outline of JSON: its structure.
//!
//! In: a document, one document per line, or the beginning of either. Out: types, keys and lengths
//! of the outer levels, at most three, as many as fit. An invalid document is shown as prose, with
//! the fault and its position in the title.

use alloc::{string::String, vec::Vec};

use super::{
    outline_writer::{MeteredText, OutlineWriter, push_number},
    payload_text::PayloadText,
    prose,
};
use crate::base::{
    int,
    json::{JsonFault, JsonScanner, JsonTokenKind},
    tokens,
};

/// Number of elements at the beginning of an array that are shown.
const SAMPLES: u64 = 3;
/// Number of members at the beginning of an object that are shown.
const KEYS: u64 = 10;
/// Most quarter tokens of one key.
const KEY_MAX: u64 = 40;
/// Most quarter tokens of a shape; the second and third level are shown only if they fit.
const SHAPE_MAX: u64 = 720;
/// Most bytes between a fault and the end of a text that was cut inside an escape or a literal.
const CUT_BYTES: usize = 6;

/// Returns whether a text that starts with a bracket is one JSON document or JSON lines. A text
/// that is not whole may also be the beginning of a document.
pub(super) fn is_json(text: &str, is_whole: bool) -> bool {
    match find_fault(text) {
        None => true,
        Some(fault) => (!is_whole && is_truncated(text, fault)) || is_json_lines(text),
    }
}

/// Writes the outline of JSON.
pub(super) fn outline_json(writer: &mut OutlineWriter, payload: &PayloadText<'_>) {
    let text = payload.head;
    if is_json_lines(text) {
        writer.push_title(payload, "JSON lines");
        quote_shape(writer, "\nFirst line: ", text.trim_start().lines().next().unwrap_or_default());
        return;
    }
    match find_fault(text).filter(|fault| payload.is_whole || !is_truncated(text, *fault)) {
        None => {
            writer.push_title(payload, "JSON");
            quote_shape(writer, "\nShape: ", text);
        }
        Some(fault) => {
            prose::outline_text(writer, payload, &invalid_title(text, fault));
        }
    }
}

/// Returns the title for invalid JSON: the fault, its line and its byte offset.
fn invalid_title(text: &str, fault: JsonFault) -> String {
    let mut title = String::from("JSON that does not parse (");
    title.push_str(fault.what);
    title.push_str(" at line ");
    let before = text.as_bytes().get(..fault.at).unwrap_or_default();
    push_number(&mut title, int::to_u64(before.iter().filter(|byte| **byte == b'\n').count()) + 1);
    title.push_str(", byte ");
    push_number(&mut title, int::to_u64(fault.at));
    title.push_str("), shown as text");
    title
}

/// Returns the first fault of a JSON text; `None`: the text is valid.
fn find_fault(text: &str) -> Option<JsonFault> {
    let mut scanner = JsonScanner::new(text);
    loop {
        match scanner.next_token() {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(fault) => return Some(fault),
        }
    }
}

/// Returns whether a fault is so close to the end that cutting the text can explain the fault.
const fn is_truncated(text: &str, fault: JsonFault) -> bool {
    fault.at.saturating_add(CUT_BYTES) >= text.len()
}

/// Returns whether each of the first two lines that are not blank is a JSON object or array. The
/// second line may be cut off.
fn is_json_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut next = || lines.next().filter(|line| line.trim_start().starts_with(['{', '[']));
    next().is_some_and(|line| find_fault(line).is_none())
        && next().is_some_and(|line| find_fault(line).is_none_or(|fault| is_truncated(line, fault)))
}

/// Writes a label and the shape of a document, with as many levels as fit.
fn quote_shape(writer: &mut OutlineWriter, label: &str, text: &str) {
    let mut out = String::new();
    for levels in [3, 2, 1] {
        out = ShapeWriter::render_shape(text, levels);
        if tokens::estimate_quarter_tokens(&out) <= SHAPE_MAX {
            break;
        }
    }
    writer.push_quote(label, &out, SHAPE_MAX);
}

/// An object or array that is open and shown.
struct OpenContainer {
    /// Offset of the container's description in the output.
    start: usize,
    /// Number of keys or elements so far.
    count: u64,
    /// Offset in the output of the last element that was written, after its separator.
    element: usize,
    /// Start and end, in the output, of the last element that was kept, without separators. If the
    /// next element has the same text, the next element is removed.
    before: (usize, usize),
    is_object: bool,
}

/// Writer of the shape of a document: types, keys and lengths, for example `object of 1 {a: null}`.
struct ShapeWriter {
    out: String,
    open: Vec<OpenContainer>,
    /// Most nested containers whose content is shown.
    levels: usize,
}

impl ShapeWriter {
    /// Returns the shape of a document with at most `levels` levels.
    fn render_shape(text: &str, levels: usize) -> String {
        let mut shape = Self { out: String::new(), open: Vec::new(), levels };
        let mut scanner = JsonScanner::new(text);
        let mut hidden = None;
        let mut shown = true;
        while let Ok(Some(token)) = scanner.next_token() {
            let ends = matches!(token.kind, JsonTokenKind::ObjectEnd | JsonTokenKind::ArrayEnd);
            if let Some(depth) = hidden {
                if ends && token.depth == depth {
                    hidden = None;
                }
                continue;
            }
            if token.kind == JsonTokenKind::Key {
                shown =
                    shape.push_key(text.get(token.start + 1..token.end - 1).unwrap_or_default());
            } else if ends {
                shape.close_container("");
            } else {
                let starts =
                    matches!(token.kind, JsonTokenKind::ObjectStart | JsonTokenKind::ArrayStart);
                shown = shape.begin_element(shown);
                match (shown, starts) {
                    (true, true) => shape.open_container(token.kind == JsonTokenKind::ObjectStart),
                    (true, false) => shape.push_scalar(token.kind),
                    (false, true) => hidden = Some(token.depth),
                    (false, false) => {}
                }
            }
        }
        while !shape.open.is_empty() {
            shape.close_container("at least ");
        }
        shape.out
    }

    /// Adds a key of the innermost container; returns whether its value is shown. A key after the
    /// first [`KEYS`], or of a container that is nested too deep, is counted but not shown.
    fn push_key(&mut self, key: &str) -> bool {
        let expanded = self.open.len() <= self.levels;
        let Some(open) = self.open.last_mut() else { return false };
        open.count += 1;
        if !expanded || open.count > KEYS {
            return false;
        }
        if open.count > 1 {
            self.out.push_str(", ");
        }
        let mut flat = MeteredText::default();
        flat.push_flat(key, KEY_MAX);
        self.out.push_str(&flat.into_text());
        self.out.push_str(": ");
        true
    }

    /// Begins a value; returns whether the value is shown. For a member of an object, the result is
    /// `shown`, which [`Self::push_key`] returned.
    fn begin_element(&mut self, shown: bool) -> bool {
        let expanded = self.open.len() <= self.levels;
        let Some(open) = self.open.last_mut() else { return true };
        if open.is_object {
            return shown;
        }
        open.count += 1;
        if !expanded || open.count > SAMPLES {
            return false;
        }
        if open.count > 1 {
            self.out.push_str(", ");
        }
        open.element = self.out.len();
        true
    }

    /// Adds the type of a scalar.
    fn push_scalar(&mut self, kind: JsonTokenKind) {
        self.out.push_str(match kind {
            JsonTokenKind::String => "string",
            JsonTokenKind::Number => "number",
            JsonTokenKind::Null => "null",
            _ => "boolean",
        });
        self.end_value();
    }

    /// Opens an object or array.
    fn open_container(&mut self, is_object: bool) {
        let start = self.out.len();
        if self.open.len() < self.levels {
            self.out.push_str(if is_object { " {" } else { " [" });
        }
        let at = self.out.len();
        self.open.push(OpenContainer { start, count: 0, element: at, before: (at, at), is_object });
    }

    /// Ends a value that is shown. An element with the same shape as its predecessor is removed.
    fn end_value(&mut self) {
        let Some(open) = self.open.last_mut().filter(|open| !open.is_object) else { return };
        let element = (open.element, self.out.len());
        let text = |(from, to): (usize, usize)| self.out.get(from..to).unwrap_or_default();
        if open.count > 1 && text(element) == text(open.before) {
            self.out.truncate(open.before.1);
        } else {
            open.before = element;
        }
    }

    /// Closes the innermost container and writes its description; `bound` is written before the
    /// count.
    fn close_container(&mut self, bound: &str) {
        let Some(open) = self.open.pop() else { return };
        let mut what = String::from(if open.is_object { "object of " } else { "array of " });
        what.push_str(bound);
        push_number(&mut what, open.count);
        if self.open.len() < self.levels {
            if open.count == 0 {
                self.out.truncate(open.start);
            } else {
                let shown = if open.is_object { KEYS } else { SAMPLES };
                self.out.push_str(if open.count > shown { ", ..." } else { "" });
                self.out.push(if open.is_object { '}' } else { ']' });
            }
        }
        if self.out.is_char_boundary(open.start) {
            self.out.insert_str(open.start, &what);
        }
        self.end_value();
    }
}
