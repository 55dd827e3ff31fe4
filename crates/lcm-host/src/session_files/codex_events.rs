//! Finds the prompts and answers of a Codex session that only events have. Read from files of the
//! Codex CLI, 2026-11-28.
//!
//! In: the lines of a session. Out: the lines of the type `event_msg` that become messages. Most
//! files have a prompt twice: as a `response_item`, which the model was given, and as an event
//! `user_message`, which a person saw. The order of both varies.
//!
//! An event and an item with one text are one prompt if no other prompt of an event is between
//! them. The item beside the event, with no answer between them, is preferred. Each item stands for
//! one event. Every other event is a prompt of its own.
//!
//! Events `agent_message` are answers only in a file whose items have no message of the model,
//! because their text may differ from that of the item.
//!
//! While a file grows, an event waits for the line that shows that no item follows: for a prompt an
//! answer or the next prompt, for an answer any line.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::{
    Growth,
    line::{self, Object},
    records,
};

/// What a line means for the search.
#[derive(Debug)]
enum Mark {
    /// An event with a prompt.
    Prompt(String),
    /// An event with an answer.
    Answer(String),
    /// An item with a message of the role `user`: its texts, and whether it has an image.
    UserItem(Vec<String>, bool),
    /// An item with a message of the model.
    ModelItem,
    /// An item of another type that the model made or was given.
    OtherItem,
    /// Any other line.
    None,
}

/// A message that only an event has.
#[derive(Debug)]
pub(super) struct EventMessage {
    pub(super) role: &'static str,
    /// Parts as a JSON list.
    pub(super) parts: String,
}

/// Returns the messages of events, by the index of their line.
pub(super) fn find_messages(
    objects: &[Object<'_>],
    growth: Growth,
) -> HashMap<usize, EventMessage> {
    let marks: Vec<Mark> = objects.iter().map(mark_line).collect();
    let mut messages = HashMap::new();
    for index in find_prompts(&marks) {
        if growth == Growth::Ended || is_answered(&marks, index) {
            let payload = objects.get(index).and_then(|object| object.object("payload"));
            let parts = payload.map(|payload| build_parts(&payload)).unwrap_or_default();
            messages.insert(index, EventMessage { role: "user", parts: line::array(&parts) });
        }
    }
    if marks.iter().any(|mark| matches!(mark, Mark::ModelItem)) {
        return messages;
    }
    for (index, mark) in marks.iter().enumerate() {
        if let Mark::Answer(text) = mark
            && (growth == Growth::Ended || index + 1 < marks.len())
        {
            let parts = line::array(&[records::text_part(text)]);
            messages.insert(index, EventMessage { role: "assistant", parts });
        }
    }
    messages
}

fn mark_line(object: &Object<'_>) -> Mark {
    let kind = object.text("type");
    let payload = object.object("payload");
    let is_bare = payload.is_none() && !object.has("payload");
    let item = match (kind.as_deref(), &payload) {
        (Some("event_msg"), Some(event)) => return mark_event(event),
        (Some("response_item"), Some(item)) => item,
        (Some(_), None) if is_bare => object,
        _ => return Mark::None,
    };
    match (item.text("type").as_deref(), item.text("role").as_deref()) {
        (Some("message"), Some("user")) => {
            let blocks = item.list("content").unwrap_or_default();
            let blocks: Vec<Object<'_>> =
                blocks.into_iter().filter_map(Object::from_value).collect();
            let has_image =
                blocks.iter().any(|block| block.text("type").as_deref() == Some("input_image"));
            let mut texts: Vec<String> =
                blocks.iter().filter_map(|block| block.text("text")).collect();
            texts.extend(item.text("content"));
            texts.push(texts.concat());
            Mark::UserItem(texts, has_image)
        }
        (Some("message"), Some("assistant")) => Mark::ModelItem,
        (Some("message" | "ghost_snapshot"), _) => Mark::None,
        _ => Mark::OtherItem,
    }
}

fn mark_event(event: &Object<'_>) -> Mark {
    let text = event.text("message").filter(|text| !text.trim().is_empty());
    match event.text("type").as_deref() {
        // Early versions repeat their own context as events, too.
        Some("user_message") if event.text("kind").is_none_or(|kind| kind == "plain") => match text
        {
            None if build_parts(event).is_empty() => Mark::None,
            text => Mark::Prompt(text.unwrap_or_default()),
        },
        Some("agent_message") => text.map_or(Mark::None, Mark::Answer),
        _ => Mark::None,
    }
}

/// Returns the indexes of the events whose prompt no item has.
fn find_prompts(marks: &[Mark]) -> Vec<usize> {
    let is_prompt = |(_, mark): &(usize, &Mark)| matches!(mark, Mark::Prompt(_));
    let events: Vec<usize> =
        marks.iter().enumerate().filter(is_prompt).map(|(index, _)| index).collect();
    let mut used: HashSet<usize> = HashSet::new();
    let mut alone = events.clone();
    for is_near in [true, false] {
        alone.retain(|event| {
            let item = find_item(marks, *event, is_near, &used);
            used.extend(item);
            item.is_none()
        });
    }
    alone
}

/// Returns the index of the first free item that says the prompt of an event. `is_near`: no answer
/// is between them.
fn find_item(marks: &[Mark], event: usize, is_near: bool, used: &HashSet<usize>) -> Option<usize> {
    let Some(Mark::Prompt(prompt)) = marks.get(event) else { return None };
    let is_border = |mark: &Mark| match mark {
        Mark::Prompt(_) => true,
        Mark::Answer(_) | Mark::ModelItem | Mark::OtherItem => is_near,
        Mark::UserItem(..) | Mark::None => false,
    };
    let before = marks.iter().take(event).rposition(is_border).map_or(0, |border| border + 1);
    let behind = marks.iter().skip(event + 1).position(is_border);
    let end = behind.map_or(marks.len(), |border| event + 1 + border);
    let says = |mark: &Mark| match mark {
        Mark::UserItem(_, has_image) if prompt.is_empty() => *has_image,
        Mark::UserItem(texts, _) => texts.iter().any(|text| text.trim() == prompt.trim()),
        _ => false,
    };
    let between = marks.iter().enumerate().take(end).skip(before);
    let mut free = between.filter(|(index, mark)| !used.contains(index) && says(mark));
    free.next().map(|(index, _)| index)
}

/// Returns whether a line behind a prompt shows that no item of the prompt follows.
fn is_answered(marks: &[Mark], prompt: usize) -> bool {
    let is_end = |mark: &Mark| match mark {
        Mark::Prompt(_) | Mark::Answer(_) | Mark::ModelItem | Mark::OtherItem => true,
        Mark::UserItem(..) | Mark::None => false,
    };
    marks.iter().skip(prompt + 1).any(is_end)
}

/// Returns the parts of the prompt of an event: its text, and the images that it has.
fn build_parts(event: &Object<'_>) -> Vec<String> {
    let text = event.text("message").map(|text| records::text_part(&text));
    let images = event.list("images").unwrap_or_default();
    let image = |value: &RawValue| {
        let url: String = serde_json::from_str(value.get()).ok()?;
        records::data_url_part(None, &url)
    };
    text.into_iter().chain(images.into_iter().filter_map(image)).collect()
}
