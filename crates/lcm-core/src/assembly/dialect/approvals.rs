//! Approvals of tool calls in the AI SDK.
//!
//! A person's answer to a call that asked for approval has a meaning only at the end of an array:
//! there the SDK runs the call, or tells the model that the person refused. In: all turns with
//! their approvals. Out: only the turn of a call whose approval ends the array has it, and the call
//! gets no placeholder for its result.
//!
//! `ai` 6.0.326 and 7.0.173, read on 2026-11-28, look for approvals in the last message only.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::{
    file_content::quote_text,
    normalize::{BlockBody, Turn},
};
use lcm_text::{
    message::{self, Role},
    types::api::Dialect,
};

/// A person's answer to a call that asked for approval.
#[derive(Clone, Debug)]
pub(super) struct TurnApproval<'a> {
    /// Index of the entry that has the answer.
    pub(super) entry: usize,
    /// Id of the request.
    pub(super) id: Cow<'a, str>,
    /// Id of the call; empty: only the request has it.
    pub(super) call_id: Cow<'a, str>,
    pub(super) is_approved: bool,
    /// JSON of the reason; empty: there is none.
    pub(super) reason: &'a str,
}

impl TurnApproval<'_> {
    /// Writes the block that asks for the approval.
    pub(super) fn write_request(&self) -> String {
        format!(
            "{{\"type\":\"tool-approval-request\",\"approvalId\":{},\"toolCallId\":{}}}",
            quote_text(&self.id),
            quote_text(&self.call_id)
        )
    }

    /// Writes the block with the answer.
    pub(super) fn write_response(&self) -> String {
        let comma = if self.reason.is_empty() { "" } else { ",\"reason\":" };
        format!(
            "{{\"type\":\"tool-approval-response\",\"approvalId\":{},\"approved\":{}{comma}{}}}",
            quote_text(&self.id),
            self.is_approved,
            self.reason
        )
    }
}

/// Moves the approvals of the last message to the turn of their calls, and removes all others.
pub(super) fn keep_last_approvals(target: Dialect, turns: &mut [Turn<'_>]) {
    let mut last: Vec<TurnApproval<'_>> = Vec::new();
    for turn in turns.iter_mut() {
        last = core::mem::take(&mut turn.approvals);
        turn.is_emptied |= !last.is_empty();
    }
    let model = turns.iter_mut().rev().find(|turn| turn.role != Role::Tool);
    let Some(turn) = model.filter(|turn| target == Dialect::AiSdk && turn.role == Role::Assistant)
    else {
        return;
    };
    for mut approval in last {
        if approval.call_id.is_empty() {
            let raw = turn.native.unwrap_or_default();
            let call = message::find_approval_request(raw, &approval.id);
            approval.call_id = Cow::Owned(call.unwrap_or_default());
        }
        let is_called = turn.blocks.iter().any(|block| match &block.body {
            BlockBody::Call(call) => call.given_id.as_ref() == Some(&approval.call_id),
            _ => false,
        });
        if is_called {
            turn.approvals.push(approval);
        }
    }
}
