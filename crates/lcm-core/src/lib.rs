#![no_std]
#![forbid(unsafe_code)]
//! The engine of Lossless Context Management (LCM), a library without I/O.
//!
//! A conversation is an append-only sequence of messages. Its *context* is an ordered list of
//! items, each a run of raw messages, a summary or withdrawn messages; together the items cover
//! every message exactly once. Compaction replaces items by a summary of them. Assembly renders as
//! many items as fit a token budget. Expansion leads from a summary back to the original bytes.
//!
//! All calls are methods of [`Engine`]. Most calls take a [`Store`], arguments and the time. A call
//! makes at most one commit, as its last store call. The engine has no clock, no randomness and no
//! thread, so the same calls with the same completions give the same store bytes everywhere.

extern crate alloc;

mod admin;
mod agent_tools;
mod ask;
mod assembly;
mod compaction;
mod drive;
pub mod engine;
mod ingest;
mod recall;
mod search;
mod storage;

pub use engine::Engine;
pub use lcm_text::{
    base::error::{Error, ErrorCode, Result},
    types::model::Model,
};
pub use storage::store::{self, Store};
