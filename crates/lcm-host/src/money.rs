//! Cost of turns and summaries, and advice whether to compact now.
//!
//! In: token counts of a provider, and prices. Out: sums and advice of the component. A caller that
//! follows the advice compacts with `force`.

use serde::{Deserialize, Serialize};

use crate::{error::Result, json, lcm::Lcm};

/// Purpose of a model answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpentOn {
    /// A turn of the conversation.
    Turn,
    /// A summary of the conversation.
    Summary,
}

/// Tokens and cost of one model answer; 0: unknown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct UsageReport {
    /// Purpose of the answer.
    pub purpose: SpentOn,
    /// Tokens of the whole prompt, including tokens in the provider's cache.
    pub input_tokens: u32,
    /// Prompt tokens that were read from the cache.
    pub cache_read_tokens: u32,
    /// Prompt tokens that were written to the cache.
    pub cache_write_tokens: u32,
    /// Tokens of the answer.
    pub output_tokens: u32,
    /// Cost in millionths of a currency; all reports use the same currency.
    pub cost_micros: u64,
}

impl UsageReport {
    /// Returns an empty report.
    #[must_use]
    pub const fn new(purpose: SpentOn) -> Self {
        Self {
            purpose,
            input_tokens: 0,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
            output_tokens: 0,
            cost_micros: 0,
        }
    }
}

/// Sums over answers.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Spent {
    /// Number of answers.
    pub calls: u64,
    /// Tokens of the prompts, including tokens in the cache.
    pub input_tokens: u64,
    /// Prompt tokens that were read from the cache.
    pub cache_read_tokens: u64,
    /// Prompt tokens that were written to the cache.
    pub cache_write_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// Cost in millionths of the currency.
    pub cost_micros: u64,
}

/// Sums of all reports of a conversation.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Usage {
    /// Sums of the turns.
    pub turns: Spent,
    /// Sums of the summaries.
    pub summaries: Spent,
}

/// Prices of a million tokens, in millionths of a currency, each at most 1,000,000,000.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Prices {
    /// Price of prompt tokens.
    pub input: u64,
    /// Price of answer tokens.
    pub output: u64,
    /// Price of tokens read from the cache; `None`: `input`, so that a cache saves nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Price of tokens written to the cache; `None`: `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Price of prompt tokens of the summary model; `None`: `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_input: Option<u64>,
    /// Price of answer tokens of the summary model; `None`: `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_output: Option<u64>,
}

impl Prices {
    /// Returns prices of a provider without a cache, whose model also summarises.
    #[must_use]
    pub const fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            output,
            cache_read: None,
            cache_write: None,
            summary_input: None,
            summary_output: None,
        }
    }
}

/// Options of advice.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct AdviseOptions {
    /// Token budget of the conversation in the context window of the model, at least 1.
    pub budget: u32,
    /// Prices of tokens.
    pub prices: Prices,
    /// Provider's last token count of the whole prompt, including text added by the host; `None`:
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_tokens: Option<u32>,
    /// Model whose tokens `budget` and `observed_tokens` count, after a report by `calibrate`;
    /// `None`: estimated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Lifetime of a cached prefix in milliseconds; `None`: 5 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_ms: Option<u64>,
    /// Number of prompts to come; `None`: the number of prompts so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

impl AdviseOptions {
    /// Returns options with prices only.
    #[must_use]
    pub const fn new(budget: u32, prices: Prices) -> Self {
        Self { budget, prices, observed_tokens: None, model: None, cache_ms: None, turns: None }
    }
}

/// Comparison of compacting now and waiting. Costs are in millionths of the currency of the prices.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Advice {
    /// `compact` or `wait`.
    pub advice: String,
    /// Reason: `saves-more-than-it-costs`, `costs-more-than-it-saves`, `nothing-to-compact` or
    /// `over-budget`.
    pub reason: String,
    /// State of the provider's cache at the newest reported turn: `warm`, `cold` or `unknown`.
    pub cache: String,
    /// Cost of the prompts to come and of summaries, with compaction now.
    pub cost_now_micros: u64,
    /// Cost of the prompts to come and of summaries, with compaction at the best later turn.
    pub cost_wait_micros: u64,
    /// Cost of the summaries of a compaction now.
    pub completions_cost_micros: u64,
    /// Number of turns after which compaction cannot wait; `None`: it can wait until the end.
    pub forced_in_turns: Option<u64>,
    /// Number of turns after which compaction costs least; `None`: now.
    pub wait_turns: Option<u64>,
    /// Tokens of the context, including text added by the host.
    pub tokens: u64,
    /// Tokens of the context after a compaction.
    pub tokens_after: u64,
    /// Expected tokens of a turn.
    pub turn_tokens: u64,
    /// Number of turns of the forecast.
    pub turns: u64,
}

impl Lcm {
    /// Reports tokens and cost of one model answer, and returns the sums. A repeat of the newest
    /// report with the same `now` does not count.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: the report is empty or contradicts itself.
    /// - `not-found`: the conversation does not exist; `denied`: the conversation is archived.
    /// - errors of the store.
    pub fn usage(&self, conversation: &str, report: &UsageReport, now: u64) -> Result<Usage> {
        #[derive(Deserialize)]
        struct Answer {
            usage: Usage,
        }
        let arguments = serde_json::json!(report).to_string();
        let text = self.admin_call(conversation, "usage", &arguments, now)?;
        json::read::<Answer>("admin.call", &text).map(|answer| answer.usage)
    }

    /// Compares the cost of compacting now and of waiting; changes nothing. To follow the advice
    /// `compact`, call [`Lcm::compact`] with `force`, because the context may be below the
    /// threshold.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: an option is invalid.
    /// - `not-found`: the conversation does not exist.
    /// - errors of the store.
    pub fn advise(&self, conversation: &str, options: &AdviseOptions, now: u64) -> Result<Advice> {
        let arguments = serde_json::json!(options).to_string();
        let text = self.admin_call(conversation, "advise", &arguments, now)?;
        json::read("admin.call", &text)
    }
}
