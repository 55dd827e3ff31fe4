//! What is shown of hits: the documents themselves are read only here, and only those of the hits.
//!
//! In: hits and what was sought. Out: a JSON object for each, with its best passage. Not here: what
//! stands beside a hit (`neighbours`), hits in files (`files`).

use crate::storage::pack::Placed;
use alloc::{string::String, vec::Vec};
use core::iter;

use super::{Place, Sought, find::Hit};
use crate::{
    search::{
        Allowance, Corpus, Field, Index, each_field, each_term,
        query::{Presence, TextQuery},
        score,
        snippet::{Mark, Snippet, best_passage, passage},
    },
    storage::{
        codec,
        history::History,
        store_session::Reader,
        summary::{self, Summary},
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{self, Writer},
        sort::{self, Sorted},
        tokens,
    },
    types::api::Timestamp,
};

/// A hit as it is shown.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) json: String,
    /// Of its passage.
    pub(super) tokens: u32,
}

/// The hits, in their order.
///
/// # Errors
///
/// As [`Reader::immutable`].
pub(super) fn show(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    sought: &mut Sought,
    hits: &[Hit],
) -> Result<Vec<Shown>> {
    let mut glass = Glass::new(sought);
    let mut shown: Vec<Shown> = hits.iter().map(|_| Shown::default()).collect();
    for ((number, place), index) in places.iter().enumerate().zip(indexes) {
        for corpus in [Corpus::Messages, Corpus::Summaries] {
            let mut wanted: Vec<(u64, usize)> = hits
                .iter()
                .enumerate()
                .filter(|(_, hit)| hit.place == number && hit.corpus == corpus)
                .map(|(at, hit)| (hit.document, at))
                .collect();
            if wanted.is_empty() {
                continue;
            }
            sort::sort(&mut wanted);
            place.enter(reader);
            let documents: Vec<u64> = wanted.iter().map(|(document, _)| *document).collect();
            let rows = match corpus {
                Corpus::Messages => messages(reader, place, &documents, &mut glass)?,
                Corpus::Summaries => summaries(reader, place, index, &documents, &mut glass)?,
            };
            for ((_, at), row) in wanted.into_iter().zip(rows) {
                let score = hits.get(at).and_then(|hit| hit.score).map(score::thousandths);
                if let Some(slot) = shown.get_mut(at) {
                    let tokens = tokens::estimate(&row.snippet.text);
                    *slot = Shown { json: row.json(&place.name, score), tokens };
                }
            }
        }
    }
    shown.retain(|row| !row.json.is_empty());
    Ok(shown)
}

/// What is shown of a hit.
struct Row {
    id: String,
    created_at: Timestamp,
    snippet: Snippet,
    of: Of,
}

/// What the hit is.
enum Of {
    Message { entry_id: Option<String>, seq: u64, role: &'static str },
    Summary { depth: u32, kind: &'static str },
}

impl Row {
    fn json(&self, conversation: &str, score: Option<u64>) -> String {
        let (depth, kind, entry_id, seq, role, of) = match &self.of {
            Of::Message { entry_id, seq, role } => {
                (None, "message", entry_id.as_deref(), Some(*seq), Some(*role), "message")
            }
            Of::Summary { depth, kind } => {
                (Some(u64::from(*depth)), *kind, None, None, None, "summary")
            }
        };
        let mut w = Writer::object();
        w.text("conversation", conversation);
        w.time("created_at", self.created_at);
        w.number_or_null("depth", depth);
        w.text_or_null("entry_id", entry_id);
        w.text("id", &self.id);
        w.text("kind", kind);
        w.text_or_null("role", role);
        w.number_or_null("score", score);
        w.number_or_null("seq", seq);
        self.snippet.write(&mut w);
        w.text("type", of);
        w.end_object()
    }
}

fn messages(
    reader: &mut Reader<'_>,
    place: &Place,
    seqs: &[u64],
    glass: &mut Glass<'_>,
) -> Result<Vec<Row>> {
    let history = History { keys: &place.keys, head: &place.loaded.head };
    let placed = history.scattered(reader, seqs)?;
    history.fetch_texts(reader, &placed)?;
    placed.iter().map(|placed| message(reader, &history, placed, glass)).collect()
}

fn message(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    placed: &Placed,
    glass: &mut Glass<'_>,
) -> Result<Row> {
    let stored = &placed.stored;
    let raw = history.text(reader, stored)?;
    let mut found = Passage::default();
    let mut allowance = Allowance::new(stored.raw.bytes());
    each_field(&raw, &stored.parts, &mut |field, text| {
        glass.look(field, &text, &mut allowance, &mut found);
    });
    let entry_id = stored.entry_id.map(|span| json::text(&raw, span).into_owned());
    Ok(Row {
        id: history.keys.message_name(placed.seq),
        created_at: stored.time,
        snippet: found.shown,
        of: Of::Message { entry_id, seq: placed.seq, role: stored.role.as_str() },
    })
}

fn summaries(
    reader: &mut Reader<'_>,
    place: &Place,
    index: &mut Index,
    ordinals: &[u64],
    glass: &mut Glass<'_>,
) -> Result<Vec<Row>> {
    let places = index.summaries(reader, ordinals)?;
    let wanted: Vec<(String, u32)> =
        places.iter().map(|(id, bytes)| (place.keys.summary(*id), *bytes)).collect();
    let values = reader.immutable(&wanted)?;
    if values.len() != ordinals.len() {
        return Err(Error::corrupt("the index names fewer summaries than it found"));
    }
    let mut rows = Vec::new();
    for (((id, _), (key, _)), value) in places.iter().zip(&wanted).zip(values) {
        let record: Summary = codec::decode(key, &value)?;
        let mut found = Passage::default();
        let mut allowance = Allowance::new(0);
        glass.look(Field::Text, &record.text, &mut allowance, &mut found);
        rows.push(Row {
            id: summary::name(*id),
            created_at: record.created_at,
            snippet: found.shown,
            of: Of::Summary { depth: record.depth, kind: record.kind() },
        });
    }
    Ok(rows)
}

/// The best passage so far.
#[derive(Default)]
struct Passage {
    shown: Snippet,
    weight: Option<u64>,
}

/// Looks for what was sought in the texts of a hit.
enum Glass<'s> {
    /// Number of each term of the query, and what it is worth showing.
    Text(Sorted<&'s [u8], usize>),
    Regex(&'s mut crate::search::regex::Regex),
}

impl<'s> Glass<'s> {
    fn new(sought: &'s mut Sought) -> Self {
        match sought {
            Sought::Regex(regex) => {
                regex.begin_finding();
                Self::Regex(regex)
            }
            Sought::Text(query) => Self::Text(terms(query)),
        }
    }

    /// Looks at one text; a better passage replaces the one found before.
    fn look(&mut self, field: Field, text: &str, allowance: &mut Allowance, found: &mut Passage) {
        match self {
            Self::Regex(regex) => {
                if found.weight.is_none()
                    && let Some(range) = regex.find(text)
                {
                    let shown = passage(text, range.start, &mut iter::once(range));
                    *found = Passage { shown, weight: Some(1) };
                }
            }
            Self::Text(terms) => {
                for text in allowance.cut(text) {
                    let marks = marks(terms, field, text);
                    let (weight, at) = best_passage(&marks).unwrap_or((0, 0));
                    if !text.is_empty() && found.weight.is_none_or(|known| weight > known) {
                        let shown = passage(text, at, &mut marks.into_iter().map(|m| m.bytes));
                        *found = Passage { shown, weight: Some(weight) };
                    }
                }
            }
        }
    }
}

/// The terms whose places are shown: those that count for a document.
fn terms(query: &TextQuery) -> Sorted<&[u8], usize> {
    let counting = query.items.iter().filter(|item| item.presence != Presence::MustNot);
    let found = counting.enumerate().flat_map(|(what, item)| {
        let numbers = item.terms.iter().chain(&item.forms);
        numbers.filter_map(move |number| Some((query.terms.get(*number)?.as_slice(), what)))
    });
    Sorted::of(found.collect())
}

/// Where the terms stand in a text. The longer a term the more it says.
fn marks(terms: &Sorted<&[u8], usize>, field: Field, text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    each_term(field, text, &mut |term, _, bytes| {
        if let Some(what) = terms.get(term) {
            let weight = 4 + lcm_text::base::int::to_u64(term.len());
            marks.push(Mark { bytes, what: *what, weight });
        }
    });
    marks
}

/// Where the passage of a text begins that shows best what a query seeks; 0: none does.
pub(crate) fn best_place(query: &TextQuery, text: &str) -> usize {
    best_passage(&marks(&terms(query), Field::Text, text)).map_or(0, |(_, at)| at)
}

/// That passage with its weight; `None`: the text has nothing of the query.
pub(crate) fn best_passage_of(query: &TextQuery, text: &str) -> Option<(u64, String)> {
    let (weight, at) = best_passage(&marks(&terms(query), Field::Text, text))?;
    Some((weight, passage(text, at, &mut iter::empty()).text))
}
