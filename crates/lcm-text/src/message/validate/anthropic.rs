//! Rules of the Anthropic Messages API.
//!
//! In: an array of messages. Out: a finding for each broken rule.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use crate::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{
        anthropic::is_result_type,
        blocks::JsonObject,
        provider_limits,
        validate::findings::{Findings, read_message},
    },
    types::api::Dialect,
};

/// State after the messages before the current message. Adjacent messages of one role are one turn.
#[derive(Default)]
struct AnthropicState {
    /// Role of the current turn.
    role: String,
    /// Ids of the calls of the last assistant turn, which the user's turn must answer.
    open_calls: Vec<String>,
    /// Ids of the calls for which the current turn has a `tool_result`.
    answered_calls: BTreeMap<String, usize>,
    /// Whether the current turn has content other than `tool_result` blocks.
    has_other_content: bool,
    /// Whether the current turn has a call that the host answers.
    has_calls: bool,
    /// Ids of all calls so far.
    ids: BTreeMap<String, usize>,
    /// Index of the message with the newest call that the host answers.
    called_at: usize,
    /// Ids of calls that the provider answers, with 1 + the index of the message; 0 once the call
    /// is answered.
    server_calls: BTreeMap<String, usize>,
    /// Ids of server calls whose code called a tool of the host: they may wait for its result.
    callers: BTreeMap<String, usize>,
    /// Whether the array contains the text `cache_control` anywhere.
    has_cache_control: bool,
    /// Number of blocks with `cache_control` so far.
    cache_controls: usize,
    /// Type of the last block of the current turn; empty before its first block.
    last_type: String,
}

/// Checks an array of messages.
pub(super) fn check(raw: &str, messages: &[JsonValue], findings: &mut Findings) {
    let mut state = AnthropicState {
        has_cache_control: raw.contains("cache_control"),
        ..AnthropicState::default()
    };
    for (at, value) in messages.iter().enumerate() {
        findings.message_index = at;
        let Some((message, role)) = read_message(raw, *value, findings) else { continue };
        for member in &message.members {
            let key = json::text(raw, member.key);
            findings.report_unless(
                matches!(&*key, "role" | "content"),
                format_args!("member `{key}` is unknown to the provider"),
            );
        }
        findings.report_unless(
            matches!(&*role, "user" | "assistant" | "system"),
            format_args!("role `{role}` is unknown to the provider"),
        );
        if role != state.role {
            findings.message_index = at.saturating_sub(1);
            check_server_calls(&mut state, findings);
            check_turn_end(&mut state, findings);
            findings.message_index = at;
            state.role = role;
        }
        check_content(raw, &message, &mut state, findings);
    }
    let is_paused = state.last_type == "server_tool_use" || state.last_type == "mcp_tool_use";
    findings.report_unless(
        state.role != "assistant" || is_paused,
        format_args!("the last message is the assistant's"),
    );
    if !is_paused {
        if state.has_other_content {
            state.callers = BTreeMap::new();
        }
        check_server_calls(&mut state, findings);
    }
    check_turn_end(&mut state, findings);
    let AnthropicState { open_calls, cache_controls, called_at, .. } = state;
    findings.report_messages_unless(
        &[called_at],
        open_calls.is_empty(),
        format_args!("calls without a result: {}", open_calls.join(", ")),
    );
    findings.report_unless(
        cache_controls <= provider_limits::CACHE_CONTROLS_MAX,
        format_args!("{cache_controls} blocks with `cache_control`"),
    );
}

/// Reports the server calls without a result, except those that wait for a result of the host. A
/// result must be in the same turn as its call.
fn check_server_calls(state: &mut AnthropicState, findings: &mut Findings) {
    let AnthropicState { server_calls, callers, .. } = state;
    let mut open = Vec::new();
    for (id, position) in server_calls.iter_mut() {
        if *position > 0 && !callers.contains_key(id) {
            open.push(core::mem::take(position) - 1);
        }
    }
    let wrong = format_args!("a server tool use without its result");
    findings.report_messages_unless(&open, open.is_empty(), wrong);
}

/// Checks a whole turn at its end. Calls without a result are reported after a user's turn; after
/// an assistant's turn, the next turn can still answer the calls.
fn check_turn_end(state: &mut AnthropicState, findings: &mut Findings) {
    let ends_thinking = matches!(&*state.last_type, "thinking" | "redacted_thinking");
    findings.report_unless(!ends_thinking, format_args!("the message ends with thinking"));
    if state.role != "assistant" {
        let missing: Vec<String> = core::mem::take(&mut state.open_calls)
            .into_iter()
            .filter(|id| !state.answered_calls.contains_key(id))
            .collect();
        let wrong = format_args!("no result of the calls `{}`", missing.join("`, `"));
        findings.report_messages_unless(&[state.called_at], missing.is_empty(), wrong);
    }
    state.answered_calls = BTreeMap::new();
    (state.has_other_content, state.has_calls) = (false, false);
    state.last_type = String::new();
}

/// Checks the content of a message.
fn check_content(
    raw: &str,
    message: &JsonObject<'_>,
    state: &mut AnthropicState,
    findings: &mut Findings,
) {
    let has_text = |text: &str| !text.trim().is_empty();
    let blocks = message.get_list("content");
    if let Some(text) = message.get_string("content") {
        findings.report_unless(has_text(&json::text(raw, text)), format_args!("blank content"));
        findings.report_unless(!state.has_calls, format_args!("text behind a tool use"));
        (state.last_type, state.has_other_content) = ("text".into(), true);
    } else {
        findings.report_unless(!blocks.is_empty(), format_args!("no content"));
    }
    for value in blocks {
        let Some(block) = JsonObject::from_value(raw, value) else {
            findings.report_unless(false, format_args!("a block that is no object"));
            continue;
        };
        let kind = String::from(block.get_text("type"));
        if state.has_cache_control {
            state.cache_controls +=
                provider_limits::count_cache_controls(json::slice_span(raw, value.span));
        }
        let is_answer = kind == "tool_result";
        findings.report_unless(
            !(is_answer && state.has_other_content),
            format_args!("a result behind other content"),
        );
        state.has_other_content |= !is_answer;
        if is_answer {
            let id = String::from(block.get_text("tool_use_id"));
            let is_open = state.role == "user" && state.open_calls.contains(&id);
            findings.report_unless(is_open, format_args!("result of no open call `{id}`"));
            let is_first = state.answered_calls.insert(id, 0).is_none();
            findings.report_unless(is_first, format_args!("two results of one call"));
            check_result(raw, &block, findings);
        }
        findings.report_stripped(Dialect::Anthropic, json::slice_span(raw, value.span));
        check_block(&kind, &block, state, findings);
        state.last_type = kind;
    }
}

/// Checks one block of a content.
fn check_block(
    kind: &str,
    block: &JsonObject<'_>,
    state: &mut AnthropicState,
    findings: &mut Findings,
) {
    let is_user = state.role == "user";
    match kind {
        "" => findings.report_unless(false, format_args!("a block without a type")),
        "text" => {
            let is_blank = block.get_text("text").trim().is_empty();
            findings.report_unless(!is_blank, format_args!("blank text"));
            findings.report_unless(!state.has_calls, format_args!("text behind a tool use"));
        }
        "thinking" | "redacted_thinking" => {
            let is_valid = provider_limits::is_signed(block) && !is_user;
            findings.report_unless(is_valid, format_args!("thinking that is not the model's"));
            let is_marked = block.get_value("cache_control").is_some();
            findings.report_unless(!is_marked, format_args!("`cache_control` on thinking"));
        }
        "tool_use" => {
            findings.report_unless(!is_user, format_args!("a user's tool use"));
            check_call(block, state, findings);
        }
        "tool_result" => findings.report_unless(is_user, format_args!("an assistant's result")),
        "server_tool_use" | "mcp_tool_use" => {
            let id = block.get_text("id");
            findings.report_unless(!is_user, format_args!("a user's server tool use"));
            let fits = kind == "mcp_tool_use" || provider_limits::is_valid_server_id(&id);
            findings.report_unless(fits, format_args!("id `{id}` of a server tool use"));
            findings.report_unless(
                state.ids.insert((*id).into(), 0).is_none(),
                format_args!("two calls `{id}`"),
            );
            state.server_calls.insert((*id).into(), findings.message_index + 1);
        }
        kind if is_result_type(kind) => {
            let position = state.server_calls.get_mut(&*block.get_text("tool_use_id"));
            let is_open = position.is_some_and(|position| core::mem::take(position) > 0);
            findings.report_unless(is_open && !is_user, format_args!("`{kind}` without its call"));
        }
        "image" | "document" | "search_result" => {
            let is_valid = is_user && provider_limits::has_valid_source(block);
            findings.report_unless(
                is_valid,
                format_args!("`{kind}` without a source or of the assistant"),
            );
        }
        _ => {}
    }
}

/// Checks a call that the host answers.
fn check_call(block: &JsonObject<'_>, state: &mut AnthropicState, findings: &mut Findings) {
    let (id, name) = (block.get_text("id"), block.get_text("name"));
    let fits = provider_limits::is_valid_call_id(Dialect::Anthropic, &id);
    findings.report_unless(fits, format_args!("call id `{id}` is not accepted by the provider"));
    findings.report_unless(
        state.ids.insert((*id).into(), 0).is_none(),
        format_args!("two calls `{id}`"),
    );
    let fits =
        provider_limits::sanitize_tool_name(Dialect::Anthropic, &name) == name && !name.is_empty();
    findings
        .report_unless(fits, format_args!("tool name `{name}` is not accepted by the provider"));
    let input = block.get_field("input").is_some_and(|input| input.kind == JsonKind::Object);
    findings.report_unless(input, format_args!("an input that is no object"));
    let caller = block.get_object("caller").map(|it| it.get_text("tool_id").into_owned());
    state.callers.extend(caller.map(|id| (id, 0)));
    state.open_calls.push((*id).into());
    (state.has_calls, state.called_at) = (true, findings.message_index);
}

/// Checks the content of a tool result.
fn check_result(raw: &str, result: &JsonObject<'_>, findings: &mut Findings) {
    let is_error = result.get_bool("is_error");
    let blank = |span: ByteSpan| json::text(raw, span).trim().is_empty();
    match json::find_member(&result.members, raw, "content") {
        None => findings.report_unless(!is_error, format_args!("an error without content")),
        Some(content) if content.kind == JsonKind::String => {
            findings
                .report_unless(!is_error || !blank(content.value), format_args!("a blank error"));
        }
        Some(content) => {
            findings.report_unless(
                content.kind == JsonKind::Array,
                format_args!("a result that is no content"),
            );
            let blocks = result.get_list("content");
            findings.report_unless(
                !is_error || !blocks.is_empty(),
                format_args!("an error without content"),
            );
            for value in blocks {
                let kind = JsonObject::from_value(raw, value).map(|block| {
                    let kind = String::from(block.get_text("type"));
                    let has_text = kind != "text" || !block.get_text("text").trim().is_empty();
                    findings.report_unless(has_text, format_args!("blank text in a result"));
                    let is_valid = provider_limits::has_valid_source(&block);
                    findings.report_unless(
                        is_valid,
                        format_args!("`{kind}` in a result without a source"),
                    );
                    kind
                });
                let kind = kind.unwrap_or_default();
                let fits = !kind.is_empty() && (!is_error || kind == "text");
                findings.report_unless(fits, format_args!("`{kind}` in a result"));
            }
        }
    }
}
