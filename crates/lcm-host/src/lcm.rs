//! [`Lcm`], the handle on one store: owns an instance of the component and replaces a failed one.
//!
//! In: calls of exported functions, from any thread. Out: their results. Calls run one after
//! another; a call that ends with `conflict` is repeated. All other modules call the component
//! through [`Lcm::call`] and [`Lcm::call_known`].

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    bindings::types,
    builder::Builder,
    completion::CompletionProvider,
    component::Component,
    error::{Code, Error, Result},
    events,
    instance::{Commit, Exports, HostState, Instance},
    json,
    memory::InstanceMemory,
    record::Recorder,
    store::KeyValueStore,
};

/// Most repeats of a call after conflicts. Each conflict is a commit of another writer, so the
/// number bounds how often other writers can be first.
pub(crate) const CONFLICT_RETRIES_MAX: u32 = 256;

/// A handle on one store: an instance of the component with its store and its model. Clones share
/// all three.
///
/// Every method may be called from any thread. `now` is the time in milliseconds since the Unix
/// epoch. If `now` is before the last commit of the conversation, the time of that commit counts.
#[derive(Clone)]
pub struct Lcm {
    shared: Arc<SharedEngine>,
}

struct SharedEngine {
    component: Component,
    model: Arc<dyn CompletionProvider>,
    recorder: Option<Recorder>,
    slot: Mutex<Slot>,
    /// Id of the process that opened the store.
    process: u32,
}

struct Slot {
    /// Configuration of every new instance; `None`: the defaults of the component.
    config: Option<String>,
    place: Place,
}

/// What a handle has between two calls.
enum Place {
    /// An instance, which has the host state.
    Running(Box<Instance>),
    /// The host state only; the next call makes an instance.
    Parked(Box<HostState>),
    /// Nothing, because a store or model panicked inside a call.
    Lost,
}

/// The error of a failed call, and what became of its commit.
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) commit: Commit,
}

/// The result of a call whose failure says what became of the commit.
pub(crate) type CallResult<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Returns whether the call failed in its commit, which may be written or not.
    pub(crate) fn is_unknown(&self) -> bool {
        self.commit == Commit::Unknown && self.error.code == Code::StoreUnavailable
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, commit: Commit::None }
    }
}

impl std::fmt::Debug for Lcm {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Lcm")
            .field("component", &self.shared.component)
            .finish_non_exhaustive()
    }
}

impl Lcm {
    /// Opens the SQLite file at this path, or `memory:`, with the offline model. `wasm` has the
    /// bytes of `lcm.wasm`.
    ///
    /// # Errors
    ///
    /// Errors of [`Builder::open`].
    pub fn open(path: impl Into<PathBuf>, wasm: &[u8]) -> Result<Self> {
        Self::builder().path(path).open(wasm)
    }

    /// Returns a builder of handles, with a default for everything.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Creates a handle on `store`, without a call of the component.
    #[must_use]
    pub fn new(
        component: &Component,
        store: Box<dyn KeyValueStore>,
        model: Arc<dyn CompletionProvider>,
    ) -> Self {
        Self::recorded(component, store, model, None)
    }

    /// Creates a handle on `store`, without a call of the component. With a `recorder`, every call
    /// except those of the interface `drive` is written to the log.
    #[must_use]
    pub fn recorded(
        component: &Component,
        store: Box<dyn KeyValueStore>,
        model: Arc<dyn CompletionProvider>,
        recorder: Option<Recorder>,
    ) -> Self {
        let state = HostState {
            kv: store,
            model: Arc::clone(&model),
            recorder: recorder.clone(),
            memory: InstanceMemory::default(),
            commit: Commit::None,
            model_ms: 0,
        };
        let slot = Slot { config: None, place: Place::Parked(Box::new(state)) };
        let component = component.clone();
        let (slot, process) = (Mutex::new(slot), std::process::id());
        Self { shared: Arc::new(SharedEngine { component, model, recorder, slot, process }) }
    }

    /// Sets the configuration of this handle, a JSON object; a missing key has its default. Returns
    /// a [`ConfigurationReport`](crate::shapes::ConfigurationReport) as JSON.
    ///
    /// # Errors
    ///
    /// `invalid-input`: not an object, or a value out of bounds; the old configuration stays.
    pub fn configure(&self, config_json: &str) -> Result<String> {
        self.park();
        let before = self.slot().config.replace(config_json.to_owned());
        // The call below makes an instance, which is configured at its start. This second call of
        // `configure` is for the report.
        let report = self.call(
            "setup.configure",
            || json!({"config_json": config_json}),
            |bindings, store| bindings.lcm_engine_setup().call_configure(store, config_json),
        );
        if report.is_err() {
            self.park();
            self.slot().config = before;
        }
        report
    }

    /// Returns the bytes of the store on disk. `None`: the store does not report them, or a panic
    /// of the store or model ended the handle.
    #[must_use]
    pub fn bytes_on_disk(&self) -> Option<u64> {
        match &self.slot().place {
            Place::Running(instance) => instance.store.data().kv.bytes_on_disk(),
            Place::Parked(state) => state.kv.bytes_on_disk(),
            Place::Lost => None,
        }
    }

    /// Returns the most bytes of linear memory that one instance of this handle has had. 0: no call
    /// so far, or a panic of the store or model ended the handle.
    #[must_use]
    pub fn memory_bytes_peak(&self) -> u64 {
        let peak = match &self.slot().place {
            Place::Running(instance) => instance.store.data().memory.bytes_peak(),
            Place::Parked(state) => state.memory.bytes_peak(),
            Place::Lost => 0,
        };
        u64::try_from(peak).unwrap_or(u64::MAX)
    }

    pub(crate) fn component(&self) -> &Component {
        &self.shared.component
    }

    pub(crate) fn model(&self) -> &dyn CompletionProvider {
        self.shared.model.as_ref()
    }

    /// Drops the instance to free its memory; the next call makes a new instance on the same store.
    pub fn park(&self) {
        let mut slot = self.slot();
        slot.place = match std::mem::replace(&mut slot.place, Place::Lost) {
            Place::Running(instance) => Place::Parked(Box::new(instance.into_state())),
            other => other,
        };
    }

    /// Calls an exported function, and repeats the call at most [`CONFLICT_RETRIES_MAX`] times
    /// after conflicts. `arguments` is for the log, `body` makes the call.
    pub(crate) fn call<T>(
        &self,
        function: &str,
        arguments: impl Fn() -> Value,
        body: impl Fn(
            &Exports,
            &mut wasmtime::Store<HostState>,
        ) -> wasmtime::Result<std::result::Result<T, types::Error>>,
    ) -> Result<T> {
        self.call_known(function, CONFLICT_RETRIES_MAX, arguments, body)
            .map_err(|failure| failure.error)
    }

    /// Calls an exported function like [`Lcm::call`], with at most `repeats_max` repeats after
    /// conflicts. A failure says what became of the commit.
    pub(crate) fn call_known<T>(
        &self,
        function: &str,
        repeats_max: u32,
        arguments: impl Fn() -> Value,
        body: impl Fn(
            &Exports,
            &mut wasmtime::Store<HostState>,
        ) -> wasmtime::Result<std::result::Result<T, types::Error>>,
    ) -> CallResult<T> {
        self.ensure_same_process()?;
        let mut repeats = 0;
        loop {
            let result = self.call_once(function, &body);
            self.record(function, &arguments, result.as_ref().err());
            match result {
                Err(failure) if failure.error.code == Code::Conflict && repeats < repeats_max => {
                    repeats += 1;
                    events::emit_repeated_call(function, &arguments(), repeats);
                    std::thread::sleep(pause(repeats));
                }
                Ok(value) => {
                    let recorded = self.shared.recorder.as_ref().map_or(Ok(()), Recorder::check);
                    return recorded
                        .map(|()| value)
                        .map_err(|error| Failure { error, commit: Commit::Done });
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Refuses a call in a process that was forked from the one that opened the store: its locks
    /// may be held by threads that it does not have, and nothing ends a call that takes too long.
    fn ensure_same_process(&self) -> Result<()> {
        if std::process::id() == self.shared.process {
            return Ok(());
        }
        let message = "the store was opened before a fork: open it again in this process";
        Err(Error::new(Code::StoreUnavailable, message))
    }

    fn call_once<T>(
        &self,
        function: &str,
        body: &impl Fn(
            &Exports,
            &mut wasmtime::Store<HostState>,
        ) -> wasmtime::Result<std::result::Result<T, types::Error>>,
    ) -> CallResult<T> {
        let mut slot = self.slot();
        let mut instance = self.take_instance(&mut slot)?;
        instance.begin_call();
        let answer = body(&instance.bindings, &mut instance.store);
        let commit = instance.store.data().commit;
        // After a trap or a failed commit the cache of the instance may differ from the store.
        let dirty = answer.is_err() || matches!(commit, Commit::NotBegun | Commit::Unknown);
        slot.place = if dirty {
            Place::Parked(Box::new(instance.into_state()))
        } else {
            Place::Running(instance)
        };
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Failure { error: error.into(), commit }),
            Err(trap) => {
                let cause = trap.root_cause();
                let message = format!("`{function}` stopped the component: {cause}");
                Err(Failure { error: Error::internal(message), commit })
            }
        }
    }

    /// Takes the running instance out of the slot, or makes and configures a new instance.
    fn take_instance(&self, slot: &mut Slot) -> CallResult<Box<Instance>> {
        let state = match std::mem::replace(&mut slot.place, Place::Lost) {
            Place::Running(instance) => return Ok(instance),
            Place::Parked(state) => state,
            Place::Lost => {
                let message = "the store or the model panicked in an earlier call; open the store \
                               again";
                return Err(Error::internal(message).into());
            }
        };
        let mut instance = match self.shared.component.instantiate(*state) {
            Ok(instance) => Box::new(instance),
            Err(failed) => {
                let (state, error) = *failed;
                slot.place = Place::Parked(Box::new(state));
                return Err(error.into());
            }
        };
        let Some(config) = &slot.config else { return Ok(instance) };
        instance.begin_call();
        let Instance { bindings, store, .. } = &mut *instance;
        let error: Error = match bindings.lcm_engine_setup().call_configure(store, config) {
            Ok(Ok(_)) => return Ok(instance),
            Ok(Err(error)) => error.into(),
            Err(trap) => {
                let cause = trap.root_cause();
                Error::internal(format!("`setup.configure` stopped the component: {cause}"))
            }
        };
        slot.place = Place::Parked(Box::new(instance.into_state()));
        Err(error.into())
    }

    fn record(&self, function: &str, arguments: &impl Fn() -> Value, failure: Option<&Failure>) {
        let Some(recorder) = &self.shared.recorder else { return };
        // `drive.begin` and `drive.step` use no store; the log has the calls that they ask for.
        if function.starts_with("drive.") {
            return;
        }
        let mut line = json!({"call": function, "args": arguments()});
        if let Some(Failure { error, .. }) = failure {
            let error = json!({"code": error.code.as_str(), "message": error.message});
            line = json::merge(line, json!({ "error": error }));
        }
        recorder.line(&line);
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        // A poisoned lock needs no error of its own: a panic inside a call leaves `Place::Lost`.
        self.shared.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a random pause before a repeat, counted from 1: below 1 ms before the first, below 8 ms
/// from the fourth on. A longer pause would let other writers be first more often.
fn pause(repeat: u32) -> Duration {
    random_duration(500_u64 << repeat.min(4))
}

/// Returns a pseudo-random duration below `micros_max` microseconds, so that writers differ; zero
/// for a bound of 0.
pub(crate) fn random_duration(micros_max: u64) -> Duration {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    let mixed = count ^ u64::from(clock).wrapping_mul(0x2545_F491);
    Duration::from_micros(mixed % micros_max.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a forked process is told. Method: the handle of another process, whose lock a thread
    /// holds that this process does not have.
    #[test]
    fn a_call_in_a_forked_process_is_refused_without_waiting() {
        let mut lcm =
            Lcm::open("memory:", include_bytes!("../../../dist/lcm.wasm")).expect("a store");
        assert!(lcm.status(None, 1).is_ok());
        let here = std::process::id();
        Arc::get_mut(&mut lcm.shared).expect("the only handle").process = here.wrapping_add(1);
        let other = lcm.clone();
        let _held = other.slot();
        let refused = lcm.status(None, 1).expect_err("a refusal");
        assert_eq!(refused.code, Code::StoreUnavailable);
        assert!(refused.message.contains("before a fork"), "{}", refused.message);
    }
}
