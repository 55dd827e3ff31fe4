//! A host: a store, an instance of the engine, its configuration and its model.
//!
//! In: calls by name. Out: answers. The host follows the rules that every host package follows:
//! a new instance after an unknown outcome, and the `would-block` discipline when its store is
//! asynchronous.

use lcm_core::{Engine, Error, ErrorCode};

use crate::{
    facade::{self, Answer, Instance, Misuse},
    fault_store::{Fault, FaultStore},
    interleave::InterleavingStore,
    json::Json,
    model_store::ModelStore,
    plant::{self, Plant, PlantedStore},
    scripted_model::ScriptedModel,
    would_block_store::WouldBlockStore,
};

/// Most times that a call is repeated after `would-block` before the host gives up.
const BLOCKED_ROUNDS_MAX: u32 = 2000;

/// How the store of a host answers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StoreMode {
    /// Every read is answered at once.
    #[default]
    Plain,
    /// The first read of each key or page in a call is answered with `would-block`.
    WouldBlock,
}

/// A failure for the next calls: operation number `at`, counted from the next call on.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFault {
    /// Number of the operation, from 1.
    pub at: u64,
    /// How the operation fails.
    pub fault: Fault,
}

/// A call that succeeded.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// `interface.function`.
    pub name: String,
    /// The arguments, in the format of the golden vectors.
    pub args: Json,
    /// The result.
    pub result: Json,
}

/// A host under test.
#[derive(Debug, Default)]
pub struct Host {
    /// The store of the host.
    pub store: ModelStore,
    /// The model that `compaction.run` and `drive` call.
    pub model: ScriptedModel,
    /// A planted bug in the layers around the engine.
    pub plant: Plant,
    /// Whether every call gets a new instance.
    pub cold: bool,
    /// Calls that succeeded; `None`: calls are not recorded.
    pub recorded: Option<Vec<RecordedCall>>,
    engine: Engine,
    config: Option<Json>,
    mode: StoreMode,
    fault: Option<PlannedFault>,
    fault_fired: bool,
}

impl Host {
    /// Creates a host with an empty store.
    ///
    /// # Errors
    ///
    /// The engine refuses the configuration.
    pub fn new(config: Option<Json>, mode: StoreMode) -> Result<Self, Error> {
        let mut host = Self { config, mode, ..Self::default() };
        host.restart()?;
        Ok(host)
    }

    /// Replaces the instance by a new instance with the same configuration.
    ///
    /// # Errors
    ///
    /// The engine refuses the configuration.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.engine = Engine::new();
        if let Some(config) = &self.config {
            self.engine.configure(&config.compact())?;
        }
        Ok(())
    }

    /// Replaces the instance by a new instance with another configuration.
    ///
    /// # Errors
    ///
    /// The engine refuses the configuration.
    pub fn restart_with(&mut self, config: Json) -> Result<(), Error> {
        self.config = Some(config);
        self.restart()
    }

    /// Plans a failure; [`Host::fault_fired`] returns whether the failure has happened.
    pub fn plan_fault(&mut self, at: u64, fault: Fault) {
        self.fault = Some(PlannedFault { at, fault });
        self.fault_fired = false;
    }

    /// Returns whether the planned failure has happened. A failure that has not happened stays
    /// planned for the next call; the operations made so far are subtracted from its number.
    #[must_use]
    pub const fn fault_fired(&self) -> bool {
        self.fault_fired
    }

    /// Runs `look` with the host and without a planned failure. The failure stays planned for later
    /// calls.
    pub fn undisturbed<T>(&mut self, look: impl FnOnce(&mut Self) -> T) -> T {
        let planned = self.fault.take();
        let seen = look(self);
        self.fault = planned;
        seen
    }

    /// Removes the planned failure.
    pub fn clear_fault(&mut self) {
        self.fault = None;
        self.fault_fired = false;
    }

    /// Calls a function of the engine. With an asynchronous store, the call is repeated until its
    /// answer is not `would-block`.
    ///
    /// # Errors
    ///
    /// [`Misuse`]: the call violates the vector format, no scripted completion fits a request, or
    /// the answer stays `would-block`.
    pub fn call(&mut self, name: &str, args: &Json) -> Result<Answer, Misuse> {
        if self.cold {
            self.restart().map_err(|error| error.to_string())?;
        }
        self.store.begin_call();
        let mut answer = match self.mode {
            StoreMode::Plain => self.call_plain(name, args)?,
            StoreMode::WouldBlock => self.call_blocking(name, args)?,
        };
        if self.plant == Plant::DoublesItem
            && let ("context.assemble", Ok(assembled)) = (name, &mut answer)
        {
            plant::double_item(assembled);
        }
        if self.model.missing() {
            return Err("no scripted completion fits".to_owned());
        }
        if let (Some(recorded), Ok(result)) = (&mut self.recorded, &answer) {
            let (args, result) = (args.clone(), result.clone());
            recorded.push(RecordedCall { name: name.to_owned(), args, result });
        }
        Ok(answer)
    }

    /// Calls a function as [`Host::call`] does, for callers that know that the call is well formed.
    ///
    /// # Errors
    ///
    /// Errors of the engine.
    ///
    /// # Panics
    ///
    /// [`Host::call`] returned a [`Misuse`].
    pub fn ask(&mut self, name: &str, args: &Json) -> Answer {
        self.call(name, args).unwrap_or_else(|misuse| panic!("{name}: {misuse}"))
    }

    /// Returns the digest of the store as the engine computes it, over all pages.
    ///
    /// # Errors
    ///
    /// A page failed, or the pages do not end.
    ///
    /// # Panics
    ///
    /// A page is no JSON.
    pub fn read_digest(&mut self) -> Result<String, String> {
        let mut args = Json::Null;
        for _ in 0..1_000 {
            let page = self.ask("admin.digest", &args).map_err(|error| error.to_string())?;
            let page = Json::of(page.as_str().unwrap_or_default());
            if let Some(sha256) = page.field("sha256").and_then(Json::as_str) {
                return Ok(sha256.to_owned());
            }
            args = Json::object([("cursor", Json::string(page.text("cursor")))]);
        }
        Err("`admin.digest` does not end".to_owned())
    }

    /// Calls a function as [`Host::ask`] does, with arguments as JSON text. An answer that is JSON
    /// text is returned as the JSON value.
    ///
    /// # Errors
    ///
    /// Errors of the engine.
    ///
    /// # Panics
    ///
    /// [`Host::call`] returned a [`Misuse`], `args` is no JSON, or the answer is a string that is
    /// no JSON.
    pub fn told(&mut self, name: &str, args: &str) -> Answer {
        let answer = self.ask(name, &Json::of(args))?;
        Ok(answer.as_str().map_or_else(|| answer.clone(), Json::of))
    }

    /// Calls a function. Before its store operation number `at`, another instance makes the whole
    /// call `other`. Also returns whether the other call was made.
    ///
    /// # Panics
    ///
    /// One of the calls violates the vector format, or the other instance's call fails.
    pub fn ask_interleaved(
        &mut self,
        name: &str,
        args: &Json,
        at: u64,
        (other_name, other_args): (&str, &Json),
    ) -> (Answer, bool) {
        let (plant, config) = (self.plant, self.config.clone());
        let other = |store: &mut ModelStore| {
            let mut host = Self { config, plant, ..Self::default() };
            host.store = std::mem::take(store);
            host.restart().expect("the configuration of the first instance");
            let answer = host.ask(other_name, other_args);
            answer.unwrap_or_else(|error| panic!("the other {other_name}: {error}"));
            *store = host.store;
        };
        if self.cold {
            self.restart().expect("the configuration was accepted before");
        }
        self.store.begin_call();
        let mut interleaving = InterleavingStore::new(&mut self.store, at, other);
        let mut planted = PlantedStore::new(&mut interleaving, plant);
        let (engine, model) = (&mut self.engine, &mut self.model);
        let answer = facade::call(&mut Instance { engine, store: &mut planted, model }, name, args)
            .unwrap_or_else(|misuse| panic!("{name}: {misuse}"));
        let interleaved = interleaving.interleaved();
        (answer, interleaved)
    }

    fn call_plain(&mut self, name: &str, args: &Json) -> Result<Answer, Misuse> {
        let mut planted = PlantedStore::new(&mut self.store, self.plant);
        let (engine, model) = (&mut self.engine, &mut self.model);
        let Some(planned) = self.fault else {
            return facade::call(&mut Instance { engine, store: &mut planted, model }, name, args);
        };
        let mut faulty = FaultStore::new(&mut planted, planned.at, planned.fault);
        let answer = facade::call(&mut Instance { engine, store: &mut faulty, model }, name, args)?;
        let (operations, fired) = (faulty.operations(), faulty.fired());
        self.fault =
            (!fired).then(|| PlannedFault { at: planned.at - operations, fault: planned.fault });
        if fired {
            self.fault_fired = true;
            // The outcome of the operation is unknown, so the cache of the instance may be wrong.
            self.restart().map_err(|error| error.to_string())?;
        }
        Ok(answer)
    }

    fn call_blocking(&mut self, name: &str, args: &Json) -> Result<Answer, Misuse> {
        let mut planted = PlantedStore::new(&mut self.store, self.plant);
        let mut store = WouldBlockStore::new(&mut planted);
        store.begin_call();
        let mut answer = Err(Error::new(ErrorCode::WouldBlock, "not called yet"));
        for _ in 0..BLOCKED_ROUNDS_MAX {
            let blocked_before = store.blocked();
            let instance = &mut Instance {
                engine: &mut self.engine,
                store: &mut store,
                model: &mut self.model,
            };
            answer = facade::call(instance, name, args)?;
            let would_block = matches!(&answer, Err(error) if error.code == ErrorCode::WouldBlock);
            if would_block != (store.blocked() > blocked_before) {
                return Err(format!("{name} does not pass `would-block` on"));
            }
            if !would_block {
                break;
            }
            store.fetch().map_err(|error| error.to_string())?;
        }
        let finished = store.finish_call();
        match (answer, finished) {
            (Err(error), _) if error.code == ErrorCode::WouldBlock => {
                Err(format!("{name} still answers `would-block`"))
            }
            (Ok(_), Err(error)) => {
                self.restart().map_err(|error| error.to_string())?;
                Ok(Err(error))
            }
            (answer, _) => Ok(answer),
        }
    }
}
