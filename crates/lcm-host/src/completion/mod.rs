//! Providers of completions: models over HTTP, a program, the offline summariser, and chains of
//! providers.
//!
//! In: completion requests of the component. Out: a completion or a classified failure for each;
//! the component decides what follows. The caller passes API keys; no provider reads a key from the
//! environment.

mod anthropic;
mod body;
mod chain;
mod endpoint;
mod exchange;
mod exec;
mod failure_table;
mod finish;
mod offline;
mod openai;
mod rejection;
mod requests;

use std::thread;

use serde_json::{Value, json};

use crate::{
    clock::Cancel,
    events,
    types::{
        Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult,
        Purpose,
    },
};

pub use anthropic::Anthropic;
pub use chain::Chain;
pub(crate) use exchange::CompletionExchange;
pub use exec::Exec;
pub(crate) use offline::OFFLINE_MODEL;
pub use offline::Offline;
pub use openai::OpenAi;
pub(crate) use requests::WrittenRequest;

/// A provider of completions. A closure from a request to a result is a provider, too.
///
/// ```
/// use lcm_host::{Lcm, types::{Completion, CompletionRequest, CompletionResult, Finish}};
///
/// let model = |request: &CompletionRequest| {
///     let text = my_model(&request.system, &request.prompt, request.output_tokens_max);
///     let (input_tokens, output_tokens) = (0, 0); // not counted
///     let (finish, model) = (Finish::Stop, "mine".to_owned());
///     CompletionResult::Done(Completion { text, finish, model, input_tokens, output_tokens })
/// };
/// let lcm = Lcm::builder().model(model).open(include_bytes!("../../../../dist/lcm.wasm"))?;
/// # lcm.version()?;
/// # fn my_model(_: &str, prompt: &str, _: u32) -> String { prompt.to_owned() }
/// # Ok::<(), lcm_host::Error>(())
/// ```
pub trait CompletionProvider: Send + Sync {
    /// Completes one request, and blocks until the answer. A slow provider should return early when
    /// `cancel` is set.
    fn complete(&self, request: &CompletionRequest, cancel: &Cancel) -> CompletionResult;

    /// Returns whether the program chose to complete requests of this purpose without a model. An
    /// answer of [`Offline`] through any other provider stands in for a model that failed, so its
    /// summary is provisional.
    fn is_offline(&self, purpose: Purpose) -> bool {
        let _ = purpose;
        false
    }
}

impl<F: Fn(&CompletionRequest) -> CompletionResult + Send + Sync> CompletionProvider for F {
    fn complete(&self, request: &CompletionRequest, _cancel: &Cancel) -> CompletionResult {
        self(request)
    }
}

/// Completes requests and returns the answers in their order. Several requests run at the same
/// time, each on its own thread, where a panic of the provider becomes a failure. With one request
/// a panic reaches the caller.
fn complete_all(
    model: &dyn CompletionProvider,
    requests: &[CompletionRequest],
    cancel: &Cancel,
) -> Vec<CompletionResult> {
    if let [request] = requests {
        return vec![model.complete(request, cancel)];
    }
    let panicked = || failed(CompletionErrorCode::Other, "the provider panicked");
    thread::scope(|scope| {
        let start = |request| {
            let span = events::current_span();
            scope.spawn(move || span.in_scope(|| model.complete(request, cancel)))
        };
        let running: Vec<_> = requests.iter().map(start).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
    })
}

/// Returns whether an answer of `model` stands in for a model that failed.
fn stands_in(
    model: &dyn CompletionProvider,
    request: &CompletionRequest,
    done: &Completion,
) -> bool {
    done.model == OFFLINE_MODEL && !model.is_offline(request.purpose)
}

/// Returns the purpose of this name; `None`: no purpose has this name.
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

/// Returns a failure whose pause is unknown.
pub(crate) fn failed(code: CompletionErrorCode, message: impl Into<String>) -> CompletionResult {
    let message = message.into();
    CompletionResult::Failed(CompletionError { code, message, retry_after_ms: None })
}

/// Returns the name of a failure's code in JSON.
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

/// Returns the failure's code of this name; `None`: no code has this name.
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

/// Returns the sampling temperature of a request as providers take it: 1.0 for 1,000 thousandths.
fn temperature(request: &CompletionRequest) -> Value {
    json!(f64::from(request.temperature_permille) / 1000.0)
}

/// Converts a provider's token count; a larger count becomes `u32::MAX`.
fn tokens(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the text of a provider's `content`: a string, the text blocks of an array joined, or an
/// empty text for null. `None`: another type.
fn text(content: &Value) -> Option<String> {
    match content {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let text = |block: &Value| match block.get("type").and_then(Value::as_str) {
                Some("text" | "output_text") => Some(block.get("text")?.as_str()?.to_owned()),
                _ => None,
            };
            Some(blocks.iter().filter_map(text).collect())
        }
        _ => None,
    }
}
