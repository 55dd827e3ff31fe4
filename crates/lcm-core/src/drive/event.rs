//! The event by which a host answers an instruction.
//!
//! In: the argument `event-json`. Out: a [`DriveEvent`]. The tasks of [`crate::drive`] use this
//! module.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use lcm_text::{
    base::error::{Error, Result},
    base::int,
    base::json::{self, ByteSpan, JsonFields, JsonKind},
};

use super::state::DriveState;

/// Name of the argument that holds an event.
pub(super) const EVENT: &str = "event-json";
/// Maximum characters kept of an error message.
const MESSAGE_CHARS_MAX: usize = 300;
/// Codes of a failed completion. After a code at index [`EXHAUSTED_FROM`] or later, no model is
/// asked any more.
const CODES: [&str; 7] =
    ["auth", "policy", "context-too-long", "rate-limited", "timeout", "unavailable", "other"];
/// Index in [`CODES`] of the first code after which no model is asked any more.
const EXHAUSTED_FROM: u64 = 3;

/// The outcome of an instruction.
pub(super) enum DriveEvent<'a> {
    /// The call returned this JSON.
    Returned(Cow<'a, str>),
    /// The call or the upload failed.
    Failed(CallFailure),
    /// Number of uploaded texts.
    Staged(u64),
    /// The answers to the requests, in the order of the requests.
    Answered(Vec<RequestAnswer>),
    /// The caller stopped the task.
    Stopped,
}

/// How a call or a completion failed.
#[derive(Clone, Default)]
pub(super) struct CallFailure {
    pub(super) code: String,
    pub(super) message: String,
    /// Of a call: index of the message at fault. Of a completion: milliseconds until a retry may
    /// succeed. `None`: the host gave no number.
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

    /// Reads or writes the failure; an empty code means that there is no failure.
    pub(super) fn visit(&mut self, state: &mut DriveState) {
        state.text(&mut self.code);
        if !self.code.is_empty() {
            state.text(&mut self.message);
            let mut number = self.number.map_or(0, |number| number.saturating_add(1));
            state.visit_number(&mut number);
            self.number = number.checked_sub(1);
        }
    }

    /// Returns whether there is a failure.
    pub(super) fn is_some(&self) -> bool {
        !self.code.is_empty()
    }
}

/// The state of the answer to a request. The text stays with the host.
pub(super) struct RequestAnswer {
    /// Number of completions that were requested.
    pub(super) asked: u64,
    /// [`MISSING`], [`DONE`], [`STAND_IN`], or [`FAILED`] plus the index of the code.
    pub(super) state: u64,
    /// The failure; without a code: the request did not fail.
    pub(super) failed: CallFailure,
}

/// State of a request that no model got: the request waits, or the models are exhausted.
pub(super) const UNASKED: u64 = 0;
/// State of a request that stays without an answer: the task ends before an answer is applied, or
/// the host has no answer.
pub(super) const MISSING: u64 = 1;
/// State of a request with an answer.
pub(super) const DONE: u64 = 2;
/// State of a request whose answer replaces the answer of a model that failed, for example an
/// answer of the offline summariser.
pub(super) const STAND_IN: u64 = 3;
/// State of a request that failed with the first of [`CODES`]. The state of another code is this
/// number plus the index of the code.
pub(super) const FAILED: u64 = 4;

/// Returns whether no model is asked after an answer of this state.
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
    let stands_in = fields.take_flag("stand_in");
    let done = if stands_in { STAND_IN } else { DONE };
    let mut answer = RequestAnswer {
        asked,
        state: if is_done { done } else { MISSING },
        failed: CallFailure::default(),
    };
    if let Some((raw, _)) = failed {
        answer.failed = CallFailure::read(&raw, "retry_after_ms")?;
        let code = answer.failed.code.as_str();
        match CODES.iter().position(|known| *known == code) {
            Some(place) => answer.state = FAILED + int::to_u64(place),
            None => {
                let rule = format!("an error with one of the codes `{}`", CODES.join("`, `"));
                fields.reject_field("failed", &rule);
            }
        }
    }
    fields.finish_known(EVENT)?;
    Ok(answer)
}

/// Returns the error for an event that does not answer the last instruction.
pub(super) fn unanswered_error(wanted: &str) -> Error {
    Error::invalid_input(format_args!(
        "`event-json` must have {wanted}, to answer the last instruction"
    ))
}
