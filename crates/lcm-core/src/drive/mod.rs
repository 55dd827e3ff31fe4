//! Tasks that take several calls: intake of any number of messages, and compaction with models.
//!
//! In: a task, then after every instruction the event that answers it. Out: the next instruction:
//! which export to call with which arguments, which texts to upload, which requests to complete, or
//! the end. A step is a pure function of its token, its event and the time. It reads and writes no
//! store, so a repeated step gives the same instruction, and the call that it names makes the one
//! commit. The token holds the task and numbers of its progress, no message and no summary.
//!
//! Five rules hold in every host:
//!
//! 1. A pass is an answer that was committed and made the context smaller. An answer that an equal
//!    call committed before is none.
//! 2. A plan of missing messages holds for one revision. A conflict, or a receipt that is more than
//!    one revision further, asks for a new plan. A plan that is no smaller than the smallest one is
//!    repeated at most [`CONFLICTS_MAX`] times.
//! 3. At most [`compaction::EMPTY_PLANS_MAX`] plans in a row may come without a request; the task
//!    then ends with `no-progress`.
//! 4. A list of several appends is named by a hash over the time of its first call, its mode and
//!    the hash of every message. The name does not depend on how the list is cut.
//! 5. A call has at most 100 messages and 512 KiB, whether messages are identified or appended. A
//!    longer message is uploaded in pieces of at most 192 KiB.

mod compaction;
mod event;
mod instruction;
mod intake;
#[cfg(test)]
mod tests;

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{
    api::Timestamp,
    codec::{self, Sound},
    error::{Error, Result},
    json::Fields,
    keys,
};
use event::Event;
use instruction::Reply;

/// Name of the argument that holds a task.
const TASK: &str = "task-json";
/// Bytes of a task; all texts of one are names.
const TASK_BYTES_MAX: usize = 16 << 10;
/// First characters of a token; another version has others.
const TOKEN: &str = "step1.";
/// How often a plan is made again after a conflict without having become smaller.
const CONFLICTS_MAX: u32 = 256;

/// How far a task is.
#[derive(Deserialize, Serialize)]
enum Progress {
    Intake(intake::Progress),
    Compaction(compaction::Progress),
}

impl Sound for Progress {}

/// A task with its progress.
enum Work {
    Intake(intake::Task, intake::Progress),
    Compaction(compaction::Task, compaction::Progress),
}

/// Begins a task; returns the first instruction as JSON.
///
/// # Errors
///
/// `invalid-input`: no such task; `limit-exceeded`: its texts are too long.
pub(crate) fn begin(task_json: &str, now: Timestamp) -> Result<String> {
    let work = match read_task(task_json)? {
        TaskKind::Intake(task) => {
            let progress = intake::Progress::begin(&task, now);
            Work::Intake(task, progress)
        }
        TaskKind::Compaction(task) => {
            let progress = compaction::Progress::begin(&task);
            Work::Compaction(task, progress)
        }
    };
    work.write(Reply::default(), task_json, now)
}

/// Goes on with a task after an event; returns the next instruction as JSON.
///
/// # Errors
///
/// `invalid-input`: no token of this engine, or an event that does not answer its instruction.
pub(crate) fn step(token: &str, event_json: &str, now: Timestamp) -> Result<String> {
    let foreign = || Error::invalid("`token` must be one that `begin` or `step` returned");
    let (digits, task_json) =
        token.strip_prefix(TOKEN).and_then(|rest| rest.split_once('.')).ok_or_else(foreign)?;
    let bytes = keys::unhex(digits).ok_or_else(foreign)?;
    let progress = codec::decode("token", &bytes).map_err(|_| foreign())?;
    let event = Event::read(event_json)?;
    let mut reply = Reply::default();
    let work = match (read_task(task_json)?, progress) {
        (TaskKind::Intake(task), Progress::Intake(mut progress)) => {
            progress.advance(&task, event, &mut reply)?;
            Work::Intake(task, progress)
        }
        (TaskKind::Compaction(task), Progress::Compaction(mut progress)) => {
            progress.advance(&task, event, &mut reply)?;
            Work::Compaction(task, progress)
        }
        _ => return Err(foreign()),
    };
    work.write(reply, task_json, now)
}

/// A task by what it does.
enum TaskKind {
    Intake(intake::Task),
    Compaction(compaction::Task),
}

fn read_task(task_json: &str) -> Result<TaskKind> {
    if task_json.len() > TASK_BYTES_MAX {
        return Err(Error::limit(format_args!(
            "`{TASK}` must have at most {TASK_BYTES_MAX} bytes, got {}",
            task_json.len()
        )));
    }
    let mut fields = Fields::of_argument(TASK, task_json)?;
    let place = fields.place("task", &["append", "ingest", "compact", "maintain", "turn"]);
    let task = match place {
        0 | 1 => TaskKind::Intake(intake::Task::read(&mut fields, place == 0)),
        _ => TaskKind::Compaction(compaction::Task::read(&mut fields, place)),
    };
    fields.end(TASK)?;
    Ok(task)
}

impl Work {
    /// What the host does next, with the token of the progress.
    fn write(self, reply: Reply, task_json: &str, now: Timestamp) -> Result<String> {
        let (instruction, progress) = match self {
            Self::Intake(task, progress) => (progress.instruct(&task), Progress::Intake(progress)),
            Self::Compaction(task, progress) => {
                (progress.instruct(&task, now), Progress::Compaction(progress))
            }
        };
        let mut document = instruction.fields;
        if !instruction.is_last {
            let digits = keys::hex(&codec::encode(&progress)?);
            document.text("token", &[TOKEN, &digits, ".", task_json].concat());
        }
        Ok(reply.write(document))
    }
}

/// An event that is none of the instruction before.
fn unanswered(wanted: &str) -> Error {
    Error::invalid(format_args!("`event-json` must have {wanted}: it answers the instruction"))
}
