//! What crosses between the engine and a language model: a request, and what came of it.
//!
//! The engine never calls a model inside a decision. It hands out [`CompletionRequest`]s as data
//! and takes [`CompletionResult`]s back; [`Model`] exists for hosts in which a call may block.

use alloc::string::String;

/// What a completion is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// A summary of messages.
    Leaf,
    /// A summary of summaries.
    Condensed,
    /// A description of a large file.
    File,
    /// An answer from expanded evidence.
    Ask,
    /// A focus brief.
    Focus,
}

/// How hard a summary was squeezed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// The ordinary prompt.
    Normal,
    /// The prompt that keeps durable facts only.
    Aggressive,
    /// Made without the model, deterministic and extractive.
    Fallback,
}

/// Temperatures in thousandths (behaviour reference, section 0).
const TEMPERATURE_NORMAL: u32 = 200;
const TEMPERATURE_STRICT: u32 = 100;

impl Level {
    /// The sampling temperature of a request of this level, in thousandths.
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
    /// It was done.
    Stop,
    /// It met its output limit.
    Length,
    /// It refused.
    Refusal,
}

/// What the engine wants from a language model.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CompletionRequest {
    /// Self-contained task token, ASCII, at most 200 bytes; `apply` needs nothing else.
    pub id: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Which prompt was chosen.
    pub level: Level,
    /// System text.
    pub system: String,
    /// User text: instructions and the material between markers.
    pub prompt: String,
    /// Estimated tokens of `system` and `prompt` together.
    pub input_tokens: u32,
    /// The most tokens the model may write, reasoning included.
    pub output_tokens_max: u32,
    /// Sampling temperature in thousandths.
    pub temperature_permille: u32,
    /// The model the configuration names for this purpose; `None`: the host chooses.
    pub model: Option<String>,
}

/// What a model wrote.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Completion {
    /// The text.
    pub text: String,
    /// Why it stopped.
    pub finish: Finish,
    /// The model that answered.
    pub model: String,
    /// Tokens it read, as the provider counted them; 0 when unknown.
    pub input_tokens: u32,
    /// Tokens it wrote, as the provider counted them; 0 when unknown.
    pub output_tokens: u32,
}

/// Why there is no completion. Closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CompletionErrorCode {
    /// The key was refused.
    Auth,
    /// The provider's policy forbids it.
    Policy,
    /// Too many requests.
    RateLimited,
    /// No answer in time.
    Timeout,
    /// The prompt is larger than the model's window.
    ContextTooLong,
    /// The provider could not be reached.
    Unavailable,
    /// Anything else.
    Other,
}

impl CompletionErrorCode {
    /// The code as documents and the interface spell it.
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
    /// Why.
    pub code: CompletionErrorCode,
    /// One line for a person.
    pub message: String,
    /// When the provider wants to be asked again, in milliseconds from now; `None`: not said.
    pub retry_after_ms: Option<u64>,
}

/// What came of a completion request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CompletionResult {
    /// The model answered.
    Done(Completion),
    /// It did not.
    Failed(CompletionError),
}

/// A model that may block. Only `run` uses it.
pub trait Model {
    /// Answers one request.
    fn complete(&mut self, request: &CompletionRequest) -> CompletionResult;
}
