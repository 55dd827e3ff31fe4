//! The figures of a run, with their bounds.
//!
//! Ratios hold on any machine, so a run fails when a ratio exceeds its bound. Absolute figures
//! assume two ordinary cores at the largest size. They are printed beside their bounds, and fail
//! only a run with `--strict`.

/// The bound of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// No bound; the value is only printed.
    Open,
}

impl Bound {
    /// Returns whether a value is within the bound.
    pub(super) fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
            Self::Open => true,
        }
    }
}

/// The sizes of a conversation to which a bound applies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum At {
    /// Every size of at least this many messages; a missed bound fails the run.
    Ratio(u32),
    /// The largest size; a missed bound fails only a run with `--strict`.
    Absolute,
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    /// Name in the table.
    pub(super) name: &'static str,
    /// Unit; empty: no unit.
    pub(super) unit: &'static str,
    /// Bound of the value.
    pub(super) bound: Bound,
    /// Sizes to which the bound applies.
    pub(super) at: At,
}

const fn at_most(name: &'static str, unit: &'static str, most: f64) -> Figure {
    Figure { name, unit, bound: Bound::AtMost(most), at: At::Absolute }
}

/// A ratio of at most `most`, in conversations of at least `messages_min` messages: in a shorter
/// conversation the ratio says little, because the fresh tail is nearly all of it.
const fn ratio(name: &'static str, most: f64, messages_min: u32) -> Figure {
    Figure { name, unit: "", bound: Bound::AtMost(most), at: At::Ratio(messages_min) }
}

/// A value of at least `least`, in conversations of at least `messages_min` messages.
const fn must(name: &'static str, least: f64, messages_min: u32) -> Figure {
    Figure { name, unit: "", bound: Bound::AtLeast(least), at: At::Ratio(messages_min) }
}

const fn open(name: &'static str, unit: &'static str) -> Figure {
    Figure { name, unit, bound: Bound::Open, at: At::Absolute }
}

pub(super) const INGEST_RATE: &str = "ingest";
pub(super) const INGEST_TENTHS: &str = "ingest, last tenth to first";
pub(super) const INGEST_SLOWEST: &str = "ingest, slowest batch of 100";
pub(super) const RAW_WARM: &str = "assemble, never compacted, warm";
pub(super) const RAW_COLD: &str = "assemble, never compacted, cold";
pub(super) const FULL_WARM: &str = "assemble, fully compacted, warm";
pub(super) const FULL_COLD: &str = "assemble, fully compacted, cold";
pub(super) const COMPACT: &str = "compaction";
pub(super) const PASSES: &str = "compaction, passes";
pub(super) const PASS: &str = "compaction, pass without model p95";
pub(super) const PASS_TENTHS: &str = "compaction, last tenth to first";
pub(super) const CONTEXT: &str = "context to its threshold";
pub(super) const DEPTH: &str = "depth of the summaries";
pub(super) const CHECK: &str = "store is sound";
pub(super) const LOSSLESS: &str = "messages unchanged";
pub(super) const GREP_RARE: &str = "grep, rare word p95";
pub(super) const GREP_FREQUENT: &str = "grep, frequent word p95";
pub(super) const GREP_CJK: &str = "grep, Chinese p95";
pub(super) const GREP_THREE: &str = "grep, three words p95";
pub(super) const GREP_LITERAL: &str = "grep, regex with rare literal p95";
pub(super) const GREP_REGEX: &str = "grep, any regex p95";
pub(super) const NEEDLES: &str = "grep, needles found";
pub(super) const STORE: &str = "store to input";
pub(super) const FILE: &str = "file to input";
pub(super) const PROCESS: &str = "process, most memory";
pub(super) const LINEAR: &str = "component, most memory";

/// All figures of one size, in the order of the table.
pub(super) const FIGURES: [Figure; 26] = [
    Figure {
        name: INGEST_RATE,
        unit: "messages/s",
        bound: Bound::AtLeast(10_000.0),
        at: At::Absolute,
    },
    // While the first 1,600 messages are stored, no search segments are merged, so a tenth of the
    // conversation must have many more messages.
    ratio(INGEST_TENTHS, 1.3, 100_000),
    at_most(INGEST_SLOWEST, "ms", 50.0),
    at_most(RAW_WARM, "ms", 3.0),
    at_most(RAW_COLD, "ms", 20.0),
    at_most(FULL_WARM, "ms", 3.0),
    at_most(FULL_COLD, "ms", 20.0),
    at_most(COMPACT, "s", 20.0),
    open(PASSES, ""),
    at_most(PASS, "ms", 10.0),
    ratio(PASS_TENTHS, 1.3, 10_000),
    ratio(CONTEXT, 1.0, 0),
    must(DEPTH, 2.0, 100_000),
    must(CHECK, 1.0, 0),
    must(LOSSLESS, 1.0, 0),
    at_most(GREP_RARE, "ms", 5.0),
    at_most(GREP_FREQUENT, "ms", 10.0),
    at_most(GREP_CJK, "ms", 10.0),
    at_most(GREP_THREE, "ms", 15.0),
    at_most(GREP_LITERAL, "ms", 50.0),
    at_most(GREP_REGEX, "ms", 1_500.0),
    must(NEEDLES, 1.0, 0),
    ratio(STORE, 0.8, 10_000),
    open(FILE, ""),
    at_most(PROCESS, "MB", 200.0),
    at_most(LINEAR, "MB", 64.0),
];

/// A figure at the largest size, divided by the same figure at a smaller size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// Name of the figure.
    pub(super) name: &'static str,
    /// Smallest number of messages of the smaller size; with fewer messages the work itself is
    /// less, and the bound does not apply.
    pub(super) messages_min: u32,
    /// Bound of the quotient.
    pub(super) bound: Bound,
}

/// Figures that must not grow with a conversation. A conversation of 1,000 messages fills a context
/// like a conversation of 10,000 messages, but has fewer summaries after compaction.
pub(super) const GROWTHS: [Growth; 4] = [
    Growth { name: RAW_WARM, messages_min: 1_000, bound: Bound::AtMost(1.5) },
    Growth { name: RAW_COLD, messages_min: 1_000, bound: Bound::AtMost(1.5) },
    Growth { name: FULL_WARM, messages_min: 10_000, bound: Bound::AtMost(1.5) },
    Growth { name: FULL_COLD, messages_min: 10_000, bound: Bound::AtMost(1.5) },
];

/// Figures whose bounds also apply to conversations from files (`--workload`), at any size.
pub(super) const ANYWHERE: [&str; 4] = [CONTEXT, CHECK, LOSSLESS, STORE];
