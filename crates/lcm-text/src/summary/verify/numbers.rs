//! Compares numbers as values: parses digits and units, and looks the values up in a source.
//!
//! Input: a source, then numbers of an answer. Output: whether the source has a number. A value is
//! an integer in millionths. One notation can have several values: `1.234` is a decimal in one
//! country and more than a thousand in another. A number is found if any of its values is found.

use alloc::{string::String, vec::Vec};

use lcm_loops::substring::contains_str;

use crate::base::{int, sort};

/// Millionths of one.
const MILLIONTHS_PER_ONE: u128 = 1_000_000;
/// Most digits of a number; a longer run of digits is a name.
const DIGITS_MAX: usize = 18;
/// Greatest count that a summary may compute itself, in millionths.
const COUNT_MAX: u128 = 12 * MILLIONTHS_PER_ONE;
/// Minutes of a day.
const MINUTES: usize = 24 * 60;

/// A number at the beginning of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct ParsedNumber {
    /// Possible values.
    pub(super) readings: Vec<NumberReading>,
    /// Length in bytes.
    pub(super) length: usize,
}

/// One possible value of a number, in millionths.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberReading {
    value: u128,
    /// Value of one unit in the last digit.
    step: u128,
    /// Of a whole number, the value of one unit in the last digit that is not 0; else `step`.
    rough_step: u128,
    is_decimal: bool,
}

/// Parses digits with separators; `None`: the text does not begin with a digit, or begins with more
/// than [`DIGITS_MAX`]. Of a date, a version or a list, only the first part is parsed.
pub(super) fn parse_number(text: &str) -> Option<ParsedNumber> {
    let mut groups: Vec<(u8, &str)> = Vec::new();
    let mut at = 0;
    let mut mark = 0;
    loop {
        let rest = text.get(at..).unwrap_or("");
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            break;
        }
        groups.push((mark, rest.get(..length).unwrap_or("")));
        at += length;
        let mut after = text.as_bytes().iter().skip(at);
        match (after.next(), after.next()) {
            (Some(byte @ (b'.' | b',' | b'_' | b'\'')), Some(b'0'..=b'9')) => mark = *byte,
            _ => break,
        }
        at += 1;
    }
    let (_, first) = groups.first().copied()?;
    let all = groups.iter().map(|(_, digits)| digits.len() + 1).sum::<usize>() - 1;
    let readings = combine_digit_groups(&groups);
    let (readings, length) = if readings.is_empty() {
        (alloc::vec![whole_reading(first)], first.len())
    } else {
        (readings, all)
    };
    (first.len() <= DIGITS_MAX).then_some(ParsedNumber { readings, length })
}

/// Reads digit groups as one number; empty: the groups are not one number.
fn combine_digit_groups(groups: &[(u8, &str)]) -> Vec<NumberReading> {
    let Some(((_, first), rest)) = groups.split_first() else { return Vec::new() };
    let Some(((mark, tail), middle)) = rest.split_last() else {
        return alloc::vec![whole_reading(first)];
    };
    let mut readings = Vec::new();
    let between = middle.first().map(|(mark, _)| *mark);
    let thousands = first.len() <= 3 && !first.starts_with('0');
    let same = middle.iter().all(|(mark, digits)| digits.len() == 3 && Some(*mark) == between);
    if !same || (!thousands && !middle.is_empty()) {
        return readings;
    }
    let mut head: String = (*first).into();
    middle.iter().for_each(|(_, digits)| head.push_str(digits));
    if matches!(mark, b'.' | b',') && between.is_none_or(|own| own != *mark) {
        let divisor = 10u128.saturating_pow(int::to_u32(tail.len()));
        let step = MILLIONTHS_PER_ONE.checked_div(divisor).unwrap_or(0).max(1);
        let value = parse_whole_value(&head).saturating_add(parse_fraction(tail));
        readings.push(NumberReading { value, step, rough_step: step, is_decimal: true });
    }
    if tail.len() == 3 && thousands && between.is_none_or(|own| own == *mark) {
        head.push_str(tail);
        readings.push(whole_reading(&head));
    }
    readings
}

fn whole_reading(digits: &str) -> NumberReading {
    let zeros = digits.bytes().rev().take_while(|byte| *byte == b'0').count();
    let zeros = zeros.min(digits.len().saturating_sub(1)).min(DIGITS_MAX);
    let rough_step = MILLIONTHS_PER_ONE.saturating_mul(10u128.saturating_pow(int::to_u32(zeros)));
    NumberReading {
        value: parse_whole_value(digits),
        step: MILLIONTHS_PER_ONE,
        rough_step,
        is_decimal: false,
    }
}

fn parse_whole_value(digits: &str) -> u128 {
    let digits = digits.get(..DIGITS_MAX.min(digits.len())).unwrap_or("");
    digits.parse::<u128>().unwrap_or(0).saturating_mul(MILLIONTHS_PER_ONE)
}

fn parse_fraction(digits: &str) -> u128 {
    let add =
        |(sum, unit), byte: u8| (sum + unit * u128::from(byte.saturating_sub(b'0')), unit / 10);
    digits.bytes().take(6).fold((0, MILLIONTHS_PER_ONE / 10), add).0
}

/// A unit after a number, and the conversions to other units under which a source may have the
/// number.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberUnit {
    /// Factor of the unit, such as a thousand for `k`.
    multiplier: u128,
    /// Factors that convert a number with this unit to smaller units.
    smaller_unit_factors: &'static [u128],
    /// Divisors that convert a number with this unit to larger units.
    larger_unit_divisors: &'static [u128],
    /// Whether numbers up to 12 with this unit are measures, which are checked, and not counts.
    pub(super) is_measure: bool,
}

const PLAIN: NumberUnit = NumberUnit {
    multiplier: 1,
    smaller_unit_factors: &[],
    larger_unit_divisors: &[],
    is_measure: false,
};
const MEASURE: NumberUnit = NumberUnit { is_measure: true, ..PLAIN };
const THOUSAND: NumberUnit = NumberUnit { multiplier: 1_000, ..MEASURE };
const TEN_THOUSAND: NumberUnit = NumberUnit { multiplier: 10_000, ..MEASURE };
const MILLION: NumberUnit = NumberUnit { multiplier: 1_000_000, ..MEASURE };
const PERCENT: NumberUnit = NumberUnit { larger_unit_divisors: &[100], ..MEASURE };
const SECOND: NumberUnit =
    NumberUnit { smaller_unit_factors: &[1_000], larger_unit_divisors: &[60], ..PLAIN };
const MINUTE: NumberUnit =
    NumberUnit { smaller_unit_factors: &[60, 60_000], larger_unit_divisors: &[60], ..PLAIN };
const HOUR: NumberUnit =
    NumberUnit { smaller_unit_factors: &[60, 3_600], larger_unit_divisors: &[24], ..PLAIN };
const KILO: NumberUnit = NumberUnit {
    smaller_unit_factors: &[1_000, 1_024],
    larger_unit_divisors: &[1_000, 1_024],
    ..MEASURE
};
const MEGA: NumberUnit = NumberUnit {
    smaller_unit_factors: &[1_000, 1_024, 1_000_000, 1_048_576],
    larger_unit_divisors: &[1_000, 1_024],
    ..MEASURE
};
const GIGA: NumberUnit = NumberUnit {
    smaller_unit_factors: &[1_000, 1_024, 1_000_000, 1_048_576, 1_000_000_000, 1_073_741_824],
    larger_unit_divisors: &[1_000, 1_024],
    ..MEASURE
};

/// Units that follow a number as a whole word, in lower case.
#[rustfmt::skip]
const UNIT_WORDS: [(&[&str], NumberUnit); 14] = [
    (&["k", "thousand", "tausend"], THOUSAND),
    (&["m", "mio", "million", "millions", "millionen"], MILLION),
    (&["b", "bn", "billion", "mrd"], NumberUnit { multiplier: 1_000_000_000, ..MEASURE }),
    (&["ms"], NumberUnit { larger_unit_divisors: &[1_000], ..MEASURE }),
    (&["s", "sec", "secs"], NumberUnit { is_measure: true, ..SECOND }),
    (&["seconds", "second", "sekunden"], SECOND),
    (&["min", "mins", "minute", "minutes", "minuten"], MINUTE),
    (&["hour", "hours", "hr", "hrs", "h", "stunden"], HOUR),
    (
        &["days", "day", "d", "tage"],
        NumberUnit { smaller_unit_factors: &[24], larger_unit_divisors: &[7], ..PLAIN },
    ),
    (&["weeks", "week"], NumberUnit { smaller_unit_factors: &[7], ..PLAIN }),
    (&["bytes", "byte", "kb", "kib"], KILO),
    (&["mb", "mib"], MEGA),
    (&["gb", "tb", "gib"], GIGA),
    (&["percent", "prozent", "pct"], PERCENT),
];
/// Units that follow a number as symbols or Chinese characters.
const UNIT_SYMBOLS: [(&str, NumberUnit); 9] = [
    ("%", PERCENT),
    ("\u{ff05}", PERCENT),
    ("\u{20ac}", MEASURE),
    ("\u{5343}", THOUSAND),
    ("\u{4e07}", TEN_THOUSAND),
    ("\u{842c}", TEN_THOUSAND),
    ("\u{4ebf}", NumberUnit { multiplier: 100_000_000, ..MEASURE }),
    ("\u{5206}\u{949f}", MINUTE),
    ("\u{5c0f}\u{65f6}", HOUR),
];

/// Parses the unit at the beginning of `rest`, the text behind a number; a plain unit if `rest`
/// begins with no known unit.
pub(super) fn parse_unit(rest: &str) -> NumberUnit {
    let bare = rest.strip_prefix([' ', '-', '\u{a0}']).unwrap_or(rest);
    if let Some((_, unit)) = UNIT_SYMBOLS.iter().find(|(mark, _)| bare.starts_with(mark)) {
        return *unit;
    }
    let length = bare.bytes().take_while(u8::is_ascii_alphabetic).count();
    let word = bare.get(..length).unwrap_or("");
    // A single letter after a space, no-break space or hyphen is a unit only if it is `s` or `h`.
    let stands_apart = word.len() == 1 && bare.len() < rest.len() && !matches!(word, "s" | "h");
    if word.is_empty() || stands_apart {
        return PLAIN;
    }
    let is = |unit: &&str| unit.eq_ignore_ascii_case(word);
    UNIT_WORDS.iter().find(|(words, _)| words.iter().any(is)).map_or(PLAIN, |(_, u)| *u)
}

/// Returns whether a word is a unit, or another suffix that is joined to numbers, as in `3rd`, `3x`
/// or `3pm`.
pub(super) fn is_unit_or_suffix(word: &str) -> bool {
    let unit_words = UNIT_WORDS.iter().flat_map(|(words, _)| words.iter());
    let others =
        ["st", "nd", "rd", "th", "x", "am", "pm", "px", "kg", "km", "cm", "mm", "er", "ern"];
    unit_words.chain(&others).any(|unit| unit.eq_ignore_ascii_case(word))
}

/// All numbers and times of a source.
#[derive(Debug)]
pub(super) struct SourceNumbers {
    /// All values in millionths, ascending.
    values: Vec<u128>,
    /// For each minute of the day, whether the source has this time. A time before `pm`, or
    /// directly before a non-ASCII character, also sets the minute 12 hours later.
    times: Vec<bool>,
    /// Whether the source has words such as `half past` or `quarter to`.
    has_spelled_times: bool,
}

impl SourceNumbers {
    /// Reads a source; `spelled` are the numbers that the source writes in words, each with whether
    /// it is an hour.
    pub(super) fn new(source: &str, spelled: Vec<(u128, bool)>) -> Self {
        let mut this = Self {
            values: Vec::new(),
            times: alloc::vec![false; MINUTES],
            has_spelled_times: false,
        };
        let bytes = source.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if !byte.is_ascii_digit() {
                at += 1;
                continue;
            }
            at += this.read_number(source.get(at..).unwrap_or("")).max(1);
        }
        for (value, is_hour) in spelled {
            if is_hour {
                this.mark_time(usize::try_from(value % 24).unwrap_or(0) * 60, "\u{70b9}");
            } else {
                this.values.push(value.saturating_mul(MILLIONTHS_PER_ONE));
            }
        }
        let says = |words: &[&str]| words.iter().any(|word| contains_str(source, word));
        let noons = [("noon", MINUTES / 2), ("midnight", 0), ("Mittag", MINUTES / 2)];
        for (_, minute) in noons.iter().filter(|(word, _)| contains_str(source, word)) {
            this.mark_time(*minute, "");
        }
        this.has_spelled_times =
            says(&["half past", "quarter to", "quarter past", "halb ", "iertel", "\u{534a}"]);
        sort::sort(&mut this.values);
        this.values.dedup();
        this
    }

    /// Adds the number at the beginning of a text, and the time if it is one; returns the length of
    /// the number in bytes.
    fn read_number(&mut self, text: &str) -> usize {
        if let Some((minute, length)) = parse_time_of_day(text) {
            self.mark_time(minute, text.get(length..).unwrap_or(""));
        }
        let Some(figure) = parse_number(text) else {
            return text.bytes().take_while(u8::is_ascii_digit).count();
        };
        let rest = text.get(figure.length..).unwrap_or("");
        let times = parse_unit(rest).multiplier;
        if times > 1 {
            let scaled = figure.readings.iter().map(|reading| reading.value.saturating_mul(times));
            self.values.extend(scaled);
        }
        let hour = figure.readings.first().map(|reading| reading.value / MILLIONTHS_PER_ONE);
        let hour = hour.filter(|hour| *hour < 25);
        if let Some(hour) = hour.filter(|_| is_hour(rest)) {
            self.mark_time(usize::try_from(hour * 60).unwrap_or(0), rest);
        }
        let length = figure.length;
        self.values.extend(figure.readings.iter().map(|reading| reading.value));
        length
    }

    fn mark_time(&mut self, minute: usize, rest: &str) {
        let later = is_afternoon(rest) || !rest.is_ascii_start();
        for minute in [Some(minute), later.then_some(minute + MINUTES / 2)].into_iter().flatten() {
            if let Some(time) = self.times.get_mut(minute % MINUTES) {
                *time = true;
            }
        }
    }

    /// Returns whether the source has this number: exactly, or in another unit; or more exactly, if
    /// the answer rounds. `about`: whether the answer calls the number approximate.
    pub(super) fn contains_number(
        &self,
        figure: &ParsedNumber,
        unit: NumberUnit,
        about: bool,
    ) -> bool {
        figure.readings.iter().any(|reading| self.contains_reading(*reading, unit, about))
    }

    fn contains_reading(&self, reading: NumberReading, unit: NumberUnit, about: bool) -> bool {
        let NumberReading { value, rough_step, is_decimal, .. } = reading;
        let has = |value: u128| self.values.binary_search(&value).is_ok();
        let scaled = value.saturating_mul(unit.multiplier);
        if has(value) || has(scaled) {
            return true;
        }
        let step = if about { rough_step } else { reading.step };
        if (about || is_decimal || unit.multiplier > 1)
            && self.contains_near(scaled, step.saturating_mul(unit.multiplier))
        {
            return true;
        }
        let up = |times: &u128| {
            self.contains_near(value.saturating_mul(*times), step.saturating_mul(*times))
        };
        let down = |times: &u128| self.contains_near(value / times, step / times);
        unit.smaller_unit_factors.iter().any(up) || unit.larger_unit_divisors.iter().any(down)
    }

    /// Returns whether a value of the source, rounded or cut to multiples of `step`, can give
    /// `value`.
    fn contains_near(&self, value: u128, step: u128) -> bool {
        let low = value.saturating_sub(step / 2);
        let first = self.values.partition_point(|source_value| *source_value < low);
        self.values
            .get(first)
            .is_some_and(|source_value| *source_value < value.saturating_add(step.max(1)))
    }

    /// Returns whether the source has this time of day; a full or half hour may be 30 minutes off.
    /// The source may also have a full hour as a plain number. If the source has words such as
    /// `half past`, every full, half and quarter hour is accepted. `rest` is the text behind the
    /// time, which can begin with `pm`.
    pub(super) fn contains_time(&self, minute: usize, rest: &str) -> bool {
        let afternoon = is_afternoon(rest);
        let hits = |minute: usize| {
            let slack = if minute.is_multiple_of(30) { 30 } else { 0 };
            let from = minute + MINUTES - slack;
            (from..=from + 2 * slack).any(|at| self.times.get(at % MINUTES) == Some(&true))
        };
        let hour = u128::try_from(minute / 60).unwrap_or(0) * MILLIONTHS_PER_ONE;
        let has_hour = || {
            let hours = [hour, hour.saturating_sub(12 * MILLIONTHS_PER_ONE)];
            hours.iter().any(|hour| self.values.binary_search(hour).is_ok())
        };
        let later = minute < MINUTES / 2 || afternoon;
        (hits(minute) && !afternoon)
            || (later && hits(minute + MINUTES / 2))
            || (minute.is_multiple_of(60) && has_hour())
            || (minute.is_multiple_of(15) && self.has_spelled_times)
    }
}

trait AsciiStart {
    fn is_ascii_start(&self) -> bool;
}

impl AsciiStart for str {
    /// Returns whether the text is empty or begins with an ASCII character.
    fn is_ascii_start(&self) -> bool {
        self.bytes().next().is_none_or(|byte| byte.is_ascii())
    }
}

fn is_afternoon(rest: &str) -> bool {
    let rest = rest.trim_start_matches(' ');
    rest.get(..1).is_some_and(|first| first.eq_ignore_ascii_case("p"))
        && rest.get(1..).is_some_and(|rest| rest.trim_start_matches('.').starts_with(['m', 'M']))
}

/// Returns whether the text behind a number shows that the number is an hour.
fn is_hour(rest: &str) -> bool {
    let bare = rest.trim_start_matches(' ');
    is_afternoon(rest)
        || bare.starts_with("am")
        || bare.starts_with("a.m")
        || bare.starts_with("Uhr")
        || bare.starts_with(['\u{70b9}', '\u{9ede}', '\u{65f6}', '\u{6642}'])
}

/// Parses a time of day such as `9:05` or `14:00:30`; returns minutes since midnight and the length
/// in bytes. `None`: no time of day.
pub(super) fn parse_time_of_day(text: &str) -> Option<(usize, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.get(digits..)?.strip_prefix(':')?;
    let minutes = rest.get(..2).filter(|minutes| minutes.bytes().all(|b| b.is_ascii_digit()))?;
    if !(1..=2).contains(&digits) || rest.as_bytes().get(2).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let hour: usize = text.get(..digits)?.parse().ok()?;
    let minute: usize = minutes.parse().ok()?;
    let seconds = rest.get(2..)?.strip_prefix(':').and_then(|rest| rest.get(..2));
    let seconds = seconds.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let length = digits + if seconds { 6 } else { 3 };
    (hour < 25 && minute < 60).then_some((hour * 60 + minute, length))
}

/// Returns whether the number can be a whole number up to 12, which a summary may have counted.
pub(super) fn is_small_count(figure: &ParsedNumber) -> bool {
    figure.readings.iter().any(|reading| !reading.is_decimal && reading.value <= COUNT_MAX)
}

/// Returns whether a text begins like a time with any hour and minute, for example `40:41`.
pub(super) fn looks_like_time(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.get(digits..).and_then(|rest| rest.strip_prefix(':')).unwrap_or("");
    let minutes = rest.bytes().take_while(u8::is_ascii_digit).count();
    (1..=2).contains(&digits) && minutes == 2
}
