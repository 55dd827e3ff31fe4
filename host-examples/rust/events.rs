//! Prints the events of a store, one line each, with a subscriber of `tracing`:
//! `cargo run --release -p lcm-host --example events`

use std::{error::Error, io, sync::Mutex};

use lcm_host::Lcm;
use tracing::{Level, subscriber};

fn main() -> Result<(), Box<dyn Error>> {
    listen(io::stdout())
}

/// Writes the events of a short conversation, from the level `INFO` on.
pub(crate) fn listen(out: impl io::Write + Send + 'static) -> Result<(), Box<dyn Error>> {
    let lines = tracing_subscriber::fmt().with_max_level(Level::INFO).without_time();
    // Your program installs the subscriber once, with `init`.
    subscriber::with_default(lines.with_writer(Mutex::new(out)).finish(), talk)
}

/// Stores messages and summarises the older ones.
fn talk() -> Result<(), Box<dyn Error>> {
    let lcm = Lcm::open("memory:", include_bytes!("../../dist/lcm.wasm"))?;
    let text = "The worker for pictures stopped after a large picture. ".repeat(12);
    let message = |text: &str| format!(r#"{{"role": "user", "content": "{text}"}}"#);
    let messages: Vec<String> =
        (1..=90).map(|day| message(&format!("Day {day}: {text}"))).collect();
    lcm.conversation("chat-1", 12_000).append(&messages)?;
    lcm.conversation("chat-1", 12_000).compact()?;
    Ok(())
}
