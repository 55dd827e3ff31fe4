//! What the providers ask of calls and blocks, for rendering and for checking.

use alloc::{borrow::Cow, format, string::String};

use crate::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::JsonObject,
    types::api::Dialect,
};

/// Longest call id that Chat Completions accepts.
const OPENAI_ID_CHARACTERS_MAX: usize = 40;
/// Longest call id that Responses accepts.
const RESPONSES_ID_CHARACTERS_MAX: usize = 64;
/// Longest call id that goes to Messages and Gemini as it is; none is published.
const ID_CHARACTERS_MAX: usize = 128;
/// Longest names of tools and speakers, as `OpenAI` publishes them.
const NAME_CHARACTERS_MAX: usize = 64;
/// Longest names of tools of Messages and Gemini, as they publish them.
const LONG_NAME_CHARACTERS_MAX: usize = 128;
/// Stands for a tool without a name.
const UNNAMED_TOOL: &str = "tool";
/// Marks a block up to which the provider may cache.
const CACHE_CONTROL: &str = "cache_control";
/// Blocks with it that one request may have.
pub const CACHE_CONTROLS_MAX: usize = 4;

/// The characters of names, and of ids in Messages.
pub fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Whether the provider accepts an id of a call.
pub fn is_valid_call_id(dialect: Dialect, id: &str) -> bool {
    let max = match dialect {
        Dialect::OpenaiChat => OPENAI_ID_CHARACTERS_MAX,
        Dialect::OpenaiResponses => RESPONSES_ID_CHARACTERS_MAX,
        _ => ID_CHARACTERS_MAX,
    };
    let takes = |c: char| dialect != Dialect::Anthropic || is_name_character(c);
    !id.is_empty() && id.chars().count() <= max && id.chars().all(takes)
}

/// Whether Responses accepts what an item is called: ids of messages, function calls and reasoning
/// are told by their beginning.
pub fn is_valid_item_id(kind: &str, id: &str) -> bool {
    match kind {
        "message" => id.starts_with("msg"),
        "function_call" => id.starts_with("fc"),
        "reasoning" => id.starts_with("rs"),
        _ => true,
    }
}

/// A name of a tool as the provider accepts it: the name itself, if it does.
pub fn sanitize_tool_name(dialect: Dialect, name: &str) -> Cow<'_, str> {
    let max = match dialect {
        Dialect::Anthropic | Dialect::Gemini => LONG_NAME_CHARACTERS_MAX,
        _ => NAME_CHARACTERS_MAX,
    };
    if name.is_empty() {
        return Cow::Borrowed(UNNAMED_TOOL);
    }
    let is_gemini = dialect == Dialect::Gemini;
    let takes = |c: char| is_name_character(c) || (is_gemini && matches!(c, '.' | ':'));
    // Gemini's begin like those of a program.
    let begins = |c: char| !is_gemini || c.is_ascii_alphabetic() || c == '_';
    if name.chars().all(takes) && name.len() <= max && name.starts_with(begins) {
        return Cow::Borrowed(name);
    }
    let begin = if name.starts_with(|c| begins(c) || !takes(c)) { "" } else { "_" };
    let plain = name.chars().map(|c| if takes(c) { c } else { '_' });
    Cow::Owned(begin.chars().chain(plain).take(max).collect())
}

/// The input of a call as a JSON object: itself, the object in its string, or an object around it.
pub fn to_input_object(input: &str) -> String {
    let whole = ByteSpan::from_range(0, input.len());
    match json::kind(input, whole) {
        JsonKind::Object => json::compact_value(input, whole),
        JsonKind::Null => String::from("{}"),
        JsonKind::String => {
            let text = json::text(input, whole);
            match json::parse_object(&text) {
                Ok(_) => {
                    json::compact_value(text.trim(), ByteSpan::from_range(0, text.trim().len()))
                }
                Err(_) if text.trim().is_empty() => String::from("{}"),
                Err(_) => format!("{{\"input\":{input}}}"),
            }
        }
        _ => format!("{{\"input\":{}}}", json::compact_value(input, whole)),
    }
}

/// Whether Chat Completions accepts the name of who speaks.
pub fn is_valid_speaker_name(name: &str) -> bool {
    let takes = |c: char| !c.is_whitespace() && !"<|\\/>".contains(c);
    !name.is_empty() && name.chars().count() <= NAME_CHARACTERS_MAX && name.chars().all(takes)
}

/// Whether Messages can tell that thinking is its own.
pub fn is_signed(block: &JsonObject<'_>) -> bool {
    match &*block.get_text("type") {
        "redacted_thinking" => !block.get_text("data").is_empty(),
        _ => block.get_string("thinking").is_some() && !block.get_text("signature").is_empty(),
    }
}

/// Image types that Messages reads.
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Whether a block of Messages says where its image, document or search result is from; any other
/// block need not.
pub fn has_valid_source(block: &JsonObject<'_>) -> bool {
    let kind = block.get_text("type");
    let mimes: &[&str] = match &*kind {
        "image" => &IMAGE_TYPES,
        "document" => &["application/pdf"],
        "search_result" => return block.get_string("source").is_some(),
        _ => return true,
    };
    let Some(source) = block.get_object("source") else { return false };
    let has = |key| !source.get_text(key).is_empty();
    match &*source.get_text("type") {
        "base64" => mimes.contains(&&*source.get_text("media_type")) && has("data"),
        "url" => has("url"),
        "file" => has("file_id"),
        "text" if kind == "document" => source.get_string("data").is_some(),
        "content" if kind == "document" => source.get_value("content").is_some(),
        "" | "text" | "content" => false,
        // One of a kind to come.
        _ => true,
    }
}

/// Whether the `content` of a Responses message is a list of parts of its role.
pub fn has_valid_item_parts(raw: &str, message: &JsonObject<'_>, is_assistant: bool) -> bool {
    let fits = |value: &JsonValue| {
        JsonObject::from_value(raw, *value).is_some_and(|part| {
            let is_said = matches!(&*part.get_text("type"), "output_text" | "refusal");
            is_valid_item_part(&part) && is_said == is_assistant
        })
    };
    let parts = message.get_list("content");
    !parts.is_empty() && parts.iter().all(fits)
}

/// Whether Responses takes a part of a content or of an output; those of kinds to come, too.
pub fn is_valid_item_part(part: &JsonObject<'_>) -> bool {
    let has = |key| !part.get_text(key).is_empty();
    match &*part.get_text("type") {
        "input_text" | "output_text" => part.get_string("text").is_some(),
        "refusal" => part.get_string("refusal").is_some(),
        "input_image" => {
            has("image_url") || (has("file_id") && part.get_value("image_url").is_none())
        }
        "input_file" => has("file_data") || has("file_url") || has("file_id"),
        // These are of other providers.
        "" | "text" | "image_url" | "image" | "file" | "document" | "tool_use" | "tool_result" => {
            false
        }
        _ => true,
    }
}

/// Whether the `content` of a Chat Completions message is a list of parts, all of these types; no
/// types: of any that a user's may have.
pub fn has_valid_chat_parts(raw: &str, message: &JsonObject<'_>, types: &[&str]) -> bool {
    let parts = message.get_list("content");
    let fits = |value: &JsonValue| {
        JsonObject::from_value(raw, *value).is_some_and(|part| {
            let kind = part.get_text("type");
            let is_among =
                if types.is_empty() { kind != "refusal" } else { types.contains(&&*kind) };
            is_valid_chat_part(&part) && is_among
        })
    };
    !parts.is_empty() && parts.iter().all(fits)
}

/// Whether Chat Completions takes a part of a content; those of kinds to come, too.
pub fn is_valid_chat_part(part: &JsonObject<'_>) -> bool {
    match &*part.get_text("type") {
        "text" => part.get_string("text").is_some(),
        "refusal" => part.get_string("refusal").is_some(),
        "image_url" => {
            part.get_object("image_url").is_some_and(|image| !image.get_text("url").is_empty())
        }
        "input_audio" => part.get_object("input_audio").is_some_and(|audio| {
            audio.get_string("data").is_some()
                && matches!(&*audio.get_text("format"), "wav" | "mp3")
        }),
        "file" => part.get_object("file").is_some(),
        // These are of other providers.
        "" | "input_text" | "output_text" | "input_image" | "input_file" | "image" | "document"
        | "tool_use" | "tool_result" => false,
        _ => true,
    }
}

/// Members of a Gemini part, of which it has one at most, as they are written in both cases.
const PART_KINDS: [(&str, &str); 7] = [
    ("text", "text"),
    ("inlineData", "inline_data"),
    ("fileData", "file_data"),
    ("functionCall", "function_call"),
    ("functionResponse", "function_response"),
    ("executableCode", "executable_code"),
    ("codeExecutionResult", "code_execution_result"),
];

/// Whether a part of a Gemini content holds two things at once.
pub fn has_several_kinds(part: &JsonObject<'_>) -> bool {
    let is = |(camel, snake): &&(&str, &str)| {
        part.get_value(camel).is_some() || part.get_value(snake).is_some()
    };
    PART_KINDS.iter().filter(is).count() > 1
}

/// Members of a Gemini part that say something about what it holds and are nothing themselves.
const PART_METADATA: [&str; 9] = [
    "thought",
    "thoughtSignature",
    "thought_signature",
    "videoMetadata",
    "video_metadata",
    "mediaResolution",
    "media_resolution",
    "partMetadata",
    "part_metadata",
];

/// Whether a part of a Gemini content holds nothing but words about it.
pub fn has_only_metadata(raw: &str, part: &JsonObject<'_>) -> bool {
    part.members.iter().all(|member| PART_METADATA.contains(&&*json::text(raw, member.key)))
}

/// How many blocks with `cache_control` a block is and holds.
pub fn count_cache_controls(block: &str) -> usize {
    let span = ByteSpan::from_range(0, block.len());
    let Some(object) =
        JsonObject::from_value(block, JsonValue { span, kind: json::kind(block, span) })
    else {
        return 0;
    };
    let inner = object.get_list("content").into_iter().filter(|value| {
        JsonObject::from_value(block, *value)
            .is_some_and(|inner| inner.get_value(CACHE_CONTROL).is_some())
    });
    usize::from(object.get_value(CACHE_CONTROL).is_some()) + inner.count()
}

/// The block without `cache_control`, its own and that of the blocks in its content.
pub fn strip_cache_controls(block: &str) -> String {
    let mut out = String::with_capacity(block.len());
    push_stripped_object(&mut out, block, ByteSpan::from_range(0, block.len()), true);
    out
}

fn push_stripped_object(out: &mut String, raw: &str, object: ByteSpan, is_outer: bool) {
    let mut opened = '{';
    for member in json::list_members(raw, object) {
        let key = json::text(raw, member.key);
        if key == CACHE_CONTROL {
            continue;
        }
        out.push(core::mem::replace(&mut opened, ','));
        out.push_str(json::slice_span(raw, member.key));
        out.push(':');
        if is_outer && key == "content" && member.kind == JsonKind::Array {
            let mut separator = '[';
            for value in json::list_elements(raw, member.value) {
                out.push(core::mem::replace(&mut separator, ','));
                match value.kind {
                    JsonKind::Object => push_stripped_object(out, raw, value.span, false),
                    _ => out.push_str(json::slice_span(raw, value.span)),
                }
            }
            if separator == '[' {
                out.push('[');
            }
            out.push(']');
        } else {
            out.push_str(json::slice_span(raw, member.value));
        }
    }
    if opened == '{' {
        out.push('{');
    }
    out.push('}');
}
