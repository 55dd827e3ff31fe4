//! JSON: what is nested in what.
//!
//! In: a document, one document per line, or the beginning of either. Out: types, keys and
//! lengths of the outer levels; as many levels as fit. A document that does not parse is shown as
//! text, after what is wrong with it and where.

use alloc::{string::String, vec::Vec};

use super::{
    Payload, prose,
    sheet::{Sheet, flat, number},
};
use crate::base::{
    int,
    json::{Fault, Scanner, TokenKind},
    tokens,
};

/// Elements of an array and members of an object that are shown.
const SAMPLES: u64 = 3;
const KEYS: u64 = 10;
/// Quarter tokens of one key.
const KEY_MAX: u64 = 40;
/// Quarter tokens of a shape; more levels are shown only if they fit.
const SHAPE_MAX: u64 = 720;
/// A text that was cut inside an escape or a literal has its fault so many bytes before the end.
const CUT_BYTES: usize = 6;

/// Whether a text that starts with a bracket is JSON, as far as it goes.
pub(super) fn is_json(text: &str, is_whole: bool) -> bool {
    match fault(text) {
        None => true,
        Some(fault) => (!is_whole && is_cut(text, fault)) || is_lines(text),
    }
}

/// Describes JSON.
pub(super) fn explore(sheet: &mut Sheet, payload: &Payload<'_>) {
    let text = payload.head;
    if is_lines(text) {
        sheet.title(payload, "JSON lines");
        shape(sheet, "\nFirst line: ", text.trim_start().lines().next().unwrap_or_default());
        return;
    }
    match fault(text).filter(|fault| payload.is_whole || !is_cut(text, *fault)) {
        None => {
            sheet.title(payload, "JSON");
            shape(sheet, "\nShape: ", text);
        }
        Some(fault) => {
            prose::explore(sheet, payload, &invalid(text, fault));
        }
    }
}

fn invalid(text: &str, fault: Fault) -> String {
    let mut title = String::from("JSON that does not parse (");
    title.push_str(fault.what);
    title.push_str(" at line ");
    let before = text.as_bytes().get(..fault.at).unwrap_or_default();
    number(&mut title, int::to_u64(before.iter().filter(|byte| **byte == b'\n').count()) + 1);
    title.push_str(", byte ");
    number(&mut title, int::to_u64(fault.at));
    title.push_str("), shown as text");
    title
}

fn fault(text: &str) -> Option<Fault> {
    let mut scanner = Scanner::new(text);
    loop {
        match scanner.next_token() {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(fault) => return Some(fault),
        }
    }
}

const fn is_cut(text: &str, fault: Fault) -> bool {
    fault.at.saturating_add(CUT_BYTES) >= text.len()
}

/// Whether the first two lines are each a JSON object or array of their own.
fn is_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut next = || lines.next().filter(|line| line.trim_start().starts_with(['{', '[']));
    next().is_some_and(|line| fault(line).is_none())
        && next().is_some_and(|line| fault(line).is_none_or(|fault| is_cut(line, fault)))
}

fn shape(sheet: &mut Sheet, label: &str, text: &str) {
    let mut out = String::new();
    for levels in [3, 2, 1] {
        out = Shape::of(text, levels);
        if tokens::quarters(&out) <= SHAPE_MAX {
            break;
        }
    }
    sheet.quote(label, &out, SHAPE_MAX);
}

/// A container that is open and shown.
struct Open {
    /// Where its description begins.
    start: usize,
    /// Keys or elements so far.
    count: u64,
    /// Where the last element shown begins, and where the one before it does, without separators.
    element: usize,
    before: (usize, usize),
    is_object: bool,
}

struct Shape {
    out: String,
    open: Vec<Open>,
    levels: usize,
}

impl Shape {
    fn of(text: &str, levels: usize) -> String {
        let mut shape = Self { out: String::new(), open: Vec::new(), levels };
        let mut scanner = Scanner::new(text);
        let mut hidden = None;
        let mut shown = true;
        while let Ok(Some(token)) = scanner.next_token() {
            let ends = matches!(token.kind, TokenKind::ObjectEnd | TokenKind::ArrayEnd);
            if let Some(depth) = hidden {
                if ends && token.depth == depth {
                    hidden = None;
                }
                continue;
            }
            if token.kind == TokenKind::Key {
                shown = shape.key(text.get(token.start + 1..token.end - 1).unwrap_or_default());
            } else if ends {
                shape.close("");
            } else {
                let starts = matches!(token.kind, TokenKind::ObjectStart | TokenKind::ArrayStart);
                shown = shape.element(shown);
                match (shown, starts) {
                    (true, true) => shape.start(token.kind == TokenKind::ObjectStart),
                    (true, false) => shape.scalar(token.kind),
                    (false, true) => hidden = Some(token.depth),
                    (false, false) => {}
                }
            }
        }
        while !shape.open.is_empty() {
            shape.close("at least ");
        }
        shape.out
    }

    /// A key of the innermost container; whether its value is shown.
    fn key(&mut self, key: &str) -> bool {
        let expanded = self.open.len() <= self.levels;
        let Some(open) = self.open.last_mut() else { return false };
        open.count += 1;
        if !expanded || open.count > KEYS {
            return false;
        }
        if open.count > 1 {
            self.out.push_str(", ");
        }
        flat(&mut self.out, key, KEY_MAX);
        self.out.push_str(": ");
        true
    }

    /// A value begins; whether it is shown, which for a member its key decided.
    fn element(&mut self, shown: bool) -> bool {
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

    fn scalar(&mut self, kind: TokenKind) {
        self.out.push_str(match kind {
            TokenKind::String => "string",
            TokenKind::Number => "number",
            TokenKind::Null => "null",
            _ => "boolean",
        });
        self.ended();
    }

    fn start(&mut self, is_object: bool) {
        let start = self.out.len();
        if self.open.len() < self.levels {
            self.out.push_str(if is_object { " {" } else { " [" });
        }
        let at = self.out.len();
        self.open.push(Open { start, count: 0, element: at, before: (at, at), is_object });
    }

    /// A value that is shown is complete: of neighbouring elements of one shape one is enough.
    fn ended(&mut self) {
        let Some(open) = self.open.last_mut().filter(|open| !open.is_object) else { return };
        let element = (open.element, self.out.len());
        let text = |(from, to): (usize, usize)| self.out.get(from..to).unwrap_or_default();
        if open.count > 1 && text(element) == text(open.before) {
            self.out.truncate(open.before.1);
        } else {
            open.before = element;
        }
    }

    fn close(&mut self, bound: &str) {
        let Some(open) = self.open.pop() else { return };
        let mut what = String::from(if open.is_object { "object of " } else { "array of " });
        what.push_str(bound);
        number(&mut what, open.count);
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
        self.ended();
    }
}
