#![expect(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "only tests use this crate; a panic in it is a failed test"
)]
//! Shared parts of the tests of `lcm-core`: stores that count, fail or block, a scripted model, the
//! runner of the golden vectors (test cases as JSON), and the simulator.
//!
//! Keys and values of the engine are opaque here, except for planted bugs that select a kind of key
//! (see [`plant`]).

pub mod digest;
pub mod facade;
pub mod fault_store;
pub mod host;
pub mod interleave;
pub mod json;
pub mod matching;
pub mod model_store;
pub mod mutate;
pub mod offline;
pub mod plant;
pub mod scripted_model;
pub mod simulation;
pub mod tool_form;
pub mod transcripts;
pub mod vector;
pub mod vector_runner;
pub mod would_block_store;

pub use fault_store::{Fault, FaultStore};
pub use host::Host;
pub use json::Json;
pub use model_store::{CallCounts, ModelStore};
pub use would_block_store::WouldBlockStore;
