//! Detects the large payloads of a message.
//!
//! In: a message and a threshold in tokens. Out: the payloads in order. A file block, a file and a
//! tool output become payloads if their own tokens reach the threshold. If the rest of the message
//! still reaches the threshold, its longest texts become payloads, one by one.
//!
//! The following are never payloads:
//!
//! - system messages, because a model must read its instructions;
//! - reasoning and call arguments, because providers require them unchanged;
//! - texts outside file blocks in a message with calls, results or reasoning, because providers
//!   require them unchanged;
//! - images, documents and other data; they count with a flat price here, so that the size of a
//!   document does not push out the texts beside it;
//! - answers of this engine's own tools.

use alloc::{borrow::Cow, string::String, vec::Vec};

use crate::{
    base::{
        int,
        json::{self, ByteSpan},
        sort,
        tokens::TokenMeter,
    },
    message::{
        large_payload::{
            file_block,
            found_payload::{FoundPayload, ReferenceForm},
            measure,
            payload_record::PayloadKind,
        },
        parsed_message::ParsedMessage,
        part::{Part, Role},
        token_cost,
        trust::BACKGROUND_LINE,
    },
    types::api::Dialect,
};

/// Most payloads of one message; if more are found, only the longest are replaced. Each payload
/// takes one of the 256 puts of a commit.
const PAYLOADS_MAX: usize = 64;
/// Fewest tokens of a text below the threshold that a reference replaces; a reference has about 300
/// tokens.
const TEXT_TOKENS_MIN: u64 = 1_000;

/// State of the detection in one message.
struct PayloadFinder<'a> {
    raw: &'a str,
    dialect: Dialect,
    /// Fewest quarter tokens that, rounded up to tokens, reach the threshold.
    quarters_min: u64,
    found: Vec<FoundPayload>,
    /// Texts that can become payloads if the message is still too large.
    candidates: Vec<TextCandidate>,
    /// Quarter tokens of the texts that became payloads.
    replaced_quarters: u64,
}

/// A text that can become a payload if the message is still too large.
#[derive(Debug)]
struct TextCandidate {
    quarters: u64,
    /// Whether the text is a file block.
    is_block: bool,
    found: FoundPayload,
}

/// Returns the payloads of a message in order, at most [`PAYLOADS_MAX`].
pub(super) fn find_payloads(
    dialect: Dialect,
    raw: &str,
    message: &ParsedMessage,
    tokens_min: u32,
) -> Vec<FoundPayload> {
    let quarters_min = u64::from(tokens_min).saturating_mul(4).saturating_sub(3);
    let mut finder = PayloadFinder {
        raw,
        dialect,
        quarters_min,
        found: Vec::new(),
        candidates: Vec::new(),
        replaced_quarters: 0,
    };
    // Most messages are too small, so their texts are not measured again.
    if message.role == Role::System || message.tokens < tokens_min {
        return finder.found;
    }
    for part in &message.parts {
        finder.scan_part(part, message.role);
    }
    // Providers require the texts beside calls, results and reasoning unchanged.
    let is_replayed = |part: &Part| {
        matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. } | Part::Reasoning { .. })
    };
    if !message.parts.iter().any(is_replayed) {
        let quarters = |part| token_cost::flat_quarter_tokens(raw, part);
        let total = message.parts.iter().map(quarters).sum();
        finder.take_raw_payloads(total);
    }
    let mut found = finder.found;
    if found.len() > PAYLOADS_MAX {
        let length = |found: &FoundPayload| found.content_range.1 - found.content_range.0;
        sort::sort_by(&mut found, &mut |a, b| length(b).cmp(&length(a)));
        found.truncate(PAYLOADS_MAX);
    }
    sort::sort_by(&mut found, &mut |a, b| a.replaced_range.cmp(&b.replaced_range));
    found
}

impl PayloadFinder<'_> {
    /// Finds the payloads of one part.
    fn scan_part(&mut self, part: &Part, role: Role) {
        match *part {
            Part::Text { text } if role == Role::Tool => {
                self.scan_output(text, None, None);
            }
            Part::Text { text } if json::kind(self.raw, text) == json::JsonKind::String => {
                self.scan_text(text, role);
            }
            Part::ToolResult { call_id, name, output: Some(output), .. } => {
                self.scan_output(output, name, call_id);
            }
            Part::File { name, mime, text: Some(text), .. } => {
                let [name, mime] =
                    [name, mime].map(|span| span.map(|span| self.text(span).into_owned()));
                let (from, to) = self.inner_range(text);
                let quarters = self.quarter_tokens(from, to);
                if self.is_string(text) && quarters >= self.quarters_min {
                    let found =
                        FoundPayload { name, mime, ..self.whole_string(PayloadKind::File, text) };
                    self.push_found(found, quarters);
                }
            }
            _ => {}
        }
    }

    /// Finds the file blocks of a user's text that reaches the threshold. Adds the text outside
    /// blocks and the small blocks as candidates.
    fn scan_text(&mut self, text: ByteSpan, role: Role) {
        let (first, end) = self.inner_range(text);
        let mut from = first;
        let written = self.raw.get(..end).unwrap_or_default();
        if role == Role::User && self.quarter_tokens(first, end) >= self.quarters_min {
            let mut at = first;
            while let Some(block) = file_block::find_block(written, at) {
                at = block.whole_range.1;
                self.push_candidate(from, block.whole_range.0, false);
                from = block.whole_range.1;
                let quarters = self.quarter_tokens(block.content_range.0, block.content_range.1);
                let found = FoundPayload {
                    kind: PayloadKind::File,
                    name: block.name,
                    mime: block.mime,
                    call_id: String::new(),
                    content_range: block.content_range,
                    is_text: true,
                    replaced_range: block.whole_range,
                    form: ReferenceForm::Inside,
                };
                if quarters >= self.quarters_min {
                    self.push_found(found, quarters);
                } else {
                    self.candidates.push(TextCandidate { quarters, is_block: true, found });
                }
            }
        }
        self.push_candidate(from, end, from == first);
    }

    /// Adds the text between two offsets as a candidate; `is_whole`: whether the text is a whole
    /// string.
    fn push_candidate(&mut self, from: usize, to: usize, is_whole: bool) {
        let quarters = self.quarter_tokens(from, to);
        let quotes = usize::from(is_whole);
        let found = FoundPayload {
            kind: PayloadKind::RawPayload,
            name: None,
            mime: None,
            call_id: String::new(),
            content_range: (from, to),
            is_text: true,
            replaced_range: (from - quotes, to + quotes),
            form: if is_whole { ReferenceForm::Text } else { ReferenceForm::Inside },
        };
        self.candidates.push(TextCandidate { quarters, is_block: false, found });
    }

    /// Turns the longest candidates into payloads until the rest of the message is below the
    /// threshold or no candidate is left. The longest remaining file block does not count towards
    /// the rest, so a message with one block below the threshold keeps the block.
    fn take_raw_payloads(&mut self, total: u64) {
        let mut candidates = core::mem::take(&mut self.candidates);
        candidates.retain(|candidate| candidate.quarters >= TEXT_TOKENS_MIN * 4);
        sort::sort_by(&mut candidates, &mut |a, b| {
            (a.quarters, a.found.replaced_range).cmp(&(b.quarters, b.found.replaced_range))
        });
        loop {
            let block = candidates.iter().rev().find(|candidate| candidate.is_block);
            let excluded = self.replaced_quarters + block.map_or(0, |block| block.quarters);
            if total.saturating_sub(excluded) < self.quarters_min {
                return;
            }
            let Some(TextCandidate { found, quarters, .. }) = candidates.pop() else { return };
            self.push_found(found, quarters);
        }
    }

    /// Finds the payloads of a tool output; none below the threshold, or if the output is of this
    /// engine. A string is one payload. In a list or object, the longest direct texts with at least
    /// [`TEXT_TOKENS_MIN`] tokens are payloads if the rest is then below the threshold. Otherwise
    /// the whole value is one payload.
    fn scan_output(&mut self, output: ByteSpan, tool: Option<ByteSpan>, call_id: Option<ByteSpan>) {
        let tool = tool.map(|span| self.text(span).into_owned());
        let call_id = call_id.map(|span| self.text(span).into_owned()).unwrap_or_default();
        let part =
            Part::ToolResult { call_id: None, name: None, output: Some(output), is_error: false };
        let total = token_cost::flat_quarter_tokens(self.raw, &part);
        if total < self.quarters_min || self.is_engine_output(output, tool.as_deref()) {
            return;
        }
        let found = |payload: FoundPayload| FoundPayload {
            name: tool.clone(),
            call_id: call_id.clone(),
            ..payload
        };
        if self.is_string(output) {
            let payload = found(self.whole_string(PayloadKind::ToolOutput, output));
            return self.found.push(payload);
        }
        let mut texts: Vec<(u64, ByteSpan)> = Vec::new();
        for span in self.list_texts(output) {
            let (from, to) = self.inner_range(span);
            texts.push((self.quarter_tokens(from, to), span));
        }
        sort::sort_by(&mut texts, &mut |a, b| (a.0, a.1.start).cmp(&(b.0, b.1.start)));
        let mut rest = total;
        let mut long_texts = Vec::new();
        while rest >= self.quarters_min {
            let Some((quarters, span)) = texts.pop() else { break };
            if quarters < TEXT_TOKENS_MIN * 4 {
                break;
            }
            rest = rest.saturating_sub(quarters);
            long_texts.push(span);
        }
        if rest < self.quarters_min {
            for span in long_texts {
                let payload = found(self.whole_string(PayloadKind::ToolOutput, span));
                self.found.push(payload);
            }
            return;
        }
        let (from, to) = span_range(output);
        let form = if self.dialect == Dialect::Gemini {
            ReferenceForm::Object
        } else {
            ReferenceForm::Text
        };
        let all = FoundPayload {
            content_range: (from, to),
            is_text: false,
            form,
            ..self.whole_string(PayloadKind::ToolOutput, output)
        };
        self.found.push(found(all));
    }

    /// Returns the strings directly in an object, or the strings and the `text` members of objects
    /// directly in a list.
    fn list_texts(&self, output: ByteSpan) -> Vec<ByteSpan> {
        let mut texts = Vec::new();
        let raw = self.raw;
        json::each_member(raw, output, |member| {
            texts.extend((member.kind == json::JsonKind::String).then_some(member.value));
        });
        json::each_element(raw, output, |element| match element.kind {
            json::JsonKind::String => texts.push(element.span),
            json::JsonKind::Object => {
                let members = json::list_members(raw, element.span);
                let text = json::find_member(&members, raw, "text");
                let text = text.filter(|member| member.kind == json::JsonKind::String);
                texts.extend(text.map(|member| member.value));
            }
            _ => {}
        });
        texts
    }

    /// Returns whether the output is an answer of this engine's tools. The model asked for the
    /// answer in order to read it, so no reference replaces it.
    fn is_engine_output(&self, output: ByteSpan, tool: Option<&str>) -> bool {
        if tool.is_some_and(|tool| tool.starts_with("lcm_")) {
            return true;
        }
        // The output can have megabytes, so its first characters are tested before it is decoded.
        let (from, to) = self.inner_range(output);
        let written = self.raw.get(from..to).unwrap_or_default();
        let begins = |span: ByteSpan| {
            let (from, to) = self.inner_range(span);
            self.raw.get(from..to).is_some_and(|text| text.starts_with(BACKGROUND_LINE))
        };
        let first =
            if self.is_string(output) { None } else { self.list_texts(output).first().copied() };
        if begins(first.unwrap_or(output)) {
            return true;
        }
        if !written.trim_start().starts_with(['{', '\\']) {
            return false;
        }
        let text = self.text(output);
        let Ok(members) = json::parse_object(&text) else { return false };
        let has = |key: &str| json::find_member(&members, &text, key).map(|member| member.value);
        let names = ["exploration", "descendant_count", "raw"];
        let id = has("id").map(|id| json::text(&text, id));
        let kinds = ["file_", "sum_", "msg_"];
        let is_id = |id: &str| {
            let digits = kinds.iter().find_map(|kind| id.strip_prefix(kind));
            digits.is_some_and(|digits| digits.len() == 16)
        };
        id.is_some_and(|id| is_id(&id)) && names.iter().any(|key| has(key).is_some())
    }

    /// Adds a payload and counts its tokens as replaced.
    fn push_found(&mut self, found: FoundPayload, quarters: u64) {
        self.replaced_quarters += quarters;
        self.found.push(found);
    }

    /// Returns a payload that covers a whole string.
    fn whole_string(&self, kind: PayloadKind, span: ByteSpan) -> FoundPayload {
        let (name, mime, call_id) = (None, None, String::new());
        let (content, replaced) = (self.inner_range(span), span_range(span));
        FoundPayload {
            kind,
            name,
            mime,
            call_id,
            content_range: content,
            is_text: true,
            replaced_range: replaced,
            form: ReferenceForm::Text,
        }
    }

    /// Returns the decoded text of a value.
    fn text(&self, span: ByteSpan) -> Cow<'_, str> {
        json::text(self.raw, span)
    }

    /// Returns whether a value is a JSON string.
    fn is_string(&self, span: ByteSpan) -> bool {
        json::kind(self.raw, span) == json::JsonKind::String
    }

    /// Returns the byte offsets of a value, without quotes if the value is a string.
    fn inner_range(&self, span: ByteSpan) -> (usize, usize) {
        let (from, to) = span_range(span);
        if self.is_string(span) { (from + 1, to - 1) } else { (from, to) }
    }

    /// Returns the quarter tokens of the decoded text between two offsets inside a string.
    fn quarter_tokens(&self, from: usize, to: usize) -> u64 {
        let mut meter = TokenMeter::default();
        let written = self.raw.get(from..to).unwrap_or_default();
        measure::walk(written, true, &mut |piece, _| {
            meter.push_text(piece);
            true
        });
        meter.quarter_tokens()
    }
}

/// Returns the start and end offsets of a span.
fn span_range(span: ByteSpan) -> (usize, usize) {
    let from = int::to_usize(u64::from(span.start));
    (from, from + int::to_usize(u64::from(span.length)))
}
