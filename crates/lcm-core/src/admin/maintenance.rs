//! The command `maintain`: tells a host that postpones compaction whether to compact now, and
//! records how the last attempt ended.
//!
//! In: a budget, and the reason why the last attempt ended. Out: the deferred compaction (`debt`)
//! and whether to compact now (`drain`), as JSON.

use alloc::string::String;

use crate::{
    compaction::{self, reason},
    storage::{
        changes::Changes,
        clock::ClockReading,
        head::JournalAction,
        record_key::GuardedRecord,
        records::{
            attempts::LEASE_MS,
            deferred::DeferredCompaction,
            grants::{self, GrantRecord},
        },
    },
};
use lcm_text::{
    base::{
        error::Result,
        json::{JsonFields, JsonWriter},
    },
    types::api::CompactionOptions,
};

use super::commands::CommandContext;

/// Arguments of `maintain`.
pub(super) struct MaintainRequest {
    budget: u32,
    observed_tokens: Option<u32>,
    model: Option<String>,
    /// Index in [`reason::ALL`] of the reason why the last attempt ended; `None`: the host reports
    /// no attempt.
    end_reason: Option<usize>,
}

/// End reasons that count as a failure, after which the next attempt waits for a pause.
const BACKOFF_REASONS: [&str; 5] = [
    reason::MODEL_AUTH,
    reason::MODEL_POLICY,
    reason::MODEL_UNAVAILABLE,
    reason::SPEND_LIMIT,
    reason::BREAKER_OPEN,
];

/// End reasons after which no attempt can succeed until the tokens of the context change.
const EXHAUSTED_REASONS: [&str; 3] =
    [reason::NO_ELIGIBLE_CHUNK, reason::NO_PROGRESS, reason::TAIL_OVER_TARGET];

impl MaintainRequest {
    pub(super) fn read(fields: &mut JsonFields<'_>) -> Self {
        let budget = fields.take_u32("budget");
        if budget == 0 {
            fields.reject_field("budget", "at least 1");
        }
        Self {
            budget,
            observed_tokens: fields.take_optional_u32("observed_tokens"),
            model: fields.take_optional_text("model"),
            end_reason: fields.take_optional_choice("ended", &reason::ALL),
        }
    }

    fn compaction_options(&self) -> CompactionOptions {
        let extra_json = compaction::build_model_option(self.model.as_deref());
        let observed_tokens = self.observed_tokens;
        CompactionOptions { observed_tokens, extra_json, ..CompactionOptions::default() }
    }
}

impl CommandContext<'_, '_> {
    /// Evaluates whether compaction or a remake is due, updates the deferred compaction, and
    /// reports whether the host should compact now.
    ///
    /// The same commit removes expired grants from the record in `grants`; `None` removes none.
    pub(super) fn maintain(
        mut self,
        request: &MaintainRequest,
        grants: Option<GuardedRecord<GrantRecord>>,
    ) -> Result<JsonWriter> {
        let now = self.call.now;
        // A step back of the clock is stored together with the deferred compaction, whose times
        // follow the clock.
        let stores_step = self.clock.step_back_ms > 0 && self.is_writable && !self.dry_run;
        let clock = if stores_step { self.clock.as_stored() } else { self.clock };
        let conversation = self.loaded.head.conversation.clone();
        let options = request.compaction_options();
        let decision = compaction::evaluate(self.session, self.call, request.budget, &options)?;
        let context_tokens = self.loaded.head.context.tokens;
        let before = self.loaded.head.deferred;
        // An open provisional summary is made again below the threshold, too.
        let has_open = self.call.config.enabled
            && compaction::has_open_summary(self.session, self.call, &self.loaded.head)?;
        let end_reason = request.end_reason.and_then(|index| reason::ALL.get(index));
        let deferred = (decision.due || has_open).then(|| {
            let deferred = before.unwrap_or(DeferredCompaction::new(now, clock.ticks));
            record_end(deferred, end_reason, context_tokens, &clock)
        });
        let changes = match grants.filter(|_| self.is_writable) {
            Some(grants) => grants::remove_expired_grants(grants, &clock, now)?,
            None => Changes::default(),
        };
        let deferred_changed = (deferred != before && self.is_writable) || stores_step;
        let changed = deferred_changed || !changes.is_empty();
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &conversation);
        // A remake waits until the provisional summary has the minimum age for a remake.
        let delays_remake = end_reason.is_some_and(|reason| *reason != reason::PASS_LIMIT);
        let shown = match deferred {
            Some(deferred) if has_open => Some(show_remakes(deferred, delays_remake, &clock)),
            _ => deferred,
        };
        match shown {
            Some(shown) => answer.add_object("debt", shown.to_object(clock.clock)),
            None => answer.add_null("debt"),
        }
        let waits = deferred.is_some_and(|deferred| clock.is_ahead(deferred.next_attempt_at));
        // Waiting counts as a pause only after failures of the model.
        let is_paused = waits && deferred.is_some_and(|deferred| deferred.failures > 0);
        // Where nothing is left to compact, a summary may still be made again.
        let can_attempt = deferred.is_some_and(|deferred| {
            deferred.can_attempt(context_tokens, &clock) || (has_open && !waits)
        });
        // A context over the budget does not wait for `next_attempt_at`.
        let is_pressing = decision.must
            && deferred.is_some_and(|deferred| deferred.exhausted_tokens != Some(context_tokens));
        answer.add_flag("drain", end_reason.is_none() && (can_attempt || is_pressing));
        answer.add_flag("must", decision.must);
        answer.add_flag("paused", is_paused);
        answer.add_number("threshold", decision.threshold.into());
        answer.add_number("tokens", decision.tokens.into());
        if deferred_changed {
            self.loaded.head.deferred = deferred;
            self.commit(JournalAction::Defer, changes)?;
        } else if changed && !self.dry_run {
            self.session.commit_changes(&changes)?;
        }
        Ok(answer)
    }
}

/// Returns deferred compaction after an attempt that ended for `end_reason`; `None`: there was no
/// attempt.
fn record_end(
    deferred: DeferredCompaction,
    end_reason: Option<&&str>,
    context_tokens: u64,
    clock: &ClockReading,
) -> DeferredCompaction {
    match end_reason {
        Some(reason) if BACKOFF_REASONS.contains(reason) => deferred.with_failure(clock),
        Some(&reason::CONFLICT) => {
            // Another caller leased the requests; these leases end before `until`.
            let until = clock.deadline_after(LEASE_MS.into());
            let next_attempt_at = deferred.next_attempt_at.max(until);
            DeferredCompaction { next_attempt_at, ..deferred }
        }
        Some(reason) if EXHAUSTED_REASONS.contains(reason) => {
            DeferredCompaction { exhausted_tokens: Some(context_tokens), ..deferred }
        }
        _ => deferred,
    }
}

/// Returns the deferred compaction that results show while provisional summaries are open: not
/// marked as exhausted. `waits`: whether the next attempt waits until a summary made now has the
/// minimum age for a remake.
fn show_remakes(
    deferred: DeferredCompaction,
    waits: bool,
    clock: &ClockReading,
) -> DeferredCompaction {
    let ready = if waits { clock.deadline_after(compaction::REMAKE_AGE_MS_MIN) } else { 0 };
    let next_attempt_at = deferred.next_attempt_at.max(ready);
    DeferredCompaction { next_attempt_at, exhausted_tokens: None, ..deferred }
}
