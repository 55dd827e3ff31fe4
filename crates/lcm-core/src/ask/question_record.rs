//! The record of a question: what was handed to the model, until it is answered, and the answer.
//!
//! A conversation has at most one, so that two questions of one agent never run beside each other;
//! it guards itself, so that an answer settles it once. The answer stays until the next question,
//! so that a host that lost it asks for it again and pays nothing.

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

/// The record.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct QuestionRecord {
    /// Which question of the conversation it is, from 1.
    pub(super) number: u64,
    pub(super) id: [u8; 8],
    /// From when on another question may take its place.
    pub(super) expires_at: Timestamp,
    pub(super) state: QuestionState,
}

/// How far a question is.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum QuestionState {
    /// The model is asked.
    Open(OpenQuestion),
    /// The answer as JSON.
    Ended(String),
}

/// What is needed to go on.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct OpenQuestion {
    pub(super) question: String,
    pub(super) tokens_max: u32,
    pub(super) evidence_tokens_max: u32,
    pub(super) all: bool,
    pub(super) only: bool,
    /// Number of the completion that is waited for, from 1.
    pub(super) attempt: u32,
    pub(super) passages: Vec<EvidencePassage>,
    pub(super) shares: Vec<ConversationShare>,
    pub(super) evidence_tokens: u32,
    /// Whether evidence was left out.
    pub(super) truncated: bool,
    pub(super) grant: Option<QuestionGrant>,
}

/// The grant on which a question is read.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct QuestionGrant {
    /// As it is printed.
    pub(super) id: String,
    /// Whether evidence was left out because no more tokens were left of it.
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

/// What a call takes of the grant on which it reads.
#[derive(Default)]
pub(super) struct GrantCharge {
    /// `None`: everything may be read.
    pub(super) permit: Option<GrantAccess>,
    /// Of this call.
    pub(super) tokens: u32,
    /// Whether evidence was left out for it.
    pub(super) truncated: bool,
}

impl GrantCharge {
    /// What an answer says of a grant of which a question has taken `tokens` in all.
    pub(super) fn build_grant_note(&self, tokens: u32) -> Option<JsonWriter> {
        let permit = self.permit.as_ref()?;
        Some(permit.build_note(
            tokens,
            permit.tokens_left().saturating_sub(self.tokens),
            self.truncated,
        ))
    }
}

/// The place of the record, with what stands there.
pub(super) struct QuestionSlot {
    key: String,
    value: Option<Vec<u8>>,
    pub(super) record: Option<QuestionRecord>,
}

impl QuestionSlot {
    /// Reads it.
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

    /// The open question that stands there now.
    pub(super) fn find_open_question(&self, now: Timestamp) -> Option<&QuestionRecord> {
        let is_open = |record: &&QuestionRecord| {
            matches!(record.state, QuestionState::Open(_)) && now < record.expires_at
        };
        self.record.as_ref().filter(is_open)
    }

    /// Takes the record that a continuation belongs to.
    ///
    /// # Errors
    ///
    /// `invalid-input`: no continuation of this engine; `not-found`: the question was replaced.
    pub(super) fn take_by_continuation(&mut self, continuation: &str) -> Result<QuestionRecord> {
        let digits = continuation.strip_prefix(CONTINUATION_PREFIX).and_then(hash::decode_hex);
        let Some(id) = digits.filter(|id| id.len() == 8) else {
            return Err(Error::invalid_input("continuation: none of this engine"));
        };
        self.record.take().filter(|record| record.id == *id).ok_or_else(|| {
            Error::not_found("continuation: the question is not there any more; ask again")
        })
    }

    /// Writes a record in place of what was read, and in the same commit what `paid` takes.
    ///
    /// # Errors
    ///
    /// `conflict`: somebody was faster; `denied`: the grant has not so much left;
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
            // The guard also when nothing is taken: who is answered has a grant that stands.
            let (guard, put) = permit.build_charge(paid.tokens)?;
            guards.push(guard);
            puts.extend((paid.tokens > 0).then_some(put));
        }
        reader.commit(&guards, &puts)
    }
}

impl QuestionRecord {
    /// The record of the question after the one in a slot.
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

    /// By what a host names the question.
    pub(super) fn format_continuation(&self) -> String {
        [CONTINUATION_PREFIX, &hash::hex(&self.id)].concat()
    }
}
