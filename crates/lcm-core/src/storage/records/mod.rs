//! Records beside the head, one module each.

pub(crate) mod calibration;
pub(crate) mod deferred;
pub(crate) mod focus;
pub(crate) mod grants;
pub(crate) mod large_payload;
pub(crate) mod question;
pub(crate) mod session;
pub(crate) mod usage;
