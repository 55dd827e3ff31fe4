//! Renders what was chosen in the dialects of the providers.
//!
//! In: the chosen messages and summaries in order. Out: the JSON array, what each of them became in
//! it, and notes on what could not stay as it was. The steps: every entry becomes a turn of blocks
//! ([`turns`]), calls and results find each other ([`pair`]), the dialect writes the turns down.
//! What is chosen is decided before; nothing here reads the store.

mod alternate;
mod answer;
mod anthropic;
mod file;
mod gemini;
mod lcm;
mod note;
mod openai_chat;
mod openai_responses;
mod pair;
mod sink;
mod turns;

#[cfg(test)]
mod tests;

use alloc::{string::String, vec::Vec};

pub(super) use self::{
    lcm::from_provider,
    note::{Note, Notes},
};
use crate::{
    api::Dialect,
    message::{Part, Role},
};

/// Members of messages for OpenAI that are the host's and not the provider's; the first one can be
/// either's.
const OF_HOST: [&str; 7] =
    ["id", "timestamp", "event_key", "speaker", "session", "trust", "stop_reason"];

/// One chosen message or summary.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Index of its item in the stored context.
    pub(super) index: usize,
    /// Seq of the message, or of the first one that the summary stands for.
    pub(super) seq: u64,
    pub(super) origin: Origin,
    /// JSON of the message, or the element of the summary.
    pub(super) raw: String,
}

/// What an entry is.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Summary,
    Message { dialect: Dialect, role: Role, parts: Vec<Part> },
}

/// A rendered array.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    /// The messages, with commas between, without the brackets.
    pub(super) json: String,
    /// What the entries became, in the order of the array.
    pub(super) elements: Vec<Element>,
    pub(super) notes: Notes,
}

/// Neighbouring blocks of one message that come from one entry.
#[derive(Clone, Debug)]
pub(super) struct Element {
    /// Index of the entry.
    pub(super) entry: usize,
    /// Index of the message.
    pub(super) message: usize,
    /// What is compared with an earlier assembly.
    pub(super) text: String,
    /// Its share of the tokens of its message.
    pub(super) tokens: u64,
}

/// Renders entries; those that stand beside the array are not among them.
pub(super) fn render(dialect: Dialect, entries: &[Entry]) -> Output {
    let mut notes = Notes::default();
    let mut turns = turns::of(dialect, entries);
    pair::pair(dialect, &mut turns, &mut notes);
    let sink = match dialect {
        Dialect::Anthropic => anthropic::write(&turns, &mut notes),
        Dialect::OpenaiResponses => openai_responses::write(&turns, &mut notes),
        Dialect::Gemini => gemini::write(&turns, entries, &mut notes),
        // Messages for `lcm` are written as they are and never come here.
        Dialect::OpenaiChat | Dialect::Lcm => openai_chat::write(&turns, &mut notes),
    };
    Output { json: sink.json, elements: sink.elements, notes }
}
