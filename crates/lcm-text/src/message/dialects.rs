//! Reads a message of any dialect with the reader of the dialect.
//!
//! In: a dialect and a JSON text. Out: the projection, the parts or the token cost of the text.

use alloc::vec::Vec;

use crate::{
    base::{
        error::Result,
        json::{ByteSpan, JsonKind, JsonValue},
    },
    message::{
        anthropic, blocks::MessageBlock, gemini, lcm, openai_chat, openai_responses,
        parsed_message::ParsedMessage, token_cost,
    },
    types::api::Dialect,
};

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
