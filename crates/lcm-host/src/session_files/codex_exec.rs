//! Reads the output of `codex exec --json`.
//! Read from files of the Codex CLI, 2026-11-28.
//!
//! In: events `thread.*`, `turn.*`, `item.*` and `error`. Out: messages of `lcm`. An item counts
//! as its newest event says: `item.completed`, or while the item lasts `item.started`. A command,
//! a call of a tool server and a search become a call and, once it is complete, its result.
//!
//! Each run of the program begins with `thread.started` and counts its items anew, so several runs
//! in one file are told apart by their place: the items of the second run of a thread have `run 2/`
//! before their ids, and the id of the thread is the prefix of all. Each thread is a conversation
//! of its own. The prompt is not in the output.

use std::collections::HashMap;

use super::{
    SessionContent,
    formats::Fit,
    line::{Object, Text, quoted},
    records::{self, Collector, Draft},
};

/// Members of a call that its parts have.
const USED: [&str; 10] = [
    "id",
    "type",
    "item_type",
    "command",
    "aggregated_output",
    "arguments",
    "result",
    "error",
    "query",
    "changes",
];
/// Members of a call that its result has.
const RESULT: [&str; 2] = ["status", "exit_code"];

/// Types of events that have no item.
const PROGRAM: [&str; 3] = ["thread.started", "turn.started", "turn.completed"];

/// Returns how a record fits the format.
pub(super) fn compare_record(object: &Object<'_>) -> Fit {
    let kind = object.text("type").unwrap_or_default();
    if kind == "error" {
        return Fit::Possible;
    }
    let is_event = ["thread.", "turn.", "item."].iter().any(|prefix| kind.starts_with(prefix));
    let has_more = kind == "thread.started" || object.any("item").is_some();
    match (is_event, has_more) {
        (true, true) => Fit::Typical,
        (true, false) => Fit::Possible,
        (false, _) => Fit::No,
    }
}

/// A run of the program.
struct Run {
    /// Indexes of its events.
    events: std::ops::Range<usize>,
    /// Id of the thread; empty: the run has none.
    thread: String,
    /// Number of the run within the thread, from 1.
    number: usize,
}

/// Reads the threads of a file, in the order of their first events; at least one.
pub(super) fn read(lines: &[String], objects: &[Object<'_>]) -> Vec<SessionContent> {
    let mut threads: Vec<(String, Collector)> = Vec::new();
    for run in list_runs(objects) {
        let known = threads.iter().position(|(thread, _)| *thread == run.thread);
        let index = known.unwrap_or(threads.len());
        if known.is_none() {
            let mut out = Collector::default();
            out.ids.enter_session(&run.thread);
            let thread = Some(run.thread.clone()).filter(|thread| !thread.is_empty());
            out.set_session(thread, None);
            threads.push((run.thread.clone(), out));
        }
        if let Some((_, out)) = threads.get_mut(index) {
            read_run(out, &run, lines, objects);
        }
    }
    threads.into_iter().map(|(_, out)| out.into_content()).collect()
}

/// Lists the runs of a file. Events before the first `thread.started` belong to the first run.
fn list_runs(objects: &[Object<'_>]) -> Vec<Run> {
    let is_start = |object: &Object<'_>| object.text("type").as_deref() == Some("thread.started");
    let starts = objects.iter().enumerate().filter(|(_, object)| is_start(object));
    let mut starts: Vec<usize> = starts.map(|(index, _)| index).collect();
    match starts.first_mut() {
        Some(first) => *first = 0,
        None => starts.push(0),
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut runs = Vec::new();
    for (place, start) in starts.iter().enumerate() {
        let events = *start..starts.get(place + 1).copied().unwrap_or(objects.len());
        let events_of_run = objects.get(events.clone()).unwrap_or_default();
        let thread = events_of_run.iter().find_map(|object| object.text("thread_id"));
        let thread = thread.unwrap_or_default();
        let count = counts.entry(thread.clone()).or_default();
        *count += 1;
        runs.push(Run { events, thread, number: *count });
    }
    runs
}

/// Adds the messages of a run.
fn read_run(out: &mut Collector, run: &Run, lines: &[String], objects: &[Object<'_>]) {
    let item_id = |object: &Object<'_>| object.object("item").and_then(|item| item.text("id"));
    let events = objects.iter().zip(lines).enumerate();
    let events = events.skip(run.events.start).take(run.events.len());
    let newest: HashMap<String, usize> =
        events.clone().filter_map(|(index, (object, _))| Some((item_id(object)?, index))).collect();
    for (index, (object, line)) in events {
        let Some(item) = object.object("item") else {
            let kind = object.text("type").unwrap_or_default();
            if !PROGRAM.contains(&kind.as_str()) {
                out.left.count_line(&kind);
            }
            continue;
        };
        let id = item.text("id");
        if id.as_ref().is_some_and(|id| newest.get(id) != Some(&index)) {
            continue;
        }
        let id = id.map(|id| match run.number {
            1 => id,
            number => format!("run {number}/{id}"),
        });
        read_item(out, (index, line), id.as_deref(), &item);
    }
}

/// Adds the messages of an item. `id`: its id within the thread.
fn read_item(
    out: &mut Collector,
    (index, line): (usize, &str),
    id: Option<&str>,
    item: &Object<'_>,
) {
    // Early versions name the type of an item `item_type`.
    let kind = item.text("type").or_else(|| item.text("item_type")).unwrap_or_default();
    let text = item.text("text").unwrap_or_default();
    let add = |out: &mut Collector, role, part: String| {
        let draft = Draft::new(role).with_id(id, None).with_parts(Vec::from([part]));
        out.push(index, line, &draft.with_source(item, &["id", "type", "item_type", "text"]))
    };
    match kind.as_str() {
        "agent_message" | "assistant_message" => {
            add(out, "assistant", records::text_part(&text));
        }
        "user_message" => {
            add(out, "user", records::text_part(&text));
        }
        "reasoning" => {
            add(out, "assistant", records::reasoning_part(&text));
        }
        "error" => {
            let message = item.text("message").unwrap_or_default();
            add(out, "assistant", records::text_part(&format!("Error: {message}")));
        }
        kind => {
            let made = || format!("{kind} {index}");
            let id = id.map_or_else(made, str::to_owned);
            read_call(out, (index, line), (&id, kind), item);
        }
    }
}

/// Adds a call with its result.
fn read_call(
    out: &mut Collector,
    (index, line): (usize, &str),
    (id, kind): (&str, &str),
    item: &Object<'_>,
) {
    let (name, input, output) = match kind {
        "command_execution" => (
            "command_execution".to_owned(),
            item.any("command").map(|command| format!("{{\"command\":{}}}", command.get())),
            item.any("aggregated_output").map(|output| output.get().to_owned()),
        ),
        "mcp_tool_call" => (
            format!(
                "{}.{}",
                item.text("server").unwrap_or_default(),
                item.text("tool").unwrap_or_default()
            ),
            item.any("arguments").map(|input| input.get().to_owned()),
            item.any("result").or_else(|| item.any("error")).map(|it| it.get().to_owned()),
        ),
        "web_search" => (
            "web_search".to_owned(),
            item.any("query").map(|query| format!("{{\"query\":{}}}", query.get())),
            Some(quoted("done")),
        ),
        "file_change" => (
            "file_change".to_owned(),
            item.any("changes").map(|changes| format!("{{\"changes\":{}}}", changes.get())),
            item.any("status").map(|status| status.get().to_owned()),
        ),
        // The plan of the model, which it changes while it works.
        "todo_list" => return,
        _ => {
            out.left.count_line(&format!("item {kind}"));
            return;
        }
    };
    let call = records::call_part(id, &name, input.as_deref().unwrap_or("{}"));
    // Members that change while the item lasts belong to the result.
    let of_call: Vec<&str> = USED.into_iter().chain(RESULT).collect();
    let draft = Draft::new("assistant").with_id(Some(id), None).with_parts(Vec::from([call]));
    out.push(index, line, &draft.with_source(item, &of_call));
    let status = item.text("status").unwrap_or_default();
    if let Some(output) = output.filter(|_| status != "in_progress") {
        let failed = matches!(status.as_str(), "failed" | "declined");
        let part = records::result_part(id, &name, &output, failed);
        let result_id = format!("{id}/result");
        let mut draft =
            Draft::new("tool").with_id(Some(&result_id), None).with_parts(Vec::from([part]));
        draft.source =
            RESULT.iter().fold(Text::default(), |text, key| text.kept(key, item.any(key))).end();
        out.push(index, line, &draft);
    }
}
