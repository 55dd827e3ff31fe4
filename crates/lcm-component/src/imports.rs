//! The host's imports as traits of the engine.
//!
//! In: calls of [`lcm_core::Store`] and [`lcm_core::Model`]. Out: answers and errors of the host,
//! converted and not checked.

use alloc::{string::String, vec::Vec};

use lcm_core::{
    Model, Result, Store,
    store::{Entry, Guard, Put},
};
use lcm_text::types::model::{CompletionRequest, CompletionResult};

use crate::bindings::lcm::engine::{llm, store};

/// The store import.
pub(crate) struct HostStore;

impl Store for HostStore {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        Ok(store::get_many(&keys)?)
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<(Vec<Entry>, bool)> {
        let (entries, more) = store::scan(start, end, reverse, entries_max, bytes_max)?;
        Ok((entries.into_iter().map(Entry::from).collect(), more))
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<()> {
        let guards: Vec<_> = guards.iter().map(store::Guard::from).collect();
        let puts: Vec<_> = puts.iter().map(store::Put::from).collect();
        Ok(store::commit(&guards, &puts)?)
    }
}

/// The model import.
pub(crate) struct HostModel;

impl Model for HostModel {
    fn complete(&mut self, request: &CompletionRequest) -> CompletionResult {
        llm::complete(&request.clone().into()).into()
    }
}
