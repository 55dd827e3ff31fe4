//! Keys that know the type of their record, so that an operation handles records and not bytes.

use alloc::{string::String, vec::Vec};
use core::marker::PhantomData;

use serde::{Serialize, de::DeserializeOwned};

use lcm_text::base::error::Result;

use super::{
    codec::{self, SoundRecord},
    store::{Guard, Put},
    store_session::StoreSession,
};

/// The key under which a record of type `T` stands.
pub(crate) struct RecordKey<T> {
    key: String,
    record: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned + SoundRecord> RecordKey<T> {
    /// Returns the typed form of a key of [`super::keys`].
    pub(crate) fn new(key: String) -> Self {
        Self { key, record: PhantomData }
    }

    /// Returns the key as text, to be read together with other keys.
    pub(crate) fn as_str(&self) -> &str {
        &self.key
    }

    /// Decodes the value that was read under the key; `None`: there is no record.
    ///
    /// # Errors
    ///
    /// `corrupt`: the value is not a sound record; `unsupported`: a newer format wrote the value.
    pub(crate) fn decode(&self, value: Option<&[u8]>) -> Result<Option<T>> {
        value.map(|value| codec::decode(&self.key, value)).transpose()
    }

    /// Reads the record; `None`: there is none.
    ///
    /// # Errors
    ///
    /// As [`RecordKey::decode`]; errors of the store.
    pub(crate) fn read(&self, session: &mut StoreSession<'_>) -> Result<Option<T>> {
        let value = session.read_one_uncached(&self.key)?;
        self.decode(value.as_deref())
    }

    /// Returns the write that puts a record under the key.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the record is larger than 256 KiB.
    pub(crate) fn put(self, record: &T) -> Result<Put> {
        Ok(Put { key: self.key, value: Some(codec::encode(record)?) })
    }

    /// Returns the write that deletes the record.
    pub(crate) fn delete(self) -> Put {
        Put { key: self.key, value: None }
    }

    /// Returns the guard of a commit: the value must still be `old`; `None`: there must be none.
    pub(crate) fn guard(&self, old: Option<Vec<u8>>) -> Guard {
        Guard { key: self.key.clone(), value: old }
    }
}
