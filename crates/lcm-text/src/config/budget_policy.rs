//! Derives the numbers for one call from a configuration and a budget.
//!
//! Input: a [`Config`], the budget in tokens, and the override that applies. Output: a
//! [`BudgetPolicy`] for compaction and assembly.

use super::{
    config_override::ConfigOverride,
    engine_config::{Config, TailCap},
};
use crate::{
    base::error::{Error, Result},
    types::model::Level,
};

/// Least derived limit of a fallback summary, in tokens, so that the note of the summary fits.
const FALLBACK_TOKENS_MIN: u32 = 64;

/// The numbers that decide one call, in tokens unless a field says otherwise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BudgetPolicy {
    /// The budget of the call, at most `assembly_tokens_max`.
    pub budget: u32,
    /// Compaction is due when the context exceeds this number.
    pub threshold: u32,
    /// Most messages of the fresh tail; 0: no tail.
    pub fresh_tail_messages_max: u32,
    /// Most tokens of the fresh tail; `None`: no cap.
    pub fresh_tail_tokens_max: Option<u32>,
    /// Most source tokens of a leaf.
    pub leaf_chunk_tokens_max: u32,
    /// Target of a leaf; [`BudgetPolicy::leaf_target`] adapts the target to a source.
    pub leaf_tokens_target: u32,
    /// Target of a condensed summary; [`BudgetPolicy::condensed_target`] adapts the target to the
    /// sources.
    pub condensed_tokens_target: u32,
    /// Least number of leaves that are condensed together.
    pub condense_leaves_min: u32,
    /// Least number of condensed summaries that are condensed together.
    pub condense_summaries_min: u32,
    /// Least number of leaves, or of condensed summaries, that are condensed together under
    /// pressure.
    pub condense_min_hard: u32,
    /// Greatest depth of a summary that a sweep makes without pressure; `None`: unlimited.
    pub sweep_depth_max: Option<u32>,
    /// Summaries are condensed when all summaries of the context together exceed this number.
    pub summary_prefix_tokens_target: u32,
    /// Most passes of one sweep.
    pub sweep_passes_max: u32,
    /// Most sweeps of mode `until-under`.
    pub until_under_rounds_max: u32,
    /// Most tokens of a fallback summary, its note included.
    pub fallback_tokens_max: u32,
    /// A summary is cut above this factor times its target.
    pub summary_overage_factor: u32,
}

impl Config {
    /// Derives the numbers for one budget in tokens, without an override.
    ///
    /// ```
    /// use lcm_text::config::Config;
    ///
    /// let policy = Config::default().derive_policy(200_000)?;
    /// assert_eq!(policy.threshold, 150_000);
    /// assert_eq!(policy.leaf_chunk_tokens_max, 20_000);
    /// # Ok::<(), lcm_text::base::error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid-input`: `budget` is 0.
    pub fn derive_policy(&self, budget: u32) -> Result<BudgetPolicy> {
        self.derive_policy_with(budget, None)
    }

    /// Derives the numbers for one budget in tokens with one of `context_threshold_overrides`.
    ///
    /// [`Config::find_override`] finds the index of the override; without a valid index no override
    /// applies.
    ///
    /// # Errors
    ///
    /// `invalid-input`: `budget` is 0.
    pub fn derive_policy_with(&self, budget: u32, index: Option<usize>) -> Result<BudgetPolicy> {
        let rule = index.and_then(|index| self.context_threshold_overrides.get(index));
        if budget == 0 {
            return Err(Error::invalid_input("`budget` must be at least 1, got 0"));
        }
        let budget = budget.min(self.assembly_tokens_max.unwrap_or(u32::MAX));
        let none = ConfigOverride::default();
        let rule = rule.unwrap_or(&none);
        let permille = rule.context_threshold_permille.unwrap_or(self.context_threshold_permille);
        let threshold = scale_ratio(budget, permille, 1000);
        let chunk = rule.leaf_chunk_tokens_max.or(self.leaf_chunk_tokens_max);
        let chunk = chunk.unwrap_or((threshold / 2).clamp(1000, 20_000));
        let leaf = self.leaf_tokens_target.unwrap_or((threshold / 5).clamp(192, 2400));
        let condensed = self.condensed_tokens_target.unwrap_or((threshold / 6).clamp(512, 2000));
        Ok(BudgetPolicy {
            budget,
            threshold,
            fresh_tail_messages_max: rule
                .fresh_tail_messages_max
                .unwrap_or(self.fresh_tail_messages_max),
            fresh_tail_tokens_max: match self.fresh_tail_tokens_max {
                TailCap::Derived => Some(scale_ratio(budget, 3, 10)),
                TailCap::Unlimited => None,
                TailCap::Tokens(tokens) => Some(tokens),
            },
            leaf_chunk_tokens_max: chunk,
            leaf_tokens_target: leaf,
            condensed_tokens_target: condensed,
            condense_leaves_min: self.condense_leaves_min,
            condense_summaries_min: self.condense_summaries_min,
            condense_min_hard: self.condense_min_hard,
            sweep_depth_max: self.sweep_depth_max,
            summary_prefix_tokens_target: self
                .summary_prefix_tokens_target
                .unwrap_or(condensed.max(chunk.min(threshold / 2))),
            sweep_passes_max: self.sweep_passes_max,
            until_under_rounds_max: self.until_under_rounds_max,
            fallback_tokens_max: self
                .fallback_tokens_max
                .unwrap_or(leaf.clamp(FALLBACK_TOKENS_MIN, 512)),
            summary_overage_factor: self.summary_overage_factor,
        })
    }
}

impl BudgetPolicy {
    /// Returns the policy with `reserve_tokens` subtracted from the budget; at least 1 token
    /// remains. The cap of the fresh tail becomes at most the new budget.
    #[must_use]
    pub fn with_reserve(mut self, reserve_tokens: u32) -> Self {
        self.budget = self.budget.saturating_sub(reserve_tokens).max(1);
        self.fresh_tail_tokens_max = self.fresh_tail_tokens_max.map(|cap| cap.min(self.budget));
        self
    }

    /// Returns the target of a leaf from `source_tokens`, in tokens.
    ///
    /// Level `Normal`: 35 % of the source, at most the configured target, at least 192. Other
    /// levels: 20 % of the source, at most 55 % of the configured target, at least 96.
    #[must_use]
    pub fn leaf_target(&self, source_tokens: u32, level: Level) -> u32 {
        let target = self.leaf_tokens_target;
        if level != Level::Normal {
            scale_ratio(source_tokens, 20, 100).min(scale_ratio(target, 55, 100).max(96)).max(96)
        } else {
            scale_ratio(source_tokens, 35, 100).min(target).max(192)
        }
    }

    /// Returns the target of a condensed summary from `source_tokens`, in tokens.
    ///
    /// Level `Normal`: the configured target or 512, whichever is greater, but at most half of the
    /// source, at least 64. Other levels: 55 % of this number, at least 64.
    #[must_use]
    pub fn condensed_target(&self, source_tokens: u32, level: Level) -> u32 {
        let normal = self.condensed_tokens_target.max(512).min((source_tokens / 2).max(64));
        if level == Level::Normal { normal } else { scale_ratio(normal, 55, 100).max(64) }
    }
}

/// Returns `value * numerator / denominator`, rounded down, at most `u32::MAX`.
fn scale_ratio(value: u32, numerator: u32, denominator: u32) -> u32 {
    let product = u64::from(value) * u64::from(numerator);
    u32::try_from(product / u64::from(denominator)).unwrap_or(u32::MAX)
}
