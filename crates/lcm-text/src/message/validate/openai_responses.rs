//! The rules of the `OpenAI` Responses API.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use super::Findings;
use crate::{
    base::json::{self, Kind, Value},
    message::{CALLS, Object, answered, provider_limits},
    types::api::Dialect,
};

/// Members that a host adds and the provider does not know.
const OF_HOST: [&str; 6] = ["timestamp", "event_key", "speaker", "session", "stop_reason", "trust"];
const ROLES: [&str; 4] = ["user", "assistant", "system", "developer"];
/// A call that is answered.
const ANSWERED: usize = usize::MAX;

/// What is known of the items before the current one.
#[derive(Default)]
struct State {
    /// Of each call by its id, the place in [`CALLS`] of its type while it waits.
    calls: BTreeMap<String, usize>,
    /// Of each call by its id, the index of its item.
    places: BTreeMap<String, usize>,
    /// Ids of all items.
    ids: BTreeMap<String, usize>,
    /// Ids of requests for approval.
    requests: BTreeMap<String, usize>,
    /// Whether the last item is reasoning.
    thinks: bool,
}

pub(super) fn check(raw: &str, messages: &[Value], findings: &mut Findings) {
    let mut state = State::default();
    for (at, value) in messages.iter().enumerate() {
        findings.at = at;
        let item = Object::of(raw, *value);
        findings.expect(item.is_some(), format_args!("no object"));
        let Some(item) = item else { continue };
        for member in &item.members {
            let key = json::text(raw, member.key);
            findings.expect(!OF_HOST.contains(&&*key), format_args!("member `{key}`"));
        }
        let kind = match &*item.text("type") {
            "" if item.any("role").is_none() && item.any("id").is_some() => "item_reference".into(),
            "" => String::from("message"),
            given => given.into(),
        };
        let id = item.text("id");
        let fits = id.is_empty() || provider_limits::is_item_id(&kind, &id);
        findings.expect(fits, format_args!("id `{id}` of a `{kind}`"));
        // That of an output of a local shell is that of its call.
        if !id.is_empty() && kind != "item_reference" && answered(&kind).is_none() {
            let is_new = state.ids.insert((*id).into(), 0).is_none();
            findings.expect(is_new, format_args!("two items `{id}`"));
        }
        let is_assistant = check_item(raw, &kind, &item, &mut state, findings);
        let follows = !state.thinks || is_assistant;
        let wrong = format_args!("reasoning without the item it led to");
        findings.expect_of(&[at.saturating_sub(1)], follows, wrong);
        state.thinks = kind == "reasoning";
    }
    findings.expect(!state.thinks, format_args!("reasoning without the item it led to"));
    let waits = |kind: &&usize| **kind != ANSWERED;
    let open: Vec<&String> =
        state.calls.iter().filter(|(_, kind)| waits(kind)).map(|(id, _)| id).collect();
    let fault: Vec<usize> = open.iter().filter_map(|id| state.places.get(*id)).copied().collect();
    findings.expect_of(&fault, open.is_empty(), format_args!("no result of the calls {open:?}"));
}

/// Checks one item and says whether it is the model's.
fn check_item(
    raw: &str,
    kind: &str,
    item: &Object<'_>,
    state: &mut State,
    findings: &mut Findings,
) -> bool {
    let has = |key| !item.text(key).is_empty();
    if let Some(call) = answered(kind) {
        let id = match item.text("call_id") {
            id if id.is_empty() => item.text("id"),
            id => id,
        };
        let place = CALLS.iter().position(|known| *known == call);
        let waits = state.calls.get_mut(&*id).filter(|waits| Some(**waits) == place);
        findings.expect(waits.is_some(), format_args!("`{kind}` of no open call `{id}`"));
        if let Some(waits) = waits {
            *waits = ANSWERED;
        }
        let of_text = matches!(call, "function_call" | "custom_tool_call");
        findings
            .expect(!of_text || is_output(raw, item), format_args!("an output that is no content"));
        return false;
    }
    if let Some(place) = CALLS.iter().position(|known| *known == kind) {
        check_call(place, kind, item, state, findings);
        return true;
    }
    match kind {
        "message" => {
            let role = item.text("role");
            let is_assistant = role == "assistant";
            findings.expect(ROLES.contains(&&*role), format_args!("role `{role}`"));
            let fits = item.string("content").is_some()
                || provider_limits::are_item_parts(raw, item, is_assistant);
            findings.expect(fits, format_args!("no content of its role"));
            return is_assistant;
        }
        "reasoning" => {
            let is_list = item.field("summary").is_some_and(|list| list.kind == Kind::Array);
            findings.expect(is_list, format_args!("reasoning without a list `summary`"));
        }
        "item_reference" => findings.expect(has("id"), format_args!("a reference to nothing")),
        "mcp_approval_request" => {
            state.requests.insert(item.text("id").into_owned(), 0);
        }
        "mcp_approval_response" => {
            let id = item.text("approval_request_id");
            let known = state.requests.contains_key(&*id);
            findings.expect(known, format_args!("approval of no request `{id}`"));
            return false;
        }
        _ => {}
    }
    true
}

fn check_call(
    place: usize,
    kind: &str,
    call: &Object<'_>,
    state: &mut State,
    findings: &mut Findings,
) {
    let id = call.text("call_id");
    let fits = provider_limits::is_call_id(Dialect::OpenaiResponses, &id);
    findings.expect(fits, format_args!("call id `{id}`"));
    let is_new = state.calls.insert((*id).into(), place).is_none();
    state.places.insert((*id).into(), findings.at);
    findings.expect(is_new, format_args!("two calls `{id}`"));
    let key = match kind {
        "function_call" => "arguments",
        "custom_tool_call" => "input",
        _ => return,
    };
    let name = call.text("name");
    let fits = provider_limits::name(Dialect::OpenaiResponses, &name) == name && !name.is_empty();
    findings.expect(fits, format_args!("tool name `{name}`"));
    findings.expect(call.string(key).is_some(), format_args!("`{key}` is no string"));
}

/// Whether the output of a function is a text or a list of what goes into a model.
fn is_output(raw: &str, item: &Object<'_>) -> bool {
    let fits = |value: &Value| {
        Object::of(raw, *value).is_some_and(|part| {
            provider_limits::is_item_part(&part) && part.text("type").starts_with("input_")
        })
    };
    item.string("output").is_some()
        || (item.field("output").is_some_and(|output| output.kind == Kind::Array)
            && item.list("output").iter().all(fits))
}
