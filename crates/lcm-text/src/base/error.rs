//! The error type of the engine: a code for programs and a message for people.
//!
//! A message is one line that begins in lower case and has no final full stop. Ids are in
//! backticks. `docs/operations.md` describes how a host should react to each code.

use alloc::{boxed::Box, string::String};
use core::{fmt, ops::Deref};

/// The kind of a failure. The list is closed: a new code would break the bindings of every host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ErrorCode {
    /// The arguments are invalid; the same call would fail again.
    InvalidInput,
    /// A conversation, message, summary, file or cursor that the call names does not exist.
    NotFound,
    /// The call would create what exists already, such as a conversation.
    Exists,
    /// The call exceeds a documented bound; the message names the bound.
    LimitExceeded,
    /// The request is valid, but this version does not offer it, or a stored record has a newer
    /// format.
    Unsupported,
    /// A grant does not allow the call, the conversation is archived or being deleted, or the
    /// configuration stores nothing of its session. The code is the same for expired, exhausted,
    /// revoked and foreign grants.
    Denied,
    /// Another commit changed the conversation first. Nothing was written; repeat the call.
    Conflict,
    /// The store failed. If a commit failed, the store may contain the commit or not.
    StoreUnavailable,
    /// The store must first fetch the values that the call reads. Nothing was written; repeat the
    /// call.
    WouldBlock,
    /// The provider of the model could not be reached or refused the request.
    CompletionFailed,
    /// Stored records are damaged, missing, or contradict each other.
    Corrupt,
}

impl ErrorCode {
    /// Returns the code as the command line and JSON write it, for example `invalid-input`.
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

/// A failed call. Programs read `code`, people read `message`; both are fields of [`Failure`].
///
/// The type is one pointer wide, so that every `Result` stays small. An allocation for an error is
/// acceptable, because no fast path returns errors.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}: {}", self.code.as_str(), self.message)]
pub struct Error(Box<Failure>);

/// The code and the message of an [`Error`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The kind of the failure.
    pub code: ErrorCode,
    /// One line for a person that names the field, id or bound.
    pub message: String,
}

impl Deref for Error {
    type Target = Failure;

    fn deref(&self) -> &Failure {
        &self.0
    }
}

/// The result of every fallible call of the engine.
pub type Result<T> = core::result::Result<T, Error>;

/// A message of an error: a text, or `format_args!`, which is formatted only when an error is made.
pub trait ErrorMessage {
    /// Returns an error with this message and this code.
    fn into_error(self, code: ErrorCode) -> Error;
}

impl ErrorMessage for String {
    #[cold]
    #[inline(never)]
    fn into_error(self, code: ErrorCode) -> Error {
        Error(Box::new(Failure { code, message: self }))
    }
}

impl ErrorMessage for &str {
    #[cold]
    #[inline(never)]
    fn into_error(self, code: ErrorCode) -> Error {
        String::from(self).into_error(code)
    }
}

impl ErrorMessage for fmt::Arguments<'_> {
    #[cold]
    #[inline(never)]
    fn into_error(self, code: ErrorCode) -> Error {
        alloc::fmt::format(self).into_error(code)
    }
}

impl Error {
    /// Creates an error of this code with this message.
    pub fn new(code: ErrorCode, message: impl ErrorMessage) -> Self {
        message.into_error(code)
    }

    /// Returns the code and the message, owned.
    #[must_use]
    pub fn into_failure(self) -> Failure {
        *self.0
    }

    /// Returns an `invalid-input` error.
    pub fn invalid_input(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::InvalidInput)
    }

    /// Returns a `corrupt` error.
    pub fn corrupt_store(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::Corrupt)
    }

    /// Returns a `conflict` error.
    pub fn revision_conflict(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::Conflict)
    }

    /// Returns a `limit-exceeded` error.
    pub fn limit_exceeded(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::LimitExceeded)
    }

    /// Returns a `not-found` error.
    pub fn not_found(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::NotFound)
    }

    /// Returns an `unsupported` error.
    pub fn not_supported(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::Unsupported)
    }
}
