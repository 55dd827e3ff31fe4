//! Check of placeholders and payload records, which are derived anew from the message text.
//!
//! In: a message with a placeholder. Out: findings in the report.

use alloc::format;

use crate::storage::{
    codec, history::MessageHistory, pack::PlacedMessage, store_session::StoreSession,
};
use lcm_text::{
    base::{derivation_version::DERIVATION_VERSION, error::Result},
    message::{
        self,
        large_payload::{self, PayloadRecord},
    },
};

use super::CheckReport;

/// Checks the placeholder of a message, and the record of each payload that the placeholder names.
pub(super) fn check(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    placed: &PlacedMessage,
    raw: &str,
    report: &mut CheckReport,
) -> Result<()> {
    let (seq, dialect, stored) = (placed.seq, placed.dialect, &*placed.stored);
    let Some(placeholder) = &stored.placeholder else { return Ok(()) };
    let Some(rendered) = report.catch_damage(history.read_rendered_text(session, stored))? else {
        return Ok(());
    };
    let derived = message::parse(dialect, raw).ok().and_then(|message| {
        let tokens_min = placeholder.payload_tokens_min;
        let prefix = history.keys.key_prefix();
        large_payload::build_placeholder(dialect, raw, &message, tokens_min, prefix)
    });
    let is_derived = match stored.derivation_version {
        DERIVATION_VERSION => derived.as_ref().is_some_and(|derived| {
            derived.raw == *rendered
                && derived.parts == placeholder.parts
                && derived.tokens == stored.tokens
        }),
        _ => message::contains_parts(&rendered, &placeholder.parts),
    };
    report.expect_sound(is_derived, || {
        format!("the placeholder of message {seq} does not match its text")
    });
    for (id, expected) in derived.map(|derived| derived.files).unwrap_or_default() {
        // Another version may have found other payloads, so only those in the placeholder count.
        if !rendered.contains(&large_payload::format_name(id)) {
            continue;
        }
        let key = history.keys.payload_key(id);
        let found = match session.read_one_uncached(&key)? {
            Some(value) => report.catch_damage(codec::decode::<PayloadRecord>(&key, &value))?,
            None => None,
        };
        let matches_text = |file: &PayloadRecord| {
            (file.bytes, file.lines) == (expected.bytes, expected.lines)
                && (file.rules != DERIVATION_VERSION || file.exploration == expected.exploration)
                && file.seq >= seq
        };
        report.expect_sound(found.as_ref().is_some_and(matches_text), || {
            format!("`{key}`, a payload of message {seq}, is missing or does not match its text")
        });
    }
    Ok(())
}
