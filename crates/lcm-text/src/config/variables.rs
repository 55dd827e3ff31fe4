//! Converts the text of an environment variable into the JSON of its setting.
//!
//! Input: variables, a setting and a text. Output: the key of a variable, and JSON, which is
//! checked like a value of the configuration. A text that does not fit becomes a JSON string, so
//! that the check refuses it by its own words.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    decimal::scale_decimal,
    setting::{Setting, SettingType},
};
use crate::base::{
    error::{Error, Result},
    json::{self, JsonKind, JsonWriter},
    sort::SortedMap,
};

/// Prefix of the variables that configure the engine and its hosts.
const PREFIX: &str = "LCM_";

/// Variables with the prefix that are read elsewhere, by hosts and tests.
const OTHERS: [&str; 4] = ["LCM_STORE", "LCM_WASM", "LCM_CACHE_DIR", "LCM_BLESS"];

/// Returns the key that a variable names, in lower case with underscores; `None`: the variable
/// configures nothing.
pub(super) fn find_key(variable: &str) -> Option<String> {
    let key = variable.strip_prefix(PREFIX)?;
    let is_other = OTHERS.contains(&variable) || key.trim_matches('_').is_empty();
    (!is_other).then(|| key.to_ascii_lowercase())
}

/// Converts a variable; `None`: the text is blank where a number or a choice is needed, so that the
/// variable counts as absent.
///
/// | setting | text |
/// |---|---|
/// | number | `20000`, `20_000`, of tokens also `20k`, `1.5M`, of a time also `90s`, `2min` |
/// | share | `0.75` or `75%` |
/// | flag | `true`, `yes`, `on`, `1`, or `false`, `no`, `off`, `0` |
/// | list of texts or models | commas between the elements, or a JSON array |
/// | text | itself |
/// | any other | JSON |
pub(super) fn write_value(setting: &Setting, is_alias: bool, text: &str) -> Option<String> {
    let trimmed = text.trim();
    let written = match setting.value_type {
        SettingType::Text(_) => return Some(quote_text(text)),
        SettingType::Name(_) => return Some(quote_text(trimmed)),
        SettingType::Texts(_) | SettingType::Tags | SettingType::Models => {
            return Some(write_list(trimmed));
        }
        SettingType::Number(..) | SettingType::NumberOrNull(..) | SettingType::Depth(_) => {
            write_number(setting.name, trimmed)
        }
        SettingType::Threshold if is_alias => write_share(trimmed),
        SettingType::Threshold => write_number(setting.name, trimmed),
        SettingType::Flag(_) => write_flag(trimmed),
        SettingType::Eviction if is_alias => write_flag(trimmed),
        SettingType::Eviction | SettingType::TurnCompaction => {
            Some(quote_text(&trimmed.to_ascii_lowercase()))
        }
        SettingType::Overrides | SettingType::Prompts | SettingType::TimeOffsets => {
            is_json(trimmed).then(|| trimmed.to_string())
        }
    };
    (!trimmed.is_empty()).then(|| written.unwrap_or_else(|| quote_text(text)))
}

fn quote_text(text: &str) -> String {
    let mut list = JsonWriter::new_array();
    list.push_text(text);
    let list = list.end_array();
    // Without the brackets of the array.
    list.get(1..list.len().saturating_sub(1)).unwrap_or_default().to_string()
}

/// Returns whether a text is one JSON value.
fn is_json(text: &str) -> bool {
    json::parse_object(&format!("{{\"value\":{text}}}")).is_ok_and(|members| members.len() == 1)
}

fn is_json_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '-') && is_json(text)
}

fn write_list(text: &str) -> String {
    if text.starts_with('[') && is_json(text) {
        return text.to_string();
    }
    let mut list = JsonWriter::new_array();
    let elements = text.split(',').map(str::trim).filter(|element| !element.is_empty());
    elements.for_each(|element| list.push_text(element));
    list.end_array()
}

fn write_flag(text: &str) -> Option<String> {
    let flag = match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => "true",
        "false" | "no" | "off" | "0" => "false",
        _ => return None,
    };
    Some(flag.into())
}

/// Splits a text into a number without `_` and a unit in lower case; `None`: the text does not
/// begin with a number.
fn split_unit(text: &str) -> Option<(String, String)> {
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+');
    let end = text.find(|c| !is_of_number(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let number: String = number.trim_start_matches('+').chars().filter(|c| *c != '_').collect();
    let number = if number.starts_with('.') { format!("0{number}") } else { number };
    is_json_number(&number).then(|| (number, unit.trim().to_ascii_lowercase()))
}

/// Converts a number with an optional unit to JSON. A number with a unit becomes a whole number in
/// the unit of the setting. `None`: the text is no number, the unit does not fit the setting, or
/// the result is not whole.
fn write_number(name: &str, text: &str) -> Option<String> {
    if text == "null" || is_json_number(text) {
        return Some(text.to_string());
    }
    let (number, unit) = split_unit(text)?;
    if unit.is_empty() {
        return Some(number);
    }
    let factor: u64 = match unit.as_str() {
        "ms" | "msec" if name.ends_with("_ms") => 1,
        "s" | "sec" | "second" | "seconds" if name.ends_with("_ms") => 1_000,
        "m" | "min" | "minute" | "minutes" if name.ends_with("_ms") => 60_000,
        "h" | "hour" | "hours" if name.ends_with("_ms") => 3_600_000,
        "token" | "tokens" if name.contains("tokens") => 1,
        "k" if name.contains("tokens") => 1_000,
        "m" if name.contains("tokens") => 1_000_000,
        _ => return None,
    };
    let thousandths = scale_decimal(&number, 3).filter(|scaled| scaled.exact)?.floor;
    let product = thousandths.checked_mul(factor)?;
    (product % 1000 == 0).then(|| (product / 1000).to_string())
}

/// Converts a share or a percentage to JSON as a decimal; `None`: the text is neither.
fn write_share(text: &str) -> Option<String> {
    if is_json_number(text) {
        return Some(text.to_string());
    }
    let (number, unit) = split_unit(text)?;
    match unit.as_str() {
        "" => Some(number),
        "%" => {
            let permille = scale_decimal(&number, 1).filter(|scaled| scaled.exact)?.floor;
            let share = format!("{}.{:03}", permille / 1000, permille % 1000);
            Some(share.trim_end_matches('0').trim_end_matches('.').to_string())
        }
        _ => None,
    }
}

/// Returns the variables that configure something from a JSON object of texts: name, key and
/// text, in the order of names. Of a repeated name the last counts.
///
/// # Errors
///
/// `invalid-input`: not one JSON object, or a value of these variables that is no text.
pub(super) fn list_variables(raw: &str) -> Result<Vec<(String, String, String)>> {
    let mut found = Vec::new();
    for member in json::parse_object(raw)? {
        let name = json::text(raw, member.key).into_owned();
        let Some(key) = find_key(&name) else { continue };
        if member.kind != JsonKind::String {
            let value = json::describe_scalar(raw, member.value);
            return Err(Error::invalid_input(format_args!("`{name}` must be a string{value}")));
        }
        found.push((name, (key, json::text(raw, member.value).into_owned())));
    }
    let sorted = SortedMap::from_entries(found).into_entries();
    Ok(sorted.into_iter().map(|(name, (key, text))| (name, key, text)).collect())
}
