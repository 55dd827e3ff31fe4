//! `--llm openai:` and `anthropic:` through the program, against a server that answers by script.

use std::{fs, process::Stdio, time::Duration};

use serde_json::{Value, json};

use crate::{
    Place, Ran,
    models::SUMMARY,
    server::{Reply, Server, reply},
};

const KEY: &str = "sk-very-secret";

fn ran(place: &Place, arguments: &[&str]) -> Ran {
    let mut command = place.command(arguments);
    command.env("OPENAI_API_KEY", KEY).env_remove("ANTHROPIC_API_KEY");
    Ran::of(command.output().unwrap())
}

#[test]
fn a_local_server_can_be_the_model_of_one_purpose() {
    let place = Place::with_demo();
    let server = Server::start(vec![reply(
        200,
        &[],
        &json!({"model": "m-2025", "choices": [{"finish_reason": "stop",
            "message": {"role": "assistant", "content": SUMMARY}}]}),
    )]);
    let spec = format!("leaf=openai:m@http://127.0.0.1:{}/v1", server.port);
    let record = place.folder.join("record.jsonl");
    let record = record.to_str().unwrap();
    let arguments = ["compact", "--budget", "8000", "--llm", &spec, "--json", "--record", record];
    let report: Value = serde_json::from_str(&ran(&place, &arguments).ok().out).unwrap();
    assert_eq!(report["status"], "done", "{report}");
    let leaf = report["passes"][0]["summary_id"].as_str().unwrap();
    let description = place.json(&["describe", leaf]);
    assert_eq!(description["model"], "m-2025");
    assert!(description["text"].as_str().unwrap().contains(SUMMARY));
    assert_eq!(place.json(&["check"])["ok"], true);
    let asked = server.asked();
    assert_eq!(asked[0].line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(asked[0].header("authorization"), Some("Bearer sk-very-secret"));
    assert!(!fs::read_to_string(record).unwrap().contains(KEY));
}

#[test]
fn a_refused_key_changes_no_context_and_is_not_shown() {
    let place = Place::with_demo();
    let before = place.logical_digest();
    let body = json!({"error": {"message": format!("incorrect key {KEY}")}});
    let server = Server::start(vec![reply(401, &[], &body)]);
    let spec = format!("openai:m@http://127.0.0.1:{}/v1", server.port);
    let arguments = ["compact", "--budget", "8000", "--llm", &spec, "--llm", "offline"];
    let ended = ran(&place, &arguments);
    ended.failed(
        6,
        "completion-failed",
        "model-auth: `openai:m` answered 401: incorrect key [key]",
    );
    assert_eq!(server.asked().len(), 1);
    let ended = ran(&place, &["compact", "--budget", "8000", "--llm", "anthropic:m"]);
    ended.failed(6, "completion-failed", "needs ANTHROPIC_API_KEY");
    ran(&place, &["compact", "--budget", "8000", "--llm", "openai:m@localhost"]).failed(
        2,
        "invalid-input",
        "must start with http",
    );
    assert_eq!(place.logical_digest(), before);
}

#[test]
fn an_interrupt_does_not_wait_for_the_answer() {
    let place = Place::with_demo();
    let server = Server::start(vec![Reply::Hang(Vec::new())]);
    let spec = format!("anthropic:m@http://127.0.0.1:{}", server.port);
    let mut command = place.command(&["compact", "--budget", "8000", "--llm", &spec]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    while server.asked().is_empty() {
        std::thread::yield_now();
    }
    let began = std::time::Instant::now();
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    Ran::of(child.wait_with_output().unwrap()).failed(130, "cancelled", "stopped");
    assert!(began.elapsed() < Duration::from_secs(10));
}
