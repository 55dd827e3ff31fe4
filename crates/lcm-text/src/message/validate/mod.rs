//! Would the provider accept this array of messages?
//!
//! In: a JSON array in a provider's dialect. Out: findings, each one line that names the message.
//! Only rules that the providers publish or are known to enforce; the vectors
//! `dialects/*-rules-are-kept` and `dialects/*-rules-are-broken` have an example of each. Written
//! apart from the rendering, which it has to prove.
//!
//! Not here, because it depends on what is beside the array or cannot be seen in it: whether
//! thinking must be there (`thinking` of the request, and which models of Gemini ask for a
//! `thoughtSignature`), where newer models of Anthropic take the role `system`, how many calls and
//! how much text one request may have, and whether an image is one, a file id exists or a signature
//! is right. Blocks, parts and items of types that are not known are let through: a newer provider
//! gave them.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

#[cfg(test)]
mod tests;

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use crate::{
    base::{
        error::{Error, Result},
        json::{self, JsonKind, JsonValue, StringPiece},
    },
    message::JsonObject,
    types::api::Dialect,
};

/// Findings that are told of one array.
const FINDINGS_MAX: usize = 100;

/// Checks an array of messages and returns the findings as a JSON array of strings.
///
/// # Errors
///
/// `invalid-input`: no JSON array; `unsupported`: a dialect that has no rules here.
pub fn validate(dialect: Dialect, messages_json: &str) -> Result<String> {
    if dialect == Dialect::Lcm {
        return Err(Error::not_supported("dialect: `lcm` is no provider's, and has no rules"));
    }
    // The scanner reads objects.
    let raw = format!("{{\"messages\":{messages_json}}}");
    let members = json::parse_object(&raw)
        .map_err(|error| Error::invalid_input(format_args!("messages-json: {}", error.message)))?;
    let [list] = members.as_slice() else {
        return Err(Error::invalid_input("messages-json: no JSON array"));
    };
    if list.kind != JsonKind::Array {
        return Err(Error::invalid_input("messages-json: no JSON array"));
    }
    let findings = check(dialect, &raw, &json::list_elements(&raw, list.value));
    Ok(findings.to_json())
}

/// What is wrong with these messages of `raw`; nothing in the dialect `lcm`, which has no rules.
pub fn check(dialect: Dialect, raw: &str, messages: &[JsonValue]) -> Findings {
    check_after(dialect, None, raw, messages)
}

/// The same of messages behind accepted ones, the last of which is `before`: none of their calls is
/// open, and no id is used in both.
pub fn check_after(
    dialect: Dialect,
    before: Option<&str>,
    raw: &str,
    messages: &[JsonValue],
) -> Findings {
    let mut findings = Findings::default();
    if messages.is_empty() {
        findings.report_unless(false, format_args!("no messages"));
    }
    check_characters(raw, messages, &mut findings);
    match dialect {
        Dialect::Anthropic => anthropic::check(raw, messages, &mut findings),
        Dialect::OpenaiChat => openai_chat::check(raw, messages, &mut findings),
        Dialect::OpenaiResponses => openai_responses::check(raw, messages, &mut findings),
        Dialect::Gemini => gemini::check(raw, messages, before, &mut findings),
        Dialect::Lcm => {}
    }
    findings
}

/// Half a surrogate pair is no character, and providers read strict JSON.
fn check_characters(raw: &str, messages: &[JsonValue], findings: &mut Findings) {
    // Any such half is an escape of D800 to DFFF.
    if !raw.contains("\\ud") && !raw.contains("\\uD") {
        return;
    }
    for (at, value) in messages.iter().enumerate() {
        findings.message_index = at;
        let message = json::slice_span(raw, value.span);
        let mut lone = false;
        let mut scanner = json::JsonScanner::new(message);
        while let Ok(Some(token)) = scanner.next_token() {
            if let json::JsonTokenKind::String | json::JsonTokenKind::Key = token.kind {
                let literal = message.get(token.start..token.end).unwrap_or_default();
                json::each_piece(literal, &mut |piece| {
                    lone |= matches!(piece, StringPiece::LoneSurrogate(_))
                });
            }
        }
        findings.report_unless(!lone, format_args!("half a surrogate pair in a string"));
    }
}

/// What was found, in order.
#[derive(Debug, Default)]
pub struct Findings {
    /// One line each.
    pub list: Vec<String>,
    /// Indexes of the messages that are at fault.
    pub messages: Vec<usize>,
    message_index: usize,
}

impl Findings {
    /// Adds what is wrong with the current message, unless it is as it should.
    fn report_unless(&mut self, holds: bool, wrong: fmt::Arguments<'_>) {
        self.report_messages_unless(&[self.message_index], holds, wrong);
    }

    /// The same, when other messages are at fault than the one where it shows.
    fn report_messages_unless(&mut self, fault: &[usize], holds: bool, wrong: fmt::Arguments<'_>) {
        if !holds && self.list.len() < FINDINGS_MAX {
            self.list.push(format!("messages[{}]: {wrong}", self.message_index));
            self.messages.extend_from_slice(fault);
        }
    }

    fn to_json(&self) -> String {
        let mut out = String::from("[");
        for finding in &self.list {
            if out.len() > 1 {
                out.push(',');
            }
            json::write_string(&mut out, finding);
        }
        out.push(']');
        out
    }
}

/// The message as an object, and its role.
fn read_message<'a>(
    raw: &'a str,
    value: JsonValue,
    findings: &mut Findings,
) -> Option<(JsonObject<'a>, String)> {
    let message = JsonObject::from_value(raw, value);
    findings.report_unless(message.is_some(), format_args!("no object"));
    let message = message?;
    let role = String::from(message.get_text("role"));
    Some((message, role))
}
