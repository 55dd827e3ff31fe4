//! What a configuration means for one budget.

use super::{Config, ConfigOverride, TailCap};
use crate::base::error::{Error, Result};

/// Tokens of a fallback that its note must fit into, whatever the leaf target.
const FALLBACK_TOKENS_MIN: u32 = 64;

/// The numbers that decide one call, all in tokens unless they say otherwise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BudgetPolicy {
    /// The budget of the call, cut to `assembly_tokens_max`.
    pub budget: u32,
    /// Compaction is due above it.
    pub threshold: u32,
    /// Messages of the fresh tail; 0: no tail.
    pub fresh_tail_messages_max: u32,
    /// Tokens of the fresh tail; `None`: no cap.
    pub fresh_tail_tokens_max: Option<u32>,
    /// Source tokens of a leaf.
    pub leaf_chunk_tokens_max: u32,
    /// What a leaf aims at; [`Policy::leaf_target`] says it for a given source.
    pub leaf_tokens_target: u32,
    /// What a condensed summary aims at; [`Policy::condensed_target`] says it for given sources.
    pub condensed_tokens_target: u32,
    /// Leaves that are condensed together at least.
    pub condense_leaves_min: u32,
    /// Condensed summaries that are condensed together at least.
    pub condense_summaries_min: u32,
    /// Either, under pressure.
    pub condense_min_hard: u32,
    /// Greatest depth a sweep makes without pressure; `None`: unlimited.
    pub sweep_depth_max: Option<u32>,
    /// Summaries are condensed above it.
    pub summary_prefix_tokens_target: u32,
    /// Passes of one sweep.
    pub sweep_passes_max: u32,
    /// Sweeps of mode `until-under`.
    pub until_under_rounds_max: u32,
    /// Size of a summary made without the model, note included.
    pub fallback_tokens_max: u32,
    /// How many times its target a summary may have before it is cut.
    pub summary_overage_factor: u32,
}

impl Config {
    /// Everything that follows from this configuration for one budget in tokens.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the budget is 0.
    pub fn derive_policy(&self, budget: u32) -> Result<BudgetPolicy> {
        self.derive_policy_with(budget, None)
    }

    /// The same by one of `context_threshold_overrides`, given by its place from 0 (see
    /// [`Config::override_of`]); `None`, or none there: by the configuration alone.
    ///
    /// # Errors
    ///
    /// As [`Config::policy`].
    pub fn derive_policy_with(&self, budget: u32, rule: Option<usize>) -> Result<BudgetPolicy> {
        let rule = rule.and_then(|place| self.context_threshold_overrides.get(place));
        if budget == 0 {
            return Err(Error::invalid_input("`budget` must be at least 1"));
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
    /// The same with a part of the budget taken away, at least 1 left; the tail keeps within it.
    #[must_use]
    pub fn with_reserve(mut self, reserve_tokens: u32) -> Self {
        self.budget = self.budget.saturating_sub(reserve_tokens).max(1);
        self.fresh_tail_tokens_max = self.fresh_tail_tokens_max.map(|cap| cap.min(self.budget));
        self
    }

    /// Tokens that a leaf of so many source tokens is asked to have: about a third of its source,
    /// or a fifth when aggressive, between a floor and the configured target.
    #[must_use]
    pub fn leaf_target(&self, source_tokens: u32, aggressive: bool) -> u32 {
        let target = self.leaf_tokens_target;
        if aggressive {
            scale_ratio(source_tokens, 20, 100).min(scale_ratio(target, 55, 100).max(96)).max(96)
        } else {
            scale_ratio(source_tokens, 35, 100).min(target).max(192)
        }
    }

    /// Tokens that a condensed summary of so many source tokens is asked to have: the configured
    /// target but at least 512, and at most half its sources; when aggressive 55 % of that. Never
    /// below 64.
    #[must_use]
    pub fn condensed_target(&self, source_tokens: u32, aggressive: bool) -> u32 {
        let normal = self.condensed_tokens_target.max(512).min((source_tokens / 2).max(64));
        if aggressive { scale_ratio(normal, 55, 100).max(64) } else { normal }
    }
}

/// `value * numerator / denominator`, rounded down, at most `u32::MAX`.
fn scale_ratio(value: u32, numerator: u32, denominator: u32) -> u32 {
    let product = u64::from(value) * u64::from(numerator);
    u32::try_from(product / u64::from(denominator)).unwrap_or(u32::MAX)
}
