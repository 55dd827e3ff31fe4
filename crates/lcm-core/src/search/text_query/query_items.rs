//! Items and filters of a parsed query, as the parser builds them and full-text search reads them.

use alloc::{string::String, vec::Vec};

use lcm_text::message::Role;

/// Whether a document must contain an item.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Presence {
    /// Optional: the item raises the score.
    Should,
    /// Required.
    Must,
    /// Excluded.
    MustNot,
}

/// A word in its forms, a single term, or a phrase: terms in a fixed order.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct QueryItem {
    pub(crate) presence: Presence,
    /// Indexes into [`super::TextQuery::terms`]. With `forms`: the word as typed. Otherwise a
    /// document with the item contains all of these terms.
    pub(crate) terms: Vec<usize>,
    /// Terms of a phrase, each with the positions from the start of the phrase to the term. Empty:
    /// the order is not checked.
    pub(crate) order: Vec<(Vec<u8>, u32)>,
    /// Indexes of the forms of a word, into the same list; any form matches. Empty: the item has no
    /// forms.
    pub(crate) forms: Vec<usize>,
    /// Index in [`super::TextQuery::names`] if the word may be a speaker name; `None`: the item is
    /// no such word.
    pub(crate) name: Option<usize>,
    /// Whether the item is a flag, or a word with inner punctuation or capitals as typed.
    pub(crate) is_identifier: bool,
}

impl QueryItem {
    /// Builds an optional item without forms, order and name.
    pub(super) fn from_terms(terms: Vec<usize>) -> Self {
        Self {
            presence: Presence::Should,
            terms,
            order: Vec::new(),
            forms: Vec::new(),
            name: None,
            is_identifier: false,
        }
    }
}

/// Property that a filter compares.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum FilterProperty {
    Role(Role),
    /// Index of the term for the tool name.
    Tool(usize),
    /// Speaker of the message.
    Speaker {
        /// Full name in lower case.
        name: String,
        /// Indexes of the terms of the name. Empty: the name has no words and is compared as a
        /// whole.
        words: Vec<usize>,
    },
}

/// Condition on a property of a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct QueryFilter {
    pub(crate) property: FilterProperty,
    /// Whether the message must not have the property.
    pub(crate) is_negated: bool,
}
