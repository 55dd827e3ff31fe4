#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a panic in a test is its failure")]
//! The description of the interface in `schema/`: what is written from it is up to date, and the
//! JSON of every golden vector is as described.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use lcm_core::Engine;
use lcm_testing::{Json, host::RecordedCall, vector_runner};
use serde_json::{Value, json};
use xtask::interface::{self, Exports, Form, Kind, Payload, Schema};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// What was compared, by place, and what differs.
#[derive(Default)]
struct Comparison {
    checked: BTreeMap<String, usize>,
    findings: Vec<String>,
}

/// The description with what is compared to it.
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
        let findings = self.schema.compare(kind, value);
        found.findings.extend(findings.iter().map(|finding| format!("{place}: {finding}")));
    }

    /// Drops the keys of a configuration that are aliases or unknown: they are reported, no error.
    fn drop_other_keys(&self, config: &mut Value) {
        let Form::Object(members) = &self.schema.shape("Configuration").unwrap().form else {
            panic!("the configuration is no object")
        };
        if let Some(config) = config.as_object_mut() {
            config.retain(|key, _| members.iter().any(|member| member.name == *key));
        }
    }

    /// Compares the JSON of one call.
    fn compare_call(&self, call: &RecordedCall, found: &mut Comparison) {
        let (args, result) = (value_of(&call.args), value_of(&call.result));
        let name = call.name.replace('_', "-");
        // Vectors shorten long texts, which are written out behind the recorder.
        if args.to_string().contains("$repeat") {
            return;
        }
        let verb = args.get("verb").and_then(Value::as_str).unwrap_or_default();
        let verb = self.exports.verbs.iter().find(|known| known.name == verb);
        if let Some(export) = self.exports.exports.iter().find(|export| export.name == name) {
            for (place, payload) in &export.arguments {
                let Some(mut value) = find_json(&args, place) else { continue };
                if name == "setup.configure" {
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

fn value_of(json: &Json) -> Value {
    serde_json::from_str(&json.compact()).unwrap()
}

/// The JSON at a place such as `options.extra-json`, which may stand there as its text.
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

/// Findings without what follows from another element of the same list.
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
    assert!(expected.is_empty(), "no vector has {expected:#?}");
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

/// The engine names every key that it knows when none is given.
#[test]
fn the_configuration_has_the_keys_and_bounds_of_the_engine() {
    let schema = Schema::load(&root()).unwrap();
    let Form::Object(members) = &schema.shape("Configuration").unwrap().form else { panic!() };
    let mut engine = Engine::new();
    let report: Value = serde_json::from_str(&engine.configure("{}").unwrap()).unwrap();
    let mut known: Vec<&str> =
        report["defaulted"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut described: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    known.sort_unstable();
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
