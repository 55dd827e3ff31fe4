//! Every golden vector through this host: once with a store that answers at once, and once with
//! one that answers every first read with `would-block`.
//!
//! Writes `dist/vectors-wasmtime.json` beside the reports of the other hosts.
//! `LCM_VECTOR=topic/claim` runs one.

mod matching;
mod ordered;
mod script;
mod stores;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use lcm_host::{Code, Error, Lcm, types::CompletionRequest};
use serde_json::{Map, Value, json};

use self::{ordered::Ordered, script::Script, stores::Shared};
use crate::engine::component;

/// Repetitions of one call that wait for reads, and plans of one `drive`.
const ROUNDS_MAX: u32 = 2_000;

type Answer = Result<Value, Error>;

struct Runner {
    lcm: Lcm,
    store: Shared,
    script: Arc<Mutex<Script>>,
    results: Vec<Value>,
}

impl Runner {
    fn new(vector: &Ordered, blocking: bool) -> Result<Self, String> {
        let store = Shared::new(blocking);
        let completions = vector.get("completions").map_or(Value::Null, Ordered::plain);
        let script = Arc::new(Mutex::new(Script::new(&completions)?));
        let asked = Arc::clone(&script);
        let model = move |request: &CompletionRequest| asked.lock().unwrap().answer(request);
        let lcm = Lcm::new(&component(), Box::new(store.clone()), Arc::new(model));
        let runner = Self { lcm, store, script, results: Vec::new() };
        if let Some(config) = vector.get("config") {
            runner.lcm.configure(&config.compact()).map_err(|error| error.to_string())?;
        }
        Ok(runner)
    }

    fn run(&mut self, vector: &Ordered) -> Result<String, String> {
        for (index, step) in vector.get("steps").ok_or("no `steps`")?.items().iter().enumerate() {
            let call = step.get("call").and_then(Ordered::text).ok_or("a step without `call`")?;
            self.step(call, step).map_err(|why| format!("step {index} ({call}): {why}"))?;
        }
        let digest = self.store.digest();
        let engine = self.call("admin.digest", &Value::Null).map_err(|error| error.to_string())?;
        let wanted = vector.get("store_sha256").and_then(Ordered::text).unwrap_or_default();
        if wanted != digest || !engine.as_str().unwrap_or_default().contains(&digest) {
            return Err(format!("the store is {digest}, expected {wanted}; the engine: {engine}"));
        }
        Ok(digest)
    }

    fn step(&mut self, call: &str, step: &Ordered) -> Result<(), String> {
        let nothing = Ordered::Object(Vec::new());
        let arguments = script::arguments(call, step.get("args").unwrap_or(&nothing))?;
        let arguments = self.resolved(arguments)?;
        let answer = match call {
            "restart" => self.restart(&arguments),
            "drive" => self.drive(&arguments, false)?,
            "offline" => self.drive(&arguments, true)?,
            _ => self.call(call, &arguments),
        };
        if self.script.lock().unwrap().missing {
            return Err("no scripted completion fits".to_owned());
        }
        match (step.get("expect").map(Ordered::plain), step.get("expect_error"), &answer) {
            (Some(expected), None, Ok(result)) => {
                matching::check(&expected, Some(result), "result")?;
            }
            (None, Some(failure), Err(error)) => {
                let code = failure.get("code").and_then(Ordered::text).unwrap_or_default();
                if error.code.as_str() != code {
                    return Err(format!("expected `{code}`, failed with {error}"));
                }
                if let Some(message) = failure.get("message").map(Ordered::plain) {
                    let came = Value::from(error.message.as_str());
                    matching::check(&message, Some(&came), "message")?;
                }
            }
            (None, None, Ok(_)) => {}
            (.., came) => return Err(format!("expected otherwise, came {came:?}")),
        }
        self.results.push(answer.unwrap_or(Value::Null));
        Ok(())
    }

    /// One call, repeated until all reads it waits for are there.
    fn call(&self, function: &str, arguments: &Value) -> Answer {
        self.store.begin_call();
        for _ in 0..ROUNDS_MAX {
            match self.lcm.call_json(function, arguments) {
                Err(error) if error.code == Code::WouldBlock => self.store.fetch(),
                Ok(value) => {
                    return match self.store.finish_call() {
                        Ok(()) => Ok(value),
                        Err(error) => {
                            self.lcm.park();
                            Err(error.into())
                        }
                    };
                }
                Err(error) => return Err(error),
            }
        }
        panic!("`{function}` waits for ever");
    }

    fn restart(&self, arguments: &Value) -> Answer {
        self.lcm.park();
        match arguments.get("config") {
            Some(config) => self.lcm.configure(&config.to_string()).map(|_| Value::Null),
            None => Ok(Value::Null),
        }
    }

    /// The loop that every host has.
    fn drive(&self, arguments: &Value, offline: bool) -> Result<Answer, String> {
        let base = |names: &[&str]| -> Map<String, Value> {
            let given = names.iter().filter_map(|name| Some((*name, arguments.get(*name)?)));
            given.map(|(name, value)| (name.to_owned(), value.clone())).collect()
        };
        let mut options = arguments.get("options").cloned().unwrap_or_else(|| json!({}));
        let (mut passes, mut completions) = (Vec::new(), 0);
        for _ in 0..ROUNDS_MAX {
            let mut plan = base(&["conversation", "budget", "now"]);
            plan.insert("options".to_owned(), options.clone());
            let plan = match self.call("compaction.plan", &plan.into()) {
                Ok(plan) => plan,
                Err(error) => return Ok(Err(error)),
            };
            for request in plan["requests"].as_array().into_iter().flatten() {
                let mut request = request.clone();
                while !request.is_null() {
                    let mut apply = base(&["conversation", "now"]);
                    apply.insert("request_id".to_owned(), request["id"].clone());
                    apply.insert("answer".to_owned(), self.complete(&request, offline)?);
                    completions += 1;
                    let outcome = match self.call("compaction.apply", &apply.into()) {
                        Ok(outcome) => outcome,
                        Err(error) => return Ok(Err(error)),
                    };
                    passes.push(outcome.clone());
                    let reason = outcome["reason"].as_str().unwrap_or_default();
                    if outcome["applied"] == "refused" && reason.starts_with("model-") {
                        return Ok(Ok(json!({"status": "refused", "reason": reason,
                            "passes": passes, "completions": completions})));
                    }
                    let retry = outcome["applied"] == "retry";
                    request = if retry { outcome["next"].clone() } else { Value::Null };
                }
            }
            if plan["status"] != "needs-completions" && plan["sweep"] == "" {
                return Ok(Ok(json!({"status": plan["status"], "reason": plan["reason"],
                    "passes": passes, "completions": completions})));
            }
            options["sweep"] = plan["sweep"].clone();
        }
        Err("`drive` comes to no end".to_owned())
    }

    fn complete(&self, request: &Value, offline: bool) -> Result<Value, String> {
        if offline {
            let arguments = json!({ "request": request });
            let done = self.call("compaction.complete_offline", &arguments);
            return Ok(json!({ "done": done.map_err(|error| error.to_string())? }));
        }
        let purpose = request["purpose"].as_str().unwrap_or_default();
        let answer = self.script.lock().unwrap().answer_json(purpose);
        answer.ok_or_else(|| "no scripted completion fits".to_owned())
    }

    /// Puts results of earlier steps in the place of `$STEP.path`.
    fn resolved(&self, value: Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => match self.referred(&text) {
                Some(found) => found.ok_or(format!("`{text}` leads nowhere"))?,
                None if text.starts_with('{') => Value::String(self.resolved_within(&text)?),
                None => Value::String(text),
            },
            Value::Array(items) => {
                items.into_iter().map(|item| self.resolved(item)).collect::<Result<_, _>>()?
            }
            Value::Object(fields) => Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| Ok((key, self.resolved(value)?)))
                    .collect::<Result<_, String>>()?,
            ),
            other => other,
        })
    }

    /// The same of strings in a JSON text, whose other bytes stay; what is referred to may be any
    /// value.
    fn resolved_within(&self, json: &str) -> Result<String, String> {
        let (mut text, mut quote) = (String::new(), "");
        for piece in json.split('"') {
            if let Some(found) = self.referred(piece) {
                text += &found.ok_or(format!("`{piece}` leads nowhere"))?.to_string();
                quote = "";
            } else {
                text = text + quote + piece;
                quote = "\"";
            }
        }
        Ok(text)
    }

    fn referred(&self, text: &str) -> Option<Option<Value>> {
        let (step, path) = text.strip_prefix('$')?.split_once('.').unwrap_or((&text[1..], ""));
        let mut value = self.results.get(step.parse::<usize>().ok()?).cloned();
        for name in path.split('.').filter(|name| !name.is_empty()) {
            if let Some(Value::String(text)) = &value {
                value = serde_json::from_str(text).ok();
            }
            value = match name.parse::<usize>() {
                Ok(index) => value.and_then(|value| value.get(index).cloned()),
                Err(_) => value.and_then(|value| value.get(name).cloned()),
            };
        }
        Some(value)
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn vectors() -> BTreeMap<String, PathBuf> {
    let root = workspace().join("tests/vectors");
    let wanted = env::var("LCM_VECTOR").unwrap_or_default();
    let topics = fs::read_dir(&root).unwrap().map(|topic| topic.unwrap().path());
    let files = topics.filter(|topic| topic.is_dir()).flat_map(|topic| {
        fs::read_dir(topic).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>()
    });
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| (path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(), path))
        .filter(|(name, _)| name.contains(&wanted))
        .collect()
}

fn run(path: &Path, blocking: bool) -> Result<String, String> {
    let vector = Ordered::parse(&fs::read_to_string(path).unwrap())?;
    Runner::new(&vector, blocking)?.run(&vector)
}

#[test]
fn every_vector_holds_with_both_kinds_of_store() {
    let vectors = vectors();
    assert!(!vectors.is_empty(), "no vector found");
    let (mut digests, mut failures) = (BTreeMap::new(), Vec::new());
    let mut would_block_passed = 0;
    for (name, path) in &vectors {
        match run(path, false) {
            Ok(digest) => drop(digests.insert(name, digest)),
            Err(why) => failures.push(format!("{name}: {why}")),
        }
        match run(path, true) {
            Ok(_) => would_block_passed += 1,
            Err(why) => failures.push(format!("{name} (would-block): {why}")),
        }
    }
    if env::var("LCM_VECTOR").is_err() {
        let report = json!({"host": "wasmtime", "vectors": vectors.len(),
            "passed": digests.len(), "would_block_passed": would_block_passed,
            "digests": digests});
        fs::write(workspace().join("dist/vectors-wasmtime.json"), format!("{report}\n")).unwrap();
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
