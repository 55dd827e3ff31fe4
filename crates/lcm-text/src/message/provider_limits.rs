//! Limits of the providers on ids, names, parts and blocks, for rendering and for validation.
//!
//! In: an id, a name, a part or a block. Out: whether the provider accepts the value, or an
//! accepted form of the value. Rules about the order of messages are in
//! [`crate::message::validate`].
//!
//! Sources, read on 2026-11-28: the request types of the packages that
//! [`super::provider_members`] names; where these have no limit, the texts of refusals that public
//! reports quote. A constant names its refusal, or its type.

use alloc::{borrow::Cow, format, string::String};

use crate::{
    base::json::{self, ByteSpan, JsonKind, JsonMember, JsonValue},
    message::{blocks::JsonObject, provider_members::is_part_member},
    types::api::Dialect,
};

/// Most characters of a call id in the `OpenAI` Chat Completions API: "Invalid
/// 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40"
/// (vercel/ai 8132).
const OPENAI_ID_CHARACTERS_MAX: usize = 40;
/// Most characters of a call id in the `OpenAI` Responses API: "Invalid 'input[5].call_id': string
/// too long. Expected a string with maximum length 64" (decolua/9router 393).
const RESPONSES_ID_CHARACTERS_MAX: usize = 64;
/// Most characters of a call id in all other dialects, whose providers publish no limit.
const ID_CHARACTERS_MAX: usize = 128;
/// Most characters of the name of a tool or a speaker: `FunctionDefinition` of `OpenAI` has "a
/// maximum length of 64".
const NAME_CHARACTERS_MAX: usize = 64;
/// Most characters of the name of a tool: `FunctionDeclaration` of Gemini has "a maximum length of
/// 128", and Anthropic the pattern `^[a-zA-Z0-9_-]{1,128}$` (corespeed-io/zypher-agent 97).
const LONG_NAME_CHARACTERS_MAX: usize = 128;
/// Name for a tool without a name.
const UNNAMED_TOOL: &str = "tool";
/// Member of an Anthropic block at which a cached prefix of the prompt ends.
pub(super) const CACHE_CONTROL: &str = "cache_control";
/// Most blocks with `cache_control` in one request to Anthropic: "A maximum of 4 blocks with
/// `cache_control` may be provided" (continuedev/continue 6937).
pub const CACHE_CONTROLS_MAX: usize = 4;

/// Returns whether a character is allowed in tool names of every provider, and in call ids of
/// Anthropic: "`tool_use.id`: String should match pattern '^[a-zA-Z0-9_-]+$'" (maximhq/bifrost
/// 5097).
pub fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Returns whether the provider accepts an id of a call.
pub fn is_valid_call_id(dialect: Dialect, id: &str) -> bool {
    let max = match dialect {
        Dialect::OpenaiChat => OPENAI_ID_CHARACTERS_MAX,
        Dialect::OpenaiResponses => RESPONSES_ID_CHARACTERS_MAX,
        _ => ID_CHARACTERS_MAX,
    };
    let is_allowed = |c: char| dialect != Dialect::Anthropic || is_name_character(c);
    let is_short = || id.chars().count() <= max && id.chars().all(is_allowed);
    !id.is_empty() && (dialect.is_framework() || is_short())
}

/// Returns whether the Responses API accepts the id of an item of type `kind`. Ids of messages,
/// function calls, searches and reasoning have fixed prefixes: "Invalid 'input[371].id'. Expected
/// an ID that begins with 'msg'" (openai/codex 33176).
pub fn is_valid_item_id(kind: &str, id: &str) -> bool {
    match kind {
        "message" => id.starts_with("msg"),
        "function_call" => id.starts_with("fc"),
        "reasoning" => id.starts_with("rs"),
        "web_search_call" => id.starts_with("ws"),
        _ => true,
    }
}

/// Returns whether Anthropic accepts the id of a `server_tool_use` block: "String should match
/// pattern '^srvtoolu_[a-zA-Z0-9_]+$'" (ding113/claude-code-hub 470).
pub fn is_valid_server_id(id: &str) -> bool {
    let rest = id.strip_prefix("srvtoolu_").unwrap_or_default();
    !rest.is_empty() && rest.chars().all(|c| is_name_character(c) && c != '-')
}

/// Returns whether a provider fetches the file at an address. Only Gemini takes others, such as
/// `gs:`.
pub fn is_web_address(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
}

/// Returns whether an image may have an address: of the web, or with its data.
fn is_image_address(url: &str) -> bool {
    is_web_address(url) || url.starts_with("data:")
}

/// Returns the name of a tool in a form that the provider accepts. An accepted name is unchanged;
/// an empty name becomes `tool`.
pub fn sanitize_tool_name(dialect: Dialect, name: &str) -> Cow<'_, str> {
    let max = match dialect {
        Dialect::Anthropic | Dialect::Gemini => LONG_NAME_CHARACTERS_MAX,
        _ => NAME_CHARACTERS_MAX,
    };
    if name.is_empty() {
        return Cow::Borrowed(UNNAMED_TOOL);
    }
    if dialect.is_framework() {
        return Cow::Borrowed(name);
    }
    let is_gemini = dialect == Dialect::Gemini;
    let is_allowed = |c: char| is_name_character(c) || (is_gemini && matches!(c, '.' | ':'));
    // Gemini's names begin like identifiers of a program.
    let can_begin = |c: char| !is_gemini || c.is_ascii_alphabetic() || c == '_';
    if name.chars().all(is_allowed) && name.len() <= max && name.starts_with(can_begin) {
        return Cow::Borrowed(name);
    }
    let prefix = if name.starts_with(|c| can_begin(c) || !is_allowed(c)) { "" } else { "_" };
    let plain = name.chars().map(|c| if is_allowed(c) { c } else { '_' });
    Cow::Owned(prefix.chars().chain(plain).take(max).collect())
}

/// Returns the input of a call as a JSON object: the object itself, or the object that a string
/// contains. `null` and a blank string become `{}`; any other value becomes `{"input":...}`.
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

/// Returns whether Chat Completions accepts the name of a speaker.
pub fn is_valid_speaker_name(name: &str) -> bool {
    let is_allowed = |c: char| !c.is_whitespace() && !"<|\\/>".contains(c);
    !name.is_empty() && name.chars().count() <= NAME_CHARACTERS_MAX && name.chars().all(is_allowed)
}

/// Returns whether a thinking block has the signature or data that Anthropic requires.
pub fn is_signed(block: &JsonObject<'_>) -> bool {
    match &*block.get_text("type") {
        "redacted_thinking" => !block.get_text("data").is_empty(),
        _ => block.get_string("thinking").is_some() && !block.get_text("signature").is_empty(),
    }
}

/// Media types of images that the providers accept.
pub const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Returns whether an Anthropic image, document or search result has a valid `source`; true for any
/// other block, and for a `source` of an unknown type.
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
        "url" => is_web_address(&source.get_text("url")),
        "file" => has("file_id"),
        "text" if kind == "document" => source.get_string("data").is_some(),
        "content" if kind == "document" => source.get_value("content").is_some(),
        "" | "text" | "content" => false,
        // An unknown type may be newer than this code.
        _ => true,
    }
}

/// Returns whether the `content` of a Responses message is a list, not empty, of parts that its
/// role can have.
pub fn has_valid_item_parts(raw: &str, message: &JsonObject<'_>, is_assistant: bool) -> bool {
    let fits = |value: &JsonValue| {
        JsonObject::from_value(raw, *value).is_some_and(|part| {
            let is_output = matches!(&*part.get_text("type"), "output_text" | "refusal");
            is_valid_item_part(&part) && is_output == is_assistant
        })
    };
    let parts = message.get_list("content");
    !parts.is_empty() && parts.iter().all(fits)
}

/// Returns whether the Responses API accepts a part of a content or of an output. Parts of unknown
/// types are accepted, because the types may be newer than this code.
pub fn is_valid_item_part(part: &JsonObject<'_>) -> bool {
    let has = |key| !part.get_text(key).is_empty();
    match &*part.get_text("type") {
        "input_text" | "output_text" => part.get_string("text").is_some(),
        "refusal" => part.get_string("refusal").is_some(),
        "input_image" => {
            is_image_address(&part.get_text("image_url"))
                || (has("file_id") && part.get_value("image_url").is_none())
        }
        "input_file" => has("file_data") || has("file_url") || has("file_id"),
        // Types of other providers.
        "" | "text" | "image_url" | "image" | "file" | "document" | "tool_use" | "tool_result" => {
            false
        }
        _ => true,
    }
}

/// Returns whether the `content` of a Chat Completions message is a list, not empty, of parts with
/// these types. An empty list of types allows all types except `refusal`.
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

/// Returns whether Chat Completions accepts a part of a content. Parts of unknown types are
/// accepted, because the types may be newer than this code.
pub fn is_valid_chat_part(part: &JsonObject<'_>) -> bool {
    match &*part.get_text("type") {
        "text" => part.get_string("text").is_some(),
        "refusal" => part.get_string("refusal").is_some(),
        "image_url" => {
            part.get_object("image_url").is_some_and(|it| is_image_address(&it.get_text("url")))
        }
        "input_audio" => part.get_object("input_audio").is_some_and(|audio| {
            audio.get_string("data").is_some()
                && matches!(&*audio.get_text("format"), "wav" | "mp3")
        }),
        "file" => part.get_object("file").is_some(),
        // Types of other providers.
        "" | "input_text" | "output_text" | "input_image" | "input_file" | "image" | "document"
        | "tool_use" | "tool_result" => false,
        _ => true,
    }
}

/// Members that hold the data of a Gemini part, in camel case and in snake case; those of tools
/// last. A valid part has at most one of these members.
const PART_KINDS: [(&str, &str); 7] = [
    ("text", "text"),
    ("inlineData", "inline_data"),
    ("fileData", "file_data"),
    ("functionCall", "function_call"),
    ("functionResponse", "function_response"),
    ("executableCode", "executable_code"),
    ("codeExecutionResult", "code_execution_result"),
];

/// Returns whether a key is of a member that holds the data of a Gemini part. `of_tool`: the data
/// of a call, a result, or code.
pub fn is_part_kind(key: &str, of_tool: bool) -> bool {
    let kinds = PART_KINDS.iter().skip(if of_tool { 3 } else { 0 });
    kinds.flat_map(|(camel, snake)| [camel, snake]).any(|kind| *kind == key)
}

/// Counts the kinds of data that a part of a Gemini content has.
pub fn count_part_kinds(part: &JsonObject<'_>) -> usize {
    let is_present = |(camel, snake): &&(&str, &str)| {
        part.get_value(camel).is_some() || part.get_value(snake).is_some()
    };
    PART_KINDS.iter().filter(is_present).count()
}

/// Returns whether a part of a Gemini content has no members except those that describe its data.
pub fn has_only_metadata(raw: &str, part: &JsonObject<'_>) -> bool {
    let is_known = |member: &JsonMember| is_part_member(&json::text(raw, member.key));
    count_part_kinds(part) == 0 && part.members.iter().all(is_known)
}

/// Counts the `cache_control` members of a block and of the blocks directly in its `content`; 0 if
/// the value is no object.
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
