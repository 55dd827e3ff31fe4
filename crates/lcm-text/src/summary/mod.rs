//! Everything that is read and written to make a summary, without a store.

pub mod offline_summary;
pub mod prompts;
pub mod transcript;
pub mod verify;
