//! Vector search and fusion of its ranking with the ranking by words.
//!
//! Input: a query vector, and the lookups by words. Output: the nearest documents of all searched
//! conversations, and one list fused from both rankings. Nearest documents must pass the filters of
//! the query, too. Elsewhere: comparing two vectors ([`crate::search::vectors`]).

use alloc::{string::String, vec::Vec};

use super::{
    coverage::{check_coverage, is_limited},
    word_search::GatheredCorpus,
};
use crate::{
    search::{
        corpus::Corpus,
        full_text::FullTextContext,
        grep::{
            bounds::GrepBounds,
            hits::GrepHit,
            pattern::QueryVector,
            searched_conversation::{GrepContext, SearchedConversation},
        },
        text_query::TextQuery,
        vectors::{
            VectorRecord, block_key, diagnose_damage,
            sign_block::{BLOCK_DOCUMENTS, SignBlock, block_bytes_max, signs_byte_count},
            similarity::{SignScorer, cosine_similarity, score_to_rank},
            vector_key,
        },
    },
    storage::{codec, store_session::StoreSession},
};
use lcm_text::base::{
    error::Result,
    int,
    limits::{
        CALL_BYTES_MAX, VECTOR_DOCUMENT_BYTES_MIN, VECTOR_RESCORED_MAX, VECTOR_SIGNS_BYTES_MAX,
    },
    sort,
};

/// Constant `k` of reciprocal rank fusion, with the usual value.
const FUSION_RANK_OFFSET: u64 = 60;

/// Most hits of each list that are fused: as many as the largest answer.
pub(super) const FUSED_HITS_MAX: usize = 200;

/// Most vector records read in one call; the record of a million documents has 32 KiB.
const RECORDS_PER_READ: usize = 32;

/// Score of a document that is first in both lists, with 16 fractional bits.
const FIRST_RANK_SCORE: u64 = 1 << 16;

/// Hits of vector search, or of both searches.
type FusionHits = Vec<GrepHit>;

/// Vector record of one conversation, whose vectors are comparable with the query vector.
struct ConversationVectors {
    /// Index into the list of searched conversations.
    conversation_number: usize,
    /// The stored value, to detect a change of the vectors.
    record: Vec<u8>,
    vectors: VectorRecord,
}

/// Search for the documents whose vectors are nearest to a query vector.
pub(super) struct VectorSearch<'s> {
    context: GrepContext<'s>,
    query: &'s TextQuery,
    vector: &'s QueryVector,
    scorer: SignScorer,
    /// Bytes of sign bits that may still be read. A document costs at least
    /// [`VECTOR_DOCUMENT_BYTES_MIN`].
    bytes_left: usize,
    /// Notes about vectors: some were not searched, or none are stored.
    pub(super) notes: Vec<&'static str>,
}

impl<'s> VectorSearch<'s> {
    /// Creates a search that may read [`VECTOR_SIGNS_BYTES_MAX`] bytes of sign bits.
    pub(super) fn new(
        context: GrepContext<'s>,
        query: &'s TextQuery,
        vector: &'s QueryVector,
    ) -> Self {
        let scorer = SignScorer::new(&vector.components);
        let bytes_left = VECTOR_SIGNS_BYTES_MAX;
        Self { context, query, vector, scorer, bytes_left, notes: Vec::new() }
    }

    /// Returns at most [`FUSED_HITS_MAX`] nearest documents, nearest first. A document whose cosine
    /// is not positive is never returned.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: all stored vectors have other dimensions or another model.
    /// - `conflict`: a conversation or its vectors changed during the call.
    /// - `corrupt`: a vector or the index is damaged.
    /// - `unsupported`: a record has a newer format.
    /// - errors of the store.
    pub(super) fn find_nearest(
        &mut self,
        session: &mut StoreSession<'_>,
        gathered: &[GatheredCorpus],
    ) -> Result<FusionHits> {
        let stored = self.read_fitting_vectors(session)?;
        let mut hits = FusionHits::new();
        // Summaries first, while bytes are left: they are few, and each covers many messages.
        for corpus in [Corpus::Summaries, Corpus::Messages] {
            for vectors in &stored {
                let number = vectors.conversation_number;
                let is_same = |part: &&GatheredCorpus| {
                    part.conversation_number == number && part.corpus == corpus
                };
                if let Some(part) = gathered.iter().find(is_same) {
                    hits.extend(self.score_corpus(session, vectors, part)?);
                }
            }
        }
        sort_hits(&mut hits);
        let dimensions = self.vector.components.len();
        let count = int::to_usize(CALL_BYTES_MAX.into()) / (dimensions + 2);
        hits.truncate(VECTOR_RESCORED_MAX.min(count));
        self.rescore_hits(session, &stored, &mut hits)?;
        hits.truncate(FUSED_HITS_MAX);
        Ok(hits)
    }

    /// Reads the vector records whose dimensions and model fit the query vector. Adds the note
    /// `vectors-limited` if some records do not fit, and `vectors-absent` if no vectors are stored.
    ///
    /// # Errors
    ///
    /// `invalid-input`: there are vectors, but none with these dimensions and model; `corrupt`: a
    /// record is damaged; `unsupported`: a record has a newer format; errors of the store.
    fn read_fitting_vectors(
        &mut self,
        session: &mut StoreSession<'_>,
    ) -> Result<Vec<ConversationVectors>> {
        let conversations = self.context.conversations.iter();
        let keys: Vec<String> = conversations.map(|entry| entry.keys.vectors_key()).collect();
        let (mut stored, mut mismatch) = (Vec::new(), None);
        let mut values = Vec::with_capacity(keys.len());
        for slice in keys.chunks(RECORDS_PER_READ) {
            values.extend(session.read_uncached(slice)?);
        }
        for ((conversation_number, key), value) in keys.iter().enumerate().zip(values) {
            let Some(record) = value else { continue };
            let Some(vectors) = VectorRecord::from_value(key, Some(&record))? else { continue };
            if vectors.count_vectors() == 0 {
                continue;
            }
            let dimensions = Some(int::to_u32(self.vector.components.len()));
            match vectors.ensure_compatible(dimensions, self.vector.model.as_deref()) {
                Ok(()) => stored.push(ConversationVectors { conversation_number, record, vectors }),
                Err(error) => mismatch = Some(error),
            }
        }
        match mismatch {
            Some(error) if stored.is_empty() => return Err(error),
            Some(_) => self.add_note("vectors-limited"),
            None if stored.is_empty() => self.add_note("vectors-absent"),
            None => {}
        }
        Ok(stored)
    }

    /// Adds a note, at most once.
    fn add_note(&mut self, note: &'static str) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Ranks the documents of one corpus by the sign bits of their vectors. Sets `rank`; `score`
    /// stays `None`.
    ///
    /// The newest blocks are scored first, until no bytes are left. Documents that do not pass the
    /// conditions of the query are left out.
    fn score_corpus(
        &mut self,
        session: &mut StoreSession<'_>,
        vectors: &ConversationVectors,
        part: &GatheredCorpus,
    ) -> Result<FusionHits> {
        let conversation_number = vectors.conversation_number;
        let Some((conversation, index)) = self.context.get(conversation_number) else {
            return Ok(Vec::new());
        };
        conversation.enter_conversation(session);
        let scores = self.score_sign_bits(session, vectors, conversation, part.corpus)?;
        let mut documents: Vec<u64> = scores.iter().map(|(document, _)| *document).collect();
        self.retain_admissible(session, part, &mut documents)?;
        let times = part.gathered.read_times(session, index, &documents)?;
        let mut scores = scores.into_iter();
        let mut hits = FusionHits::new();
        for (document, time) in documents.into_iter().zip(times) {
            let score = scores.find(|(other, _)| *other == document);
            let rank = score.map_or(0, |(_, rank)| rank);
            let corpus = part.corpus;
            hits.push(GrepHit { conversation_number, corpus, document, score: None, rank, time });
        }
        Ok(hits)
    }

    /// Scores the documents of the newest blocks of a corpus by sign bits, until no bytes are left.
    /// Returns document numbers, ascending, each with its rank.
    fn score_sign_bits(
        &mut self,
        session: &mut StoreSession<'_>,
        stored: &ConversationVectors,
        conversation: &SearchedConversation,
        corpus: Corpus,
    ) -> Result<Vec<(u64, u64)>> {
        let dimensions = int::to_usize(stored.vectors.dimensions.into());
        let (counts, bytes) = (stored.vectors.corpus_vectors(corpus), block_bytes_max(dimensions));
        let mut blocks = Vec::new();
        let has_vector = |number: &u64| counts.block_counts(*number).1 > 0;
        for number in (0..counts.count_blocks()).rev().filter(has_vector) {
            // With few dimensions, the number of documents determines the time.
            let each = signs_byte_count(dimensions).max(VECTOR_DOCUMENT_BYTES_MIN);
            let cost = each * int::to_usize(BLOCK_DOCUMENTS);
            let Some(left) = self.bytes_left.checked_sub(cost) else {
                self.add_note("vectors-limited");
                break;
            };
            self.bytes_left = left;
            blocks.push((number, block_key(&conversation.keys, corpus, number)));
        }
        blocks.reverse();
        let mut out = Vec::new();
        for slice in blocks.chunks(int::to_usize(CALL_BYTES_MAX.into()) / (bytes + 2)) {
            let keys: Vec<String> = slice.iter().map(|(_, key)| key.clone()).collect();
            for ((number, key), value) in slice.iter().zip(session.read_uncached(&keys)?) {
                let Some(block) = SignBlock::from_value(key, value.as_deref(), dimensions)? else {
                    let (keys, record) = (&conversation.keys, Some(stored.record.as_slice()));
                    return Err(diagnose_damage(session, keys, record, key));
                };
                for (document, signs) in block.iter_vectors(*number, dimensions) {
                    out.push((document, score_to_rank(self.scorer.score_signs(signs))));
                }
            }
        }
        Ok(out)
    }

    /// Keeps the documents that meet the conditions of the query: required and excluded words,
    /// filters, the time window, and the ranges that may be found.
    fn retain_admissible(
        &self,
        session: &mut StoreSession<'_>,
        part: &GatheredCorpus,
        documents: &mut Vec<u64>,
    ) -> Result<()> {
        let found = self.context.get(part.conversation_number);
        let Some((conversation, index)) = found else { return Ok(()) };
        let history = conversation.message_history();
        // A vector may belong to a document that was added after the head of this call was read.
        let last = match part.corpus {
            Corpus::Messages => history.head.messages,
            Corpus::Summaries => index.count_documents(part.corpus),
        };
        documents.retain(|document| *document <= last);
        let window = self.context.bounds.window;
        let search = FullTextContext::new(&history, index, self.query, window);
        part.gathered.retain_admissible(session, &search, documents)?;
        if is_limited(conversation, part.corpus) {
            let covered = check_coverage(session, conversation, index, part.corpus, documents)?;
            let mut covered = covered.iter();
            documents.retain(|_| covered.next().is_some_and(|is_covered| *is_covered));
        }
        Ok(())
    }

    /// Sets the rank of each hit to the cosine of its vector, drops hits whose cosine is not
    /// positive, and sorts the rest.
    fn rescore_hits(
        &self,
        session: &mut StoreSession<'_>,
        stored: &[ConversationVectors],
        hits: &mut FusionHits,
    ) -> Result<()> {
        let conversations = self.context.conversations;
        let components = &self.vector.components;
        let mut keys = Vec::with_capacity(hits.len());
        for hit in &*hits {
            let conversation = conversations.get(hit.conversation_number);
            let key =
                |entry: &SearchedConversation| vector_key(&entry.keys, hit.corpus, hit.document);
            keys.extend(conversation.map(key));
        }
        let values = if keys.is_empty() { Vec::new() } else { session.read_uncached(&keys)? };
        for ((hit, key), value) in hits.iter_mut().zip(&keys).zip(&values) {
            let vector = match value {
                Some(value) => codec::decode_raw_bytes(key, value)?,
                None => &[],
            };
            if vector.len() != components.len() {
                let number = hit.conversation_number;
                let vectors = stored.iter().find(|vectors| vectors.conversation_number == number);
                return Err(match vectors.zip(conversations.get(number)) {
                    Some((vectors, entry)) => {
                        diagnose_damage(session, &entry.keys, Some(&vectors.record), key)
                    }
                    None => session.missing_record_error(key),
                });
            }
            hit.rank = cosine_similarity(components, vector);
        }
        hits.retain(|hit| hit.rank > 0);
        sort_hits(hits);
        Ok(())
    }
}

/// Sorts hits: greatest rank, newest, greatest document number, earlier conversation, messages
/// before summaries.
fn sort_hits(hits: &mut [GrepHit]) {
    sort::sort_by(hits, &mut |left, right| {
        (right.rank, right.time, right.document, left.conversation_number)
            .cmp(&(left.rank, left.time, left.document, right.conversation_number))
            .then_with(|| {
                (left.corpus == Corpus::Summaries).cmp(&(right.corpus == Corpus::Summaries))
            })
    });
}

/// Fuses both rankings by reciprocal rank, and sorts the hits as `bounds` says. Only positions
/// count, because scores of words and cosines are not comparable.
pub(super) fn fuse_rankings(
    by_words: FusionHits,
    by_similarity: FusionHits,
    bounds: &GrepBounds,
) -> FusionHits {
    let mut hits = FusionHits::new();
    for list in [by_words, by_similarity] {
        for (at, mut hit) in list.into_iter().enumerate() {
            let score = FIRST_RANK_SCORE * (FUSION_RANK_OFFSET + 1)
                / 2
                / (FUSION_RANK_OFFSET + 1 + int::to_u64(at));
            let identity = |hit: &GrepHit| {
                (hit.conversation_number, hit.corpus == Corpus::Summaries, hit.document)
            };
            match hits.iter_mut().find(|other| identity(other) == identity(&hit)) {
                Some(fused) => fused.score = fused.score.map(|other| other + score),
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
