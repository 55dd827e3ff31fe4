//! Administration: what is stored, whether it is sound, its digest, its portable copy, and the life
//! of a session.

mod calibrate;
mod check;
mod cursor;
mod digest;
mod export;
mod focus;
mod import;
mod life;
mod listing;
mod maintain;
mod portable;
mod prompts;
mod status;
mod usage;
mod verbs;

pub(crate) use check::check;
pub(crate) use digest::digest;
pub(crate) use export::export_page;
pub(crate) use import::import_page;
pub(crate) use listing::list_page;
pub(crate) use status::status;
pub(crate) use verbs::run_command;
