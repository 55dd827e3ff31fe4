//! A provider that runs a program for each request, with JSON on its standard input and output.
//!
//! In: a completion request. Out: the answer that the program printed, or a failure. No shell runs
//! the command line. After a time-out or a stop the process is killed, on Unix with its children.

use std::{
    io::{Read as _, Write as _},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::json;

use super::{
    CompletionProvider, error_code, failed,
    finish::{FinishMeaning, read_finish},
};
use crate::{
    clock::Cancel,
    record::{level_name, purpose_name},
    types::{
        Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult,
    },
};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Most bytes of standard output; a longer output is a failure.
const OUTPUT_BYTES_MAX: u64 = 8 << 20;
/// Most bytes of standard error that are kept; the message of a failure has their last line.
const ERROR_BYTES_MAX: u64 = 4 << 10;
/// Pause between two checks whether the program has ended.
const POLL: Duration = Duration::from_millis(10);

/// A program as a provider; each request starts a process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exec {
    program: String,
    arguments: Vec<String>,
    timeout: Duration,
}

/// The JSON object that a program prints: `text`, or `error`.
#[derive(Deserialize)]
struct ProgramAnswer {
    text: Option<String>,
    finish: Option<String>,
    model: Option<String>,
    error: Option<ProgramFailure>,
}

#[derive(Deserialize)]
struct ProgramFailure {
    code: String,
    #[serde(default)]
    message: String,
    retry_after_ms: Option<u64>,
}

/// The exit status of a process, and what the process wrote.
struct Ended {
    status: ExitStatus,
    output: Vec<u8>,
    complaint: Vec<u8>,
}

impl Exec {
    /// Parses a program and its arguments, split at ASCII white space; quotes have no meaning.
    /// `None`: the text is blank.
    #[must_use]
    pub fn parse(command: &str) -> Option<Self> {
        let mut words = command.split_ascii_whitespace().map(str::to_owned);
        let program = words.next()?;
        Some(Self { program, arguments: words.collect(), timeout: TIMEOUT })
    }

    /// Sets the time limit of a process; the default is a minute.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn run(&self, input: Vec<u8>, cancel: &Cancel) -> Result<Ended, CompletionError> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        own_group(&mut command);
        let mut child = command.spawn().map_err(|error| {
            let message = format!("cannot start `{}`: {error}", self.program);
            unanswered(CompletionErrorCode::Unavailable, message)
        })?;
        if let Some(mut pipe) = child.stdin.take() {
            // A failure to write is ignored: a program need not read its input.
            std::thread::spawn(move || pipe.write_all(&input));
        }
        let output = read_aside(child.stdout.take(), OUTPUT_BYTES_MAX);
        let complaint = read_aside(child.stderr.take(), ERROR_BYTES_MAX);
        let deadline = Instant::now() + self.timeout;
        let Some(status) = wait(&mut child, deadline, cancel) else {
            kill(&mut child);
            let message = if cancel.is_cancelled() {
                format!("the caller stopped `{}` before its answer", self.program)
            } else {
                format!("`{}` did not answer in {:?}", self.program, self.timeout)
            };
            return Err(unanswered(CompletionErrorCode::Timeout, message));
        };
        // A child of the ended program may keep the output open, until the same deadline.
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(output) = output.recv_timeout(left) else {
            kill(&mut child);
            let message =
                format!("a child process of `{}` kept its standard output open", self.program);
            return Err(unanswered(CompletionErrorCode::Timeout, message));
        };
        let complaint = complaint.recv_timeout(POLL).unwrap_or_default();
        Ok(Ended { status, output, complaint })
    }

    fn read(&self, ended: &Ended) -> CompletionResult {
        let name = &self.program;
        let Ok(answer) = serde_json::from_slice::<ProgramAnswer>(&ended.output) else {
            let complaint = String::from_utf8_lossy(&ended.complaint);
            let last = complaint.lines().map(str::trim).rfind(|line| !line.is_empty());
            let message = match (ended.status.success(), last) {
                (true, _) => format!("`{name}` must print a JSON object"),
                (false, None) => format!("`{name}` failed with {}", ended.status),
                (false, Some(line)) => format!("`{name}` failed with {}: {line}", ended.status),
            };
            return failed(CompletionErrorCode::Other, message);
        };
        let finish = match read_finish(answer.finish.as_deref()) {
            FinishMeaning::Ended(finish) => finish,
            FinishMeaning::Failed(code) => {
                let word = answer.finish.unwrap_or_default();
                return failed(code, format!("`{name}` ended with `{word}`"));
            }
        };
        match (answer.error, answer.text) {
            (Some(failure), _) => CompletionResult::Failed(CompletionError {
                code: error_code(&failure.code).unwrap_or(CompletionErrorCode::Other),
                message: failure.message,
                retry_after_ms: failure.retry_after_ms,
            }),
            (None, Some(text)) => CompletionResult::Done(Completion {
                text,
                finish,
                model: answer.model.unwrap_or_else(|| format!("exec:{name}")),
                input_tokens: 0,
                output_tokens: 0,
            }),
            (None, None) => {
                let message = format!("`{name}` must print `text` or `error`");
                failed(CompletionErrorCode::Other, message)
            }
        }
    }
}

impl CompletionProvider for Exec {
    fn complete(&self, request: &CompletionRequest, cancel: &Cancel) -> CompletionResult {
        let input = json!({
            "id": request.id,
            "purpose": purpose_name(request.purpose),
            "level": level_name(request.level),
            "system": request.system,
            "prompt": request.prompt,
            "input_tokens": request.input_tokens,
            "output_tokens_max": request.output_tokens_max,
            "temperature_permille": request.temperature_permille,
            "model": request.model,
        });
        match self.run(format!("{input}\n").into_bytes(), cancel) {
            Ok(ended) => self.read(&ended),
            Err(error) => CompletionResult::Failed(error),
        }
    }
}

fn unanswered(code: CompletionErrorCode, message: String) -> CompletionError {
    CompletionError { code, message, retry_after_ms: None }
}

/// Reads a pipe to its end on another thread, and sends at most the first `bytes_max` bytes.
fn read_aside<R: std::io::Read + Send + 'static>(
    pipe: Option<R>,
    bytes_max: u64,
) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A failed read ends the bytes; the caller parses what was read.
            let _ = pipe.by_ref().take(bytes_max).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// Waits for the end of a process; `None`: the deadline passed or `cancel` was set before.
fn wait(child: &mut Child, deadline: Instant, cancel: &Cancel) -> Option<ExitStatus> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if cancel.is_cancelled() || Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(POLL);
    }
}

/// Puts the process into its own process group, so that [`kill`] also ends its children.
#[cfg(unix)]
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
}

#[cfg(not(unix))]
fn own_group(_command: &mut Command) {}

fn kill(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(group) = i32::try_from(child.id()) {
        let group = nix::unistd::Pid::from_raw(group);
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}
