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

pub mod api;
pub mod config;
pub mod engine;
pub mod error;
pub mod extract;
pub mod json;
pub mod message;
pub mod model;
pub mod prompts;
pub mod source;
pub mod store;
pub mod time;
pub mod tokens;

pub use engine::Engine;
pub use error::{Error, ErrorCode, Result};
pub use model::Model;
pub use store::Store;
