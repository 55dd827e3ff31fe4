#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
//! The description of the interface in `schema/`: the files generated from the description are up
//! to date, and the JSON of every golden vector is as described.

#[path = "interface/python_shapes.rs"]
mod python_shapes;
#[path = "interface/rust_shapes.rs"]
mod rust_shapes;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use lcm_core::Engine;
use lcm_testing::{
    Json,
    host::{Host, RecordedCall, StoreMode},
    vector_runner,
};
use serde_json::{Value, json};
use xtask::interface::{self, Exports, Form, Kind, Payload, Schema};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Numbers of compared values by place, and the differences.
#[derive(Default)]
struct Comparison {
    checked: BTreeMap<String, usize>,
    /// Names of the shapes that at least one value has.
    shapes: BTreeSet<String>,
    findings: Vec<String>,
}

/// The description of shapes and of exports.
struct Interface {
    schema: Schema,
    exports: Exports,
}

impl Interface {
    fn load() -> Self {
        Self { schema: Schema::load(&root()).unwrap(), exports: Exports::load(&root()).unwrap() }
    }

    fn compare(&self, place: &str, kind: &Kind, value: &Value, found: &mut Comparison) {
        *found.checked.entry(place.to_owned()).or_default() += 1;
        found.shapes.extend(self.schema.list_shapes(kind, value));
        let findings = self.schema.compare(kind, value);
        found.findings.extend(findings.iter().map(|finding| format!("{place}: {finding}")));
    }

    /// Removes the keys of a configuration that are aliases or unknown; the engine reports such
    /// keys without an error.
    fn drop_other_keys(&self, config: &mut Value) {
        let Form::Object(members) = &self.schema.find_shape("Configuration").unwrap().form else {
            panic!("the configuration is no object")
        };
        if let Some(config) = config.as_object_mut() {
            config.retain(|key, _| members.iter().any(|member| member.name == *key));
        }
    }

    /// Compares the JSON of one call with the description.
    fn compare_call(&self, call: &RecordedCall, found: &mut Comparison) {
        let (args, mut result) = (value_of(&call.args), value_of(&call.result));
        let name = call.name.replace('_', "-");
        // Vectors shorten long texts with `$repeat`; the recorder gets this short form.
        if args.to_string().contains("$repeat") {
            return;
        }
        let verb = args.get("verb").and_then(Value::as_str).unwrap_or_default();
        let verb = self.exports.verbs.iter().find(|known| known.name == verb);
        if let Some(export) = self.exports.exports.iter().find(|export| export.name == name) {
            for (place, payload) in &export.arguments {
                let Some(mut value) = find_json(&args, place) else { continue };
                if name == "setup.configure" || name == "setup.resolve" {
                    self.drop_other_keys(&mut value);
                }
                let (place, kind) = match (payload, verb) {
                    (Payload::Of(kind), _) => (format!("{name} {place}"), kind.clone()),
                    (Payload::Verb, Some(verb)) => {
                        (format!("{name} {}", verb.arguments), Kind::Ref(verb.arguments.clone()))
                    }
                    (Payload::Verb, None) => continue,
                };
                self.compare(&place, &kind, &value, found);
            }
            for (place, payload) in &export.results {
                let Some(value) = find_json(&result, place) else { continue };
                let (place, kind) = match (payload, verb) {
                    (Payload::Of(kind), _) => (format!("{name} -> {place}"), kind.clone()),
                    (Payload::Verb, Some(verb)) => {
                        (format!("{name} -> {}", verb.answer), Kind::Ref(verb.answer.clone()))
                    }
                    (Payload::Verb, None) => continue,
                };
                self.compare(&place, &kind, &value, found);
            }
            // The rest of a record is compared without its JSON texts, which have their own shapes.
            if let Some(members) = result.as_object_mut() {
                for (place, _) in &export.results {
                    members.remove(&place.replace('-', "_"));
                }
            }
        }
        if name == "admin.listing" {
            let kind = args.get("kind").and_then(Value::as_str).unwrap_or_default();
            let page = find_json(&result, "").unwrap();
            for item in page["items"].as_array().into_iter().flatten() {
                let shape = self.exports.listings.iter().find(|(known, _)| known == kind);
                let shape = Kind::Ref(shape.expect("a kind of list").1.clone());
                self.compare(&format!("{name} -> {kind}"), &shape, item, found);
            }
        }
        for (record, places) in &self.exports.records {
            for (place, kind) in places.iter().filter(|_| *record == name) {
                let value = if place.is_empty() { Some(&result) } else { result.get(place) };
                self.compare(&format!("{name} => {place}"), kind, value.unwrap(), found);
            }
        }
    }
}

/// Calls a function and returns its result.
fn ask(host: &mut Host, name: &str, args: &Value) -> Value {
    value_of(&host.ask(name, &Json::of(&args.to_string())).unwrap())
}

/// Makes the calls that no vector makes, and returns all calls.
fn make_calls_without_vectors() -> Vec<RecordedCall> {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    host.recorded = Some(Vec::new());
    let text = "The orchard needs water every second day, said the gardener. ".repeat(20);
    let messages: Vec<Value> = (0..80)
        .map(|place| json!({"role": "user", "content": format!("{place} {text}")}))
        .collect();
    let append = json!({"conversation": "c", "messages": messages, "now": 1000,
        "options": {"append_mode": "new"}});
    ask(&mut host, "ingest.append", &append);
    let extra = json!({"extra_json": {"model": "m"}});
    let plan = json!({"conversation": "c", "budget": 8000, "now": 2000});
    let plan = ask(&mut host, "compaction.plan", &plan);
    let request = &plan["requests"][0];
    let apply = |answer: Value| {
        json!({"conversation": "c", "request_id": request["id"], "now": 2000,
            "options": extra, "answer": answer})
    };
    let failed = json!({"failed": {"code": "auth", "message": "the key is refused"}});
    ask(&mut host, "compaction.apply", &apply(failed));
    let done = ask(&mut host, "compaction.complete_offline", &json!({"request": request}));
    ask(&mut host, "admin.status", &json!({"conversation": "c", "now": 2000}));
    ask(&mut host, "admin.status", &json!({"now": 2000}));
    begin_tasks(&mut host);
    ask(&mut host, "compaction.apply", &apply(json!({"done": done})));
    let run = json!({"conversation": "c", "budget": 1_000_000, "now": 3000, "options": extra});
    ask(&mut host, "compaction.run", &run);
    for kind in ["summaries", "messages"] {
        let list = json!({"kind": kind, "conversation": "c", "bytes_max": 100_000});
        ask(&mut host, "admin.listing", &list);
    }
    let prompts = json!({"conversation": "c", "verb": "prompts", "arguments_json": {}, "now": 1});
    ask(&mut host, "admin.call", &prompts);
    let page = json!({"conversation": "c", "bytes_max": 1 << 20});
    let page = find_json(&ask(&mut host, "admin.export_page", &page), "").unwrap();
    ask(&mut host, "admin.import_page", &json!({"lines": page["lines"], "now": 4000}));
    let rule = json!({"session": "agent:*", "context_threshold_permille": 600});
    let config = json!({"eviction_policy": "chronological", "context_threshold_overrides": [rule]});
    ask(&mut host, "setup.configure", &json!({"config_json": config}));
    host.recorded.unwrap()
}

/// Begins every task that no vector has, and drives it to its end.
fn begin_tasks(host: &mut Host) {
    let begin = |host: &mut Host, task: &Value| {
        find_json(&ask(host, "drive.begin", &json!({"task_json": task, "now": 2000})), "").unwrap()
    };
    let step = |host: &mut Host, instruction: &Value, event: &Value| {
        let args = json!({"token": instruction["token"], "event_json": event, "now": 2000});
        find_json(&ask(host, "drive.step", &args), "").unwrap()
    };
    let long = json!({"task": "append", "conversation": "d", "dialect": "anthropic", "count": 1,
        "bytes": 600_000, "bytes_longest": 600_000});
    let stage = begin(host, &long);
    assert_eq!(stage["do"], "stage");
    step(host, &stage, &json!({"staged": 1}));
    let error = json!({"error": {"code": "denied", "message": "archived"}});
    assert_eq!(step(host, &stage, &error)["do"], "fail");
    let compaction = |task: &str| -> Value {
        json!({"task": task, "conversation": "c", "budget": 8000, "mode": "threshold"})
    };
    let mut instruction = begin(host, &compaction("compact"));
    let plan = ask(host, "compaction.plan", &instruction["arguments"]);
    instruction = step(host, &instruction, &json!({"result": plan}));
    assert_eq!(instruction["do"], "complete");
    let failed = json!({"failed": {"code": "timeout", "message": "late"}, "asked": 1});
    step(host, &instruction, &json!({"answers": [failed]}));
    let remakes = json!({"task": "resummarize", "conversation": "c", "budget": 8000});
    for task in [compaction("maintain"), compaction("turn"), remakes] {
        let mut instruction = begin(host, &task);
        let mut requests = Value::Null;
        while instruction.get("token").is_some() {
            if let Some(place) = instruction["request"].as_u64() {
                let id = requests[usize::try_from(place).unwrap()]["id"].clone();
                instruction["arguments"]["request_id"] = id;
            }
            let event = match instruction["call"].as_str() {
                Some(call) => json!({"result": ask(host, call, &instruction["arguments"])}),
                None => json!({"stopped": true}),
            };
            if instruction["call"] == "compaction.plan" {
                requests = event["result"]["requests"].clone();
            }
            instruction = step(host, &instruction, &event);
        }
        assert_eq!(instruction["do"], "done");
    }
}

fn value_of(json: &Json) -> Value {
    serde_json::from_str(&json.compact()).unwrap()
}

/// Returns the JSON at a place such as `options.extra-json`. The value there may be the JSON or a
/// string with its text.
fn find_json(value: &Value, place: &str) -> Option<Value> {
    let mut value = value;
    for part in place.split('.').filter(|part| !part.is_empty()) {
        value = value.get(part.replace('-', "_"))?;
    }
    match value {
        Value::Null => None,
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => serde_json::from_str(text).ok(),
        other => Some(other.clone()),
    }
}

fn vectors() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for topic in fs::read_dir(root().join("tests/vectors")).unwrap().map(Result::unwrap) {
        if topic.file_type().unwrap().is_dir() {
            let files = fs::read_dir(topic.path()).unwrap().map(|file| file.unwrap().path());
            paths.extend(files.filter(|path| path.extension().is_some_and(|of| of == "json")));
        }
    }
    paths.sort();
    assert!(paths.len() > 100, "the vectors are not where they are looked for");
    paths
}

/// Returns the findings without those that differ from another only in the index in a list.
fn distinct(findings: &[String]) -> BTreeSet<String> {
    let without_places = |finding: &String| {
        finding.chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>()
    };
    let seen: BTreeMap<String, &String> =
        findings.iter().map(|finding| (without_places(finding), finding)).collect();
    seen.into_values().cloned().collect()
}

#[test]
fn generated_files_are_up_to_date() {
    let stale = interface::find_stale(&root()).unwrap();
    assert!(stale.is_empty(), "run `xtask interface`: {stale:#?}");
}

/// Shapes that hosts make and no call returns; the tests of the hosts compare them.
const HOST_SHAPES: [&str; 1] = ["ModelCalled"];

/// A member without a description fails, and so does a described member that is not there.
#[test]
fn the_json_of_the_vectors_is_as_described() {
    let described = Interface::load();
    let mut found = Comparison::default();
    for path in vectors() {
        for call in vector_runner::record_calls(&path).unwrap() {
            let before = found.findings.len();
            described.compare_call(&call, &mut found);
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            for finding in found.findings.iter_mut().skip(before) {
                *finding = format!("{name}: {finding}");
            }
        }
    }
    for call in make_calls_without_vectors() {
        described.compare_call(&call, &mut found);
    }
    for (place, count) in &found.checked {
        println!("{count:6} {place}");
    }
    let mut expected: Vec<String> = Vec::new();
    for export in &described.exports.exports {
        let of = |payload: &Payload| matches!(payload, Payload::Of(_));
        let arguments = export.arguments.iter().filter(|(_, payload)| of(payload));
        expected.extend(arguments.map(|(place, _)| format!("{} {place}", export.name)));
        let results = export.results.iter().filter(|(_, payload)| of(payload));
        expected.extend(results.map(|(place, _)| format!("{} -> {place}", export.name)));
    }
    for verb in &described.exports.verbs {
        expected.push(format!("admin.call {}", verb.arguments));
        expected.push(format!("admin.call -> {}", verb.answer));
    }
    for (kind, _) in &described.exports.listings {
        expected.push(format!("admin.listing -> {kind}"));
    }
    expected.retain(|place| !found.checked.contains_key(place));
    assert!(found.findings.is_empty(), "{:#?}", distinct(&found.findings));
    assert!(expected.is_empty(), "nothing was compared at {expected:#?}");
    let wire = described.schema.closure(described.exports.wire_roots());
    let names: Vec<&str> = wire.iter().map(|shape| shape.name.as_str()).collect();
    println!("{} places, {} shapes", found.checked.len(), names.len());
    let is_seen = |name: &&str| found.shapes.contains(*name) || HOST_SHAPES.contains(name);
    let unseen: Vec<&str> = names.into_iter().filter(|name| !is_seen(name)).collect();
    assert!(unseen.is_empty(), "no value has the shapes {unseen:?}");
}

#[test]
fn a_result_that_differs_is_found() {
    let described = Interface::load();
    let grant = json!({"tokens": 1, "tokens_left": 2, "truncated": false});
    let good = json!({"cursor": null, "matches": [], "notes": [], "total": 0, "truncated": false,
        "grant": grant});
    let compare = |value: &Value| {
        let result = Json::of(&json!({"text": value.to_string()}).to_string());
        let result = result.field("text").unwrap().clone();
        let call = RecordedCall { name: "recall.grep".into(), args: Json::Null, result };
        let mut found = Comparison::default();
        described.compare_call(&call, &mut found);
        assert_eq!(found.checked.len(), 1);
        found.findings.len()
    };
    assert_eq!(compare(&good), 0);
    let mut undescribed = good.clone();
    undescribed["unscanned_from"] = json!({"id": "msg_1"});
    assert_eq!(compare(&undescribed), 1);
    let mut missing = good.clone();
    missing.as_object_mut().unwrap().remove("notes");
    assert_eq!(compare(&missing), 1);
    let mut other = good;
    other["grant"]["tokens"] = json!("1");
    assert_eq!(compare(&other), 1);
}

/// The engine lists every key that it knows if the configuration is empty.
#[test]
fn the_configuration_has_the_keys_and_bounds_of_the_engine() {
    let schema = Schema::load(&root()).unwrap();
    let Form::Object(members) = &schema.find_shape("Configuration").unwrap().form else { panic!() };
    let mut engine = Engine::new();
    let report: Value = serde_json::from_str(&engine.configure("{}").unwrap()).unwrap();
    let mut known: Vec<&str> =
        report["defaulted"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut described: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    // The settings of hosts are not part of the engine; `resolve` returns them beside the models.
    let resolved = lcm_text::config::resolve_config("{}", "{}").unwrap();
    let resolved: Value = serde_json::from_str(&resolved).unwrap();
    known.extend(resolved["host"].as_object().unwrap().keys().map(String::as_str));
    known.sort_unstable();
    known.dedup();
    described.sort_unstable();
    assert_eq!(described, known);
    for member in members {
        let mut is_accepted = |value: &Value| {
            engine.configure(&json!({ member.name.clone(): value }).to_string()).is_ok()
        };
        if let Some(default) = &member.default {
            assert!(is_accepted(default), "`{}` refuses its default", member.name);
        }
        if let Kind::Integer(least, most) = *member.kind.present() {
            assert!(is_accepted(&json!(least)), "`{}` refuses {least}", member.name);
            assert!(!is_accepted(&json!(least - 1)), "`{}` accepts {}", member.name, least - 1);
            let most = most.expect("a greatest value");
            assert!(is_accepted(&json!(most)), "`{}` refuses {most}", member.name);
            assert!(!is_accepted(&json!(most + 1)), "`{}` accepts {}", member.name, most + 1);
        }
        let is_nullable = matches!(member.kind, Kind::Nullable(_));
        assert_eq!(is_accepted(&Value::Null), is_nullable, "`{}` and null", member.name);
    }
}
