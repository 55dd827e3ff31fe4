//! Which documents are near to a query's vector, and how that ranks together with its words.
//!
//! In: a vector, and what the words found. Out: the nearest of all conversations that are searched,
//! by signs first and then by whole vectors, and one order made of both. Whatever a query says a
//! hit must be holds for these, too. Not here: how vectors are compared
//! ([`crate::search::vectors`]).

use alloc::{string::String, vec::Vec};

use super::{
    super::{Bounds, Place, Vector},
    Found, Hit, Open, covered,
};
use crate::{
    search::{
        Corpus, Index,
        query::TextQuery,
        vectors::{
            Vectors,
            block::{BLOCK_DOCUMENTS, Block, block_bytes_max, signs_bytes},
            block_key, damaged,
            nearness::{Probe, cosine, rank},
            vector_key,
        },
    },
    storage::{codec, history::History, store_session::Reader},
};
use lcm_text::base::{
    error::Result,
    int,
    limits::{
        CALL_BYTES_MAX, VECTOR_DOCUMENT_BYTES_MIN, VECTOR_RESCORED_MAX, VECTOR_SIGNS_BYTES_MAX,
    },
    sort,
};

/// What is added to a rank before it divides: k of reciprocal rank fusion, as it was published.
const RANK_ADDED: u64 = 60;
/// Best of each list that are fused, so that every answer is full.
pub(super) const FUSED_MAX: usize = 200;
/// Records of conversations that are read at once: one of a million documents has 32 KiB.
const RECORDS_AT_ONCE: usize = 32;
/// What the first by words and by nearness scores, with 16 fractional bits.
const SCORE_FIRST: u64 = 1 << 16;

/// The vectors of one conversation that fit the query.
struct Shelf {
    /// Number of the conversation.
    place: usize,
    record: Vec<u8>,
    vectors: Vectors,
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
    let mut hits = List::new();
    let mut left = VECTOR_SIGNS_BYTES_MAX;
    // Summaries first: they are few and stand for many messages.
    for corpus in [Corpus::Summaries, Corpus::Messages] {
        for shelf in &shelves {
            let is_it = |open: &&Open| open.place == shelf.place && open.corpus == corpus;
            let place = places.get(shelf.place).zip(indexes.get_mut(shelf.place));
            let (Some(open), Some((place, index))) = (opens.iter().find(is_it), place) else {
                continue;
            };
            place.enter(reader);
            let worths = shelf.worths(reader, place, corpus, &probe, &mut left, found)?;
            let mut documents: Vec<u64> = worths.iter().map(|(document, _)| *document).collect();
            admit(reader, place, index, open, query, bounds, &mut documents)?;
            let times = open.gathered.times(reader, index, &documents)?;
            let mut worths = worths.into_iter();
            for (document, time) in documents.into_iter().zip(times) {
                let worth = worths.find(|(other, _)| *other == document);
                let rank = worth.map_or(0, |(_, rank)| rank);
                hits.push(Hit { place: shelf.place, corpus, document, score: None, rank, time });
            }
        }
    }
    sort(&mut hits);
    let bytes = int::to_usize(CALL_BYTES_MAX.into()) / (vector.parts.len() + 2);
    hits.truncate(VECTOR_RESCORED_MAX.min(bytes));
    compare(reader, places, &shelves, &mut hits, &vector.parts)?;
    hits.truncate(FUSED_MAX);
    Ok(hits)
}

/// Hits in order.
type List = Vec<Hit>;

/// The conversations whose vectors fit the query.
fn shelves(
    reader: &mut Reader<'_>,
    places: &[Place],
    vector: &Vector,
    found: &mut Found,
) -> Result<Vec<Shelf>> {
    let keys: Vec<String> = places.iter().map(|place| place.keys.vectors()).collect();
    let (mut shelves, mut misfit) = (Vec::new(), None);
    let mut values = Vec::with_capacity(keys.len());
    for slice in keys.chunks(RECORDS_AT_ONCE) {
        values.extend(reader.fresh(slice)?);
    }
    for ((place, key), value) in keys.iter().enumerate().zip(values) {
        let Some(record) = value else { continue };
        let Some(vectors) = Vectors::of(key, Some(&record))? else { continue };
        if vectors.count() == 0 {
            continue;
        }
        let dimensions = Some(int::to_u32(vector.parts.len()));
        match vectors.must_fit(dimensions, vector.model.as_deref()) {
            Ok(()) => shelves.push(Shelf { place, record, vectors }),
            Err(error) => misfit = Some(error),
        }
    }
    match misfit {
        Some(error) if shelves.is_empty() => return Err(error),
        Some(_) => found.note("vectors-limited"),
        None if shelves.is_empty() => found.note("vectors-absent"),
        None => {}
    }
    Ok(shelves)
}

impl Shelf {
    /// The documents of the newest blocks of a corpus, ascending, each with what its signs are
    /// worth, as far as `left` bytes of signs go.
    fn worths(
        &self,
        reader: &mut Reader<'_>,
        place: &Place,
        corpus: Corpus,
        probe: &Probe,
        left: &mut usize,
        found: &mut Found,
    ) -> Result<Vec<(u64, u64)>> {
        let dimensions = int::to_usize(self.vectors.dimensions.into());
        let (side, bytes) = (self.vectors.side(corpus), block_bytes_max(dimensions));
        let mut wanted = Vec::new();
        for number in (0..side.blocks()).rev().filter(|number| side.of(*number).1 > 0) {
            // Of few dimensions the documents are what takes time.
            let each = signs_bytes(dimensions).max(VECTOR_DOCUMENT_BYTES_MIN);
            let Some(less) = left.checked_sub(each * int::to_usize(BLOCK_DOCUMENTS)) else {
                found.note("vectors-limited");
                break;
            };
            *left = less;
            wanted.push((number, block_key(&place.keys, corpus, number)));
        }
        wanted.reverse();
        let mut out = Vec::new();
        for slice in wanted.chunks(int::to_usize(CALL_BYTES_MAX.into()) / (bytes + 2)) {
            let keys: Vec<String> = slice.iter().map(|(_, key)| key.clone()).collect();
            for ((number, key), value) in slice.iter().zip(reader.fresh(&keys)?) {
                let Some(block) = Block::of(key, value.as_deref(), dimensions)? else {
                    return Err(damaged(reader, &place.keys, Some(&self.record), key));
                };
                for (document, signs) in block.each(*number, dimensions) {
                    out.push((document, rank(probe.worth(signs))));
                }
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

/// Orders hits by their whole vectors; drops those that have nothing in common with the query.
fn compare(
    reader: &mut Reader<'_>,
    places: &[Place],
    shelves: &[Shelf],
    hits: &mut List,
    query: &[i8],
) -> Result<()> {
    let mut keys = Vec::with_capacity(hits.len());
    for hit in &*hits {
        let place = places.get(hit.place);
        keys.extend(place.map(|place| vector_key(&place.keys, hit.corpus, hit.document)));
    }
    let values = if keys.is_empty() { Vec::new() } else { reader.fresh(&keys)? };
    for ((hit, key), value) in hits.iter_mut().zip(&keys).zip(&values) {
        let vector = match value {
            Some(value) => codec::decode_plain(key, value)?,
            None => &[],
        };
        if vector.len() != query.len() {
            let shelf = shelves.iter().find(|shelf| shelf.place == hit.place);
            let place = places.get(hit.place);
            return Err(match shelf.zip(place) {
                Some((shelf, place)) => damaged(reader, &place.keys, Some(&shelf.record), key),
                None => reader.missing(key),
            });
        }
        hit.rank = cosine(query, vector);
    }
    hits.retain(|hit| hit.rank > 0);
    sort(hits);
    Ok(())
}

/// Greatest rank first, of equals the newest, then the first that is searched.
fn sort(hits: &mut [Hit]) {
    sort::sort_by(hits, &mut |left, right| {
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
    let mut hits = List::new();
    for list in [by_words, by_nearness] {
        for (at, mut hit) in list.into_iter().enumerate() {
            let score = SCORE_FIRST * (RANK_ADDED + 1) / 2 / (RANK_ADDED + 1 + int::to_u64(at));
            let name = |hit: &Hit| (hit.place, hit.corpus == Corpus::Summaries, hit.document);
            match hits.iter_mut().find(|known| name(known) == name(&hit)) {
                Some(known) => known.score = known.score.map(|before| before + score),
                None => {
                    hit.score = Some(score);
                    hits.push(hit);
                }
            }
        }
    }
    for hit in &mut hits {
        hit.rank = bounds.rank(hit.score, hit.time);
    }
    sort(&mut hits);
    hits
}
