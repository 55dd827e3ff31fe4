//! The rules of the Anthropic Messages API.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use super::{Findings, read_message};
use crate::{
    base::json::{self, ByteSpan, JsonKind, JsonValue},
    message::{JsonObject, is_result_type, provider_limits},
    types::api::Dialect,
};

/// What is known of the messages before the current one.
#[derive(Default)]
struct AnthropicState {
    role: String,
    /// Ids of the calls of the last assistant turn, which the user's turn must answer.
    open_calls: Vec<String>,
    /// Ids of those that this turn has answered.
    answered_calls: BTreeMap<String, usize>,
    /// Whether this turn has content that is no result.
    has_other_content: bool,
    /// Whether this turn has a call that the host answers.
    has_calls: bool,
    /// Ids of all calls.
    ids: BTreeMap<String, usize>,
    /// Index of the message with the newest of these calls.
    called_at: usize,
    /// Ids of calls that the provider answers; the number of the message, from 1, while it has not.
    server_calls: BTreeMap<String, usize>,
    /// Whether anything is marked.
    is_marked: bool,
    cache_controls: usize,
    /// Type of the last block.
    last_type: String,
}

pub(super) fn check(raw: &str, messages: &[JsonValue], findings: &mut Findings) {
    let mut state =
        AnthropicState { is_marked: raw.contains("cache_control"), ..AnthropicState::default() };
    for (at, value) in messages.iter().enumerate() {
        findings.message_index = at;
        let Some((message, role)) = read_message(raw, *value, findings) else { continue };
        for member in &message.members {
            let key = json::text(raw, member.key);
            findings
                .report_unless(matches!(&*key, "role" | "content"), format_args!("member `{key}`"));
        }
        findings
            .report_unless(matches!(&*role, "user" | "assistant"), format_args!("role `{role}`"));
        if role != state.role {
            // Neighbours of one role are one turn.
            findings.message_index = at.saturating_sub(1);
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
    check_turn_end(&mut state, findings);
    let AnthropicState {
        open_calls: open,
        server_calls: served,
        cache_controls: cache_marks,
        called_at,
        ..
    } = state;
    findings.report_messages_unless(
        &[called_at],
        open.is_empty(),
        format_args!("calls without a result: {}", open.join(", ")),
    );
    let open = served.values().filter_map(|waits| waits.checked_sub(1));
    let open: Vec<usize> = open.filter(|at| !is_paused || *at != findings.message_index).collect();
    let wrong = format_args!("a server tool use without its result");
    findings.report_messages_unless(&open, open.is_empty(), wrong);
    findings.report_unless(
        cache_marks <= provider_limits::CACHE_CONTROLS_MAX,
        format_args!("{cache_marks} blocks with `cache_control`"),
    );
}

/// What is asked of a turn as a whole. What a user's leaves open is told, what a model's does is
/// for the next one.
fn check_turn_end(state: &mut AnthropicState, findings: &mut Findings) {
    let ends_thinking = matches!(&*state.last_type, "thinking" | "redacted_thinking");
    findings.report_unless(!ends_thinking, format_args!("the message ends with thinking"));
    if state.role != "assistant" {
        let missing: Vec<String> = core::mem::take(&mut state.open_calls)
            .into_iter()
            .filter(|id| !state.answered_calls.contains_key(id))
            .collect();
        let wrong = format_args!("no result of the calls {missing:?}");
        findings.report_messages_unless(&[state.called_at], missing.is_empty(), wrong);
    }
    state.answered_calls = BTreeMap::new();
    (state.has_other_content, state.has_calls) = (false, false);
    state.last_type = String::new();
}

fn check_content(
    raw: &str,
    message: &JsonObject<'_>,
    state: &mut AnthropicState,
    findings: &mut Findings,
) {
    let said = |text: &str| !text.trim().is_empty();
    let blocks = message.get_list("content");
    if let Some(text) = message.get_string("content") {
        findings.report_unless(said(&json::text(raw, text)), format_args!("blank content"));
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
        if state.is_marked {
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
        check_block(&kind, &block, state, findings);
        state.last_type = kind;
    }
}

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
            findings.report_unless(
                !block.get_text("text").trim().is_empty(),
                format_args!("blank text"),
            );
            findings.report_unless(!state.has_calls, format_args!("text behind a tool use"));
        }
        "thinking" | "redacted_thinking" => {
            let stands = provider_limits::is_signed(block) && !is_user;
            findings.report_unless(stands, format_args!("thinking that is not the model's"));
            let is_marked = block.get_value("cache_control").is_some();
            findings.report_unless(!is_marked, format_args!("`cache_control` on thinking"));
        }
        "tool_use" => {
            let (id, name) = (block.get_text("id"), block.get_text("name"));
            findings.report_unless(!is_user, format_args!("a user's tool use"));
            let fits = !id.is_empty() && id.chars().all(provider_limits::is_name_character);
            findings.report_unless(fits, format_args!("call id `{id}`"));
            findings.report_unless(
                state.ids.insert((*id).into(), 0).is_none(),
                format_args!("two calls `{id}`"),
            );
            let fits = provider_limits::sanitize_tool_name(Dialect::Anthropic, &name) == name
                && !name.is_empty();
            findings.report_unless(fits, format_args!("tool name `{name}`"));
            let input =
                block.get_field("input").is_some_and(|input| input.kind == JsonKind::Object);
            findings.report_unless(input, format_args!("an input that is no object"));
            state.open_calls.push((*id).into());
            (state.has_calls, state.called_at) = (true, findings.message_index);
        }
        "tool_result" => findings.report_unless(is_user, format_args!("an assistant's result")),
        "server_tool_use" | "mcp_tool_use" => {
            let id = block.get_text("id");
            findings.report_unless(!is_user, format_args!("a user's server tool use"));
            findings.report_unless(
                state.ids.insert((*id).into(), 0).is_none(),
                format_args!("two calls `{id}`"),
            );
            state.server_calls.insert((*id).into(), findings.message_index + 1);
        }
        kind if is_result_type(kind) => {
            let waits = state.server_calls.get_mut(&*block.get_text("tool_use_id"));
            let known = waits.is_some_and(|waits| core::mem::take(waits) > 0);
            findings.report_unless(known && !is_user, format_args!("`{kind}` without its call"));
        }
        "image" | "document" | "search_result" => {
            let stands = is_user && provider_limits::has_valid_source(block);
            findings.report_unless(
                stands,
                format_args!("`{kind}` without a source or of the assistant"),
            );
        }
        _ => {}
    }
}

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
                    let says = kind != "text" || !block.get_text("text").trim().is_empty();
                    findings.report_unless(says, format_args!("blank text in a result"));
                    let stands = provider_limits::has_valid_source(&block);
                    findings.report_unless(
                        stands,
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
