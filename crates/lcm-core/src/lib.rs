#![no_std]
#![forbid(unsafe_code)]
//! All decisions of Lossless Context Management, as a library without I/O.
//!
//! A conversation is a sequence of messages that is only ever appended to. Its *context* is an
//! ordered list of items, each a run of raw messages or a summary, that together stand for every
//! message exactly once. Compaction replaces items by a summary of them; assembly renders as many
//! items as fit a token budget; expansion goes from a summary back to the original bytes.
//!
//! Everything goes through [`Engine`]: it takes a [`Store`], arguments and the time, makes at most
//! one commit, and that as its last store call. It knows no clock, no randomness and no thread, so
//! the same calls give the same store bytes everywhere.

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
