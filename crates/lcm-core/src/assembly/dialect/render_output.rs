//! Output of rendering entries for a provider: the array, its elements and notes. The cache of
//! arrays appends the output to an array.

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
    /// Hashes of the ids of calls, results and items, each with the index of its entry.
    pub(in crate::assembly) ids: Vec<(u64, usize)>,
    /// Index of the entry of a call and of its result, where the two differ.
    pub(in crate::assembly) pairs: Vec<(usize, usize)>,
    /// Whether the entries can be rendered without the entries before, unless they share an id.
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
    /// Tokens of these blocks: a share of the tokens of the message.
    pub(in crate::assembly) tokens: u64,
    /// Whether the element is a placeholder turn that the provider requires.
    pub(in crate::assembly) is_synthetic: bool,
}
