//! `lcm_budget`: the size of the context, the next compaction, and the cost of compaction so far.
//!
//! In: the head of a conversation, and the usage reported by the host. Out: a few lines without
//! stored text. Not here: advice for the host ([`crate::compaction::advise`]).

use alloc::{format, string::String};

use super::invocation::{ToolInvocation, ToolReply};
use crate::storage::{
    clock::ClockReading,
    head::{ConversationHead, LoadedHead},
    records::usage::UsageRecord,
    session::{PolicyRequest, select_policy},
    store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, time},
    config::Config,
};

/// Reports the tokens of the context and of the budget, when compaction is due next, and the cost
/// of compaction so far.
///
/// # Errors
///
/// `not-found`: the conversation does not exist; `denied`: the conversation is being deleted;
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
pub(super) fn report_budget(
    session: &mut StoreSession<'_>,
    invocation: &ToolInvocation<'_>,
) -> Result<ToolReply> {
    let call = invocation.target;
    let loaded = LoadedHead::open_existing(session, call)?;
    let head = &loaded.head;
    let usage = UsageRecord::read(session, call.keys)?;
    let mut out = format!(
        "Context: {} tokens for {} messages of {} tokens\n",
        head.context.tokens, head.messages, head.raw_tokens
    );
    let asked =
        invocation.arguments.get_number("budget").and_then(|budget| u32::try_from(budget).ok());
    match asked.or(call.config.assembly_tokens_max) {
        Some(budget) => {
            let request = PolicyRequest { model: None, budget, estimated_budget: budget };
            let (policy, _) = select_policy(session, call, head, &request)?;
            let left = u64::from(policy.budget).saturating_sub(head.context.tokens);
            out.push_str(&format!("Budget: {} tokens, {left} left\n", policy.budget));
            out.push_str(&format_next_compaction(
                call.config,
                head,
                policy.threshold.into(),
                &loaded.read_clock(call.now)?,
            ));
        }
        None => out.push_str(&format!(
            "Compaction is due at {} thousandths of the budget; give `budget` for the tokens \
             left\n",
            call.config.context_threshold_permille
        )),
    }
    let ledger = &head.ledger;
    out.push_str(&format!(
        "Spent on summaries: {} completions, {} tokens read and {} written; they took {} tokens \
         out of the context\n",
        ledger.completions, ledger.input_tokens, ledger.output_tokens, ledger.saved_tokens
    ));
    out.push_str(&usage.render_line());
    Ok(ToolReply { text: out, tokens: 0 })
}

/// Formats the line on the next compaction.
fn format_next_compaction(
    config: &Config,
    head: &ConversationHead,
    threshold: u64,
    clock: &ClockReading,
) -> String {
    if !config.enabled {
        return "Compaction: switched off; the oldest messages are left out\n".into();
    }
    let mut line = match threshold.checked_sub(head.context.tokens).filter(|left| *left > 0) {
        Some(left) => {
            let message_tokens = head.raw_tokens.checked_div(head.messages).unwrap_or(0).max(1);
            let messages = left / message_tokens;
            format!(
                "Compaction: due in {left} tokens, at {threshold}; about {messages} messages of \
                 {message_tokens} tokens each"
            )
        }
        None => format!("Compaction: due now, from {threshold} tokens on"),
    };
    if clock.is_ahead(head.ledger.paused_until) {
        let until = time::iso_seconds(clock.clock.to_time(head.ledger.paused_until));
        line.push_str(&format!("; no model is asked before {until}"));
    }
    line.push('\n');
    line
}
