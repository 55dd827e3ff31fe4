//! Everything about a summary that needs no store: the text that a summariser reads, the prompts,
//! the offline summariser, the verifier and the rule for answers that say nothing. Compaction in
//! `lcm-core` uses all five.

pub mod blank_answer;
pub mod offline_summary;
pub mod prompts;
pub mod transcript;
pub mod verify;
