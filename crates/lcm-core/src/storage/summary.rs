//! Summaries: immutable records that refer to their sources, with ids that are hashes of content.
//!
//! Compaction and import write these records; assembly, recall and search read them.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    keys::ConversationKeys,
    message_span::MessageSpan,
    record_key::RecordKey,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int, time,
        time_offsets::TimeOffsets,
    },
    config::Config,
    message::trust::Trust,
    summary::transcript::{self, SummaryElement},
    types::{
        api::Timestamp,
        model::{Finish, Level},
    },
};

/// Name in the field `model` of a summary that was made without a model.
pub(crate) const OFFLINE_MODEL: &str = "offline";

/// The sources of a summary, in order.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum SummarySources {
    /// Messages: the sources of a leaf.
    Messages {
        span: MessageSpan,
        /// Running hash after the last message, which proves that these messages are unchanged.
        frontier: [u8; 16],
    },
    /// Summaries, oldest first: the sources of a condensed summary.
    Summaries(Vec<SourceRef>),
}

/// A reference to a source summary.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SourceRef {
    pub(crate) id: [u8; 8],
    /// Size of the encoded summary record in bytes.
    pub(crate) bytes: u32,
}

/// The stored record of a summary.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Summary {
    /// Version of the rules that derived tokens and totals; see
    /// [`lcm_text::base::derivation_version`]. 0: the version of the writer did not derive all of
    /// them.
    pub(crate) derivation_version: u32,
    /// 0 for a leaf, or else 1 + the greatest depth of the sources.
    pub(crate) depth: u32,
    pub(crate) level: StoredLevel,
    /// Whether the text was cut to its token limit.
    pub(crate) capped: bool,
    pub(crate) sources: SummarySources,
    /// Hash of the sources, by which a compaction task names them.
    pub(crate) task: [u8; 16],
    pub(crate) seq_first: u64,
    pub(crate) seq_last: u64,
    pub(crate) text: String,
    /// Tokens of the text.
    pub(crate) tokens: u32,
    /// Tokens of the direct sources: of messages, or of the texts of summaries.
    pub(crate) source_tokens: u64,
    /// Tokens, in a context, of all messages that the summary covers.
    pub(crate) message_tokens: u64,
    /// Number of all descendant summaries: the sources, their sources, and so on; 0 for a leaf.
    pub(crate) descendant_count: u64,
    /// Tokens of the texts of all descendant summaries.
    pub(crate) descendant_tokens: u64,
    /// Earliest time of a covered message that is dated; [`time::UNDATED`]: none is.
    pub(crate) earliest_at: Timestamp,
    /// Latest time of a covered message that is dated; [`time::UNDATED`]: none is.
    pub(crate) latest_at: Timestamp,
    pub(crate) created_at: Timestamp,
    /// Name of the model that wrote the text; [`OFFLINE_MODEL`], or `verbatim` for a bridge: no
    /// model wrote the text.
    pub(crate) model: String,
    /// How the model ended its last answer: the text itself, or the answer that a fallback
    /// replaces; `None`: no model answered.
    pub(crate) finish: Option<StoredFinish>,
    /// Version of the prompt; with the highest bit set, a hash that covers an operator's text.
    pub(crate) prompt_version: u32,
    /// Least trust of the sources.
    pub(crate) trust: Trust,
    /// Findings of the verifier in the text, one line each; empty for a model's text, because
    /// findings reject an answer.
    pub(crate) findings: Vec<String>,
    /// Ids of files of the sources, in order, without repetition; at most 64.
    pub(crate) file_ids: Vec<String>,
    pub(crate) provisional: Provisional,
    /// Id of the provisional summary that this summary replaces; `None`: it replaces none.
    pub(crate) replaces: Option<[u8; 8]>,
}

/// Whether a summary is to be made again, and why; the order of the variants is part of the format.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Provisional {
    No,
    /// The text was made without the configured model, which failed, was not available, or had its
    /// answers rejected; or the model's text was cut off at its token limit.
    Text,
    /// The text is not provisional, and a source was.
    Source,
}

impl Provisional {
    /// All variants, in the order of their declaration.
    pub(crate) const ALL: [Self; 3] = [Self::No, Self::Text, Self::Source];

    /// Returns the name in JSON.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Text => "text",
            Self::Source => "source",
        }
    }
}

/// The stored form of [`Level`]; the order of the variants is part of the format.
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

impl From<StoredLevel> for Level {
    fn from(level: StoredLevel) -> Self {
        match level {
            StoredLevel::Normal => Self::Normal,
            StoredLevel::Aggressive => Self::Aggressive,
            StoredLevel::Fallback => Self::Fallback,
        }
    }
}

impl StoredLevel {
    /// Returns the name in JSON.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Aggressive => "aggressive",
            Self::Fallback => "fallback",
        }
    }
}

/// The stored form of [`Finish`]; the order of the variants is part of the format.
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
    /// Returns the name in JSON.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Refusal => "refusal",
        }
    }
}

/// The fields of a summary record that the journal repeats.
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

    /// Returns the size of the encoded record in bytes.
    ///
    /// # Errors
    ///
    /// `limit-exceeded`: the record is larger than 256 KiB.
    pub(crate) fn encoded_bytes(&self) -> Result<u32> {
        Ok(int::to_u32(codec::encode_record(self)?.len()))
    }

    /// Returns the key of the record with the id of the summary that replaced the summary `id`.
    pub(crate) fn derived_key(keys: &ConversationKeys, id: [u8; 8]) -> RecordKey<[u8; 8]> {
        RecordKey::new(keys.derived_key(id))
    }
}

impl SoundRecord for Summary {
    const IS_COMPRESSED: bool = true;

    fn is_sound(&self) -> bool {
        let is_sound_leaf = match &self.sources {
            SummarySources::Messages { span, .. } => span.is_sound(),
            SummarySources::Summaries(_) => self.seq_first > 0,
        };
        let counts = [self.seq_last, self.source_tokens, self.message_tokens];
        is_sound_leaf
            && self.seq_first <= self.seq_last
            && self.depth < 1 << 20
            && codec::are_countable(&counts)
            && codec::are_countable(&[self.descendant_count, self.descendant_tokens])
    }
}

impl Summary {
    /// Returns the level that results name: every summary that no model wrote is a fallback.
    pub(crate) fn shown_level(&self) -> StoredLevel {
        if self.model == OFFLINE_MODEL { StoredLevel::Fallback } else { self.level }
    }

    /// Returns `leaf` or `condensed`.
    pub(crate) const fn kind(&self) -> &'static str {
        match self.sources {
            SummarySources::Messages { .. } => "leaf",
            SummarySources::Summaries(_) => "condensed",
        }
    }

    /// Returns the references to the source summaries; empty for a leaf.
    pub(crate) fn source_refs(&self) -> &[SourceRef] {
        match &self.sources {
            SummarySources::Messages { .. } => &[],
            SummarySources::Summaries(list) => list,
        }
    }

    /// Returns the printed ids of the source summaries.
    pub(crate) fn source_ids(&self) -> Vec<String> {
        self.source_refs().iter().map(|source| format_summary_id(source.id)).collect()
    }

    /// Returns the fields that the journal repeats.
    pub(crate) fn to_provenance(&self) -> SummaryProvenance {
        SummaryProvenance {
            level: self.level,
            finish: self.finish,
            prompt_version: self.prompt_version,
            trust: self.trust,
            model: self.model.clone(),
        }
    }

    /// Computes the id of the record.
    pub(crate) fn id(&self) -> [u8; 8] {
        let identity = SummaryIdentity {
            task: &self.task,
            prompt_version: self.prompt_version,
            level: self.level,
            replaces: self.replaces,
        };
        identity.compute_id(&self.text)
    }

    /// Returns whether the summary is provisional, by its record alone.
    pub(crate) fn is_provisional(&self) -> bool {
        self.provisional != Provisional::No
    }

    /// Renders the summary as the XML element of an assembled context.
    ///
    /// Its times are in UTC. In local time the text has as many tokens.
    pub(crate) fn render_xml(&self, id: [u8; 8]) -> String {
        self.render_element(id, &TimeOffsets::default(), transcript::render_summary_xml)
    }

    /// Returns the earliest and the latest local time of a covered message; `None`: all of them are
    /// undated.
    pub(crate) fn local_times(&self, offsets: &TimeOffsets) -> Option<(Timestamp, Timestamp)> {
        let local = || (offsets.to_local(self.earliest_at), offsets.to_local(self.latest_at));
        (self.latest_at != time::UNDATED).then(local)
    }

    /// Renders the summary with `render`, in XML or another form, and with local times.
    pub(crate) fn render_element(
        &self,
        id: [u8; 8],
        offsets: &TimeOffsets,
        render: fn(&transcript::SummaryElement<'_>) -> String,
    ) -> String {
        let names = self.source_ids();
        let sources: Vec<&str> = names.iter().map(String::as_str).collect();
        render(&transcript::SummaryElement {
            id: &format_summary_id(id),
            depth: self.depth,
            descendant_count: int::saturate_tokens(self.descendant_count),
            times: self.local_times(offsets),
            sources: &sources,
            trust: self.trust,
            text: &self.text,
        })
    }
}

/// Returns the function that renders the element of a summary in an assembled context.
pub(crate) fn choose_markup(config: &Config) -> fn(&SummaryElement<'_>) -> String {
    match config.plain_summaries {
        true => transcript::render_summary_plain,
        false => transcript::render_summary_xml,
    }
}

/// The values from which, together with the text, the id of a summary is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SummaryIdentity<'a> {
    /// Hash over the sources; it always differs between leaves and condensed summaries.
    pub(crate) task: &'a [u8; 16],
    pub(crate) prompt_version: u32,
    pub(crate) level: StoredLevel,
    /// Id of the provisional summary that this summary replaces; `None`: it replaces none.
    pub(crate) replaces: Option<[u8; 8]>,
}

impl SummaryIdentity<'_> {
    /// Computes the id of the summary with this text.
    pub(crate) fn compute_id(&self, text: &str) -> [u8; 8] {
        let replaces = self.replaces.unwrap_or_default();
        let mut fields: Vec<&[u8]> = Vec::from([b"lcm summary".as_slice(), self.task]);
        let version = self.prompt_version.to_be_bytes();
        fields.extend([version.as_slice(), self.level.as_str().as_bytes(), text.as_bytes()]);
        if self.replaces.is_some() {
            fields.push(&replaces);
        }
        hash::hash_prefix(&hash::hash_fields(&fields))
    }
}

/// Formats the printed id of a summary.
pub(crate) fn format_summary_id(id: [u8; 8]) -> String {
    format!("sum_{}", hash::hex(&id))
}

/// Parses the printed id of a summary.
///
/// # Errors
///
/// `invalid-input`: the digits are all zeros; `not-found`: the text is not `sum_` and 16 hex
/// digits.
pub(crate) fn parse_summary_id(text: &str) -> Result<[u8; 8]> {
    let digits = text.strip_prefix("sum_").unwrap_or("");
    if !digits.is_empty() && digits.bytes().all(|digit| digit == b'0') {
        return Err(Error::invalid_input(format_args!(
            "`{text}` must be `sum_` and 16 hex digits that are not all 0; use an id from an answer"
        )));
    }
    match hash::decode_hex(digits) {
        Some(bytes) if bytes.len() == 8 => Ok(hash::hash_prefix(&bytes)),
        _ => Err(Error::not_found(format_args!(
            "`{text}` is not the id of a summary: ids are `sum_` and 16 hex digits"
        ))),
    }
}
