//! Reads sessions of Claude Code, and its output in the format `stream-json`.
//! Read from files of Claude Code, 2026-11-28.
//!
//! In: lines with `type`. Lines of a conversation have `uuid`, and `parentUuid` is the `uuid` of
//! their parent (after a compaction `logicalParentUuid`). Out: the `user` and `assistant` lines,
//! the `attachment` lines with content that reached the model, and prompts of the queue (`queue`),
//! as messages of `anthropic`: those of the live branch in the order of the file, but each behind
//! its parent, and the others as branches.
//!
//! A streamed answer has several lines with one `message.id` and different `uuid`, one block in
//! each. Each line becomes a message, because a joined message would change with every new line.
//! Assembly joins consecutive messages of one role.
//!
//! Results of parallel calls have different lines of one answer as parents, so all results but one
//! look like abandoned branches. Therefore all lines of a live answer are live, and so are results
//! of live calls that have no result on the live branch.
//!
//! A first prompt that was edited is a second line without a parent; the older wording and its
//! answers are a branch.
//!
//! Lines with `isSidechain` or `parent_tool_use_id` belong to sub-agents and are skipped. In a file
//! with only such lines, the session of a sub-agent, they are read. Messages that the program
//! itself wrote (`isMeta`, errors of the API) were visible to the model or the person. So these
//! messages are kept with their mark.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::{
    FileMessage, Growth, LineError, SessionContent, attachments,
    entries::{Ids, SUB_AGENTS, SUMMARY, SkippedCounts},
    line::{Object, Text},
    queue::{self, QueuedPrompt},
    records::Branches,
    tree::{Node, Tree},
};

/// Members of a line that are added to its message if they are true.
const MARKS: [&str; 3] = ["isMeta", "isApiErrorMessage", "isCompactSummary"];

/// Types of lines that say only what the program did, or that repeat an answer or name a session.
const PROGRAM: [&str; 7] = [
    "ai-title",
    "file-history-snapshot",
    "permission-mode",
    "progress",
    "rate_limit_event",
    "result",
    "summary",
];

/// Types of `system` lines that say only what the program did. The output of a command of the
/// person is none of them.
const SYSTEM: [&str; 7] = [
    "api_error",
    "compact_boundary",
    "init",
    "microcompact_boundary",
    "status",
    "stop_hook_summary",
    "turn_duration",
];

/// A line that becomes a message.
struct Line<'a> {
    index: usize,
    id: String,
    is_user: bool,
    object: &'a Object<'a>,
    /// The message of a `user` or `assistant` line; empty: the line has another type.
    message: Object<'a>,
    /// Members of the message of another line, `role` first.
    made: Option<String>,
}

pub(super) fn read(
    lines: &[String],
    objects: &[Object<'_>],
    growth: Growth,
) -> Result<SessionContent, LineError> {
    let mut ids = Ids::default();
    let mut left = SkippedCounts::default();
    let queued = queue::find_prompts(objects, growth);
    let messages = read_lines(lines, objects, &queued, &mut ids, &mut left)?;
    let is_main = messages.iter().any(|line| !is_side(line.object));
    let nodes = build_nodes(objects, &messages, is_main);
    let mut tree = Tree::new(&nodes).with_rivals(list_first_prompts(&messages));
    let mut live = find_live_lines(&tree, &messages);
    let is_taken_back = |index: &usize| queued.get(index).is_some_and(|it| it.is_taken_back);
    live.retain(|index| !is_taken_back(index));
    let by_index: HashMap<usize, &Line<'_>> =
        messages.iter().map(|line| (line.index, line)).collect();
    let (mut found, mut branches) = (SessionContent::default(), Branches::default());
    for index in tree.order_entries() {
        tree.record_message(index, None);
        let Some(line) = by_index.get(&index) else { continue };
        let is_summary = line.object.is_true("isCompactSummary");
        if is_main && is_side(line.object) {
            left.count_message(SUB_AGENTS);
            continue;
        }
        let is_live = live.contains(&index);
        if is_summary && (!is_live || !found.messages.is_empty()) {
            left.count_message(SUMMARY);
            continue;
        }
        let message = FileMessage { text: write_message(line), line: index };
        if is_live {
            found.messages.push(message);
        } else {
            branches.push(&line.id, message, tree.message_before(index));
        }
        tree.record_message(index, Some(line.id.clone()));
    }
    found.branches = branches.into_list();
    left.set_aside(&found.branches);
    let first = |key: &str| objects.iter().find_map(|object| object.text(key));
    found.session = first("sessionId").or_else(|| first("session_id"));
    found.project = first("cwd");
    found.warnings = left.warnings().into_iter().chain(ids.warning()).collect();
    Ok(found)
}

/// Returns the lines that become messages.
fn read_lines<'a>(
    lines: &[String],
    objects: &'a [Object<'a>],
    queued: &HashMap<usize, QueuedPrompt>,
    ids: &mut Ids,
    left: &mut SkippedCounts,
) -> Result<Vec<Line<'a>>, LineError> {
    let mut messages = Vec::new();
    let repeated = queue::find_repeated_prompts(objects);
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let kind = object.text("type").unwrap_or_default();
        let is_message = matches!(kind.as_str(), "user" | "assistant");
        let message = object.object("message");
        let made = match kind.as_str() {
            "attachment" => object.object("attachment").and_then(|it| attachments::read(&it)),
            _ => queued.get(&index).map(|prompt| queue::build_message(&prompt.text)),
        };
        if is_message && message.is_none() {
            return Err(LineError::at(index, format!("must have a `message`, as a `{kind}` line")));
        }
        if !is_message && made.is_none() {
            let unknown = name_unknown(&kind, object).filter(|_| !repeated.contains(&index));
            unknown.into_iter().for_each(|kind| left.count_line(&kind));
            continue;
        }
        let content = object.any("message").or_else(|| object.any("attachment"));
        let id = match object.text("uuid") {
            Some(uuid) => ids.name_entry(&uuid, content.map_or("", RawValue::get)),
            None => ids.name_line(line),
        };
        let message = message.filter(|_| is_message).unwrap_or_default();
        messages.push(Line { index, id, is_user: kind != "assistant", object, message, made });
    }
    Ok(messages)
}

/// Returns the type of a line without a message, for a warning; `None`: such lines never have words
/// of a person or the model, or other lines have these words.
fn name_unknown(kind: &str, object: &Object<'_>) -> Option<String> {
    let text = object.text("subtype").unwrap_or_default();
    match (kind, object.object("attachment")) {
        ("attachment", Some(attachment)) if attachments::is_without_words(&attachment) => None,
        (_, Some(attachment)) => {
            Some(format!("attachment {}", attachment.text("type").unwrap_or_default()))
        }
        ("system", None) if SYSTEM.contains(&text.as_str()) => None,
        ("system", None) if !text.is_empty() => Some(format!("system {text}")),
        // Prompts of the queue are read apart (`queue`).
        ("queue-operation", None) => None,
        (kind, None) => (!PROGRAM.contains(&kind)).then(|| kind.to_owned()),
    }
}

/// Returns whether a line belongs to a sub-agent.
fn is_side(object: &Object<'_>) -> bool {
    object.is_true("isSidechain") || object.text("parent_tool_use_id").is_some()
}

/// Returns the nodes of the session tree. `is_main`: lines of sub-agents are no part of it.
fn build_nodes(objects: &[Object<'_>], messages: &[Line<'_>], is_main: bool) -> Vec<Node> {
    let taken: HashSet<usize> = messages.iter().map(|line| line.index).collect();
    let node = |(index, object): (usize, &Object<'_>)| {
        if is_main && is_side(object) {
            return Node::default();
        }
        let id = object.text("uuid");
        let continues = object.text("parentUuid").or_else(|| object.text("logicalParentUuid"));
        let is_message = taken.contains(&index);
        Node { continues: continues.filter(|_| id.is_some()), id, is_message }
    };
    objects.iter().enumerate().map(node).collect()
}

/// Returns the indexes of the prompts without a parent: wordings of the first prompt, of which the
/// person sent one instead of the others.
fn list_first_prompts(messages: &[Line<'_>]) -> Vec<usize> {
    let is_first = |line: &&Line<'_>| {
        let Line { object, message, made, .. } = line;
        // Lines of `stream-json` have no such member, and continue the line before.
        let is_root = object.has("parentUuid")
            && object.text("parentUuid").is_none()
            && object.text("logicalParentUuid").is_none();
        let is_marked = MARKS.iter().any(|mark| object.is_true(mark)) || is_side(object);
        let is_prompt = message.text("role").as_deref() == Some("user")
            && list_block_ids(line, "tool_use_id").is_empty();
        made.is_none() && is_root && !is_marked && is_prompt
    };
    messages.iter().filter(is_first).map(|line| line.index).collect()
}

/// Returns the indexes of the live lines.
fn find_live_lines(tree: &Tree, messages: &[Line<'_>]) -> HashSet<usize> {
    let on_branch = tree.find_live().into_iter().enumerate();
    let mut live: HashSet<usize> =
        on_branch.filter(|(_, live)| *live).map(|(index, _)| index).collect();
    let of_branch = |live: &HashSet<usize>, line: &Line<'_>| live.contains(&line.index);
    let answers: HashSet<String> = messages
        .iter()
        .filter(|line| !line.is_user && of_branch(&live, line))
        .filter_map(|line| line.message.text("id"))
        .collect();
    let of_answer = |line: &&Line<'_>| {
        !line.is_user && line.message.text("id").is_some_and(|id| answers.contains(&id))
    };
    live.extend(messages.iter().filter(of_answer).map(|line| line.index));
    let blocks = |is_user: bool, key: &'static str| -> Vec<(usize, String)> {
        let lines = messages.iter().filter(|line| line.is_user == is_user);
        lines
            .flat_map(|line| list_block_ids(line, key).into_iter().map(|id| (line.index, id)))
            .collect()
    };
    let calls: HashSet<String> = blocks(false, "id")
        .into_iter()
        .filter(|(index, _)| live.contains(index))
        .map(|(_, id)| id)
        .collect();
    let results = blocks(true, "tool_use_id");
    let answered: HashSet<String> = results
        .iter()
        .filter(|(index, _)| live.contains(index))
        .map(|(_, id)| id.clone())
        .collect();
    let missing = results.iter().filter(|(_, id)| calls.contains(id) && !answered.contains(id));
    live.extend(missing.map(|(index, _)| *index));
    live
}

/// Returns the member `key` of each `tool_result` block of a user line, or of each `tool_use` block
/// of another line.
fn list_block_ids(line: &Line<'_>, key: &str) -> Vec<String> {
    let kind = if line.is_user { "tool_result" } else { "tool_use" };
    let blocks = line.message.list("content").unwrap_or_default();
    let blocks = blocks.into_iter().filter_map(Object::from_value);
    let of_kind = blocks.filter(|block| block.text("type").as_deref() == Some(kind));
    of_kind.filter_map(|block| block.text(key)).collect()
}

/// Returns the message as written, with the entry id, the time and the marks of its line. A member
/// `id` of the message itself is renamed, and a member `timestamp` if the line has a time.
fn write_message(line: &Line<'_>) -> String {
    let Line { object, message, .. } = line;
    if let Some(made) = &line.made {
        let head = Text::default().string("id", &line.id);
        let head = head.kept("timestamp", object.any("timestamp")).end();
        let members = made.strip_prefix('{').unwrap_or_default();
        return format!("{},{members}", head.trim_end_matches('}'));
    }
    let free = |name: &str| {
        let mut name = name.to_owned();
        while message.has(&name) {
            name.push('_');
        }
        name
    };
    let time = object.any("timestamp");
    let renamed = |key: &str| match key {
        "id" => Some(free("message_id")),
        "timestamp" => time.map(|_| free("message_timestamp")),
        _ => None,
    };
    let head = Text::default().string("id", &line.id).kept("timestamp", time);
    let text = message.members().fold(head, |text, (key, value)| {
        text.raw(&renamed(key).unwrap_or_else(|| key.to_owned()), value.get())
    });
    MARKS
        .iter()
        .fold(text, |text, mark| match object.is_true(mark) {
            true => text.raw(&free(mark), "true"),
            false => text,
        })
        .end()
}
