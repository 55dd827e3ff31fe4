//! Compiles the component, caches the compiled code on disk, and limits instances.
//!
//! In: the bytes of `lcm.wasm`. Out: [`Component`], from which handles make their instances.
//! Compiling takes tenths of a second, so the compiled code is cached in a folder, by default the
//! user's. An unusable cache file is compiled again and replaced.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use wasmtime::{
    Config, EngineWeak, UpdateDeadline,
    component::{Component as Compiled, HasSelf, Linker},
};

use crate::{
    bindings::{Engine, EnginePre},
    digest::sha256_hex,
    error::{Error, Result},
    instance::{Exports, HostState, Instance},
};

/// Unit in which the deadlines of calls are counted.
const TICK: Duration = Duration::from_millis(250);

/// Time limit of making an instance, in units of [`TICK`]: 10 seconds.
const INSTANTIATION_TICKS: u64 = 40;

/// Limits of one instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Most bytes of each linear memory of the instance; a call that needs more fails.
    pub memory_bytes_max: usize,
    /// Most milliseconds of one call without the time of the model, rounded up to quarters of a
    /// second; a longer call fails. 0 stops every call at its start.
    pub call_ms_max: u64,
}

impl Default for Limits {
    /// Returns 512 MiB and 5 minutes.
    fn default() -> Self {
        Self { memory_bytes_max: 512 << 20, call_ms_max: 300_000 }
    }
}

/// Options of loading a component.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoadOptions {
    /// Folder of compiled components, created if absent; `None`: compile every time. On Unix a
    /// folder that other users may write to is not used, because its files are run unchecked.
    pub cache_dir: Option<PathBuf>,
    /// Limits of every instance of the component.
    pub limits: Limits,
}

impl Default for LoadOptions {
    /// Returns the user's cache folder and the default limits. If the environment names no such
    /// folder, there is no cache.
    fn default() -> Self {
        Self { cache_dir: user_cache_dir(), limits: Limits::default() }
    }
}

/// A compiled component. Clones share the compiled code.
#[derive(Clone)]
pub struct Component {
    engine: wasmtime::Engine,
    limits: Limits,
    prepared: Arc<EnginePre<HostState>>,
    cache_warning: Option<Arc<str>>,
}

impl std::fmt::Debug for Component {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Component").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Component {
    /// Compiles the component in `wasm`, or loads its compiled code from the cache.
    ///
    /// # Errors
    ///
    /// `internal`: `wasm` is not a component of this interface.
    pub fn load(wasm: &[u8], options: &LoadOptions) -> Result<Self> {
        let mut config = Config::new();
        config.epoch_interruption(true);
        let engine = wasmtime::Engine::new(&config).map_err(|error| unusable(&error))?;
        let (compiled, unwritten) = compile(&engine, wasm, options.cache_dir.as_deref())?;
        let cache_warning = unwritten.map(Arc::from);
        let mut linker = Linker::new(&engine);
        Engine::add_to_linker::<_, HasSelf<HostState>>(&mut linker, |state| state)
            .and_then(|()| linker.instantiate_pre(&compiled))
            .and_then(EnginePre::new)
            .map(|prepared| {
                start_ticking(engine.weak());
                Self { engine, limits: options.limits, prepared: Arc::new(prepared), cache_warning }
            })
            .map_err(|error| unusable(&error))
    }

    /// Returns why the compiled code was not cached, so that the next start compiles again; `None`:
    /// it is in the cache, or the options name no folder.
    #[must_use]
    pub fn cache_warning(&self) -> Option<&str> {
        self.cache_warning.as_deref()
    }

    /// Makes an instance that owns `state`; returns `state` after a failure.
    pub(crate) fn instantiate(
        &self,
        mut state: HostState,
    ) -> std::result::Result<Instance, Box<(HostState, Error)>> {
        state.memory.begin(self.limits.memory_bytes_max);
        let mut store = wasmtime::Store::new(&self.engine, state);
        store.limiter(|state| &mut state.memory);
        store.epoch_deadline_callback(|mut context| {
            match std::mem::take(&mut context.data_mut().model_ms) {
                0 => Ok(UpdateDeadline::Interrupt),
                spent => Ok(UpdateDeadline::Continue(ticks(spent))),
            }
        });
        store.set_epoch_deadline(INSTANTIATION_TICKS);
        let made =
            self.prepared.instance_pre().instantiate(&mut store).and_then(|by_name| {
                Ok(Exports { typed: Engine::new(&mut store, &by_name)?, by_name })
            });
        match made {
            Ok(bindings) => {
                Ok(Instance { store, bindings, call_ticks: ticks(self.limits.call_ms_max) })
            }
            Err(error) => Err(Box::new((store.into_data(), unusable(&error)))),
        }
    }

    /// Returns the full name of an exported interface, such as `lcm:engine/recall@0.1.0`; `None`:
    /// the component does not export the interface.
    pub(crate) fn interface(&self, name: &str) -> Option<String> {
        let wanted = format!("lcm:engine/{name}");
        let component = self.prepared.instance_pre().component().component_type();
        let mut names = component.exports(&self.engine).map(|(name, _)| name.to_owned());
        names.find(|full| full.split_once('@').map_or(full.as_str(), |(bare, _)| bare) == wanted)
    }
}

/// Converts milliseconds to units of [`TICK`], rounded up.
fn ticks(ms: u64) -> u64 {
    let tick_ms = u64::try_from(TICK.as_millis()).unwrap_or(u64::MAX);
    ms.div_ceil(tick_ms)
}

/// Starts a thread that counts a [`TICK`] for all deadlines of the engine, until the engine is
/// dropped.
fn start_ticking(engine: EngineWeak) {
    std::thread::spawn(move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    });
}

fn unusable(error: &wasmtime::Error) -> Error {
    Error::internal(format!("the component cannot be used: {}", error.root_cause()))
}

/// Compiles a component or reads its code from the cache. The text says why the code was not
/// cached, which costs time, not correctness.
fn compile(
    engine: &wasmtime::Engine,
    wasm: &[u8],
    cache_dir: Option<&Path>,
) -> Result<(Compiled, Option<String>)> {
    let path = cache_dir.map(|dir| cache_path(engine, wasm, dir));
    if let Some(Ok(path)) = &path
        && let Some(compiled) = read_cache(engine, path)
    {
        return Ok((compiled, None));
    }
    let compiled = Compiled::new(engine, wasm).map_err(|error| unusable(&error))?;
    let written = path.map(|path| {
        let bytes = compiled.serialize().map_err(std::io::Error::other)?;
        write_cache(&path?, &bytes)
    });
    let warning = cache_dir.zip(written).and_then(|(dir, written)| {
        let error = written.err()?;
        Some(format!(
            "the compiled component cannot be cached in `{}`, so every start takes seconds: \
             {error}",
            dir.display()
        ))
    });
    Ok((compiled, warning))
}

/// Returns the cache file of `wasm`. The name of the file has hashes of everything that the
/// compiled code depends on.
///
/// # Errors
///
/// The folder cannot be made, or others may write to it.
fn cache_path(engine: &wasmtime::Engine, wasm: &[u8], dir: &Path) -> std::io::Result<PathBuf> {
    make_private(dir)?;
    let mut sha = sha256_hex(wasm);
    sha.truncate(32);
    let mut compiler = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut compiler);
    let version = env!("CARGO_PKG_VERSION");
    Ok(dir.join(format!("lcm-{version}-{sha}-{:016x}.cwasm", compiler.finish())))
}

#[expect(unsafe_code, reason = "wasmtime runs a precompiled component without checking it")]
fn read_cache(engine: &wasmtime::Engine, path: &Path) -> Option<Compiled> {
    if !path.is_file() {
        return None;
    }
    // SAFETY: on Unix only the owner can write to the folder (`make_private`); elsewhere the folder
    // of the options is trusted. Only `write_cache` renames complete files into the folder. The
    // version of the compiler is part of the name, and wasmtime checks it in the file.
    unsafe { Compiled::deserialize_file(engine, path) }.ok()
}

/// Writes a temporary file and renames it to `path`, so that no reader sees a partial file.
fn write_cache(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{}-{count}.tmp", std::process::id()));
    let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(unix)]
fn make_private(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mode = fs::metadata(dir)?.permissions().mode();
    if mode & 0o022 == 0 { Ok(()) } else { Err(std::io::ErrorKind::PermissionDenied.into()) }
}

#[cfg(not(unix))]
fn make_private(dir: &Path) -> std::io::Result<()> {
    fs::create_dir_all(dir)
}

fn user_cache_dir() -> Option<PathBuf> {
    let variable =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Caches"))
    } else {
        variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("lcm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for one test, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("lcm-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The smallest component there is: the header of the binary format.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn engine() -> wasmtime::Engine {
        wasmtime::Engine::new(Config::new().epoch_interruption(true)).unwrap()
    }

    #[test]
    fn a_compiled_component_is_written_whole_and_read_again() {
        let folder = Folder::new("cache-write");
        compile(&engine(), EMPTY, Some(&folder.0)).unwrap();
        let names: Vec<_> =
            fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        let path = folder.0.join(&names[0]);
        assert_eq!(path.extension().unwrap(), "cwasm");
        assert!(read_cache(&engine(), &path).is_some());
    }

    #[test]
    fn an_unusable_cache_is_compiled_again_and_replaced() {
        let folder = Folder::new("cache-broken");
        let path = cache_path(&engine(), EMPTY, &folder.0).unwrap();
        fs::write(&path, "no compiled component").unwrap();
        compile(&engine(), EMPTY, Some(&folder.0)).unwrap();
        assert!(read_cache(&engine(), &path).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_may_write_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new("cache-open");
        fs::create_dir_all(&folder.0).unwrap();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
        compile(&engine(), EMPTY, Some(&folder.0)).unwrap();
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn bytes_that_are_no_component_are_an_error_of_one_line() {
        let options = LoadOptions { cache_dir: None, limits: Limits::default() };
        let error = Component::load(b"not wasm", &options).unwrap_err();
        assert_eq!(error.code, crate::Code::Internal);
        assert!(!error.message.contains('\n'), "{}", error.message);
    }
}
