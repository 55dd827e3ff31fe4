//! The command `focus`: sets or removes the focus brief of a conversation.
//!
//! In: a text and the last seq that it covers, or no text. Out: the brief as JSON. The rules of a
//! brief are in [`crate::storage::records::focus`].

use alloc::string::String;

use crate::storage::{changes::Changes, head::JournalAction, records::focus::FocusBrief};
use lcm_text::base::{error::Result, json::JsonWriter};

use super::commands::CommandContext;

impl CommandContext<'_, '_> {
    /// Sets the focus brief to `text`; `None`: removes the brief. `seq_last` is the last message
    /// that the brief covers; `None`: the newest message.
    pub(super) fn set_focus(
        mut self,
        text: Option<String>,
        seq_last: Option<u64>,
    ) -> Result<JsonWriter> {
        self.ensure_writable()?;
        let key = FocusBrief::key(self.call.keys);
        let old = self.session.read_record(&key)?;
        let messages = self.loaded.head.messages;
        // A skipped session may have no message, which `FocusBrief::new` would refuse.
        let text = text.filter(|_| self.is_writable);
        let new = text
            .map(|text| FocusBrief::new(text, seq_last, messages, self.call.now))
            .transpose()?;
        let same = |old: &FocusBrief, new: &FocusBrief| {
            (&old.text, old.seq_last) == (&new.text, new.seq_last)
        };
        let is_same = match (&old, &new) {
            (Some(old), Some(new)) => same(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        let changed = !is_same && self.is_writable;
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &self.loaded.head.conversation);
        // An unchanged brief is reported with the time at which it was set.
        match if changed { &new } else { &old } {
            Some(brief) => answer.add_object("focus", brief.to_object()),
            None => answer.add_null("focus"),
        }
        if changed {
            let mut changes = Changes::default();
            match &new {
                Some(brief) => {
                    changes.write_record(&key, brief)?;
                }
                None => changes.delete_record(&key),
            }
            self.commit(JournalAction::Focus, changes)?;
        }
        Ok(answer)
    }
}
