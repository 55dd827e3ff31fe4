//! Making a summary without a store: prompts, transcript, offline summariser, verifier.

pub mod offline_summary;
pub mod prompts;
pub mod transcript;
pub mod verify;
