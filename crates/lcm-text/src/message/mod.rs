//! Messages of the dialects of providers and agent frameworks, and of the `lcm` dialect.
//!
//! In: the JSON text of one message and its dialect. Out: a projection, [`ParsedMessage`]: role,
//! parts as spans of the text, and derived values such as token cost and identity. A dialect reader
//! finds role and parts; the derived values follow the same rules in every dialect. Rendering is in
//! `lcm-core`.

mod anthropic;
pub mod batch_limit;
mod blocks;
mod content_identity;
mod dialect_mismatch;
mod dialects;
mod frameworks;
mod gemini;
pub mod large_payload;
mod lcm;
pub mod meaning;
mod openai_chat;
mod openai_responses;
pub mod outline;
mod parsed_message;
mod part;
pub mod provider_limits;
pub mod provider_members;
mod token_cost;
pub mod trust;
pub mod validate;

pub use self::{
    anthropic::is_result_type,
    blocks::{JsonObject, MessageBlock},
    dialect_mismatch::DialectMismatch,
    dialects::{parse, parse_given, quarter_tokens, read_blocks},
    frameworks::{find_approval, find_approval_request, find_media},
    gemini::get_object_either,
    openai_responses::{HOST_CALLS, answered_call_type, item_kind},
    parsed_message::{ParsedMessage, is_unique_call_id},
    part::{Part, Role, contains_parts},
};

#[cfg(test)]
#[expect(clippy::string_slice, reason = "a failing test may panic")]
mod tests;

#[cfg(test)]
#[expect(clippy::string_slice, reason = "a failing test may panic")]
mod provider_tests;
