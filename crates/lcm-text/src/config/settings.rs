//! Parses a configuration from JSON and reports how each key was treated.
//!
//! Input: a JSON object. Output: a [`Config`] and a report as JSON. A setting has one own name and
//! may have aliases. Aliases are names of the reference system, an older context engine whose
//! configuration is accepted. Every name is read in camel case and in snake case. If several names
//! of a setting are given, its own name wins, then the first alias in [`SETTINGS`]. Keys of hosts
//! are reported and not read.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::cmp::Reverse;

use super::{
    config_override::ConfigOverride,
    decimal::{parse_whole, scale_decimal},
    engine_config::{Config, TailCap},
    overrides,
};
use crate::{
    base::{
        error::{Error, Result},
        json::{self, JsonKind, JsonMember, JsonWriter},
        sort::{self, SortedMap},
    },
    summary::prompts,
    types::api,
};

/// One setting.
struct Setting {
    name: &'static str,
    /// Names of the setting in the reference system, in camel case; the first wins.
    aliases: &'static [&'static str],
    value_type: SettingType,
}

/// The type and bounds of a setting, with the function that sets its value.
enum SettingType {
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
}

const NO_MAX: u32 = u32::MAX;

const fn new_setting(
    name: &'static str,
    aliases: &'static [&'static str],
    value_type: SettingType,
) -> Setting {
    Setting { name, aliases, value_type }
}

use SettingType::{Depth, Flag, Name, Number, NumberOrNull, Text, Texts};

static SETTINGS: [Setting; 42] = [
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
    new_setting("summary_model", &["summaryModel"], Name(|c, v| c.summary_model = v)),
    new_setting(
        "large_file_summary_model",
        &["largeFileSummaryModel"],
        Name(|c, v| c.large_file_summary_model = v),
    ),
    new_setting("expansion_model", &["expansionModel"], Name(|c, v| c.expansion_model = v)),
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
];

/// Most element names of `strip_injected_context_tags`.
const TAGS_MAX: usize = 32;
/// Most bytes of one element name.
const TAG_BYTES_MAX: usize = 64;
/// The rule for `strip_injected_context_tags` in error messages.
const TAGS_RULE: &str = "\
an array of strings, at most 32 names of elements of at most 64 bytes: ASCII letters, digits, `_`, \
`-`, `.` and `:`, beginning with a letter or `_`";

/// Keys of the reference system that have no effect here, in camel case.
const DEPRECATED_KEYS: [&str; 2] = ["cacheAwareCompaction", "dynamicLeafChunkTokens"];

/// Keys of the reference system for which only a host can have an effect, in camel case. They
/// include deadlines, because the engine has no clock.
const HOST_KEYS: [&str; 18] = [
    "autoRotateSessionFiles",
    "compactUntilUnderDeadlineMs",
    "databasePath",
    "dbPath",
    "delegationTimeoutMs",
    "expansionProvider",
    "fallbackProviders",
    "hostFallbackMode",
    "independentLogFile",
    "largeFileSummaryProvider",
    "largeFilesDir",
    "proactiveThresholdCompactionMode",
    "pruneHeartbeatOk",
    "summaryProvider",
    "summaryTimeoutMs",
    "sweepDeadlineMs",
    "timezone",
    "transcriptGcEnabled",
];

/// How each given key was treated; every list is sorted.
#[derive(Default)]
struct ConfigReport {
    /// Own names of the settings that were given by any name.
    accepted: Vec<&'static str>,
    /// The accepted settings that are in [`RESERVED_SETTINGS`].
    reserved: Vec<&'static str>,
    /// Own names of the settings that were not given.
    defaulted: Vec<&'static str>,
    /// Given keys that are not the own name of their setting.
    aliased: Vec<AliasedKey>,
    /// Given keys that are in [`DEPRECATED_KEYS`].
    deprecated: Vec<String>,
    /// Given keys that are in [`HOST_KEYS`].
    host: Vec<String>,
    /// All other given keys.
    unknown: Vec<String>,
}

struct AliasedKey {
    key: String,
    name: &'static str,
}

impl ConfigReport {
    fn to_json(&self) -> String {
        let mut aliased = JsonWriter::new_array();
        for AliasedKey { key, name } in &self.aliased {
            let mut alias = JsonWriter::new_object();
            alias.add_text("key", key);
            alias.add_text("as", name);
            aliased.push_object(alias);
        }
        let mut report = JsonWriter::new_object();
        report.add_array("accepted", string_array(&self.accepted));
        report.add_texts("reserved", &self.reserved);
        report.add_array("defaulted", string_array(&self.defaulted));
        report.add_array("aliased", aliased);
        report.add_texts("deprecated", &self.deprecated);
        report.add_texts("host", &self.host);
        report.add_texts("unknown", &self.unknown);
        report.end_object()
    }
}

fn string_array(names: &[&str]) -> JsonWriter {
    let mut array = JsonWriter::new_array();
    names.iter().for_each(|name| array.push_text(name));
    array
}

/// A setting that the caller gave.
struct GivenSetting {
    /// Index in [`SETTINGS`].
    setting: usize,
    /// 0 for the own name, else 1 + the index of the alias.
    name_rank: usize,
    /// The key as given.
    spelled: String,
    value: JsonMember,
}

/// Parses a configuration, one JSON object. Absent keys have their defaults; of a repeated key the
/// last counts.
///
/// The second result is a JSON object that reports how keys were treated; none of its entries is an
/// error. Its lists are `accepted`, `reserved`, `defaulted`, `aliased` (each `{"key", "as"}`),
/// `deprecated`, `host` and `unknown`.
///
/// # Errors
///
/// `invalid-input`: not one JSON object, or a value of the wrong type or out of bounds; the message
/// names the key and the rule.
///
/// # Examples
///
/// ```
/// use lcm_text::config;
///
/// let (config, report) = config::parse(r#"{"freshTailCount": 32}"#)?;
/// assert_eq!(config.fresh_tail_messages_max, 32);
/// assert!(report.contains(r#"{"key":"freshTailCount","as":"fresh_tail_messages_max"}"#));
///
/// let error = config::parse(r#"{"enabled": 1}"#).map(|_| ()).unwrap_err();
/// assert_eq!(error.message, "`enabled` must be true or false, got 1");
/// # Ok::<(), lcm_text::base::error::Error>(())
/// ```
pub fn parse(config_json: &str) -> Result<(Config, String)> {
    let mut members = Vec::new();
    for member in json::parse_object(config_json)? {
        members.push((json::text(config_json, member.key).into_owned(), member));
    }
    let mut report = ConfigReport::default();
    let mut given_settings = Vec::new();
    for (spelled, value) in SortedMap::from_entries(members).into_entries() {
        let camel = camel_case(&spelled);
        if let Some((setting, name_rank)) = find_setting(&spelled, &camel) {
            given_settings.push(GivenSetting { setting, name_rank, spelled, value });
        } else if DEPRECATED_KEYS.contains(&camel.as_str()) {
            report.deprecated.push(spelled);
        } else if HOST_KEYS.contains(&camel.as_str()) {
            report.host.push(spelled);
        } else {
            report.unknown.push(spelled);
        }
    }
    // Every value is checked. The value under the name that wins is set last.
    sort::sort_by(&mut given_settings, &mut |a, b| {
        let order = |given: &GivenSetting| (given.setting, Reverse(given.name_rank));
        order(a).cmp(&order(b)).then_with(|| a.spelled.cmp(&b.spelled))
    });
    let mut config = Config::default();
    for GivenSetting { setting, name_rank, spelled, value } in given_settings {
        let Some(key) = SETTINGS.get(setting) else { continue };
        set_value(&mut config, config_json, &key.value_type, name_rank > 0, &value).map_err(
            |rule| {
                let found = json::describe_scalar(config_json, value.value);
                Error::invalid_input(format_args!("`{spelled}` must be {rule}{found}"))
            },
        )?;
        report.accepted.push(key.name);
        if name_rank > 0 || spelled != key.name {
            report.aliased.push(AliasedKey { key: spelled, name: key.name });
        }
    }
    sort::sort_and_dedup(&mut report.accepted);
    let names = SETTINGS.iter().map(|key| key.name);
    report.defaulted = names.filter(|name| !report.accepted.contains(name)).collect();
    sort::sort(&mut report.defaulted);
    sort::sort_by(&mut report.aliased, &mut |a, b| a.key.cmp(&b.key));
    report.reserved =
        RESERVED_SETTINGS.iter().copied().filter(|name| report.accepted.contains(name)).collect();
    Ok((config, report.to_json()))
}

/// Returns the index of the setting with this name, and the rank of the name as in
/// [`GivenSetting::name_rank`]; `None`: no setting has this name.
fn find_setting(spelled: &str, camel: &str) -> Option<(usize, usize)> {
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
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut out = words.next().unwrap_or_default().to_string();
    for word in words {
        let mut letters = word.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}

/// Settings that the report lists as `reserved`. Of them, only `large_file_summary_model` is never
/// read by the engine.
static RESERVED_SETTINGS: [&str; 6] = [
    "expand_tokens_max",
    "expansion_model",
    "large_file_summary_model",
    "summary_call_window_ms",
    "summary_max_calls_per_window",
    "summary_spend_backoff_ms",
];

/// Sets one value. The error is the rule that the value breaks.
fn set_value(
    config: &mut Config,
    raw: &str,
    value_type: &SettingType,
    aliased: bool,
    value: &JsonMember,
) -> core::result::Result<(), String> {
    let text = json::text(raw, value.value);
    let number = (value.kind == JsonKind::Number).then(|| parse_whole(&text)).flatten();
    let flag = (value.kind == JsonKind::Bool).then(|| *text == *"true");
    let string = (value.kind == JsonKind::String).then(|| text.to_string());
    let is_null = value.kind == JsonKind::Null;
    match *value_type {
        Number(min, max, set) => match number.filter(|v| (min..=max).contains(v)) {
            Some(number) => set(config, number),
            None => return Err(format!("a whole number from {min} to {max}")),
        },
        NumberOrNull(min, set) => match number.filter(|v| *v >= min) {
            None if !is_null => {
                return Err(format!("a whole number from {min} to {NO_MAX}, or null"));
            }
            number => set(config, number),
        },
        Depth(set) => match (number, text.strip_prefix('-').and_then(parse_whole)) {
            (Some(depth), _) => set(config, Some(depth)),
            (None, Some(1)) if value.kind == JsonKind::Number => set(config, None),
            _ => return Err(format!("a whole number from -1 to {NO_MAX}")),
        },
        Flag(set) => set(config, flag.ok_or("true or false")?),
        Text(set) => set(config, string.ok_or("a string")?),
        Name(set) => match string {
            None if !is_null => return Err("a string or null".into()),
            name => set(config, name.filter(|name| !name.is_empty())),
        },
        Texts(set) => set(config, read_texts(raw, value).ok_or("an array of strings")?),
        SettingType::Tags => {
            let names = read_texts(raw, value).filter(|names| names.len() <= TAGS_MAX);
            let names = names.filter(|names| names.iter().all(|name| is_element_name(name)));
            config.strip_injected_context_tags = names.ok_or(TAGS_RULE)?;
        }
        SettingType::Prompts => {
            let texts = read_named_texts(raw, value).ok_or("an object whose values are strings")?;
            config.prompt_overrides = prompts::parse_overrides(texts)?;
        }
        SettingType::Overrides => config.context_threshold_overrides = read_rules(raw, value)?,
        SettingType::Threshold => {
            config.context_threshold_permille = read_threshold(&text, aliased, value)?
        }
        SettingType::Eviction => {
            config.eviction_policy = read_eviction_policy(string.as_deref(), flag, aliased)?
        }
    }
    Ok(())
}

/// Returns whether a text can be the name of an element, as [`TAGS_RULE`] states.
fn is_element_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.len() <= TAG_BYTES_MAX
        && name.bytes().all(fits)
        && name.as_bytes().first().is_some_and(begins)
}

fn read_rules(raw: &str, value: &JsonMember) -> core::result::Result<Vec<ConfigOverride>, String> {
    const RULE: &str = "an array of rules";
    if value.kind != JsonKind::Array {
        return Err(RULE.into());
    }
    overrides::read_overrides(raw, &json::list_elements(raw, value.value))
        .map_err(|error| format!("{RULE}; {}", error.into_failure().message))
}

fn read_threshold(
    text: &str,
    decimal: bool,
    value: &JsonMember,
) -> core::result::Result<u32, &'static str> {
    let number = (value.kind == JsonKind::Number).then_some(text);
    if !decimal {
        let permille = number.and_then(parse_whole).filter(|permille| *permille <= 1000);
        return permille.ok_or("a whole number from 0 to 1000");
    }
    number
        .and_then(|number| scale_decimal(number, 3))
        .filter(|s| s.floor < 1000 || (s.floor == 1000 && s.exact))
        .and_then(|s| u32::try_from(s.floor + u64::from(s.rounds_up)).ok())
        .ok_or("a number from 0 to 1")
}

fn read_eviction_policy(
    policy: Option<&str>,
    prompt_aware: Option<bool>,
    aliased: bool,
) -> core::result::Result<api::EvictionPolicy, &'static str> {
    match (aliased, policy, prompt_aware) {
        (false, Some("chronological"), _) | (true, _, Some(false)) => {
            Ok(api::EvictionPolicy::Chronological)
        }
        (false, Some("prompt-aware"), _) | (true, _, Some(true)) => {
            Ok(api::EvictionPolicy::PromptAware)
        }
        (false, Some("layered"), _) => Ok(api::EvictionPolicy::Layered),
        (false, ..) => Err("`chronological`, `prompt-aware` or `layered`"),
        (true, ..) => Err("true or false"),
    }
}

fn read_texts(raw: &str, value: &JsonMember) -> Option<Vec<String>> {
    let is_array = value.kind == JsonKind::Array;
    let elements = is_array.then(|| json::list_elements(raw, value.value))?;
    let text = |v: &json::JsonValue| {
        (v.kind == JsonKind::String).then(|| json::text(raw, v.span).into_owned())
    };
    elements.iter().map(text).collect()
}

fn read_named_texts(raw: &str, value: &JsonMember) -> Option<Vec<(String, String)>> {
    let is_object = value.kind == JsonKind::Object;
    let members = is_object.then(|| json::list_members(raw, value.value))?;
    let mut texts = Vec::new();
    for m in &members {
        let text = (m.kind == JsonKind::String).then(|| json::text(raw, m.value).into_owned())?;
        texts.push((json::text(raw, m.key).into_owned(), text));
    }
    Some(SortedMap::from_entries(texts).into_entries())
}
