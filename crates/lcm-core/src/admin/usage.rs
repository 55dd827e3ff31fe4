//! What a host reports of tokens and money, and what it is advised.
//!
//! In: a report, or a question with prices. Out: the sums so far, in one commit, or advice. Not
//! here: what a report may say ([`crate::storage::records::usage`]) and how advice comes about
//! ([`crate::compaction::advise`]).

use crate::storage::session;
use alloc::vec;

use crate::{
    compaction,
    storage::{
        call::Call,
        codec,
        head::JournalAction,
        records::usage::{UsageRecord, UsageReport},
        store::Put,
    },
};
use lcm_text::{
    base::{error::Result, json::JsonWriter},
    config::Config,
};

use super::commands::CommandContext;

impl CommandContext<'_, '_> {
    /// Takes a report of what one answer of a model took.
    pub(super) fn record_usage(mut self, report: &UsageReport) -> Result<JsonWriter> {
        if self.is_writable {
            self.loaded = self.loaded.require_existing()?;
            session::ensure_not_archived(self.reader, &self.loaded.head)?;
        }
        let mut usage = UsageRecord::read(self.reader, &self.keys)?;
        let changed = usage.add_report(report, self.now) && self.is_writable;
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &self.loaded.head.conversation);
        answer.add_object("usage", usage.to_object());
        if changed {
            let put = Put { key: self.keys.usage_key(), value: Some(codec::encode(&usage)?) };
            self.commit(JournalAction::Usage, vec![put])?;
        }
        Ok(answer)
    }

    /// Says whether compacting now pays; writes nothing.
    pub(super) fn advise(
        self,
        config: &Config,
        asked: &compaction::advise::AdviseRequest,
    ) -> Result<JsonWriter> {
        let conversation = &self.loaded.head.conversation;
        let call = Call { config, conversation, keys: &self.keys, now: self.now };
        compaction::advise::advise(self.reader, call, asked)
    }
}
