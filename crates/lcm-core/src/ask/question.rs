//! A question: its text, its search scope and its bounds.
//!
//! In: a JSON object. Out: a valid question. [`crate::ask`] and its module `outcome` use
//! [`Question`].

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
/// Maximum bytes of a question, and of its query.
const QUESTION_BYTES_MAX: usize = 16 << 10;
/// Maximum number of summaries that one question names.
const SUMMARIES_MAX: usize = 32;
/// Default of `answer_tokens_max`, the maximum tokens of an answer.
const ANSWER_TOKENS_DEFAULT: u32 = 2_000;
/// Greatest `answer_tokens_max` that a question may have.
const ANSWER_TOKENS_MAX: u32 = 8_000;
/// Milliseconds from a question to its expiry by default: 120 s for the model and 30 s of headroom.
const DEADLINE_MS_DEFAULT: u64 = 150_000;
/// Maximum milliseconds from a question to its expiry.
pub(crate) const DEADLINE_MS_MAX: u64 = 600_000;

/// A question, as the caller asks it.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) question: String,
    /// Search query; `None`: the engine searches the words of the question.
    pub(super) query: Option<String>,
    /// Texts that each contain the id of a summary to answer from.
    pub(super) summary_ids: Vec<String>,
    /// Maximum tokens of the answer.
    pub(super) answer_tokens_max: u32,
    /// Maximum tokens of evidence that one search adds.
    pub(super) evidence_tokens_max: u32,
    /// Whether the engine searches every conversation of the store.
    pub(super) all_conversations: bool,
    /// Whether the engine searches the conversation without its family.
    pub(super) only: bool,
    /// Milliseconds from the question to its expiry.
    pub(super) deadline_ms: u64,
    /// Grant that limits the reads; `None`: no limit.
    pub(super) grant: Option<String>,
    /// Whether the caller wants the evidence only, without a request.
    pub(super) plan_only: bool,
}

impl Question {
    /// Parses a question.
    ///
    /// # Errors
    ///
    /// `invalid-input` naming the field; `limit-exceeded`: the query has too many conditions.
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
            deadline_ms: fields
                .take_optional_u64("deadline_ms")
                .unwrap_or(config.ask_deadline_ms.map_or(DEADLINE_MS_DEFAULT, Into::into)),
            grant: fields.take_optional_text("grant"),
            plan_only: fields.take_flag("plan_only"),
        };
        fields.finish(QUESTION_ARGUMENT)?;
        question.ensure_within_bounds()
    }

    /// Refuses lengths, numbers and conditions out of bounds, and `only` with `all_conversations`.
    fn ensure_within_bounds(self) -> Result<Self> {
        let bounds = [
            ("question", self.question.len(), 1, QUESTION_BYTES_MAX, "bytes"),
            ("query", self.query.as_ref().map_or(1, String::len), 1, QUESTION_BYTES_MAX, "bytes"),
            ("summary_ids", self.summary_ids.len(), 0, SUMMARIES_MAX, "ids"),
        ];
        for (key, length, least, most, unit) in bounds {
            if length < least || length > most {
                return Err(Error::invalid_input(format_args!(
                    "`{key}` must have {least} to {most} {unit}, got {length}"
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
                    "`{key}` must be from 1 to {most}, got {number}"
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
                "`query` must have fewer filters and fewer words with `+` or `-`: some would be \
                 ignored",
            ));
        }
        Ok(self)
    }

    /// Returns the text to search for: the query, or the question.
    pub(super) fn search_text(&self) -> &str {
        self.query.as_deref().unwrap_or(&self.question)
    }
}
