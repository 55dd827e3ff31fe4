//! Reports the usage of models, and asks for advice whether to compact now.
//!
//! In: token counts and costs that a provider reported, and prices. Out: sums of all reports, and
//! the advice of the component.

use serde::Serialize;

use crate::{
    error::Result,
    json,
    lcm::Lcm,
    shapes::{AdviseAnswer, TokenPrices, UsageAnswer, UsagePurpose, UsageTotals},
};

/// Tokens and cost of one model answer; 0: unknown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct UsageReport {
    /// Purpose of the answer.
    pub purpose: UsagePurpose,
    /// Tokens of the whole prompt, including those read from or written to the provider's cache.
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
    /// Creates an empty report.
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
    /// Returns prices in millionths of a currency for a million tokens, for a provider without a
    /// cache whose model also summarises.
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

/// Options of advice.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct AdviseOptions {
    /// Token budget of the conversation in the context window of the model, at least 1.
    pub budget: u32,
    /// Prices of tokens.
    pub prices: TokenPrices,
    /// Provider's last token count of the whole prompt, including text added by the host; `None`:
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_tokens: Option<u32>,
    /// Model whose provider counts `budget` and `observed_tokens`, after a report by `calibrate`;
    /// `None`: both are estimated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Lifetime of a cached prefix in milliseconds; `None`: 5 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_ms: Option<u64>,
    /// Number of prompts to come; a greater number than 512 counts as 512; `None`: as many as there
    /// were so far, from 8 to 512.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

impl AdviseOptions {
    /// Returns options with a budget and prices; everything else is `None`.
    #[must_use]
    pub const fn new(budget: u32, prices: TokenPrices) -> Self {
        Self { budget, prices, observed_tokens: None, model: None, cache_ms: None, turns: None }
    }
}

impl Lcm {
    /// Adds tokens and cost of one model answer to the sums of the conversation, and returns the
    /// sums. A repeat of the newest report with the same `now` adds nothing.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: the report is empty or contradicts itself.
    /// - `not-found`: the conversation does not exist; `denied`: the conversation is archived or
    ///   being deleted.
    /// - errors of the store.
    pub fn usage(&self, conversation: &str, report: &UsageReport, now: u64) -> Result<UsageTotals> {
        let arguments = serde_json::json!(report).to_string();
        let text = self.admin_call(conversation, "usage", &arguments, now)?;
        json::read::<UsageAnswer>("admin.call", &text).map(|answer| answer.usage)
    }

    /// Compares the cost of compacting now and of waiting; changes nothing. To follow the advice
    /// `compact`, call [`Lcm::compact`] with `force`, because the context may be below the
    /// threshold.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: an option is invalid.
    /// - `not-found`: the conversation does not exist; `denied`: the conversation is being deleted.
    /// - errors of the store.
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
