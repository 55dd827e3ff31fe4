//! The error type of this program: a line for a person.

use std::fmt::Display;

/// An error message of one line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Failure(pub(crate) String);

/// The result of everything that can fail.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<lcm_host::Error> for Failure {
    fn from(error: lcm_host::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<lcm_core::Error> for Failure {
    fn from(error: lcm_core::Error) -> Self {
        Self(error.to_string())
    }
}

/// Returns an error with this text.
pub(crate) fn failure<T>(text: impl Into<String>) -> Result<T> {
    Err(Failure(text.into()))
}

/// Returns a function that adds `doing`, the failed action, before an error.
pub(crate) fn context<E: Display>(doing: impl Into<String>) -> impl FnOnce(E) -> Failure {
    let doing = doing.into();
    move |error| Failure(format!("{doing}: {error}"))
}
