//! A running instance of the component, and the host state that its imported functions use.
//!
//! `component` makes instances, `lcm` calls them, `host_calls` implements the imported functions.

use std::sync::Arc;

use crate::{
    bindings::Engine, completion::CompletionProvider, memory::InstanceMemory, record::Recorder,
    store::KeyValueStore,
};

/// The exported functions of an instance: with Rust types, and for a search by name.
pub(crate) struct Exports {
    pub(crate) typed: Engine,
    pub(crate) by_name: wasmtime::component::Instance,
}

impl std::ops::Deref for Exports {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.typed
    }
}

/// An instance of the component. Dropping an instance loses no data but its cache.
pub(crate) struct Instance {
    pub(crate) store: wasmtime::Store<HostState>,
    pub(crate) bindings: Exports,
    pub(crate) call_ticks: u64,
}

impl Instance {
    /// Starts the deadline of a call, and resets what [`HostState`] says of the previous call.
    pub(crate) fn begin_call(&mut self) {
        self.store.set_epoch_deadline(self.call_ticks);
        let state = self.store.data_mut();
        state.commit = Commit::None;
        state.model_ms = 0;
    }

    /// Drops the instance and returns the host state.
    pub(crate) fn into_state(self) -> HostState {
        self.store.into_data()
    }
}

/// What became of the commit of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Commit {
    /// The call made no commit, or a guard of its commit did not hold; nothing was written.
    None,
    /// The store wrote the commit.
    Done,
    /// The store refused the commit before the first write.
    NotBegun,
    /// The store failed during the commit, which may be written or not.
    Unknown,
}

/// Host state that the imported functions use; it is moved to the next instance.
pub(crate) struct HostState {
    pub(crate) kv: Box<dyn KeyValueStore>,
    pub(crate) model: Arc<dyn CompletionProvider>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) memory: InstanceMemory,
    pub(crate) commit: Commit,
    /// Milliseconds that the model took in this call and that have not extended its deadline yet.
    pub(crate) model_ms: u64,
}
