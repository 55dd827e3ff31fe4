//! The searchable texts of a message.
//!
//! In: a raw message with its projection. Out: texts with the field each stands in, in the order of
//! the parts. Session, speaker and ids are no text.

use alloc::borrow::Cow;

use lcm_text::{
    base::{
        int,
        json::{self, ByteSpan},
        limits,
    },
    message::Part,
};

/// Where in a message a text stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SearchField {
    /// What was said; the text of a summary.
    Text,
    /// What was thought.
    Reasoning,
    /// Name of a tool, at its call and at its result.
    ToolName,
    /// Arguments of a call: JSON as written, or the string if they are one.
    Arguments,
    /// Result of a call: a string decoded, or JSON as written.
    Result,
    /// Name of a file.
    FileName,
    /// Text of a file.
    FileText,
}

/// Bytes of texts that are read for words in a message that is too large for a pack. One commit has
/// to hold their terms: of prose and code a quarter of them or less; what has more, as random
/// letters may, is searched without an index.
pub(crate) const INDEXED_BYTES_MAX: usize = 512 << 10;

/// Hands out the searchable texts of a message.
pub(crate) fn each_field<'a>(
    raw: &'a str,
    parts: &[Part],
    each: &mut dyn FnMut(SearchField, Cow<'a, str>),
) {
    let mut some = |field: SearchField, span: Option<ByteSpan>| {
        if let Some(span) = span {
            let text = json::text(raw, span);
            if !text.is_empty() {
                each(field, text);
            }
        }
    };
    for part in parts {
        match *part {
            Part::Text { text } => some(SearchField::Text, Some(text)),
            Part::Reasoning { text } => some(SearchField::Reasoning, Some(text)),
            Part::ToolCall { name, input, .. } => {
                some(SearchField::ToolName, name);
                some(SearchField::Arguments, input);
            }
            Part::ToolResult { name, output, .. } => {
                some(SearchField::ToolName, name);
                some(SearchField::Result, output);
            }
            Part::File { name, text, .. } => {
                some(SearchField::FileName, name);
                some(SearchField::FileText, text);
            }
            Part::Other { .. } => {}
        }
    }
}

/// What of the texts of one message is read for words.
#[derive(Debug)]
pub(crate) struct IndexingBudget {
    /// Bytes of texts; `None`: everything.
    left: Option<usize>,
    /// Whether something was not read.
    pub(super) is_exceeded: bool,
}

impl IndexingBudget {
    /// For a message of so many raw bytes.
    pub(crate) fn new(raw_bytes: u64) -> Self {
        let is_large = raw_bytes > int::to_u64(limits::PACK_BYTES_MAX);
        Self { left: is_large.then_some(INDEXED_BYTES_MAX), is_exceeded: false }
    }

    /// The beginning and the end of a text that are read; all of it in a message of normal size. A
    /// text has at most half of what is left, so that none is left with nothing by the one before.
    pub(crate) fn take_edges<'t>(&mut self, text: &'t str) -> [&'t str; 2] {
        let Some(left) = &mut self.left else { return [text, ""] };
        let most = *left / 2;
        *left -= most.min(text.len());
        if text.len() <= most {
            return [text, ""];
        }
        self.is_exceeded = true;
        let (mut head, mut tail) = (most / 2, text.len() - most / 2);
        while !text.is_char_boundary(head) {
            head -= 1;
        }
        while !text.is_char_boundary(tail) {
            tail += 1;
        }
        [text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec::Vec};

    use super::*;
    use lcm_text::{message, types::api::Dialect};

    #[test]
    fn texts_come_in_the_order_of_the_parts() {
        let raw = r#"{"role":"assistant","session":"s","parts":[
            {"type":"reasoning","text":"why"},{"type":"text","text":"a\nb"},
            {"type":"tool_call","id":"c1","name":"read","input":{"path":"x"}},
            {"type":"tool_result","call_id":"c1","name":"read","output":"done \"it\""},
            {"type":"tool_result","call_id":"c1","output":[1,2]}]}"#;
        let message = message::parse(Dialect::Lcm, raw).unwrap();
        let mut found: Vec<(SearchField, String)> = Vec::new();
        each_field(raw, &message.parts, &mut |field, text| found.push((field, text.into_owned())));
        let expected = [
            (SearchField::Reasoning, "why"),
            (SearchField::Text, "a\nb"),
            (SearchField::ToolName, "read"),
            (SearchField::Arguments, r#"{"path":"x"}"#),
            (SearchField::ToolName, "read"),
            (SearchField::Result, "done \"it\""),
            (SearchField::Result, "[1,2]"),
        ];
        assert_eq!(found.len(), expected.len());
        for ((field, text), (wanted, expected)) in found.iter().zip(expected) {
            assert_eq!((*field, text.as_str()), (wanted, expected));
        }
    }

    #[test]
    fn of_a_large_message_all_is_read_up_to_a_bound_and_then_the_edges() {
        let text = "\u{e9}".repeat(40_000);
        let bytes = |[head, tail]: [&str; 2]| (head.len(), tail.len());
        assert_eq!(IndexingBudget::new(65_536).take_edges(&text), [text.as_str(), ""]);
        let mut allowance = IndexingBudget::new(65_537);
        let read: Vec<_> = (0..6).map(|_| bytes(allowance.take_edges(&text))).collect();
        let all = (80_000, 0);
        let edges = |left: usize| (left / 4, left / 4);
        let left = INDEXED_BYTES_MAX - 5 * 80_000;
        assert_eq!(read, [all, all, all, all, all, edges(left)]);
        assert!(allowance.is_exceeded);
        let long = "x".repeat(1 << 20);
        assert_eq!(bytes(IndexingBudget::new(1 << 20).take_edges(&long)), (128 << 10, 128 << 10));
    }
}
