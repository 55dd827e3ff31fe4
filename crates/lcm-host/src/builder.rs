//! Opening a store: its path or the store itself, the models, the configuration, the limits.
//!
//! In: what a program wants to change; everything has a default. Out: a handle, or a pool of them.

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
    store::{KeyValueStore, Memory, Sqlite, StoreError},
    types::Purpose,
};

/// The store that is gone with its handle.
const MEMORY: &str = "memory:";

type Opened = std::result::Result<Box<dyn KeyValueStore>, StoreError>;

/// Where the store of each handle comes from.
enum Source {
    Path(PathBuf),
    One(Box<dyn KeyValueStore>),
    Each(Box<dyn Fn() -> Opened + Send>),
}

/// What [`Lcm::builder`] makes a handle of.
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
    load: LoadOptions,
    recorder: Option<Recorder>,
}

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
            source: Source::Path(MEMORY.into()),
            models: Vec::new(),
            by_purpose: Vec::new(),
            retries: None,
            config: None,
            load: LoadOptions::default(),
            recorder: None,
        }
    }

    /// The SQLite file at this path, made by the first commit; `memory:` is a store that is gone
    /// with its handle, and the default.
    #[must_use]
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.source = Source::Path(path.into());
        self
    }

    /// A store of your own, for one handle.
    #[must_use]
    pub fn store(mut self, store: impl KeyValueStore + 'static) -> Self {
        self.source = Source::One(Box::new(store));
        self
    }

    /// Stores of your own over the same data: called once for every handle of a pool. Of a store
    /// that can have one owner only, [`store::Shared`](crate::store::Shared) makes many.
    #[must_use]
    pub fn stores<S: KeyValueStore + 'static>(
        mut self,
        make: impl Fn() -> std::result::Result<S, StoreError> + Send + 'static,
    ) -> Self {
        self.source = Source::Each(Box::new(move || Ok(Box::new(make()?))));
        self
    }

    /// A model; given again, one to ask when those before it fail. Without one, summaries are
    /// made offline, without a key.
    #[must_use]
    pub fn model(mut self, model: impl CompletionProvider + 'static) -> Self {
        self.models.push(Arc::new(model));
        self
    }

    /// A model for one purpose, which the others are then not asked for; given again likewise.
    #[must_use]
    pub fn model_for(mut self, purpose: Purpose, model: impl CompletionProvider + 'static) -> Self {
        self.by_purpose.push((purpose, Arc::new(model)));
        self
    }

    /// How often a model that fails is asked again before the next one is; absent: twice.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// The configuration, a JSON object.
    #[must_use]
    pub fn config(mut self, json: impl Into<String>) -> Self {
        self.config = Some(json.into());
        self
    }

    /// What an instance may use. Counts for [`Builder::open`] and [`Builder::pool`]: a component
    /// that is loaded already has its own.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.load.limits = limits;
        self
    }

    /// Where compiled components are kept; `None`: nowhere; absent: the user's cache folder.
    #[must_use]
    pub fn cache_dir(mut self, dir: Option<PathBuf>) -> Self {
        self.load.cache_dir = dir;
        self
    }

    /// A log of every call.
    #[must_use]
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// A handle over these bytes of `lcm.wasm`.
    ///
    /// # Errors
    ///
    /// - `internal`: the bytes are no component of this interface.
    /// - `invalid-input`: the configuration.
    /// - `unsupported`, `store-unavailable`: the file is no store that can be written.
    pub fn open(self, wasm: &[u8]) -> Result<Lcm> {
        let component = Component::load(wasm, &self.load)?;
        self.open_with(&component)
    }

    /// As [`Builder::open`], over a component that is loaded already: a program with several
    /// stores compiles it once.
    ///
    /// # Errors
    ///
    /// As [`Builder::open`].
    pub fn open_with(mut self, component: &Component) -> Result<Lcm> {
        let model = self.chain(component);
        self.handle(component, &model)
    }

    /// A pool of this many handles, each with an instance and a store of its own; 0 counts as 1.
    ///
    /// # Errors
    ///
    /// - `invalid-input`: there is more than one handle and one store, or one in memory, which the
    ///   others would not see.
    /// - else as [`Builder::open`].
    pub fn pool(mut self, handles: usize, wasm: &[u8]) -> Result<Pool> {
        let alone = match &self.source {
            Source::Path(path) => path == Path::new(MEMORY),
            Source::One(_) => true,
            Source::Each(_) => false,
        };
        if alone && handles > 1 {
            let message = "a pool needs a path or `stores`: one store has one handle";
            return Err(Error::new(Code::InvalidInput, message));
        }
        let component = Component::load(wasm, &self.load)?;
        let model = self.chain(&component);
        let first = self.handle(&component, &model)?;
        let others = (1..handles).map(|_| self.handle(&component, &model));
        Ok(Pool::new(first, others.collect::<Result<_>>()?))
    }

    /// The models that were given, or the offline one.
    fn chain(&self, component: &Component) -> Arc<dyn CompletionProvider> {
        let mut models = self.models.clone();
        if models.is_empty() {
            models.push(Arc::new(Offline::new(component)));
        }
        let mut chain = Chain::new(models);
        for (purpose, model) in &self.by_purpose {
            chain = chain.with_purpose(*purpose, Arc::clone(model));
        }
        Arc::new(self.retries.map_or(chain.clone(), |retries| chain.with_retries(retries)))
    }

    fn handle(
        &mut self,
        component: &Component,
        model: &Arc<dyn CompletionProvider>,
    ) -> Result<Lcm> {
        let memory = Source::Path(MEMORY.into());
        let store = match std::mem::replace(&mut self.source, memory) {
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
        if let Some(config) = &self.config {
            lcm.configure(config)?;
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
