//! The goal of a compaction: above how many tokens compaction is due, and how many may remain.
//!
//! In: the head, the policy, the options of the call and the sweep token. Out: a
//! [`CompactionGoal`]. `evaluate`, `plan` and `advise` use this module.

use crate::storage::head::ConversationHead;
use lcm_text::{
    config::BudgetPolicy,
    types::api::{CompactionMode, CompactionOptions},
};

use super::sweep::SweepToken;

/// When compaction is due, and how many tokens may remain after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactionGoal {
    /// Compaction is due above this many tokens; in mode `until-under` from this many tokens on.
    pub(super) due_above: u64,
    /// Tokens that the decision compares with `due_above`: the tokens of the stored context plus
    /// those of the system messages, or the observed tokens, whichever number is greater.
    pub(super) current: u64,
    /// Maximum tokens of the stored context after compaction; with `is_inclusive`, the context must
    /// have fewer tokens.
    pub(crate) target: u64,
    /// Whether the caller named the target. If so, no leaves are made once the target is reached.
    pub(crate) is_explicit: bool,
    /// Whether a context of exactly `due_above` or `target` tokens is too large; true in mode
    /// `until-under` only.
    pub(super) is_inclusive: bool,
}

/// Derives when compaction is due and how many tokens may remain.
pub(crate) fn derive_goal(
    head: &ConversationHead,
    policy: &BudgetPolicy,
    options: &CompactionOptions,
    sweep: &SweepToken,
) -> CompactionGoal {
    let stored = head.context.tokens + head.system_tokens();
    let observed = u64::from(options.observed_tokens.unwrap_or(0));
    let current = stored.max(observed);
    let threshold = u64::from(policy.threshold);
    let target = options.target.map_or(threshold, u64::from);
    let due_above = match options.mode {
        CompactionMode::Sweep => threshold.min(target),
        CompactionMode::UntilUnder => target,
        CompactionMode::Threshold | CompactionMode::Incremental => threshold,
    };
    CompactionGoal {
        due_above,
        current,
        // `overhead` are tokens of the host, such as system prompt and tools, in the same prompt.
        target: target.saturating_sub(sweep.overhead).max(1),
        is_explicit: options.target.is_some(),
        is_inclusive: options.mode == CompactionMode::UntilUnder,
    }
}

impl CompactionGoal {
    /// Returns whether a stored context of `tokens` tokens is over the target.
    pub(crate) fn is_over(&self, tokens: u64) -> bool {
        tokens > self.target || (self.is_inclusive && tokens == self.target)
    }

    /// Returns whether compaction is due without being forced.
    pub(crate) fn is_due(&self) -> bool {
        self.current > self.due_above || (self.is_inclusive && self.current == self.due_above)
    }
}
