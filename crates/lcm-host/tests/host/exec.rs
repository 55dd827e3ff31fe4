//! The protocol of `exec:` with small shell scripts.

#![cfg(unix)]

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use lcm_host::{
    Cancel,
    completion::{CompletionProvider as _, Exec},
    types::{CompletionErrorCode, CompletionRequest, CompletionResult, Finish, Level},
};

use crate::{Folder, build_request};

fn request(prompt: &str) -> CompletionRequest {
    CompletionRequest { level: Level::Aggressive, ..build_request(prompt) }
}

/// A program with this body, called with the folder as its argument.
fn program(folder: &Folder, body: &str) -> Exec {
    let path = folder.path("model.sh");
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Exec::parse(&format!("{} {}", path.display(), folder.0.display())).unwrap()
}

fn answer(body: &str) -> CompletionResult {
    let folder = Folder::new();
    program(&folder, body).complete(&request("text"), &Cancel::default())
}

fn failure(body: &str) -> (CompletionErrorCode, String) {
    match answer(body) {
        CompletionResult::Failed(error) => (error.code, error.message),
        CompletionResult::Done(done) => panic!("answered {done:?}"),
    }
}

#[test]
fn the_request_is_json_on_standard_input() {
    let folder = Folder::new();
    let body = r#"cat > "$1/request.json"; echo '{"text": "short", "model": "m1"}'"#;
    let result = program(&folder, body).complete(&request("long"), &Cancel::default());
    let CompletionResult::Done(done) = result else { panic!("{result:?}") };
    assert_eq!((done.text.as_str(), done.model.as_str()), ("short", "m1"));
    assert_eq!(done.finish, Finish::Stop);
    let text = fs::read_to_string(folder.path("request.json")).unwrap();
    let seen: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({"id": "t1", "purpose": "leaf", "level": "aggressive",
        "system": "be brief", "prompt": "long", "input_tokens": 12, "output_tokens_max": 34,
        "temperature_permille": 200, "model": null});
    assert_eq!(seen, expected);
}

#[test]
fn a_program_need_not_read_its_input() {
    let folder = Folder::new();
    let model = program(&folder, r#"echo '{"text": "x", "finish": "length"}'"#);
    let result = model.complete(&request(&"long ".repeat(200_000)), &Cancel::default());
    let CompletionResult::Done(done) = result else { panic!("{result:?}") };
    assert_eq!(done.finish, Finish::Length);
}

#[test]
fn errors_of_the_program_keep_their_code() {
    let (code, message) = failure(r#"echo '{"error": {"code": "auth", "message": "bad key"}}'"#);
    assert_eq!((code, message.as_str()), (CompletionErrorCode::Auth, "bad key"));
    let (code, _) = failure(r#"echo '{"error": {"code": "new", "message": "?"}}'"#);
    assert_eq!(code, CompletionErrorCode::Other);
}

#[test]
fn what_is_no_answer_is_other() {
    let (code, message) = failure("echo nonsense");
    assert_eq!(code, CompletionErrorCode::Other);
    assert!(message.ends_with("must print a JSON object"), "{message}");
    let (_, message) = failure("echo 'no such model' >&2; exit 3");
    assert!(message.ends_with("exit status: 3: no such model"), "{message}");
    let (code, _) = failure(r#"echo '{"text": "x", "finish": "tool_use"}'"#);
    assert_eq!(code, CompletionErrorCode::Other);
    let (_, message) = failure("echo '{}'");
    assert!(message.ends_with("must print `text` or `error`"), "{message}");
}

#[test]
fn a_program_that_is_missing_is_unavailable() {
    let model = Exec::parse("/no/such/program").unwrap();
    let result = model.complete(&request("text"), &Cancel::default());
    assert!(matches!(result, CompletionResult::Failed(error)
        if error.code == CompletionErrorCode::Unavailable));
}

#[test]
fn a_program_that_takes_too_long_is_killed_with_what_it_started() {
    let folder = Folder::new();
    // The child would hold the output open for an hour if only the shell was killed.
    let model = program(&folder, "sleep 3600 & wait").with_timeout(Duration::from_millis(100));
    let result = model.complete(&request("text"), &Cancel::default());
    assert!(matches!(result, CompletionResult::Failed(error)
        if error.code == CompletionErrorCode::Timeout));
}

#[test]
fn a_program_is_killed_when_the_work_is_stopped() {
    let folder = Folder::new();
    let cancel = Cancel::default();
    cancel.cancel();
    let result = program(&folder, "sleep 3600").complete(&request("text"), &cancel);
    assert!(matches!(result, CompletionResult::Failed(_)));
}
