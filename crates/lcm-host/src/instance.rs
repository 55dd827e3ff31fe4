//! A running instance, and the host state that its imports use.

use std::sync::Arc;

use crate::{
    bindings::Engine, completion::CompletionProvider, memory::InstanceMemory, record::Recorder,
    store::KeyValueStore,
};

/// The exported functions of an instance: typed, and by name.
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

/// An instance of the component. Dropping an instance loses only a cache.
pub(crate) struct Instance {
    pub(crate) store: wasmtime::Store<HostState>,
    pub(crate) bindings: Exports,
    pub(crate) call_ticks: u64,
}

impl Instance {
    /// Starts the time of a call and resets the state of the last call.
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

/// State of the commit of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Commit {
    /// No commit, or a commit that wrote nothing because another writer was first.
    None,
    /// The commit is done.
    Done,
    /// The store failed before the first write.
    NotBegun,
    /// The outcome is unknown.
    Unknown,
}

/// Host state that the imports use; the state outlives the instance.
pub(crate) struct HostState {
    pub(crate) kv: Box<dyn KeyValueStore>,
    pub(crate) model: Arc<dyn CompletionProvider>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) memory: InstanceMemory,
    pub(crate) commit: Commit,
    /// Time of the model within this call in milliseconds, which extends the deadline.
    pub(crate) model_ms: u64,
}
