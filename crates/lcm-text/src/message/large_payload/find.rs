//! Which spans of a message are payloads.
//!
//! A file block, a file and the result of a tool are judged each alone, by the tokens of what they
//! hold. A message that is still too large without them gives up its longest texts, one by one.
//! Never a payload: what the system says, because instructions must be read; thoughts and the
//! arguments of calls, because providers want them back as they were; images and other data that
//! providers count by the piece; and what the tools of this engine answer.

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::{Form, Found, Kind, blocks, measure};
use crate::message::trust::BACKGROUND;
use crate::{
    base::{
        int,
        json::{self, Span},
        sort, tokens,
    },
    message::{self, Message, Part, Role},
    types::api::Dialect,
};

/// Payloads of one message, the longest if it has more: each is a write of the commit that stores
/// it, which has 256.
const PAYLOADS_MAX: usize = 64;
/// Tokens from which a stretch of text is worth a reference, which has about 300 itself.
const STRETCH_TOKENS_MIN: u64 = 1_000;

struct Finder<'a> {
    raw: &'a str,
    dialect: Dialect,
    /// The threshold, in quarter tokens.
    quarters_min: u64,
    found: Vec<Found>,
    /// Texts that may still become payloads.
    stretches: Vec<Stretch>,
    /// Quarter tokens of what was said and became a payload.
    replaced: u64,
}

/// A text that may still become a payload.
#[derive(Debug)]
struct Stretch {
    quarters: u64,
    /// Whether it is a file block.
    is_block: bool,
    found: Found,
}

/// The payloads of a message in order.
pub(super) fn find(dialect: Dialect, raw: &str, message: &Message, tokens_min: u32) -> Vec<Found> {
    let quarters_min = u64::from(tokens_min).saturating_mul(4).saturating_sub(3);
    let (found, stretches) = (Vec::new(), Vec::new());
    let mut finder = Finder { raw, dialect, quarters_min, found, stretches, replaced: 0 };
    if message.role == Role::System {
        return finder.found;
    }
    for part in &message.parts {
        finder.part(part, message.role);
    }
    let is_replayed = |part: &Part| {
        matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. } | Part::Reasoning { .. })
    };
    if !message.parts.iter().any(is_replayed) {
        finder.raw_payloads(u64::from(message.tokens) * 4);
    }
    let mut found = finder.found;
    if found.len() > PAYLOADS_MAX {
        let length = |found: &Found| found.content.1 - found.content.0;
        sort::sort_by(&mut found, &mut |a, b| length(b).cmp(&length(a)));
        found.truncate(PAYLOADS_MAX);
    }
    sort::sort_by(&mut found, &mut |a, b| a.replaced.cmp(&b.replaced));
    found
}

impl Finder<'_> {
    fn part(&mut self, part: &Part, role: Role) {
        match *part {
            Part::Text { text } if role == Role::Tool => {
                self.output(text, None, None);
            }
            Part::Text { text } if json::kind(self.raw, text) == json::Kind::String => {
                self.said(text, role);
            }
            Part::ToolResult { call_id, name, output: Some(output), .. } => {
                self.output(output, name, call_id);
            }
            Part::File { name, mime, text: Some(text), .. } => {
                let [name, mime] =
                    [name, mime].map(|span| span.map(|span| self.text(span).into_owned()));
                let (from, to) = self.inside(text);
                let quarters = self.quarters(from, to);
                if self.is_string(text) && quarters >= self.quarters_min {
                    let found = Found { name, mime, ..self.whole(Kind::File, text) };
                    self.push(found, quarters);
                }
            }
            _ => {}
        }
    }

    /// File blocks of what was said, and the stretches around them.
    fn said(&mut self, text: Span, role: Role) {
        let (first, end) = self.inside(text);
        let mut from = first;
        let written = self.raw.get(..end).unwrap_or_default();
        if role == Role::User && self.quarters(first, end) >= self.quarters_min {
            let mut at = first;
            while let Some(block) = blocks::next(written, at) {
                at = block.whole.1;
                self.stretch(from, block.whole.0, false);
                from = block.whole.1;
                let quarters = self.quarters(block.content.0, block.content.1);
                let found = Found {
                    kind: Kind::File,
                    name: block.name,
                    mime: block.mime,
                    call_id: String::new(),
                    content: block.content,
                    is_text: true,
                    replaced: block.whole,
                    form: Form::Inside,
                };
                if quarters >= self.quarters_min {
                    self.push(found, quarters);
                } else {
                    self.stretches.push(Stretch { quarters, is_block: true, found });
                }
            }
        }
        self.stretch(from, end, from == first);
    }

    fn stretch(&mut self, from: usize, to: usize, is_whole: bool) {
        let quarters = self.quarters(from, to);
        let quotes = usize::from(is_whole);
        let found = Found {
            kind: Kind::RawPayload,
            name: None,
            mime: None,
            call_id: String::new(),
            content: (from, to),
            is_text: true,
            replaced: (from - quotes, to + quotes),
            form: if is_whole { Form::Text } else { Form::Inside },
        };
        self.stretches.push(Stretch { quarters, is_block: false, found });
    }

    /// The longest texts, while the message is too large without them and its longest file block:
    /// a block alone stays as long as it is none of the large ones.
    fn raw_payloads(&mut self, total: u64) {
        let mut stretches = core::mem::take(&mut self.stretches);
        stretches.retain(|one| one.quarters >= STRETCH_TOKENS_MIN * 4);
        sort::sort_by(&mut stretches, &mut |a, b| {
            (a.quarters, a.found.replaced).cmp(&(b.quarters, b.found.replaced))
        });
        loop {
            let block = stretches.iter().rev().find(|one| one.is_block);
            let kept = self.replaced + block.map_or(0, |block| block.quarters);
            if total.saturating_sub(kept) < self.quarters_min {
                return;
            }
            let Some(Stretch { found, quarters, .. }) = stretches.pop() else { return };
            self.push(found, quarters);
        }
    }

    /// What a tool returned: a string, the texts in it, or all of it.
    fn output(&mut self, output: Span, tool: Option<Span>, call_id: Option<Span>) {
        let tool = tool.map(|span| self.text(span).into_owned());
        let call_id = call_id.map(|span| self.text(span).into_owned()).unwrap_or_default();
        let part =
            Part::ToolResult { call_id: None, name: None, output: Some(output), is_error: false };
        let total = message::part_quarters(self.raw, &part);
        if total < self.quarters_min || self.is_ours(output, tool.as_deref()) {
            return;
        }
        let found =
            |payload: Found| Found { name: tool.clone(), call_id: call_id.clone(), ..payload };
        if self.is_string(output) {
            let payload = found(self.whole(Kind::ToolOutput, output));
            return self.found.push(payload);
        }
        let mut texts: Vec<(u64, Span)> = Vec::new();
        for span in self.texts_inside(output) {
            let (from, to) = self.inside(span);
            texts.push((self.quarters(from, to), span));
        }
        sort::sort_by(&mut texts, &mut |a, b| (a.0, a.1.start).cmp(&(b.0, b.1.start)));
        let mut rest = total;
        let mut chosen = Vec::new();
        while rest >= self.quarters_min {
            let Some((quarters, span)) = texts.pop() else { break };
            if quarters < STRETCH_TOKENS_MIN * 4 {
                break;
            }
            rest = rest.saturating_sub(quarters);
            chosen.push(span);
        }
        if rest < self.quarters_min {
            for span in chosen {
                let payload = found(self.whole(Kind::ToolOutput, span));
                self.found.push(payload);
            }
            return;
        }
        let (from, to) = ends(output);
        let form = if self.dialect == Dialect::Gemini { Form::Object } else { Form::Text };
        let all = Found {
            content: (from, to),
            is_text: false,
            form,
            ..self.whole(Kind::ToolOutput, output)
        };
        self.found.push(found(all));
    }

    /// The strings directly in an object, and of a list its strings and the texts of its blocks.
    fn texts_inside(&self, output: Span) -> Vec<Span> {
        let mut texts = Vec::new();
        let raw = self.raw;
        json::each_member(raw, output, |member| {
            texts.extend((member.kind == json::Kind::String).then_some(member.value));
        });
        json::each_element(raw, output, |element| match element.kind {
            json::Kind::String => texts.push(element.span),
            json::Kind::Object => {
                let members = json::members(raw, element.span);
                let text = json::member(&members, raw, "text");
                let text = text.filter(|member| member.kind == json::Kind::String);
                texts.extend(text.map(|member| member.value));
            }
            _ => {}
        });
        texts
    }

    /// Whether it is an answer of this engine: it was asked for in order to be read.
    fn is_ours(&self, output: Span, tool: Option<&str>) -> bool {
        if tool.is_some_and(|tool| tool.starts_with("lcm_")) {
            return true;
        }
        // Not decoded for nothing: it may have megabytes.
        let (from, to) = self.inside(output);
        let written = self.raw.get(from..to).unwrap_or_default();
        let begins = |span: Span| {
            let (from, to) = self.inside(span);
            self.raw.get(from..to).is_some_and(|text| text.starts_with(BACKGROUND))
        };
        let first =
            if self.is_string(output) { None } else { self.texts_inside(output).first().copied() };
        if begins(first.unwrap_or(output)) {
            return true;
        }
        if !written.trim_start().starts_with(['{', '\\']) {
            return false;
        }
        let text = self.text(output);
        let Ok(members) = json::object(&text) else { return false };
        let has = |key: &str| json::member(&members, &text, key).map(|member| member.value);
        let names = ["exploration", "descendant_count", "raw"];
        let id = has("id").map(|id| json::text(&text, id));
        let kinds = ["file_", "sum_", "msg_"];
        let is_id = |id: &str| {
            let digits = kinds.iter().find_map(|kind| id.strip_prefix(kind));
            digits.is_some_and(|digits| digits.len() == 16)
        };
        id.is_some_and(|id| is_id(&id)) && names.iter().any(|key| has(key).is_some())
    }

    /// Adds a payload of a message that may give up further texts.
    fn push(&mut self, found: Found, quarters: u64) {
        self.replaced += quarters;
        self.found.push(found);
    }

    /// A payload that is all of a string.
    fn whole(&self, kind: Kind, span: Span) -> Found {
        let (name, mime, call_id) = (None, None, String::new());
        let (content, replaced) = (self.inside(span), ends(span));
        Found { kind, name, mime, call_id, content, is_text: true, replaced, form: Form::Text }
    }

    fn text(&self, span: Span) -> Cow<'_, str> {
        json::text(self.raw, span)
    }

    fn is_string(&self, span: Span) -> bool {
        json::kind(self.raw, span) == json::Kind::String
    }

    /// Offsets of what stands between the quotes.
    fn inside(&self, span: Span) -> (usize, usize) {
        let (from, to) = ends(span);
        if self.is_string(span) { (from + 1, to - 1) } else { (from, to) }
    }

    /// Quarter tokens of the decoded text between two offsets inside a string.
    fn quarters(&self, from: usize, to: usize) -> u64 {
        let mut sum = 0;
        let written = self.raw.get(from..to).unwrap_or_default();
        measure::walk(written, true, &mut |piece, _| {
            sum += tokens::quarters(piece);
            true
        });
        sum
    }
}

fn ends(span: Span) -> (usize, usize) {
    let from = int::to_usize(u64::from(span.start));
    (from, from + int::to_usize(u64::from(span.length)))
}
