//! What a question may be: its words, where to look, and how much it may take.
//!
//! In: a JSON object. Out: a question within its bounds. Not here: what is found for it.

use alloc::{string::String, vec::Vec};

use crate::search::text_query::TextQuery;
use lcm_text::{
    base::{
        error::{Error, Result},
        json::JsonFields,
    },
    config::Config,
};

/// Name of the argument that holds a question.
pub(super) const QUESTION_ARGUMENT: &str = "question-json";
/// Bytes of a question, and of what is searched for in its place.
const QUESTION_BYTES_MAX: usize = 16 << 10;
/// Summaries that one question names.
const SUMMARIES_MAX: usize = 32;
/// Tokens of an answer: the default and the most.
const ANSWER_TOKENS_DEFAULT: u32 = 2_000;
const ANSWER_TOKENS_MAX: u32 = 8_000;
/// Milliseconds that a question stays open, the default: 120 s for the model and 30 s of headroom.
const DEADLINE_MS_DEFAULT: u64 = 150_000;
pub(crate) const DEADLINE_MS_MAX: u64 = 600_000;

/// A question.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) question: String,
    /// What is searched for; `None`: the question.
    pub(super) query: Option<String>,
    /// Texts that hold ids of summaries to answer from.
    pub(super) summary_ids: Vec<String>,
    /// Tokens of the answer.
    pub(super) answer_tokens_max: u32,
    /// Tokens of evidence that one request holds.
    pub(super) evidence_tokens_max: u32,
    /// Every conversation of the store.
    pub(super) all_conversations: bool,
    /// Not the family of the conversation.
    pub(super) only: bool,
    pub(super) deadline_ms: u64,
    /// On which it is read; `None`: everything may be.
    pub(super) grant: Option<String>,
    /// Only what would be read is wanted.
    pub(super) plan_only: bool,
}

impl Question {
    /// Reads a question.
    ///
    /// # Errors
    ///
    /// `invalid-input` naming the field.
    pub(super) fn read(question_json: &str, config: &Config) -> Result<Self> {
        let mut fields = JsonFields::parse_argument(QUESTION_ARGUMENT, question_json)?;
        let tokens_max = fields.take_optional_u32("tokens_max").unwrap_or(config.expand_tokens_max);
        let question = Self {
            question: fields.take_text("question").trim().into(),
            query: fields.take_optional_text("query").filter(|query| !query.trim().is_empty()),
            summary_ids: fields.take_optional_texts("summary_ids").unwrap_or_default(),
            answer_tokens_max: fields
                .take_optional_u32("answer_tokens_max")
                .unwrap_or(ANSWER_TOKENS_DEFAULT),
            evidence_tokens_max: tokens_max.min(config.expand_tokens_max),
            all_conversations: fields.take_flag("all_conversations"),
            only: fields.take_flag("only"),
            deadline_ms: fields.take_optional_u64("deadline_ms").unwrap_or(DEADLINE_MS_DEFAULT),
            grant: fields.take_optional_text("grant"),
            plan_only: fields.take_flag("plan_only"),
        };
        fields.finish(QUESTION_ARGUMENT)?;
        question.ensure_within_bounds()
    }

    fn ensure_within_bounds(self) -> Result<Self> {
        let bounds = [
            ("question", self.question.len(), 1, QUESTION_BYTES_MAX, "bytes"),
            ("query", self.query.as_ref().map_or(1, String::len), 1, QUESTION_BYTES_MAX, "bytes"),
            ("summary_ids", self.summary_ids.len(), 0, SUMMARIES_MAX, "ids"),
        ];
        for (key, length, least, most, unit) in bounds {
            if length < least || length > most {
                return Err(Error::invalid_input(format_args!(
                    "{key}: {length} {unit}; it has {least} to {most}"
                )));
            }
        }
        let numbers = [
            ("answer_tokens_max", self.answer_tokens_max.into(), u64::from(ANSWER_TOKENS_MAX)),
            ("tokens_max", self.evidence_tokens_max.into(), u64::from(u32::MAX)),
            ("deadline_ms", self.deadline_ms, DEADLINE_MS_MAX),
        ];
        for (key, number, most) in numbers {
            if number == 0 || number > most {
                return Err(Error::invalid_input(format_args!(
                    "{key}: {number} is not from 1 to {most}"
                )));
            }
        }
        if self.all_conversations && self.only {
            return Err(Error::invalid_input(
                "`only` and `all_conversations` are mutually exclusive",
            ));
        }
        if self.query.as_ref().is_some_and(|query| TextQuery::parse(query).has_dropped_conditions) {
            return Err(Error::limit_exceeded(
                "query: so many conditions are not kept; name fewer",
            ));
        }
        Ok(self)
    }

    /// What is searched for.
    pub(super) fn search_text(&self) -> &str {
        self.query.as_deref().unwrap_or(&self.question)
    }
}
