//! Recall: reads of stored messages, summaries and files by id, and the vectors that a host
//! attaches to messages and summaries.
//!
//! In: ids of a conversation, and a grant or none. Out: JSON with texts, within the tokens left of
//! the grant. A read commits only the charge of a grant. Not here: the limits of a read
//! ([`crate::storage::read_scope`]), searches ([`crate::search::grep`]) and the answers of the
//! agent's tools ([`crate::agent_tools`]).

mod describe;
mod describe_file;
mod embed;
mod expand;
mod messages;
mod options;

pub(crate) use describe::{describe, describe_uncharged, render_message_row};
pub(crate) use describe_file::{CONTENT_BYTES_MAX, CONTENT_BYTES_MIN};
pub(crate) use embed::embed;
pub(crate) use expand::{ExpandOptions, expand, expand_uncharged};
pub(crate) use messages::read_messages;
