//! The store of a vector: in memory, and on demand as an asynchronous store looks to the engine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use lcm_host::store::{Guard, KeyValueStore, Memory, Page, Put, Scan, StoreError};
use sha2::{Digest as _, Sha256};

type ScanKey = (String, String, bool, u32, u32);

/// A store in memory that the runner can look into.
#[derive(Clone)]
pub(super) struct Shared {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    memory: Memory,
    /// Whether every first read of a call is answered with `would-block`.
    blocking: bool,
    values: BTreeMap<String, Option<Vec<u8>>>,
    pages: BTreeMap<ScanKey, Page>,
    wanted_keys: BTreeSet<String>,
    wanted_pages: BTreeSet<ScanKey>,
    captured: Option<(Vec<Guard>, Vec<Put>)>,
}

impl Shared {
    pub(super) fn new(blocking: bool) -> Self {
        Self { inner: Arc::new(Mutex::new(Inner { blocking, ..Inner::default() })) }
    }

    /// Forgets what the call before fetched.
    pub(super) fn begin_call(&self) {
        let mut inner = self.inner.lock().unwrap();
        inner.values.clear();
        inner.pages.clear();
        inner.captured = None;
    }

    /// Gets what was asked for, so that the repeated call finds it.
    pub(super) fn fetch(&self) {
        let mut inner = self.inner.lock().unwrap();
        for key in std::mem::take(&mut inner.wanted_keys) {
            let value = inner.memory.get_many(std::slice::from_ref(&key)).unwrap().remove(0);
            inner.values.insert(key, value);
        }
        for key in std::mem::take(&mut inner.wanted_pages) {
            let (start, end, reverse, entries_max, bytes_max) = &key;
            let (reverse, entries_max) = (*reverse, *entries_max);
            let scan = Scan { start, end, reverse, entries_max, bytes_max: *bytes_max };
            let page = inner.memory.scan(&scan).unwrap();
            inner.pages.insert(key, page);
        }
    }

    /// Performs the commit that the call wanted, if it did.
    pub(super) fn finish_call(&self) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().unwrap();
        match inner.captured.take() {
            Some((guards, puts)) => inner.memory.commit(&guards, &puts),
            None => Ok(()),
        }
    }

    /// SHA-256 of everything stored, computed without the engine.
    pub(super) fn digest(&self) -> String {
        let all = Scan {
            start: "",
            end: "\u{7f}",
            reverse: false,
            entries_max: u32::MAX,
            bytes_max: u32::MAX,
        };
        let page = self.inner.lock().unwrap().memory.scan(&all).unwrap();
        let mut sha256 = Sha256::new();
        for (key, value) in &page.entries {
            for bytes in [key.as_bytes(), value] {
                sha256.update(u32::try_from(bytes.len()).unwrap().to_be_bytes());
                sha256.update(bytes);
            }
        }
        sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl KeyValueStore for Shared {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut inner = self.inner.lock().unwrap();
        if !inner.blocking {
            return inner.memory.get_many(keys);
        }
        assert!(inner.captured.is_none(), "a read follows the commit of the same call");
        let missing: Vec<String> =
            keys.iter().filter(|key| !inner.values.contains_key(*key)).cloned().collect();
        if !missing.is_empty() {
            inner.wanted_keys.extend(missing);
            return Err(StoreError::WouldBlock);
        }
        Ok(keys.iter().map(|key| inner.values[key].clone()).collect())
    }

    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError> {
        let mut inner = self.inner.lock().unwrap();
        if !inner.blocking {
            return inner.memory.scan(scan);
        }
        let (start, end) = (scan.start.to_owned(), scan.end.to_owned());
        let key = (start, end, scan.reverse, scan.entries_max, scan.bytes_max);
        if let Some(page) = inner.pages.get(&key) {
            return Ok(page.clone());
        }
        inner.wanted_pages.insert(key);
        Err(StoreError::WouldBlock)
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError> {
        let mut inner = self.inner.lock().unwrap();
        if !inner.blocking {
            return inner.memory.commit(guards, puts);
        }
        assert!(inner.captured.is_none(), "a second commit in one call");
        inner.captured = Some((guards.to_vec(), puts.to_vec()));
        Ok(())
    }
}
