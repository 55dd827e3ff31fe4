//! Administration: what is stored, whether it is sound, and its digest.

mod check;
mod digest;
mod listing;
mod status;

pub(crate) use check::check;
pub(crate) use digest::digest;
pub(crate) use listing::listing;
pub(crate) use status::status;
