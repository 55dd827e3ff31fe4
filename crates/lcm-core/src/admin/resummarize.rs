//! The command `resummarize`: lets plans ask models again for provisional summaries, also for
//! summaries that a model has already failed to make again.
//!
//! In: ids of provisional summaries, or none for all. Out: how many provisional summaries will be
//! made again, as JSON. A later plan requests them.

use alloc::{format, string::String, vec::Vec};

use crate::{
    compaction,
    storage::{
        changes::Changes,
        head::JournalAction,
        records::remakes::RemakeRecord,
        summary::{self, Summary},
    },
};
use lcm_text::base::{
    error::{Error, Result},
    json::JsonWriter,
};

use super::commands::CommandContext;

impl CommandContext<'_, '_> {
    /// Forgets that models failed to make the summaries `names` again; `None`: forgets this for all
    /// summaries.
    ///
    /// # Errors
    ///
    /// `not-found`: no such summary; `invalid-input`: a summary is not provisional, was made again,
    /// or left the context.
    pub(super) fn allow_remakes(mut self, names: Option<Vec<String>>) -> Result<JsonWriter> {
        let keys = self.call.keys;
        let mut remakes = RemakeRecord::read(self.session, keys, &self.loaded.head)?;
        let before = remakes.count_entries();
        let ids = match &names {
            Some(names) => Some(self.find_provisional(names, &remakes)?),
            None => None,
        };
        if self.is_writable {
            remakes.forget_vain_asks(ids.as_deref());
        }
        let changed = remakes.count_entries() != before;
        let conversation = self.loaded.head.conversation.clone();
        let head = &mut self.loaded.head;
        let open = compaction::count_open_with(self.session, self.call, head, remakes.clone())?;
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", changed);
        answer.add_text("conversation", &conversation);
        answer.add_number("provisional", open);
        if changed {
            head.remakes = remakes.count_entries();
            let mut changes = Changes::default();
            changes.write_record(&RemakeRecord::key(keys), &remakes)?;
            self.commit(JournalAction::Resummarize, changes)?;
        }
        Ok(answer)
    }

    fn find_provisional(
        &mut self,
        names: &[String],
        remakes: &RemakeRecord,
    ) -> Result<Vec<[u8; 8]>> {
        let mut ids = Vec::new();
        for name in names {
            let id = summary::parse_summary_id(name)?;
            let record = self.session.read_record(&Summary::key(self.call.keys, id))?;
            let record = record.ok_or_else(|| {
                Error::not_found(format_args!("the conversation has no summary `{name}`"))
            })?;
            let newest = remakes.find_newest(id);
            let why = match record.is_provisional() {
                _ if newest != id => {
                    format!("it was made again as `{}`", summary::format_summary_id(newest))
                }
                _ if remakes.find_exit(id).is_some() => String::from("it left the context"),
                true => {
                    ids.push(id);
                    continue;
                }
                false => String::from("it is final"),
            };
            return Err(Error::invalid_input(format_args!(
                "`summary_ids` must name provisional summaries, got `{name}`: {why}"
            )));
        }
        Ok(ids)
    }
}
