//! Members that the objects of a request may have, for rendering and for validation.
//!
//! In: an object of a message. Out: the object without the members that its type does not have in a
//! request, and without members that are `null`: SDKs and hosts add such members, and providers
//! refuse them. An object of an unknown type is unchanged, because the type may be newer than this
//! code. What a message loses here stays in the store.
//!
//! The members are those of the request types in the providers' own Python packages, read on
//! 2026-11-28: `anthropic` 2.14, `openai` 3.57, `google-genai` 3.6.

use alloc::{borrow::Cow, string::String, vec::Vec};

use crate::{
    base::{
        json::{self, JsonKind, JsonMember, JsonValue},
        sort::SortedMap,
    },
    message::{blocks::JsonObject, provider_limits},
    types::api::Dialect,
};

/// Members that a host adds to items for the engine.
const HOST_MEMBERS: &str = "timestamp event_key speaker session stop_reason trust";
/// Members that a host or an SDK adds to messages of `openai-chat`. Other members stay, because
/// many providers of this dialect have their own, such as `reasoning_content`.
const CHAT_DENIED: &str =
    "id timestamp event_key speaker session stop_reason trust annotations parsed";

/// Members that a host adds to messages of the AI SDK, and those of a `UIMessage`.
const AI_SDK_DENIED: &str =
    "id timestamp event_key speaker session stop_reason trust metadata createdAt parts";
/// Members that a host adds to messages of `OpenClaw`, which have a `timestamp` of their own.
const OPEN_CLAW_DENIED: &str = "id event_key speaker session stop_reason trust";

/// Types with their members, separated by blanks.
type MemberTable = &'static [(&'static str, &'static str)];

/// Members of Anthropic's content blocks. Results of tools that the provider runs have the members
/// of the last row.
const ANTHROPIC: MemberTable = &[
    ("text", "type text citations cache_control"),
    ("image", "type source transformations cache_control"),
    ("document", "type source title context citations cache_control"),
    ("search_result", "type source title content citations cache_control"),
    ("thinking", "type thinking signature"),
    ("redacted_thinking", "type data"),
    ("tool_use", "type id name input caller toolset_name cache_control"),
    ("tool_result", "type tool_use_id content is_error toolset_name cache_control"),
    ("server_tool_use", "type id name input caller cache_control"),
    ("mcp_tool_use", "type id name input server_name cache_control"),
    ("container_upload", "type file_id cache_control"),
    ("tool_reference", "type tool_name cache_control"),
    ("_tool_result", "type tool_use_id content is_error caller cache_control"),
];

/// Members of the items of the Responses API, and of their content parts. `logprobs` of a text are
/// those of the response: no request needs them.
const RESPONSES: MemberTable = &[
    ("message", "type role content id status phase"),
    ("function_call", "type id call_id name namespace arguments status caller async"),
    ("function_call_output", "type id call_id name namespace output status caller"),
    ("custom_tool_call", "type id call_id name namespace input caller async"),
    ("custom_tool_call_output", "type id call_id output caller"),
    ("reasoning", "type id summary content encrypted_content status"),
    ("web_search_call", "type id action status"),
    ("file_search_call", "type id queries results status"),
    ("code_interpreter_call", "type id code container_id outputs status"),
    ("computer_call", "type id call_id action actions pending_safety_checks status"),
    ("computer_call_output", "type id call_id output acknowledged_safety_checks status"),
    ("local_shell_call", "type id call_id action status"),
    ("local_shell_call_output", "type id output status"),
    ("shell_call", "type id call_id action environment status caller"),
    ("shell_call_output", "type id call_id output max_output_length status caller"),
    ("apply_patch_call", "type id call_id operation status caller"),
    ("apply_patch_call_output", "type id call_id output status caller"),
    ("mcp_call", "type id name server_label arguments approval_request_id output error status"),
    ("mcp_approval_request", "type id name server_label arguments"),
    ("mcp_approval_response", "type id approval_request_id approve reason"),
    ("item_reference", "type id"),
    ("program", "type id call_id code fingerprint"),
    ("program_output", "type id call_id result status"),
    ("compaction", "type id encrypted_content"),
    ("output_text", "type text annotations"),
    ("input_text", "type text prompt_cache_breakpoint"),
    ("input_image", "type image_url file_id detail prompt_cache_breakpoint"),
    ("input_file", "type file_data file_id file_url filename detail prompt_cache_breakpoint"),
    ("refusal", "type refusal"),
];

/// Members of a function call and of a function response of Gemini.
const GEMINI_CALL: &str = "id name args partialArgs partial_args willContinue will_continue";
const GEMINI_RESPONSE: &str = "id name response parts scheduling willContinue will_continue";

/// Members of a Gemini part of a known kind.
const GEMINI_PART: &str = "text inlineData inline_data fileData file_data functionCall \
    function_call functionResponse function_response executableCode executable_code \
    codeExecutionResult code_execution_result thought thoughtSignature thought_signature \
    videoMetadata video_metadata mediaResolution media_resolution partMetadata part_metadata";

/// Stands for all names.
const ALL: &str = "*";

/// The rule of an object whose members all go out.
const KEEP_ALL: MemberRule = MemberRule { allowed: None, denied: "", nullable: ALL, nested: "" };
/// The rules of a block, and of blocks in its `content`, that lose their cache marks.
const UNMARK_BLOCK: MemberRule = MemberRule { nested: "content", ..UNMARK_INNER };
const UNMARK_INNER: MemberRule = MemberRule { denied: provider_limits::CACHE_CONTROL, ..KEEP_ALL };

/// What holds for the members of one object.
struct MemberRule {
    /// The members that go out; `None`: all but `denied`.
    allowed: Option<&'static str>,
    denied: &'static str,
    /// Members that go out also if they are `null`.
    nullable: &'static str,
    /// Members whose objects, or lists of objects, have rules of their own.
    nested: &'static str,
}

/// Returns an object without the members that do not go out, and the first of these; `None`: all
/// members go out, or `json` is no object.
pub fn strip_members(dialect: Dialect, json: &str) -> Option<(String, String)> {
    write_by_rules(json, &|key, object| find_rule(dialect, key, object))
}

/// Returns a block of Anthropic without `cache_control`, also in the blocks directly in its
/// `content`.
pub fn strip_cache_controls(block: &str) -> String {
    let find_rule = |key: &str, _: &JsonObject<'_>| match key {
        "" => Some(UNMARK_BLOCK),
        _ => Some(UNMARK_INNER),
    };
    write_by_rules(block, &find_rule).map_or_else(|| block.into(), |(stripped, _)| stripped)
}

/// Returns an object without the members that the rules leave out, and the first of these; `None`:
/// there is none, or `json` is no object.
fn write_by_rules(json: &str, find_rule: FindRule<'_>) -> Option<(String, String)> {
    let object = JsonObject::new(json, json::parse_object(json).ok()?);
    let mut writer = MemberWriter { find_rule, raw: json, out: String::new(), stripped: None };
    writer.push_object("", &object);
    let MemberWriter { out, stripped, .. } = writer;
    stripped.map(|key| (out, key))
}

/// Returns the rule of an object by the member in which it stands; empty: the outermost object.
type FindRule<'f> = &'f dyn Fn(&str, &JsonObject<'_>) -> Option<MemberRule>;

/// Returns whether a Gemini part of a known kind may have a member.
pub(super) fn is_part_member(key: &str) -> bool {
    has_name(GEMINI_PART, key)
}

/// Returns the members of an object with their keys, in order; of members with equal keys only the
/// last.
pub fn dedup_members<'r>(raw: &'r str, object: &JsonObject<'r>) -> Vec<(Cow<'r, str>, JsonMember)> {
    let key = |member: &JsonMember| json::text(raw, member.key);
    let members = || object.members.iter().enumerate();
    let last = SortedMap::from_entries(members().map(|(at, member)| (key(member), at)).collect());
    let is_last = |(at, member): &(usize, &JsonMember)| last.get(&*key(member)) == Some(at);
    members().filter(is_last).map(|(_, member)| (key(member), *member)).collect()
}

/// Returns whether a list of names, separated by blanks, has a name.
fn has_name(names: &str, name: &str) -> bool {
    names == ALL || (!name.is_empty() && names.split(' ').any(|known| known == name))
}

/// Returns the members of a type.
fn find_type(table: MemberTable, kind: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == kind).map(|(_, members)| *members)
}

/// Returns the rule of an object that stands in the member `key` of another; empty: of a message's
/// block, item or part. `None`: all members go out.
fn find_rule(dialect: Dialect, key: &str, object: &JsonObject<'_>) -> Option<MemberRule> {
    let kind = object.get_text("type");
    let is_top = key.is_empty();
    let rule = match dialect {
        Dialect::Anthropic => {
            let is_served = is_top && kind.ends_with("_tool_result");
            let allowed = find_type(ANTHROPIC, if is_served { "_tool_result" } else { &kind });
            MemberRule {
                // Members of a citation depend on its type, but no request has its `file_id`.
                allowed: if key == "citations" { None } else { Some(allowed?) },
                denied: if key == "citations" { "file_id" } else { "" },
                nullable: "title document_title",
                nested: "content citations",
            }
        }
        Dialect::OpenaiResponses => {
            let is_message = is_top && kind.is_empty() && object.get_value("role").is_some();
            let allowed = find_type(RESPONSES, if is_message { "message" } else { &kind });
            let is_new = is_top && allowed.is_none();
            MemberRule {
                allowed,
                denied: if is_top { HOST_MEMBERS } else { "" },
                nullable: if is_new { ALL } else { "code outputs result" },
                nested: "content summary action output",
            }
        }
        Dialect::OpenaiChat => MemberRule {
            allowed: None,
            denied: match key {
                "" => CHAT_DENIED,
                "tool_calls" => "index",
                "function" => "parsed_arguments",
                _ => "",
            },
            nullable: "content",
            nested: "content image_url input_audio file tool_calls function",
        },
        Dialect::Gemini => {
            let allowed = match key {
                "functionCall" | "function_call" => GEMINI_CALL,
                "functionResponse" | "function_response" => GEMINI_RESPONSE,
                _ if provider_limits::count_part_kinds(object) > 0 => GEMINI_PART,
                _ => return None,
            };
            let nested = "functionCall function_call functionResponse function_response";
            MemberRule { allowed: Some(allowed), denied: "", nullable: "", nested }
        }
        Dialect::AiSdk => MemberRule {
            denied: if is_top { AI_SDK_DENIED } else { "state providerMetadata" },
            nullable: "input",
            nested: if is_top { "content" } else { "" },
            ..KEEP_ALL
        },
        _ if is_top => {
            let denied = match dialect {
                Dialect::Openclaw => OPEN_CLAW_DENIED,
                Dialect::Langchain | Dialect::OpenaiAgents => HOST_MEMBERS,
                _ => return None,
            };
            MemberRule { denied, ..KEEP_ALL }
        }
        _ => return None,
    };
    Some(rule)
}

/// A writer of objects without the members that do not go out.
struct MemberWriter<'r> {
    find_rule: FindRule<'r>,
    raw: &'r str,
    out: String,
    /// The first member that was left out.
    stripped: Option<String>,
}

impl<'r> MemberWriter<'r> {
    fn push_object(&mut self, key: &str, object: &JsonObject<'r>) {
        let rule = (self.find_rule)(key, object).unwrap_or(KEEP_ALL);
        let mut separator = '{';
        for (key, member) in dedup_members(self.raw, object) {
            let is_null = member.kind == JsonKind::Null && !has_name(rule.nullable, &key);
            if is_null
                || has_name(rule.denied, &key)
                || rule.allowed.is_some_and(|allowed| !has_name(allowed, &key))
            {
                self.stripped.get_or_insert(key.into_owned());
                continue;
            }
            self.out.push(core::mem::replace(&mut separator, ','));
            self.out.push_str(json::slice_span(self.raw, member.key));
            self.out.push(':');
            let value = JsonValue { span: member.value, kind: member.kind };
            if has_name(rule.nested, &key) {
                self.push_value(&key, value);
            } else {
                self.out.push_str(json::slice_span(self.raw, value.span));
            }
        }
        self.out.push_str(if separator == '{' { "{}" } else { "}" });
    }

    fn push_value(&mut self, key: &str, value: JsonValue) {
        if let Some(object) = JsonObject::from_value(self.raw, value) {
            return self.push_object(key, &object);
        }
        if value.kind != JsonKind::Array {
            return self.out.push_str(json::slice_span(self.raw, value.span));
        }
        let mut separator = '[';
        for element in json::list_elements(self.raw, value.span) {
            self.out.push(core::mem::replace(&mut separator, ','));
            self.push_value(key, element);
        }
        self.out.push_str(if separator == '[' { "[]" } else { "]" });
    }
}
