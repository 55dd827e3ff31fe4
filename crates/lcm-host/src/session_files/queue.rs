//! Finds prompts of Claude Code that a person typed while the agent worked.
//!
//! In: the lines of a session. Out: prompts that only lines of the type `queue-operation` have,
//! each at the line that took it from the queue. A prompt that became an attachment or a `user`
//! line is not among them.
//!
//! A prompt becomes a message only if a line of the conversation follows, because the attachment of
//! the prompt is written after its `queue-operation`, and a followed file may end between both.

use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;

use super::line::{Object, Text};

/// Returns the prompts, by the index of their line.
pub(super) fn find_prompts(objects: &[Object<'_>]) -> HashMap<usize, String> {
    let is_operation =
        |object: &Object<'_>| object.text("type").as_deref() == Some("queue-operation");
    if !objects.iter().any(is_operation) {
        return HashMap::new();
    }
    let is_said = |object: &Object<'_>| {
        matches!(object.text("type").as_deref(), Some("user" | "assistant"))
            && !object.is_true("isSidechain")
    };
    let last_said = objects.iter().rposition(is_said).unwrap_or_default();
    let mut waiting: VecDeque<String> = VecDeque::new();
    let mut taken = HashMap::new();
    for (index, object) in objects.iter().enumerate().take(last_said) {
        if !is_operation(object) {
            continue;
        }
        let own = object.text("content");
        match object.text("operation").as_deref() {
            Some("enqueue") => waiting.extend(own),
            Some("popAll") => {
                let all: Vec<String> = waiting.drain(..).collect();
                taken.extend(own.or_else(|| Some(all.join("\n"))).map(|prompt| (index, prompt)));
            }
            _ => {
                let place = own.as_ref().and_then(|own| waiting.iter().position(|it| it == own));
                let first = waiting.remove(place.unwrap_or_default());
                taken.extend(own.or(first).map(|prompt| (index, prompt)));
            }
        }
    }
    let known = list_texts(objects);
    taken.retain(|_, prompt| !is_known(prompt, &known));
    taken
}

/// Returns a user message without id.
pub(super) fn build_message(prompt: &str) -> String {
    Text::default().string("role", "user").string("content", prompt).end()
}

/// Returns the texts of `user` lines and of prompts that became attachments.
fn list_texts(objects: &[Object<'_>]) -> Vec<String> {
    let mut texts = Vec::new();
    for object in objects {
        let content = match object.text("type").as_deref() {
            Some("user") => object.object("message").and_then(|it| it.any("content")),
            Some("attachment") => object.object("attachment").and_then(|it| it.any("prompt")),
            _ => None,
        };
        let Some(content) = content else { continue };
        if let Ok(text) = serde_json::from_str::<String>(content.get()) {
            texts.push(text);
            continue;
        }
        let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
        texts.extend(
            blocks
                .into_iter()
                .filter_map(Object::from_value)
                .filter_map(|block| block.text("text")),
        );
    }
    texts
}

/// Returns whether a line has the prompt, or each of its lines: several prompts are joined when a
/// person takes them back to edit them.
fn is_known(prompt: &str, known: &[String]) -> bool {
    let has = |text: &str| known.iter().any(|line| line.contains(text));
    prompt.trim().is_empty()
        || has(prompt.trim())
        || prompt.lines().map(str::trim).filter(|line| !line.is_empty()).all(has)
}
