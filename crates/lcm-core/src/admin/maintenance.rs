//! The command `maintain`: tells a host with deferred compaction whether to compact now, and
//! records how the last attempt ended.

use crate::storage::session;
use alloc::{string::String, vec::Vec};

use crate::{
    compaction::{self, reason},
    storage::{
        head::JournalAction,
        records::{deferred::DeferredCompaction, grants},
    },
};
use lcm_text::{
    base::{
        error::Result,
        json::{JsonFields, JsonWriter},
    },
    config::Config,
    types::api::CompactionOptions,
};

use super::commands::CommandContext;

/// Arguments of `maintain`.
pub(super) struct MaintainRequest {
    budget: u32,
    observed_tokens: Option<u32>,
    model: Option<String>,
    /// Index in [`reason::ALL`] of the reason why the last compaction ended; `None`: the host
    /// reports no attempt.
    end_reason: Option<usize>,
}

/// End reasons after which the next attempt waits for the retry pause.
const BACKOFF_REASONS: [&str; 5] = [
    reason::MODEL_UNAVAILABLE,
    reason::SPEND_LIMIT,
    reason::BREAKER_OPEN,
    reason::CONFLICT,
    reason::CANCELLED,
];

/// End reasons after which no attempt helps until the context changes.
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
    /// Evaluates whether compaction is due, updates the deferred compaction, and reports whether
    /// the host must compact now.
    ///
    /// `grants` holds the bytes of the grants record; the same commit removes its expired grants.
    pub(super) fn maintain(
        mut self,
        config: &Config,
        request: &MaintainRequest,
        grants: Option<Vec<u8>>,
    ) -> Result<JsonWriter> {
        if self.is_writable {
            self.loaded = self.loaded.require_existing()?;
            session::ensure_not_archived(self.reader, &self.loaded.head)?;
        }
        let conversation = self.loaded.head.conversation.clone();
        let options = request.compaction_options();
        let decision = compaction::evaluate(
            self.reader,
            config,
            &conversation,
            request.budget,
            &options,
            self.now,
        )?;
        let context_tokens = self.loaded.head.context.tokens;
        let before = self.loaded.head.deferred;
        let end_reason = request.end_reason.and_then(|index| reason::ALL.get(index));
        let deferred = decision.due.then(|| {
            let deferred = before.unwrap_or(DeferredCompaction::new(self.now));
            match end_reason {
                Some(reason) if BACKOFF_REASONS.contains(reason) => deferred.with_failure(self.now),
                Some(reason) if EXHAUSTED_REASONS.contains(reason) => {
                    DeferredCompaction { exhausted_tokens: Some(context_tokens), ..deferred }
                }
                _ => deferred,
            }
        });
        let swept = match grants.filter(|_| self.is_writable) {
            Some(bytes) => grants::sweep_record(&self.keys, Some(bytes), self.now)?,
            None => None,
        };
        let deferred_changed = deferred != before && self.is_writable;
        let changed = deferred_changed || swept.is_some();
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &conversation);
        match &deferred {
            Some(deferred) => answer.add_object("debt", deferred.to_object()),
            None => answer.add_null("debt"),
        }
        let can_attempt =
            deferred.is_some_and(|deferred| deferred.can_attempt(context_tokens, self.now));
        // A context over the budget does not wait for the retry pause.
        let is_pressing = decision.must
            && deferred.is_some_and(|deferred| deferred.exhausted_tokens != Some(context_tokens));
        answer.add_flag("drain", end_reason.is_none() && (can_attempt || is_pressing));
        answer.add_flag("must", decision.must);
        answer.add_number("threshold", decision.threshold.into());
        answer.add_number("tokens", decision.tokens.into());
        let (guards, puts): (Vec<_>, Vec<_>) = swept.into_iter().unzip();
        if deferred_changed {
            self.loaded.head.deferred = deferred;
            self.commit_guarded(JournalAction::Defer, puts, guards)?;
        } else if changed && !self.dry_run {
            self.reader.commit(&guards, &puts)?;
        }
        Ok(answer)
    }
}
