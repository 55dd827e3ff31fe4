//! Vector search and fusion of its ranking with the ranking by words.
//!
//! Input: a query vector, and the lookups by words. Output: the nearest documents of all searched
//! conversations, and one list fused from both rankings. Nearest documents obey the filters of the
//! query, too. Elsewhere: comparing two vectors ([`crate::search::vectors`]).

use alloc::{string::String, vec::Vec};

use super::{
    super::{GrepBounds, QueryVector, SearchedConversation},
    FoundHits, GatheredCorpus, GrepHit, check_coverage,
};
use crate::{
    search::{
        Corpus, SearchIndex,
        text_query::TextQuery,
        vectors::{
            VectorRecord, block_key, diagnose_damage,
            sign_block::{BLOCK_DOCUMENTS, SignBlock, block_bytes_max, signs_byte_count},
            similarity::{SignScorer, cosine_similarity, score_to_rank},
            vector_key,
        },
    },
    storage::{codec, history::MessageHistory, store_session::StoreSession},
};
use lcm_text::base::{
    error::Result,
    int,
    limits::{
        CALL_BYTES_MAX, VECTOR_DOCUMENT_BYTES_MIN, VECTOR_RESCORED_MAX, VECTOR_SIGNS_BYTES_MAX,
    },
    sort,
};

/// Constant `k` of reciprocal rank fusion, with the value of its publication.
const FUSION_RANK_OFFSET: u64 = 60;
/// Hits of each list that are fused: as many as the largest answer.
pub(super) const FUSED_HITS_MAX: usize = 200;
/// Vector records read in one call; the record of a million documents has 32 KiB.
const RECORDS_PER_READ: usize = 32;
/// Score of a document that is first in both lists, with 16 fractional bits.
const FIRST_RANK_SCORE: u64 = 1 << 16;

/// Vectors of one conversation that are comparable with the query vector.
struct ConversationVectors {
    /// Index into the list of searched conversations.
    conversation_number: usize,
    record: Vec<u8>,
    vectors: VectorRecord,
}

/// Returns the nearest documents, nearest first.
///
/// # Errors
///
/// `invalid-input`: all stored vectors have other dimensions or another model; `conflict`;
/// `corrupt`; errors of the store.
pub(super) fn find_nearest(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    indexes: &mut [SearchIndex],
    opens: &[GatheredCorpus],
    query: &TextQuery,
    vector: &QueryVector,
    bounds: &GrepBounds,
    found: &mut FoundHits,
) -> Result<FusionHits> {
    let shelves = read_fitting_vectors(reader, places, vector, found)?;
    let probe = SignScorer::new(&vector.components);
    let mut hits = FusionHits::new();
    let mut left = VECTOR_SIGNS_BYTES_MAX;
    // Summaries first: they are few, and each covers many messages.
    for corpus in [Corpus::Summaries, Corpus::Messages] {
        for shelf in &shelves {
            let is_it = |open: &&GatheredCorpus| {
                open.conversation_number == shelf.conversation_number && open.corpus == corpus
            };
            let place = places
                .get(shelf.conversation_number)
                .zip(indexes.get_mut(shelf.conversation_number));
            let (Some(open), Some((place, index))) = (opens.iter().find(is_it), place) else {
                continue;
            };
            place.enter_conversation(reader);
            let worths = shelf.score_signs(reader, place, corpus, &probe, &mut left, found)?;
            let mut documents: Vec<u64> = worths.iter().map(|(document, _)| *document).collect();
            retain_admissible(reader, place, index, open, query, bounds, &mut documents)?;
            let times = open.gathered.read_times(reader, index, &documents)?;
            let mut worths = worths.into_iter();
            for (document, time) in documents.into_iter().zip(times) {
                let worth = worths.find(|(other, _)| *other == document);
                let rank = worth.map_or(0, |(_, rank)| rank);
                hits.push(GrepHit {
                    conversation_number: shelf.conversation_number,
                    corpus,
                    document,
                    score: None,
                    rank,
                    time,
                });
            }
        }
    }
    sort_hits(&mut hits);
    let bytes = int::to_usize(CALL_BYTES_MAX.into()) / (vector.components.len() + 2);
    hits.truncate(VECTOR_RESCORED_MAX.min(bytes));
    rescore_hits(reader, places, &shelves, &mut hits, &vector.components)?;
    hits.truncate(FUSED_HITS_MAX);
    Ok(hits)
}

/// Hits in order.
type FusionHits = Vec<GrepHit>;

/// Reads the vector records that are comparable with the query vector.
fn read_fitting_vectors(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    vector: &QueryVector,
    found: &mut FoundHits,
) -> Result<Vec<ConversationVectors>> {
    let keys: Vec<String> = places.iter().map(|place| place.keys.vectors_key()).collect();
    let (mut shelves, mut misfit) = (Vec::new(), None);
    let mut values = Vec::with_capacity(keys.len());
    for slice in keys.chunks(RECORDS_PER_READ) {
        values.extend(reader.read_uncached(slice)?);
    }
    for ((place, key), value) in keys.iter().enumerate().zip(values) {
        let Some(record) = value else { continue };
        let Some(vectors) = VectorRecord::from_value(key, Some(&record))? else { continue };
        if vectors.count_vectors() == 0 {
            continue;
        }
        let dimensions = Some(int::to_u32(vector.components.len()));
        match vectors.ensure_compatible(dimensions, vector.model.as_deref()) {
            Ok(()) => {
                shelves.push(ConversationVectors { conversation_number: place, record, vectors })
            }
            Err(error) => misfit = Some(error),
        }
    }
    match misfit {
        Some(error) if shelves.is_empty() => return Err(error),
        Some(_) => found.add_note("vectors-limited"),
        None if shelves.is_empty() => found.add_note("vectors-absent"),
        None => {}
    }
    Ok(shelves)
}

impl ConversationVectors {
    /// Scores the documents of the newest blocks of a corpus by sign bits. Returns ascending
    /// document numbers with scores, and reads at most `left` bytes of sign bits.
    fn score_signs(
        &self,
        reader: &mut StoreSession<'_>,
        place: &SearchedConversation,
        corpus: Corpus,
        probe: &SignScorer,
        left: &mut usize,
        found: &mut FoundHits,
    ) -> Result<Vec<(u64, u64)>> {
        let dimensions = int::to_usize(self.vectors.dimensions.into());
        let (side, bytes) = (self.vectors.corpus_vectors(corpus), block_bytes_max(dimensions));
        let mut wanted = Vec::new();
        for number in
            (0..side.count_blocks()).rev().filter(|number| side.block_counts(*number).1 > 0)
        {
            // With few dimensions the number of documents determines the time.
            let each = signs_byte_count(dimensions).max(VECTOR_DOCUMENT_BYTES_MIN);
            let Some(less) = left.checked_sub(each * int::to_usize(BLOCK_DOCUMENTS)) else {
                found.add_note("vectors-limited");
                break;
            };
            *left = less;
            wanted.push((number, block_key(&place.keys, corpus, number)));
        }
        wanted.reverse();
        let mut out = Vec::new();
        for slice in wanted.chunks(int::to_usize(CALL_BYTES_MAX.into()) / (bytes + 2)) {
            let keys: Vec<String> = slice.iter().map(|(_, key)| key.clone()).collect();
            for ((number, key), value) in slice.iter().zip(reader.read_uncached(&keys)?) {
                let Some(block) = SignBlock::from_value(key, value.as_deref(), dimensions)? else {
                    return Err(diagnose_damage(reader, &place.keys, Some(&self.record), key));
                };
                for (document, signs) in block.iter_vectors(*number, dimensions) {
                    out.push((document, score_to_rank(probe.score_signs(signs))));
                }
            }
        }
        Ok(out)
    }
}

/// Keeps the documents that pass the filters of the query, whether they contain its words or not.
fn retain_admissible(
    reader: &mut StoreSession<'_>,
    place: &SearchedConversation,
    index: &mut SearchIndex,
    open: &GatheredCorpus,
    query: &TextQuery,
    bounds: &GrepBounds,
    documents: &mut Vec<u64>,
) -> Result<()> {
    let history = MessageHistory { keys: &place.keys, head: &place.loaded.head };
    // Vectors may belong to documents that are newer than the head of this call.
    let last = match open.corpus {
        Corpus::Messages => history.head.messages,
        Corpus::Summaries => index.count_documents(open.corpus),
    };
    documents.retain(|document| *document <= last);
    let window = bounds.window.intersection(&query.window);
    open.gathered.retain_admissible(reader, &history, index, query, &window, documents)?;
    if let Some(spans) = &place.spans {
        let may = check_coverage(reader, place, index, open.corpus, spans, documents)?;
        let mut may = may.iter();
        documents.retain(|_| may.next().is_some_and(|may| *may));
    }
    Ok(())
}

/// Sorts hits by the cosine of their vectors, and drops hits whose cosine is not positive.
fn rescore_hits(
    reader: &mut StoreSession<'_>,
    places: &[SearchedConversation],
    shelves: &[ConversationVectors],
    hits: &mut FusionHits,
    query: &[i8],
) -> Result<()> {
    let mut keys = Vec::with_capacity(hits.len());
    for hit in &*hits {
        let place = places.get(hit.conversation_number);
        keys.extend(place.map(|place| vector_key(&place.keys, hit.corpus, hit.document)));
    }
    let values = if keys.is_empty() { Vec::new() } else { reader.read_uncached(&keys)? };
    for ((hit, key), value) in hits.iter_mut().zip(&keys).zip(&values) {
        let vector = match value {
            Some(value) => codec::decode_raw_bytes(key, value)?,
            None => &[],
        };
        if vector.len() != query.len() {
            let shelf =
                shelves.iter().find(|shelf| shelf.conversation_number == hit.conversation_number);
            let place = places.get(hit.conversation_number);
            return Err(match shelf.zip(place) {
                Some((shelf, place)) => {
                    diagnose_damage(reader, &place.keys, Some(&shelf.record), key)
                }
                None => reader.missing_record_error(key),
            });
        }
        hit.rank = cosine_similarity(query, vector);
    }
    hits.retain(|hit| hit.rank > 0);
    sort_hits(hits);
    Ok(())
}

/// Sorts hits: greatest rank, then newest, then the earlier conversation.
fn sort_hits(hits: &mut [GrepHit]) {
    sort::sort_by(hits, &mut |left, right| {
        (right.rank, right.time, right.document, left.conversation_number)
            .cmp(&(left.rank, left.time, left.document, right.conversation_number))
            .then_with(|| {
                (left.corpus == Corpus::Summaries).cmp(&(right.corpus == Corpus::Summaries))
            })
    });
}

/// Fuses both rankings into one by reciprocal rank. Only positions count, because scores of words
/// and cosines are not comparable.
pub(super) fn fuse_rankings(
    by_words: FusionHits,
    by_nearness: FusionHits,
    bounds: &GrepBounds,
) -> FusionHits {
    let mut hits = FusionHits::new();
    for list in [by_words, by_nearness] {
        for (at, mut hit) in list.into_iter().enumerate() {
            let score = FIRST_RANK_SCORE * (FUSION_RANK_OFFSET + 1)
                / 2
                / (FUSION_RANK_OFFSET + 1 + int::to_u64(at));
            let name = |hit: &GrepHit| {
                (hit.conversation_number, hit.corpus == Corpus::Summaries, hit.document)
            };
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
        hit.rank = bounds.rank_hit(hit.score, hit.time);
    }
    sort_hits(&mut hits);
    hits
}
