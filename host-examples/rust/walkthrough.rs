//! The walkthrough that every host has, with `lcm-host`: store a conversation, compact it, assemble
//! a context, expand a summary, and read every message back.
//!
//! From the top of the repository: `cargo run --release -p lcm-host --example walkthrough`.
//! The clock is fixed and summaries are made without a model, so that every host ends with the
//! same store.

use std::{error::Error, fs};

use lcm_host::{
    Cancel, Clock, ExpandOptions, Lcm, Result as LcmResult, context::Options as AssembleOptions,
};
use serde_json::Value;

const CONVERSATION: &str = "walkthrough";
const NOW: u64 = 1_700_000_000_000;
const BATCH_MESSAGES: usize = 16;
const BUDGET: u32 = 3_000;

/// Runs with an empty store. Returns lines to print, and whether every message came back.
pub(crate) fn walkthrough(
    lcm: &Lcm,
    lines: &[String],
) -> Result<(Vec<String>, bool), Box<dyn Error>> {
    let mut said = Vec::new();
    let cancel = Cancel::default();
    let chat = lcm.conversation(CONVERSATION, BUDGET).clock(Clock::Fixed(NOW));
    for batch in lines.chunks(BATCH_MESSAGES) {
        let receipt = chat.append(batch)?;
        if receipt.seq_last == u64::try_from(lines.len()).ok() {
            let tokens = receipt.context_tokens;
            said.push(format!("stored {} messages, {tokens} tokens", lines.len()));
        }
    }

    let report = chat.compact()?;
    let (count, before, after) = (report.passes.len(), report.tokens_before, report.tokens_after);
    said.push(format!(
        "compacted: {}, {count} summaries, {before} -> {after}",
        report.status.as_str()
    ));

    let options = AssembleOptions { explain: true, ..AssembleOptions::default() };
    let context = chat.assemble_with(&options)?;
    let messages: Vec<Value> = serde_json::from_str(&context.messages_json)?;
    let (count, summaries, tokens) = (messages.len(), context.summaries, context.tokens);
    said.push(format!("assembled {count} messages, {summaries} summaries, {tokens} tokens"));

    let summary = context.items.iter().find(|item| item.kind != "message");
    let summary = summary.ok_or("the context has no summary")?;
    let options =
        ExpandOptions { depth_max: Some(99), include_messages: true, ..ExpandOptions::default() };
    let expanded = lcm.expand_all(CONVERSATION, &summary.id, &options, NOW, &cancel)?;
    let first: Value = serde_json::from_str(expanded.messages.first().ok_or("nothing")?.get())?;
    let first: String =
        first.get("raw").and_then(Value::as_str).unwrap_or_default().chars().take(60).collect();
    let (from, to) = (summary.seq_first.unwrap_or(0), summary.seq_last.unwrap_or(0));
    said.push(format!("expanded {} {}: messages {from} to {to}", summary.kind, summary.id));
    said.push(format!("its first message begins {first}"));

    let mut back = Vec::new();
    lcm.messages_all(CONVERSATION, 1, u64::MAX, &cancel, &mut |text| {
        back.push(text.to_owned());
        Ok(())
    })?;
    said.push(format!("store digest: {}", lcm.digest_all(false, &cancel)?));
    let equal = back == lines;
    let answer = if equal { "yes" } else { "no" };
    said.push(format!("every message came back byte for byte: {answer}"));
    Ok((said, equal))
}

/// Opens an empty store in memory; summaries are made without a model.
pub(crate) fn open(wasm: &[u8]) -> LcmResult<Lcm> {
    Lcm::open("memory:", wasm)
}

#[allow(dead_code, reason = "the tests call the parts")]
fn main() -> Result<(), Box<dyn Error>> {
    let lcm = open(&fs::read("dist/lcm.wasm")?)?;
    let text = fs::read_to_string("host-examples/walkthrough.jsonl")?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (said, equal) = walkthrough(&lcm, &lines)?;
    println!("{}", said.join("\n"));
    if equal { Ok(()) } else { Err("not every message came back".into()) }
}
