//! Evaluate: whether compaction is due, and why.
//!
//! In: a conversation, a budget, options. Out: a decision with its inputs, rule and outcome. Reads
//! the head alone, and in mode `incremental` the packs of the fresh tail. Of a conversation that
//! does not exist nothing is due. What is to be done is [`super::plan()`]'s.

use alloc::{string::String, vec::Vec};

use crate::storage::{keys::ConversationKeys, session, store_session::StoreSession};
use lcm_text::{
    base::{error::Result, int, json::JsonWriter},
    config::Config,
    types::api::{CompactionMode, CompactionOptions, Decision, Timestamp},
};

use super::{
    CompactionCall, CompactionGoal, derive_goal, plan, reason, spend_limit, sweep::SweepToken,
};

/// What was compared, and how it came out.
struct DueComparison {
    tokens: u64,
    bound: u64,
    rule: &'static str,
    is_met: bool,
    /// The reason when it is met.
    reason: &'static str,
}

impl DueComparison {
    fn from_goal(goal: &CompactionGoal) -> Self {
        let rule = if goal.is_inclusive { "tokens >= threshold" } else { "tokens > threshold" };
        let (tokens, bound) = (goal.current, goal.due_above);
        Self { tokens, bound, rule, is_met: goal.is_due(), reason: "threshold" }
    }

    fn from_eligible_raw(outside: plan::EligibleRaw) -> Self {
        Self {
            tokens: outside.tokens,
            bound: outside.chunk_tokens,
            rule: "raw tokens outside the fresh tail >= leaf_chunk_tokens_max",
            is_met: outside.is_due(),
            reason: "leaf-chunk",
        }
    }
}

/// Says whether compaction is due, and why.
///
/// # Errors
///
/// `invalid-input`, errors of the store.
pub(crate) fn evaluate(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    budget: u32,
    options: &CompactionOptions,
    now: Timestamp,
) -> Result<Decision> {
    let keys = ConversationKeys::new(conversation)?;
    let call =
        CompactionCall::open(reader, config, &keys, conversation, (budget, options), Vec::new())?;
    let archived = call.loaded.head.archived.map(|_| "archived");
    let closed =
        session::find_skip_reason(reader, config, &keys, &call.loaded.head, None)?.or(archived);
    // Before the first message there is nothing to do, and that is no error.
    let exists = call.loaded.bytes.is_some();
    let head = &call.loaded.head;
    let sweep = SweepToken::start(head.context.tokens, call.options.observed_tokens);
    let mut goal = derive_goal(head, &call.policy, &call.options, &sweep);
    if !exists {
        goal.current = 0;
    }
    let closed = if config.enabled { closed } else { Some("disabled") };
    let compared = match (call.options.mode, closed) {
        (CompactionMode::Incremental, None) if exists => {
            let policy = call.policy.with_reserve(0);
            DueComparison::from_eligible_raw(plan::measure_eligible_raw(
                reader, config, &keys, head, policy, goal,
            )?)
        }
        _ => DueComparison::from_goal(&goal),
    };
    let due = exists && closed.is_none() && (options.force || compared.is_met);
    let reason = match (closed, due, compared.is_met) {
        (Some(reason), ..) => reason,
        (None, true, false) => "forced",
        (None, true, true) => compared.reason,
        (None, false, _) => reason::BELOW_THRESHOLD,
    };
    let paused_until = head.ledger.paused_until;
    let is_paused = due && !options.force && now.max(head.time) < paused_until;
    let warnings: Vec<String> =
        is_paused.then(|| spend_limit::build_pause_warning(paused_until)).into_iter().collect();
    let mut explanation = build_explanation(&call, budget, &compared, reason);
    explanation.add_texts("warnings", &warnings);
    Ok(Decision {
        due,
        must: closed.is_none_or(|reason| reason == "disabled")
            && goal.current > u64::from(call.policy.budget),
        reason: reason.into(),
        tokens: int::saturate_tokens(compared.tokens),
        threshold: int::saturate_tokens(compared.bound),
        explanation_json: explanation.end_object(),
    })
}

/// Inputs, rule and outcome, for people.
fn build_explanation(
    call: &CompactionCall,
    budget: u32,
    compared: &DueComparison,
    outcome: &str,
) -> JsonWriter {
    let optional = |number: Option<u32>| number.map(u64::from);
    let mut inputs = JsonWriter::new_object();
    inputs.add_number("budget", budget.into());
    inputs.add_flag("forced", call.options.force);
    inputs.add_optional_number("observed_tokens", optional(call.options.observed_tokens));
    inputs.add_number("stored_tokens", call.loaded.head.context.tokens);
    inputs.add_optional_number("target", optional(call.options.target));
    inputs.add_number("threshold", call.policy.threshold.into());
    let mut explanation = JsonWriter::new_object();
    if let Some(calibration) = &call.calibration {
        explanation.add_object("calibration", calibration.to_object());
    }
    explanation.add_object("inputs", inputs);
    explanation.add_text("outcome", outcome);
    explanation
        .add_optional_number("override", call.override_index.map(|place| int::to_u64(place) + 1));
    explanation.add_text("rule", compared.rule);
    explanation
}
