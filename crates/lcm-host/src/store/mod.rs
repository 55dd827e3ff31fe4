//! The interface of stores, and the stores of this crate.
//!
//! A store keeps an ordered map from short printable ASCII keys to bytes that only the component
//! understands. A store never interprets a value and never retries. The feature `postgres` adds
//! PostgreSQL; a host can implement [`KeyValueStore`] for any other store. S1 to S6 are the
//! promises of a store in `wit/store.wit`.

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
    /// Value that the key must have; `None`: the key must be absent.
    pub value: Option<Vec<u8>>,
}

/// One write of a commit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Put {
    /// Key to write.
    pub key: String,
    /// The new value; `None`: the key is deleted, and need not exist.
    pub value: Option<Vec<u8>>,
}

/// Arguments of a scan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Scan<'a> {
    /// Least key of the range, included.
    pub start: &'a str,
    /// End of the range, excluded.
    pub end: &'a str,
    /// Whether the entries are in descending order.
    pub reverse: bool,
    /// Most entries; 0 counts as 1.
    pub entries_max: u32,
    /// Most bytes of keys and values together; the first entry is returned at any size.
    pub bytes_max: u32,
}

/// One page of a scan.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Page {
    /// Keys with their values, in the order that [`Scan::reverse`] names.
    pub entries: Vec<(String, Vec<u8>)>,
    /// Whether more entries of the range follow.
    pub more: bool,
}

impl Page {
    /// Takes `entries` up to the bounds of `scan`, and at least one. `entries` must be those of the
    /// range, in the order of `scan`.
    ///
    /// # Errors
    ///
    /// The first error of `entries`.
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

/// The error of a failed read or commit of a store.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// The store is locked or could not be reached; nothing was written.
    #[error("{0}")]
    Busy(String),
    /// A guard did not hold; nothing was written.
    #[error("another writer was first")]
    Conflict,
    /// The store failed. If a commit failed, the puts may be written or not.
    #[error("{0}")]
    Unavailable(String),
    /// The store is read-only, foreign or of another format; nothing was written.
    #[error("{0}")]
    Unsupported(String),
    /// The caller must fetch the requested values first; nothing changed.
    #[error("the store must fetch the requested values first")]
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

/// The store that a host provides: an ordered key-value map with atomic, guarded commits.
///
/// A handle owns its store. The handles of a pool have one store each, all over the same data
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
    /// The component passes at most 1,000 keys. The read sees every commit that returned before it,
    /// of any client (S4).
    ///
    /// # Errors
    ///
    /// Any error but [`StoreError::Conflict`]; nothing changed.
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// Returns one page of the entries with `start <= key < end`, in the order of the bytes of the
    /// keys (S1), or in reverse.
    ///
    /// # Errors
    ///
    /// Errors of [`KeyValueStore::get_many`].
    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError>;

    /// Writes all puts in one atomic step if all guards hold, and nothing otherwise (S3).
    ///
    /// A commit that returned survives process and power failure (S2), unless the store documents
    /// otherwise. Of several puts of one key the last counts.
    ///
    /// # Errors
    ///
    /// - [`StoreError::Conflict`], [`StoreError::Busy`], [`StoreError::Unsupported`]: nothing was
    ///   written (S5).
    /// - [`StoreError::Unavailable`]: the outcome is unknown (S6).
    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError>;

    /// Returns the bytes of the store on disk. `None`: the store is not on a disk of this machine,
    /// has no file yet, or its size cannot be read. Without an implementation, the result is
    /// `None`.
    fn bytes_on_disk(&self) -> Option<u64> {
        None
    }
}
