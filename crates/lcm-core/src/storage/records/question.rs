//! The record of a question of [`crate::ask`]: the evidence shown to the model, then the outcome.
//!
//! A conversation has at most one record, so that two questions of one agent never run at the same
//! time. Each write is guarded by the record that was read, so that only one answer ends a
//! question. The outcome stays until the next question, so that a host can read a lost outcome
//! again.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::SoundRecord, keys::ConversationKeys, record_key::RecordKey, summary,
    withdrawn_mark::WithdrawnMark,
};
use lcm_text::{
    base::{int, json::JsonWriter, time},
    types::api::Timestamp,
};

/// A question of a conversation.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct QuestionRecord {
    /// Number of the question in its conversation, from 1.
    pub(crate) number: u64,
    pub(crate) id: [u8; 8],
    /// Time from which another question may replace this question while it is open.
    pub(crate) expires_at: Timestamp,
    pub(crate) state: QuestionState,
}

/// State of a question. The store holds the index of the case, so the order must not change.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum QuestionState {
    /// A completion was requested and has not settled the question.
    Open(OpenQuestion),
    /// The question has ended; the text is the outcome as JSON.
    Ended(String),
}

/// A question that waits for a completion, with the evidence.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct OpenQuestion {
    pub(crate) question: String,
    /// Most tokens of the answer.
    pub(crate) answer_tokens_max: u32,
    /// Most tokens of evidence in one request.
    pub(crate) evidence_tokens_max: u32,
    /// Whether the question is asked of all conversations of the store.
    pub(crate) all_conversations: bool,
    /// Whether the question is asked of the conversation without its family.
    pub(crate) only: bool,
    /// Number of the requested completion, from 1.
    pub(crate) attempt: u32,
    /// Passages that the model was shown.
    pub(crate) passages: Vec<EvidencePassage>,
    /// One share for each conversation of the evidence.
    pub(crate) shares: Vec<ConversationShare>,
    /// Tokens of all passages together.
    pub(crate) evidence_tokens: u32,
    /// Whether a bound kept passages out of the evidence.
    pub(crate) truncated: bool,
    /// The grant of the caller; `None`: the caller may read everything.
    pub(crate) grant: Option<QuestionGrant>,
}

/// The grant that limits the reads of a question.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct QuestionGrant {
    /// Printed id of the grant.
    pub(crate) id: String,
    /// Whether the tokens left of the grant kept passages out of the evidence.
    pub(crate) truncated: bool,
}

/// Source of a passage: a message by its seq, or a summary by its id. The store holds the index of
/// the case, so the order must not change.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) enum EvidenceSource {
    Message(u64),
    Summary([u8; 8]),
}

/// A passage of the evidence, stored as a place in a text and not as text.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct EvidencePassage {
    /// Index of the passage's conversation in [`OpenQuestion::shares`].
    pub(crate) share: u32,
    pub(crate) source: EvidenceSource,
    /// Offset of the passage in the text of the source, in bytes.
    pub(crate) offset: u64,
    /// Most tokens of the passage.
    pub(crate) tokens_max: u32,
    /// The mark of withdrawn messages with which the model was shown the passage. `None`: the
    /// message, or at least one message of the summary, is in the line.
    pub(crate) mark: Option<WithdrawnMark>,
}

/// The part of one conversation in the evidence.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ConversationShare {
    pub(crate) conversation: String,
    /// Number of hits and named summaries.
    pub(crate) candidates: u32,
    /// Number of summaries that the caller named.
    pub(crate) named: u32,
    /// Most tokens of the conversation's passages from the newest search. This is an equal share of
    /// the evidence tokens, plus the tokens that the conversation before left unused. 0: this
    /// search left the conversation out.
    pub(crate) tokens_max: u32,
    /// Tokens of the conversation's passages from all searches; can exceed `tokens_max`.
    pub(crate) tokens: u32,
}

impl SoundRecord for QuestionRecord {
    const IS_COMPRESSED: bool = true;

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

impl QuestionRecord {
    /// Returns the key of the record of a conversation.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.ask_key())
    }
}

impl QuestionRecord {
    /// Returns whether the evidence or the outcome names a conversation.
    pub(crate) fn names_conversation(&self, conversation: &str) -> bool {
        match &self.state {
            QuestionState::Open(open) => {
                open.shares.iter().any(|share| share.conversation == conversation)
            }
            QuestionState::Ended(document) => {
                let mut id = JsonWriter::new_array();
                id.push_text(conversation);
                let id = id.end_array();
                // The id as a whole JSON text; within another text its quotes are escaped.
                document.contains(id.trim_start_matches('[').trim_end_matches(']'))
            }
        }
    }
}

impl EvidencePassage {
    /// Returns the index of the passage's conversation in [`OpenQuestion::shares`].
    pub(crate) fn share_index(&self) -> usize {
        int::to_usize(self.share.into())
    }
}

impl EvidenceSource {
    /// Formats the printed id of the source, a message or summary of `conversation`.
    pub(crate) fn format_id(self, conversation: &str) -> String {
        match self {
            Self::Message(seq) => ConversationKeys::new(conversation)
                .map(|keys| keys.message_id(seq))
                .unwrap_or_default(),
            Self::Summary(id) => summary::format_summary_id(id),
        }
    }
}
