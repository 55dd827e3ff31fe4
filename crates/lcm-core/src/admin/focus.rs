//! The verb that sets the focus brief of a conversation, or takes it away.

use crate::storage::session;
use alloc::{string::String, vec};

use crate::storage::{codec, head::Act, records::focus::Brief, store::Put};
use lcm_text::base::{error::Result, json::Writer};

use super::verbs::Session;

impl Session<'_, '_> {
    /// Sets the brief; `text`: `None` takes it away.
    pub(super) fn focus(mut self, text: Option<String>, seq_last: Option<u64>) -> Result<Writer> {
        if self.is_stored {
            self.loaded = self.loaded.existing()?;
            session::goes_on(self.reader, &self.loaded.head)?;
        }
        let key = self.keys.focus();
        let found = self.reader.fresh_one(&key)?;
        let old = found.map(|value| Brief::read(&key, &value)).transpose()?;
        let messages = self.loaded.head.messages;
        // A session that is passed over has no message that a brief could cover.
        let text = text.filter(|_| self.is_stored);
        let new = text.map(|text| Brief::new(text, seq_last, messages, self.now)).transpose()?;
        let same =
            |old: &Brief, new: &Brief| (&old.text, old.seq_last) == (&new.text, new.seq_last);
        let is_same = match (&old, &new) {
            (Some(old), Some(new)) => same(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        let changed = !is_same && self.is_stored;
        let mut answer = Writer::object();
        answer.flag("changed", changed);
        answer.text("conversation", &self.loaded.head.conversation);
        // What stays keeps its time.
        match if changed { &new } else { &old } {
            Some(brief) => answer.object_at("focus", brief.object()),
            None => answer.null("focus"),
        }
        if changed {
            let value = new.as_ref().map(codec::encode).transpose()?;
            self.commit(Act::Focus, vec![Put { key, value }])?;
        }
        Ok(answer)
    }
}
