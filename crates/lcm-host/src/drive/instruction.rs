//! The instructions of `wit/drive.wit` as types.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    error::{Code, Error},
    ingest::IngestError,
};

/// An instruction of the component. A member that the instruction does not have is empty.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Instruction {
    #[serde(rename = "do")]
    pub(super) kind: String,
    pub(super) token: String,
    /// Export to call, such as `ingest.append`.
    pub(super) call: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) messages: Option<TaskRange>,
    /// Whether the host keeps the elements of the result.
    pub(super) keep: bool,
    /// Whether the call takes the kept elements as `entries`.
    pub(super) entries: bool,
    /// Whether the host must not repeat the call after a conflict.
    pub(super) once: bool,
    /// Place of the request whose id and answer the call takes.
    pub(super) request: Option<usize>,
    /// Messages to upload, or requests to complete.
    #[serde(flatten)]
    pub(super) range: TaskRange,
    pub(super) piece_bytes_max: usize,
    /// Bound of a random pause before the instruction.
    pub(super) wait_ms: u64,
    pub(super) pass: Option<Value>,
    pub(super) warnings: Vec<String>,
    pub(super) events: Vec<Value>,
    pub(super) note: Map<String, Value>,
    pub(super) result: Map<String, Value>,
    pub(super) error: Option<TaskFailure>,
}

/// A range of the task's messages, or of the completion requests of the last plan.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct TaskRange {
    pub(super) index_first: usize,
    pub(super) count: usize,
    /// Most bytes of the messages of one call; for uploads, of a message that is not uploaded.
    pub(super) bytes_max: usize,
}

/// The error of a failed task.
#[derive(Deserialize)]
pub(super) struct TaskFailure {
    code: String,
    message: String,
    index: Option<usize>,
}

impl From<TaskFailure> for IngestError {
    fn from(TaskFailure { code, message, index }: TaskFailure) -> Self {
        // `index` names the message; a caller adds the place, such as a file and a line.
        let placed = message.strip_prefix("messages[").and_then(|rest| rest.split_once("]: "));
        let reason = placed.filter(|_| index.is_some()).map(|(_, reason)| reason);
        let code = Code::from_name(&code).unwrap_or(Code::Corrupt);
        Self { index, error: Error::new(code, reason.unwrap_or(&message)) }
    }
}
