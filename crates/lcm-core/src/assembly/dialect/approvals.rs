//! Approvals of tool calls in the AI SDK.
//!
//! At the end of an array, a person's answer to a call that asked for approval makes the SDK run
//! the call, or tell the model that the person refused. In: all turns with their approvals. Out:
//! only the turn of a call whose approval ends the array has it, and the call gets no placeholder
//! for its result. Earlier refusals are results.
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

/// Removes all approvals, except those of the last message, which move to the turn of their calls.
/// A refusal before the last message is the result of its call.
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
    let calling = calling.filter(|_| target == Dialect::AiSdk);
    for (at, mut approval) in approvals {
        if approval.call_id.is_empty() {
            approval.call_id = find_call(entries, &approval).unwrap_or_default().into();
        }
        let has_block = |turn: &Turn<'_>, is_wanted: &dyn Fn(&BlockBody<'_>) -> bool| {
            turn.blocks.iter().any(|block| is_wanted(&block.body))
        };
        let is_call = |body: &BlockBody<'_>| match body {
            BlockBody::Call(call) => call.given_id.as_ref() == Some(&approval.call_id),
            _ => false,
        };
        let is_answer = |body: &BlockBody<'_>| match body {
            BlockBody::Answer(answer) => answer.given_id.as_ref() == Some(&approval.call_id),
            _ => false,
        };
        let model = calling.filter(|_| at == last).and_then(|model| turns.get_mut(model));
        if let Some(turn) = model.filter(|turn| has_block(turn, &is_call)) {
            turn.approvals.push(approval);
        } else if !approval.is_approved && !turns.iter().any(|turn| has_block(turn, &is_answer)) {
            let body = BlockBody::Answer(approval.into_answer());
            let block = TurnBlock { body, native: None };
            turns.get_mut(at).into_iter().for_each(|turn| turn.blocks.push(block.clone()));
        }
    }
}

/// Returns the id of the call whose request an approval answers; `None`: no entry before has it.
fn find_call(entries: &[RenderEntry], approval: &TurnApproval<'_>) -> Option<String> {
    let before = entries.get(..approval.entry)?.iter().rev().map(RenderEntry::raw_text);
    let mut asking = before.filter(|raw| raw.contains("tool-approval-request"));
    asking.find_map(|raw| message::find_approval_request(raw, &approval.id))
}
