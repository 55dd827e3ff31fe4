//! Converts the JSON arguments of a step to the types of the engine, with the defaults of the
//! format.
//!
//! An unknown argument is a mistake in the vector and returns a [`Misuse`].

use std::{borrow::Cow, cell::RefCell, collections::BTreeSet};

use lcm_text::types::{
    api::{
        AppendMode, AppendOptions, ApplyOptions, AssembleOptions, CompactionMode,
        CompactionOptions, Dialect, EvictionPolicy, ReadDialect, Timestamp, ToolScope,
    },
    model::{
        Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult,
        Finish, Level, Purpose,
    },
};

use crate::{
    facade::{
        Misuse,
        messages::{expand_repeats, message_texts},
    },
    json::Json,
};

/// Conversation of a step without the argument `conversation`.
pub const DEFAULT_CONVERSATION: &str = "c";
/// Time of a step without the argument `now`, in milliseconds since 1970.
pub const DEFAULT_NOW: Timestamp = 1_700_000_000_000;
const DEFAULT_BYTES_MAX: u32 = 1_048_576;

/// The arguments of one step, or the fields of a record among the arguments.
pub struct Args<'a> {
    name: &'a str,
    value: Cow<'a, Json>,
    read: RefCell<BTreeSet<String>>,
}

impl<'a> Args<'a> {
    /// Wraps the arguments of the function or record `name`; `null` counts as an empty object.
    ///
    /// # Errors
    ///
    /// `value` is neither an object nor `null`, or contains a malformed `$repeat`.
    pub fn new(name: &'a str, value: &Json) -> Result<Self, Misuse> {
        let value = match value {
            Json::Null => Json::Object(Vec::new()),
            Json::Object(_) => expand_repeats(value)?,
            _ => return Err(format!("arguments of `{name}` are an object")),
        };
        Ok(Self { name, value: Cow::Owned(value), read: RefCell::default() })
    }

    /// Checks that all given arguments were read.
    ///
    /// # Errors
    ///
    /// The function does not know one of the given arguments, so no method of this value has read
    /// the argument.
    pub fn finish(&self) -> Result<(), Misuse> {
        let Json::Object(entries) = self.value.as_ref() else { return Ok(()) };
        let read = self.read.borrow();
        match entries.iter().find(|(key, _)| !read.contains(key)) {
            Some((key, _)) => Err(format!("`{}` has no argument `{key}`", self.name)),
            None => Ok(()),
        }
    }

    fn get(&self, key: &str) -> Option<&Json> {
        self.read.borrow_mut().insert(key.to_owned());
        self.value.field(key).filter(|value| **value != Json::Null)
    }

    fn wrong<T>(&self, key: &str, wanted: &str) -> Result<T, Misuse> {
        Err(format!("argument `{key}` of `{}` is no {wanted}", self.name))
    }

    fn record<T>(
        &self,
        key: &str,
        read: impl FnOnce(&mut Args<'_>) -> Result<T, Misuse>,
    ) -> Result<T, Misuse> {
        let mut fields = Args::new(key, self.get(key).unwrap_or(&Json::Null))?;
        let record = read(&mut fields)?;
        fields.finish()?;
        Ok(record)
    }

    /// Reads a string; `None`: absent or `null`.
    pub fn optional_string(&self, key: &str) -> Result<Option<String>, Misuse> {
        match self.get(key) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(_) => self.wrong(key, "string"),
        }
    }

    /// Reads a string; empty if absent.
    pub fn string(&self, key: &str) -> Result<String, Misuse> {
        Ok(self.optional_string(key)?.unwrap_or_default())
    }

    fn optional_number(&self, key: &str) -> Result<Option<u64>, Misuse> {
        match self.get(key) {
            None => Ok(None),
            Some(Json::Number(number)) => Ok(Some(*number)),
            Some(_) => self.wrong(key, "number"),
        }
    }

    fn optional_u32(&self, key: &str) -> Result<Option<u32>, Misuse> {
        match self.optional_number(key)?.map(u32::try_from) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => self.wrong(key, "u32"),
        }
    }

    /// Reads a number; 0 if absent.
    pub fn number(&self, key: &str) -> Result<u64, Misuse> {
        Ok(self.optional_number(key)?.unwrap_or_default())
    }

    /// Reads a number below 2^32; 0 if absent.
    pub fn number_u32(&self, key: &str) -> Result<u32, Misuse> {
        Ok(self.optional_u32(key)?.unwrap_or_default())
    }

    /// Reads a boolean; false if absent.
    pub fn boolean(&self, key: &str) -> Result<bool, Misuse> {
        match self.get(key) {
            None => Ok(false),
            Some(Json::Bool(value)) => Ok(*value),
            Some(_) => self.wrong(key, "boolean"),
        }
    }

    /// Reads a JSON text: a string unchanged, any other value as its compact text; `{}` if absent.
    pub fn json(&self, key: &str) -> Result<String, Misuse> {
        Ok(self.optional_json(key)?.unwrap_or_else(|| "{}".to_owned()))
    }

    /// Reads a JSON text, as [`Args::json`] does; `None`: absent or `null`.
    pub fn optional_json(&self, key: &str) -> Result<Option<String>, Misuse> {
        Ok(match self.get(key) {
            None => None,
            Some(Json::String(text)) => Some(text.clone()),
            Some(value) => Some(value.compact()),
        })
    }

    fn choice<T: Copy>(&self, key: &str, cases: &[(&str, T)]) -> Result<T, Misuse> {
        let Some(value) = self.get(key) else { return Ok(cases[0].1) };
        match cases.iter().find(|(name, _)| value.as_str() == Some(name)) {
            Some((_, case)) => Ok(*case),
            None => self.wrong(key, "case of its enum"),
        }
    }

    /// Reads the argument `conversation`; [`DEFAULT_CONVERSATION`] if absent.
    pub fn conversation(&self) -> Result<String, Misuse> {
        let conversation = self.optional_string("conversation")?;
        Ok(conversation.unwrap_or_else(|| DEFAULT_CONVERSATION.to_owned()))
    }

    /// Reads the argument `now`, the time of the call; [`DEFAULT_NOW`] if absent.
    pub fn now(&self) -> Result<Timestamp, Misuse> {
        Ok(self.optional_number("now")?.unwrap_or(DEFAULT_NOW))
    }

    /// Reads the argument `bytes_max`, the size of a page in bytes; 1 MiB if absent.
    pub fn bytes_max(&self) -> Result<u32, Misuse> {
        Ok(self.optional_u32("bytes_max")?.unwrap_or(DEFAULT_BYTES_MAX))
    }

    /// Reads a list of messages; empty if absent.
    pub fn messages(&self, key: &str) -> Result<Vec<String>, Misuse> {
        self.get(key).map_or_else(|| Ok(Vec::new()), message_texts)
    }

    /// Reads the argument `dialect`; `lcm` if absent.
    pub fn dialect(&self) -> Result<ReadDialect, Misuse> {
        let dialects = [
            ReadDialect::Of(Dialect::Lcm),
            ReadDialect::Of(Dialect::Anthropic),
            ReadDialect::Of(Dialect::OpenaiChat),
            ReadDialect::Of(Dialect::OpenaiResponses),
            ReadDialect::Of(Dialect::Gemini),
            ReadDialect::Of(Dialect::AiSdk),
            ReadDialect::Of(Dialect::Openclaw),
            ReadDialect::Of(Dialect::Langchain),
            ReadDialect::Of(Dialect::OpenaiAgents),
            ReadDialect::Auto,
        ];
        self.choice("dialect", &dialects.map(|dialect| (dialect.as_str(), dialect)))
    }

    /// Reads the argument `scope` of a tool; the conversation if absent.
    pub fn tool_scope(&self) -> Result<ToolScope, Misuse> {
        let scopes = [ToolScope::Conversation, ToolScope::Store];
        self.choice("scope", &scopes.map(|scope| (scope.as_str(), scope)))
    }

    /// Reads the options of `append`.
    pub fn append_options(&self) -> Result<AppendOptions, Misuse> {
        self.record("options", |fields| {
            Ok(AppendOptions {
                append_mode: fields.choice(
                    "append_mode",
                    &[("transcript", AppendMode::Transcript), ("new", AppendMode::New)],
                )?,
                partial: fields.boolean("partial")?,
                extra_json: fields.optional_json("extra_json")?,
            })
        })
    }

    /// Reads the options of `evaluate`, `plan` and `run`.
    pub fn compaction_options(&self) -> Result<CompactionOptions, Misuse> {
        self.record("options", |fields| {
            Ok(CompactionOptions {
                mode: fields.choice(
                    "mode",
                    &[
                        ("threshold", CompactionMode::Threshold),
                        ("incremental", CompactionMode::Incremental),
                        ("sweep", CompactionMode::Sweep),
                        ("until-under", CompactionMode::UntilUnder),
                    ],
                )?,
                force: fields.boolean("force")?,
                target: fields.optional_u32("target")?,
                observed_tokens: fields.optional_u32("observed_tokens")?,
                requests_max: fields.optional_u32("requests_max")?.unwrap_or(1),
                lease_ms: fields.number_u32("lease_ms")?,
                sweep: fields.optional_string("sweep")?,
                extra_json: fields.optional_json("extra_json")?,
            })
        })
    }

    /// Reads the options of `apply`.
    pub fn apply_options(&self) -> Result<ApplyOptions, Misuse> {
        self.record("options", |fields| {
            Ok(ApplyOptions {
                fallback_over_tokens: fields.optional_u32("fallback_over_tokens")?,
                extra_json: fields.optional_json("extra_json")?,
            })
        })
    }

    /// Reads the options of `assemble`.
    pub fn assemble_options(&self) -> Result<AssembleOptions, Misuse> {
        self.record("options", |fields| {
            Ok(AssembleOptions {
                policy: fields.choice(
                    "policy",
                    &[
                        ("", None),
                        ("chronological", Some(EvictionPolicy::Chronological)),
                        ("prompt-aware", Some(EvictionPolicy::PromptAware)),
                        ("layered", Some(EvictionPolicy::Layered)),
                    ],
                )?,
                prompt: fields.optional_string("prompt")?,
                reserve_tokens: fields.number_u32("reserve_tokens")?,
                live_messages: fields.messages("live_messages")?,
                previous: fields.optional_string("previous")?,
                explain: fields.boolean("explain")?,
                extra_json: fields.optional_json("extra_json")?,
            })
        })
    }

    /// Reads the result of a completion request: `{"done": {...}}` or `{"failed": {...}}`.
    pub fn answer(&self, key: &str) -> Result<CompletionResult, Misuse> {
        self.record(key, |variant| {
            if variant.get("failed").is_some() {
                return variant.record("failed", failed).map(CompletionResult::Failed);
            }
            if variant.get("done").is_none() {
                return variant.wrong(key, "`done` or `failed`");
            }
            variant.record("done", done).map(CompletionResult::Done)
        })
    }

    /// Reads an answer of a model.
    pub fn completion(&self, key: &str) -> Result<Completion, Misuse> {
        self.record(key, done)
    }

    /// Reads the results of several completion requests, in the order of the requests.
    pub fn answers(&self, key: &str) -> Result<Vec<CompletionResult>, Misuse> {
        let Some(Json::Array(elements)) = self.get(key) else { return self.wrong(key, "list") };
        let one = |element: &Json| {
            let object = Json::object([("answer", element.clone())]);
            Args::new(key, &object)?.answer("answer")
        };
        elements.iter().map(one).collect()
    }

    /// Reads a completion request, as `plan` returned it.
    pub fn request(&self, key: &str) -> Result<CompletionRequest, Misuse> {
        self.record(key, |fields| {
            Ok(CompletionRequest {
                id: fields.string("id")?,
                purpose: fields.choice("purpose", &PURPOSES)?,
                level: fields.choice("level", &LEVELS)?,
                system: fields.string("system")?,
                prompt: fields.string("prompt")?,
                input_tokens: fields.number_u32("input_tokens")?,
                output_tokens_max: fields.number_u32("output_tokens_max")?,
                temperature_permille: fields.number_u32("temperature_permille")?,
                model: fields.optional_string("model")?,
            })
        })
    }
}

/// The cases of `purpose`, in the order of their declaration.
pub const PURPOSES: [(&str, Purpose); 5] = [
    ("leaf", Purpose::Leaf),
    ("condensed", Purpose::Condensed),
    ("file", Purpose::File),
    ("ask", Purpose::Ask),
    ("focus", Purpose::Focus),
];

/// The cases of `level`.
pub const LEVELS: [(&str, Level); 3] =
    [("normal", Level::Normal), ("aggressive", Level::Aggressive), ("fallback", Level::Fallback)];

/// The cases of `finish`.
pub const FINISHES: [(&str, Finish); 3] =
    [("stop", Finish::Stop), ("length", Finish::Length), ("refusal", Finish::Refusal)];

/// The cases of `completion-error-code`.
pub const COMPLETION_ERROR_CODES: [(&str, CompletionErrorCode); 7] = [
    ("auth", CompletionErrorCode::Auth),
    ("policy", CompletionErrorCode::Policy),
    ("rate-limited", CompletionErrorCode::RateLimited),
    ("timeout", CompletionErrorCode::Timeout),
    ("context-too-long", CompletionErrorCode::ContextTooLong),
    ("unavailable", CompletionErrorCode::Unavailable),
    ("other", CompletionErrorCode::Other),
];

fn done(fields: &mut Args<'_>) -> Result<Completion, Misuse> {
    let model = fields.optional_string("model")?;
    Ok(Completion {
        text: fields.string("text")?,
        finish: fields.choice("finish", &FINISHES)?,
        model: model.unwrap_or_else(|| "scripted".to_owned()),
        input_tokens: fields.number_u32("input_tokens")?,
        output_tokens: fields.number_u32("output_tokens")?,
    })
}

fn failed(fields: &mut Args<'_>) -> Result<CompletionError, Misuse> {
    Ok(CompletionError {
        code: fields.choice("code", &COMPLETION_ERROR_CODES)?,
        message: fields.string("message")?,
        retry_after_ms: fields.optional_number("retry_after_ms")?,
    })
}
