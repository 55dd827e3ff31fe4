//! Reads sessions of Claude Code.
//!
//! In: lines with `type`. Lines of a conversation have `uuid`, and `parentUuid` is the `uuid` of
//! their parent (after a compaction `logicalParentUuid`). Out: the `user` and `assistant` lines of
//! the live branch, in the order of the file, as messages of `anthropic`.
//!
//! A streamed answer has several lines with one `message.id` and different `uuid`, one block in
//! each. Each line becomes a message, because a joined message would change with every new line.
//! Assembly joins consecutive messages of one role.
//!
//! Results of parallel calls have different lines of one answer as parents, so all results but one
//! look like abandoned branches. Therefore all lines of a live answer are live, and so are results
//! of live calls that have no result on the live branch.
//!
//! Lines with `isSidechain` belong to sub-agents and are skipped. In a file with only such lines,
//! the session of a sub-agent, they are read. Messages that the program itself wrote (`isMeta`,
//! errors of the API) were visible to the model or the person. So these messages are kept with
//! their mark.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{
    FileMessage, Found, LineError,
    entries::{ABANDONED, Ids, Left, SUMMARY},
    line::{Object, Text},
    tree::{self, Node},
};

const SIDECHAIN: &str = "messages of sub-agents";

/// Members of a line that are added to its message if they are true.
const MARKS: [&str; 3] = ["isMeta", "isApiErrorMessage", "isCompactSummary"];

/// A `user` or `assistant` line.
struct Line<'a> {
    index: usize,
    id: String,
    is_user: bool,
    object: &'a Object<'a>,
    message: Object<'a>,
}

pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> Result<Found, LineError> {
    let mut ids = Ids::default();
    let mut left = Left::default();
    let mut messages = Vec::new();
    for (index, (line, object)) in lines.iter().zip(objects).enumerate() {
        let kind = object.text("type").unwrap_or_default();
        if kind != "user" && kind != "assistant" {
            left.other(&kind);
            continue;
        }
        let Some(message) = object.object("message") else {
            return Err(LineError::at(index, format!("must have a `message`, as a `{kind}` line")));
        };
        let id = match object.text("uuid") {
            Some(uuid) => ids.own(&uuid, object.any("message").map_or("", RawValue::get)),
            None => ids.of_line(line),
        };
        messages.push(Line { index, id, is_user: kind == "user", object, message });
    }
    let is_main = messages.iter().any(|line| !line.object.is_true("isSidechain"));
    let live = live(objects, &messages, is_main);
    let mut taken = Vec::new();
    for line in &messages {
        if is_main && line.object.is_true("isSidechain") {
            left.message(SIDECHAIN);
        } else if !live.contains(&line.index) {
            left.message(ABANDONED);
        } else if !taken.is_empty() && line.object.is_true("isCompactSummary") {
            left.message(SUMMARY);
        } else {
            taken.push(FileMessage { text: text(line), line: line.index });
        }
    }
    let warnings = left.warnings().into_iter().chain(ids.warning()).collect();
    Ok(Found { messages: taken, warnings })
}

/// Returns the indexes of the live lines. `is_main`: lines of sub-agents are no part of the tree.
fn live(objects: &[Object<'_>], messages: &[Line<'_>], is_main: bool) -> HashSet<usize> {
    let node = |object: &Object<'_>| {
        if is_main && object.is_true("isSidechain") {
            return Node::default();
        }
        let id = object.text("uuid");
        let continues = object.text("parentUuid").or_else(|| object.text("logicalParentUuid"));
        let is_message = matches!(object.text("type").as_deref(), Some("user" | "assistant"));
        Node { continues: continues.filter(|_| id.is_some()), id, is_message }
    };
    let nodes: Vec<Node> = objects.iter().map(node).collect();
    let on_branch = tree::live(&nodes).into_iter().enumerate();
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
        lines.flat_map(|line| ids_of(line, key).into_iter().map(|id| (line.index, id))).collect()
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
fn ids_of(line: &Line<'_>, key: &str) -> Vec<String> {
    let kind = if line.is_user { "tool_result" } else { "tool_use" };
    let blocks = line.message.list("content").unwrap_or_default();
    let blocks = blocks.into_iter().filter_map(Object::of);
    let of_kind = blocks.filter(|block| block.text("type").as_deref() == Some(kind));
    of_kind.filter_map(|block| block.text(key)).collect()
}

/// Returns the message as written, with the entry id, the time and the marks of its line. A member
/// `id` of the message itself is renamed, and a member `timestamp` if the line has a time.
fn text(line: &Line<'_>) -> String {
    let Line { object, message, .. } = line;
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
