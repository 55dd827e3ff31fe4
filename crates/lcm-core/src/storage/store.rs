//! What the engine asks of a store: an ordered key-value map with atomic, guarded commits.
//!
//! The obligations S1 to S6 are written at each method. Keys are printable ASCII; values are bytes
//! that only the engine understands. A store never retries and never interprets.

use alloc::{string::String, vec::Vec};

use lcm_text::base::error::Result;

/// One stored key with its value, as [`Store::scan`] returns them.
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
    /// The key that is compared.
    pub key: String,
    /// The value it must have; `None`: it must be absent.
    pub value: Option<Vec<u8>>,
}

/// One write of a commit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Put {
    /// The key that is written.
    pub key: String,
    /// The new value; `None` deletes the key.
    pub value: Option<Vec<u8>>,
}

/// The store a host provides.
pub trait Store {
    /// Values of `keys`, in their order; `None` where a key is absent.
    ///
    /// At most 1,000 keys. A later read, by any client, sees every commit that returned (S4).
    ///
    /// # Errors
    ///
    /// - `store-unavailable`: the read failed; nothing changed.
    /// - `would-block`: the values must be fetched first; the engine returns it to its caller at
    ///   once, having changed nothing.
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Entries with `start <= key < end` in bytewise key order (S1), or in reverse order, and
    /// whether more follow.
    ///
    /// At most `entries_max` entries and `bytes_max` bytes of keys and values, but always at least
    /// one entry when there is one.
    ///
    /// # Errors
    ///
    /// As [`Store::get_many`].
    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)>;

    /// Checks all guards and writes all puts in one atomic step, or nothing (S3).
    ///
    /// A commit that returned survives process and power failure (S2).
    ///
    /// # Errors
    ///
    /// - `conflict`: a guard did not hold; nothing was written (S5).
    /// - any other code: the outcome is unknown (S6).
    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()>;
}
