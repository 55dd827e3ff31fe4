//! Shorthands of `args`: lists of messages, generated messages and repeated text.

use crate::{facade::Misuse, json::Json};

/// Replaces every object `{"$repeat": {"text", "count"}}` inside a value by `text`, repeated
/// `count` times.
///
/// # Errors
///
/// `text` or `count` is missing or of the wrong type.
pub fn expand_repeats(value: &Json) -> Result<Json, Misuse> {
    if let Some(repeat) = value.field("$repeat") {
        let text = repeat.field("text").and_then(Json::as_str);
        let count = repeat.field("count").and_then(Json::as_u64);
        let (Some(text), Some(count)) = (text, count) else {
            return Err("`$repeat` wants `text` and `count`".to_owned());
        };
        let count = usize::try_from(count).map_err(|error| error.to_string())?;
        return Ok(Json::String(text.repeat(count)));
    }
    Ok(match value {
        Json::Array(elements) => {
            Json::Array(elements.iter().map(expand_repeats).collect::<Result<_, _>>()?)
        }
        Json::Object(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, value)| Ok((key.clone(), expand_repeats(value)?)))
                .collect::<Result<_, Misuse>>()?,
        ),
        other => other.clone(),
    })
}

/// Returns the texts of a list of messages: strings unchanged, other objects as compact JSON, and
/// for an object with `$generate` the generated messages.
///
/// # Errors
///
/// `list` is no array, an element is neither a string nor an object, or a generator lacks a field.
pub fn message_texts(list: &Json) -> Result<Vec<String>, Misuse> {
    let Json::Array(elements) = list else {
        return Err("a list of messages is an array".to_owned());
    };
    let mut texts = Vec::new();
    for element in elements {
        match element {
            Json::String(text) => texts.push(text.clone()),
            Json::Object(_) if element.field("$generate").is_some() => {
                texts.extend(generate(element.field("$generate").unwrap())?);
            }
            Json::Object(_) => texts.push(element.compact()),
            _ => return Err("a message is a string or an object".to_owned()),
        }
    }
    Ok(texts)
}

fn generate(generator: &Json) -> Result<Vec<String>, Misuse> {
    let number = |key: &str| {
        generator.field(key).and_then(Json::as_u64).ok_or(format!("`$generate` wants `{key}`"))
    };
    let (count, tokens, first) = (number("count")?, number("tokens")?, number("first")?);
    let roles = generator.field("roles").map(Json::elements).unwrap_or_default();
    if roles.is_empty() {
        return Err("`$generate` wants `roles`".to_owned());
    }
    (first..first + count)
        .map(|number| {
            let role = &roles[(number - first) as usize % roles.len()];
            let text = padded(&format!("message {number} "), 'x', tokens);
            Ok(Json::object([("role", role.clone()), ("content", Json::String(text))]).compact())
        })
        .collect()
}

/// Returns `start`, cut or padded with `letter` to exactly 4 x `tokens` characters; from 5 tokens
/// on to 4 fewer, because the number in `start` and its spaces cost up to one token more than
/// letters. So a message of the shorthand is estimated at `tokens`.
#[must_use]
pub fn padded(start: &str, letter: char, tokens: u64) -> String {
    let length = 4 * (tokens - u64::from(tokens >= 5)) as usize;
    let mut text: String = start.chars().take(length).collect();
    text.extend(std::iter::repeat_n(letter, length - text.chars().count()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_numbers_its_messages_and_turns_the_roles() {
        let list = Json::parse(
            r#"[{"$generate":{"count":3,"tokens":4,"roles":["user","assistant"],"first":9}}]"#,
        )
        .unwrap();
        assert_eq!(
            message_texts(&list).unwrap(),
            [
                r#"{"role":"user","content":"message 9 xxxxxx"}"#,
                r#"{"role":"assistant","content":"message 10 xxxxx"}"#,
                r#"{"role":"user","content":"message 11 xxxxx"}"#,
            ]
        );
    }

    #[test]
    fn a_generated_message_is_estimated_at_its_tokens() {
        for tokens in [1, 5, 10, 100, 4000] {
            for number in [1, 10, 100, 1000] {
                for (word, letter) in [("message", 'x'), ("summary", 's')] {
                    let text = padded(&format!("{word} {number} "), letter, tokens);
                    let estimate = u64::from(lcm_text::base::tokens::estimate(&text));
                    assert!(estimate == tokens || (tokens == 5 && number > 1), "{text}");
                }
            }
        }
    }

    #[test]
    fn an_object_keeps_the_order_of_its_keys() {
        let list = Json::parse(r#"[{"z": 1, "a": {"c": [], "b": "\u00e9"}}]"#).unwrap();
        assert_eq!(message_texts(&list).unwrap(), ["{\"z\":1,\"a\":{\"c\":[],\"b\":\"\u{e9}\"}}"]);
    }

    #[test]
    fn a_repeat_is_a_string_wherever_it_stands() {
        let value = Json::parse(r#"{"a":[{"$repeat":{"text":"ab","count":3}}]}"#).unwrap();
        assert_eq!(expand_repeats(&value).unwrap().compact(), r#"{"a":["ababab"]}"#);
    }
}
