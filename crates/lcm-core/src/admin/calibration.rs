//! The command `calibrate`: stores how a provider's token count of a prompt relates to the
//! estimate.
//!
//! In: a model and both counts. Out: the calibration of the model as JSON. The rules are in
//! [`crate::storage::records::calibration`].

use alloc::string::String;

use crate::storage::{
    changes::Changes,
    head::JournalAction,
    records::calibration::{self, CalibratedModel},
};
use lcm_text::base::{error::Result, json::JsonWriter};

use super::commands::CommandContext;

impl CommandContext<'_, '_> {
    /// Adds a report of the estimated and the provider's token count of one prompt to the
    /// calibration of a model, and returns the calibration.
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
