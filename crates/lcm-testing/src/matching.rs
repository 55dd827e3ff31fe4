//! Compares a result with the expectation of a vector.
//!
//! In: the expected value and the result. Out: the first difference, with its path.

use crate::json::Json;

/// Compares a result with an expectation by the rules of `tests/vectors/README.md`.
///
/// # Errors
///
/// One line with the path of the first difference, the expected value and the actual value.
pub fn check(expected: &Json, actual: Option<&Json>, path: &str) -> Result<(), String> {
    if let Some(wanted) = expected.field("$absent") {
        let absent = actual.is_none_or(|value| *value == Json::Null);
        return verdict(Json::Bool(absent) == *wanted, expected, actual, path);
    }
    let Some(actual) = actual else {
        return verdict(false, expected, None, path);
    };
    if let Some(outcome) = operator(expected, actual) {
        return verdict(outcome?, expected, Some(actual), path);
    }
    // If a string is compared with another type of value, the string is parsed as JSON first.
    if let Json::String(text) = actual
        && !matches!(expected, Json::String(_) | Json::Null)
    {
        let parsed = Json::parse(text)
            .map_err(|error| format!("{path}: expected JSON, came {}: {error}", shorten(text)))?;
        return check_value(expected, &parsed, path);
    }
    check_value(expected, actual, path)
}

fn check_value(expected: &Json, actual: &Json, path: &str) -> Result<(), String> {
    if let Some(outcome) = operator(expected, actual) {
        return verdict(outcome?, expected, Some(actual), path);
    }
    match (expected, actual) {
        (Json::Object(entries), Json::Object(_)) => entries
            .iter()
            .try_for_each(|(key, value)| check(value, actual.field(key), &format!("{path}.{key}"))),
        (Json::Array(expected_elements), Json::Array(elements)) => {
            verdict(expected_elements.len() == elements.len(), expected, Some(actual), path)?;
            expected_elements.iter().zip(elements).enumerate().try_for_each(
                |(index, (expected, actual))| {
                    check(expected, Some(actual), &format!("{path}.{index}"))
                },
            )
        }
        _ => verdict(expected == actual, expected, Some(actual), path),
    }
}

fn operator(expected: &Json, actual: &Json) -> Option<Result<bool, String>> {
    let Json::Object(entries) = expected else { return None };
    let [(name, wanted)] = entries.as_slice() else { return None };
    let text = |test: fn(&str, &str) -> bool| {
        Ok(matches!((actual, wanted), (Json::String(a), Json::String(w)) if test(a, w)))
    };
    Some(match name.as_str() {
        "$length" => {
            let parsed = match actual {
                Json::String(text) => Json::parse(text).unwrap_or(Json::Null),
                other => other.clone(),
            };
            let Json::Array(elements) = parsed else { return Some(Ok(false)) };
            Ok(wanted.as_u64() == Some(elements.len() as u64))
        }
        "$ends" => text(|actual, wanted| actual.ends_with(wanted)),
        "$starts" => text(|actual, wanted| actual.starts_with(wanted)),
        "$contains" => text(|actual, wanted| actual.contains(wanted)),
        "$max" => Ok(matches!((actual, wanted), (Json::Number(a), Json::Number(w)) if a <= w)),
        other if other.starts_with('$') => Err(format!("no operator `{other}`")),
        _ => return None,
    })
}

fn verdict(holds: bool, expected: &Json, actual: Option<&Json>, path: &str) -> Result<(), String> {
    if holds {
        return Ok(());
    }
    let came = actual.map_or_else(|| "nothing".to_owned(), |value| shorten(&value.compact()));
    Err(format!("{path}: expected {}, came {came}", shorten(&expected.compact())))
}

/// Returns a text, cut to its first 300 characters and a note of its length if it is longer.
#[must_use]
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{} ... ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(expected: &str, actual: &str) -> bool {
        let (expected, actual) = (Json::parse(expected).unwrap(), Json::parse(actual).unwrap());
        check(&expected, Some(&actual), "result").is_ok()
    }

    #[test]
    fn an_expected_object_names_only_what_matters() {
        assert!(matches(r#"{"a":1}"#, r#"{"b":2,"a":1}"#));
        assert!(!matches(r#"{"a":1}"#, r#"{"b":2}"#));
        assert!(!matches(r#"{"a":{"b":1}}"#, r#"{"a":{"b":2}}"#));
    }

    #[test]
    fn arrays_match_element_by_element_and_in_length() {
        assert!(matches(r#"[{"a":1},2]"#, r#"[{"a":1,"b":0},2]"#));
        assert!(!matches("[1]", "[1,2]"));
        assert!(matches(r#"{"$length":2}"#, "[1,2]"));
    }

    #[test]
    fn a_string_is_parsed_when_something_else_is_expected() {
        assert!(matches(r#"{"a":{"b":[1]}}"#, r#"{"a":"{\"b\":[1]}"}"#));
        assert!(matches("\"[1]\"", "\"[1]\""));
        assert!(!matches("[1]", "\"no JSON\""));
    }

    #[test]
    fn operators_test_what_they_name() {
        assert!(matches(r#"{"t":{"$ends":"c"}}"#, r#"{"t":"abc"}"#));
        assert!(matches(r#"{"t":{"$contains":"b"}}"#, r#"{"t":"abc"}"#));
        assert!(!matches(r#"{"t":{"$starts":"b"}}"#, r#"{"t":"abc"}"#));
        assert!(matches(r#"{"n":{"$max":5}}"#, r#"{"n":5}"#));
        assert!(!matches(r#"{"n":{"$max":5}}"#, r#"{"n":6}"#));
        assert!(matches(r#"{"x":{"$absent":true}}"#, r#"{"x":null}"#));
        assert!(!matches(r#"{"x":{"$absent":true}}"#, r#"{"x":0}"#));
        assert!(!matches(r#"{"x":{"$most":1}}"#, r#"{"x":0}"#));
    }
}
