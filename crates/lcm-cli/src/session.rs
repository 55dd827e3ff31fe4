//! Opens what a command needs: component, store, models, configuration, clock.
//!
//! In: the options of the command line. Out: [`Session`], which every command uses.

use std::{
    fs,
    path::Path,
    sync::{Arc, OnceLock},
};

use lcm_host::{
    Cancel, Clock, Code, Component, Error, Lcm, LoadOptions, Recorder, Result,
    store::{KeyValueStore, Memory, Sqlite},
};

use crate::{
    arguments::{Global, Models},
    config, interrupt, model,
};

/// Bytes of the built-in component.
pub(crate) const COMPONENT: &[u8] = include_bytes!(env!("LCM_COMPONENT"));

/// Value of `--store` that names a store in memory.
pub(crate) const MEMORY: &str = "memory:";

/// Path of the store if neither the options, the environment nor the configuration name a store.
const DEFAULT_STORE: &str = "./default.lcm.db";

/// An open store with its conversation, clock and output format.
pub(crate) struct Session<'a> {
    pub(crate) lcm: Lcm,
    pub(crate) conversation: &'a str,
    pub(crate) clock: Clock,
    pub(crate) json: bool,
    pub(crate) cancel: Cancel,
}

/// The store that this process opened; errors name it.
static OPENED: OnceLock<String> = OnceLock::new();

/// Returns the name of the store that the program opened; empty: none.
pub(crate) fn opened_store() -> &'static str {
    OPENED.get().map_or("", String::as_str)
}

impl<'a> Session<'a> {
    /// Opens the store that the options name, with the offline model.
    pub(crate) fn open(global: &'a Global) -> Result<Self> {
        Self::over(global, None, None)
    }

    /// Opens a store in memory, for commands that read only the configuration.
    pub(crate) fn without_store(global: &'a Global) -> Result<Self> {
        Self::over(global, None, Some(MEMORY))
    }

    /// Opens the store that the options name, with these models.
    pub(crate) fn with_models(global: &'a Global, models: &Models) -> Result<Self> {
        Self::over(global, Some(models), None)
    }

    /// Opens the store at `place`; `None`: the store that the options, the environment or the
    /// configuration name. Without `models` the chain is the offline model only.
    fn over(global: &'a Global, models: Option<&Models>, place: Option<&str>) -> Result<Self> {
        let component = component(global.component.as_deref())?;
        let settings = config::resolve_settings(&component, global.config.as_deref())?;
        let mut warnings = settings.lines();
        warnings.extend(component.cache_warning().map(str::to_owned));
        let chain = match models {
            Some(models) => model::build_chain(&component, models, &settings.host, &mut warnings)?,
            None => model::build_offline_chain(&component),
        };
        config::print_notes(&settings, &warnings);
        let recorder = global.record.as_deref().map(Recorder::create).transpose()?;
        let configured = settings.host.database_path.as_deref();
        let place = place.or(global.store.as_deref()).or(configured).unwrap_or(DEFAULT_STORE);
        OPENED.get_or_init(|| place.to_owned());
        let lcm = Lcm::recorded(&component, store(place)?, Arc::new(chain), recorder);
        lcm.configure(&settings.config)?;
        let cancel = interrupt::work();
        let clock = global.now.map_or(Clock::System, Clock::Fixed);
        Ok(Self { lcm, conversation: &global.conversation, clock, json: global.json, cancel })
    }

    /// Returns the time for the next call, in milliseconds since the Unix epoch.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now_ms()
    }
}

/// Loads the component that the options name, or the built-in one.
pub(crate) fn component(file: Option<&Path>) -> Result<Component> {
    let options = LoadOptions::default();
    let Some(file) = file else { return Component::load(COMPONENT, &options) };
    let named = |message: &str| {
        Error::new(Code::InvalidInput, format!("`--component {}`: {message}", file.display()))
    };
    let wasm = fs::read(file).map_err(|error| named(&error.to_string()))?;
    Component::load(&wasm, &options).map_err(|error| named(&error.message))
}

fn store(place: &str) -> Result<Box<dyn KeyValueStore>> {
    if place == MEMORY {
        return Ok(Box::new(Memory::new()));
    }
    if place.starts_with("postgres://") || place.starts_with("postgresql://") {
        return postgres(place);
    }
    if place.is_empty() {
        return Err(Error::new(Code::InvalidInput, "`--store` must not be empty"));
    }
    Ok(Box::new(Sqlite::open(Path::new(place))?))
}

#[cfg(feature = "postgres")]
fn postgres(url: &str) -> Result<Box<dyn KeyValueStore>> {
    Ok(Box::new(lcm_host::store::Postgres::open(url)?))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<Box<dyn KeyValueStore>> {
    let message = "`--store` must be a file or `memory:`: this build lacks the feature `postgres`";
    Err(Error::new(Code::Unsupported, message))
}
