//! Recognises messages of agent frameworks. The component reads them.
//! Read from files of `LangChain`, the AI SDK, `OpenClaw` and `OpenAI` Agents, 2026-11-28.
//!
//! In: one record. Out: how it fits the messages of a framework. A message with only a role and a
//! text fits several.

use super::{formats::Fit, line::Object, open_claw};

/// Types of messages of `LangChain`. The classes of its constructors are `HumanMessage` and so on.
const LANG_CHAIN_TYPES: [&str; 6] = ["human", "ai", "system", "tool", "function", "chat"];

/// Returns how a record fits messages of `LangChain`: as they are, with `data`, or with the
/// constructor of a class.
pub(super) fn compare_lang_chain(object: &Object<'_>) -> Fit {
    // Records of Claude Code have the type `system`, too.
    let others = ["role", "uuid", "sessionId", "subtype"];
    if others.iter().any(|key| object.has(key)) {
        return Fit::No;
    }
    let kind = object.text("type").unwrap_or_default();
    let class =
        || -> Option<String> { serde_json::from_str(object.list("id")?.last()?.get()).ok() };
    let (name, message) = match kind.as_str() {
        "constructor" => (class().unwrap_or_default(), object.object("kwargs")),
        _ => (kind, object.object("data").or_else(|| Some(object.clone()))),
    };
    let is_known = LANG_CHAIN_TYPES.contains(&name.as_str())
        || name.ends_with("Message")
        || name.ends_with("MessageChunk");
    Fit::typical_if(is_known && message.is_some_and(|message| message.has("content")))
}

/// Returns how a record fits messages of the AI SDK. Only its types of parts have a hyphen.
pub(super) fn compare_ai_sdk(object: &Object<'_>) -> Fit {
    if object.text("role").is_none() || object.has("tool_calls") {
        return Fit::No;
    }
    let parts = object.list("content").or_else(|| object.list("parts")).unwrap_or_default();
    let kinds = parts.into_iter().filter_map(Object::from_value);
    let mut fit = Fit::Possible;
    for kind in kinds.filter_map(|part| part.text("type")) {
        match kind.as_str() {
            "text" | "reasoning" | "image" | "file" | "source" | "custom" => (),
            kind if kind.contains('-') => fit = Fit::Typical,
            _ => return Fit::No,
        }
    }
    fit
}

/// Returns how a record fits messages of `OpenClaw`, without the entries of its session files.
pub(super) fn compare_open_claw(object: &Object<'_>) -> Fit {
    match object.text("role").as_deref() {
        _ if object.has("type") || object.has("tool_calls") => Fit::No,
        Some("assistant") if object.has("stopReason") => Fit::Typical,
        Some("user" | "assistant") if object.has("content") => Fit::Possible,
        Some("user" | "assistant" | "system") | None => Fit::No,
        Some(role) => Fit::typical_if(open_claw::ROLES.contains(&role)),
    }
}

/// Returns how a record fits items of `OpenAI` Agents.
pub(super) fn compare_openai_agents(object: &Object<'_>) -> Fit {
    let kind = object.text("type");
    match kind.as_deref() {
        _ if object.has("providerData") => Fit::Typical,
        Some("hosted_tool_call") => Fit::Typical,
        Some(kind) if kind.contains("_call") => Fit::typical_if(object.has("callId")),
        Some("reasoning") => Fit::Possible,
        None | Some("message") if object.has("role") && object.has("content") => Fit::Possible,
        _ => Fit::No,
    }
}
