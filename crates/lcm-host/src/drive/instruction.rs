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
pub(crate) struct Instruction {
    #[serde(rename = "do")]
    pub(crate) kind: String,
    pub(crate) token: String,
    /// Export to call, such as `ingest.append`.
    pub(crate) call: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) messages: Option<TaskRange>,
    /// Whether the host keeps the elements of the result.
    pub(crate) keep: bool,
    /// Whether the call takes the kept elements as `entries`.
    pub(crate) entries: bool,
    /// Whether the host must not repeat the call after a conflict.
    pub(crate) once: bool,
    /// Place of the request whose id and answer the call takes.
    pub(crate) request: Option<usize>,
    /// Messages to upload, or requests to complete.
    #[serde(flatten)]
    pub(crate) range: TaskRange,
    pub(crate) piece_bytes_max: usize,
    /// Bound of a random pause before the instruction.
    pub(crate) wait_ms: u64,
    pub(crate) pass: Option<Value>,
    pub(crate) warnings: Vec<String>,
    pub(crate) events: Vec<Value>,
    pub(crate) note: Map<String, Value>,
    pub(crate) result: Map<String, Value>,
    pub(crate) error: Option<TaskFailure>,
}

/// A range of the task's messages, or of the completion requests of the last plan.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TaskRange {
    pub(crate) index_first: usize,
    pub(crate) count: usize,
    /// Most bytes of the messages of one call; for uploads, of a message that is not uploaded.
    pub(crate) bytes_max: usize,
}

/// The error of a failed task.
#[derive(Deserialize)]
pub(crate) struct TaskFailure {
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
