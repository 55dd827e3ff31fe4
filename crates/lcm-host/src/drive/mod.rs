//! Tasks of several calls: the component returns instructions, and the host carries them out.
//!
//! In: a task and what only the host has, its messages and its model. Out: the result of the task.
//! `wit/drive.wit` describes the instructions; the host decides nothing.

mod instruction;
mod report;
mod turn;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    clock::{Cancel, Clock},
    completion::CompletionExchange,
    digest::sha256_hex,
    error::{Code, Error, Result},
    events,
    ingest::IngestResult,
    json,
    lcm::{CONFLICT_RETRIES_MAX, CallResult, Lcm, random_duration},
};
pub(crate) use instruction::{Instruction, TaskRange};
use report::TaskReport;

/// What a task needs of its caller.
pub(crate) struct Parts<'a> {
    pub(crate) clock: Clock,
    pub(crate) cancel: &'a Cancel,
    pub(crate) messages: &'a [String],
    /// Receives each instruction before the host carries it out.
    pub(crate) on_instruction: &'a mut dyn FnMut(&Instruction),
}

/// A task in progress.
struct Driver<'a> {
    lcm: &'a Lcm,
    parts: Parts<'a>,
    state: TaskState,
}

/// What a task has so far.
#[derive(Default)]
struct TaskState {
    /// References to uploaded messages, by index.
    uploads: BTreeMap<usize, String>,
    /// Elements of results, as parts of a JSON array.
    kept: Vec<String>,
    /// Requests of the last plan, and the answers of the model.
    completions: CompletionExchange,
    /// What the instructions said of the result.
    report: TaskReport,
}

impl Lcm {
    /// Carries out a task and returns its report.
    pub(crate) fn drive<'a, T>(&'a self, task: &Value, parts: Parts<'a>) -> IngestResult<T>
    where
        T: DeserializeOwned,
    {
        let _span = events::enter_task_span(task);
        let mut driver = Driver { lcm: self, parts, state: TaskState::default() };
        let begin = json!({"task_json": task.to_string()});
        let mut instruction = driver.fetch_instruction("drive.begin", begin)?;
        let mut stop = Ok(());
        while instruction.kind != "done" {
            let event = match driver.parts.cancel.check() {
                Err(stopped) if stop.is_ok() => {
                    stop = Err(stopped);
                    json!({"stopped": true})
                }
                _ => driver.perform(&mut instruction)?,
            };
            let step = json!({"token": instruction.token, "event_json": event.to_string()});
            instruction = driver.fetch_instruction("drive.step", step)?;
        }
        stop?;
        Ok(driver.state.report.finish()?)
    }
}

impl Driver<'_> {
    /// Asks for the next instruction, and keeps what the instruction reports of the task.
    fn fetch_instruction(&mut self, call: &str, given: Value) -> IngestResult<Instruction> {
        let given = json::merge(given, json!({"now": self.parts.clock.now_ms()}));
        let answer = self.lcm.call_json(call, &given)?;
        let mut next: Instruction = json::read(call, answer.as_str().unwrap_or_default())?;
        (self.parts.on_instruction)(&next);
        next.events.iter().for_each(events::emit_event);
        self.state.report.take_members(&mut next);
        next.error.take().map_or(Ok(next), |failed| Err(failed.into()))
    }

    /// Carries out an instruction and returns its event.
    fn perform(&mut self, instruction: &mut Instruction) -> Result<Value> {
        self.parts.cancel.sleep(random_duration(instruction.wait_ms.saturating_mul(1_000)));
        let event = match instruction.kind.as_str() {
            "complete" => self.complete_requests(instruction.range),
            "call" => self.call_export(instruction),
            _ => self.stage_messages(instruction),
        };
        let index = (instruction.kind == "stage").then_some(instruction.range.index_first);
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

    fn call_export(&mut self, instruction: &mut Instruction) -> CallResult<Value> {
        let mut arguments = std::mem::take(&mut instruction.arguments);
        if let Some(range) = instruction.messages {
            arguments.insert("messages".to_owned(), self.select_messages(range).into());
        }
        if let Some(Value::String(transcript)) = arguments.get_mut("transcript_json")
            && instruction.entries
        {
            transcript.pop();
            *transcript += &format!(",\"entries\":[{}]}}", self.state.kept.join(","));
        }
        if let Some(place) = instruction.request {
            self.state.completions.add_answer(place, &mut arguments);
        }
        let repeats_max = if instruction.once { 0 } else { CONFLICT_RETRIES_MAX };
        let result = self.lcm.call_value(&instruction.call, &arguments.into(), repeats_max)?;
        if let (true, Some(list)) = (instruction.keep, result.as_str()) {
            if instruction.messages.is_some_and(|range| range.index_first == 0) {
                self.state.kept.clear();
            }
            self.state.kept.push(list.trim_matches(['[', ']']).to_owned());
        }
        self.state.completions.take_requests(&result, instruction.request)?;
        Ok(json!({ "result": result }))
    }

    /// Returns the messages of one call: as many as fit, at least one unless the range is empty.
    fn select_messages(&self, range: TaskRange) -> Vec<&str> {
        let mut bytes = 0_usize;
        let fits = |&(index, text): &(usize, &String)| {
            bytes = bytes.saturating_add(text.len());
            index == range.index_first || bytes <= range.bytes_max
        };
        let texts = self.parts.messages.iter().enumerate().skip(range.index_first);
        let texts = texts.take(range.count).take_while(fits);
        texts.map(|(index, text)| self.state.uploads.get(&index).unwrap_or(text).as_str()).collect()
    }

    /// Uploads the messages of a range that are too large for a call.
    fn stage_messages(&mut self, instruction: &mut Instruction) -> CallResult<Value> {
        let (range, before) = (instruction.range, self.state.uploads.len());
        let texts = self.parts.messages.iter().enumerate().skip(range.index_first);
        for (index, text) in texts.take(range.count) {
            if text.len() > range.bytes_max && !self.state.uploads.contains_key(&index) {
                // The event of a failure names the message.
                instruction.range.index_first = index;
                let reference = self.upload_message(text, instruction)?;
                self.state.uploads.insert(index, reference);
            }
        }
        Ok(json!({ "staged": self.state.uploads.len().saturating_sub(before) }))
    }

    /// Lets the model complete requests.
    fn complete_requests(&mut self, range: TaskRange) -> CallResult<Value> {
        let (model, cancel) = (self.lcm.model(), self.parts.cancel);
        let answers = self.state.completions.complete_requests(model, range, cancel)?;
        Ok(json!({ "answers": answers }))
    }

    /// Uploads a text in pieces that end between characters; returns the reference to the upload.
    fn upload_message(&self, text: &str, instruction: &Instruction) -> CallResult<String> {
        let (upload, mut arguments) = (sha256_hex(text.as_bytes()), instruction.arguments.clone());
        let extra = json!({"bytes": text.len(), "family": arguments.remove("family")}).to_string();
        let mut offset = 0;
        while offset < text.len() {
            self.parts.cancel.check()?;
            let end = text.floor_char_boundary(offset.saturating_add(instruction.piece_bytes_max));
            let piece = json!({"upload": upload, "extra_json": extra, "offset": offset,
                "text": text.get(offset..end)});
            let piece = json::merge(arguments.clone().into(), piece);
            let next = self.lcm.call_value("ingest.stage", &piece, CONFLICT_RETRIES_MAX)?;
            // An earlier attempt may have uploaded more.
            match next.as_u64().and_then(|next| usize::try_from(next).ok()) {
                Some(next) if next > offset => offset = next,
                _ => return Err(Error::internal("an upload does not advance").into()),
            }
        }
        Ok(format!("@upload {upload}"))
    }
}
