//! Reading a message of any dialect: calls the reader of the dialect.
//!
//! In: a dialect and a JSON text. Out: the projection, the blocks or the token cost of the text.
//! Deliberately elsewhere: the rules of each dialect, in the reader modules.

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

/// Reads one message of a dialect.
///
/// # Errors
///
/// `invalid-input`: no JSON object, no role of the dialect, or nesting deeper than 512.
pub fn parse(dialect: Dialect, raw: &str) -> Result<ParsedMessage> {
    match dialect {
        Dialect::Lcm => lcm::read(raw),
        Dialect::Anthropic => anthropic::read(raw),
        Dialect::OpenaiChat => openai_chat::read(raw),
        Dialect::OpenaiResponses => openai_responses::read(raw),
        Dialect::Gemini => gemini::read(raw),
    }
}

/// Returns all parts of a stored message, each with its JSON value.
///
/// The list is complete for a provider's dialect and empty for `lcm`.
pub fn read_blocks(dialect: Dialect, raw: &str) -> Vec<MessageBlock> {
    match dialect {
        Dialect::Anthropic => anthropic::read_blocks(raw),
        Dialect::OpenaiChat => openai_chat::read_blocks(raw),
        Dialect::OpenaiResponses => openai_responses::read_blocks(raw),
        Dialect::Gemini => gemini::read_blocks(raw),
        Dialect::Lcm => Vec::new(),
    }
}

/// Returns the cost of a rendered piece in quarter tokens; 0 when the text cannot be read.
///
/// A piece is one block of an `anthropic` message, one part of a `gemini` content, or one whole
/// message of any other dialect.
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
