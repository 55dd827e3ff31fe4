//! Shares one store between several handles of this process, such as those of a pool.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Guard, KeyValueStore, Page, Put, Scan, StoreError};

/// A store that its clones share; a lock admits one call at a time. `Shared` is for a store that
/// cannot be opened twice, such as [`Memory`](super::Memory). Handles on a file need no `Shared`,
/// because each opens the file.
#[derive(Debug, Default)]
pub struct Shared<S> {
    store: Arc<Mutex<S>>,
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store) }
    }
}

impl<S> Shared<S> {
    /// Creates the first of the clones that share `store`.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store: Arc::new(Mutex::new(store)) }
    }

    /// Locks the store. A poisoned lock is ignored, because a commit is atomic also if it panics.
    fn store(&self) -> MutexGuard<'_, S> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: KeyValueStore> KeyValueStore for Shared<S> {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.store().get_many(keys)
    }

    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError> {
        self.store().scan(scan)
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError> {
        self.store().commit(guards, puts)
    }

    fn bytes_on_disk(&self) -> Option<u64> {
        self.store().bytes_on_disk()
    }
}
