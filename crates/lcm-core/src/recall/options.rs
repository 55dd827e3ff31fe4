//! Parser of the JSON options of `describe` and `expand`. Each of the two reads its own fields.

use lcm_text::base::{error::Result, json::JsonFields};

/// Name of the argument that holds the options.
pub(super) const OPTIONS_ARGUMENT: &str = "options-json";

/// Parses options; a blank text counts as `{}`.
pub(super) fn parse_options(options_json: &str) -> Result<JsonFields<'_>> {
    let is_blank = options_json.trim().is_empty();
    JsonFields::parse_argument(OPTIONS_ARGUMENT, if is_blank { "{}" } else { options_json })
}
