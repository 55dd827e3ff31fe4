//! Deletion task: repeats the command `delete` until the conversation is gone.
//!
//! In: the receipts of the pieces. Out: the next call, then the last receipt. After the first
//! receipt, calls only continue the deletion, so that a new conversation with the same id is not
//! deleted.

use alloc::string::String;

use lcm_text::{
    base::{
        error::Result,
        json::{JsonFields, JsonWriter},
    },
    types::api::Timestamp,
};

use super::{
    event::{CallFailure, DriveEvent, EVENT, unanswered_error},
    instruction::{self, DriveInstruction},
    state::DriveState,
};

/// Maximum number of repetitions in a row of a call that failed with `conflict` or
/// `store-unavailable`.
const REPEATS_MAX: u64 = 8;

/// The members of a deletion task.
pub(super) struct DeletionTask {
    conversation: String,
}

impl DeletionTask {
    /// Reads the members of a task.
    pub(super) fn read(fields: &mut JsonFields<'_>) -> Self {
        Self { conversation: fields.take_text("conversation") }
    }
}

/// The progress of a deletion.
#[derive(Default)]
pub(super) struct DeletionProgress {
    is_over: bool,
    /// Whether nothing of the conversation is left; false at the end of a stopped task.
    is_deleted: bool,
    /// Whether this task began or continued the deletion.
    has_begun: bool,
    /// Repetitions of the call since the last receipt.
    repeats: u64,
    /// Greatest counts of the receipts so far.
    messages: u64,
    records: u64,
    bytes: u64,
    failure: CallFailure,
}

impl DeletionProgress {
    /// Reads or writes the progress.
    pub(super) fn visit(&mut self, state: &mut DriveState) {
        self.failure.visit(state);
        state.visit_flag(&mut self.is_over);
        state.visit_flag(&mut self.is_deleted);
        state.visit_flag(&mut self.has_begun);
        for number in [&mut self.repeats, &mut self.messages, &mut self.records, &mut self.bytes] {
            state.visit_number(number);
        }
    }

    /// Advances the progress by one event.
    pub(super) fn advance(&mut self, event: DriveEvent<'_>) -> Result<()> {
        match event {
            DriveEvent::Stopped => self.is_over = true,
            DriveEvent::Failed(failed) => {
                let may_repeat = matches!(failed.code.as_str(), "conflict" | "store-unavailable");
                if may_repeat && self.repeats < REPEATS_MAX {
                    self.repeats += 1;
                } else {
                    self.failure = failed;
                    self.is_over = true;
                }
            }
            DriveEvent::Returned(json) => {
                let mut fields = JsonFields::parse_argument(EVENT, &json)?;
                self.is_deleted = fields.take_flag("done");
                self.is_over = self.is_deleted;
                // A receipt without counts says that another caller finished the deletion.
                self.messages = self.messages.max(fields.take_u64("messages"));
                self.records = self.records.max(fields.take_u64("records"));
                self.bytes = self.bytes.max(fields.take_u64("bytes"));
                fields.finish_known(EVENT)?;
                (self.has_begun, self.repeats) = (true, 0);
            }
            _ => return Err(unanswered_error("`result` or `error`")),
        }
        Ok(())
    }

    /// Returns the next instruction for the host.
    pub(super) fn next_instruction(&self, task: &DeletionTask, now: Timestamp) -> DriveInstruction {
        if self.failure.is_some() {
            return DriveInstruction::new_failed(instruction::build_failure(&self.failure));
        }
        if self.is_over {
            return DriveInstruction::new_done(&self.build_result(task));
        }
        let mut request = JsonWriter::new_object();
        request.add_flag("resume", self.has_begun);
        let mut arguments = JsonWriter::new_object();
        arguments.add_text("arguments_json", &request.end_object());
        arguments.add_text("conversation", &task.conversation);
        arguments.add_number("now", now);
        arguments.add_text("verb", "delete");
        let wait_ms = (1 << self.repeats.min(16)) - 1;
        DriveInstruction::call("admin.call", arguments).with_wait(wait_ms)
    }

    fn build_result(&self, task: &DeletionTask) -> String {
        let mut result = JsonWriter::new_object();
        result.add_number("bytes", self.bytes);
        result.add_text("conversation", &task.conversation);
        result.add_flag("done", self.is_deleted);
        result.add_number("messages", self.messages);
        result.add_number("records", self.records);
        result.end_object()
    }
}
