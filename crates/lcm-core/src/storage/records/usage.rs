//! Usage: tokens and costs of turns and summaries, as a host reports them.
//!
//! In: one report for each completion. Out: totals, and the time of the newest turn, which tells
//! whether the provider's cache is warm. [`crate::compaction::advise`] derives advice from this
//! record and from the ledger of the head.

use alloc::{format, string::String};

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::SoundRecord, keys::ConversationKeys, record_key::RecordKey, store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{JsonFields, JsonWriter},
        time,
    },
    types::api::Timestamp,
};

/// Names of the purposes of a report in JSON: 0 is a turn, 1 a summary.
const PURPOSES: [&str; 2] = ["turn", "summary"];
/// Most cost of one report, in millionths: 1,000,000,000 units of the host's currency.
const COST_MICROS_MAX: u64 = 1_000_000_000_000_000;

/// Totals over completions.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct UsageTotals {
    calls: u64,
    /// Tokens of the prompts, cached tokens included.
    input_tokens: u64,
    /// Input tokens that were read from the provider's cache.
    cache_read_tokens: u64,
    /// Input tokens that were written to the provider's cache.
    cache_write_tokens: u64,
    output_tokens: u64,
    /// Cost in millionths of the host's currency.
    cost_micros: u64,
}

impl UsageTotals {
    fn to_numbers(self) -> [u64; 6] {
        [
            self.calls,
            self.input_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.output_tokens,
            self.cost_micros,
        ]
    }

    fn add_totals(&mut self, report: &Self) {
        self.calls = self.calls.saturating_add(report.calls);
        self.input_tokens = self.input_tokens.saturating_add(report.input_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(report.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(report.cache_write_tokens);
        self.output_tokens = self.output_tokens.saturating_add(report.output_tokens);
        self.cost_micros = self.cost_micros.saturating_add(report.cost_micros);
    }

    fn to_object(self) -> JsonWriter {
        let mut object = JsonWriter::new_object();
        object.add_number("cache_read_tokens", self.cache_read_tokens);
        object.add_number("cache_write_tokens", self.cache_write_tokens);
        object.add_number("calls", self.calls);
        object.add_number("cost_micros", self.cost_micros);
        object.add_number("input_tokens", self.input_tokens);
        object.add_number("output_tokens", self.output_tokens);
        object
    }
}

/// A report of one completion.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct UsageReport {
    is_summary: bool,
    totals: UsageTotals,
}

impl UsageReport {
    /// Reads a report from JSON fields; `purpose` is required, and an absent number is 0.
    pub(crate) fn read(fields: &mut JsonFields<'_>) -> Self {
        let is_summary = fields.take_choice("purpose", &PURPOSES) == 1;
        let mut tokens = |key: &str| u64::from(fields.take_optional_u32(key).unwrap_or(0));
        let totals = UsageTotals {
            calls: 1,
            input_tokens: tokens("input_tokens"),
            cache_read_tokens: tokens("cache_read_tokens"),
            cache_write_tokens: tokens("cache_write_tokens"),
            output_tokens: tokens("output_tokens"),
            cost_micros: fields.take_optional_u64("cost_micros").unwrap_or(0),
        };
        Self { is_summary, totals }
    }

    /// Returns the report if its numbers do not contradict each other.
    ///
    /// # Errors
    ///
    /// `invalid-input`: input tokens, output tokens and cost are all 0; cached tokens exceed input
    /// tokens; or the cost is too great.
    pub(crate) fn validate(self) -> Result<Self> {
        let totals = &self.totals;
        if totals.cost_micros > COST_MICROS_MAX {
            return Err(Error::invalid_input(format_args!(
                "`cost_micros` must be at most {COST_MICROS_MAX}, got {}",
                totals.cost_micros
            )));
        }
        let cached_tokens = totals.cache_read_tokens + totals.cache_write_tokens;
        if cached_tokens > totals.input_tokens {
            return Err(Error::invalid_input(format_args!(
                "`input_tokens` must include the {cached_tokens} tokens of `cache_read_tokens` and \
                 `cache_write_tokens`, got {}",
                totals.input_tokens
            )));
        }
        if totals.input_tokens + totals.output_tokens + totals.cost_micros == 0 {
            return Err(Error::invalid_input(
                "`input_tokens`, `output_tokens` or `cost_micros` must be greater than 0",
            ));
        }
        Ok(self)
    }
}

/// The usage record of a conversation.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct UsageRecord {
    turns: UsageTotals,
    summaries: UsageTotals,
    /// Time of the newest report of a turn; `None`: no turn was reported.
    turn_at: Option<Timestamp>,
    /// The newest report with its time, by which a repetition is recognised; `None`: there was no
    /// report.
    newest: Option<(Timestamp, UsageReport)>,
}

impl SoundRecord for UsageRecord {
    fn is_sound(&self) -> bool {
        let is_bounded =
            |totals: &UsageTotals| totals.to_numbers().iter().all(|number| *number < 1 << 60);
        let times = [self.turn_at, self.newest.map(|(time, _)| time)];
        let newest = self.newest.is_none_or(|(_, report)| is_bounded(&report.totals));
        [self.turns, self.summaries].iter().all(is_bounded)
            && newest
            && times.iter().flatten().all(|time| *time <= time::MS_MAX)
    }
}

impl UsageRecord {
    /// Returns the key of the usage record of a conversation.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.usage_key())
    }

    /// Reads the usage record; an absent record has no reports.
    ///
    /// # Errors
    ///
    /// `corrupt`: the record is damaged; `unsupported`: a record has a newer format; errors of the
    /// store.
    pub(crate) fn read(session: &mut StoreSession<'_>, keys: &ConversationKeys) -> Result<Self> {
        Ok(session.read_record(&Self::key(keys))?.unwrap_or_default())
    }

    /// Adds a report to the totals; does nothing and returns false if report and time equal those
    /// of the newest report.
    pub(crate) fn add_report(&mut self, report: &UsageReport, now: Timestamp) -> bool {
        if self.newest == Some((now, *report)) {
            return false;
        }
        self.newest = Some((now, *report));
        if report.is_summary {
            self.summaries.add_totals(&report.totals);
        } else {
            self.turns.add_totals(&report.totals);
            self.turn_at = Some(now);
        }
        // Only costs can reach the bound of the record: tokens of a report have 32 bits.
        for totals in [&mut self.turns, &mut self.summaries] {
            totals.cost_micros = totals.cost_micros.min((1 << 60) - 1);
        }
        true
    }

    /// Returns the time of the newest turn; `None`: no turn was reported.
    pub(crate) fn turn_at(&self) -> Option<Timestamp> {
        self.turn_at
    }

    /// Returns the number of reported turns.
    pub(crate) fn count_turns(&self) -> u64 {
        self.turns.calls
    }

    /// Returns the share of the turns' repeated prompt tokens that the provider read from its
    /// cache, in thousandths. If no turn has tokens read from the cache, returns 1,000, because the
    /// host may not report them.
    ///
    /// Each turn is taken to add `turn_tokens` new tokens and to repeat the other tokens.
    pub(crate) fn cached_permille(&self, turn_tokens: u64) -> u64 {
        let turns = &self.turns;
        let new_tokens = turns.calls.saturating_mul(turn_tokens);
        let repeated = turns.input_tokens.saturating_sub(new_tokens).max(turns.cache_read_tokens);
        let share = turns.cache_read_tokens.saturating_mul(1_000).checked_div(repeated);
        share.filter(|_| turns.cache_read_tokens > 0).unwrap_or(1_000).min(1_000)
    }

    /// Renders the totals as one line for an agent's model; an empty text without reports.
    pub(crate) fn render_line(&self) -> String {
        let (turns, summaries) = (&self.turns, &self.summaries);
        if turns.calls + summaries.calls == 0 {
            return String::new();
        }
        let cost = turns.cost_micros.saturating_add(summaries.cost_micros);
        format!(
            "Reported: {} turns, {} tokens read, {} of them cached, and {} written; costs of \
             {}.{:06} in the host's currency, {}.{:06} of them for summaries\n",
            turns.calls,
            turns.input_tokens,
            turns.cache_read_tokens,
            turns.output_tokens,
            cost / 1_000_000,
            cost % 1_000_000,
            summaries.cost_micros / 1_000_000,
            summaries.cost_micros % 1_000_000,
        )
    }

    /// Returns the totals as JSON.
    pub(crate) fn to_object(&self) -> JsonWriter {
        let mut object = JsonWriter::new_object();
        object.add_object("summaries", self.summaries.to_object());
        object.add_object("turns", self.turns.to_object());
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<UsageReport> {
        let mut fields = JsonFields::parse_argument("arguments-json", json)?;
        let report = UsageReport::read(&mut fields);
        fields.finish("arguments-json")?;
        report.validate()
    }

    #[test]
    fn turns_and_summaries_are_summed_apart_and_a_repeated_report_counts_once() {
        let turn = read(
            r#"{"purpose":"turn","input_tokens":100,"cache_read_tokens":60,
                "cache_write_tokens":40,"output_tokens":7,"cost_micros":9}"#,
        );
        let turn = turn.unwrap();
        let summary = read(r#"{"purpose":"summary","input_tokens":5,"cost_micros":2}"#).unwrap();
        let mut usage = UsageRecord::default();
        assert!(usage.add_report(&turn, 10) && !usage.add_report(&turn, 10));
        assert!(usage.add_report(&turn, 11) && usage.add_report(&summary, 12));
        assert!(usage.is_sound());
        assert_eq!((usage.count_turns(), usage.turn_at()), (2, Some(11)));
        assert_eq!(usage.turns.to_numbers(), [2, 200, 120, 80, 14, 18]);
        assert_eq!(usage.summaries.to_numbers(), [1, 5, 0, 0, 0, 2]);
    }

    #[test]
    fn a_report_that_contradicts_itself_is_refused() {
        for (json, wrong) in [
            (r#"{"purpose":"turn"}"#, "must be greater than 0"),
            (r#"{"purpose":"turn","input_tokens":9,"cache_read_tokens":10}"#, "input_tokens"),
            (r#"{"purpose":"nap","input_tokens":9}"#, "`turn`, `summary`"),
            (r#"{"input_tokens":9}"#, "purpose"),
            (r#"{"purpose":"turn","cost_micros":1000000000000001}"#, "cost_micros"),
            (r#"{"purpose":"turn","input_tokens":-1}"#, "input_tokens"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.message.contains(wrong), "{json}: {}", error.message);
        }
    }
}
