//! Checks whether a provider would accept an array of messages.
//!
//! In: a JSON array in a provider's dialect. Out: findings, one line each, with the index of the
//! message. The rules are those that a provider publishes or is known to enforce. The vectors
//! `dialects/*-rules-are-kept` and `dialects/*-broken` have examples of the rules.
//!
//! The checks test what `lcm-core` renders. They share three modules with the rendering:
//! [`super::provider_limits`], [`super::provider_members`], and the reader of the messages of agent
//! frameworks. `tests/sdk`, which shares nothing, checks the same arrays for the four providers.
//!
//! Not checked, because the array alone does not show whether the provider accepts these:
//!
//! - whether thinking or a `thoughtSignature` is required, which the request and the model decide;
//! - where newer Anthropic models accept the role `system`;
//! - limits on the calls and the text of one request;
//! - whether an image, a file id or a signature is valid.
//!
//! Blocks, parts and items of unknown types are accepted, because the types may be newer than this
//! code.

mod anthropic;
mod findings;
mod frameworks;
mod gemini;
mod openai_chat;
mod openai_responses;

#[cfg(test)]
mod tests;

use alloc::{format, string::String};

use crate::{
    base::{
        error::{Error, Result},
        json::{self, JsonKind, JsonValue, StringPiece},
    },
    types::api::Dialect,
};

pub use self::findings::Findings;

/// Checks an array of messages and returns the findings as a JSON array of strings.
///
/// # Errors
///
/// `invalid-input`: no JSON array; `unsupported`: `lcm`, which no provider or framework has.
pub fn validate(dialect: Dialect, messages_json: &str) -> Result<String> {
    if dialect == Dialect::Lcm {
        return Err(Error::not_supported("`dialect` must be a provider's dialect, got `lcm`"));
    }
    // `parse_object` needs an object.
    let raw = format!("{{\"messages\":{messages_json}}}");
    let members = json::parse_object(&raw).map_err(|error| {
        Error::invalid_input(format_args!(
            "`messages-json` must be a JSON array: {}",
            error.message
        ))
    })?;
    let [list] = members.as_slice() else {
        return Err(Error::invalid_input("`messages-json` must be one JSON array"));
    };
    if list.kind != JsonKind::Array {
        return Err(Error::invalid_input("`messages-json` must be a JSON array"));
    }
    let findings = check(dialect, &raw, &json::list_elements(&raw, list.value));
    Ok(findings.to_json())
}

/// Checks the messages at `messages` in `raw`. In the dialect `lcm` there are only findings for an
/// empty array and for half a surrogate pair.
pub fn check(dialect: Dialect, raw: &str, messages: &[JsonValue]) -> Findings {
    check_after(dialect, None, raw, messages)
}

/// Checks messages that follow accepted messages; `before` is the last accepted message.
///
/// The caller ensures that no id occurs in the accepted and in the checked messages, and that no
/// call of the accepted messages is open. In dialect `gemini`, calls of `before` may be open.
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
        Dialect::AiSdk | Dialect::Openclaw | Dialect::Langchain | Dialect::OpenaiAgents => {
            frameworks::check(dialect, raw, messages, &mut findings)
        }
    }
    findings
}

/// Reports each message with an unpaired surrogate, which providers reject.
fn check_characters(raw: &str, messages: &[JsonValue], findings: &mut Findings) {
    // An unpaired surrogate is always an escape from D800 to DFFF.
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
