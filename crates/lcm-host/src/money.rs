//! What turns and summaries cost, and whether compacting now pays.
//!
//! In: what a provider said of an answer; prices. Out: sums, and advice. Both are the component's:
//! [`Lcm::usage`] hands over a report, [`Lcm::advise`] asks. Advice is not followed here: a caller
//! who wants to compacts with `force`.

use serde::{Deserialize, Serialize};

use crate::{error::Result, json, lcm::Lcm};

/// What an answer of a model was for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpentOn {
    /// A turn of the conversation.
    Turn,
    /// A summary of it.
    Summary,
}

/// What one answer of a model took. A number that is not known is 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct UsageReport {
    /// What it was for.
    pub purpose: SpentOn,
    /// Tokens of the whole prompt, those in the provider's cache included.
    pub input_tokens: u32,
    /// Of them those that were read from the cache.
    pub cache_read_tokens: u32,
    /// Of them those that were written to it.
    pub cache_write_tokens: u32,
    /// Tokens of the answer.
    pub output_tokens: u32,
    /// Millionths of the one currency that all reports count in.
    pub cost_micros: u64,
}

impl UsageReport {
    /// A report that says nothing yet.
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

/// What some answers took, summed.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Spent {
    /// Answers.
    pub calls: u64,
    /// Tokens of their prompts, those in the cache included.
    pub input_tokens: u64,
    /// Of them those that were read from the cache.
    pub cache_read_tokens: u64,
    /// Of them those that were written to it.
    pub cache_write_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// Millionths of the currency.
    pub cost_micros: u64,
}

/// What was reported of a conversation so far.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Usage {
    /// Of its turns.
    pub turns: Spent,
    /// Of its summaries.
    pub summaries: Spent,
}

/// Prices of a million tokens, in millionths of a currency, each at most 1,000,000,000.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Prices {
    /// Of a prompt.
    pub input: u64,
    /// Of an answer.
    pub output: u64,
    /// Of what a prompt has in the cache; `None`: as `input`, so that a cache saves nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Of what is written to the cache; `None`: as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Of a prompt of the model that summarises; `None`: as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_input: Option<u64>,
    /// Of an answer of it; `None`: as `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_output: Option<u64>,
}

impl Prices {
    /// Prices of a provider without a cache, whose model also summarises.
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

/// What advice is asked for.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct AdviseOptions {
    /// Tokens of the model's context window that the conversation may use, at least 1.
    pub budget: u32,
    /// What tokens cost.
    pub prices: Prices,
    /// Tokens of the whole prompt as the provider counted them last, what the host adds included;
    /// `None`: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_tokens: Option<u32>,
    /// The model whose tokens `budget` and `observed_tokens` are, once the verb `calibrate` has
    /// reported of it; `None`: they are estimated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How long the provider keeps a prefix, in milliseconds; `None`: 5 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_ms: Option<u64>,
    /// Prompts that are still to come; `None`: as many as there were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

impl AdviseOptions {
    /// Asks with nothing known but prices.
    #[must_use]
    pub const fn new(budget: u32, prices: Prices) -> Self {
        Self { budget, prices, observed_tokens: None, model: None, cache_ms: None, turns: None }
    }
}

/// Whether compacting now costs less than waiting. Costs are millionths of the currency of the
/// prices.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Advice {
    /// `compact` or `wait`.
    pub advice: String,
    /// Why: `saves-more-than-it-costs`, `costs-more-than-it-saves`, `nothing-to-compact` or
    /// `over-budget`.
    pub reason: String,
    /// What the provider's cache is by the newest reported turn: `warm`, `cold` or `unknown`.
    pub cache: String,
    /// What the prompts to come and their summaries cost when the context is compacted now.
    pub cost_now_micros: u64,
    /// What they cost when it is compacted when that is best later.
    pub cost_wait_micros: u64,
    /// What the summaries cost that would be made now.
    pub completions_cost_micros: u64,
    /// After how many turns compaction cannot wait; `None`: it can until the end.
    pub forced_in_turns: Option<u64>,
    /// After how many turns it would cost least; `None`: now.
    pub wait_turns: Option<u64>,
    /// Tokens of the context, what the host adds included.
    pub tokens: u64,
    /// Tokens of it after a compaction.
    pub tokens_after: u64,
    /// Tokens that a turn is supposed to add.
    pub turn_tokens: u64,
    /// Turns that were looked ahead.
    pub turns: u64,
}

impl Lcm {
    /// Reports what one answer of a model took, and says what was reported so far. The newest
    /// report counts once, however often it comes with its `now`.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: the report says nothing, or contradicts itself.
    /// - `not-found`: there is no such conversation; `denied`: it is archived.
    /// - of the store.
    pub fn usage(&self, conversation: &str, report: &UsageReport, now: u64) -> Result<Usage> {
        #[derive(Deserialize)]
        struct Answer {
            usage: Usage,
        }
        let arguments = serde_json::json!(report).to_string();
        let text = self.admin_call(conversation, "usage", &arguments, now)?;
        json::read::<Answer>("admin.call", &text).map(|answer| answer.usage)
    }

    /// Says whether compacting now costs less than waiting; changes nothing. `compact` is followed
    /// by [`Lcm::compact`] with `force`, as it may come below the threshold.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: the options.
    /// - `not-found`: there is no such conversation.
    /// - of the store.
    pub fn advise(&self, conversation: &str, options: &AdviseOptions, now: u64) -> Result<Advice> {
        let arguments = serde_json::json!(options).to_string();
        let text = self.admin_call(conversation, "advise", &arguments, now)?;
        json::read("admin.call", &text)
    }
}
