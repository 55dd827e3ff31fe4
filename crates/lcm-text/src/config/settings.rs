//! Parses a configuration from JSON and reports how each key was treated.
//!
//! Input: a JSON object, and for [`resolve_config`] environment variables. Output: a [`Config`] and
//! a report as JSON. If several names of a setting are given, a key of the object takes precedence
//! over a variable, then the own name over aliases, and an earlier alias in the table of settings
//! over a later alias.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::cmp::Reverse;

use super::{
    config_override::ConfigOverride,
    decimal::{parse_whole, scale_decimal},
    engine_config::{Config, TurnCompaction},
    host_settings::{self, join_model},
    ignored_keys::{self, IgnoredKey},
    overrides,
    report::{AliasedKey, ConfigReport},
    setting::{
        NO_MAX, SETTINGS, Setting,
        SettingType::{self, Depth, Flag, Name, Number, NumberOrNull, Text, Texts},
        camel_case, find_setting,
    },
    time_offsets, variables,
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

/// Most element names of `strip_injected_context_tags`.
const TAGS_MAX: usize = 32;
/// Most bytes of one element name.
const TAG_BYTES_MAX: usize = 64;
/// The rule for `strip_injected_context_tags` in error messages.
const TAGS_RULE: &str = "\
an array of strings, at most 32 names of elements of at most 64 bytes: ASCII letters, digits, `_`, \
`-`, `.` and `:`, beginning with a letter or `_`";

/// Settings that are accepted and that no request of this version uses.
const RESERVED_SETTINGS: [&str; 2] = ["large_file_summary_model", "large_file_summary_provider"];

/// A setting that the caller gave.
struct GivenSetting<'a> {
    /// Index in [`SETTINGS`].
    setting: usize,
    /// 0 for the own name, else 1 + the index of the alias.
    name_rank: usize,
    /// The key or the variable, as given.
    spelled: String,
    /// The key as an object of the configuration can have it.
    key: String,
    is_variable: bool,
    /// The JSON that has the value.
    raw: &'a str,
    value: JsonMember,
}

/// The settings that were given, and the report so far.
#[derive(Default)]
struct GivenConfig<'a> {
    settings: Vec<GivenSetting<'a>>,
    report: ConfigReport,
}

/// Parses a configuration, one JSON object. Absent keys have their defaults; of a repeated key the
/// last counts.
///
/// The second result is a JSON object that reports how keys were treated; none of its entries is an
/// error. Its lists are `accepted`, `reserved`, `defaulted`, `aliased` (each `{"key", "as"}`),
/// `deprecated`, `host`, `not_followed`, `overridden`, `unknown`, and `notes` (each `{"key",
/// "note"}`).
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
    let mut given = GivenConfig::default();
    given.add_object(config_json)?;
    let (config, report, _) = given.settle_values()?;
    Ok((config, report.into_json().end_object()))
}

/// Makes one configuration of a JSON object and of environment variables. `variables_json` is a
/// JSON object from names of variables to their texts. A key of the configuration takes precedence
/// over a variable of the same setting. Variables without the prefix `LCM_`, and those that hosts
/// read themselves, are ignored.
///
/// Returns JSON: `config`, the object for [`parse`]; `host`, the settings that the host follows;
/// `report`, as [`parse`] returns it, in which a variable appears under its own name.
///
/// # Errors
///
/// The errors of [`parse`], which name the key or the variable; `invalid-input`: the value of a
/// variable is no text.
///
/// # Examples
///
/// ```
/// use lcm_text::config;
///
/// let resolved = config::resolve_config("{}", r#"{"LCM_FRESH_TAIL_COUNT": "32"}"#)?;
/// assert!(resolved.contains(r#""config":{"fresh_tail_count":32}"#));
/// # Ok::<(), lcm_text::base::error::Error>(())
/// ```
pub fn resolve_config(config_json: &str, variables_json: &str) -> Result<String> {
    let mut given = GivenConfig::default();
    let mut written = JsonWriter::new_object();
    for (variable, key, text) in &variables::list_variables(variables_json)? {
        let setting = find_setting(key, &camel_case(key));
        let json = match setting.and_then(|(index, rank)| Some((SETTINGS.get(index)?, rank > 0))) {
            Some((setting, is_alias)) => variables::write_value(setting, is_alias, text),
            None => Some("null".into()),
        };
        if let Some(json) = json {
            written.add_json(variable, &json);
        }
    }
    let written = written.end_object();
    given.add_object(config_json)?;
    given.add_variables(&written)?;
    let (config, report, settings_json) = given.settle_values()?;
    let mut resolved = JsonWriter::new_object();
    resolved.add_object("config", settings_json);
    resolved.add_object("host", config.host.to_json(&config));
    resolved.add_object("report", report.into_json());
    Ok(resolved.end_object())
}

impl<'a> GivenConfig<'a> {
    /// Adds the keys of a configuration.
    fn add_object(&mut self, raw: &'a str) -> Result<()> {
        let mut members = Vec::new();
        for member in json::parse_object(raw)? {
            members.push((json::text(raw, member.key).into_owned(), member));
        }
        for (spelled, value) in SortedMap::from_entries(members).into_entries() {
            let camel = camel_case(&spelled);
            self.add_key(raw, (spelled.clone(), spelled, camel), value, false);
        }
        Ok(())
    }

    /// Adds variables, an object of values by the names of the variables.
    fn add_variables(&mut self, raw: &'a str) -> Result<()> {
        for member in json::parse_object(raw)? {
            let spelled = json::text(raw, member.key).into_owned();
            let key = variables::find_key(&spelled).unwrap_or_default();
            let camel = camel_case(&key);
            self.add_key(raw, (spelled, key, camel), member, true);
        }
        Ok(())
    }

    /// Adds one key or variable. Its three names: as given, as a key of a configuration, and as
    /// this key in camel case.
    fn add_key(
        &mut self,
        raw: &'a str,
        (spelled, key, camel): (String, String, String),
        value: JsonMember,
        is_variable: bool,
    ) {
        let report = &mut self.report;
        if let Some((setting, name_rank)) = find_setting(&key, &camel) {
            self.settings.push(GivenSetting {
                setting,
                name_rank,
                spelled,
                key,
                is_variable,
                raw,
                value,
            });
            return;
        }
        match ignored_keys::find_ignored(&camel) {
            Some(IgnoredKey::Deprecated(why)) => {
                report.add_note(&spelled, why);
                report.deprecated.push(spelled);
            }
            Some(IgnoredKey::NotFollowed(why)) => {
                report.add_note(&spelled, why);
                report.not_followed.push(spelled);
            }
            None => {
                report.add_note(&spelled, "unknown key");
                report.unknown.push(spelled);
            }
        }
    }

    /// Sets every value. Returns the configuration, the report, and the settings of the engine that
    /// count, as an object for [`parse`].
    fn settle_values(self) -> Result<(Config, ConfigReport, JsonWriter)> {
        let Self { mut settings, mut report } = self;
        // Every value is checked. The value under the name that wins is set last.
        sort::sort_by(&mut settings, &mut |a, b| {
            let order = |given: &GivenSetting<'_>| {
                (given.setting, Reverse(given.is_variable), Reverse(given.name_rank))
            };
            order(a).cmp(&order(b)).then_with(|| a.spelled.cmp(&b.spelled))
        });
        let mut config = Config::default();
        let mut settings_json = JsonWriter::new_object();
        for (index, given) in settings.iter().enumerate() {
            let Some(setting) = SETTINGS.get(given.setting) else { continue };
            given.set(&mut config, setting)?;
            let winner = settings.iter().skip(index + 1).rfind(|one| one.setting == given.setting);
            match winner {
                Some(winner) => {
                    let note = format!("not used: `{}` goes before it", winner.spelled);
                    report.add_note(&given.spelled, &note);
                    report.overridden.push(given.spelled.clone());
                }
                None if Setting::is_of_host(given.setting) => report.host.push(setting.name),
                None => {
                    report.accepted.push(setting.name);
                    let value = json::slice_span(given.raw, given.value.value);
                    let is_own = given.name_rank == 0;
                    settings_json.add_json(if is_own { setting.name } else { &given.key }, value);
                }
            }
            if given.name_rank > 0 || (given.key != setting.name) {
                let key = given.spelled.clone();
                report.aliased.push(AliasedKey { key, name: setting.name });
            }
        }
        let names = SETTINGS.iter().enumerate().filter(|(index, _)| !Setting::is_of_host(*index));
        let names = names.map(|(_, setting)| setting.name);
        report.defaulted = names.filter(|name| !report.accepted.contains(name)).collect();
        note_effects(&mut config, &mut report, &settings);
        Ok((config, report, settings_json))
    }
}

impl GivenSetting<'_> {
    /// Sets the value in the configuration.
    fn set(&self, config: &mut Config, setting: &Setting) -> Result<()> {
        let is_alias = self.name_rank > 0;
        set_value(config, self.raw, &setting.value_type, is_alias, &self.value).map_err(|rule| {
            let found = json::describe_scalar(self.raw, self.value.value);
            Error::invalid_input(format_args!("`{}` must be {rule}{found}", self.spelled))
        })
    }
}

/// Joins the names of providers and models, and adds notes on accepted settings that have no effect
/// or an effect that a reader may not expect.
fn note_effects(config: &mut Config, report: &mut ConfigReport, settings: &[GivenSetting<'_>]) {
    // The last of several names of a setting is the one that counts.
    let find_spelled = |name: &str| {
        let is_named = |one: &&GivenSetting<'_>| {
            SETTINGS.get(one.setting).is_some_and(|setting| setting.name == name)
        };
        settings.iter().rfind(is_named).map(|one| one.spelled.as_str())
    };
    let models = [
        ("summary", &mut config.summary_model, &config.summary_provider),
        (
            "large_file_summary",
            &mut config.large_file_summary_model,
            &config.large_file_summary_provider,
        ),
        ("expansion", &mut config.expansion_model, &config.expansion_provider),
    ];
    for (name, model, provider) in models {
        let Some(provider) = provider else { continue };
        let note = match model {
            None => "names no model",
            Some(model) if model.contains('/') => "names its provider itself",
            Some(model) => {
                *model = join_model(provider, model);
                continue;
            }
        };
        let provider = format!("{name}_provider");
        let key = find_spelled(&provider).unwrap_or(&provider);
        report.add_note(key, &format!("no effect: `{name}_model` {note}"));
    }
    for name in RESERVED_SETTINGS {
        if let Some(key) = find_spelled(name) {
            report.add_note(key, "no effect in this version: no request describes a file");
            report.reserved.push(name);
        }
    }
    if !config.enabled {
        let note = "false: nothing is compacted, and contexts have no summaries";
        report.add_note(find_spelled("enabled").unwrap_or("enabled"), note);
    }
}

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
        SettingType::TimeOffsets => config.time_offsets = time_offsets::read_offsets(raw, value)?,
        SettingType::Models => {
            config.host.fallback_models = host_settings::read_models(raw, value)?
        }
        SettingType::TurnCompaction => {
            config.turn_compaction = Some(match string.as_deref() {
                Some("deferred") => TurnCompaction::Deferred,
                Some("inline") => TurnCompaction::Inline,
                _ => return Err("`deferred` or `inline`".into()),
            });
        }
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
