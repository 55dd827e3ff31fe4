//! Records beside the head, one module each.

pub(crate) mod calibration;
pub(crate) mod deferred;
pub(crate) mod focus;
pub(crate) mod grants;
mod large_payload;
pub(crate) mod session;
pub(crate) mod usage;
