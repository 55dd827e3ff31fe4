//! The command `calibrate`: stores the token count that a provider reports for a prompt.

use crate::storage::session;
use alloc::{string::String, vec::Vec};

use crate::storage::{codec, head::JournalAction, records::calibration, store::Put};
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
        let target = calibration::CalibratedModel::new(&self.keys, model)?;
        if self.is_writable {
            self.loaded = self.loaded.require_existing()?;
            session::ensure_not_archived(self.reader, &self.loaded.head)?;
        }
        let found = target.decode_calibration(self.reader.read_one_uncached(&target.key)?)?;
        let mut puts = Vec::new();
        if found.is_none() {
            puts.extend(calibration::evict_oldest(self.reader, &self.keys)?);
        }
        let mut record = found.unwrap_or_else(|| target.new_calibration());
        let changed =
            record.add_report(estimated_tokens, prompt_tokens, self.now)? && self.is_writable;
        let mut answer = JsonWriter::new_object();
        answer.add_object("calibration", record.to_object());
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &self.loaded.head.conversation);
        if changed {
            puts.push(Put { key: target.key, value: Some(codec::encode(&record)?) });
            self.commit(JournalAction::Calibrate, puts)?;
        }
        Ok(answer)
    }
}
