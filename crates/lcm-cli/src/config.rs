//! Resolves the configuration from the environment and a file, and edits overrides in that file.
//!
//! In: variables `LCM_...` and the file of `--config`, whose keys go before variables. Out: the
//! settings, and warnings. The component reads the texts of variables and knows which keys exist.

use std::{collections::BTreeMap, path::Path};

use lcm_host::{Code, Component, Error, Result, Settings};
use serde_json::{Map, Value, value::RawValue};

use crate::input::read_text;

/// Resolves the file and the environment.
pub(crate) fn resolve_settings(component: &Component, file: Option<&Path>) -> Result<Settings> {
    let given = file.map(read).transpose()?.unwrap_or_default();
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let given = Value::Object(given).to_string();
    Settings::resolve(component, &given, variables).map_err(|error| match file {
        Some(file) if !error.message.starts_with("`LCM_") => {
            Error::new(error.code, format!("`{}`: {}", file.display(), error.message))
        }
        _ => error,
    })
}

/// Prints warnings, and a note with the number of keys that were given under other names.
pub(crate) fn print_notes(settings: &Settings, warnings: &[String]) {
    for warning in warnings {
        eprintln!("lcm: warning: {warning}");
    }
    let count = settings.report.aliased.len();
    if count > 0 {
        eprintln!("lcm: note: {count} of the keys have other names here, see `lcm config`");
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
