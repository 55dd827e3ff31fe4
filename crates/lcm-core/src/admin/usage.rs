//! The commands `usage` and `advise`: usage reports of a host, and advice on compaction.
//!
//! In: a usage report, or prices. Out: the totals, stored in one commit, or the advice. The rules
//! of a report are in [`crate::storage::records::usage`], the computation of the advice in
//! [`crate::compaction::advise`].

use crate::storage::session;
use alloc::vec;

use crate::{
    compaction,
    storage::{
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
    /// Adds the usage report of one completion to the totals.
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

    /// Returns whether compaction now saves money; writes nothing.
    pub(super) fn advise(
        self,
        config: &Config,
        request: &compaction::advise::AdviseRequest,
    ) -> Result<JsonWriter> {
        let conversation = &self.loaded.head.conversation;
        compaction::advise::advise(self.reader, config, conversation, request, self.now)
    }
}
