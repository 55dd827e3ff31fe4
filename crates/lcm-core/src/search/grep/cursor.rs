//! Cursors: the place at which the next page of a scan begins, as short text.
//!
//! Input: a place in the searched conversations, or the text of a cursor. Output: the text, or the
//! place. The cursor of a scan with a regular expression names the conversation by hash and the
//! document by number. No append and no compaction changes this hash or number. The cursor of a
//! scan of files is the id of a file with the byte to continue at. Between two messages, it is the
//! id of the message whose files come next. Elsewhere: the scans (`execute`, `file_search`).

use alloc::{format, string::String};
use lcm_text::base::hash;

use super::searched_conversation::SearchedConversation;
use crate::search::{corpus::Corpus, index_reader::SearchIndex};
use lcm_text::base::error::{Error, Result};

/// Bytes of the conversation hash in a cursor, written as twice as many hex digits.
const DIGEST_BYTES: usize = 8;

/// The next document of a scan with a regular expression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ScanCursor {
    /// Index into the list of searched conversations.
    pub(super) conversation_number: usize,
    pub(super) corpus: Corpus,
    /// This document and all earlier ones are still to be searched.
    pub(super) document: u64,
}

impl ScanCursor {
    /// Encodes the cursor as text, which [`crate::storage::cursor_binding`] binds to the query.
    pub(super) fn encode(self, conversations: &[SearchedConversation]) -> String {
        let conversation = conversations.get(self.conversation_number);
        let digest = conversation.map(conversation_digest).unwrap_or_default();
        let corpus = corpus_letter(self.corpus);
        format!("scan_{digest}_{corpus}{}", self.document)
    }

    /// Parses a cursor of a document in these conversations and corpora.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the text is not a cursor, or the document is not part of the search.
    pub(super) fn parse(
        text: &str,
        conversations: &[SearchedConversation],
        indexes: &[SearchIndex],
        corpora: &[Corpus],
    ) -> Result<Self> {
        let (name, corpus, document) = parse_cursor_parts(text).ok_or_else(|| {
            Error::invalid_input(format_args!(
                "`cursor` must be the `cursor` of an answer to a regular expression, got `{text}`"
            ))
        })?;
        let number = conversations.iter().position(|entry| conversation_digest(entry) == name);
        let found = number.and_then(|at| conversations.get(at).zip(indexes.get(at)));
        let documents =
            found.map_or(0, |(conversation, index)| last_document(conversation, index, corpus));
        match number {
            Some(number) if corpora.contains(&corpus) && document <= documents => {
                Ok(Self { conversation_number: number, corpus, document })
            }
            _ => Err(foreign_cursor_error()),
        }
    }
}

/// Returns the number of the last document to search; 0: none. For messages: the greatest seq that
/// may be found.
pub(super) fn last_document(
    conversation: &SearchedConversation,
    index: &SearchIndex,
    corpus: Corpus,
) -> u64 {
    match corpus {
        Corpus::Messages => {
            let spans = conversation.spans.as_ref();
            let last = spans.map(|spans| spans.iter().map(|(_, last)| *last).max().unwrap_or(0));
            last.unwrap_or(u64::MAX).min(conversation.loaded.head.messages)
        }
        Corpus::Summaries => index.count_documents(corpus),
    }
}

fn conversation_digest(conversation: &SearchedConversation) -> String {
    hash::hex(&hash::hash_prefix::<DIGEST_BYTES>(&conversation.keys.conversation_hash()))
}

const fn corpus_letter(corpus: Corpus) -> char {
    match corpus {
        Corpus::Messages => 'm',
        Corpus::Summaries => 's',
    }
}

/// Splits the text of a cursor into conversation digest, corpus and document; `None`: the text is
/// not a cursor.
fn parse_cursor_parts(text: &str) -> Option<(&str, Corpus, u64)> {
    let (name, document) = text.strip_prefix("scan_")?.split_once('_')?;
    let (corpus, digits) = [Corpus::Messages, Corpus::Summaries]
        .into_iter()
        .find_map(|corpus| Some((corpus, document.strip_prefix(corpus_letter(corpus))?)))?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let document = digits.parse().ok().filter(|document| is_number && *document > 0)?;
    Some((name, corpus, document))
}

/// Separator of the id and the byte in the cursor of a scan of files.
const BYTE_SEPARATOR: char = ':';

/// Builds the cursor of a scan of files: the id of a file or message, and a byte of the file.
pub(super) fn join_file_cursor(id: &str, byte: u64) -> String {
    if byte == 0 { String::from(id) } else { format!("{id}{BYTE_SEPARATOR}{byte}") }
}

/// Splits the cursor of a scan of files into the id and the byte.
pub(super) fn split_file_cursor(cursor: &str) -> (&str, u64) {
    let parts = cursor.rsplit_once(BYTE_SEPARATOR);
    let position = parts.and_then(|(id, byte)| Some((id, byte.parse().ok()?)));
    position.unwrap_or((cursor, 0))
}

/// Builds the error for a cursor whose conversation, document or file is not part of this search.
pub(super) fn foreign_cursor_error() -> Error {
    Error::invalid_input(
        "`cursor` must name a conversation or file that this query searches; repeat the query \
         without `cursor`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_start_is_none() {
        assert_eq!(parse_cursor_parts("scan_0a_m17"), Some(("0a", Corpus::Messages, 17)));
        assert_eq!(parse_cursor_parts("scan_0a_s1"), Some(("0a", Corpus::Summaries, 1)));
        let texts = ["", "scan_", "scan_0a_m", "scan_0a_m0", "scan_0a_m+1", "scan_0a_x1", "0a_m1"];
        assert!(texts.iter().all(|text| parse_cursor_parts(text).is_none()));
        assert_eq!(parse_cursor_parts("scan_0a_m18446744073709551616"), None);
    }
}
