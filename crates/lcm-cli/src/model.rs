//! Builds the chain of models from the options `--llm`, `--retries` and `--timeout`.
//!
//! API keys are read from `OPENAI_API_KEY` and `ANTHROPIC_API_KEY`.

use std::{sync::Arc, time::Duration};

use lcm_host::{
    Code, Component, Error, Result,
    completion::{Anthropic, Chain, CompletionProvider, Exec, Offline, OpenAi, purpose},
    types::Purpose,
};

use crate::arguments::Models;

/// Builds the chain of all `--llm`, in order; if none is for all purposes, with the offline model.
pub(crate) fn chain(component: &Component, models: &Models) -> Result<Chain> {
    let timeout = Duration::from_secs(models.timeout.into());
    let mut default: Vec<Arc<dyn CompletionProvider>> = Vec::new();
    let mut by_purpose = Vec::new();
    for spec in &models.llm {
        match split(spec)? {
            (Some(purpose), spec) => {
                by_purpose.push((purpose, provider(component, spec, timeout)?))
            }
            (None, spec) => default.push(provider(component, spec, timeout)?),
        }
    }
    if default.is_empty() {
        default.push(Arc::new(Offline::new(component)));
    }
    let mut chain = Chain::new(default).with_retries(models.retries).with_judge(component);
    for (purpose, provider) in by_purpose {
        chain = chain.with_purpose(purpose, provider);
    }
    Ok(chain)
}

/// Splits `PURPOSE=SPEC`; without a purpose the text is the SPEC. A text with a colon before its
/// first `=` has no purpose.
fn split(spec: &str) -> Result<(Option<Purpose>, &str)> {
    let Some((name, rest)) = spec.split_once('=') else { return Ok((None, spec)) };
    if name.contains(':') {
        return Ok((None, spec));
    }
    match purpose(name) {
        Some(purpose) => Ok((Some(purpose), rest)),
        None => {
            let known = "leaf, condensed, file, ask or focus";
            Err(invalid(format!("the purpose in `--llm {spec}` must be {known}, got `{name}`")))
        }
    }
}

fn provider(
    component: &Component,
    spec: &str,
    timeout: Duration,
) -> Result<Arc<dyn CompletionProvider>> {
    if spec == "offline" {
        return Ok(Arc::new(Offline::new(component)));
    }
    if let Some(command) = spec.strip_prefix("exec:") {
        return Exec::parse(command)
            .map(|exec| -> Arc<dyn CompletionProvider> { Arc::new(exec.with_timeout(timeout)) })
            .ok_or_else(|| {
                invalid(format!("`--llm` must name a program after `exec:`, got `{spec}`"))
            });
    }
    if let Some(model) = spec.strip_prefix("openai:") {
        let provider = OpenAi::parse(model, key("OPENAI_API_KEY")?.as_deref())?;
        return Ok(Arc::new(provider.with_timeout(timeout)));
    }
    if let Some(model) = spec.strip_prefix("anthropic:") {
        let provider = Anthropic::parse(model, key("ANTHROPIC_API_KEY")?.as_deref())?;
        return Ok(Arc::new(provider.with_timeout(timeout)));
    }
    let known = "offline, exec:PROGRAM, openai:MODEL or anthropic:MODEL";
    Err(invalid(format!("`--llm` must be {known}, got `{spec}`")))
}

/// Reads an API key from a variable of the environment; `None`: the variable is not set.
fn key(variable: &str) -> Result<Option<String>> {
    let Some(value) = std::env::var_os(variable) else { return Ok(None) };
    let text = value.into_string();
    text.map(Some).map_err(|_| invalid(format!("`{variable}` must be valid UTF-8")))
}

fn invalid(message: String) -> Error {
    Error::new(Code::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purpose_is_a_word_before_the_first_equals_sign() {
        assert_eq!(split("leaf=offline").unwrap(), (Some(Purpose::Leaf), "offline"));
        assert_eq!(split("exec:run a=b").unwrap(), (None, "exec:run a=b"));
        assert_eq!(split("offline").unwrap(), (None, "offline"));
        assert_eq!(split("nothing=offline").unwrap_err().code, Code::InvalidInput);
    }
}
