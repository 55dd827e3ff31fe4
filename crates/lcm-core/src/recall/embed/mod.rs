//! Embed: vectors that a host attaches to messages and summaries.
//!
//! In: ids with vectors, or the wish to forget all. Out: one commit, and as JSON what a
//! conversation has of them and which documents come next. What is written hangs from one record
//! that guards itself, so that attaching is no event of the conversation and appends go on beside
//! it. Not here: what a vector is ([`crate::search::vectors`]) and what a query makes of it
//! ([`crate::search::grep`]).

use crate::storage::read_scope;
use crate::storage::read_scope::ResolvedId;
use alloc::{string::String, vec::Vec};

use crate::{
    search::{
        Corpus, SearchIndex,
        vectors::{
            VectorRecord, block_key, diagnose_damage, quantization,
            sign_block::{
                BLOCK_DOCUMENTS, SignBlock, block_bytes_max, document_at, locate_document,
            },
            vector_key,
        },
    },
    storage::{
        codec,
        head::LoadedHead,
        keys::ConversationKeys,
        session,
        store::{Guard, Put},
        store_session::StoreSession,
        summary,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{self, JsonFields, JsonKind, JsonWriter},
        limits::{CALL_BYTES_MAX, MODEL_BYTES_MAX, PUTS_MAX, VECTOR_ENTRIES_MAX, VECTOR_NEXT_MAX},
    },
    config::Config,
};

/// Name of the argument.
const VECTORS_ARGUMENT: &str = "vectors-json";
/// Blocks of which some documents are known that one call reads to name the others: of the most
/// dimensions as many as fit a host call.
const PARTIAL_BLOCKS_MAX: usize = 31;
/// Blocks that a commit forgets: each is a key and one for each of its documents.
const FORGOTTEN_BLOCKS_MAX: usize = PUTS_MAX / 65;
/// In which order documents come next: summaries are few and stand for many messages.
const CORPUS_ORDER: [Corpus; 2] = [Corpus::Summaries, Corpus::Messages];

/// What is asked.
struct EmbedRequest {
    entries: Vec<VectorEntry>,
    model: Option<String>,
    forget: bool,
}

/// A document by its id, with its vector; `None`: it is to have none.
struct VectorEntry {
    id: String,
    vector: Option<Vec<i8>>,
}

impl EmbedRequest {
    fn read(vectors_json: &str) -> Result<Self> {
        let mut fields = JsonFields::parse_argument(VECTORS_ARGUMENT, vectors_json)?;
        let (model, forget) = (fields.take_optional_text("model"), fields.take_flag("forget"));
        let mut entries = Vec::new();
        if let Some((list, kind)) = fields.take_any("vectors") {
            let elements = json::list_elements(&list, json::ByteSpan::from_range(0, list.len()));
            if kind != JsonKind::Array || elements.len() > VECTOR_ENTRIES_MAX {
                return Err(Error::invalid_input(format_args!(
                    "vectors: a list of at most {VECTOR_ENTRIES_MAX} entries"
                )));
            }
            for element in elements {
                let mut fields =
                    JsonFields::parse_argument("vectors", json::slice_span(&list, element.span))?;
                let id = fields.take_text("id");
                // One that was forgotten, or goes by another name, must not remove what is there.
                let vector =
                    quantization::parse_nullable_vector(&mut fields)?.ok_or_else(|| {
                        Error::invalid_input("vectors: `vector` must be a list of numbers, or null")
                    })?;
                fields.finish("vectors")?;
                entries.push(VectorEntry { id, vector });
            }
        }
        fields.finish(VECTORS_ARGUMENT)?;
        if forget && !entries.is_empty() {
            return Err(Error::invalid_input("forget: it goes with no vectors"));
        }
        if model.as_ref().is_some_and(|model| !(1..=MODEL_BYTES_MAX).contains(&model.len())) {
            return Err(Error::invalid_input(format_args!("model: 1 to {MODEL_BYTES_MAX} bytes")));
        }
        Ok(Self { entries, model, forget })
    }
}

const fn choose_corpus(of_summary: bool) -> Corpus {
    if of_summary { Corpus::Summaries } else { Corpus::Messages }
}

/// A conversation whose vectors are changed or listed.
struct EmbedUpdate<'a, 's> {
    reader: &'a mut StoreSession<'s>,
    keys: ConversationKeys,
    loaded: LoadedHead,
    index: SearchIndex,
    /// The record as it was read, and as it will be.
    record: Option<Vec<u8>>,
    vectors: VectorRecord,
    /// Blocks of summaries or messages, by number, as they will be.
    blocks: Vec<(bool, u64, SignBlock)>,
    puts: Vec<Put>,
}

/// Attaches vectors, or forgets them, and says what comes next.
///
/// # Errors
///
/// `invalid-input`: a vector, other dimensions or another model, an id of a file; `not-found`: the
/// conversation or an id; `denied`: nothing is stored for the session; `conflict`: another call was
/// faster; `corrupt`; errors of the store.
pub(crate) fn embed(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    vectors_json: &str,
) -> Result<String> {
    let asked = EmbedRequest::read(vectors_json)?;
    let keys = ConversationKeys::new(conversation)?;
    let key = keys.vectors_key();
    let wanted = core::slice::from_ref(&key);
    let (loaded, mut rest) = LoadedHead::read_with_keys(reader, &keys, conversation, wanted)?;
    let loaded = loaded.require_existing()?;
    let changes = asked.forget || !asked.entries.is_empty();
    if changes {
        session::ensure_not_skipped(reader, config, &keys, &loaded.head)?;
    }
    let record = rest.pop().flatten();
    let vectors = VectorRecord::from_value(&key, record.as_deref())?.unwrap_or_default();
    let index = SearchIndex::open(reader, &keys, &loaded.head)?;
    let (blocks, puts) = (Vec::new(), Vec::new());
    let mut desk = EmbedUpdate { reader, keys, loaded, index, record, vectors, blocks, puts };
    let mut kept = 0;
    if asked.forget {
        desk.forget_blocks();
    } else {
        kept = desk.attach_vectors(&asked)?;
    }
    let answer = desk.render_answer(kept)?;
    let EmbedUpdate { reader, record: value, mut vectors, mut puts, .. } = desk;
    if changes && !(puts.is_empty() && value.is_none()) {
        let next = if vectors.is_empty() { None } else { Some(vectors.encode_next()?) };
        puts.push(Put { key: key.clone(), value: next });
        reader.commit(&[Guard { key, value }], &puts)?;
    }
    Ok(answer)
}

impl EmbedUpdate<'_, '_> {
    /// How many documents of a corpus there are.
    fn count_documents(&self, corpus: Corpus) -> u64 {
        match corpus {
            Corpus::Messages => self.loaded.head.messages,
            Corpus::Summaries => self.index.count_documents(corpus),
        }
    }

    /// The documents that the entries name.
    fn resolve_entries(&mut self, entries: &[VectorEntry]) -> Result<Vec<(bool, u64)>> {
        let mut ordinals = Vec::new();
        let mut out = Vec::with_capacity(entries.len());
        for VectorEntry { id, .. } in entries {
            let unknown =
                || Error::not_found(format_args!("there is no message or summary `{id}` here"));
            let document = match read_scope::resolve_id(&self.keys, id)? {
                ResolvedId::Message(seq) => {
                    let is_one = (1..=self.loaded.head.messages).contains(&seq);
                    (false, Some(seq).filter(|_| is_one).ok_or_else(unknown)?)
                }
                ResolvedId::Summary(id) => {
                    if ordinals.is_empty() {
                        let all: Vec<u64> = (1..=self.count_documents(Corpus::Summaries)).collect();
                        ordinals = self.index.read_summaries(self.reader, &all)?;
                    }
                    let at = ordinals.iter().position(|(known, _)| *known == id);
                    (true, int::to_u64(at.ok_or_else(unknown)?) + 1)
                }
                ResolvedId::File(_) => {
                    return Err(Error::invalid_input(format_args!(
                        "vectors: `{id}` is a file; messages and summaries have vectors"
                    )));
                }
            };
            if out.contains(&document) {
                return Err(Error::invalid_input(format_args!("vectors: `{id}` is there twice")));
            }
            out.push(document);
        }
        Ok(out)
    }

    /// Takes as many of the entries as fit a commit; returns how many.
    fn attach_vectors(&mut self, asked: &EmbedRequest) -> Result<usize> {
        if self.vectors.count_vectors() == 0 {
            let mut vectors = asked.entries.iter().filter_map(|entry| entry.vector.as_ref());
            self.vectors.dimensions = vectors.next().map_or(0, |vector| int::to_u32(vector.len()));
            self.vectors.model.clone_from(&asked.model);
        }
        self.vectors.ensure_compatible(None, asked.model.as_deref())?;
        for vector in asked.entries.iter().filter_map(|entry| entry.vector.as_ref()) {
            self.vectors.ensure_compatible(Some(int::to_u32(vector.len())), None)?;
        }
        let dimensions = int::to_usize(self.vectors.dimensions.into());
        let documents = self.resolve_entries(&asked.entries)?;
        // The record has two bytes for each block and few more, before and after.
        let blocks = CORPUS_ORDER.map(|corpus| self.count_documents(corpus) / BLOCK_DOCUMENTS + 1);
        let mut bytes = 4 * int::to_usize(blocks.iter().sum()) + 4 * MODEL_BYTES_MAX;
        let (mut places, mut kept) = (Vec::new(), 0);
        for (of_summary, document) in &documents {
            let place = (*of_summary, locate_document(*document).0);
            bytes += dimensions + 2;
            if !places.contains(&place) {
                bytes += block_bytes_max(dimensions) + 2;
                places.push(place);
            }
            if 2 + places.len() + kept > PUTS_MAX || int::to_u32(bytes) > CALL_BYTES_MAX {
                break;
            }
            kept += 1;
        }
        for ((of_summary, document), entry) in documents.iter().zip(&asked.entries).take(kept) {
            let (number, at) = locate_document(*document);
            let corpus = choose_corpus(*of_summary);
            let block = self.load_block(*of_summary, number)?;
            let Some((.., block)) = self.blocks.get_mut(block) else { continue };
            block.set(at, dimensions, entry.vector.as_deref());
            self.vectors.corpus_vectors_mut(corpus).set(number, Some(block));
            let key = vector_key(&self.keys, corpus, *document);
            let bytes = entry.vector.as_ref().map(|vector| quantization::vector_bytes(vector));
            let value = bytes.map(|bytes| codec::encode_raw_bytes(&bytes)).transpose()?;
            self.puts.push(Put { key, value });
        }
        for (of_summary, number, block) in &self.blocks {
            let key = block_key(&self.keys, choose_corpus(*of_summary), *number);
            let value = Some(codec::encode_raw_bytes(&block.bytes())?);
            self.puts.push(Put { key, value });
        }
        Ok(kept)
    }

    /// Where a block stands among those of this call; it is read when it is new here. One of which
    /// nothing is known is not stored.
    fn load_block(&mut self, of_summary: bool, number: u64) -> Result<usize> {
        let mut blocks = self.blocks.iter();
        if let Some(at) = blocks.position(|(other, n, _)| (*other, *n) == (of_summary, number)) {
            return Ok(at);
        }
        let corpus = choose_corpus(of_summary);
        let mut block = SignBlock::default();
        if self.vectors.corpus_vectors(corpus).block_counts(number).0 > 0 {
            let key = block_key(&self.keys, corpus, number);
            let dimensions = int::to_usize(self.vectors.dimensions.into());
            let value = self.reader.read_one_uncached(&key)?;
            let Some(read) = SignBlock::from_value(&key, value.as_deref(), dimensions)? else {
                return Err(diagnose_damage(self.reader, &self.keys, self.record.as_deref(), &key));
            };
            block = read;
        }
        self.blocks.push((of_summary, number, block));
        Ok(self.blocks.len() - 1)
    }

    /// Forgets the newest blocks, as many as fit a commit, whatever stands in them.
    fn forget_blocks(&mut self) {
        for corpus in CORPUS_ORDER {
            while self.puts.len() < FORGOTTEN_BLOCKS_MAX * 65 {
                let side = self.vectors.corpus_vectors_mut(corpus);
                let Some(last) = side.count_blocks().checked_sub(1) else { break };
                side.set(last, None);
                let documents = (0..BLOCK_DOCUMENTS).map(|place| document_at(last, place));
                let keys = documents.map(|document| vector_key(&self.keys, corpus, document));
                self.puts.extend(keys.map(|key| Put { key, value: None }));
                self.puts.push(Put { key: block_key(&self.keys, corpus, last), value: None });
            }
        }
    }

    /// What the conversation has, and what comes next.
    fn render_answer(&mut self, kept: usize) -> Result<String> {
        let ids = self.list_missing_ids()?;
        let missing = CORPUS_ORDER.map(|corpus| {
            self.count_documents(corpus)
                .saturating_sub(self.vectors.corpus_vectors(corpus).count_documents().0)
        });
        let vectors = &self.vectors;
        let mut w = JsonWriter::new_object();
        let dimensions =
            Some(u64::from(vectors.dimensions)).filter(|_| vectors.count_vectors() > 0);
        w.add_optional_number("dimensions", dimensions);
        w.add_number("kept", int::to_u64(kept));
        w.add_number("missing_count", missing.iter().sum());
        w.add_texts("missing_ids", &ids);
        w.add_optional_text(
            "model",
            vectors.model.as_deref().filter(|_| vectors.count_vectors() > 0),
        );
        w.add_number("stored", vectors.count_vectors());
        Ok(w.end_object())
    }

    /// Ids of documents of which nothing is known, newest first.
    fn list_missing_ids(&mut self) -> Result<Vec<String>> {
        let (mut ids, mut partial) = (Vec::new(), 0);
        for corpus in CORPUS_ORDER {
            let documents = self.count_documents(corpus);
            let mut open = Vec::new();
            for number in (0..documents.div_ceil(BLOCK_DOCUMENTS)).rev() {
                if ids.len() + open.len() >= VECTOR_NEXT_MAX || partial == PARTIAL_BLOCKS_MAX {
                    break;
                }
                let size = BLOCK_DOCUMENTS.min(documents - number * BLOCK_DOCUMENTS);
                let mut known = self.vectors.corpus_vectors(corpus).block_counts(number).0;
                if known >= size {
                    continue;
                }
                if known > 0 {
                    partial += 1;
                    let at = self.load_block(corpus == Corpus::Summaries, number)?;
                    known = self.blocks.get(at).map_or(0, |(.., block)| block.covered);
                }
                let unknown = (0..size).rev().filter(|at| known >> at & 1 == 0);
                open.extend(unknown.map(|at| document_at(number, at)));
            }
            match corpus {
                Corpus::Messages => {
                    ids.extend(open.iter().map(|seq| self.keys.message_id(*seq)));
                }
                Corpus::Summaries => {
                    open.reverse();
                    let rows = self.index.read_summaries(self.reader, &open)?;
                    ids.extend(rows.iter().rev().map(|(id, _)| summary::format_summary_id(*id)));
                }
            }
        }
        ids.truncate(VECTOR_NEXT_MAX);
        Ok(ids)
    }
}

#[cfg(test)]
mod tests;
