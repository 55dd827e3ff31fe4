//! What rendering returns: the array, and what each entry became in it.

use alloc::{string::String, vec::Vec};

use super::render_notes::RenderNotes;

/// A rendered array.
#[derive(Clone, Debug, Default)]
pub(in crate::assembly) struct RenderOutput {
    /// The messages, with commas between, without the brackets.
    pub(in crate::assembly) json: String,
    /// Where each message begins in it.
    pub(in crate::assembly) starts: Vec<usize>,
    /// What the entries became, in the order of the array.
    pub(in crate::assembly) elements: Vec<OutputElement>,
    pub(in crate::assembly) notes: RenderNotes,
    /// What the entries go by, each with the index of an entry.
    pub(in crate::assembly) ids: Vec<(u64, usize)>,
    /// The entries of a call and of its answer, where they are two.
    pub(in crate::assembly) pairs: Vec<(usize, usize)>,
    /// Whether the first entry is the same whatever stands before and behind it, as long as ids
    /// agree with none elsewhere.
    pub(in crate::assembly) is_independent: bool,
}

/// Neighbouring blocks of one message that come from one entry.
#[derive(Clone, Debug)]
pub(in crate::assembly) struct OutputElement {
    /// Index of the entry.
    pub(in crate::assembly) entry: usize,
    /// Index of the message.
    pub(in crate::assembly) message: usize,
    /// What is compared with an earlier assembly.
    pub(in crate::assembly) text: String,
    /// Its share of the tokens of its message.
    pub(in crate::assembly) tokens: u64,
    /// Whether nobody said it: a turn that the provider asks for, beside the entry.
    pub(in crate::assembly) is_synthetic: bool,
}
