//! The records of a conversation beside head, messages and summaries, one module for each kind.
//!
//! Each module has the fields of a record, its key and its bounds. Operations read and write them.

pub(crate) mod attempts;
pub(crate) mod calibration;
pub(crate) mod deferred;
pub(crate) mod focus;
pub(crate) mod grants;
pub(crate) mod identity;
pub(crate) mod large_payload;
pub(crate) mod link;
pub(crate) mod model_breaker;
pub(crate) mod question;
pub(crate) mod remakes;
pub(crate) mod session;
pub(crate) mod summary_counts;
pub(crate) mod system_slot;
pub(crate) mod tombstone;
pub(crate) mod upload;
pub(crate) mod usage;
pub(crate) mod withdrawals;
