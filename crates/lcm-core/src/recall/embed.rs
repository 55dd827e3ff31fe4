//! Embed: vectors that a host attaches to messages and summaries.
//!
//! In: ids with vectors, or the wish to forget all. Out: one commit, and as JSON what a conversation
//! has of them and which documents come next. What is written hangs from one record that guards
//! itself, so that attaching is no event of the conversation and appends go on beside it. Not here:
//! what a vector is ([`crate::search::vectors`]) and what a query makes of it ([`super::grep`]).

use alloc::{string::String, vec::Vec};

use super::Named;
use crate::{
    codec,
    config::Config,
    error::{Error, Result},
    head::Loaded,
    json::{self, Fields, Kind, Writer},
    keys::Keys,
    life,
    limits::{CALL_BYTES_MAX, MODEL_BYTES_MAX, PUTS_MAX, VECTOR_ENTRIES_MAX, VECTOR_NEXT_MAX},
    num,
    order::Sorted,
    reader::Reader,
    search::{
        Corpus, Index,
        vectors::{
            Vectors,
            block::{BLOCK_DOCUMENTS, Block, block_bytes_max, block_of, document_of},
            block_key, damaged, quantise, vector_key,
        },
    },
    store::{Guard, Put},
    summary,
};

/// Name of the argument.
const VECTORS: &str = "vectors-json";
/// Blocks of which some documents are known that one call reads to name the others: of the most
/// dimensions as many as fit a host call.
const PARTIAL_MAX: usize = 31;
/// Blocks that a commit forgets: each is a key and one for each of its documents.
const FORGOTTEN_MAX: usize = PUTS_MAX / 65;
/// In which order documents come next: summaries are few and stand for many messages.
const CORPORA: [Corpus; 2] = [Corpus::Summaries, Corpus::Messages];

/// What is asked.
struct Asked {
    entries: Vec<Entry>,
    model: Option<String>,
    forget: bool,
}

/// A document by its id, with its vector; `None`: it is to have none.
struct Entry {
    id: String,
    vector: Option<Vec<i8>>,
}

impl Asked {
    fn read(vectors_json: &str) -> Result<Self> {
        let mut fields = Fields::of_argument(VECTORS, vectors_json)?;
        let (model, forget) = (fields.text_or_none("model"), fields.flag("forget"));
        let mut entries = Vec::new();
        if let Some((list, kind)) = fields.any("vectors") {
            let elements = json::elements(&list, json::Span::between(0, list.len()));
            if kind != Kind::Array || elements.len() > VECTOR_ENTRIES_MAX {
                return Err(Error::invalid(format_args!(
                    "vectors: a list of at most {VECTOR_ENTRIES_MAX} entries"
                )));
            }
            for element in elements {
                let mut fields = Fields::of_argument("vectors", json::slice(&list, element.span))?;
                let id = fields.text("id");
                let vector = quantise::vector(&mut fields)?;
                fields.end("vectors")?;
                entries.push(Entry { id, vector });
            }
        }
        fields.end(VECTORS)?;
        if forget && !entries.is_empty() {
            return Err(Error::invalid("forget: it goes with no vectors"));
        }
        if model.as_ref().is_some_and(|model| !(1..=MODEL_BYTES_MAX).contains(&model.len())) {
            return Err(Error::invalid(format_args!("model: 1 to {MODEL_BYTES_MAX} bytes")));
        }
        Ok(Self { entries, model, forget })
    }
}

/// A block by its corpus (whether of summaries) and number.
type Place = (bool, u64);

const fn corpus_of(place: Place) -> Corpus {
    if place.0 { Corpus::Summaries } else { Corpus::Messages }
}

/// A conversation whose vectors are changed or listed.
struct Desk<'a, 's> {
    reader: &'a mut Reader<'s>,
    keys: Keys,
    loaded: Loaded,
    index: Index,
    /// The record as it was read, and as it will be.
    record: Option<Vec<u8>>,
    vectors: Vectors,
    /// Blocks as they will be.
    blocks: Sorted<Place, Block>,
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
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    vectors_json: &str,
) -> Result<String> {
    let asked = Asked::read(vectors_json)?;
    let keys = Keys::new(conversation)?;
    let key = keys.vectors();
    let wanted = core::slice::from_ref(&key);
    let (loaded, mut rest) = Loaded::read(reader, &keys, conversation, wanted)?;
    let loaded = loaded.existing()?;
    let changes = asked.forget || !asked.entries.is_empty();
    if changes {
        life::must_be_stored(reader, config, &keys, &loaded.head)?;
    }
    let record = rest.pop().flatten();
    let vectors = Vectors::of(&key, record.as_deref())?.unwrap_or_default();
    let index = Index::open(reader, &keys, &loaded.head)?;
    let (blocks, puts) = (Sorted::default(), Vec::new());
    let mut desk = Desk { reader, keys, loaded, index, record, vectors, blocks, puts };
    let mut kept = 0;
    if asked.forget {
        desk.forget();
    } else {
        kept = desk.attach(&asked)?;
    }
    let answer = desk.answer(kept)?;
    let Desk { reader, record: value, mut vectors, mut puts, .. } = desk;
    if changes && !(puts.is_empty() && value.is_none()) {
        let next = if vectors.is_empty() { None } else { Some(vectors.next()?) };
        puts.push(Put { key: key.clone(), value: next });
        reader.commit(&[Guard { key, value }], &puts)?;
    }
    Ok(answer)
}

impl Desk<'_, '_> {
    /// How many documents of a corpus there are.
    fn documents(&self, corpus: Corpus) -> u64 {
        match corpus {
            Corpus::Messages => self.loaded.head.messages,
            Corpus::Summaries => self.index.documents(corpus),
        }
    }

    /// The documents that the entries name.
    fn named(&mut self, entries: &[Entry]) -> Result<Vec<(bool, u64)>> {
        let mut ordinals: Option<Sorted<[u8; 8], u64>> = None;
        let mut out = Vec::with_capacity(entries.len());
        for Entry { id, .. } in entries {
            let unknown =
                || Error::not_found(format_args!("there is no message or summary `{id}` here"));
            let document = match super::named(&self.keys, id)? {
                Named::Message(seq) => {
                    let is_one = (1..=self.loaded.head.messages).contains(&seq);
                    (false, Some(seq).filter(|_| is_one).ok_or_else(unknown)?)
                }
                Named::Summary(id) => {
                    if ordinals.is_none() {
                        let all: Vec<u64> = (1..=self.documents(Corpus::Summaries)).collect();
                        let rows = self.index.summaries(self.reader, &all)?;
                        let rows = rows.into_iter().map(|(id, _)| id).zip(all);
                        ordinals = Some(Sorted::of(rows.collect()));
                    }
                    let ordinal = ordinals.as_ref().and_then(|known| known.get(&id));
                    (true, *ordinal.ok_or_else(unknown)?)
                }
                Named::File(_) => {
                    return Err(Error::invalid(format_args!(
                        "vectors: `{id}` is a file; messages and summaries have vectors"
                    )));
                }
            };
            out.push(document);
        }
        Ok(out)
    }

    /// Takes as many of the entries as fit a commit; returns how many.
    fn attach(&mut self, asked: &Asked) -> Result<usize> {
        if self.vectors.count() == 0 {
            let mut vectors = asked.entries.iter().filter_map(|entry| entry.vector.as_ref());
            self.vectors.dimensions = vectors.next().map_or(0, |vector| num::to_u32(vector.len()));
            self.vectors.model.clone_from(&asked.model);
        }
        self.vectors.must_fit(None, asked.model.as_deref())?;
        for vector in asked.entries.iter().filter_map(|entry| entry.vector.as_ref()) {
            self.vectors.must_fit(Some(num::to_u32(vector.len())), None)?;
        }
        let dimensions = num::to_usize(self.vectors.dimensions.into());
        let documents = self.named(&asked.entries)?;
        // The record itself has a byte for each block, and few more.
        let known = CORPORA.map(|corpus| self.documents(corpus).div_ceil(BLOCK_DOCUMENTS));
        let mut bytes = num::to_usize(known.iter().sum()) + 4 * MODEL_BYTES_MAX;
        let mut places: Sorted<Place, ()> = Sorted::default();
        let mut taken: Sorted<(bool, u64), &Entry> = Sorted::default();
        let mut kept = 0;
        for (of_summary, document) in &documents {
            let place = (*of_summary, block_of(*document).0);
            bytes += dimensions + 2;
            if !places.contains_key(&place) {
                bytes += block_bytes_max(dimensions) + 2;
            }
            let puts = 2 + places.len() + kept + usize::from(!places.contains_key(&place));
            if puts > PUTS_MAX || num::to_u32(bytes) > CALL_BYTES_MAX {
                break;
            }
            places.insert(place, ());
            if let Some(entry) = asked.entries.get(kept) {
                taken.insert((*of_summary, *document), entry);
            }
            kept += 1;
        }
        self.fetch(places.entries().iter().map(|(place, ())| *place).collect())?;
        for ((of_summary, document), entry) in taken.entries() {
            let (number, at) = block_of(*document);
            let place = (*of_summary, number);
            let Some(block) = self.blocks.find_mut(&place) else { continue };
            block.set(at, dimensions, entry.vector.as_deref());
            self.vectors.side_mut(corpus_of(place)).set(number, Some(block));
            let key = vector_key(&self.keys, corpus_of(place), *document);
            let value = match &entry.vector {
                Some(vector) => Some(codec::encode_plain(&quantise::bytes(vector))?),
                None => None,
            };
            self.puts.push(Put { key, value });
        }
        for (place, block) in self.blocks.entries() {
            let key = block_key(&self.keys, corpus_of(*place), place.1);
            let value = Some(codec::encode_plain(&block.bytes())?);
            self.puts.push(Put { key, value });
        }
        Ok(kept)
    }

    /// Reads blocks that were not read yet; one of which nothing is known is not stored.
    fn fetch(&mut self, places: Vec<Place>) -> Result<()> {
        let dimensions = num::to_usize(self.vectors.dimensions.into());
        let mut wanted = Vec::new();
        for place in places {
            if self.blocks.contains_key(&place) {
                continue;
            }
            if self.vectors.side(corpus_of(place)).of(place.1).0 == 0 {
                self.blocks.insert(place, Block::default());
            } else {
                wanted.push((block_key(&self.keys, corpus_of(place), place.1), place));
            }
        }
        let keys: Vec<String> = wanted.iter().map(|(key, _)| key.clone()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        for ((key, place), value) in wanted.iter().zip(self.reader.fresh(&keys)?) {
            let block = Block::of(key, value.as_deref(), dimensions)?;
            let Some(block) = block else {
                return Err(damaged(self.reader, &self.keys, self.record.as_deref(), key));
            };
            self.blocks.insert(*place, block);
        }
        Ok(())
    }

    /// Forgets the newest blocks, as many as fit a commit, whatever stands in them.
    fn forget(&mut self) {
        for corpus in CORPORA {
            while self.puts.len() < FORGOTTEN_MAX * 65 {
                let side = self.vectors.side_mut(corpus);
                let Some(last) = side.blocks().checked_sub(1) else { break };
                side.set(last, None);
                let documents = (0..BLOCK_DOCUMENTS).map(|place| document_of(last, place));
                let keys = documents.map(|document| vector_key(&self.keys, corpus, document));
                self.puts.extend(keys.map(|key| Put { key, value: None }));
                self.puts.push(Put { key: block_key(&self.keys, corpus, last), value: None });
            }
        }
    }

    /// What the conversation has, and what comes next.
    fn answer(&mut self, kept: usize) -> Result<String> {
        let next = self.next()?;
        let missing = CORPORA.map(|corpus| {
            self.documents(corpus).saturating_sub(self.vectors.side(corpus).counts().0)
        });
        let vectors = &self.vectors;
        let mut w = Writer::object();
        let dimensions = Some(u64::from(vectors.dimensions)).filter(|_| vectors.count() > 0);
        w.number_or_null("dimensions", dimensions);
        w.number("kept", num::to_u64(kept));
        w.number("missing", missing.iter().sum());
        w.text_or_null("model", vectors.model.as_deref().filter(|_| vectors.count() > 0));
        w.texts("next", &next);
        w.number("stored", vectors.count());
        Ok(w.end_object())
    }

    /// Ids of documents of which nothing is known, newest first.
    fn next(&mut self) -> Result<Vec<String>> {
        let (mut open, mut partial, mut count) = (Vec::new(), Vec::new(), 0);
        for corpus in CORPORA {
            let documents = self.documents(corpus);
            for block in (0..documents.div_ceil(BLOCK_DOCUMENTS)).rev() {
                if count >= num::to_u64(VECTOR_NEXT_MAX) || partial.len() == PARTIAL_MAX {
                    break;
                }
                let size = BLOCK_DOCUMENTS.min(documents - block * BLOCK_DOCUMENTS);
                let known = self.vectors.side(corpus).of(block).0;
                if known < size {
                    let place = (corpus == Corpus::Summaries, block);
                    if known > 0 {
                        partial.push(place);
                    }
                    open.push((place, size));
                    count += size - known;
                }
            }
        }
        self.fetch(partial)?;
        let (mut ordinals, mut seqs) = (Vec::new(), Vec::new());
        for (place, size) in open {
            let known = self.blocks.get(&place).map_or(0, |block| block.known);
            let unknown = (0..size).rev().filter(|at| known >> at & 1 == 0);
            let list = if place.0 { &mut ordinals } else { &mut seqs };
            list.extend(unknown.map(|at| document_of(place.1, at)));
        }
        ordinals.reverse();
        let rows = self.index.summaries(self.reader, &ordinals)?;
        let mut ids: Vec<String> = rows.iter().rev().map(|(id, _)| summary::name(*id)).collect();
        ids.extend(seqs.iter().map(|seq| self.keys.message_name(*seq)));
        ids.truncate(VECTOR_NEXT_MAX);
        Ok(ids)
    }
}
