//! Recall: reading stored messages, summaries and files by their ids.
//!
//! In: ids of a conversation, and optionally a grant. Out: JSON with texts, cut to the tokens left
//! of the grant. The one commit of the call charges the grant. Not here: the limits of a read
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
