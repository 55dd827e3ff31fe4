//! Where the search for an expression goes on: a message or summary, as text of a few characters.
//!
//! In: the conversations that are searched. Out: the text of a place, and back. It names the
//! conversation by its hash and the document by its number there, which no append and no compaction
//! changes; times play no part. Not here: searching (`find`), and where files go on (`files`).

use alloc::{format, string::String};
use lcm_text::base::hash;

use super::SearchedConversation;
use crate::search::{Corpus, SearchIndex};
use lcm_text::base::error::{Error, Result};

/// Bytes of the hash of a conversation that name it.
const DIGEST_BYTES: usize = 8;

/// A document that is the next to be looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ScanCursor {
    /// Number of its conversation.
    pub(super) conversation_number: usize,
    pub(super) corpus: Corpus,
    /// It and those before it were not looked at yet.
    pub(super) document: u64,
}

impl ScanCursor {
    /// What a query gives as `start_id`, which goes on here.
    pub(super) fn encode(self, places: &[SearchedConversation]) -> String {
        let place =
            places.get(self.conversation_number).map(conversation_digest).unwrap_or_default();
        let corpus = corpus_letter(self.corpus);
        format!("scan_{place}_{corpus}{}", self.document)
    }

    /// The place that a text names, of these conversations and corpora.
    ///
    /// # Errors
    ///
    /// `invalid-input`: it is no such text; `not-found`: the search does not come there.
    pub(super) fn parse(
        text: &str,
        places: &[SearchedConversation],
        indexes: &[SearchIndex],
        corpora: &[Corpus],
    ) -> Result<Self> {
        let (name, corpus, document) = parse_cursor_parts(text).ok_or_else(|| {
            Error::invalid_input(format_args!(
                "start_id: `{text}` is none of an answer to an expression; it is the id of \
                 `unscanned_from`"
            ))
        })?;
        let place = places.iter().position(|place| conversation_digest(place) == name);
        let known = place.and_then(|at| places.get(at).zip(indexes.get(at)));
        let documents = known.map_or(0, |(place, index)| last_document(place, index, corpus));
        match place {
            Some(place) if corpora.contains(&corpus) && document <= documents => {
                Ok(Self { conversation_number: place, corpus, document })
            }
            _ => Err(super::foreign_cursor_error()),
        }
    }
}

/// The number of the last document of a kind that is looked at, which of messages is one that may
/// be found.
pub(super) fn last_document(
    place: &SearchedConversation,
    index: &SearchIndex,
    corpus: Corpus,
) -> u64 {
    match corpus {
        Corpus::Messages => {
            let spans = place.spans.as_ref();
            let last = spans.map(|spans| spans.iter().map(|(_, last)| *last).max().unwrap_or(0));
            last.unwrap_or(u64::MAX).min(place.loaded.head.messages)
        }
        Corpus::Summaries => index.count_documents(corpus),
    }
}

fn conversation_digest(place: &SearchedConversation) -> String {
    hash::hex(&hash::hash_prefix::<DIGEST_BYTES>(&place.keys.conversation_hash()))
}

const fn corpus_letter(corpus: Corpus) -> char {
    match corpus {
        Corpus::Messages => 'm',
        Corpus::Summaries => 's',
    }
}

/// The conversation, the corpus and the document of a text.
fn parse_cursor_parts(text: &str) -> Option<(&str, Corpus, u64)> {
    let (name, document) = text.strip_prefix("scan_")?.split_once('_')?;
    let (corpus, digits) = [Corpus::Messages, Corpus::Summaries]
        .into_iter()
        .find_map(|corpus| Some((corpus, document.strip_prefix(corpus_letter(corpus))?)))?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let document = digits.parse().ok().filter(|document| is_number && *document > 0)?;
    Some((name, corpus, document))
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
