//! Summaries: the nodes of the DAG, written once under an id made from their content.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    record_key::RecordKey,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
    },
    message::trust::Trust,
    summary::transcript,
    types::{
        api::Timestamp,
        model::{Finish, Level},
    },
};

/// Model name of a summary made without one.
pub(crate) const OFFLINE_MODEL: &str = "offline";

/// What a summary was made from, in order.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum SummarySources {
    /// A leaf: these messages.
    Messages {
        seq_first: u64,
        seq_last: u64,
        /// Running hash of the sequence at `seq_last`: the messages are exactly these.
        frontier: [u8; 16],
    },
    /// A condensed summary: these summaries, oldest first.
    Summaries(Vec<SourceRef>),
}

/// Reference to a source summary.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SourceRef {
    pub(crate) id: [u8; 8],
    /// Size of its record.
    pub(crate) bytes: u32,
}

/// The stored record of a summary.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Summary {
    /// Version of the rules that derived its tokens and all that it counts, see
    /// [`lcm_text::base::derivation_version`]; 0: not all by the same version.
    pub(crate) derivation_version: u32,
    /// 0 for a leaf, else 1 + the greatest depth of the sources.
    pub(crate) depth: u32,
    pub(crate) level: StoredLevel,
    pub(crate) capped: bool,
    pub(crate) sources: SummarySources,
    /// Hash over the sources as the task named them.
    pub(crate) task: [u8; 16],
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    pub(crate) text: String,
    /// Tokens of the text.
    pub(crate) tokens: u32,
    /// Tokens of its direct sources.
    pub(crate) source_tokens: u64,
    /// Tokens of all messages under it.
    pub(crate) message_tokens: u64,
    /// Summaries under it, and the tokens of their texts.
    pub(crate) descendant_count: u64,
    pub(crate) descendant_tokens: u64,
    pub(crate) earliest_at: Timestamp,
    pub(crate) latest_at: Timestamp,
    pub(crate) created_at: Timestamp,
    /// The model that wrote it; `offline` when none did.
    pub(crate) model: String,
    /// How the model ended the answer that was judged last: the text, or of a fallback the answer
    /// that it stands in for; `None`: there was none.
    pub(crate) finish: Option<StoredFinish>,
    pub(crate) prompt_version: u32,
    /// The least of its sources' labels.
    pub(crate) trust: Trust,
    /// What the verifier found in the text, one line each. An answer of a model has none: it
    /// would have been rejected.
    pub(crate) findings: Vec<String>,
    /// Ids of files that occur under it, in order, each once.
    pub(crate) file_ids: Vec<String>,
}

/// [`Level`] as it is stored; the numbers are part of the format.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StoredLevel {
    Normal,
    Aggressive,
    Fallback,
}

impl From<Level> for StoredLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Normal => Self::Normal,
            Level::Aggressive => Self::Aggressive,
            Level::Fallback => Self::Fallback,
        }
    }
}

impl StoredLevel {
    /// The level as JSON writes it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Aggressive => "aggressive",
            Self::Fallback => "fallback",
        }
    }
}

/// [`Finish`] as it is stored; the numbers are part of the format.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StoredFinish {
    Stop,
    Length,
    Refusal,
}

impl From<Finish> for StoredFinish {
    fn from(finish: Finish) -> Self {
        match finish {
            Finish::Stop => Self::Stop,
            Finish::Length => Self::Length,
            Finish::Refusal => Self::Refusal,
        }
    }
}

impl StoredFinish {
    /// The finish as JSON writes it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Refusal => "refusal",
        }
    }
}

/// How a summary came about: what the journal repeats of its record.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SummaryProvenance {
    pub(crate) level: StoredLevel,
    pub(crate) finish: Option<StoredFinish>,
    pub(crate) prompt_version: u32,
    pub(crate) trust: Trust,
    /// At most [`lcm_text::base::limits::MODEL_BYTES_MAX`] bytes.
    pub(crate) model: String,
}

impl Summary {
    /// Returns the key of the summary with this id.
    pub(crate) fn key(keys: &ConversationKeys, id: [u8; 8]) -> RecordKey<Self> {
        RecordKey::new(keys.summary_key(id))
    }

    /// Returns the key of the record that names the summary which was made from the summary `id`.
    pub(crate) fn derived_key(keys: &ConversationKeys, id: [u8; 8]) -> RecordKey<[u8; 8]> {
        RecordKey::new(keys.derived_key(id))
    }
}

impl SoundRecord for Summary {
    const IS_COMPRESSED: bool = true;

    fn is_sound(&self) -> bool {
        let (first, last) = match &self.sources {
            SummarySources::Messages { seq_first, seq_last, .. } => (*seq_first, *seq_last),
            SummarySources::Summaries(_) => (self.seq_first, self.seq_last),
        };
        let counts = [self.seq_last, last, self.source_tokens, self.message_tokens];
        first > 0
            && first <= last
            && self.seq_first <= self.seq_last
            && self.depth < 1 << 20
            && codec::are_countable(&counts)
            && codec::are_countable(&[self.descendant_count, self.descendant_tokens])
    }
}

impl Summary {
    /// `leaf` or `condensed`.
    pub(crate) const fn kind(&self) -> &'static str {
        match self.sources {
            SummarySources::Messages { .. } => "leaf",
            SummarySources::Summaries(_) => "condensed",
        }
    }

    /// The summaries that it was made from; none of a leaf.
    pub(crate) fn source_refs(&self) -> &[SourceRef] {
        match &self.sources {
            SummarySources::Messages { .. } => &[],
            SummarySources::Summaries(list) => list,
        }
    }

    /// The printed ids of those.
    pub(crate) fn source_ids(&self) -> Vec<String> {
        self.source_refs().iter().map(|source| format_summary_id(source.id)).collect()
    }

    /// How it came about.
    pub(crate) fn to_provenance(&self) -> SummaryProvenance {
        SummaryProvenance {
            level: self.level,
            finish: self.finish,
            prompt_version: self.prompt_version,
            trust: self.trust,
            model: self.model.clone(),
        }
    }

    /// The id of this record.
    pub(crate) fn id(&self) -> [u8; 8] {
        summary_id(&self.task, self.prompt_version, self.level, &self.text)
    }

    /// The element that stands for the summary in an assembled context.
    pub(crate) fn render_xml(&self, id: [u8; 8]) -> String {
        self.render_element(id, transcript::render_summary_xml)
    }

    /// As [`Self::xml`], written in this form.
    pub(crate) fn render_element(
        &self,
        id: [u8; 8],
        form: fn(&transcript::SummaryElement<'_>) -> String,
    ) -> String {
        let names = self.source_ids();
        let sources: Vec<&str> = names.iter().map(String::as_str).collect();
        form(&transcript::SummaryElement {
            id: &format_summary_id(id),
            depth: self.depth,
            descendant_count: int::saturate_tokens(self.descendant_count),
            earliest: Some(self.earliest_at),
            latest: Some(self.latest_at),
            sources: &sources,
            trust: self.trust,
            text: &self.text,
        })
    }
}

/// The id of a summary: a hash over its sources, prompt version, level and text.
///
/// The hash over the sources differs between leaf and condensed, so the kind is in it.
pub(crate) fn summary_id(
    task: &[u8; 16],
    prompt_version: u32,
    level: StoredLevel,
    text: &str,
) -> [u8; 8] {
    hash::hash_prefix(&hash::hash_fields(&[
        b"lcm summary",
        task,
        &prompt_version.to_be_bytes(),
        level.as_str().as_bytes(),
        text.as_bytes(),
    ]))
}

/// The printed id of a summary.
pub(crate) fn format_summary_id(id: [u8; 8]) -> String {
    format!("sum_{}", hash::hex(&id))
}

/// The id from its printed form.
///
/// # Errors
///
/// `invalid-input`: a placeholder of zeros; `not-found`: not the form of an id.
pub(crate) fn parse_summary_id(text: &str) -> Result<[u8; 8]> {
    let digits = text.strip_prefix("sum_").unwrap_or("");
    if !digits.is_empty() && digits.bytes().all(|digit| digit == b'0') {
        return Err(Error::invalid_input(format_args!(
            "`{text}` is a placeholder, not the id of a summary"
        )));
    }
    match hash::decode_hex(digits) {
        Some(bytes) if bytes.len() == 8 => Ok(hash::hash_prefix(&bytes)),
        _ => Err(Error::not_found(format_args!(
            "there is no summary `{text}` in this conversation: ids are `sum_` and 16 hex digits"
        ))),
    }
}
