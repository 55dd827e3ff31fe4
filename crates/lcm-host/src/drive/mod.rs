//! Tasks of several calls: the component returns instructions, and the host carries them out.
//!
//! In: a task and what only the host has, its messages and its model. Out: the result of the task.
//! `wit/drive.wit` describes the instructions; the host decides nothing.

mod instruction;
mod messages;
mod turn;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{
    ask::read_requests,
    clock::{Cancel, Clock},
    compaction::Pass,
    completion::{OFFLINE_MODEL, complete_all},
    error::{Code, Error, Result},
    events,
    ingest::IngestResult,
    json,
    lcm::{CONFLICT_RETRIES_MAX, Failure, Lcm, random_below},
    record::completion_result,
    types::CompletionRequest,
};
use instruction::Instruction;
use messages::TaskMessages;
pub(crate) use messages::measure_messages;

/// What a task needs of its caller.
pub(crate) struct Parts<'a> {
    pub(crate) clock: Clock,
    pub(crate) cancel: &'a Cancel,
    pub(crate) messages: &'a [String],
    /// Receives the number of finished messages.
    pub(crate) on_messages: Option<&'a mut dyn FnMut(usize)>,
    pub(crate) on_pass: Option<&'a mut dyn FnMut(&Pass)>,
}

/// A task in progress.
struct Driver<'a> {
    lcm: &'a Lcm,
    parts: Parts<'a>,
    messages: TaskMessages<'a>,
    state: TaskState,
}

/// What the component asked the host to keep for a task.
#[derive(Default)]
struct TaskState {
    /// Elements of results, as parts of a JSON array.
    kept: Vec<String>,
    requests: Vec<CompletionRequest>,
    /// Answers by the place of their request.
    answers: BTreeMap<usize, Value>,
    result: Map<String, Value>,
    passes: Vec<Value>,
    warnings: Vec<String>,
}

impl Lcm {
    /// Carries out a task and returns its report.
    pub(crate) fn drive<'a, T>(&'a self, task: &Value, parts: Parts<'a>) -> IngestResult<T>
    where
        T: DeserializeOwned,
    {
        let _span = events::enter_task_span(task);
        let messages = TaskMessages { texts: parts.messages, uploads: BTreeMap::new() };
        let mut driver = Driver { lcm: self, parts, messages, state: TaskState::default() };
        driver.run(task)?;
        Ok(driver.state.into_report()?)
    }
}

impl Driver<'_> {
    fn run(&mut self, task: &Value) -> IngestResult<()> {
        let begin = json!({"task_json": task.to_string()});
        let mut instruction = self.fetch_instruction("drive.begin", begin)?;
        let mut stop = None;
        while instruction.kind != "done" {
            let event = match self.parts.cancel.check() {
                Err(stopped) if stop.is_none() => {
                    stop = Some(stopped);
                    json!({"stopped": true})
                }
                _ => self.perform(&mut instruction)?,
            };
            let step = json!({"token": instruction.token, "event_json": event.to_string()});
            instruction = self.fetch_instruction("drive.step", step)?;
        }
        stop.map_or(Ok(()), |stopped| Err(stopped.into()))
    }

    /// Asks for the next instruction, and keeps what the instruction reports of the task.
    fn fetch_instruction(&mut self, call: &str, mut given: Value) -> IngestResult<Instruction> {
        let now = self.parts.clock.now_ms().into();
        given.as_object_mut().and_then(|members| members.insert("now".to_owned(), now));
        let answer = self.lcm.call_json(call, &given)?;
        let mut next: Instruction = json::read(call, answer.as_str().unwrap_or_default())?;
        if let Some(pass) = next.pass.take() {
            if let (Some(on_pass), Ok(pass)) = (&mut self.parts.on_pass, Pass::deserialize(&pass)) {
                on_pass(&pass);
            }
            self.state.passes.push(pass);
        }
        let appended = next.messages.filter(|_| next.call == "ingest.append");
        let finished = (next.kind == "done").then_some(self.parts.messages.len());
        let finished = appended.map(|range| range.index_first).or(finished);
        if let (Some(on_messages), Some(finished)) = (&mut self.parts.on_messages, finished) {
            on_messages(finished);
        }
        next.events.drain(..).for_each(|event| events::emit_event(&event));
        for warning in next.warnings.drain(..) {
            if !self.state.warnings.contains(&warning) {
                self.state.warnings.push(warning);
            }
        }
        self.state.result.append(&mut next.note);
        self.state.result.append(&mut next.result);
        next.error.take().map_or(Ok(next), |failed| Err(failed.into()))
    }

    /// Carries out an instruction and returns its event.
    fn perform(&mut self, instruction: &mut Instruction) -> Result<Value> {
        let wait = Duration::from_micros(random_below(instruction.wait_ms.saturating_mul(1_000)));
        self.parts.cancel.sleep(wait);
        let mut index = None;
        let event = match instruction.kind.as_str() {
            "complete" => self.complete_requests(instruction).map_err(Failure::from),
            "call" => self.call_export(instruction),
            _ => self.stage_messages(instruction, &mut index),
        };
        event.or_else(|failure| {
            let Error { code, message } = &failure.error;
            // The component repeats a call whose commit may have been written. Any other failure of
            // the store ends the task here.
            if *code == Code::StoreUnavailable && !failure.is_unknown() {
                return Err(failure.error);
            }
            Ok(json!({"error": {"code": code.as_str(), "message": message, "index": index}}))
        })
    }

    fn call_export(
        &mut self,
        instruction: &mut Instruction,
    ) -> std::result::Result<Value, Failure> {
        let mut arguments = std::mem::take(&mut instruction.arguments);
        if let Some(range) = instruction.messages {
            arguments.insert("messages".to_owned(), self.messages.select(range).into());
        }
        if let Some(Value::String(transcript)) = arguments.get_mut("transcript_json")
            && instruction.entries
        {
            transcript.pop();
            *transcript += &format!(",\"entries\":[{}]}}", self.state.kept.join(","));
        }
        if let Some(place) = instruction.request {
            let id = self.state.requests.get(place).map(|request| request.id.as_str());
            arguments.insert("request_id".to_owned(), id.into());
            let answer = self.state.answers.get(&place).cloned();
            arguments.entry("answer").or_insert(answer.into());
        }
        let repeats_max = if instruction.once { 0 } else { CONFLICT_RETRIES_MAX };
        let result = self.lcm.call_value(&instruction.call, &arguments.into(), repeats_max)?;
        if let (true, Some(text)) = (instruction.keep, result.as_str()) {
            if instruction.messages.is_some_and(|range| range.index_first == 0) {
                self.state.kept.clear();
            }
            self.state.kept.push(text.trim_start_matches('[').trim_end_matches(']').to_owned());
        }
        if let Some(requests) = result.get("requests") {
            self.state.requests = read_requests(requests)?;
        }
        if let Some(next) = result.get("next").filter(|next| !next.is_null()) {
            let place = instruction.request.and_then(|place| self.state.requests.get_mut(place));
            place.into_iter().zip(read_requests(&json!([next]))?).for_each(|(at, new)| *at = new);
        }
        Ok(json!({ "result": result }))
    }

    /// Uploads the messages of a range that are too large for a call; `failed` names the message
    /// of a failed upload.
    fn stage_messages(
        &mut self,
        instruction: &mut Instruction,
        failed: &mut Option<usize>,
    ) -> std::result::Result<Value, Failure> {
        let mut staged = 0;
        for (index, text) in self.messages.list_texts(instruction.range) {
            if text.len() <= instruction.range.bytes_max
                || self.messages.uploads.contains_key(&index)
            {
                continue;
            }
            *failed = Some(index);
            let (arguments, most) = (instruction.arguments.clone(), instruction.piece_bytes_max);
            let reference = self.lcm.upload(text, arguments, most, self.parts.cancel)?;
            self.messages.uploads.insert(index, reference);
            staged += 1;
        }
        Ok(json!({ "staged": staged }))
    }

    /// Lets the model complete requests, all at the same time.
    fn complete_requests(&mut self, instruction: &Instruction) -> Result<Value> {
        let (start, count) = (instruction.range.index_first, instruction.range.count);
        let missing = || Error::internal("`drive.step` asks for unknown requests");
        let requests =
            self.state.requests.get(start..start.saturating_add(count)).ok_or_else(missing)?;
        let answers = complete_all(self.lcm.model(), requests, self.parts.cancel);
        let answers: Vec<Value> = answers.iter().map(completion_result).collect();
        // The component needs no text to decide what to apply.
        let model = self.lcm.model();
        let event = |(answer, request): (&Value, &CompletionRequest)| match answer.get("done") {
            Some(done) if done["model"] == OFFLINE_MODEL && !model.is_offline(request.purpose) => {
                json!({"done": true, "asked": 1, "stand_in": true})
            }
            Some(_) => json!({"done": true, "asked": 1}),
            None => answer.clone(),
        };
        let events: Vec<Value> = answers.iter().zip(requests).map(event).collect();
        self.state.answers.extend((start..).zip(answers));
        Ok(json!({ "answers": events }))
    }
}

impl TaskState {
    /// Returns the report: the result of the task with its passes and warnings. If the result has
    /// the object `compacted`, the passes and warnings are members of that object.
    fn into_report<T: DeserializeOwned>(mut self) -> Result<T> {
        let report = match self.result.get_mut("compacted") {
            Some(Value::Object(compacted)) => compacted,
            _ => &mut self.result,
        };
        report.insert("passes".to_owned(), self.passes.into());
        report.insert("warnings".to_owned(), self.warnings.into());
        serde_json::from_value(self.result.into())
            .map_err(|error| Error::internal(format!("a task ended unexpectedly: {error}")))
    }
}
