//! The error type of this crate: a code for programs, a message for people.
//!
//! In: errors of the component, traps, and failures of the host itself. Out: [`Error`], which every
//! fallible method returns.

use crate::bindings::types;

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Code {
    /// The caller asked to stop; earlier commits stay.
    Cancelled,
    /// The model failed: it could not be reached, refused, or gave no usable answer.
    CompletionFailed,
    /// The store has changed since the caller last saw it, such as by another writer who committed
    /// first, also after the repeats of the call; or another question is open. The call wrote
    /// nothing.
    Conflict,
    /// Stored content contradicts itself.
    Corrupt,
    /// A grant does not allow the call, the conversation is archived or being deleted, or the
    /// configuration stores nothing of its session.
    Denied,
    /// Something else is stored under this name or in this place already.
    Exists,
    /// A trap of the component, a bug, or a failure of the machine.
    Internal,
    /// The arguments are invalid; the same call would fail again.
    InvalidInput,
    /// The call would exceed a documented bound; the message names the bound.
    LimitExceeded,
    /// The conversation, message, summary, file or grant does not exist.
    NotFound,
    /// The store failed, is locked, or was opened before a fork of the process.
    StoreUnavailable,
    /// The request is valid, but this version does not offer it, or a stored record has a newer
    /// format.
    Unsupported,
    /// The store must fetch values first; the caller fetches them and repeats the call.
    WouldBlock,
}

impl Code {
    /// Returns the code as the command line and JSON write the code, for example `invalid-input`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::CompletionFailed => "completion-failed",
            Self::Conflict => "conflict",
            Self::Corrupt => "corrupt",
            Self::Denied => "denied",
            Self::Exists => "exists",
            Self::Internal => "internal",
            Self::InvalidInput => "invalid-input",
            Self::LimitExceeded => "limit-exceeded",
            Self::NotFound => "not-found",
            Self::StoreUnavailable => "store-unavailable",
            Self::Unsupported => "unsupported",
            Self::WouldBlock => "would-block",
        }
    }
}

impl Code {
    const ALL: [Self; 13] = [
        Self::Cancelled,
        Self::CompletionFailed,
        Self::Conflict,
        Self::Corrupt,
        Self::Denied,
        Self::Exists,
        Self::Internal,
        Self::InvalidInput,
        Self::LimitExceeded,
        Self::NotFound,
        Self::StoreUnavailable,
        Self::Unsupported,
        Self::WouldBlock,
    ];

    /// Returns the code of this name; `None`: no code has this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }
}

impl From<types::ErrorCode> for Code {
    fn from(code: types::ErrorCode) -> Self {
        match code {
            types::ErrorCode::InvalidInput => Self::InvalidInput,
            types::ErrorCode::NotFound => Self::NotFound,
            types::ErrorCode::Exists => Self::Exists,
            types::ErrorCode::LimitExceeded => Self::LimitExceeded,
            types::ErrorCode::Unsupported => Self::Unsupported,
            types::ErrorCode::Denied => Self::Denied,
            types::ErrorCode::Conflict => Self::Conflict,
            types::ErrorCode::StoreUnavailable => Self::StoreUnavailable,
            types::ErrorCode::WouldBlock => Self::WouldBlock,
            types::ErrorCode::CompletionFailed => Self::CompletionFailed,
            types::ErrorCode::Corrupt => Self::Corrupt,
        }
    }
}

/// A failed call. Programs read `code`, people read `message`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct Error {
    /// Kind of the failure.
    pub code: Code,
    /// One line for a person, naming the field, file or bound.
    pub message: String,
}

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error; each run of white space in the message becomes one space.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { code, message }
    }

    /// Returns the error of work that was asked to stop.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(Code::Cancelled, "stopped before the end; what was stored stays stored")
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }
}

impl From<types::Error> for Error {
    fn from(error: types::Error) -> Self {
        Self::new(error.code.into(), error.message)
    }
}
