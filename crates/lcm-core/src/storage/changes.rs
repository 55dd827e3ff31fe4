//! The changes of one commit: records to write and to delete, and the guards that must hold.
//!
//! In: typed records of an operation. Out: the puts and guards of [`Store::commit`]. Operations
//! collect their writes here before they commit.
//!
//! [`Store::commit`]: crate::storage::store::Store::commit

use alloc::vec::Vec;

use serde::Serialize;

use crate::storage::{
    codec::{self, SoundRecord},
    record_key::{GuardedRecord, RecordKey},
    store::{Guard, Put},
    store_session::StoreSession,
};
use lcm_text::base::{error::Result, int};

/// The writes of one commit, with its guards.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(in crate::storage) puts: Vec<Put>,
    pub(in crate::storage) guards: Vec<Guard>,
}

impl Changes {
    /// Returns whether there are no writes and no deletions; guards do not count.
    pub(crate) fn is_empty(&self) -> bool {
        self.puts.is_empty()
    }

    /// Adds a write of `record` under `key`; returns the size of the encoded value in bytes.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the value would be larger than 256 KiB.
    pub(crate) fn write_record<T>(&mut self, key: &RecordKey<T>, record: &T) -> Result<u32>
    where
        T: Serialize + SoundRecord,
    {
        let value = codec::encode_record(record)?;
        let bytes = int::to_u32(value.len());
        self.puts.push(Put { key: key.name().into(), value: Some(value) });
        Ok(bytes)
    }

    /// Adds a write of `record` and drops earlier writes of these changes to the same key; returns
    /// the size of the encoded value in bytes.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the value would be larger than 256 KiB.
    pub(crate) fn rewrite_record<T>(&mut self, key: &RecordKey<T>, record: &T) -> Result<u32>
    where
        T: Serialize + SoundRecord,
    {
        self.puts.retain(|put| put.key != key.name());
        self.write_record(key, record)
    }

    /// Adds a deletion of the record under `key`.
    pub(crate) fn delete_record<T>(&mut self, key: &RecordKey<T>) {
        self.puts.push(Put { key: key.name().into(), value: None });
    }

    /// Adds a write of `record` to the key of `read`. The write is guarded by the value that was
    /// read: the commit fails with `conflict` if the stored value has changed.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the value would be larger than 256 KiB.
    pub(crate) fn replace_record<T>(&mut self, read: &GuardedRecord<T>, record: &T) -> Result<()>
    where
        T: Serialize + SoundRecord,
    {
        self.guards.push(read.build_guard());
        self.write_record(read.key(), record)?;
        Ok(())
    }

    /// Adds a guard without a write.
    pub(crate) fn add_guard(&mut self, guard: Guard) {
        self.guards.push(guard);
    }

    /// Adds a write whose key and value were made in the storage or search layer.
    pub(crate) fn add_put(&mut self, put: Put) {
        self.puts.push(put);
    }

    /// Adds writes whose keys and values were made in the storage or search layer.
    pub(crate) fn add_puts(&mut self, puts: impl IntoIterator<Item = Put>) {
        self.puts.extend(puts);
    }

    /// Appends the changes of `other`.
    pub(crate) fn append(&mut self, other: Self) {
        self.puts.extend(other.puts);
        self.guards.extend(other.guards);
    }

    /// Returns the writes.
    pub(crate) fn list_puts(&self) -> &[Put] {
        &self.puts
    }

    /// Returns the writes, so that the search layer can measure them and add its own.
    pub(crate) fn puts_mut(&mut self) -> &mut Vec<Put> {
        &mut self.puts
    }
}

impl StoreSession<'_> {
    /// Commits exactly these changes. Unlike `LoadedHead::commit_changes` it adds no head and no
    /// journal entry, so a caller that changes heads calls `append_changes` first. This must be the
    /// last store call of an exported call.
    ///
    /// # Errors
    ///
    /// `conflict`: a guard did not hold, and nothing was written; `limit-exceeded`: the values have
    /// more than 1 MiB together, and nothing was written. After any other error the outcome is
    /// unknown.
    pub(crate) fn commit_changes(&mut self, changes: &Changes) -> Result<()> {
        self.commit(&changes.guards, &changes.puts)
    }
}
