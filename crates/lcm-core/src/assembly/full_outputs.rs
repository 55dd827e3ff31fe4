//! Large tool outputs that are shown in full in the fresh tail.
//!
//! A context shows a large tool output as a reference. With `stub_large_tool_payloads`, the fresh
//! tail shows its newest large outputs in full, as far as the budget allows. In: the input of
//! an assembly. Out: the messages to show in full, which [`super::render`] reads.

use alloc::vec::Vec;

use crate::storage::{
    fresh_tail,
    pack::{PlacedMessage, StoredMessage},
    store_session::StoreSession,
};
use lcm_text::{
    base::error::Result,
    message::{Part, Role},
};

use super::input::AssemblyInput;

/// The tool outputs that are shown in full.
#[derive(Debug, Default)]
pub(super) struct FullOutputs {
    /// Seqs of the messages that are shown in full.
    seqs: Vec<u64>,
    /// Tokens of the full messages, less the tokens of their placeholders.
    pub(super) extra_tokens: u64,
}

impl FullOutputs {
    /// Selects messages of the tail, newest first, whose extra tokens together fit the evictable
    /// budget. A message that does not fit is skipped.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(super) fn select_from_tail(
        session: &mut StoreSession<'_>,
        input: &AssemblyInput<'_>,
    ) -> Result<Self> {
        let AssemblyInput { history, items, tail, .. } = *input;
        let tokens_max = input.evictable_budget();
        let mut out = Self::default();
        for run in fresh_tail::last_raw_runs(items) {
            if run.seq_last < tail.seq_first {
                break;
            }
            let first = run.seq_first.max(tail.seq_first);
            let messages = history.read_messages(session, first, run.seq_last)?;
            for PlacedMessage { seq, stored, .. } in messages.iter().rev() {
                let extra = u64::from(stored.message_tokens().saturating_sub(stored.tokens));
                if is_tool_placeholder(stored) && out.extra_tokens + extra <= tokens_max {
                    out.seqs.push(*seq);
                    out.extra_tokens += extra;
                }
            }
        }
        Ok(out)
    }

    /// Returns whether the message with a seq is shown in full.
    pub(super) fn contains_seq(&self, seq: u64) -> bool {
        self.seqs.contains(&seq)
    }
}

/// Returns whether a message with tool output has a placeholder.
fn is_tool_placeholder(stored: &StoredMessage) -> bool {
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    stored.placeholder.is_some()
        && (stored.role == Role::Tool || stored.parts.iter().any(is_result))
}
