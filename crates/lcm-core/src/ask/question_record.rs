//! The record of a question: the evidence shown to the model, then the outcome.
//!
//! A conversation has at most one record, so that two questions of one agent never run at the same
//! time. The record guards itself, so that one answer settles the question. The outcome stays until
//! the next question, so that a host that lost the outcome can read it again without a charge.

use alloc::{string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    records::grants::GrantAccess,
    store::{Guard, Put},
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

use super::evidence::{ConversationShare, EvidencePassage};

/// First characters of a continuation.
const CONTINUATION_PREFIX: &str = "ask1.";

/// A question of a conversation.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct QuestionRecord {
    /// Number of the question in its conversation, from 1.
    pub(super) number: u64,
    pub(super) id: [u8; 8],
    /// Time from which another question may replace this question.
    pub(super) expires_at: Timestamp,
    pub(super) state: QuestionState,
}

/// State of a question.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum QuestionState {
    /// The question waits for an answer of the model.
    Open(OpenQuestion),
    /// The outcome as JSON.
    Ended(String),
}

/// State of an open question.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct OpenQuestion {
    pub(super) question: String,
    pub(super) tokens_max: u32,
    pub(super) evidence_tokens_max: u32,
    pub(super) all: bool,
    pub(super) only: bool,
    /// Number of the requested completion, from 1.
    pub(super) attempt: u32,
    pub(super) passages: Vec<EvidencePassage>,
    pub(super) shares: Vec<ConversationShare>,
    pub(super) evidence_tokens: u32,
    /// Whether a bound limited the evidence.
    pub(super) truncated: bool,
    pub(super) grant: Option<QuestionGrant>,
}

/// The grant that limits the reads of a question.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct QuestionGrant {
    /// The grant's id as text.
    pub(super) id: String,
    /// Whether the tokens left of the grant limited the evidence.
    pub(super) truncated: bool,
}

impl SoundRecord for QuestionRecord {
    fn is_sound(&self) -> bool {
        let is_open_sound = |open: &OpenQuestion| {
            open.attempt != 0
                && open.passages.iter().all(|passage| passage.share_index() < open.shares.len())
        };
        self.expires_at <= time::MS_MAX
            && match &self.state {
                QuestionState::Open(open) => is_open_sound(open),
                QuestionState::Ended(_) => true,
            }
    }
}

/// Charge of one call to its grant.
#[derive(Default)]
pub(super) struct GrantCharge {
    /// Access by the grant; `None`: unlimited access.
    pub(super) permit: Option<GrantAccess>,
    /// Tokens of this call.
    pub(super) tokens: u32,
    /// Whether the tokens left of the grant limited the evidence.
    pub(super) truncated: bool,
}

impl GrantCharge {
    /// Builds the note on the grant of a question that has spent `tokens` in all.
    pub(super) fn build_grant_note(&self, tokens: u32) -> Option<JsonWriter> {
        let permit = self.permit.as_ref()?;
        Some(permit.build_note(
            tokens,
            permit.tokens_left().saturating_sub(self.tokens),
            self.truncated,
        ))
    }
}

/// The record of a conversation's question as read, with its guard.
pub(super) struct QuestionSlot {
    key: String,
    value: Option<Vec<u8>>,
    pub(super) record: Option<QuestionRecord>,
}

impl QuestionSlot {
    /// Reads the record of a conversation.
    ///
    /// # Errors
    ///
    /// `corrupt`; errors of the store.
    pub(super) fn read(reader: &mut StoreSession<'_>, keys: &ConversationKeys) -> Result<Self> {
        let key = keys.ask_key();
        let value = reader.read_one_uncached(&key)?;
        let record = value.as_ref().map(|value| codec::decode(&key, value)).transpose()?;
        Ok(Self { key, value, record })
    }

    /// Returns the question if it is open at the time `now`.
    pub(super) fn find_open_question(&self, now: Timestamp) -> Option<&QuestionRecord> {
        let is_open = |record: &&QuestionRecord| {
            matches!(record.state, QuestionState::Open(_)) && now < record.expires_at
        };
        self.record.as_ref().filter(is_open)
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
        self.record.take().filter(|record| record.id == *id).ok_or_else(|| {
            Error::not_found("the question of `continuation` does not exist any more; ask again")
        })
    }

    /// Replaces the record and charges `paid` in the same commit.
    ///
    /// # Errors
    ///
    /// `conflict`: another call committed first; `denied`: the grant has fewer tokens left;
    /// `limit-exceeded`; errors of the store.
    pub(super) fn write(
        self,
        reader: &mut StoreSession<'_>,
        record: &QuestionRecord,
        paid: GrantCharge,
    ) -> Result<()> {
        let put = Put { key: self.key.clone(), value: Some(codec::encode_compressed(record)?) };
        let mut guards = alloc::vec![Guard { key: self.key, value: self.value }];
        let mut puts = alloc::vec![put];
        if let Some(permit) = paid.permit {
            // A call without tokens has the guard, too: an answer requires a grant that is valid.
            let (guard, put) = permit.build_charge(paid.tokens)?;
            guards.push(guard);
            puts.extend((paid.tokens > 0).then_some(put));
        }
        reader.commit(&guards, &puts)
    }
}

impl QuestionRecord {
    /// Creates the record of the question that follows the question of a slot.
    pub(super) fn new_after_slot(
        slot: &QuestionSlot,
        keys: &ConversationKeys,
        now: Timestamp,
        timeout_ms: u64,
    ) -> Self {
        let number = slot.record.as_ref().map_or(0, |record| record.number).saturating_add(1);
        let parts: [&[u8]; 4] =
            [b"lcm ask", &keys.conversation_hash(), &number.to_be_bytes(), &now.to_be_bytes()];
        Self {
            number,
            id: hash::hash_prefix(&hash::hash_fields(&parts)),
            expires_at: now.saturating_add(timeout_ms).min(time::MS_MAX),
            state: QuestionState::Ended(String::new()),
        }
    }

    /// Formats the text by which a host continues the question.
    pub(super) fn format_continuation(&self) -> String {
        [CONTINUATION_PREFIX, &hash::hex(&self.id)].concat()
    }
}
