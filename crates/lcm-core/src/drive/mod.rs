//! Tasks that take several calls: intake of any number of messages, compaction with models, and the
//! deletion of a conversation.
//!
//! In: a task, then after every instruction the event that answers it. Out: the next instruction:
//! which export to call with which arguments, which texts to upload, which requests to complete, or
//! the end. The engine exports [`begin`] and [`step`].
//!
//! A step is a pure function of its token, its event and the time, and uses no store. So a repeated
//! step gives the same instruction. The token holds the task and its progress, but no message and
//! no summary.
//!
//! Five rules hold in every host:
//!
//! 1. A pass is a committed summary that made the context smaller or replaced a provisional one. An
//!    answer that an equal call committed before is no pass.
//! 2. A plan of missing messages holds while only the appends of this task commit. A conflict, an
//!    upload, or a receipt whose revision is more than one above that of the plan or the receipt
//!    before, leads to a new plan. A new plan after a conflict or an upload counts if it does not
//!    lower the number of missing messages below the lowest number so far. After
//!    [`intake::CONFLICTS_MAX`] such plans, the next conflict ends the task.
//! 3. After [`compaction::EMPTY_PLANS_MAX`] plans in a row without a request, the task ends with
//!    `no-progress`.
//! 4. A list that takes several appends is named by a hash over the time of the task, its mode and
//!    the hash of every message. The name does not depend on how the list is cut.
//! 5. A call has at most 100 messages and 512 KiB, whether messages are identified or appended. A
//!    longer message is uploaded in pieces of at most 192 KiB.

mod compaction;
mod deletion;
mod event;
mod instruction;
mod intake;
mod state;
#[cfg(test)]
#[expect(clippy::string_slice, reason = "a failing test may panic")]
mod tests;

use alloc::string::String;

use crate::storage::codec;
use event::DriveEvent;
use instruction::DriveReply;
use lcm_text::{
    base::error::{Error, Result},
    base::hash,
    base::int,
    base::json::{self, JsonFields},
    config::Config,
    types::api::Timestamp,
};
use state::DriveState;

/// Name of the argument that holds a task.
const TASK: &str = "task-json";
/// Maximum bytes of a task without its `system`. A task has no messages.
const TASK_BYTES_MAX: usize = 16 << 10;
/// Maximum bytes of the `system` of a task, as JSON text. `append` bounds the prompt to 192 KiB.
const SYSTEM_BYTES_MAX: usize = 512 << 10;
/// Prefix and version of a token.
const TOKEN: &str = "step1.";

/// Begins a task and returns the first instruction as JSON.
///
/// # Errors
///
/// `invalid-input`: an unknown task, or a wrong or unknown member; `limit-exceeded`: the task has
/// over 16 KiB without its `system`, or the `system` has over 512 KiB.
pub(crate) fn begin(config: &Config, task_json: &str, now: Timestamp) -> Result<String> {
    DriveWork::read(config, task_json, now)?.write(DriveReply::default(), task_json, now)
}

/// Continues a task after an event and returns the next instruction as JSON.
///
/// # Errors
///
/// `invalid-input`: no token of this engine, or an event that does not answer the last instruction.
pub(crate) fn step(
    config: &Config,
    token: &str,
    event_json: &str,
    now: Timestamp,
) -> Result<String> {
    let (mut state, task_json) = read_token(token).ok_or_else(foreign_token_error)?;
    let mut work = DriveWork::read(config, task_json, now)?;
    work.visit(&mut state);
    if !state.is_read() {
        return Err(foreign_token_error());
    }
    let mut reply = DriveReply::default();
    let event = DriveEvent::read(event_json)?;
    match &mut work {
        DriveWork::Intake(task, progress) => progress.advance(task, event, &mut reply)?,
        DriveWork::Compaction(task, progress) => {
            progress.note_time(now);
            progress.advance(task, event, &mut reply)?;
        }
        DriveWork::Deletion(_, progress) => progress.advance(event)?,
    }
    work.write(reply, task_json, now)
}

/// Splits a token into its state and its task; `None`: the engine did not make the token.
fn read_token(token: &str) -> Option<(DriveState, &str)> {
    let (digits, task_json) = token.strip_prefix(TOKEN)?.split_once('.')?;
    let state: DriveState = codec::decode("token", &hash::decode_hex(digits)?).ok()?;
    Some((state.into_reader(), task_json))
}

fn foreign_token_error() -> Error {
    Error::invalid_input("`token` must be the `token` that `begin` or `step` returned")
}

/// Returns `limit-exceeded` if a task or its `system` is too long.
fn ensure_bounded(task_json: &str) -> Result<()> {
    if task_json.len() <= TASK_BYTES_MAX {
        return Ok(());
    }
    let members = json::parse_object(task_json).unwrap_or_default();
    let system = json::find_member(&members, task_json, "system");
    let system = system.map_or(0, |member| int::to_usize(member.value.length.into()));
    let beside = task_json.len().saturating_sub(system);
    if system > SYSTEM_BYTES_MAX {
        return Err(Error::limit_exceeded(format_args!(
            "`system` must have at most {SYSTEM_BYTES_MAX} bytes as JSON, got {system}; put longer \
             system messages at the beginning of `messages`"
        )));
    }
    match beside > TASK_BYTES_MAX {
        true => Err(Error::limit_exceeded(format_args!(
            "`{TASK}` must have at most {TASK_BYTES_MAX} bytes beside `system`, got {beside}"
        ))),
        false => Ok(()),
    }
}

/// A task with its progress.
enum DriveWork {
    Intake(intake::IntakeTask, intake::IntakeProgress),
    Compaction(compaction::CompactionTask, compaction::CompactionProgress),
    Deletion(deletion::DeletionTask, deletion::DeletionProgress),
}

impl DriveWork {
    /// Parses a task and returns the task with the progress of its start.
    fn read(config: &Config, task_json: &str, now: Timestamp) -> Result<Self> {
        ensure_bounded(task_json)?;
        let mut fields = JsonFields::parse_argument(TASK, task_json)?;
        let tasks = ["append", "ingest", "compact", "maintain", "turn", "delete", "resummarize"];
        let place = fields.take_choice("task", &tasks);
        let work = if place == 5 {
            let task = deletion::DeletionTask::read(&mut fields);
            Self::Deletion(task, deletion::DeletionProgress::default())
        } else if place < 2 {
            let task = intake::IntakeTask::read(&mut fields, place == 0);
            let progress = intake::IntakeProgress::begin(&task, now);
            Self::Intake(task, progress)
        } else {
            let task = compaction::CompactionTask::read(&mut fields, place);
            let progress = compaction::CompactionProgress::begin(config, &task, now);
            Self::Compaction(task, progress)
        };
        fields.finish(TASK)?;
        Ok(work)
    }

    /// Reads or writes the progress of the task.
    fn visit(&mut self, state: &mut DriveState) {
        match self {
            Self::Intake(_, progress) => progress.visit(state),
            Self::Compaction(_, progress) => progress.visit(state),
            Self::Deletion(_, progress) => progress.visit(state),
        }
    }

    /// Renders the next instruction as JSON, with a token unless the instruction is the last.
    fn write(mut self, reply: DriveReply, task_json: &str, now: Timestamp) -> Result<String> {
        let mut state = DriveState::default();
        self.visit(&mut state);
        let mut instruction = match &self {
            Self::Intake(task, progress) => progress.next_instruction(task),
            Self::Compaction(task, progress) => progress.next_instruction(task, now),
            Self::Deletion(task, progress) => progress.next_instruction(task, now),
        };
        if !instruction.is_last {
            let digits = hash::hex(&codec::encode(&state)?);
            instruction.fields.add_text("token", &[TOKEN, &digits, ".", task_json].concat());
        }
        Ok(reply.write(instruction.fields))
    }
}
