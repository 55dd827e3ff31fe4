//! An engine in a separate process, and the client of the protocol.
//!
//! In: requests. Out: answers. A process that ends, an answer that is not JSON, and an answer that
//! is not `ok` are failures, the last with the message of the engine.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::failure::{Failure, Result, context, failure};

/// A program that serves an engine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Contender {
    /// Name in the table.
    pub(super) name: String,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
}

impl Contender {
    /// Reads `NAME=PROGRAM ARGS`, separated by spaces.
    ///
    /// # Errors
    ///
    /// There is no name or no program.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let refused = || Failure(format!("`--engine {text}` is not NAME=PROGRAM ARGS"));
        let (name, command) = text.split_once('=').ok_or_else(refused)?;
        let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if name.is_empty() || command.is_empty() {
            return Err(refused());
        }
        Ok(Self { name: name.to_owned(), command })
    }
}

/// A running engine.
pub(super) struct Process {
    name: String,
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the program of an engine.
    ///
    /// # Errors
    ///
    /// The program cannot be started.
    pub(super) fn start(contender: &Contender) -> Result<Self> {
        let (program, arguments) =
            contender.command.split_first().ok_or(Failure("no program".to_owned()))?;
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(context(format!("starting `{program}`")))?;
        let (requests, answers) = (process.stdin.take(), process.stdout.take());
        let Some(answers) = answers else { return failure("the engine has no output") };
        let name = contender.name.clone();
        Ok(Self { name, process, requests, answers: BufReader::new(answers) })
    }

    /// Sends a request and returns the answer.
    ///
    /// # Errors
    ///
    /// The engine answers with an error, or its process ended.
    pub(super) fn ask(&mut self, request: &Value) -> Result<Value> {
        self.ask_line(&request.to_string())
    }

    /// Sends an `ingest` of messages, which are JSON texts, and returns the answer.
    ///
    /// # Errors
    ///
    /// As [`Process::ask`].
    pub(super) fn ingest(&mut self, mode: &str, messages: &[String]) -> Result<Value> {
        let messages = messages.join(",");
        self.ask_line(&format!(
            r#"{{"op":"ingest","mode":"{mode}","want_lat":false,"messages":[{messages}]}}"#
        ))
    }

    fn ask_line(&mut self, line: &str) -> Result<Value> {
        let asking = || format!("asking the engine `{}`", self.name);
        let Some(requests) = &mut self.requests else { return failure("the engine is closed") };
        writeln!(requests, "{line}").and_then(|()| requests.flush()).map_err(context(asking()))?;
        let mut answer = String::new();
        let length = self.answers.read_line(&mut answer).map_err(context(asking()))?;
        if length == 0 {
            return failure(format!("the engine `{}` ended", self.name));
        }
        let answer: Value = serde_json::from_str(&answer).map_err(context(asking()))?;
        if answer.get("ok").and_then(Value::as_bool) == Some(true) {
            return Ok(answer);
        }
        let error = answer.get("error").and_then(Value::as_str).unwrap_or("not ok");
        failure(format!("the engine `{}`: {error}", self.name))
    }

    /// Closes the store and waits for the end of the program.
    ///
    /// # Errors
    ///
    /// As [`Process::ask`], or the program failed.
    pub(super) fn close(mut self) -> Result<()> {
        self.ask(&json!({"op": "close"}))?;
        self.requests = None;
        let status = self.process.wait().map_err(context("waiting for the engine"))?;
        if status.success() { Ok(()) } else { failure(format!("the engine ended with {status}")) }
    }
}

impl Drop for Process {
    /// Ends the process of the engine if a measurement failed.
    fn drop(&mut self) {
        self.requests = None;
        if matches!(self.process.try_wait(), Ok(None)) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contender_has_a_name_and_a_program() {
        let found = Contender::parse("mine=node engine.js --fast").unwrap();
        assert_eq!(found.name, "mine");
        assert_eq!(found.command, ["node", "engine.js", "--fast"]);
        for bad in ["mine", "mine=", "=node", "mine=  "] {
            assert!(Contender::parse(bad).is_err(), "{bad}");
        }
    }
}
