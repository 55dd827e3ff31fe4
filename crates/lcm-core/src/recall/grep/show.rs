//! What is shown of hits: the documents themselves are read only here, and only those of the hits.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde_json::{Value, json};

use super::{Place, Sought, find::Hit};
use crate::{
    codec,
    error::{Error, Result},
    history::{History, Placed},
    json as scanner,
    reader::Reader,
    search::{
        Allowance, Family, Field, Index, each_field, each_term,
        query::{Presence, TextQuery},
        score,
        snippet::{Mark, best_passage, passage},
    },
    summary::{self, Summary},
    time,
};

/// The hits as JSON, in their order.
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
) -> Result<Vec<Value>> {
    let mut glass = Glass::new(sought);
    let mut shown: Vec<Option<Value>> = hits.iter().map(|_| None).collect();
    for ((number, place), index) in places.iter().enumerate().zip(indexes) {
        for family in [Family::Messages, Family::Summaries] {
            let mut wanted: Vec<(u64, usize)> = hits
                .iter()
                .enumerate()
                .filter(|(_, hit)| hit.place == number && hit.family == family)
                .map(|(at, hit)| (hit.document, at))
                .collect();
            if wanted.is_empty() {
                continue;
            }
            wanted.sort_unstable();
            place.enter(reader);
            let documents: Vec<u64> = wanted.iter().map(|(document, _)| *document).collect();
            let rows = match family {
                Family::Messages => messages(reader, place, &documents, &mut glass)?,
                Family::Summaries => summaries(reader, place, index, &documents, &mut glass)?,
            };
            for ((_, at), mut row) in wanted.into_iter().zip(rows) {
                let score = hits.get(at).and_then(|hit| hit.score).map(score::thousandths);
                if let Some(object) = row.as_object_mut() {
                    object.insert("conversation".into(), place.name.as_str().into());
                    object.insert("score".into(), score.into());
                }
                if let Some(slot) = shown.get_mut(at) {
                    *slot = Some(row);
                }
            }
        }
    }
    Ok(shown.into_iter().flatten().collect())
}

fn messages(
    reader: &mut Reader<'_>,
    place: &Place,
    seqs: &[u64],
    glass: &mut Glass<'_>,
) -> Result<Vec<Value>> {
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
) -> Result<Value> {
    let stored = &placed.stored;
    let raw = history.text(reader, stored)?;
    let mut found = Passage::default();
    let mut allowance = Allowance::new(stored.raw.bytes());
    each_field(&raw, &stored.parts, &mut |field, text| {
        glass.look(field, &text, &mut allowance, &mut found);
    });
    Ok(json!({
        "type": "message",
        "id": history.keys.message_name(placed.seq),
        "entry_id": stored.entry_id.map(|span| scanner::text(&raw, span).into_owned()),
        "seq": placed.seq,
        "role": stored.role.as_str(),
        "created_at": time::iso_millis(stored.time),
        "snippet": found.text,
        "depth": Value::Null,
        "kind": "message",
    }))
}

fn summaries(
    reader: &mut Reader<'_>,
    place: &Place,
    index: &mut Index,
    ordinals: &[u64],
    glass: &mut Glass<'_>,
) -> Result<Vec<Value>> {
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
        rows.push(json!({
            "type": "summary",
            "id": summary::name(*id),
            "entry_id": Value::Null,
            "seq": Value::Null,
            "role": Value::Null,
            "created_at": time::iso_millis(record.created_at),
            "snippet": found.text,
            "depth": record.depth,
            "kind": record.kind(),
        }));
    }
    Ok(rows)
}

/// The best passage so far.
#[derive(Default)]
struct Passage {
    text: String,
    weight: Option<u64>,
}

/// Looks for what was sought in the texts of a hit.
enum Glass<'s> {
    /// Number of each term of the query, and what it is worth showing.
    Text(BTreeMap<&'s [u8], usize>),
    Regex(&'s mut crate::search::regex::Regex),
}

impl<'s> Glass<'s> {
    fn new(sought: &'s mut Sought) -> Self {
        match sought {
            Sought::Regex(regex) => Self::Regex(regex),
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
                    *found = Passage { text: passage(text, range.start), weight: Some(1) };
                }
            }
            Self::Text(terms) => {
                for text in allowance.cut(text) {
                    let best = best_passage(&marks(terms, field, text));
                    let (weight, at) = best.unwrap_or((0, 0));
                    if !text.is_empty() && found.weight.is_none_or(|known| weight > known) {
                        *found = Passage { text: passage(text, at), weight: Some(weight) };
                    }
                }
            }
        }
    }
}

/// The terms whose places are shown: those that count for a document.
fn terms(query: &TextQuery) -> BTreeMap<&[u8], usize> {
    let counting = query.items.iter().filter(|item| item.presence != Presence::MustNot);
    counting
        .flat_map(|item| &item.terms)
        .filter_map(|number| Some((query.terms.get(*number)?.as_slice(), *number)))
        .collect()
}

/// Where the terms stand in a text. The longer a term the more it says.
fn marks(terms: &BTreeMap<&[u8], usize>, field: Field, text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    each_term(field, text, &mut |term, _, bytes| {
        if let Some(what) = terms.get(term) {
            let weight = 4 + crate::num::to_u64(term.len());
            marks.push(Mark { bytes, what: *what, weight });
        }
    });
    marks
}
