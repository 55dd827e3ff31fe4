//! Parses JSON results of the component, and merges JSON objects, for the other modules.

use serde_json::Value;

use crate::error::{Error, Result};

/// Parses the result of `function`; a failure is a bug of the component or of this host.
pub(crate) fn read<'a, T: serde::Deserialize<'a>>(function: &str, text: &'a str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::internal(format!("`{function}` returned unexpected JSON: {error}")))
}

/// Returns the object `first` with the members of the object `second`, which replace equal names.
pub(crate) fn merge(mut first: Value, second: Value) -> Value {
    if let (Some(first), Value::Object(second)) = (first.as_object_mut(), second) {
        first.extend(second);
    }
    first
}
