//! What a host reports of a model: how many tokens its provider counted.

use crate::storage::session;
use alloc::{string::String, vec::Vec};

use crate::storage::{codec, head::Act, records::calibration, store::Put};
use lcm_text::base::{error::Result, json::Writer};

use super::verbs::Session;

impl Session<'_, '_> {
    /// Takes a report; `estimated_tokens` and `prompt_tokens` are of the same prompt.
    pub(super) fn calibrate(
        mut self,
        model: String,
        (estimated_tokens, prompt_tokens): (u32, u32),
    ) -> Result<Writer> {
        let wanted = calibration::Wanted::of(&self.keys, model)?;
        if self.is_stored {
            self.loaded = self.loaded.existing()?;
            session::goes_on(self.reader, &self.loaded.head)?;
        }
        let found = wanted.found(self.reader.fresh_one(&wanted.key)?)?;
        let mut puts = Vec::new();
        if found.is_none() {
            puts.extend(calibration::room(self.reader, &self.keys)?);
        }
        let mut record = found.unwrap_or_else(|| wanted.begin());
        let changed = record.report(estimated_tokens, prompt_tokens, self.now)? && self.is_stored;
        let mut answer = Writer::object();
        answer.object_at("calibration", record.object());
        answer.flag("changed", changed);
        answer.text("conversation", &self.loaded.head.conversation);
        if changed {
            puts.push(Put { key: wanted.key, value: Some(codec::encode(&record)?) });
            self.commit(Act::Calibrate, puts)?;
        }
        Ok(answer)
    }
}
