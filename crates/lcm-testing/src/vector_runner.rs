//! Runs golden vectors against the engine as a library.
//!
//! In: a file and a store mode. Out: a [`Report`], or the failure of the vector. The loop of
//! `drive` and `offline` is the loop of every host package: plan, complete and apply, until no
//! sweep is left.

use std::{fs, path::Path};

use crate::{
    facade::{Answer, Misuse},
    host::{Host, RecordedCall, StoreMode},
    json::Json,
    matching,
    scripted_model::ScriptedModel,
    tool_form,
    vector::{Expectation, Step, Vector},
};

/// Most plans of one `drive` before the runner reports that `drive` does not end.
const PLANS_MAX: u32 = 2000;

/// Digests of a vector that was run.
#[derive(Clone, Debug)]
pub struct Report {
    /// SHA-256 of the store, computed without the engine.
    pub store_sha256: String,
    /// The digest that the vector expects; `None`: the vector has none yet.
    pub expected_sha256: Option<String>,
}

/// Runs the vector in `path`, and compares the digest of the store.
///
/// # Errors
///
/// One line with the step, the path in its result, the expected and the actual value; or the vector
/// has no digest, or another digest than the store.
pub fn run_vector(path: &Path, mode: StoreMode) -> Result<Report, String> {
    let report = run_steps(path, mode)?;
    match &report.expected_sha256 {
        None => Err("no `store_sha256`: run with LCM_BLESS=1".to_owned()),
        Some(expected) if *expected != report.store_sha256 => {
            Err(format!("store is {}, expected {expected}", report.store_sha256))
        }
        Some(_) => Ok(report),
    }
}

/// Runs the steps of the vector in `path`; its digest is reported, not compared.
///
/// # Errors
///
/// The vector cannot be read, or a step has another result than expected.
pub fn run_steps(path: &Path, mode: StoreMode) -> Result<Report, String> {
    let mut runner = run_to_end(path, mode, false)?;
    let store_sha256 = runner.digest()?;
    Ok(Report { store_sha256, expected_sha256: runner.expected_sha256 })
}

/// Runs the steps of the vector in `path` and returns every call that succeeded.
///
/// # Errors
///
/// The vector cannot be read, or a step has another result than expected.
pub fn record_calls(path: &Path) -> Result<Vec<RecordedCall>, String> {
    let runner = run_to_end(path, StoreMode::Plain, true)?;
    Ok(runner.host.recorded.unwrap_or_default())
}

fn run_to_end(path: &Path, mode: StoreMode, is_recorded: bool) -> Result<Runner, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    let vector = Vector::parse(&text)?;
    let host = Host::new(vector.config.clone(), mode).map_err(|error| error.to_string())?;
    let expected_sha256 = vector.store_sha256.clone();
    let mut runner =
        Runner { host, results: Vec::new(), tools: Default::default(), expected_sha256 };
    runner.host.recorded = is_recorded.then(Vec::new);
    runner.tools = [runner.definitions("conversation")?, runner.definitions("store")?];
    runner.host.model = ScriptedModel::new(&vector.completions)?;
    for (index, step) in vector.steps.iter().enumerate() {
        runner.step(step).map_err(|why| format!("step {index} ({}): {why}", step.call))?;
    }
    Ok(runner)
}

struct Runner {
    host: Host,
    results: Vec<Json>,
    /// Tool definitions of the main agent and of a sub-agent: first in the scope of the
    /// conversation, then in the scope of the store.
    tools: [Vec<Json>; 2],
    /// The digest that the vector expects; `None`: the vector has none yet.
    expected_sha256: Option<String>,
}

impl Runner {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        let args = replace_references(&step.args, &self.results)?;
        let answer = match step.call.as_str() {
            "restart" => self.restart(&args)?,
            "drive" => drive(&mut self.host, &args, Answers::Scripted)?,
            "offline" => drive(&mut self.host, &args, Answers::Offline)?,
            name => self.host.call(name, &args)?,
        };
        if let (true, Ok(result)) = (step.call.starts_with("tools."), &answer) {
            let is_store = args.field("scope").and_then(Json::as_str) == Some("store");
            tool_form::check(&args, result, &self.tools[usize::from(is_store)])?;
        }
        match (&step.expectation, &answer) {
            (Expectation::Success, Ok(_)) => {}
            (Expectation::Match(expected), Ok(result)) => {
                matching::check(expected, Some(result), "result")?;
            }
            (Expectation::Failure { code, message }, Err(error)) => {
                if error.code.as_str() != code {
                    return Err(format!("expected `{code}`, failed with {error}"));
                }
                if let Some(message) = message {
                    matching::check(message, Some(&error.message.as_str().into()), "message")?;
                }
            }
            (Expectation::Failure { code, .. }, Ok(result)) => {
                let came = matching::shorten(&result.compact());
                return Err(format!("expected `{code}`, came {came}"));
            }
            (_, Err(error)) => return Err(format!("failed with {error}")),
        }
        self.results.push(answer.unwrap_or(Json::Null));
        Ok(())
    }

    fn definitions(&mut self, scope: &str) -> Result<Vec<Json>, String> {
        let grants = [Json::Null, "grant_0000000000000000".into()];
        let of = |grant| {
            let args = [("dialect", "lcm".into()), ("grant", grant), ("scope", scope.into())];
            let args = Json::object(args);
            let answer = self.host.call("tools.definitions", &args)?;
            let answer = answer.map_err(|error| error.to_string())?;
            Json::parse(answer.as_str().unwrap_or_default())
        };
        grants.into_iter().map(of).collect()
    }

    fn restart(&mut self, args: &Json) -> Result<Answer, Misuse> {
        let restarted = match args {
            Json::Null => self.host.restart(),
            Json::Object(entries) => match entries.as_slice() {
                [] => self.host.restart(),
                [(key, config)] if key == "config" => self.host.restart_with(config.clone()),
                _ => return Err("`restart` has only the argument `config`".to_owned()),
            },
            _ => return Err("arguments of `restart` are an object".to_owned()),
        };
        Ok(restarted.map(|()| Json::Null))
    }

    /// Returns the digest of the store; an error if the engine computes another digest.
    fn digest(&mut self) -> Result<String, String> {
        let independent = self.host.store.digest();
        let by_engine = self.host.read_digest()?;
        if by_engine != independent {
            return Err(format!("admin.digest says {by_engine}, the store is {independent}"));
        }
        Ok(independent)
    }
}

/// Replaces every string `$N.path` in the arguments of a step by the value at `path` in the result
/// of step N, from 0.
///
/// # Errors
///
/// A reference names a step or a path that does not exist.
pub fn replace_references(value: &Json, results: &[Json]) -> Result<Json, Misuse> {
    Ok(match value {
        Json::String(text) => match reference(text) {
            Some((step, path)) => resolve(results, step, path)
                .ok_or_else(|| format!("reference `{text}` leads nowhere"))?,
            None => value.clone(),
        },
        Json::Array(elements) => Json::Array(
            elements
                .iter()
                .map(|element| replace_references(element, results))
                .collect::<Result<_, _>>()?,
        ),
        Json::Object(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, value)| Ok((key.clone(), replace_references(value, results)?)))
                .collect::<Result<_, Misuse>>()?,
        ),
        other => other.clone(),
    })
}

fn resolve(results: &[Json], step: usize, path: &str) -> Option<Json> {
    let mut value = results.get(step)?.clone();
    for name in path.split('.').filter(|name| !name.is_empty()) {
        if let Json::String(text) = &value {
            value = Json::parse(text).ok()?;
        }
        value = match name.parse::<usize>() {
            Ok(index) => value.element(index)?.clone(),
            Err(_) => value.field(name)?.clone(),
        };
    }
    Some(value)
}

fn reference(text: &str) -> Option<(usize, &str)> {
    let rest = text.strip_prefix('$')?;
    let (step, path) = rest.split_once('.').unwrap_or((rest, ""));
    let digits = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
    Some((step.parse().ok().filter(|_| digits)?, path))
}

/// Source of the answers of `drive`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answers {
    /// The completions of the vector.
    Scripted,
    /// The offline summariser (`compaction.complete_offline`).
    Offline,
}

/// Compacts with the loop of every host package: plans, answers the requests and applies the
/// answers.
///
/// # Errors
///
/// [`Misuse`]: `args` has an argument that `drive` does not have, no scripted completion fits, or
/// the loop does not end.
pub fn drive(host: &mut Host, args: &Json, answers: Answers) -> Result<Answer, Misuse> {
    if let Json::Object(entries) = args {
        let known = ["conversation", "budget", "now", "options"];
        if let Some((key, _)) = entries.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            return Err(format!("`drive` has no argument `{key}`"));
        }
    }
    let mut drive = Drive { host, args, answers, passes: Vec::new(), completions: 0 };
    let mut sweep = args.field("options").and_then(|options| options.field("sweep")).cloned();
    for _ in 0..PLANS_MAX {
        let plan = match drive.plan(sweep.as_ref())? {
            Ok(plan) => plan,
            Err(error) => return Ok(Err(error)),
        };
        for request in plan.field("requests").map(Json::elements).unwrap_or_default() {
            match drive.serve(request.clone())? {
                Ok(None) => {}
                Ok(Some(reason)) => return Ok(Ok(drive.result("refused".into(), reason))),
                Err(error) => return Ok(Err(error)),
            }
        }
        sweep = plan.field("sweep").cloned();
        let needs = plan.field("status").and_then(Json::as_str) == Some("needs-completions");
        if !needs && sweep.as_ref().and_then(Json::as_str).unwrap_or_default().is_empty() {
            let field = |name: &str| plan.field(name).cloned().unwrap_or(Json::Null);
            return Ok(Ok(drive.result(field("status"), field("reason"))));
        }
    }
    Err(format!("`drive` has not ended after {PLANS_MAX} plans"))
}

struct Drive<'a> {
    host: &'a mut Host,
    args: &'a Json,
    answers: Answers,
    passes: Vec<Json>,
    completions: u64,
}

impl Drive<'_> {
    /// Returns the arguments of `drive` that have one of these names, for a call of the loop.
    fn base(&self, names: &[&str]) -> Vec<(String, Json)> {
        names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), self.args.field(name)?.clone())))
            .collect()
    }

    fn plan(&mut self, sweep: Option<&Json>) -> Result<Answer, Misuse> {
        let mut args = self.base(&["conversation", "budget", "now"]);
        let mut options = match self.args.field("options") {
            Some(Json::Object(entries)) => entries.clone(),
            _ => Vec::new(),
        };
        options.retain(|(key, _)| key != "sweep");
        options.extend(sweep.map(|sweep| ("sweep".to_owned(), sweep.clone())));
        args.push(("options".to_owned(), Json::Object(options)));
        self.host.call("compaction.plan", &Json::Object(args))
    }

    /// Answers a request and the retries that follow. `Some`: the loop ends, with this reason;
    /// `None`: the loop continues.
    fn serve(
        &mut self,
        mut request: Json,
    ) -> Result<Result<Option<Json>, lcm_core::Error>, Misuse> {
        loop {
            let mut args = self.base(&["conversation", "now"]);
            args.push((
                "request_id".to_owned(),
                request.field("id").cloned().unwrap_or(Json::Null),
            ));
            args.push(("answer".to_owned(), self.complete(&request)?));
            self.completions += 1;
            let outcome = match self.host.call("compaction.apply", &Json::Object(args))? {
                Ok(outcome) => outcome,
                Err(error) => return Ok(Err(error)),
            };
            self.passes.push(outcome.clone());
            let text = |name: &str| outcome.field(name).and_then(Json::as_str).unwrap_or_default();
            match (text("applied"), text("reason")) {
                ("retry", _) => match outcome.field("next") {
                    Some(next) if *next != Json::Null => request = next.clone(),
                    _ => return Err("a `retry` without `next`".to_owned()),
                },
                ("refused", reason) if reason.starts_with("model-") => {
                    return Ok(Ok(Some(reason.into())));
                }
                _ => return Ok(Ok(None)),
            }
        }
    }

    fn complete(&mut self, request: &Json) -> Result<Json, Misuse> {
        if self.answers == Answers::Offline {
            let args = Json::object([("request", request.clone())]);
            let completion = self
                .host
                .call("compaction.complete_offline", &args)?
                .map_err(|error| error.to_string())?;
            return Ok(Json::object([("done", completion)]));
        }
        let fields = Json::object([("request", request.clone())]);
        let request = crate::facade::arguments::Args::new("drive", &fields)?.request("request")?;
        let answer = self.host.model.answer(&request).ok_or("no scripted completion fits")?;
        Ok(crate::facade::results::completion_result(&answer))
    }

    fn result(self, status: Json, reason: Json) -> Json {
        Json::object([
            ("status", status),
            ("reason", reason),
            ("passes", Json::Array(self.passes)),
            ("completions", self.completions.into()),
        ])
    }
}
