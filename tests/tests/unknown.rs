#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
//! For an unknown conversation every verb gives the same answer: `not-found` with the same text;
//! nothing is written. The rule is not for verbs that begin a conversation.

use lcm_testing::{Host, host::StoreMode};
use serde_json::{Value, json};

/// Exports without a conversation, or which begin one; each other export is in [`calls`].
const OTHERS: [&str; 24] = [
    "setup.configure",
    "setup.resolve",
    "setup.version",
    "ingest.append",
    "ingest.stage",
    "ingest.identify",
    // Plans what to append to a conversation that may be new.
    "ingest.reconcile",
    // Names its conversation by the id of a request.
    "compaction.apply",
    "compaction.complete_offline",
    "drive.begin",
    "drive.step",
    "context.validate",
    "tools.definitions",
    "tools.instructions",
    // Continue a call by a token that names the conversation.
    "recall.ask_apply",
    "tools.resume",
    "admin.digest",
    "admin.import_page",
    // Begins a conversation in a family.
    "admin.call family",
    // Needs no conversation.
    "admin.call prompts",
    "admin.call live",
    "admin.listing conversations",
    "admin.listing deletions",
    "admin.status of the store",
];

fn verb(verb: &str, arguments: Value) -> (&'static str, Value) {
    ("admin.call", json!({"verb": verb, "arguments_json": arguments.to_string()}))
}

fn tool(name: &str, arguments: Value) -> (&'static str, Value) {
    ("tools.call", json!({"name": name, "arguments_json": arguments}))
}

fn calls() -> Vec<(&'static str, Value)> {
    let summary = "sum_0123456789abcdef";
    let prices = json!({"input": 1, "output": 2});
    vec![
        ("compaction.evaluate", json!({"budget": 1000})),
        ("compaction.plan", json!({"budget": 1000})),
        ("compaction.run", json!({"budget": 1000})),
        ("context.assemble", json!({"budget": 1000, "dialect": "lcm"})),
        ("recall.grep", json!({"query_json": {"pattern": "a"}})),
        ("recall.embed", json!({"vectors_json": {"model": "m"}})),
        ("recall.describe", json!({"id": summary, "options_json": {}})),
        ("recall.describe", json!({"id": "msg_0000000000000000000000_1", "options_json": {}})),
        ("recall.describe", json!({"id": "file_0123456789abcdef", "options_json": {}})),
        ("recall.describe", json!({"id": "nobody", "options_json": {}})),
        ("recall.expand", json!({"id": summary, "options_json": {}})),
        ("recall.messages", json!({"seq_first": 1, "seq_last": 9})),
        ("recall.grant", json!({"grant_json": {}})),
        ("recall.revoke", json!({"grant": "grant_0123456789abcdef"})),
        ("recall.ask_plan", json!({"question_json": {"question": "what?"}})),
        ("recall.ask_run", json!({"question_json": {"question": "what?"}})),
        ("admin.status", json!({})),
        ("admin.listing", json!({"kind": "messages"})),
        ("admin.listing", json!({"kind": "summaries"})),
        ("admin.listing", json!({"kind": "grants"})),
        ("admin.check", json!({})),
        ("admin.export_page", json!({})),
        verb("reset", json!({})),
        verb("reset", json!({"dry_run": true})),
        verb("new", json!({})),
        verb("archive", json!({"cause": "idle"})),
        verb("calibrate", json!({"model": "m", "estimated_tokens": 10, "prompt_tokens": 12})),
        verb("maintain", json!({"budget": 1000})),
        verb("usage", json!({"purpose": "turn", "output_tokens": 8})),
        verb("advise", json!({"budget": 1000, "prices": prices})),
        verb("focus", json!({"text": "a"})),
        verb("focus", json!({})),
        verb("delete", json!({})),
        verb("delete", json!({"dry_run": true})),
        tool("lcm_grep", json!({"pattern": "a"})),
        tool("lcm_describe", json!({"id": summary})),
        tool("lcm_expand_query", json!({"prompt": "what?", "query": "a"})),
    ]
}

fn has_time(name: &str) -> bool {
    let timeless = ["embed", "messages", "listing", "check", "export_page"];
    !timeless.iter().any(|one| name.ends_with(one))
}

#[test]
fn an_unknown_conversation_is_the_same_answer_in_every_verb() {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    let message = json!({"role": "user", "content": "One."});
    host.told(
        "ingest.append",
        &json!({"conversation": "somebody", "messages": [message]}).to_string(),
    )
    .unwrap();
    let digest = |host: &mut Host| host.told("admin.digest", "{}").unwrap().compact();
    let before = digest(&mut host);
    for (name, mut args) in calls() {
        args["conversation"] = "nobody".into();
        if has_time(name) {
            args["now"] = 1_000.into();
        }
        let expected = "conversation `nobody` does not exist";
        match host.told(name, &args.to_string()) {
            Err(error) => {
                let code = format!("{:?}", error.code);
                assert_eq!(
                    (&*code, error.message.as_str()),
                    ("NotFound", expected),
                    "{name} {args}"
                );
            }
            Ok(answer) => {
                assert_eq!(name, "tools.call", "{args}: {}", answer.compact());
                let answer = answer.compact();
                assert!(answer.contains(expected) && answer.contains("true"), "{args}: {answer}");
            }
        }
    }
    assert_eq!(digest(&mut host), before);
}

#[test]
fn every_export_is_in_the_table() {
    let mut named: Vec<String> = calls().iter().map(|(name, _)| (*name).to_owned()).collect();
    named.extend(OTHERS.iter().map(|name| name.split(' ').next().unwrap_or_default().to_owned()));
    let exports: Value = serde_json::from_str(include_str!("../../schema/exports.json")).unwrap();
    let exports = exports["exports"].as_object().unwrap();
    for export in exports.keys().map(|name| name.replace('-', "_")) {
        assert!(named.contains(&export), "`{export}` is in neither list");
    }
}

#[test]
fn a_skipped_conversation_and_a_search_of_the_store_need_no_conversation() {
    let config = lcm_testing::Json::of(r#"{"ignore_session_patterns":["cron*"]}"#);
    let mut host = Host::new(Some(config), StoreMode::Plain).unwrap();
    for (name, args) in [
        ("compaction.evaluate", json!({"conversation": "cron1", "budget": 1000})),
        ("compaction.plan", json!({"conversation": "cron1", "budget": 1000})),
        (
            "admin.call",
            json!({"conversation": "cron1", "verb": "usage", "now": 1,
                "arguments_json": json!({"purpose": "turn", "output_tokens": 8}).to_string()}),
        ),
        (
            "compaction.evaluate",
            json!({"conversation": "new", "budget": 1000,
                "options": {"extra_json": json!({"may_be_new": true}).to_string()}}),
        ),
        (
            "recall.grep",
            json!({"conversation": "nobody",
                "query_json": {"pattern": "a", "all_conversations": true}}),
        ),
    ] {
        let told = host.told(name, &args.to_string());
        assert!(told.is_ok(), "{name} {args}: {told:?}");
    }
}
