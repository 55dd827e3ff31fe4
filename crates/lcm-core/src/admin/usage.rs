//! The commands `usage` and `advise`: usage reports of a host, and advice on compaction.
//!
//! In: a usage report, or prices. Out: the totals after the report, or the advice, as JSON. The
//! rules of a report are in [`crate::storage::records::usage`], the computation of the advice in
//! [`crate::compaction::advise`].

use crate::{
    compaction,
    storage::{
        changes::Changes,
        head::JournalAction,
        records::usage::{UsageRecord, UsageReport},
    },
};
use lcm_text::base::{error::Result, json::JsonWriter};

use super::commands::CommandContext;

impl CommandContext<'_, '_> {
    /// Adds the usage report of one completion to the stored totals, unless report and `now` equal
    /// those of the newest report, and returns the totals. In a session that the configuration
    /// skips, nothing is stored and `changed` is false, but the totals include the report.
    pub(super) fn record_usage(mut self, report: &UsageReport) -> Result<JsonWriter> {
        self.ensure_writable()?;
        let mut usage = UsageRecord::read(self.session, self.call.keys)?;
        let changed = usage.add_report(report, self.call.now) && self.is_writable;
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &self.loaded.head.conversation);
        answer.add_object("usage", usage.to_object());
        if changed {
            let mut changes = Changes::default();
            changes.write_record(&UsageRecord::key(self.call.keys), &usage)?;
            self.commit(JournalAction::Usage, changes)?;
        }
        Ok(answer)
    }

    /// Returns advice on whether compaction now or later costs less; writes nothing.
    pub(super) fn advise(self, request: &compaction::advise::AdviseRequest) -> Result<JsonWriter> {
        compaction::advise::advise(self.session, self.call, request)
    }
}
