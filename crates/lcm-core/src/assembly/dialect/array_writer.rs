//! The array that is written, and what each entry became in it.

use alloc::{string::String, vec::Vec};

use super::{OutputElement, RenderNote, RenderNotes};
use lcm_text::{
    base::{
        json::{self, StringPiece},
        tokens,
    },
    message,
    types::api::Dialect,
};

/// JSON that goes out, with the entry it stands for.
#[derive(Clone, Debug)]
pub(super) struct JsonFragment {
    pub(super) entry: usize,
    /// What it says; compared with an earlier assembly.
    pub(super) json: String,
    /// What is written in its place, when that differs.
    pub(super) replacement: Option<String>,
    /// Whether nobody said it: a turn that the provider asks for.
    pub(super) is_synthetic: bool,
}

impl JsonFragment {
    pub(super) fn new(entry: usize, json: String) -> Self {
        Self { entry, json: replace_lone_surrogates(json), replacement: None, is_synthetic: false }
    }
}

/// Writes the messages of one array.
#[derive(Debug)]
pub(super) struct ArrayWriter {
    dialect: Dialect,
    pub(super) json: String,
    pub(super) elements: Vec<OutputElement>,
    /// Where each message begins.
    pub(super) starts: Vec<usize>,
}

impl ArrayWriter {
    pub(super) const fn new(dialect: Dialect) -> Self {
        Self { dialect, json: String::new(), elements: Vec::new(), starts: Vec::new() }
    }

    /// Writes one message: what opens it, its pieces with commas between, what closes it.
    ///
    /// A message is rounded once; each piece has the tokens that it adds to those before it.
    pub(super) fn push_message(
        &mut self,
        open: &str,
        bits: &[JsonFragment],
        close: &str,
        notes: &mut RenderNotes,
    ) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
        self.starts.push(self.json.len());
        self.json.push_str(open);
        let message = self.starts.len() - 1;
        let (mut quarters, mut told, mut last) = (0, 0, None);
        for (at, bit) in bits.iter().enumerate() {
            if at > 0 {
                self.json.push(',');
            }
            let written = bit.replacement.as_deref().unwrap_or(&bit.json);
            self.json.push_str(written);
            quarters += message::quarter_tokens(self.dialect, written);
            let total = u64::from(tokens::tokens_from_quarters(quarters));
            let tokens = total - told;
            told = total;
            match self.elements.last_mut().filter(|_| last == Some(bit.entry)) {
                Some(element) => {
                    element.text.push_str(&bit.json);
                    element.tokens += tokens;
                }
                None => {
                    if last.is_some() {
                        notes.add_note(bit.entry, RenderNote::Merged);
                    }
                    // Who says it is compared, too, and where a message begins.
                    let open = if at == 0 { open } else { "" };
                    let (text, is_synthetic) = ([open, &bit.json].concat(), bit.is_synthetic);
                    let entry = bit.entry;
                    self.elements.push(OutputElement {
                        entry,
                        message,
                        text,
                        tokens,
                        is_synthetic,
                    });
                }
            }
            last = Some(bit.entry);
        }
        self.json.push_str(close);
    }
}

/// The JSON with U+FFFD for each half of a surrogate pair: providers read strict JSON.
fn replace_lone_surrogates(json: String) -> String {
    // Any such half is an escape of D800 to DFFF.
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

/// Bytes of a string literal behind its opening quote, with the closing one.
fn literal_length(inside: &str) -> usize {
    let mut escaped = false;
    let end = inside.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.map_or(inside.len(), |end| end + 1)
}
