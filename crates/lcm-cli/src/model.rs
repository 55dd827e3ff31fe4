//! Builds the chain of models from the options `--llm`, `--retries` and `--timeout`, and from the
//! configuration.
//!
//! API keys are read from `OPENAI_API_KEY` and `ANTHROPIC_API_KEY`.

use std::{sync::Arc, time::Duration};

use lcm_host::{
    Code, Component, Error, Result,
    completion::{Anthropic, Chain, CompletionProvider, Exec, Offline, OpenAi, purpose},
    shapes::HostSettings,
    types::Purpose,
};

use crate::arguments::Models;

/// Time limit of one answer where neither an option nor the configuration names one.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the chain that makes every text without a model.
pub(crate) fn build_offline_chain(component: &Component) -> Chain {
    Chain::new(vec![Arc::new(Offline::new(component))])
}

/// Builds the chain of all `--llm`, in order, then the fallback models of the configuration.
///
/// Without an `--llm` for all purposes, `summary_model` of the configuration comes first. An empty
/// chain gets the offline model. A configured model that is not asked adds a warning.
pub(crate) fn build_chain(
    component: &Component,
    models: &Models,
    host: &HostSettings,
    warnings: &mut Vec<String>,
) -> Result<Chain> {
    let configured = host.timeout_ms.map(|ms| Duration::from_millis(ms.into()));
    let option = models.timeout.map(|seconds| Duration::from_secs(seconds.into()));
    let timeout = option.or(configured).unwrap_or(TIMEOUT);
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
    let is_named = !default.is_empty();
    if let Some(model) = configured_model("summary_model", &host.summary_model, is_named, warnings)?
    {
        default.push(provider(component, &model, timeout)?);
    }
    let is_asked = by_purpose.iter().any(|(purpose, _)| *purpose == Purpose::Ask);
    let is_named = is_named || is_asked;
    if let Some(model) =
        configured_model("expansion_model", &host.expansion_model, is_named, warnings)?
    {
        by_purpose.push((Purpose::Ask, provider(component, &model, timeout)?));
    }
    for model in &host.fallback_models {
        match spec(model) {
            Some(spec) => default.push(provider(component, &spec, timeout)?),
            None => warnings.push(format!("`fallback_models`: `{model}` is not asked: {KNOWN}")),
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

/// Part of a warning: which models of a configuration the program can ask.
const KNOWN: &str = "the program asks `openai/MODEL` and `anthropic/MODEL`";

/// Returns the SPEC of a model `PROVIDER/MODEL`; `None`: the program cannot ask the provider.
fn spec(model: &str) -> Option<String> {
    let (provider, name) = model.split_once('/')?;
    matches!(provider, "openai" | "anthropic").then(|| format!("{provider}:{name}"))
}

/// Returns the SPEC of the model of a configuration key. `None`: the key has no model, or
/// `is_named`: `--llm` names another model, and a warning says so.
fn configured_model(
    key: &str,
    model: &Option<String>,
    is_named: bool,
    warnings: &mut Vec<String>,
) -> Result<Option<String>> {
    let Some(model) = model else { return Ok(None) };
    if is_named {
        warnings.push(format!("`{key}`: not used: `--llm` goes before it"));
        return Ok(None);
    }
    match spec(model) {
        Some(spec) => Ok(Some(spec)),
        None => Err(invalid(format!("`{key}` must have a provider: {KNOWN}, got `{model}`"))),
    }
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

/// Reads an API key from a variable of the environment; `None`: the variable is not set. A value
/// that is not UTF-8 is an error.
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
