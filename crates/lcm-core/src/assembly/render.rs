//! From chosen items to the array that is returned, in the `lcm` dialect.
//!
//! Messages go out byte for byte as they came in; a summary is a user message with its element.
//! Leading system messages are returned beside the array.

use alloc::{format, string::String, vec::Vec};

use crate::{
    api::Prefix,
    context::Item,
    error::Result,
    history::History,
    json, keys,
    message::{Part, Role},
    num,
    pack::Stored,
    reader::Reader,
    tokens,
};

use super::choose::Choice;

/// Characters of one element's hash in a prefix token.
const MARK_CHARACTERS: usize = 6;
/// First characters of a prefix token.
const TOKEN_VERSION: &str = "p1.";
/// Elements that a prefix token remembers.
const MARKS_MAX: usize = 8_192;

/// A rendered context.
pub(super) struct Rendered {
    pub(super) messages_json: String,
    pub(super) system: Option<String>,
    pub(super) tokens: u64,
    pub(super) summaries: u32,
    /// Each element with its id, hash and tokens, for comparison with an earlier assembly.
    elements: Vec<Element>,
}

struct Element {
    id: String,
    mark: String,
    tokens: u64,
}

/// Renders what was chosen.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(super) fn render(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    items: &[Item],
    choice: &Choice,
) -> Result<Rendered> {
    let mut out = Rendered {
        messages_json: String::from("["),
        system: None,
        tokens: 0,
        summaries: 0,
        elements: Vec::new(),
    };
    let mut leading = true;
    for (index, item) in items.iter().enumerate() {
        match item {
            Item::Summary(summary) if choice.has_summary(index) => {
                let records =
                    crate::compaction::records_of(reader, history, core::slice::from_ref(item))?;
                for record in records {
                    leading = false;
                    out.summaries += 1;
                    out.summary(crate::summary::name(summary.id), &record.xml(summary.id));
                }
            }
            Item::Summary(_) => {}
            Item::Run(run) => {
                let within = |seq: u64| run.seq_first <= seq && seq <= run.seq_last;
                for range in choice.ranges.iter().filter(|range| within(range.seq_first)) {
                    let (from, to) = (range.seq_first, range.seq_last);
                    let messages = history.messages(reader, from, to)?;
                    history.fetch_texts(reader, &messages)?;
                    for placed in messages {
                        let raw = history.text(reader, &placed.stored)?;
                        leading &= placed.stored.role == Role::System;
                        let id = history.keys.message_name(placed.seq);
                        out.message(id, &raw, &placed.stored, leading);
                    }
                }
            }
        }
    }
    out.messages_json.push(']');
    Ok(out)
}

impl Rendered {
    fn push(&mut self, id: String, json: &str, tokens: u64) {
        if self.messages_json.len() > 1 {
            self.messages_json.push(',');
        }
        self.messages_json.push_str(json);
        self.element(id, json, tokens);
    }

    fn element(&mut self, id: String, text: &str, tokens: u64) {
        self.tokens += tokens;
        let mark =
            keys::base64url(&keys::hash(&[b"lcm element", text.as_bytes()]), MARK_CHARACTERS);
        self.elements.push(Element { id, mark, tokens });
    }

    fn summary(&mut self, id: String, xml: &str) {
        let mut json = String::from("{\"role\":\"user\",\"content\":");
        json::write_string(&mut json, xml);
        json.push('}');
        self.push(id, &json, u64::from(tokens::estimate(xml)));
    }

    fn message(&mut self, id: String, raw: &str, stored: &Stored, system: bool) {
        let tokens = u64::from(stored.tokens);
        if !system {
            self.push(id, raw, tokens);
            return;
        }
        let text = system_text(raw, &stored.parts);
        self.element(id, &text, tokens);
        match &mut self.system {
            Some(system) => {
                system.push_str("\n\n");
                system.push_str(&text);
            }
            None => self.system = Some(text),
        }
    }
}

/// The text of a system message.
fn system_text(raw: &str, parts: &[Part]) -> String {
    let texts: Vec<_> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(json::text(raw, *text)),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

/// What is equal to the assembly that `previous` names.
pub(super) fn prefix(rendered: &Rendered, previous: Option<&str>) -> Prefix {
    let system = rendered.system.as_deref().unwrap_or("");
    let hash = keys::hash(&[b"lcm assembly", system.as_bytes(), rendered.messages_json.as_bytes()]);
    let marks = rendered.elements.iter().take(MARKS_MAX).map(|element| element.mark.as_str());
    let token = format!("{TOKEN_VERSION}{}", marks.collect::<String>());
    let Some(old) = previous.and_then(|token| token.strip_prefix(TOKEN_VERSION)) else {
        return Prefix { stable_tokens: None, broken_by: None, sha256: keys::hex(&hash), token };
    };
    let mut stable = 0u64;
    let mut broken_by = None;
    for (index, element) in rendered.elements.iter().enumerate() {
        let from = index * MARK_CHARACTERS;
        match old.get(from..from + MARK_CHARACTERS) {
            Some(mark) if mark == element.mark => stable += element.tokens,
            // What follows the end of the earlier assembly is new and breaks nothing.
            None => break,
            Some(_) => {
                broken_by = Some(element.id.clone());
                break;
            }
        }
    }
    Prefix {
        stable_tokens: Some(num::tokens_u32(stable)),
        broken_by,
        sha256: keys::hex(&hash),
        token,
    }
}
