//! Detects the format of a file by its lines.
//!
//! In: the objects of all lines. Out: the one format that every line fits. Each line has a set of
//! possible formats; the result is the intersection of all sets. If every line is a message, but
//! no dialect fits all lines, the dialect is `auto`. The name of the file does not count. Messages
//! of agent frameworks have been recognised before ([`super::frameworks`]).
//!
//! A line with only a role and text is the same message in several dialects; a file of only such
//! lines is read as `lcm`.

use serde_json::value::RawValue;

use super::{
    Format, LineError, formats,
    line::{self, Object},
};
use crate::bindings::types::Dialect;

const CLAUDE_CODE: u8 = 1;
const CODEX: u8 = 2;
const OPEN_CLAW: u8 = 4;
const LCM: u8 = 8;
const ANTHROPIC: u8 = 16;
const CHAT: u8 = 32;
const RESPONSES: u8 = 64;
const GEMINI: u8 = 128;

/// Dialects whose `content` can be a list of blocks with `type`.
const BLOCKS: u8 = LCM | ANTHROPIC | CHAT | RESPONSES;

const DIALECTS: u8 = LCM | ANTHROPIC | CHAT | RESPONSES | GEMINI;

const FORMATS: [(u8, Format); 8] = [
    (CLAUDE_CODE, Format::ClaudeCode),
    (CODEX, Format::Codex),
    (OPEN_CLAW, Format::OpenClaw),
    (LCM, Format::Messages(Dialect::Lcm)),
    (ANTHROPIC, Format::Messages(Dialect::Anthropic)),
    (CHAT, Format::Messages(Dialect::OpenaiChat)),
    (RESPONSES, Format::Messages(Dialect::OpenaiResponses)),
    (GEMINI, Format::Messages(Dialect::Gemini)),
];

/// Possible formats of a line or block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct PossibleFormats {
    /// Bits of the formats; 0: no format.
    formats: u8,
    /// False if a block is unknown, so that its meaning may differ between these formats.
    plain: bool,
}

impl PossibleFormats {
    const fn only(formats: u8) -> Self {
        Self { formats, plain: true }
    }
}

/// Returns the format that all lines fit; for messages of different dialects the dialect `auto`.
/// `None`: there are no lines, or the lines fit several formats and have no message yet.
///
/// # Errors
///
/// A line fits no format, or no format of all preceding lines, unless all of them are messages; or
/// the lines fit several dialects, in which their meaning differs.
pub(super) fn intersect_formats(objects: &[Object<'_>]) -> Result<Option<Format>, LineError> {
    let mut left = u8::MAX;
    let (mut doubtful, mut is_mixed) = (None, false);
    for (index, object) in objects.iter().enumerate() {
        let fits = find_formats(object, index == 0);
        if fits.formats == 0 {
            return Err(LineError::at(index, describe_unknown(index, object)));
        }
        if is_mixed || left & fits.formats == 0 {
            // Messages of several dialects: the component finds the dialect of each.
            is_mixed = left & DIALECTS != 0 && fits.formats & DIALECTS != 0;
            if is_mixed {
                continue;
            }
            let reason = format!(
                "looks like {}, but the lines before it look like {}",
                list_names(fits.formats),
                list_names(left)
            );
            return Err(LineError::at(index, reason));
        }
        left &= fits.formats;
        if !fits.plain {
            doubtful = doubtful.or(Some(index));
        }
    }
    if is_mixed {
        return Ok(Some(Format::Messages(Dialect::Auto)));
    }
    let found: Vec<Format> = list_formats(left).collect();
    match (objects.is_empty(), found.as_slice(), doubtful) {
        (true, ..) => Ok(None),
        (_, [only], _) => Ok(Some(*only)),
        // Bare items fit an early Codex file, too. Such a file has a header, which fits Codex only,
        // so without a header the lines are items.
        (_, [Format::Codex, items @ Format::Messages(_)], _) => Ok(Some(*items)),
        (_, [Format::Messages(Dialect::Lcm), ..], None) if left & !DIALECTS == 0 => {
            Ok(Some(Format::Messages(Dialect::Lcm)))
        }
        (_, _, doubtful) if left & DIALECTS != 0 => {
            let reason = format!("fits {}; set `--dialect`", list_names(left));
            Err(LineError { line: doubtful, reason })
        }
        // Lines that fit the files of several programs, without a message so far.
        _ => Ok(None),
    }
}

/// Describes a record that fits no format: an unknown role, or for the first record of a file the
/// formats that it was compared with.
fn describe_unknown(index: usize, object: &Object<'_>) -> String {
    match object.text("role") {
        Some(role) => format!(
            "must be a message of a known role and type, got the role `{}` and {}",
            line::cut_text(&role, line::SHOWN_CHARACTERS_MAX),
            object.names()
        ),
        None if index == 0 => {
            format!(
                "must have one of the formats {}; got {}",
                formats::list_names(),
                object.names()
            )
        }
        None => format!(
            "must be a message with `role`, or a session line with `type` and `message` or \
             `payload`, got {}",
            object.names()
        ),
    }
}

fn list_formats(formats: u8) -> impl Iterator<Item = Format> {
    FORMATS.into_iter().filter(move |(bit, _)| formats & bit != 0).map(|(_, format)| format)
}

fn list_names(formats: u8) -> String {
    list_formats(formats).map(Format::name).collect::<Vec<_>>().join(" or ")
}

/// Returns the possible formats of a line; `first`: the line is the first of the file.
fn find_formats(object: &Object<'_>, first: bool) -> PossibleFormats {
    let kind = object.text("type").unwrap_or_default();
    if object.any("role").is_some_and(line::is_string) {
        let mut fits = find_dialects(object, &kind);
        // An early Codex file has items of the Responses API as lines.
        if kind == "message" && fits.formats & RESPONSES != 0 {
            fits.formats |= CODEX;
        }
        return fits;
    }
    let has = |key: &str| object.has(key);
    let is_object = |key: &str| object.any(key).is_some_and(line::is_object);
    let formats = match kind.as_str() {
        "" if first && object.text("id").is_some() && object.text("timestamp").is_some() => CODEX,
        "" if has("record_type") => CODEX,
        "" if object.list("parts").is_some() => GEMINI,
        "" => 0,
        _ if is_object("payload") => CODEX,
        "user" | "assistant" if is_object("message") => CLAUDE_CODE,
        "session" if object.text("id").is_some() => OPEN_CLAW,
        "message" if is_object("message") => OPEN_CLAW,
        "user" | "assistant" => 0,
        _ if has("parentId") => OPEN_CLAW,
        // Entries of the first version of OpenClaw have no `parentId`.
        "compaction" if has("summary") => OPEN_CLAW,
        kind if is_item(kind) => CODEX | RESPONSES,
        _ if has("uuid") || has("sessionId") || has("leafUuid") || has("messageId") => CLAUDE_CODE,
        _ => CLAUDE_CODE | OPEN_CLAW,
    };
    PossibleFormats::only(formats)
}

/// Returns whether `kind` is the type of a Responses API item other than a message.
fn is_item(kind: &str) -> bool {
    const OTHERS: [&str; 5] =
        ["reasoning", "item_reference", "ghost_snapshot", "compaction", "mcp_list_tools"];
    OTHERS.contains(&kind)
        || kind.ends_with("_call")
        || kind.ends_with("_call_output")
        || kind.starts_with("mcp_approval_")
}

/// Returns the dialects in which an object with `role` is a message.
fn find_dialects(object: &Object<'_>, kind: &str) -> PossibleFormats {
    let mut formats = match object.text("role").as_deref() {
        Some("user" | "system") => BLOCKS | GEMINI,
        Some("assistant") => BLOCKS,
        Some("developer") => CHAT | RESPONSES,
        Some("tool") => LCM | CHAT,
        Some("function") => CHAT | GEMINI,
        Some("model") => GEMINI,
        _ => 0,
    };
    match kind {
        "" => (),
        "message" => formats &= ANTHROPIC | RESPONSES,
        _ => formats = 0,
    }
    let has = |keys: &[&str]| keys.iter().any(|key| object.any(key).is_some());
    if has(&["tool_calls", "tool_call_id", "function_call", "refusal", "audio"]) {
        formats &= CHAT;
    } else if object.text("role").as_deref() == Some("tool") {
        // Chat Completions requires `tool_call_id` in a message of the role `tool`.
        formats &= LCM;
    }
    let (key, blocks) = match object.list("parts") {
        Some(parts) => ("parts", Some(parts)),
        None => ("content", object.list("content")),
    };
    if key == "content" {
        formats &= !GEMINI;
    }
    let mut plain = true;
    for block in blocks.unwrap_or_default() {
        let fits = if key == "parts" { compare_part(block) } else { compare_block(block) };
        formats &= fits.formats;
        plain &= fits.plain;
    }
    if key == "parts" {
        formats &= LCM | GEMINI;
    }
    PossibleFormats { formats, plain }
}

/// Returns the possible dialects of an element of `parts`.
fn compare_part(block: &RawValue) -> PossibleFormats {
    let typed = Object::from_value(block).is_some_and(|part| part.any("type").is_some());
    PossibleFormats::only(if typed { LCM } else { GEMINI })
}

/// Returns the possible dialects of an element of `content`.
fn compare_block(block: &RawValue) -> PossibleFormats {
    let unknown = PossibleFormats { formats: BLOCKS, plain: false };
    let Some(block) = Object::from_value(block) else { return unknown };
    let has = |key: &str| block.any(key).is_some();
    let formats = match block.text("type").unwrap_or_default().as_str() {
        "text" if has("cache_control") || has("citations") => ANTHROPIC,
        "text" => LCM | ANTHROPIC | CHAT,
        "tool_use" | "server_tool_use" | "mcp_tool_use" | "thinking" | "redacted_thinking" => {
            ANTHROPIC
        }
        "image" | "document" if has("source") => ANTHROPIC,
        "tool_result" if has("call_id") => LCM,
        "tool_result" => ANTHROPIC,
        kind if kind.ends_with("_tool_result") => ANTHROPIC,
        "tool_call" | "reasoning" => LCM,
        "image_url" | "input_audio" => CHAT,
        "file" if block.any("file").is_some_and(line::is_object) => CHAT,
        "file" => LCM,
        "input_text" | "output_text" | "input_image" | "input_file" => RESPONSES,
        "refusal" => CHAT | RESPONSES,
        _ => return unknown,
    };
    PossibleFormats::only(formats)
}
