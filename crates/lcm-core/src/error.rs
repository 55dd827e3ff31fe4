//! The one error type of the engine: a code for programs, a message for people.
//!
//! Messages are lower case, one line, without full stop; ids stand in backticks. Nothing here says
//! what a host should do about a code: that table is in `ARCHITECTURE.md`.

use alloc::string::String;

/// What kind of failure an [`Error`] is. Closed: adding a case breaks every binding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ErrorCode {
    /// The arguments cannot be meant; repeating the call cannot help.
    InvalidInput,
    /// The conversation, message, summary or file does not exist.
    NotFound,
    /// Something of that name exists already.
    Exists,
    /// A documented bound would be passed; the message names it.
    LimitExceeded,
    /// Understood, but not offered by this version.
    Unsupported,
    /// A grant does not allow it. One code for expired, exhausted, revoked and foreign.
    Denied,
    /// Another instance committed first. Nothing was written; repeat the call.
    Conflict,
    /// The store failed. After a commit the outcome is unknown.
    StoreUnavailable,
    /// The store has to fetch what was asked first. Nothing was written or changed.
    WouldBlock,
    /// The model could not be reached or refused to serve.
    CompletionFailed,
    /// Stored content contradicts itself.
    Corrupt,
}

impl ErrorCode {
    /// The code as the command line and JSON write it, for example `invalid-input`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid-input",
            Self::NotFound => "not-found",
            Self::Exists => "exists",
            Self::LimitExceeded => "limit-exceeded",
            Self::Unsupported => "unsupported",
            Self::Denied => "denied",
            Self::Conflict => "conflict",
            Self::StoreUnavailable => "store-unavailable",
            Self::WouldBlock => "would-block",
            Self::CompletionFailed => "completion-failed",
            Self::Corrupt => "corrupt",
        }
    }
}

/// A failed call. Programs read `code`, people read `message`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct Error {
    /// What kind of failure it is.
    pub code: ErrorCode,
    /// One line for a person, naming the field, id or bound.
    pub message: String,
}

/// The result of every fallible call of the engine.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// An error of this code with this message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// An `invalid-input` error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidInput, message)
    }

    /// A `corrupt` error.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Corrupt, message)
    }

    /// A `conflict` error.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Conflict, message)
    }

    /// A `limit-exceeded` error.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::LimitExceeded, message)
    }

    /// A `not-found` error.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    /// An `unsupported` error.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unsupported, message)
    }
}
