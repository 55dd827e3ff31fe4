//! The store interface: an ordered key-value map with atomic, guarded commits.
//!
//! A host implements [`Store`]; `wit/store.wit` describes its obligations S1 to S6, which the
//! methods below name. Keys are printable ASCII; values are bytes that only the engine understands.
//! A store never retries a call and never interprets a value.

use alloc::{string::String, vec::Vec};

use lcm_text::base::error::Result;

/// A stored key with its value, as [`Store::scan`] returns entries.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Vec<u8>,
}

/// A condition of a commit: the key has exactly this value, or is absent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Guard {
    /// The compared key.
    pub key: String,
    /// The required value; `None`: the key must be absent.
    pub value: Option<Vec<u8>>,
}

/// A write of a commit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Put {
    /// The written key.
    pub key: String,
    /// The new value; `None` deletes the key.
    pub value: Option<Vec<u8>>,
}

/// The store that a host provides.
pub trait Store {
    /// Returns the values of `keys`, in the same order; `None` for an absent key.
    ///
    /// `keys` has at most 1,000 keys. A read by any client sees every commit that returned before
    /// the read began (S4).
    ///
    /// # Errors
    ///
    /// - `store-unavailable`: the read failed; nothing changed.
    /// - `would-block`: the host must fetch the values first. The engine returns this error to its
    ///   caller at once and changes nothing.
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Returns one page of the entries with `start <= key < end` in bytewise key order (S1), and
    /// whether more entries of the range follow. With `reverse` the page begins at the greatest key
    /// of the range and the order is descending.
    ///
    /// A page has at most `entries_max` entries and `bytes_max` bytes of keys and values, but at
    /// least one entry if the range has one.
    ///
    /// # Errors
    ///
    /// Fails as [`Store::get_many`].
    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)>;

    /// Checks all guards and writes all puts in one atomic step, or writes nothing (S3).
    ///
    /// A commit that returned survives process and power failure (S2).
    ///
    /// # Errors
    ///
    /// - `conflict`: a guard did not hold; nothing was written (S5).
    /// - any other code: the outcome is unknown (S6).
    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()>;
}
