//! The offsets of a time zone to UTC as a list, which the engine takes as `time_offsets`.
//!
//! In: the name of a zone. Out: its offsets in the years 2000 to 2037; before and after, the first
//! and the last apply. Equal lists give equal texts in every host.

use jiff::{Timestamp, tz::TimeZone};

use crate::{
    error::{Code, Error, Result},
    shapes::TimeOffset,
};

/// 2000-01-01 and 2038-01-01 in seconds since the Unix epoch.
const FIRST_SECOND: i64 = 946_684_800;
const LAST_SECOND: i64 = 2_145_916_800;

/// Lists the offsets of a time zone by its name, ascending.
pub(crate) fn list_offsets(name: &str) -> Result<Vec<TimeOffset>> {
    let unknown = |_| {
        let message = format!("`timezone` must be the name of a time zone, got `{name}`");
        Error::new(Code::InvalidInput, message)
    };
    let zone = TimeZone::get(name).map_err(unknown)?;
    let first = Timestamp::from_second(FIRST_SECOND).map_err(unknown)?;
    let mut offsets = vec![TimeOffset { since: 0, minutes: minutes(&zone, first) }];
    let changes = zone.following(first).map(|change| change.timestamp());
    for at in changes.take_while(|at| at.as_second() <= LAST_SECOND) {
        let minutes = minutes(&zone, at);
        if offsets.last().is_some_and(|last| last.minutes != minutes) {
            let since = u64::try_from(at.as_millisecond()).unwrap_or(0);
            offsets.push(TimeOffset { since, minutes });
        }
    }
    Ok(offsets)
}

fn minutes(zone: &TimeZone, at: Timestamp) -> i64 {
    i64::from(zone.to_offset(at).seconds()).div_euclid(60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_a_list_of_its_changes() {
        let utc = list_offsets("UTC").unwrap();
        assert_eq!(utc, [TimeOffset { since: 0, minutes: 0 }]);
        let berlin = list_offsets("Europe/Berlin").unwrap();
        assert_eq!(berlin[0], TimeOffset { since: 0, minutes: 60 });
        assert!(berlin.contains(&TimeOffset { since: 1_774_746_000_000, minutes: 120 }));
        assert_eq!(berlin.len(), 77);
        assert_eq!(list_offsets("Asia/Kathmandu").unwrap()[0].minutes, 345);
        assert_eq!(list_offsets("America/Los_Angeles").unwrap()[0].minutes, -480);
        let error = list_offsets("Mars/Olympus").unwrap_err();
        assert_eq!(error.code, Code::InvalidInput);
    }
}
