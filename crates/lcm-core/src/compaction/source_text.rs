//! The sources of a task, gathered: their text for the model, their measures for the summary.

use crate::storage::pack::PlacedMessage;
use crate::storage::summary_items;
use alloc::{string::String, vec::Vec};
use lcm_text::base::hash;

use crate::storage::{
    codec,
    context::{ContextItem, MessageRun},
    history::MessageHistory,
    pack::RawText,
    store_session::StoreSession,
    summary::{self, SourceRef, StoredFinish, StoredLevel, Summary, SummarySources},
};
use lcm_text::{
    base::{
        derivation_version::{self, DERIVATION_VERSION},
        error::{Error, Result},
        int, limits, tokens,
    },
    message::{large_payload, trust::Trust},
    summary::{
        prompts::PROMPT_VERSION,
        transcript::{self, TranscriptMessage, TranscriptOptions, TranscriptSummary},
    },
    types::api::Timestamp,
};

use super::task;

/// Model name of a leaf that repeats a tiny run word for word.
const VERBATIM_MODEL: &str = "verbatim";
/// Tokens of raw text that serve as previous context where no summary stands before the sources.
const PREVIOUS_TOKENS_MAX: u32 = 500;
/// Messages in which that text is looked for.
const PREVIOUS_MESSAGES_MAX: u64 = 8;
/// Summaries before the sources that serve as previous context.
const PREVIOUS_SUMMARIES_MAX: usize = 2;

/// What a task's sources amount to.
#[derive(Clone, Debug)]
pub(crate) struct GatheredSources {
    /// The sources as the model reads them; blank when they have nothing to say.
    pub(crate) text: String,
    /// What they count in the context.
    pub(crate) tokens: u64,
    /// By which all that it counts was made, see [`Summary::derivation_version`].
    rules: u32,
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    pub(crate) sources: SummarySources,
    pub(crate) depth: u32,
    pub(crate) task_hash: [u8; 16],
    message_tokens: u64,
    descendant_count: u64,
    descendant_tokens: u64,
    earliest_at: Timestamp,
    latest_at: Timestamp,
    /// The least label of the sources.
    trust: Trust,
    file_ids: Vec<String>,
    /// Leaves for tiny runs between the sources, to be written with the summary.
    pub(crate) bridges: Vec<Summary>,
    /// Tokens of all messages before the first one.
    pub(crate) tokens_before: u64,
}

/// What a summary says besides its sources.
pub(crate) struct SummaryDraft<'a> {
    pub(crate) text: String,
    pub(crate) level: StoredLevel,
    pub(crate) capped: bool,
    /// What the verifier found in the text.
    pub(crate) findings: Vec<String>,
    pub(crate) model: &'a str,
    /// How the answer that was judged last ended.
    pub(crate) finish: Option<StoredFinish>,
    pub(crate) created_at: Timestamp,
    pub(crate) prompt_version: u32,
}

impl GatheredSources {
    /// The record of a summary of these sources.
    pub(crate) fn build_summary(&self, written: SummaryDraft<'_>) -> Summary {
        let mut file_ids = self.file_ids.clone();
        collect_file_ids(&written.text, &mut file_ids);
        Summary {
            derivation_version: self.rules,
            depth: self.depth,
            level: written.level,
            capped: written.capped,
            sources: self.sources.clone(),
            task: self.task_hash,
            seq_first: self.seq_first,
            seq_last: self.seq_last,
            tokens: tokens::estimate(&written.text),
            text: written.text,
            source_tokens: self.tokens,
            message_tokens: self.message_tokens,
            descendant_count: self.descendant_count,
            descendant_tokens: self.descendant_tokens,
            earliest_at: self.earliest_at,
            latest_at: self.latest_at,
            created_at: written.created_at,
            model: truncate_model_name(written.model).into(),
            finish: written.finish,
            prompt_version: written.prompt_version,
            trust: self.trust,
            findings: written.findings,
            file_ids,
        }
    }
}

/// Gathers the messages of a leaf.
///
/// # Errors
///
/// As [`StoreSession::read_immutable`].
pub(crate) fn gather_messages(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq_first: u64,
    seq_last: u64,
    reading: TranscriptOptions<'_>,
) -> Result<GatheredSources> {
    let placed = history.read_messages(reader, seq_first, seq_last)?;
    history.prefetch_texts(reader, &placed)?;
    gather_placed(reader, history, &placed, reading)
}

/// Gathers a leaf from its messages.
///
/// # Errors
///
/// As [`StoreSession::read_immutable`].
pub(crate) fn gather_placed(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    placed: &[PlacedMessage],
    reading: TranscriptOptions<'_>,
) -> Result<GatheredSources> {
    let mut text = String::new();
    let mut file_ids = Vec::new();
    let mut trust = Vec::new();
    for message in placed {
        let raw = history.read_rendered_text(reader, &message.stored)?;
        collect_file_ids(&raw, &mut file_ids);
        trust.push(Trust::from_message(&raw, message.stored.role, &message.stored.parts));
        render_source(&raw, message, reading, &mut text);
    }
    let (seq_first, seq_last) = match placed {
        [first, .., last] => (first.seq, last.seq),
        [only] => (only.seq, only.seq),
        [] => (0, 0),
    };
    let sum = placed.iter().map(|message| u64::from(message.stored.tokens)).sum();
    let frontier = history.frontier_of_message(reader, placed.last())?;
    let times = placed.iter().map(|message| message.stored.time);
    Ok(GatheredSources {
        text,
        tokens: sum,
        rules: derivation_version::common_version(
            placed.iter().map(|message| message.stored.derivation_version),
        ),
        seq_first,
        seq_last,
        sources: SummarySources::Messages { seq_first, seq_last, frontier },
        depth: 0,
        task_hash: task::hash_messages(seq_first, seq_last, &frontier),
        message_tokens: sum,
        descendant_count: 0,
        descendant_tokens: 0,
        earliest_at: times.clone().min().unwrap_or(0),
        latest_at: times.max().unwrap_or(0),
        trust: Trust::least_of(trust),
        file_ids,
        bridges: Vec::new(),
        tokens_before: placed.first().map_or(0, |message| message.tokens_before),
    })
}

fn render_source(
    raw: &str,
    message: &PlacedMessage,
    reading: TranscriptOptions<'_>,
    text: &mut String,
) -> bool {
    let stored = &message.stored;
    let (role, parts, time) = (stored.role, stored.rendered_content().1, stored.time);
    transcript::render_message(text, &TranscriptMessage { raw, role, parts, time }, reading)
}

/// Gathers the items of a condensed summary.
///
/// # Errors
///
/// As [`StoreSession::read_immutable`].
pub(crate) fn gather_items(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    reading: TranscriptOptions<'_>,
) -> Result<GatheredSources> {
    let mut records = summary_items::read_summaries(reader, history, items)?.into_iter();
    let mut gathered = GatheredSources {
        text: String::new(),
        tokens: items.iter().map(ContextItem::tokens).sum(),
        rules: DERIVATION_VERSION,
        seq_first: items.first().map_or(0, ContextItem::seq_first),
        seq_last: items.last().map_or(0, ContextItem::seq_last),
        sources: SummarySources::Summaries(Vec::new()),
        depth: 0,
        task_hash: task::hash_items(items),
        message_tokens: 0,
        descendant_count: 0,
        descendant_tokens: 0,
        earliest_at: u64::MAX,
        latest_at: 0,
        trust: Trust::Trusted,
        file_ids: Vec::new(),
        bridges: Vec::new(),
        tokens_before: 0,
    };
    let mut sources: Vec<SourceRef> = Vec::new();
    for item in items {
        let (source, record) = match item {
            ContextItem::Summary(summary) => {
                let record =
                    records.next().ok_or_else(|| Error::corrupt_store("a source is missing"))?;
                (SourceRef { id: summary.id, bytes: summary.bytes }, record)
            }
            ContextItem::Run(run) => {
                let record = build_bridge(reader, history, run, reading)?;
                let bytes = int::to_u32(codec::encode_compressed(&record)?.len());
                gathered.bridges.push(record.clone());
                (SourceRef { id: record.id(), bytes }, record)
            }
            ContextItem::Withdrawn { .. } => continue,
        };
        let name = summary::format_summary_id(source.id);
        let text = &mut gathered.text;
        let (from, to) = (record.earliest_at, record.latest_at);
        let (depth, summary) = (record.depth, record.text.as_str());
        let summary =
            TranscriptSummary { id: &name, earliest: from, latest: to, depth, text: summary };
        transcript::render_summary(text, &summary);
        gathered.rules =
            derivation_version::common_version([gathered.rules, record.derivation_version]);
        gathered.depth = gathered.depth.max(record.depth + 1);
        gathered.message_tokens += record.message_tokens;
        gathered.descendant_count += record.descendant_count + 1;
        gathered.descendant_tokens += record.descendant_tokens + u64::from(record.tokens);
        gathered.earliest_at = gathered.earliest_at.min(record.earliest_at);
        gathered.latest_at = gathered.latest_at.max(record.latest_at);
        gathered.trust = gathered.trust.min(record.trust);
        for id in &record.file_ids {
            push_unique(&mut gathered.file_ids, id);
        }
        sources.push(source);
    }
    gathered.sources = SummarySources::Summaries(sources);
    Ok(gathered)
}

/// A leaf that repeats a tiny run, so that the summaries around it can be condensed with it.
fn build_bridge(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    run: &MessageRun,
    reading: TranscriptOptions<'_>,
) -> Result<Summary> {
    let gathered = gather_messages(reader, history, run.seq_first, run.seq_last, reading)?;
    let text = if gathered.text.trim().is_empty() { "(no text)" } else { &gathered.text };
    Ok(gathered.build_summary(SummaryDraft {
        text: text.into(),
        level: StoredLevel::Fallback,
        capped: false,
        findings: Vec::new(),
        model: VERBATIM_MODEL,
        finish: None,
        created_at: gathered.latest_at,
        prompt_version: PROMPT_VERSION,
    }))
}

/// Whether the model is told of what came before: above sessions a narrative stands for itself.
pub(crate) const fn has_previous_context(depth: u32) -> bool {
    depth <= 1
}

/// What the model is told of what came before: advice, never a source.
///
/// # Errors
///
/// As [`StoreSession::read_immutable`].
pub(crate) fn read_previous(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    before: &[ContextItem],
    seq_first: u64,
    depth: u32,
    injected_tags: &[String],
) -> Result<Option<String>> {
    if !has_previous_context(depth) {
        return Ok(None);
    }
    let near: Vec<ContextItem> = before
        .iter()
        .rev()
        .filter(|item| match item {
            ContextItem::Summary(summary) => depth == 0 || summary.depth + 1 == depth,
            ContextItem::Run(_) | ContextItem::Withdrawn { .. } => false,
        })
        .take(PREVIOUS_SUMMARIES_MAX)
        .copied()
        .collect();
    if near.is_empty() {
        return if depth == 0 {
            read_raw_before(reader, history, seq_first, injected_tags)
        } else {
            Ok(None)
        };
    }
    let records = summary_items::read_summaries(reader, history, &near)?;
    let texts: Vec<String> = records
        .iter()
        .rev()
        .map(|record| transcript::strip_truncation_notes(&record.text))
        .collect();
    Ok(Some(texts.join("\n\n")))
}

/// The end of the raw text before a message.
fn read_raw_before(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    seq_first: u64,
    injected_tags: &[String],
) -> Result<Option<String>> {
    let reading = TranscriptOptions { part_tokens_max: PREVIOUS_TOKENS_MAX, injected_tags };
    if seq_first <= 1 {
        return Ok(None);
    }
    let from = seq_first.saturating_sub(PREVIOUS_MESSAGES_MAX).max(1);
    let mut blocks: Vec<String> = Vec::new();
    let mut tokens = 0u32;
    // Newest first, and of a large text nothing: this is advice and not worth a read of megabytes.
    for message in history.read_messages(reader, from, seq_first - 1)?.iter().rev() {
        if tokens >= PREVIOUS_TOKENS_MAX {
            break;
        }
        if !matches!(message.stored.rendered_content().0, RawText::Inline(_)) {
            continue;
        }
        let mut block = String::new();
        let raw = history.read_rendered_text(reader, &message.stored)?;
        render_source(&raw, message, reading, &mut block);
        tokens = tokens.saturating_add(tokens::estimate(&block));
        blocks.push(block);
    }
    blocks.reverse();
    let text = blocks.join("\n\n");
    let end = take_last_tokens(&text, PREVIOUS_TOKENS_MAX);
    Ok((!end.trim().is_empty()).then(|| end.into()))
}

/// The end of a text that has at most so many tokens.
fn take_last_tokens(text: &str, tokens_max: u32) -> &str {
    let quarters_max = u64::from(tokens_max) * 4;
    let mut quarters = 0u64;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        quarters += tokens::estimate_quarter_tokens(c.encode_utf8(&mut [0; 4]));
        if quarters > quarters_max {
            break;
        }
        start = at;
    }
    text.get(start..).unwrap_or("")
}

/// The beginning of a model's name that is kept: a host may answer with anything.
fn truncate_model_name(model: &str) -> &str {
    let mut end = limits::MODEL_BYTES_MAX.min(model.len());
    while !model.is_char_boundary(end) {
        end -= 1;
    }
    model.get(..end).unwrap_or("")
}

fn push_unique(list: &mut Vec<String>, id: &str) {
    if list.len() < limits::FILE_IDS_MAX && !list.iter().any(|known| known == id) {
        list.push(id.into());
    }
}

/// Adds the file ids that occur in a text.
fn collect_file_ids(text: &str, list: &mut Vec<String>) {
    for id in large_payload::find_ids(text) {
        push_unique(list, &large_payload::format_name(id));
    }
}

/// The boundary that encloses the material of a prompt, from the hash of its sources: no text can
/// contain a hash over itself.
pub(crate) fn build_boundary(sources: &[u8; 16]) -> String {
    let hash = hash::hash_fields(&[b"lcm boundary", sources]);
    hash::hex(hash.get(..8).unwrap_or(&[]))
}
