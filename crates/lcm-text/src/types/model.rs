//! Requests to a language model and their results.
//!
//! The engine returns [`CompletionRequest`]s as data, and the host passes the answers back. The
//! trait [`Model`] is for the export `run`, which calls the model itself.

use alloc::string::String;

/// The purpose of a completion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// A summary of messages.
    Leaf,
    /// A summary of summaries.
    Condensed,
    /// A description of a large file; no request of this version has this purpose.
    File,
    /// An answer to a question, from passages of the stored history.
    Ask,
    /// A focus brief; no request of this version has this purpose.
    Focus,
}

/// How a summary is made and how strongly it shortens, in the order in which levels are tried.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// The ordinary prompt.
    Normal,
    /// The prompt that asks to keep durable facts only.
    Aggressive,
    /// An extract of the sources, made without a model.
    Fallback,
}

/// Sampling temperature of level `Normal`, in thousandths.
const TEMPERATURE_NORMAL: u32 = 200;
/// Sampling temperature of all other levels, in thousandths.
const TEMPERATURE_STRICT: u32 = 100;

impl Level {
    /// Returns the sampling temperature for this level, in thousandths.
    pub const fn temperature_permille(self) -> u32 {
        match self {
            Self::Normal => TEMPERATURE_NORMAL,
            Self::Aggressive | Self::Fallback => TEMPERATURE_STRICT,
        }
    }
}

/// Why a model stopped writing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Finish {
    /// The answer is complete.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model refused to answer.
    Refusal,
}

/// A request to a language model.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CompletionRequest {
    /// The request id, which describes the whole task: ASCII, at most 200 bytes. A caller passes
    /// only the id and the answer to `apply`.
    pub id: String,
    /// The purpose of the completion.
    pub purpose: Purpose,
    /// The level, which selects the prompt.
    pub level: Level,
    /// System prompt.
    pub system: String,
    /// User prompt: instructions, and the source text between markers.
    pub prompt: String,
    /// Estimated tokens of `system` and `prompt` together.
    pub input_tokens: u32,
    /// Most tokens of the answer, reasoning included.
    pub output_tokens_max: u32,
    /// Sampling temperature in thousandths.
    pub temperature_permille: u32,
    /// Model that the configuration names for this purpose; `None`: the host chooses.
    pub model: Option<String>,
}

/// The answer of a model.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Completion {
    /// Text of the answer.
    pub text: String,
    /// Why the model stopped writing.
    pub finish: Finish,
    /// The model that answered.
    pub model: String,
    /// Input tokens as the provider counted them; 0: unknown.
    pub input_tokens: u32,
    /// Output tokens as the provider counted them; 0: unknown.
    pub output_tokens: u32,
}

/// Why a completion failed. The list is closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CompletionErrorCode {
    /// The API key was rejected.
    Auth,
    /// The provider's policy forbids the request.
    Policy,
    /// Too many requests.
    RateLimited,
    /// The model did not answer in time.
    Timeout,
    /// The prompt is larger than the model's window.
    ContextTooLong,
    /// The provider could not be reached.
    Unavailable,
    /// Any other failure.
    Other,
}

impl CompletionErrorCode {
    /// Returns the code as JSON writes it, for example `rate-limited`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Policy => "policy",
            Self::RateLimited => "rate-limited",
            Self::Timeout => "timeout",
            Self::ContextTooLong => "context-too-long",
            Self::Unavailable => "unavailable",
            Self::Other => "other",
        }
    }
}

/// A failed completion.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CompletionError {
    /// The kind of the failure.
    pub code: CompletionErrorCode,
    /// One line for a person.
    pub message: String,
    /// Time after which the provider allows a retry, in milliseconds from now; `None`: unknown.
    pub retry_after_ms: Option<u64>,
}

/// The result of a completion request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CompletionResult {
    /// The model answered.
    Done(Completion),
    /// The request failed.
    Failed(CompletionError),
}

/// A model whose calls may block; only the export `run` uses a model in this way.
pub trait Model {
    /// Answers one request.
    fn complete(&mut self, request: &CompletionRequest) -> CompletionResult;
}
