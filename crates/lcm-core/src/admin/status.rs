//! Status: what a conversation holds and what it costs, or what the store holds.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use serde_json::{Value, json};

use crate::{
    codec, compaction,
    config::Config,
    error::Result,
    head::Loaded,
    keys::{self, Keys},
    num,
    reader::Reader,
    summary::Summary,
};

/// Bytes of keys and values by what they hold.
#[derive(Debug, Default)]
struct Bytes {
    packs: u64,
    summaries: u64,
    blobs: u64,
    journal: u64,
    identities: u64,
    index: u64,
    other: u64,
}

impl Bytes {
    fn add(&mut self, kind: Option<char>, bytes: u64) {
        let slot = match kind {
            Some('m' | 'z' | 'd') => &mut self.packs,
            Some('s' | 'u' | 'x') => &mut self.summaries,
            Some('b') => &mut self.blobs,
            Some('j') => &mut self.journal,
            Some('i') => &mut self.identities,
            Some('p' | 'q' | 't') => &mut self.index,
            _ => &mut self.other,
        };
        *slot += bytes;
    }

    fn json(&self, raw: u64) -> Value {
        let records = self.packs + self.summaries + self.blobs + self.identities;
        let total = records + self.index + self.journal + self.other;
        json!({
            "raw": raw,
            "packs": self.packs,
            "summaries": self.summaries,
            "index": self.index,
            "blobs": self.blobs,
            "journal": self.journal,
            "identities": self.identities,
            "other": self.other,
            "total": total,
        })
    }
}

/// The status of a conversation, or of the store, as JSON.
///
/// # Errors
///
/// `not-found`; errors of the store.
pub(crate) fn status(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: Option<&str>,
) -> Result<String> {
    let value = match conversation {
        Some(conversation) => of_conversation(reader, config, conversation)?,
        None => of_store(reader)?,
    };
    Ok(format!("{value}"))
}

fn of_store(reader: &mut Reader<'_>) -> Result<Value> {
    let (mut conversations, mut entries) = (0u64, 0u64);
    let mut bytes = Bytes::default();
    reader.scan("!", "\u{7f}", |key, value| {
        entries += 1;
        conversations += u64::from(key.starts_with(keys::NAMES));
        let kind = key
            .split_once('/')
            .and_then(|(root, rest)| (root.len() == 22).then(|| rest.chars().next()).flatten());
        bytes.add(kind, num::to_u64(key.len() + value.len()));
        Ok(())
    })?;
    Ok(json!({
        "conversations": conversations,
        "entries": entries,
        "bytes": bytes.json(0),
    }))
}

fn of_conversation(reader: &mut Reader<'_>, config: &Config, conversation: &str) -> Result<Value> {
    let keys = Keys::new(conversation)?;
    let (loaded, _) = Loaded::read(reader, &keys, conversation, &[])?;
    let loaded = loaded.existing()?;
    let head = &loaded.head;
    let mut bytes = Bytes::default();
    let mut depths: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let skip = keys.root().len() + 1;
    let (start, end) = keys.range("");
    reader.scan(&start, &end, |key, value| {
        let kind = key.get(skip..).and_then(|rest| rest.chars().next());
        bytes.add(kind, num::to_u64(key.len() + value.len()));
        if kind == Some('s') {
            let record: Summary = codec::decode(key, value)?;
            let row = depths.entry(record.depth).or_default();
            row.0 += 1;
            row.1 += u64::from(record.tokens);
        }
        Ok(())
    })?;
    let summaries: Vec<Value> = depths
        .iter()
        .map(|(depth, (count, tokens))| json!({"depth": depth, "count": count, "tokens": tokens}))
        .collect();
    let scope = compaction::task::scope(config.summary_model.as_deref());
    let tokens = head.context.tokens;
    Ok(json!({
        "conversation": conversation,
        "revision": head.revision,
        "messages": head.messages,
        "summaries": summaries,
        "context": {"items": head.context.count(), "tokens": tokens},
        "fresh_tail": {
            "messages_max": config.fresh_tail_messages_max,
            "newest_user_seq": head.newest_user.map(|mark| mark.seq),
        },
        "raw_tokens": head.raw_tokens,
        // In thousandths: what the context counts of what was said.
        "compression_ratio": ratio(tokens, head.raw_tokens),
        "debt": Value::Null,
        "bytes": bytes.json(head.raw_bytes),
        "guards": guards(reader, &scope)?,
        "ledger": {
            "completions": head.ledger.completions,
            "input_tokens": head.ledger.input_tokens,
            "output_tokens": head.ledger.output_tokens,
            "window_completions": head.ledger.window_completions,
            "window_tokens": head.ledger.window_tokens,
        },
    }))
}

/// A ratio as a decimal with three digits, made without floats.
fn ratio(part: u64, whole: u64) -> Value {
    let permille = (part * 1_000).checked_div(whole).unwrap_or(1_000);
    let text = format!("{}.{:03}", permille / 1_000, permille % 1_000);
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

fn guards(reader: &mut Reader<'_>, scope: &str) -> Result<Vec<Value>> {
    let key: String = keys::guard(scope);
    let value = reader.fresh(core::slice::from_ref(&key))?.into_iter().next().flatten();
    let Some(value) = value else { return Ok(Vec::new()) };
    let guard: compaction::ModelGuard = codec::decode(&key, &value)?;
    Ok(alloc::vec![json!({
        "scope": scope,
        "failures": guard.failures,
        "open_until": guard.open_until,
    })])
}
