//! A model that answers from a script.
//!
//! In: a list of completions in the vector format. Out: the first unused completion that matches a
//! request. A request without a match is a mistake of the script.

use lcm_text::types::model::{
    Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult, Finish,
    Model, Purpose,
};

use crate::{
    facade::{
        Misuse,
        arguments::{COMPLETION_ERROR_CODES, FINISHES, PURPOSES},
        messages::{expand_repeats, padded},
    },
    json::Json,
};

#[derive(Clone, Debug)]
enum Content {
    Text(String),
    Tokens(u64),
    Error(CompletionErrorCode, String),
}

#[derive(Clone, Debug)]
struct Scripted {
    content: Content,
    finish: Finish,
    model: String,
    purpose: Option<Purpose>,
    /// Number of requests that the completion may still answer; `None`: any number.
    left: Option<u64>,
}

/// A model that answers from a script.
#[derive(Clone, Debug, Default)]
pub struct ScriptedModel {
    script: Vec<Scripted>,
    used: u64,
    missing: bool,
}

impl ScriptedModel {
    /// Parses a script.
    ///
    /// # Errors
    ///
    /// A completion violates the vector format.
    pub fn new(script: &[Json]) -> Result<Self, Misuse> {
        let script = script.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { script, used: 0, missing: false })
    }

    /// Answers a request with the first unused completion that fits; `None`: no completion fits.
    pub fn answer(&mut self, request: &CompletionRequest) -> Option<CompletionResult> {
        let fitting = self.script.iter_mut().find(|scripted| {
            scripted.left != Some(0)
                && scripted.purpose.is_none_or(|purpose| purpose == request.purpose)
        });
        let Some(scripted) = fitting else {
            self.missing = true;
            return None;
        };
        if let Some(left) = &mut scripted.left {
            *left -= 1;
        }
        self.used += 1;
        let text = match &scripted.content {
            Content::Text(text) => text.clone(),
            Content::Tokens(tokens) => padded(&format!("summary {} ", self.used), 's', *tokens),
            Content::Error(code, message) => {
                return Some(CompletionResult::Failed(CompletionError {
                    code: *code,
                    message: message.clone(),
                    retry_after_ms: None,
                }));
            }
        };
        Some(CompletionResult::Done(Completion {
            text,
            finish: scripted.finish,
            model: scripted.model.clone(),
            input_tokens: 0,
            output_tokens: 0,
        }))
    }

    /// Returns the number of completions used so far.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Returns whether no completion fitted one of the requests.
    #[must_use]
    pub const fn missing(&self) -> bool {
        self.missing
    }
}

impl Model for ScriptedModel {
    fn complete(&mut self, request: &CompletionRequest) -> CompletionResult {
        self.answer(request).unwrap_or_else(|| {
            CompletionResult::Failed(CompletionError {
                code: CompletionErrorCode::Other,
                message: "no scripted completion fits".to_owned(),
                retry_after_ms: None,
            })
        })
    }
}

fn case<T: Copy>(value: &Json, cases: &[(&str, T)]) -> Result<T, Misuse> {
    cases
        .iter()
        .find(|(name, _)| value.as_str() == Some(name))
        .map(|(_, case)| *case)
        .ok_or_else(|| format!("`{value}` is no case"))
}

fn read(value: &Json) -> Result<Scripted, Misuse> {
    let Json::Object(entries) = expand_repeats(value)? else {
        return Err("a completion is an object".to_owned());
    };
    let (mut content, mut finish, mut model) = (None, Finish::Stop, "scripted".to_owned());
    let (mut purpose, mut left) = (None, Some(1));
    for (key, value) in &entries {
        match (key.as_str(), value) {
            ("text", Json::String(text)) => content = Some(Content::Text(text.clone())),
            ("tokens", Json::Number(tokens)) => content = Some(Content::Tokens(*tokens)),
            ("error", Json::Object(_)) => {
                let code =
                    case(value.field("code").unwrap_or(&Json::Null), &COMPLETION_ERROR_CODES)?;
                let message = value.field("message").and_then(Json::as_str).unwrap_or_default();
                content = Some(Content::Error(code, message.to_owned()));
            }
            ("finish", _) => finish = case(value, &FINISHES)?,
            ("model", Json::String(name)) => model.clone_from(name),
            ("purpose", _) => purpose = Some(case(value, &PURPOSES)?),
            ("times", Json::Number(0)) => left = None,
            ("times", Json::Number(times)) => left = Some(*times),
            _ => return Err(format!("a completion has no `{key}` of that type")),
        }
    }
    let content = content.ok_or("a completion wants `text`, `tokens` or `error`")?;
    Ok(Scripted { content, finish, model, purpose, left })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(purpose: Purpose) -> CompletionRequest {
        CompletionRequest {
            id: String::new(),
            purpose,
            level: lcm_text::types::model::Level::Normal,
            system: String::new(),
            prompt: String::new(),
            input_tokens: 0,
            output_tokens_max: 0,
            temperature_permille: 0,
            model: None,
        }
    }

    #[test]
    fn the_first_fitting_completion_that_is_not_used_up_is_taken() {
        let script = r#"[{"text":"a","purpose":"condensed"},{"tokens":4,"times":2},{"text":"z"}]"#;
        let mut model = ScriptedModel::new(Json::parse(script).unwrap().elements()).unwrap();
        let mut ask = |purpose| match model.answer(&request(purpose)) {
            Some(CompletionResult::Done(done)) => done.text,
            other => format!("{other:?}"),
        };
        assert_eq!(ask(Purpose::Leaf), "summary 1 ssssss");
        assert_eq!(ask(Purpose::Condensed), "a");
        assert_eq!(ask(Purpose::Leaf), "summary 3 ssssss");
        assert_eq!(ask(Purpose::Leaf), "z");
        assert_eq!(ask(Purpose::Leaf), "None");
    }
}
