//! The one error type of the engine: a code for programs, a message for people.
//!
//! Messages are lower case, one line, without full stop; ids stand in backticks. Nothing here says
//! what a host should do about a code: that table is in `ARCHITECTURE.md`.

use alloc::{boxed::Box, string::String};
use core::{fmt, ops::Deref};

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

/// A failed call. Programs read `code`, people read `message`; both are fields of [`Failure`].
///
/// One pointer wide: nearly every function of the engine hands errors on, and none is on a fast
/// path.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}: {}", self.code.as_str(), self.message)]
pub struct Error(Box<Failure>);

/// What an [`Error`] says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// What kind of failure it is.
    pub code: ErrorCode,
    /// One line for a person, naming the field, id or bound.
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

/// What a message is made of: a text, or what `format_args!` gives, which is written only here.
pub trait ErrorMessage {
    /// The error of this code with this message.
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
    /// An error of this code with this message.
    pub fn new(code: ErrorCode, message: impl ErrorMessage) -> Self {
        message.into_error(code)
    }

    /// What it says, to keep.
    #[must_use]
    pub fn into_failure(self) -> Failure {
        *self.0
    }

    /// An `invalid-input` error.
    pub fn invalid_input(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::InvalidInput)
    }

    /// A `corrupt` error.
    pub fn corrupt_store(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::Corrupt)
    }

    /// A `conflict` error.
    pub fn revision_conflict(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::Conflict)
    }

    /// A `limit-exceeded` error.
    pub fn limit_exceeded(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::LimitExceeded)
    }

    /// A `not-found` error.
    pub fn not_found(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::NotFound)
    }

    /// An `unsupported` error.
    pub fn not_supported(message: impl ErrorMessage) -> Self {
        message.into_error(ErrorCode::Unsupported)
    }
}
