//! Rules of the `OpenAI` Responses API.
//!
//! In: an array of items. Out: a finding for each broken rule.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use crate::{
    base::json::{self, JsonKind, JsonValue},
    message::{
        blocks::JsonObject,
        openai_responses::{HOST_CALLS, answered_call_type},
        provider_limits,
        validate::findings::Findings,
    },
    types::api::Dialect,
};

/// Roles that messages can have.
const ROLES: [&str; 4] = ["user", "assistant", "system", "developer"];
/// Value of an answered call in [`ResponsesState::calls`].
const ANSWERED: usize = usize::MAX;

/// State after the items before the current item.
#[derive(Default)]
struct ResponsesState {
    /// Call ids with the index of the call's type in [`HOST_CALLS`], or with [`ANSWERED`].
    calls: BTreeMap<String, usize>,
    /// Call ids with the index of the call's item.
    call_indexes: BTreeMap<String, usize>,
    /// Ids of the items so far, except references and outputs of calls.
    ids: BTreeMap<String, usize>,
    /// Ids of the requests for approval so far.
    requests: BTreeMap<String, usize>,
    /// Call ids of the programs so far, with 1 + the index of the item; 0 once the program has an
    /// output.
    programs: BTreeMap<String, usize>,
    /// 1 + the index of the last item that is no call of a program and no result.
    other_at: usize,
    /// Whether the previous item is reasoning.
    ends_with_reasoning: bool,
}

/// Checks an array of items.
pub(super) fn check(raw: &str, messages: &[JsonValue], findings: &mut Findings) {
    let mut state = ResponsesState::default();
    for (at, value) in messages.iter().enumerate() {
        findings.message_index = at;
        let item = JsonObject::from_value(raw, *value);
        findings.report_unless(item.is_some(), format_args!("not a JSON object"));
        let Some(item) = item else { continue };
        findings.report_stripped(Dialect::OpenaiResponses, json::slice_span(raw, value.span));
        let kind = match &*item.get_text("type") {
            "" if item.get_value("role").is_none() && item.get_value("id").is_some() => {
                "item_reference".into()
            }
            "" => String::from("message"),
            kind => kind.into(),
        };
        let id = item.get_text("id");
        let fits = id.is_empty() || provider_limits::is_valid_item_id(&kind, &id);
        findings
            .report_unless(fits, format_args!("id `{id}` does not have the prefix of a `{kind}`"));
        // The output of a local shell call has the id of its call.
        if !id.is_empty() && kind != "item_reference" && answered_call_type(&kind).is_none() {
            let is_new = state.ids.insert((*id).into(), 0).is_none();
            findings.report_unless(is_new, format_args!("two items `{id}`"));
        }
        check_program(&kind, &item, &mut state, findings);
        let is_assistant = check_item(raw, &kind, &item, &mut state, findings);
        let follows = !state.ends_with_reasoning || is_assistant;
        let wrong = format_args!("reasoning without the item it led to");
        findings.report_messages_unless(&[at.saturating_sub(1)], follows, wrong);
        state.ends_with_reasoning = kind == "reasoning";
    }
    // Behind a program that waits for its output are only calls of programs and their results.
    let is_left = |at: &usize| *at > 0 && *at < state.other_at;
    let left = state.programs.values().copied().filter(is_left);
    let left: Vec<usize> = left.map(|at| at - 1).collect();
    let wrong = format_args!("a program without its output");
    findings.report_messages_unless(&left, left.is_empty(), wrong);
    findings.report_unless(
        !state.ends_with_reasoning,
        format_args!("reasoning without the item it led to"),
    );
    let is_open = |kind: &&usize| **kind != ANSWERED;
    let open: Vec<&str> =
        state.calls.iter().filter(|(_, kind)| is_open(kind)).map(|(id, _)| id.as_str()).collect();
    let fault: Vec<usize> =
        open.iter().filter_map(|id| state.call_indexes.get(*id)).copied().collect();
    findings.report_messages_unless(
        &fault,
        open.is_empty(),
        format_args!("no result of the calls `{}`", open.join("`, `")),
    );
}

/// Checks that a program stands before its output and before the calls that it made, and notes
/// which programs wait for their output.
fn check_program(
    kind: &str,
    item: &JsonObject<'_>,
    state: &mut ResponsesState,
    findings: &mut Findings,
) {
    let call_id = item.get_text("call_id");
    let caller = item.get_object("caller").map(|caller| caller.get_text("caller_id"));
    let has_caller = caller.as_ref().is_some_and(|id| !id.is_empty());
    let id = if kind == "program_output" { Some(call_id.clone()) } else { caller };
    let id = id.unwrap_or_default();
    let is_known = id.is_empty() || state.programs.contains_key(&*id);
    findings.report_unless(is_known, format_args!("`{kind}` of no program `{id}`"));
    let position = findings.message_index + 1;
    match kind {
        "program" => {
            state.programs.insert(call_id.into_owned(), position);
            state.other_at = position;
        }
        "program_output" => {
            state.programs.insert(call_id.into_owned(), 0);
        }
        _ if has_caller || answered_call_type(kind).is_some() => {}
        _ => state.other_at = position,
    }
}

/// Checks one item. Returns false for a message of another role than `assistant`, for the answer to
/// a call and for a response to a request for approval; true for any other item, which the model
/// may have made.
fn check_item(
    raw: &str,
    kind: &str,
    item: &JsonObject<'_>,
    state: &mut ResponsesState,
    findings: &mut Findings,
) -> bool {
    let has = |key| !item.get_text(key).is_empty();
    if let Some(call) = answered_call_type(kind) {
        let id = match item.get_text("call_id") {
            id if id.is_empty() => item.get_text("id"),
            id => id,
        };
        let type_index = HOST_CALLS.iter().position(|kind| *kind == call);
        let open = state.calls.get_mut(&*id).filter(|open| Some(**open) == type_index);
        findings.report_unless(open.is_some(), format_args!("`{kind}` of no open call `{id}`"));
        if let Some(open) = open {
            *open = ANSWERED;
        }
        let is_text_output = matches!(call, "function_call" | "custom_tool_call");
        findings.report_unless(
            !is_text_output || has_valid_output(raw, item),
            format_args!("an output that is no content"),
        );
        return false;
    }
    if let Some(type_index) = HOST_CALLS.iter().position(|host_call| *host_call == kind) {
        check_call(type_index, kind, item, state, findings);
        return true;
    }
    match kind {
        "message" => {
            let role = item.get_text("role");
            let is_assistant = role == "assistant";
            findings.report_unless(
                ROLES.contains(&&*role),
                format_args!("role `{role}` is unknown to the provider"),
            );
            let fits = item.get_string("content").is_some()
                || provider_limits::has_valid_item_parts(raw, item, is_assistant);
            findings.report_unless(fits, format_args!("no content that its role can have"));
            return is_assistant;
        }
        "reasoning" => {
            let is_list =
                item.get_field("summary").is_some_and(|list| list.kind == JsonKind::Array);
            findings.report_unless(is_list, format_args!("reasoning without a list `summary`"));
        }
        "item_reference" => {
            findings.report_unless(has("id"), format_args!("a reference without `id`"))
        }
        "mcp_approval_request" => {
            state.requests.insert(item.get_text("id").into_owned(), 0);
        }
        "mcp_approval_response" => {
            let id = item.get_text("approval_request_id");
            let is_requested = state.requests.contains_key(&*id);
            findings.report_unless(is_requested, format_args!("approval of no request `{id}`"));
            return false;
        }
        _ => {}
    }
    true
}

/// Checks a call that the host answers; `type_index` is the index of its type in [`HOST_CALLS`].
fn check_call(
    type_index: usize,
    kind: &str,
    call: &JsonObject<'_>,
    state: &mut ResponsesState,
    findings: &mut Findings,
) {
    let id = call.get_text("call_id");
    let fits = provider_limits::is_valid_call_id(Dialect::OpenaiResponses, &id);
    findings.report_unless(fits, format_args!("call id `{id}` is not accepted by the provider"));
    let is_new = state.calls.insert((*id).into(), type_index).is_none();
    state.call_indexes.insert((*id).into(), findings.message_index);
    findings.report_unless(is_new, format_args!("two calls `{id}`"));
    let key = match kind {
        "function_call" => "arguments",
        "custom_tool_call" => "input",
        _ => return,
    };
    let name = call.get_text("name");
    let fits = provider_limits::sanitize_tool_name(Dialect::OpenaiResponses, &name) == name
        && !name.is_empty();
    findings
        .report_unless(fits, format_args!("tool name `{name}` is not accepted by the provider"));
    findings.report_unless(call.get_string(key).is_some(), format_args!("`{key}` is no string"));
}

/// Returns whether the output of a function is a string or a list of valid `input_` parts.
fn has_valid_output(raw: &str, item: &JsonObject<'_>) -> bool {
    let fits = |value: &JsonValue| {
        JsonObject::from_value(raw, *value).is_some_and(|part| {
            provider_limits::is_valid_item_part(&part)
                && part.get_text("type").starts_with("input_")
        })
    };
    item.get_string("output").is_some()
        || (item.get_field("output").is_some_and(|output| output.kind == JsonKind::Array)
            && item.get_list("output").iter().all(fits))
}
