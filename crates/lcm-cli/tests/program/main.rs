//! The program `lcm` as people and scripts meet it: output, errors and exit codes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

#[cfg(unix)]
mod ask;
mod contract;
mod errors;
mod grants;
mod guidance;
mod life;
#[cfg(unix)]
mod maintain;
#[cfg(unix)]
mod models;
mod money;
mod prompts;
#[cfg(unix)]
mod providers;
#[cfg(unix)]
#[path = "../../../lcm-host/tests/host/server.rs"]
#[expect(dead_code, reason = "the tests of the host use more of it")]
mod server;
mod session_files;

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

/// The transcript that the demo carries.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/transcript.jsonl");

/// A folder with a store of its own, removed at the end.
struct Place {
    folder: PathBuf,
}

/// What a run of the program left behind.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("lcm-cli-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    /// A folder whose store holds the transcript of the demo.
    fn with_demo() -> Self {
        let place = Self::new();
        place.run(&["ingest", DEMO]).ok();
        place
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.folder.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The program in this folder, with nothing of the developer's environment.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lcm"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LCM_") {
                command.env_remove(name);
            }
        }
        command.current_dir(&self.folder).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat()).ok();
        assert_eq!(ran.out.lines().count(), 1, "one document: {}", ran.out);
        serde_json::from_str(&ran.out).unwrap()
    }

    fn digest(&self) -> String {
        self.run(&["digest"]).ok().out
    }

    /// The digest of what the conversations say, without what tells how they came about.
    fn logical_digest(&self) -> String {
        self.run(&["digest", "--logical"]).ok().out
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }

    /// The run failed with this exit code and one line that begins and reads as given.
    fn failed(&self, exit: i32, code: &str, contains: &str) {
        assert_eq!(self.code, exit, "{}{}", self.out, self.err);
        assert_eq!(self.out, "", "a failed command prints nothing on standard output");
        assert_eq!(self.err.lines().count(), 1, "one line: {}", self.err);
        assert!(self.err.starts_with(&format!("lcm: {code}: ")), "{}", self.err);
        assert!(self.err.contains(contains), "{}", self.err);
    }
}

/// The keys of a JSON object, sorted.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Whether an object has all these keys.
fn has(value: &Value, wanted: &[&str]) {
    for key in wanted {
        assert!(value.get(key).is_some(), "`{key}` is missing in {:?}", keys(value));
    }
}
