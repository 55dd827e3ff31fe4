//! The rules of the `OpenAI` Responses API.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use super::Findings;
use crate::{
    base::json::{self, JsonKind, JsonValue},
    message::{HOST_CALLS, JsonObject, answered_call_type, provider_limits},
    types::api::Dialect,
};

/// Members that a host adds and the provider does not know.
const HOST_MEMBERS: [&str; 6] =
    ["timestamp", "event_key", "speaker", "session", "stop_reason", "trust"];
const ROLES: [&str; 4] = ["user", "assistant", "system", "developer"];
/// A call that is answered.
const ANSWERED: usize = usize::MAX;

/// What is known of the items before the current one.
#[derive(Default)]
struct ResponsesState {
    /// Of each call by its id, the place in [`CALLS`] of its type while it waits.
    calls: BTreeMap<String, usize>,
    /// Of each call by its id, the index of its item.
    places: BTreeMap<String, usize>,
    /// Ids of all items.
    ids: BTreeMap<String, usize>,
    /// Ids of requests for approval.
    requests: BTreeMap<String, usize>,
    /// Whether the last item is reasoning.
    ends_with_reasoning: bool,
}

pub(super) fn check(raw: &str, messages: &[JsonValue], findings: &mut Findings) {
    let mut state = ResponsesState::default();
    for (at, value) in messages.iter().enumerate() {
        findings.message_index = at;
        let item = JsonObject::from_value(raw, *value);
        findings.report_unless(item.is_some(), format_args!("no object"));
        let Some(item) = item else { continue };
        for member in &item.members {
            let key = json::text(raw, member.key);
            findings.report_unless(!HOST_MEMBERS.contains(&&*key), format_args!("member `{key}`"));
        }
        let kind = match &*item.get_text("type") {
            "" if item.get_value("role").is_none() && item.get_value("id").is_some() => {
                "item_reference".into()
            }
            "" => String::from("message"),
            given => given.into(),
        };
        let id = item.get_text("id");
        let fits = id.is_empty() || provider_limits::is_valid_item_id(&kind, &id);
        findings.report_unless(fits, format_args!("id `{id}` of a `{kind}`"));
        // That of an output of a local shell is that of its call.
        if !id.is_empty() && kind != "item_reference" && answered_call_type(&kind).is_none() {
            let is_new = state.ids.insert((*id).into(), 0).is_none();
            findings.report_unless(is_new, format_args!("two items `{id}`"));
        }
        let is_assistant = check_item(raw, &kind, &item, &mut state, findings);
        let follows = !state.ends_with_reasoning || is_assistant;
        let wrong = format_args!("reasoning without the item it led to");
        findings.report_messages_unless(&[at.saturating_sub(1)], follows, wrong);
        state.ends_with_reasoning = kind == "reasoning";
    }
    findings.report_unless(
        !state.ends_with_reasoning,
        format_args!("reasoning without the item it led to"),
    );
    let waits = |kind: &&usize| **kind != ANSWERED;
    let open: Vec<&String> =
        state.calls.iter().filter(|(_, kind)| waits(kind)).map(|(id, _)| id).collect();
    let fault: Vec<usize> = open.iter().filter_map(|id| state.places.get(*id)).copied().collect();
    findings.report_messages_unless(
        &fault,
        open.is_empty(),
        format_args!("no result of the calls {open:?}"),
    );
}

/// Checks one item and says whether it is the model's.
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
        let place = HOST_CALLS.iter().position(|known| *known == call);
        let waits = state.calls.get_mut(&*id).filter(|waits| Some(**waits) == place);
        findings.report_unless(waits.is_some(), format_args!("`{kind}` of no open call `{id}`"));
        if let Some(waits) = waits {
            *waits = ANSWERED;
        }
        let of_text = matches!(call, "function_call" | "custom_tool_call");
        findings.report_unless(
            !of_text || is_output(raw, item),
            format_args!("an output that is no content"),
        );
        return false;
    }
    if let Some(place) = HOST_CALLS.iter().position(|known| *known == kind) {
        check_call(place, kind, item, state, findings);
        return true;
    }
    match kind {
        "message" => {
            let role = item.get_text("role");
            let is_assistant = role == "assistant";
            findings.report_unless(ROLES.contains(&&*role), format_args!("role `{role}`"));
            let fits = item.get_string("content").is_some()
                || provider_limits::has_valid_item_parts(raw, item, is_assistant);
            findings.report_unless(fits, format_args!("no content of its role"));
            return is_assistant;
        }
        "reasoning" => {
            let is_list =
                item.get_field("summary").is_some_and(|list| list.kind == JsonKind::Array);
            findings.report_unless(is_list, format_args!("reasoning without a list `summary`"));
        }
        "item_reference" => {
            findings.report_unless(has("id"), format_args!("a reference to nothing"))
        }
        "mcp_approval_request" => {
            state.requests.insert(item.get_text("id").into_owned(), 0);
        }
        "mcp_approval_response" => {
            let id = item.get_text("approval_request_id");
            let known = state.requests.contains_key(&*id);
            findings.report_unless(known, format_args!("approval of no request `{id}`"));
            return false;
        }
        _ => {}
    }
    true
}

fn check_call(
    place: usize,
    kind: &str,
    call: &JsonObject<'_>,
    state: &mut ResponsesState,
    findings: &mut Findings,
) {
    let id = call.get_text("call_id");
    let fits = provider_limits::is_valid_call_id(Dialect::OpenaiResponses, &id);
    findings.report_unless(fits, format_args!("call id `{id}`"));
    let is_new = state.calls.insert((*id).into(), place).is_none();
    state.places.insert((*id).into(), findings.message_index);
    findings.report_unless(is_new, format_args!("two calls `{id}`"));
    let key = match kind {
        "function_call" => "arguments",
        "custom_tool_call" => "input",
        _ => return,
    };
    let name = call.get_text("name");
    let fits = provider_limits::sanitize_tool_name(Dialect::OpenaiResponses, &name) == name
        && !name.is_empty();
    findings.report_unless(fits, format_args!("tool name `{name}`"));
    findings.report_unless(call.get_string(key).is_some(), format_args!("`{key}` is no string"));
}

/// Whether the output of a function is a text or a list of what goes into a model.
fn is_output(raw: &str, item: &JsonObject<'_>) -> bool {
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
