//! Identity by meaning: hashes of what a message says.
//!
//! In: the raw text of a message and its projection. Out: one [`SaidPart`] for each part that says
//! something. Hosts write one message in many ways. Two ways have equal hashes if they differ only
//! in details that the table leaves out. Alignment of a list with the stored messages compares
//! these hashes. Elsewhere: the content identity, a hash of all content ([`super`]).
//!
//! | part | what counts |
//! |---|---|
//! | text | role and text, without white space at both ends, with `\r\n` as `\n` |
//! | tool call | name and canonical arguments |
//! | tool result | text, or the canonical value |
//! | file | text or base64 |
//! | other | the canonical value without silent members; an `id` may count (see below) |
//! | reasoning | nothing; if no other part says anything, the reasoning |
//! | none of these | the content identity of the message |
//!
//! The `id` of an other part counts only if at most one of its other members says something. All
//! other ids, times, the dialect, empty texts, names of results and error flags do not count. In a
//! canonical value, object members are sorted by key, and null members do not count. A call id is
//! kept beside the hash: two calls that say the same are different calls if their ids differ.

use alloc::{borrow::Cow, string::String, vec::Vec};

use sha2::{Digest, Sha256};

use crate::{
    base::{
        hash,
        json::{self, ByteSpan, JsonKind},
        sort,
    },
    message::{ParsedMessage, Part, Role, is_unique_call_id},
};

/// Version of these rules. Hashes of different versions are not compared.
pub const MEANING_VERSION: u32 = 1;

/// Domain tag: separates these hashes from all other hashes of the engine.
const DOMAIN: &[u8] = b"lcm meaning 1\0";
/// Deepest value that is made canonical; a deeper value counts as it is written.
const CANONICAL_DEPTH_MAX: u32 = 32;
/// *Silent members* of an unknown part, which say nothing: markers of caching and streaming, and
/// ids.
const SILENT_MEMBERS: [&str; 4] = ["cache_control", "id", "index", "status"];
/// Types of blocks that are only text.
pub const TEXT_TYPES: [&str; 3] = ["text", "input_text", "output_text"];

/// Fewest letters and digits of a call id that looks unique.
const CALL_ID_CHARACTERS_MIN: usize = 8;

/// What one part of a message says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SaidPart {
    /// Hash of what the part says.
    pub said: [u8; 16],
    /// Hash of the id of a tool call or result; zeros: the part has no id. The lowest bit tells
    /// whether the id looks globally unique.
    pub call: [u8; 4],
}

impl SaidPart {
    /// Returns whether the part has a call id that looks globally unique.
    #[must_use]
    pub const fn has_unique_call(&self) -> bool {
        self.call[3] & 1 == 1
    }
}

/// Returns what each part of a message says, in order, without parts that say nothing. If no part
/// says anything, returns one part for the reasoning or the content identity.
#[must_use]
pub fn hash_parts(raw: &str, message: &ParsedMessage) -> Vec<SaidPart> {
    let role = message.role;
    let parts = message.parts.iter().filter_map(|part| {
        let said = hash_part(raw, role, part)?;
        let call = part.call_id(raw).map(|id| hash_call_id(b"lcm call", &id));
        let result = || part.result_id(raw).map(|id| hash_call_id(b"lcm result", &id));
        Some(SaidPart { said, call: call.or_else(result).unwrap_or_default() })
    });
    let mut said: Vec<SaidPart> = parts.collect();
    if said.is_empty() {
        let mut hasher = start_hash(b'r', role);
        let thoughts = message.parts.iter().filter_map(|part| match part {
            Part::Reasoning { text } => Some(json::text(raw, *text)),
            _ => None,
        });
        let mut count = 0;
        for thought in thoughts {
            add_text(&mut hasher, &normalize_text(&thought));
            count += 1;
        }
        if count == 0 {
            // Content that is not understood must not look like other such content.
            hasher.update(message.identity);
        }
        said.push(SaidPart { said: finish_hash(hasher), call: [0; 4] });
    }
    said
}

/// Text of the user's turn with which a context begins if a message of the model would be first.
pub const OPENING_PLACEHOLDER: &str = "[earlier messages are not shown]";
/// Text of the user's turn with which a context ends if a message of the model would be last.
pub const CLOSING_PLACEHOLDER: &str = "[the conversation continues here]";
/// What [`find_summaries`] returns instead of the id of a summary for a placeholder turn.
pub const PLACEHOLDER_ID: &str = "placeholder";

/// Returns the texts of a user's message that begin like a rendered summary, or are a placeholder
/// turn. Each has its place among the parts of [`hash_parts`], and the id of the summary or
/// [`PLACEHOLDER_ID`].
#[must_use]
pub fn find_summaries(raw: &str, message: &ParsedMessage) -> Vec<(usize, String)> {
    let id_of = |part: &Part| match part {
        Part::Text { text } if message.role == Role::User => {
            find_summary_id(&json::text(raw, *text)).map(String::from)
        }
        _ => None,
    };
    if !message.parts.iter().any(|part| id_of(part).is_some()) {
        return Vec::new();
    }
    let said = message.parts.iter().filter(|part| hash_part(raw, message.role, part).is_some());
    said.enumerate().filter_map(|(place, part)| Some((place, id_of(part)?))).collect()
}

/// Returns the id at the beginning of a rendered summary, or [`PLACEHOLDER_ID`] of a placeholder
/// turn; `None`: the text is neither.
fn find_summary_id(text: &str) -> Option<&str> {
    if [OPENING_PLACEHOLDER, CLOSING_PLACEHOLDER].contains(&text) {
        return Some(PLACEHOLDER_ID);
    }
    let text = text.trim_start();
    let rest = text.strip_prefix("<summary id=\"").or_else(|| text.strip_prefix("[summary "))?;
    rest.get(..20).filter(|id| id.starts_with("sum_"))
}

/// Returns what a message says beside its reasoning, if that is one text or the text of one tool
/// result; `None`: the message says anything else, or nothing.
#[must_use]
pub fn read_text(raw: &str, message: &ParsedMessage) -> Option<String> {
    let is_thought = |part: &&Part| !matches!(part, Part::Reasoning { .. });
    let mut parts = message.parts.iter().filter(is_thought);
    let text = match (parts.next()?, parts.next()) {
        (Part::Text { text }, None) => json::text(raw, *text).into_owned(),
        (Part::ToolResult { output: Some(output), .. }, None) => match json::kind(raw, *output) {
            JsonKind::String => json::text(raw, *output).into_owned(),
            JsonKind::Array => join_text_blocks(raw, *output)?,
            _ => return None,
        },
        _ => return None,
    };
    Some(normalize_text(&text).into_owned())
}

/// Returns the hash of a part that says only this text: the text of a tool result for the role
/// `tool`, else a text. The text is as [`read_text`] returns it.
#[must_use]
pub fn hash_text(role: Role, text: &str) -> [u8; 16] {
    let kind = if role == Role::Tool { b'o' } else { b't' };
    let mut hasher = start_hash(kind, role);
    add_text(&mut hasher, text);
    finish_hash(hasher)
}

/// Returns the running hash of a sequence of parts after one more part. The hash starts with
/// zeros, and does not depend on where messages begin.
#[must_use]
pub fn advance(running: &[u8; 16], part: &[u8; 16]) -> [u8; 16] {
    hash::hash_prefix(&hash::hash_fields(&[b"lcm line", running, part]))
}

/// Returns a short hash of an id, which is never zeros.
#[must_use]
pub fn hash_id(fields: &[&[u8]]) -> [u8; 4] {
    let [first, rest @ ..]: [u8; 4] = hash::hash_prefix(&hash::hash_fields(fields));
    // Zeros are kept for messages without an id.
    [first | 1, rest[0], rest[1], rest[2]]
}

/// Returns the hash of a call id; zeros: the id is empty.
fn hash_call_id(kind: &[u8], id: &str) -> [u8; 4] {
    if id.is_empty() {
        return [0; 4];
    }
    let [first, second, third, last] = hash_id(&[kind, id.as_bytes()]);
    [first, second, third, (last & !1) | u8::from(looks_unique(id))]
}

/// Returns whether a call id looks globally unique. Such an id passes [`is_unique_call_id`], or has
/// at least [`CALL_ID_CHARACTERS_MIN`] letters and digits, among them a digit. In the second case
/// it must not only count calls, as `call_1` and `functions.exec:0` do.
pub(super) fn looks_unique(id: &str) -> bool {
    let stem = id.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_counted = stem.len() < id.len() && !stem.bytes().any(|b| b.is_ascii_digit());
    let characters = id.bytes().filter(u8::is_ascii_alphanumeric).count();
    is_unique_call_id(id)
        || (!is_counted
            && characters >= CALL_ID_CHARACTERS_MIN
            && id.bytes().any(|b| b.is_ascii_digit()))
}

/// Returns the hash of a part; `None`: the part says nothing.
fn hash_part(raw: &str, role: Role, part: &Part) -> Option<[u8; 16]> {
    let mut hasher;
    match part {
        Part::Text { text } => {
            let text = json::text(raw, *text);
            let text = normalize_text(&text);
            if text.is_empty() {
                return None;
            }
            hasher = start_hash(b't', role);
            add_text(&mut hasher, &text);
        }
        Part::Reasoning { .. } => return None,
        Part::ToolCall { name, input, .. } => {
            hasher = start_hash(b'c', Role::Assistant);
            add_text(&mut hasher, &name.map_or(Cow::Borrowed(""), |name| json::text(raw, name)));
            add_arguments(&mut hasher, raw, *input);
        }
        Part::ToolResult { output, .. } => {
            hasher = start_hash(b'o', Role::Tool);
            match output {
                Some(output) => add_output(&mut hasher, raw, *output),
                None => add_text(&mut hasher, ""),
            }
        }
        Part::File { text, data, .. } => {
            hasher = start_hash(b'f', role);
            for span in [text, data].into_iter().flatten() {
                add_value(&mut hasher, raw, *span, 0);
            }
        }
        Part::Other { value } if json::kind(raw, *value) == JsonKind::Object => {
            hasher = start_hash(b'x', role);
            let members = json::list_members(raw, *value);
            let telling = members
                .iter()
                .filter(|member| is_telling(&json::text(raw, member.key), member.kind));
            // If at most one other member says something, such as `type`, the part refers to its
            // content by the id.
            let is_reference = telling.count() < 2;
            add_sorted(&mut hasher, raw, *value, 0, &|key, kind| {
                is_telling(key, kind) || (is_reference && key == "id")
            });
        }
        Part::Other { value } => {
            let text = json::compact_value(raw, *value);
            if matches!(text.as_str(), "null" | "\"\"") {
                return None;
            }
            hasher = start_hash(b'x', role);
            add_text(&mut hasher, &text);
        }
    }
    Some(finish_hash(hasher))
}

fn start_hash(kind: u8, role: Role) -> Sha256 {
    let role = match role {
        Role::System => b's',
        Role::User => b'u',
        Role::Assistant => b'a',
        Role::Tool => b't',
    };
    let mut hasher = Sha256::new();
    hasher.update(DOMAIN);
    hasher.update([kind, role]);
    hasher
}

fn finish_hash(hasher: Sha256) -> [u8; 16] {
    let digest: [u8; 32] = hasher.finalize().into();
    hash::hash_prefix(&digest)
}

/// Removes white space at both ends, and writes each `\r\n` as `\n`.
#[must_use]
pub fn normalize_text(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if text.contains('\r') { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// Adds the arguments of a call: an object, or an object written as a string.
fn add_arguments(hasher: &mut Sha256, raw: &str, input: Option<ByteSpan>) {
    let Some(input) = input else { return add_empty_object(hasher) };
    match json::kind(raw, input) {
        JsonKind::Null => add_empty_object(hasher),
        JsonKind::String => {
            let text = json::text(raw, input);
            if text.trim().is_empty() {
                add_empty_object(hasher);
            } else if json::parse_object(&text).is_ok() {
                let start = text.len() - text.trim_start().len();
                let end = text.trim_end().len();
                add_value(hasher, &text, ByteSpan::from_range(start, end), 0);
            } else {
                add_text(hasher, &text);
            }
        }
        _ => add_value(hasher, raw, input, 0),
    }
}

fn add_empty_object(hasher: &mut Sha256) {
    hasher.update(b"{}");
}

/// Adds the output of a tool: its text if the output is only text.
fn add_output(hasher: &mut Sha256, raw: &str, output: ByteSpan) {
    match json::kind(raw, output) {
        JsonKind::String => add_text(hasher, &normalize_text(&json::text(raw, output))),
        JsonKind::Null => add_text(hasher, ""),
        JsonKind::Array => match join_text_blocks(raw, output) {
            Some(text) => add_text(hasher, &normalize_text(&text)),
            None => add_value(hasher, raw, output, 0),
        },
        _ => add_value(hasher, raw, output, 0),
    }
}

/// Joins the texts of a list of text blocks; `None`: the list has another element.
fn join_text_blocks(raw: &str, list: ByteSpan) -> Option<String> {
    let mut joined = String::new();
    for block in json::list_elements(raw, list) {
        let members = json::list_members(raw, block.span);
        let kind = json::find_member(&members, raw, "type")?;
        let text = json::find_member(&members, raw, "text")?;
        if text.kind != JsonKind::String
            || !TEXT_TYPES.iter().any(|name| json::is_equal_text(raw, kind.value, name))
        {
            return None;
        }
        joined.push_str(&json::text(raw, text.value));
    }
    Some(joined)
}

/// Returns whether a member of an unknown part says something.
fn is_telling(key: &str, kind: JsonKind) -> bool {
    kind != JsonKind::Null && !SILENT_MEMBERS.contains(&key)
}

/// Adds a canonical value.
fn add_value(hasher: &mut Sha256, raw: &str, span: ByteSpan, depth: u32) {
    if depth >= CANONICAL_DEPTH_MAX {
        return add_text(hasher, &json::compact_value(raw, span));
    }
    match json::kind(raw, span) {
        // SDKs write absent members as null.
        JsonKind::Object => {
            add_sorted(hasher, raw, span, depth, &|_, kind| kind != JsonKind::Null);
        }
        JsonKind::Array => {
            hasher.update(b"[");
            for element in json::list_elements(raw, span) {
                add_value(hasher, raw, element.span, depth + 1);
            }
            hasher.update(b"]");
        }
        JsonKind::String => add_text(hasher, &json::text(raw, span)),
        JsonKind::Number => {
            hasher.update(b"n");
            add_text(hasher, json::slice_span(raw, span));
        }
        JsonKind::Bool | JsonKind::Null => {
            hasher.update(json::slice_span(raw, span));
        }
    }
}

/// Adds the members of an object that `counts` selects, sorted by key; of equal keys, only the last
/// counts.
fn add_sorted(
    hasher: &mut Sha256,
    raw: &str,
    span: ByteSpan,
    depth: u32,
    counts: &dyn Fn(&str, JsonKind) -> bool,
) {
    let members = json::list_members(raw, span);
    let mut sorted: Vec<(Cow<'_, str>, usize)> = members
        .iter()
        .enumerate()
        .map(|(place, member)| (json::text(raw, member.key), place))
        .collect();
    sort::sort(&mut sorted);
    hasher.update(b"{");
    for (number, (key, place)) in sorted.iter().enumerate() {
        let is_repeated = sorted.get(number + 1).is_some_and(|(next, _)| next == key);
        let Some(member) = members.get(*place).filter(|_| !is_repeated) else { continue };
        if counts(key, member.kind) {
            add_text(hasher, key);
            add_value(hasher, raw, member.value, depth + 1);
        }
    }
    hasher.update(b"}");
}

/// Adds a text with its length.
fn add_text(hasher: &mut Sha256, text: &str) {
    hasher.update(b"s");
    hasher.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
    hasher.update(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{message, types::api::Dialect};

    fn hashes(dialect: Dialect, raw: &str) -> Vec<[u8; 16]> {
        let parts = hash_parts(raw, &message::parse(dialect, raw).expect("a message"));
        parts.iter().map(|part| part.said).collect()
    }

    #[test]
    fn ids_that_count_calls_do_not_look_unique() {
        let unique = [
            "toolu_01A2b3C4d5E6f7",
            "chatcmpl-tool-9f8e7d6c5b4a",
            "a1b2c3d4e",
            "550e8400-e29b-41d4-a716-446655440000",
            "call_abcdefghijklmnop",
        ];
        assert!(unique.iter().all(|id| looks_unique(id)), "{unique:?}");
        for id in ["", "1", "call_0", "functions.exec:0", "get_current_weather_17", "search"] {
            assert!(!looks_unique(id), "{id}");
        }
    }

    #[test]
    fn a_text_alone_has_the_hash_of_its_part() {
        let raws = [
            r#"{"role":"assistant","content":" Ship it\n"}"#,
            r#"{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"done "}]}"#,
        ];
        for raw in raws {
            let message = message::parse(Dialect::OpenaiChat, raw).expect("a message");
            let text = read_text(raw, &message).expect("a text");
            assert_eq!(hash_parts(raw, &message)[0].said, hash_text(message.role, &text), "{raw}");
        }
    }

    /// Checks that all Chat messages of `raws` have equal hashes, and that no message of `others`
    /// has these hashes.
    fn assert_equal(raws: &[&str], others: &[&str]) {
        let first = hashes(Dialect::OpenaiChat, raws[0]);
        for raw in raws {
            assert_eq!(hashes(Dialect::OpenaiChat, raw), first, "{raw}");
        }
        for raw in others {
            assert_ne!(hashes(Dialect::OpenaiChat, raw), first, "{raw}");
        }
    }

    #[test]
    fn forms_of_a_text_say_the_same() {
        assert_equal(
            &[
                r#"{"role":"user","content":"Ship it"}"#,
                r#"{"role":"user","content":[{"type":"text","text":"Ship it"}]}"#,
                r#"{"content":"Ship it\n","role":"user","name":null,"id":"m1"}"#,
                r#"{"role":"user","content":[{"type":"text","text":"Ship it",
                    "cache_control":{"type":"ephemeral"}},{"type":"text","text":""}]}"#,
            ],
            &[
                r#"{"role":"assistant","content":"Ship it"}"#,
                r#"{"role":"user","content":"Ship it now"}"#,
                r#"{"role":"user","content":["Ship it","Ship it"]}"#,
            ],
        );
    }

    #[test]
    fn forms_of_a_call_say_the_same() {
        assert_equal(
            &[
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function",
                    "function":{"name":"run","arguments":"{\"b\":1,\"a\":{\"d\":[1,2],\"c\":3}}"}}]}"#,
                r#"{"role":"assistant","content":"","refusal":null,"tool_calls":[{"id":"b",
                    "type":"function","index":0,"function":{"name":"run",
                    "arguments":"{ \"a\": {\"c\": 3, \"d\": [1, 2]}, \"b\": 1 }"}}]}"#,
            ],
            &[
                r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function",
                    "function":{"name":"run","arguments":"{\"b\":1,\"a\":{\"d\":[2,1],\"c\":3}}"}}]}"#,
                r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function",
                    "function":{"name":"ran","arguments":"{\"b\":1,\"a\":{\"d\":[1,2],\"c\":3}}"}}]}"#,
            ],
        );
    }

    #[test]
    fn dialects_and_borders_of_messages_do_not_count() {
        let chat = [
            r#"{"role":"tool","tool_call_id":"a","content":"one"}"#,
            r#"{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"two"}]}"#,
        ];
        let chat: Vec<_> = chat.iter().flat_map(|raw| hashes(Dialect::OpenaiChat, raw)).collect();
        let anthropic = r#"{"role":"user","content":[
            {"type":"tool_result","tool_use_id":"a","content":"one"},
            {"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"two"}]}]}"#;
        assert_eq!(hashes(Dialect::Anthropic, anthropic), chat);
    }

    #[test]
    fn every_message_has_a_part() {
        let thought = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.",
            "signature":"x"}]}"#;
        let other = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Ah."}]}"#;
        assert_eq!(hashes(Dialect::Anthropic, thought).len(), 1);
        assert_ne!(hashes(Dialect::Anthropic, thought), hashes(Dialect::Anthropic, other));
        let unknown =
            |text: &str| alloc::format!(r#"{{"role":"user","parts":[{{"text":"{text}"}}]}}"#);
        let [one, two] = ["one", "two"].map(|text| hashes(Dialect::Anthropic, &unknown(text)));
        assert_ne!(one, two);
    }

    /// Goal: an id counts if it alone names the content of an item or file.
    #[test]
    fn an_id_that_stands_alone_counts() {
        let ways = [
            (Dialect::OpenaiChat, r#"{"role":"assistant","content":null,"audio":{"id":"ID"}}"#),
            (Dialect::OpenaiResponses, r#"{"type":"item_reference","id":"ID"}"#),
            (
                Dialect::OpenaiChat,
                r#"{"role":"user","content":[{"type":"text","text":"Read it."},
                    {"type":"attachment","id":"ID"}]}"#,
            ),
        ];
        for (dialect, raw) in ways {
            let [one, two] = ["id_1", "id_2"].map(|id| hashes(dialect, &raw.replace("ID", id)));
            assert_ne!(one, two, "{raw}");
        }
        let image = r#"{"role":"user","content":[{"type":"image","url":"u","id":"ID"}]}"#;
        let [one, two] = ["id_1", "id_2"].map(|id| hashes(Dialect::Lcm, &image.replace("ID", id)));
        assert_eq!(one, two);
    }

    #[test]
    fn deep_values_count() {
        let deep = |inner: &str| {
            let value = alloc::format!("{}{inner}{}", "[".repeat(200), "]".repeat(200));
            alloc::format!(
                r#"{{"role":"assistant","parts":[{{"type":"tool_call","id":"a","name":"run",
                    "input":{value}}}]}}"#
            )
        };
        assert_ne!(hashes(Dialect::Lcm, &deep("1")), hashes(Dialect::Lcm, &deep("2")));
    }
}
