//! Output of rendering: the array, and the element that each entry became.

use alloc::{string::String, vec::Vec};

use super::render_notes::RenderNotes;

/// Output of rendering entries.
#[derive(Clone, Debug, Default)]
pub(in crate::assembly) struct RenderOutput {
    /// The messages, separated by commas, without the brackets.
    pub(in crate::assembly) json: String,
    /// Byte offset of each message in `json`.
    pub(in crate::assembly) starts: Vec<usize>,
    /// The elements, in the order of the array.
    pub(in crate::assembly) elements: Vec<OutputElement>,
    pub(in crate::assembly) notes: RenderNotes,
    /// Hashes of call and item ids, each with the index of its entry.
    pub(in crate::assembly) ids: Vec<(u64, usize)>,
    /// Entry of a call and entry of its result, where they differ.
    pub(in crate::assembly) pairs: Vec<(usize, usize)>,
    /// Whether the first entry does not depend on its neighbours, if they share no id with it.
    pub(in crate::assembly) is_independent: bool,
}

/// Neighbouring blocks of one message that come from the same entry.
#[derive(Clone, Debug)]
pub(in crate::assembly) struct OutputElement {
    /// Index of the entry.
    pub(in crate::assembly) entry: usize,
    /// Index of the message.
    pub(in crate::assembly) message: usize,
    /// The text that is compared with an earlier assembly.
    pub(in crate::assembly) text: String,
    /// Share of the tokens of the message.
    pub(in crate::assembly) tokens: u64,
    /// Whether the element is a placeholder turn that the provider requires.
    pub(in crate::assembly) is_synthetic: bool,
}
