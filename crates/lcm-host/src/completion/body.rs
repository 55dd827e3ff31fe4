//! Reads bodies of HTTP answers as JSON, also in forms that a strict reader refuses.
//!
//! In: the bytes of a body. Out: its JSON. The forms, from public reports about gateways and
//! compatible servers: an escape of half a surrogate pair, bytes that are no UTF-8,
//! lines `: keep-alive` before the JSON, and server-sent events for a request without `stream`.

use serde_json::{Map, Value, json};

/// Returns the JSON of a body. Server-sent events become one answer; `None`: the body is neither
/// JSON nor events.
pub(super) fn read_json(body: &[u8]) -> Option<Value> {
    if let Ok(json) = serde_json::from_slice(body) {
        return Some(json);
    }
    let text = mend_surrogates(&String::from_utf8_lossy(body));
    // A line that begins with a colon is a comment of server-sent events.
    let lines = || text.lines().filter(|line| !line.starts_with([':', '\u{feff}']));
    let bare: Vec<&str> = lines().collect();
    let whole = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok();
    if let Some(json) = whole.or_else(|| serde_json::from_str(&bare.join("\n")).ok()) {
        return Some(json);
    }
    let data: Vec<&str> = lines().filter_map(|line| line.strip_prefix("data:")).collect();
    let events: Vec<Value> =
        data.iter().filter_map(|event| serde_json::from_str(event).ok()).collect();
    merge_events(&events, data.iter().any(|event| event.trim() == "[DONE]"))
}

/// Returns whether a body holds an error.
pub(super) fn has_error(body: &Value) -> bool {
    match body.get("error") {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(_) => true,
    }
}

/// Returns a token count of a provider; 0: the value is no count.
pub(super) fn read_count(count: Option<&Value>) -> u64 {
    let parsed = |text: &str| text.trim().parse().ok();
    let number = match count {
        Some(Value::String(text)) => parsed(text),
        Some(number) => number.as_f64(),
        None => None,
    };
    // No count is a whole number of seconds that `Duration` cannot hold.
    let whole = number.and_then(|count| std::time::Duration::try_from_secs_f64(count).ok());
    whole.map_or(0, |whole| whole.as_secs())
}

/// Merges the events of a streamed answer into a body that has the members of both interfaces.
/// `is_done`: the stream has its end mark. `None`: no event belongs to an answer.
fn merge_events(events: &[Value], is_done: bool) -> Option<Value> {
    let is_whole = |event: &&Value| {
        has_error(event)
            || event.pointer("/choices/0/message").is_some()
            || event["content"].is_array()
    };
    if let Some(whole) = events.iter().find(is_whole) {
        return Some(whole.clone());
    }
    let (mut text, mut refusal) = (String::new(), String::new());
    let (mut finish, mut model, mut usage) = (Value::Null, Value::Null, Map::new());
    let mut is_answer = false;
    for event in events {
        let choice = event.pointer("/choices/0");
        let delta = choice.unwrap_or(event).get("delta").unwrap_or(&Value::Null);
        is_answer |= choice.is_some() || delta.is_object();
        text.extend([&delta["content"], &delta["text"]].into_iter().filter_map(Value::as_str));
        refusal.extend(delta["refusal"].as_str());
        let ends =
            [choice.and_then(|choice| choice.get("finish_reason")), delta.get("stop_reason")];
        finish = ends.into_iter().flatten().rfind(|end| end.is_string()).cloned().unwrap_or(finish);
        let message = event.get("message").unwrap_or(event);
        model = message.get("model").cloned().unwrap_or(model);
        let counts = [message.get("usage"), event.get("usage")].into_iter().flatten();
        for count in counts.filter_map(Value::as_object).flatten() {
            usage.insert(count.0.clone(), count.1.clone());
        }
    }
    if finish.is_null() && !is_done {
        finish = json!("network_error");
    }
    let message = json!({"content": text, "refusal": refusal});
    let choices = json!([{"message": message, "finish_reason": finish}]);
    is_answer.then(|| {
        json!({"choices": choices, "content": text, "stop_reason": finish, "model": model,
            "usage": usage})
    })
}

/// Replaces each escape of half a surrogate pair by one of U+FFFD.
fn mend_surrogates(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        mended.push_str(before);
        let next = escape.get(6..).and_then(read_surrogate);
        let second = escape.chars().nth(1).map_or(0, char::len_utf8);
        let (kept, length) = match read_surrogate(escape) {
            Some(..=0xDBFF) if next >= Some(0xDC00) => (escape.get(..12), 12),
            Some(_) => (Some("\\ufffd"), 6),
            // The character after the backslash may be a backslash.
            None => (escape.get(..1 + second), 1 + second),
        };
        mended.push_str(kept.unwrap_or_default());
        rest = escape.get(length..).unwrap_or_default();
    }
    mended + rest
}

/// Returns the surrogate whose escape a text starts with; `None`: no such escape.
fn read_surrogate(text: &str) -> Option<u16> {
    let unit = u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    (0xD800..0xE000).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_a_whole_pair_is_kept() {
        for (text, expected) in [
            (r#""a\ud83d b""#, "a\u{fffd} b"),
            (r#""\ude00\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\ud83d\ud83d\ude00\ud83d\n""#, "\u{fffd}\u{1f600}\u{fffd}\n"),
            (r#""\\ud83d""#, "\\ud83d"),
        ] {
            let whole = format!("{{\"x\": \"\\ud800\", \"y\": {text}}}");
            assert_eq!(read_json(whole.as_bytes()).unwrap()["y"], *expected, "{text}");
        }
        assert_eq!(read_json(b"\"\\ud83d"), None);
        assert_eq!(read_json(b"\\"), None);
    }

    #[test]
    fn counts_of_every_form_are_read() {
        for (count, expected) in [
            (json!(7), 7),
            (json!(7.9), 7),
            (json!("7"), 7),
            (json!(" 7.0 "), 7),
            (json!(-7), 0),
            (json!("many"), 0),
            (json!(null), 0),
            (json!([7]), 0),
            (json!(1e300), 0),
        ] {
            assert_eq!(read_count(Some(&count)), expected, "{count}");
        }
        assert_eq!(read_count(None), 0);
    }
}
