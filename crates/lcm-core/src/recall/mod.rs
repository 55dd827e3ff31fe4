//! Recall: from the context back to what was said.
//!
//! In: ids of a conversation, and a grant or none. Out: JSON with texts, cut to what the grant
//! leaves, which is charged in the one commit of the call. Not here: what limits a read
//! ([`crate::storage::read_scope`]), searches ([`crate::search::grep`]), and what a model is told
//! ([`crate::agent_tools`]).

mod describe;
mod describe_file;
mod embed;
mod expand;
mod messages;

pub(crate) use describe::{describe, describe_uncharged, render_message_row};
pub(crate) use describe_file::{CONTENT_BYTES_MAX, CONTENT_BYTES_MIN};
pub(crate) use embed::embed;
pub(crate) use expand::{ExpandOptions, expand, expand_uncharged};
use lcm_text::base::{error::Result, json::JsonFields};
pub(crate) use messages::read_messages;

/// Name of the argument that holds options.
const OPTIONS_ARGUMENT: &str = "options-json";

/// Options as JSON; an empty text means none.
fn parse_options(options_json: &str) -> Result<JsonFields<'_>> {
    let none = options_json.trim().is_empty();
    JsonFields::parse_argument(OPTIONS_ARGUMENT, if none { "{}" } else { options_json })
}
