//! Evaluate: whether compaction is due, and why.
//!
//! In: a conversation, a budget, options. Out: a decision with its inputs, rule and outcome. Reads
//! the head alone, and in mode `incremental` the packs of the fresh tail. Of a conversation that
//! does not exist nothing is due. What is to be done is [`super::plan()`]'s.

use alloc::{string::String, vec::Vec};

use crate::storage::{keys::Keys, session, store_session::Reader};
use lcm_text::{
    base::{error::Result, int, json::Writer},
    config::Config,
    types::api::{CompactionMode, CompactionOptions, Decision, Timestamp},
};

use super::{Call, Goal, goal, plan, reason, spend, sweep::Sweep};

/// What was compared, and how it came out.
struct Compared {
    tokens: u64,
    bound: u64,
    rule: &'static str,
    met: bool,
    /// The reason when it is met.
    reason: &'static str,
}

impl Compared {
    fn threshold(goal: &Goal) -> Self {
        let rule = if goal.inclusive { "tokens >= threshold" } else { "tokens > threshold" };
        let (tokens, bound) = (goal.current, goal.due_above);
        Self { tokens, bound, rule, met: goal.due(), reason: "threshold" }
    }

    fn chunk(outside: plan::Outside) -> Self {
        Self {
            tokens: outside.tokens,
            bound: outside.chunk_tokens,
            rule: "raw tokens outside the fresh tail >= leaf_chunk_tokens_max",
            met: outside.due(),
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
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    budget: u32,
    options: &CompactionOptions,
    now: Timestamp,
) -> Result<Decision> {
    let keys = Keys::new(conversation)?;
    let call = Call::begin(reader, config, &keys, conversation, (budget, options), Vec::new())?;
    let archived = call.loaded.head.archived.map(|_| "archived");
    let closed = session::passed_over(reader, config, &keys, &call.loaded.head, None)?.or(archived);
    // Before the first message there is nothing to do, and that is no error.
    let exists = call.loaded.bytes.is_some();
    let head = &call.loaded.head;
    let sweep = Sweep::begin(head.context.tokens, call.options.observed_tokens);
    let mut goal = goal(head, &call.policy, &call.options, &sweep);
    if !exists {
        goal.current = 0;
    }
    let closed = if config.enabled { closed } else { Some("disabled") };
    let compared = match (call.options.mode, closed) {
        (CompactionMode::Incremental, None) if exists => {
            let policy = call.policy.less(0);
            Compared::chunk(plan::outside(reader, config, &keys, head, policy, goal)?)
        }
        _ => Compared::threshold(&goal),
    };
    let due = exists && closed.is_none() && (options.force || compared.met);
    let reason = match (closed, due, compared.met) {
        (Some(reason), ..) => reason,
        (None, true, false) => "forced",
        (None, true, true) => compared.reason,
        (None, false, _) => reason::BELOW_THRESHOLD,
    };
    let paused_until = head.ledger.paused_until;
    let is_paused = due && !options.force && now.max(head.time) < paused_until;
    let warnings: Vec<String> =
        is_paused.then(|| spend::pause_warning(paused_until)).into_iter().collect();
    let mut explanation = explanation(&call, budget, &compared, reason);
    explanation.texts("warnings", &warnings);
    Ok(Decision {
        due,
        must: closed.is_none_or(|reason| reason == "disabled")
            && goal.current > u64::from(call.policy.budget),
        reason: reason.into(),
        tokens: int::tokens_u32(compared.tokens),
        threshold: int::tokens_u32(compared.bound),
        explanation_json: explanation.end_object(),
    })
}

/// Inputs, rule and outcome, for people.
fn explanation(call: &Call, budget: u32, compared: &Compared, outcome: &str) -> Writer {
    let optional = |number: Option<u32>| number.map(u64::from);
    let mut inputs = Writer::object();
    inputs.number("budget", budget.into());
    inputs.flag("forced", call.options.force);
    inputs.number_or_null("observed_tokens", optional(call.options.observed_tokens));
    inputs.number("stored_tokens", call.loaded.head.context.tokens);
    inputs.number_or_null("target", optional(call.options.target));
    inputs.number("threshold", call.policy.threshold.into());
    let mut explanation = Writer::object();
    if let Some(calibration) = &call.calibration {
        explanation.object_at("calibration", calibration.object());
    }
    explanation.object_at("inputs", inputs);
    explanation.text("outcome", outcome);
    explanation.number_or_null("override", call.rule.map(|place| int::to_u64(place) + 1));
    explanation.text("rule", compared.rule);
    explanation
}
