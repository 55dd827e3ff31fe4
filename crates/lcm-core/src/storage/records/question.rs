//! The record of a question: the evidence shown to the model, then the outcome.
//!
//! A conversation has at most one record, so that two questions of one agent never run at the same
//! time. The record guards itself, so that one answer settles the question. The outcome stays until
//! the next question, so that a host that lost the outcome can read it again without a charge.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{codec::SoundRecord, keys::ConversationKeys, record_key::RecordKey, summary};
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
    /// Earliest time at which another question may replace this question.
    pub(crate) expires_at: Timestamp,
    pub(crate) state: QuestionState,
}

/// State of a question.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum QuestionState {
    /// The question waits for an answer of the model.
    Open(OpenQuestion),
    /// The outcome as JSON.
    Ended(String),
}

/// State of an open question.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct OpenQuestion {
    pub(crate) question: String,
    /// Most tokens of the answer.
    pub(crate) answer_tokens_max: u32,
    /// Most tokens of evidence in one request.
    pub(crate) evidence_tokens_max: u32,
    /// Whether the engine searches every conversation of the store.
    pub(crate) all_conversations: bool,
    /// Whether the engine searches the conversation without its family.
    pub(crate) only: bool,
    /// Number of the requested completion, from 1.
    pub(crate) attempt: u32,
    pub(crate) passages: Vec<EvidencePassage>,
    pub(crate) shares: Vec<ConversationShare>,
    pub(crate) evidence_tokens: u32,
    /// Whether a bound limited the evidence.
    pub(crate) truncated: bool,
    pub(crate) grant: Option<QuestionGrant>,
}

/// The grant that limits the reads of a question.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct QuestionGrant {
    /// The grant's id as text.
    pub(crate) id: String,
    /// Whether the tokens left of the grant limited the evidence.
    pub(crate) truncated: bool,
}

/// Source of a passage: a message by its seq, or a summary by its id.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) enum EvidenceSource {
    Message(u64),
    Summary([u8; 8]),
}

/// A passage of the evidence.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct EvidencePassage {
    /// Index of its conversation among the shares.
    pub(crate) share: u32,
    pub(crate) source: EvidenceSource,
    /// Offset in the text of the source, in bytes.
    pub(crate) offset: u64,
    pub(crate) tokens_max: u32,
}

/// Share of one conversation in the evidence.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ConversationShare {
    pub(crate) conversation: String,
    /// Hits and named summaries.
    pub(crate) candidates: u32,
    /// Named summaries.
    pub(crate) named: u32,
    /// Most tokens of its passages; 0: the conversation was left out.
    pub(crate) tokens_max: u32,
    /// Tokens of its passages.
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
    /// Returns the key of the question of a conversation.
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
    /// Returns the index of its conversation among the shares.
    pub(crate) fn share_index(&self) -> usize {
        int::to_usize(self.share.into())
    }
}

impl EvidenceSource {
    /// Formats the id of the message or summary of a conversation.
    pub(crate) fn format_id(self, conversation: &str) -> String {
        match self {
            Self::Message(seq) => ConversationKeys::new(conversation)
                .map(|keys| keys.message_id(seq))
                .unwrap_or_default(),
            Self::Summary(id) => summary::format_summary_id(id),
        }
    }
}
