//! The command `rewind`: sets aside the newest messages of a conversation.
//!
//! In: the last message that stays or comes back, or a number of units. Out: counts, and the newest
//! of the set-aside messages, as many as one answer takes. Set-aside messages stay stored, searches
//! find them, and no context has them. The rules are in [`crate::ingest`].

use crate::{
    ingest::{self, RewindTarget},
    storage::head::JournalAction,
};
use lcm_text::base::{
    error::{Error, Result},
    int,
    json::{JsonFields, JsonWriter},
};

use super::commands::CommandContext;

/// The arguments of `rewind`.
pub(super) struct RewindRequest {
    target: RewindTarget,
    seq_seen: Option<u64>,
}

impl RewindRequest {
    /// Reads the arguments.
    ///
    /// # Errors
    ///
    /// `invalid-input`: not exactly one of `to` and `units`, or `units` is 0.
    pub(super) fn read(fields: &mut JsonFields<'_>) -> Result<Self> {
        let (to, units) = (fields.take_optional_u64("to"), fields.take_optional_u64("units"));
        let target = match (to, units) {
            (Some(seq), None) => RewindTarget::To(seq),
            (None, Some(units)) if units > 0 => RewindTarget::Units(units),
            (None, Some(units)) => {
                return Err(Error::invalid_input(format_args!(
                    "`units` must be at least 1, got {units}"
                )));
            }
            _ => {
                return Err(Error::invalid_input(
                    "`rewind` requires `to` or `units`, and not both",
                ));
            }
        };
        Ok(Self { target, seq_seen: fields.take_optional_u64("seq_seen") })
    }
}

impl CommandContext<'_, '_> {
    /// Sets aside the messages after the target, brings back set-aside messages that lead to the
    /// target, and returns the answer as JSON.
    pub(super) fn rewind_messages(mut self, request: RewindRequest) -> Result<JsonWriter> {
        self.ensure_writable()?;
        let (session, call) = (&mut *self.session, self.call);
        let head = &mut self.loaded.head;
        let RewindRequest { target, seq_seen } = request;
        let rewound = ingest::rewind_line(session, call, head, target, seq_seen)?;
        let mut answer = JsonWriter::new_object();
        answer.add_flag("changed", rewound.changed.is_some() && self.is_writable);
        answer.add_text("conversation", &head.conversation);
        let mut messages = JsonWriter::new_array();
        rewound.messages.iter().for_each(|message| messages.push_json(message));
        answer.add_array("messages", messages);
        answer.add_number("restored", rewound.restored);
        answer.add_number("seq_last", rewound.seq_last);
        answer.add_number("set_aside", int::to_u64(rewound.set_aside.len()));
        answer.add_number("tokens_after", head.context.tokens);
        if let Some((before, changes)) = rewound.changed {
            answer.add_number("tokens_before", before.tokens);
            let seq_first = head.messages + 1;
            self.commit(JournalAction::Branch { seq_first, count: 0, before }, changes)?;
        } else {
            answer.add_number("tokens_before", head.context.tokens);
        }
        Ok(answer)
    }
}
