//! The smallest adapter for asynchronous stores: the first read of a call returns `would-block`,
//! and the repeated call gets the values.
//!
//! In: a store. Out: the protocol of a host with an asynchronous store. The host calls
//! [`WouldBlockStore::begin_call`]. It repeats the engine's call while the call answers
//! `would-block`, with [`WouldBlockStore::fetch`] in between. At the end
//! [`WouldBlockStore::finish_call`] performs the captured commit.

use std::collections::{BTreeMap, BTreeSet};

use lcm_core::store::{Entry, Guard, Put, Store};
use lcm_text::base::error::{Error, ErrorCode, Result};

use crate::fault_store::StoreDebug;

type ScanKey = (String, String, bool, u32, u32);

/// A store that answers a read with `would-block` until [`WouldBlockStore::fetch`] has fetched the
/// values.
#[derive(Debug)]
pub struct WouldBlockStore<'a> {
    inner: &'a mut dyn StoreDebug,
    values: BTreeMap<String, Option<Vec<u8>>>,
    pages: BTreeMap<ScanKey, (Vec<Entry>, bool)>,
    wanted_keys: BTreeSet<String>,
    wanted_pages: Vec<ScanKey>,
    captured: Option<(Vec<Guard>, Vec<Put>)>,
    blocked: u64,
}

impl<'a> WouldBlockStore<'a> {
    /// Wraps `inner`.
    pub fn new(inner: &'a mut dyn StoreDebug) -> Self {
        Self {
            inner,
            values: BTreeMap::new(),
            pages: BTreeMap::new(),
            wanted_keys: BTreeSet::new(),
            wanted_pages: Vec::new(),
            captured: None,
            blocked: 0,
        }
    }

    /// Forgets the values and pages that were fetched for the preceding call.
    pub fn begin_call(&mut self) {
        self.values.clear();
        self.pages.clear();
        self.captured = None;
        self.blocked = 0;
    }

    /// Returns the number of reads that were answered with `would-block` in this call.
    #[must_use]
    pub const fn blocked(&self) -> u64 {
        self.blocked
    }

    /// Fetches the keys and pages that the call tried to read, so that the repeated call finds
    /// them.
    ///
    /// # Errors
    ///
    /// Errors of the reads of the wrapped store.
    pub fn fetch(&mut self) -> Result<()> {
        let keys: Vec<String> = std::mem::take(&mut self.wanted_keys).into_iter().collect();
        for slice in keys.chunks(1) {
            let fetched = self.inner.get_many(slice)?;
            self.values.extend(slice.iter().cloned().zip(fetched));
        }
        for page in std::mem::take(&mut self.wanted_pages) {
            let fetched = self.inner.scan(&page.0, &page.1, page.2, page.3, page.4)?;
            self.pages.insert(page, fetched);
        }
        Ok(())
    }

    /// Performs the captured commit; does nothing if the call made no commit.
    ///
    /// # Errors
    ///
    /// Errors of the commit of the wrapped store. The host must then drop the engine instance,
    /// because the instance assumes that the commit happened.
    pub fn finish_call(&mut self) -> Result<()> {
        match self.captured.take() {
            Some((guards, puts)) => self.inner.commit(&guards, &puts),
            None => Ok(()),
        }
    }

    fn block<T>(&mut self) -> Result<T> {
        assert!(self.captured.is_none(), "one commit: a read follows the commit of the same call");
        self.blocked += 1;
        Err(Error::new(ErrorCode::WouldBlock, "the values are being fetched"))
    }
}

impl Store for WouldBlockStore<'_> {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        let missing: Vec<_> =
            keys.iter().filter(|key| !self.values.contains_key(*key)).cloned().collect();
        if !missing.is_empty() {
            self.wanted_keys.extend(missing);
            return self.block();
        }
        Ok(keys.iter().map(|key| self.values[key].clone()).collect())
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)> {
        let page = (start.to_owned(), end.to_owned(), reverse, entries_max, bytes_max);
        if let Some(fetched) = self.pages.get(&page) {
            return Ok(fetched.clone());
        }
        self.wanted_pages.push(page);
        self.block()
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()> {
        assert!(self.captured.is_none(), "one commit: a second commit in one call");
        self.captured = Some((guards.to_vec(), puts.to_vec()));
        Ok(())
    }
}
