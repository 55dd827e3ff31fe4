//! Pattern and vector of a query, as `request` parses them and the searches use them.

use alloc::{boxed::Box, string::String, vec::Vec};

use crate::search::{regex::Regex, text_query::TextQuery};
use lcm_text::base::error::Error;

/// Parsed pattern of a query: words or a regular expression.
pub(super) enum GrepPattern {
    Text(TextQuery),
    Regex(Box<Regex>),
}

/// Embedding of a query.
pub(super) struct QueryVector {
    /// Quantised components.
    pub(super) components: Vec<i8>,
    /// Name of the model that made the embedding; `None`: the host named no model.
    pub(super) model: Option<String>,
}

/// Builds the error for a regular expression that exceeds its step budget in the first step of a
/// scan.
pub(super) fn too_costly_error() -> Error {
    Error::limit_exceeded(
        "`pattern` takes too many steps to match; shorten its repetitions, or narrow the search \
         with `since` and `before`",
    )
}
