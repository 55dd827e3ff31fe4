//! Administration: status, listings, check, digest, export, import, and the commands of a
//! conversation (session lifecycle, calibration, usage and advice, focus brief, maintenance,
//! remakes, rewind, deletion, prompts).
//!
//! In: a conversation or the whole store, and arguments as JSON. Out: reports as JSON. The engine's
//! facade calls these functions for the interface `admin`.

mod calibration;
mod check;
mod commands;
mod cursor;
mod deletion;
mod digest;
mod export;
mod export_format;
mod focus;
mod import;
mod listing;
mod maintenance;
mod prompts;
mod resummarize;
mod rewind;
mod session;
mod status;
mod usage;

pub(crate) use check::check;
pub(crate) use commands::{find_live, list_prompts, run_command};
pub(crate) use cursor::ensure_no_cursor;
pub(crate) use digest::digest;
pub(crate) use export::export_page;
pub(crate) use import::import_page;
pub(crate) use listing::{ListingRequest, list_page};
pub(crate) use status::{conversation_status, store_status};
