//! Writer of an array for a provider.
//!
//! In: messages as lists of JSON fragments, each with the entry that the fragment came from. Out:
//! the JSON, the offsets of the messages, and the elements. The dialects of all providers use the
//! writer.

use alloc::{string::String, vec::Vec};

use super::{OutputElement, RenderNote, RenderNotes};
use lcm_text::{
    base::{
        json::{self, StringPiece},
        tokens,
    },
    message::{self, provider_members},
    types::api::Dialect,
};

/// JSON of a block or message, with its entry.
#[derive(Clone, Debug)]
pub(super) struct JsonFragment {
    pub(super) entry: usize,
    /// The JSON that is compared with an earlier assembly.
    pub(super) json: String,
    /// The JSON that is written; `None`: `json` is written.
    pub(super) replacement: Option<String>,
    /// Quarters of a token that the fragment costs; `None`: those of its JSON.
    pub(super) quarters: Option<u64>,
    /// Whether the fragment is a placeholder turn that the provider requires.
    pub(super) is_synthetic: bool,
}

impl JsonFragment {
    /// Creates a fragment of an object, without the members that do not go out in the dialect.
    pub(super) fn strip_object(dialect: Dialect, entry: usize, json: String) -> Self {
        let stripped = provider_members::strip_members(dialect, &json);
        Self::new(entry, stripped.map_or(json, |(json, _)| json))
    }

    /// Removes bytes of a whole message at the start and at the end; the fragment keeps its cost.
    pub(super) fn cut_ends(&mut self, dialect: Dialect, start: usize, end: usize) {
        self.quarters = Some(message::quarter_tokens(dialect, &self.json));
        let kept = self.json.get(start..self.json.len().saturating_sub(end));
        self.json = String::from(kept.unwrap_or_default());
    }

    /// Creates a fragment. Lone surrogates in strings become U+FFFD.
    pub(super) fn new(entry: usize, json: String) -> Self {
        let json = replace_lone_surrogates(json);
        Self { entry, json, replacement: None, quarters: None, is_synthetic: false }
    }
}

/// A writer of the messages of one array.
#[derive(Debug)]
pub(super) struct ArrayWriter {
    dialect: Dialect,
    pub(super) json: String,
    pub(super) elements: Vec<OutputElement>,
    /// Byte offset of each message in `json`.
    pub(super) starts: Vec<usize>,
}

impl ArrayWriter {
    pub(super) const fn new(dialect: Dialect) -> Self {
        Self { dialect, json: String::new(), elements: Vec::new(), starts: Vec::new() }
    }

    /// Appends a message: `open`, the fragments separated by commas, `close`.
    ///
    /// The tokens of a message are rounded once. A fragment counts the tokens that it adds to the
    /// fragments before. Consecutive fragments of one entry become one element.
    pub(super) fn push_message(
        &mut self,
        open: &str,
        fragments: &[JsonFragment],
        close: &str,
        notes: &mut RenderNotes,
    ) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
        self.starts.push(self.json.len());
        self.json.push_str(open);
        let message = self.starts.len() - 1;
        let (mut quarters, mut counted, mut last) = (0, 0, None);
        for (at, fragment) in fragments.iter().enumerate() {
            if at > 0 {
                self.json.push(',');
            }
            let written = fragment.replacement.as_deref().unwrap_or(&fragment.json);
            self.json.push_str(written);
            let count = || message::quarter_tokens(self.dialect, written);
            quarters += fragment.quarters.unwrap_or_else(count);
            let total = u64::from(tokens::tokens_from_quarters(quarters));
            let tokens = total - counted;
            counted = total;
            match self.elements.last_mut().filter(|_| last == Some(fragment.entry)) {
                Some(element) => {
                    element.text.push_str(&fragment.json);
                    element.tokens += tokens;
                }
                None => {
                    if last.is_some() {
                        notes.add_note(fragment.entry, RenderNote::Merged);
                    }
                    // `open`, which has the role, is compared, too.
                    let open = if at == 0 { open } else { "" };
                    let (text, is_synthetic) =
                        ([open, &fragment.json].concat(), fragment.is_synthetic);
                    let entry = fragment.entry;
                    self.elements.push(OutputElement {
                        entry,
                        message,
                        text,
                        tokens,
                        is_synthetic,
                    });
                }
            }
            last = Some(fragment.entry);
        }
        self.json.push_str(close);
    }
}

/// Replaces every lone surrogate in a string by U+FFFD: providers read strict JSON.
fn replace_lone_surrogates(json: String) -> String {
    // An escape of a surrogate, D800 to DFFF, starts with `\ud` or `\uD`.
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some((before, inside)) = rest.split_once('"') {
        out.push_str(before);
        let length = literal_length(inside);
        let (literal, after) = inside.split_at_checked(length).unwrap_or((inside, ""));
        let mut lone = false;
        let quoted = alloc::format!("\"{literal}");
        json::each_piece(&quoted, &mut |piece| {
            lone |= matches!(piece, StringPiece::LoneSurrogate(_))
        });
        if lone {
            let mut text = String::new();
            json::each_text(&quoted, &mut |piece| text.push_str(piece));
            json::write_string(&mut out, &text);
        } else {
            out.push_str(&quoted);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the length in bytes of a string literal without its opening quote and with its closing
/// quote; `inside` starts behind the opening quote.
fn literal_length(inside: &str) -> usize {
    let mut escaped = false;
    let end = inside.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.map_or(inside.len(), |end| end + 1)
}
