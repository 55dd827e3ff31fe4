//! Sessions: ranges of messages without a pause of more than half an hour.
//!
//! Input: the first message of each session. Output: the session number of each document, and the
//! neighbours of documents. Every summary is a session of its own. Used by `full_text`.

use alloc::vec::Vec;

/// Number of messages before a message, and after it, that are its neighbours in ranking.
pub(super) const NEIGHBOURS: u64 = 2;

/// Bounds of the sessions of one corpus.
#[derive(Debug)]
pub(super) enum SessionBounds {
    /// First message of each session, ascending; may omit the first message of the conversation.
    Starts(Vec<u64>),
    /// Every document is a session of its own.
    OnePerDocument,
}

impl SessionBounds {
    /// Returns the number of sessions of a corpus with this many documents.
    pub(super) fn count(&self, documents: u64) -> u64 {
        match self {
            Self::Starts(starts) => lcm_text::base::int::to_u64(starts.len()),
            Self::OnePerDocument => documents,
        }
    }

    /// Returns the session number of each document (ascending); the numbers never decrease.
    pub(super) fn session_numbers(&self, documents: &[u64]) -> Vec<u64> {
        let Self::Starts(starts) = self else { return documents.to_vec() };
        let mut starts = starts.iter().peekable();
        let mut number = 0;
        let session = |document: &u64| {
            while starts.next_if(|start| *start <= document).is_some() {
                number += 1;
            }
            number
        };
        documents.iter().map(session).collect()
    }

    /// Returns the documents (ascending) and their neighbours of the same session. No neighbour is
    /// greater than `last`; summaries have no neighbours.
    pub(super) fn with_neighbours(&self, documents: &[u64], last: u64) -> Vec<u64> {
        let Self::Starts(starts) = self else { return documents.to_vec() };
        let mut out: Vec<u64> = Vec::with_capacity(documents.len());
        let mut begin = 1;
        let mut starts = starts.iter().copied().peekable();
        for document in documents {
            while let Some(start) = starts.next_if(|start| start <= document) {
                begin = start;
            }
            let end = starts.peek().map_or(last, |next| (next - 1).min(last));
            let from = document.saturating_sub(NEIGHBOURS).max(begin);
            let from = out.last().map_or(from, |last| from.max(last + 1));
            out.extend(from..=(document + NEIGHBOURS).min(end));
        }
        out
    }
}

/// Counts the distinct numbers of an ascending list.
pub(super) fn count_distinct(numbers: &[u64]) -> u64 {
    lcm_text::base::int::to_u64(numbers.chunk_by(|left, right| left == right).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_of_the_same_session() {
        let sessions = SessionBounds::Starts(alloc::vec![1, 4, 6]);
        assert_eq!(sessions.session_numbers(&[1, 3, 4, 5, 6, 9]), [1, 1, 2, 2, 3, 3]);
        assert_eq!(sessions.with_neighbours(&[4], 9), [4, 5]);
        assert_eq!(sessions.with_neighbours(&[2, 3, 8], 9), [1, 2, 3, 6, 7, 8, 9]);
        assert_eq!(sessions.with_neighbours(&[6, 7, 8, 9], 9), [6, 7, 8, 9]);
        assert_eq!(SessionBounds::OnePerDocument.with_neighbours(&[4], 9), [4]);
        assert_eq!((sessions.count(9), SessionBounds::OnePerDocument.count(9)), (3, 9));
        assert_eq!(count_distinct(&SessionBounds::OnePerDocument.session_numbers(&[2, 5])), 2);
        assert_eq!(count_distinct(&sessions.session_numbers(&[1, 2, 9])), 2);
        // No session start is known.
        assert_eq!(SessionBounds::Starts(Vec::new()).with_neighbours(&[1], 2), [1, 2]);
    }
}
