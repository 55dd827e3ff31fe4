//! What stands for messages with large payloads: made again from the text, and compared.

use alloc::format;

use crate::storage::{
    codec, history::MessageHistory, pack::StoredMessage, store_session::StoreSession,
};
use lcm_text::{
    base::{derivation_version::DERIVATION_VERSION, error::Result},
    message::{
        self,
        large_payload::{self, PayloadRecord},
    },
    types::api::Dialect,
};

use super::CheckReport;

/// Checks the stand-in of a message, given as seq, dialect and record, and that each of its
/// payloads can be found.
pub(super) fn check(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    (seq, dialect, stored): (u64, Dialect, &StoredMessage),
    raw: &str,
    report: &mut CheckReport,
) -> Result<()> {
    let Some(stand_in) = &stored.placeholder else { return Ok(()) };
    let Some(shown) = report.catch_damage(history.read_rendered_text(reader, stored))? else {
        return Ok(());
    };
    let made = message::parse(dialect, raw).ok().and_then(|message| {
        let least = stand_in.payload_tokens_min;
        large_payload::build_placeholder(dialect, raw, &message, least, history.keys.key_prefix())
    });
    let same = match stored.derivation_version {
        DERIVATION_VERSION => made.as_ref().is_some_and(|made| {
            made.raw == *shown && made.parts == stand_in.parts && made.tokens == stored.tokens
        }),
        _ => message::contains_parts(&shown, &stand_in.parts),
    };
    report
        .expect_sound(same, || format!("what stands for message {seq} is not made from its text"));
    for (id, wanted) in made.map(|made| made.files).unwrap_or_default() {
        // Other rules may have found other payloads; what is named has to be there.
        if !shown.contains(&large_payload::format_name(id)) {
            continue;
        }
        let key = history.keys.payload_key(id);
        let found = match reader.read_one_uncached(&key)? {
            Some(value) => report.catch_damage(codec::decode::<PayloadRecord>(&key, &value))?,
            None => None,
        };
        let is_it = |file: &PayloadRecord| {
            let sizes = (file.bytes, file.lines) == (wanted.bytes, wanted.lines);
            let same = file.rules != DERIVATION_VERSION || file.exploration == wanted.exploration;
            sizes && same && file.seq >= seq
        };
        report.expect_sound(found.as_ref().is_some_and(is_it), || {
            format!("`{key}`, a payload of message {seq}, is missing or another one")
        });
    }
    Ok(())
}
