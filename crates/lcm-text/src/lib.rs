#![no_std]
#![forbid(unsafe_code)]
//! Pure functions on text: parses messages, makes and checks summaries, reads the configuration.
//!
//! Input: texts, values and the configuration. Output: values. No function here knows a store, a
//! clock or a host. The crate graph enforces this direction: `lcm-core` depends on this crate, and
//! this crate depends only on `lcm-loops`.

extern crate alloc;

pub mod base;
pub mod config;
pub mod message;
pub mod summary;
pub mod types;
