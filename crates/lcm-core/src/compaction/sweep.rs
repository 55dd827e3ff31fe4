//! The sweep token: the progress of a sweep, which the host carries from one plan to the next.
//!
//! In: the token of the last plan as text. Out: the token for the next plan. `plan` and `run` use
//! this module. The engine keeps no state between two plans. The token lets the engine limit passes
//! and rounds, and stop a sweep without progress.

use alloc::{format, string::String, vec::Vec};

use super::planner::PlannedTask;
use crate::storage::head::ConversationHead;
use lcm_text::base::{
    error::{Error, Result},
    int,
};

/// Progress of a sweep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SweepToken {
    /// Number of tasks planned in this round.
    pub(crate) passes: u32,
    /// Number of the round, from 1.
    pub(crate) round: u32,
    /// Tokens of the stored context at the start of the round.
    pub(crate) tokens_start: u64,
    /// Tokens of the prompt outside the stored context at the start of the sweep: the system
    /// messages, and other text of the host such as tool definitions.
    pub(crate) overhead: u64,
    /// Number of remakes of provisional summaries planned in the sweep.
    pub(crate) remakes: u32,
    /// Whether the sweep makes remakes only.
    pub(crate) is_remake: bool,
}

impl SweepToken {
    /// Returns the token of a sweep that starts now.
    pub(crate) fn start(head: &ConversationHead, observed_tokens: Option<u32>) -> Self {
        let tokens = head.context.tokens;
        let observed = u64::from(observed_tokens.unwrap_or(0)).saturating_sub(tokens);
        let overhead = observed.max(head.system_tokens());
        Self { passes: 0, round: 1, tokens_start: tokens, overhead, remakes: 0, is_remake: false }
    }

    /// Returns the token of the next round, which starts with `tokens` in the stored context.
    pub(crate) fn next_round(self, tokens: u64) -> Self {
        Self { passes: 0, round: self.round.saturating_add(1), tokens_start: tokens, ..self }
    }

    /// Returns the token after a plan of these tasks; either all tasks are remakes, or none is.
    pub(super) fn with_planned(self, planned: &[PlannedTask]) -> Self {
        let number = int::to_u32(planned.len());
        let is_remake = planned.iter().any(|planned| planned.task.replaced_id().is_some());
        match is_remake {
            true => Self { remakes: self.remakes.saturating_add(number), ..self },
            false => Self { passes: self.passes.saturating_add(number), ..self },
        }
    }

    /// Writes the token as text.
    pub(crate) fn encode(self) -> String {
        let Self { passes, round, tokens_start, overhead, remakes, is_remake } = self;
        let kind = if is_remake { "r" } else { "" };
        let remakes = match remakes {
            0 if !is_remake => String::new(),
            _ => format!(":{kind}{remakes}"),
        };
        format!("s1:{passes}:{round}:{tokens_start}:{overhead}{remakes}")
    }

    /// Parses a token; `None`: the token is absent or empty, so a new sweep starts.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the engine did not make the token.
    pub(crate) fn parse(token: Option<&str>) -> Result<Option<Self>> {
        let Some(token) = token.filter(|token| !token.is_empty()) else { return Ok(None) };
        let refused =
            || Error::invalid_input("`sweep` must be the token that the last `plan` returned");
        let fields: Vec<&str> = token.split(':').collect();
        let ["s1", passes, round, tokens, overhead, rest @ ..] = fields.as_slice() else {
            return Err(refused());
        };
        let remakes = match rest {
            [] => "0",
            [remakes] => remakes,
            _ => return Err(refused()),
        };
        let is_remake = remakes.starts_with('r');
        Ok(Some(Self {
            passes: passes.parse().map_err(|_| refused())?,
            round: round.parse().map_err(|_| refused())?,
            tokens_start: tokens.parse().map_err(|_| refused())?,
            overhead: overhead.parse().map_err(|_| refused())?,
            remakes: remakes.trim_start_matches('r').parse().map_err(|_| refused())?,
            is_remake,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_a_foreign_one_refused() {
        for (remakes, is_remake) in [(0, false), (2, false), (0, true), (9, true)] {
            let (passes, round, tokens_start, overhead) = (3, 2, 12_345, 67);
            let sweep = SweepToken { passes, round, tokens_start, overhead, remakes, is_remake };
            assert_eq!(SweepToken::parse(Some(&sweep.encode())).unwrap(), Some(sweep));
        }
        assert_eq!(SweepToken::parse(None).unwrap(), None);
        assert_eq!(SweepToken::parse(Some("")).unwrap(), None);
        for foreign in
            ["s1", "s1:1:1:1", "s2:1:1:1:1", "s1:-1:1:1:1", "s1:1:1:1:1:x", "s1:1:1:1:1:1:1"]
        {
            assert!(SweepToken::parse(Some(foreign)).is_err(), "{foreign}");
        }
    }
}
