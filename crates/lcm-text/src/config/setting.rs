//! The table of settings: names, aliases, types and bounds.
//!
//! A setting has one own name and may have aliases. Aliases are names of the reference system, an
//! older context engine whose configuration is accepted. Every name is read in camel case and in
//! snake case.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use super::engine_config::{Config, TailCap};

/// Longest time for one question, in milliseconds.
const ASK_DEADLINE_MS_MAX: u32 = 600_000;
/// Longest time for one answer of a model, in milliseconds: the longest timer of JavaScript.
const TIMEOUT_MS_MAX: u32 = 2_147_483_647;

/// One setting.
pub(super) struct Setting {
    pub(super) name: &'static str,
    /// Names of the setting in the reference system, in camel case; the first wins.
    pub(super) aliases: &'static [&'static str],
    pub(super) value_type: SettingType,
}

/// The type and bounds of a setting, with the function that sets its value.
pub(super) enum SettingType {
    /// A whole number; the bounds are inclusive.
    Number(u32, u32, fn(&mut Config, u32)),
    /// A whole number of at least the first field, or `null`.
    NumberOrNull(u32, fn(&mut Config, Option<u32>)),
    /// A whole number of at least 0, or -1 for `None`.
    Depth(fn(&mut Config, Option<u32>)),
    Flag(fn(&mut Config, bool)),
    Text(fn(&mut Config, String)),
    /// A string; the empty string and `null` give `None`.
    Name(fn(&mut Config, Option<String>)),
    Texts(fn(&mut Config, Vec<String>)),
    /// Thousandths under the own name, a decimal from 0 to 1 under the alias.
    Threshold,
    /// An array of override rules.
    Overrides,
    /// An object from names of prompts to texts.
    Prompts,
    /// An array of element names.
    Tags,
    /// The name of a policy under the own name. Under an alias, `true` is `prompt-aware` and
    /// `false` is `chronological`.
    Eviction,
    /// `deferred` or `inline`.
    TurnCompaction,
    /// An array of offsets to UTC.
    TimeOffsets,
    /// An array of models, each `PROVIDER/MODEL` or an object with `provider` and `model`.
    Models,
}

pub(super) const NO_MAX: u32 = u32::MAX;

const fn new_setting(
    name: &'static str,
    aliases: &'static [&'static str],
    value_type: SettingType,
) -> Setting {
    Setting { name, aliases, value_type }
}

use SettingType::{Depth, Flag, Name, Number, NumberOrNull, Text, Texts};

pub(super) static SETTINGS: [Setting; 54] = [
    new_setting("enabled", &[], Flag(|c, v| c.enabled = v)),
    new_setting("context_threshold_permille", &["contextThreshold"], SettingType::Threshold),
    new_setting(
        "context_threshold_overrides",
        &["contextThresholdOverrides"],
        SettingType::Overrides,
    ),
    new_setting(
        "fresh_tail_messages_max",
        &["freshTailCount"],
        Number(0, NO_MAX, |c, v| c.fresh_tail_messages_max = v),
    ),
    new_setting(
        "fresh_tail_tokens_max",
        &["freshTailMaxTokens"],
        NumberOrNull(1, |c, v| {
            c.fresh_tail_tokens_max = v.map_or(TailCap::Unlimited, TailCap::Tokens);
        }),
    ),
    new_setting(
        "leaf_chunk_tokens_max",
        &["leafChunkTokens"],
        Number(1, NO_MAX, |c, v| c.leaf_chunk_tokens_max = Some(v)),
    ),
    new_setting(
        "leaf_tokens_target",
        &["leafTargetTokens"],
        Number(1, NO_MAX, |c, v| c.leaf_tokens_target = Some(v)),
    ),
    new_setting(
        "condensed_tokens_target",
        &["condensedTargetTokens"],
        Number(1, NO_MAX, |c, v| c.condensed_tokens_target = Some(v)),
    ),
    new_setting(
        "condense_leaves_min",
        &["leafMinFanout"],
        Number(2, NO_MAX, |c, v| c.condense_leaves_min = v),
    ),
    new_setting(
        "condense_summaries_min",
        &["condensedMinFanout"],
        Number(2, NO_MAX, |c, v| c.condense_summaries_min = v),
    ),
    new_setting(
        "condense_min_hard",
        &["condensedMinFanoutHard"],
        Number(2, NO_MAX, |c, v| c.condense_min_hard = v),
    ),
    new_setting(
        "sweep_depth_max",
        &["sweepMaxDepth", "incrementalMaxDepth"],
        Depth(|c, v| c.sweep_depth_max = v),
    ),
    new_setting(
        "summary_prefix_tokens_target",
        &["summaryPrefixTargetTokens"],
        Number(1, NO_MAX, |c, v| c.summary_prefix_tokens_target = Some(v)),
    ),
    new_setting(
        "sweep_passes_max",
        &["maxSweepIterations"],
        Number(1, NO_MAX, |c, v| c.sweep_passes_max = v),
    ),
    new_setting(
        "until_under_rounds_max",
        &["maxRounds"],
        Number(1, NO_MAX, |c, v| c.until_under_rounds_max = v),
    ),
    new_setting(
        "sweep_deadline_ms",
        &["sweepDeadlineMs"],
        NumberOrNull(1, |c, v| c.sweep_deadline_ms = v),
    ),
    new_setting(
        "until_under_deadline_ms",
        &["compactUntilUnderDeadlineMs"],
        NumberOrNull(1, |c, v| c.until_under_deadline_ms = v),
    ),
    new_setting(
        "turn_compaction",
        &["proactiveThresholdCompactionMode"],
        SettingType::TurnCompaction,
    ),
    new_setting(
        "fallback_tokens_max",
        &["fallbackMaxTokens"],
        Number(64, NO_MAX, |c, v| c.fallback_tokens_max = Some(v)),
    ),
    new_setting(
        "summary_overage_factor",
        &["summaryMaxOverageFactor"],
        Number(1, 1000, |c, v| c.summary_overage_factor = v),
    ),
    new_setting(
        "expand_tokens_max",
        &["maxExpandTokens"],
        Number(1, NO_MAX, |c, v| c.expand_tokens_max = v),
    ),
    new_setting(
        "large_payload_tokens_min",
        &["largeFileThresholdTokens", "largeFileTokenThreshold"],
        Number(1000, NO_MAX, |c, v| c.large_payload_tokens_min = v),
    ),
    new_setting(
        "new_session_retain_depth",
        &["newSessionRetainDepth"],
        Depth(|c, v| c.new_session_retain_depth = v),
    ),
    new_setting(
        "assembly_tokens_max",
        &["maxAssemblyTokenBudget"],
        NumberOrNull(1000, |c, v| c.assembly_tokens_max = v),
    ),
    new_setting(
        "bootstrap_tokens_max",
        &["bootstrapMaxTokens"],
        Number(1, NO_MAX, |c, v| c.bootstrap_tokens_max = Some(v)),
    ),
    new_setting(
        "eviction_policy",
        &["promptAwareEviction", "promptAwareEvictionEnabled"],
        SettingType::Eviction,
    ),
    new_setting(
        "stub_large_tool_payloads",
        &["stubLargeToolPayloads"],
        Flag(|c, v| c.stub_large_tool_payloads = v),
    ),
    new_setting("plain_summaries", &[], Flag(|c, v| c.plain_summaries = v)),
    new_setting(
        "custom_instructions",
        &["customInstructions"],
        Text(|c, v| c.custom_instructions = v),
    ),
    new_setting("prompt_overrides", &[], SettingType::Prompts),
    new_setting("time_offsets", &[], SettingType::TimeOffsets),
    new_setting("summary_model", &["summaryModel"], Name(|c, v| c.summary_model = v)),
    new_setting(
        "large_file_summary_model",
        &["largeFileSummaryModel"],
        Name(|c, v| c.large_file_summary_model = v),
    ),
    new_setting("expansion_model", &["expansionModel"], Name(|c, v| c.expansion_model = v)),
    new_setting("summary_provider", &["summaryProvider"], Name(|c, v| c.summary_provider = v)),
    new_setting(
        "large_file_summary_provider",
        &["largeFileSummaryProvider"],
        Name(|c, v| c.large_file_summary_provider = v),
    ),
    new_setting(
        "expansion_provider",
        &["expansionProvider"],
        Name(|c, v| c.expansion_provider = v),
    ),
    new_setting(
        "ask_deadline_ms",
        &["delegationTimeoutMs"],
        Number(1, ASK_DEADLINE_MS_MAX, |c, v| c.ask_deadline_ms = Some(v)),
    ),
    new_setting(
        "enable_summary_thinking",
        &["enableSummaryThinking"],
        Flag(|c, v| c.enable_summary_thinking = v),
    ),
    new_setting(
        "summary_call_window_ms",
        &["summaryCallWindowMs"],
        Number(1, NO_MAX, |c, v| c.summary_call_window_ms = v.into()),
    ),
    new_setting(
        "summary_max_calls_per_window",
        &["summaryMaxCallsPerWindow"],
        Number(1, NO_MAX, |c, v| c.summary_max_calls_per_window = v),
    ),
    new_setting(
        "summary_spend_backoff_ms",
        &["summarySpendBackoffMs"],
        Number(1, NO_MAX, |c, v| c.summary_spend_backoff_ms = v.into()),
    ),
    new_setting(
        "circuit_breaker_threshold",
        &["circuitBreakerThreshold"],
        Number(1, NO_MAX, |c, v| c.circuit_breaker_threshold = v),
    ),
    new_setting(
        "circuit_breaker_cooldown_ms",
        &["circuitBreakerCooldownMs"],
        Number(1, NO_MAX, |c, v| c.circuit_breaker_cooldown_ms = v.into()),
    ),
    new_setting(
        "replay_flood_threshold_external",
        &["replayFloodThresholdExternal"],
        Number(1, NO_MAX, |c, v| c.replay_flood_threshold_external = v),
    ),
    new_setting(
        "replay_flood_threshold_internal",
        &["replayFloodThresholdInternal"],
        Number(1, NO_MAX, |c, v| c.replay_flood_threshold_internal = v),
    ),
    new_setting("strip_injected_context_tags", &["stripInjectedContextTags"], SettingType::Tags),
    new_setting(
        "ignore_session_patterns",
        &["ignoreSessionPatterns"],
        Texts(|c, v| c.ignore_session_patterns = v),
    ),
    new_setting(
        "stateless_session_patterns",
        &["statelessSessionPatterns"],
        Texts(|c, v| c.stateless_session_patterns = v),
    ),
    new_setting(
        "skip_stateless_sessions",
        &["skipStatelessSessions"],
        Flag(|c, v| c.skip_stateless_sessions = v),
    ),
    // Settings of hosts, which `HOST_SETTINGS` counts.
    new_setting("database_path", &["dbPath"], Name(|c, v| c.host.database_path = v)),
    new_setting("fallback_models", &["fallbackProviders"], SettingType::Models),
    new_setting(
        "timeout_ms",
        &["summaryTimeoutMs"],
        Number(1, TIMEOUT_MS_MAX, |c, v| {
            c.host.timeout_ms = Some(v);
        }),
    ),
    new_setting("timezone", &[], Name(|c, v| c.host.timezone = v)),
];

/// Number of settings at the end of [`SETTINGS`] that hosts follow and the engine does not read.
const HOST_SETTINGS: usize = 4;

impl Setting {
    /// Returns whether hosts follow the setting, and the engine does not read it.
    pub(super) fn is_of_host(index: usize) -> bool {
        index + HOST_SETTINGS >= SETTINGS.len()
    }
}

/// Returns the index of the setting with this name, and the rank of the name: 0 for the own name,
/// else 1 + the index of the alias; `None`: no setting has this name. `camel` is the name in camel
/// case.
pub(super) fn find_setting(spelled: &str, camel: &str) -> Option<(usize, usize)> {
    SETTINGS.iter().enumerate().find_map(|(setting, key)| {
        // Own names are accepted in camel case, too.
        if key.name == spelled || camel_case(key.name) == camel {
            return Some((setting, 0));
        }
        let alias = key.aliases.iter().position(|alias| *alias == camel)?;
        Some((setting, alias + 1))
    })
}

/// Converts `fresh_tail_count` to `freshTailCount`; a name without underscores is unchanged.
pub(super) fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut out = words.next().unwrap_or_default().to_string();
    for word in words {
        let mut letters = word.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}
