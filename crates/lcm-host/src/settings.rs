//! Configurations from a JSON object and environment variables, as the component resolves them.
//!
//! In: what a program hands over, and its environment. Out: [`Settings`]: the configuration of the
//! engine, what the host follows, and a line for each key without effect.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    completion::Offline,
    component::Component,
    error::{Code, Error, Result},
    lcm::Lcm,
    shapes::{ConfigurationReport, HostSettings},
    store::Memory,
    time_zone,
};

/// Prefix of the variables that may configure the engine; no other variable reaches the component.
const PREFIX: &str = "LCM_";

/// A resolved configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The configuration of the engine, for [`Lcm::configure`].
    pub config: String,
    /// What the host follows.
    pub host: HostSettings,
    /// How each key and variable was treated.
    pub report: ConfigurationReport,
}

/// The answer of `setup.resolve`. The configuration has keys under any of their names.
#[derive(Deserialize)]
struct Resolved {
    config: Map<String, Value>,
    host: HostSettings,
    report: ConfigurationReport,
}

impl Settings {
    /// Resolves a configuration, a JSON object, with environment variables. A key of the object
    /// goes before a variable of the same key.
    ///
    /// ```
    /// use lcm_host::{Component, LoadOptions, Settings};
    ///
    /// let wasm = include_bytes!("../../../dist/lcm.wasm");
    /// let component = Component::load(wasm, &LoadOptions::default())?;
    /// let variables = [("LCM_SUMMARY_TIMEOUT_MS".to_owned(), "90s".to_owned())];
    /// let settings = Settings::resolve(&component, "{}", variables)?;
    /// assert_eq!(settings.host.timeout_ms, Some(90_000));
    /// # Ok::<(), lcm_host::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid-input`: no object, a value out of bounds, or an unknown time zone; the message
    /// names the key or the variable.
    pub fn resolve(
        component: &Component,
        config_json: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self> {
        let ours = variables.into_iter().filter(|(name, _)| name.starts_with(PREFIX));
        let variables: Map<String, Value> =
            ours.map(|(name, text)| (name, Value::String(text))).collect();
        let offline = std::sync::Arc::new(Offline::new(component));
        let lcm = Lcm::new(component, Box::new(Memory::new()), offline);
        let arguments = json!({
            "config_json": config_json,
            "variables_json": Value::Object(variables).to_string(),
        });
        let answer = lcm.call_json("setup.resolve", &arguments)?;
        let text = answer.as_str().unwrap_or_default();
        let Resolved { mut config, host, report } =
            serde_json::from_str(text).map_err(|error| {
                Error::internal(format!("`setup.resolve` answered unexpected JSON: {error}"))
            })?;
        if let Some(zone) = &host.timezone
            && !config.contains_key("time_offsets")
        {
            let offsets = time_zone::list_offsets(zone)?;
            config.insert("time_offsets".to_owned(), json!(offsets));
        }
        Ok(Self { config: Value::Object(config).to_string(), host, report })
    }

    /// Returns a line for each key without effect, or whose effect needs a word.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let notes = self.report.notes.iter();
        notes.map(|note| format!("`{}`: {}", note.key, note.note)).collect()
    }

    /// Refuses a configuration that names a model where there is none to ask.
    pub(crate) fn ensure_models(&self, has_model: bool) -> Result<()> {
        let host = &self.host;
        let models =
            [("summary_model", &host.summary_model), ("expansion_model", &host.expansion_model)];
        for (key, model) in models {
            if let (Some(model), false) = (model, has_model) {
                let message = format!("`{key}` asks for `{model}`, so the builder needs a `model`");
                return Err(Error::new(Code::InvalidInput, message));
            }
        }
        Ok(())
    }
}
