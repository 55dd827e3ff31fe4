//! Local time: a list of offsets to UTC, which a host makes from the name of a time zone.
//!
//! Stored times and times in results are in UTC; texts that people and models read are in local
//! time. The list comes from the host, because tables of time zones change: equal lists give equal
//! texts in every host.

use alloc::vec::Vec;

use super::time::Timestamp;

/// The offset from a time on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeOffset {
    /// First time of the offset, in milliseconds since the epoch.
    pub since: Timestamp,
    /// Milliseconds ahead of UTC, negative behind UTC.
    pub offset_ms: i64,
}

/// Offsets to UTC in the order of their times; empty: UTC.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TimeOffsets(Vec<TimeOffset>);

impl TimeOffsets {
    /// Creates a list; the offsets are in the order of their times.
    #[must_use]
    pub const fn new(offsets: Vec<TimeOffset>) -> Self {
        Self(offsets)
    }

    /// Returns a time whose UTC form is the local form of `time`. Before the first offset of the
    /// list, its first offset applies. No result is before the epoch.
    #[must_use]
    pub fn to_local(&self, time: Timestamp) -> Timestamp {
        let next = self.0.partition_point(|offset| offset.since <= time);
        let offset = self.0.get(next.saturating_sub(1));
        time.saturating_add_signed(offset.map_or(0, |offset| offset.offset_ms))
    }
}
