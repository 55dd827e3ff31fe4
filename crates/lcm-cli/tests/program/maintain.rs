//! `lcm maintain`, and the ways in which compaction ends without a model.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use serde_json::{Value, json};

use crate::{DEMO, Place, keys};

const NOW: u64 = 1_700_000_000_000;

/// A model that is a shell script with this body.
fn model(place: &Place, body: &str) -> String {
    let path = place.write("model.sh", format!("#!/bin/sh\n{body}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("exec:{path}")
}

/// A folder whose store holds the transcript of the demo since the beginning.
fn begin() -> Place {
    let place = Place::new();
    place.run(&["ingest", DEMO, "--now", &NOW.to_string()]).ok();
    place
}

/// The exit code and the document of `lcm maintain` so many minutes after the beginning.
fn maintain(place: &Place, minutes: u64, arguments: &[&str]) -> (i32, Value) {
    let now = (NOW + minutes * 60_000).to_string();
    let common = ["maintain", "--json", "--now", &now];
    let ran = place.run(&[&common[..], arguments].concat());
    (ran.code, serde_json::from_str(&ran.out).unwrap_or(Value::String(ran.err)))
}

#[test]
fn what_is_due_is_done_and_then_nothing_is_owed() {
    let place = Place::with_demo();
    let (code, idle) = maintain(&place, 0, &["--budget", "100000"]);
    assert_eq!((code, &idle["debt"], &idle["compacted"]), (0, &Value::Null, &Value::Null));
    let (code, done) = maintain(&place, 0, &["--budget", "8000", "--requests-max", "2"]);
    assert_eq!((code, keys(&done)), (0, vec!["compacted", "conversation", "debt"]));
    assert_eq!((&done["conversation"], &done["debt"]), (&json!("default"), &Value::Null));
    assert_eq!(done["compacted"]["status"], "done");
    let compact = place.json(&["compact", "--budget", "8000"]);
    assert_eq!(keys(&done["compacted"]), keys(&compact));
    assert_eq!(compact["status"], "nothing-to-do");
    assert_eq!(
        place.run(&["maintain", "--budget", "8000"]).ok().out,
        "no compaction is deferred\n"
    );
    place.run(&["maintain", "--budget", "0"]).failed(2, "invalid-input", "`budget`");
    place.run(&["maintain", "--budget", "1", "--conversation", "x"]).failed(3, "not-found", "x");
}

#[test]
fn a_family_is_served_as_a_whole() {
    let place = Place::new();
    let broken = model(&place, "echo 'out of order' >&2; exit 1");
    let at = |minute: u64| (NOW + minute * 60_000).to_string();
    for (id, now) in [("one", at(0)), ("two", at(1))] {
        let asked = ["ingest", DEMO, "--conversation", id, "--family", "demo", "--now", &now];
        place.run(&asked).ok();
    }
    place.run(&["reset", "--conversation", "one", "--now", &at(2)]).ok();
    let asked = ["--family", "demo", "--budget", "18000"];
    let failing = [&asked[..], &["--retries", "0", "--llm", &broken]].concat();
    let (code, done) = maintain(&place, 3, &failing);
    assert_eq!((code, keys(&done)), (6, vec!["reports", "unserved"]));
    let ids = |done: &Value| -> Vec<String> {
        let reports = done["reports"].as_array().unwrap().iter();
        reports.map(|one| one["conversation"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (ids(&done), &done["unserved"]),
        (vec!["one#2".into(), "two".into()], &json!(["one"]))
    );
    let (code, done) = maintain(&place, 12, &asked);
    assert_eq!((code, ids(&done).len(), &done["unserved"]), (0, 3, &json!([])));
    assert_eq!(done["reports"][1]["compacted"]["status"], "done", "{done}");
    let text = place.run(&[&["maintain", "--now", &at(13)], &asked[..]].concat()).ok().out;
    let idle = "no compaction is deferred\n";
    assert_eq!(text, format!("one#2:\n{idle}two:\n{idle}one:\n{idle}"));
    place.run(&["maintain", "--family", "x", "--budget", "1"]).failed(3, "not-found", "x");
    let observed = [&["maintain", "--observed-tokens", "9"], &asked[..]].concat();
    place.run(&observed).failed(2, "invalid-input", "--family");
}

#[test]
fn what_the_host_adds_counts_when_it_is_reported() {
    let tokens = Place::with_demo().json(&["status"])["context"]["tokens"].as_u64().unwrap();
    let (budget, observed) = ((2 * tokens).to_string(), (3 * tokens / 2 + 50).to_string());
    let asked = ["--budget", &budget];
    let told = [&asked[..], &["--observed-tokens", &observed]].concat();
    let place = Place::with_demo();
    assert_eq!(maintain(&place, 0, &asked).1["compacted"], Value::Null);
    let (code, done) = maintain(&place, 0, &told);
    assert_eq!(
        (code, &done["debt"], &done["compacted"]["reason"]),
        (0, &Value::Null, &json!("reached-target"))
    );
    let place = Place::with_demo();
    let compact = |asked: &[&str]| place.json(&[&["compact"], asked].concat())["status"].clone();
    assert_eq!((compact(&asked), compact(&told)), (json!("nothing-to-do"), json!("done")));
}

#[test]
fn a_failure_and_a_refused_key_are_waited_out() {
    let place = begin();
    let broken = model(&place, "echo 'out of order' >&2; exit 1");
    // Over the threshold and within the budget.
    let asked = ["--budget", "18000", "--retries", "0", "--llm", &broken];
    for (minutes, code, failures) in [(0, 6, 1), (4, 0, 1), (5, 6, 2), (14, 0, 2)] {
        let (ended, report) = maintain(&place, minutes, &asked);
        assert_eq!((ended, &report["debt"]["failures"]), (code, &json!(failures)), "{report}");
        assert_eq!(report["compacted"].is_null(), code == 0, "{minutes}: {report}");
    }
    let said = place.run(&["maintain", "--budget", "18000", "--now", "1700000840000"]).ok().out;
    assert!(said.contains("2 failures, next attempt at 2023-11-14T22:28:20.000Z"), "{said}");
    assert_eq!(place.json(&["status"])["debt"]["failures"], 2);

    let place = begin();
    let refused = model(&place, r#"echo '{"error": {"code": "auth", "message": "bad key"}}'"#);
    let asked = ["--budget", "18000", "--llm", &refused];
    let (ended, said) = maintain(&place, 0, &asked);
    assert!(ended == 6 && said.as_str().unwrap().contains("bad key"), "{said}");
    assert_eq!(place.json(&["status"])["debt"]["failures"], 1);
    let (ended, report) = maintain(&place, 4, &asked);
    assert_eq!((ended, &report["compacted"]), (0, &Value::Null));
    let (code, done) = maintain(&place, 5, &["--budget", "18000"]);
    assert_eq!(
        (code, &done["debt"], &done["compacted"]["status"]),
        (0, &Value::Null, &json!("done"))
    );
}

#[test]
fn a_model_that_answers_in_vain_is_paused_and_work_is_left() {
    let place = begin();
    let config = place.write("lcm.json", r#"{"summary_max_calls_per_window": 1}"#);
    let body = r#"printf '{"text": "'; yes long | head -n 20000 | tr '\n' ' '; printf '"}'"#;
    let long = model(&place, body);
    let arguments =
        ["--budget", "8000", "--llm", &long, "--config", &config, "--now", "1700000000000"];
    let report = place.json(&[&["compact"], &arguments[..]].concat());
    assert_eq!((&report["status"], &report["reason"]), (&json!("partial"), &json!("spend-limit")));
    let (code, report) = maintain(&place, 1, &arguments[..6]);
    assert_eq!((code, &report["compacted"]["status"]), (0, &json!("partial")), "{report}");
    assert_eq!(report["debt"]["failures"], 1);
}

#[test]
fn a_model_is_waited_for_as_long_as_said() {
    let place = Place::with_demo();
    let slow = model(&place, "sleep 3600");
    let asked = ["--budget", "18000", "--retries", "0", "--timeout", "1", "--llm", &slow];
    let began = std::time::Instant::now();
    let (code, report) = maintain(&place, 0, &asked);
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!((code, &report["compacted"]["status"]), (6, &json!("model-unavailable")));
    assert!(
        report["compacted"]["warnings"][0].as_str().unwrap().contains(": timeout: "),
        "{report}"
    );
    place.run(&["compact", "--budget", "1", "--timeout", "0"]).failed(2, "invalid-input", "0");
}

#[test]
fn one_leaf_at_a_time_is_made_when_enough_lies_outside_the_tail() {
    let place = Place::with_demo();
    let config = place.write("lcm.json", r#"{"leaf_chunk_tokens_max": 1000}"#);
    let common = ["compact", "--budget", "100000", "--config", &config, "--mode"];
    assert_eq!(place.json(&[&common[..], &["threshold"]].concat())["status"], "nothing-to-do");
    let report = place.json(&[&common[..], &["incremental"]].concat());
    assert_eq!(report["passes"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["passes"][0]["purpose"], "leaf");
    assert_eq!(report["tokens_before"], report["passes"][0]["tokens_before"]);
}

#[test]
fn what_a_failing_model_left_is_made_again_when_it_works() {
    let place = begin();
    let broken = model(&place, "echo 'out of order' >&2; exit 1");
    let asked = ["--budget", "8000", "--retries", "0", "--llm", &broken];
    let run = |command: &str, more: &[&str]| {
        let now = (NOW + 60_000).to_string();
        let ran = place.run(&[&[command, "--json", "--now", &now], &asked[..], more].concat());
        (ran.code, serde_json::from_str(&ran.out).unwrap_or(Value::String(ran.err)))
    };
    let count = || place.json(&["status"])["provisional"].as_u64().unwrap();
    // Over the budget, so the engine makes the summaries, and the program says what failed.
    let (code, report): (i32, Value) = run("compact", &[]);
    let made = report["passes"].as_array().unwrap();
    assert!(code == 6 && made.iter().all(|pass| pass["provisional"] == true), "{report}");
    let left = count();
    assert!(left > 1, "{report}");
    let said = place.run(&["status"]).ok().out;
    assert!(said.contains(&format!("provisional        {left} summaries")), "{said}");
    let (code, report) = run("resummarize", &[]);
    assert_eq!((code, count()), (6, left), "{report}");

    // The script is another one now, under the same name.
    let works = model(&place, r#"echo '{"text": "the tests of the module fail"}'"#);
    assert_eq!(works, broken);
    let first = made[0]["summary_id"].as_str().unwrap();
    let (code, report) = run("resummarize", &[first]);
    assert_eq!((code, &report["passes"][0]["replaces"]), (0, &json!(first)), "{report}");
    assert_eq!(count(), left - 1);
    let (code, said) = run("resummarize", &[report["passes"][0]["summary_id"].as_str().unwrap()]);
    assert!(code == 2 && said.as_str().unwrap().contains("provisional"), "{said}");
    let (code, said) = run("resummarize", &["sum_0000000000000001"]);
    assert!(code == 3 && said.as_str().unwrap().contains("not-found"), "{said}");
    let (code, report) = run("resummarize", &[]);
    assert_eq!((code, count()), (0, 0), "{report}");
    assert_eq!(run("resummarize", &[]).1["status"], "nothing-to-do");
}
