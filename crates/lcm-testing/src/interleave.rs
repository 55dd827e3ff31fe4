//! A store that runs another writer before a chosen operation.
//!
//! A commit is atomic, so only the time of the other commit matters. Tests that make a whole call
//! of the other instance before each operation of this instance cover every interleaving of both.

use std::fmt;

use lcm_core::store::{Entry, Guard, Put, Store};
use lcm_text::base::error::Result;

use crate::model_store::ModelStore;

/// A store that runs `other` once, before operation number `at` (from 1).
pub struct InterleavingStore<'a> {
    inner: &'a mut ModelStore,
    at: u64,
    done: u64,
    other: Option<Other<'a>>,
}

type Other<'a> = Box<dyn FnOnce(&mut ModelStore) + 'a>;

impl<'a> InterleavingStore<'a> {
    /// Wraps `inner`; `other` gets the store as it is before operation `at`, and its writes are
    /// kept.
    pub fn new(
        inner: &'a mut ModelStore,
        at: u64,
        other: impl FnOnce(&mut ModelStore) + 'a,
    ) -> Self {
        Self { inner, at, done: 0, other: Some(Box::new(other)) }
    }

    /// Returns whether `other` was run.
    #[must_use]
    pub const fn interleaved(&self) -> bool {
        self.other.is_none()
    }

    fn step(&mut self) {
        self.done += 1;
        if self.done == self.at
            && let Some(other) = self.other.take()
        {
            let mut copy = self.inner.clone();
            other(&mut copy);
            // Only the stored entries are taken over: the counts belong to the interrupted call.
            *self.inner.entries_mut() = std::mem::take(copy.entries_mut());
        }
    }
}

impl fmt::Debug for InterleavingStore<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("InterleavingStore").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Store for InterleavingStore<'_> {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        self.step();
        self.inner.get_many(keys)
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)> {
        self.step();
        self.inner.scan(start, end, reverse, entries_max, bytes_max)
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()> {
        self.step();
        self.inner.commit(guards, puts)
    }
}
