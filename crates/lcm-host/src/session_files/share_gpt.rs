//! Reads conversations of `ShareGPT` and of data sets in its form.
//! Read from files of `ShareGPT` and of such data sets, 2026-11-28.
//!
//! In: a list of objects with `from` and `value`. Out: messages of `lcm`. A call is a message of
//! its own, and the result that follows it is its result.

use serde_json::value::RawValue;

use super::{
    LineError, SessionContent,
    line::{self, Object, Text, quoted},
    records::{self, Collector, Draft},
};

/// Author of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Speaker {
    Person,
    System,
    Model,
    /// A call of a tool.
    Call,
    /// The result of a call.
    Tool,
}

/// Words for the authors, in lower case.
const SPEAKERS: [(&str, Speaker); 24] = [
    ("human", Speaker::Person),
    ("user", Speaker::Person),
    ("person", Speaker::Person),
    ("system", Speaker::System),
    ("developer", Speaker::System),
    ("gpt", Speaker::Model),
    ("chatgpt", Speaker::Model),
    ("assistant", Speaker::Model),
    ("model", Speaker::Model),
    ("ai", Speaker::Model),
    ("bot", Speaker::Model),
    ("bing", Speaker::Model),
    ("bard", Speaker::Model),
    ("claude", Speaker::Model),
    ("gemini", Speaker::Model),
    ("function_call", Speaker::Call),
    ("tool_call", Speaker::Call),
    ("function-call", Speaker::Call),
    ("observation", Speaker::Tool),
    ("tool", Speaker::Tool),
    ("function", Speaker::Tool),
    ("function_response", Speaker::Tool),
    ("function-response", Speaker::Tool),
    ("tool_response", Speaker::Tool),
];

/// Reads a conversation.
///
/// # Errors
///
/// A message is no object, has no text, or names an unknown author.
pub(super) fn read(object: &Object<'_>, list: &[&RawValue]) -> Result<SessionContent, LineError> {
    let mut out = Collector::default();
    let session = object.text("id");
    out.ids.enter_session(session.as_deref().unwrap_or_default());
    out.set_session(session, None);
    // Id of the last call.
    let mut call = String::new();
    for (index, value) in list.iter().enumerate() {
        let Some(message) = Object::from_value(value) else {
            let reason = "must have objects in `conversations`, got another value";
            return Err(LineError::for_file(reason));
        };
        let speaker = read_speaker(&message)?;
        let text = message.any("value").or_else(|| message.any("content"));
        let Some(text) = text else {
            let reason = format!("must have `value` in each message, got {}", message.names());
            return Err(LineError::for_file(reason));
        };
        if message.any("value").is_some_and(|value| value.get() == "\"\"") {
            continue;
        }
        if speaker == Speaker::Call {
            call = format!("call {index}");
        }
        let (role, part) = convert_message(speaker, text, &call);
        let draft = Draft::new(role).with_parts(Vec::from([part]));
        let draft = draft.with_source(&message, &["from", "value"]);
        out.push(index, value.get(), &draft);
    }
    Ok(out.into_content())
}

fn read_speaker(message: &Object<'_>) -> Result<Speaker, LineError> {
    let from = message.text("from").or_else(|| message.text("role")).unwrap_or_default();
    let word = from.trim().to_lowercase();
    let found = SPEAKERS.iter().find(|(known, _)| *known == word).map(|(_, speaker)| *speaker);
    found.ok_or_else(|| {
        let known: Vec<&str> = SPEAKERS.iter().map(|(word, _)| *word).collect();
        LineError::for_file(format!(
            "`from` must be one of {}, got `{}`",
            known.join(", "),
            line::cut_text(&from, line::SHOWN_CHARACTERS_MAX)
        ))
    })
}

/// Returns the role and the part of a message. `call`: id of the last call.
fn convert_message(speaker: Speaker, value: &RawValue, call: &str) -> (&'static str, String) {
    let text: Option<String> = serde_json::from_str(value.get()).ok();
    let text = text.unwrap_or_else(|| value.get().to_owned());
    match speaker {
        Speaker::Person => ("user", records::text_part(&text)),
        Speaker::System => ("system", records::text_part(&text)),
        Speaker::Model => ("assistant", records::text_part(&text)),
        Speaker::Call => ("assistant", convert_call(&text, call)),
        Speaker::Tool => ("tool", records::result_part(call, "", &quoted(&text), false)),
    }
}

/// Converts a call: a JSON object with `name` and `arguments`; any other text is the input.
fn convert_call(text: &str, call: &str) -> String {
    let Some((object, name)) =
        Object::read(text).ok().and_then(|object| object.text("name").map(|name| (object, name)))
    else {
        let input = Text::default().string("text", text).end();
        return records::call_part(call, "function_call", &input);
    };
    let input = object.any("arguments").or_else(|| object.any("parameters"));
    let encoded = input.and_then(|input| serde_json::from_str::<String>(input.get()).ok());
    let encoded = encoded.filter(|encoded| Object::read(encoded).is_ok());
    let input = encoded.or_else(|| input.map(|input| input.get().to_owned()));
    records::call_part(call, &name, input.as_deref().unwrap_or("{}"))
}

#[cfg(test)]
mod tests {
    use super::super::{Growth, read_bytes};

    #[test]
    fn an_unknown_author_is_an_error_that_names_it() {
        let file =
            br#"[{"conversations":[{"from":"human","value":"a"},{"from":"elf","value":"b"}]}]"#;
        let error = read_bytes(file, Growth::Ended).unwrap_err();
        assert!(error.reason.contains("got `elf`"), "{error}");
    }
}
