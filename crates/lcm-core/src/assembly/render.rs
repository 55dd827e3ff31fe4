//! From chosen items to the array that is returned.
//!
//! In the `lcm` dialect, messages that came in it go out byte for byte, and a summary is a user
//! message with its element; the dialects of the providers are [`dialect`]'s matter. Leading system
//! messages are returned beside the array in all of them.

use alloc::{format, string::String, vec::Vec};

use crate::{
    api::{Dialect, Prefix},
    context::Item,
    error::Result,
    history::{History, Placed},
    json, keys,
    message::{self, Part, Role},
    num,
    pack::Stored,
    reader::Reader,
    tokens,
};

use super::{
    choose::{Choice, Piece},
    dialect::{self, Entry, Notes, Origin},
    marks::Marking,
};

/// Characters of one element's hash in a prefix token.
const MARK_CHARACTERS: usize = 6;
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
    /// Each element with its id, hash and tokens, for comparison with an earlier assembly.
    elements: Vec<Element>,
    entries: Vec<Entry>,
    notes: Notes,
    marking: Marking,
}

#[derive(Debug)]
struct Element {
    id: String,
    hash: [u8; 32],
    tokens: u64,
    /// Index of the item, and the first seq it stands for.
    place: (usize, u64),
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
    let mut out = Rendered {
        messages_json: String::from("["),
        marking: Marking::new(reader.marks()),
        ..Rendered::default()
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
                    let (id, raw) = (crate::summary::name(summary.id), record.xml(summary.id));
                    let (seq, origin) = (summary.seq_first, Origin::Summary);
                    out.take(dialect, Entry { id, index, seq, origin, raw });
                }
            }
            Item::Summary(_) => {}
            Item::Run(run) => {
                let within = |seq: u64| run.seq_first <= seq && seq <= run.seq_last;
                for range in choice.ranges.iter().filter(|range| within(range.seq_first)) {
                    let (from, to) = (range.seq_first, range.seq_last);
                    let messages = history.messages(reader, from, to)?;
                    history.fetch_texts(reader, &messages)?;
                    for Placed { seq, dialect: shape, stored, .. } in messages {
                        let Stored { raw, role, tokens, parts, .. } = stored;
                        let raw = history.taken(reader, raw)?;
                        leading &= role == Role::System;
                        let id = history.keys.message_name(seq);
                        if leading {
                            out.system_message((index, seq), id, &raw, &parts, tokens);
                        } else {
                            let origin = Origin::Message { dialect: shape, role, parts, tokens };
                            out.take(dialect, Entry { id, index, seq, origin, raw });
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
    reader.keep_marks(core::mem::take(&mut out.marking).finish());
    Ok(out)
}

impl Rendered {
    /// Writes an entry, or keeps it until all are known: a provider's rules are about all of them.
    fn take(&mut self, dialect: Dialect, entry: Entry) {
        if dialect != Dialect::Lcm {
            self.entries.push(entry);
            return;
        }
        let place = (entry.index, entry.seq);
        let (json, tokens) = match entry.origin {
            Origin::Summary => {
                let mut json = String::from("{\"role\":\"user\",\"content\":");
                json::write_string(&mut json, &entry.raw);
                json.push('}');
                (json, u64::from(tokens::estimate(&entry.raw)))
            }
            Origin::Message { dialect: Dialect::Lcm, tokens, .. } => (entry.raw, u64::from(tokens)),
            Origin::Message { dialect, role, .. } => {
                let json = dialect::from_provider(dialect, role, &entry.raw);
                let quarters = message::quarters(Dialect::Lcm, &json);
                (json, u64::from(tokens::from_quarters(quarters)))
            }
        };
        if self.messages_json.len() > 1 {
            self.messages_json.push(',');
        }
        self.messages_json.push_str(&json);
        self.element(place, entry.id, &json, tokens);
    }

    /// Writes the entries that were kept.
    fn finish(&mut self, dialect: Dialect) {
        let output = dialect::render(dialect, &self.entries);
        self.messages_json.push_str(&output.json);
        self.notes = output.notes;
        for element in output.elements {
            if let Some(entry) = self.entries.get(element.entry) {
                let (place, id) = ((entry.index, entry.seq), entry.id.clone());
                self.element(place, id, &element.text, element.tokens);
            }
        }
    }

    fn element(&mut self, place: (usize, u64), id: String, text: &str, tokens: u64) {
        self.tokens += tokens;
        let hash = self.marking.hash(text);
        self.elements.push(Element { id, hash, tokens, place });
    }

    fn system_message(
        &mut self,
        place: (usize, u64),
        id: String,
        raw: &str,
        parts: &[Part],
        tokens: u32,
    ) {
        let text = system_text(raw, parts);
        self.element(place, id, &text, u64::from(tokens));
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
        self.notes.warnings(&self.entries)
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
    let elements: Vec<[u8; 32]> = rendered.elements.iter().map(|element| element.hash).collect();
    let hash = keys::hash(&[b"lcm assembly", system.as_bytes(), elements.as_flattened()]);
    let marks = rendered.elements.iter().take(MARKS_MAX).map(Element::mark);
    let token = format!("{TOKEN_VERSION}{}", marks.collect::<String>());
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
