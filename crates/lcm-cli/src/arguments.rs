//! The command line, as `interfaces` documents it.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use lcm_host::{
    context::Policy as WitPolicy, ingestion::AppendMode as WitAppendMode,
    types::Dialect as WitDialect, work::Mode as WitMode,
};
use serde::Serialize;

/// Lossless context management: keep every message, work with a context that fits.
#[derive(Debug, Parser)]
#[command(name = "lcm", version, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command, before or after its name.
#[derive(Args, Clone, Debug)]
pub(crate) struct Global {
    /// Where conversations are kept: a file, or memory: for nowhere
    #[arg(
        long,
        global = true,
        env = "LCM_STORE",
        hide_env_values = true,
        value_name = "PATH",
        default_value = "./default.lcm.db"
    )]
    pub(crate) store: String,
    /// Which conversation
    #[arg(long, global = true, value_name = "ID", default_value = "default")]
    pub(crate) conversation: String,
    /// Configuration: a file with one JSON object
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON document instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// A fixed clock, in milliseconds since 1970
    #[arg(long, global = true, value_name = "MS", allow_negative_numbers = true)]
    pub(crate) now: Option<u64>,
    /// Log every call of the engine and the store into a file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Use this component instead of the one inside the program
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) component: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The whole journey on a transcript that ships with the program
    Demo,
    /// Store the messages of a transcript that are not stored yet
    Ingest(Ingest),
    /// Summarise old messages until the context fits
    Compact(Compact),
    /// Do compaction that was put off, when it is time for it
    Maintain(Maintain),
    /// Print the context that fits a budget
    Assemble(Assemble),
    /// Find messages and summaries by their words or a regular expression
    Grep(Grep),
    /// Have a question answered from what was said, with the ids that say so
    Ask(Ask),
    /// Limited rights to read, for sub-agents: create, list and revoke them
    #[command(subcommand)]
    Grant(Grant),
    /// Describe a summary, message or file, or the conversation
    Describe(Describe),
    /// Show what a summary stands for
    Expand(Expand),
    /// List messages, or print their original text
    Messages(Messages),
    /// List summaries
    Summaries(Summaries),
    /// List conversations
    Conversations,
    /// Counts and sizes of a conversation
    Status,
    /// Check that a conversation is whole
    Check,
    /// SHA-256 over the store
    Digest(Digest),
    /// Make the conversation one of a family, whose members are searched together
    Family(Family),
    /// Archive the conversation and go on in an empty one of its family
    Reset(Reset),
    /// Begin a new session: withdraw messages and shallow summaries from the context
    New(New),
    /// Archive the conversation: it is read as before and not written to
    Archive(Archive),
    /// Set the text that stands for older summaries while a task lasts, or take it away
    Focus(Focus),
    /// Report what a provider counted of a prompt, so that the budgets of its model are kept
    Calibrate(Calibrate),
    /// Report what one answer of a model took, tokens and money
    Usage(Usage),
    /// Whether compacting now costs less than waiting; changes nothing
    Advise(Advise),
    /// What summaries are asked for: list, show, replace and compare the texts
    #[command(subcommand)]
    Prompts(Prompts),
    /// Write a conversation as lines that any store can take in again
    Export(Export),
    /// Take an export in; what is stored already is passed over
    Import(Import),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(Args, Debug)]
pub(crate) struct Ingest {
    /// Shape of the messages: lcm, anthropic, openai-chat, openai-responses, gemini, or auto, which
    /// finds it out and reads session files of Claude Code, Codex and OpenClaw, too
    #[arg(long, value_name = "D", default_value = "lcm")]
    pub(crate) dialect: Dialect,
    /// Follow one file while it grows and when it is rotated, until interrupted; one result for
    /// each time something was new
    #[arg(long, conflicts_with = "append_mode")]
    pub(crate) tail: bool,
    /// How messages are taken: transcript skips what is stored; new stores every message unless its
    /// id or event key is stored
    #[arg(long, value_enum, default_value = "transcript")]
    pub(crate) append_mode: AppendMode,
    /// Store nothing when the messages look like a replay
    #[arg(long)]
    pub(crate) refuse_replay: bool,
    /// Key of the family that the conversation is of, or comes to
    #[arg(long, value_name = "KEY")]
    pub(crate) family: Option<String>,
    /// Files of one message a line; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Compact {
    /// Tokens of the context window that the conversation may use
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) budget: u32,
    /// When to act
    #[arg(long, value_enum, default_value = "threshold")]
    pub(crate) mode: Mode,
    /// Act below the threshold, too
    #[arg(long)]
    pub(crate) force: bool,
    /// Tokens to reach
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) target: Option<u32>,
    /// The model that budget and target are for, once lcm calibrate has reported of it
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// Tokens of the whole prompt as the provider counted them last, what is added included
    #[arg(long, value_name = "N")]
    pub(crate) observed_tokens: Option<u32>,
    /// Completions asked for at the same time
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    pub(crate) requests_max: u32,
    #[command(flatten)]
    pub(crate) models: Models,
}

#[derive(Args, Debug)]
pub(crate) struct Maintain {
    /// Tokens of the context window that the conversation may use
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) budget: u32,
    /// The model that the budget is for, once lcm calibrate has reported of it
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// Tokens of the whole prompt as the provider counted them last, what is added included
    #[arg(long, value_name = "N")]
    pub(crate) observed_tokens: Option<u32>,
    /// Completions asked for at the same time
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    pub(crate) requests_max: u32,
    #[command(flatten)]
    pub(crate) models: Models,
}

/// Which models are asked, and how.
#[derive(Args, Debug, Default)]
pub(crate) struct Models {
    /// A model: offline, exec:PROGRAM ARGS, openai:MODEL[@BASE-URL], anthropic:MODEL[@BASE-URL],
    /// or PURPOSE=SPEC; several are a fallback chain
    #[arg(long, value_name = "SPEC")]
    pub(crate) llm: Vec<String>,
    /// How often a failing model is asked again
    #[arg(long, value_name = "N", default_value = "2", allow_negative_numbers = true)]
    pub(crate) retries: u32,
    /// How long one answer is waited for, in seconds from 1 to 86400
    #[arg(long, value_name = "SECONDS", default_value = "60", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
}

#[derive(Args, Debug)]
pub(crate) struct Assemble {
    /// Tokens that the context may take
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) budget: u32,
    /// Shape of the messages: lcm, anthropic, openai-chat, openai-responses or gemini
    #[arg(long, value_name = "D", default_value = "lcm")]
    pub(crate) dialect: Dialect,
    /// The model that the budget is for, once lcm calibrate has reported of it
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// Which older items are kept when not everything fits; by default as configured, or layered
    #[arg(long, value_enum)]
    pub(crate) policy: Option<Policy>,
    /// What prompt-aware matches
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// The JSON of an earlier assembly, to compare with
    #[arg(long, value_name = "FILE")]
    pub(crate) previous: Option<PathBuf>,
    /// List every item of the stored context and why it is in or out
    #[arg(long)]
    pub(crate) explain: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Grep {
    /// Words, "phrases", +must, -must-not, role: tool: speaker: since: before:, or an expression
    #[arg(allow_hyphen_values = true)]
    pub(crate) pattern: String,
    /// How the pattern is taken: auto, regex or full-text
    #[arg(long, value_name = "M", default_value = "auto")]
    pub(crate) mode: GrepMode,
    /// Where to look: messages, summaries, both or files
    #[arg(long, value_name = "S", default_value = "both")]
    pub(crate) scope: GrepScope,
    /// With --scope files: only this file; may be given several times
    #[arg(long = "file-id", value_name = "ID")]
    pub(crate) file_ids: Vec<String>,
    /// Where to go on, as an answer to the same search says
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// With --scope files: where in the one --file-id to begin
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) start_byte: Option<u64>,
    /// Messages to show before and after each one found, from 0 to 3
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) neighbours: Option<u64>,
    /// What comes first: recency, relevance or hybrid
    #[arg(long, value_name = "S", default_value = "relevance")]
    pub(crate) sort: GrepSort,
    /// Only what is not older, such as 2026-01-02T03:04:05Z
    #[arg(long, value_name = "T")]
    pub(crate) since: Option<String>,
    /// Only what is older
    #[arg(long, value_name = "T")]
    pub(crate) before: Option<String>,
    /// Hits to show, from 1 to 200
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) limit: Option<u64>,
    /// Search every conversation of the store
    #[arg(long)]
    pub(crate) all_conversations: bool,
    /// Search this conversation and not its family
    #[arg(long, conflicts_with = "all_conversations")]
    pub(crate) only: bool,
    /// Read on this grant: within its limits, and charged for the text that is shown
    #[arg(long, value_name = "ID")]
    pub(crate) grant: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Ask {
    /// The question
    #[arg(allow_hyphen_values = true)]
    pub(crate) question: String,
    /// What to search for, as lcm grep takes words [default: the question]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) query: Option<String>,
    /// A summary to answer from, as often as needed
    #[arg(long = "summary-id", value_name = "ID")]
    pub(crate) summary_ids: Vec<String>,
    /// Tokens that the answer may have, 1 to 8000 [default: 2000]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) answer_tokens_max: Option<u32>,
    /// Tokens of what is read for it [default and most: as configured]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) tokens_max: Option<u32>,
    /// Read in every conversation of the store
    #[arg(long)]
    pub(crate) all_conversations: bool,
    /// Read in this conversation and not its family
    #[arg(long, conflicts_with = "all_conversations")]
    pub(crate) only: bool,
    /// Read on this grant: within its limits, and charged for what the model is shown
    #[arg(long, value_name = "ID")]
    pub(crate) grant: Option<String>,
    /// Seconds that all of it may take, 1 to 600 [default: 150]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) deadline: Option<u32>,
    #[command(flatten)]
    pub(crate) models: Models,
}

/// What is done with grants.
#[derive(Debug, Subcommand)]
pub(crate) enum Grant {
    /// Make a grant and print its id
    Create(GrantCreate),
    /// The grants of the conversation
    List,
    /// End a grant at once, with all that inherit from it
    Revoke {
        /// The grant
        id: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct GrantCreate {
    /// A conversation that it covers, as often as needed [default: this one]
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) covers: Vec<String>,
    /// A summary that it covers with what lies below, as often as needed [default: everything]
    #[arg(long = "summary-id", value_name = "ID")]
    pub(crate) summary_ids: Vec<String>,
    /// Most steps of one expansion, 1 to 10 [default: 3]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) depth_max: Option<u64>,
    /// Tokens of text that may be read, 1 to 1000000 [default: as configured]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) tokens_max: Option<u64>,
    /// How long it is, 1 to 86400000 [default: 300000]
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    pub(crate) ttl_ms: Option<u64>,
    /// A grant that it inherits from
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,
}

/// How a pattern is taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GrepMode {
    Auto,
    Regex,
    FullText,
}

/// Where to look.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GrepScope {
    Messages,
    Summaries,
    Both,
    Files,
}

/// What comes first.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GrepSort {
    Recency,
    Relevance,
    Hybrid,
}

#[derive(Args, Debug)]
pub(crate) struct Describe {
    /// A summary, message or file, or the id of the conversation
    pub(crate) id: String,
    /// Look for it in every conversation of the store
    #[arg(long)]
    pub(crate) all_conversations: bool,
    /// First line of a file that is shown, from 1
    #[arg(long, value_name = "N")]
    pub(crate) start_line: Option<u64>,
    /// Last line of a file that is shown
    #[arg(long, value_name = "N")]
    pub(crate) end_line: Option<u64>,
    /// Offset of the first byte of a file that is shown, from 0
    #[arg(long, value_name = "N")]
    pub(crate) start_byte: Option<u64>,
    /// Offset behind the last byte of a file that is shown
    #[arg(long, value_name = "N")]
    pub(crate) end_byte: Option<u64>,
    /// Most bytes of a file that are shown, 1024 to 512000 [default: 32768]
    #[arg(long, value_name = "N")]
    pub(crate) bytes_max: Option<u64>,
    /// Read on this grant: within its limits, and charged for the text that is shown
    #[arg(long, value_name = "ID")]
    pub(crate) grant: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Expand {
    /// A summary
    pub(crate) id: String,
    /// Most levels of summaries below it
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) depth_max: Option<u32>,
    /// Show the messages, too
    #[arg(long)]
    pub(crate) include_messages: bool,
    /// One page of at most this many tokens instead of everything
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) tokens_max: Option<u32>,
    /// Go on after an earlier page: its cursor
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// Read on this grant: within its limits, and charged for the text that is shown
    #[arg(long, value_name = "ID")]
    pub(crate) grant: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Messages {
    /// First position, from 1
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true)]
    pub(crate) seq_first: Option<u64>,
    /// Last position
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true)]
    pub(crate) seq_last: Option<u64>,
    /// The original text of each message and a line end, nothing else
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Summaries {
    /// Draw which summary was made from which
    #[arg(long)]
    pub(crate) tree: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Digest {
    /// Over messages, summaries and context instead of stored bytes
    #[arg(long)]
    pub(crate) logical: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Family {
    /// What all conversations of the family are known by
    pub(crate) family: String,
}

#[derive(Args, Debug)]
pub(crate) struct Reset {
    /// The conversation to go on in; else the id with #2, #3 and so on
    #[arg(long, value_name = "ID")]
    pub(crate) successor: Option<String>,
    #[command(flatten)]
    pub(crate) apply: Apply,
}

#[derive(Args, Debug)]
pub(crate) struct New {
    /// Summaries from this depth on stay; 0: all do, -1: everything does
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) retain_depth: Option<i64>,
    #[command(flatten)]
    pub(crate) apply: Apply,
}

#[derive(Args, Debug)]
pub(crate) struct Archive {
    /// Why: manual-reset, deleted, session-end, rollover, cron-rotation or idle
    #[arg(long, value_name = "C")]
    pub(crate) cause: String,
    #[command(flatten)]
    pub(crate) apply: Apply,
}

#[derive(Args, Debug)]
pub(crate) struct Focus {
    /// File with the text, - for standard input; without it there is no brief any more
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The last message whose summaries it stands for; default the newest
    #[arg(long, value_name = "N", requires = "file", allow_negative_numbers = true)]
    pub(crate) seq_last: Option<u64>,
    #[command(flatten)]
    pub(crate) apply: Apply,
}

#[derive(Args, Debug)]
pub(crate) struct Calibrate {
    /// The model that was asked
    #[arg(long, value_name = "M")]
    pub(crate) model: String,
    /// Tokens of the prompt as lcm assemble said, and what was added to it by the same estimate
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) estimated_tokens: u32,
    /// Tokens of the prompt as the provider counted them
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) prompt_tokens: u32,
}

#[derive(Args, Debug)]
pub(crate) struct Usage {
    /// What the answer was for: turn or summary
    #[arg(long, value_name = "P")]
    pub(crate) purpose: String,
    /// Tokens of the whole prompt, those in the provider's cache included
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) input_tokens: u32,
    /// Of them those that were read from the cache
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) cache_read_tokens: u32,
    /// Of them those that were written to it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) cache_write_tokens: u32,
    /// Tokens of the answer
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) output_tokens: u32,
    /// What it cost, in millionths of the one currency that all reports count in
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) cost_micros: u64,
}

#[derive(Args, Debug)]
pub(crate) struct Advise {
    /// Tokens of the context
    #[arg(long, value_name = "N")]
    pub(crate) budget: u32,
    /// Price of a million tokens of a prompt, in millionths of a currency
    #[arg(long, value_name = "N")]
    pub(crate) price_input: u64,
    /// The same of an answer
    #[arg(long, value_name = "N")]
    pub(crate) price_output: u64,
    /// The same of what is read from the cache; without it as --price-input
    #[arg(long, value_name = "N")]
    pub(crate) price_cache_read: Option<u64>,
    /// The same of what is written to it; without it as --price-input
    #[arg(long, value_name = "N")]
    pub(crate) price_cache_write: Option<u64>,
    /// Of a prompt of the model that summarises; without it as --price-input
    #[arg(long, value_name = "N")]
    pub(crate) price_summary_input: Option<u64>,
    /// Of an answer of it; without it as --price-output
    #[arg(long, value_name = "N")]
    pub(crate) price_summary_output: Option<u64>,
    /// How long the provider keeps a prefix, in milliseconds; without it 5 minutes
    #[arg(long, value_name = "MS")]
    pub(crate) cache_ms: Option<u64>,
    /// Prompts to come; without it as many as there were
    #[arg(long, value_name = "N")]
    pub(crate) turns: Option<u32>,
    /// Tokens of the whole prompt as the provider counted them last
    #[arg(long, value_name = "N")]
    pub(crate) observed_tokens: Option<u32>,
    /// The model that the budget is for, once lcm calibrate has reported of it
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
}

/// What is done with the prompts of summaries.
#[derive(Debug, Subcommand)]
pub(crate) enum Prompts {
    /// Every prompt with its version and size, and whether it is overridden
    List,
    /// A prompt as a model is sent it
    Show(Prompt),
    /// Replace what a prompt asks for, in the file of --config
    Set {
        #[command(flatten)]
        prompt: Prompt,
        /// The text; - is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Go back to the built-in text, in the file of --config
    Unset(Prompt),
    /// What an override changes in the built-in text
    Diff(Prompt),
}

/// Which prompt.
#[derive(Args, Debug)]
pub(crate) struct Prompt {
    /// leaf, leaf-aggressive, session, phase or durable
    pub(crate) name: String,
}

/// Whether something is done.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Apply {
    /// Do it; else it is only said what would be done
    #[arg(long)]
    pub(crate) apply: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Export {
    /// All conversations of the store
    #[arg(long)]
    pub(crate) all_conversations: bool,
    /// Where to; - is standard output
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct Import {
    /// An export; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
}

/// A shape of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Dialect {
    Auto,
    Lcm,
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Gemini,
}

impl Dialect {
    /// The component's dialect; `None`: it is to be found out.
    pub(crate) const fn wit(self) -> Option<WitDialect> {
        Some(match self {
            Self::Auto => return None,
            Self::Lcm => WitDialect::Lcm,
            Self::Anthropic => WitDialect::Anthropic,
            Self::OpenaiChat => WitDialect::OpenaiChat,
            Self::OpenaiResponses => WitDialect::OpenaiResponses,
            Self::Gemini => WitDialect::Gemini,
        })
    }
}

/// How the messages of an ingest are taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum AppendMode {
    Transcript,
    New,
}

impl From<AppendMode> for WitAppendMode {
    fn from(mode: AppendMode) -> Self {
        match mode {
            AppendMode::Transcript => Self::Transcript,
            AppendMode::New => Self::New,
        }
    }
}

/// When compaction acts.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Mode {
    Threshold,
    Incremental,
    Sweep,
    UntilUnder,
}

impl From<Mode> for WitMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Threshold => Self::Threshold,
            Mode::Incremental => Self::Incremental,
            Mode::Sweep => Self::Sweep,
            Mode::UntilUnder => Self::UntilUnder,
        }
    }
}

/// Which older items a context keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Policy {
    Chronological,
    PromptAware,
    Layered,
}

impl From<Policy> for WitPolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Chronological => Self::Chronological,
            Policy::PromptAware => Self::PromptAware,
            Policy::Layered => Self::Layered,
        }
    }
}
