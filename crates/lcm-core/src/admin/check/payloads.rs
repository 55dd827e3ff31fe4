//! What stands for messages with large payloads: made again from the text, and compared.

use alloc::format;

use crate::storage::{codec, history::History, pack::Stored, store_session::Reader};
use lcm_text::{
    base::{derivation_version::RULES, error::Result},
    message::{
        self,
        large_payload::{self, File},
    },
    types::api::Dialect,
};

use super::Report;

/// Checks the stand-in of a message, given as seq, dialect and record, and that each of its
/// payloads can be found.
pub(super) fn check(
    reader: &mut Reader<'_>,
    history: &History<'_>,
    (seq, dialect, stored): (u64, Dialect, &Stored),
    raw: &str,
    report: &mut Report,
) -> Result<()> {
    let Some(stand_in) = &stored.stand_in else { return Ok(()) };
    let Some(shown) = report.damage(history.shown(reader, stored))? else { return Ok(()) };
    let made = message::project(dialect, raw).ok().and_then(|message| {
        let least = stand_in.payload_tokens_min;
        large_payload::stand_in(dialect, raw, &message, least, history.keys.root())
    });
    let same = match stored.rules {
        RULES => made.as_ref().is_some_and(|made| {
            made.raw == *shown && made.parts == stand_in.parts && made.tokens == stored.tokens
        }),
        _ => message::has_all(&shown, &stand_in.parts),
    };
    report.expect(same, || format!("what stands for message {seq} is not made from its text"));
    for (id, wanted) in made.map(|made| made.files).unwrap_or_default() {
        // Other rules may have found other payloads; what is named has to be there.
        if !shown.contains(&large_payload::name(id)) {
            continue;
        }
        let key = history.keys.file(id);
        let found = match reader.fresh_one(&key)? {
            Some(value) => report.damage(codec::decode::<File>(&key, &value))?,
            None => None,
        };
        let is_it = |file: &File| {
            let sizes = (file.bytes, file.lines) == (wanted.bytes, wanted.lines);
            let same = file.rules != RULES || file.exploration == wanted.exploration;
            sizes && same && file.seq >= seq
        };
        report.expect(found.as_ref().is_some_and(is_it), || {
            format!("`{key}`, a payload of message {seq}, is missing or another one")
        });
    }
    Ok(())
}
