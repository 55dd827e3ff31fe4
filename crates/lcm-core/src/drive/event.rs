//! What a host says of the instruction that it carried out.

use alloc::{borrow::Cow, string::String, vec::Vec};

use lcm_text::{
    base::error::{Error, Result},
    base::int,
    base::json::{self, ByteSpan, JsonFields, JsonKind},
};

use super::state::DriveState;

/// Name of the argument.
pub(super) const EVENT: &str = "event-json";
/// Characters of a message of an error that are kept.
const MESSAGE_CHARS_MAX: usize = 300;
/// Codes of a failed completion. Those from [`EXHAUSTED_FROM`] on mean that no model will serve.
const CODES: [&str; 7] =
    ["auth", "policy", "context-too-long", "rate-limited", "timeout", "unavailable", "other"];
/// Place of the first code after which no model is asked any more.
const EXHAUSTED_FROM: u64 = 3;

/// What happened.
pub(super) enum DriveEvent<'a> {
    /// The call returned this, as JSON.
    Returned(Cow<'a, str>),
    /// The call or the upload failed.
    Failed(CallFailure),
    /// So many texts were uploaded.
    Staged(u64),
    /// The requests were completed, in their order.
    Answered(Vec<RequestAnswer>),
    /// The caller has lost interest.
    Stopped,
}

/// How a call or a completion failed.
#[derive(Clone, Default)]
pub(super) struct CallFailure {
    pub(super) code: String,
    pub(super) message: String,
    /// Of a call: index of the message at fault. Of a completion: the pause that the model wants.
    pub(super) number: Option<u64>,
}

impl CallFailure {
    fn read(raw: &str, number: &str) -> Result<Self> {
        let mut fields = JsonFields::parse_argument(EVENT, raw)?;
        let failed = Self {
            code: fields.take_text("code"),
            message: fields.take_text("message").chars().take(MESSAGE_CHARS_MAX).collect(),
            number: fields.take_optional_u64(number),
        };
        fields.finish_known(EVENT)?;
        Ok(failed)
    }

    /// Reads or writes it; one without a code stands for none.
    pub(super) fn visit(&mut self, state: &mut DriveState) {
        state.text(&mut self.code);
        if !self.code.is_empty() {
            state.text(&mut self.message);
            let mut number = self.number.map_or(0, |number| number.saturating_add(1));
            state.visit_number(&mut number);
            self.number = number.checked_sub(1);
        }
    }

    /// Whether there is one.
    pub(super) fn is_some(&self) -> bool {
        !self.code.is_empty()
    }
}

/// What is known of the answer to a request. Its text stays with the host.
pub(super) struct RequestAnswer {
    /// How often a model was asked.
    pub(super) asked: u64,
    /// [`MISSING`], [`DONE`], or [`FAILED`] and the place of the code.
    pub(super) state: u64,
    pub(super) failed: CallFailure,
}

/// State of a request for which no model is asked: the models are exhausted.
pub(super) const UNASKED: u64 = 0;
/// State of a request whose caller lost interest.
pub(super) const MISSING: u64 = 1;
/// State of a request with an answer.
pub(super) const DONE: u64 = 2;
/// State of a request that failed, by the place of the code.
pub(super) const FAILED: u64 = 3;

/// Whether no model is to be asked after an answer of this state.
pub(super) const fn is_exhausted(state: u64) -> bool {
    state >= FAILED + EXHAUSTED_FROM
}

impl<'a> DriveEvent<'a> {
    /// Reads an event: an object with exactly one of its members.
    pub(super) fn read(event_json: &'a str) -> Result<Self> {
        let mut fields = JsonFields::parse_argument(EVENT, event_json)?;
        let mut events = Vec::new();
        if let Some((json, _)) = fields.take_any("result") {
            events.push(Self::Returned(json));
        }
        if let Some((raw, _)) = fields.take_any("error") {
            events.push(Self::Failed(CallFailure::read(&raw, "index")?));
        }
        if let Some(staged) = fields.take_optional_u64("staged") {
            events.push(Self::Staged(staged));
        }
        if let Some((raw, _)) = fields.take_any("answers") {
            events.push(Self::Answered(read_answers(&raw)?));
        }
        if fields.take_flag("stopped") {
            events.push(Self::Stopped);
        }
        fields.finish(EVENT)?;
        match events.pop() {
            Some(event) if events.is_empty() => Ok(event),
            _ => Err(Error::invalid_input(
                "`event-json` must have exactly one of `result`, `error`, `staged`, `answers`, \
                 `stopped`",
            )),
        }
    }
}

fn read_answers(raw: &str) -> Result<Vec<RequestAnswer>> {
    let mut answers = Vec::new();
    for element in json::list_elements(raw, ByteSpan::from_range(0, raw.len())) {
        answers.push(read_answer(json::slice_span(raw, element.span))?);
    }
    Ok(answers)
}

fn read_answer(raw: &str) -> Result<RequestAnswer> {
    let mut fields = JsonFields::parse_argument(EVENT, raw)?;
    let is_done = fields.take_any("done").is_some_and(|(_, kind)| kind != JsonKind::Null);
    let failed = fields.take_any("failed").filter(|(_, kind)| *kind != JsonKind::Null);
    let asked = fields.take_optional_u64("asked").unwrap_or(u64::from(is_done));
    let mut answer = RequestAnswer {
        asked,
        state: if is_done { DONE } else { MISSING },
        failed: CallFailure::default(),
    };
    if let Some((raw, _)) = failed {
        answer.failed = CallFailure::read(&raw, "retry_after_ms")?;
        let code = answer.failed.code.as_str();
        match CODES.iter().position(|known| *known == code) {
            Some(place) => answer.state = FAILED + int::to_u64(place),
            None => fields.reject_field("failed", "of a known code"),
        }
    }
    fields.finish_known(EVENT)?;
    Ok(answer)
}
