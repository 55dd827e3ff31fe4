//! A store in memory, which is lost when its handle is dropped; it does not keep promise S2,
//! durability.

use std::{collections::BTreeMap, ops::Bound};

use super::{Guard, KeyValueStore, Page, Put, Scan, StoreError};

/// A store in memory. A clone is a copy of all entries.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    entries: BTreeMap<String, Vec<u8>>,
}

impl Memory {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl KeyValueStore for Memory {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        Ok(keys.iter().map(|key| self.entries.get(key).cloned()).collect())
    }

    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError> {
        if scan.start >= scan.end {
            return Ok(Page::default());
        }
        let bounds = (Bound::Included(scan.start), Bound::Excluded(scan.end));
        let range = self.entries.range::<str, _>(bounds);
        let entry = |(key, value): (&String, &Vec<u8>)| Ok((key.clone(), value.clone()));
        if scan.reverse {
            Page::fill(scan, range.rev().map(entry))
        } else {
            Page::fill(scan, range.map(entry))
        }
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError> {
        if guards.iter().any(|guard| self.entries.get(&guard.key) != guard.value.as_ref()) {
            return Err(StoreError::Conflict);
        }
        for put in puts {
            match &put.value {
                Some(value) => self.entries.insert(put.key.clone(), value.clone()),
                None => self.entries.remove(&put.key),
            };
        }
        Ok(())
    }
}
