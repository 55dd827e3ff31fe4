//! What the component asks of a store, and the stores that come with this host.
//!
//! A store keeps an ordered map from short printable ASCII keys to bytes that only the component
//! understands. It never interprets a value and never retries. PostgreSQL comes with the
//! feature `postgres`; whatever keeps the obligations of [`KeyValueStore`] is a store, too.

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

/// What a scan asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Scan<'a> {
    /// The first key that may be returned.
    pub start: &'a str,
    /// The first key after the range.
    pub end: &'a str,
    /// Whether the entries come in descending order.
    pub reverse: bool,
    /// At most this many entries; 0 counts as 1.
    pub entries_max: u32,
    /// At most this many bytes of keys and values, but always one entry when there is one.
    pub bytes_max: u32,
}

/// One page of a scan.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Page {
    /// Keys with their values, in the order asked for.
    pub entries: Vec<(String, Vec<u8>)>,
    /// Whether more entries of the range follow.
    pub more: bool,
}

impl Page {
    /// The entries of a range, in the order that was asked for, up to a bound of `scan`; the first
    /// always fits.
    ///
    /// # Errors
    ///
    /// The first one that an entry is.
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

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// The store could not begin; nothing was written.
    #[error("{0}")]
    Busy(String),
    /// A guard did not hold; nothing was written.
    #[error("another writer was first")]
    Conflict,
    /// Something failed. After a commit the outcome is unknown.
    #[error("{0}")]
    Unavailable(String),
    /// The store must not be written; nothing was.
    #[error("{0}")]
    Unsupported(String),
    /// The values must be fetched first; nothing changed.
    #[error("must be fetched first")]
    WouldBlock,
}

impl StoreError {
    /// The code that the component and callers see.
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
/// A handle has its store alone. A pool has one for each handle, over the same data
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
    /// Values of `keys`, in their order; `None` where a key is absent.
    ///
    /// At most 1,000 keys. A later read, by any client, sees every commit that returned (S4).
    ///
    /// # Errors
    ///
    /// Any but [`StoreError::Conflict`]; nothing changed.
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// Entries with `start <= key < end` in bytewise key order (S1), or in reverse.
    ///
    /// # Errors
    ///
    /// As [`KeyValueStore::get_many`].
    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError>;

    /// Checks all guards and writes all puts in one atomic step, or nothing (S3).
    ///
    /// A commit that returned survives process and power failure (S2), unless the store says
    /// otherwise. Of several puts of one key the last counts.
    ///
    /// # Errors
    ///
    /// - [`StoreError::Conflict`], [`StoreError::Busy`], [`StoreError::Unsupported`]: nothing was
    ///   written (S5).
    /// - [`StoreError::Unavailable`]: the outcome is unknown (S6).
    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError>;

    /// Bytes this store takes on disk; `None`: it is not on a disk.
    fn bytes_on_disk(&self) -> Option<u64> {
        None
    }
}
