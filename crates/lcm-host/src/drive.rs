//! Tasks of several calls: the component says what comes next, and here it is carried out.
//!
//! In: a task and what only the host has, its messages and its model. Out: the result of the task.
//! The instructions are described in `wit/drive.wit`; nothing is decided here.

use std::{collections::BTreeMap, ops::Range, thread, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    ask::Request,
    clock::{Cancel, Clock},
    completion::failed,
    digest::sha256_hex,
    dynamic,
    error::{Code, Error, Result},
    json,
    lcm::{CONFLICT_RETRIES_MAX, Failure, Lcm},
    record::completion_result,
    types::{CompletionErrorCode, CompletionRequest, CompletionResult},
};

/// What the host is told of a task while it runs.
pub(crate) enum Progress<'a> {
    /// The messages before this index are done.
    Messages(usize),
    /// A summary was made.
    Pass(&'a Value),
}

/// What a task needs of its host.
pub(crate) struct Parts<'a> {
    pub(crate) clock: Clock,
    pub(crate) messages: &'a [String],
    pub(crate) cancel: &'a Cancel,
    pub(crate) progress: &'a mut dyn FnMut(Progress<'_>),
    /// Whether the component is told when the work is stopped, before it ends.
    pub(crate) tells_stop: bool,
}

/// What a task did.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) result: Map<String, Value>,
    pub(crate) passes: Vec<Value>,
    pub(crate) warnings: Vec<String>,
}

/// A failed task, with the index of the message at fault.
pub(crate) struct Fault {
    pub(crate) error: Error,
    pub(crate) index: Option<usize>,
}

impl<E: Into<Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self { error: error.into(), index: None }
    }
}

/// An instruction, as `wit/drive.wit` describes it.
#[derive(Deserialize)]
struct Instruction {
    #[serde(rename = "do")]
    what: String,
    #[serde(default)]
    token: String,
    #[serde(default)]
    call: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    messages: Option<Cut>,
    #[serde(default)]
    keep: bool,
    #[serde(default)]
    entries: bool,
    #[serde(default)]
    once: bool,
    request: Option<usize>,
    #[serde(flatten)]
    cut: Cut,
    #[serde(default)]
    piece_bytes_max: usize,
    #[serde(default)]
    wait_ms: u64,
    pass: Option<Value>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    note: Map<String, Value>,
    #[serde(default)]
    result: Map<String, Value>,
    error: Option<Told>,
}

/// A range of messages or requests.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Cut {
    index_first: usize,
    count: usize,
    bytes_max: usize,
}

impl Cut {
    fn range(self) -> Range<usize> {
        self.index_first..self.index_first.saturating_add(self.count)
    }
}

#[derive(Deserialize)]
struct Told {
    code: String,
    message: String,
    index: Option<usize>,
}

/// One task on its way.
struct Driver<'a> {
    lcm: &'a Lcm,
    parts: Parts<'a>,
    outcome: Outcome,
    /// References to the large messages that were uploaded, by index.
    uploads: BTreeMap<usize, String>,
    /// Identities that the component asked to keep.
    kept: Vec<String>,
    requests: Vec<CompletionRequest>,
    answers: BTreeMap<usize, CompletionResult>,
    /// The last failed call, which the task may fail with.
    failure: Option<Error>,
}

/// What a task says of its messages.
pub(crate) fn measures(messages: &[String]) -> Value {
    let sizes = || messages.iter().map(String::len);
    json!({"count": messages.len(), "bytes": sizes().sum::<usize>(),
        "bytes_longest": sizes().max().unwrap_or(0)})
}

impl Lcm {
    /// Carries out a task.
    pub(crate) fn drive<'a>(
        &'a self,
        task: &Value,
        parts: Parts<'a>,
    ) -> std::result::Result<Outcome, Fault> {
        let mut driver = Driver {
            lcm: self,
            parts,
            outcome: Outcome::default(),
            uploads: BTreeMap::new(),
            kept: Vec::new(),
            requests: Vec::new(),
            answers: BTreeMap::new(),
            failure: None,
        };
        driver.run(task)?;
        Ok(driver.outcome)
    }
}

impl Driver<'_> {
    fn run(&mut self, task: &Value) -> std::result::Result<(), Fault> {
        let begin = json!({"task_json": task.to_string(), "now": self.parts.clock.now_ms()});
        let mut instruction = self.instruction("drive.begin", &begin)?;
        let mut is_stopped = false;
        loop {
            self.note(&mut instruction);
            if let Some(told) = instruction.error {
                return Err(self.fault(told));
            }
            if instruction.what == "done" {
                return if is_stopped { Err(Error::cancelled().into()) } else { Ok(()) };
            }
            let event = match self.parts.cancel.check() {
                Err(error) if !self.parts.tells_stop => return Err(error.into()),
                Err(_) if !is_stopped => {
                    is_stopped = true;
                    json!({"stopped": true})
                }
                _ => {
                    self.wait(instruction.wait_ms);
                    self.perform(&instruction)?
                }
            };
            let step = json!({"token": instruction.token, "event_json": event.to_string(),
                "now": self.parts.clock.now_ms()});
            instruction = self.instruction("drive.step", &step)?;
        }
    }

    fn instruction(&self, function: &str, arguments: &Value) -> Result<Instruction> {
        let answer = self.lcm.call_json(function, arguments)?;
        json::read(function, answer.as_str().unwrap_or_default())
    }

    fn note(&mut self, instruction: &mut Instruction) {
        let outcome = &mut self.outcome;
        if let Some(pass) = instruction.pass.take() {
            (self.parts.progress)(Progress::Pass(&pass));
            outcome.passes.push(pass);
        }
        for warning in std::mem::take(&mut instruction.warnings) {
            if !outcome.warnings.contains(&warning) {
                outcome.warnings.push(warning);
            }
        }
        outcome.result.append(&mut instruction.note);
        outcome.result.append(&mut instruction.result);
    }

    fn fault(&mut self, told: Told) -> Fault {
        let Told { code, message, index } = told;
        // A code of the host alone, such as that of a trap, is known from the call.
        let known = self.failure.take().filter(|known| known.code.as_str() == code);
        let code = known.map_or_else(|| dynamic::code(&code).into(), |known| known.code);
        Fault { error: Error::new(code, message), index }
    }

    fn wait(&self, wait_ms: u64) {
        if wait_ms > 0 {
            let share = crate::lcm::random_below(wait_ms.saturating_mul(1_000));
            self.parts.cancel.sleep(Duration::from_micros(share));
        }
    }

    /// Carries an instruction out; returns its event.
    fn perform(&mut self, instruction: &Instruction) -> Result<Value> {
        let (done, index) = match instruction.what.as_str() {
            "complete" => (self.complete(instruction.cut).map_err(Failure::from), None),
            "call" => (self.call(instruction), None),
            _ => self.stage(instruction),
        };
        match done {
            Ok(event) => Ok(event),
            // A store that did not begin a commit is not asked again.
            Err(failure)
                if failure.error.code == Code::StoreUnavailable && !failure.is_unknown() =>
            {
                Err(failure.error)
            }
            Err(failure) => {
                let Error { code, message } = &failure.error;
                let code = code.as_str();
                let event = json!({"error": {"code": code, "message": message, "index": index}});
                self.failure = Some(failure.error);
                Ok(event)
            }
        }
    }

    fn call(&mut self, instruction: &Instruction) -> std::result::Result<Value, Failure> {
        let function = instruction.call.as_str();
        let mut arguments = instruction.arguments.clone();
        if let Some(cut) = instruction.messages {
            if function == "ingest.append" {
                (self.parts.progress)(Progress::Messages(cut.index_first));
                self.parts.cancel.check()?;
            }
            arguments.insert("messages".to_owned(), self.cut(cut).into());
        }
        if instruction.entries
            && let Some(Value::String(asked)) = arguments.get_mut("transcript_json")
        {
            asked.pop();
            *asked = format!("{asked},\"entries\":[{}]}}", self.kept.join(","));
        }
        if let Some(place) = instruction.request {
            let id = self.requests.get(place).map(|request| request.id.clone());
            arguments.insert("request_id".to_owned(), id.into());
            if let Some(answer) = self.answers.get(&place) {
                arguments.entry("answer").or_insert_with(|| completion_result(answer));
            }
        }
        let repeats_max = if instruction.once { 0 } else { CONFLICT_RETRIES_MAX };
        let result = self.lcm.call_value(function, &arguments.into(), repeats_max)?;
        if let (true, Some(text)) = (instruction.keep, result.as_str()) {
            if instruction.messages.is_some_and(|cut| cut.index_first == 0) {
                self.kept.clear();
            }
            self.kept.push(text.trim_start_matches('[').trim_end_matches(']').to_owned());
        }
        self.take_requests(instruction.request, &result)?;
        Ok(json!({ "result": result }))
    }

    /// Keeps the requests of a plan, or the one that takes the place of another.
    fn take_requests(&mut self, place: Option<usize>, result: &Value) -> Result<()> {
        let read = |request: &Value| {
            let text = request.to_string();
            json::read::<Request>("compaction.plan", &text)?.read()
        };
        if let Some(requests) = result.get("requests").and_then(Value::as_array) {
            self.requests = requests.iter().map(read).collect::<Result<_>>()?;
        }
        let next = result.get("next").filter(|next| !next.is_null());
        if let (Some(place), Some(next)) = (place, next)
            && let Some(request) = self.requests.get_mut(place)
        {
            *request = read(next)?;
        }
        Ok(())
    }

    /// The messages of one call: as many as fit, at least one unless `count` is 0.
    fn cut(&self, cut: Cut) -> Vec<&str> {
        let mut bytes = 0_usize;
        let mut messages = Vec::new();
        for index in cut.range() {
            let Some(message) = self.parts.messages.get(index) else { break };
            bytes = bytes.saturating_add(message.len());
            if !messages.is_empty() && bytes > cut.bytes_max {
                break;
            }
            messages.push(self.uploads.get(&index).unwrap_or(message).as_str());
        }
        messages
    }

    /// Uploads the messages of a range that are too large for a call; a failure names its message.
    fn stage(
        &mut self,
        instruction: &Instruction,
    ) -> (std::result::Result<Value, Failure>, Option<usize>) {
        let mut staged = 0;
        for index in instruction.cut.range() {
            let message = self.parts.messages.get(index);
            let Some(message) = message.filter(|text| text.len() > instruction.cut.bytes_max)
            else {
                continue;
            };
            if !self.uploads.contains_key(&index) {
                match self.upload(message, instruction) {
                    Ok(reference) => self.uploads.insert(index, reference),
                    Err(failure) => return (Err(failure), Some(index)),
                };
                staged += 1;
            }
        }
        (Ok(json!({ "staged": staged })), None)
    }

    fn upload(
        &self,
        message: &str,
        instruction: &Instruction,
    ) -> std::result::Result<String, Failure> {
        let mut arguments = instruction.arguments.clone();
        let family = arguments.remove("family");
        let upload = sha256_hex(message.as_bytes());
        let extra = json!({"bytes": message.len(), "family": family});
        arguments.insert("extra_json".to_owned(), extra.to_string().into());
        arguments.insert("upload".to_owned(), upload.clone().into());
        let mut offset = 0;
        while offset < message.len() {
            self.parts.cancel.check()?;
            let end = offset.saturating_add(instruction.piece_bytes_max);
            let piece = message.get(offset..message.floor_char_boundary(end));
            arguments.insert("offset".to_owned(), offset.into());
            arguments.insert("text".to_owned(), piece.into());
            let given = Value::Object(arguments.clone());
            let next = self.lcm.call_value("ingest.stage", &given, CONFLICT_RETRIES_MAX)?;
            // More may be there already, from an earlier attempt.
            match next.as_u64().and_then(|next| usize::try_from(next).ok()) {
                Some(next) if next > offset => offset = next,
                _ => return Err(Error::internal("an upload does not advance").into()),
            }
        }
        Ok(format!("@upload {upload}"))
    }

    /// Has the model complete requests, all at the same time; says what became of each.
    fn complete(&mut self, cut: Cut) -> Result<Value> {
        let (lcm, cancel) = (self.lcm, self.parts.cancel);
        let missing = || Error::internal("`drive.step` asks for unknown requests");
        let requests = self.requests.get(cut.range()).ok_or_else(missing)?;
        let answers: Vec<CompletionResult> = match requests {
            [request] => vec![lcm.model().complete(request, cancel)],
            _ => thread::scope(|scope| {
                let ask = |request| scope.spawn(move || lcm.model().complete(request, cancel));
                let running: Vec<_> = requests.iter().map(ask).collect();
                running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
            }),
        };
        let said: Vec<Value> = answers
            .iter()
            .map(|answer| match answer {
                CompletionResult::Done(_) => json!({"done": true, "asked": 1}),
                CompletionResult::Failed(_) => completion_result(answer),
            })
            .collect();
        self.answers.extend(cut.range().zip(answers));
        Ok(json!({ "answers": said }))
    }
}

/// The answer of a provider that panicked.
fn lost() -> CompletionResult {
    failed(CompletionErrorCode::Other, "the provider panicked")
}
