//! The shorthands and defaults of arguments, and the scripted completions.

use lcm_host::types::{
    Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult, Finish,
    Purpose,
};
use serde_json::{Map, Value, json};

use super::ordered::Ordered;

/// Functions that take no conversation, or an optional one.
const WITHOUT_CONVERSATION: [&str; 15] = [
    "drive.begin",
    "drive.step",
    "setup.configure",
    "setup.resolve",
    "setup.version",
    "ingest.identify",
    "compaction.complete_offline",
    "context.validate",
    "tools.definitions",
    "tools.instructions",
    "admin.status",
    "admin.listing",
    "admin.digest",
    "admin.import_page",
    "restart",
];
/// Functions that take no time.
const WITHOUT_NOW: [&str; 15] = [
    "setup.configure",
    "setup.resolve",
    "setup.version",
    "ingest.identify",
    "compaction.complete_offline",
    "context.validate",
    "tools.definitions",
    "tools.instructions",
    "recall.messages",
    "recall.embed",
    "admin.listing",
    "admin.check",
    "admin.digest",
    "admin.export_page",
    "restart",
];
const WITH_BYTES_MAX: [&str; 3] = ["recall.messages", "admin.listing", "admin.export_page"];
const WITH_OPTIONS_JSON: [&str; 2] = ["recall.describe", "recall.expand"];

/// The arguments of a step as the host takes them.
pub(super) fn arguments(call: &str, given: &Ordered) -> Result<Value, String> {
    let Ordered::Object(fields) = given else { return Err("`args` is an object".to_owned()) };
    let mut arguments = Map::new();
    let mut default = |name: &str, applies: bool, value: Value| {
        if applies {
            arguments.insert(name.to_owned(), value);
        }
    };
    default("conversation", !WITHOUT_CONVERSATION.contains(&call), "c".into());
    default("now", !WITHOUT_NOW.contains(&call), 1_700_000_000_000_u64.into());
    default("bytes_max", WITH_BYTES_MAX.contains(&call), 1_048_576.into());
    default("options_json", WITH_OPTIONS_JSON.contains(&call), "{}".into());
    for (key, value) in fields {
        let value = if key == "config" { value.plain() } else { handed(key, &expanded(value)?)? };
        arguments.insert(key.clone(), value);
    }
    let answer = arguments.get_mut("answer").and_then(|answer| answer.get_mut("done"));
    if let Some(done) = answer.and_then(Value::as_object_mut) {
        done.entry("model").or_insert_with(|| "scripted".into());
    }
    Ok(Value::Object(arguments))
}

/// The value of an argument or field as it is handed over: lists of messages as texts, and what is
/// JSON in a text as its compact text.
fn handed(key: &str, value: &Ordered) -> Result<Value, String> {
    Ok(match value {
        Ordered::Array(_) if key == "messages" || key == "live_messages" => texts(value)?,
        Ordered::Array(_) | Ordered::Object(_) if key.ends_with("_json") => value.compact().into(),
        Ordered::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, value)| Ok((key.clone(), handed(key, value)?)))
                .collect::<Result<_, String>>()?,
        ),
        other => other.plain(),
    })
}

/// Puts texts in the place of every `$repeat`.
fn expanded(value: &Ordered) -> Result<Ordered, String> {
    Ok(match value {
        Ordered::Object(_) if value.get("$repeat").is_some() => {
            let repeat = value.get("$repeat").map_or(Value::Null, Ordered::plain);
            let text = repeat["text"].as_str().ok_or("`$repeat` wants `text`")?;
            let count = repeat["count"].as_u64().ok_or("`$repeat` wants `count`")?;
            let count = usize::try_from(count).map_err(|error| error.to_string())?;
            Ordered::Scalar(text.repeat(count).into())
        }
        Ordered::Object(fields) => Ordered::Object(
            fields
                .iter()
                .map(|(key, value)| Ok((key.clone(), expanded(value)?)))
                .collect::<Result<_, String>>()?,
        ),
        Ordered::Array(items) => {
            Ordered::Array(items.iter().map(expanded).collect::<Result<_, _>>()?)
        }
        Ordered::Scalar(_) => value.clone(),
    })
}

/// The texts that a list of messages stands for.
fn texts(list: &Ordered) -> Result<Value, String> {
    let mut texts: Vec<Value> = Vec::new();
    for item in list.items() {
        match (item, item.get("$generate")) {
            (_, Some(generator)) => texts.extend(generated(generator)?),
            (Ordered::Object(_), None) => texts.push(item.compact().into()),
            _ => texts.push(item.plain()),
        }
    }
    Ok(texts.into())
}

fn generated(generator: &Ordered) -> Result<Vec<Value>, String> {
    let plain = generator.plain();
    let number = |key: &str| plain[key].as_u64().ok_or(format!("`$generate` wants `{key}`"));
    let (count, tokens, first) = (number("count")?, number("tokens")?, number("first")?);
    let roles = plain["roles"].as_array().ok_or("`$generate` wants `roles`")?;
    let messages = roles.iter().cycle().zip(first..first + count).map(|(role, number)| {
        let text = padded(&format!("message {number} "), 'x', tokens);
        format!("{{\"role\":{role},\"content\":{}}}", Value::from(text)).into()
    });
    Ok(messages.collect())
}

/// `start`, filled up with `letter` to four times `tokens` characters; four fewer from 5 tokens on.
fn padded(start: &str, letter: char, tokens: u64) -> String {
    let length = usize::try_from(4 * (tokens - u64::from(tokens >= 5))).unwrap();
    start.chars().chain(std::iter::repeat(letter)).take(length).collect()
}

/// Completions that are used up in order.
pub(super) struct Script {
    /// Each with how often it may still be used; `None`: for ever.
    completions: Vec<(Value, Option<u64>)>,
    used: u64,
    /// Whether a request found none that fits.
    pub(super) missing: bool,
}

impl Script {
    pub(super) fn new(completions: &Value) -> Result<Self, String> {
        let read = |completion: &Value| {
            let times = completion.get("times").map_or(Some(1), Value::as_u64);
            let times = times.ok_or("`times` is a number")?;
            Ok((completion.clone(), Some(times).filter(|times| *times > 0)))
        };
        let completions = completions.as_array().into_iter().flatten();
        let completions = completions.map(read).collect::<Result<_, String>>()?;
        Ok(Self { completions, used: 0, missing: false })
    }

    /// The answer to a request of this purpose, as the interface has it.
    pub(super) fn answer_json(&mut self, purpose: &str) -> Option<Value> {
        let fitting = self.completions.iter_mut().find(|(completion, left)| {
            *left != Some(0) && completion.get("purpose").is_none_or(|of| of == purpose)
        });
        let Some((completion, left)) = fitting else {
            self.missing = true;
            return None;
        };
        *left = left.map(|left| left - 1);
        self.used += 1;
        if let Some(error) = completion.get("error") {
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
            return Some(json!({"failed": {"code": error["code"], "message": message}}));
        }
        let tokens = completion.get("tokens").and_then(Value::as_u64);
        let text = match completion.get("text").and_then(Value::as_str) {
            // `$repeat` may stand for the text.
            None if completion.get("text").is_some() => {
                let repeat = &completion["text"]["$repeat"];
                let count = usize::try_from(repeat["count"].as_u64()?).ok()?;
                repeat["text"].as_str()?.repeat(count)
            }
            None => padded(&format!("summary {} ", self.used), 's', tokens?),
            Some(text) => text.to_owned(),
        };
        let or = |key: &str, default: &str| {
            completion.get(key).and_then(Value::as_str).unwrap_or(default).to_owned()
        };
        Some(json!({"done": {"text": text, "finish": or("finish", "stop"),
            "model": or("model", "scripted")}}))
    }

    /// The answer to a request of the component itself.
    pub(super) fn answer(&mut self, request: &CompletionRequest) -> CompletionResult {
        let purpose = match request.purpose {
            Purpose::Leaf => "leaf",
            Purpose::Ask => "ask",
            _ => "condensed",
        };
        let answer = self.answer_json(purpose).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(done) = answer.get("done") {
            let finish = match done["finish"].as_str() {
                Some("length") => Finish::Length,
                Some("refusal") => Finish::Refusal,
                _ => Finish::Stop,
            };
            return CompletionResult::Done(Completion {
                text: text(&done["text"]),
                finish,
                model: text(&done["model"]),
                input_tokens: 0,
                output_tokens: 0,
            });
        }
        let code = match answer["failed"]["code"].as_str() {
            Some("auth") => CompletionErrorCode::Auth,
            Some("policy") => CompletionErrorCode::Policy,
            Some("rate-limited") => CompletionErrorCode::RateLimited,
            Some("timeout") => CompletionErrorCode::Timeout,
            Some("context-too-long") => CompletionErrorCode::ContextTooLong,
            Some("unavailable") => CompletionErrorCode::Unavailable,
            _ => CompletionErrorCode::Other,
        };
        let message = text(&answer["failed"]["message"]);
        CompletionResult::Failed(CompletionError { code, message, retry_after_ms: None })
    }
}
