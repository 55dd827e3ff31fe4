//! Sorts lists, and provides a map that is a sorted list. All modules use these functions.
//!
//! A generic sort is compiled once for each type, and the sort and the tree of Rust's library are
//! large. To keep the component small, numbers have one sort, and all other types share one sort of
//! indexes. Maps from texts to numbers that grow in any order use `BTreeMap`.

use alloc::{borrow::Borrow, vec::Vec};
use core::{cmp::Ordering, mem};

pub use lcm_loops::radix_sort::sort_numbers;

/// Sorts numbers in ascending order and removes duplicates.
#[inline(never)]
pub fn sort_and_dedup_numbers(list: &mut Vec<u64>) {
    sort_numbers(list);
    list.dedup();
}

/// Sorts in ascending order; equal items keep their order.
pub fn sort<T: Ord>(list: &mut [T]) {
    sort_by(list, &mut T::cmp);
}

/// Sorts in ascending order and removes duplicates.
pub fn sort_and_dedup<T: Ord>(list: &mut Vec<T>) {
    sort(list);
    list.dedup();
}

/// Sorts by `compare`; equal items keep their order.
pub fn sort_by<T>(list: &mut [T], compare: &mut dyn FnMut(&T, &T) -> Ordering) {
    let steps =
        plan_swaps(list.len(), &mut |left, right| match (list.get(left), list.get(right)) {
            (Some(left), Some(right)) => compare(left, right),
            _ => Ordering::Equal,
        });
    for (left, right) in steps {
        list.swap(left, right);
    }
}

/// Returns the swaps that sort a list of `length` items, to be done in order. `compare` compares
/// the items at two indexes.
#[inline(never)]
fn plan_swaps(
    length: usize,
    compare: &mut dyn FnMut(usize, usize) -> Ordering,
) -> Vec<(usize, usize)> {
    let mut sources: Vec<usize> = (0..length).collect();
    sources.sort_by(|left, right| compare(*left, *right));
    let mut steps = Vec::new();
    for start in 0..length {
        let mut at = start;
        while let Some(source) = sources.get_mut(at) {
            // A source equal to its own index means that the item is in place.
            let source = mem::replace(source, at);
            if source == at || source == start {
                break;
            }
            steps.push((at, source));
            at = source;
        }
    }
    steps
}

/// Finds an item in a sorted list of `length` items. `Ok` has the index of the item, `Err` the
/// index at which an insertion keeps the order. `compare` compares the item at an index with the
/// sought item. The last item is compared first, because keys are mostly inserted in order.
#[inline(never)]
fn search_sorted(
    length: usize,
    compare: &mut dyn FnMut(usize) -> Ordering,
) -> Result<usize, usize> {
    let (mut from, mut to) = (0, length);
    let mut index = length.saturating_sub(1);
    while from < to {
        match compare(index) {
            Ordering::Equal => return Ok(index),
            Ordering::Less => from = index + 1,
            Ordering::Greater => to = index,
        }
        index = from + (to - from) / 2;
    }
    Err(from)
}

/// A map that is a list sorted by key, for few entries or for keys inserted mostly in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// Builds a map from entries in any order; of entries with equal keys, the last is kept.
    pub fn from_entries(mut entries: Vec<(K, V)>) -> Self {
        entries.reverse();
        sort_by(&mut entries, &mut |left, right| left.0.cmp(&right.0));
        entries.dedup_by(|next, last| next.0 == last.0);
        Self { entries }
    }

    fn search_key<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        search_sorted(self.entries.len(), &mut |index| {
            self.entries
                .get(index)
                .map_or(Ordering::Equal, |(entry_key, _)| entry_key.borrow().cmp(key))
        })
    }

    /// Returns the value of `key`; `None`: `key` is absent.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(self.search_key(key).ok()?).map(|(_, value)| value)
    }

    /// Returns the value of `key` for writing; `None`: `key` is absent.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let index = self.search_key(key).ok()?;
        self.entries.get_mut(index).map(|(_, value)| value)
    }

    /// Returns whether `key` has a value.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.search_key(key).is_ok()
    }

    /// Sets the value of `key` and returns the previous value; `None`: `key` was absent.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.search_key(&key) {
            Ok(index) => {
                self.entries.get_mut(index).map(|(_, entry_key)| mem::replace(entry_key, value))
            }
            Err(index) => {
                self.entries.insert(index, (key, value));
                None
            }
        }
    }

    /// Removes `key` and returns its value; `None`: `key` was absent.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let index = self.search_key(key).ok()?;
        Some(self.entries.remove(index).1)
    }

    /// Returns the value of `key` for writing, always `Some`; inserts a default value if `key` is
    /// absent.
    pub fn get_or_insert_default(&mut self, key: K) -> Option<&mut V>
    where
        V: Default,
    {
        let index = match self.search_key(&key) {
            Ok(index) => index,
            Err(index) => {
                self.entries.insert(index, (key, V::default()));
                index
            }
        };
        self.entries.get_mut(index).map(|(_, value)| value)
    }

    /// Removes the keys for which `is_kept` is false.
    pub fn retain_keys(&mut self, mut is_kept: impl FnMut(&K) -> bool) {
        self.entries.retain(|(key, _)| is_kept(key));
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Returns whether the map has no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns all entries in the order of their keys.
    pub fn as_entries(&self) -> &[(K, V)] {
        &self.entries
    }

    /// Returns all entries in the order of their keys, owned.
    pub fn into_entries(self) -> Vec<(K, V)> {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeMap, string::String, vec};

    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// Goal: the order equals that of the stable sort of Rust's library. Method: lists of all small
    /// lengths and some larger lengths, with many equal keys; each item has its original index.
    #[test]
    fn sorts_as_the_library_does_and_stably() {
        let mut state = 11;
        for length in (0..70).chain([1_000, 1_023, 1_025]) {
            for bound in [1, 3, 50, u64::MAX] {
                let mut list: Vec<(u64, usize)> =
                    (0..length).map(|at| (random(&mut state) % bound, at)).collect();
                let mut expected = list.clone();
                expected.sort_by_key(|(key, _)| *key);
                sort_by(&mut list, &mut |left, right| left.0.cmp(&right.0));
                assert_eq!(list, expected);
            }
        }
        let mut words = vec!["b", "a", "c", "a"];
        sort_and_dedup(&mut words);
        assert_eq!(words, ["a", "b", "c"]);
        let mut list = vec![3, 1, 2, 1];
        sort_and_dedup_numbers(&mut list);
        assert_eq!(list, [1, 2, 3]);
    }

    /// Goal: the map behaves like a `BTreeMap`. Method: the same random calls to both maps.
    #[test]
    fn a_sorted_list_is_a_map() {
        let mut state = 5;
        let (mut map, mut list) = (BTreeMap::new(), SortedMap::<String, u64>::default());
        for round in 0..4_000u64 {
            let key = alloc::format!("{}", random(&mut state) % 200);
            match random(&mut state) % 4 {
                0 => assert_eq!(map.remove(&key), list.remove(key.as_str())),
                1 => {
                    *map.entry(key.clone()).or_default() += 1;
                    if let Some(value) = list.get_or_insert_default(key.clone()) {
                        *value += 1;
                    }
                }
                _ => assert_eq!(map.insert(key.clone(), round), list.insert(key.clone(), round)),
            }
            assert_eq!(map.get(&key), list.get(key.as_str()));
        }
        let entries: Vec<(String, u64)> = map.into_iter().collect();
        assert_eq!(entries, list.as_entries());
        let mut doubled = entries.clone();
        doubled.splice(0..0, entries.iter().rev().map(|(key, _)| (key.clone(), 0)));
        assert_eq!(SortedMap::from_entries(doubled).into_entries(), entries);
    }
}
