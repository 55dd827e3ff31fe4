//! Which documents are near to a query's vector, and how that ranks together with its words.
//!
//! In: a vector, and what the words found. Out: the nearest of all conversations that are searched,
//! by signs first and then by whole vectors, and one order made of both. Whatever a query says a hit
//! must be holds for these, too. Not here: how vectors are compared ([`crate::search::vectors`]).

use alloc::{string::String, vec::Vec};

use super::{
    super::{Bounds, Place, Sort, Vector},
    Found, Hit, Open, covered,
};
use crate::{
    codec,
    error::Result,
    history::History,
    limits::{CALL_BYTES_MAX, KEYS_MAX, VECTOR_RESCORED_MAX, VECTOR_SIGNS_BYTES_MAX},
    num,
    order::{self, Sorted},
    reader::Reader,
    search::{
        Corpus, Index,
        query::TextQuery,
        score,
        vectors::{
            Vectors,
            block::{Block, block_bytes_max},
            block_key, damaged,
            nearness::{Probe, cosine, rank},
            vector_key,
        },
    },
};

/// What is added to a rank before it divides: k of reciprocal rank fusion, as it was published.
const RANK_ADDED: u64 = 60;
/// Best of each list that are fused, so that every answer is full.
pub(super) const FUSED_MAX: usize = 200;
/// What the first by words and by nearness scores, with 16 fractional bits.
const SCORE_FIRST: u64 = 1 << 16;

/// The vectors of one conversation that fit the query.
struct Shelf {
    /// Number of the conversation.
    place: usize,
    record: Vec<u8>,
    vectors: Vectors,
}

/// A document that seems near.
struct Candidate<'o> {
    open: &'o Open,
    document: u64,
}

/// The nearest documents, nearest first.
///
/// # Errors
///
/// `invalid-input`: vectors there are, but all of other dimensions or another model; `conflict`;
/// `corrupt`; of the store.
pub(super) fn nearest(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    opens: &[Open],
    query: &TextQuery,
    vector: &Vector,
    bounds: &Bounds,
    found: &mut Found,
) -> Result<List> {
    let shelves = shelves(reader, places, vector, found)?;
    let probe = Probe::new(&vector.parts);
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    let mut worths: Vec<(u64, u64)> = Vec::new();
    let mut left = VECTOR_SIGNS_BYTES_MAX;
    for shelf in &shelves {
        for open in opens.iter().filter(|open| open.place == shelf.place).rev() {
            let place = places.get(open.place).zip(indexes.get_mut(open.place));
            let Some((place, index)) = place else { continue };
            place.enter(reader);
            let signs = shelf.signs(reader, place, open.corpus, &mut left, found)?;
            let (mut documents, mut ranks) = (Vec::new(), Vec::new());
            for (number, block) in &signs {
                for (document, signs) in block.each(*number, vector.parts.len()) {
                    documents.push(document);
                    ranks.push(rank(probe.worth(signs)));
                }
            }
            let mut kept = documents.clone();
            admit(reader, place, index, open, query, bounds, &mut kept)?;
            let mut kept = kept.into_iter().peekable();
            for (document, rank) in documents.into_iter().zip(ranks) {
                if kept.next_if_eq(&document).is_some() {
                    worths.push((rank, num::to_u64(candidates.len())));
                    candidates.push(Candidate { open, document });
                }
            }
        }
    }
    let seeming = score::greatest(&mut worths.into_iter(), rescored_max(vector.parts.len()));
    let candidates: Vec<&Candidate<'_>> =
        seeming.iter().filter_map(|(_, at)| candidates.get(num::to_usize(*at))).collect();
    compared(reader, places, indexes, &shelves, &candidates, &vector.parts)
}

/// Hits in order.
type List = Vec<Hit>;

/// Whole vectors that a query reads: as many as fit one host call.
fn rescored_max(dimensions: usize) -> usize {
    let bytes = num::to_usize(CALL_BYTES_MAX.into());
    VECTOR_RESCORED_MAX.min(bytes / (dimensions + 2).max(1))
}

/// The conversations whose vectors fit the query.
fn shelves(
    reader: &mut Reader<'_>,
    places: &[Place],
    vector: &Vector,
    found: &mut Found,
) -> Result<Vec<Shelf>> {
    let keys: Vec<String> = places.iter().map(|place| place.keys.vectors()).collect();
    let (mut shelves, mut misfit) = (Vec::new(), None);
    for ((place, key), value) in keys.iter().enumerate().zip(reader.fresh(&keys)?) {
        let Some(record) = value else { continue };
        let Some(vectors) = Vectors::of(key, Some(&record))? else { continue };
        if vectors.count() == 0 {
            continue;
        }
        let dimensions = Some(num::to_u32(vector.parts.len()));
        match vectors.must_fit(dimensions, vector.model.as_deref()) {
            Ok(()) => shelves.push(Shelf { place, record, vectors }),
            Err(error) => misfit = Some(error),
        }
    }
    match misfit {
        Some(error) if shelves.is_empty() => return Err(error),
        Some(_) => found.notes.push("vectors-limited"),
        None if shelves.is_empty() => found.notes.push("vectors-absent"),
        None => {}
    }
    Ok(shelves)
}

impl Shelf {
    /// The newest blocks of a corpus, ascending by number, as far as `left` bytes go.
    fn signs(
        &self,
        reader: &mut Reader<'_>,
        place: &Place,
        corpus: Corpus,
        left: &mut usize,
        found: &mut Found,
    ) -> Result<Vec<(u64, Block)>> {
        let dimensions = num::to_usize(self.vectors.dimensions.into());
        let (side, bytes) = (self.vectors.side(corpus), block_bytes_max(dimensions));
        let mut wanted = Vec::new();
        for number in (0..side.blocks()).rev().filter(|number| side.of(*number).1 > 0) {
            // The bytes of signs count, not what stands before them.
            let Some(less) = left.checked_sub(dimensions.div_ceil(8) * 64) else {
                if !found.notes.contains(&"vectors-limited") {
                    found.notes.push("vectors-limited");
                }
                break;
            };
            *left = less;
            wanted.push((block_key(&place.keys, corpus, number), number));
        }
        wanted.reverse();
        let mut out = Vec::with_capacity(wanted.len());
        for slice in
            wanted.chunks((num::to_usize(CALL_BYTES_MAX.into()) / (bytes + 2)).min(KEYS_MAX))
        {
            let keys: Vec<String> = slice.iter().map(|(key, _)| key.clone()).collect();
            for ((key, number), value) in slice.iter().zip(reader.fresh(&keys)?) {
                let Some(block) = Block::of(key, value.as_deref(), dimensions)? else {
                    return Err(damaged(reader, &place.keys, Some(&self.record), key));
                };
                out.push((*number, block));
            }
        }
        Ok(out)
    }
}

/// Keeps the documents that a hit may be, whether it has a word of the query or none.
fn admit(
    reader: &mut Reader<'_>,
    place: &Place,
    index: &mut Index,
    open: &Open,
    query: &TextQuery,
    bounds: &Bounds,
    documents: &mut Vec<u64>,
) -> Result<()> {
    let history = History { keys: &place.keys, head: &place.loaded.head };
    // Vectors may have been attached to what came after the head that this call works from.
    let last = match open.corpus {
        Corpus::Messages => history.head.messages,
        Corpus::Summaries => index.documents(open.corpus),
    };
    documents.retain(|document| *document <= last);
    let window = bounds.window.and(&query.window);
    open.gathered.admit(reader, &history, index, query, &window, documents)?;
    if let Some(spans) = &place.spans {
        let may = covered(reader, place, index, open.corpus, spans, documents)?;
        let mut may = may.iter();
        documents.retain(|_| may.next().is_some_and(|may| *may));
    }
    Ok(())
}

/// The candidates by their whole vectors.
fn compared(
    reader: &mut Reader<'_>,
    places: &[Place],
    indexes: &mut [Index],
    shelves: &[Shelf],
    candidates: &[&Candidate<'_>],
    query: &[i8],
) -> Result<List> {
    let mut hits = List::new();
    for shelf in shelves {
        let place = places.get(shelf.place).zip(indexes.get_mut(shelf.place));
        let Some((place, index)) = place else { continue };
        for corpus in [Corpus::Messages, Corpus::Summaries] {
            let of_corpus =
                |one: &&&Candidate<'_>| one.open.place == shelf.place && one.open.corpus == corpus;
            let Some(first) = candidates.iter().find(of_corpus) else { continue };
            let mut documents: Vec<u64> =
                candidates.iter().filter(of_corpus).map(|one| one.document).collect();
            order::numbers(&mut documents);
            place.enter(reader);
            let times = first.open.gathered.times(reader, index, &documents)?;
            let key = |document: &u64| vector_key(&place.keys, corpus, *document);
            let keys: Vec<String> = documents.iter().map(key).collect();
            let values = reader.fresh(&keys)?;
            for (((document, time), key), value) in
                documents.into_iter().zip(times).zip(&keys).zip(values)
            {
                let vector = match &value {
                    Some(value) => codec::decode_plain(key, value)?,
                    None => &[],
                };
                if vector.len() != query.len() {
                    return Err(damaged(reader, &place.keys, Some(&shelf.record), key));
                }
                let Some(rank) = cosine(query, vector) else { continue };
                hits.push(Hit { place: shelf.place, corpus, document, score: None, rank, time });
            }
        }
    }
    sort(&mut hits);
    hits.truncate(FUSED_MAX);
    Ok(hits)
}

/// Greatest rank first, of equals the newest, then the first that is searched.
fn sort(hits: &mut [Hit]) {
    order::sort_by(hits, &mut |left, right| {
        (right.rank, right.time, right.document, left.place)
            .cmp(&(left.rank, left.time, left.document, right.place))
            .then_with(|| {
                (left.corpus == Corpus::Summaries).cmp(&(right.corpus == Corpus::Summaries))
            })
    });
}

/// One order of both lists, as the query wants it. Each is in its own order, and where something
/// stands in it is all that counts: scores of words and cosines have no common measure.
pub(super) fn fused(by_words: List, by_nearness: List, bounds: &Bounds) -> List {
    let mut fused: Sorted<(usize, bool, u64), Hit> = Sorted::default();
    for list in [by_words, by_nearness] {
        for (at, mut hit) in list.into_iter().take(FUSED_MAX).enumerate() {
            let worth = SCORE_FIRST * (RANK_ADDED + 1) / 2;
            let score = worth / (RANK_ADDED + 1 + num::to_u64(at));
            let name = (hit.place, hit.corpus == Corpus::Summaries, hit.document);
            let before = fused.get(&name).and_then(|known| known.score);
            hit.score = Some(before.unwrap_or(0) + score);
            fused.insert(name, hit);
        }
    }
    let mut hits: List = fused.into_entries().into_iter().map(|(_, hit)| hit).collect();
    for hit in &mut hits {
        let score = hit.score.unwrap_or(0);
        hit.rank = match bounds.sort {
            Sort::Relevance => score,
            Sort::Hybrid => score::aged(score, bounds.now.saturating_sub(hit.time)),
            Sort::Recency => hit.time,
        };
    }
    sort(&mut hits);
    hits
}
