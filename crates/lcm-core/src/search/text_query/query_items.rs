//! Items and filters of a parsed query.

use alloc::{string::String, vec::Vec};

use lcm_text::message::Role;

/// Whether a document must contain an item.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Presence {
    /// Optional: the item raises the score.
    Should,
    Must,
    MustNot,
}

/// A term, or a phrase: terms in a fixed order.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct QueryItem {
    pub(crate) presence: Presence,
    /// Indexes into [`super::TextQuery::terms`]: the terms that a document must contain.
    pub(crate) terms: Vec<usize>,
    /// Terms of a phrase, each with its distance from the start of the phrase. Empty: a single
    /// term.
    pub(crate) order: Vec<(Vec<u8>, u32)>,
    /// For a word: indexes of its forms, any of which matches. Empty: not a word.
    pub(crate) forms: Vec<usize>,
    /// For a word: its index in [`super::TextQuery::names`].
    pub(crate) name: Option<usize>,
}

impl QueryItem {
    /// Builds an optional item from term indexes.
    pub(super) fn from_terms(terms: Vec<usize>) -> Self {
        Self { presence: Presence::Should, terms, order: Vec::new(), forms: Vec::new(), name: None }
    }
}

/// Property that a filter compares.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum FilterProperty {
    Role(Role),
    /// Index of the term of the tool name.
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
    /// True if the message must not have the property.
    pub(crate) is_negated: bool,
}
