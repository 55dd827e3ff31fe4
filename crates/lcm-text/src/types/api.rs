//! Arguments and results of the engine's exported functions, with the same fields as in `wit/`.
//!
//! Plain data without behaviour. `lcm-component` converts these values to and from the types that
//! are generated from `wit/`.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
pub use crate::base::time::Timestamp;
use crate::types::model::{CompletionRequest, Level, Purpose};

/// The format of a message: a provider's, an agent framework's, or the engine's own. The store
/// holds the position of a variant, so their order never changes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// The engine's own format.
    Lcm,
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Chat Completions.
    OpenaiChat,
    /// `OpenAI` Responses input items.
    OpenaiResponses,
    /// Gemini contents.
    Gemini,
    /// `ModelMessage` and `UIMessage` of Vercel's AI SDK.
    AiSdk,
    /// Messages of `OpenClaw` and the Pi agent.
    Openclaw,
    /// Messages of `LangChain`.
    Langchain,
    /// Items of `OpenAI` Agents for JavaScript.
    OpenaiAgents,
}

impl Dialect {
    /// All dialects, in the order of the declaration. Of dialects that understand a message equally
    /// well, [`ReadDialect::Auto`] takes the first.
    pub const ALL: [Self; 9] = [
        Self::Lcm,
        Self::Anthropic,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Gemini,
        Self::AiSdk,
        Self::Openclaw,
        Self::Langchain,
        Self::OpenaiAgents,
    ];

    /// Returns the name of the dialect in options and error messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lcm => "lcm",
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Gemini => "gemini",
            Self::AiSdk => "ai-sdk",
            Self::Openclaw => "openclaw",
            Self::Langchain => "langchain",
            Self::OpenaiAgents => "openai-agents",
        }
    }

    /// Returns whether the output of a model is several items, each of which is a message.
    #[must_use]
    pub const fn has_items(self) -> bool {
        matches!(self, Self::OpenaiResponses | Self::OpenaiAgents)
    }

    /// Returns whether the format is that of an agent framework.
    #[must_use]
    pub const fn is_framework(self) -> bool {
        matches!(self, Self::AiSdk | Self::Openclaw | Self::Langchain | Self::OpenaiAgents)
    }
}

/// The dialect in which messages are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadDialect {
    /// This dialect for every message.
    Of(Dialect),
    /// For each message the dialect that reads most of the message.
    Auto,
}

impl ReadDialect {
    /// Returns the name in options and error messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Of(dialect) => dialect.as_str(),
            Self::Auto => "auto",
        }
    }

    /// Returns the dialect in which messages are written.
    ///
    /// # Errors
    ///
    /// `invalid-input`: `Auto`, which only reads.
    pub fn require_one(self) -> Result<Dialect> {
        match self {
            Self::Of(dialect) => Ok(dialect),
            Self::Auto => Err(Error::invalid_input(format_args!(
                "`dialect` must be one of {} for messages that the engine writes, got `auto`",
                Dialect::ALL.map(Dialect::as_str).join(", ")
            ))),
        }
    }

    /// Returns the dialect of tool definitions; `Auto`: the engine's own.
    #[must_use]
    pub const fn or_lcm(self) -> Dialect {
        match self {
            Self::Of(dialect) => dialect,
            Self::Auto => Dialect::Lcm,
        }
    }
}

impl From<Dialect> for ReadDialect {
    fn from(dialect: Dialect) -> Self {
        Self::Of(dialect)
    }
}

/// How `append` treats messages that are stored already.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AppendMode {
    /// The list is the end of the host's transcript; stored messages are recognised and skipped.
    #[default]
    Transcript,
    /// Every message is new unless its id or event key, or its call id with equal content, is
    /// stored.
    New,
}

/// Options of `append`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AppendOptions {
    /// How stored messages are treated.
    pub append_mode: AppendMode,
    /// Whether a batch over a limit is cut to its first messages that fit, instead of being
    /// rejected.
    pub partial: bool,
    /// A JSON object of further options, or `None`:
    ///
    /// - `{"repeat": true}`: the call repeats an earlier call whose outcome is unknown.
    /// - `{"list": TEXT, "list_offset": N}`: the batch belongs to the list of this name, and N
    ///   messages of the list come before the batch.
    /// - `{"revision": N}`: the call fails with `conflict` if the revision is another.
    /// - `{"undated": true}`: a new message without a `timestamp` has no time; otherwise its time
    ///   is `now`.
    /// - `{"refuse_replay": true}`: a likely replay fails with `exists` instead of a warning.
    /// - `{"family": TEXT}`: the key of the family that the conversation belongs to or joins.
    pub extra_json: Option<String>,
}

/// A piece of a message's text that is too large for one call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UploadChunk<'a> {
    /// SHA-256 of the whole text in 64 hex digits.
    pub upload: &'a str,
    /// Offset of the piece, in bytes of UTF-8 from 0.
    pub offset: u64,
    /// The piece: 1 to 196,608 bytes.
    pub text: &'a str,
    /// A JSON object about the whole text, or `None`. `{"bytes": N}` is the size of the text, so
    /// that a text over the limit is rejected with its first piece. `{"family": TEXT}` is the same
    /// option as in [`AppendOptions::extra_json`].
    pub extra_json: Option<&'a str>,
}

/// The result of `append`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Receipt {
    /// Revision of the conversation after the call.
    pub revision: u64,
    /// Messages stored by this call.
    pub ingested: u32,
    /// Messages that were stored before, and failed turns without content.
    pub skipped: u32,
    /// Seq of the first message stored by this call; `None`: no message was stored.
    pub seq_first: Option<u64>,
    /// Seq of the last message stored by this call; `None`: no message was stored.
    pub seq_last: Option<u64>,
    /// Seq up to which the caller has now seen every message; 0: none. The option `seq_seen` of the
    /// next call takes it.
    pub seq_seen: u64,
    /// Tokens of the stored context after the call.
    pub context_tokens: u32,
    /// Warnings, one line each.
    pub warnings: Vec<String>,
    /// Events of the call, a JSON array.
    pub events_json: String,
}

/// When compaction acts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CompactionMode {
    /// A sweep when the context exceeds the threshold.
    #[default]
    Threshold,
    /// One leaf, and then condensation of summaries that exceed their target, when a whole chunk of
    /// raw text lies outside the fresh tail.
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
    /// Whether to act below the threshold as well, and despite a pause or an open breaker.
    pub force: bool,
    /// Target of the context in tokens; `None`: the threshold.
    pub target: Option<u32>,
    /// Tokens of the whole prompt as the provider counted them; `None`: unknown.
    pub observed_tokens: Option<u32>,
    /// Most requests of one `plan`; 0 counts as 1.
    pub requests_max: u32,
    /// Lease of the planned tasks for this caller, in milliseconds; 0: no lease.
    pub lease_ms: u32,
    /// The `sweep` that the preceding `plan` or `run` returned; `None` or empty: a new sweep.
    pub sweep: Option<String>,
    /// `None`, or a JSON object with `model`: the model in whose tokens `budget`, `target` and
    /// `observed_tokens` are counted. Configuration overrides may match the model.
    pub extra_json: Option<String>,
}

/// Whether compaction is due, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Decision {
    /// Whether compaction is due.
    pub due: bool,
    /// Whether the context exceeds the budget, so that compaction should precede the next turn.
    pub must: bool,
    /// `threshold`, `leaf-chunk` or `forced` when compaction is due; else why not, for example
    /// `below-threshold` or `disabled`.
    pub reason: String,
    /// Tokens that were compared: of the context, stored or observed, or in mode `incremental` of
    /// the raw messages outside the fresh tail.
    pub tokens: u32,
    /// The bound that `tokens` was compared with.
    pub threshold: u32,
    /// A JSON object with the inputs, the rule and the outcome of the decision.
    pub explanation_json: String,
}

/// Outcome of a plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlanStatus {
    /// No compaction is due; `reason` has the cause.
    NothingDue,
    /// A model must complete `requests`.
    NeedsCompletions,
    /// Compaction is due, but a limit or a failing model prevents it; `reason` has the cause.
    Stopped,
}

/// The result of `plan`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlanResult {
    /// Outcome of the plan.
    pub status: PlanStatus,
    /// Code of the cause, from a closed list; empty when completions are needed.
    pub reason: String,
    /// Revision of the conversation that the plan is for.
    pub revision: u64,
    /// Independent tasks with disjoint sources, in the order of the sources.
    pub requests: Vec<CompletionRequest>,
    /// Token for the next `plan` of this sweep; empty: the sweep has ended.
    pub sweep: String,
}

/// Options of `apply`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ApplyOptions {
    /// Tokens of the stored context above which a failed completion leads to a fallback. A host
    /// sets this field after all its models failed. `None`: a failed completion never leads to a
    /// fallback.
    pub fallback_over_tokens: Option<u32>,
    /// `None`, or a JSON object with `model` (text): the model in whose tokens
    /// `fallback_over_tokens` is counted. Without a model the number is in estimated tokens.
    pub extra_json: Option<String>,
}

/// Outcome of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ApplyStatus {
    /// A summary replaced its sources, in this call or in an earlier identical call.
    Committed,
    /// The answer was rejected; `next` is the next request.
    Retry,
    /// The context does not contain the sources any more, so the answer was not used.
    Stale,
    /// No summary was made; `reason` has the cause.
    Refused,
}

/// The result of `apply` and `run`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApplyOutcome {
    /// Outcome of the answer.
    pub applied: ApplyStatus,
    /// Code of the cause, from a closed list; empty when committed.
    pub reason: String,
    /// Id of the summary that was made, or that an earlier call had made; `None`: no summary.
    pub summary_id: Option<String>,
    /// Purpose of the task.
    pub purpose: Purpose,
    /// Depth of the summary.
    pub depth: u32,
    /// Level of the summary, or of the rejected answer.
    pub level: Level,
    /// Whether the text was cut to its token limit.
    pub capped: bool,
    /// Whether the summary is provisional: it will be made again.
    pub provisional: bool,
    /// Id of the provisional summary that the call replaced by this one; `None`: none.
    pub replaces: Option<String>,
    /// Tokens of the stored context before the call.
    pub tokens_before: u32,
    /// Tokens of the stored context after the call.
    pub tokens_after: u32,
    /// Whether another `plan` may find work.
    pub more: bool,
    /// The next request after `Retry`; `None`: any other outcome.
    pub next: Option<CompletionRequest>,
    /// Result of `run`: the value for `sweep` in the next call; empty after `apply`.
    pub sweep: String,
    /// Warnings, one line each.
    pub warnings: Vec<String>,
    /// Events of the call, a JSON array.
    pub events_json: String,
}

/// Which older items a context keeps when not everything fits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EvictionPolicy {
    /// Newest first, up to the first summary or call group that does not fit. Not the default of
    /// the configuration, which is `Layered`.
    #[default]
    Chronological,
    /// The items that match the prompt best.
    PromptAware,
    /// The summary of the oldest messages, if it fits; then newest items first, in steps.
    Layered,
}

/// Options of `assemble`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AssembleOptions {
    /// Policy that selects older items; `None`: `eviction_policy` of the configuration.
    pub policy: Option<EvictionPolicy>,
    /// Text that `prompt-aware` compares items with; `None`, or a text without words: newest items
    /// first.
    pub prompt: Option<String>,
    /// Tokens of the budget that the host keeps for its own use.
    pub reserve_tokens: u32,
    /// Messages that the host holds, in the call's dialect. A live message that is stored already
    /// appears once in the context.
    pub live_messages: Vec<String>,
    /// The `prefix.token` of an earlier assembly to compare with; `None`: no comparison.
    pub previous: Option<String>,
    /// Whether to return `items` for the whole stored context, and `explanation_text`.
    pub explain: bool,
    /// `None`, or a JSON object. `model` (text) is the model in whose tokens the budget and the
    /// reserve are counted; `mark_caches` (flag) adds Anthropic's cache markers.
    pub extra_json: Option<String>,
}

/// The part of an assembly that is equal to an earlier assembly.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PrefixReport {
    /// Tokens of the equal beginning; `None`: no earlier assembly of this conversation was given.
    pub stable_tokens: Option<u32>,
    /// Id of the first item that differs; `None`: no item differs, this context only ends earlier,
    /// or `stable_tokens` is `None`.
    pub broken_by: Option<String>,
    /// Cause of the difference: the first of `dialect`, `focus`, `compaction`, `budget`, `eviction`
    /// and `edit` that applies; `None`: `broken_by` is `None`.
    pub broken_why: Option<String>,
    /// Indexes of the messages after which a prompt cache may end: at most three, ascending.
    pub breakpoints: Vec<u32>,
    /// SHA-256 chain over the elements of the returned context, 64 hex digits.
    pub sha256: String,
    /// Token for `previous` of a later assembly.
    pub token: String,
}

/// An item of the stored context. A run that is cut at the budget gives two items.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AssembledItem {
    /// `sum_...`, `focus_...`, `live-...`, or `msg_...` of the first message of a run.
    pub id: String,
    /// `message`, `leaf`, `condensed`, `focus`, `live` or `withdrawn`.
    pub kind: String,
    /// Whether the item was selected. Rendering may still change or drop a selected item; see
    /// `why`.
    pub included: bool,
    /// Reason: `fresh-tail`, `pinned`, `focus`, `live`, `oldest`, `matches-prompt`, `fill`,
    /// `over-budget` or `withdrawn`. If rendering changed the item, a colon and the changes follow.
    pub why: String,
    /// Tokens of the item: as rendered if included, else as stored.
    pub tokens: u32,
    /// Seq of the first message that the item covers; `None`: a live message.
    pub seq_first: Option<u64>,
    /// Seq of the last message that the item covers; `None`: a live message.
    pub seq_last: Option<u64>,
}

/// An assembled context.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AssembledContext {
    /// JSON array of messages in the requested dialect.
    pub messages_json: String,
    /// Text of the system messages, which belong to every context; `None`: there are none.
    pub system: Option<String>,
    /// Tokens of the whole returned context, `system` included.
    pub tokens: u32,
    /// Number of summaries in the context.
    pub summaries: u32,
    /// Number of messages of the fresh tail.
    pub fresh_tail_messages: u32,
    /// Number of messages and summaries of the stored context that were left out.
    pub evicted: u32,
    /// Every item of the stored context, if `explain` was set; else empty.
    pub items: Vec<AssembledItem>,
    /// The explanation as text: a line for each item, and a bar chart of the budget; `None`:
    /// `explain` was not set.
    pub explanation_text: Option<String>,
    /// Comparison with an earlier assembly.
    pub prefix: PrefixReport,
    /// Warnings, one line each.
    pub warnings: Vec<String>,
}

/// The conversations that the tools of an agent may read. The host chooses; a model cannot.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ToolScope {
    /// The conversation of the call and its family. Other conversations do not exist for the tools.
    #[default]
    Conversation,
    /// Every conversation of the store.
    Store,
}

impl ToolScope {
    /// Returns the name of the scope in options.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::Store => "store",
        }
    }
}

/// A call of a tool by the model of an agent.
#[derive(Clone, Copy, Debug)]
pub struct ToolRequest<'a> {
    /// Name of the tool.
    pub name: &'a str,
    /// Arguments that the model wrote.
    pub arguments_json: &'a str,
    /// Id of the grant of a sub-agent; `None`: the main agent.
    pub grant: Option<&'a str>,
    /// The conversations that the tool may read. A grant limits its own reads.
    pub scope: ToolScope,
}

/// The answer to a tool call, as the agent's model reads it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ToolAnswer {
    /// The result of the tool.
    pub text: String,
    /// Whether the text describes an error of the caller.
    pub is_error: bool,
}

/// The outcome of a tool call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ToolOutcome {
    /// The answer.
    Done(ToolAnswer),
    /// A model must complete requests before the call can be resumed.
    NeedsCompletions {
        /// Requests to complete, in any order.
        requests: Vec<CompletionRequest>,
        /// Opaque value for `resume`.
        continuation: String,
        /// Time limit for the answers, in milliseconds.
        deadline_ms: u64,
    },
}
