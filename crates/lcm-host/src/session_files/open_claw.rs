//! Reads sessions of `OpenClaw`, in the format of the pi agent, and of Droid.
//! Read from files of `OpenClaw`, the pi agent and Droid, 2026-11-28.
//!
//! In: a header of the type `session` or `session_start`, then entries with `type`, `id`,
//! `parentId` and `timestamp`; files of the first version have neither id nor parent. The content
//! of messages has the blocks of the pi agent, or those of Anthropic. Out: the `message` and
//! `custom_message` entries, and summaries of abandoned branches, as messages of `openclaw`, which
//! the component reads: those of the live branch, each behind its parent, and the others as
//! branches. A summary of a compaction becomes a message only before all other messages.
//!
//! Entry ids of these files have 8 hex digits and are unique only within their session, so the id
//! of the session is their prefix.

use serde_json::value::RawValue;

use super::{
    FileMessage, LineError, SessionContent,
    entries::{Ids, SUMMARY, SkippedCounts},
    line::{Object, Text},
    records::Branches,
    tree::{Node, Tree},
};

const ROLE: &str = "messages of an unknown role";

/// Roles of messages.
pub(super) const ROLES: [&str; 9] = [
    "user",
    "assistant",
    "toolResult",
    "system",
    "custom",
    "hookMessage",
    "bashExecution",
    "branchSummary",
    "compactionSummary",
];

/// Members of an entry other than its content.
const ENVELOPE: [&str; 4] = ["type", "id", "parentId", "timestamp"];

/// Types of entries with content.
const SAID: [&str; 4] = ["message", "custom_message", "branch_summary", "compaction"];

/// Types of headers.
const HEADERS: [&str; 2] = ["session", "session_start"];

/// Types of entries that have only settings.
const PROGRAM: [&str; 2] = ["model_change", "thinking_level_change"];

/// Types of `custom` entries with a state of the program.
const STATES: [&str; 2] = ["model-snapshot", "openclaw.cache-ttl"];

pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> Result<SessionContent, LineError> {
    let mut ids = Ids::default();
    let mut left = SkippedCounts::default();
    let (mut found, mut branches) = (SessionContent::default(), Branches::default());
    let nodes: Vec<Node> = objects.iter().map(build_node).collect();
    let mut tree = Tree::new(&nodes);
    let live = tree.find_live();
    // Sessions, each with the index of its header. A header counts from its line on, so that no
    // id changes when the file grows.
    let mut sessions: Vec<(usize, String)> = Vec::new();
    for (index, object) in objects.iter().enumerate().filter(|(_, object)| is_header(object)) {
        sessions.push((index, object.text("id").unwrap_or_default()));
        found.session = object.text("id").or(found.session);
        found.project = object.text("cwd").or(found.project);
        if object.has("parentSession") || object.has("branchedFrom") {
            found.warnings.push(
                "the session is a fork; messages that it copied count as its own messages"
                    .to_owned(),
            );
        }
    }
    for index in tree.order_entries() {
        tree.record_message(index, None);
        let (Some(line), Some(object)) = (lines.get(index), objects.get(index)) else { continue };
        let kind = object.text("type").unwrap_or_default();
        let said = match kind.as_str() {
            "message" => object.object("message").ok_or_else(|| {
                LineError::at(index, "must have a `message`, as a `message` entry")
            })?,
            "custom_message" | "branch_summary" | "compaction" => object.clone(),
            _ => {
                if !is_of_program(&kind, object) {
                    left.count_line(&kind);
                }
                continue;
            }
        };
        let id = match object.text("id") {
            Some(id) => {
                let content = object.any("message").map_or(line.as_str(), RawValue::get);
                let header = sessions.iter().rfind(|(header, _)| *header < index);
                let session = header.map(|(_, session)| session.as_str()).unwrap_or_default();
                ids.name_entry(&format!("{session}/{id}"), content)
            }
            None => ids.name_line(line),
        };
        let is_live = live.get(index).copied().unwrap_or_default();
        let time = object.any("timestamp");
        let is_first = is_live && found.messages.is_empty();
        match read_entry(&id, time, (&kind, &said), is_first) {
            Ok(text) if is_live => found.messages.push(FileMessage { text, line: index }),
            Ok(text) => {
                let after = tree.message_before(index);
                branches.push(&id, FileMessage { text, line: index }, after);
            }
            Err(reason) => {
                left.count_message(reason);
                continue;
            }
        }
        tree.record_message(index, Some(id));
    }
    found.branches = branches.into_list();
    left.set_aside(&found.branches);
    found.warnings.extend(left.warnings());
    found.warnings.extend(ids.warning());
    Ok(found)
}

/// Returns whether an entry never has words of a person or the model: a header, a setting, or a
/// state of a known extension.
fn is_of_program(kind: &str, object: &Object<'_>) -> bool {
    let is_state = || {
        let of_extension = object.text("customType").unwrap_or_default();
        kind == "custom" && STATES.contains(&of_extension.as_str())
    };
    HEADERS.contains(&kind) || PROGRAM.contains(&kind) || is_state()
}

fn is_header(object: &Object<'_>) -> bool {
    object.text("type").is_some_and(|kind| HEADERS.contains(&kind.as_str()))
}

fn build_node(object: &Object<'_>) -> Node {
    if is_header(object) {
        return Node::default();
    }
    Node {
        id: object.text("id"),
        continues: object.text("parentId"),
        is_message: object.text("type").is_some_and(|kind| SAID.contains(&kind.as_str())),
    }
}

/// Returns the message of an entry with its id, and with the time of the entry if it has none;
/// `Err`: the reason to skip the entry. `first`: no message of the file was kept before the entry.
fn read_entry(
    id: &str,
    time: Option<&RawValue>,
    (kind, said): (&str, &Object<'_>),
    first: bool,
) -> Result<String, &'static str> {
    let role = said.text("role").unwrap_or_default();
    let (name, used): (_, &[&str]) = match (kind, role.as_str()) {
        ("compaction", _) | ("message", "compactionSummary") if !first => return Err(SUMMARY),
        ("message", role) if ROLES.contains(&role) => ("", &["id"]),
        ("custom_message", _) => ("custom", &ENVELOPE),
        ("branch_summary", _) => ("branchSummary", &ENVELOPE),
        ("compaction", _) => ("compactionSummary", &ENVELOPE),
        _ => return Err(ROLE),
    };
    let text = Text::default();
    let text = if name.is_empty() { text } else { text.string("role", name) };
    let text = text.rest(said, used).string("id", id);
    let text = if name.is_empty() { text.kept("message_id", said.any("id")) } else { text };
    let has_time = name.is_empty() && said.has("timestamp");
    Ok(if has_time { text } else { text.kept("timestamp", time) }.end())
}
