#![no_std]
#![forbid(unsafe_code)]
//! Pure functions on text: parses messages, makes and checks summaries, reads the configuration.
//!
//! Input: texts, values and the configuration. Output: values. No function here uses a store, a
//! clock or a host. `lcm-core` depends on this crate; of the workspace, this crate depends only on
//! `lcm-loops`.

extern crate alloc;

pub mod base;
pub mod config;
pub mod message;
pub mod summary;
pub mod types;
