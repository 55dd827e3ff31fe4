//! Renders what was chosen in the dialects of the providers.
//!
//! In: the chosen messages and summaries in order. Out: the JSON array, what each of them became in
//! it, and notes on what could not stay as it was. The steps: every entry becomes a turn of blocks
//! ([`turns`]), calls and results find each other ([`pair`]), the dialect writes the turns down.
//! What is chosen is decided before; nothing here reads the store.

mod anthropic;
mod array_writer;
mod file_content;
mod gemini;
mod ids;
mod lcm;
mod normalize;
mod openai_chat;
mod openai_responses;
mod pair_tool_calls;
mod render_notes;
mod role_alternation;
mod tool_output;

#[cfg(test)]
mod tests;

use alloc::{rc::Rc, string::String, vec::Vec};

pub(super) use self::{
    anthropic::push_with_cache_control,
    lcm::from_provider,
    render_notes::{RenderNote, RenderNotes},
};
use crate::storage::pack::{RawText, StoredMessage};
use lcm_text::{
    message::{Part, Role},
    types::api::Dialect,
};

/// Members of messages for OpenAI that are the host's and not the provider's; the first one can be
/// either's.
const HOST_MEMBERS: [&str; 7] =
    ["id", "timestamp", "event_key", "speaker", "session", "trust", "stop_reason"];

/// One chosen message or summary.
#[derive(Clone, Debug)]
pub(super) struct RenderEntry {
    /// Index of its item in the stored context.
    pub(super) index: usize,
    /// Seq of the message, or of the first one that the summary stands for.
    pub(super) seq: u64,
    pub(super) origin: EntryOrigin,
    pub(super) text: EntryText,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EntryOrigin {
    /// A summary with its id and the size of its record, which name its text.
    Summary([u8; 8], u32),
    Message {
        dialect: Dialect,
        role: Role,
    },
}

/// Where the text of an entry stands.
#[derive(Clone, Debug)]
pub(super) enum EntryText {
    /// What is shown of a message, in the pack that it is read from.
    Stored(Rc<StoredMessage>),
    /// JSON of a message with its parts, or the element of a summary.
    Own(Rc<str>, Rc<[Part]>),
}

impl RenderEntry {
    /// JSON of the message, or the element of the summary.
    pub(super) fn raw_text(&self) -> &str {
        match &self.text {
            EntryText::Own(raw, _) => raw,
            EntryText::Stored(stored) => match stored.rendered_content().0 {
                RawText::Inline(raw) => raw,
                // Such a text is read into an entry of its own.
                RawText::Chunked { .. } => "",
            },
        }
    }

    pub(super) fn parts(&self) -> &[Part] {
        match &self.text {
            EntryText::Own(_, parts) => parts,
            EntryText::Stored(stored) => stored.rendered_content().1,
        }
    }

    /// Whether everything is equal that rendering goes by.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let is_one = match (&self.text, &other.text) {
            (EntryText::Stored(one), EntryText::Stored(other)) => Rc::ptr_eq(one, other),
            (EntryText::Own(one, _), EntryText::Own(other, _)) => Rc::ptr_eq(one, other),
            _ => false,
        };
        self.seq == other.seq
            && self.origin == other.origin
            && (is_one || (self.raw_text() == other.raw_text() && self.parts() == other.parts()))
    }
}

/// A rendered array.
#[derive(Clone, Debug, Default)]
pub(super) struct RenderOutput {
    /// The messages, with commas between, without the brackets.
    pub(super) json: String,
    /// Where each message begins in it.
    pub(super) starts: Vec<usize>,
    /// What the entries became, in the order of the array.
    pub(super) elements: Vec<OutputElement>,
    pub(super) notes: RenderNotes,
    /// What the entries go by, each with the index of an entry.
    pub(super) ids: Vec<(u64, usize)>,
    /// The entries of a call and of its answer, where they are two.
    pub(super) pairs: Vec<(usize, usize)>,
    /// Whether the first entry is the same whatever stands before and behind it, as long as ids
    /// agree with none elsewhere.
    pub(super) is_independent: bool,
}

/// Neighbouring blocks of one message that come from one entry.
#[derive(Clone, Debug)]
pub(super) struct OutputElement {
    /// Index of the entry.
    pub(super) entry: usize,
    /// Index of the message.
    pub(super) message: usize,
    /// What is compared with an earlier assembly.
    pub(super) text: String,
    /// Its share of the tokens of its message.
    pub(super) tokens: u64,
    /// Whether nobody said it: a turn that the provider asks for, beside the entry.
    pub(super) is_synthetic: bool,
}

/// Renders entries; those that stand beside the array are not among them. `begun`: others were
/// rendered before them.
pub(super) fn render(dialect: Dialect, entries: &[RenderEntry], begun: bool) -> RenderOutput {
    let mut notes = RenderNotes::default();
    let mut turns = normalize::normalize_entries(dialect, entries);
    let mut ids = Vec::new();
    ids::collect_ids(&turns, &mut ids);
    let stands_alone = ids::is_independent(&turns);
    let pairs = pair_tool_calls::pair_calls(dialect, &mut turns, &mut notes);
    // Those that pairing made up, too.
    ids::collect_ids(&turns, &mut ids);
    let sink = match dialect {
        Dialect::Anthropic => anthropic::write(&turns, begun, &mut notes),
        Dialect::OpenaiResponses => openai_responses::write(&turns, &mut notes),
        Dialect::Gemini => gemini::write(&turns, entries, begun, &mut notes),
        // Messages for `lcm` are written as they are and never come here.
        Dialect::OpenaiChat | Dialect::Lcm => openai_chat::write(&turns, &mut notes),
    };
    let array_writer::ArrayWriter { json, starts, elements, .. } = sink;
    RenderOutput { json, starts, elements, notes, ids, pairs, is_independent: stands_alone }
}
