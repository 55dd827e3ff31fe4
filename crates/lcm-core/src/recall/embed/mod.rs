//! Embed: vectors that a host attaches to messages and summaries.
//!
//! In: ids with vectors, or `forget`. Out: at most one commit, and JSON with the counts of vectors
//! and the next documents to embed. One record guards all vectors of a conversation. The head does
//! not change, so that appends can run at the same time. Not here: the encoding of vectors
//! ([`crate::search::vectors`]) and queries by vector ([`crate::search::grep`]).

use alloc::{format, string::String, vec::Vec};

use crate::{
    search::{
        Corpus, SearchIndex,
        vectors::{
            DocumentVector, VectorRecord, VectorUpdate, quantization,
            sign_block::{BLOCK_DOCUMENTS, document_at},
        },
    },
    storage::{
        call::Call,
        head::{JournalEntry, LoadedHead},
        read_scope::{self, ResolvedId},
        record_key::RecordReads,
        session::ensure_not_skipped,
        store_session::StoreSession,
        summary,
    },
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::{self, JsonFields, JsonKind, JsonWriter},
    limits::{MODEL_BYTES_MAX, VECTOR_ENTRIES_MAX, VECTOR_NEXT_MAX},
};

/// Name of the argument that holds the request.
const VECTORS_ARGUMENT: &str = "vectors-json";
/// Maximum number of partly filled blocks that one call reads to list their missing documents. With
/// the maximum number of dimensions, this many blocks have nearly as many bytes as one host call
/// may return.
const PARTIAL_BLOCKS_MAX: usize = 31;
/// Order in which documents are listed. Summaries come first: they are few and cover many messages.
const CORPUS_ORDER: [Corpus; 2] = [Corpus::Summaries, Corpus::Messages];

/// A request to attach or forget vectors.
struct EmbedRequest {
    entries: Vec<VectorEntry>,
    model: Option<String>,
    forget: bool,
}

/// A document by its id, with its vector; `None`: the host makes no vector for the document, and a
/// stored vector is deleted.
struct VectorEntry {
    id: String,
    vector: Option<Vec<i8>>,
}

impl EmbedRequest {
    /// Parses a request.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a field is malformed or unknown, or the request has both `forget` and
    /// `vectors`.
    fn read(vectors_json: &str) -> Result<Self> {
        let mut fields = JsonFields::parse_argument(VECTORS_ARGUMENT, vectors_json)?;
        let (model, forget) = (fields.take_optional_text("model"), fields.take_flag("forget"));
        let mut entries = Vec::new();
        if let Some((list, kind)) = fields.take_any("vectors") {
            let elements = json::list_elements(&list, json::ByteSpan::from_range(0, list.len()));
            if kind != JsonKind::Array || elements.len() > VECTOR_ENTRIES_MAX {
                return Err(Error::invalid_input(format_args!(
                    "`vectors` must be a list of at most {VECTOR_ENTRIES_MAX} entries"
                )));
            }
            for (at, element) in elements.into_iter().enumerate() {
                let name = entry_name(at);
                let text = json::slice_span(&list, element.span);
                let mut fields = JsonFields::parse_argument(&name, text)?;
                let id = fields.take_text("id");
                let vector = quantization::parse_nullable_vector(&mut fields)
                    .map_err(|error| name_entry(error, at))?;
                // A missing or misspelled `vector` must not delete the stored vector.
                let vector = vector.ok_or_else(|| {
                    Error::invalid_input(format_args!(
                        "{name}: `vector` must be a list of numbers, or null"
                    ))
                })?;
                fields.finish(&name)?;
                entries.push(VectorEntry { id, vector });
            }
        }
        fields.finish(VECTORS_ARGUMENT)?;
        if forget && !entries.is_empty() {
            return Err(Error::invalid_input("`forget` and `vectors` are mutually exclusive"));
        }
        let bytes = model.as_ref().map(String::len);
        if let Some(bytes) = bytes.filter(|bytes| !(1..=MODEL_BYTES_MAX).contains(bytes)) {
            return Err(Error::invalid_input(format_args!(
                "`model` must have 1 to {MODEL_BYTES_MAX} bytes, got {bytes}"
            )));
        }
        Ok(Self { entries, model, forget })
    }
}

/// Formats the name of the entry at an index for an error, such as `vectors[0]`.
fn entry_name(at: usize) -> String {
    format!("vectors[{at}]")
}

/// Adds the name of the entry at an index to an error about its vector.
fn name_entry(error: Error, at: usize) -> Error {
    Error::new(error.code, format!("{}: {}", entry_name(at), error.message))
}

/// One call of `embed`: the conversation, its search index and the vectors that the call changes.
struct EmbedUpdate<'a> {
    call: Call<'a>,
    loaded: LoadedHead,
    index: SearchIndex,
    vectors: VectorUpdate<'a>,
}

/// Attaches or deletes vectors, as many as fit one commit, and lists the next documents to embed.
/// The answer counts the attached entries (`kept`) and the vectors that remain (`stored`).
///
/// # Errors
///
/// - `invalid-input`: a field is malformed, an id is of a file or occurs twice, or a vector or
///   model does not fit the stored vectors.
/// - `not-found`: the conversation or the document of an id does not exist.
/// - `denied`: the configuration stores nothing for the session.
/// - `conflict`: another call committed first.
/// - `corrupt`: a record is damaged.
/// - `unsupported`: a record has a newer format.
/// - Errors of the store.
pub(crate) fn embed(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    vectors_json: &str,
) -> Result<String> {
    let asked = EmbedRequest::read(vectors_json)?;
    let mut reads = RecordReads::default();
    let record = reads.add_record(VectorRecord::key(call.keys));
    let life = reads.add_record(JournalEntry::key(call.keys, 1));
    let (loaded, values) = LoadedHead::open_with_records(session, call, &reads)?;
    let loaded = loaded.require_existing()?;
    let life = values.build_guard(&life);
    if life.value.is_none() {
        return Err(session.missing_record_error(&life.key));
    }
    let has_changes = asked.forget || !asked.entries.is_empty();
    if has_changes {
        ensure_not_skipped(session, call, &loaded.head)?;
    }
    let vectors = VectorUpdate::new(call, values.decode_guarded(record)?, life);
    let index = SearchIndex::open(session, call.keys, &loaded.head)?;
    let mut update = EmbedUpdate { call, loaded, index, vectors };
    let mut kept = 0;
    if asked.forget {
        update.vectors.delete_blocks(&CORPUS_ORDER);
    } else {
        kept = update.attach_vectors(session, &asked)?;
    }
    let answer = update.render_answer(session, kept)?;
    if has_changes {
        update.vectors.commit(session)?;
    }
    Ok(answer)
}

impl EmbedUpdate<'_> {
    /// Counts the documents of a corpus.
    fn count_documents(&self, corpus: Corpus) -> u64 {
        match corpus {
            Corpus::Messages => self.loaded.head.messages,
            Corpus::Summaries => self.index.count_documents(corpus),
        }
    }

    /// Returns the corpus and number of the document of each entry, in order.
    fn resolve_entries(
        &self,
        session: &mut StoreSession<'_>,
        entries: &[VectorEntry],
    ) -> Result<Vec<(Corpus, u64)>> {
        let mut ordinals = Vec::new();
        let mut out = Vec::with_capacity(entries.len());
        for VectorEntry { id, .. } in entries {
            let unknown = || {
                Error::not_found(format_args!(
                    "there is no message or summary `{id}` in this conversation"
                ))
            };
            let document = match read_scope::resolve_id(self.call.keys, id)? {
                ResolvedId::Message(seq) => {
                    let is_stored = (1..=self.loaded.head.messages).contains(&seq);
                    (Corpus::Messages, Some(seq).filter(|_| is_stored).ok_or_else(unknown)?)
                }
                ResolvedId::Summary(id) => {
                    if ordinals.is_empty() {
                        let all: Vec<u64> = (1..=self.count_documents(Corpus::Summaries)).collect();
                        ordinals = self.index.read_summaries(session, &all)?;
                    }
                    let at = ordinals.iter().position(|(known, _)| *known == id);
                    (Corpus::Summaries, int::to_u64(at.ok_or_else(unknown)?) + 1)
                }
                other @ (ResolvedId::File(_) | ResolvedId::System(_)) => {
                    let is_file = matches!(other, ResolvedId::File(_));
                    let kind = if is_file { "file" } else { "system messages" };
                    return Err(Error::invalid_input(format_args!(
                        "`vectors` must name messages or summaries, got the {kind} `{id}`"
                    )));
                }
            };
            if out.contains(&document) {
                return Err(Error::invalid_input(format_args!(
                    "`vectors` must name each id once, got `{id}` twice"
                )));
            }
            out.push(document);
        }
        Ok(out)
    }

    /// Attaches the first entries, as many as fit a commit, and returns their number.
    fn attach_vectors(
        &mut self,
        session: &mut StoreSession<'_>,
        asked: &EmbedRequest,
    ) -> Result<usize> {
        let record = &mut self.vectors.record;
        if record.count_vectors() == 0 {
            let mut vectors = asked.entries.iter().filter_map(|entry| entry.vector.as_ref());
            record.dimensions = vectors.next().map_or(0, |vector| int::to_u32(vector.len()));
            record.model.clone_from(&asked.model);
        }
        record.ensure_compatible(None, asked.model.as_deref())?;
        for (at, entry) in asked.entries.iter().enumerate() {
            let dimensions = entry.vector.as_ref().map(|vector| int::to_u32(vector.len()));
            record.ensure_compatible(dimensions, None).map_err(|error| name_entry(error, at))?;
        }
        let documents = self.resolve_entries(session, &asked.entries)?;
        let vectors: Vec<DocumentVector<'_>> = documents
            .into_iter()
            .zip(&asked.entries)
            .map(|((corpus, document), entry)| DocumentVector {
                corpus,
                document,
                vector: entry.vector.as_deref(),
            })
            .collect();
        let totals = CORPUS_ORDER.map(|corpus| self.count_documents(corpus));
        self.vectors.attach_vectors(session, &vectors, &totals)
    }

    /// Renders the counts of vectors and the next documents to embed.
    fn render_answer(&mut self, session: &mut StoreSession<'_>, kept: usize) -> Result<String> {
        let ids = self.list_missing_ids(session)?;
        let missing = CORPUS_ORDER.map(|corpus| {
            self.count_documents(corpus)
                .saturating_sub(self.vectors.record.corpus_vectors(corpus).count_documents().0)
        });
        let vectors = &self.vectors.record;
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

    /// Lists the ids of documents for which the host has given neither a vector nor `null`:
    /// summaries before messages, each newest first. The list ends at [`VECTOR_NEXT_MAX`] ids or
    /// after [`PARTIAL_BLOCKS_MAX`] partly filled blocks.
    fn list_missing_ids(&mut self, session: &mut StoreSession<'_>) -> Result<Vec<String>> {
        let (mut ids, mut partial) = (Vec::new(), 0);
        for corpus in CORPUS_ORDER {
            let documents = self.count_documents(corpus);
            let mut open = Vec::new();
            for number in (0..documents.div_ceil(BLOCK_DOCUMENTS)).rev() {
                if ids.len() + open.len() >= VECTOR_NEXT_MAX || partial == PARTIAL_BLOCKS_MAX {
                    break;
                }
                let size = BLOCK_DOCUMENTS.min(documents - number * BLOCK_DOCUMENTS);
                let mut known = self.vectors.record.corpus_vectors(corpus).block_counts(number).0;
                if known >= size {
                    continue;
                }
                if known > 0 {
                    partial += 1;
                    known = self.vectors.read_covered(session, corpus, number)?;
                }
                let unknown = (0..size).rev().filter(|at| known >> at & 1 == 0);
                open.extend(unknown.map(|at| document_at(number, at)));
            }
            match corpus {
                Corpus::Messages => {
                    ids.extend(open.iter().map(|seq| self.call.keys.message_id(*seq)));
                }
                Corpus::Summaries => {
                    open.reverse();
                    let rows = self.index.read_summaries(session, &open)?;
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
