//! `lcm demo`: runs the main commands on a built-in transcript, in a store in memory.
//!
//! In: nothing. Out: the result of each step, and whether every message came back byte for byte.
//! For that comparison the messages are read by seq, and again by expanding the items of the
//! assembled context.

use lcm_host::{
    CompactOptions, CompactReport, ExpandOptions, IngestOptions, Result,
    context::{Assembled, Item, Options},
    types::Dialect,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    assemble, compact, grep,
    recall::{field, parse},
};
use crate::{
    End,
    arguments::Global,
    input::Transcript,
    output::{self, count, line, number},
    session::Session,
};

/// Search word of the demo, from messages that are summarised before the search.
const SOUGHT: &str = "TestSchedulerFiresOncePerSlot";
const TRANSCRIPT: &[u8] = include_bytes!("../../demo/transcript.jsonl");
const BUDGET: u32 = 8_000;
/// Levels to expand; the summaries of the transcript have fewer.
const ALL_LEVELS: u32 = 64;
/// Largest number of characters to show of a message.
const SHOWN_MAX: usize = 84;

#[derive(Serialize)]
struct Output<'a> {
    messages: usize,
    bytes: usize,
    budget: u32,
    passes: usize,
    tokens_before: u32,
    tokens_after: u32,
    tokens_assembled: u32,
    expanded: Option<&'a str>,
    check_ok: bool,
    byte_for_byte: bool,
}

/// The messages that one context item covers.
struct Fetched {
    seq_first: u64,
    texts: Vec<String>,
}

pub(crate) fn run(global: &Global) -> Result<End> {
    let global = Global { store: Some("memory:".to_owned()), ..global.clone() };
    let mut transcript = Transcript::default();
    transcript.add("demo".as_ref(), &mut &*TRANSCRIPT, false)?;
    let messages = transcript.messages;
    let session = Session::open(&global)?;
    let tell = |text: String| if session.json { Ok(()) } else { output::text(&text) };

    let ingest = IngestOptions::new(Dialect::Lcm, session.clock);
    let stored = session.lcm.ingest(
        session.conversation,
        &messages,
        &ingest,
        &session.cancel,
        &mut |_| (),
    )?;
    tell(format!(
        "A coding agent hunts a flaky scheduler: a transcript that ships with lcm.\n\n\
         1. ingest: {} of {}, kept as they are\n\n",
        count(stored.ingested, "message"),
        count(stored.context_tokens, "token"),
    ))?;

    let options = CompactOptions::new(BUDGET, session.clock);
    let report =
        session.lcm.compact(session.conversation, &options, &session.cancel, &mut |_| ())?;
    tell(compacted(&report))?;

    let assembled = assembly(&session)?;
    tell(format!(
        "3. assemble: the context of the agent, {} of {} tokens\n{}\n",
        number(u64::from(assembled.tokens)),
        number(u64::from(BUDGET)),
        indented(&assemble::messages(&assembled)),
    ))?;
    tell(found(&session)?)?;

    let fetched =
        assembled.items.iter().map(|item| fetch(&session, item)).collect::<Result<Vec<_>>>()?;
    let expanded = assembled.items.iter().zip(&fetched).find(|(item, _)| item.kind != "message");
    if let Some((item, fetched)) = expanded {
        tell(expanded_for_people(item, fetched)?)?;
    }

    let checked = session.lcm.check_all(session.conversation, &session.cancel)?;
    tell(format!(
        "6. check: {}, {}\n\n",
        count(u64::try_from(checked.checks.len()).unwrap_or(u64::MAX), "check"),
        if checked.ok { "all pass" } else { "with findings" },
    ))?;

    let same = by_number(&session)? == messages && from_context(&fetched) == messages;
    let bytes = messages.iter().map(String::len).sum();
    if session.json {
        output::json(&Output {
            messages: messages.len(),
            bytes,
            budget: BUDGET,
            passes: report.passes.len(),
            tokens_before: report.tokens_before,
            tokens_after: report.tokens_after,
            tokens_assembled: assembled.tokens,
            expanded: expanded.map(|(item, _)| item.id.as_str()),
            check_ok: checked.ok,
            byte_for_byte: same,
        })?;
    }
    tell(verdict(same, messages.len(), bytes))?;
    Ok(if same && checked.ok { End::Done } else { End::Findings })
}

/// Searches for [`SOUGHT`], and formats the result.
fn found(session: &Session<'_>) -> Result<String> {
    let query = json!({"pattern": SOUGHT, "mode": "full-text", "scope": "messages", "limit": 2});
    let (conversation, now) = (session.conversation, session.now());
    let answer = session.lcm.grep(conversation, &query.to_string(), None, now)?;
    let hits = grep::for_people(&parse("recall.grep", &answer)?, false);
    Ok(format!("4. grep: `{SOUGHT}`, summarised or not\n{}\n", indented(&hits)))
}

/// Formats the last line of the demo.
fn verdict(same: bool, messages: usize, bytes: usize) -> String {
    let bytes = count(u64::try_from(bytes).unwrap_or(u64::MAX), "byte");
    if same {
        format!("All {messages} messages came back byte for byte ({bytes} compared).\n")
    } else {
        format!("NOT all of {messages} messages came back byte for byte.\n")
    }
}

fn compacted(report: &CompactReport) -> String {
    format!(
        "2. compact: to fit {} tokens, with summaries made offline (no model, no key)\n{}   {} to \
         {} tokens\n\n",
        number(u64::from(BUDGET)),
        indented(&compact::passes(&report.passes)),
        number(u64::from(report.tokens_before)),
        number(u64::from(report.tokens_after)),
    )
}

fn assembly(session: &Session<'_>) -> Result<Assembled> {
    let options = Options {
        policy: None,
        prompt: None,
        reserve_tokens: 0,
        live_messages: Vec::new(),
        previous: None,
        explain: true,
        extra_json: None,
    };
    let (conversation, now) = (session.conversation, session.now());
    session.lcm.assemble(conversation, BUDGET, Dialect::Lcm, &options, now)
}

/// Returns the messages that a context item covers.
fn fetch(session: &Session<'_>, item: &Item) -> Result<Fetched> {
    let (conversation, cancel) = (session.conversation, &session.cancel);
    let seq_first = item.seq_first.unwrap_or(0);
    let mut texts = Vec::new();
    if item.kind == "message" {
        let seq_last = item.seq_last.unwrap_or(0);
        session.lcm.messages_all(conversation, seq_first, seq_last, cancel, &mut |text| {
            texts.push(text.to_owned());
            Ok(())
        })?;
        return Ok(Fetched { seq_first, texts });
    }
    let options = ExpandOptions {
        depth_max: Some(ALL_LEVELS),
        include_messages: true,
        ..ExpandOptions::default()
    };
    let now = session.now();
    let expanded = session.lcm.expand_all(conversation, &item.id, &options, now, cancel)?;
    for message in &expanded.messages {
        texts.push(field(&parse("recall.expand", message.get())?, "raw"));
    }
    Ok(Fetched { seq_first, texts })
}

fn expanded_for_people(item: &Item, fetched: &Fetched) -> Result<String> {
    let mut lines = String::new();
    for (seq, text) in (fetched.seq_first..).zip(fetched.texts.iter().take(3)) {
        let message = parse("recall.expand", text)?;
        let role = message.get("role").and_then(Value::as_str).unwrap_or("-");
        let said = line(&assemble::said(&message), SHOWN_MAX);
        lines.push_str(&format!("#{seq:<3} {role:<9}  {said}\n"));
    }
    Ok(format!(
        "5. expand: `{}` covers {}, beginning with\n{}\n",
        item.id,
        count(u64::try_from(fetched.texts.len()).unwrap_or(u64::MAX), "message"),
        indented(&lines),
    ))
}

/// Reads all messages in the order of their seq.
fn by_number(session: &Session<'_>) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    session.lcm.messages_all(session.conversation, 1, u64::MAX, &session.cancel, &mut |text| {
        texts.push(text.to_owned());
        Ok(())
    })?;
    Ok(texts)
}

/// Returns the messages of all context items, in order.
fn from_context(fetched: &[Fetched]) -> Vec<String> {
    fetched.iter().flat_map(|item| item.texts.iter().cloned()).collect()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("   {line}\n")).collect()
}
