//! `lcm conversations`, `lcm status`, `lcm check` and `lcm digest`: show the state of the store.
//!
//! In: a conversation or the store. Out: tables and lines for people, or JSON of the component.

use lcm_host::{Checked, Result};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    End,
    arguments::{Conversations, Digest, Global},
    commands::recall::{field, list, parse},
    output::{self, Table, plain},
    progress::Progress,
    session::{self, Session},
};

pub(crate) fn conversations(global: &Global, options: &Conversations) -> Result<End> {
    #[derive(Serialize)]
    struct Output {
        conversations: Vec<Box<RawValue>>,
    }
    let session = Session::open(global)?;
    let kind = if options.deletions { "deletions" } else { "conversations" };
    let conversations = list(&session, kind, None)?;
    if session.json {
        output::json(&Output { conversations })?;
        return Ok(End::Done);
    }
    if options.deletions {
        let mut table = Table::new(&["conversation"]);
        for conversation in &conversations {
            let conversation = parse("admin.listing", conversation.get())?;
            table.row(vec![field(&conversation, "conversation")]);
        }
        output::text(&table.render())?;
        return Ok(End::Done);
    }
    if conversations.is_empty() {
        output::text(&format!("no conversation in the store `{}`\n", session::opened_store()))?;
        return Ok(End::Done);
    }
    let mut table = Table::new(&[
        "conversation",
        ">messages",
        ">context tokens",
        ">revision",
        "family",
        "archived",
    ]);
    for conversation in &conversations {
        let conversation = parse("admin.listing", conversation.get())?;
        let tokens = field(&conversation, "context_tokens");
        table.row(vec![
            field(&conversation, "conversation"),
            field(&conversation, "messages"),
            tokens,
            field(&conversation, "revision"),
            field(&conversation, "family"),
            conversation.get("archived").map_or_else(String::new, archived),
        ]);
    }
    output::text(&table.render())?;
    Ok(End::Done)
}

/// Formats the cause of an archival, and the conversation that continues.
pub(super) fn archived(archived: &Value) -> String {
    match archived.get("successor").and_then(Value::as_str) {
        Some(successor) => format!("{}, continues in {successor}", field(archived, "cause")),
        None => field(archived, "cause"),
    }
}

pub(crate) fn status(global: &Global) -> Result<End> {
    let session = Session::open(global)?;
    let text = session.lcm.status(Some(session.conversation), session.now())?;
    let mut status = parse("admin.status", &text)?;
    if let Some(members) = status.as_object_mut() {
        members.insert("file_bytes".to_owned(), json!(session.lcm.bytes_on_disk()));
    }
    if session.json {
        output::json(&status)?;
    } else {
        output::text(&status_for_people(&status))?;
    }
    Ok(End::Done)
}

fn status_for_people(status: &Value) -> String {
    let mut out = String::new();
    let mut say = |key: &str, text: String| {
        if !text.is_empty() {
            out.push_str(&format!("{key:<18} {text}\n"));
        }
    };
    say("conversation", field(status, "conversation"));
    say("family", field(status, "family"));
    say("archived", status.get("archived").map_or_else(String::new, archived));
    for key in ["revision", "messages", "message_tokens"] {
        say(&key.replace('_', " "), field(status, key));
    }
    if let Some(context) = status.get("context") {
        let size =
            format!("{} tokens in {} items", field(context, "tokens"), field(context, "items"));
        say("context", size);
    }
    for row in status.get("summaries").and_then(Value::as_array).into_iter().flatten() {
        let size = format!("{} of {} tokens", field(row, "count"), field(row, "tokens"));
        say(&format!("summaries depth {}", field(row, "depth")), size);
    }
    if let Some(count) = status.get("provisional").filter(|count| **count != json!(0)) {
        say("provisional", format!("{} summaries, to be made again", plain(count)));
    }
    let withdrawn = status.get("withdrawn_messages").and_then(Value::as_object);
    if let Some(counts) = withdrawn.filter(|counts| counts.values().any(|count| *count != json!(0)))
    {
        say("withdrawn", pairs(counts));
    }
    for row in status.get("calibrations").and_then(Value::as_array).into_iter().flatten() {
        let (factor, reports) = (field(row, "factor_permille"), field(row, "reports"));
        say(
            "calibration",
            format!("{}: {factor} thousandths, {reports} reports", field(row, "model")),
        );
    }
    for kind in ["turns", "summaries"] {
        let spent = status.get("usage").and_then(|usage| usage.get(kind));
        let reported = |spent: &&Map<String, Value>| spent.get("calls") != Some(&json!(0));
        if let Some(spent) = spent.and_then(Value::as_object).filter(reported) {
            say(&format!("usage of {kind}"), pairs(spent));
        }
    }
    say("compression ratio", field(status, "compression_ratio"));
    for key in ["fresh_tail", "debt", "breakers", "ledger", "file_bytes"] {
        match status.get(key) {
            Some(Value::Object(object)) => say(&key.replace('_', " "), pairs(object)),
            _ => say(&key.replace('_', " "), field(status, key)),
        }
    }
    out
}

/// Formats the members of an object on one line, as `name value` with commas.
fn pairs(object: &Map<String, Value>) -> String {
    let pairs = object.iter().map(|(name, value)| format!("{name} {}", plain(value)));
    pairs.collect::<Vec<_>>().join(", ")
}

pub(crate) fn check(global: &Global) -> Result<End> {
    #[derive(Serialize)]
    struct Output<'a> {
        ok: bool,
        checks: &'a [Box<RawValue>],
        metrics: Option<&'a RawValue>,
    }
    let session = Session::open(global)?;
    let progress = Progress::open("check");
    let checked = session.lcm.check_all(session.conversation, &session.cancel)?;
    drop(progress);
    if session.json {
        let metrics = checked.metrics.as_deref();
        output::json(&Output { ok: checked.ok, checks: &checked.checks, metrics })?;
    } else {
        output::text(&checked_for_people(&checked)?)?;
    }
    Ok(if checked.ok { End::Done } else { End::Findings })
}

fn checked_for_people(checked: &Checked) -> Result<String> {
    let mut table = Table::new(&["check", "status", "message"]);
    for one in &checked.checks {
        let one = parse("admin.check", one.get())?;
        table.row(vec![field(&one, "name"), field(&one, "status"), field(&one, "message")]);
    }
    let end = if checked.ok { "whole" } else { "damaged" };
    Ok(format!("{}{end}\n", table.render()))
}

pub(crate) fn digest(global: &Global, options: &Digest) -> Result<End> {
    let session = Session::open(global)?;
    let progress = Progress::open("digest");
    let sha256 = session.lcm.digest_all(options.logical, &session.cancel)?;
    drop(progress);
    if session.json {
        output::json(&json!({ "sha256": sha256 }))?;
    } else {
        output::text(&format!("{sha256}\n"))?;
    }
    Ok(End::Done)
}
