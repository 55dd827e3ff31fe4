//! Dates that a question mentions, and how near the time of a message is to the date.
//!
//! Input: the text of a query, and the current time. Output: a date, and a score for the time of a
//! message. Recognises English names of months and weekdays, words such as `yesterday`, and ISO
//! 8601 dates, all in UTC. A date only raises scores; the filters `since:` and `before:` exclude
//! messages. Elsewhere: the weight of the score (`ranking`). Times of day are not recognised.

use alloc::vec::Vec;

use super::score::ONE;
use lcm_text::{
    base::time::{MS_PER_DAY, UNDATED, civil_from_days, epoch_day_of_date},
    types::api::Timestamp,
};

/// Words of a query that are searched for a date; later words are ignored.
const WORDS_MAX: usize = 64;
/// Abbreviated names of the months.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Full names of the months.
const MONTH_NAMES: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// Names of the weekdays.
const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/// Names of the numbers from 1 to 12.
const NUMBERS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

/// Date that a question mentions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum QueryDate {
    /// First and last day, both included, as days since the epoch.
    Days(u64, u64),
    /// Day of a month in any year; month and day count from 1.
    DayOfMonth { month: u64, day: u64 },
    /// Month of any year, from 1.
    Month(u64),
}

impl QueryDate {
    /// Finds the first date in a text written at `now`; `None`: the first 64 words have no date.
    pub(crate) fn from_text(text: &str, now: Timestamp) -> Option<Self> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let words = text.split(|c: char| !is_part(c)).filter(|word| !word.is_empty());
        let words: Vec<_> = words.take(WORDS_MAX).map(str::to_ascii_lowercase).collect();
        let words: Vec<&str> = words.iter().map(|word| word.trim_matches('-')).collect();
        (0..words.len()).find_map(|at| {
            let from = words.get(at..).unwrap_or_default();
            let before = at.checked_sub(1).and_then(|at| words.get(at)).copied();
            parse_named_date(from, before, now)
                .or_else(|| parse_relative_date(from, now / MS_PER_DAY))
        })
    }

    /// Scores how near a time is to this date, from 0 to [`ONE`]; 0 for an undated message.
    pub(crate) fn score_time(self, time: Timestamp) -> u64 {
        if time == UNDATED {
            return 0;
        }
        let day = time / MS_PER_DAY;
        let (_, month, of_month) = civil_from_days(day);
        match self {
            // Messages about a year are often written in the next year, so being inside the year is
            // weak evidence.
            Self::Days(from, to) if to - from > 31 => {
                if (from..=to).contains(&day) {
                    ONE * 15 / 100
                } else {
                    0
                }
            }
            Self::Days(from, to) if (from..=to).contains(&day) => ONE,
            Self::Days(from, to) => {
                // People also write of a day or week after it, and less often before it: the score
                // falls from 0.6 to 0 within two weeks, and is 0.3 in the week before. After a
                // month it is 0.5 for ten days.
                let (first, last) = if to - from < 7 { (ONE * 6 / 10, 14) } else { (ONE / 2, 10) };
                match day.checked_sub(to) {
                    Some(behind) if behind <= last && last == 14 => first * (15 - behind) / 15,
                    Some(behind) if behind <= last => first,
                    None if last == 14 && from - day <= 7 => ONE * 3 / 10,
                    _ => 0,
                }
            }
            Self::DayOfMonth { month: m, day: d } if m == month => {
                if d.abs_diff(of_month) <= 1 {
                    ONE
                } else {
                    ONE * 4 / 10
                }
            }
            Self::Month(m) if m == month => ONE * 6 / 10,
            Self::DayOfMonth { .. } | Self::Month(_) => 0,
        }
    }
}

/// Parses a named date at the start of `words`: `2023-05-03`, `2023-05`, `3 May 2023`, `May 3rd`,
/// `May 2023`, `June`, `in May`, `last May`, `in 2023`.
///
/// Without a year, the result is a day or month of any year; after `last`, it is the latest such
/// month before the month of `now`. `before`: the word in front of `words`; `None`: `words` are the
/// first. `None` as result: `words` do not begin with a date, or the date does not exist. Names
/// with other meanings, such as `may`, and years need a word such as `in` before them.
fn parse_named_date(words: &[&str], before: Option<&str>, now: Timestamp) -> Option<QueryDate> {
    let word = *words.first()?;
    let next = |at: usize| words.get(at).copied().unwrap_or_default();
    if word.contains('-') {
        let mut parts = word.split('-');
        let year = parts.next().and_then(parse_year)?;
        let month = parts.next().filter(|part| part.len() == 2)?.parse().ok()?;
        return match parts.next() {
            Some(day) => day_range(year, month, day.parse().ok()?),
            None => month_range(year, month),
        };
    }
    if let Some(day) = parse_day(word) {
        // `3 May` or `3rd of May`, with or without a year.
        let at = if next(1) == "of" { 2 } else { 1 };
        let month = parse_month(next(at))?;
        return match parse_year(next(at + 1)) {
            Some(year) => day_range(year, month, day),
            None => Some(QueryDate::DayOfMonth { month, day }),
        };
    }
    if let Some(month) = parse_month(word) {
        if let Some(day) = parse_day(next(1)) {
            return match parse_year(next(2)) {
                Some(year) => day_range(year, month, day),
                None => Some(QueryDate::DayOfMonth { month, day }),
            };
        }
        if let Some(year) = parse_year(next(1)) {
            return month_range(year, month);
        }
        // `may`, `march` and short forms have other meanings, so a word such as `in` must precede.
        let has_preposition =
            matches!(before, Some("in" | "since" | "during" | "of" | "early" | "late"));
        let is_name = MONTH_NAMES.contains(&word) && !["may", "march"].contains(&word);
        return match before {
            Some("last") => {
                let (year, this, _) = civil_from_days(now / MS_PER_DAY);
                month_range(if month < this { year } else { year.checked_sub(1)? }, month)
            }
            _ => (has_preposition || is_name).then_some(QueryDate::Month(month)),
        };
    }
    let year = parse_year(word)?;
    let has_preposition =
        matches!(before, Some("in" | "since" | "during" | "of" | "early" | "late"));
    has_preposition.then(|| {
        Some(QueryDate::Days(epoch_day_of_date(year, 1, 1)?, epoch_day_of_date(year, 12, 31)?))
    })?
}

/// Parses a relative date at the start of `words`: `yesterday`, `two weeks ago`, `last month`,
/// `last Tuesday`. `today`: days since the epoch. `None`: `words` do not begin with such a date, or
/// it lies before 1970.
fn parse_relative_date(words: &[&str], today: u64) -> Option<QueryDate> {
    let word = *words.first()?;
    let next = |at: usize| words.get(at).copied().unwrap_or_default();
    let back = |days: u64| today.checked_sub(days);
    let around = |from: u64, to: u64| Some(QueryDate::Days(back(from)?, back(to)?));
    // Monday is 0: weeks begin on Monday, and the epoch began on a Thursday.
    let weekday = (today + 3) % 7;
    let (year, month, _) = civil_from_days(today);
    match (word, next(1)) {
        ("today" | "tonight", _) => around(0, 0),
        ("yesterday", _) | ("last", "night") => around(1, 1),
        ("this", "week") => around(weekday, 0),
        ("last" | "past" | "previous", "week") => around(weekday + 7, weekday + 1),
        ("this", "month") => month_range(year, month),
        ("last" | "previous", "month") => match month {
            1 => month_range(year.checked_sub(1)?, 12),
            _ => month_range(year, month - 1),
        },
        ("this", "year") => Some(QueryDate::Days(epoch_day_of_date(year, 1, 1)?, today)),
        ("last", "year") => {
            let year = year.checked_sub(1)?;
            Some(QueryDate::Days(epoch_day_of_date(year, 1, 1)?, epoch_day_of_date(year, 12, 31)?))
        }
        ("last" | "on" | "this", name) => {
            let named = WEEKDAYS.iter().zip(0..).find(|(weekday, _)| **weekday == name)?.1;
            let days = (weekday + 7 - named) % 7;
            let days = if days == 0 && word == "last" { 7 } else { days };
            around(days, days)
        }
        (count, unit) if next(2) == "ago" => {
            let named = NUMBERS.iter().zip(1..).find(|(name, _)| **name == count);
            let count = match count {
                "a" | "an" => 1,
                _ => named.map(|(_, number)| number).or_else(|| count.parse::<u64>().ok())?,
            };
            let count = count.min(10_000);
            // Weeks, months and years are approximate: the range extends half a unit to both sides.
            match unit.trim_end_matches('s') {
                "day" => around(count, count),
                "week" => around(7 * count + 3, (7 * count).saturating_sub(3)),
                "month" => around(30 * count + 15, (30 * count).saturating_sub(15)),
                "year" => around(365 * count + 182, (365 * count).saturating_sub(182)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Parses the full or abbreviated name of a month, also `sept`. Returns 1 to 12; `None`: the word
/// is no such name.
fn parse_month(word: &str) -> Option<u64> {
    let index = MONTH_NAMES.iter().zip(MONTHS).position(|(name, short)| {
        *name == word || short == word || (short == "sep" && word == "sept")
    })?;
    u64::try_from(index + 1).ok()
}

/// Parses the number of a day from 1 to 31, with an optional suffix such as `rd`. `None`: the word
/// is no such number.
fn parse_day(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_day = matches!(word.get(digits.len()..)?, "" | "st" | "nd" | "rd" | "th");
    let day = digits.parse().ok().filter(|day| is_day && (1..=31).contains(day));
    day.filter(|_| digits.len() <= 2)
}

/// Parses a year of four digits from 1970 to 2199; `None`: the word is no such year.
fn parse_year(word: &str) -> Option<u64> {
    let year = word.parse().ok().filter(|_| word.len() == 4)?;
    (1970..=2199).contains(&year).then_some(year)
}

fn day_range(year: u64, month: u64, day: u64) -> Option<QueryDate> {
    let day = epoch_day_of_date(year, month, day)?;
    Some(QueryDate::Days(day, day))
}

fn month_range(year: u64, month: u64) -> Option<QueryDate> {
    let first = epoch_day_of_date(year, month, 1)?;
    let last = (28..=31).rev().find_map(|day| epoch_day_of_date(year, month, day))?;
    Some(QueryDate::Days(first, last))
}

#[cfg(test)]
mod tests;
