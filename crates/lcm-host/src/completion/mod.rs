//! Where completions come from: providers, and chains of them.
//!
//! In: the component's requests, as data. Out: a completion or a classified failure. What becomes
//! of either is decided by the component, and by the loop of [`crate::Lcm::compact`]. Providers
//! that speak a network protocol are not here.

mod chain;
mod exec;
mod offline;

use crate::{
    clock::Cancel,
    types::{CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult, Purpose},
};

pub use chain::Chain;
pub(crate) use chain::describe;
pub use exec::Exec;
pub use offline::Offline;

/// A model, or something that stands for one. Closures from a request to a result are providers.
pub trait CompletionProvider: Send + Sync {
    /// Answers one request; a provider that may take long returns early when `cancel` is set.
    fn complete(&self, request: &CompletionRequest, cancel: &Cancel) -> CompletionResult;
}

impl<F: Fn(&CompletionRequest) -> CompletionResult + Send + Sync> CompletionProvider for F {
    fn complete(&self, request: &CompletionRequest, _cancel: &Cancel) -> CompletionResult {
        self(request)
    }
}

/// The purpose of this name.
#[must_use]
pub fn purpose(name: &str) -> Option<Purpose> {
    Some(match name {
        "leaf" => Purpose::Leaf,
        "condensed" => Purpose::Condensed,
        "file" => Purpose::File,
        "ask" => Purpose::Ask,
        "focus" => Purpose::Focus,
        _ => return None,
    })
}

/// A failed completion.
pub(crate) fn failed(code: CompletionErrorCode, message: impl Into<String>) -> CompletionResult {
    let message = message.into();
    CompletionResult::Failed(CompletionError { code, message, retry_after_ms: None })
}

/// The name of a failure, as JSON writes it.
pub(crate) const fn error_name(code: CompletionErrorCode) -> &'static str {
    match code {
        CompletionErrorCode::Auth => "auth",
        CompletionErrorCode::Policy => "policy",
        CompletionErrorCode::RateLimited => "rate-limited",
        CompletionErrorCode::Timeout => "timeout",
        CompletionErrorCode::ContextTooLong => "context-too-long",
        CompletionErrorCode::Unavailable => "unavailable",
        CompletionErrorCode::Other => "other",
    }
}

/// The failure of this name; `None`: there is no such failure.
pub(crate) fn error_code(name: &str) -> Option<CompletionErrorCode> {
    Some(match name {
        "auth" => CompletionErrorCode::Auth,
        "policy" => CompletionErrorCode::Policy,
        "rate-limited" => CompletionErrorCode::RateLimited,
        "timeout" => CompletionErrorCode::Timeout,
        "context-too-long" => CompletionErrorCode::ContextTooLong,
        "unavailable" => CompletionErrorCode::Unavailable,
        "other" => CompletionErrorCode::Other,
        _ => return None,
    })
}
