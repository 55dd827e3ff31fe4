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
pub mod api;
mod ask;
mod assembly;
mod calibration;
mod codec;
mod compaction;
pub mod config;
mod context;
mod debt;
mod deflate;
mod drive;
pub mod engine;
pub mod error;
mod explore;
pub mod extract;
mod focus;
mod grants;
mod head;
mod history;
mod ingest;
pub mod json;
mod keys;
mod life;
mod limits;
pub mod message;
pub mod model;
mod num;
mod order;
mod pack;
mod pattern;
mod payload;
pub mod prompts;
mod reader;
mod recall;
mod rules;
mod seal;
mod sealed;
mod search;
pub mod source;
pub mod store;
mod summary;
mod tail;
pub mod time;
pub mod tokens;
mod tool_format;
mod tools;
pub mod trust;
mod usage;
mod validate;
pub mod verify;

pub use engine::Engine;
pub use error::{Error, ErrorCode, Result};
pub use model::Model;
pub use store::Store;
