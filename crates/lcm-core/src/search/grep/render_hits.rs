//! Rendering of hits in messages and summaries, and the best passage of a text.
//!
//! Input: hits and the pattern. Output: a JSON object for each hit, with its best passage. `ask`
//! uses the passages alone. Elsewhere: neighbours of a hit (`neighbours`), hits in files
//! (`file_search`).

use crate::storage::pack::PlacedMessage;
use alloc::{string::String, vec::Vec};
use core::iter;

use super::{
    hits::GrepHit,
    pattern::GrepPattern,
    searched_conversation::{GrepContext, SearchedConversation},
};
use crate::{
    search::{
        corpus::Corpus,
        fields::{IndexingBudget, SearchField, each_field},
        index_reader::SearchIndex,
        score,
        snippet::{Highlight, Snippet, build_snippet, find_best_passage},
        terms::each_term,
        text_query::{Presence, TextQuery},
    },
    storage::{
        codec,
        history::MessageHistory,
        store_session::StoreSession,
        summary::{self, Summary},
        withdrawn_mark::{self, WITHDRAWN, WithdrawnMark},
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{self, JsonWriter},
        sort::{self, SortedMap},
        tokens,
    },
    types::api::Timestamp,
};

/// A hit as JSON.
#[derive(Default)]
pub(super) struct RenderedHit {
    pub(super) json: String,
    /// Estimated tokens of the passage, and of added neighbours.
    pub(super) tokens: u32,
}

/// Renders hits in their order.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged, or is
/// missing under an unchanged head; `unsupported`: a record has a newer format; errors of the
/// store.
pub(super) fn render_hits(
    session: &mut StoreSession<'_>,
    context: &GrepContext<'_>,
    pattern: &mut GrepPattern,
    hits: &[GrepHit],
) -> Result<Vec<RenderedHit>> {
    let mut finder = SnippetFinder::new(pattern);
    let mut rendered: Vec<RenderedHit> = hits.iter().map(|_| RenderedHit::default()).collect();
    for (number, conversation, index) in context.iter() {
        for corpus in [Corpus::Messages, Corpus::Summaries] {
            let mut numbered: Vec<(u64, usize)> = hits
                .iter()
                .enumerate()
                .filter(|(_, hit)| hit.conversation_number == number && hit.corpus == corpus)
                .map(|(at, hit)| (hit.document, at))
                .collect();
            if numbered.is_empty() {
                continue;
            }
            sort::sort(&mut numbered);
            conversation.enter_conversation(session);
            let documents: Vec<u64> = numbered.iter().map(|(document, _)| *document).collect();
            let rows = match corpus {
                Corpus::Messages => {
                    read_message_rows(session, conversation, &documents, &mut finder)?
                }
                Corpus::Summaries => {
                    read_summary_rows(session, conversation, index, &documents, &mut finder)?
                }
            };
            for ((_, at), row) in numbered.into_iter().zip(rows) {
                let score = hits.get(at).and_then(|hit| hit.score).map(score::to_thousandths);
                if let Some(slot) = rendered.get_mut(at) {
                    let tokens = tokens::estimate(&row.snippet.text);
                    *slot =
                        RenderedHit { json: row.render_json(&conversation.name, score), tokens };
                }
            }
        }
    }
    rendered.retain(|row| !row.json.is_empty());
    Ok(rendered)
}

/// Values of one rendered hit.
struct HitRow {
    id: String,
    created_at: Timestamp,
    snippet: Snippet,
    source: HitSource,
    /// Mark of a withdrawn message, or of a summary whose messages are all withdrawn; `None`: no
    /// such mark.
    mark: Option<WithdrawnMark>,
}

/// Values that depend on the kind of document.
enum HitSource {
    Message { entry_id: Option<String>, seq: u64, role: &'static str },
    Summary { depth: u32, kind: &'static str, earliest_at: Timestamp, latest_at: Timestamp },
}

impl HitRow {
    fn render_json(&self, conversation: &str, score: Option<u64>) -> String {
        let (depth, kind, entry_id, seq, role, of) = match &self.source {
            HitSource::Message { entry_id, seq, role } => {
                (None, "message", entry_id.as_deref(), Some(*seq), Some(*role), "message")
            }
            HitSource::Summary { depth, kind, .. } => {
                (Some(u64::from(*depth)), *kind, None, None, None, "summary")
            }
        };
        let mut w = JsonWriter::new_object();
        w.add_text("conversation", conversation);
        w.add_message_time("created_at", self.created_at);
        w.add_optional_number("depth", depth);
        match &self.source {
            HitSource::Summary { earliest_at, .. } => {
                w.add_message_time("earliest_at", *earliest_at)
            }
            HitSource::Message { .. } => w.add_null("earliest_at"),
        }
        w.add_optional_text("entry_id", entry_id);
        w.add_text("id", &self.id);
        w.add_text("kind", kind);
        match &self.source {
            HitSource::Summary { latest_at, .. } => w.add_message_time("latest_at", *latest_at),
            HitSource::Message { .. } => w.add_null("latest_at"),
        }
        w.add_optional_text("role", role);
        w.add_optional_number("score", score);
        w.add_optional_number("seq", seq);
        self.snippet.write(&mut w);
        w.add_text("type", of);
        if let Some(mark) = self.mark {
            w.add_text(WITHDRAWN, mark.as_str());
        }
        w.end_object()
    }
}

fn read_message_rows(
    session: &mut StoreSession<'_>,
    conversation: &SearchedConversation,
    seqs: &[u64],
    finder: &mut SnippetFinder<'_>,
) -> Result<Vec<HitRow>> {
    let history = conversation.message_history();
    let placed = history.read_messages_at(session, seqs)?;
    history.prefetch_texts(session, &placed)?;
    placed.iter().map(|placed| read_message_row(session, &history, placed, finder)).collect()
}

fn read_message_row(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    placed: &PlacedMessage,
    finder: &mut SnippetFinder<'_>,
) -> Result<HitRow> {
    let stored = &placed.stored;
    let raw = history.read_text(session, stored)?;
    let mut best = BestPassage::default();
    let mut budget = IndexingBudget::new(stored.raw.bytes());
    each_field(&raw, &stored.parts, &mut |field, text| {
        finder.search_text(field, &text, &mut budget, &mut best);
    });
    let entry_id = stored.entry_id.map(|span| json::text(&raw, span).into_owned());
    Ok(HitRow {
        id: history.keys.message_id(placed.seq),
        created_at: stored.time,
        snippet: best.snippet,
        source: HitSource::Message { entry_id, seq: placed.seq, role: stored.role.as_str() },
        mark: withdrawn_mark::find_mark(session, history, placed.seq)?,
    })
}

fn read_summary_rows(
    session: &mut StoreSession<'_>,
    conversation: &SearchedConversation,
    index: &SearchIndex,
    ordinals: &[u64],
    finder: &mut SnippetFinder<'_>,
) -> Result<Vec<HitRow>> {
    let references = index.read_summaries(session, ordinals)?;
    let records: Vec<(String, u32)> =
        references.iter().map(|(id, bytes)| (conversation.keys.summary_key(*id), *bytes)).collect();
    let values = session.read_immutable(&records)?;
    if values.len() != ordinals.len() {
        return Err(Error::corrupt_store(format_args!(
            "the search index of conversation `{}` must have an id for each summary",
            conversation.name
        )));
    }
    let mut rows = Vec::new();
    for (((id, _), (key, _)), value) in references.iter().zip(&records).zip(values) {
        let record: Summary = codec::decode(key, &value)?;
        let mut best = BestPassage::default();
        let mut budget = IndexingBudget::new(0);
        finder.search_text(SearchField::Text, &record.text, &mut budget, &mut best);
        rows.push(HitRow {
            id: summary::format_summary_id(*id),
            created_at: record.created_at,
            snippet: best.snippet,
            source: HitSource::Summary {
                depth: record.depth,
                kind: record.kind(),
                earliest_at: record.earliest_at,
                latest_at: record.latest_at,
            },
            mark: withdrawn_mark::find_summary_mark(
                session,
                &conversation.message_history(),
                &record,
            )?,
        });
    }
    Ok(rows)
}

/// Best passage found so far in one document; weight `None`: no passage yet.
#[derive(Default)]
pub(super) struct BestPassage {
    snippet: Snippet,
    weight: Option<u64>,
}

impl BestPassage {
    /// Returns the passage; `None`: the document was not searched, or has no match of a regular
    /// expression.
    pub(super) fn into_match(self) -> Option<Snippet> {
        self.weight.map(|_| self.snippet)
    }
}

/// Finds the best passage of a document: for words the one of greatest weight, for a regular
/// expression the first match.
pub(super) enum SnippetFinder<'s> {
    /// Terms of the query, each with the number of its item.
    Text(SortedMap<&'s [u8], usize>),
    Regex(&'s mut crate::search::regex::Regex),
}

impl<'s> SnippetFinder<'s> {
    pub(super) fn new(pattern: &'s mut GrepPattern) -> Self {
        match pattern {
            GrepPattern::Regex(regex) => {
                regex.reset_budget();
                Self::Regex(regex)
            }
            GrepPattern::Text(query) => Self::Text(collect_query_terms(query)),
        }
    }

    /// Searches one text of a document, and replaces `best` by a better passage. In a search for
    /// words, a document in which no word occurs gets the beginning of its first text. In a search
    /// with a regular expression, a document without a match gets an empty snippet.
    pub(super) fn search_text(
        &mut self,
        field: SearchField,
        text: &str,
        budget: &mut IndexingBudget,
        best: &mut BestPassage,
    ) {
        match self {
            Self::Regex(regex) => {
                if best.weight.is_none()
                    && let Some(range) = regex.find(text)
                {
                    let snippet = build_snippet(text, range.start, &mut iter::once(range));
                    *best = BestPassage { snippet, weight: Some(1) };
                }
            }
            Self::Text(terms) => {
                for text in budget.take_edges(text) {
                    let highlights = find_highlights(terms, field, text);
                    let (weight, at) = find_best_passage(&highlights).unwrap_or((0, 0));
                    if !text.is_empty() && best.weight.is_none_or(|other| weight > other) {
                        let snippet = build_snippet(
                            text,
                            at,
                            &mut highlights.into_iter().map(|highlight| highlight.bytes),
                        );
                        *best = BestPassage { snippet, weight: Some(weight) };
                    }
                }
            }
        }
    }
}

/// Maps each term of the items that are not excluded to the number of its item among these items.
fn collect_query_terms(query: &TextQuery) -> SortedMap<&[u8], usize> {
    let counting = query.items.iter().filter(|item| item.presence != Presence::MustNot);
    let terms = counting.enumerate().flat_map(|(what, item)| {
        let numbers = item.terms.iter().chain(&item.forms);
        numbers.filter_map(move |number| Some((query.terms.get(*number)?.as_slice(), what)))
    });
    SortedMap::from_entries(terms.collect())
}

/// Finds the terms of the query in a text, in order. Longer terms have a greater weight.
fn find_highlights(
    terms: &SortedMap<&[u8], usize>,
    field: SearchField,
    text: &str,
) -> Vec<Highlight> {
    let mut highlights = Vec::new();
    each_term(field, text, &mut |term, _, bytes| {
        if let Some(what) = terms.get(term) {
            let weight = 4 + lcm_text::base::int::to_u64(term.len());
            highlights.push(Highlight { bytes, what: *what, weight });
        }
    });
    highlights
}

/// Returns the byte at which the best passage of a text begins; 0 if no term of the query occurs.
pub(crate) fn find_query_offset(query: &TextQuery, text: &str) -> usize {
    find_best_passage(&find_highlights(&collect_query_terms(query), SearchField::Text, text))
        .map_or(0, |(_, at)| at)
}

/// Returns the weight and the text of the best passage; `None` if no term of the query occurs.
pub(crate) fn find_query_passage(query: &TextQuery, text: &str) -> Option<(u64, String)> {
    let (weight, at) =
        find_best_passage(&find_highlights(&collect_query_terms(query), SearchField::Text, text))?;
    Some((weight, build_snippet(text, at, &mut iter::empty()).text))
}
