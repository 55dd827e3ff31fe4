//! What a host asks that compacts later: whether it is time, and what became of it.

use crate::storage::session;
use alloc::{string::String, vec::Vec};

use crate::{
    compaction::{self, reason},
    storage::{
        call::Call,
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

/// The arguments of `maintain`.
pub(super) struct MaintainRequest {
    budget: u32,
    observed_tokens: Option<u32>,
    model: Option<String>,
    /// Why the compaction ended that an earlier answer asked for; `None`: only the state is asked.
    end_reason: Option<usize>,
}

/// Reasons after which the next attempt is put off.
const BACKOFF_REASONS: [&str; 5] = [
    reason::MODEL_UNAVAILABLE,
    reason::SPEND_LIMIT,
    reason::BREAKER_OPEN,
    reason::CONFLICT,
    reason::CANCELLED,
];

/// Reasons after which nothing can be done until the context changes.
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
    /// Measures anew, keeps the debt, and says whether it is to be paid now.
    ///
    /// What has expired of `grants`, the record as it was read, goes in the same commit.
    pub(super) fn maintain(
        mut self,
        config: &Config,
        asked: &MaintainRequest,
        grants: Option<Vec<u8>>,
    ) -> Result<JsonWriter> {
        if self.is_writable {
            self.loaded = self.loaded.require_existing()?;
            session::ensure_not_archived(self.reader, &self.loaded.head)?;
        }
        let conversation = self.loaded.head.conversation.clone();
        let options = asked.compaction_options();
        let call = Call { config, conversation: &conversation, keys: &self.keys, now: self.now };
        let decision = compaction::evaluate(self.reader, call, asked.budget, &options)?;
        let stored = self.loaded.head.context.tokens;
        let known = self.loaded.head.deferred;
        let ended = asked.end_reason.and_then(|place| reason::ALL.get(place));
        let debt = decision.due.then(|| {
            let debt = known.unwrap_or(DeferredCompaction::new(self.now));
            match ended {
                Some(reason) if BACKOFF_REASONS.contains(reason) => debt.with_failure(self.now),
                Some(reason) if EXHAUSTED_REASONS.contains(reason) => {
                    DeferredCompaction { exhausted_tokens: Some(stored), ..debt }
                }
                _ => debt,
            }
        });
        let swept = match grants.filter(|_| self.is_writable) {
            Some(bytes) => grants::sweep_record(&self.keys, Some(bytes), self.now)?,
            None => None,
        };
        let owes = debt != known && self.is_writable;
        let changed = owes || swept.is_some();
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &conversation);
        match &debt {
            Some(debt) => answer.add_object("debt", debt.to_object()),
            None => answer.add_null("debt"),
        }
        let open = debt.is_some_and(|debt| debt.can_attempt(stored, self.now));
        // What does not fit the budget at all is not put off by earlier failures.
        let pressing =
            decision.must && debt.is_some_and(|debt| debt.exhausted_tokens != Some(stored));
        answer.add_flag("drain", ended.is_none() && (open || pressing));
        answer.add_flag("must", decision.must);
        answer.add_number("threshold", decision.threshold.into());
        answer.add_number("tokens", decision.tokens.into());
        let (guards, puts): (Vec<_>, Vec<_>) = swept.into_iter().unzip();
        if owes {
            self.loaded.head.deferred = debt;
            self.commit_guarded(JournalAction::Defer, puts, guards)?;
        } else if changed && !self.dry_run {
            self.reader.commit(&guards, &puts)?;
        }
        Ok(answer)
    }
}
