//! Splits the text of a query into tokens: words, quoted phrases and filters.

use super::query_items::Presence;

/// A word or quoted phrase of a query, without its `+`, `-` or `NOT`, filter name and quotes.
pub(super) struct QueryToken<'a> {
    pub(super) presence: Presence,
    /// Name of the filter, if the token has the form of a filter; the value is not checked. `None`:
    /// the token is a word or phrase.
    pub(super) filter: Option<&'a str>,
    pub(super) text: &'a str,
    pub(super) is_quoted: bool,
    /// Text as typed, with filter name and quotes, without what makes it required or excluded.
    pub(super) source: &'a str,
    /// Word with the `-` in front of it, which may be a flag; `None`: no such word.
    pub(super) flag: Option<&'a str>,
}

impl QueryToken<'_> {
    /// Returns whether the token is a filter, or a required or excluded word or phrase.
    pub(super) fn is_condition(&self) -> bool {
        self.presence != Presence::Should || self.filter.is_some()
    }

    /// Turns an excluded word into a plain one if it is one of `flags`.
    pub(super) fn read_flag(mut self, flags: &[&str]) -> Self {
        if let Some(flag) = self.flag.filter(|flag| flags.contains(flag)) {
            (self.presence, self.text) = (Presence::Should, flag);
        }
        self
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

/// Returns the text behind `NOT` if `NOT` excludes a word. In `NOT NULL` both words are plain.
fn strip_not(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("NOT ")?.trim_start();
    let are_capitals = |word: &[u8]| word.iter().all(u8::is_ascii_uppercase);
    let is_plain = rest.as_bytes().get(..2).is_some_and(are_capitals);
    Some(rest).filter(|rest| !rest.is_empty() && !is_plain)
}

/// Parses the first token of a text that begins without white space. Returns the token and the text
/// behind it.
fn next_token(text: &str) -> (QueryToken<'_>, &str) {
    let (presence, body) = match text.as_bytes() {
        [b'+', next, ..] if !next.is_ascii_whitespace() && *next != b'+' => {
            (Presence::Must, text.get(1..))
        }
        // `--` begins a command-line option, which is plain text.
        [b'-', next, ..] if !next.is_ascii_whitespace() && *next != b'-' => {
            (Presence::MustNot, text.get(1..))
        }
        _ => match strip_not(text) {
            None => (Presence::Should, Some(text)),
            rest => (Presence::MustNot, rest),
        },
    };
    let body = body.unwrap_or_default();
    let filter = ["speaker", "tool", "role", "since", "before"].into_iter().find(|name| {
        let value = body.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
        value.is_some_and(|value| !value.is_empty() && !value.starts_with(char::is_whitespace))
    });
    let value = body.get(filter.map_or(0, |name| name.len() + 1)..).unwrap_or_default();
    let quoted = value.strip_prefix('"').and_then(|inner| inner.split_once('"'));
    let (value, behind) = quoted.unwrap_or_else(|| {
        let end = value.find(char::is_whitespace).unwrap_or(value.len());
        value.split_at_checked(end).unwrap_or((value, ""))
    });
    let is_flag = filter.is_none()
        && quoted.is_none()
        && text.starts_with('-')
        && presence == Presence::MustNot;
    let token = QueryToken {
        presence,
        filter,
        text: value,
        is_quoted: quoted.is_some(),
        source: body.get(..body.len() - behind.len()).unwrap_or_default(),
        flag: text.get(..text.len() - behind.len()).filter(|_| is_flag),
    };
    (token, behind)
}
