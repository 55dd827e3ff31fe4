//! Whether a result is what a vector expects, by the rules of `tests/vectors/README.md`.

use serde_json::Value;

/// Compares; the error names the path, what was expected and what came.
pub(super) fn check(expected: &Value, actual: Option<&Value>, path: &str) -> Result<(), String> {
    let differs = || {
        let came = actual
            .map_or("nothing".to_owned(), |value| value.to_string().chars().take(400).collect());
        Err(format!("{path}: expected {expected}, came {came}"))
    };
    if expected.get("$absent") == Some(&Value::Bool(true)) {
        return if actual.is_none_or(Value::is_null) { Ok(()) } else { differs() };
    }
    let Some(actual) = actual else { return differs() };
    if let Some(holds) = operator(expected, actual) {
        return if holds { Ok(()) } else { differs() };
    }
    match (expected, actual) {
        (Value::String(_) | Value::Null, _) => {}
        (_, Value::String(text)) => {
            // A result that is JSON in a text is compared as the value it stands for.
            let parsed: Value = serde_json::from_str(text)
                .map_err(|error| format!("{path}: expected JSON, came {text:?}: {error}"))?;
            return check(expected, Some(&parsed), path);
        }
        (Value::Object(fields), Value::Object(_)) => {
            return fields.iter().try_for_each(|(key, value)| {
                check(value, actual.get(key), &format!("{path}.{key}"))
            });
        }
        (Value::Array(wanted), Value::Array(items)) if wanted.len() == items.len() => {
            return wanted.iter().zip(items).enumerate().try_for_each(|(index, (wanted, item))| {
                check(wanted, Some(item), &format!("{path}[{index}]"))
            });
        }
        _ => {}
    }
    if expected == actual { Ok(()) } else { differs() }
}

/// Whether one of the operators holds; `None`: the expected value is no operator.
fn operator(expected: &Value, actual: &Value) -> Option<bool> {
    let fields = expected.as_object().filter(|fields| fields.len() == 1)?;
    let (name, wanted) = fields.iter().next()?;
    let text = |test: fn(&str, &str) -> bool| {
        actual.as_str().zip(wanted.as_str()).is_some_and(|(text, part)| test(text, part))
    };
    let parsed = || actual.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    Some(match name.as_str() {
        "$length" => {
            let array = parsed().unwrap_or_else(|| actual.clone());
            array.as_array().map(Vec::len).and_then(|len| u64::try_from(len).ok())
                == wanted.as_u64()
        }
        "$starts" => text(|text, part| text.starts_with(part)),
        "$ends" => text(|text, part| text.ends_with(part)),
        "$contains" => text(|text, part| text.contains(part)),
        "$max" => actual.as_u64().zip(wanted.as_u64()).is_some_and(|(n, max)| n <= max),
        _ => return None,
    })
}

#[test]
fn a_difference_is_found_and_named() {
    use serde_json::json;
    let ok = |expected: Value, actual: Value| check(&expected, Some(&actual), "r").is_ok();
    assert!(ok(json!({"a": [1, {"$max": 3}]}), json!({"a": [1, 2], "b": 0})));
    assert!(!ok(json!({"a": [1]}), json!({"a": [1, 2]})));
    assert!(ok(json!({"a": 1}), json!("{\"a\": 1}")));
    assert!(!ok(json!({"$length": 2}), json!([1])));
    assert!(!ok(json!({"a": {"$absent": true}}), json!({"a": 1})));
    let why = check(&json!({"a": 1}), Some(&json!({"a": 2})), "r").unwrap_err();
    assert_eq!(why, "r.a: expected 1, came 2");
}
