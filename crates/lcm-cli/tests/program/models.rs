//! `--llm exec:` with small shell scripts, and interrupts.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Stdio};

use serde_json::Value;

use crate::{Place, Ran};

/// What a model may say of the demo: an answer that tells of no failure would be asked for again.
pub(crate) const SUMMARY: &str = "they saw failures: the test failed, the heartbeat had an error, \
                                  and they looked for the cause";

/// A model that is a shell script with this body.
pub(crate) fn model(place: &Place, name: &str, body: &str) -> String {
    let path = place.write(name, format!("#!/bin/sh\n{body}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("exec:{path}")
}

#[test]
fn a_program_can_be_the_model() {
    let place = Place::with_demo();
    let answer = format!(r#"{{"text": "{SUMMARY}", "model": "m7"}}"#);
    let model = model(&place, "model.sh", &format!("cat > /dev/null; echo '{answer}'"));
    let report =
        place.json(&["compact", "--budget", "8000", "--llm", &model, "--requests-max", "3"]);
    assert_eq!(report["status"], "done", "{report}");
    let leaf = report["passes"][0]["summary_id"].as_str().unwrap();
    let description = place.json(&["describe", leaf]);
    assert_eq!(description["model"], "m7");
    assert!(description["text"].as_str().unwrap().contains(SUMMARY));
    assert_eq!(place.json(&["check"])["ok"], true);
}

#[test]
fn a_model_that_refuses_the_key_changes_no_context() {
    let place = Place::with_demo();
    let before = place.logical_digest();
    let body = r#"echo '{"error": {"code": "auth", "message": "key of m7 refused"}}'"#;
    let model = model(&place, "model.sh", body);
    for json in [&[][..], &["--json"]] {
        let arguments = [&["compact", "--budget", "8000", "--llm", &model], json].concat();
        place.run(&arguments).failed(6, "completion-failed", "key of m7 refused");
    }
    assert_eq!(place.logical_digest(), before);
}

#[test]
fn a_model_that_fails_is_no_reason_to_lose_a_context_that_fits() {
    let place = Place::with_demo();
    let before = place.logical_digest();
    let model = model(&place, "model.sh", "echo 'out of order' >&2; exit 1");
    let common = ["compact", "--retries", "0", "--llm", &model, "--json"];
    let ran = place.run(&[&common[..], &["--budget", "18000"]].concat());
    assert_eq!(ran.code, 6, "{}{}", ran.out, ran.err);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["status"], "model-unavailable");
    assert!(ran.err.starts_with("lcm: completion-failed: ") && ran.err.contains("out of order"));
    assert_eq!(place.logical_digest(), before);

    // The context fits, and the program still says that its model failed.
    let ran = place.run(&[&common[..], &["--budget", "8000"]].concat());
    assert_eq!(ran.code, 6, "{}{}", ran.out, ran.err);
    assert!(ran.err.starts_with("lcm: completion-failed: other: "), "{}", ran.err);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(report["tokens_after"].as_u64().unwrap() <= 8_000, "{report}");
    assert_eq!(report["passes"][0]["level"], "fallback");
    assert!(report["warnings"][0].as_str().unwrap().contains("out of order"));
}

#[test]
fn the_next_model_of_the_chain_is_asked() {
    let place = Place::with_demo();
    let broken = model(&place, "broken.sh", "echo nonsense");
    let common = ["compact", "--budget", "8000", "--retries", "0", "--llm", &broken];
    let report = place.json(&[&common[..], &["--llm", "offline"]].concat());
    assert_eq!(report["status"], "done");
    assert_eq!(report["passes"][0]["level"], "fallback");
}

/// Runs a command with a model that does not answer, and interrupts it while the model thinks.
fn interrupt(place: &Place, arguments: &[&str]) -> Ran {
    // The program tells that the model runs.
    let running = place.folder.join("running");
    let body = format!("echo > {0}; sleep 3600", running.display());
    let model = model(place, "model.sh", &body);
    let mut command = place.command(&[arguments, &["--llm", &model]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    while !running.exists() {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn an_interrupt_stops_the_work_with_130() {
    let place = Place::with_demo();
    let before = place.logical_digest();
    interrupt(&place, &["compact", "--budget", "8000"]).failed(130, "cancelled", "stopped");
    assert_eq!(place.logical_digest(), before);
    // The request was given back: the next compaction asks for it at once.
    let report = place.json(&["compact", "--budget", "8000"]);
    assert_eq!(report["status"], "done", "{report}");
}

#[test]
fn an_interrupt_stops_the_work_for_a_family() {
    let place = Place::with_demo();
    place.run(&["family", "demo"]).ok();
    let asked = ["maintain", "--family", "demo", "--budget", "8000"];
    interrupt(&place, &asked).failed(130, "cancelled", "stopped");
    assert_eq!(place.json(&asked)["reports"][0]["compacted"]["status"], "done");
}
