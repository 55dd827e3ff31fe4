//! From chosen items to the array that is returned.
//!
//! In the `lcm` dialect, messages that came in it go out byte for byte, and a summary is a user
//! message with its element; the dialects of the providers are [`dialect`]'s matter. Leading system
//! messages are returned beside the array in all of them.

use alloc::{rc::Rc, string::String, vec::Vec};

use crate::{
    api::{Dialect, Prefix},
    context::{Item, SummaryItem},
    error::Result,
    history::{History, Placed},
    json,
    keys::{self, Keys},
    message::{self, Part, Role},
    num,
    pack::Stored,
    reader::Reader,
    tokens,
};

use super::{
    accepted,
    choose::{Choice, Piece},
    dialect::{self, Entry, Note, Notes, Origin},
    marks::Marking,
};

/// Characters of one element's hash in a prefix token.
const MARK_CHARACTERS: usize = 6;
/// Bytes that an array may have more than the last one before it is copied.
const CAPACITY_SPARED: usize = 32 << 10;
/// First characters of a prefix token.
const TOKEN_VERSION: &str = "p1.";
/// Elements that a prefix token remembers.
const MARKS_MAX: usize = 8_192;

/// A rendered context.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) messages_json: String,
    pub(super) system: Option<String>,
    pub(super) tokens: u64,
    pub(super) summaries: u32,
    /// Each element with its hash and tokens, for comparison with an earlier assembly.
    elements: Vec<Element>,
    entries: Vec<Entry>,
    notes: Notes,
    marking: Marking,
    /// What the check of the array found, if it did.
    refused: Option<String>,
}

#[derive(Debug)]
struct Element {
    hash: [u8; 32],
    tokens: u64,
    /// Index of the item, and the first seq it stands for.
    place: (usize, u64),
    /// Index of its message and of its entry, if it is part of a provider's array.
    written: Option<(usize, usize)>,
}

impl Element {
    /// What a prefix token says of it.
    fn mark(&self) -> String {
        keys::base64url(&self.hash, MARK_CHARACTERS)
    }
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
    dialect: Dialect,
) -> Result<Rendered> {
    let marking = Marking::new(reader.marks(), history.keys.root());
    // About as many bytes as last time: growing step by step would copy all of it several times.
    let mut messages_json = String::with_capacity(marking.bytes() + CAPACITY_SPARED);
    messages_json.push('[');
    let mut out = Rendered { messages_json, marking, ..Rendered::default() };
    let mut leading = true;
    for (index, item) in items.iter().enumerate() {
        match item {
            Item::Summary(summary) if choice.has_summary(index) => {
                if dialect == Dialect::Lcm && out.repeat(summary, index) {
                    leading = false;
                    continue;
                }
                let records =
                    crate::compaction::records_of(reader, history, core::slice::from_ref(item))?;
                for record in records {
                    leading = false;
                    out.summaries += 1;
                    let raw = record.xml(summary.id);
                    if dialect == Dialect::Lcm {
                        out.summary(summary, index, &raw);
                        continue;
                    }
                    let (seq, origin) = (summary.seq_first, Origin::Summary);
                    out.entries.push(Entry { index, seq, origin, raw });
                }
            }
            Item::Summary(_) | Item::Withdrawn { .. } => {}
            Item::Run(run) => {
                let within = |seq: u64| run.seq_first <= seq && seq <= run.seq_last;
                for range in choice.ranges.iter().filter(|range| within(range.seq_first)) {
                    let (from, to) = (range.seq_first, range.seq_last);
                    let messages = history.messages(reader, from, to)?;
                    history.fetch_texts(reader, &messages)?;
                    for Placed { seq, dialect: shape, stored, .. } in messages {
                        let Stored { role, tokens, .. } = *stored;
                        let raw = history.shown(reader, &stored)?;
                        let parts = stored.shown().1;
                        leading &= role == Role::System;
                        let place = (index, seq);
                        if leading {
                            out.system_message(place, &raw, parts, tokens);
                        } else if dialect == Dialect::Lcm {
                            out.message(place, shape, &stored, &raw);
                        } else {
                            let (raw, parts) = (raw.into_owned(), parts.to_vec());
                            let origin = Origin::Message { dialect: shape, role, parts };
                            out.entries.push(Entry { index, seq, origin, raw });
                        }
                    }
                }
            }
        }
    }
    if dialect != Dialect::Lcm {
        out.finish(dialect);
    }
    out.messages_json.push(']');
    let bytes = out.messages_json.len();
    reader.keep_marks(core::mem::take(&mut out.marking).finish(bytes));
    Ok(out)
}

impl Rendered {
    /// Writes a summary that the last assembly wrote, too, if it did.
    fn repeat(&mut self, summary: &SummaryItem, index: usize) -> bool {
        let known = self.marking.known_summary(summary.id, summary.bytes);
        let Some((json, hash, tokens)) = known else { return false };
        self.summaries += 1;
        self.push(&json);
        self.element((index, summary.seq_first), hash, tokens);
        true
    }

    /// Writes a summary from its element.
    fn summary(&mut self, summary: &SummaryItem, index: usize, element: &str) {
        let mut json = String::with_capacity(element.len() + element.len() / 8);
        json.push_str("{\"role\":\"user\",\"content\":");
        json::write_string(&mut json, element);
        json.push('}');
        let tokens = u64::from(tokens::estimate(element));
        self.push(&json);
        let hash = self.marking.summary(summary.id, summary.bytes, &json, tokens);
        self.element((index, summary.seq_first), hash, tokens);
    }

    /// Writes a message that came in this shape.
    fn message(&mut self, place: (usize, u64), dialect: Dialect, stored: &Rc<Stored>, raw: &str) {
        if dialect == Dialect::Lcm {
            self.push(raw);
            let hash = self.marking.message(stored, raw);
            return self.element(place, hash, u64::from(stored.tokens));
        }
        let json = dialect::from_provider(dialect, stored.role, raw);
        let tokens = tokens::from_quarters(message::quarters(Dialect::Lcm, &json));
        self.push(&json);
        let hash = self.marking.text(&json);
        self.element(place, hash, u64::from(tokens));
    }

    /// Writes an element.
    fn push(&mut self, json: &str) {
        if self.messages_json.len() > 1 {
            self.messages_json.push(',');
        }
        self.messages_json.push_str(json);
    }

    /// Writes the entries that were kept.
    fn finish(&mut self, dialect: Dialect) {
        let output = dialect::render(dialect, &self.entries);
        self.messages_json.push_str(&output.json);
        self.notes = output.notes;
        for element in output.elements {
            if let Some(entry) = self.entries.get(element.entry) {
                let place = (entry.index, entry.seq);
                let hash = self.marking.text(&element.text);
                self.element(place, hash, element.tokens);
                if let Some(last) = self.elements.last_mut() {
                    last.written = Some((element.message, element.entry));
                }
            }
        }
    }

    fn element(&mut self, place: (usize, u64), hash: [u8; 32], tokens: u64) {
        self.tokens += tokens;
        self.elements.push(Element { hash, tokens, place, written: None });
    }

    fn system_message(&mut self, place: (usize, u64), raw: &str, parts: &[Part], tokens: u32) {
        let text = system_text(raw, parts);
        let hash = self.marking.text(&text);
        self.element(place, hash, u64::from(tokens));
        match &mut self.system {
            Some(system) => {
                system.push_str("\n\n");
                system.push_str(&text);
            }
            None => self.system = Some(text),
        }
    }

    /// Tokens of what a piece of the context became.
    pub(super) fn tokens_of(&self, piece: &Piece) -> u64 {
        let of_piece = self.elements.iter().filter(|element| piece.holds(element.place));
        of_piece.map(|element| element.tokens).sum()
    }

    /// What was done to a piece of the context; empty: nothing.
    pub(super) fn done_to(&self, piece: &Piece) -> String {
        self.notes.counts(&|at| {
            self.entries.get(at).is_some_and(|entry| piece.holds((entry.index, entry.seq)))
        })
    }

    /// What could not stay as it was, one line each.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut out = self.notes.warnings(&self.entries);
        out.extend(self.refused.clone());
        out
    }

    /// Leaves out what the provider would refuse, which is a defect of the rendering, and says so.
    pub(super) fn check(&mut self, dialect: Dialect) {
        if dialect == Dialect::Lcm || self.messages_json == "[]" {
            return;
        }
        let Some(kept) = accepted::accepted(dialect, &self.messages_json) else { return };
        let gone = |element: &Element| {
            let (message, entry) = element.written?;
            kept.left_out.binary_search(&message).ok().map(|_| entry)
        };
        for entry in self.elements.iter().filter_map(gone) {
            self.notes.add(entry, Note::Invalid);
        }
        self.elements.retain(|element| gone(element).is_none());
        self.tokens = self.elements.iter().map(|element| element.tokens).sum();
        let is_summary = |element: &&Element| {
            let entry = element.written.and_then(|(_, entry)| self.entries.get(entry));
            entry.is_some_and(|entry| matches!(entry.origin, Origin::Summary))
        };
        let summaries = self.elements.iter().filter(is_summary).count();
        self.summaries = u32::try_from(summaries).unwrap_or(u32::MAX);
        self.messages_json = kept.messages_json;
        self.refused = Some(kept.warning);
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

/// What is equal to the assembly that `previous` names; `keys` and `items` are those of the
/// context.
pub(super) fn prefix(
    rendered: &Rendered,
    previous: Option<&str>,
    keys: &Keys,
    items: &[Item],
) -> Prefix {
    let system = rendered.system.as_deref().unwrap_or("");
    let count = rendered.elements.len();
    let mut elements: Vec<u8> = Vec::with_capacity(count * 32);
    let mut token = String::with_capacity(TOKEN_VERSION.len() + count * MARK_CHARACTERS);
    token.push_str(TOKEN_VERSION);
    for (index, element) in rendered.elements.iter().enumerate() {
        elements.extend_from_slice(&element.hash);
        if index < MARKS_MAX {
            token.push_str(&element.mark());
        }
    }
    let hash = keys::hash(&[b"lcm assembly", system.as_bytes(), &elements]);
    let Some(old) = previous.and_then(|token| token.strip_prefix(TOKEN_VERSION)) else {
        return Prefix { stable_tokens: None, broken_by: None, sha256: keys::hex(&hash), token };
    };
    let mut stable = 0u64;
    let mut broken_by = None;
    for (index, element) in rendered.elements.iter().enumerate() {
        let from = index * MARK_CHARACTERS;
        match old.get(from..from + MARK_CHARACTERS) {
            Some(mark) if mark == element.mark() => stable += element.tokens,
            // What follows the end of the earlier assembly is new and breaks nothing.
            None => break,
            Some(_) => {
                broken_by = Some(match items.get(element.place.0) {
                    Some(Item::Summary(summary)) => crate::summary::name(summary.id),
                    _ => keys.message_name(element.place.1),
                });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Dialect;

    /// A context of a summary and a call that nobody answers, as only a defect would render it.
    #[test]
    fn what_a_provider_would_refuse_does_not_go_out() {
        let user = |text: &str| alloc::format!("{{\"role\":\"user\",\"content\":\"{text}\"}}");
        let call = "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\
                    \"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}}]}";
        let entry = |seq, origin| Entry { index: 0, seq, origin, raw: String::new() };
        let message =
            |role| Origin::Message { dialect: Dialect::OpenaiChat, role, parts: Vec::new() };
        let mut rendered = Rendered {
            messages_json: alloc::format!("[{},{},{call}]", user("summary"), user("q")),
            entries: Vec::from([
                entry(1, Origin::Summary),
                entry(9, message(Role::User)),
                entry(10, message(Role::Assistant)),
            ]),
            summaries: 1,
            ..Rendered::default()
        };
        for (at, tokens) in [(0, 5), (1, 7), (2, 11)] {
            rendered.element((0, at), [0; 32], tokens);
            rendered.elements.last_mut().unwrap().written =
                Some((usize::try_from(at).unwrap(), usize::try_from(at).unwrap()));
        }
        rendered.check(Dialect::OpenaiChat);
        assert_eq!(rendered.messages_json, alloc::format!("[{},{}]", user("summary"), user("q")));
        assert_eq!((rendered.tokens, rendered.summaries, rendered.elements.len()), (12, 1, 2));
        let warnings = rendered.warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("invalid-context: messages[2]: no result of the calls"));
        assert!(warnings[0].ends_with("; 1 messages left out"), "{warnings:?}");
        assert_eq!(rendered.notes.counts(&|at| at == 2), "invalid-context 1");
    }
}
