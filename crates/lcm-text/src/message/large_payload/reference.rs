//! The record of a payload and the text that refers to it.
//!
//! The first line of a reference is the published form of such references and is parsed back by
//! programs; what follows is for a model: what the payload is, and how to read it.

use crate::base::hash;
use alloc::{
    format,
    string::{String, ToString},
};

use super::{File, Found, Kind, Place, measure, name};
use crate::{
    base::{derivation_version::RULES, int},
    message::{Role, outline},
};

/// Characters of a name or media type that a reference repeats.
const NAME_CHARACTERS_MAX: usize = 120;

/// The record of a payload and its id. The same payload of the same tool and call is the same file.
pub(super) fn file(raw: &str, found: &Found, root: &str) -> ([u8; 8], File) {
    let (from, to) = found.content;
    let written = raw.get(from..to).unwrap_or_default();
    let measured = measure::measure(written, found.is_text);
    let name = found.name.as_deref().map(shown).filter(|name| !name.is_empty());
    let declared = found.mime.as_deref().map(shown).filter(|mime| !mime.is_empty());
    let explored = outline::explore(&outline::Payload {
        name: name.as_deref().filter(|_| found.kind == Kind::File),
        mime: declared.as_deref(),
        head: &measured.head,
        tail: &measured.tail,
        bytes: measured.bytes,
        lines: measured.lines,
        is_whole: measured.tail.is_empty(),
    });
    let digest = hash::hash(&[
        b"lcm file",
        root.as_bytes(),
        found.kind.as_str().as_bytes(),
        found.name.as_deref().unwrap_or("").as_bytes(),
        found.mime.as_deref().unwrap_or("").as_bytes(),
        found.call_id.as_bytes(),
        &measured.sha256,
    ]);
    let place = Place {
        start: int::to_u32(from),
        length: int::to_u32(written.len()),
        is_text: found.is_text,
        marks: measured.marks,
    };
    let file = File {
        seq: 0,
        rules: RULES,
        kind: found.kind,
        name,
        mime: declared.unwrap_or_else(|| explored.mime.to_string()),
        bytes: measured.bytes,
        lines: measured.lines,
        exploration: explored.text,
        place,
    };
    (hash::prefix(&digest), file)
}

/// What stands in place of a payload.
pub(super) fn text(id: [u8; 8], file: &File, found: &Found, role: Role) -> String {
    let id = name(id);
    let bytes = int::grouped(file.bytes);
    let label = file.name.as_deref();
    let mut out = match file.kind {
        Kind::File => {
            format!(
                "[LCM File: {id} | {} | {} | {bytes} bytes]",
                label.unwrap_or("unnamed"),
                file.mime
            )
        }
        Kind::ToolOutput => {
            let call = shown(&found.call_id);
            let tool = label.or((!call.is_empty()).then_some(&call)).unwrap_or("unknown");
            format!("[LCM Tool Output: {id} | tool={tool} | {bytes} bytes]")
        }
        Kind::RawPayload => format!(
            "[LCM Raw Payload: {id} | role={} | reason=large_raw_message | {bytes} bytes]",
            role.as_str()
        ),
    };
    out.extend(["\n\nExploration Summary:\n", &file.exploration]);
    out.extend(["\n\nAll of it is kept: lcm_describe with id ", &id]);
    out.push_str(" and expandFile gives any range of its lines or bytes.");
    out
}

/// A name as a reference can hold it: one line, without what ends the reference.
fn shown(name: &str) -> String {
    let safe = |c: char| if c.is_control() || matches!(c, '|' | '[' | ']') { '_' } else { c };
    name.trim().chars().take(NAME_CHARACTERS_MAX).map(safe).collect()
}
