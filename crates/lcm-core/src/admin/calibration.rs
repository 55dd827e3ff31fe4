//! The command `calibrate`: stores the token count that a provider reports for a prompt.

use alloc::string::String;

use crate::storage::{
    changes::Changes,
    head::JournalAction,
    records::calibration::{self, CalibratedModel},
};
use lcm_text::base::{error::Result, json::JsonWriter};

use super::commands::CommandContext;

impl CommandContext<'_, '_> {
    /// Stores a report of the estimated and the provider's token count of the same prompt.
    pub(super) fn record_calibration(
        mut self,
        model: String,
        estimated_tokens: u32,
        prompt_tokens: u32,
    ) -> Result<JsonWriter> {
        let target = CalibratedModel::new(self.call.keys, model)?;
        self.ensure_writable()?;
        let found = target.read_calibration(self.session)?;
        let mut changes = Changes::default();
        if found.is_none() {
            calibration::evict_oldest(self.session, self.call.keys, &mut changes)?;
        }
        let mut record = found.unwrap_or_else(|| target.new_calibration());
        let changed =
            record.add_report(estimated_tokens, prompt_tokens, self.call.now)? && self.is_writable;
        let mut answer = JsonWriter::new_object();
        answer.add_object("calibration", record.to_object());
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &self.loaded.head.conversation);
        if changed {
            changes.write_record(target.key(), &record)?;
            self.commit(JournalAction::Calibrate, changes)?;
        }
        Ok(answer)
    }
}
