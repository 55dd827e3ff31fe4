//! One running instance, and the state of the host that it calls back into.

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

/// An instance of the component. Dropping it loses nothing but a cache.
pub(crate) struct Instance {
    pub(crate) store: wasmtime::Store<HostState>,
    pub(crate) bindings: Exports,
    pub(crate) call_ticks: u64,
}

impl Instance {
    /// Starts the time of a call and forgets what the last one did.
    pub(crate) fn begin_call(&mut self) {
        self.store.set_epoch_deadline(self.call_ticks);
        let state = self.store.data_mut();
        state.commit = Commit::None;
        state.model_ms = 0;
    }

    /// Drops the instance and keeps what it called back into.
    pub(crate) fn into_state(self) -> HostState {
        self.store.into_data()
    }
}

/// What became of the commit of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Commit {
    /// There was none, or it wrote nothing because another writer was first.
    None,
    /// It is done.
    Done,
    /// The store failed before it wrote anything.
    NotBegun,
    /// Nobody knows.
    Unknown,
}

/// What an instance calls back into; it outlives the instance.
pub(crate) struct HostState {
    pub(crate) kv: Box<dyn KeyValueStore>,
    pub(crate) model: Arc<dyn CompletionProvider>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) memory: InstanceMemory,
    pub(crate) commit: Commit,
    /// Milliseconds the model took within this call; they extend its deadline.
    pub(crate) model_ms: u64,
}
