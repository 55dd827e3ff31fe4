//! A provider without a model: the component itself makes deterministic, extractive summaries.

use std::sync::Arc;

use super::{CompletionProvider, failed};
use crate::{
    clock::Cancel,
    component::Component,
    lcm::Lcm,
    store::Memory,
    types::{CompletionErrorCode, CompletionRequest, CompletionResult, Purpose},
};

/// Name of the model of offline answers.
pub(crate) const OFFLINE_MODEL: &str = "offline";

/// The component's offline summariser as a provider.
#[derive(Clone, Debug)]
pub struct Offline {
    // A separate handle, because the handle that asks is locked during `run`.
    instance: Lcm,
}

impl Offline {
    /// Creates an offline summariser with its own instance of `component` on an empty store in
    /// memory.
    #[must_use]
    pub fn new(component: &Component) -> Self {
        let no_model: Arc<dyn CompletionProvider> = Arc::new(|_: &CompletionRequest| {
            failed(CompletionErrorCode::Unavailable, "the offline summariser asks no model")
        });
        Self { instance: Lcm::new(component, Box::new(Memory::new()), no_model) }
    }

    /// Returns the instance, for calls that need no store.
    pub(super) fn into_instance(self) -> Lcm {
        self.instance
    }
}

impl CompletionProvider for Offline {
    fn complete(&self, request: &CompletionRequest, _cancel: &Cancel) -> CompletionResult {
        match self.instance.complete_offline(request) {
            Ok(completion) => CompletionResult::Done(completion),
            Err(error) => failed(CompletionErrorCode::Other, error.message),
        }
    }

    fn is_offline(&self, _purpose: Purpose) -> bool {
        true
    }
}
