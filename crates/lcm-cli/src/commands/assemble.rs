//! `lcm assemble`: prints the context for a budget.
//!
//! In: a budget, a dialect and options. Out: one line for each message and the sizes; with `--json`
//! the messages to send to a provider.

use std::path::Path;

use lcm_host::{
    Code, Error, Result,
    context::{Assembled, Item, Options, Policy},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    End,
    arguments::{Assemble, Global},
    input::read_text,
    output::{self, count, line, number},
    session::Session,
};

/// Largest number of characters of a message to show to people.
const SHOWN_MAX: usize = 110;

#[derive(Serialize)]
struct Output<'a> {
    messages: &'a RawValue,
    system: Option<&'a str>,
    tokens: u32,
    budget: u32,
    summaries: u32,
    fresh_tail_messages: u32,
    evicted: u32,
    prefix: Prefix<'a>,
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<OneItem<'a>>>,
}

#[derive(Serialize)]
struct Prefix<'a> {
    stable_tokens: Option<u32>,
    broken_by: Option<&'a str>,
    broken_why: Option<&'a str>,
    breakpoints: &'a [u32],
    sha256: &'a str,
    token: &'a str,
}

#[derive(Serialize)]
struct OneItem<'a> {
    id: &'a str,
    kind: &'a str,
    included: bool,
    why: &'a str,
    tokens: u32,
    seq_first: Option<u64>,
    seq_last: Option<u64>,
}

impl<'a> OneItem<'a> {
    fn of(item: &'a Item) -> Self {
        Self {
            id: &item.id,
            kind: &item.kind,
            included: item.included,
            why: &item.why,
            tokens: item.tokens,
            seq_first: item.seq_first,
            seq_last: item.seq_last,
        }
    }
}

pub(crate) fn run(global: &Global, options: &Assemble) -> Result<End> {
    let Some(dialect) = options.dialect.wit() else {
        let known = "lcm, anthropic, openai-chat, openai-responses, gemini, ai-sdk, openclaw, \
                     langchain or openai-agents";
        let message = format!("`--dialect` must be {known}, got `auto`");
        return Err(Error::new(Code::InvalidInput, message));
    };
    let previous = options.previous.as_deref().map(token).transpose()?;
    let session = Session::open(global)?;
    let assemble = Options {
        policy: options.policy.map(Policy::from),
        prompt: options.prompt.clone(),
        reserve_tokens: 0,
        live_messages: Vec::new(),
        previous,
        explain: options.explain,
        extra_json: options.model.as_deref().map(lcm_host::model_option),
    };
    let budget = options.budget;
    let assembled =
        session.lcm.assemble(session.conversation, budget, dialect, &assemble, session.now())?;
    if session.json {
        print_json(&assembled, budget, options.explain)?;
    } else {
        output::text(&people(&assembled, budget))?;
    }
    Ok(End::Done)
}

fn print_json(assembled: &Assembled, budget: u32, explain: bool) -> Result<()> {
    // The messages are not parsed, because a parser could change numbers.
    let messages: &RawValue = serde_json::from_str(&assembled.messages_json).map_err(|error| {
        let message = format!("`context.assemble` answered unexpected JSON: {error}");
        Error::new(Code::Internal, message)
    })?;
    output::json(&Output {
        messages,
        system: assembled.system.as_deref(),
        tokens: assembled.tokens,
        budget,
        summaries: assembled.summaries,
        fresh_tail_messages: assembled.fresh_tail_messages,
        evicted: assembled.evicted,
        prefix: Prefix {
            stable_tokens: assembled.prefix.stable_tokens,
            broken_by: assembled.prefix.broken_by.as_deref(),
            broken_why: assembled.prefix.broken_why.as_deref(),
            breakpoints: &assembled.prefix.breakpoints,
            sha256: &assembled.prefix.sha256,
            token: &assembled.prefix.token,
        },
        warnings: &assembled.warnings,
        items: explain.then(|| assembled.items.iter().map(OneItem::of).collect()),
    })
}

/// Formats an assembly for people: the explanation if requested, one line for each message, sizes
/// and warnings.
pub(crate) fn people(assembled: &Assembled, budget: u32) -> String {
    let mut text = String::new();
    if let Some(explanation) = &assembled.explanation_text {
        text.push_str(explanation);
        text.push('\n');
    }
    text.push_str(&messages(assembled));
    text.push_str(&format!(
        "\n{} of {} tokens: {}, {} in the fresh tail, {} left out\n",
        number(u64::from(assembled.tokens)),
        number(u64::from(budget)),
        count(u64::from(assembled.summaries), "summary"),
        count(u64::from(assembled.fresh_tail_messages), "message"),
        number(u64::from(assembled.evicted)),
    ));
    if let Some(stable) = assembled.prefix.stable_tokens {
        let prefix = &assembled.prefix;
        let broken = prefix.broken_by.as_ref().zip(prefix.broken_why.as_ref());
        let broken =
            broken.map_or(String::new(), |(id, why)| format!(", then `{id}` differs ({why})"));
        text.push_str(&format!("{} as before{broken}\n", count(u64::from(stable), "token")));
    }
    text.push_str(&output::warnings(&assembled.warnings));
    text
}

/// Formats each message of an assembly as one line.
pub(crate) fn messages(assembled: &Assembled) -> String {
    let mut rows = Vec::new();
    if let Some(system) = &assembled.system {
        rows.push(("system".to_owned(), line(system, SHOWN_MAX)));
    }
    match serde_json::from_str::<Vec<Value>>(&assembled.messages_json) {
        Ok(messages) => rows.extend(messages.iter().map(|message| {
            let text = said(message);
            let role = message.get("role").and_then(Value::as_str).unwrap_or("-");
            let role = if bare(&text).len() < text.len() { "summary" } else { role };
            (role.to_owned(), line(bare(&text), SHOWN_MAX))
        })),
        Err(_) => rows.push(("-".to_owned(), line(&assembled.messages_json, SHOWN_MAX))),
    }
    rows.iter().map(|(role, text)| format!("{role:<9}  {text}\n")).collect()
}

/// Returns the text of a summary after its tag `<content>`; any other text unchanged.
fn bare(text: &str) -> &str {
    let content = text.strip_prefix("<summary ").and_then(|text| text.split_once("<content>"));
    content.map_or(text, |(_, content)| content)
}

/// Returns the texts and calls of a message of any dialect, joined by spaces.
pub(crate) fn said(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(said).collect::<Vec<_>>().join(" "),
        Value::Object(object) => {
            let name = object.get("name").and_then(Value::as_str);
            let input = ["input", "arguments", "args"].iter().find_map(|key| object.get(*key));
            if let (Some(name), Some(input)) = (name, input) {
                return format!("[{name} {input}]");
            }
            let keys = [
                "content",
                "parts",
                "text",
                "output",
                "tool_calls",
                "function",
                "functionCall",
                "functionResponse",
                "response",
            ];
            let parts = keys.iter().filter_map(|key| object.get(*key)).map(said);
            parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// Reads the prefix token from a file with the JSON of an earlier assembly, or with the token
/// alone.
fn token(file: &Path) -> Result<String> {
    #[derive(Deserialize)]
    struct Earlier {
        prefix: EarlierPrefix,
    }
    #[derive(Deserialize)]
    struct EarlierPrefix {
        token: String,
    }
    let text = read_text(file)?;
    if !text.trim_start().starts_with('{') {
        return Ok(text.trim().to_owned());
    }
    let earlier: Earlier = serde_json::from_str(&text).map_err(|error| {
        let message = format!(
            "`--previous {}` must be the output of `lcm assemble --json`: {error}",
            file.display()
        );
        Error::new(Code::InvalidInput, message)
    })?;
    Ok(earlier.prefix.token)
}
