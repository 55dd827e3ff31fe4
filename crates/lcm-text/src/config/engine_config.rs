//! The settings of one engine, with their bounds and defaults.
//!
//! [`parse`](super::parse) makes a [`Config`] from JSON; every call of the engine reads its
//! settings.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use super::{config_override::ConfigOverride, host_settings::HostSettings};
use crate::{base::time_offsets::TimeOffsets, summary::prompts::PromptTemplate, types::api};

/// The token limit of the fresh tail.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TailCap {
    /// The key was absent: three tenths of the budget.
    #[default]
    Derived,
    /// The key was `null`: no cap.
    Unlimited,
    /// The key was this number of tokens, at least 1.
    Tokens(u32),
}

/// When a turn compacts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TurnCompaction {
    /// Compaction that can wait is left for `maintain`.
    Deferred,
    /// In the turn.
    Inline,
}

/// The settings of one engine. A number of tokens that is `None` is derived from the budget of a
/// call, unless its comment says otherwise. Numbers are at most `u32::MAX`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    /// Whether compaction acts and assembly uses summaries; default true.
    pub enabled: bool,
    /// Share of the budget, in thousandths, above which compaction is due; 0 to 1000, default 750.
    pub context_threshold_permille: u32,
    /// Settings for some models, sessions or windows only; default none.
    pub context_threshold_overrides: Vec<ConfigOverride>,
    /// Messages of the fresh tail, which can have more: the newest call group, and messages back to
    /// the newest user message. 0: no tail; default 64.
    pub fresh_tail_messages_max: u32,
    /// Most tokens of the fresh tail, unless the newest call group alone has more.
    pub fresh_tail_tokens_max: TailCap,
    /// Source tokens at which a leaf is full, at least 1; a call group is not split, so a leaf can
    /// have more.
    pub leaf_chunk_tokens_max: Option<u32>,
    /// Target tokens of a leaf, at least 1.
    pub leaf_tokens_target: Option<u32>,
    /// Target tokens of a condensed summary, at least 1.
    pub condensed_tokens_target: Option<u32>,
    /// Least number of leaves that are condensed together; at least 2, default 8.
    pub condense_leaves_min: u32,
    /// Least number of condensed summaries that are condensed together; at least 2, default 4.
    pub condense_summaries_min: u32,
    /// Least number of leaves, or of condensed summaries, that are condensed together under
    /// pressure; at least 2, default 2.
    pub condense_min_hard: u32,
    /// Greatest depth of a summary that a sweep makes without pressure; `None`: unlimited (JSON
    /// -1); default 1.
    pub sweep_depth_max: Option<u32>,
    /// Tokens of all summaries of a context above which summaries are condensed, at least 1.
    pub summary_prefix_tokens_target: Option<u32>,
    /// Most passes of one sweep, at least 1, default 12.
    pub sweep_passes_max: u32,
    /// Most sweeps of mode `until-under`, at least 1, default 10.
    pub until_under_rounds_max: u32,
    /// Time after which a compaction of any mode but `until-under` asks no further model, in
    /// milliseconds, at least 1; `None`: no bound.
    pub sweep_deadline_ms: Option<u32>,
    /// The same time for a compaction of mode `until-under`.
    pub until_under_deadline_ms: Option<u32>,
    /// When a turn compacts whose task does not say when; `None`: as [`TurnCompaction::Deferred`].
    pub turn_compaction: Option<TurnCompaction>,
    /// Most tokens of a fallback summary, its note included; at least 64.
    pub fallback_tokens_max: Option<u32>,
    /// A summary is cut above this factor times its target; 1 to 1000, default 3.
    pub summary_overage_factor: u32,
    /// Most tokens of stored text for one call of the tool `lcm_expand` or for one search of a
    /// question, at least 1, default 4000.
    pub expand_tokens_max: u32,
    /// Least tokens of a file or tool output that a reference replaces in contexts, and of the rest
    /// of a message whose longest texts references replace; at least 1,000, default 25,000.
    pub large_payload_tokens_min: u32,
    /// Least depth of the summaries that a new session keeps; `None`: all items are kept (JSON -1);
    /// default 2.
    pub new_session_retain_depth: Option<u32>,
    /// Upper bound of every budget in estimated tokens, at least 1000; `None`: no bound.
    pub assembly_tokens_max: Option<u32>,
    /// Most tokens of the first import of a forked session, at least 1; `None`: 30 % of
    /// `leaf_chunk_tokens_max`, at least 6,000.
    pub bootstrap_tokens_max: Option<u32>,
    /// Policy that selects older items when the call names no policy; default layered.
    pub eviction_policy: api::EvictionPolicy,
    /// Whether the fresh tail shows its newest large tool outputs in full, as far as the budget
    /// allows; default false: references replace all large tool outputs.
    pub stub_large_tool_payloads: bool,
    /// Whether a context shows summaries and a focus brief as plain text between two marker lines;
    /// default false: as XML elements.
    pub plain_summaries: bool,
    /// The operator's instructions, added to every summary prompt; default empty.
    pub custom_instructions: String,
    /// Texts that replace the task paragraph of a prompt, each at most
    /// [`crate::summary::prompts::OVERRIDE_BYTES_MAX`] bytes and not blank; default none.
    pub prompt_overrides: Vec<(PromptTemplate, String)>,
    /// Offsets of local time, for texts that people and models read; default: UTC.
    pub time_offsets: TimeOffsets,
    /// Model for summaries, with its provider if `summary_provider` names one; `None`: the host
    /// chooses.
    pub summary_model: Option<String>,
    /// Provider of `summary_model`, if the model names none.
    pub summary_provider: Option<String>,
    /// Model for descriptions of large files; `None`: the host chooses. No request uses the model
    /// in this version.
    pub large_file_summary_model: Option<String>,
    /// Provider of `large_file_summary_model`, if the model names none.
    pub large_file_summary_provider: Option<String>,
    /// Model for answers to questions; `None`: the host chooses.
    pub expansion_model: Option<String>,
    /// Provider of `expansion_model`, if the model names none.
    pub expansion_provider: Option<String>,
    /// Longest time for a question that names none, in milliseconds; `None`: 150,000.
    pub ask_deadline_ms: Option<u32>,
    /// Whether models get output tokens for reasoning beyond those of the answer; default true.
    pub enable_summary_thinking: bool,
    /// Length of the window in which rejected answers are counted, in milliseconds, at least 1,
    /// default 600,000.
    pub summary_call_window_ms: u64,
    /// Rejected answers of one window, with no accepted answer between them, that start a pause; at
    /// least 1, default 24.
    pub summary_max_calls_per_window: u32,
    /// Length of the pause in which no model is asked, in milliseconds, at least 1, default
    /// 1,800,000.
    pub summary_spend_backoff_ms: u64,
    /// Consecutive refused keys, or refusals by policy, that open the breaker of a model; at least
    /// 1, default 5.
    pub circuit_breaker_threshold: u32,
    /// Time for which the breaker stays open, in milliseconds, at least 1, default 1,800,000.
    pub circuit_breaker_cooldown_ms: u64,
    /// Least number of new user messages in one batch, each equal to one of the newest stored
    /// messages, that make a likely replay; at least 1, default 3.
    pub replay_flood_threshold_external: u32,
    /// Least number of new messages of all other roles in one batch, each equal to one of the
    /// newest stored messages, that make a likely replay; at least 1, default 32.
    pub replay_flood_threshold_internal: u32,
    /// Names of elements that are removed from texts of system and user messages for a summariser:
    /// at most 32, each of at most 64 bytes; empty: none is removed; default: the elements of
    /// common memory plugins.
    pub strip_injected_context_tags: Vec<String>,
    /// Patterns of sessions whose messages are not stored; default none.
    pub ignore_session_patterns: Vec<String>,
    /// Patterns of stateless sessions, which are read but never written; default none.
    pub stateless_session_patterns: Vec<String>,
    /// Whether `stateless_session_patterns` applies; default true.
    pub skip_stateless_sessions: bool,
    /// Settings that the engine does not read.
    pub host: HostSettings,
}

/// Output tokens for the reasoning of a model, if `enable_summary_thinking` is set.
const THINKING_TOKENS: u32 = 2_048;

impl Config {
    /// Returns the output tokens for reasoning, to be added to the tokens of the answer; 0 if
    /// `enable_summary_thinking` is not set.
    pub const fn thinking_tokens(&self) -> u32 {
        if self.enable_summary_thinking { THINKING_TOKENS } else { 0 }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            context_threshold_permille: 750,
            context_threshold_overrides: Vec::new(),
            fresh_tail_messages_max: 64,
            fresh_tail_tokens_max: TailCap::Derived,
            leaf_chunk_tokens_max: None,
            leaf_tokens_target: None,
            condensed_tokens_target: None,
            condense_leaves_min: 8,
            condense_summaries_min: 4,
            condense_min_hard: 2,
            sweep_depth_max: Some(1),
            summary_prefix_tokens_target: None,
            sweep_passes_max: 12,
            until_under_rounds_max: 10,
            sweep_deadline_ms: None,
            until_under_deadline_ms: None,
            turn_compaction: None,
            fallback_tokens_max: None,
            summary_overage_factor: 3,
            expand_tokens_max: 4000,
            large_payload_tokens_min: 25_000,
            new_session_retain_depth: Some(2),
            assembly_tokens_max: None,
            bootstrap_tokens_max: None,
            eviction_policy: api::EvictionPolicy::Layered,
            stub_large_tool_payloads: false,
            plain_summaries: false,
            custom_instructions: String::new(),
            prompt_overrides: Vec::new(),
            time_offsets: TimeOffsets::default(),
            summary_model: None,
            summary_provider: None,
            large_file_summary_model: None,
            large_file_summary_provider: None,
            expansion_model: None,
            expansion_provider: None,
            ask_deadline_ms: None,
            enable_summary_thinking: true,
            summary_call_window_ms: 600_000,
            summary_max_calls_per_window: 24,
            summary_spend_backoff_ms: 1_800_000,
            circuit_breaker_threshold: 5,
            circuit_breaker_cooldown_ms: 1_800_000,
            replay_flood_threshold_external: 3,
            replay_flood_threshold_internal: 32,
            strip_injected_context_tags: INJECTED_CONTEXT_TAGS.map(|tag| tag.to_string()).into(),
            ignore_session_patterns: Vec::new(),
            stateless_session_patterns: Vec::new(),
            skip_stateless_sessions: true,
            host: HostSettings::default(),
        }
    }
}

/// Names of the elements that common memory plugins insert into messages.
const INJECTED_CONTEXT_TAGS: [&str; 4] =
    ["active_memory_plugin", "relevant-memories", "relevant_memories", "hindsight_memories"];
