//! The values that cross the engine's public boundary, one for one with `wit/`.
//!
//! Only plain data: no behaviour lives here. `lcm-component` converts these to and from the
//! component's types and decides nothing.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::types::model::{CompletionRequest, Level, Purpose};

/// Milliseconds since the Unix epoch, UTC.
pub type Timestamp = u64;

/// In which published shape messages come in and go out. The order of the cases is stored.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// This project's own shape.
    Lcm,
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Chat Completions.
    OpenaiChat,
    /// `OpenAI` Responses input items.
    OpenaiResponses,
    /// Gemini contents.
    Gemini,
}

impl Dialect {
    /// Its name in options and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lcm => "lcm",
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }
}

/// How `append` reads its list.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IngestMode {
    /// The list is a tail of the conversation as the host holds it; what is stored is recognised.
    #[default]
    Transcript,
    /// Every message is new unless its id or event key is stored.
    New,
}

/// Options of `append`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AppendOptions {
    /// How the list is read.
    pub mode: IngestMode,
    /// Whether a batch that is too large is cut to what fits instead of being refused.
    pub partial: bool,
    /// A JSON object of further options: `{"repeat": true}` says that this call repeats one whose
    /// outcome is unknown; `{"list": TEXT, "from": N}` names the list that it is a part of, and how
    /// many messages of it stand before those of the call; `{"revision": N}` makes it a conflict
    /// when the conversation is not at that revision; `{"refuse_replay": true}` makes the replay
    /// warning an error; `{"family": TEXT}` is the key of the family that the conversation is of,
    /// or comes to.
    pub extra_json: Option<String>,
}

/// A piece of a text that is too large for one call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UploadChunk<'a> {
    /// SHA-256 of the whole text in 64 hex digits.
    pub upload: &'a str,
    /// Where it begins, in bytes of UTF-8 from 0.
    pub offset: u64,
    /// 1 to 196,608 bytes.
    pub text: &'a str,
    /// A JSON object of what is known of the whole, `None`: nothing is. `{"bytes": N}` is its
    /// size, so that one that is too large is refused at once; `{"family": TEXT}` what `append` is
    /// told.
    pub extra_json: Option<&'a str>,
}

/// What `append` did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Receipt {
    /// Revision of the conversation after the call.
    pub revision: u64,
    /// Messages stored by this call.
    pub ingested: u32,
    /// Messages recognised as stored already, or empty failed turns.
    pub skipped: u32,
    /// Seq of the first message stored; `None`: none was.
    pub seq_first: Option<u64>,
    /// Seq of the last message stored; `None`: none was.
    pub seq_last: Option<u64>,
    /// Tokens of the stored context after the call.
    pub context_tokens: u32,
    /// Things worth knowing, each one line.
    pub warnings: Vec<String>,
}

/// When compaction acts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CompactionMode {
    /// A sweep when the context exceeds the threshold.
    #[default]
    Threshold,
    /// One leaf pass when a whole chunk of raw text lies outside the fresh tail.
    Incremental,
    /// A sweep when the context exceeds the threshold or the given target.
    Sweep,
    /// Sweeps until the context is under the target.
    UntilUnder,
}

/// Options of `evaluate`, `plan` and `run`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CompactionOptions {
    /// When to act.
    pub mode: CompactionMode,
    /// Whether to act below the threshold, too, and in spite of a pause or an open breaker.
    pub force: bool,
    /// Tokens to reach; `None`: the threshold.
    pub target: Option<u32>,
    /// Tokens the host saw its provider count for the whole prompt; `None`: unknown.
    pub observed_tokens: Option<u32>,
    /// At most this many requests from one `plan`; 0 counts as 1.
    pub requests_max: u32,
    /// How long the handed-out tasks are reserved for this caller; 0: no reservation.
    pub lease_ms: u32,
    /// The `sweep` of the preceding plan; `None` or empty: a new sweep.
    pub sweep: Option<String>,
    /// `None`, or a JSON object: `model`, whose tokens `budget`, `target` and `observed_tokens` are
    /// and which overrides may name.
    pub extra_json: Option<String>,
}

/// Whether compaction is due, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Decision {
    /// The context exceeds the threshold or the target, or in mode `incremental` a chunk is full.
    pub due: bool,
    /// The context exceeds the budget: the next turn cannot wait.
    pub must: bool,
    /// `below-threshold`; or when it is due `threshold`, `leaf-chunk` or `forced`; or `disabled`.
    pub reason: String,
    /// Tokens that were compared: of the stored context, or in mode `incremental` of raw messages
    /// outside the fresh tail.
    pub tokens: u32,
    /// What they were compared with.
    pub threshold: u32,
    /// JSON: inputs, rule and outcome.
    pub explanation_json: String,
}

/// What a plan amounts to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlanStatus {
    /// Nothing to do; `reason` says why.
    NothingDue,
    /// `requests` wait for a model.
    NeedsCompletions,
    /// There would be work, but a limit or a failing model forbids it; `reason` says which.
    Stopped,
}

/// What `plan` proposes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlanResult {
    /// What it amounts to.
    pub status: PlanStatus,
    /// One of the closed list of reasons; empty when completions are needed.
    pub reason: String,
    /// Revision the plan was made from.
    pub revision: u64,
    /// Disjoint tasks, each admissible alone, in the order of their sources.
    pub requests: Vec<CompletionRequest>,
    /// To be handed to the next plan of this sweep; empty: the work is over.
    pub sweep: String,
}

/// Options of `apply`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ApplyOptions {
    /// Set when all models of the host are exhausted: if the stored context exceeds this many
    /// tokens, the fallback is committed. `None`: it never is for a failing model.
    pub fallback_over_tokens: Option<u32>,
    /// A JSON object: `model` (text), by whose tokens `fallback_over_tokens` is meant. `None`: the
    /// engine's own.
    pub extra_json: Option<String>,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ApplyStatus {
    /// A summary replaced its sources, now or by an earlier identical call.
    Committed,
    /// The answer was rejected; `next` asks again.
    Retry,
    /// The sources are no longer in the context; nothing changed but the ledger.
    Stale,
    /// No summary was made; `reason` says why.
    Refused,
}

/// What `apply` and `run` did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApplyOutcome {
    /// What became of the answer.
    pub applied: ApplyStatus,
    /// One of the closed list of reasons; empty when committed.
    pub reason: String,
    /// The summary that was made or found.
    pub summary: Option<String>,
    /// What the task was for.
    pub purpose: Purpose,
    /// Depth of the summary.
    pub depth: u32,
    /// Level of the summary, or of the answer that was judged.
    pub level: Level,
    /// Whether the text was cut to its cap.
    pub capped: bool,
    /// Tokens of the stored context before.
    pub tokens_before: u32,
    /// Tokens of the stored context after.
    pub tokens_after: u32,
    /// Whether another pass may be worth planning.
    pub more: bool,
    /// The request that follows a `retry`.
    pub next: Option<CompletionRequest>,
    /// Of `run`: to be handed back as `sweep`; empty otherwise.
    pub sweep: String,
    /// Things worth knowing, each one line.
    pub warnings: Vec<String>,
}

/// Which older items a context keeps when not everything fits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EvictionPolicy {
    /// Newest first, stopping at the first that does not fit.
    #[default]
    Chronological,
    /// Those that match the prompt best.
    PromptAware,
    /// The summary of the oldest messages, if it fits; then newest first, in steps.
    Layered,
}

/// Options of `assemble`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AssembleOptions {
    /// Which older items are kept; `None`: `eviction_policy` of the configuration.
    pub policy: Option<EvictionPolicy>,
    /// What `prompt-aware` compares with; `None`, or without words: newest first.
    pub prompt: Option<String>,
    /// Tokens of the budget that the host needs for itself.
    pub reserve_tokens: u32,
    /// Messages of the dialect that the host holds; those that are stored count once.
    pub live_messages: Vec<String>,
    /// The `token` of an earlier assembly to compare with.
    pub previous: Option<String>,
    /// Whether `items` lists every item of the stored context, and `explanation_text` shows them.
    pub explain: bool,
    /// A JSON object: `model` (text), by whose tokens budget and reserve are meant; `mark_caches`
    /// (flag), whether Anthropic's cache is marked. `None`: neither.
    pub extra_json: Option<String>,
}

/// How much of an assembly is equal to an earlier one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PrefixReport {
    /// Tokens of the equal beginning; `None`: nothing to compare with.
    pub stable_tokens: Option<u32>,
    /// Id of the first item that differs; `None`: none does, or nothing to compare with.
    pub broken_by: Option<String>,
    /// Why it differs, the first that is so of `dialect`, `focus`, `compaction`, `budget`,
    /// `eviction` and `edit`; `None`: as `broken_by`.
    pub broken_why: Option<String>,
    /// Indexes of the messages behind which a cache may end, at most three, ascending.
    pub breakpoints: Vec<u32>,
    /// SHA-256 of what is returned as a chain over its elements, 64 hex digits.
    pub sha256: String,
    /// To be handed back as `previous`.
    pub token: String,
}

/// One item of the stored context. A run that is cut at the budget is two items.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AssembledItem {
    /// `sum_...`, `focus_...`, `live-...`, or `msg_...` of the first message of a run.
    pub id: String,
    /// `message`, `leaf`, `condensed`, `focus`, `live` or `withdrawn`.
    pub kind: String,
    /// Whether it was chosen; what rendering did to it, up to leaving it out, is in `why`.
    pub included: bool,
    /// Why: `fresh-tail`, `pinned`, `focus`, `live`, `oldest`, `matches-prompt`, `fill`,
    /// `over-budget` or `withdrawn`, and behind a colon what was done to it.
    pub why: String,
    /// Tokens it costs in the assembly.
    pub tokens: u32,
    /// First message it stands for.
    pub seq_first: Option<u64>,
    /// Last message it stands for.
    pub seq_last: Option<u64>,
}

/// A context that fits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AssembledContext {
    /// JSON array of messages in the dialect asked for.
    pub messages_json: String,
    /// Text of the leading system messages that are still raw; `None`: there are none.
    pub system: Option<String>,
    /// Tokens of everything that is returned, `system` included.
    pub tokens: u32,
    /// Summaries among the messages.
    pub summaries: u32,
    /// Messages of the fresh tail.
    pub fresh_tail_messages: u32,
    /// Messages and summaries of the stored context that were left out.
    pub evicted: u32,
    /// Every item of the stored context, when asked for.
    pub items: Vec<AssembledItem>,
    /// The same as text for people, when asked for: a line for each, and a picture of what fills
    /// the budget.
    pub explanation_text: Option<String>,
    /// What is equal to an earlier assembly.
    pub prefix: PrefixReport,
    /// Things worth knowing, each one line.
    pub warnings: Vec<String>,
}

/// What an agent's model is told about a call of a tool.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ToolAnswer {
    /// The result of the tool.
    pub text: String,
    /// Whether the text describes a mistake of the caller.
    pub is_error: bool,
}

/// What came of a tool's call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ToolOutcome {
    /// The answer.
    Done(ToolAnswer),
    /// A model has to complete these first; then the call is resumed.
    NeedsCompletions {
        /// What to complete, in any order.
        requests: Vec<CompletionRequest>,
        /// For `resume`; opaque.
        continuation: String,
        /// How long the answers may take, in milliseconds.
        timeout_ms: u64,
    },
}
