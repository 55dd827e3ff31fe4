//! Helpers for all other folders: errors, integers, sorting, limits, time, JSON, tokens, hashes,
//! compression, name patterns. No helper imports another folder of this crate.

pub mod deflate;
pub mod derivation_version;
pub mod error;
pub mod glob;
pub mod hash;
pub mod int;
pub mod json;
pub mod limits;
pub mod sort;
pub mod time;
pub mod time_offsets;
pub mod tokens;
