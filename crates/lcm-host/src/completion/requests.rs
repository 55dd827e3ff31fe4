//! Completion requests as the component writes them in JSON.
//!
//! In: JSON of a plan or of a question. Out: the requests that a provider of completions takes.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    error::{Error, Result},
    json,
    types::{CompletionRequest, Level},
};

/// A completion request as the component writes it in JSON.
#[derive(Deserialize)]
pub(crate) struct WrittenRequest {
    id: String,
    purpose: String,
    level: String,
    system: String,
    prompt: String,
    input_tokens: u32,
    output_tokens_max: u32,
    temperature_permille: u32,
    model: Option<String>,
}

impl WrittenRequest {
    /// Returns the request as a provider of completions takes it.
    ///
    /// # Errors
    ///
    /// `internal`: no purpose or level has the name.
    pub(crate) fn into_request(self) -> Result<CompletionRequest> {
        let unknown =
            || Error::internal("the component requested a completion of unknown purpose or level");
        Ok(CompletionRequest {
            id: self.id,
            purpose: super::purpose(&self.purpose).ok_or_else(unknown)?,
            level: find_level(&self.level).ok_or_else(unknown)?,
            system: self.system,
            prompt: self.prompt,
            input_tokens: self.input_tokens,
            output_tokens_max: self.output_tokens_max,
            temperature_permille: self.temperature_permille,
            model: self.model,
        })
    }
}

/// Reads a JSON list of completion requests, which `compaction.plan` or `apply` returned.
///
/// # Errors
///
/// `internal`: a request has another shape.
pub(super) fn read_requests(requests: &Value) -> Result<Vec<CompletionRequest>> {
    let requests: Vec<WrittenRequest> = json::read("compaction.plan", &requests.to_string())?;
    requests.into_iter().map(WrittenRequest::into_request).collect()
}

/// Returns the level of this name; `None`: no level has this name.
fn find_level(name: &str) -> Option<Level> {
    let levels = [Level::Normal, Level::Aggressive, Level::Fallback];
    levels.into_iter().find(|level| crate::record::level_name(*level) == name)
}
