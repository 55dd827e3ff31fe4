//! The store interface, and the stores of this host.
//!
//! A store keeps an ordered map from short printable ASCII keys to bytes that only the component
//! understands. A store never interprets a value and never retries. The feature `postgres` adds
//! PostgreSQL; any type that meets the obligations of [`KeyValueStore`] is a store.

mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod shared;
mod sqlite;

use crate::error::{Code, Error};

pub use memory::Memory;
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
pub use shared::Shared;
pub use sqlite::{STORE_FORMAT, Sqlite};

/// A condition of a commit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Guard {
    /// Key to compare.
    pub key: String,
    /// Required value; `None`: the key must be absent.
    pub value: Option<Vec<u8>>,
}

/// One write of a commit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Put {
    /// Key to write.
    pub key: String,
    /// The new value; `None` deletes the key.
    pub value: Option<Vec<u8>>,
}

/// Arguments of a scan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Scan<'a> {
    /// First key of the range.
    pub start: &'a str,
    /// First key after the range.
    pub end: &'a str,
    /// Whether the entries are in descending order.
    pub reverse: bool,
    /// Most entries; 0 counts as 1.
    pub entries_max: u32,
    /// Most bytes of keys and values; the first entry always fits.
    pub bytes_max: u32,
}

/// One page of a scan.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Page {
    /// Keys with their values, in the requested order.
    pub entries: Vec<(String, Vec<u8>)>,
    /// Whether more entries of the range follow.
    pub more: bool,
}

impl Page {
    /// Returns the entries of a range, in the requested order, up to a bound of `scan`; the first
    /// entry always fits.
    ///
    /// # Errors
    ///
    /// The first error among the entries.
    pub fn fill<E>(
        scan: &Scan<'_>,
        entries: impl Iterator<Item = Result<(String, Vec<u8>), E>>,
    ) -> Result<Self, E> {
        let entries_max = usize::try_from(scan.entries_max.max(1)).unwrap_or(usize::MAX);
        let mut bytes_left = usize::try_from(scan.bytes_max).unwrap_or(usize::MAX);
        let mut page = Self::default();
        for entry in entries {
            let (key, value) = entry?;
            let bytes = key.len().saturating_add(value.len());
            let full = page.entries.len() >= entries_max || bytes > bytes_left;
            if full && !page.entries.is_empty() {
                page.more = true;
                break;
            }
            bytes_left = bytes_left.saturating_sub(bytes);
            page.entries.push((key, value));
        }
        Ok(page)
    }
}

/// Error of a store.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// The store could not begin; nothing was written.
    #[error("{0}")]
    Busy(String),
    /// A guard did not hold; nothing was written.
    #[error("another writer was first")]
    Conflict,
    /// The store failed. After a commit the outcome is unknown.
    #[error("{0}")]
    Unavailable(String),
    /// The store is not writable; nothing was written.
    #[error("{0}")]
    Unsupported(String),
    /// The values must be fetched first; nothing changed.
    #[error("must be fetched first")]
    WouldBlock,
}

impl StoreError {
    /// Returns the code for the component and callers.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Busy(_) | Self::Unavailable(_) => Code::StoreUnavailable,
            Self::Conflict => Code::Conflict,
            Self::Unsupported(_) => Code::Unsupported,
            Self::WouldBlock => Code::WouldBlock,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// The store a host provides: an ordered key-value map with atomic, guarded commits.
///
/// A handle owns its store. A pool has one store for each handle, over the same data
/// ([`Builder::stores`](crate::Builder::stores)).
///
/// ```
/// use std::collections::BTreeMap;
/// use lcm_host::{Lcm, store::{Guard, KeyValueStore, Page, Put, Scan, StoreError}};
///
/// #[derive(Default)]
/// struct Mine(BTreeMap<String, Vec<u8>>);
///
/// impl KeyValueStore for Mine {
///     fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
///         Ok(keys.iter().map(|key| self.0.get(key).cloned()).collect())
///     }
///
///     fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError> {
///         let range = self.0.range(scan.start.to_owned()..scan.end.to_owned());
///         let entry = |(key, value): (&String, &Vec<u8>)| Ok((key.clone(), value.clone()));
///         if scan.reverse {
///             Page::fill(scan, range.rev().map(entry))
///         } else {
///             Page::fill(scan, range.map(entry))
///         }
///     }
///
///     fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError> {
///         if guards.iter().any(|guard| self.0.get(&guard.key) != guard.value.as_ref()) {
///             return Err(StoreError::Conflict);
///         }
///         for Put { key, value } in puts {
///             match value {
///                 Some(value) => self.0.insert(key.clone(), value.clone()),
///                 None => self.0.remove(key),
///             };
///         }
///         Ok(())
///     }
/// }
///
/// let wasm = include_bytes!("../../../../dist/lcm.wasm");
/// let lcm = Lcm::builder().store(Mine::default()).open(wasm)?;
/// lcm.conversation("c", 8_000).append(&[r#"{"role": "user", "content": "hello"}"#])?;
/// # Ok::<(), lcm_host::Error>(())
/// ```
pub trait KeyValueStore: Send {
    /// Returns the values of `keys`, in order; `None`: the key is absent.
    ///
    /// At most 1,000 keys. A later read, by any client, sees every commit that returned (S4).
    ///
    /// # Errors
    ///
    /// Any error but [`StoreError::Conflict`]; nothing changed.
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// Returns entries with `start <= key < end` in bytewise key order (S1), or in reverse.
    ///
    /// # Errors
    ///
    /// Errors of [`KeyValueStore::get_many`].
    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError>;

    /// Checks all guards and writes all puts in one atomic step, or nothing (S3).
    ///
    /// A commit that returned survives process and power failure (S2), unless the store documents
    /// otherwise. The last of several puts of a key counts.
    ///
    /// # Errors
    ///
    /// - [`StoreError::Conflict`], [`StoreError::Busy`], [`StoreError::Unsupported`]: nothing was
    ///   written (S5).
    /// - [`StoreError::Unavailable`]: the outcome is unknown (S6).
    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError>;

    /// Returns the bytes of the store on disk; `None`: the store is not on a disk.
    fn bytes_on_disk(&self) -> Option<u64> {
        None
    }
}
