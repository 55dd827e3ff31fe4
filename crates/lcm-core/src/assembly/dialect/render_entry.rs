//! What is rendered: one chosen message or summary, with the place of its text.

use alloc::rc::Rc;

use crate::storage::pack::{RawText, StoredMessage};
use lcm_text::{
    message::{Part, Role},
    types::api::Dialect,
};

/// One chosen message or summary.
#[derive(Clone, Debug)]
pub(in crate::assembly) struct RenderEntry {
    /// Index of its item in the stored context.
    pub(in crate::assembly) index: usize,
    /// Seq of the message, or of the first one that the summary stands for.
    pub(in crate::assembly) seq: u64,
    pub(in crate::assembly) origin: EntryOrigin,
    pub(in crate::assembly) text: EntryText,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::assembly) enum EntryOrigin {
    /// A summary with its id and the size of its record, which name its text.
    Summary([u8; 8], u32),
    Message {
        dialect: Dialect,
        role: Role,
    },
}

/// Where the text of an entry stands.
#[derive(Clone, Debug)]
pub(in crate::assembly) enum EntryText {
    /// What is shown of a message, in the pack that it is read from.
    Stored(Rc<StoredMessage>),
    /// JSON of a message with its parts, or the element of a summary.
    Own(Rc<str>, Rc<[Part]>),
}

impl RenderEntry {
    /// JSON of the message, or the element of the summary.
    pub(in crate::assembly) fn raw_text(&self) -> &str {
        match &self.text {
            EntryText::Own(raw, _) => raw,
            EntryText::Stored(stored) => match stored.rendered_content().0 {
                RawText::Inline(raw) => raw,
                // Such a text is read into an entry of its own.
                RawText::Chunked { .. } => "",
            },
        }
    }

    pub(in crate::assembly) fn parts(&self) -> &[Part] {
        match &self.text {
            EntryText::Own(_, parts) => parts,
            EntryText::Stored(stored) => stored.rendered_content().1,
        }
    }

    /// Whether everything is equal that rendering goes by.
    pub(in crate::assembly) fn is_same(&self, other: &Self) -> bool {
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
