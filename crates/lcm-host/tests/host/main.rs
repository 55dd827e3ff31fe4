//! Tests of the host against the real component, real files and real processes.
//!
//! One program for all of them, because linking the compiler of components takes longer than the
//! tests do.

#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod ask;
mod engine;
mod events;
mod exec;
mod library;
mod models;
mod money;
#[cfg(feature = "postgres")]
mod postgres;
mod providers;
mod provisional;
mod server;
mod settings;
mod stores;
mod vectors;
#[path = "../../../../host-examples/rust/walkthrough.rs"]
mod walkthrough;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use lcm_host::types::{CompletionRequest, Level, Purpose};

/// A folder of its own for one test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lcm-host-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A request for a short summary.
fn build_request(prompt: &str) -> CompletionRequest {
    CompletionRequest {
        id: "t1".into(),
        purpose: Purpose::Leaf,
        level: Level::Normal,
        system: "be brief".into(),
        prompt: prompt.into(),
        input_tokens: 12,
        output_tokens_max: 34,
        temperature_permille: 200,
        model: None,
    }
}

/// The component that `build.sh` makes.
fn wasm() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/lcm.wasm");
    fs::read(&path).unwrap_or_else(|_| panic!("dist/lcm.wasm is missing: run ./build.sh build"))
}

#[test]
fn the_walkthrough_of_the_examples_gets_every_message_back() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host-examples/walkthrough.jsonl");
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (said, equal) =
        walkthrough::walkthrough(&walkthrough::open(&wasm()).unwrap(), &lines).unwrap();
    assert!(equal, "{said:?}");
    assert_eq!(said.len(), 7, "{said:?}");
}
