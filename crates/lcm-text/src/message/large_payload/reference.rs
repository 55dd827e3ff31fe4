//! The record of a payload, and the reference that replaces the payload in a context.
//!
//! In: a detected payload. Out: its id and record, and the text of its reference. Programs parse
//! the first line of a reference, so the form of the line is fixed. The other lines tell a model
//! what the payload is and how to read the payload.

use alloc::{
    format,
    string::{String, ToString},
};

use crate::{
    base::{derivation_version::DERIVATION_VERSION, hash, int},
    message::{
        large_payload::{
            found_payload::FoundPayload,
            measure,
            payload_id::format_name,
            payload_record::{PayloadKind, PayloadLocation, PayloadRecord},
        },
        outline,
        part::Role,
    },
};

/// Most characters of a name or media type in a reference.
const NAME_CHARACTERS_MAX: usize = 120;

/// Builds the id and the record of a payload; `root` is the key root of the conversation.
///
/// In one conversation, equal payloads with the same kind, name, media type and call id have the
/// same id.
pub(super) fn build_record(
    raw: &str,
    found: &FoundPayload,
    root: &str,
) -> ([u8; 8], PayloadRecord) {
    let (from, to) = found.content_range;
    let written = raw.get(from..to).unwrap_or_default();
    let measured = measure::measure_payload(written, found.is_text);
    let name = found.name.as_deref().map(sanitize_label).filter(|name| !name.is_empty());
    let declared = found.mime.as_deref().map(sanitize_label).filter(|mime| !mime.is_empty());
    let explored = outline::build_outline(&outline::PayloadText {
        name: name.as_deref().filter(|_| found.kind == PayloadKind::File),
        mime: declared.as_deref(),
        head: &measured.head,
        tail: &measured.tail,
        bytes: measured.bytes,
        lines: measured.lines,
        is_whole: measured.tail.is_empty(),
    });
    let digest = hash::hash_fields(&[
        b"lcm file",
        root.as_bytes(),
        found.kind.as_str().as_bytes(),
        found.name.as_deref().unwrap_or("").as_bytes(),
        found.mime.as_deref().unwrap_or("").as_bytes(),
        found.call_id.as_bytes(),
        &measured.sha256,
    ]);
    let place = PayloadLocation {
        start: int::to_u32(from),
        length: int::to_u32(written.len()),
        is_text: found.is_text,
        seek_points: measured.seek_points,
    };
    let file = PayloadRecord {
        seq: 0,
        rules: DERIVATION_VERSION,
        kind: found.kind,
        name,
        mime: declared.unwrap_or_else(|| explored.mime.to_string()),
        bytes: measured.bytes,
        lines: measured.lines,
        exploration: explored.text,
        place,
    };
    (hash::hash_prefix(&digest), file)
}

/// Returns the text of the reference to a payload.
pub(super) fn render_reference(
    id: [u8; 8],
    file: &PayloadRecord,
    found: &FoundPayload,
    role: Role,
) -> String {
    let id = format_name(id);
    let bytes = int::format_with_thousands(file.bytes);
    let label = file.name.as_deref();
    let mut out = match file.kind {
        PayloadKind::File => {
            format!(
                "[LCM File: {id} | {} | {} | {bytes} bytes]",
                label.unwrap_or("unnamed"),
                file.mime
            )
        }
        PayloadKind::ToolOutput => {
            let call = sanitize_label(&found.call_id);
            let tool = label.or((!call.is_empty()).then_some(&call)).unwrap_or("unknown");
            format!("[LCM Tool Output: {id} | tool={tool} | {bytes} bytes]")
        }
        PayloadKind::RawPayload => format!(
            "[LCM Raw Payload: {id} | role={} | reason=large_raw_message | {bytes} bytes]",
            role.as_str()
        ),
    };
    out.extend(["\n\nExploration Summary:\n", &file.exploration]);
    out.extend(["\n\nAll of it is kept: lcm_describe with id ", &id]);
    out.push_str(" and expandFile gives any range of its lines or bytes.");
    out
}

/// Returns at most [`NAME_CHARACTERS_MAX`] characters of a name, with `_` for control characters
/// and for the characters `|`, `[` and `]` that delimit a reference.
fn sanitize_label(name: &str) -> String {
    let safe = |c: char| if c.is_control() || matches!(c, '|' | '[' | ']') { '_' } else { c };
    name.trim().chars().take(NAME_CHARACTERS_MAX).map(safe).collect()
}
