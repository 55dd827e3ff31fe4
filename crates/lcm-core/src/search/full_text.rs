//! Full-text search: finds and scores the documents of one corpus that match a query.
//!
//! Input: a query, and one corpus of one conversation. Output in two steps, so that several
//! conversations are ranked together: index lookups ([`gather_matches`]), then scores
//! ([`CorpusMatches::rank_documents`]). All lists of documents ascend.
//! Elsewhere: order and limit of hits, snippets.

use alloc::{string::String, vec::Vec};

use lcm_loops::char_fold;

pub(crate) use super::full_text_context::FullTextContext;
use super::{
    corpus::Corpus,
    document_lists::{
        intersect_in_place, retain_by_value, subtract_in_place, union_documents, union_postings,
    },
    index_reader::{Postings, SearchIndex},
    item_lookup::{ItemLookup, term_documents},
    ranking::{self, DocumentLayout, Ranker, TermPostings},
    score,
    sessions::{self, SessionBounds},
    text_query::{FilterProperty, Presence, QueryFilter, TextQuery},
    unindexed::{UnindexedEntry, UnindexedMessages},
};
use crate::storage::{history::MessageHistory, store_session::StoreSession};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, json, sort,
    },
    message::Role,
    types::api::Timestamp,
};

/// Most documents in the posting lists of all optional items together, in one corpus. Above this
/// number the longest lists are dropped, so that frequent words do not slow a query.
const OPTIONAL_POSTINGS_MAX: usize = 64_000;
/// Most messages that are read for a filter `speaker:` whose name has no words to look up.
const SPEAKERS_READ_MAX: usize = 4_096;

/// Index lookups of a query in one corpus of one conversation.
pub(crate) struct CorpusMatches {
    corpus: Corpus,
    /// Postings of each item of the query; empty for a dropped item.
    items: Vec<Postings>,
    /// Postings of each term of the query.
    terms: Vec<Postings>,
    sessions: SessionBounds,
    unindexed: UnindexedMessages,
    pub(crate) statistics: CorpusStatistics,
    /// Whether some items were dropped, or the word order of some phrases was not fully checked.
    pub(crate) has_dropped_items: bool,
}

/// Counts for the weights of items, of one corpus or added up for several.
#[derive(Clone, Debug, Default)]
pub(crate) struct CorpusStatistics {
    pub(crate) documents: u64,
    /// Sum of the lengths of all documents, in positions.
    pub(crate) length_total: u64,
    pub(crate) sessions: u64,
    /// Three numbers for each item: documents with the item, sessions of these documents, and
    /// documents with the word as typed. The third is 0 if the item is not a word with other forms.
    pub(crate) item_counts: Vec<[u64; 3]>,
    /// For each of [`TextQuery::names`] two numbers: messages of speakers with this name, and
    /// sessions of these messages.
    pub(crate) speaker_counts: Vec<[u64; 2]>,
}

impl CorpusStatistics {
    /// Adds the counts of another corpus.
    pub(crate) fn add_statistics(&mut self, other: &Self) {
        self.documents += other.documents;
        self.length_total += other.length_total;
        self.sessions += other.sessions;
        self.item_counts.resize(other.item_counts.len(), [0; 3]);
        let sums = self.item_counts.iter_mut().flatten();
        sums.zip(other.item_counts.iter().flatten()).for_each(|(sum, more)| *sum += more);
        self.speaker_counts.resize(other.speaker_counts.len(), [0; 2]);
        let sums = self.speaker_counts.iter_mut().flatten();
        sums.zip(other.speaker_counts.iter().flatten()).for_each(|(sum, more)| *sum += more);
    }
}

/// Matching documents, ascending, and the score of each.
#[derive(Debug, Default)]
pub(crate) struct RankedDocuments {
    pub(crate) documents: Vec<u64>,
    pub(crate) scores: Vec<u64>,
}

/// Whether messages beside a match are also hits if the query is a question.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum NeighbourHits {
    Include,
    Exclude,
}

/// Looks up the items and terms of a query in one corpus.
///
/// # Errors
///
/// `limit-exceeded`: the words of an excluded phrase are too frequent; `conflict`: the conversation
/// has changed; `corrupt`: the index is damaged; `unsupported`: a record has a newer format; errors
/// of the store.
pub(crate) fn gather_matches(
    session: &mut StoreSession<'_>,
    search: &FullTextContext<'_>,
    corpus: Corpus,
) -> Result<CorpusMatches> {
    let FullTextContext { history, index, query, .. } = *search;
    let unindexed = match corpus {
        Corpus::Messages => UnindexedMessages::read(session, history, index, query)?,
        Corpus::Summaries => UnindexedMessages::default(),
    };
    let mut terms = index.read_postings(session, corpus, &query.terms)?;
    for (postings, more) in terms.iter_mut().zip(&unindexed.postings) {
        if !more.documents.is_empty() {
            *postings = union_postings(postings, more, |first, second| first.max(second));
        }
    }
    let mut items = Vec::with_capacity(query.items.len());
    let mut lookup = ItemLookup::new(search, corpus, &unindexed, &terms);
    for item in &query.items {
        items.push(lookup.find_postings(session, item)?);
    }
    let is_over_budget = lookup.is_cut;
    let has_dropped_items = drop_frequent_items(query, &mut items) || is_over_budget;
    let lengths = unindexed.entries.iter().map(|entry| u64::from(entry.length)).sum::<u64>();
    let documents = match corpus {
        Corpus::Messages => history.head.messages,
        Corpus::Summaries => index.count_documents(corpus),
    };
    let sessions = match corpus {
        Corpus::Messages => SessionBounds::Starts(term_documents(&terms, Some(&0)).to_vec()),
        Corpus::Summaries => SessionBounds::OnePerDocument,
    };
    let count = |documents: &[u64]| {
        [
            int::to_u64(documents.len()),
            sessions::count_distinct(&sessions.session_numbers(documents)),
        ]
    };
    let item_counts = query.items.iter().zip(&items).map(|(item, postings)| {
        let [documents, sessions] = count(&postings.documents);
        let typed = match item.forms.is_empty() {
            true => 0,
            false => int::to_u64(term_documents(&terms, item.terms.first()).len()),
        };
        [documents, sessions, typed]
    });
    let statistics = CorpusStatistics {
        documents,
        length_total: index.length_total(corpus) + lengths,
        sessions: sessions.count(documents),
        item_counts: item_counts.collect(),
        speaker_counts: query
            .names
            .iter()
            .map(|name| count(term_documents(&terms, Some(name))))
            .collect(),
    };
    Ok(CorpusMatches { corpus, items, terms, sessions, unindexed, statistics, has_dropped_items })
}

/// Empties the longest posting lists of optional items until the others fit
/// [`OPTIONAL_POSTINGS_MAX`]; the shortest list always stays. Returns whether a list was emptied.
fn drop_frequent_items(query: &TextQuery, items: &mut [Postings]) -> bool {
    let numbered = items.iter().zip(&query.items).enumerate();
    let optional = numbered.filter(|(_, (_, item))| item.presence == Presence::Should);
    let mut sizes: Vec<(usize, usize)> =
        optional.map(|(number, (postings, _))| (postings.documents.len(), number)).collect();
    sort::sort(&mut sizes);
    let (mut sum, mut is_cut) = (0, false);
    for (place, (size, number)) in sizes.into_iter().enumerate() {
        sum += size;
        if sum > OPTIONAL_POSTINGS_MAX && place > 0 {
            is_cut = true;
            items.get_mut(number).into_iter().for_each(|postings| *postings = Postings::default());
        }
    }
    is_cut
}

impl CorpusMatches {
    /// Returns the matching documents with scores. If the query has no items, only filters or
    /// times, all scores are 0.
    ///
    /// `statistics`: the counts of all corpora that are ranked together, this corpus included.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: too many messages for a filter `speaker:` without words; `conflict`: the
    /// conversation has changed; `corrupt`: the index is damaged; `unsupported`: a record has a
    /// newer format; errors of the store.
    pub(crate) fn rank_documents(
        &self,
        session: &mut StoreSession<'_>,
        search: &FullTextContext<'_>,
        statistics: &CorpusStatistics,
        neighbours: NeighbourHits,
    ) -> Result<RankedDocuments> {
        let FullTextContext { index, query, window, .. } = *search;
        let mut documents = self.find_candidates(search);
        if neighbours == NeighbourHits::Include && query.is_question() {
            documents = self.sessions.with_neighbours(&documents, self.statistics.documents);
        }
        if !window.is_unbounded() {
            let times = self.read_times(session, index, &documents)?;
            retain_by_value(&mut documents, &times, |time| window.contains(*time));
        }
        self.apply_filters(session, search, &mut documents)?;
        if !query.has_text_items() {
            let scores = alloc::vec![0; documents.len()];
            return Ok(RankedDocuments { documents, scores });
        }
        let scores = self.score_documents(session, search, &documents, statistics)?;
        Ok(RankedDocuments { documents, scores })
    }

    /// Keeps the documents (ascending) that pass the required and excluded items, the time window
    /// and the filters. Optional items do not matter.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: too many messages for a filter `speaker:` without words; `conflict`: the
    /// conversation has changed; `corrupt`: the index is damaged; `unsupported`: a record has a
    /// newer format; errors of the store.
    pub(crate) fn retain_admissible(
        &self,
        session: &mut StoreSession<'_>,
        search: &FullTextContext<'_>,
        documents: &mut Vec<u64>,
    ) -> Result<()> {
        let FullTextContext { index, query, window, .. } = *search;
        for (item, postings) in query.items.iter().zip(&self.items) {
            match item.presence {
                Presence::Must => intersect_in_place(documents, &postings.documents),
                Presence::MustNot => subtract_in_place(documents, &postings.documents),
                Presence::Should => {}
            }
        }
        if !window.is_unbounded() {
            let times = self.read_times(session, index, documents)?;
            retain_by_value(documents, &times, |time| window.contains(*time));
        }
        self.apply_filters(session, search, documents)
    }

    /// Returns the messages (ascending) that call a tool of this engine or have an answer of one.
    pub(crate) fn engine_tool_documents(&self) -> &[u64] {
        term_documents(&self.terms, Some(&3))
    }

    /// Scores documents (ascending) that match.
    fn score_documents(
        &self,
        session: &mut StoreSession<'_>,
        search: &FullTextContext<'_>,
        documents: &[u64],
        statistics: &CorpusStatistics,
    ) -> Result<Vec<u64>> {
        let FullTextContext { index, query, .. } = *search;
        let are_messages = self.corpus == Corpus::Messages;
        let all = statistics.documents;
        let mean = score::compute_mean_length(all, statistics.length_total, are_messages);
        let document_layout = self.read_layout(session, index, documents)?;
        let mut ranker = Ranker::new(documents, &document_layout, mean);
        let questions = term_documents(&self.terms, Some(&1));
        let has_spoken =
            |name: &usize| statistics.speaker_counts.get(*name).is_some_and(|n| n[0] > 0);
        for ((item, postings), holding) in
            query.items.iter().zip(&self.items).zip(&statistics.item_counts)
        {
            if item.presence == Presence::MustNot || postings.documents.is_empty() {
                continue;
            }
            let [any, sessions, typed] = *holding;
            let weights = [(all, any), (statistics.sessions, sessions), (all, typed)]
                .map(|(of, holding)| score::compute_idf(of, holding));
            let [any, sessions, typed] =
                ranking::scale_weights(weights, item.name.as_ref().is_some_and(has_spoken));
            if item.is_identifier {
                ranker.add_identifier(&postings.documents, any);
            }
            let apart;
            let layout = if postings.documents == documents {
                &document_layout
            } else {
                apart = self.read_layout(session, index, &postings.documents)?;
                &apart
            };
            let term_postings = TermPostings { postings, layout };
            ranker.add_session(&term_postings, sessions);
            let as_typed = item.terms.first().filter(|_| !item.forms.is_empty());
            match as_typed.and_then(|term| self.terms.get(*term)) {
                None => ranker.add_term(&term_postings, questions, &[any]),
                // The word occurs only in the form that was typed.
                Some(same) if same == postings => {
                    ranker.add_term(&term_postings, questions, &[any, typed])
                }
                Some(postings) => {
                    ranker.add_term(&term_postings, questions, &[any]);
                    let layout = &self.read_layout(session, index, &postings.documents)?;
                    ranker.add_term(&TermPostings { postings, layout }, questions, &[typed]);
                }
            }
        }
        let names = (0..query.names.len()).filter(has_spoken).count();
        for (name, [documents, sessions]) in query.names.iter().zip(&statistics.speaker_counts) {
            let spoken = term_documents(&self.terms, Some(name));
            let weights = [
                score::compute_idf(all, *documents),
                score::compute_idf(statistics.sessions, *sessions),
            ];
            ranker.add_speaker(spoken, &self.sessions.session_numbers(spoken), weights, names);
        }
        if let Some(date) = query.date.filter(|_| are_messages && query.is_question()) {
            ranker.add_date(&self.read_times(session, index, documents)?, date);
        }
        ranker.penalize_questions(term_documents(&self.terms, Some(&2)), &document_layout.lengths);
        Ok(ranker.scores)
    }

    /// Reads the lengths and sessions of documents (ascending).
    fn read_layout(
        &self,
        session: &mut StoreSession<'_>,
        index: &SearchIndex,
        documents: &[u64],
    ) -> Result<DocumentLayout> {
        let lengths = self.read_column(
            documents,
            |entry| entry.length,
            |stored| index.read_lengths(session, self.corpus, stored),
        )?;
        Ok(DocumentLayout { lengths, sessions: self.sessions.session_numbers(documents) })
    }

    /// Returns the documents with every required item, or with any optional item if none is
    /// required, or all documents if the query has neither. Removes documents with excluded items.
    fn find_candidates(&self, search: &FullTextContext<'_>) -> Vec<u64> {
        let FullTextContext { history, index, query, .. } = *search;
        let of = |presence: Presence| {
            let items = query.items.iter().zip(&self.items);
            items.filter(move |(item, _)| item.presence == presence).map(|(_, found)| found)
        };
        let mut must = of(Presence::Must);
        let mut documents = match must.next() {
            Some(first) => {
                let mut documents = first.documents.clone();
                must.for_each(|other| intersect_in_place(&mut documents, &other.documents));
                documents
            }
            None if query.has_text_items() => {
                let mut any: Vec<&[u64]> =
                    of(Presence::Should).map(|item| item.documents.as_slice()).collect();
                // Short lists first: the merged list stays short for longer.
                sort::sort_by(&mut any, &mut |left, right| left.len().cmp(&right.len()));
                any.into_iter().fold(Vec::new(), union_documents)
            }
            None => match self.corpus {
                Corpus::Messages => (1..=history.head.messages).collect(),
                Corpus::Summaries => (1..=index.count_documents(self.corpus)).collect(),
            },
        };
        for without in of(Presence::MustNot) {
            subtract_in_place(&mut documents, &without.documents);
        }
        documents
    }

    /// Keeps the documents that pass the filters. If the query has a filter, no summary passes.
    ///
    /// Of several filters for tools one must match, likewise for roles and for speakers. No negated
    /// filter may match.
    fn apply_filters(
        &self,
        session: &mut StoreSession<'_>,
        search: &FullTextContext<'_>,
        documents: &mut Vec<u64>,
    ) -> Result<()> {
        let FullTextContext { history, index, query, .. } = *search;
        if query.filters.is_empty() {
            return Ok(());
        }
        if self.corpus == Corpus::Summaries {
            // Summaries have no speaker, tool or role.
            documents.clear();
            return Ok(());
        }
        self.filter_tools(query, documents);
        let has =
            |kind: fn(&FilterProperty) -> bool| query.filters.iter().any(|f| kind(&f.property));
        if has(|property| matches!(property, FilterProperty::Role(_))) {
            let roles = self.read_column(
                documents,
                |entry| entry.role,
                |stored| index.read_roles(session, stored),
            )?;
            retain_by_value(documents, &roles, |role| is_role_allowed(&query.filters, *role));
        }
        self.filter_speakers(session, history, query, documents)
    }

    /// Keeps the documents that pass the filters for speakers.
    ///
    /// A filter matches a speaker whose name has all words of the filter. A filter without words
    /// matches only an equal name.
    fn filter_speakers(
        &self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        query: &TextQuery,
        documents: &mut Vec<u64>,
    ) -> Result<()> {
        for negated in [false, true] {
            let (mut named, mut read, mut has_filter) = (Vec::new(), None, false);
            for filter in query.filters.iter().filter(|filter| filter.is_negated == negated) {
                let FilterProperty::Speaker { name, words } = &filter.property else { continue };
                has_filter = true;
                let spoken = match words.split_first() {
                    Some((first, rest)) => {
                        let mut spoken = term_documents(&self.terms, Some(first)).to_vec();
                        rest.iter().for_each(|word| {
                            intersect_in_place(
                                &mut spoken,
                                term_documents(&self.terms, Some(word)),
                            );
                        });
                        spoken
                    }
                    None => {
                        if read.is_none() {
                            read = Some(read_speakers(session, history, documents)?);
                        }
                        let mut spoken = documents.clone();
                        let speakers = read.as_deref().unwrap_or_default();
                        retain_by_value(&mut spoken, speakers, |speaker| {
                            speaker.as_ref() == Some(name)
                        });
                        spoken
                    }
                };
                named = union_documents(named, &spoken);
            }
            match negated {
                _ if !has_filter => {}
                true => subtract_in_place(documents, &named),
                false => intersect_in_place(documents, &named),
            }
        }
        Ok(())
    }

    fn filter_tools(&self, query: &TextQuery, documents: &mut Vec<u64>) {
        let of = |number: usize| term_documents(&self.terms, Some(&number));
        let named = |negated: bool| {
            query.filters.iter().filter(move |filter| filter.is_negated == negated).filter_map(
                |filter| match filter.property {
                    FilterProperty::Tool(term) => Some(term),
                    _ => None,
                },
            )
        };
        if named(false).next().is_some() {
            let any = named(false).fold(Vec::new(), |all, term| union_documents(all, of(term)));
            intersect_in_place(documents, &any);
        }
        named(true).for_each(|term| subtract_in_place(documents, of(term)));
    }

    /// Reads the times of documents (ascending).
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`: the index is damaged; `unsupported`: a
    /// record has a newer format; errors of the store.
    pub(crate) fn read_times(
        &self,
        session: &mut StoreSession<'_>,
        index: &SearchIndex,
        documents: &[u64],
    ) -> Result<Vec<Timestamp>> {
        self.read_column(
            documents,
            |entry| entry.time,
            |stored| index.read_times(session, self.corpus, stored),
        )
    }

    /// Returns a property of each document (ascending): by `of_unindexed` for messages outside the
    /// index, by `of_stored` for all other documents.
    fn read_column<T>(
        &self,
        documents: &[u64],
        of_unindexed: impl Fn(&UnindexedEntry) -> T,
        of_stored: impl FnOnce(&[u64]) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        if self.unindexed.entries.is_empty() {
            return of_stored(documents);
        }
        let is_stored = |document: &u64| self.unindexed.find_entry(*document).is_none();
        let stored: Vec<u64> = documents.iter().copied().filter(is_stored).collect();
        let mut values = of_stored(&stored)?.into_iter();
        let value = |document: &u64| match self.unindexed.find_entry(*document) {
            Some(entry) => Some(of_unindexed(entry)),
            None => values.next(),
        };
        Ok(documents.iter().filter_map(value).collect())
    }
}

/// Returns whether a role passes the role filters.
fn is_role_allowed(filters: &[QueryFilter], role: Role) -> bool {
    let compare = |filter: &QueryFilter| match &filter.property {
        FilterProperty::Role(other) => Some(*other == role),
        _ => None,
    };
    let mut allowed =
        filters.iter().filter(|filter| !filter.is_negated).filter_map(compare).peekable();
    let is_allowed = allowed.peek().is_none() || allowed.any(|is_equal| is_equal);
    let mut excluded = filters.iter().filter(|filter| filter.is_negated).filter_map(compare);
    is_allowed && !excluded.any(|is_equal| is_equal)
}

/// Reads the member `speaker` of messages (ascending), in lower case; `None`: no such member.
///
/// # Errors
///
/// `limit-exceeded`: more than [`SPEAKERS_READ_MAX`] messages; errors of the store.
fn read_speakers(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seqs: &[u64],
) -> Result<Vec<Option<String>>> {
    if seqs.len() > SPEAKERS_READ_MAX {
        return Err(Error::limit_exceeded(format_args!(
            "`pattern` with a `speaker:` name without letters or digits must leave at most \
             {SPEAKERS_READ_MAX} messages to compare, got {}; add words, `since:` or `before:`",
            seqs.len()
        )));
    }
    let mut out = Vec::with_capacity(seqs.len());
    let ranges: Vec<(u64, u64)> = seqs.iter().map(|seq| (*seq, *seq)).collect();
    history.visit_messages(session, &ranges, &mut |_, message| {
        let members = json::parse_object(message.text)?;
        let speaker = json::find_member(&members, message.text, "speaker");
        out.push(
            speaker.map(|member| char_fold::lower_text(&json::text(message.text, member.value))),
        );
        Ok(())
    })?;
    Ok(out)
}
