//! Messages whose terms are in no segment, searched with the same analysis as indexed messages.
//!
//! Input: a query, and the ranges of messages outside the index. Output: the postings and doc
//! values of these messages, for `full_text`. Elsewhere: messages in the index (`index_reader`).

use crate::storage::pack::PlacedMessage;
use alloc::{borrow::Cow, vec::Vec};

use lcm_loops::lengths;

use super::{
    feature_terms::{self, FeatureTerms},
    fields::{FIELD_GAP, IndexingBudget, SearchField, each_field},
    index_reader::{Postings, SearchIndex},
    terms::each_term,
    text_query::TextQuery,
};
use crate::storage::{history::MessageHistory, store_session::StoreSession};
use lcm_text::{
    base::{
        error::Result,
        sort::{self, SortedMap},
    },
    message::{Part, Role},
    types::api::Timestamp,
};

/// Doc values of one message outside the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnindexedEntry {
    pub(crate) seq: u64,
    /// Length in positions, rounded as in the index.
    pub(crate) length: u32,
    pub(crate) time: Timestamp,
    pub(crate) role: Role,
}

/// Messages outside the index, analysed for one query.
#[derive(Debug, Default)]
pub(crate) struct UnindexedMessages {
    /// Entries by seq, ascending.
    pub(crate) entries: Vec<UnindexedEntry>,
    /// Postings of each term of the query.
    pub(crate) postings: Vec<Postings>,
    /// For each term of a phrase: messages with the term, ascending, and its positions in each.
    positions: SortedMap<Vec<u8>, Vec<(u64, Vec<u32>)>>,
}

impl UnindexedMessages {
    /// Reads and analyses the messages outside the index.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head; `unsupported`: a record has a newer format; errors of
    /// the store.
    pub(crate) fn read(
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        index: &SearchIndex,
        query: &TextQuery,
    ) -> Result<Self> {
        let mut unindexed = Self {
            postings: query.terms.iter().map(|_| Postings::default()).collect(),
            ..Self::default()
        };
        let query_terms = QueryTermSet::new(query);
        for (from, to) in index.unindexed_ranges() {
            let mut before = None;
            if from > 1 {
                before = index.read_time(session, from - 1)?;
            }
            let placed = history.read_messages(session, from, to)?;
            history.prefetch_texts(session, &placed)?;
            for placed in placed {
                let raw = history.read_text(session, &placed.stored)?;
                let time = placed.stored.time;
                let begins = feature_terms::begins_session(before.replace(time), time);
                let features = FeatureTerms::new(begins, placed.stored.placeholder.is_some());
                unindexed.add_message(&query_terms, &placed, &raw, features);
            }
        }
        Ok(unindexed)
    }

    fn add_message(
        &mut self,
        query_terms: &QueryTermSet<'_>,
        placed: &PlacedMessage,
        raw: &str,
        features: FeatureTerms,
    ) {
        let mut counts: Vec<u32> = alloc::vec![0; self.postings.len()];
        let (seq, stored) = (placed.seq, &placed.stored);
        let length = each_message_term(raw, &stored.parts, features, &mut |term, position| {
            let Some(entry) = query_terms.find_term(term) else { return };
            if let Some(count) = entry.number.and_then(|number| counts.get_mut(number)) {
                *count = count.saturating_add(1);
            }
            if entry.is_ordered {
                self.add_position(term, seq, position);
            }
        });
        for (postings, count) in self.postings.iter_mut().zip(counts) {
            if count > 0 {
                postings.documents.push(seq);
                postings.counts.push(count);
            }
        }
        // Rounded as in the index, so that a flush does not change a score.
        let length = lengths::dequantize_length(lengths::quantize_length(u64::from(length)));
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.entries.push(UnindexedEntry { seq, length, time: stored.time, role: stored.role });
    }

    /// Adds a position of a phrase term in the message that is analysed.
    fn add_position(&mut self, term: &[u8], seq: u64, position: u32) {
        if !self.positions.contains_key(term) {
            self.positions.insert(term.to_vec(), Vec::new());
        }
        let Some(entries) = self.positions.get_mut(term) else { return };
        match entries.last_mut() {
            Some((newest, positions)) if *newest == seq => positions.push(position),
            _ => entries.push((seq, alloc::vec![position])),
        }
    }

    /// Returns the entry of a message; `None`: the message is not outside the index.
    pub(crate) fn find_entry(&self, seq: u64) -> Option<&UnindexedEntry> {
        let place = self.entries.binary_search_by_key(&seq, |entry| entry.seq).ok()?;
        self.entries.get(place)
    }

    /// Returns the positions of a phrase term in a message; empty: the message does not have the
    /// term.
    pub(crate) fn term_positions(&self, term: &[u8], seq: u64) -> &[u32] {
        let Some(entries) = self.positions.get(term) else { return &[] };
        let place = entries.binary_search_by(|(known, _)| known.cmp(&seq)).ok();
        place.and_then(|place| entries.get(place)).map_or(&[], |(_, positions)| positions)
    }
}

/// Calls `each` with every term of a message and its position. Returns the number of positions.
fn each_message_term(
    raw: &str,
    parts: &[Part],
    mut features: FeatureTerms,
    each: &mut dyn FnMut(&[u8], u32),
) -> u32 {
    let mut budget = IndexingBudget::new(lcm_text::base::int::to_u64(raw.len()));
    let mut length = 0u32;
    each_field(raw, parts, &mut |field: SearchField, text: Cow<'_, str>| {
        features.observe_text(field, &text);
        for text in budget.take_edges(&text) {
            if !text.is_empty() {
                let first = length;
                let positions = each_term(field, text, &mut |term, position, _| {
                    each(term, first.saturating_add(position));
                });
                length = length.saturating_add(positions).saturating_add(FIELD_GAP);
            }
        }
    });
    features.observe_budget(&budget);
    features.each_feature(raw, &mut |term| each(term, length));
    length
}

/// Terms of a query, for lookup while a text is analysed.
struct QueryTermSet<'q> {
    /// Terms in byte order.
    terms: Vec<QueryTerm<'q>>,
    /// Bit set of the lengths of the terms in bytes; all lengths from 63 on share the last bit.
    lengths: u64,
}

struct QueryTerm<'q> {
    term: &'q [u8],
    /// Index of the term in [`TextQuery::terms`]; `None`: only the order of a phrase has the term.
    number: Option<usize>,
    /// Whether the term is in the order of a phrase, so that its positions are needed.
    is_ordered: bool,
}

impl<'q> QueryTermSet<'q> {
    fn new(query: &'q TextQuery) -> Self {
        let mut ordered: Vec<&[u8]> = Vec::new();
        for item in &query.items {
            ordered.extend(item.order.iter().map(|(term, _)| term.as_slice()));
        }
        let mut all = ordered.clone();
        all.extend(query.terms.iter().map(Vec::as_slice));
        sort::sort_and_dedup(&mut all);
        let entry = |term| QueryTerm {
            term,
            number: query.terms.iter().position(|known| known == term),
            is_ordered: ordered.contains(&term),
        };
        let terms: Vec<QueryTerm<'q>> = all.into_iter().map(entry).collect();
        let lengths = terms.iter().fold(0, |mask, entry| mask | length_bit(entry.term));
        Self { terms, lengths }
    }

    fn find_term(&self, term: &[u8]) -> Option<&QueryTerm<'q>> {
        if self.lengths & length_bit(term) == 0 {
            return None;
        }
        let place = self.terms.binary_search_by(|entry| entry.term.cmp(term)).ok()?;
        self.terms.get(place)
    }
}

fn length_bit(term: &[u8]) -> u64 {
    1 << term.len().min(63)
}
