//! What turns and summaries cost, and whether compacting now pays.
//!
//! In: what a provider said of an answer; prices. Out: sums, and advice. Both are the component's:
//! [`Lcm::usage`] hands over a report, [`Lcm::advise`] asks. Advice is not followed here: a caller
//! who wants to compacts with `force`.

use serde::{Deserialize, Serialize};

use crate::{
    error::Result,
    json,
    lcm::Lcm,
    shapes::{AdviseAnswer, TokenPrices, UsagePurpose, UsageTotals},
};

/// What one answer of a model took. A number that is not known is 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct UsageReport {
    /// What it was for.
    pub purpose: UsagePurpose,
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
    pub const fn new(purpose: UsagePurpose) -> Self {
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

impl TokenPrices {
    /// Prices of a provider without a cache, whose model also summarises.
    #[must_use]
    pub const fn new(input: u32, output: u32) -> Self {
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
    pub prices: TokenPrices,
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
    pub const fn new(budget: u32, prices: TokenPrices) -> Self {
        Self { budget, prices, observed_tokens: None, model: None, cache_ms: None, turns: None }
    }
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
    pub fn usage(&self, conversation: &str, report: &UsageReport, now: u64) -> Result<UsageTotals> {
        #[derive(Deserialize)]
        struct Answer {
            usage: UsageTotals,
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
    pub fn advise(
        &self,
        conversation: &str,
        options: &AdviseOptions,
        now: u64,
    ) -> Result<AdviseAnswer> {
        let arguments = serde_json::json!(options).to_string();
        let text = self.admin_call(conversation, "advise", &arguments, now)?;
        json::read("admin.call", &text)
    }
}
