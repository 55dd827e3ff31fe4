//! The slot of a conversation's question: the record as read, and the commit that replaces it.
//!
//! In: a new record, and the charge of a grant. Out: one commit. [`crate::ask`] uses this module;
//! the record is defined in [`crate::storage::records::question`].

use alloc::string::String;
use lcm_text::base::hash;

use super::DEADLINE_MS_MAX;
use crate::storage::{
    call::Call,
    changes::Changes,
    clock::is_within_pause,
    links::ConversationLinks,
    record_key::GuardedRecord,
    records::{
        grants::GrantAccess,
        question::{QuestionRecord, QuestionState},
    },
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::JsonWriter,
        time,
    },
    types::api::Timestamp,
};

/// First characters of a continuation.
const CONTINUATION_PREFIX: &str = "ask1.";

/// Charge of one call to its grant.
#[derive(Default)]
pub(super) struct GrantCharge {
    /// Access by the grant; `None`: the question has no grant.
    pub(super) permit: Option<GrantAccess>,
    /// Tokens that this call charges.
    pub(super) tokens: u32,
    /// Whether the tokens left of the grant limited the evidence.
    pub(super) truncated: bool,
}

impl GrantCharge {
    /// Builds the note on the grant of a question that has spent `tokens` in all its calls; `None`:
    /// the question has no grant.
    pub(super) fn build_grant_note(&self, tokens: u32) -> Option<JsonWriter> {
        let permit = self.permit.as_ref()?;
        Some(permit.build_note(
            tokens,
            permit.tokens_left().saturating_sub(self.tokens),
            self.truncated,
        ))
    }
}

/// The record of a conversation's newest question, open or ended, as read, with its guard. A
/// conversation may have no question.
pub(super) struct QuestionSlot(GuardedRecord<QuestionRecord>);

impl QuestionSlot {
    /// Reads the record of a conversation.
    ///
    /// # Errors
    ///
    /// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the
    /// store.
    pub(super) fn read(session: &mut StoreSession<'_>, call: Call<'_>) -> Result<Self> {
        session.read_guarded(QuestionRecord::key(call.keys)).map(Self)
    }

    /// Returns the question if it is open and not expired at the time `now`. `None`: there is no
    /// question, or the question has ended or expired.
    pub(super) fn find_open_question(&self, now: Timestamp) -> Option<&QuestionRecord> {
        let is_open = |record: &&QuestionRecord| {
            // A deadline more than [`DEADLINE_MS_MAX`] ahead comes from a clock that was wrong, so
            // the question counts as expired.
            let expires_at = record.expires_at;
            matches!(record.state, QuestionState::Open(_))
                && is_within_pause(now, expires_at.saturating_sub(DEADLINE_MS_MAX), expires_at)
        };
        self.0.record.as_ref().filter(is_open)
    }

    /// Takes the record that a continuation names.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the text is not a continuation of a question; `not-found`: another question
    /// replaced the question.
    pub(super) fn take_by_continuation(&mut self, continuation: &str) -> Result<QuestionRecord> {
        let digits = continuation.strip_prefix(CONTINUATION_PREFIX).and_then(hash::decode_hex);
        let Some(id) = digits.filter(|id| id.len() == 8) else {
            return Err(Error::invalid_input(
                "`continuation` must be the `continuation` of `ask-plan` or `ask-apply`",
            ));
        };
        self.0.record.take().filter(|record| record.id == *id).ok_or_else(|| {
            Error::not_found(
                "`continuation` must name the newest question of the conversation; ask again",
            )
        })
    }

    /// Replaces the record and charges `paid` in the same commit. `links`: the links to the
    /// conversations that the record names.
    ///
    /// # Errors
    ///
    /// `conflict`: another call committed first, or a conversation was deleted; `denied`: the grant
    /// has fewer tokens left than `paid` charges; `limit-exceeded`: the record would be too large;
    /// errors of the store.
    pub(super) fn write(
        self,
        session: &mut StoreSession<'_>,
        record: &QuestionRecord,
        paid: GrantCharge,
        links: ConversationLinks,
    ) -> Result<()> {
        let mut changes = Changes::default();
        links.add_to(&mut changes)?;
        changes.replace_record(&self.0, record)?;
        if let Some(permit) = paid.permit {
            // A charge of 0 still guards the grant: an answer requires a valid grant.
            permit.add_charge(paid.tokens, &mut changes)?;
        }
        session.commit_changes(&changes)
    }

    /// Creates the record of the question that replaces the question of the slot. The caller sets
    /// its state.
    pub(super) fn create_next(&self, call: Call<'_>, deadline_ms: u64) -> QuestionRecord {
        let now = call.now;
        let number = self.0.record.as_ref().map_or(0, |record| record.number).saturating_add(1);
        let conversation = call.keys.conversation_hash();
        let parts: [&[u8]; 4] =
            [b"lcm ask", &conversation, &number.to_be_bytes(), &now.to_be_bytes()];
        QuestionRecord {
            number,
            id: hash::hash_prefix(&hash::hash_fields(&parts)),
            expires_at: now.saturating_add(deadline_ms).min(time::MS_MAX),
            state: QuestionState::Ended(String::new()),
        }
    }
}

/// Formats the text by which a host continues a question.
pub(super) fn format_continuation(record: &QuestionRecord) -> String {
    [CONTINUATION_PREFIX, &hash::hex(&record.id)].concat()
}
