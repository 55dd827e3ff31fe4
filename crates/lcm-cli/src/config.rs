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
    /// The engine's names of what was given.
    accepted: Vec<String>,
    /// Other names under which it was given.
    aliased: Vec<Alias>,
    unknown: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Alias {
    key: String,
    #[serde(rename = "as")]
    name: String,
}

/// Configures `lcm` from the environment, then the file; returns warnings, each one line.
pub(crate) fn apply(lcm: &Lcm, file: Option<&Path>) -> Result<Vec<String>> {
    let mut merged = file.map(read).transpose()?.unwrap_or_default();
    let environment =
        environment(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }));
    let mut warnings = Vec::new();
    let mut of_file = Report::default();
    // Each source is given on its own first, so that a message can name it.
    if let Some(file) = file {
        of_file = configure(lcm, &merged, &format!("`{}`", file.display()))?;
        let unknown = of_file.unknown.iter();
        warnings.extend(unknown.map(|key| format!("`{}`: unknown key `{key}`", file.display())));
    }
    if !environment.is_empty() {
        let of_environment = configure(lcm, &environment, "environment")?;
        // The engine knows which keys of the file are other names of what the environment says.
        merged.retain(|key, _| {
            let alias = of_file.aliased.iter().find(|alias| alias.key == *key);
            let name = alias.map_or(key, |alias| &alias.name);
            !of_environment.accepted.contains(name)
        });
        merged.extend(environment);
        configure(lcm, &merged, "configuration")?;
    }
    Ok(warnings)
}

fn configure(lcm: &Lcm, map: &Map<String, Value>, source: &str) -> Result<Report> {
    let report = lcm
        .configure(&Value::Object(map.clone()).to_string())
        .map_err(|error| Error::new(error.code, format!("{source}: {}", error.message)))?;
    serde_json::from_str(&report).map_err(|error| {
        let message = format!("`setup.configure` answered unexpected JSON: {error}");
        Error::new(Code::Internal, message)
    })
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
