//! `lcm ask`: with the offline model, with programs as models, and when they fail.

use serde_json::Value;

use crate::{Place, keys, models::model};

const QUESTION: &str = "What happened to the scheduler?";

#[test]
fn a_question_is_answered_without_a_model_and_cites_what_was_read() {
    let place = Place::with_demo();
    place.run(&["compact", "--budget", "4000"]).ok();
    let answer = place.json(&["ask", QUESTION]);
    let expected = [
        "answer",
        "cited_conversations",
        "cited_ids",
        "completions",
        "expanded_summaries",
        "failure",
        "rejected_ids",
        "source_conversations",
        "source_tokens",
        "status",
        "truncated",
    ];
    assert_eq!(keys(&answer), expected);
    assert_eq!((&answer["status"], &answer["completions"]), (&"answered".into(), &1.into()));
    assert_eq!(answer["source_conversations"], serde_json::json!(["default"]));
    assert!((1..=4_000).contains(&answer["source_tokens"].as_u64().unwrap()), "{answer}");
    let cited = answer["cited_ids"].as_array().unwrap();
    let places = answer["cited_conversations"].as_array().unwrap();
    assert!(!cited.is_empty() && places.iter().all(|place| place == "default"), "{answer}");
    assert_eq!(cited.len(), places.len());
    for id in cited {
        let id = id.as_str().unwrap();
        assert!(answer["answer"].as_str().unwrap().contains(id), "{answer}");
        assert_eq!(place.json(&["describe", id])["id"], id);
    }
    let people = place.run(&["ask", QUESTION]).ok().out;
    assert!(people.contains(&format!("\ncited  {}\n", cited[0].as_str().unwrap())), "{people}");
    let nothing = place.run(&["ask", "zeppelin"]).ok().out;
    assert_eq!(nothing, "no message or summary matches the question\n");
    let nothing = place.json(&["ask", "zeppelin"]);
    assert_eq!((&nothing["status"], &nothing["answer"]), (&"no-evidence".into(), &Value::Null));
}

#[test]
fn a_question_can_name_what_it_is_answered_from() {
    let place = Place::with_demo();
    place.run(&["compact", "--budget", "4000"]).ok();
    let summaries = place.json(&["summaries"]);
    let leaf = summaries["summaries"][0]["id"].as_str().unwrap();
    let answer = place.json(&["ask", QUESTION, "--summary-id", leaf, "--answer-tokens-max", "50"]);
    assert!(answer["expanded_summaries"].as_u64().unwrap() >= 1, "{answer}");
    let searched = place.json(&["ask", "zeppelin", "--query", "scheduler", "--tokens-max", "300"]);
    assert_ne!(searched["status"], "no-evidence");
    assert!(searched["source_tokens"].as_u64().unwrap() <= 300, "{searched}");
    let elsewhere = ["--conversation", "other"];
    let line = place.write("other.jsonl", "{\"role\":\"user\",\"content\":\"hello there\"}\n");
    place.run(&[&["ingest", &line][..], &elsewhere].concat()).ok();
    let here = place.json(&[&["ask", QUESTION][..], &elsewhere].concat());
    assert_eq!(here["status"], "no-evidence");
    let all = place.json(&[&["ask", QUESTION, "--all-conversations"][..], &elsewhere].concat());
    assert_eq!(all["cited_conversations"][0], "default");
    let people =
        place.run(&[&["ask", QUESTION, "--all-conversations"][..], &elsewhere].concat()).ok().out;
    assert!(people.contains("  default\n"), "{people}");
    place.run(&["ask", ""]).failed(2, "invalid-input", "question");
    place.run(&["ask", QUESTION, "--answer-tokens-max", "9999"]).failed(
        2,
        "invalid-input",
        "answer_tokens_max",
    );
    place.run(&["ask", QUESTION, "--deadline", "601"]).failed(2, "invalid-input", "deadline_ms");
    place.run(&["ask", QUESTION, "--all-conversations", "--only"]).failed(
        2,
        "invalid-input",
        "--only",
    );
    let none = "sum_0123456789abcdef";
    place.run(&["ask", QUESTION, "--summary-id", none]).failed(3, "not-found", none);
    let nowhere = ["ask", QUESTION, "--conversation", "nowhere"];
    place.run(&nowhere).failed(3, "not-found", "nowhere");
}

#[test]
fn a_program_answers_and_the_next_of_the_chain_is_asked() {
    let place = Place::with_demo();
    // Cites the first passage that it is shown.
    let body =
        r#"id=$(grep -o 'msg_[0-9a-f]\{16\}' | head -n 1); echo "{\"text\": \"So [$id].\"}""#;
    let citing = model(&place, "citing.sh", body);
    let broken = model(&place, "broken.sh", "echo nonsense");
    let common = ["ask", QUESTION, "--retries", "0", "--llm", &broken];
    let answer = place.json(&[&common[..], &["--llm", &citing]].concat());
    let id = answer["cited_ids"][0].as_str().unwrap();
    assert_eq!(answer["answer"], format!("So [{id}]."));
    let of_purpose = format!("ask={citing}");
    let answer = place.json(&[&common[..], &["--llm", &of_purpose]].concat());
    assert_eq!(answer["status"], "answered");
}

#[test]
fn a_model_that_fails_is_exit_6_and_the_next_question_can_be_asked_at_once() {
    let place = Place::with_demo();
    let refusing = r#"echo '{"error": {"code": "auth", "message": "key of m7 refused"}}'"#;
    let failing = [
        ("auth", model(&place, "auth.sh", refusing), "key of m7 refused"),
        ("down", model(&place, "down.sh", "echo 'out of order' >&2; exit 1"), "out of order"),
        ("mute", model(&place, "mute.sh", r#"echo '{"text": ""}'"#), "returned no text"),
        ("slow", model(&place, "slow.sh", "sleep 3600"), "in 1000 ms"),
    ];
    for (name, model, said) in failing {
        let arguments = ["ask", QUESTION, "--retries", "0", "--deadline", "1", "--llm", &model];
        for json in [&[][..], &["--json"]] {
            let ran = place.run(&[&arguments[..], json].concat());
            ran.failed(6, "completion-failed", said);
        }
        assert_eq!(place.json(&["ask", QUESTION])["status"], "answered", "{name}");
    }
    assert_eq!(place.json(&["check"])["ok"], true);
}

#[test]
fn a_question_on_a_grant_takes_what_it_reads_and_is_refused_when_that_ended() {
    let place = Place::with_demo();
    let made = place.json(&["grant", "create", "--tokens-max", "3000"]);
    let id = made["id"].as_str().unwrap();
    let ask = ["ask", QUESTION, "--tokens-max", "800", "--grant", id];
    let answer = place.json(&ask);
    let tokens = answer["source_tokens"].as_u64().unwrap();
    assert!((1..=800).contains(&tokens), "{answer}");
    let note = serde_json::json!({
        "tokens": tokens, "tokens_left": 3_000 - tokens, "truncated": false,
    });
    assert_eq!(answer["grant"], note);
    let people = place.run(&ask).ok().out;
    let left = format!("[{tokens} tokens of the grant, ");
    assert!(people.contains(&left), "{people}");
    let listed = place.json(&["grant", "list"]);
    assert_eq!(listed["grants"][0]["tokens_left"], 3_000 - 2 * tokens);
    place.run(&["grant", "revoke", id]).ok();
    place.run(&ask).failed(4, "denied", "revoked");
}
