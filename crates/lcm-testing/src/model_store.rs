//! The reference store: a sorted map that meets every obligation, counts every host call, and
//! panics when the engine exceeds a bound.
//!
//! In: the calls of one engine, with [`ModelStore::begin_call`] between two calls. Out:
//! [`CallCounts`] per call, and snapshots. This store never fails; failing stores wrap it.

use std::collections::{BTreeMap, BTreeSet};

use lcm_core::store::{Entry, Guard, Put, Store};
use lcm_text::base::error::{Error, Result};

use crate::digest::store_digest;

/// Most bytes of a key.
pub const KEY_BYTES_MAX: usize = 128;
/// Most bytes of a value.
pub const VALUE_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of values in one host call, in either direction.
pub const CALL_BYTES_MAX: usize = 1024 * 1024;
/// Most keys of one `get_many`.
pub const KEYS_MAX: usize = 1000;
/// Most puts of one commit.
pub const PUTS_MAX: usize = 256;

/// Counts of the host calls that one call of the engine made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CallCounts {
    /// `get_many` calls.
    pub get_many: u32,
    /// `scan` calls.
    pub scan: u32,
    /// `commit` calls.
    pub commit: u32,
    /// Keys of all `get_many` calls.
    pub keys: u32,
    /// Bytes of values read.
    pub bytes_read: u64,
    /// Puts written.
    pub puts: u32,
    /// Bytes of values written.
    pub bytes_written: u64,
}

impl CallCounts {
    /// Returns the number of `get_many` and `scan` calls together.
    #[must_use]
    pub const fn reads(&self) -> u32 {
        self.get_many + self.scan
    }
}

/// A sorted map with the obligations S1 to S6, which panics when a bound of a host call or the
/// rule of the single, last commit is broken.
#[derive(Clone, Debug, Default)]
pub struct ModelStore {
    entries: BTreeMap<String, Vec<u8>>,
    counts: CallCounts,
    commits: u64,
}

impl ModelStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the counts to zero, because a new call of the engine begins.
    pub fn begin_call(&mut self) {
        self.counts = CallCounts::default();
    }

    /// Returns the counts since the last [`ModelStore::begin_call`].
    #[must_use]
    pub const fn counts(&self) -> CallCounts {
        self.counts
    }

    /// Returns the number of commits that succeeded since the store was created.
    #[must_use]
    pub const fn commits(&self) -> u64 {
        self.commits
    }

    /// Returns all entries, in key order.
    #[must_use]
    pub const fn entries(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.entries
    }

    /// Returns all entries for writing, so that a test can damage them.
    pub fn entries_mut(&mut self) -> &mut BTreeMap<String, Vec<u8>> {
        &mut self.entries
    }

    /// Returns the bytes of all keys and values.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum()
    }

    /// Computes the digest of the store without the engine.
    #[must_use]
    pub fn digest(&self) -> String {
        store_digest(&self.entries)
    }

    fn guard_holds(&self, guard: &Guard) -> bool {
        self.entries.get(&guard.key) == guard.value.as_ref()
    }

    fn check_before_host_call(&self) {
        assert!(
            self.counts.commit == 0,
            "one commit: a host call follows the commit of the same call"
        );
    }

    /// Writes without comparing guards, as a broken store does.
    pub fn write(&mut self, puts: &[Put]) {
        for put in puts {
            match &put.value {
                Some(value) => {
                    self.entries.insert(put.key.clone(), value.clone());
                }
                None => {
                    self.entries.remove(&put.key);
                }
            }
        }
        self.commits += 1;
    }
}

impl Store for ModelStore {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        self.check_before_host_call();
        assert!(!keys.is_empty(), "a read that asks for nothing");
        assert!(keys.len() <= KEYS_MAX, "bound: get_many of {} keys", keys.len());
        keys.iter().for_each(|key| check_key(key));
        let values: Vec<_> = keys.iter().map(|key| self.entries.get(key).cloned()).collect();
        let bytes: usize = values.iter().flatten().map(Vec::len).sum();
        assert!(bytes <= CALL_BYTES_MAX, "bound: get_many returned {bytes} bytes of values");
        self.counts.get_many += 1;
        self.counts.keys += keys.len() as u32;
        self.counts.bytes_read += bytes as u64;
        Ok(values)
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)> {
        self.check_before_host_call();
        assert!(entries_max > 0, "a scan that asks for nothing");
        let (page, more) = scan_page(&self.entries, start, end, reverse, entries_max, bytes_max);
        self.counts.scan += 1;
        self.counts.bytes_read += page.iter().map(|entry| entry.value.len() as u64).sum::<u64>();
        Ok((page, more))
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()> {
        self.check_before_host_call();
        check_commit(guards, puts);
        self.counts.commit += 1;
        if !guards.iter().all(|guard| self.guard_holds(guard)) {
            return Err(Error::revision_conflict("a guard did not hold"));
        }
        self.counts.puts += puts.len() as u32;
        self.counts.bytes_written += put_bytes(puts) as u64;
        self.write(puts);
        Ok(())
    }
}

fn scan_page(
    entries: &BTreeMap<String, Vec<u8>>,
    start: &str,
    end: &str,
    reverse: bool,
    entries_max: u32,
    bytes_max: u32,
) -> (Vec<Entry>, bool) {
    if start >= end {
        return (Vec::new(), false);
    }
    let range =
        entries.range::<str, _>((std::ops::Bound::Included(start), std::ops::Bound::Excluded(end)));
    let ordered: Box<dyn Iterator<Item = (&String, &Vec<u8>)>> =
        if reverse { Box::new(range.rev()) } else { Box::new(range) };
    let bytes_max = (bytes_max as usize).min(CALL_BYTES_MAX);
    let (mut page, mut bytes) = (Vec::new(), 0);
    for (key, value) in ordered {
        let full =
            page.len() >= entries_max as usize || bytes + key.len() + value.len() > bytes_max;
        if full && !page.is_empty() {
            return (page, true);
        }
        bytes += key.len() + value.len();
        page.push(Entry { key: key.clone(), value: value.clone() });
    }
    (page, false)
}

fn check_key(key: &str) {
    assert!(!key.is_empty() && key.len() <= KEY_BYTES_MAX, "bound: key of {} bytes", key.len());
    assert!(
        key.bytes().all(|byte| (0x20..0x7f).contains(&byte)),
        "key form: key is not printable ASCII: {key:?}"
    );
}

fn put_bytes(puts: &[Put]) -> usize {
    puts.iter().filter_map(|put| put.value.as_ref()).map(Vec::len).sum()
}

fn check_commit(guards: &[Guard], puts: &[Put]) {
    assert!(!puts.is_empty(), "a commit that writes nothing");
    assert!(puts.len() <= PUTS_MAX, "bound: a commit of {} puts", puts.len());
    let guarded: usize = guards.iter().filter_map(|guard| guard.value.as_ref()).map(Vec::len).sum();
    let bytes = put_bytes(puts) + guarded;
    assert!(bytes <= CALL_BYTES_MAX, "bound: a commit of {bytes} bytes of values");
    let mut keys = BTreeSet::new();
    for put in puts {
        check_key(&put.key);
        assert!(keys.insert(&put.key), "a commit that writes `{}` twice", put.key);
        let length = put.value.as_ref().map_or(0, Vec::len);
        assert!(length <= VALUE_BYTES_MAX, "bound: value of {length} bytes at `{}`", put.key);
    }
    guards.iter().for_each(|guard| check_key(&guard.key));
}

#[cfg(test)]
mod tests {
    use lcm_core::ErrorCode;

    use super::*;

    fn put(key: &str, value: &[u8]) -> Put {
        Put { key: key.to_owned(), value: Some(value.to_vec()) }
    }

    fn filled() -> ModelStore {
        let mut store = ModelStore::new();
        store.write(&[put("a", b"11"), put("b", b"22"), put("c", b"33")]);
        store
    }

    fn keys(page: &[Entry]) -> Vec<&str> {
        page.iter().map(|entry| entry.key.as_str()).collect()
    }

    #[test]
    fn a_failed_guard_is_a_conflict_and_writes_nothing() {
        let mut store = filled();
        let guard = Guard { key: "a".to_owned(), value: None };
        let error = store.commit(&[guard], &[put("z", b"0")]).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict);
        assert_eq!(store.entries().len(), 3);
    }

    #[test]
    fn a_page_is_half_open_ordered_and_says_whether_more_follow() {
        let mut store = filled();
        let (page, more) = store.scan("a", "c", false, 10, 100).unwrap();
        assert_eq!((keys(&page), more), (vec!["a", "b"], false));
        let (page, more) = store.scan("a", "d", true, 2, 100).unwrap();
        assert_eq!((keys(&page), more), (vec!["c", "b"], true));
    }

    #[test]
    fn a_page_has_at_least_one_entry_whatever_the_bound() {
        let (page, more) = filled().scan("a", "d", false, 10, 1).unwrap();
        assert_eq!((keys(&page), more), (vec!["a"], true));
    }

    #[test]
    #[should_panic(expected = "bound")]
    fn a_value_over_its_bound_is_caught() {
        let value = vec![0; VALUE_BYTES_MAX + 1];
        let _ = ModelStore::new().commit(&[], &[put("a", &value)]);
    }

    #[test]
    #[should_panic(expected = "one commit")]
    fn a_read_after_the_commit_of_the_same_call_is_caught() {
        let mut store = ModelStore::new();
        store.commit(&[], &[put("a", b"1")]).unwrap();
        let _ = store.get_many(&["a".to_owned()]);
    }
}
