//! Reads and the commit of one exported call, and the cache that an engine instance keeps.
//!
//! In: keys, with the sizes of immutable values. Out: values. A host call asks for at most 1,000
//! keys, and for at most 1 MiB of values where sizes are given. The cache holds immutable values
//! and directory nodes; all other values are read anew in every call. A value enters the cache by a
//! read, never by a write.

use alloc::{collections::VecDeque, format, rc::Rc, string::String, vec::Vec};
use lcm_text::base::hash;

use crate::storage::{
    codec,
    compressed_pack::CompressedPack,
    keys::ConversationKeys,
    pack::{DirectoryNode, Pack, PackRef},
    records::withdrawals::Withdrawals,
    store::{Guard, Put, Store},
};
use lcm_text::base::{
    error::{Error, Result},
    int, limits,
    sort::SortedMap,
};

/// Number of cached directory nodes above which the next read of the directory drops all of them.
const DIRECTORY_CACHE_MAX: usize = 256;
/// Most conversations whose head the cache remembers. With this many, the next read of a head
/// clears the cache.
const HEADS_MAX: usize = 1_024;
/// Most bytes of decoded packs in the cache, counted as encoded; a pack that would exceed the bound
/// first drops all others. Packs are cached because one assembly or compaction reads a pack several
/// times.
const PACKS_BYTES_MAX: usize = limits::CACHE_BYTES_MAX / 4;
/// Bytes that a read reserves for a directory node: 1,024 references of 20 bytes, and 1 KiB.
const DIRECTORY_NODE_BYTES: u32 = 21 << 10;
/// Most directory nodes of one host call: with 21 KiB each, they stay under 1 MiB.
const DIRECTORY_CALL_MAX: usize = 48;

/// The cache of an instance, kept between calls: immutable values, directory nodes, and hashes of
/// heads.
#[derive(Debug, Default)]
pub(crate) struct InstanceCache {
    values: SortedMap<String, Rc<Vec<u8>>>,
    insertion_order: VecDeque<String>,
    bytes: usize,
    /// Decoded packs; `packs_bytes` is the sum of their encoded sizes.
    packs: SortedMap<String, Rc<Pack>>,
    packs_bytes: usize,
    /// Directory nodes. A stored node can grow, so each read names the last seq that it needs.
    directory: SortedMap<String, Rc<DirectoryNode>>,
    /// Opened compressed packs, in the order of insertion; about 4 MiB in memory at most.
    open_packs: VecDeque<(String, Rc<CompressedPack>)>,
    /// Revision and hash of the last seen head of each conversation, by key prefix.
    heads: SortedMap<String, (u64, [u8; 16])>,
    /// How often the cache was cleared. Data derived under another generation is invalid.
    generation: u64,
}

impl InstanceCache {
    fn insert_value(&mut self, key: &str, value: &Rc<Vec<u8>>) {
        if value.len() > limits::CACHE_BYTES_MAX / 4 || self.values.contains_key(key) {
            return;
        }
        self.bytes += value.len();
        self.values.insert(key.into(), Rc::clone(value));
        self.insertion_order.push_back(key.into());
        while self.bytes > limits::CACHE_BYTES_MAX - limits::OPEN_PACKS_BYTES_MAX {
            let Some(oldest) = self.insertion_order.pop_front() else { break };
            if let Some(value) = self.values.remove(&oldest) {
                self.bytes -= value.len();
            }
        }
    }

    fn insert_open_pack(&mut self, key: &str, opened: &Rc<CompressedPack>) {
        self.open_packs.retain(|(known, _)| known != key);
        self.open_packs.push_back((key.into(), Rc::clone(opened)));
        let size = |opened: &VecDeque<(String, Rc<CompressedPack>)>| -> usize {
            opened.iter().map(|(_, opened)| opened.estimate_memory_bytes()).sum()
        };
        while size(&self.open_packs) > limits::OPEN_PACKS_BYTES_MAX {
            self.open_packs.pop_front();
        }
    }

    fn remove_value(&mut self, key: &str) {
        self.open_packs.retain(|(known, _)| known != key);
        if let Some(value) = self.values.remove(key) {
            self.bytes -= value.len();
            self.insertion_order.retain(|known| known != key);
        }
    }

    fn clear(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }
}

/// Returns a range start that excludes `key` and no later key: no key has a character below `!`.
pub(crate) fn successor_key(key: &str) -> String {
    format!("{key} ")
}

/// Access of one exported call to the store, through the cache of the instance.
pub(crate) struct StoreSession<'a> {
    store: &'a mut dyn Store,
    cache: &'a mut InstanceCache,
    head_key: Option<String>,
    head_bytes: Option<Vec<u8>>,
    /// The records of withdrawn messages that the call has read to mark messages, by key.
    withdrawals: SortedMap<String, Rc<Withdrawals>>,
}

impl<'a> StoreSession<'a> {
    /// Creates the session of one exported call.
    pub(crate) fn new(store: &'a mut dyn Store, cache: &'a mut InstanceCache) -> Self {
        let withdrawals = SortedMap::default();
        Self { store, cache, head_key: None, head_bytes: None, withdrawals }
    }

    /// Returns the record of withdrawn messages that the call has read; `None`: it has read none.
    pub(super) fn find_withdrawals(&self, key: &str) -> Option<Rc<Withdrawals>> {
        self.withdrawals.get(key).cloned()
    }

    /// Keeps a record of withdrawn messages until the end of the call.
    pub(super) fn keep_withdrawals(&mut self, key: &str, record: &Rc<Withdrawals>) {
        self.withdrawals.insert(key.into(), Rc::clone(record));
    }

    /// Binds the session to the head that the call read, and drops what the cache holds for another
    /// head.
    ///
    /// A newer head drops the directory nodes of the conversation. An older revision, or another
    /// head of the same revision, means another store or a restored backup, and clears the whole
    /// cache.
    pub(crate) fn bind_head(
        &mut self,
        keys: &ConversationKeys,
        revision: u64,
        bytes: Option<&[u8]>,
    ) {
        let seen = (revision, hash::hash_prefix(&hash::hash_fields(&[bytes.unwrap_or_default()])));
        match self.cache.heads.get(keys.key_prefix()) {
            Some(known) if *known == seen => {}
            Some((known, _)) if *known >= revision => self.cache.clear(),
            _ => {
                let (from, to) = keys.record_range("d");
                self.cache
                    .directory
                    .retain_keys(|key| !(from.as_str()..to.as_str()).contains(&key.as_str()));
            }
        }
        if self.cache.heads.len() >= HEADS_MAX {
            self.cache.clear();
        }
        self.cache.heads.insert(keys.key_prefix().into(), seen);
        self.head_key = Some(keys.head_key());
        self.head_bytes = bytes.map(Vec::from);
    }

    /// Clears the cache of the instance.
    pub(crate) fn clear_cache(&mut self) {
        self.cache.clear();
    }

    /// Returns how often the cache was cleared.
    pub(crate) fn generation(&self) -> u64 {
        self.cache.generation
    }

    /// Reads values from the store and never from the cache, in the order of `keys`; `None`: the
    /// key is absent. Each 1,000 keys are one host call.
    ///
    /// The caller ensures that the values of one host call have at most 1 MiB.
    ///
    /// # Errors
    ///
    /// Errors of the store; `store-unavailable`: the store returned another number of values.
    pub(crate) fn read_uncached(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut out = Vec::with_capacity(keys.len());
        for slice in keys.chunks(limits::KEYS_MAX) {
            let values = self.store.get_many(slice)?;
            if values.len() != slice.len() {
                return Err(Error::new(
                    lcm_text::base::error::ErrorCode::StoreUnavailable,
                    format!("the store returned {} values for {} keys", values.len(), slice.len()),
                ));
            }
            out.extend(values);
        }
        Ok(out)
    }

    /// Reads one value from the store and never from the cache; `None`: the key is absent.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) fn read_one_uncached(&mut self, key: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.read_uncached(&[key.into()])?.pop().flatten())
    }

    /// Reads the values of `keys`, then of `fresh`, in this order; `None`: the key is absent.
    ///
    /// Values of `keys` must be small and never change under their key: they come from the cache or
    /// enter it. Values of `fresh` are always read from the store. All reads share one host call
    /// per 1,000 keys.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) fn read_content_addressed(
        &mut self,
        keys: &[String],
        fresh: &[String],
    ) -> Result<Vec<Option<Rc<Vec<u8>>>>> {
        let mut out: Vec<Option<Rc<Vec<u8>>>> =
            keys.iter().map(|key| self.cache.values.get(key).cloned()).collect();
        let mut missing: Vec<String> =
            keys.iter().zip(&out).filter(|(_, v)| v.is_none()).map(|(k, _)| k.clone()).collect();
        missing.extend_from_slice(fresh);
        if missing.is_empty() {
            return Ok(out);
        }
        let mut read = missing.iter().zip(self.read_uncached(&missing)?);
        for slot in out.iter_mut().filter(|slot| slot.is_none()) {
            let Some((key, value)) = read.next() else { break };
            *slot = value.map(Rc::new);
            if let Some(value) = slot {
                self.cache.insert_value(key, value);
            }
        }
        out.extend(read.map(|(_, value)| value.map(Rc::new)));
        Ok(out)
    }

    /// Reads immutable values through the cache, in the order of `wanted`: keys, each with an upper
    /// bound of the value's size in bytes.
    ///
    /// # Errors
    ///
    /// `conflict`: a value is missing and the head has changed; `corrupt`: a value is missing and
    /// the head has not changed; errors of the store.
    pub(crate) fn read_immutable(&mut self, wanted: &[(String, u32)]) -> Result<Vec<Rc<Vec<u8>>>> {
        self.read_write_once(wanted, true)
    }

    /// Reads as [`Self::read_immutable`], but adds no value to the cache: for values that a search
    /// reads once.
    ///
    /// # Errors
    ///
    /// Errors of [`Self::read_immutable`].
    pub(crate) fn read_immutable_uncached(
        &mut self,
        wanted: &[(String, u32)],
    ) -> Result<Vec<Rc<Vec<u8>>>> {
        self.read_write_once(wanted, false)
    }

    fn read_write_once(
        &mut self,
        wanted: &[(String, u32)],
        keep: bool,
    ) -> Result<Vec<Rc<Vec<u8>>>> {
        let mut found: Vec<Option<Rc<Vec<u8>>>> =
            wanted.iter().map(|(key, _)| self.cache.values.get(key).cloned()).collect();
        let mut batch: Vec<(usize, String)> = Vec::new();
        let mut bytes = 0u32;
        for (index, (key, size)) in wanted.iter().enumerate() {
            if found.get(index).is_some_and(Option::is_some) {
                continue;
            }
            let full = batch.len() == limits::KEYS_MAX
                || bytes.saturating_add(*size) > limits::CALL_BYTES_MAX;
            if full && !batch.is_empty() {
                self.fetch_batch(&mut found, core::mem::take(&mut batch), keep)?;
                bytes = 0;
            }
            batch.push((index, key.clone()));
            bytes = bytes.saturating_add(*size);
        }
        if !batch.is_empty() {
            self.fetch_batch(&mut found, batch, keep)?;
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// Returns the opened compressed pack under `key`; `None`: the cache has none.
    pub(crate) fn find_open_pack(&self, key: &str) -> Option<Rc<CompressedPack>> {
        let known = self.cache.open_packs.iter().rev().find(|(known, _)| known == key);
        known.map(|(_, opened)| Rc::clone(opened))
    }

    /// Adds an opened compressed pack to the cache, in place of one under the same key.
    pub(crate) fn keep_open_pack(&mut self, key: &str, opened: &Rc<CompressedPack>) {
        self.cache.insert_open_pack(key, opened);
    }

    /// Reads an immutable value whose key names its place and not its content, such as a context
    /// node.
    ///
    /// The cache may hold another value of the key, read before a backup was restored. A value for
    /// which `is_expected` returns false is read once more, from the store.
    ///
    /// # Errors
    ///
    /// `conflict`: the expected value is missing, and the head has changed; `corrupt`: the expected
    /// value is missing, and the head has not changed; errors of the store.
    pub(crate) fn read_checked(
        &mut self,
        key: &str,
        size: u32,
        is_expected: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Rc<Vec<u8>>> {
        let wanted = [(String::from(key), size)];
        for _ in 0..2 {
            match self.read_immutable(&wanted)?.pop() {
                Some(value) if is_expected(&value) => return Ok(value),
                _ => self.cache.remove_value(key),
            }
        }
        Err(self.missing_record_error(key))
    }

    /// Returns the pack that `place` refers to: from the cache, or decoded from `value`, the value
    /// under `key`. With `keep` a decoded pack enters the cache.
    ///
    /// If `value` is another pack, the value is read again from the store.
    ///
    /// # Errors
    ///
    /// `conflict`: the pack is missing, and the head has changed; `corrupt`: the pack is missing or
    /// damaged; `unsupported`: a record has a newer format; errors of the store.
    pub(crate) fn read_pack(
        &mut self,
        key: &str,
        place: &PackRef,
        value: &[u8],
        keep: bool,
    ) -> Result<Rc<Pack>> {
        let known = self
            .cache
            .packs
            .get(key)
            .filter(|pack| pack.frontier_prefix() == place.frontier_prefix);
        if let Some(pack) = known {
            return Ok(Rc::clone(pack));
        }
        let mut pack: Pack = codec::decode(key, value)?;
        if pack.frontier_prefix() != place.frontier_prefix {
            let is_expected = |value: &[u8]| {
                codec::decode::<Pack>(key, value)
                    .is_ok_and(|pack| pack.frontier_prefix() == place.frontier_prefix)
            };
            pack = codec::decode(key, &self.read_checked(key, place.bytes, &is_expected)?)?;
        }
        let pack = Rc::new(pack);
        if !keep {
            return Ok(pack);
        }
        if self.cache.packs_bytes + value.len() > PACKS_BYTES_MAX {
            self.cache.packs.clear();
            self.cache.packs_bytes = 0;
        }
        self.cache.packs_bytes += value.len();
        self.cache.packs.insert(key.into(), Rc::clone(&pack));
        Ok(pack)
    }

    fn fetch_batch(
        &mut self,
        found: &mut [Option<Rc<Vec<u8>>>],
        batch: Vec<(usize, String)>,
        keep: bool,
    ) -> Result<()> {
        let keys: Vec<String> = batch.iter().map(|(_, key)| key.clone()).collect();
        let values = self.read_uncached(&keys)?;
        for ((index, key), value) in batch.into_iter().zip(values) {
            let Some(value) = value else { return Err(self.missing_record_error(&key)) };
            let value = Rc::new(value);
            if keep {
                self.cache.insert_value(&key, &value);
            }
            if let Some(slot) = found.get_mut(index) {
                *slot = Some(value);
            }
        }
        Ok(())
    }

    /// Reads directory nodes through the cache, in the order of `wanted`: numbers of nodes, each
    /// with the last seq that the node must cover.
    ///
    /// # Errors
    ///
    /// `conflict`: a node is missing or ends too early, and the head has changed; `corrupt`: a node
    /// is damaged, or is missing or ends too early under an unchanged head; `unsupported`: a node
    /// has a newer format; errors of the store.
    pub(crate) fn read_directory(
        &mut self,
        keys: &ConversationKeys,
        wanted: &[(u64, u64)],
    ) -> Result<Vec<Rc<DirectoryNode>>> {
        let reaches = |node: &DirectoryNode, seq: u64| {
            node.packs.last().is_some_and(|pack| pack.seq_last() >= seq)
        };
        let missing: Vec<(String, u64)> = wanted
            .iter()
            .map(|(number, seq)| (keys.directory_key(*number), *seq))
            .filter(|(key, seq)| {
                !self.cache.directory.get(key).is_some_and(|node| reaches(node, *seq))
            })
            .collect();
        if self.cache.directory.len() > DIRECTORY_CACHE_MAX {
            self.cache.directory.clear();
            return self.read_directory(keys, wanted);
        }
        for slice in missing.chunks(DIRECTORY_CALL_MAX) {
            let names: Vec<String> = slice.iter().map(|(key, _)| key.clone()).collect();
            let values = self.read_uncached(&names)?;
            for ((key, seq), value) in slice.iter().zip(values) {
                let Some(value) = value else { return Err(self.missing_record_error(key)) };
                let node: DirectoryNode = codec::decode(key, &value)?;
                if !reaches(&node, *seq) {
                    return Err(self.missing_record_error(key));
                }
                self.cache.directory.insert(key.clone(), Rc::new(node));
            }
        }
        let cached = |number: &u64| self.cache.directory.get(&keys.directory_key(*number)).cloned();
        Ok(wanted.iter().filter_map(|(number, _)| cached(number)).collect())
    }

    /// Reads into the cache the records of `wanted`, with the sizes of their values, and the
    /// directory nodes with the numbers in `nodes`. Each host call is filled up to 1,000 keys or 1
    /// MiB.
    ///
    /// A missing record is no error here; the read that needs the record reports the error.
    ///
    /// # Errors
    ///
    /// `corrupt` or `unsupported`: a directory node cannot be decoded; errors of the store.
    pub(crate) fn prefetch_records(
        &mut self,
        keys: &ConversationKeys,
        wanted: &[(String, u32)],
        nodes: &[u64],
    ) -> Result<()> {
        let mut list: Vec<(String, u32, bool)> = nodes
            .iter()
            .map(|node| (keys.directory_key(*node), DIRECTORY_NODE_BYTES, true))
            .filter(|(key, ..)| !self.cache.directory.contains_key(key))
            .collect();
        let known = &self.cache.values;
        let records = wanted.iter().filter(|(key, _)| !known.contains_key(key));
        list.extend(records.map(|(key, size)| (key.clone(), *size, false)));
        while !list.is_empty() {
            let mut bytes = 0u32;
            let fits = |(_, size, _): &&(String, u32, bool)| {
                bytes = bytes.saturating_add(*size);
                bytes <= limits::CALL_BYTES_MAX
            };
            let count = list.iter().take(limits::KEYS_MAX).take_while(fits).count().max(1);
            let batch: Vec<(String, u32, bool)> = list.drain(..count).collect();
            let names: Vec<String> = batch.iter().map(|(key, ..)| key.clone()).collect();
            for ((key, _, is_node), value) in batch.into_iter().zip(self.read_uncached(&names)?) {
                let Some(value) = value else { continue };
                if is_node {
                    let node: DirectoryNode = codec::decode(&key, &value)?;
                    self.cache.directory.insert(key, Rc::new(node));
                } else {
                    self.cache.insert_value(&key, &Rc::new(value));
                }
            }
        }
        Ok(())
    }

    /// Builds the error of a missing record: `conflict` if the stored head differs from the bound
    /// head, else `corrupt`. Without a bound head the error is `corrupt`. If the read of the head
    /// fails, returns the error of that read.
    pub(crate) fn missing_record_error(&mut self, key: &str) -> Error {
        if let Some(head_key) = self.head_key.clone() {
            match self.store.get_many(&[head_key]) {
                Ok(values) if values.first() != Some(&self.head_bytes) => {
                    return Error::revision_conflict(
                        "the conversation changed during the read; repeat the call",
                    );
                }
                Ok(_) => {}
                Err(error) => return error,
            }
        }
        Error::corrupt_store(format_args!("`{key}` is missing"))
    }

    /// Calls `each` for all entries with `start <= key < end`, in the order of keys, page by page.
    ///
    /// # Errors
    ///
    /// Errors of the store and of `each`.
    pub(crate) fn scan_range(
        &mut self,
        start: &str,
        end: &str,
        each: &mut dyn FnMut(&str, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut from = String::from(start);
        loop {
            let (entries, more) =
                self.store.scan(&from, end, false, 1_000, limits::CALL_BYTES_MAX)?;
            for entry in &entries {
                each(&entry.key, &entry.value)?;
            }
            match entries.last() {
                Some(last) if more => from = successor_key(&last.key),
                _ => return Ok(()),
            }
        }
    }

    /// Reads the first entries with `start <= key < end`: at most 1,000 entries and `bytes_max`
    /// bytes, but at least one entry if the range has one. Also returns whether more entries
    /// follow.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) fn scan_page(
        &mut self,
        start: &str,
        end: &str,
        bytes_max: u32,
    ) -> Result<(Vec<crate::storage::store::Entry>, bool)> {
        self.store.scan(start, end, false, 1_000, bytes_max.clamp(1, limits::CALL_BYTES_MAX))
    }

    /// Makes the one commit of the exported call.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the values have more than 1 MiB together, and nothing was written; errors
    /// of the store.
    pub(super) fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()> {
        let bytes: usize = puts.iter().filter_map(|put| put.value.as_ref()).map(Vec::len).sum();
        if int::to_u32(bytes) > limits::CALL_BYTES_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "one commit must have at most {} bytes, this call would write {bytes}; pass fewer \
                 items per call",
                limits::CALL_BYTES_MAX
            )));
        }
        self.store.commit(guards, puts)
    }
}
