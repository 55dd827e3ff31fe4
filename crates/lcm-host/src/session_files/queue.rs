//! Finds prompts of Claude Code that a person typed while the agent worked.
//! Read from files of Claude Code, 2026-11-28.
//!
//! In: the lines of a session. Out: prompts that only lines of the type `queue-operation` have. A
//! prompt that became an attachment or a `user` line is not among them: a later line says exactly
//! this text, or this text and the next prompts of the queue, and each line is one such prompt.
//!
//! | operation | prompt |
//! |---|---|
//! | `dequeue`, `remove` | was given to the model at this line |
//! | `popAll` | was taken back by the person, and is set aside unless a later line says it |
//! | none after `enqueue` | was left in the queue by the end of the program, at its own line |
//!
//! While a file grows, a prompt becomes a message only if a line of the conversation follows,
//! because the attachment of the prompt is written after its `queue-operation`, and the file may
//! end between both. A prompt that waits in the queue may still become another line.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::value::RawValue;

use super::{
    Growth,
    line::{Object, Text},
};

/// A prompt that no other line has.
#[derive(Debug)]
pub(super) struct QueuedPrompt {
    pub(super) text: String,
    /// Whether the person took the prompt back.
    pub(super) is_taken_back: bool,
    /// Index of the line that put the prompt into the queue.
    enqueued: usize,
    /// Index of the line that took the prompt from the queue.
    place: usize,
}

/// A text of a `user` line or of a prompt that became an attachment.
struct SaidText {
    line: usize,
    text: String,
}

/// Returns the prompts, by the index of their line.
pub(super) fn find_prompts(objects: &[Object<'_>], growth: Growth) -> HashMap<usize, QueuedPrompt> {
    let is_operation =
        |object: &Object<'_>| object.text("type").as_deref() == Some("queue-operation");
    if !objects.iter().any(is_operation) {
        return HashMap::new();
    }
    let is_said = |object: &Object<'_>| {
        matches!(object.text("type").as_deref(), Some("user" | "assistant"))
            && !object.is_true("isSidechain")
    };
    let end = match growth {
        Growth::Ended => objects.len(),
        Growth::Growing => objects.iter().rposition(is_said).unwrap_or_default(),
    };
    let mut prompts = replay_operations(objects, end, growth);
    let said = list_texts(objects);
    let mut is_known: Vec<bool> =
        prompts.iter().map(|prompt| prompt.is_taken_back && is_sent(prompt, &said)).collect();
    for text in &said {
        for index in find_run(text, &prompts, &is_known) {
            is_known.get_mut(index).into_iter().for_each(|known| *known = true);
        }
    }
    let mut known = is_known.into_iter();
    prompts.retain(|prompt| !known.next().unwrap_or_default() && !prompt.text.trim().is_empty());
    prompts.into_iter().map(|prompt| (prompt.place, prompt)).collect()
}

/// Returns the prompts that left the queue before the line `end`, or were left in it.
fn replay_operations(objects: &[Object<'_>], end: usize, growth: Growth) -> Vec<QueuedPrompt> {
    let mut waiting: VecDeque<(usize, String)> = VecDeque::new();
    let mut prompts = Vec::new();
    for (place, object) in objects.iter().enumerate().take(end) {
        if object.text("type").as_deref() != Some("queue-operation") {
            continue;
        }
        let own = object.text("content");
        match object.text("operation").as_deref() {
            Some("enqueue") => waiting.extend(own.map(|text| (place, text))),
            Some("popAll") => {
                let enqueued = waiting.front().map_or(place, |(enqueued, _)| *enqueued);
                let all: Vec<String> = waiting.drain(..).map(|(_, text)| text).collect();
                let text = own.unwrap_or_else(|| all.join("\n"));
                prompts.push(QueuedPrompt { text, is_taken_back: true, enqueued, place });
            }
            _ => {
                let index = waiting.iter().position(|(_, text)| Some(text) == own.as_ref());
                // A prompt whose `enqueue` the file lacks has its text here only.
                let taken = match (index, own) {
                    (None, Some(own)) => Some((place, own)),
                    (index, _) => waiting.remove(index.unwrap_or_default()),
                };
                prompts.extend(taken.map(|(enqueued, text)| QueuedPrompt {
                    text,
                    is_taken_back: false,
                    enqueued,
                    place,
                }));
            }
        }
    }
    if growth == Growth::Ended {
        prompts.extend(waiting.into_iter().map(|(place, text)| QueuedPrompt {
            text,
            is_taken_back: false,
            enqueued: place,
            place,
        }));
    }
    prompts
}

/// Returns the indexes of lines of the type `last-prompt` whose prompt another line says. They have
/// it without line breaks, and cut if it is long.
pub(super) fn find_repeated_prompts(objects: &[Object<'_>]) -> HashSet<usize> {
    let is_last = |object: &Object<'_>| object.text("type").as_deref() == Some("last-prompt");
    let lines = objects.iter().enumerate().filter(|(_, object)| is_last(object));
    let prompts: Vec<(usize, String)> =
        lines.filter_map(|(index, object)| Some((index, object.text("lastPrompt")?))).collect();
    if prompts.is_empty() {
        return HashSet::new();
    }
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said: Vec<String> =
        list_texts(objects).iter().map(|said| in_one_line(&said.text)).collect();
    let is_said = |prompt: &str| {
        let prompt = in_one_line(prompt);
        let begin = prompt.strip_suffix('\u{2026}').map(str::trim_end).filter(|it| !it.is_empty());
        let says = |text: &String| {
            *text == prompt
                || is_command(text, &prompt)
                || begin.is_some_and(|begin| text.starts_with(begin))
        };
        said.iter().any(says)
    };
    let repeated = prompts.into_iter().filter(|(_, prompt)| is_said(prompt));
    repeated.map(|(index, _)| index).collect()
}

/// Returns a user message without id.
pub(super) fn build_message(prompt: &str) -> String {
    Text::default().string("role", "user").string("content", prompt).end()
}

/// Returns the texts of `user` lines and of prompts that became attachments.
fn list_texts(objects: &[Object<'_>]) -> Vec<SaidText> {
    let mut texts = Vec::new();
    for (line, object) in objects.iter().enumerate() {
        let content = match object.text("type").as_deref() {
            Some("user") => object.object("message").and_then(|it| it.any("content")),
            Some("attachment") => object.object("attachment").and_then(|it| it.any("prompt")),
            _ => None,
        };
        let Some(content) = content else { continue };
        if let Ok(text) = serde_json::from_str::<String>(content.get()) {
            texts.push(SaidText { line, text });
            continue;
        }
        let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
        let blocks = blocks.into_iter().filter_map(Object::from_value);
        let of_blocks = blocks.filter_map(|block| block.text("text"));
        texts.extend(of_blocks.map(|text| SaidText { line, text }));
    }
    texts
}

/// Returns the indexes of the prompts that a text says: one, or consecutive ones that the program
/// joined; empty: the text says something else.
fn find_run(said: &SaidText, prompts: &[QueuedPrompt], is_known: &[bool]) -> Vec<usize> {
    let free: Vec<(usize, &QueuedPrompt)> = prompts
        .iter()
        .enumerate()
        .filter(|(index, prompt)| {
            is_known.get(*index) == Some(&false) && prompt.enqueued < said.line
        })
        .collect();
    let text = said.text.trim();
    for start in 0..free.len() {
        let mut rest = text;
        let mut run = Vec::new();
        for (index, prompt) in free.iter().skip(start) {
            let prompt = prompt.text.trim();
            run.push(*index);
            if rest == prompt || (run.len() == 1 && is_command(rest, prompt)) {
                return run;
            }
            match rest.strip_prefix(prompt).and_then(|rest| rest.strip_prefix('\n')) {
                Some(next) if !prompt.is_empty() => rest = next.trim_start(),
                _ => break,
            }
        }
    }
    Vec::new()
}

/// Returns whether a text is the line of a command, which names the command in an element.
fn is_command(text: &str, prompt: &str) -> bool {
    let name = prompt.split_whitespace().next().unwrap_or_default();
    let bash = prompt.strip_prefix('!').unwrap_or(prompt).trim();
    (name.starts_with('/') && text.contains(&format!("<command-name>{name}</command-name>")))
        || text == format!("<bash-input>{bash}</bash-input>")
}

/// Returns whether later texts have each line of a prompt.
fn is_sent(prompt: &QueuedPrompt, said: &[SaidText]) -> bool {
    let later = || said.iter().filter(|said| said.line > prompt.place);
    let has = |line: &str| later().any(|said| said.text.lines().any(|it| it.trim() == line));
    prompt.text.lines().map(str::trim).filter(|line| !line.is_empty()).all(has)
}
