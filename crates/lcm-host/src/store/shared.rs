//! One store behind several handles of this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Guard, KeyValueStore, Page, Put, Scan, StoreError};

/// A store that clones share: each call has it alone. For a store that cannot be opened twice; of
/// a file every handle opens its own.
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
    /// The first handle on this store.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store: Arc::new(Mutex::new(store)) }
    }

    /// A call that panicked leaves a store whose commits are whole or not at all.
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
