#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Vectors of messages and summaries, through the calls of a host: a search finds near documents,
//! and only those that the caller may read.

use std::collections::BTreeSet;

use lcm_core::ErrorCode;
use lcm_testing::{
    Host, Json,
    host::StoreMode,
    simulation::random::Random,
    vector_runner::{Answers, drive},
};

const DIMENSIONS: usize = 32;
const MESSAGES: u64 = 40;

fn ask(
    host: &mut Host,
    call: &str,
    args: &[(&'static str, Json)],
) -> Result<Json, lcm_core::Error> {
    let members = [("conversation", Json::from("c"))].into_iter().chain(args.iter().cloned());
    let args = Json::Object(members.map(|(key, value)| (key.to_owned(), value)).collect());
    let answer = host.ask(call, &args)?;
    Ok(Json::of(answer.as_str().unwrap()))
}

/// Returns the vector of an id. The vectors of two ids are never near.
fn vector(id: &str) -> String {
    let seed = id.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(131) + u64::from(byte));
    let mut random = Random::new(seed);
    let number = |_| format!("{}", i64::try_from(random.between(0, 2_000)).unwrap() - 1_000);
    format!("[{}]", (0..DIMENSIONS).map(number).collect::<Vec<_>>().join(","))
}

/// Returns a host with a compacted conversation.
fn host() -> Host {
    let config = Json::parse(
        r#"{"leaf_chunk_tokens_max":1000,"fresh_tail_messages_max":4,"condense_leaves_min":99}"#,
    );
    let mut host = Host::new(Some(config.unwrap()), StoreMode::Plain).unwrap();
    let said = |seq: u64| {
        let words = format!("talk{seq} ").repeat(60);
        Json::from(format!("{{\"role\":\"user\",\"content\":\"{words}\"}}").as_str())
    };
    let messages = Json::Array((1..=MESSAGES).map(said).collect());
    let args = Json::object([("conversation", "c".into()), ("messages", messages)]);
    host.ask("ingest.append", &args).unwrap();
    let options = Json::object([("force", Json::Bool(true))]);
    let args = Json::object([("budget", 30_000_u64.into()), ("options", options)]);
    drive(&mut host, &args, Answers::Offline).unwrap().unwrap();
    host
}

/// Attaches a vector to every document that the engine lists without one; returns their ids.
fn attach(host: &mut Host) -> Vec<String> {
    let (mut ids, mut vectors) = (Vec::new(), "{}".to_owned());
    loop {
        let answer = ask(host, "recall.embed", &[("vectors_json", vectors.as_str().into())]);
        let answer = answer.unwrap();
        let next: Vec<&str> =
            answer.list("missing_ids").iter().map(|id| id.as_str().unwrap()).collect();
        if next.is_empty() {
            assert_eq!(answer.number("missing_count"), 0);
            return ids;
        }
        let entry = |id: &&str| format!("{{\"id\":\"{id}\",\"vector\":{}}}", vector(id));
        let entries: Vec<String> = next.iter().map(entry).collect();
        ids.extend(next.iter().map(|id| (*id).to_owned()));
        vectors = format!("{{\"vectors\":[{}],\"model\":\"m\"}}", entries.join(","));
    }
}

fn near(
    host: &mut Host,
    id: &str,
    more: &str,
    grant: Option<&str>,
) -> Result<Json, lcm_core::Error> {
    let query = format!("{{\"pattern\":\"absent\",\"vector\":{}{more}}}", vector(id));
    let grant = grant.map(|grant| ("grant", Json::from(grant)));
    let args = [("query_json", Json::from(query.as_str()))].into_iter().chain(grant);
    ask(host, "recall.grep", &args.collect::<Vec<_>>())
}

fn found(answer: &Json) -> Vec<String> {
    answer.list("matches").iter().map(|one| one.text("id")).collect()
}

/// Goal: each document, message or summary, is found first by its own vector, in its scope only,
/// also after a restart and after its message was compacted. Method: every id once.
#[test]
fn every_document_is_found_by_its_vector() {
    let mut host = host();
    let ids = attach(&mut host);
    let summaries = ids.iter().filter(|id| id.starts_with("sum_")).count();
    assert!(summaries > 3, "{summaries}");
    assert_eq!(ids.len() - summaries, usize::try_from(MESSAGES).unwrap());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    host.restart().unwrap();
    for id in &ids {
        let answer = near(&mut host, id, "", None).unwrap();
        assert_eq!(found(&answer)[0], *id);
        let (own, other) = match id.starts_with("sum_") {
            true => ("summaries", "messages"),
            false => ("messages", "summaries"),
        };
        let of_own = near(&mut host, id, &format!(",\"scope\":\"{own}\""), None).unwrap();
        assert_eq!(found(&of_own)[0], *id);
        let of_other = near(&mut host, id, &format!(",\"scope\":\"{other}\""), None).unwrap();
        assert!(!found(&of_other).contains(id));
    }
}

/// Goal: a search by vector with a grant for one summary finds only documents of the grant and
/// charges their tokens; a spent or revoked grant finds nothing. Method: the vectors of documents
/// inside and outside the grant.
#[test]
fn a_grant_ends_what_is_near() {
    let mut host = host();
    let ids = attach(&mut host);
    let page = host.ask(
        "admin.listing",
        &Json::object([("kind", "summaries".into()), ("conversation", "c".into())]),
    );
    let page = Json::of(page.unwrap().as_str().unwrap());
    let leaf = &page.list("items")[0];
    let (first, last) = (leaf.number("seq_first"), leaf.number("seq_last"));
    let limits = format!("{{\"summary_ids\":[\"{}\"]}}", leaf.text("id"));
    let made = ask(&mut host, "recall.grant", &[("grant_json", limits.as_str().into())]).unwrap();
    let (grant, mut spent) = (made.text("id"), 0);
    for id in ids.iter().step_by(4) {
        let answer = near(&mut host, id, ",\"limit\":2", Some(&grant)).unwrap();
        let mut tokens = 0;
        for one in answer.list("matches") {
            let is_covered = match one.text("type").as_str() {
                "summary" => one.text("id") == leaf.text("id"),
                _ => (first..=last).contains(&one.number("seq")),
            };
            assert!(is_covered, "{one}");
            tokens += u64::from(lcm_text::base::tokens::estimate(&one.text("snippet")));
        }
        let note = answer.field("grant").unwrap();
        assert_eq!(note.number("tokens"), tokens, "{note}");
        spent += tokens;
    }
    assert!(spent > 0);
    let grants = host
        .ask(
            "admin.listing",
            &Json::object([("kind", "grants".into()), ("conversation", "c".into())]),
        )
        .unwrap();
    let grants = Json::of(grants.as_str().unwrap());
    let item = &grants.list("items")[0];
    assert_eq!(item.number("tokens_left") + spent, item.number("tokens_max"));
    host.ask(
        "recall.revoke",
        &Json::object([("conversation", "c".into()), ("grant", grant.as_str().into())]),
    )
    .unwrap();
    let refused = near(&mut host, &ids[0], "", Some(&grant)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Denied);
}

/// Goal: vectors that name a model are not mixed with vectors that name none, and the error says
/// what to do. Method: the first vectors name no model; a query and a further vector name one.
#[test]
fn vectors_without_a_model_say_so() {
    let mut host = host();
    let next = ask(&mut host, "recall.embed", &[("vectors_json", "{}".into())]).unwrap();
    let ids: Vec<&str> = next.list("missing_ids").iter().map(|id| id.as_str().unwrap()).collect();
    let entry = |id: &str| format!("{{\"id\":\"{id}\",\"vector\":{}}}", vector(id));
    let first = format!("{{\"vectors\":[{}]}}", entry(ids[0]));
    ask(&mut host, "recall.embed", &[("vectors_json", first.as_str().into())]).unwrap();
    let later = format!("{{\"vectors\":[{}],\"model\":\"m\"}}", entry(ids[1]));
    let refused = [
        ask(&mut host, "recall.embed", &[("vectors_json", later.as_str().into())]),
        near(&mut host, ids[0], ",\"model\":\"m\"", None),
    ];
    for error in refused {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("attached without a model"), "{error}");
    }
    assert_eq!(found(&near(&mut host, ids[0], "", None).unwrap())[0], ids[0]);
}

/// Goal: a search over several conversations uses only those with fitting vectors, and notes this
/// once. Method: two conversations of a family, whose vectors have different dimensions.
#[test]
fn vectors_that_do_not_fit_are_noted() {
    let mut host = host();
    let ids = attach(&mut host);
    let other =
        Json::of(r#"{"conversation":"d","messages":["{\"role\":\"user\",\"content\":\"w\"}"]}"#);
    host.ask("ingest.append", &other).unwrap();
    for conversation in ["c", "d"] {
        let args = format!(
            r#"{{"conversation":"{conversation}","verb":"family","arguments_json":{{"family":"k"}}}}"#
        );
        host.ask("admin.call", &Json::of(&args)).unwrap();
    }
    let notes = |host: &mut Host| {
        let found = near(host, &ids[0], ",\"mode\":\"full-text\"", None);
        found.unwrap().list("notes").to_vec()
    };
    assert_eq!(notes(&mut host), []);
    let next = host.ask("recall.embed", &Json::of(r#"{"conversation":"d","vectors_json":"{}"}"#));
    let next = Json::of(next.unwrap().as_str().unwrap());
    let id = next.list("missing_ids")[0].as_str().unwrap().to_owned();
    let vectors = format!(r#"{{"vectors":[{{"id":"{id}","vector":[1,2,3,4,5,6,7,8]}}]}}"#);
    let args =
        Json::object([("conversation", "d".into()), ("vectors_json", vectors.as_str().into())]);
    host.ask("recall.embed", &args).unwrap();
    assert_eq!(notes(&mut host), [Json::from("vectors-limited")]);
    assert_eq!(found(&near(&mut host, &ids[0], "", None).unwrap())[0], ids[0]);
}
