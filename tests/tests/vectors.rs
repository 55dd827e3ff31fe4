#![expect(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Every golden vector, run against the engine as a library: once with a store that answers at
//! once, and once with one that answers every first read with `would-block`.
//!
//! `LCM_BLESS=1` writes the digests (and never an expectation); `LCM_VECTOR=topic/claim` runs one.
//! Writes `dist/vectors-native.json` beside the reports of the other hosts.

use std::{
    collections::BTreeMap,
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use lcm_testing::{Json, host::StoreMode, vector::Vector, vector_runner};
use lcm_text::{message, types::api::Dialect};
use serde_json::Value;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn vectors() -> BTreeMap<String, PathBuf> {
    let root = workspace().join("tests/vectors");
    let wanted = env::var("LCM_VECTOR").unwrap_or_default();
    let mut found = BTreeMap::new();
    for topic in fs::read_dir(&root).expect("the folder of the vectors").map(Result::unwrap) {
        if !topic.file_type().unwrap().is_dir() {
            continue;
        }
        for file in fs::read_dir(topic.path()).unwrap().map(Result::unwrap) {
            let path = file.path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            if path.extension().is_some_and(|extension| extension == "json")
                && name.contains(&wanted)
            {
                found.insert(name, path);
            }
        }
    }
    found
}

fn blessing() -> bool {
    env::var("LCM_BLESS").is_ok_and(|value| value == "1")
}

/// Replaces the digest in the text of a vector and leaves every other byte alone.
fn bless(name: &str, path: &Path) -> Result<(), String> {
    let report = vector_runner::run_steps(path, StoreMode::Plain)?;
    if report.expected_sha256.as_ref() == Some(&report.store_sha256) {
        return Ok(());
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let field = "\"store_sha256\": \"";
    let start = text.find(field).ok_or("no `store_sha256` to write to")? + field.len();
    let end = start + text[start..].find('"').ok_or("`store_sha256` does not end")?;
    let blessed = format!("{}{}{}", &text[..start], report.store_sha256, &text[end..]);
    fs::write(path, blessed).map_err(|error| error.to_string())?;
    println!("{name}: {} -> {}", &text[start..end], report.store_sha256);
    Ok(())
}

fn guarded<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("without a text")))
    })
}

fn write_report(passed: &BTreeMap<String, String>, total: usize, would_block_passed: usize) {
    let digests =
        passed.iter().map(|(name, sha256)| (name.clone(), sha256.as_str().into())).collect();
    let report = Json::object([
        ("host", "native".into()),
        ("vectors", (total as u64).into()),
        ("passed", (passed.len() as u64).into()),
        ("would_block_passed", (would_block_passed as u64).into()),
        ("digests", Json::Object(digests)),
    ]);
    let dist = workspace().join("dist");
    fs::create_dir_all(&dist).unwrap();
    fs::write(dist.join("vectors-native.json"), format!("{report}\n")).unwrap();
}

#[test]
fn every_vector_holds_with_both_kinds_of_store() {
    let vectors = vectors();
    assert!(!vectors.is_empty(), "no vector found");
    let (mut passed, mut failures) = (BTreeMap::new(), Vec::new());
    let mut would_block_passed = 0;
    for (name, path) in &vectors {
        if blessing()
            && let Err(why) = guarded(|| bless(name, path))
        {
            failures.push(format!("{name}: not blessed: {why}"));
            continue;
        }
        match guarded(|| vector_runner::run_vector(path, StoreMode::Plain)) {
            Ok(report) => {
                passed.insert(name.clone(), report.store_sha256);
            }
            Err(why) => failures.push(format!("{name}: {why}")),
        }
        match guarded(|| vector_runner::run_vector(path, StoreMode::WouldBlock)) {
            Ok(_) => would_block_passed += 1,
            Err(why) => failures.push(format!("{name} (would-block): {why}")),
        }
    }
    if env::var("LCM_VECTOR").is_err() {
        write_report(&passed, vectors.len(), would_block_passed);
    }
    println!("{} vectors, {} passed", vectors.len(), passed.len());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Vectors about messages in the wrong dialect, and about texts that are no messages.
const MISFITS: [&str; 4] = [
    "ingest/another-dialect-is-warned-of.json",
    "ingest/dialect-is-found-for-each-message.json",
    "ingest/frameworks-are-found-for-each-message.json",
    "ingest/messages-that-are-none-are-refused.json",
];

/// Returns the literal messages that all vectors but [`MISFITS`] append, each with its dialect.
fn appended() -> Vec<(String, Dialect, String)> {
    let mut out = Vec::new();
    for (name, path) in vectors() {
        if MISFITS.contains(&name.as_str()) {
            continue;
        }
        let vector: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for step in vector["steps"].as_array().unwrap() {
            if step["call"] != "ingest.append" || !step["expect_error"].is_null() {
                continue;
            }
            let dialect = step["args"].get("dialect").unwrap_or(&Value::Null);
            let dialect = if dialect.is_null() { "lcm".into() } else { dialect.clone() };
            let dialect: Dialect = serde_json::from_value(dialect).unwrap();
            for message in step["args"]["messages"].as_array().into_iter().flatten() {
                let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
                if !["$generate", "$repeat"].iter().any(|short| text.contains(short)) {
                    out.push((name.clone(), dialect, text));
                }
            }
        }
    }
    out
}

/// Goal: the warning about another dialect has no false alarms. Method: every message of the
/// vectors; with `LCM_DATA=FOLDER` also every message of the conversations below that folder, which
/// are in the dialect `lcm`.
#[test]
fn no_message_of_a_vector_is_taken_for_one_of_another_dialect() {
    let mut messages = appended();
    let mut folders: Vec<PathBuf> =
        env::var_os("LCM_DATA").map(PathBuf::from).into_iter().collect();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                let text = fs::read_to_string(&path).unwrap();
                let name = path.display().to_string();
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                messages.extend(lines.map(|line| (name.clone(), Dialect::Lcm, line.to_owned())));
            }
        }
    }
    assert!(messages.len() > 500, "{} messages", messages.len());
    println!("{} messages", messages.len());
    let mut doubted = Vec::new();
    for (name, dialect, text) in &messages {
        let Ok(message) = message::parse(*dialect, text) else { continue };
        let is_late = message.has_invalid_timestamp && !name.starts_with("ingest/time-");
        if message.dialect_mismatch.is_some() || is_late {
            let shown: String = text.chars().take(300).collect();
            doubted.push(format!("{name}: {:?}: {shown}", message.dialect_mismatch));
        }
    }
    assert!(doubted.is_empty(), "{} of them:\n{}", doubted.len(), doubted.join("\n"));
}

#[test]
fn the_map_of_cases_names_every_vector_and_no_other() {
    let readme = fs::read_to_string(workspace().join("tests/vectors/README.md")).unwrap();
    let (_, map) = readme.split_once("## Map of cases").expect("the map of cases");
    let named: Vec<&str> = map
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| {
            let topic = name.split('/').next().unwrap_or_default();
            name.contains('/') && workspace().join("tests/vectors").join(topic).is_dir()
        })
        .collect();
    for name in vectors().keys() {
        let stem = name.trim_end_matches(".json");
        assert!(named.contains(&stem), "the map does not name `{stem}`");
    }
    for name in named {
        let path = workspace().join("tests/vectors").join(format!("{name}.json"));
        assert!(path.is_file(), "the map names `{name}`, which does not exist");
    }
}

#[test]
fn every_vector_states_a_claim_and_expects_something() {
    for (name, path) in vectors() {
        let vector = Vector::parse(&fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(vector.description.ends_with('.'), "{name}: a claim is a sentence");
        let expecting = vector
            .steps
            .iter()
            .any(|step| !matches!(step.expectation, lcm_testing::vector::Expectation::Success));
        assert!(expecting, "{name} expects nothing");
        let length = fs::metadata(&path).unwrap().len();
        assert!(length < 16_384, "{name} has {length} bytes; a vector is small");
    }
}
