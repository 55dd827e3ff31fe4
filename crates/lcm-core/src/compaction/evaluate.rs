//! Evaluate: whether compaction is due, and why.
//!
//! In: a conversation, a budget, options. Out: a decision with its inputs, rule and outcome. The
//! engine calls [`evaluate`] for the export `compaction.evaluate`, and `admin` for its verbs.
//!
//! Mode `incremental` reads the fresh tail; other modes read no messages. A conversation that does
//! not exist is an error, unless the call allows a new conversation or the configuration skips this
//! one; in these two cases nothing is due. [`super::plan()`] selects what is summarised.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call, record_key::RecordReads, session as session_rules, store_session::StoreSession,
};
use lcm_text::{
    base::{error::Result, int, json::JsonWriter},
    types::api::{CompactionMode, CompactionOptions, Decision},
};

use super::{
    goal::{CompactionGoal, derive_goal},
    planner::{EligibleRaw, Planner, PlannerInput},
    reason,
    setup::CompactionSetup,
    spend_limit,
    sweep::SweepToken,
};

/// A comparison of tokens with a bound.
struct DueComparison {
    tokens: u64,
    bound: u64,
    rule: &'static str,
    is_met: bool,
    /// The reason if the comparison is met.
    reason: &'static str,
}

impl DueComparison {
    fn from_goal(goal: &CompactionGoal) -> Self {
        let rule = if goal.is_inclusive { "tokens >= threshold" } else { "tokens > threshold" };
        let (tokens, bound) = (goal.current, goal.due_above);
        Self { tokens, bound, rule, is_met: goal.is_due(), reason: "threshold" }
    }

    fn from_eligible_raw(outside: EligibleRaw) -> Self {
        Self {
            tokens: outside.tokens,
            bound: outside.chunk_tokens,
            rule: "raw tokens outside the fresh tail >= leaf_chunk_tokens_max",
            is_met: outside.is_due(),
            reason: "leaf-chunk",
        }
    }
}

/// Decides whether compaction is due, and why.
///
/// # Errors
///
/// `invalid-input`: a budget or target of 0, or wrong further options; `not-found`: the
/// conversation does not exist, and the call does not allow a new one; errors of the store.
pub(crate) fn evaluate(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    budget: u32,
    options: &CompactionOptions,
) -> Result<Decision> {
    let config = call.config;
    let setup = CompactionSetup::open(session, call, budget, options, RecordReads::default())?;
    let head = &setup.loaded.head;
    let archived = head.archived.map(|_| "archived");
    let closed = session_rules::find_skip_reason(session, call, head, None)?.or(archived);
    // Nothing is due in a conversation that does not exist yet.
    let exists = setup.loaded.bytes.is_some();
    let sweep = SweepToken::start(head, setup.options.observed_tokens);
    let mut goal = derive_goal(head, &setup.policy, &setup.options, &sweep);
    if !exists {
        goal.current = 0;
    }
    let closed = if config.enabled { closed } else { Some(reason::DISABLED) };
    let compared = match (setup.options.mode, closed) {
        (CompactionMode::Incremental, None) if exists => {
            let policy = setup.policy.with_reserve(0);
            let planner = Planner::open(session, PlannerInput { call, head, policy, goal }, 1)?;
            DueComparison::from_eligible_raw(planner.eligible_raw())
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
    let clock = setup.loaded.read_clock(call.now)?;
    let is_paused = due && !options.force && clock.is_ahead(head.ledger.paused_until);
    let paused_until = clock.clock.to_time(head.ledger.paused_until);
    let warnings: Vec<String> =
        is_paused.then(|| spend_limit::build_pause_warning(paused_until)).into_iter().collect();
    let mut explanation = build_explanation(&setup, budget, &compared, reason);
    explanation.add_texts("warnings", &warnings);
    Ok(Decision {
        due,
        must: closed.is_none_or(|reason| reason == reason::DISABLED)
            && goal.current > u64::from(setup.policy.budget),
        reason: reason.into(),
        tokens: int::saturate_tokens(compared.tokens),
        threshold: int::saturate_tokens(compared.bound),
        explanation_json: explanation.end_object(),
    })
}

/// Builds the explanation of a decision: its inputs, rule and outcome.
fn build_explanation(
    setup: &CompactionSetup,
    budget: u32,
    compared: &DueComparison,
    outcome: &str,
) -> JsonWriter {
    let optional = |number: Option<u32>| number.map(u64::from);
    let mut inputs = JsonWriter::new_object();
    inputs.add_number("budget", budget.into());
    inputs.add_flag("forced", setup.options.force);
    inputs.add_optional_number("observed_tokens", optional(setup.options.observed_tokens));
    inputs.add_number("stored_tokens", setup.loaded.head.context.tokens);
    inputs.add_optional_number("target", optional(setup.options.target));
    inputs.add_number("threshold", setup.policy.threshold.into());
    let mut explanation = JsonWriter::new_object();
    if let Some(calibration) = &setup.calibration {
        explanation.add_object("calibration", calibration.to_object());
    }
    explanation.add_object("inputs", inputs);
    explanation.add_text("outcome", outcome);
    explanation
        .add_optional_number("override", setup.override_index.map(|index| int::to_u64(index) + 1));
    let provisional = setup.loaded.head.context.provisional;
    if provisional > 0 {
        explanation.add_number("provisional", provisional);
    }
    explanation.add_text("rule", compared.rule);
    explanation
}
