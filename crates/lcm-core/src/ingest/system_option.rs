//! The option `system` of an append: a system prompt beside the list.
//!
//! In: a JSON value. Out: a message with its dialect, which [`super::system_messages`] stores.

use alloc::{format, string::String};

use lcm_text::{
    base::{
        error::{Error, Result},
        json::{self, JsonFields, JsonKind},
    },
    types::api::Dialect,
};

/// Most bytes of the option, so that it fits a commit beside the messages of a call.
const OPTION_BYTES_MAX: usize = 192 << 10;

/// The option `system` of an append: a message, and the dialect in which it is read.
pub(super) struct SystemOption {
    pub(super) dialect: Dialect,
    pub(super) raw: String,
}

impl SystemOption {
    /// Takes the option: a text, a list of content blocks as of Anthropic, or an object with
    /// `parts` as of Gemini; `None`: absent or null.
    ///
    /// # Errors
    ///
    /// `invalid-input`: something else; `limit-exceeded`: more than 192 KiB.
    pub(super) fn take(fields: &mut JsonFields<'_>) -> Result<Option<Self>> {
        let Some((value, kind)) = fields.take_any("system") else { return Ok(None) };
        if value.len() > OPTION_BYTES_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "`system` must have at most {OPTION_BYTES_MAX} bytes, got {}; put longer system \
                 messages at the beginning of `messages`",
                value.len()
            )));
        }
        let (dialect, name, content) = match kind {
            JsonKind::Null => return Ok(None),
            JsonKind::String => {
                let mut text = String::with_capacity(value.len() + 2);
                json::write_string(&mut text, &value);
                (Dialect::Lcm, "content", text)
            }
            JsonKind::Array => (Dialect::Anthropic, "content", value.into_owned()),
            JsonKind::Object => {
                let mut object = JsonFields::parse_argument("system", &value)?;
                let parts = object.take_any("parts").filter(|(_, kind)| *kind == JsonKind::Array);
                let Some((parts, _)) = parts else { return Err(option_error()) };
                (Dialect::Gemini, "parts", parts.into_owned())
            }
            _ => return Err(option_error()),
        };
        Ok(Some(Self { dialect, raw: format!("{{\"role\":\"system\",\"{name}\":{content}}}") }))
    }
}

/// Builds the error for a value of another form.
pub(super) fn option_error() -> Error {
    Error::invalid_input(
        "`system` must be a text, a list of text blocks, or an object with `parts`, a list of \
         objects with a `text`",
    )
}
