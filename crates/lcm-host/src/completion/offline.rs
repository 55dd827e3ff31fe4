//! Completions without a model: the component's own deterministic, extractive summaries.

use std::sync::Arc;

use super::{CompletionProvider, failed};
use crate::{
    clock::Cancel,
    component::Component,
    lcm::Lcm,
    store::Memory,
    types::{CompletionErrorCode, CompletionRequest, CompletionResult},
};

/// The component's offline summariser as a provider, which needs no model.
#[derive(Clone, Debug)]
pub struct Offline {
    // A separate instance can complete requests during a running call.
    instance: Lcm,
}

impl Offline {
    /// Creates an offline summariser: a separate instance of `component` on an empty store in
    /// memory, which asks no model.
    #[must_use]
    pub fn new(component: &Component) -> Self {
        let no_model: Arc<dyn CompletionProvider> = Arc::new(|_: &CompletionRequest| {
            failed(CompletionErrorCode::Unavailable, "the offline summariser asks no model")
        });
        Self { instance: Lcm::new(component, Box::new(Memory::new()), no_model) }
    }
}

impl CompletionProvider for Offline {
    fn complete(&self, request: &CompletionRequest, _cancel: &Cancel) -> CompletionResult {
        match self.instance.complete_offline(request) {
            Ok(completion) => CompletionResult::Done(completion),
            Err(error) => failed(CompletionErrorCode::Other, error.message),
        }
    }
}
