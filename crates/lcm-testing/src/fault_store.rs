//! A store that fails once, at a chosen operation.
//!
//! In: any store and the number of the operation. Out: the same store, with one operation that
//! returns `store-unavailable`. The wrapped store survives.

use lcm_core::store::{Entry, Guard, Put, Store};
use lcm_text::base::error::{Error, ErrorCode, Result};

/// How an operation fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The operation fails before it reads or writes.
    Before,
    /// A commit is performed, but its reply is lost. A read fails as with [`Fault::Before`].
    ReplyLost,
}

/// Fails operation number `at` (from 1, counted over all calls), and no other.
#[derive(Debug)]
pub struct FaultStore<'a> {
    inner: &'a mut dyn StoreDebug,
    at: u64,
    fault: Fault,
    done: u64,
    fired: bool,
}

/// A store that implements `Debug`; every such store has this trait.
pub trait StoreDebug: Store + std::fmt::Debug {}

impl<T: Store + std::fmt::Debug> StoreDebug for T {}

impl<'a> FaultStore<'a> {
    /// Wraps `inner`. The operation with number `at`, counted from 1, fails; 0: no operation fails.
    pub fn new(inner: &'a mut dyn StoreDebug, at: u64, fault: Fault) -> Self {
        Self { inner, at, fault, done: 0, fired: false }
    }

    /// Returns whether the failure has happened.
    #[must_use]
    pub const fn fired(&self) -> bool {
        self.fired
    }

    /// Returns the number of operations so far.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        self.done
    }

    fn count(&mut self) -> bool {
        self.done += 1;
        let now = self.done == self.at;
        self.fired |= now;
        now
    }
}

fn failed(what: &str) -> Error {
    Error::new(ErrorCode::StoreUnavailable, format!("planted failure of a {what}"))
}

impl Store for FaultStore<'_> {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        if self.count() {
            return Err(failed("read"));
        }
        self.inner.get_many(keys)
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)> {
        if self.count() {
            return Err(failed("scan"));
        }
        self.inner.scan(start, end, reverse, entries_max, bytes_max)
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()> {
        if !self.count() {
            return self.inner.commit(guards, puts);
        }
        if self.fault == Fault::ReplyLost {
            self.inner.commit(guards, puts)?;
        }
        Err(failed("commit"))
    }
}
