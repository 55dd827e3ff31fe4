//! Everything about a summary that needs no store: the text that a summariser reads, the prompts,
//! the offline summariser and the verifier. Compaction in `lcm-core` uses all four.

pub mod offline_summary;
pub mod prompts;
pub mod transcript;
pub mod verify;
