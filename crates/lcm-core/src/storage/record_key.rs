//! Typed keys, and reads of several records in one host call.
//!
//! In: a [`RecordKey`], which knows the type of its record. Out: the decoded record, or `None` if
//! the key is absent. The type of a key selects the decoder, so operations decode nothing. Key
//! texts are in [`super::keys`], encodings in [`super::codec`].

use alloc::{string::String, vec::Vec};
use core::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::storage::{
    codec::{self, SoundRecord},
    store::Guard,
    store_session::StoreSession,
};
use lcm_text::base::error::Result;

/// The key of a record of type `T`.
#[derive(Debug)]
pub(crate) struct RecordKey<T> {
    name: String,
    record: PhantomData<fn() -> T>,
}

impl<T> Clone for RecordKey<T> {
    fn clone(&self) -> Self {
        Self::new(self.name.clone())
    }
}

impl<T> RecordKey<T> {
    /// Creates a typed key from the text of a store key.
    pub(crate) fn new(name: String) -> Self {
        Self { name, record: PhantomData }
    }

    /// Returns the text of the key in the store.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl<T: DeserializeOwned + SoundRecord> RecordKey<T> {
    /// Decodes the record from the value under the key.
    ///
    /// # Errors
    ///
    /// `corrupt`: the value is no record of this type, or out of bounds; `unsupported`: the value
    /// has a newer format.
    pub(crate) fn decode(&self, value: &[u8]) -> Result<T> {
        codec::decode(&self.name, value)
    }
}

/// A record, with the encoded value that was read for it. A commit that replaces the record is
/// guarded by this value.
#[derive(Debug)]
pub(crate) struct GuardedRecord<T> {
    key: RecordKey<T>,
    value: Option<Vec<u8>>,
    /// The record; `None`: the key is absent.
    pub(crate) record: Option<T>,
}

impl<T> GuardedRecord<T> {
    /// Returns the key of the record.
    pub(crate) fn key(&self) -> &RecordKey<T> {
        &self.key
    }

    /// Returns the encoded value that was read; `None`: the key was absent.
    pub(crate) fn stored_value(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }

    /// Builds the guard that requires the key to have the value that was read, or to be absent.
    pub(crate) fn build_guard(&self) -> Guard {
        Guard { key: self.key.name.clone(), value: self.value.clone() }
    }
}

/// A list of records, of any types, to read in one host call.
#[derive(Debug, Default)]
pub(crate) struct RecordReads {
    names: Vec<String>,
}

/// The key of a record and its index in one read of [`RecordReads`].
#[derive(Debug)]
pub(crate) struct RecordSlot<T> {
    key: RecordKey<T>,
    index: usize,
}

impl<T> RecordSlot<T> {
    /// Returns the key of the record.
    pub(crate) fn key(&self) -> &RecordKey<T> {
        &self.key
    }
}

impl RecordReads {
    /// Adds a record to the list and returns the slot from which to decode the record.
    pub(crate) fn add_record<T>(&mut self, key: RecordKey<T>) -> RecordSlot<T> {
        let index = self.names.len();
        self.names.push(key.name.clone());
        RecordSlot { key, index }
    }

    /// Returns the texts of the keys, in the order in which the records were added.
    pub(crate) fn key_names(&self) -> &[String] {
        &self.names
    }

    /// Reads the listed records in one host call, never from the cache.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) fn read(self, session: &mut StoreSession<'_>) -> Result<RecordValues> {
        Ok(RecordValues::new(session.read_uncached(&self.names)?))
    }
}

/// The values that a read of [`RecordReads`] returned, in the order of its keys.
#[derive(Debug)]
pub(crate) struct RecordValues {
    values: Vec<Option<Vec<u8>>>,
}

impl RecordValues {
    /// Wraps values that were read for [`RecordReads::key_names`].
    pub(crate) fn new(values: Vec<Option<Vec<u8>>>) -> Self {
        Self { values }
    }

    /// Returns the value in a slot; `None`: the key is absent.
    fn get_value<T>(&self, slot: &RecordSlot<T>) -> Option<&[u8]> {
        self.values.get(slot.index).and_then(Option::as_deref)
    }

    /// Decodes the record in a slot; `None`: the key is absent.
    ///
    /// # Errors
    ///
    /// `corrupt`: the value is no record of this type, or out of bounds; `unsupported`: the value
    /// has a newer format.
    pub(crate) fn decode<T>(&self, slot: &RecordSlot<T>) -> Result<Option<T>>
    where
        T: DeserializeOwned + SoundRecord,
    {
        self.get_value(slot).map(|value| slot.key.decode(value)).transpose()
    }

    /// Builds the guard that requires the key of a slot to have the value that was read, or to be
    /// absent.
    pub(crate) fn build_guard<T>(&self, slot: &RecordSlot<T>) -> Guard {
        Guard { key: slot.key.name.clone(), value: self.get_value(slot).map(Vec::from) }
    }

    /// Decodes the record in a slot and keeps its value, from which a guard can be built.
    ///
    /// # Errors
    ///
    /// `corrupt`: the value is no record of this type, or out of bounds; `unsupported`: the value
    /// has a newer format.
    pub(crate) fn decode_guarded<T>(&self, slot: RecordSlot<T>) -> Result<GuardedRecord<T>>
    where
        T: DeserializeOwned + SoundRecord,
    {
        let record = self.decode(&slot)?;
        let value = self.get_value(&slot).map(Vec::from);
        Ok(GuardedRecord { key: slot.key, value, record })
    }
}

impl StoreSession<'_> {
    /// Reads a record from the store and never from the cache; `None`: the key is absent.
    ///
    /// # Errors
    ///
    /// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the
    /// store.
    pub(crate) fn read_record<T>(&mut self, key: &RecordKey<T>) -> Result<Option<T>>
    where
        T: DeserializeOwned + SoundRecord,
    {
        let value = self.read_one_uncached(&key.name)?;
        value.map(|value| key.decode(&value)).transpose()
    }

    /// Reads a record from the store and never from the cache; the result can guard a commit.
    ///
    /// # Errors
    ///
    /// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the
    /// store.
    pub(crate) fn read_guarded<T>(&mut self, key: RecordKey<T>) -> Result<GuardedRecord<T>>
    where
        T: DeserializeOwned + SoundRecord,
    {
        let value = self.read_one_uncached(&key.name)?;
        let record = value.as_deref().map(|value| key.decode(value)).transpose()?;
        Ok(GuardedRecord { key, value, record })
    }

    /// Reads records from the store and never from the cache, in the order of `keys`; `None`: the
    /// key is absent.
    ///
    /// # Errors
    ///
    /// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the
    /// store.
    pub(crate) fn read_records<T>(&mut self, keys: &[RecordKey<T>]) -> Result<Vec<Option<T>>>
    where
        T: DeserializeOwned + SoundRecord,
    {
        let names: Vec<String> = keys.iter().map(|key| key.name.clone()).collect();
        let values = self.read_uncached(&names)?;
        let decode = |(key, value): (&RecordKey<T>, Option<Vec<u8>>)| {
            value.map(|value| key.decode(&value)).transpose()
        };
        keys.iter().zip(values).map(decode).collect()
    }

    /// Reads immutable records through the cache, in the order of `wanted`: keys, each with the
    /// size of the value in bytes.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is damaged,
    /// or is missing under an unchanged head; `unsupported`: a record has a newer format; errors of
    /// the store.
    pub(crate) fn read_immutable_records<T>(
        &mut self,
        wanted: &[(RecordKey<T>, u32)],
    ) -> Result<Vec<T>>
    where
        T: DeserializeOwned + SoundRecord,
    {
        let names: Vec<(String, u32)> =
            wanted.iter().map(|(key, bytes)| (key.name.clone(), *bytes)).collect();
        let values = self.read_immutable(&names)?;
        wanted.iter().zip(values).map(|((key, _), value)| key.decode(&value)).collect()
    }
}
