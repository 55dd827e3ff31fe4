//! Builds handles from settings: the store, the models, the configuration, the limits.
//!
//! In: settings, each with a default, and the component. Out: a handle on one store, or a pool of
//! handles on the same data.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    completion::{Chain, CompletionProvider, Offline},
    component::{Component, Limits, LoadOptions},
    error::{Code, Error, Result},
    lcm::Lcm,
    pool::Pool,
    record::Recorder,
    settings::Settings,
    store::{KeyValueStore, Memory, Sqlite, StoreError},
    types::Purpose,
};

/// Path that names a store in memory, which ends with its handle.
const MEMORY: &str = "memory:";

type Opened = std::result::Result<Box<dyn KeyValueStore>, StoreError>;

/// How the builder gets the store of a handle.
enum Source {
    /// The store that the configuration names, else one in memory.
    Configured,
    Path(PathBuf),
    One(Box<dyn KeyValueStore>),
    Each(Box<dyn Fn() -> Opened + Send>),
}

/// A builder of handles.
///
/// ```
/// use lcm_host::{Lcm, Limits, completion::OpenAi};
///
/// let wasm = include_bytes!("../../../dist/lcm.wasm");
/// let lcm = Lcm::builder()
///     .path("memory:")
///     .model(OpenAi::parse("small@http://localhost:8080/v1", None)?)
///     .config(r#"{"custom_instructions": "Keep the numbers of tickets."}"#)
///     .limits(Limits { memory_bytes_max: 128 << 20, call_ms_max: 10_000 })
///     .open(wasm)?;
/// assert_eq!(lcm.version()?, env!("CARGO_PKG_VERSION"));
/// # Ok::<(), lcm_host::Error>(())
/// ```
pub struct Builder {
    source: Source,
    models: Vec<Arc<dyn CompletionProvider>>,
    by_purpose: Vec<(Purpose, Arc<dyn CompletionProvider>)>,
    retries: Option<u32>,
    config: Option<String>,
    environment: Vec<(String, String)>,
    on_note: Option<OnNote>,
    load: LoadOptions,
    recorder: Option<Recorder>,
}

/// Receives a line about a key of the configuration.
type OnNote = Box<dyn Fn(&str) + Send>;

impl std::fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Builder")
            .field("models", &self.models.len())
            .field("config", &self.config)
            .field("load", &self.load)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            source: Source::Configured,
            models: Vec::new(),
            by_purpose: Vec::new(),
            retries: None,
            config: None,
            environment: Vec::new(),
            on_note: None,
            load: LoadOptions::default(),
            recorder: None,
        }
    }

    /// Sets the path of the SQLite file, which the first commit creates if absent. `memory:` names
    /// a store in memory, which ends with its handle. The default is `database_path` of the
    /// configuration, else `memory:`.
    #[must_use]
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.source = Source::Path(path.into());
        self
    }

    /// Sets a custom store for one handle.
    #[must_use]
    pub fn store(mut self, store: impl KeyValueStore + 'static) -> Self {
        self.source = Source::One(Box::new(store));
        self
    }

    /// Sets a function that opens a custom store over the same data for each handle of a pool.
    /// [`store::Shared`](crate::store::Shared) shares a store that can have only one owner.
    #[must_use]
    pub fn stores<S: KeyValueStore + 'static>(
        mut self,
        make: impl Fn() -> std::result::Result<S, StoreError> + Send + 'static,
    ) -> Self {
        self.source = Source::Each(Box::new(move || Ok(Box::new(make()?))));
        self
    }

    /// Adds a model. The models are asked in the order in which they were added; [`Chain`] says
    /// after which answers the next is asked. Without any model the component makes summaries
    /// itself, from extracts.
    #[must_use]
    pub fn model(mut self, model: impl CompletionProvider + 'static) -> Self {
        self.models.push(Arc::new(model));
        self
    }

    /// Adds a model for one purpose; the general models are then not asked for that purpose.
    #[must_use]
    pub fn model_for(mut self, purpose: Purpose, model: impl CompletionProvider + 'static) -> Self {
        self.by_purpose.push((purpose, Arc::new(model)));
        self
    }

    /// Sets the retries of a model after its first attempt; the default is 2. [`Chain`] says after
    /// which failures there is no retry.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Sets the environment, name and text of variables, such as `std::env::vars()`. Its `LCM_`
    /// variables configure the engine where the configuration does not; by default the environment
    /// is empty.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = variables.into_iter().collect();
        self
    }

    /// Sets a function that receives a line for each key of the configuration without effect, or
    /// with a note, when a handle or a pool is opened.
    #[must_use]
    pub fn on_note(mut self, on_note: impl Fn(&str) + Send + 'static) -> Self {
        self.on_note = Some(Box::new(on_note));
        self
    }

    /// Sets the configuration, a JSON object.
    #[must_use]
    pub fn config(mut self, json: impl Into<String>) -> Self {
        self.config = Some(json.into());
        self
    }

    /// Sets the limits of an instance for [`Builder::open`] and [`Builder::pool`].
    /// [`Builder::open_with`] uses the limits with which the component was loaded.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.load.limits = limits;
        self
    }

    /// Sets the folder of compiled components; `None`: no cache; the default is the user's cache
    /// folder.
    #[must_use]
    pub fn cache_dir(mut self, dir: Option<PathBuf>) -> Self {
        self.load.cache_dir = dir;
        self
    }

    /// Sets the log to which calls are written, except those of the interface `drive`; the default
    /// is no log.
    #[must_use]
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Opens a handle; `wasm` has the bytes of `lcm.wasm`.
    ///
    /// # Errors
    ///
    /// - `internal`: `wasm` is not a component of this interface.
    /// - `invalid-input`: the configuration is invalid.
    /// - `unsupported`: the file is read-only, no store, or of another format.
    /// - `store-unavailable`: the store is locked or unreadable.
    pub fn open(self, wasm: &[u8]) -> Result<Lcm> {
        let component = Component::load(wasm, &self.load)?;
        self.open_with(&component)
    }

    /// Opens a handle with a loaded component, so that a program with several stores compiles the
    /// component once.
    ///
    /// # Errors
    ///
    /// All errors of [`Builder::open`]; `internal` only if an instance of the component cannot be
    /// made.
    pub fn open_with(mut self, component: &Component) -> Result<Lcm> {
        let settings = self.resolve(component)?;
        let model = self.chain(component);
        self.handle(component, &model, settings.as_ref())
    }

    /// Opens a pool of `handles` handles on the same data; 0 counts as 1. Each handle has its own
    /// instance, and opens its own store by [`Builder::path`] or [`Builder::stores`].
    ///
    /// # Errors
    ///
    /// - `invalid-input`: several handles, but the store is `memory:` or of [`Builder::store`].
    /// - errors of [`Builder::open`].
    pub fn pool(mut self, handles: usize, wasm: &[u8]) -> Result<Pool> {
        let component = Component::load(wasm, &self.load)?;
        let settings = self.resolve(&component)?;
        let alone = match &self.source {
            Source::Configured => true,
            Source::Path(path) => path == Path::new(MEMORY),
            Source::One(_) => true,
            Source::Each(_) => false,
        };
        if alone && handles > 1 {
            let message = "a pool of several handles must have the `path` of a file, or `stores`";
            return Err(Error::new(Code::InvalidInput, message));
        }
        let model = self.chain(&component);
        let settings = settings.as_ref();
        let first = self.handle(&component, &model, settings)?;
        let others = (1..handles).map(|_| self.handle(&component, &model, settings));
        Ok(Pool::new(first, others.collect::<Result<_>>()?))
    }

    /// Resolves the configuration and follows what concerns the store and the models; `None`: there
    /// is no configuration.
    fn resolve(&mut self, component: &Component) -> Result<Option<Settings>> {
        if self.config.is_none() && self.environment.is_empty() {
            return Ok(None);
        }
        let config = self.config.as_deref().unwrap_or("{}");
        let settings = Settings::resolve(component, config, self.environment.clone())?;
        settings.ensure_models(!self.models.is_empty() || !self.by_purpose.is_empty())?;
        let mut lines = settings.lines();
        let host = &settings.host;
        if let Some(path) = &host.database_path {
            if matches!(self.source, Source::Configured) {
                self.source = Source::Path(path.into());
            } else {
                lines.push("`database_path`: not used, the builder has a store".to_owned());
            }
        }
        let own = "not followed: each model of the builder has its own";
        if host.timeout_ms.is_some() {
            lines.push(format!("`timeout_ms`: {own} timeout"));
        }
        let named = [
            ("summary_model", host.summary_model.is_some()),
            ("expansion_model", host.expansion_model.is_some()),
            ("fallback_models", !host.fallback_models.is_empty()),
        ];
        for (key, _) in named.into_iter().filter(|(_, is_given)| *is_given) {
            lines.push(format!("`{key}`: {own} name, unless it reads that of the request"));
        }
        if let Some(on_note) = &self.on_note {
            lines.iter().for_each(|line| on_note(line));
        }
        Ok(Some(settings))
    }

    /// Returns the chain of the given models; the offline model stands in for absent general
    /// models.
    fn chain(&self, component: &Component) -> Arc<dyn CompletionProvider> {
        let mut models = self.models.clone();
        if models.is_empty() {
            models.push(Arc::new(Offline::new(component)));
        }
        let mut chain = Chain::new(models).with_judge(component);
        for (purpose, model) in &self.by_purpose {
            chain = chain.with_purpose(*purpose, Arc::clone(model));
        }
        Arc::new(self.retries.map_or(chain.clone(), |retries| chain.with_retries(retries)))
    }

    fn handle(
        &mut self,
        component: &Component,
        model: &Arc<dyn CompletionProvider>,
        settings: Option<&Settings>,
    ) -> Result<Lcm> {
        let store = match std::mem::replace(&mut self.source, Source::Configured) {
            Source::Configured => Box::new(Memory::new()),
            Source::One(store) => store,
            Source::Each(make) => {
                let made = make();
                self.source = Source::Each(make);
                made?
            }
            Source::Path(path) => {
                let opened = open_path(&path);
                self.source = Source::Path(path);
                opened?
            }
        };
        let lcm = Lcm::recorded(component, store, Arc::clone(model), self.recorder.clone());
        if let Some(settings) = settings {
            lcm.configure(&settings.config)?;
        }
        Ok(lcm)
    }
}

fn open_path(path: &Path) -> Opened {
    if path == Path::new(MEMORY) {
        return Ok(Box::new(Memory::new()));
    }
    Ok(Box::new(Sqlite::open(path)?))
}
