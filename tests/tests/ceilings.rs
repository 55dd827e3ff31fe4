#![expect(
    clippy::as_conversions,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Bounds on the number of store calls of each operation, for any length of the history.
//!
//! The test store counts its calls. In every test it also checks by itself that no call asks for
//! too much at once, and that a commit is the last store call of an operation.

use lcm_testing::{CallCounts, Host, Json, host::StoreMode, vector_runner};

/// Lengths of the histories, in messages.
const LENGTHS: [u64; 3] = [100, 2_000, 20_000];
/// Tokens of each message.
const TOKENS: u64 = 60;
const MIB: u64 = 1 << 20;
const HEAD_BYTES_MAX: usize = 4096;
const APPEND_JOURNAL_BYTES_MAX: usize = 64;

fn per_mib(bytes: u64) -> u64 {
    bytes.div_ceil(MIB)
}

fn append(host: &mut Host, first: u64, count: u64, tokens: u64) -> CallCounts {
    let args = Json::of(&format!(
        r#"{{"messages":[{{"$generate":{{"count":{count},"tokens":{tokens},
            "roles":["user","assistant"],"first":{first}}}}}],"options":{{"append_mode":"new"}}}}"#
    ));
    host.ask("ingest.append", &args).unwrap();
    host.store.counts()
}

/// Creates a conversation of `messages` messages, in batches of 100.
fn history(messages: u64) -> Host {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    for first in (1..=messages).step_by(100) {
        let counts = append(&mut host, first, 100.min(messages + 1 - first), TOKENS);
        assert_ingest(&counts, &format!("message {first}"));
    }
    host
}

fn compacted(messages: u64) -> Host {
    let mut host = history(messages);
    let script = Json::of(r#"[{"tokens":100,"times":0}]"#);
    host.model = lcm_testing::scripted_model::ScriptedModel::new(script.elements()).unwrap();
    let args = Json::of(r#"{"budget":16000,"options":{"requests_max":8}}"#);
    vector_runner::drive(&mut host, &args, vector_runner::Answers::Scripted).unwrap().unwrap();
    host
}

fn assert_ingest(counts: &CallCounts, place: &str) {
    assert!(counts.get_many <= 2, "{place}: {counts:?}");
    assert_eq!((counts.scan, counts.commit), (0, 1), "{place}: {counts:?}");
}

fn assemble(host: &mut Host, budget: u64) -> (CallCounts, Json) {
    let args = Json::object([("budget", budget.into())]);
    let assembled = host.ask("context.assemble", &args).unwrap();
    let counts = host.store.counts();
    assert_eq!((counts.scan, counts.commit), (0, 0), "assemble only reads keys: {counts:?}");
    (counts, assembled)
}

fn text_bytes(assembled: &Json) -> u64 {
    assembled.field("messages_json").unwrap().as_str().unwrap().len() as u64
}

/// Calls `look` with every history, raw and compacted.
fn each_history(mut look: impl FnMut(&mut Host, &str)) {
    for messages in LENGTHS {
        look(&mut history(messages), &format!("{messages} raw messages"));
        look(&mut compacted(messages), &format!("{messages} compacted messages"));
    }
}

#[test]
fn ingest_makes_two_reads_and_one_commit() {
    each_history(|host, place| {
        for cold in [false, true] {
            host.cold = cold;
            for count in [1, 100] {
                let counts = append(host, 1_000_000, count, TOKENS);
                assert_ingest(&counts, &format!("{count} to {place}, cold {cold}"));
            }
        }
    });
}

#[test]
fn ingest_of_a_redacted_copy_reads_the_newest_messages_too() {
    each_history(|host, place| {
        let args =
            Json::of(r#"{"messages": [{"role": "user", "content": "the key is [REDACTED] now"}]}"#);
        host.store.begin_call();
        host.ask("ingest.append", &args).unwrap();
        let counts = host.store.counts();
        assert!(counts.reads() <= 3 && counts.commit == 1, "{place}: {counts:?}");
    });
}

#[test]
fn ingest_of_staged_text_reads_it_once() {
    let mut host = history(100);
    let text = format!(r#"{{"role":"user","content":"{}"}}"#, "lossless ".repeat(400_000));
    let upload = lcm_testing::digest::text_sha256(&text);
    for (index, piece) in text.as_bytes().chunks(180_000).enumerate() {
        let args = Json::object([
            ("upload", upload.as_str().into()),
            ("offset", (index as u64 * 180_000).into()),
            ("text", std::str::from_utf8(piece).unwrap().into()),
        ]);
        host.ask("ingest.stage", &args).unwrap();
        let counts = host.store.counts();
        assert!(counts.reads() <= 2 && counts.commit == 1, "piece {index}: {counts:?}");
    }
    let args = Json::of(&format!(r#"{{"messages":["@upload {upload}"]}}"#));
    host.ask("ingest.append", &args).unwrap();
    let counts = host.store.counts();
    let most = 2 + per_mib(text.len() as u64);
    assert!(u64::from(counts.reads()) <= most && counts.commit == 1, "{most}: {counts:?}");
    assert!(counts.bytes_written < 64 * 1024, "staged text is not written again: {counts:?}");
}

#[test]
fn assemble_cold_does_not_depend_on_the_length_of_the_history() {
    each_history(|host, place| {
        for budget in [3_000, 16_000, 200_000] {
            host.restart().unwrap();
            let (counts, assembled) = assemble(host, budget);
            let most = 5 + per_mib(text_bytes(&assembled));
            assert!(u64::from(counts.reads()) <= most, "{place}, {budget}: {most}: {counts:?}");
        }
    });
}

#[test]
fn assemble_cold_of_large_messages_reads_each_mebibyte_once() {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    for first in 1..=60 {
        append(&mut host, first, 1, 25_000);
    }
    for budget in [100_000, 400_000, 2_000_000] {
        host.restart().unwrap();
        let (counts, assembled) = assemble(&mut host, budget);
        let most = 5 + per_mib(text_bytes(&assembled));
        assert!(u64::from(counts.reads()) <= most, "{budget}: {most}: {counts:?}");
    }
}

#[test]
fn assemble_warm_reads_the_head_and_what_is_new() {
    each_history(|host, place| {
        for budget in [3_000, 16_000] {
            assemble(host, budget);
            let (counts, _) = assemble(host, budget);
            assert_eq!(counts.reads(), 1, "{place}, {budget}, unchanged: {counts:?}");
            append(host, 1_000_000, 1, TOKENS);
            let (counts, _) = assemble(host, budget);
            assert!(counts.reads() <= 3, "{place}, {budget}, after an append: {counts:?}");
            let other = host.store.clone();
            let mut second = Host::new(None, StoreMode::Plain).unwrap();
            second.store = other;
            append(&mut second, 1_000_001, 1, TOKENS);
            host.store = second.store;
            let (counts, _) = assemble(host, budget);
            assert!(counts.reads() <= 3, "{place}, {budget}, another's append: {counts:?}");
        }
    });
}

/// Goal: the cost of a status and of a description does not grow with the messages. Method: count
/// the reads and bytes of both in a new instance, without a cache.
#[test]
fn status_and_describe_do_not_depend_on_the_length_of_the_history() {
    each_history(|host, place| {
        host.cold = true;
        for (name, args, reads_max, bytes_max) in [
            ("admin.status", r#"{"conversation":"c","now":1}"#, 8, 8_192),
            ("recall.describe", r#"{"id":"c","options_json":{},"now":1}"#, 16, 2 * MIB),
        ] {
            host.store.begin_call();
            host.ask(name, &Json::of(args)).unwrap();
            let counts = host.store.counts();
            assert!(counts.reads() <= reads_max, "{name} of {place}: {counts:?}");
            assert!(counts.bytes_read <= bytes_max, "{name} of {place}: {counts:?}");
        }
    });
}

/// If a model is named, the record of its reports is read together with the head, without a further
/// read.
#[test]
fn a_model_is_read_with_the_head() {
    each_history(|host, place| {
        let ask = |host: &mut Host, call: &str, args: &str| {
            host.ask(call, &Json::of(args)).unwrap();
            host.store.counts()
        };
        let report = r#"{"verb":"calibrate","arguments_json":
            {"model":"m","estimated_tokens":1000,"prompt_tokens":1300}}"#;
        let counts = ask(host, "admin.call", report);
        assert!(counts.reads() <= 3 && counts.commit == 1, "{place}: {counts:?}");
        for (call, budget) in [
            ("compaction.evaluate", 4_000_000),
            ("compaction.plan", 4_000_000),
            ("context.assemble", 3_000),
        ] {
            let args = |extra: &str| format!(r#"{{"budget":{budget},"options":{{{extra}}}}}"#);
            let reads = ["", r#""extra_json":{"model":"m"}"#].map(|extra| {
                host.restart().unwrap();
                ask(host, call, &args(extra)).reads()
            });
            assert_eq!(reads[0], reads[1], "{place}: {call}");
        }
    });
}

fn plan(host: &mut Host, budget: u64, options: &str) -> (CallCounts, Json) {
    let args = Json::object([("budget", budget.into()), ("options", Json::of(options))]);
    let plan = host.ask("compaction.plan", &args).unwrap();
    let counts = host.store.counts();
    assert_eq!(counts.scan, 0, "plan does not scan: {counts:?}");
    (counts, plan)
}

fn prompt_bytes(plan: &Json) -> u64 {
    let requests = plan.field("requests").map(Json::elements).unwrap_or_default();
    let length = |request: &Json| request.field("prompt").unwrap().as_str().unwrap().len() as u64;
    requests.iter().map(length).sum()
}

/// Some answers of the script become fallbacks, which are provisional summaries. A plan reads them,
/// and stops at once if the session has no completions left. The context bounds the number of
/// provisional summaries, and so the number of reads; neither grows with the history.
#[test]
fn plan_makes_two_reads_when_nothing_is_due() {
    each_history(|host, place| {
        host.restart().unwrap();
        let (counts, plan) = plan(host, 4_000_000, "{}");
        let status = host.told("admin.status", r#"{"conversation":"c","now":1}"#).unwrap();
        let provisional = status.field("provisional").unwrap().as_u64().unwrap();
        let is_settled = provisional == 0;
        let is_idle = match plan.field("status").unwrap().as_str().unwrap() {
            "nothing-due" => true,
            "stopped" => !is_settled,
            _ => false,
        };
        assert!(is_idle, "{place}: {plan}");
        let reads_max = if is_settled { 2 } else { 8 };
        assert!(counts.reads() <= reads_max && counts.commit == 0, "{place}: {counts:?}");
    });
}

#[test]
fn plan_and_apply_make_four_reads_and_one_commit_when_something_is_due() {
    for messages in LENGTHS {
        let store = history(messages).store;
        for (requests_max, lease_ms) in [(1, 0), (8, 0), (1, 1000), (8, 1000)] {
            for cold in [false, true] {
                let place = format!("{messages}, {requests_max}, lease {lease_ms}, cold {cold}");
                let mut host = Host::new(None, StoreMode::Plain).unwrap();
                host.store = store.clone();
                host.cold = cold;
                let options = format!(
                    r#"{{"force":true,"requests_max":{requests_max},"lease_ms":{lease_ms}}}"#
                );
                let (counts, plan) = plan(&mut host, 6_000, &options);
                let most = 4 + per_mib(prompt_bytes(&plan));
                assert!(u64::from(counts.reads()) <= most, "plan {place}: {most}: {counts:?}");
                assert_eq!(counts.commit, u32::from(lease_ms > 0), "plan {place}: {counts:?}");
                let requests = plan.field("requests").unwrap().elements();
                assert!(!requests.is_empty(), "{place}: {plan}");
                for request in requests {
                    apply(&mut host, request, &place);
                }
            }
        }
    }
}

#[test]
fn plan_of_large_messages_reads_each_mebibyte_once() {
    // The bound is so large that no reference takes the place of a payload.
    let config = Json::object([("large_payload_tokens_min", 1_000_000_u64.into())]);
    let mut host = Host::new(Some(config), StoreMode::Plain).unwrap();
    for first in 1..=20 {
        append(&mut host, first, 1, 25_000);
    }
    host.cold = true;
    for requests_max in [1, 8] {
        let options = format!(r#"{{"force":true,"requests_max":{requests_max}}}"#);
        let (counts, plan) = plan(&mut host, 100_000, &options);
        let requests = plan.field("requests").unwrap().elements();
        assert_eq!(requests.len(), requests_max, "each message is a chunk of its own");
        // A part over the chunk size is cut in the prompt, but has to be read to be cut.
        let most = 4 + per_mib(requests_max as u64 * 100_000);
        assert!(u64::from(counts.reads()) <= most, "plan {requests_max}: {most}: {counts:?}");
        for request in requests {
            apply(&mut host, request, &format!("large, {requests_max}"));
        }
    }
}

fn apply(host: &mut Host, request: &Json, place: &str) {
    let text = lcm_testing::facade::messages::padded("summary ", 's', 100);
    let answer = Json::object([("done", Json::object([("text", text.into())]))]);
    let id = request.field("id").unwrap().clone();
    let args = Json::object([("request_id", id), ("answer", answer)]);
    let outcome = host.ask("compaction.apply", &args).unwrap();
    let counts = host.store.counts();
    assert_eq!(outcome.field("applied").unwrap().as_str(), Some("committed"), "{place}");
    let sources = request.field("prompt").unwrap().as_str().unwrap().len() as u64;
    let most = 4 + per_mib(sources);
    assert!(u64::from(counts.reads()) <= most, "apply {place}: {most}: {counts:?}");
    assert_eq!((counts.scan, counts.commit), (0, 1), "apply {place}: {counts:?}");
}

#[test]
fn condensations_keep_the_same_ceilings() {
    for messages in [2_000, 20_000] {
        let mut host = compacted(messages);
        host.cold = true;
        let options = r#"{"mode":"sweep","target":1500}"#;
        let (counts, plan) = plan(&mut host, 16_000, options);
        let most = 4 + per_mib(prompt_bytes(&plan));
        assert!(u64::from(counts.reads()) <= most, "{messages}: {most}: {counts:?}");
        let requests = plan.field("requests").unwrap().elements();
        for request in requests {
            apply(&mut host, request, &format!("{messages} condensed"));
        }
        println!("{messages}: {} condensations", requests.len());
    }
}

#[test]
fn heads_and_journal_entries_stay_small() {
    for messages in LENGTHS {
        let raw = history(messages);
        for (key, value) in raw.store.entries() {
            if key.contains("/j") {
                assert!(value.len() <= APPEND_JOURNAL_BYTES_MAX, "`{key}`: {}", value.len());
            }
        }
        for host in [raw, compacted(messages)] {
            let heads = host.store.entries().iter().filter(|(key, _)| key.ends_with("/h"));
            for (key, value) in heads {
                assert!(value.len() <= HEAD_BYTES_MAX, "{messages}: `{key}`: {}", value.len());
            }
        }
    }
}

fn grep(host: &mut Host, query: &str) -> (CallCounts, Json) {
    let args = Json::object([("query_json", Json::of(query))]);
    let answer = host.ask("recall.grep", &args).unwrap();
    let counts = host.store.counts();
    assert_eq!((counts.scan, counts.commit), (0, 0), "grep only reads keys: {counts:?}");
    (counts, Json::of(answer.as_str().unwrap()))
}

/// Reads of a search without those of its terms and hits: the head, the manifest, the roots of the
/// segments of both corpora, lengths, times, messages in no segment yet, the directory and packs.
const GREP_READS: u64 = 10;

#[test]
fn grep_of_words_reads_by_terms_and_hits_not_by_messages() {
    each_history(|host, place| {
        for (query, terms) in [
            (r#"{"pattern":"message","limit":10}"#, 2),
            (r#"{"pattern":"77","limit":10}"#, 1),
            (r#"{"pattern":"nowhere","limit":10}"#, 2),
            (r#"{"pattern":"message 50 xx","limit":200}"#, 4),
            (r#"{"pattern":"\"message 50\"","limit":10}"#, 4),
            (r#"{"pattern":"message","sort":"recency","limit":10}"#, 2),
        ] {
            host.restart().unwrap();
            let (counts, answer) = grep(host, query);
            let hits = answer.field("matches").unwrap().elements().len() as u64;
            let most = GREP_READS + 2 * terms + hits.div_ceil(8);
            assert!(u64::from(counts.reads()) <= most, "{place}, {query}: {most}: {counts:?}");
        }
    });
}

#[test]
fn grep_of_an_expression_reads_units_with_its_grams_and_each_mebibyte_once() {
    each_history(|host, place| {
        let stored: usize = host.store.entries().values().map(Vec::len).sum();
        for (pattern, whole) in [("x.x", true), ("e 99 x", false), ("nowhere", false)] {
            host.restart().unwrap();
            let query = format!(r#"{{"pattern":"{pattern}","mode":"regex","limit":10}}"#);
            let (counts, _) = grep(host, &query);
            let most = GREP_READS + 8 + if whole { 2 * per_mib(stored as u64) } else { 0 };
            assert!(u64::from(counts.reads()) <= most, "{place}, {pattern}: {most}: {counts:?}");
        }
    });
}

/// A question reads by its terms and passages, for any length of the history.
#[test]
fn a_question_reads_by_terms_and_passages_not_by_messages() {
    each_history(|host, place| {
        let question = r#"{"question":"Which message says 17 or 93?","deadline_ms":1}"#;
        let now = 1_700_000_000_000_u64;
        let args = Json::object([("question_json", Json::of(question)), ("now", now.into())]);
        host.restart().unwrap();
        let asked = host.ask("recall.ask_plan", &args).unwrap();
        let counts = host.store.counts();
        assert!(asked.as_str().unwrap().contains("\"asked\""), "{place}");
        // Reads of the terms as in any search, and of the packs of at most 100 hits.
        let most = GREP_READS + 2 * 5 + 100_u64.div_ceil(8);
        assert!(u64::from(counts.reads()) <= most, "{place}: {most}: {counts:?}");
        assert_eq!((counts.scan, counts.commit), (0, 1), "{place}: {counts:?}");
    });
}
