//! The commands and the keys of their JSON.

use serde_json::{Value, json};

use crate::{DEMO, Place, has, keys};

#[test]
fn the_demo_says_that_every_message_came_back() {
    let place = Place::new();
    let ran = place.run(&["demo"]).ok();
    let last = ran.out.lines().last().unwrap();
    assert_eq!(last, "All 83 messages came back byte for byte (64,555 bytes compared).");
    let sought = "4. grep: `TestSchedulerFiresOncePerSlot`";
    let (_, hits) = ran.out.split_once(sought).unwrap();
    assert!(hits.matches("TestSchedulerFiresOncePerSlot").count() >= 2, "{hits}");
    assert_eq!(std::fs::read_dir(&place.folder).unwrap().count(), 0, "the demo leaves no file");
    let demo = place.json(&["demo"]);
    assert_eq!(demo["byte_for_byte"], true);
    assert!(demo["tokens_before"].as_u64().unwrap() > 12_000);
    assert!(demo["tokens_assembled"].as_u64() <= demo["budget"].as_u64());
}

#[test]
fn ingest_reports_what_is_new_and_messages_give_it_back() {
    let place = Place::new();
    let first = place.json(&["ingest", DEMO]);
    let expected = [
        "context_tokens",
        "conversation",
        "ingested",
        "revision",
        "seq_first",
        "seq_last",
        "skipped",
        "warnings",
    ];
    assert_eq!(keys(&first), expected);
    assert_eq!(first["ingested"], 83);
    assert_eq!((&first["seq_first"], &first["seq_last"]), (&json!(1), &json!(83)));
    let bytes = std::fs::read(DEMO).unwrap();
    let again = place.run_with_input(&["ingest", "-", "--json"], &bytes).ok();
    let again: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!((&again["ingested"], &again["skipped"]), (&json!(0), &json!(83)));
    assert_eq!(again["seq_first"], Value::Null);
    assert_eq!(place.run(&["messages", "--raw"]).ok().out.as_bytes(), bytes);
    let some = place.run(&["messages", "--raw", "--seq-first", "2", "--seq-last", "3"]).ok().out;
    assert_eq!(some.lines().count(), 2);
}

#[test]
fn several_files_are_one_transcript_and_new_skips_nothing() {
    let place = Place::new();
    let a = place.write("a.jsonl", "{\"role\":\"user\",\"content\":\"one\"}\n");
    let b = place.write("b.jsonl", "{\"role\":\"assistant\",\"content\":\"two\"}\n");
    assert_eq!(place.json(&["ingest", &a, &b])["ingested"], 2);
    assert_eq!(place.json(&["ingest", &a, &b])["ingested"], 0);
    assert_eq!(place.json(&["ingest", "--append-mode", "new", &a])["ingested"], 1);
    assert_eq!(place.run(&["messages", "--raw"]).ok().out.lines().count(), 3);
}

#[test]
fn what_is_between_messages_is_dropped_and_counted() {
    let place = Place::new();
    let input = b"\xEF\xBB\xBF{\"role\":\"user\",\"content\":\"a\"}\r\n\n{\"role\":\"user\",\
        \"content\":\"b\"}";
    let ran = place.run_with_input(&["ingest", "--json"], input).ok();
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let expected =
        ["dropped 1 blank line", "dropped 1 byte-order mark", "dropped 1 carriage return"];
    assert_eq!(report["warnings"], json!(expected));
    let raw = place.run(&["messages", "--raw"]).ok().out;
    assert_eq!(
        raw,
        "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":\"b\"}\n"
    );
}

#[test]
fn compaction_reports_its_passes_and_the_context_fits() {
    let place = Place::with_demo();
    let report = place.json(&["compact", "--budget", "8000"]);
    has(&report, &["status", "reason", "passes", "completions", "tokens_before", "tokens_after"]);
    assert_eq!(report["status"], "done");
    let pass = &report["passes"][0];
    let expected = [
        "capped",
        "depth",
        "level",
        "provisional",
        "purpose",
        "replaces",
        "summary_id",
        "tokens_after",
        "tokens_before",
    ];
    assert_eq!(keys(pass), expected);
    assert_eq!((&pass["purpose"], &pass["level"]), (&json!("leaf"), &json!("fallback")));
    let again = place.json(&["compact", "--budget", "8000"]);
    assert_eq!(
        (&again["status"], &again["reason"]),
        (&json!("nothing-to-do"), &json!("below-threshold"))
    );
    assert_eq!(again["tokens_before"], report["tokens_after"]);

    let context = place.json(&["assemble", "--budget", "8000", "--explain"]);
    has(
        &context,
        &[
            "messages",
            "system",
            "tokens",
            "budget",
            "summaries",
            "fresh_tail_messages",
            "evicted",
            "prefix",
            "warnings",
            "items",
        ],
    );
    let prefix = ["breakpoints", "broken_by", "broken_why", "sha256", "stable_tokens", "token"];
    assert_eq!(keys(&context["prefix"]), prefix);
    assert!(context["tokens"].as_u64().unwrap() <= 8_000);
    let item = &context["items"][0];
    let expected = ["id", "included", "kind", "seq_first", "seq_last", "tokens", "why"];
    assert_eq!(keys(item), expected);
    let plain = place.json(&["assemble", "--budget", "8000"]);
    assert!(plain.get("items").is_none(), "items only with --explain");
}

#[test]
fn an_assembly_is_compared_with_an_earlier_one() {
    let place = Place::with_demo();
    let first = place.run(&["assemble", "--budget", "20000", "--json"]).ok().out;
    let file = place.write("first.json", first);
    let second = place.json(&["assemble", "--budget", "20000", "--previous", &file]);
    assert_eq!(second["prefix"]["stable_tokens"], second["tokens"]);
    assert_eq!(second["prefix"]["broken_by"], Value::Null);
}

#[test]
fn a_summary_is_described_and_expanded_to_the_messages() {
    let place = Place::with_demo();
    let report = place.json(&["compact", "--budget", "8000"]);
    let leaf = report["passes"][0]["summary_id"].as_str().unwrap();
    let description = place.json(&["describe", leaf]);
    has(
        &description,
        &[
            "id",
            "kind",
            "depth",
            "level",
            "capped",
            "tokens",
            "text",
            "earliest_at",
            "latest_at",
            "descendant_count",
            "source_ids",
            "derived_ids",
            "message_ids",
            "seq_first",
            "seq_last",
            "file_ids",
            "model",
            "trust",
            "findings",
            "subtree",
        ],
    );
    let expansion = place.json(&["expand", leaf, "--include-messages"]);
    has(&expansion, &["id", "summaries", "messages", "tokens", "truncated", "cursor"]);
    let bytes = std::fs::read_to_string(DEMO).unwrap();
    let messages = expansion["messages"].as_array().unwrap();
    let last = description["seq_last"].as_u64().unwrap();
    assert_eq!(messages.len(), usize::try_from(last).unwrap());
    for (message, line) in messages.iter().zip(bytes.lines()) {
        assert_eq!(message["raw"], line);
    }
    let page = place.json(&["expand", leaf, "--include-messages", "--tokens-max", "400"]);
    assert_eq!(page["truncated"], true);
    let next = page["cursor"].as_str().unwrap();
    let rest = place.json(&["expand", leaf, "--include-messages", "--cursor", next]);
    let count = |value: &Value| value["messages"].as_array().unwrap().len();
    assert_eq!(count(&page) + count(&rest), messages.len());
}

#[test]
fn a_file_that_is_cut_says_where_it_goes_on() {
    let place = Place::new();
    let line = "a line of what the tool said\n";
    let lines = line.repeat(4_000);
    let message = json!({"role": "tool", "parts": [
        {"type": "tool_result", "call_id": "1", "name": "cat", "output": lines}]});
    let file = place.write("large.jsonl", format!("{message}\n"));
    let config = place.write("config.json", r#"{"large_payload_tokens_min": 1000}"#);
    place.run(&["ingest", &file, "--config", &config]).ok();
    let context = place.run(&["assemble", "--budget", "100000", "--json"]).ok().out;
    let id = context.split_once("Tool Output: ").unwrap().1.split(' ').next().unwrap();

    let bytes = lines.len();
    let cut = place.run(&["describe", id, "--start-line", "1", "--end-line", "2000"]).ok().out;
    let note = "[cut at byte 32,768 of 116,000; continue with --start-byte 32768]\n";
    assert!(cut.ends_with(note), "{cut}");
    let last = place.run(&["describe", id, "--start-byte", &(bytes - 100).to_string()]).ok().out;
    assert!(last.ends_with(line), "{last}");

    let refused = |arguments: &[&str], why: &str| {
        place.run(&[&["describe", id], arguments].concat()).failed(2, "invalid-input", why);
    };
    refused(&["--start-line", "9", "--end-line", "8"], "before the start 9");
    refused(&["--start-byte", "9", "--end-byte", "8"], "before the start 9");
    refused(&["--bytes-max", "512001"], "1024 to 512000");
    refused(&["--bytes-max", "1023"], "1024 to 512000");
}

#[test]
fn status_lists_and_digests_have_their_keys() {
    let place = Place::with_demo();
    place.run(&["compact", "--budget", "8000"]).ok();
    let status = place.json(&["status"]);
    has(
        &status,
        &[
            "conversation",
            "revision",
            "messages",
            "summaries",
            "context",
            "fresh_tail",
            "message_tokens",
            "compression_ratio",
            "debt",
            "file_bytes",
            "breakers",
            "ledger",
        ],
    );
    assert!(status["file_bytes"].as_u64().unwrap() > 4_096);
    let check = place.json(&["check"]);
    has(
        &check["metrics"]["bytes"],
        &["raw", "packs", "summaries", "index", "blobs", "journal", "total"],
    );
    assert_eq!(keys(&check), ["checks", "metrics", "ok"]);
    assert_eq!(check["ok"], true);
    assert_eq!(place.json(&["conversations"])["conversations"][0]["conversation"], "default");
    let summaries = place.json(&["summaries"]);
    let count = summaries["summaries"].as_array().unwrap().len();
    let tree = place.run(&["summaries", "--tree"]).ok().out;
    assert_eq!(tree.lines().count(), count);
    assert!(tree.contains("\n\u{251c}\u{2500} sum_"), "{tree}");
    let digest = place.digest();
    assert_eq!(digest.trim().len(), 64);
    assert_eq!(place.json(&["digest"])["sha256"], digest.trim());
    assert_ne!(place.json(&["digest", "--logical"])["sha256"], digest.trim());
}

#[test]
fn a_status_for_people_has_what_was_reported_and_nothing_else() {
    let place = Place::with_demo();
    let usage = || {
        let text = place.run(&["status"]).ok().out;
        let lines = text.lines().filter(|line| line.starts_with("usage"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(usage().is_empty(), "{:?}", usage());
    let report = ["usage", "--purpose", "summary", "--input-tokens", "1500", "--cost-micros", "45"];
    place.run(&report).ok();
    let said = "usage of summaries cache_read_tokens 0, cache_write_tokens 0, calls 1, \
                cost_micros 45, input_tokens 1,500, output_tokens 0";
    assert_eq!(usage(), [said]);
}

#[test]
fn the_same_commands_with_the_same_clock_make_the_same_store() {
    let digest = || {
        let place = Place::new();
        let now = ["--now", "1700000000000"];
        place.run(&[&["ingest", DEMO], &now[..]].concat()).ok();
        place.run(&[&["compact", "--budget", "8000"], &now[..]].concat()).ok();
        place.digest()
    };
    assert_eq!(digest(), digest());
}

#[test]
fn global_options_stand_before_or_after_the_command() {
    let place = Place::new();
    place.run(&["--store", "x.db", "--conversation", "a", "ingest", DEMO]).ok();
    let after = place.json(&["status", "--conversation", "a", "--store", "x.db"]);
    assert_eq!(after["messages"], 83);
    let mut command = place.command(&["status", "--conversation", "a"]);
    let ran = crate::Ran::of(command.env("LCM_STORE", "x.db").output().unwrap()).ok();
    assert!(ran.out.contains("83"));
}

#[test]
fn the_file_goes_before_the_environment() {
    let place = Place::with_demo();
    let config = place.write("config.json", "{\"fresh_tail_messages_max\": 5}");
    let tail = |name: &str, value: &str| {
        let mut command = place.command(&["status", "--json", "--config", &config]);
        let ran = crate::Ran::of(command.env(name, value).output().unwrap()).ok();
        let status: Value = serde_json::from_str(&ran.out).unwrap();
        status["fresh_tail"]["messages_max"].as_u64().unwrap()
    };
    assert_eq!(tail("LCM_ENABLED", "true"), 5);
    assert_eq!(tail("LCM_FRESH_TAIL_COUNT", "9"), 5);
    let mut command = place.command(&["status", "--json"]);
    let ran = crate::Ran::of(command.env("LCM_FRESH_TAIL_COUNT", "9").output().unwrap()).ok();
    assert!(ran.out.contains("\"messages_max\":9"), "{}", ran.out);
    assert_eq!(ran.err, "lcm: note: 1 of the keys have other names here, see `lcm config`\n");
}

/// The first step of a vector: what the reference system's configuration comes to.
fn resolved_in(vector: &str) -> Value {
    let place = format!("../../tests/vectors/setup/{vector}.json");
    let text = std::fs::read_to_string(place).unwrap();
    let vector: Value = serde_json::from_str(&text).unwrap();
    vector.pointer("/steps/0").unwrap().clone()
}

/// Each name of the reference system's configuration that neither acts, nor is another name of a
/// key, nor has a line that says why not.
fn silent_names(given: &Value, report: &Value) -> Vec<String> {
    let list = |name: &str| report[name].as_array().unwrap().clone();
    let acts = [list("accepted"), list("host")].concat();
    let aliased = list("aliased").iter().map(|alias| alias["key"].clone()).collect();
    let told = [aliased, list("deprecated"), list("not_followed"), list("overridden")].concat();
    let others = ["TZ", "PATH", "LCM_STORE"];
    let names = given.as_object().unwrap().keys().filter(|name| !others.contains(&&***name));
    names
        .filter(|name| {
            let own = name.trim_start_matches("LCM_").to_ascii_lowercase();
            !acts.contains(&own.into()) && !told.contains(&Value::from(name.as_str()))
        })
        .cloned()
        .collect()
}

fn assert_report(report: &Value, expected: &Value) {
    for (list, expected) in expected.as_object().unwrap() {
        assert_eq!(report[list], *expected, "{list}");
    }
}

#[test]
fn the_reference_configuration_loads_and_each_key_without_effect_is_told() {
    let place = Place::with_demo();
    let sample = resolved_in("reference-sample-configuration-loads");
    let given = &sample["args"]["config_json"];
    assert_eq!(given.as_object().unwrap().len(), 57);
    let config = place.write("sample.json", given.to_string());
    let shown = place.json(&["config", "--config", &config]);
    assert_eq!(silent_names(given, &shown["report"]), [""; 0]);
    assert_report(&shown["report"], &sample["expect"]["report"]);
    assert!(shown["config"]["time_offsets"].as_array().unwrap().len() > 60);
    let store = ["--store", "default.lcm.db"];
    let ran = place.run(&[&["status", "--config", &config], &store[..]].concat()).ok();
    for note in sample["expect"]["report"]["notes"].as_array().unwrap() {
        let (key, note) = (note["key"].as_str().unwrap(), note["note"].as_str().unwrap());
        assert!(ran.err.contains(&format!("lcm: warning: `{key}`: {note}\n")), "{}", ran.err);
    }

    let variables = resolved_in("reference-variables-are-followed-or-reported");
    let given = &variables["args"]["variables_json"];
    let texts = given.as_object().unwrap().iter();
    let texts = texts.filter(|(name, _)| name.starts_with("LCM_") && *name != "LCM_STORE");
    let texts: Vec<_> = texts.map(|(name, text)| (name, text.as_str().unwrap())).collect();
    assert!(texts.len() >= 70);
    let mut command = place.command(&["config", "--json"]);
    let ran = crate::Ran::of(command.envs(texts).output().unwrap()).ok();
    let shown: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(silent_names(given, &shown["report"]), [""; 0]);
    assert_report(&shown["report"], &variables["expect"]["report"]);
}

#[test]
fn the_store_may_be_named_by_the_configuration() {
    let place = Place::new();
    let mut command = place.command(&["ingest", DEMO]);
    crate::Ran::of(command.env("LCM_DATABASE_PATH", "named.db").output().unwrap()).ok();
    assert_eq!(place.json(&["status", "--store", "named.db"])["messages"], 83);
    let config = place.write("config.json", "{\"databasePath\": \"named.db\"}");
    let mut command = place.command(&["status", "--json", "--config", &config]);
    let ran = crate::Ran::of(command.env("LCM_DATABASE_PATH", "other.db").output().unwrap()).ok();
    assert!(ran.out.contains("\"messages\":83"), "{}", ran.out);
    assert!(ran.err.contains("`LCM_DATABASE_PATH`: not used: `databasePath` goes before it"));
}

#[test]
fn a_configured_model_is_asked_or_an_error() {
    let place = Place::with_demo();
    let compact = |model: &str, more: &[&str]| {
        let words = [&["compact", "--budget", "4000", "--retries", "0"], more].concat();
        let mut command = place.command(&words);
        crate::Ran::of(command.env("LCM_SUMMARY_MODEL", model).output().unwrap())
    };
    let ran = compact("gpt-5.4-mini", &[]);
    ran.failed(2, "invalid-input", "`summary_model` must have a provider");
    // Nobody listens there: the model was asked.
    let ran = compact("openai/small@http://127.0.0.1:9/v1", &[]);
    let printed = [ran.out, ran.err].concat();
    assert!(printed.contains("cannot be reached at http://127.0.0.1:9/v1"), "{printed}");
    let ran = compact("openai/small@http://127.0.0.1:9/v1", &["--llm", "offline"]).ok();
    assert!(ran.err.contains("`summary_model`: not used: `--llm` goes before it"), "{}", ran.err);
    // A command that asks no model needs none.
    let mut command = place.command(&["status"]);
    crate::Ran::of(command.env("LCM_SUMMARY_MODEL", "gpt-5.4-mini").output().unwrap()).ok();
}
