//! Searchable texts of a message, and the share of each text that is indexed.
//!
//! Input: a raw message with its parts. Output: texts with their fields, in the order of the parts.
//! Session, speaker and ids are not texts. Elsewhere: terms of a text (`terms`).

use alloc::borrow::Cow;

use lcm_text::{
    base::{
        int,
        json::{self, ByteSpan},
        limits,
    },
    message::Part,
};

/// Kind of a searchable text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SearchField {
    /// Text of a message or of a summary.
    Text,
    /// Reasoning of a model.
    Reasoning,
    /// Name of a tool, in a call or in a result.
    ToolName,
    /// Arguments of a call: the decoded string, or JSON as written.
    Arguments,
    /// Result of a call: the decoded string, or JSON as written.
    Result,
    /// Name of a file.
    FileName,
    /// Text of a file.
    FileText,
}

/// Most bytes of text that are indexed of a message over `PACK_BYTES_MAX`; a smaller message is
/// indexed whole. A message whose terms still do not fit the commit is searched without the index.
pub(crate) const INDEXED_BYTES_MAX: usize = 512 << 10;

/// Positions skipped between two texts of a document, so that no phrase spans two texts.
pub(crate) const FIELD_GAP: u32 = 2;

/// Calls `each` with every searchable text of a message that is not empty.
pub(crate) fn each_field<'a>(
    raw: &'a str,
    parts: &[Part],
    each: &mut dyn FnMut(SearchField, Cow<'a, str>),
) {
    let mut emit = |field: SearchField, span: Option<ByteSpan>| {
        if let Some(span) = span {
            let text = json::text(raw, span);
            if !text.is_empty() {
                each(field, text);
            }
        }
    };
    for part in parts {
        match *part {
            Part::Text { text } => emit(SearchField::Text, Some(text)),
            Part::Reasoning { text } => emit(SearchField::Reasoning, Some(text)),
            Part::ToolCall { name, input, .. } => {
                emit(SearchField::ToolName, name);
                emit(SearchField::Arguments, input);
            }
            Part::ToolResult { name, output, .. } => {
                emit(SearchField::ToolName, name);
                emit(SearchField::Result, output);
            }
            Part::File { name, text, .. } => {
                emit(SearchField::FileName, name);
                emit(SearchField::FileText, text);
            }
            Part::Other { .. } => {}
        }
    }
}

/// Budget of the text bytes of one message that are indexed.
#[derive(Debug)]
pub(crate) struct IndexingBudget {
    /// Bytes left; `None`: no limit.
    left: Option<usize>,
    /// Whether some text was not indexed completely.
    pub(super) is_exceeded: bool,
}

impl IndexingBudget {
    /// Creates the budget of a message of `raw_bytes` bytes: no limit up to `PACK_BYTES_MAX`.
    pub(crate) fn new(raw_bytes: u64) -> Self {
        let is_large = raw_bytes > int::to_u64(limits::PACK_BYTES_MAX);
        Self { left: is_large.then_some(INDEXED_BYTES_MAX), is_exceeded: false }
    }

    /// Returns the parts of a text that are indexed. If the text fits, these are the whole text and
    /// an empty text, else the beginning and the end of the text.
    ///
    /// Without a limit every text fits. With a limit, a text gets at most half of the remaining
    /// bytes, so that bytes are left for later texts.
    pub(crate) fn take_edges<'t>(&mut self, text: &'t str) -> [&'t str; 2] {
        let Some(left) = &mut self.left else { return [text, ""] };
        let bytes_max = *left / 2;
        *left -= bytes_max.min(text.len());
        if text.len() <= bytes_max {
            return [text, ""];
        }
        self.is_exceeded = true;
        let (mut head, mut tail) = (bytes_max / 2, text.len() - bytes_max / 2);
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
        let mut budget = IndexingBudget::new(65_537);
        let read: Vec<_> = (0..6).map(|_| bytes(budget.take_edges(&text))).collect();
        let all = (80_000, 0);
        let edges = |left: usize| (left / 4, left / 4);
        let left = INDEXED_BYTES_MAX - 5 * 80_000;
        assert_eq!(read, [all, all, all, all, all, edges(left)]);
        assert!(budget.is_exceeded);
        let long = "x".repeat(1 << 20);
        assert_eq!(bytes(IndexingBudget::new(1 << 20).take_edges(&long)), (128 << 10, 128 << 10));
    }
}
