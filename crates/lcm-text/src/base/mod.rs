//! Helpers without a dependency: errors, integers, sorting, limits, time, JSON, tokens, hashes,
//! compression.

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
pub mod tokens;
