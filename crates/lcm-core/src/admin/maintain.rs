//! What a host asks that compacts later: whether it is time, and what became of it.

use crate::storage::session;
use alloc::{string::String, vec::Vec};

use crate::{
    compaction::{self, reason},
    storage::{
        head::Act,
        records::{deferred::Debt, grants},
    },
};
use lcm_text::{
    base::{
        error::Result,
        json::{Fields, Writer},
    },
    config::Config,
    types::api::CompactionOptions,
};

use super::verbs::Session;

/// The arguments of `maintain`.
pub(super) struct Maintain {
    budget: u32,
    observed_tokens: Option<u32>,
    model: Option<String>,
    /// Why the compaction ended that an earlier answer asked for; `None`: only the state is asked.
    ended: Option<usize>,
}

/// Reasons after which the next attempt is put off.
const FAILED: [&str; 5] = [
    reason::MODEL_UNAVAILABLE,
    reason::SPEND_LIMIT,
    reason::BREAKER_OPEN,
    reason::CONFLICT,
    reason::CANCELLED,
];

/// Reasons after which nothing can be done until the context changes.
const EXHAUSTED: [&str; 3] =
    [reason::NO_ELIGIBLE_CHUNK, reason::NO_PROGRESS, reason::TAIL_OVER_TARGET];

impl Maintain {
    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        let budget = fields.small("budget");
        if budget == 0 {
            fields.must_be("budget", "at least 1");
        }
        Self {
            budget,
            observed_tokens: fields.small_or_none("observed_tokens"),
            model: fields.text_or_none("model"),
            ended: fields.choice("ended", &reason::ALL),
        }
    }

    fn options(&self) -> CompactionOptions {
        let extra_json = compaction::model_option(self.model.as_deref());
        let observed_tokens = self.observed_tokens;
        CompactionOptions { observed_tokens, extra_json, ..CompactionOptions::default() }
    }
}

impl Session<'_, '_> {
    /// Measures anew, keeps the debt, and says whether it is to be paid now.
    ///
    /// What has expired of `grants`, the record as it was read, goes in the same commit.
    pub(super) fn maintain(
        mut self,
        config: &Config,
        asked: &Maintain,
        grants: Option<Vec<u8>>,
    ) -> Result<Writer> {
        if self.is_stored {
            self.loaded = self.loaded.existing()?;
            session::goes_on(self.reader, &self.loaded.head)?;
        }
        let conversation = self.loaded.head.conversation.clone();
        let options = asked.options();
        let decision = compaction::evaluate(
            self.reader,
            config,
            &conversation,
            asked.budget,
            &options,
            self.now,
        )?;
        let stored = self.loaded.head.context.tokens;
        let known = self.loaded.head.debt;
        let ended = asked.ended.and_then(|place| reason::ALL.get(place));
        let debt = decision.due.then(|| {
            let debt = known.unwrap_or(Debt::begin(self.now));
            match ended {
                Some(reason) if FAILED.contains(reason) => debt.failed(self.now),
                Some(reason) if EXHAUSTED.contains(reason) => {
                    Debt { exhausted_at: Some(stored), ..debt }
                }
                _ => debt,
            }
        });
        let swept = match grants.filter(|_| self.is_stored) {
            Some(bytes) => grants::swept(&self.keys, Some(bytes), self.now)?,
            None => None,
        };
        let owes = debt != known && self.is_stored;
        let changed = owes || swept.is_some();
        let mut answer = Writer::object();
        answer.flag("changed", changed);
        answer.text("conversation", &conversation);
        match &debt {
            Some(debt) => answer.object_at("debt", debt.object()),
            None => answer.null("debt"),
        }
        let open = debt.is_some_and(|debt| debt.is_open(stored, self.now));
        // What does not fit the budget at all is not put off by earlier failures.
        let pressing = decision.must && debt.is_some_and(|debt| debt.exhausted_at != Some(stored));
        answer.flag("drain", ended.is_none() && (open || pressing));
        answer.flag("must", decision.must);
        answer.number("threshold", decision.threshold.into());
        answer.number("tokens", decision.tokens.into());
        let (guards, puts): (Vec<_>, Vec<_>) = swept.into_iter().unzip();
        if owes {
            self.loaded.head.debt = debt;
            self.commit_guarded(Act::Defer, puts, guards)?;
        } else if changed && !self.dry_run {
            self.reader.commit(&guards, &puts)?;
        }
        Ok(answer)
    }
}
