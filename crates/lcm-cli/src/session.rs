//! Opens what a command needs: component, store, models, configuration, clock.
//!
//! In: the options of the command line. Out: [`Session`], which every command uses.

use std::{fs, path::Path, sync::Arc};

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

/// An open store with its conversation, clock and output format.
pub(crate) struct Session<'a> {
    pub(crate) lcm: Lcm,
    pub(crate) conversation: &'a str,
    pub(crate) clock: Clock,
    pub(crate) json: bool,
    pub(crate) cancel: Cancel,
}

impl<'a> Session<'a> {
    /// Opens the store that the options name, with the offline model.
    pub(crate) fn open(global: &'a Global) -> Result<Self> {
        Self::with_models(global, &Models::default())
    }

    /// Opens a store in memory, for commands that read only the configuration.
    pub(crate) fn without_store(global: &'a Global) -> Result<Self> {
        Self::over(global, &Models::default(), MEMORY)
    }

    /// Opens the store that the options name, with these models.
    pub(crate) fn with_models(global: &'a Global, models: &Models) -> Result<Self> {
        Self::over(global, models, &global.store)
    }

    fn over(global: &'a Global, models: &Models, place: &str) -> Result<Self> {
        let component = component(global.component.as_deref())?;
        if let Some(warning) = component.cache_warning() {
            eprintln!("lcm: warning: {warning}");
        }
        let chain = model::chain(&component, models)?;
        let recorder = global.record.as_deref().map(Recorder::create).transpose()?;
        let store = store(place)?;
        let lcm = Lcm::recorded(&component, store, Arc::new(chain), recorder);
        for warning in config::apply(&lcm, global.config.as_deref())? {
            eprintln!("lcm: warning: {warning}");
        }
        let cancel = interrupt::work();
        let clock = global.now.map_or(Clock::System, Clock::Fixed);
        Ok(Self { lcm, conversation: &global.conversation, clock, json: global.json, cancel })
    }

    /// Returns the time for the next call, in milliseconds since the Unix epoch.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now_ms()
    }
}

fn component(file: Option<&Path>) -> Result<Component> {
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
