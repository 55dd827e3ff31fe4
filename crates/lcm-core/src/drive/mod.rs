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
mod state;
#[cfg(test)]
mod tests;

use alloc::string::String;

use crate::{
    api::Timestamp,
    codec,
    error::{Error, Result},
    json::Fields,
    keys,
};
use event::Event;
use instruction::{Instruction, Reply};
use state::State;

/// Name of the argument that holds a task.
const TASK: &str = "task-json";
/// Bytes of a task; all texts of one are names.
const TASK_BYTES_MAX: usize = 16 << 10;
/// First characters of a token; another version has others.
const TOKEN: &str = "step1.";
/// How often a plan is made again after a conflict without having become smaller.
const CONFLICTS_MAX: u64 = 256;

/// Begins a task; returns the first instruction as JSON.
///
/// # Errors
///
/// `invalid-input`: no such task; `limit-exceeded`: its texts are too long.
pub(crate) fn begin(task_json: &str, now: Timestamp) -> Result<String> {
    match read_task(task_json)? {
        Task::Intake(task) => {
            let mut progress = intake::Progress::begin(&task, now);
            let mut state = State::default();
            progress.visit(&mut state);
            write(progress.instruct(&task), &state, Reply::default(), task_json)
        }
        Task::Compaction(task) => {
            let mut progress = compaction::Progress::begin(&task);
            let mut state = State::default();
            progress.visit(&mut state);
            write(progress.instruct(&task, now), &state, Reply::default(), task_json)
        }
    }
}

/// Goes on with a task after an event; returns the next instruction as JSON.
///
/// # Errors
///
/// `invalid-input`: no token of this engine, or an event that does not answer its instruction.
pub(crate) fn step(token: &str, event_json: &str, now: Timestamp) -> Result<String> {
    let (mut read, task_json) = read_token(token).ok_or_else(foreign)?;
    let event = Event::read(event_json)?;
    let (mut reply, mut state) = (Reply::default(), State::default());
    let instruction = match read_task(task_json)? {
        Task::Intake(task) => {
            let mut progress = intake::Progress::begin(&task, now);
            progress.visit(&mut read);
            if !read.is_read() {
                return Err(foreign());
            }
            progress.advance(&task, event, &mut reply)?;
            progress.visit(&mut state);
            progress.instruct(&task)
        }
        Task::Compaction(task) => {
            let mut progress = compaction::Progress::begin(&task);
            progress.visit(&mut read);
            if !read.is_read() {
                return Err(foreign());
            }
            progress.advance(&task, event, &mut reply)?;
            progress.visit(&mut state);
            progress.instruct(&task, now)
        }
    };
    write(instruction, &state, reply, task_json)
}

/// The state and the task of a token.
fn read_token(token: &str) -> Option<(State, &str)> {
    let (digits, task_json) = token.strip_prefix(TOKEN)?.split_once('.')?;
    let state: State = codec::decode("token", &keys::unhex(digits)?).ok()?;
    Some((state.reading(), task_json))
}

fn foreign() -> Error {
    Error::invalid("`token` must be one that `begin` or `step` returned")
}

/// A task by what it does.
enum Task {
    Intake(intake::Task),
    Compaction(compaction::Task),
}

fn read_task(task_json: &str) -> Result<Task> {
    if task_json.len() > TASK_BYTES_MAX {
        return Err(Error::limit(format_args!(
            "`{TASK}` must have at most {TASK_BYTES_MAX} bytes, got {}",
            task_json.len()
        )));
    }
    let mut fields = Fields::of_argument(TASK, task_json)?;
    let place = fields.place("task", &["append", "ingest", "compact", "maintain", "turn"]);
    let task = match place {
        0 | 1 => Task::Intake(intake::Task::read(&mut fields, place == 0)),
        _ => Task::Compaction(compaction::Task::read(&mut fields, place)),
    };
    fields.end(TASK)?;
    Ok(task)
}

/// What the host does next, with the token of the progress.
fn write(instruction: Instruction, state: &State, reply: Reply, task_json: &str) -> Result<String> {
    let mut document = instruction.fields;
    if !instruction.is_last {
        let digits = keys::hex(&codec::encode(state)?);
        document.text("token", &[TOKEN, &digits, ".", task_json].concat());
    }
    Ok(reply.write(document))
}

/// An event that is none of the instruction before.
fn unanswered(wanted: &str) -> Error {
    Error::invalid(format_args!("`event-json` must have {wanted}: it answers the instruction"))
}
