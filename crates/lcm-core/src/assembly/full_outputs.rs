//! Large outputs of tools that are whole in the fresh tail.
//!
//! A reference stands for every large output from its ingest on. With `stub_large_tool_payloads` it
//! does so only outside the fresh tail: in it the newest outputs are whole as far as the budget
//! allows.

use crate::storage::pack::PlacedMessage;
use alloc::vec::Vec;

use crate::storage::{
    fresh_tail::FreshTail, history::MessageHistory, pack::StoredMessage,
    store_session::StoreSession,
};
use lcm_text::{
    base::error::Result,
    message::{Part, Role},
};

/// What is whole.
#[derive(Debug, Default)]
pub(super) struct FullOutputs {
    /// Seqs of the messages.
    seqs: Vec<u64>,
    /// Tokens that they have more than their references.
    pub(super) extra_tokens: u64,
}

impl FullOutputs {
    /// The messages of the tail that fit into so many tokens more, from the newest on.
    ///
    /// # Errors
    ///
    /// As [`History::messages`].
    pub(super) fn select_from_tail(
        reader: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
        tail: &FreshTail,
        tokens_max: u64,
    ) -> Result<Self> {
        let mut out = Self::default();
        if tail.seq_first > history.head.messages {
            return Ok(out);
        }
        let messages = history.read_messages(reader, tail.seq_first, history.head.messages)?;
        for PlacedMessage { seq, stored, .. } in messages.iter().rev() {
            let more = u64::from(stored.message_tokens().saturating_sub(stored.tokens));
            if is_tool_placeholder(stored) && out.extra_tokens + more <= tokens_max {
                out.seqs.push(*seq);
                out.extra_tokens += more;
            }
        }
        Ok(out)
    }

    pub(super) fn contains_seq(&self, seq: u64) -> bool {
        self.seqs.contains(&seq)
    }
}

/// Whether references stand for what a tool returned.
fn is_tool_placeholder(stored: &StoredMessage) -> bool {
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    stored.placeholder.is_some()
        && (stored.role == Role::Tool || stored.parts.iter().any(is_result))
}
