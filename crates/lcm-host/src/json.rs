//! Parses JSON results of the component for the other modules.

use crate::error::{Error, Result};

/// Parses the result of `function`; a failure is a bug of the component or of this host.
pub(crate) fn read<'a, T: serde::Deserialize<'a>>(function: &str, text: &'a str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::internal(format!("`{function}` returned unexpected JSON: {error}")))
}
