//! The command `focus`: sets or removes the focus brief of a conversation.

use crate::storage::session;
use alloc::{string::String, vec};

use crate::storage::{codec, head::JournalAction, records::focus::FocusBrief, store::Put};
use lcm_text::base::{error::Result, json::JsonWriter};

use super::commands::CommandContext;

impl CommandContext<'_, '_> {
    /// Sets the focus brief; `text` of `None` removes the brief.
    pub(super) fn set_focus(
        mut self,
        text: Option<String>,
        seq_last: Option<u64>,
    ) -> Result<JsonWriter> {
        if self.is_writable {
            self.loaded = self.loaded.require_existing()?;
            session::ensure_not_archived(self.reader, &self.loaded.head)?;
        }
        let key = self.keys.focus_key();
        let found = self.reader.read_one_uncached(&key)?;
        let old = found.map(|value| FocusBrief::read(&key, &value)).transpose()?;
        let messages = self.loaded.head.messages;
        // A skipped session has no stored message that a brief could cover.
        let text = text.filter(|_| self.is_writable);
        let new =
            text.map(|text| FocusBrief::new(text, seq_last, messages, self.now)).transpose()?;
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
        // An unchanged brief keeps its time.
        match if changed { &new } else { &old } {
            Some(brief) => answer.add_object("focus", brief.to_object()),
            None => answer.add_null("focus"),
        }
        if changed {
            let value = new.as_ref().map(codec::encode).transpose()?;
            self.commit(JournalAction::Focus, vec![Put { key, value }])?;
        }
        Ok(answer)
    }
}
