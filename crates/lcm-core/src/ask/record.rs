//! The record of a question: what was handed to the model, until it is answered, and the answer.
//!
//! A conversation has at most one, so that two questions of one agent never run beside each other;
//! it guards itself, so that an answer settles it once. The answer stays until the next question,
//! so that a host that lost it asks for it again and pays nothing.

use alloc::{string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, Sound},
    keys::Keys,
    records::grants::Permit,
    store::{Guard, Put},
    store_session::Reader,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::Writer,
        time,
    },
    types::api::Timestamp,
};

use super::evidence::{Passage, Share};

/// First characters of a continuation.
const CONTINUATION: &str = "ask1.";

/// The record.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Record {
    /// Which question of the conversation it is, from 1.
    pub(super) number: u64,
    pub(super) id: [u8; 8],
    /// From when on another question may take its place.
    pub(super) expires_at: Timestamp,
    pub(super) state: State,
}

/// How far a question is.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum State {
    /// The model is asked.
    Open(Open),
    /// The answer as JSON.
    Ended(String),
}

/// What is needed to go on.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Open {
    pub(super) question: String,
    pub(super) tokens_max: u32,
    pub(super) evidence_tokens_max: u32,
    pub(super) all: bool,
    pub(super) only: bool,
    /// Number of the completion that is waited for, from 1.
    pub(super) attempt: u32,
    pub(super) passages: Vec<Passage>,
    pub(super) shares: Vec<Share>,
    pub(super) evidence_tokens: u32,
    /// Whether evidence was left out.
    pub(super) truncated: bool,
    pub(super) grant: Option<Held>,
}

/// The grant on which a question is read.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Held {
    /// As it is printed.
    pub(super) id: String,
    /// Whether evidence was left out because no more tokens were left of it.
    pub(super) truncated: bool,
}

impl Sound for Record {
    fn is_sound(&self) -> bool {
        let is_open_sound = |open: &Open| {
            open.attempt != 0
                && open.passages.iter().all(|passage| passage.place() < open.shares.len())
        };
        self.expires_at <= time::MS_MAX
            && match &self.state {
                State::Open(open) => is_open_sound(open),
                State::Ended(_) => true,
            }
    }
}

/// What a call takes of the grant on which it reads.
#[derive(Default)]
pub(super) struct Paid {
    /// `None`: everything may be read.
    pub(super) permit: Option<Permit>,
    /// Of this call.
    pub(super) tokens: u32,
    /// Whether evidence was left out for it.
    pub(super) truncated: bool,
}

impl Paid {
    /// What an answer says of a grant of which a question has taken `tokens` in all.
    pub(super) fn note(&self, tokens: u32) -> Option<Writer> {
        let permit = self.permit.as_ref()?;
        Some(permit.note(tokens, permit.left().saturating_sub(self.tokens), self.truncated))
    }
}

/// The place of the record, with what stands there.
pub(super) struct Slot {
    key: String,
    value: Option<Vec<u8>>,
    pub(super) record: Option<Record>,
}

impl Slot {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// `corrupt`; errors of the store.
    pub(super) fn read(reader: &mut Reader<'_>, keys: &Keys) -> Result<Self> {
        let key = keys.ask();
        let value = reader.fresh_one(&key)?;
        let record = value.as_ref().map(|value| codec::decode(&key, value)).transpose()?;
        Ok(Self { key, value, record })
    }

    /// The open question that stands there now.
    pub(super) fn open(&self, now: Timestamp) -> Option<&Record> {
        let is_open =
            |record: &&Record| matches!(record.state, State::Open(_)) && now < record.expires_at;
        self.record.as_ref().filter(is_open)
    }

    /// Takes the record that a continuation belongs to.
    ///
    /// # Errors
    ///
    /// `invalid-input`: no continuation of this engine; `not-found`: the question was replaced.
    pub(super) fn continued(&mut self, continuation: &str) -> Result<Record> {
        let digits = continuation.strip_prefix(CONTINUATION).and_then(hash::unhex);
        let Some(id) = digits.filter(|id| id.len() == 8) else {
            return Err(Error::invalid("continuation: none of this engine"));
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
    pub(super) fn write(self, reader: &mut Reader<'_>, record: &Record, paid: Paid) -> Result<()> {
        let put = Put { key: self.key.clone(), value: Some(codec::encode_small(record)?) };
        let mut guards = alloc::vec![Guard { key: self.key, value: self.value }];
        let mut puts = alloc::vec![put];
        if let Some(permit) = paid.permit {
            // The guard also when nothing is taken: who is answered has a grant that stands.
            let (guard, put) = permit.charge(paid.tokens)?;
            guards.push(guard);
            puts.extend((paid.tokens > 0).then_some(put));
        }
        reader.commit(&guards, &puts)
    }
}

impl Record {
    /// The record of the question after the one in a slot.
    pub(super) fn after(slot: &Slot, keys: &Keys, now: Timestamp, timeout_ms: u64) -> Self {
        let number = slot.record.as_ref().map_or(0, |record| record.number).saturating_add(1);
        let parts: [&[u8]; 4] = [b"lcm ask", &keys.id(), &number.to_be_bytes(), &now.to_be_bytes()];
        Self {
            number,
            id: hash::prefix(&hash::hash(&parts)),
            expires_at: now.saturating_add(timeout_ms).min(time::MS_MAX),
            state: State::Ended(String::new()),
        }
    }

    /// By what a host names the question.
    pub(super) fn continuation(&self) -> String {
        [CONTINUATION, &hash::hex(&self.id)].concat()
    }
}
