//! Entry to render: a selected message or summary, with its text. Assembly makes the entries; the
//! dialects of the providers render them.

use alloc::rc::Rc;

use crate::storage::pack::{RawText, StoredMessage};
use lcm_text::{
    message::{Part, Role},
    types::api::Dialect,
};

/// A stored message, live message, summary or focus brief to render for a provider. Leading system
/// messages, and contexts in the dialect `lcm`, have no entries.
#[derive(Clone, Debug)]
pub(in crate::assembly) struct RenderEntry {
    /// Index of the item in the context; for a live message, the number of items.
    pub(in crate::assembly) index: usize,
    /// Seq of the message, or the first seq that the summary covers.
    pub(in crate::assembly) seq: u64,
    pub(in crate::assembly) origin: EntryOrigin,
    pub(in crate::assembly) text: EntryText,
}

/// The part of an array that the entries to render form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::assembly) enum ArrayPart {
    /// The entries are the whole array.
    Whole,
    /// The entries are the end of the array, behind other entries.
    Rest,
}

/// Origin of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::assembly) enum EntryOrigin {
    /// Id of a summary and bytes of its record, which together identify its text.
    Summary([u8; 8], u32),
    /// A message that came in `dialect`.
    Message { dialect: Dialect, role: Role },
}

/// Text of an entry.
#[derive(Clone, Debug)]
pub(in crate::assembly) enum EntryText {
    /// The rendered content of a message, inside its pack.
    Stored(Rc<StoredMessage>),
    /// JSON of a message and its parts, or the element of a summary and no parts.
    Own(Rc<str>, Rc<[Part]>),
}

impl RenderEntry {
    /// Returns the JSON of the message, or the element of the summary.
    pub(in crate::assembly) fn raw_text(&self) -> &str {
        match &self.text {
            EntryText::Own(raw, _) => raw,
            EntryText::Stored(stored) => match stored.rendered_content().0 {
                RawText::Inline(raw) => raw,
                // The caller reads a chunked text into `Own`.
                RawText::Chunked { .. } => "",
            },
        }
    }

    /// Returns the parts of the message; empty for a summary.
    pub(in crate::assembly) fn parts(&self) -> &[Part] {
        match &self.text {
            EntryText::Own(_, parts) => parts,
            EntryText::Stored(stored) => stored.rendered_content().1,
        }
    }

    /// Returns whether two entries are equal in seq, origin, text and parts: all that rendering
    /// reads.
    pub(in crate::assembly) fn is_same(&self, other: &Self) -> bool {
        let is_same_text = match (&self.text, &other.text) {
            (EntryText::Stored(one), EntryText::Stored(other)) => Rc::ptr_eq(one, other),
            (EntryText::Own(one, _), EntryText::Own(other, _)) => Rc::ptr_eq(one, other),
            _ => false,
        };
        self.seq == other.seq
            && self.origin == other.origin
            && (is_same_text
                || (self.raw_text() == other.raw_text() && self.parts() == other.parts()))
    }
}
