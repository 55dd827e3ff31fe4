//! The rules of the Anthropic Messages API.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use super::{Findings, read};
use crate::{
    base::json::{self, Kind, Span, Value},
    message::{Object, is_result, provider_limits},
    types::api::Dialect,
};

/// What is known of the messages before the current one.
#[derive(Default)]
struct State {
    role: String,
    /// Ids of the calls of the last assistant turn, which the user's turn must answer.
    open: Vec<String>,
    /// Ids of those that this turn has answered.
    answered: BTreeMap<String, usize>,
    /// Whether this turn has content that is no result.
    others: bool,
    /// Whether this turn has a call that the host answers.
    calls: bool,
    /// Ids of all calls.
    ids: BTreeMap<String, usize>,
    /// Index of the message with the newest of these calls.
    called_at: usize,
    /// Ids of calls that the provider answers; the number of the message, from 1, while it has not.
    served: BTreeMap<String, usize>,
    /// Whether anything is marked.
    is_marked: bool,
    cache_marks: usize,
    /// Type of the last block.
    last: String,
}

pub(super) fn check(raw: &str, messages: &[Value], findings: &mut Findings) {
    let mut state = State { is_marked: raw.contains("cache_control"), ..State::default() };
    for (at, value) in messages.iter().enumerate() {
        findings.at = at;
        let Some((message, role)) = read(raw, *value, findings) else { continue };
        for member in &message.members {
            let key = json::text(raw, member.key);
            findings.expect(matches!(&*key, "role" | "content"), format_args!("member `{key}`"));
        }
        findings.expect(matches!(&*role, "user" | "assistant"), format_args!("role `{role}`"));
        if role != state.role {
            // Neighbours of one role are one turn.
            findings.at = at.saturating_sub(1);
            end_turn(&mut state, findings);
            findings.at = at;
            state.role = role;
        }
        check_content(raw, &message, &mut state, findings);
    }
    let is_paused = state.last == "server_tool_use" || state.last == "mcp_tool_use";
    findings.expect(
        state.role != "assistant" || is_paused,
        format_args!("the last message is the assistant's"),
    );
    end_turn(&mut state, findings);
    let State { open, served, cache_marks, called_at, .. } = state;
    findings.expect_of(
        &[called_at],
        open.is_empty(),
        format_args!("calls without a result: {}", open.join(", ")),
    );
    let open = served.values().filter_map(|waits| waits.checked_sub(1));
    let open: Vec<usize> = open.filter(|at| !is_paused || *at != findings.at).collect();
    let wrong = format_args!("a server tool use without its result");
    findings.expect_of(&open, open.is_empty(), wrong);
    findings.expect(
        cache_marks <= provider_limits::CACHE_MARKS_MAX,
        format_args!("{cache_marks} blocks with `cache_control`"),
    );
}

/// What is asked of a turn as a whole. What a user's leaves open is told, what a model's does is
/// for the next one.
fn end_turn(state: &mut State, findings: &mut Findings) {
    let ends_thinking = matches!(&*state.last, "thinking" | "redacted_thinking");
    findings.expect(!ends_thinking, format_args!("the message ends with thinking"));
    if state.role != "assistant" {
        let missing: Vec<String> = core::mem::take(&mut state.open)
            .into_iter()
            .filter(|id| !state.answered.contains_key(id))
            .collect();
        let wrong = format_args!("no result of the calls {missing:?}");
        findings.expect_of(&[state.called_at], missing.is_empty(), wrong);
    }
    state.answered = BTreeMap::new();
    (state.others, state.calls) = (false, false);
    state.last = String::new();
}

fn check_content(raw: &str, message: &Object<'_>, state: &mut State, findings: &mut Findings) {
    let said = |text: &str| !text.trim().is_empty();
    let blocks = message.list("content");
    if let Some(text) = message.string("content") {
        findings.expect(said(&json::text(raw, text)), format_args!("blank content"));
        findings.expect(!state.calls, format_args!("text behind a tool use"));
        (state.last, state.others) = ("text".into(), true);
    } else {
        findings.expect(!blocks.is_empty(), format_args!("no content"));
    }
    for value in blocks {
        let Some(block) = Object::of(raw, value) else {
            findings.expect(false, format_args!("a block that is no object"));
            continue;
        };
        let kind = String::from(block.text("type"));
        if state.is_marked {
            state.cache_marks += provider_limits::cache_marks(json::slice(raw, value.span));
        }
        let is_answer = kind == "tool_result";
        findings
            .expect(!(is_answer && state.others), format_args!("a result behind other content"));
        state.others |= !is_answer;
        if is_answer {
            let id = String::from(block.text("tool_use_id"));
            let is_open = state.role == "user" && state.open.contains(&id);
            findings.expect(is_open, format_args!("result of no open call `{id}`"));
            let is_first = state.answered.insert(id, 0).is_none();
            findings.expect(is_first, format_args!("two results of one call"));
            check_result(raw, &block, findings);
        }
        check_block(&kind, &block, state, findings);
        state.last = kind;
    }
}

fn check_block(kind: &str, block: &Object<'_>, state: &mut State, findings: &mut Findings) {
    let is_user = state.role == "user";
    match kind {
        "" => findings.expect(false, format_args!("a block without a type")),
        "text" => {
            findings.expect(!block.text("text").trim().is_empty(), format_args!("blank text"));
            findings.expect(!state.calls, format_args!("text behind a tool use"));
        }
        "thinking" | "redacted_thinking" => {
            let stands = provider_limits::is_signed(block) && !is_user;
            findings.expect(stands, format_args!("thinking that is not the model's"));
            let is_marked = block.any("cache_control").is_some();
            findings.expect(!is_marked, format_args!("`cache_control` on thinking"));
        }
        "tool_use" => {
            let (id, name) = (block.text("id"), block.text("name"));
            findings.expect(!is_user, format_args!("a user's tool use"));
            let fits = !id.is_empty() && id.chars().all(provider_limits::is_plain);
            findings.expect(fits, format_args!("call id `{id}`"));
            findings.expect(
                state.ids.insert((*id).into(), 0).is_none(),
                format_args!("two calls `{id}`"),
            );
            let fits = provider_limits::name(Dialect::Anthropic, &name) == name && !name.is_empty();
            findings.expect(fits, format_args!("tool name `{name}`"));
            let input = block.field("input").is_some_and(|input| input.kind == Kind::Object);
            findings.expect(input, format_args!("an input that is no object"));
            state.open.push((*id).into());
            (state.calls, state.called_at) = (true, findings.at);
        }
        "tool_result" => findings.expect(is_user, format_args!("an assistant's result")),
        "server_tool_use" | "mcp_tool_use" => {
            let id = block.text("id");
            findings.expect(!is_user, format_args!("a user's server tool use"));
            findings.expect(
                state.ids.insert((*id).into(), 0).is_none(),
                format_args!("two calls `{id}`"),
            );
            state.served.insert((*id).into(), findings.at + 1);
        }
        kind if is_result(kind) => {
            let waits = state.served.get_mut(&*block.text("tool_use_id"));
            let known = waits.is_some_and(|waits| core::mem::take(waits) > 0);
            findings.expect(known && !is_user, format_args!("`{kind}` without its call"));
        }
        "image" | "document" | "search_result" => {
            let stands = is_user && provider_limits::has_source(block);
            findings.expect(stands, format_args!("`{kind}` without a source or of the assistant"));
        }
        _ => {}
    }
}

fn check_result(raw: &str, result: &Object<'_>, findings: &mut Findings) {
    let is_error = result.is_true("is_error");
    let blank = |span: Span| json::text(raw, span).trim().is_empty();
    match json::member(&result.members, raw, "content") {
        None => findings.expect(!is_error, format_args!("an error without content")),
        Some(content) if content.kind == Kind::String => {
            findings.expect(!is_error || !blank(content.value), format_args!("a blank error"));
        }
        Some(content) => {
            findings
                .expect(content.kind == Kind::Array, format_args!("a result that is no content"));
            let blocks = result.list("content");
            findings
                .expect(!is_error || !blocks.is_empty(), format_args!("an error without content"));
            for value in blocks {
                let kind = Object::of(raw, value).map(|block| {
                    let kind = String::from(block.text("type"));
                    let says = kind != "text" || !block.text("text").trim().is_empty();
                    findings.expect(says, format_args!("blank text in a result"));
                    let stands = provider_limits::has_source(&block);
                    findings.expect(stands, format_args!("`{kind}` in a result without a source"));
                    kind
                });
                let kind = kind.unwrap_or_default();
                let fits = !kind.is_empty() && (!is_error || kind == "text");
                findings.expect(fits, format_args!("`{kind}` in a result"));
            }
        }
    }
}
