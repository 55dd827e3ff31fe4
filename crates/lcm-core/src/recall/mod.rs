//! Recall: from the context back to what was said.
//!
//! In: ids of a conversation, and a grant or none. Out: JSON with texts, cut to what the grant
//! leaves, which is charged in the one commit of the call. Not here: what limits a read
//! ([`crate::storage::read_scope`]), searches ([`crate::search::grep`]), and what a model is told
//! ([`crate::agent_tools`]).

mod describe;
mod embed;
mod expand;
mod messages;

pub(crate) use describe::{describe, described, row};
pub(crate) use embed::embed;
pub(crate) use expand::{Expansion, expand, expanded};
use lcm_text::base::{error::Result, json::Fields};
pub(crate) use messages::messages;

/// Name of the argument that holds options.
const OPTIONS: &str = "options-json";

/// Options as JSON; an empty text means none.
fn options(options_json: &str) -> Result<Fields<'_>> {
    let none = options_json.trim().is_empty();
    Fields::of_argument(OPTIONS, if none { "{}" } else { options_json })
}
