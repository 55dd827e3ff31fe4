//! Reads conversations of the exports of `ChatGPT` and Claude.ai.
//! Read from files of `ChatGPT` and Claude.ai, 2026-11-28.
//!
//! In: one conversation. Out: its messages as `lcm`. Both exports have trees: the branch that the
//! person saw last is live, and the others become branches.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::{
    SessionContent,
    line::Object,
    records::{self, Collector, Draft, Piece},
    tree::{Node, Tree},
};

/// A message of an export, with its place in the tree.
struct Entry<'a> {
    id: String,
    parent: Option<String>,
    message: Object<'a>,
    raw: &'a str,
}

/// Reads a conversation of `ChatGPT`; `None`: the document has no `mapping`.
pub(super) fn read_chat_gpt(document: &Object<'_>) -> Option<SessionContent> {
    let mapping = document.object("mapping")?;
    let mut entries = Vec::new();
    for (id, value) in mapping.members() {
        let node = Object::from_value(value)?;
        let message = node.object("message").unwrap_or_default();
        let (id, parent) = (id.to_owned(), node.text("parent"));
        entries.push(Entry { id, parent, message, raw: value.get() });
    }
    let current = document.text("current_node");
    let mut out = Collector::default();
    out.set_session(document.text("conversation_id").or_else(|| document.text("id")), None);
    // Ids of nodes whose message is a call of a tool, with the name of the tool.
    let mut calls: HashMap<String, String> = HashMap::new();
    write_entries(&mut out, &entries, current.as_deref(), &mut |out, index, entry| {
        let author = entry.message.object("author").unwrap_or_default();
        let time = entry.message.any("create_time").map(RawValue::get);
        let (role, pieces) = read_chat_gpt_message(entry, &author, &mut calls);
        let draft = Draft::new(role).with_id(Some(&entry.id), time);
        out.push_pieces(index, entry.raw, &draft, pieces)
    });
    Some(out.into_content())
}

/// Converts a message of `ChatGPT`.
fn read_chat_gpt_message(
    entry: &Entry<'_>,
    author: &Object<'_>,
    calls: &mut HashMap<String, String>,
) -> (&'static str, Vec<Piece>) {
    let content = entry.message.object("content").unwrap_or_default();
    let kind = content.text("content_type").unwrap_or_default();
    let parts = content.list("parts").unwrap_or_default();
    let mut texts: Vec<String> = parts.into_iter().map(read_chat_gpt_part).collect();
    texts.extend(content.text("text"));
    texts.extend(content.text("result"));
    for thought in
        content.list("thoughts").unwrap_or_default().into_iter().filter_map(Object::from_value)
    {
        let title = thought.text("summary").unwrap_or_default();
        texts.push(format!("{title}\n{}", thought.text("content").unwrap_or_default()));
    }
    if kind == "user_editable_context" {
        texts.extend(content.text("user_profile"));
        texts.extend(content.text("user_instructions"));
    }
    texts.retain(|text| !text.trim().is_empty());
    let text = texts.join("\n");
    let part = |text: &str| Vec::from([Piece::Part(records::text_part(text))]);
    let recipient = entry.message.text("recipient").filter(|to| to != "all");
    match (author.text("role").as_deref(), recipient) {
        _ if text.is_empty() => ("user", Vec::new()),
        (Some("system"), _) => ("system", part(&text)),
        (Some("tool"), _) => {
            let name = author.text("name").unwrap_or_default();
            let call = entry.parent.clone().filter(|parent| calls.contains_key(parent));
            match call {
                Some(id) => {
                    let output = super::line::quoted(&text);
                    let part = records::result_part(&id, &name, &output, false);
                    ("tool", Vec::from([Piece::Result(part)]))
                }
                None => ("assistant", part(&format!("[output of {name}]\n{text}"))),
            }
        }
        (Some("assistant"), Some(tool)) => {
            calls.insert(entry.id.clone(), tool.clone());
            let input = format!("{{\"text\":{}}}", super::line::quoted(&text));
            let call = records::call_part(&entry.id, &tool, &input);
            ("assistant", Vec::from([Piece::Part(call)]))
        }
        (Some("assistant"), None) if kind == "thoughts" || kind == "reasoning_recap" => {
            ("assistant", Vec::from([Piece::Part(records::reasoning_part(&text))]))
        }
        (Some("assistant"), None) => ("assistant", part(&text)),
        _ => ("user", part(&text)),
    }
}

/// Returns the text of a part: a string, a transcription, or the name of media outside the file.
fn read_chat_gpt_part(value: &RawValue) -> String {
    if let Ok(text) = serde_json::from_str::<String>(value.get()) {
        return text;
    }
    let Some(part) = Object::from_value(value) else { return String::new() };
    let kind = part.text("content_type").unwrap_or_default();
    let pointer = || format!("[{kind} {}]", part.text("asset_pointer").unwrap_or_default());
    part.text("text").unwrap_or_else(pointer)
}

/// Reads a conversation of Claude.ai; `None`: the document has no `chat_messages`.
pub(super) fn read_claude_ai(document: &Object<'_>) -> Option<SessionContent> {
    let list = document.list("chat_messages")?;
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (index, value) in list.into_iter().enumerate() {
        let message = Object::from_value(value)?;
        let id = message.text("uuid").unwrap_or_else(|| format!("message {index}"));
        // Early exports are lists without parents.
        let parent = match message.text("parent_message_uuid") {
            None if !message.has("parent_message_uuid") => {
                entries.last().map(|entry| entry.id.clone())
            }
            parent => parent,
        };
        entries.push(Entry { id, parent, message, raw: value.get() });
    }
    let current = document.text("current_leaf_message_uuid");
    let mut out = Collector::default();
    out.set_session(document.text("uuid"), None);
    write_entries(&mut out, &entries, current.as_deref(), &mut |out, index, entry| {
        let role = match entry.message.text("sender").as_deref() {
            Some("assistant") => "assistant",
            _ => "user",
        };
        let time = entry.message.any("created_at").map(RawValue::get);
        let draft = Draft::new(role).with_id(Some(&entry.id), time);
        out.push_pieces(index, entry.raw, &draft, read_claude_ai_message(entry))
    });
    Some(out.into_content())
}

fn read_claude_ai_message(entry: &Entry<'_>) -> Vec<Piece> {
    let Entry { message, id, .. } = entry;
    let mut pieces = Vec::new();
    let attached = message.list("attachments").unwrap_or_default();
    for file in attached.into_iter().filter_map(Object::from_value) {
        if let Some(content) = file.text("extracted_content") {
            let name = file.text("file_name").unwrap_or_default();
            pieces.push(Piece::Part(records::text_part(&format!("{name}:\n{content}"))));
        }
    }
    let before = pieces.len();
    // A call without an own id and its result, which is the next block, have one id.
    let mut calls = 0_usize;
    for value in message.list("content").unwrap_or_default() {
        let Some(block) = Object::from_value(value) else { continue };
        calls += usize::from(block.text("type").as_deref() == Some("tool_use"));
        let is_empty =
            block.text("type").as_deref() == Some("text") && block.text("text").is_none();
        if !is_empty {
            pieces.push(records::convert_block(&block, value.get(), &format!("{id} call {calls}")));
        }
    }
    if pieces.len() == before {
        let text = message.text("text");
        pieces.extend(text.map(|text| Piece::Part(records::text_part(&text))));
    }
    pieces
}

fn build_tree(entries: &[Entry<'_>]) -> Tree {
    let node = |entry: &Entry<'_>| Node {
        id: Some(entry.id.clone()),
        continues: entry.parent.clone(),
        is_message: true,
    };
    Tree::new(&entries.iter().map(node).collect::<Vec<_>>())
}

/// Returns for each entry whether it is live: an ancestor of the current one, or without a current
/// one on the branch of the last entry.
fn find_live(tree: &Tree, entries: &[Entry<'_>], current: Option<&str>) -> Vec<bool> {
    match entries.iter().position(|entry| Some(entry.id.as_str()) == current) {
        Some(index) => tree.find_ancestors(index),
        None => tree.find_live(),
    }
}

/// Writes one entry, and returns the entry id of its last message.
type WriteEntry<'f, 'a> = &'f mut dyn FnMut(&mut Collector, usize, &Entry<'a>) -> Option<String>;

/// Writes the messages of entries, those that are not live as branches. `current`: id of the entry
/// that the person saw last.
fn write_entries<'a>(
    out: &mut Collector,
    entries: &[Entry<'a>],
    current: Option<&str>,
    write_entry: WriteEntry<'_, 'a>,
) {
    let mut tree = build_tree(entries);
    let live = find_live(&tree, entries, current);
    for index in tree.order_entries() {
        let Some(entry) = entries.get(index) else { continue };
        match live.get(index) {
            Some(true) => out.end_branch(),
            _ => out.begin_branch(tree.message_before(index)),
        }
        let id = write_entry(out, index, entry);
        tree.record_message(index, id);
    }
    out.end_branch();
}
