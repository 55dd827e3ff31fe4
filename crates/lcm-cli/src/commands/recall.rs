//! `lcm describe`, `lcm expand`, `lcm messages` and `lcm summaries`: read what is stored.
//!
//! In: ids or ranges. Out: texts and tables for people, or the JSON of the component. Other
//! commands use `parse`, `field` and `list` of this module.

use std::io::{BufWriter, Write as _};

use lcm_host::{Code, Error, ExpandOptions, Expanded, GrantCharge, Result};
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    End,
    arguments::{Describe, Expand, Global, Messages, Summaries},
    commands::assemble::said,
    output::{self, Table, count, line, number, plain},
    session::Session,
    tree::{self, Node},
};

/// Largest number of characters of a message to show to people.
const SHOWN_MAX: usize = 80;

/// Fields of a description to show before its text, in this order.
const DESCRIBED: [&str; 34] = [
    "id",
    "entry_id",
    "kind",
    "name",
    "mime",
    "bytes",
    "lines",
    "role",
    "seq",
    "depth",
    "level",
    "capped",
    "tokens",
    "source_tokens",
    "messages",
    "message_tokens",
    "context_tokens",
    "summaries",
    "descendant_count",
    "seq_first",
    "seq_last",
    "earliest_at",
    "latest_at",
    "created_at",
    "model",
    "finish",
    "trust",
    "withdrawn",
    "findings",
    "source_ids",
    "derived_ids",
    "version",
    "newest",
    "previous_id",
];

/// Parses the JSON result of `function`.
pub(crate) fn parse(function: &str, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(Code::Internal, format!("`{function}` returned unexpected JSON: {error}"))
    })
}

/// Formats a field of a JSON object for people; empty if the field is absent or null.
pub(crate) fn field(value: &Value, key: &str) -> String {
    value.get(key).filter(|field| !field.is_null()).map(plain).unwrap_or_default()
}

/// Returns the time of the message of a row, `created_at`; `undated` if it has none.
pub(super) fn message_time(row: &Value) -> String {
    Some(field(row, "created_at"))
        .filter(|time| !time.is_empty())
        .unwrap_or_else(|| "undated".to_owned())
}

/// Returns the reason why the message of a row is withdrawn, to print after the role; empty: the
/// message is not withdrawn.
pub(super) fn format_mark(row: &Value) -> &'static str {
    match row.get("withdrawn").and_then(Value::as_str) {
        None => "",
        Some("revision") => ", another form",
        Some(_) => ", set aside",
    }
}

/// Formats the member `grant` of an answer; empty if the read used no grant.
pub(crate) fn granted(grant: Option<&Value>) -> String {
    let grant = grant.and_then(|grant| GrantCharge::deserialize(grant).ok());
    grant.as_ref().map(describe_charge).unwrap_or_default()
}

/// Formats the tokens that a read spent of its grant.
pub(crate) fn describe_charge(grant: &GrantCharge) -> String {
    let cut = if grant.truncated { ", cut to that" } else { "" };
    let (tokens, left) = (number(grant.tokens), number(grant.tokens_left));
    format!("\n[{tokens} tokens of the grant{cut}, {left} left]\n")
}

pub(crate) fn describe(global: &Global, options: &Describe) -> Result<End> {
    let session = Session::open(global)?;
    let wanted = [
        ("start_line", options.start_line),
        ("end_line", options.end_line),
        ("start_byte", options.start_byte),
        ("end_byte", options.end_byte),
        ("bytes_max", options.bytes_max),
    ];
    let given =
        wanted.into_iter().filter_map(|(key, number)| Some((key.to_owned(), number?.into())));
    let all = options.all_conversations.then(|| ("all_conversations".to_owned(), true.into()));
    let wanted = Value::Object(given.chain(all).collect()).to_string();
    let (conversation, now) = (session.conversation, session.now());
    let text =
        session.lcm.describe(conversation, &options.id, &wanted, options.grant.as_deref(), now)?;
    if session.json {
        output::text(&(text + "\n"))?;
        return Ok(End::Done);
    }
    let description = parse("recall.describe", &text)?;
    let mut out = String::new();
    for key in DESCRIBED {
        if let Some(value) = description.get(key).filter(|value| !value.is_null()) {
            out.push_str(&format!("{key:<16}  {}\n", plain(value)));
        }
    }
    // The first row of a summary's subtree is the summary itself, which needs no table.
    let is_summary = field(&description, "kind") != "conversation";
    let subtree = description.get("subtree").and_then(Value::as_array);
    if let Some(subtree) = subtree.filter(|subtree| subtree.len() > 1 || !is_summary) {
        let heading = ["", ">depth", ">tokens", ">subtree_tokens", ">message_tokens"];
        let mut table = Table::new(&heading);
        for node in subtree {
            let keys = ["id", "depth", "tokens", "subtree_tokens", "message_tokens"];
            table.row(keys.iter().map(|key| field(node, key)).collect());
        }
        out.push('\n');
        out.push_str(&table.render());
    }
    for key in ["exploration", "text", "content", "raw"] {
        if let Some(text) = description.get(key).and_then(Value::as_str) {
            out.push_str(&format!("\n{}\n", text.trim_end()));
        }
    }
    out.push_str(&granted(description.get("grant")));
    if description.get("truncated") == Some(&Value::Bool(true)) {
        // `--start-byte` takes a number without the separators of `field`.
        let next = description.get("end_byte").and_then(Value::as_u64).unwrap_or_default();
        let (end, bytes) = (field(&description, "end_byte"), field(&description, "bytes"));
        out.push_str(&format!(
            "\n[cut at byte {end} of {bytes}; continue with --start-byte {next}]\n"
        ));
    }
    output::text(&out)?;
    Ok(End::Done)
}

#[derive(Serialize)]
struct ExpandOutput<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<GrantCharge>,
    id: &'a str,
    summaries: &'a [Box<RawValue>],
    messages: &'a [Box<RawValue>],
    tokens: u64,
    truncated: bool,
    cursor: Option<&'a str>,
}

pub(crate) fn expand(global: &Global, options: &Expand) -> Result<End> {
    let session = Session::open(global)?;
    let expand = ExpandOptions {
        depth_max: options.depth_max,
        include_messages: options.include_messages,
        tokens_max: options.tokens_max,
        cursor: options.cursor.clone(),
        grant: options.grant.clone(),
    };
    let (now, cancel) = (session.now(), &session.cancel);
    let expanded =
        session.lcm.expand_all(session.conversation, &options.id, &expand, now, cancel)?;
    if session.json {
        output::json(&ExpandOutput {
            grant: expanded.grant,
            id: &expanded.id,
            summaries: &expanded.summaries,
            messages: &expanded.messages,
            tokens: expanded.tokens,
            truncated: expanded.truncated,
            cursor: expanded.cursor.as_deref(),
        })?;
    } else {
        output::text(&expanded_for_people(&expanded)?)?;
    }
    Ok(End::Done)
}

fn expanded_for_people(expanded: &Expanded) -> Result<String> {
    let mut out = String::new();
    for summary in &expanded.summaries {
        let summary = parse("recall.expand", summary.get())?;
        out.push_str(&format!(
            "{}  {}, depth {}, {} tokens\n{}\n\n",
            field(&summary, "id"),
            field(&summary, "kind"),
            field(&summary, "depth"),
            field(&summary, "tokens"),
            field(&summary, "text").trim_end(),
        ));
    }
    for message in &expanded.messages {
        let message = parse("recall.expand", message.get())?;
        out.push_str(&format!(
            "#{} {}{} {} ({} tokens)\n{}\n",
            field(&message, "seq"),
            field(&message, "role"),
            format_mark(&message),
            message_time(&message),
            field(&message, "tokens"),
            field(&message, "raw"),
        ));
    }
    out.push_str(&format!(
        "{}: {}, {}, {}\n",
        expanded.id,
        count(length(&expanded.summaries), "summary"),
        count(length(&expanded.messages), "message"),
        count(expanded.tokens, "token"),
    ));
    if let Some(grant) = &expanded.grant {
        out.push_str(&describe_charge(grant));
    }
    if let Some(cursor) = &expanded.cursor {
        out.push_str(&format!("more follows: --cursor {cursor}\n"));
    }
    Ok(out)
}

fn length<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

#[derive(Serialize)]
struct MessagesOutput {
    messages: Vec<Box<RawValue>>,
}

pub(crate) fn messages(global: &Global, options: &Messages) -> Result<End> {
    let from = options.seq_first.unwrap_or(1);
    if from == 0 {
        return Err(Error::new(Code::InvalidInput, "`--seq-first` must be at least 1, got 0"));
    }
    let to = options.seq_last.unwrap_or(u64::MAX);
    if to < from {
        let message = format!("`--seq-first` must be at most `--seq-last` {to}, got {from}");
        return Err(Error::new(Code::InvalidInput, message));
    }
    let session = Session::open(global)?;
    if options.raw {
        raw_messages(&session, from, to)?;
        return Ok(End::Done);
    }
    let messages = list(&session, "messages", Some(format!("{from}-{to}")))?;
    if session.json {
        output::json(&MessagesOutput { messages })?;
        return Ok(End::Done);
    }
    let mut table = Table::new(&[">seq", "role", ">tokens", "created", "text"]);
    for message in &messages {
        let message = parse("admin.listing", message.get())?;
        let raw: Value =
            serde_json::from_str(&field(&message, "raw")).unwrap_or_else(|_| message.clone());
        table.row(vec![
            field(&message, "seq"),
            field(&message, "role") + format_mark(&message),
            field(&message, "tokens"),
            message_time(&message),
            line(&said(&raw), SHOWN_MAX),
        ]);
    }
    output::text(&table.render())?;
    Ok(End::Done)
}

fn raw_messages(session: &Session<'_>, from: u64, to: u64) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, Stdout);
    let unwritten = |error: std::io::Error| Error::new(Code::Internal, error.to_string());
    session.lcm.messages_all(session.conversation, from, to, &session.cancel, &mut |message| {
        out.write_all(message.as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(unwritten)
    })?;
    out.flush().map_err(unwritten)
}

/// Standard output; if the reader has closed the pipe, the program ends with success.
struct Stdout;

impl std::io::Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = std::io::stdout().lock().write(bytes);
        if written.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
            std::process::exit(0);
        }
        written
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stdout().lock().flush()
    }
}

/// Reads the items of a list of the conversation, or of the list of conversations, from `cursor`
/// on; `None`: from the beginning.
pub(crate) fn list(
    session: &Session<'_>,
    kind: &str,
    cursor: Option<String>,
) -> Result<Vec<Box<RawValue>>> {
    let mut items = Vec::new();
    let conversation = (kind != "conversations").then_some(session.conversation);
    session.lcm.list_all(kind, conversation, cursor, &session.cancel, &mut |item| {
        items.push(item.to_owned());
        Ok(())
    })?;
    Ok(items)
}

#[derive(Serialize)]
struct SummariesOutput {
    summaries: Vec<Box<RawValue>>,
}

pub(crate) fn summaries(global: &Global, options: &Summaries) -> Result<End> {
    let session = Session::open(global)?;
    let summaries = list(&session, "summaries", None)?;
    if session.json {
        output::json(&SummariesOutput { summaries })?;
        return Ok(End::Done);
    }
    let mut summaries: Vec<Value> = summaries
        .iter()
        .map(|summary| parse("admin.listing", summary.get()))
        .collect::<Result<_>>()?;
    let place = |value: &Value, key| value.get(key).and_then(Value::as_u64);
    summaries.sort_by_key(|summary| (place(summary, "seq_first"), place(summary, "depth")));
    if options.tree {
        output::text(&picture(&summaries))?;
        return Ok(End::Done);
    }
    let heading = ["id", "kind", ">depth", "level", ">tokens", ">from", ">messages"];
    let mut table = Table::new(&heading);
    for summary in &summaries {
        table.row(vec![
            field(summary, "id"),
            field(summary, "kind"),
            field(summary, "depth"),
            field(summary, "level"),
            field(summary, "tokens"),
            field(summary, "source_tokens"),
            span(summary),
        ]);
    }
    output::text(&table.render())?;
    Ok(End::Done)
}

fn picture(summaries: &[Value]) -> String {
    let nodes: Vec<Node> = summaries
        .iter()
        .map(|summary| {
            let sources = summary.get("source_ids").and_then(Value::as_array);
            let sources = sources.into_iter().flatten().filter_map(Value::as_str);
            Node {
                id: field(summary, "id"),
                label: format!(
                    "{}  {}, depth {}, {} tokens, messages {}",
                    field(summary, "id"),
                    field(summary, "kind"),
                    field(summary, "depth"),
                    field(summary, "tokens"),
                    span(summary),
                ),
                sources: sources.map(str::to_owned).collect(),
            }
        })
        .collect();
    tree::draw(&nodes)
}

fn span(value: &Value) -> String {
    let at = |key: &str| value.get(key).and_then(Value::as_u64);
    match (at("seq_first"), at("seq_last")) {
        (Some(first), Some(last)) if first != last => {
            format!("{}-{}", number(first), number(last))
        }
        (Some(first), _) => number(first),
        _ => String::new(),
    }
}
