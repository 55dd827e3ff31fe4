//! Reads a message of any dialect with the reader of the dialect.
//!
//! In: a dialect and a JSON text. Out: the projection, the parts or the token cost of the text.
//! Messages of a caller are read by [`parse_given`], which refuses a dialect that loses a call or
//! result of the message, or finds the dialect; stored messages by [`parse`].

use alloc::vec::Vec;

use crate::{
    base::{
        error::{Error, Result},
        json::{self, ByteSpan, JsonKind, JsonValue},
    },
    message::{
        anthropic, blocks::MessageBlock, dialect_mismatch::DialectMismatch, frameworks, gemini,
        lcm, openai_chat, openai_responses, parsed_message::ParsedMessage, part::Part, token_cost,
    },
    types::api::{Dialect, ReadDialect},
};

/// Parses one message that a caller gave.
///
/// # Errors
///
/// `invalid-input`: as [`parse`]; the declared dialect loses a tool call or a result of the
/// message; no dialect reads the message. The error names the dialect to declare, if one fits.
pub fn parse_given(dialect: ReadDialect, raw: &str) -> Result<ParsedMessage> {
    let ReadDialect::Of(declared) = dialect else { return parse_best(raw) };
    let message = parse(declared, raw).map_err(|error| propose_dialect(declared, raw, error))?;
    let Some(DialectMismatch { looks_like, loses_tools: true }) = message.dialect_mismatch else {
        return Ok(message);
    };
    let reads_all = |other: &Dialect| {
        let is_whole = |one: DialectMismatch| !one.loses_tools;
        parse(*other, raw).is_ok_and(|read| read.dialect_mismatch.is_none_or(is_whole))
    };
    let declared = declared.as_str();
    let best = || parse_best(raw).ok().map(|message| message.dialect);
    Err(match looks_like.filter(reads_all).or_else(best) {
        Some(other) => Error::invalid_input(format_args!(
            "`dialect` must be `{}` or `auto`, got `{declared}`, which loses a tool call or a tool \
             result of the message",
            other.as_str()
        )),
        None => Error::invalid_input(format_args!(
            "the message must have its tool calls and results in the form of a dialect, got a form \
             of which `{declared}` and every other dialect lose one"
        )),
    })
}

/// Adds to an error the dialect that reads all of the message, if there is one.
fn propose_dialect(declared: Dialect, raw: &str, error: Error) -> Error {
    match json::parse_object(raw).and_then(|_| parse_best(raw)) {
        Ok(message) if message.dialect != declared && message.dialect_mismatch.is_none() => {
            let (code, other) = (error.code, message.dialect.as_str());
            let message = error.into_failure().message;
            Error::new(code, format_args!("{message}; `dialect` must be `{other}` or `auto`"))
        }
        _ => error,
    }
}

/// Parses a message by the reader that understands most of the message; of equal ones by the first
/// of [`Dialect::ALL`]. A message of text alone means the same in several dialects.
fn parse_best(raw: &str) -> Result<ParsedMessage> {
    let mut best: Option<((u8, usize, bool), ParsedMessage)> = None;
    let mut refused = None;
    for dialect in Dialect::ALL {
        let message = match parse(dialect, raw) {
            Ok(message) => message,
            Err(error) => {
                refused = refused.or(Some(error));
                continue;
            }
        };
        let doubt = message.dialect_mismatch.map_or(0, |one| 1 + u8::from(one.loses_tools));
        let shares_files = frameworks::shares_files(&message, raw);
        // A message of LangChain that says by its `type` who said it keeps blocks of all providers.
        let keeps_all = dialect == Dialect::Langchain && !raw.contains("\"role\"");
        let unknown = message.parts.iter().filter(|part| match part {
            Part::Other { .. } => !keeps_all,
            Part::File { .. } => shares_files,
            _ => false,
        });
        // A message that means the same in a provider's dialect is in that dialect.
        let is_plain = dialect.is_framework() && !frameworks::is_marked(&message, raw);
        let score = (doubt, unknown.count(), message.has_unread_content || is_plain);
        if score == (0, 0, false) {
            return Ok(message);
        }
        if best.as_ref().is_none_or(|(least, _)| score < *least) {
            best = Some((score, message));
        }
    }
    match (best, refused) {
        (Some((_, message)), _) if message.dialect_mismatch.is_some_and(|one| one.loses_tools) => {
            Err(Error::invalid_input(
                "the message must have its tool calls and results in the form of one dialect; read \
                 in any dialect, it loses one of them",
            ))
        }
        (Some((_, message)), _) => Ok(message),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::invalid_input("the message must have a role")),
    }
}

/// Parses one message of a dialect.
///
/// # Errors
///
/// `invalid-input`: no JSON object, no role of the dialect, or nesting deeper than
/// [`DEPTH_MAX`](crate::base::json::DEPTH_MAX).
pub fn parse(dialect: Dialect, raw: &str) -> Result<ParsedMessage> {
    match dialect {
        Dialect::Lcm => lcm::read(raw),
        Dialect::Anthropic => anthropic::read(raw),
        Dialect::OpenaiChat => openai_chat::read(raw),
        Dialect::OpenaiResponses => openai_responses::read(raw),
        Dialect::Gemini => gemini::read(raw),
        Dialect::AiSdk | Dialect::Openclaw | Dialect::Langchain | Dialect::OpenaiAgents => {
            frameworks::read(dialect, raw)
        }
    }
}

/// Returns all parts of a stored message, each with its JSON value, without a limit on their
/// number; empty for dialect `lcm`.
pub fn read_blocks(dialect: Dialect, raw: &str) -> Vec<MessageBlock> {
    match dialect {
        Dialect::Anthropic => anthropic::read_blocks(raw),
        Dialect::OpenaiChat => openai_chat::read_blocks(raw),
        Dialect::OpenaiResponses => openai_responses::read_blocks(raw),
        Dialect::Gemini => gemini::read_blocks(raw),
        Dialect::Lcm => Vec::new(),
        Dialect::AiSdk | Dialect::Openclaw | Dialect::Langchain | Dialect::OpenaiAgents => {
            frameworks::read_blocks(dialect, raw)
        }
    }
}

/// Returns the cost of a rendered piece in quarter tokens.
///
/// A piece is one block of an `anthropic` message, one part of a `gemini` content, or one whole
/// message of any other dialect. A whole message that is malformed costs 0.
pub fn quarter_tokens(dialect: Dialect, raw: &str) -> u64 {
    let whole = JsonValue { span: ByteSpan::from_range(0, raw.len()), kind: JsonKind::Object };
    match dialect {
        Dialect::Anthropic => token_cost::quarter_tokens(raw, &anthropic::read_block(raw, whole)),
        Dialect::Gemini => token_cost::quarter_tokens(raw, &gemini::read_part(raw, whole)),
        Dialect::Lcm => lcm::read(raw).map_or(0, |message| {
            message.parts.iter().map(|part| token_cost::quarter_tokens(raw, part)).sum()
        }),
        _ => read_blocks(dialect, raw)
            .iter()
            .map(|block| token_cost::quarter_tokens(raw, &block.part))
            .sum(),
    }
}
