//! Configures the component from the environment and a file, and edits overrides in that file.
//!
//! In: variables `LCM_...` and the file of `--config`. Out: calls of `configure`, and warnings. A
//! variable takes precedence over the file. The name of a variable becomes a key in camel case; the
//! component knows which keys exist.

use std::{collections::BTreeMap, path::Path};

use lcm_host::{Code, Error, Lcm, Result};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::input::read_text;

const PREFIX: &str = "LCM_";
/// Variables with the prefix that are no keys of the configuration, the same in every host.
const OTHERS: [&str; 4] = ["LCM_STORE", "LCM_WASM", "LCM_CACHE_DIR", "LCM_BLESS"];

/// The members of the report of `configure` that this module uses.
#[derive(Debug, Default, Deserialize)]
struct Report {
    /// Keys that were set, under the engine's names.
    accepted: Vec<String>,
    /// Keys that were given under another name.
    aliased: Vec<Alias>,
    /// Keys that do not exist, as given.
    unknown: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Alias {
    /// Name as given.
    key: String,
    /// Name of the engine.
    #[serde(rename = "as")]
    name: String,
}

/// Configures `lcm` from the file and the environment, which takes precedence. Returns warnings
/// about unknown keys of the file, each one line.
pub(crate) fn apply(lcm: &Lcm, file: Option<&Path>) -> Result<Vec<String>> {
    let mut merged = file.map(read).transpose()?.unwrap_or_default();
    let environment =
        environment(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }));
    let mut warnings = Vec::new();
    let mut of_file = Report::default();
    // Each source is configured alone first, so that an error can name its source.
    if let Some(file) = file {
        of_file = configure(lcm, &merged, &format!("`{}`", file.display()))?;
        let unknown = of_file.unknown.iter();
        warnings.extend(unknown.map(|key| format!("`{}`: unknown key `{key}`", file.display())));
    }
    if !environment.is_empty() {
        let of_environment = configure(lcm, &environment, "environment")?;
        // A key of the file is dropped if a variable sets the same key, also under another name.
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
        let message = format!("`{}` must hold one JSON object: {error}", file.display());
        Error::new(Code::InvalidInput, message)
    })
}

/// Key of the configuration with the overridden prompts.
const OVERRIDES: &str = "prompt_overrides";

/// Returns the text of a configuration file in which `own` overrides the prompt `name`, and whether
/// the text changed. `own` is `None`: the override is removed. Everything else in the file stays as
/// written.
pub(crate) fn with_override(
    file: &str,
    name: &str,
    own: Option<&str>,
) -> serde_json::Result<(String, bool)> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(file)?;
    let old = members.get(OVERRIDES).map(|value| value.get());
    let mut texts: Map<String, Value> = old.map_or(Ok(Map::new()), serde_json::from_str)?;
    let before = texts.remove(name);
    if let Some(own) = own {
        texts.insert(name.to_owned(), own.into());
    }
    if before.as_ref().and_then(Value::as_str) == own {
        return Ok((file.to_owned(), false));
    }
    let lines: Vec<String> = texts
        .iter()
        .map(|(name, text)| format!("\n    {}: {text}", Value::String(name.clone())))
        .collect();
    let end = if lines.is_empty() { "" } else { "\n  " };
    let value = format!("{{{}{end}}}", lines.join(","));
    // The old value borrows its text from the file, so its address gives its position.
    let place = old.map(|old| {
        let start = old.as_ptr().addr() - file.as_ptr().addr();
        start..start + old.len()
    });
    let mut out = file.to_owned();
    match (place, file.find('{')) {
        (Some(place), _) => out.replace_range(place, &value),
        (None, Some(open)) => {
            let comma = if members.is_empty() { "\n" } else { "," };
            out.insert_str(open + 1, &format!("\n  \"{OVERRIDES}\": {value}{comma}"));
        }
        (None, None) => {}
    }
    Ok((out, true))
}

/// Returns the variables that configure the engine, by their keys in camel case. A value that is
/// JSON is parsed; any other value is a text.
fn environment(variables: impl Iterator<Item = (String, String)>) -> Map<String, Value> {
    let ours = variables.filter_map(|(name, value)| {
        let key = name.strip_prefix(PREFIX)?;
        let other = OTHERS.contains(&name.as_str());
        let key = (!other && !key.is_empty()).then(|| camel_case(key))?;
        let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
        Some((key, value))
    });
    ours.collect()
}

/// Converts `FRESH_TAIL_COUNT` to `freshTailCount`.
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

    /// Goal: a key that the engine has can be said by the variable of its name. Method: the keys
    /// that it reports, each with values until one is of its type.
    #[test]
    fn every_key_of_the_engine_has_its_variable() {
        let lcm = Lcm::open("memory:", crate::session::COMPONENT).unwrap();
        let report: Value = serde_json::from_str(&lcm.configure("{}").unwrap()).unwrap();
        let names = report["defaulted"].as_array().unwrap();
        assert!(names.len() > 30, "{report}");
        for name in names.iter().filter_map(Value::as_str) {
            let variable = format!("{PREFIX}{}", name.to_ascii_uppercase());
            let is_taken = |value: &&str| {
                let map = of(&[(variable.as_str(), value)]);
                configure(&lcm, &map, "environment").is_ok_and(|report| report.accepted == [name])
            };
            let values = ["2", "500", "100000", "true", "layered", "[]", "{}"];
            assert!(values.iter().any(is_taken), "{variable}");
        }
    }

    #[test]
    fn an_override_leaves_the_rest_of_the_file_alone() {
        let check = |file: &str, own, expected: &str| {
            let (written, changed) = with_override(file, "leaf", own).unwrap();
            assert_eq!((written.as_str(), changed), (expected, file != expected), "{file}");
        };
        let one = "{\n  \"prompt_overrides\": {\n    \"leaf\": \"a\\nb\"\n  }\n}\n";
        check("{}\n", Some("a\nb"), one);
        check(one, Some("a\nb"), one);
        check(one, None, "{\n  \"prompt_overrides\": {}\n}\n");
        check("{\"a\":1e3,\n\"a\": 2}", None, "{\"a\":1e3,\n\"a\": 2}");
        check(
            "{ \"a\": 1.50 , \"prompt_overrides\":{ \"phase\" : \"p\", \"leaf\":\"x\" }}",
            Some("y"),
            "{ \"a\": 1.50 , \"prompt_overrides\":{\n    \"leaf\": \"y\",\n    \"phase\": \"p\"\n  }}",
        );
        check(
            "{\"a\": {}}",
            Some("y"),
            "{\n  \"prompt_overrides\": {\n    \"leaf\": \"y\"\n  },\"a\": {}}",
        );
        assert!(with_override("[]", "leaf", None).is_err());
        assert!(with_override("{\"prompt_overrides\": 5}", "leaf", Some("x")).is_err());
    }

    #[test]
    fn variables_of_others_are_left_alone() {
        assert!(of(&[("LCM_STORE", "a.db"), ("LCM_BLESS", "1"), ("HOME", "x")]).is_empty());
        assert!(of(&[("LCM_WASM", "a.wasm"), ("LCM_CACHE_DIR", "a"), ("LCM_", "x")]).is_empty());
        // A name that begins as one of these is another.
        assert_eq!(of(&[("LCM_STORES", "7")])["stores"], 7);
    }
}
