//! Approvals of tool calls in the AI SDK.
//!
//! At the end of an array, a person's answer to a call that asked for approval makes the SDK run
//! the call, or tell the model that the person refused. In: all turns with their approvals. Out: an
//! approval that ends the array is in the turn of its call, and the call gets no placeholder for
//! its result. All other approvals are removed, and a refusal among them becomes the result of its
//! call.
//!
//! `ai` 6.0.326 and 7.0.173, read on 2026-11-28, look for approvals in the last message only.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use super::{
    RenderEntry,
    file_content::quote_text,
    normalize::{BlockBody, Turn, TurnAnswer, TurnBlock},
};
use lcm_text::{
    message::{self, Role},
    types::api::Dialect,
};

/// Output of a call that a person refused without a reason.
const REFUSED: &str = "\"[a person refused this call]\"";

/// A person's answer to a call that asked for approval.
#[derive(Clone, Debug)]
pub(super) struct TurnApproval<'a> {
    /// Index of the entry that has the answer.
    pub(super) entry: usize,
    /// Id of the request.
    pub(super) id: Cow<'a, str>,
    /// Id of the call; empty: only the request has it.
    pub(super) call_id: Cow<'a, str>,
    /// Whether the person allows the call.
    pub(super) is_approved: bool,
    /// JSON of the reason; empty: there is none.
    pub(super) reason: &'a str,
}

impl<'a> TurnApproval<'a> {
    /// Returns a refusal as the result of its call.
    fn into_answer(self) -> TurnAnswer<'a> {
        let output = if self.reason.is_empty() { REFUSED } else { self.reason };
        TurnAnswer {
            entry: self.entry,
            given_id: Some(self.call_id),
            id: String::new(),
            name: Cow::Borrowed(""),
            output,
            is_error: true,
            native: None,
            has_lost_media: false,
        }
    }

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

/// Moves the approvals of the last message to the turn of their calls, and removes all others. A
/// refusal that is removed becomes the result of its call, unless the call has one.
pub(super) fn keep_last_approvals(
    target: Dialect,
    entries: &[RenderEntry],
    turns: &mut [Turn<'_>],
) {
    let mut approvals: Vec<(usize, TurnApproval<'_>)> = Vec::new();
    for (at, turn) in turns.iter_mut().enumerate() {
        turn.is_emptied |= !turn.approvals.is_empty();
        approvals.extend(turn.approvals.drain(..).map(|approval| (at, approval)));
    }
    let last = turns.len().saturating_sub(1);
    let calling = turns.iter().rposition(|turn| turn.role != Role::Tool);
    for (at, mut approval) in approvals {
        let waits = at == last && target == Dialect::AiSdk;
        if !waits && approval.is_approved {
            continue;
        }
        if approval.call_id.is_empty() {
            approval.call_id = find_call(entries, &approval).unwrap_or_default().into();
        }
        let model = calling.filter(|_| waits).and_then(|model| turns.get_mut(model));
        if let Some(turn) = model.filter(|turn| has_call(turn, &approval.call_id)) {
            turn.approvals.push(approval);
        } else if !approval.is_approved
            && !turns.iter().any(|turn| has_answer(turn, &approval.call_id))
            && let Some(turn) = turns.get_mut(at)
        {
            let body = BlockBody::Answer(approval.into_answer());
            turn.blocks.push(TurnBlock { body, native: None });
        }
    }
}

fn has_call(turn: &Turn<'_>, id: &str) -> bool {
    let is_call = |block: &TurnBlock<'_>| match &block.body {
        BlockBody::Call(call) => call.given_id.as_deref() == Some(id),
        _ => false,
    };
    turn.blocks.iter().any(is_call)
}

fn has_answer(turn: &Turn<'_>, call_id: &str) -> bool {
    let is_answer = |block: &TurnBlock<'_>| match &block.body {
        BlockBody::Answer(answer) => answer.given_id.as_deref() == Some(call_id),
        _ => false,
    };
    turn.blocks.iter().any(is_answer)
}

/// Returns the id of the call whose request an approval answers; `None`: no entry before has it.
fn find_call(entries: &[RenderEntry], approval: &TurnApproval<'_>) -> Option<String> {
    let before = entries.get(..approval.entry)?.iter().rev().map(RenderEntry::raw_text);
    let mut asking = before.filter(|raw| raw.contains("tool-approval-request"));
    asking.find_map(|raw| message::find_approval_request(raw, &approval.id))
}
