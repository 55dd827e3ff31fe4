//! Tests of the protocol from `open` to `close`, with the engine without a component.

use serde_json::{Value, json};

use super::{native::Native, serve::Served};
use crate::generate::generate;

/// Bytes of the text of a large message: more than one call accepts.
const LARGE_BYTES: usize = 600_000;

fn served() -> Served {
    Served::new(Box::new(|_| Ok(Box::new(Native::new(Box::new(lcm_host::store::Memory::new()))))))
}

fn ask(served: &mut Served, request: &Value) -> Value {
    let (answer, _) = served.answer(&request.to_string());
    assert_eq!(answer["ok"], true, "{request}: {answer}");
    answer
}

fn filled(messages: u32) -> Served {
    let mut served = served();
    ask(&mut served, &json!({"op": "open", "db": "none", "config": {"leafChunkTokens": 4_000}}));
    let mut lines = Vec::new();
    generate(42, messages, &mut |line| lines.push(line.to_owned()));
    let request = format!(
        r#"{{"op":"ingest","mode":"batch","want_lat":true,"messages":[{}]}}"#,
        lines.join(",")
    );
    let (answer, _) = served.answer(&request);
    let counts = (&answer["ingested"], &answer["refused"], &answer["skipped"]);
    assert_eq!(counts, (&json!(messages), &json!(0), &json!(0)), "{answer}");
    assert_eq!(answer["lat_ms"].as_array().unwrap().len(), 1);
    served
}

#[test]
fn a_conversation_is_compacted_and_every_message_is_still_there() {
    let mut served = filled(250);
    let compact = json!({"op": "compact", "token_budget": 20_000, "unbounded": true,
        "summarizer": {"kind": "head", "leaf_tokens": 400, "condensed_tokens": 300}});
    let compacted = ask(&mut served, &compact);
    let passes = compacted["passes"].as_array().unwrap().len();
    assert!(passes > 1 && compacted["llm_calls"].as_u64() >= Some(2), "{compacted}");
    let result = &compacted["result"];
    assert!(result["tokensAfter"].as_u64() < result["tokensBefore"].as_u64(), "{result}");

    let assemble = json!({"op": "assemble", "token_budget": 20_000, "want_text": true});
    let assembled = ask(&mut served, &assemble);
    let context = assembled["context"].as_array().unwrap();
    let id = context.iter().find_map(|message| message["summary_id"].as_str()).unwrap();
    let described = ask(&mut served, &json!({"op": "describe", "id": id}));
    assert_eq!(described["found"], true);
    let expand = json!({"op": "expand", "id": id, "include_messages": true});
    let expanded = ask(&mut served, &expand);
    assert!(expanded["messages"][0].as_str().unwrap().starts_with('m'), "{expanded}");
    let summaries = ask(&mut served, &json!({"op": "summaries"}));
    assert_eq!(summaries["summaries"].as_array().unwrap().len(), passes);

    let first = ask(&mut served, &json!({"op": "get", "id": "m0000001"}));
    assert_eq!((&first["found"], &first["role"]), (&json!(true), &json!("user")));
    let none = ask(&mut served, &json!({"op": "get", "id": "m0000251"}));
    assert_eq!(none["found"], false);
    let stat = ask(&mut served, &json!({"op": "stat"}));
    assert_eq!(stat["messages"], 250);
    assert!(stat["bytes"]["total"].as_u64() > Some(0), "{stat}");
    assert_eq!(ask(&mut served, &json!({"op": "check"}))["sound"], true);
    let (_, closed) = served.answer(r#"{"op":"close"}"#);
    assert!(closed);
}

#[test]
fn a_number_of_passes_is_kept_to() {
    let compact = json!({"op": "compact", "token_budget": 20_000, "max_passes": 2});
    let compacted = ask(&mut filled(250), &compact);
    assert_eq!(compacted["passes"].as_array().unwrap().len(), 2);
}

#[test]
fn a_message_too_large_for_a_call_is_taken_in_and_a_broken_one_is_counted() {
    let mut served = filled(1);
    let large = json!({"id": "large", "role": "user", "content": "x".repeat(LARGE_BYTES)});
    let ingest = json!({"op": "ingest", "mode": "single", "messages": [large, {"id": "none"}]});
    let answer = ask(&mut served, &ingest);
    assert_eq!((&answer["ingested"], &answer["refused"]), (&json!(2), &json!(1)), "{answer}");
    assert!(answer["refusal"].as_str().unwrap().contains("role"), "{answer}");
}

#[test]
fn a_request_that_cannot_be_served_is_answered() {
    let mut served = served();
    for (request, error) in [
        (r#"{"op":"stat"}"#, "no store is open"),
        (r#"{"op":"open"}"#, "missing field `db`"),
        ("no json", "no store is open"),
    ] {
        let (answer, closed) = served.answer(request);
        assert!(!closed && answer["ok"] == false, "{answer}");
        assert!(answer["error"].as_str().unwrap().contains(error), "{answer}");
    }
    let (answer, _) = filled(1).answer(r#"{"op":"fly"}"#);
    assert_eq!(answer["error"], "unsupported: no operation `fly`");
}
