//! Settings that only a host can follow, because they concern stores, timers and models.
//!
//! Input: values of the configuration. Output: [`HostSettings`], and their JSON for a host.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::engine_config::Config;
use crate::base::json::{self, JsonFields, JsonKind, JsonMember, JsonWriter};

/// Most fallback models.
const MODELS_MAX: usize = 16;

/// The settings of a host. `None`: not given.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostSettings {
    /// Path of the store, if the caller names no store.
    pub database_path: Option<String>,
    /// Models that are asked when the model of a request has failed, in order, each
    /// `PROVIDER/MODEL` or a model alone.
    pub fallback_models: Vec<String>,
    /// Longest time for one answer of a model, in milliseconds.
    pub timeout_ms: Option<u32>,
    /// Name of the time zone, from which the host makes `time_offsets`.
    pub timezone: Option<String>,
}

impl HostSettings {
    /// Renders the settings as JSON, with the models that requests ask for.
    pub(super) fn to_json(&self, config: &Config) -> JsonWriter {
        let mut out = JsonWriter::new_object();
        out.add_optional_text("database_path", self.database_path.as_deref());
        out.add_optional_text("expansion_model", config.expansion_model.as_deref());
        out.add_texts("fallback_models", &self.fallback_models);
        out.add_optional_text("summary_model", config.summary_model.as_deref());
        out.add_optional_number("timeout_ms", self.timeout_ms.map(Into::into));
        out.add_optional_text("timezone", self.timezone.as_deref());
        out
    }
}

/// Joins the names of a provider and of a model; a model that names its provider keeps it.
pub(super) fn join_model(provider: &str, model: &str) -> String {
    if provider.is_empty() || model.contains('/') {
        return model.to_string();
    }
    format!("{provider}/{model}")
}

/// Reads fallback models: texts, or objects with `provider` and `model`. The error is the rule that
/// the value breaks.
pub(super) fn read_models(raw: &str, value: &JsonMember) -> Result<Vec<String>, String> {
    const RULE: &str = "an array of at most 16 models, each `PROVIDER/MODEL` or an object with \
                        `provider` and `model`";
    let elements = (value.kind == JsonKind::Array).then(|| json::list_elements(raw, value.value));
    let elements = elements.filter(|list| list.len() <= MODELS_MAX).ok_or(RULE)?;
    let mut models = Vec::new();
    for element in elements {
        let model = match element.kind {
            JsonKind::String => json::text(raw, element.span).trim().to_string(),
            JsonKind::Object => {
                let mut fields = JsonFields::new(raw, json::list_members(raw, element.span));
                let provider = fields.take_optional_text("provider").unwrap_or_default();
                let model = fields.take_text("model");
                fields.finish("model").map_err(|error| format!("{RULE}; {}", error.message))?;
                join_model(provider.trim(), model.trim())
            }
            _ => return Err(RULE.into()),
        };
        if model.is_empty() || model.starts_with('/') || model.ends_with('/') {
            return Err(format!("{RULE}; `{model}` is none"));
        }
        models.push(model);
    }
    Ok(models)
}
