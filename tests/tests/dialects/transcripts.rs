//! Long transcripts, assembled in every dialect.
//!
//! The transcripts are of a simulated agent and, with `LCM_DATA=FOLDER`, all conversations below
//! that folder: dialect `lcm`, one message a line. A transcript is assembled in every dialect while
//! it grows and is compacted: whole and under budgets, with large outputs, and with live messages.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use lcm_text::types::api::Dialect;

use crate::{Chat, DIALECTS, properties::check, workload};

/// Budgets of a context; the last fits every context.
const BUDGETS: [u32; 5] = [2_000, 16_000, 64_000, 200_000, 100_000_000];
/// Number of stages of a transcript, after each of which it is assembled.
const STAGES: usize = 4;
/// Number of live messages.
const LIVE: usize = 3;
/// Target of the compaction after all stages but the first.
const TARGET: u32 = 8_000;
const CONFIGS: [&str; 2] = [
    "{}",
    r#"{"stub_large_tool_payloads": true, "large_payload_tokens_min": 1000,
        "plain_summaries": true}"#,
];

/// Returns all conversations, by name.
fn transcripts() -> Vec<(String, Vec<String>)> {
    let mut out = vec![("an agent with tools".to_owned(), workload::agent())];
    if let Some(folder) = env::var_os("LCM_DATA") {
        let mut files = Vec::new();
        below(Path::new(&folder), &mut files);
        assert!(!files.is_empty(), "no transcript in {folder:?}");
        files.sort();
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let name = file.display().to_string();
            out.push((name, text.lines().map(str::to_owned).collect()));
        }
    }
    out
}

fn below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
}

/// Assembles a transcript at every stage and returns the number of checked contexts.
fn live_through(messages: &[String], config: &str) -> usize {
    let (mut chat, mut contexts) = (Chat::new(config), 0);
    let stage = messages.len().div_ceil(STAGES);
    for (number, part) in messages.chunks(stage).enumerate() {
        let (stored, live) = part.split_at(part.len().saturating_sub(LIVE).max(1));
        for batch in stored.chunks(100) {
            chat.append(Dialect::Lcm, batch);
        }
        if number > 0 {
            chat.compact(TARGET);
        }
        // Live messages must be in the requested dialect; these transcripts are in `lcm`.
        chat.live = live.to_vec();
        check(&mut chat, Dialect::Lcm, BUDGETS[number % BUDGETS.len()]);
        chat.live.clear();
        chat.append(Dialect::Lcm, live);
        for dialect in DIALECTS {
            for budget in BUDGETS {
                check(&mut chat, dialect, budget);
                contexts += 1;
            }
        }
    }
    contexts
}

#[test]
fn every_transcript_goes_to_every_provider() {
    for (name, messages) in transcripts() {
        for config in CONFIGS {
            let contexts = live_through(&messages, config);
            println!("{contexts} contexts of {} messages, {name}", messages.len());
            assert!(contexts >= DIALECTS.len() * BUDGETS.len());
        }
    }
}
