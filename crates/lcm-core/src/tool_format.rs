//! What the providers ask of calls and blocks, for rendering and for checking.

use alloc::{borrow::Cow, format, string::String};

use crate::{
    api::Dialect,
    json::{self, Kind, Span, Value},
    message::Object,
};

/// Longest call id that Chat Completions accepts.
const OPENAI_ID_CHARACTERS_MAX: usize = 40;
/// Longest call id that Responses accepts.
const RESPONSES_ID_CHARACTERS_MAX: usize = 64;
/// Longest call id that goes to Messages and Gemini as it is; none is published.
const ID_CHARACTERS_MAX: usize = 128;
/// Longest names of tools, as the providers publish them; Messages differs from the others.
const NAME_CHARACTERS_MAX: usize = 64;
const ANTHROPIC_NAME_CHARACTERS_MAX: usize = 128;
/// Stands for a tool without a name.
const NO_NAME: &str = "tool";
/// Marks a block up to which the provider may cache.
const CACHE_CONTROL: &str = "cache_control";

/// The characters of names, and of ids in Messages.
pub(crate) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Whether the provider accepts an id of a call.
pub(crate) fn is_call_id(dialect: Dialect, id: &str) -> bool {
    let max = match dialect {
        Dialect::OpenaiChat => OPENAI_ID_CHARACTERS_MAX,
        Dialect::OpenaiResponses => RESPONSES_ID_CHARACTERS_MAX,
        _ => ID_CHARACTERS_MAX,
    };
    let takes = |c: char| dialect != Dialect::Anthropic || is_plain(c);
    !id.is_empty() && id.chars().count() <= max && id.chars().all(takes)
}

/// Whether Responses accepts what an item is called: ids of messages and function calls are told by
/// their beginning.
pub(crate) fn is_item_id(kind: &str, id: &str) -> bool {
    match kind {
        "message" => id.starts_with("msg"),
        "function_call" => id.starts_with("fc"),
        _ => true,
    }
}

/// A name of a tool as the provider accepts it: the name itself, if it does.
pub(crate) fn name(dialect: Dialect, name: &str) -> Cow<'_, str> {
    let max = if dialect == Dialect::Anthropic {
        ANTHROPIC_NAME_CHARACTERS_MAX
    } else {
        NAME_CHARACTERS_MAX
    };
    if name.is_empty() {
        return Cow::Borrowed(NO_NAME);
    }
    let is_gemini = dialect == Dialect::Gemini;
    let takes = |c: char| is_plain(c) || (is_gemini && matches!(c, '.' | ':'));
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
pub(crate) fn input_object(input: &str) -> String {
    let whole = Span::between(0, input.len());
    match json::kind(input, whole) {
        Kind::Object => json::compact(input, whole),
        Kind::Null => String::from("{}"),
        Kind::String => {
            let text = json::text(input, whole);
            match json::object(&text) {
                Ok(_) => json::compact(text.trim(), Span::between(0, text.trim().len())),
                Err(_) if text.trim().is_empty() => String::from("{}"),
                Err(_) => format!("{{\"input\":{input}}}"),
            }
        }
        _ => format!("{{\"input\":{}}}", json::compact(input, whole)),
    }
}

/// Whether the `content` of a Responses message is a list of parts of its role.
pub(crate) fn are_item_parts(raw: &str, message: &Object<'_>, is_assistant: bool) -> bool {
    let of_assistant = ["output_text", "refusal"];
    if is_assistant {
        return are_parts(raw, message, &of_assistant);
    }
    let is_other = |value: &Value| {
        Object::of(raw, *value).is_some_and(|part| !of_assistant.contains(&&*part.text("type")))
    };
    are_parts(raw, message, &[]) && message.list("content").iter().all(is_other)
}

/// Whether the `content` of a Chat Completions message is a list of parts, all of these types; no
/// types: of any.
pub(crate) fn are_parts(raw: &str, message: &Object<'_>, types: &[&str]) -> bool {
    let parts = message.list("content");
    let fits = |value: &Value| {
        Object::of(raw, *value).is_some_and(|part| {
            let kind = part.text("type");
            let texts = ["text", "input_text", "output_text"];
            let is_text = !texts.contains(&&*kind) || part.string("text").is_some();
            !kind.is_empty() && is_text && (types.is_empty() || types.contains(&&*kind))
        })
    };
    !parts.is_empty() && parts.iter().all(fits)
}

/// Members of a Gemini part that say something about what it holds and are nothing themselves.
const ABOUT: [&str; 9] = [
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
pub(crate) fn is_about(raw: &str, part: &Object<'_>) -> bool {
    part.members.iter().all(|member| ABOUT.contains(&&*json::text(raw, member.key)))
}

/// How many blocks with `cache_control` a block is and holds.
pub(crate) fn cache_marks(block: &str) -> usize {
    let span = Span::between(0, block.len());
    let Some(object) = Object::of(block, Value { span, kind: json::kind(block, span) }) else {
        return 0;
    };
    let inner = object.list("content").into_iter().filter(|value| {
        Object::of(block, *value).is_some_and(|inner| inner.any(CACHE_CONTROL).is_some())
    });
    usize::from(object.any(CACHE_CONTROL).is_some()) + inner.count()
}

/// The block without `cache_control`, its own and that of the blocks in its content.
pub(crate) fn without_cache_marks(block: &str) -> String {
    let mut out = String::with_capacity(block.len());
    push_without(&mut out, block, Span::between(0, block.len()), true);
    out
}

fn push_without(out: &mut String, raw: &str, object: Span, is_outer: bool) {
    let mut opened = '{';
    for member in json::members(raw, object) {
        let key = json::text(raw, member.key);
        if key == CACHE_CONTROL {
            continue;
        }
        out.push(core::mem::replace(&mut opened, ','));
        out.push_str(json::slice(raw, member.key));
        out.push(':');
        if is_outer && key == "content" && member.kind == Kind::Array {
            let mut separator = '[';
            for value in json::elements(raw, member.value) {
                out.push(core::mem::replace(&mut separator, ','));
                match value.kind {
                    Kind::Object => push_without(out, raw, value.span, false),
                    _ => out.push_str(json::slice(raw, value.span)),
                }
            }
            if separator == '[' {
                out.push('[');
            }
            out.push(']');
        } else {
            out.push_str(json::slice(raw, member.value));
        }
    }
    if opened == '{' {
        out.push('{');
    }
    out.push('}');
}
