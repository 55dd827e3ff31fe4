//! Numbers as values: what a text writes in digits or words, and whether a source has such a value.
//!
//! A value is kept in millionths, as an integer. One way of writing can stand for several values
//! (`1.234` is a decimal here and a thousand there); all of them count.

use alloc::{string::String, vec::Vec};

use lcm_loops::find::holds;

use crate::base::{int, sort};

/// Millionths of one.
const ONE: u128 = 1_000_000;
/// LIMIT: longer runs of digits are names, not numbers.
const DIGITS_MAX: usize = 18;
/// Ordinary counts that a summary may have made itself.
const COUNT_MAX: u128 = 12 * ONE;
const MINUTES: usize = 24 * 60;

/// A number as it is written at the beginning of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Figure {
    /// What it may stand for.
    pub(super) readings: Vec<Reading>,
    /// Bytes of it.
    pub(super) length: usize,
}

/// One thing that a number may stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    value: u128,
    /// What one more of its last digit is worth.
    step: u128,
    /// The same of the last digit that is not 0.
    rough_step: u128,
    is_decimal: bool,
}

/// Reads digits with their separators; `None`: the text does not begin with a digit. What is no
/// single number (a date, a version, a list) is read as its first part.
pub(super) fn read(text: &str) -> Option<Figure> {
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
    let readings = single(&groups);
    let (readings, length) = if readings.is_empty() {
        (alloc::vec![whole(first)], first.len())
    } else {
        (readings, all)
    };
    (first.len() <= DIGITS_MAX).then_some(Figure { readings, length })
}

/// The groups as one number; empty: they are none.
fn single(groups: &[(u8, &str)]) -> Vec<Reading> {
    let Some(((_, first), rest)) = groups.split_first() else { return Vec::new() };
    let Some(((mark, tail), middle)) = rest.split_last() else {
        return alloc::vec![whole(first)];
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
        let places = 10u128.saturating_pow(int::to_u32(tail.len()));
        let step = ONE.checked_div(places).unwrap_or(0).max(1);
        let value = value(&head).saturating_add(fraction(tail));
        readings.push(Reading { value, step, rough_step: step, is_decimal: true });
    }
    if tail.len() == 3 && thousands && between.is_none_or(|own| own == *mark) {
        head.push_str(tail);
        readings.push(whole(&head));
    }
    readings
}

fn whole(digits: &str) -> Reading {
    let zeros = digits.bytes().rev().take_while(|byte| *byte == b'0').count();
    let zeros = zeros.min(digits.len().saturating_sub(1)).min(DIGITS_MAX);
    let rough_step = ONE.saturating_mul(10u128.saturating_pow(int::to_u32(zeros)));
    Reading { value: value(digits), step: ONE, rough_step, is_decimal: false }
}

fn value(digits: &str) -> u128 {
    let digits = digits.get(..DIGITS_MAX.min(digits.len())).unwrap_or("");
    digits.parse::<u128>().unwrap_or(0).saturating_mul(ONE)
}

fn fraction(digits: &str) -> u128 {
    let add =
        |(sum, place), byte: u8| (sum + place * u128::from(byte.saturating_sub(b'0')), place / 10);
    digits.bytes().take(6).fold((0, ONE / 10), add).0
}

/// What a unit multiplies by, and how its writers convert.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// `k`, million: the number stands for so many times itself.
    times: u128,
    /// Times the number it is in a smaller unit of its kind.
    up: &'static [u128],
    /// Divided by this it is in a greater unit.
    down: &'static [u128],
    /// Whether small numbers with it are no mere counts.
    pub(super) is_measure: bool,
}

const PLAIN: Unit = Unit { times: 1, up: &[], down: &[], is_measure: false };
const MEASURE: Unit = Unit { is_measure: true, ..PLAIN };
const THOUSAND: Unit = Unit { times: 1_000, ..MEASURE };
const TEN_THOUSAND: Unit = Unit { times: 10_000, ..MEASURE };
const MILLION: Unit = Unit { times: 1_000_000, ..MEASURE };
const PERCENT: Unit = Unit { down: &[100], ..MEASURE };
const SECOND: Unit = Unit { up: &[1_000], down: &[60], ..PLAIN };
const MINUTE: Unit = Unit { up: &[60, 60_000], down: &[60], ..PLAIN };
const HOUR: Unit = Unit { up: &[60, 3_600], down: &[24], ..PLAIN };
const KILO: Unit = Unit { up: &[1_000, 1_024], down: &[1_000, 1_024], ..MEASURE };
const MEGA: Unit =
    Unit { up: &[1_000, 1_024, 1_000_000, 1_048_576], down: &[1_000, 1_024], ..MEASURE };
const GIGA: Unit = Unit {
    up: &[1_000, 1_024, 1_000_000, 1_048_576, 1_000_000_000, 1_073_741_824],
    down: &[1_000, 1_024],
    ..MEASURE
};

/// What follows a number is its unit, if it is one of these; lower case, as a whole word.
#[rustfmt::skip]
const UNITS: [(&[&str], Unit); 14] = [
    (&["k", "thousand", "tausend"], THOUSAND),
    (&["m", "mio", "million", "millions", "millionen"], MILLION),
    (&["b", "bn", "billion", "mrd"], Unit { times: 1_000_000_000, ..MEASURE }),
    (&["ms"], Unit { down: &[1_000], ..MEASURE }),
    (&["s", "sec", "secs"], Unit { is_measure: true, ..SECOND }),
    (&["seconds", "second", "sekunden"], SECOND),
    (&["min", "mins", "minute", "minutes", "minuten"], MINUTE),
    (&["hour", "hours", "hr", "hrs", "h", "stunden"], HOUR),
    (&["days", "day", "d", "tage"], Unit { up: &[24], down: &[7], ..PLAIN }),
    (&["weeks", "week"], Unit { up: &[7], ..PLAIN }),
    (&["bytes", "byte", "kb", "kib"], KILO),
    (&["mb", "mib"], MEGA),
    (&["gb", "tb", "gib"], GIGA),
    (&["percent", "prozent", "pct"], PERCENT),
];
/// Units that are no words.
const MARKS: [(&str, Unit); 9] = [
    ("%", PERCENT),
    ("\u{ff05}", PERCENT),
    ("\u{20ac}", MEASURE),
    ("\u{5343}", THOUSAND),
    ("\u{4e07}", TEN_THOUSAND),
    ("\u{842c}", TEN_THOUSAND),
    ("\u{4ebf}", Unit { times: 100_000_000, ..MEASURE }),
    ("\u{5206}\u{949f}", MINUTE),
    ("\u{5c0f}\u{65f6}", HOUR),
];

/// The unit that `rest`, the text behind a number, begins with.
pub(super) fn unit(rest: &str) -> Unit {
    let bare = rest.strip_prefix([' ', '-', '\u{a0}']).unwrap_or(rest);
    if let Some((_, unit)) = MARKS.iter().find(|(mark, _)| bare.starts_with(mark)) {
        return *unit;
    }
    let length = bare.bytes().take_while(u8::is_ascii_alphabetic).count();
    let word = bare.get(..length).unwrap_or("");
    // `5 m` may be metres, `5 b` hardly anything: but for these, a letter stands at its number.
    let stands_apart = word.len() == 1 && bare.len() < rest.len() && !matches!(word, "s" | "h");
    if word.is_empty() || stands_apart {
        return PLAIN;
    }
    let is = |known: &&str| known.eq_ignore_ascii_case(word);
    UNITS.iter().find(|(words, _)| words.iter().any(is)).map_or(PLAIN, |(_, u)| *u)
}

/// Whether a word is a unit, an ending of ordinals or a sign of repetition (`3x`).
pub(super) fn is_unit(word: &str) -> bool {
    let known = UNITS.iter().flat_map(|(words, _)| words.iter());
    let others =
        ["st", "nd", "rd", "th", "x", "am", "pm", "px", "kg", "km", "cm", "mm", "er", "ern"];
    known.chain(&others).any(|unit| unit.eq_ignore_ascii_case(word))
}

/// The values of a source.
#[derive(Debug)]
pub(super) struct Values {
    /// Ascending.
    list: Vec<u128>,
    /// By minute of the day: whether the source names it.
    times: Vec<bool>,
    /// Whether it names quarters of an hour in words.
    has_spelled_times: bool,
}

impl Values {
    /// Reads a source that spells these numbers.
    pub(super) fn new(source: &str, spelled: Vec<(u128, bool)>) -> Self {
        let mut this =
            Self { list: Vec::new(), times: alloc::vec![false; MINUTES], has_spelled_times: false };
        let bytes = source.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if !byte.is_ascii_digit() {
                at += 1;
                continue;
            }
            at += this.number(source.get(at..).unwrap_or("")).max(1);
        }
        for (value, is_hour) in spelled {
            if is_hour {
                this.mark(usize::try_from(value % 24).unwrap_or(0) * 60, "\u{70b9}");
            } else {
                this.list.push(value.saturating_mul(ONE));
            }
        }
        let says = |words: &[&str]| words.iter().any(|word| holds(source, word));
        let noons = [("noon", MINUTES / 2), ("midnight", 0), ("Mittag", MINUTES / 2)];
        for (_, minute) in noons.iter().filter(|(word, _)| holds(source, word)) {
            this.mark(*minute, "");
        }
        this.has_spelled_times =
            says(&["half past", "quarter to", "quarter past", "halb ", "iertel", "\u{534a}"]);
        sort::sort(&mut this.list);
        this.list.dedup();
        this
    }

    /// Takes the number that a text begins with; returns its length.
    fn number(&mut self, text: &str) -> usize {
        if let Some((minute, length)) = time(text) {
            self.mark(minute, text.get(length..).unwrap_or(""));
        }
        let Some(figure) = read(text) else {
            return text.bytes().take_while(u8::is_ascii_digit).count();
        };
        let rest = text.get(figure.length..).unwrap_or("");
        let times = unit(rest).times;
        if times > 1 {
            let scaled = figure.readings.iter().map(|reading| reading.value.saturating_mul(times));
            self.list.extend(scaled);
        }
        let hour = figure.readings.first().map(|reading| reading.value / ONE);
        let hour = hour.filter(|hour| *hour < 25);
        if let Some(hour) = hour.filter(|_| is_hour(rest)) {
            self.mark(usize::try_from(hour * 60).unwrap_or(0), rest);
        }
        let length = figure.length;
        self.list.extend(figure.readings.iter().map(|reading| reading.value));
        length
    }

    fn mark(&mut self, minute: usize, rest: &str) {
        let later = is_afternoon(rest) || !rest.is_ascii_start();
        for minute in [Some(minute), later.then_some(minute + MINUTES / 2)].into_iter().flatten() {
            if let Some(time) = self.times.get_mut(minute % MINUTES) {
                *time = true;
            }
        }
    }

    /// Whether the source has a value of this number, as it is or rounded to its last digit.
    pub(super) fn hold(&self, figure: &Figure, unit: Unit, about: bool) -> bool {
        figure.readings.iter().any(|reading| self.hold_reading(*reading, unit, about))
    }

    fn hold_reading(&self, reading: Reading, unit: Unit, about: bool) -> bool {
        let Reading { value, rough_step, is_decimal, .. } = reading;
        let has = |value: u128| self.list.binary_search(&value).is_ok();
        let scaled = value.saturating_mul(unit.times);
        if has(value) || has(scaled) {
            return true;
        }
        let step = if about { rough_step } else { reading.step };
        if (about || is_decimal || unit.times > 1)
            && self.near(scaled, step.saturating_mul(unit.times))
        {
            return true;
        }
        let up =
            |times: &u128| self.near(value.saturating_mul(*times), step.saturating_mul(*times));
        let down = |times: &u128| self.near(value / times, step / times);
        unit.up.iter().any(up) || unit.down.iter().any(down)
    }

    /// Whether a value of the source is written as this one when it is rounded or cut.
    fn near(&self, value: u128, step: u128) -> bool {
        let low = value.saturating_sub(step / 2);
        let first = self.list.partition_point(|known| *known < low);
        self.list.get(first).is_some_and(|known| *known < value.saturating_add(step.max(1)))
    }

    /// Whether the source names this time of day; a full or half hour may be up to 30 minutes off.
    pub(super) fn hold_time(&self, minute: usize, rest: &str) -> bool {
        let afternoon = is_afternoon(rest);
        let hits = |minute: usize| {
            let slack = if minute.is_multiple_of(30) { 30 } else { 0 };
            let from = minute + MINUTES - slack;
            (from..=from + 2 * slack).any(|at| self.times.get(at % MINUTES) == Some(&true))
        };
        let hour = u128::try_from(minute / 60).unwrap_or(0) * ONE;
        let has_hour = || {
            let hours = [hour, hour.saturating_sub(12 * ONE)];
            hours.iter().any(|hour| self.list.binary_search(hour).is_ok())
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
    /// Whether the text is empty or begins with a character of ASCII.
    fn is_ascii_start(&self) -> bool {
        self.bytes().next().is_none_or(|byte| byte.is_ascii())
    }
}

fn is_afternoon(rest: &str) -> bool {
    let rest = rest.trim_start_matches(' ');
    rest.get(..1).is_some_and(|first| first.eq_ignore_ascii_case("p"))
        && rest.get(1..).is_some_and(|rest| rest.trim_start_matches('.').starts_with(['m', 'M']))
}

/// Whether the text behind a number makes it an hour.
fn is_hour(rest: &str) -> bool {
    let bare = rest.trim_start_matches(' ');
    is_afternoon(rest)
        || bare.starts_with("am")
        || bare.starts_with("a.m")
        || bare.starts_with("Uhr")
        || bare.starts_with(['\u{70b9}', '\u{9ede}', '\u{65f6}', '\u{6642}'])
}

/// The time of day, in minutes, that a text begins with, and its length: `9:05`, `14:00:30`.
pub(super) fn time(text: &str) -> Option<(usize, usize)> {
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

/// Whether a number may be a count that the summary made itself.
pub(super) fn is_count(figure: &Figure) -> bool {
    figure.readings.iter().any(|reading| !reading.is_decimal && reading.value <= COUNT_MAX)
}

/// Whether a text begins as a time does, of whatever hour: `40:41`.
pub(super) fn looks_like_time(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.get(digits..).and_then(|rest| rest.strip_prefix(':')).unwrap_or("");
    let minutes = rest.bytes().take_while(u8::is_ascii_digit).count();
    (1..=2).contains(&digits) && minutes == 2
}
