//! Status: sizes, counts and costs of a conversation, or sizes of the store.
//!
//! In: a conversation, or none. Out: the numbers as JSON. The numbers of a conversation come from a
//! few records, and while summaries are provisional, also from the items of the context and the
//! records of summaries. The numbers of the store come from a scan over all records.

use alloc::{format, string::String};

use crate::{
    compaction,
    storage::{
        call::Call,
        codec,
        head::{ConversationHead, LoadedHead},
        history::MessageHistory,
        keys::{self, ConversationKeys},
        records::{
            calibration::Calibration, deferred::DeferredCompaction, focus::FocusBrief,
            model_breaker::ModelBreaker, summary_counts::SummaryCounts, usage::UsageRecord,
        },
        session::SessionLifecycle,
        store_session::StoreSession,
        withdrawn_mark::{self, WITHDRAWN_MESSAGES},
    },
};
use lcm_text::{
    base::{error::Result, int, json::JsonWriter},
    config::Config,
};

/// Bytes of keys and values by the kind of record.
#[derive(Debug, Default)]
pub(super) struct ByteUsage {
    packs: u64,
    summaries: u64,
    blobs: u64,
    journal: u64,
    identities: u64,
    index: u64,
    other: u64,
}

impl ByteUsage {
    fn add_bytes(&mut self, kind: Option<char>, bytes: u64) {
        let slot = match kind {
            Some('m' | 'z' | 'd') => &mut self.packs,
            Some('s' | 'u' | 'o' | 'x') => &mut self.summaries,
            Some('b') => &mut self.blobs,
            Some('j') => &mut self.journal,
            Some('i') => &mut self.identities,
            Some('p' | 'q' | 't') => &mut self.index,
            _ => &mut self.other,
        };
        *slot += bytes;
    }

    /// Counts the bytes of all records of a conversation, in a scan.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(super) fn scan(session: &mut StoreSession<'_>, keys: &ConversationKeys) -> Result<Self> {
        let mut bytes = Self::default();
        let skip = keys.key_prefix().len() + 1;
        let (start, end) = keys.record_range("");
        session.scan_range(&start, &end, &mut |key, value| {
            let kind = key.get(skip..).and_then(|rest| rest.chars().next());
            bytes.add_bytes(kind, int::to_u64(key.len() + value.len()));
            Ok(())
        })?;
        Ok(bytes)
    }

    pub(super) fn to_object(&self, raw: u64) -> JsonWriter {
        let records = self.packs + self.summaries + self.blobs + self.identities;
        let mut object = JsonWriter::new_object();
        object.add_number("blobs", self.blobs);
        object.add_number("identities", self.identities);
        object.add_number("index", self.index);
        object.add_number("journal", self.journal);
        object.add_number("other", self.other);
        object.add_number("packs", self.packs);
        object.add_number("raw", raw);
        object.add_number("summaries", self.summaries);
        object.add_number("total", records + self.index + self.journal + self.other);
        object
    }
}

/// Returns bytes by kind, conversations and entries of the whole store as JSON.
///
/// # Errors
///
/// Errors of the store.
pub(crate) fn store_status(session: &mut StoreSession<'_>) -> Result<String> {
    let (mut conversations, mut entries) = (0u64, 0u64);
    let mut bytes = ByteUsage::default();
    session.scan_range("!", "\u{7f}", &mut |key, value| {
        entries += 1;
        conversations += u64::from(key.starts_with(keys::NAMES_PREFIX));
        let kind = key
            .split_once('/')
            .and_then(|(root, rest)| (root.len() == 22).then(|| rest.chars().next()).flatten());
        bytes.add_bytes(kind, int::to_u64(key.len() + value.len()));
        Ok(())
    })?;
    let mut object = JsonWriter::new_object();
    object.add_object("bytes", bytes.to_object(0));
    object.add_number("conversations", conversations);
    object.add_number("entries", entries);
    Ok(object.end_object())
}

/// The parts of a conversation's status that come from other records than the head.
struct ConversationDetails {
    /// Number and tokens of the summaries of each depth.
    summaries: JsonWriter,
    breakers: JsonWriter,
    calibrations: JsonWriter,
    usage: UsageRecord,
    life: SessionLifecycle,
    focus: Option<FocusBrief>,
    /// Number of provisional summaries that will be made again.
    provisional: u64,
    /// Number of withdrawn messages by reason.
    withdrawn: JsonWriter,
}

/// Returns sizes, counts and costs of a conversation as JSON.
///
/// # Errors
///
/// - `not-found`: the conversation does not exist.
/// - `denied`: the conversation is being deleted.
/// - `corrupt`: a record is damaged.
/// - `unsupported`: a record has a newer format.
/// - errors of the store.
pub(crate) fn conversation_status(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
) -> Result<String> {
    let loaded = LoadedHead::open_existing(session, call)?;
    let details = read_details(session, call, &loaded.head)?;
    Ok(build_conversation_object(&loaded.head, call.config, details).end_object())
}

/// Reads the records other than the head, and the breaker of the configured model.
fn read_details(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
) -> Result<ConversationDetails> {
    let keys = call.keys;
    let mut calibrations = JsonWriter::new_array();
    let (start, end) = keys.record_range("c");
    session.scan_range(&start, &end, &mut |key, value| {
        calibrations.push_object(codec::decode::<Calibration>(key, value)?.to_object());
        Ok(())
    })?;
    let usage = session.read_record(&UsageRecord::key(keys))?.unwrap_or_default();
    let focus = session.read_record(&FocusBrief::key(keys))?;
    let mut summaries = JsonWriter::new_array();
    let counts = session.read_record(&SummaryCounts::key(keys))?.unwrap_or_default();
    for (tally, depth) in counts.depths.iter().zip(0u64..) {
        if tally.count > 0 {
            let mut row = JsonWriter::new_object();
            row.add_number("count", tally.count);
            row.add_number("depth", depth);
            row.add_number("tokens", tally.tokens);
            summaries.push_object(row);
        }
    }
    let scope = compaction::task::build_breaker_scope(call.config.summary_model.as_deref());
    let breakers = list_breakers(session, &scope)?;
    let life = SessionLifecycle::read(session, keys, head)?;
    let provisional = compaction::count_open_summaries(session, call, head)?;
    let withdrawn = withdrawn_mark::count_withdrawn(session, &MessageHistory::new(call, head))?;
    Ok(ConversationDetails {
        summaries,
        breakers,
        calibrations,
        usage,
        life,
        focus,
        provisional,
        withdrawn,
    })
}

fn build_conversation_object(
    head: &ConversationHead,
    config: &Config,
    details: ConversationDetails,
) -> JsonWriter {
    let mut context = JsonWriter::new_object();
    context.add_number("items", head.context.count_items());
    context.add_number("tokens", head.context.tokens);
    let mut tail = JsonWriter::new_object();
    tail.add_number("messages_max", config.fresh_tail_messages_max.into());
    tail.add_optional_number("newest_user_seq", head.newest_user.map(|mark| mark.seq));
    let mut ledger = JsonWriter::new_object();
    ledger.add_number("completions", head.ledger.completions);
    ledger.add_number("input_tokens", head.ledger.input_tokens);
    ledger.add_number("output_tokens", head.ledger.output_tokens);
    if head.ledger.paused_until > 0 {
        ledger.add_time("paused_until", head.clock.to_time(head.ledger.paused_until));
    }
    ledger.add_number("saved_tokens", head.ledger.saved_tokens);
    ledger.add_number("window_completions", head.ledger.window_completions.into());
    ledger.add_number("window_rejected", head.ledger.window_rejected.into());
    ledger.add_number("window_tokens", head.ledger.window_tokens);
    ledger.add_number("withdrawn_tokens", head.ledger.withdrawn_tokens);
    let mut object = JsonWriter::new_object();
    details.life.write_archived(&mut object);
    object.add_array("breakers", details.breakers);
    object.add_array("calibrations", details.calibrations);
    object.add_json("compression_ratio", &format_ratio(head.context.tokens, head.raw_tokens));
    object.add_object("context", context);
    object.add_text("conversation", &head.conversation);
    match &head.deferred {
        Some(debt) => {
            // While a summary will be made again, an attempt has something to do.
            let exhausted_tokens = debt.exhausted_tokens.filter(|_| details.provisional == 0);
            let shown = DeferredCompaction { exhausted_tokens, ..*debt };
            object.add_object("debt", shown.to_object(head.clock));
        }
        None => object.add_null("debt"),
    }
    object.add_optional_text("family", details.life.family.as_deref());
    match &details.focus {
        Some(brief) => object.add_object("focus", brief.to_object()),
        None => object.add_null("focus"),
    }
    object.add_object("fresh_tail", tail);
    object.add_object("ledger", ledger);
    object.add_number("message_tokens", head.raw_tokens);
    object.add_number("messages", head.messages);
    object.add_number("provisional", details.provisional);
    object.add_number("revision", head.revision);
    object.add_array("summaries", details.summaries);
    match &head.system {
        Some(slot) => object.add_object("system", slot.to_object()),
        None => object.add_null("system"),
    }
    object.add_object("usage", details.usage.to_object());
    object.add_object(WITHDRAWN_MESSAGES, details.withdrawn);
    object
}

/// Formats a ratio as a JSON number with one to three decimal places, rounded down; 1.0 if `whole`
/// is 0.
fn format_ratio(part: u64, whole: u64) -> String {
    let permille = (part * 1_000).checked_div(whole).unwrap_or(1_000);
    let text = format!("{}.{:03}", permille / 1_000, permille % 1_000);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.into() }
}

fn list_breakers(session: &mut StoreSession<'_>, scope: &str) -> Result<JsonWriter> {
    let mut breakers = JsonWriter::new_array();
    let breaker = session.read_record(&ModelBreaker::key(scope))?;
    let Some(breaker) = breaker else { return Ok(breakers) };
    let mut row = JsonWriter::new_object();
    row.add_number("failures", breaker.failures.into());
    row.add_number("open_until", breaker.open_until);
    row.add_text("scope", scope);
    breakers.push_object(row);
    Ok(breakers)
}
