//! Converts between ISO 8601 text and milliseconds since the Unix epoch.
//!
//! Dates are in the proleptic Gregorian calendar; output is in UTC. Named time zones are not
//! supported. No function reads a clock.

use alloc::{format, string::String};

/// Milliseconds since the Unix epoch, UTC.
pub type Timestamp = u64;

/// Stands for a time that is not known, such as the time of a message in a file without times. Many
/// hosts write 0 for a time that they do not know.
pub const UNDATED: Timestamp = 0;

/// The last millisecond of the year 9999.
pub const MS_MAX: Timestamp = 253_402_300_799_999;

/// Milliseconds in one day.
pub const MS_PER_DAY: u64 = 86_400_000;

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Days in 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// Parses an ISO 8601 date, or date and time, into milliseconds since the epoch.
///
/// The date is `2026-01-02` or `20260102`. `T`, `t` or one space separates the date from the time:
/// `03:04`, `03:04:05`, `03:04:05.678`, with a comma for the point, or without colons. Digits
/// beyond milliseconds are dropped; second 60 is second 0 of the next minute. The zone is `Z`, `z`,
/// `+01:00`, `+0100` or `+01`, also with `-`; without a zone the time is UTC. Whitespace around the
/// text is ignored.
///
/// `None`: any other text, or a time outside the years 1970 to 9999 UTC.
///
/// ```
/// use lcm_text::base::time;
///
/// assert_eq!(time::parse("1970-01-02"), Some(time::MS_PER_DAY));
/// assert_eq!(time::parse("1970-01-01T01:00:00.5+01:00"), Some(500));
/// assert_eq!(time::parse("yesterday"), None);
/// ```
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    let mut reader = TimeParser { rest: text.trim() };
    let year = reader.take_digits(4)?;
    let dashes = reader.take_char('-');
    let month = reader.take_digits(2)?;
    if dashes && !reader.take_char('-') {
        return None;
    }
    let day = reader.take_digits(2)?;
    let days = days_from_civil(year, month, day)?;
    if reader.rest.is_empty() {
        return to_timestamp(days, 0);
    }
    if !(reader.take_char('T') || reader.take_char('t') || reader.take_char(' ')) {
        return None;
    }
    let ms = reader.take_time_of_day()?;
    let offset_minutes = reader.take_offset_minutes()?;
    if !reader.rest.is_empty() {
        return None;
    }
    to_timestamp(days, ms - offset_minutes * 60_000)
}

/// Formats a time as `2026-01-02T03:04:05.678Z`; a year after 9999 has more digits.
#[must_use]
pub fn iso_millis(ms: Timestamp) -> String {
    format!("{}.{:03}Z", iso_seconds(ms), ms % 1000)
}

/// Formats a time as `2026-01-02T03:04:05` in UTC without a zone.
#[must_use]
pub fn iso_seconds(ms: Timestamp) -> String {
    let (date, hour, minute) = split_date_and_minutes(ms);
    format!("{date}T{hour:02}:{minute:02}:{:02}", ms / 1000 % 60)
}

/// Formats a time as `2026-01-02 03:04` in UTC without a zone, for prompts.
#[must_use]
pub fn iso_minutes(ms: Timestamp) -> String {
    let (date, hour, minute) = split_date_and_minutes(ms);
    format!("{date} {hour:02}:{minute:02}")
}

fn split_date_and_minutes(ms: Timestamp) -> (String, u64, u64) {
    (format_date(ms), ms / 3_600_000 % 24, ms / 60_000 % 60)
}

/// Formats the date of a time as `2026-01-02`, in UTC.
fn format_date(ms: Timestamp) -> String {
    let (year, month, day) = civil_from_days(ms / MS_PER_DAY);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns the earliest and the latest of times, without the undated ones; twice [`UNDATED`]: no
/// time is dated.
pub fn find_range(times: impl Iterator<Item = Timestamp>) -> (Timestamp, Timestamp) {
    times.filter(|time| *time != UNDATED).fold((UNDATED, UNDATED), |(earliest, latest), time| {
        (if earliest == UNDATED { time } else { earliest.min(time) }, latest.max(time))
    })
}

/// Returns year, month and day for a number of days since the epoch.
pub const fn civil_from_days(days: u64) -> (u64, u64, u64) {
    // The calculation begins each year on 1 March, so that the leap day is the last day.
    let days = days.saturating_add(EPOCH_DAYS.unsigned_abs());
    let era = days / ERA_DAYS.unsigned_abs();
    let day_of_era = days % ERA_DAYS.unsigned_abs();
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// Returns the days since the epoch for a date; `None`: the date does not exist or is before the
/// epoch.
pub fn epoch_day_of_date(year: u64, month: u64, day: u64) -> Option<u64> {
    let [year, month, day] = [year, month, day].map(|number| i64::try_from(number).ok());
    u64::try_from(days_from_civil(year?, month?, day?)?).ok()
}

/// Returns the days since the epoch for a date, negative before the epoch; `None`: the date does
/// not exist.
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * ERA_DAYS + day_of_era - EPOCH_DAYS)
}

fn to_timestamp(days: i64, ms: i64) -> Option<Timestamp> {
    let ms_per_day = i64::try_from(MS_PER_DAY).ok()?;
    u64::try_from(days * ms_per_day + ms).ok().filter(|&ms| ms <= MS_MAX)
}

struct TimeParser<'a> {
    rest: &'a str,
}

impl TimeParser<'_> {
    fn take_char(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.rest = rest;
        digits.parse().ok()
    }

    fn starts_with_digit(&self) -> bool {
        self.rest.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Reads a time of day as milliseconds since midnight; `None`: no valid time.
    fn take_time_of_day(&mut self) -> Option<i64> {
        let hour = self.take_digits(2)?;
        let colons = self.take_char(':');
        let minute = self.take_digits(2)?;
        let has_seconds = if colons { self.take_char(':') } else { self.starts_with_digit() };
        let second = if has_seconds { self.take_digits(2)? } else { 0 };
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let mut ms = ((hour * 60 + minute) * 60 + second) * 1000;
        if has_seconds && (self.take_char('.') || self.take_char(',')) {
            let mut scale = 100;
            ms += self.take_digits(1)? * scale;
            while self.starts_with_digit() {
                scale /= 10;
                ms += self.take_digits(1)? * scale;
            }
        }
        Some(ms)
    }

    /// Reads the zone as minutes ahead of UTC, negative behind UTC, 0 at the end of the text;
    /// `None`: no valid zone.
    fn take_offset_minutes(&mut self) -> Option<i64> {
        if self.rest.is_empty() || self.take_char('Z') || self.take_char('z') {
            return Some(0);
        }
        let sign = if self.take_char('+') {
            1
        } else if self.take_char('-') {
            -1
        } else {
            return None;
        };
        let hours = self.take_digits(2)?;
        let minutes =
            if self.take_char(':') || self.starts_with_digit() { self.take_digits(2)? } else { 0 };
        (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW_YEAR: u64 = 1_767_323_045_678;

    #[test]
    fn reads_the_forms_of_iso_8601() {
        for text in [
            "2026-01-02T03:04:05.678Z",
            "2026-01-02T03:04:05.678",
            "2026-01-02 03:04:05,678999z",
            "2026-01-02t04:04:05.678+01:00",
            "2026-01-01T21:34:05.678-0530",
            "2026-01-02T05:04:05.678+02",
            "20260102T030405.678Z",
            " 2026-01-02T03:04:05.678Z\n",
        ] {
            assert_eq!(parse(text), Some(NEW_YEAR), "{text}");
        }
        assert_eq!(parse("2026-01-02T03:04:05Z"), Some(NEW_YEAR - 678));
        assert_eq!(parse("2026-01-02T03:04"), Some(NEW_YEAR - 5678));
        assert_eq!(parse("2026-01-02T03:04+00:00"), Some(NEW_YEAR - 5678));
        assert_eq!(parse("2026-01-02"), Some(20_455 * MS_PER_DAY));
        assert_eq!(parse("2026-01-02T03:04:05.6Z"), Some(NEW_YEAR - 78));
        assert_eq!(parse("2016-12-31T23:59:60Z"), parse("2017-01-01T00:00:00Z"));
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in [
            "",
            "2026",
            "2026-01",
            "2026-1-2",
            "2026-0102",
            "2026-00-01",
            "2026-13-01",
            "2026-02-29",
            "1900-02-29",
            "2026-04-31",
            "2026-01-00",
            "2026-01-02T",
            "2026-01-02T3:04",
            "2026-01-02T24:00",
            "2026-01-02T03:60",
            "2026-01-02T03:04:61",
            "2026-01-02T03:04:",
            "2026-01-02T03:04:05.",
            "2026-01-02T03:04.5",
            "2026-01-02T03:04:05+1",
            "2026-01-02x03:04",
            "2026-01-02T03:04:05+24:00",
            "2026-01-02T03:04:05ZZ",
            "2026-01-02T03:04:05 UTC",
            "1969-12-31T23:59:59.999Z",
            "9999-12-31T23:59:59-01:00",
            "-2026-01-02",
            "yesterday",
            "2026-01-0\u{e9}",
            "\u{661}970-01-01",
            "20\u{e9}26",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_bounds_are_1970_and_9999() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse("1969-12-31T23:30:00-01:00"), Some(30 * 60_000));
        assert_eq!(parse("9999-12-31T23:59:59.999Z"), Some(MS_MAX));
        assert_eq!(iso_millis(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_millis(MS_MAX), "9999-12-31T23:59:59.999Z");
        assert!(iso_millis(u64::MAX).ends_with("51.615Z"));
    }

    #[test]
    fn writes_three_forms() {
        assert_eq!(iso_millis(NEW_YEAR), "2026-01-02T03:04:05.678Z");
        assert_eq!(iso_seconds(NEW_YEAR), "2026-01-02T03:04:05");
        assert_eq!(iso_minutes(NEW_YEAR), "2026-01-02 03:04");
        assert_eq!(iso_millis(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso_millis(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn days_read_back_in_order() {
        // Goal: each day of 400 years, after which the calendar repeats, and some of the rest.
        let mut previous = String::new();
        let last = MS_MAX / MS_PER_DAY;
        for day in (0..146_097).chain((146_097..last).step_by(97)).chain([last]) {
            let text = iso_millis(day * MS_PER_DAY);
            assert_eq!(parse(&text), Some(day * MS_PER_DAY), "{text}");
            assert!(text > previous);
            previous = text;
        }
    }
}
