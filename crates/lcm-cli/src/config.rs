//! Configuration: what the environment and the file say, as one JSON object.
//!
//! In: variables `LCM_...` and the file of `--config`. Out: text for `configure`. Names are turned
//! into the form of the reference, never looked up: which keys there are is the component's
//! business.

use std::path::Path;

use lcm_host::{Code, Error, Lcm, Result};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::input::read_text;

const PREFIX: &str = "LCM_";
/// Variables of programs around the engine.
const OTHERS: [&str; 2] = ["LCM_STORE", "LCM_BLESS"];

/// What `configure` reports.
#[derive(Debug, Default, Deserialize)]
struct Report {
    #[serde(default)]
    unknown: Vec<Value>,
}

/// Configures `lcm` from the environment, then the file; returns warnings, each one line.
pub(crate) fn apply(lcm: &Lcm, file: Option<&Path>) -> Result<Vec<String>> {
    let file_map = file.map(read).transpose()?.unwrap_or_default();
    let environment = environment(std::env::vars_os().filter_map(|(name, value)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    }));
    if file_map.is_empty() && environment.is_empty() {
        return Ok(Vec::new());
    }
    let mut warnings = Vec::new();
    // Each source is reported on its own first, so that a message can name it.
    if let Some(file) = file {
        let report = configure(lcm, &file_map).map_err(|error| {
            Error::new(error.code, format!("`{}`: {}", file.display(), error.message))
        })?;
        for key in report.unknown {
            let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            warnings.push(format!("`{}`: unknown key `{key}`", file.display()));
        }
    }
    if !environment.is_empty() {
        let mut merged = file_map;
        merged.extend(environment);
        configure(lcm, &merged)?;
    }
    Ok(warnings)
}

fn configure(lcm: &Lcm, map: &Map<String, Value>) -> Result<Report> {
    let report = lcm.configure(&Value::Object(map.clone()).to_string())?;
    Ok(serde_json::from_str(&report).unwrap_or_default())
}

fn read(file: &Path) -> Result<Map<String, Value>> {
    let text = read_text(file)?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("`{}` is no JSON object: {error}", file.display());
        Error::new(Code::InvalidInput, message)
    })
}

/// The variables that configure the engine, under the names of the reference.
fn environment(variables: impl Iterator<Item = (String, String)>) -> Map<String, Value> {
    let ours = variables.filter_map(|(name, value)| {
        let key = name.strip_prefix(PREFIX)?;
        let other = OTHERS.iter().any(|other| name.starts_with(other));
        let key = (!other && !key.is_empty()).then(|| camel_case(key))?;
        let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
        Some((key, value))
    });
    ours.collect()
}

/// `FRESH_TAIL_COUNT` as `freshTailCount`.
fn camel_case(upper_snake: &str) -> String {
    let mut words = upper_snake.split('_').filter(|word| !word.is_empty());
    let mut name = words.next().unwrap_or_default().to_ascii_lowercase();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(&letters.as_str().to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Map<String, Value> {
        environment(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    #[test]
    fn variables_become_keys_of_the_reference() {
        let map = of(&[
            ("LCM_FRESH_TAIL_COUNT", "12"),
            ("LCM_CUSTOM_INSTRUCTIONS", "be brief"),
            ("LCM_ENABLED", "false"),
        ]);
        assert_eq!(map["freshTailCount"], 12);
        assert_eq!(map["customInstructions"], "be brief");
        assert_eq!(map["enabled"], false);
        assert_eq!(map.len(), 3);
    }

    #[test]
    fn variables_of_others_are_left_alone() {
        assert!(of(&[("LCM_STORE", "a.db"), ("LCM_BLESS", "1"), ("HOME", "x")]).is_empty());
    }
}
