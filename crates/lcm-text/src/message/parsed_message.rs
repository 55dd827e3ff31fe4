//! The projection of one message: its role, its parts, and the values derived from them.
//!
//! In: the raw text, and the role and parts that a dialect reader found. Out: a [`ParsedMessage`]
//! with token cost, content identity and other values by which a message is recognised again. The
//! rules are the same for all dialects.

use alloc::vec::Vec;

use crate::{
    base::{
        json::{self, ByteSpan, JsonKind, JsonMember},
        time, tokens,
    },
    message::{
        blocks::read_id,
        content_identity,
        dialect_mismatch::{DialectMismatch, DialectReading},
        meaning,
        part::{Part, Role, has_visible_text},
        token_cost,
    },
    types::api::{Dialect, Timestamp},
};

/// Least characters, whitespace not counted, of content that is long enough to recognise a message.
const DISCRIMINATING_CHARACTERS_MIN: usize = 24;

/// Least number of a `timestamp` that is in milliseconds: 3 March 1973. As seconds the number would
/// be in the year 5138.
const SECONDS_END: Timestamp = 100_000_000_000;

/// The projection of one message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParsedMessage {
    /// Dialect whose reader read the message.
    pub dialect: Dialect,
    /// Author of the message.
    pub role: Role,
    /// Parts in order, at most 1,024; the last part of a long list covers the rest of the list.
    pub parts: Vec<Part>,
    /// Estimated tokens of the parts: texts, names, inputs, outputs and files.
    pub tokens: u32,
    /// Time of the message; `None`: the message has no valid `timestamp`; [`time::UNDATED`]: its
    /// `timestamp` says that its time is not known.
    pub timestamp: Option<Timestamp>,
    /// The member `id`, the host's id of the entry; `None`: absent, empty, or no string or number.
    pub entry_id: Option<ByteSpan>,
    /// The member `event_key`; `None`: absent, empty, or no string or number.
    pub event_key: Option<ByteSpan>,
    /// Content identity: a hash that ignores spacing, escapes and the order of top-level keys.
    ///
    /// `id` and `event_key` are hashed only if their values cannot be ids.
    pub identity: [u8; 16],
    /// Call id of the only part, a tool result; `None`: other parts, or the call id is absent or
    /// does not look globally unique.
    pub unique_call_id: Option<ByteSpan>,
    /// Whether two messages with this content are probably the same message. This is so if the
    /// message has a valid time, a call id that looks globally unique, or at least 24 visible
    /// characters.
    pub is_discriminating: bool,
    /// Whether the message is an assistant's failed turn without content.
    ///
    /// The `stop_reason` of such a message is `error` or `aborted`. The message has no part with
    /// content and no member that the dialect does not know.
    pub is_failed_and_empty: bool,
    /// Whether the message has undocumented members or content that no part covers.
    pub has_unread_content: bool,
    /// Finding that the message is probably in another dialect; `None`: no such finding.
    pub dialect_mismatch: Option<DialectMismatch>,
    /// Whether the message has a `timestamp` that cannot be read as a time.
    pub has_invalid_timestamp: bool,
}

impl ParsedMessage {
    /// Returns whether the message has the role `user` and no tool result.
    pub fn is_user_text(&self) -> bool {
        let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
        self.role == Role::User && !self.parts.iter().any(is_result)
    }
}

/// Returns whether a call id looks globally unique: `toolu_` or `call_`, then only ASCII letters or
/// digits, at least 12.
///
/// Short ids such as `functions.exec:0` occur again in later turns, so they identify no call.
#[must_use]
pub fn is_unique_call_id(id: &str) -> bool {
    id.strip_prefix("toolu_")
        .or_else(|| id.strip_prefix("call_"))
        .is_some_and(|rest| rest.len() >= 12 && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// What a dialect reader found in a message.
pub(super) struct MessageReading<'a> {
    pub(super) dialect: Dialect,
    pub(super) raw: &'a str,
    /// Top-level members of the message.
    pub(super) members: &'a [JsonMember],
    pub(super) role: Role,
    pub(super) parts: Vec<Part>,
    /// Whether the message has undocumented members or content that no part covers.
    pub(super) has_more: bool,
}

impl MessageReading<'_> {
    /// Derives the other values and returns the projection.
    pub(super) fn into_message(self) -> ParsedMessage {
        let Self { dialect, raw, members, role, parts, has_more } = self;
        let find = |key| json::find_member(members, raw, key).filter(|m| m.kind != JsonKind::Null);
        let created = || find("createdAt").filter(|_| dialect == Dialect::AiSdk);
        let time = find("timestamp").or_else(created);
        let timestamp = time.and_then(|m| read_time(raw, m));
        let unique_call_id = match parts.as_slice() {
            [Part::ToolResult { call_id: Some(id), .. }]
                if is_unique_call_id(&json::text(raw, *id)) =>
            {
                Some(*id)
            }
            _ => None,
        };
        let ids = |part: &Part| part.call_id(raw).or_else(|| part.result_id(raw));
        let is_discriminating = timestamp.is_some_and(|at| at != time::UNDATED)
            || parts.iter().filter_map(ids).any(|id| meaning::looks_unique(&id))
            || has_visible_text(
                raw,
                parts.iter().flat_map(Part::content_spans),
                DISCRIMINATING_CHARACTERS_MIN,
            );
        let failed = json::find_member(members, raw, "stop_reason")
            .or_else(|| json::find_member(members, raw, "stopReason"))
            .is_some_and(|m| m.kind == JsonKind::String && is_failure(&json::text(raw, m.value)));
        let reading = DialectReading { dialect, raw, members, role, parts: &parts };
        ParsedMessage {
            dialect,
            role,
            tokens: tokens::tokens_from_quarters(
                parts.iter().map(|part| token_cost::quarter_tokens(raw, part)).sum(),
            ),
            timestamp,
            entry_id: json::find_member(members, raw, "id").and_then(read_id),
            event_key: json::find_member(members, raw, "event_key").and_then(read_id),
            identity: content_identity::hash_content(raw, members),
            unique_call_id,
            is_discriminating,
            is_failed_and_empty: role == Role::Assistant
                && failed
                && !has_more
                && !parts.iter().any(|part| part.is_content(raw)),
            has_unread_content: has_more,
            dialect_mismatch: reading.find_mismatch(),
            has_invalid_timestamp: time.is_some() && timestamp.is_none(),
            parts,
        }
    }
}

/// Returns whether a `stop_reason` means that the turn failed.
fn is_failure(stop_reason: &str) -> bool {
    matches!(stop_reason, "error" | "aborted")
}

/// Reads a time: a string in ISO 8601, or a number since the Unix epoch; `None`: no such time, or
/// after the year 9999. The epoch itself is [`time::UNDATED`].
fn read_time(raw: &str, member: &JsonMember) -> Option<Timestamp> {
    let text = json::text(raw, member.value);
    match member.kind {
        JsonKind::String => time::parse(&text),
        JsonKind::Number => read_epoch_time(&text),
        _ => None,
    }
}

/// Reads a number of seconds below [`SECONDS_END`], otherwise of milliseconds; digits after the
/// milliseconds are dropped. `None`: negative, or written with an exponent.
fn read_epoch_time(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number: Timestamp = whole.parse().ok()?;
    if number >= SECONDS_END {
        return Some(number).filter(|&ms| ms <= time::MS_MAX);
    }
    let digits = fraction.chars().chain(core::iter::repeat('0')).take(3);
    let fraction_ms =
        digits.fold(0, |ms, digit| ms * 10 + u64::from(digit.to_digit(10).unwrap_or(0)));
    Some(number * 1_000 + fraction_ms)
}
