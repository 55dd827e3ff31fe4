#![no_std]
#![forbid(unsafe_code)]
//! Pure functions on text: what the engine reads in messages and in summaries, and what it writes.
//!
//! In: texts, values and the configuration. Out: values. Nothing here knows a store, a clock or a
//! host: the crate graph enforces the direction, because `lcm-core` depends on this crate and this
//! crate depends only on `lcm-loops`.

extern crate alloc;

pub mod base;
pub mod config;
pub mod message;
pub mod summary;
pub mod types;
