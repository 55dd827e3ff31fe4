//! The command line of `lcm`, parsed by clap into [`Arguments`]; doc comments are its help texts.

#![allow(rustdoc::broken_intra_doc_links, reason = "help texts are plain text, not Markdown")]

mod ingest;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use lcm_host::{
    context::Policy as WitPolicy, ingestion::AppendMode as WitAppendMode,
    types::Dialect as WitDialect, work::Mode as WitMode,
};
use serde::Serialize;

pub(crate) use ingest::Ingest;

/// Lossless context management: keep every message, work with a context that fits.
#[derive(Debug, Parser)]
#[command(name = "lcm", version)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command, before or after its name.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Store of the conversations: a file, or memory: for a store that ends with the program
    /// [default: database_path of the configuration, else ./default.lcm.db]
    #[arg(long, global = true, env = "LCM_STORE", hide_env_values = true, value_name = "PATH")]
    pub(crate) store: Option<String>,
    /// Id of the conversation
    #[arg(long, global = true, value_name = "ID", default_value = "default")]
    pub(crate) conversation: String,
    /// Configuration file: one JSON object
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON document instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Time of every call, in milliseconds since 1970 [default: the system clock]
    #[arg(long, global = true, value_name = "MS", allow_negative_numbers = true)]
    pub(crate) now: Option<u64>,
    /// Log every call of the engine, but those of the interface drive, and of the store to a file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Component to use instead of the built-in component
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) component: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ingest, compact, assemble, search, expand and check a built-in transcript, in memory
    Demo,
    /// Store the new messages of a transcript
    Ingest(Ingest),
    /// Replace old messages by summaries until the context is small enough
    Compact(Compact),
    /// Compact if deferred compaction is due, and record how it ended
    Maintain(Maintain),
    /// Make summaries again that a failing model left provisional
    Resummarize(Resummarize),
    /// Print the context that fits a budget
    Assemble(Assemble),
    /// Find messages and summaries by their words or a regular expression
    Grep(Grep),
    /// Answer a question from stored messages, with the ids of the sources
    Ask(Ask),
    /// Create, list and revoke grants: limited read access for sub-agents
    #[command(subcommand)]
    Grant(Grant),
    /// Describe a summary, message, file, version of the system messages, or the conversation
    Describe(Describe),
    /// Show the sources of a summary
    Expand(Expand),
    /// List messages, or print their original text
    Messages(Messages),
    /// List summaries
    Summaries(Summaries),
    /// List conversations
    Conversations(Conversations),
    /// Show counts and sizes of a conversation
    Status,
    /// Check the integrity of a conversation
    Check,
    /// Print the SHA-256 of the store
    Digest(Digest),
    /// Add the conversation to a family, whose conversations are searched together
    Family(Family),
    /// Print the conversation of a family that is not archived
    Live(Live),
    /// Archive the conversation and continue in an empty conversation of its family
    Reset(Reset),
    /// Start a new session: withdraw messages and shallow summaries from the context
    New(New),
    /// Archive the conversation: reads continue, new messages are refused
    Archive(Archive),
    /// Delete the conversation with everything that other conversations have of it
    Delete(Delete),
    /// Set or remove the focus brief, a text that replaces older summaries in contexts
    Focus(Focus),
    /// Set aside the newest messages: they stay stored, and are in no context
    Rewind(Rewind),
    /// Report a provider's token count of a prompt, to correct budgets of its model
    Calibrate(Calibrate),
    /// Report the tokens and the cost of one model answer
    Usage(Usage),
    /// Compare the cost of compacting now and of waiting; changes nothing
    Advise(Advise),
    /// Print the configuration that counts, and how each key and variable was treated
    Config,
    /// List, show, replace and compare the prompts of summaries
    #[command(subcommand)]
    Prompts(Prompts),
    /// Export a conversation as lines that any store can import
    Export(Export),
    /// Import an export; skip stored messages
    Import(Import),
    /// Print a script that completes commands and options in a shell
    Completions {
        /// Shell that runs the script
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program, in roff
    Man,
}

#[derive(Args, Debug)]
pub(crate) struct Compact {
    /// Tokens of the context window that the conversation may use
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) budget: u32,
    /// When to compact
    #[arg(long, value_enum, default_value = "threshold")]
    pub(crate) mode: Mode,
    /// Compact below the threshold as well, despite an open breaker and during a pause
    #[arg(long)]
    pub(crate) force: bool,
    /// Target of the context in tokens [default: the threshold]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) target: Option<u32>,
    /// Model whose provider counts the budget and the target, after a report by lcm calibrate
    /// [default: both are estimated tokens]
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// Provider's last token count of the whole prompt, including text added by the host
    #[arg(long, value_name = "N")]
    pub(crate) observed_tokens: Option<u32>,
    /// Completions requested at the same time
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    pub(crate) requests_max: u32,
    #[command(flatten)]
    pub(crate) models: Models,
}

#[derive(Args, Debug)]
pub(crate) struct Maintain {
    /// Serve every conversation of this family, instead of one conversation
    #[arg(long, value_name = "KEY", conflicts_with = "observed_tokens")]
    pub(crate) family: Option<String>,
    /// Tokens of the context window that the conversation may use
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) budget: u32,
    /// Model whose tokens the budget counts, after a report by lcm calibrate
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// Provider's last token count of the whole prompt, including text added by the host
    #[arg(long, value_name = "N")]
    pub(crate) observed_tokens: Option<u32>,
    /// Completions requested at the same time
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    pub(crate) requests_max: u32,
    #[command(flatten)]
    pub(crate) models: Models,
}

#[derive(Args, Debug)]
pub(crate) struct Resummarize {
    /// Tokens of the context window that the conversation may use
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) budget: u32,
    /// Ask models despite an open breaker and during a pause
    #[arg(long)]
    pub(crate) force: bool,
    /// Model whose tokens the budget counts, after a report by lcm calibrate
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// Completions requested at the same time
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    pub(crate) requests_max: u32,
    #[command(flatten)]
    pub(crate) models: Models,
    /// Ids of provisional summaries [default: all]
    #[arg(value_name = "SUMMARY")]
    pub(crate) summary_ids: Vec<String>,
}

/// Options of the models.
#[derive(Args, Debug, Default)]
pub(crate) struct Models {
    /// Model: offline, exec:PROGRAM ARGS, openai:MODEL[@BASE-URL], anthropic:MODEL[@BASE-URL], or
    /// PURPOSE=SPEC; several models form a fallback chain [default: summary_model of the
    /// configuration, else offline]
    #[arg(long, value_name = "SPEC")]
    pub(crate) llm: Vec<String>,
    /// Retries of a failing model before the next model
    #[arg(long, value_name = "N", default_value = "2", allow_negative_numbers = true)]
    pub(crate) retries: u32,
    /// Time limit of one answer, in seconds from 1 to 86400 [default: timeout_ms of the
    /// configuration, else 60]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct Assemble {
    /// Token budget of the context
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) budget: u32,
    /// Dialect of the messages: lcm, anthropic, openai-chat, openai-responses, gemini, ai-sdk,
    /// openclaw, langchain or openai-agents
    #[arg(long, value_name = "D", default_value = "lcm")]
    pub(crate) dialect: Dialect,
    /// Model whose tokens the budget counts, after a report by lcm calibrate
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// Selection of older items when not everything fits [default: as configured, or layered]
    #[arg(long, value_enum)]
    pub(crate) policy: Option<Policy>,
    /// Text that the policy prompt-aware compares items with
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// File with the JSON of an earlier assembly, or with its prefix token, to compare with
    #[arg(long, value_name = "FILE")]
    pub(crate) previous: Option<PathBuf>,
    /// List every item of the stored context, and why the item was selected or not
    #[arg(long)]
    pub(crate) explain: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Grep {
    /// Words, "phrases", +must, -must-not, role: tool: speaker: since: before:, or an expression
    #[arg(allow_hyphen_values = true)]
    pub(crate) pattern: String,
    /// Syntax of the pattern: auto, regex or full-text
    #[arg(long, value_name = "M", default_value = "auto")]
    pub(crate) mode: GrepMode,
    /// What to search: messages, summaries, both or files
    #[arg(long, value_name = "S", default_value = "both")]
    pub(crate) scope: GrepScope,
    /// With --scope files: search only this file; repeatable
    #[arg(long = "file-id", value_name = "ID")]
    pub(crate) file_ids: Vec<String>,
    /// Cursor that an earlier page of the same search returned
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// With --scope files: first byte to search in the only --file-id, from 0
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) start_byte: Option<u64>,
    /// Messages to show before and after each match, from 0 to 3 [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) neighbours: Option<u64>,
    /// Order of the matches: recency, relevance or hybrid
    #[arg(long, value_name = "S", default_value = "relevance")]
    pub(crate) sort: GrepSort,
    /// Earliest time of a match, included, such as 2026-01-02T03:04:05Z
    #[arg(long, value_name = "T")]
    pub(crate) since: Option<String>,
    /// Latest time of a match, excluded
    #[arg(long, value_name = "T")]
    pub(crate) before: Option<String>,
    /// Most matches to show, from 1 to 200 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) limit: Option<u64>,
    /// Search every conversation of the store
    #[arg(long)]
    pub(crate) all_conversations: bool,
    /// Search this conversation without its family
    #[arg(long, conflicts_with = "all_conversations")]
    pub(crate) only: bool,
    /// Grant to read with: its limits apply, and the shown text is charged to it
    #[arg(long, value_name = "ID")]
    pub(crate) grant: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Ask {
    /// The question
    #[arg(allow_hyphen_values = true)]
    pub(crate) question: String,
    /// Search words, in the syntax of lcm grep [default: the question]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) query: Option<String>,
    /// Summary to answer from; repeatable
    #[arg(long = "summary-id", value_name = "ID")]
    pub(crate) summary_ids: Vec<String>,
    /// Most tokens of the answer, 1 to 8000 [default: 2000]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) answer_tokens_max: Option<u32>,
    /// Most tokens of the sources [default and maximum: expand_tokens_max of the configuration]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) tokens_max: Option<u32>,
    /// Read every conversation of the store
    #[arg(long)]
    pub(crate) all_conversations: bool,
    /// Read this conversation without its family
    #[arg(long, conflicts_with = "all_conversations")]
    pub(crate) only: bool,
    /// Grant to read with: its limits apply, and the text sent to the model is charged to it
    #[arg(long, value_name = "ID")]
    pub(crate) grant: Option<String>,
    /// Time limit of the whole call in seconds, 1 to 600 [default: 150]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) deadline: Option<u32>,
    #[command(flatten)]
    pub(crate) models: Models,
}

/// Commands for grants.
#[derive(Debug, Subcommand)]
pub(crate) enum Grant {
    /// Create a grant and print its id
    Create(GrantCreate),
    /// List the grants of the conversation
    List,
    /// Revoke a grant at once, with all grants that inherit from it
    Revoke {
        /// Id of the grant
        id: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct GrantCreate {
    /// Conversation that the grant covers; repeatable [default: this conversation, or those of
    /// --parent]
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) covers: Vec<String>,
    /// Summary that the grant covers with its sources; repeatable [default: everything, or what
    /// --parent covers]
    #[arg(long = "summary-id", value_name = "ID")]
    pub(crate) summary_ids: Vec<String>,
    /// Most levels of one expansion, 1 to 10 [default: 3]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) depth_max: Option<u64>,
    /// Most tokens of text to read, 1 to 1000000 [default: expand_tokens_max of the configuration]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) tokens_max: Option<u64>,
    /// Lifetime in milliseconds, 1 to 86400000 [default: 300000]
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    pub(crate) ttl_ms: Option<u64>,
    /// Grant to inherit from
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,
}

/// Syntax of a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GrepMode {
    Auto,
    Regex,
    FullText,
}

/// The texts that a search reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GrepScope {
    Messages,
    Summaries,
    Both,
    Files,
}

/// Order of the matches.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GrepSort {
    Recency,
    Relevance,
    Hybrid,
}

#[derive(Args, Debug)]
pub(crate) struct Describe {
    /// Id of a summary, message, file, version of the system messages or conversation
    pub(crate) id: String,
    /// Search for the id in every conversation of the store
    #[arg(long)]
    pub(crate) all_conversations: bool,
    /// First line of a file to show, from 1
    #[arg(long, value_name = "N")]
    pub(crate) start_line: Option<u64>,
    /// Last line of a file to show, included
    #[arg(long, value_name = "N")]
    pub(crate) end_line: Option<u64>,
    /// Offset of the first byte of a file to show, from 0
    #[arg(long, value_name = "N")]
    pub(crate) start_byte: Option<u64>,
    /// Offset after the last byte of a file to show
    #[arg(long, value_name = "N")]
    pub(crate) end_byte: Option<u64>,
    /// Most bytes of a file to show, 1024 to 512000 [default: 32768]
    #[arg(long, value_name = "N")]
    pub(crate) bytes_max: Option<u64>,
    /// Grant to read with: its limits apply, and the shown text is charged to it
    #[arg(long, value_name = "ID")]
    pub(crate) grant: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Expand {
    /// Id of a summary
    pub(crate) id: String,
    /// Levels of sources to show below the summary, the messages of a leaf included [default: 1, or
    /// all with --include-messages]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) depth_max: Option<u32>,
    /// Show the messages as well
    #[arg(long)]
    pub(crate) include_messages: bool,
    /// Print one page of at most this many tokens instead of everything
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) tokens_max: Option<u32>,
    /// Cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// Grant to read with: its limits apply, and the shown text is charged to it
    #[arg(long, value_name = "ID")]
    pub(crate) grant: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Messages {
    /// Seq of the first message, from 1
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true)]
    pub(crate) seq_first: Option<u64>,
    /// Seq of the last message, included [default: the newest]
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true)]
    pub(crate) seq_last: Option<u64>,
    /// Print the original text of each message, with a line end, and nothing else
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Summaries {
    /// Draw the tree of summaries and their sources
    #[arg(long)]
    pub(crate) tree: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Digest {
    /// Hash messages, summaries and context instead of stored bytes
    #[arg(long)]
    pub(crate) logical: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Family {
    /// Key of the family
    pub(crate) family: String,
}

#[derive(Args, Debug)]
pub(crate) struct Live {
    /// Key of the family
    pub(crate) family: String,
}

#[derive(Args, Debug)]
pub(crate) struct Reset {
    /// Id of the next conversation [default: the id with #2, #3 and so on]
    #[arg(long, value_name = "ID")]
    pub(crate) successor: Option<String>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Args, Debug)]
pub(crate) struct New {
    /// Smallest depth of the summaries that stay; 0: all summaries, -1: everything [default: as
    /// configured]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) retain_depth: Option<i64>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Args, Debug)]
pub(crate) struct Archive {
    /// Cause: manual-reset, discarded, session-end, rollover, cron-rotation or idle
    #[arg(long, value_name = "C")]
    pub(crate) cause: String,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Args, Debug)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) apply: Apply,
}

#[derive(Args, Debug)]
pub(crate) struct Conversations {
    /// List the conversations whose deletion was interrupted; lcm delete continues
    #[arg(long)]
    pub(crate) deletions: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Focus {
    /// File with the text, - for standard input; without a file the brief is removed
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Seq of the last message that the brief covers [default: the newest message]
    #[arg(long, value_name = "N", requires = "file", allow_negative_numbers = true)]
    pub(crate) seq_last: Option<u64>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Args, Debug)]
#[group(id = "target", required = true, multiple = false, args = ["to", "units"])]
pub(crate) struct Rewind {
    /// Seq of the last message that stays; 0: none. A set-aside message comes back
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) to: Option<u64>,
    /// Number of newest messages, or calls with their results
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) units: Option<u64>,
    #[command(flatten)]
    pub(crate) dry_run: DryRun,
}

#[derive(Args, Debug)]
pub(crate) struct Calibrate {
    /// Model that received the prompt
    #[arg(long, value_name = "M")]
    pub(crate) model: String,
    /// Estimated tokens of the prompt: those of lcm assemble plus those of added text
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) estimated_tokens: u32,
    /// Provider's token count of the prompt
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) prompt_tokens: u32,
}

#[derive(Args, Debug)]
pub(crate) struct Usage {
    /// Purpose of the answer: turn or summary
    #[arg(long, value_name = "P")]
    pub(crate) purpose: String,
    /// Tokens of the whole prompt, including the tokens in the provider's cache
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) input_tokens: u32,
    /// Prompt tokens that were read from the cache
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) cache_read_tokens: u32,
    /// Prompt tokens that were written to the cache
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) cache_write_tokens: u32,
    /// Tokens of the answer
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) output_tokens: u32,
    /// Cost in millionths of a currency; all reports use the same currency
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) cost_micros: u64,
}

#[derive(Args, Debug)]
pub(crate) struct Advise {
    /// Token budget of the context
    #[arg(long, value_name = "N")]
    pub(crate) budget: u32,
    /// Price of a million prompt tokens, in millionths of a currency
    #[arg(long, value_name = "N")]
    pub(crate) price_input: u64,
    /// Price of a million answer tokens
    #[arg(long, value_name = "N")]
    pub(crate) price_output: u64,
    /// Price of a million tokens read from the cache [default: --price-input]
    #[arg(long, value_name = "N")]
    pub(crate) price_cache_read: Option<u64>,
    /// Price of a million tokens written to the cache [default: --price-input]
    #[arg(long, value_name = "N")]
    pub(crate) price_cache_write: Option<u64>,
    /// Price of a million prompt tokens of the summary model [default: --price-input]
    #[arg(long, value_name = "N")]
    pub(crate) price_summary_input: Option<u64>,
    /// Price of a million answer tokens of the summary model [default: --price-output]
    #[arg(long, value_name = "N")]
    pub(crate) price_summary_output: Option<u64>,
    /// Lifetime of a cached prefix in milliseconds [default: 300000]
    #[arg(long, value_name = "MS")]
    pub(crate) cache_ms: Option<u64>,
    /// Number of prompts to come [default: the number of prompts so far, from 8 to 512]
    #[arg(long, value_name = "N")]
    pub(crate) turns: Option<u32>,
    /// Provider's last token count of the whole prompt
    #[arg(long, value_name = "N")]
    pub(crate) observed_tokens: Option<u32>,
    /// Model whose tokens the budget counts, after a report by lcm calibrate
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
}

/// Commands for the prompts of summaries.
#[derive(Debug, Subcommand)]
pub(crate) enum Prompts {
    /// List every prompt with its version and size, and whether the prompt is overridden
    List,
    /// Show a prompt as a model receives it, with bracketed words in place of the material
    Show(Prompt),
    /// Override the text of a prompt, in the file of --config
    Set {
        #[command(flatten)]
        prompt: Prompt,
        /// File with the text; - is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Remove an override, in the file of --config
    Unset(Prompt),
    /// Compare an override with the built-in text
    Diff(Prompt),
}

/// Name of a prompt.
#[derive(Args, Debug)]
pub(crate) struct Prompt {
    /// Name: leaf, leaf-aggressive, session, phase or durable
    pub(crate) name: String,
}

/// Whether a command only shows its effect.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DryRun {
    /// Print the change without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Whether a command writes.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Apply {
    /// Write the change [default: only print the change]
    #[arg(long)]
    pub(crate) apply: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Export {
    /// Export all conversations of the store
    #[arg(long)]
    pub(crate) all_conversations: bool,
    /// File to write; - is standard output
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct Import {
    /// File with an export; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
}

/// Dialect of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Dialect {
    Auto,
    Lcm,
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Gemini,
    AiSdk,
    Openclaw,
    Langchain,
    OpenaiAgents,
}

impl Dialect {
    /// Returns the component's dialect; `None`: the dialect must be detected.
    pub(crate) const fn wit(self) -> Option<WitDialect> {
        Some(match self {
            Self::Auto => return None,
            Self::Lcm => WitDialect::Lcm,
            Self::Anthropic => WitDialect::Anthropic,
            Self::OpenaiChat => WitDialect::OpenaiChat,
            Self::OpenaiResponses => WitDialect::OpenaiResponses,
            Self::Gemini => WitDialect::Gemini,
            Self::AiSdk => WitDialect::AiSdk,
            Self::Openclaw => WitDialect::Openclaw,
            Self::Langchain => WitDialect::Langchain,
            Self::OpenaiAgents => WitDialect::OpenaiAgents,
        })
    }
}

/// Treatment of stored messages by an ingest.
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

/// Condition under which `lcm compact` compacts.
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

/// Policy that selects older items when not everything fits.
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
