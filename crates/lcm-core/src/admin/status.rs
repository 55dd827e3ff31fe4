//! Status: what a conversation holds and what it costs, or what the store holds.

use crate::storage::session::Life;
use alloc::{format, string::String};

use crate::{
    compaction,
    storage::{
        codec,
        head::{Head, Loaded},
        keys::{self, Keys},
        records::{calibration, focus::Brief, usage::Usage},
        store_session::Reader,
        summary::Summary,
    },
};
use lcm_text::{
    base::{error::Result, int, json::Writer, sort::Sorted},
    config::Config,
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

    fn object(&self, raw: u64) -> Writer {
        let records = self.packs + self.summaries + self.blobs + self.identities;
        let mut object = Writer::object();
        object.number("blobs", self.blobs);
        object.number("identities", self.identities);
        object.number("index", self.index);
        object.number("journal", self.journal);
        object.number("other", self.other);
        object.number("packs", self.packs);
        object.number("raw", raw);
        object.number("summaries", self.summaries);
        object.number("total", records + self.index + self.journal + self.other);
        object
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
    let object = match conversation {
        Some(conversation) => of_conversation(reader, config, conversation)?,
        None => of_store(reader)?,
    };
    Ok(object.end_object())
}

fn of_store(reader: &mut Reader<'_>) -> Result<Writer> {
    let (mut conversations, mut entries) = (0u64, 0u64);
    let mut bytes = Bytes::default();
    reader.scan("!", "\u{7f}", &mut |key, value| {
        entries += 1;
        conversations += u64::from(key.starts_with(keys::NAMES));
        let kind = key
            .split_once('/')
            .and_then(|(root, rest)| (root.len() == 22).then(|| rest.chars().next()).flatten());
        bytes.add(kind, int::to_u64(key.len() + value.len()));
        Ok(())
    })?;
    let mut object = Writer::object();
    object.object_at("bytes", bytes.object(0));
    object.number("conversations", conversations);
    object.number("entries", entries);
    Ok(object)
}

fn of_conversation(reader: &mut Reader<'_>, config: &Config, conversation: &str) -> Result<Writer> {
    let keys = Keys::new(conversation)?;
    let loaded = Loaded::of_existing(reader, &keys, conversation)?;
    let head = &loaded.head;
    let mut bytes = Bytes::default();
    let mut models = Writer::array();
    let mut depths: Sorted<u32, (u64, u64)> = Sorted::default();
    let skip = keys.root().len() + 1;
    let mut usage = Usage::default();
    let mut focus = None;
    let (start, end) = keys.range("");
    reader.scan(&start, &end, &mut |key, value| {
        let kind = key.get(skip..).and_then(|rest| rest.chars().next());
        bytes.add(kind, int::to_u64(key.len() + value.len()));
        if kind == Some('c') {
            models.push_object(calibration::read(key, value)?.object());
        }
        if kind == Some('e') {
            usage = Usage::of(key, value)?;
        }
        if kind == Some('y') {
            focus = Some(Brief::read(key, value)?);
        }
        if kind == Some('s') {
            let record: Summary = codec::decode(key, value)?;
            if let Some((count, tokens)) = depths.entry(record.depth) {
                *count += 1;
                *tokens += u64::from(record.tokens);
            }
        }
        Ok(())
    })?;
    let mut summaries = Writer::array();
    for (depth, (count, tokens)) in depths.entries() {
        let mut row = Writer::object();
        row.number("count", *count);
        row.number("depth", u64::from(*depth));
        row.number("tokens", *tokens);
        summaries.push_object(row);
    }
    let scope = compaction::task::scope(config.summary_model.as_deref());
    let guards = guards(reader, &scope)?;
    let life = Life::read(reader, &keys, head)?;
    let lists = [summaries, guards, models, usage.object()];
    Ok(conversation_object(head, config, &bytes, lists, (&life, focus.as_ref())))
}

fn conversation_object(
    head: &Head,
    config: &Config,
    bytes: &Bytes,
    [summaries, guards, models, usage]: [Writer; 4],
    (life, focus): (&Life, Option<&Brief>),
) -> Writer {
    let mut context = Writer::object();
    context.number("items", head.context.count());
    context.number("tokens", head.context.tokens);
    let mut tail = Writer::object();
    tail.number("messages_max", config.fresh_tail_messages_max.into());
    tail.number_or_null("newest_user_seq", head.newest_user.map(|mark| mark.seq));
    let mut ledger = Writer::object();
    ledger.number("completions", head.ledger.completions);
    ledger.number("input_tokens", head.ledger.input_tokens);
    ledger.number("output_tokens", head.ledger.output_tokens);
    if head.ledger.paused_until > 0 {
        ledger.time("paused_until", head.ledger.paused_until.min(lcm_text::base::time::MS_MAX));
    }
    ledger.number("saved_tokens", head.ledger.saved_tokens);
    ledger.number("window_completions", head.ledger.window_completions.into());
    ledger.number("window_rejected", head.ledger.window_rejected.into());
    ledger.number("window_tokens", head.ledger.window_tokens);
    ledger.number("withdrawn_tokens", head.ledger.withdrawn_tokens);
    let mut object = Writer::object();
    life.write_archived(&mut object);
    object.object_at("bytes", bytes.object(head.raw_bytes));
    object.array_at("calibrations", models);
    // In thousandths: what the context counts of what was said.
    object.json("compression_ratio", &ratio(head.context.tokens, head.raw_tokens));
    object.object_at("context", context);
    object.text("conversation", &head.conversation);
    match &head.debt {
        Some(debt) => object.object_at("debt", debt.object()),
        None => object.null("debt"),
    }
    object.text_or_null("family", life.family.as_deref());
    match focus {
        Some(brief) => object.object_at("focus", brief.object()),
        None => object.null("focus"),
    }
    object.object_at("fresh_tail", tail);
    object.array_at("guards", guards);
    object.object_at("ledger", ledger);
    object.number("messages", head.messages);
    object.number("raw_tokens", head.raw_tokens);
    object.number("revision", head.revision);
    object.array_at("summaries", summaries);
    object.object_at("usage", usage);
    object
}

/// A ratio as a JSON number of three places, without zeros at its end but for one.
fn ratio(part: u64, whole: u64) -> String {
    let permille = (part * 1_000).checked_div(whole).unwrap_or(1_000);
    let text = format!("{}.{:03}", permille / 1_000, permille % 1_000);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.into() }
}

fn guards(reader: &mut Reader<'_>, scope: &str) -> Result<Writer> {
    let mut guards = Writer::array();
    let key: String = keys::guard(scope);
    let value = reader.fresh_one(&key)?;
    let Some(value) = value else { return Ok(guards) };
    let guard: compaction::ModelGuard = codec::decode(&key, &value)?;
    let mut row = Writer::object();
    row.number("failures", guard.failures.into());
    row.number("open_until", guard.open_until);
    row.text("scope", scope);
    guards.push_object(row);
    Ok(guards)
}
