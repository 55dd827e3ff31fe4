//! Gathers the sources of a task: the text that the model reads, and the counts and times that the
//! summary stores.
//!
//! In: messages of a leaf, or items of a condensed summary. Out: [`GatheredSources`]. The planner
//! and the settlement of answers use this module.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    context::{ContextItem, MessageRun},
    history::MessageHistory,
    message_span::MessageSpan,
    pack::{PlacedMessage, RawText},
    store_session::StoreSession,
    summary::{self, Provisional, SourceRef, StoredFinish, StoredLevel, Summary, SummarySources},
    summary_items,
};
use lcm_text::{
    base::{
        derivation_version::{self, DERIVATION_VERSION},
        error::{Error, Result},
        limits, time,
        time_offsets::TimeOffsets,
        tokens,
    },
    message::{large_payload, trust::Trust},
    summary::{
        prompts::PROMPT_VERSION,
        transcript::{self, TranscriptMessage, TranscriptOptions, TranscriptSummary},
    },
    types::api::Timestamp,
};

use super::task;

/// Model name of the leaf of a bridge, which repeats the text of the bridge.
const VERBATIM_MODEL: &str = "verbatim";
/// Maximum tokens of raw text as previous context. Raw text is used only if no summary precedes the
/// sources.
const PREVIOUS_TOKENS_MAX: u32 = 500;
/// Maximum number of messages before the sources that are read as previous context, if no summary
/// precedes the sources.
const PREVIOUS_MESSAGES_MAX: u64 = 8;
/// Maximum number of summaries that serve as previous context.
const PREVIOUS_SUMMARIES_MAX: usize = 2;

/// The gathered sources of a task.
#[derive(Clone, Debug)]
pub(crate) struct GatheredSources {
    /// The sources as the model reads them; blank: the sources have no text for a model.
    pub(crate) text: String,
    /// Tokens of the sources: of messages in a context, or of the texts of summaries.
    pub(crate) tokens: u64,
    /// Version of the rules behind all numbers, see [`Summary::derivation_version`].
    derivation_version: u32,
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
    /// The least trust of the sources.
    trust: Trust,
    /// Ids of payloads in the sources, at most [`limits::FILE_IDS_MAX`].
    file_ids: Vec<String>,
    /// Leaves made of the bridges among the sources. The commit of the summary also writes these
    /// leaves.
    pub(crate) bridges: Vec<Summary>,
    /// Tokens of all messages before the first source; 0 for a condensed summary.
    pub(crate) tokens_before: u64,
    /// Tokens of all messages up to the last source; 0 for a condensed summary.
    pub(crate) tokens_through: u64,
    /// Whether a source is a provisional summary.
    is_provisional: bool,
}

/// A text that becomes a summary, and how the text was made.
pub(crate) struct SettledAnswer<'a> {
    pub(crate) text: String,
    /// Whether the text was cut to the cap.
    pub(crate) capped: bool,
    /// Findings of the verifier in the text.
    pub(crate) findings: Vec<String>,
    pub(crate) level: StoredLevel,
    pub(crate) model: &'a str,
    /// How the last answer of the model ended; `None`: there was no answer.
    pub(crate) finish: Option<StoredFinish>,
    /// Whether the text is used only because the configured model gave no acceptable text.
    pub(crate) is_provisional: bool,
}

/// The content of a summary except its sources.
pub(crate) struct SummaryDraft<'a> {
    pub(crate) answer: SettledAnswer<'a>,
    pub(crate) created_at: Timestamp,
    pub(crate) prompt_version: u32,
    /// The provisional summary that the summary replaces; `None`: the summary is no remake.
    pub(crate) replaces: Option<[u8; 8]>,
}

impl GatheredSources {
    /// Builds the record of a summary of these sources.
    pub(crate) fn build_summary(&self, draft: SummaryDraft<'_>) -> Summary {
        let SummaryDraft { answer, created_at, prompt_version, replaces } = draft;
        let mut file_ids = self.file_ids.clone();
        collect_file_ids(&answer.text, &mut file_ids);
        Summary {
            derivation_version: self.derivation_version,
            depth: self.depth,
            level: answer.level,
            capped: answer.capped,
            sources: self.sources.clone(),
            task: self.task_hash,
            seq_first: self.seq_first,
            seq_last: self.seq_last,
            tokens: tokens::estimate(&answer.text),
            text: answer.text,
            source_tokens: self.tokens,
            message_tokens: self.message_tokens,
            descendant_count: self.descendant_count,
            descendant_tokens: self.descendant_tokens,
            earliest_at: self.earliest_at,
            latest_at: self.latest_at,
            created_at,
            model: truncate_model_name(answer.model).into(),
            finish: answer.finish,
            prompt_version,
            trust: self.trust,
            findings: answer.findings,
            file_ids,
            provisional: match (answer.is_provisional, self.is_provisional) {
                (true, _) => Provisional::Text,
                (false, true) => Provisional::Source,
                (false, false) => Provisional::No,
            },
            replaces,
        }
    }
}

/// Reads and gathers the messages of a leaf.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing, and
/// the head has not changed; errors of the store.
pub(crate) fn gather_messages(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    span: &MessageSpan,
    options: TranscriptOptions<'_>,
) -> Result<GatheredSources> {
    let placed = history.read_span(session, span)?;
    history.prefetch_texts(session, &placed)?;
    gather_placed(session, history, &placed, options)
}

/// Gathers messages of a leaf that were read already.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing, and
/// the head has not changed; errors of the store.
pub(crate) fn gather_placed(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    placed: &[PlacedMessage],
    options: TranscriptOptions<'_>,
) -> Result<GatheredSources> {
    let mut text = String::new();
    let mut file_ids = Vec::new();
    let mut trust = Vec::new();
    for message in placed {
        let raw = history.read_rendered_text(session, &message.stored)?;
        collect_file_ids(&raw, &mut file_ids);
        trust.push(Trust::from_message(&raw, message.stored.role, &message.stored.parts));
        render_source(&raw, message, options, &mut text);
    }
    let span = MessageSpan::from_messages(placed).unwrap_or_default();
    let sum = placed.iter().map(|message| u64::from(message.stored.tokens)).sum();
    let frontier = history.frontier_of_message(session, placed.last())?;
    let (earliest_at, latest_at) =
        time::find_range(placed.iter().map(|message| message.stored.time));
    Ok(GatheredSources {
        text,
        tokens: sum,
        derivation_version: derivation_version::common_version(
            placed.iter().map(|message| message.stored.derivation_version),
        ),
        seq_first: span.seq_first,
        seq_last: span.seq_last,
        depth: 0,
        task_hash: task::hash_messages(&span, &frontier),
        sources: SummarySources::Messages { span, frontier },
        message_tokens: sum,
        descendant_count: 0,
        descendant_tokens: 0,
        earliest_at,
        latest_at,
        trust: Trust::least_of(trust),
        file_ids,
        bridges: Vec::new(),
        tokens_before: placed.first().map_or(0, |message| message.tokens_before),
        tokens_through: placed
            .last()
            .map_or(0, |message| message.tokens_before + u64::from(message.stored.tokens)),
        is_provisional: false,
    })
}

fn render_source(
    raw: &str,
    message: &PlacedMessage,
    options: TranscriptOptions<'_>,
    text: &mut String,
) -> bool {
    let stored = &message.stored;
    let (role, parts, time) = (stored.role, stored.rendered_content().1, stored.time);
    transcript::render_message(text, &TranscriptMessage { raw, role, parts, time }, options)
}

/// Reads and gathers the items of a condensed summary, without withdrawn ranges. Each run among the
/// items becomes a leaf in `bridges` that repeats the text of the run without a model.
///
/// # Errors
///
/// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing, and
/// the head has not changed; errors of the store.
pub(crate) fn gather_items(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
    options: TranscriptOptions<'_>,
) -> Result<GatheredSources> {
    let mut records = summary_items::read_summaries(session, history, items)?.into_iter();
    let mut bridges = Vec::new();
    let mut sources: Vec<(SourceRef, Summary)> = Vec::new();
    for item in items {
        sources.push(match item {
            ContextItem::Summary(summary) => {
                let record = records.next().ok_or_else(|| missing_source_error(summary.id))?;
                (SourceRef { id: summary.id, bytes: summary.bytes }, record)
            }
            ContextItem::Run(run) => {
                let record = build_bridge(session, history, run, options)?;
                let bytes = record.encoded_bytes()?;
                bridges.push(record.clone());
                (SourceRef { id: record.id(), bytes }, record)
            }
            ContextItem::Withdrawn { .. } => continue,
        });
    }
    let tokens = items.iter().map(ContextItem::tokens).sum();
    let gathered = gather_summaries(&sources, (tokens, task::hash_items(items)), options.offsets);
    Ok(GatheredSources { bridges, ..gathered })
}

/// Gathers summaries that were already read, oldest first. `tokens`: the sum of the tokens of the
/// sources; `task_hash`: the hash by which a task names the sources; `offsets`: the offsets of
/// local time.
pub(crate) fn gather_summaries(
    sources: &[(SourceRef, Summary)],
    (tokens, task_hash): (u64, [u8; 16]),
    offsets: &TimeOffsets,
) -> GatheredSources {
    let times = sources.iter().flat_map(|(_, record)| [record.earliest_at, record.latest_at]);
    let (earliest_at, latest_at) = time::find_range(times);
    let mut gathered = GatheredSources {
        text: String::new(),
        tokens,
        derivation_version: DERIVATION_VERSION,
        seq_first: sources.first().map_or(0, |(_, record)| record.seq_first),
        seq_last: sources.last().map_or(0, |(_, record)| record.seq_last),
        sources: SummarySources::Summaries(sources.iter().map(|(source, _)| *source).collect()),
        depth: 0,
        task_hash,
        message_tokens: 0,
        descendant_count: 0,
        descendant_tokens: 0,
        earliest_at,
        latest_at,
        trust: Trust::Trusted,
        file_ids: Vec::new(),
        bridges: Vec::new(),
        tokens_before: 0,
        tokens_through: 0,
        is_provisional: false,
    };
    for (source, record) in sources {
        let render = SummaryRendering { record, id: source.id, text: &record.text };
        render.render_record(&mut gathered.text, offsets);
        gathered.derivation_version = derivation_version::common_version([
            gathered.derivation_version,
            record.derivation_version,
        ]);
        gathered.depth = gathered.depth.max(record.depth + 1);
        gathered.message_tokens += record.message_tokens;
        gathered.descendant_count += record.descendant_count + 1;
        gathered.descendant_tokens += record.descendant_tokens + u64::from(record.tokens);
        gathered.trust = gathered.trust.min(record.trust);
        gathered.is_provisional |= record.is_provisional();
        for id in &record.file_ids {
            push_unique(&mut gathered.file_ids, id);
        }
    }
    gathered
}

/// A summary record to render, with its text or a part of it.
struct SummaryRendering<'a> {
    record: &'a Summary,
    id: [u8; 8],
    text: &'a str,
}

impl SummaryRendering<'_> {
    /// Appends the summary as a block with its header, in local time.
    fn render_record(&self, out: &mut String, offsets: &TimeOffsets) {
        let summary = TranscriptSummary {
            id: &summary::format_summary_id(self.id),
            times: self.record.local_times(offsets),
            depth: self.record.depth,
            text: self.text,
        };
        transcript::render_summary(out, &summary);
    }
}

fn missing_source_error(id: [u8; 8]) -> Error {
    Error::corrupt_store(format_args!(
        "the record of summary `{}`, a source of the summary to make, is missing",
        summary::format_summary_id(id)
    ))
}

/// Builds a leaf that repeats the text of a bridge, so that the summaries around the bridge can be
/// condensed.
fn build_bridge(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    run: &MessageRun,
    options: TranscriptOptions<'_>,
) -> Result<Summary> {
    let span = MessageSpan::from_ranges(&[(run.seq_first, run.seq_last)]).unwrap_or_default();
    let gathered = gather_messages(session, history, &span, options)?;
    let text = if gathered.text.trim().is_empty() { "(no text)" } else { &gathered.text };
    let answer = SettledAnswer {
        text: text.into(),
        level: StoredLevel::Fallback,
        capped: false,
        findings: Vec::new(),
        model: VERBATIM_MODEL,
        finish: None,
        is_provisional: false,
    };
    Ok(gathered.build_summary(SummaryDraft {
        answer,
        created_at: gathered.latest_at,
        prompt_version: PROMPT_VERSION,
        replaces: None,
    }))
}

/// Returns whether the model is shown text before the sources of a summary of this depth.
pub(crate) const fn has_previous_context(depth: u32) -> bool {
    depth <= 1
}

/// The place of sources in the context. The prompt also shows the model the text before the
/// sources, the previous context, which is no source itself.
pub(crate) struct PreviousContext<'a> {
    /// Items before the sources.
    pub(crate) before: &'a [ContextItem],
    /// Seq of the first message of the sources.
    pub(crate) seq_first: u64,
    /// Depth of the summary.
    pub(crate) depth: u32,
    /// Tags of injected context, which is left out.
    pub(crate) injected_tags: &'a [String],
    /// Offsets of local time.
    pub(crate) offsets: &'a TimeOffsets,
}

impl PreviousContext<'_> {
    /// Reads the nearest summaries before the sources, at most two: summaries of any depth for a
    /// leaf, leaves for a summary of depth 1. If no summary precedes a leaf, reads the end of the
    /// messages before the leaf. `None`: there is no such text, or the depth is over 1.
    ///
    /// # Errors
    ///
    /// `conflict`: a record is missing, and the head has changed; `corrupt`: a record is missing,
    /// and the head has not changed; errors of the store.
    pub(crate) fn read(
        &self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
    ) -> Result<Option<String>> {
        let depth = self.depth;
        if !has_previous_context(depth) {
            return Ok(None);
        }
        let near: Vec<ContextItem> = self
            .before
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
            return if depth == 0 { self.read_raw_text(session, history) } else { Ok(None) };
        }
        let records = summary_items::read_summaries(session, history, &near)?;
        let mut out = String::new();
        for record in records.iter().rev() {
            let text = transcript::strip_truncation_notes(&record.text);
            let render = SummaryRendering { record, id: record.id(), text: &text };
            render.render_record(&mut out, self.offsets);
        }
        Ok(Some(out))
    }

    /// Reads the end of the raw text before the sources, at most [`PREVIOUS_TOKENS_MAX`] tokens;
    /// `None`: there is no text.
    fn read_raw_text(
        &self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
    ) -> Result<Option<String>> {
        let (seq_first, injected_tags) = (self.seq_first, self.injected_tags);
        let options = TranscriptOptions {
            part_tokens_max: PREVIOUS_TOKENS_MAX,
            injected_tags,
            offsets: self.offsets,
        };
        if seq_first <= 1 {
            return Ok(None);
        }
        let from = seq_first.saturating_sub(PREVIOUS_MESSAGES_MAX).max(1);
        let mut blocks: Vec<String> = Vec::new();
        let mut tokens = 0u32;
        let is_withdrawn = |seq: u64| {
            self.before.iter().any(|item| match item {
                ContextItem::Withdrawn { seq_first, seq_last } => {
                    (*seq_first..=*seq_last).contains(&seq)
                }
                ContextItem::Run(_) | ContextItem::Summary(_) => false,
            })
        };
        // Newest first. Texts in chunks are skipped, because reading megabytes is not worth it.
        for message in history.read_messages(session, from, seq_first - 1)?.iter().rev() {
            if tokens >= PREVIOUS_TOKENS_MAX {
                break;
            }
            let is_inline = matches!(message.stored.rendered_content().0, RawText::Inline(_));
            if !is_inline || is_withdrawn(message.seq) {
                continue;
            }
            let mut block = String::new();
            let raw = history.read_rendered_text(session, &message.stored)?;
            render_source(&raw, message, options, &mut block);
            tokens = tokens.saturating_add(tokens::estimate(&block));
            blocks.push(block);
        }
        blocks.reverse();
        let text = blocks.join("\n\n");
        let end = tokens::take_end(&text, u64::from(PREVIOUS_TOKENS_MAX) * 4);
        Ok((!end.trim().is_empty()).then(|| frame_cut_text(&text, end)))
    }
}

/// Returns `end`, the end of the framed `text`. If the cut divided a line, frames the rest of that
/// line as content, so that it is not read as a header.
fn frame_cut_text(text: &str, end: &str) -> String {
    let before = text.get(..text.len() - end.len()).unwrap_or("");
    if before.is_empty() || before.ends_with('\n') {
        return end.into();
    }
    let (line, after) =
        end.split_at_checked(end.find('\n').unwrap_or(end.len())).unwrap_or((end, ""));
    [&transcript::frame_content(line), after].concat()
}

/// Cuts the name of a model to [`limits::MODEL_BYTES_MAX`] bytes, because a host may give any name.
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

/// Adds the ids of payloads that occur in a text to a list, up to its limit.
fn collect_file_ids(text: &str, list: &mut Vec<String>) {
    for id in large_payload::find_ids(text) {
        push_unique(list, &large_payload::format_name(id));
    }
}
