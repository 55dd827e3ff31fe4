//! Lookup of the postings of one query item: a term, a word in several forms, or a phrase.
//!
//! Input: an item, and the postings of the terms of the query. Output: the documents with the item,
//! and the number of occurrences in each. For phrases, positions of terms are read within a budget.
//! Used by `full_text`.

use alloc::vec::Vec;

use super::{
    corpus::Corpus,
    document_lists::{intersect_in_place, union_postings},
    full_text_context::FullTextContext,
    index_reader::Postings,
    text_query::{Presence, QueryItem},
    unindexed::UnindexedMessages,
};
use crate::storage::store_session::StoreSession;
use lcm_text::base::{
    error::{Error, Result},
    int, sort,
};

/// Most documents whose positions are read for all phrases of a query together, in one corpus. A
/// document counts once for each term.
const POSITION_DOCUMENTS_MAX: usize = 35_000;
/// Least number of documents that each term of a phrase takes from the budget, even if fewer
/// documents have the term.
const POSITION_DOCUMENTS_MIN: usize = 7_000;

/// Lookup of query items, with the budget for reading the positions of phrases.
pub(super) struct ItemLookup<'q> {
    pub(super) search: &'q FullTextContext<'q>,
    pub(super) corpus: Corpus,
    pub(super) unindexed: &'q UnindexedMessages,
    /// Postings of each term of the query.
    pub(super) postings: &'q [Postings],
    /// Documents whose positions may still be read.
    documents_left: usize,
    /// Whether a phrase was dropped, or matched without the positions of all its terms.
    pub(super) is_cut: bool,
}

impl<'q> ItemLookup<'q> {
    /// Creates a lookup with the full budget.
    pub(super) const fn new(
        search: &'q FullTextContext<'q>,
        corpus: Corpus,
        unindexed: &'q UnindexedMessages,
        postings: &'q [Postings],
    ) -> Self {
        let documents_left = POSITION_DOCUMENTS_MAX;
        Self { search, corpus, unindexed, postings, documents_left, is_cut: false }
    }

    /// Selects the terms of a phrase whose positions are read: the rarest first, until a term does
    /// not fit the budget. Returns indexes into `item.order`.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the phrase is excluded, and not all its terms fit the budget. The query
    /// would then lose documents without the phrase.
    fn select_terms(&mut self, item: &QueryItem) -> Result<Vec<usize>> {
        let size = |(term, _): &(Vec<u8>, u32)| {
            let number = self.search.query.terms.iter().position(|other| other == term);
            term_documents(self.postings, number.as_ref()).len().max(POSITION_DOCUMENTS_MIN)
        };
        let mut sizes: Vec<(usize, usize)> =
            item.order.iter().enumerate().map(|(place, entry)| (size(entry), place)).collect();
        sort::sort(&mut sizes);
        let mut out = Vec::new();
        for (size, place) in sizes {
            let Some(left) = self.documents_left.checked_sub(size) else { break };
            self.documents_left = left;
            out.push(place);
        }
        if out.len() < item.order.len() {
            self.is_cut = true;
            if item.presence == Presence::MustNot {
                return Err(Error::limit_exceeded(
                    "`pattern` must exclude fewer phrases of frequent words; shorten the phrases, \
                     or use rarer words",
                ));
            }
        }
        Ok(out)
    }

    /// Finds the documents that contain an item, with the number of occurrences.
    ///
    /// A phrase that does not fit the budget matches more documents: its word order is checked only
    /// for some terms, or not at all. An optional phrase without any checked term gets no
    /// documents, unless the phrase is the only item of the query.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: an excluded phrase does not fit the budget; `conflict`: the conversation
    /// has changed; `corrupt`: the index is damaged; `unsupported`: a record has a newer format;
    /// errors of the store.
    pub(super) fn find_postings(
        &mut self,
        session: &mut StoreSession<'_>,
        item: &QueryItem,
    ) -> Result<Postings> {
        let postings = self.postings;
        let is_droppable = item.presence == Presence::Should && self.search.query.items.len() != 1;
        if !item.forms.is_empty() {
            let forms = item.forms.iter().filter_map(|number| postings.get(*number));
            return Ok(forms
                .fold(Postings::default(), |all, form| union_postings(&all, form, |a, b| a + b)));
        }
        let mut of_terms = item.terms.iter().filter_map(|number| postings.get(*number));
        let Some(first) = of_terms.next() else { return Ok(Postings::default()) };
        if item.order.is_empty() {
            return Ok(first.clone());
        }
        if self.documents_left < POSITION_DOCUMENTS_MIN && is_droppable {
            self.is_cut = true;
            return Ok(Postings::default());
        }
        let mut documents = first.documents.clone();
        for other in of_terms {
            intersect_in_place(&mut documents, &other.documents);
        }
        let places = match documents.is_empty() {
            true => Vec::new(),
            false => self.select_terms(item)?,
        };
        if places.is_empty() && is_droppable {
            return Ok(Postings::default());
        }
        // For each document: positions at which the phrase can begin by the terms read so far.
        let mut starts: Option<Vec<Vec<u32>>> = None;
        for (term, distance) in places.into_iter().filter_map(|place| item.order.get(place)) {
            if documents.is_empty() {
                break;
            }
            let found = self.read_positions(session, term, &documents)?;
            let begins = found.into_iter().map(|positions| {
                let begin =
                    positions.into_iter().filter_map(|position| position.checked_sub(*distance));
                begin.collect::<Vec<u32>>()
            });
            let mut both: Vec<Vec<u32>> = match starts {
                None => begins.collect(),
                Some(starts) => {
                    let both = starts.into_iter().zip(begins);
                    both.map(|(mut starts, others)| {
                        starts.retain(|start| others.binary_search(start).is_ok());
                        starts
                    })
                    .collect()
                }
            };
            let mut left = both.iter();
            documents.retain(|_| left.next().is_some_and(|starts| !starts.is_empty()));
            both.retain(|starts| !starts.is_empty());
            starts = Some(both);
        }
        let starts = starts.unwrap_or_else(|| alloc::vec![alloc::vec![0]; documents.len()]);
        let counts = starts.iter().map(|starts| int::to_u32(starts.len())).collect();
        Ok(Postings { documents, counts })
    }

    /// Reads the positions of a term in each document (ascending), also outside the index.
    fn read_positions(
        &self,
        session: &mut StoreSession<'_>,
        term: &[u8],
        documents: &[u64],
    ) -> Result<Vec<Vec<u32>>> {
        let stored: Vec<u64> = documents
            .iter()
            .copied()
            .filter(|document| self.unindexed.find_entry(*document).is_none())
            .collect();
        let mut found =
            self.search.index.read_positions(session, self.corpus, term, &stored)?.into_iter();
        let of = |document: &u64| match self.unindexed.find_entry(*document) {
            Some(_) => self.unindexed.term_positions(term, *document).to_vec(),
            None => found.next().unwrap_or_default(),
        };
        Ok(documents.iter().map(of).collect())
    }
}

/// Returns the documents of the term with this index; none for `None` or an unknown index.
pub(super) fn term_documents<'t>(terms: &'t [Postings], number: Option<&usize>) -> &'t [u64] {
    let postings = number.and_then(|number| terms.get(*number));
    postings.map_or(&[], |postings| postings.documents.as_slice())
}
