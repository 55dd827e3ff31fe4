//! Splits the text of a query into tokens: words, quoted phrases and filters.

use alloc::borrow::Cow;

use super::query_items::Presence;

/// A word or quoted phrase of a query, without its `+`, `-`, filter name and quotes.
pub(super) struct QueryToken<'a> {
    pub(super) presence: Presence,
    /// Name of the filter, if the token has the form of a filter; the value is not checked. `None`:
    /// the token is a word or phrase.
    pub(super) filter: Option<&'a str>,
    pub(super) text: Cow<'a, str>,
    pub(super) is_quoted: bool,
    /// Text as typed, with filter name and quotes, without `+` or `-` in front.
    pub(super) source: &'a str,
}

impl QueryToken<'_> {
    /// Returns whether the token is a filter, or a required or excluded word or phrase.
    pub(super) fn is_condition(&self) -> bool {
        self.presence != Presence::Should || self.filter.is_some()
    }
}

/// Splits a text into tokens, in order.
pub(super) fn split_tokens(text: &str) -> impl Iterator<Item = QueryToken<'_>> {
    let mut rest = text.trim_start();
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (token, behind) = next_token(rest);
        rest = behind.trim_start();
        Some(token)
    })
}

/// Parses the first token of a text that begins without white space. Returns the token and the text
/// behind it.
fn next_token(text: &str) -> (QueryToken<'_>, &str) {
    let (presence, prefix_bytes) = match text.as_bytes() {
        [b'+', next, ..] if !next.is_ascii_whitespace() && *next != b'+' => (Presence::Must, 1),
        // `--` begins a command-line option, which is plain text.
        [b'-', next, ..] if !next.is_ascii_whitespace() && *next != b'-' => (Presence::MustNot, 1),
        _ => (Presence::Should, 0),
    };
    let body = text.get(prefix_bytes..).unwrap_or_default();
    let filter = ["speaker", "tool", "role", "since", "before"].into_iter().find(|name| {
        let value = body.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
        value.is_some_and(|value| !value.is_empty() && !value.starts_with(char::is_whitespace))
    });
    let value = body.get(filter.map_or(0, |name| name.len() + 1)..).unwrap_or_default();
    let quoted = value.strip_prefix('"').and_then(|inner| inner.split_once('"'));
    let (text, behind) = quoted.unwrap_or_else(|| {
        let end = value.find(char::is_whitespace).unwrap_or(value.len());
        value.split_at_checked(end).unwrap_or((value, ""))
    });
    let typed = body.get(..body.len() - behind.len()).unwrap_or_default();
    let token = QueryToken {
        presence,
        filter,
        text: Cow::Borrowed(text),
        is_quoted: quoted.is_some(),
        source: typed,
    };
    (token, behind)
}
