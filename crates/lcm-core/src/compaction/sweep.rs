//! The sweep token: the progress of a sweep, which the host carries from one plan to the next.
//!
//! In: the token of the last plan as text. Out: the token for the next plan. `plan` and `run` use
//! this module. The engine keeps no state between two plans; with the token it limits passes and
//! rounds and demands progress.

use alloc::{format, string::String, vec::Vec};

use crate::storage::head::ConversationHead;
use lcm_text::base::error::{Error, Result};

/// Progress of a sweep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SweepToken {
    /// Number of tasks planned in this round.
    pub(crate) passes: u32,
    /// Number of the round, from 1.
    pub(crate) round: u32,
    /// Tokens of the stored context at the start of the round.
    pub(crate) tokens_start: u64,
    /// Tokens beside the stored context at the start of the sweep: the share of the host, of which
    /// the system messages are a part.
    pub(crate) overhead: u64,
}

impl SweepToken {
    /// Returns the token of a sweep that starts now.
    pub(crate) fn start(head: &ConversationHead, observed_tokens: Option<u32>) -> Self {
        let tokens = head.context.tokens;
        let observed = u64::from(observed_tokens.unwrap_or(0)).saturating_sub(tokens);
        let overhead = observed.max(head.system_tokens());
        Self { passes: 0, round: 1, tokens_start: tokens, overhead }
    }

    /// Returns the token of the next round, which starts with `tokens` in the stored context.
    pub(crate) fn next_round(self, tokens: u64) -> Self {
        Self { passes: 0, round: self.round.saturating_add(1), tokens_start: tokens, ..self }
    }

    /// Writes the token as text.
    pub(crate) fn encode(self) -> String {
        format!("s1:{}:{}:{}:{}", self.passes, self.round, self.tokens_start, self.overhead)
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
        let ["s1", passes, round, tokens, overhead] = fields.as_slice() else {
            return Err(refused());
        };
        Ok(Some(Self {
            passes: passes.parse().map_err(|_| refused())?,
            round: round.parse().map_err(|_| refused())?,
            tokens_start: tokens.parse().map_err(|_| refused())?,
            overhead: overhead.parse().map_err(|_| refused())?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_a_foreign_one_refused() {
        let sweep = SweepToken { passes: 3, round: 2, tokens_start: 12_345, overhead: 67 };
        assert_eq!(SweepToken::parse(Some(&sweep.encode())).unwrap(), Some(sweep));
        assert_eq!(SweepToken::parse(None).unwrap(), None);
        assert_eq!(SweepToken::parse(Some("")).unwrap(), None);
        for foreign in ["s1", "s1:1:1:1", "s2:1:1:1:1", "s1:-1:1:1:1", "s1:1:1:1:1:1"] {
            assert!(SweepToken::parse(Some(foreign)).is_err(), "{foreign}");
        }
    }
}
