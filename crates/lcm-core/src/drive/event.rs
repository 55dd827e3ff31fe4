//! What a host says of the instruction that it carried out.

use alloc::{borrow::Cow, string::String, vec::Vec};

use crate::{
    error::{Error, Result},
    json::{self, Fields, Kind, Span},
};

/// Name of the argument.
pub(super) const EVENT: &str = "event-json";
/// Characters of a message of an error that are kept.
const MESSAGE_CHARS_MAX: usize = 300;
/// Codes of a failed completion. Those from [`EXHAUSTED_FROM`] on mean that no model will serve.
pub(super) const CODES: [&str; 7] =
    ["auth", "policy", "context-too-long", "rate-limited", "timeout", "unavailable", "other"];
/// Place of the first code after which no model is asked any more.
pub(super) const EXHAUSTED_FROM: u8 = 3;
/// Answers of one event.
const ANSWERS_MAX: usize = 64;

/// What happened.
pub(super) enum Event<'a> {
    /// The call returned this, as JSON.
    Returned(Cow<'a, str>),
    /// The call or the upload failed.
    Failed(Failed),
    /// So many texts were uploaded.
    Staged(u64),
    /// The requests were completed, in their order.
    Answered(Vec<Answer>),
    /// The caller has lost interest.
    Stopped,
}

/// How a call failed.
pub(super) struct Failed {
    pub(super) code: String,
    pub(super) message: String,
    /// Index of the message that was uploaded.
    pub(super) index: Option<u64>,
}

/// What is known of the answer to a request. Its text stays with the host.
pub(super) struct Answer {
    /// How often a model was asked.
    pub(super) asked: u32,
    pub(super) state: AnswerState,
}

/// Whether a request has an answer.
pub(super) enum AnswerState {
    Done,
    Failed(CompletionFault),
    /// The caller lost interest before.
    Missing,
}

/// How a completion failed.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct CompletionFault {
    /// Place in [`CODES`].
    pub(super) code: u8,
    pub(super) message: String,
    pub(super) retry_after_ms: Option<u64>,
}

impl CompletionFault {
    pub(super) fn code(&self) -> &'static str {
        CODES.get(usize::from(self.code)).copied().unwrap_or("other")
    }

    /// Whether no model is to be asked after it.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.code >= EXHAUSTED_FROM
    }
}

impl<'a> Event<'a> {
    /// Reads an event: an object with exactly one of its members.
    pub(super) fn read(event_json: &'a str) -> Result<Self> {
        let mut fields = Fields::of_argument(EVENT, event_json)?;
        let returned = fields.any("result").map(|(json, _)| Self::Returned(json));
        let failed = fields.any("error").map(|(raw, _)| read_failed(&raw)).transpose()?;
        let staged = fields.number_or_none("staged").map(Self::Staged);
        let answered = fields.any("answers").map(|(raw, _)| read_answers(&raw)).transpose()?;
        let stopped = fields.flag("stopped").then_some(Self::Stopped);
        fields.end(EVENT)?;
        let mut given = [returned, failed, staged, answered, stopped].into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(event), None) => Ok(event),
            _ => Err(Error::invalid(
                "`event-json` must have exactly one of `result`, `error`, `staged`, `answers`, \
                 `stopped`",
            )),
        }
    }
}

fn read_failed<'a>(raw: &str) -> Result<Event<'a>> {
    let mut fields = Fields::of_argument(EVENT, raw)?;
    let (code, message) = (fields.text("code"), shortened(&fields.text("message")));
    let index = fields.number_or_none("index");
    fields.end_of_known(EVENT)?;
    Ok(Event::Failed(Failed { code, message, index }))
}

fn read_answers<'a>(raw: &str) -> Result<Event<'a>> {
    let mut answers = Vec::new();
    let mut fault = None;
    let is_list = json::each_element(raw, Span::between(0, raw.len()), |element| {
        let item = json::slice(raw, element.span);
        match read_answer(item) {
            Ok(answer) if answers.len() < ANSWERS_MAX => answers.push(answer),
            Ok(_) => fault = Some(super::unanswered("one answer for each request in `answers`")),
            Err(error) => fault = fault.take().or(Some(error)),
        }
    });
    match fault {
        Some(error) => Err(error),
        None if is_list => Ok(Event::Answered(answers)),
        None => Err(Error::invalid("`answers` must be an array")),
    }
}

fn read_answer(raw: &str) -> Result<Answer> {
    let mut fields = Fields::of_argument(EVENT, raw)?;
    let is_done = fields.any("done").is_some_and(|(_, kind)| kind != Kind::Null);
    let failed = fields.any("failed").filter(|(_, kind)| *kind != Kind::Null);
    let asked = fields.small_or_none("asked").unwrap_or(u32::from(is_done));
    fields.end_of_known(EVENT)?;
    let state = match failed {
        Some((raw, _)) => AnswerState::Failed(read_fault(&raw)?),
        None if is_done => AnswerState::Done,
        None => AnswerState::Missing,
    };
    Ok(Answer { asked, state })
}

fn read_fault(raw: &str) -> Result<CompletionFault> {
    let mut fields = Fields::of_argument(EVENT, raw)?;
    let code = u8::try_from(fields.place("code", &CODES)).unwrap_or_default();
    let message = shortened(&fields.text("message"));
    let retry_after_ms = fields.number_or_none("retry_after_ms");
    fields.end_of_known(EVENT)?;
    Ok(CompletionFault { code, message, retry_after_ms })
}

fn shortened(message: &str) -> String {
    message.chars().take(MESSAGE_CHARS_MAX).collect()
}
