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
        codec,
        head::Act,
        records::usage::{Report, Usage},
        store::Put,
    },
};
use lcm_text::{
    base::{error::Result, json::Writer},
    config::Config,
};

use super::verbs::Session;

impl Session<'_, '_> {
    /// Takes a report of what one answer of a model took.
    pub(super) fn usage(mut self, report: &Report) -> Result<Writer> {
        if self.is_stored {
            self.loaded = self.loaded.existing()?;
            session::goes_on(self.reader, &self.loaded.head)?;
        }
        let mut usage = Usage::load(self.reader, &self.keys)?;
        let changed = usage.report(report, self.now) && self.is_stored;
        let mut answer = Writer::object();
        answer.flag("changed", changed);
        answer.text("conversation", &self.loaded.head.conversation);
        answer.object_at("usage", usage.object());
        if changed {
            let put = Put { key: self.keys.usage(), value: Some(codec::encode(&usage)?) };
            self.commit(Act::Usage, vec![put])?;
        }
        Ok(answer)
    }

    /// Says whether compacting now pays; writes nothing.
    pub(super) fn advise(
        self,
        config: &Config,
        asked: &compaction::advise::Asked,
    ) -> Result<Writer> {
        let conversation = &self.loaded.head.conversation;
        compaction::advise::advise(self.reader, config, conversation, asked, self.now)
    }
}
