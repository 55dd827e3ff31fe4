//! The instructions for a host, as JSON.
//!
//! In: the next need of a task. Out: a [`DriveInstruction`], and the members of the reply that
//! report progress. The tasks of [`crate::drive`] use this module.

use alloc::{string::String, vec::Vec};

use lcm_text::{
    base::json::{self, JsonFields, JsonWriter},
    types::event::EventList,
};

use super::event::{CallFailure, EVENT};

/// Maximum number of messages of one call.
pub(super) const MESSAGES_MAX: u64 = 100;
/// Maximum bytes of the messages of one call; a longer message is uploaded in pieces.
pub(super) const BYTES_MAX: u64 = 512 << 10;
/// Maximum number of messages of a call with a list that may begin with an accepted list.
pub(super) const CONTINUED_MESSAGES_MAX: u64 = 10_000;
/// Maximum bytes of the messages of such a call. The component has all of them in its memory.
pub(super) const CONTINUED_BYTES_MAX: u64 = 4 << 20;
/// Maximum bytes of one piece of an upload.
const PIECE_BYTES_MAX: u64 = 192 << 10;

/// One instruction.
pub(super) struct DriveInstruction {
    pub(super) fields: JsonWriter,
    /// Whether the task is over.
    pub(super) is_last: bool,
}

impl DriveInstruction {
    fn new(what: &str, is_last: bool) -> Self {
        let mut fields = JsonWriter::new_object();
        fields.add_text("do", what);
        Self { fields, is_last }
    }

    /// Tells the host to call an export with these arguments.
    pub(super) fn call(function: &str, arguments: JsonWriter) -> Self {
        let mut this = Self::new("call", false);
        this.fields.add_text("call", function);
        this.fields.add_object("arguments", arguments);
        this
    }

    /// Tells the host to complete these requests of the last plan, if possible at the same time.
    pub(super) fn complete(from: u64, count: u64) -> Self {
        let mut this = Self::new("complete", false);
        this.fields.add_number("count", count);
        this.fields.add_number("index_first", from);
        this
    }

    /// Tells the host to upload the messages of a range that are too large for a call.
    pub(super) fn stage(from: u64, count: u64, arguments: JsonWriter) -> Self {
        let mut this = Self::new("stage", false);
        this.fields.add_object("arguments", arguments);
        this.fields.add_number("bytes_max", BYTES_MAX);
        this.fields.add_number("count", count);
        this.fields.add_number("index_first", from);
        this.fields.add_number("piece_bytes_max", PIECE_BYTES_MAX);
        this
    }

    /// Ends the task with this object as its result.
    pub(super) fn new_done(result: &str) -> Self {
        let mut this = Self::new("done", true);
        this.fields.add_json("result", result);
        this
    }

    /// Ends the task with an error.
    pub(super) fn new_failed(error: JsonWriter) -> Self {
        let mut this = Self::new("fail", true);
        this.fields.add_object("error", error);
        this
    }

    /// Adds the messages of the call: from index `from` on, at most `count` and at most
    /// [`MESSAGES_MAX`].
    pub(super) fn with_messages(self, from: u64, count: u64) -> Self {
        self.with_range(from, count.min(MESSAGES_MAX), BYTES_MAX)
    }

    /// Adds all `count` messages of a list, which may begin with an accepted list.
    pub(super) fn with_list(self, count: u64) -> Self {
        self.with_range(0, count, CONTINUED_BYTES_MAX)
    }

    fn with_range(mut self, from: u64, count: u64, bytes_max: u64) -> Self {
        let mut messages = JsonWriter::new_object();
        messages.add_number("bytes_max", bytes_max);
        messages.add_number("count", count);
        messages.add_number("index_first", from);
        self.fields.add_object("messages", messages);
        self
    }

    /// Adds a member with the value `true`.
    pub(super) fn with_flag(mut self, key: &str) -> Self {
        self.fields.add_flag(key, true);
        self
    }

    /// Adds the index of the request whose id and answer the call takes.
    pub(super) fn with_request(mut self, place: u64) -> Self {
        self.fields.add_number("request", place);
        self
    }

    /// Adds the maximum pause, in milliseconds, before the host carries out the instruction; 0: no
    /// pause.
    pub(super) fn with_wait(mut self, wait_ms: u64) -> Self {
        if wait_ms > 0 {
            self.fields.add_number("wait_ms", wait_ms);
        }
        self
    }
}

/// Members of the reply that report progress, in addition to the instruction.
#[derive(Default)]
pub(super) struct DriveReply {
    /// The pass that the last event completed.
    pub(super) pass: Option<JsonWriter>,
    /// Warnings of the last call.
    pub(super) warnings: Vec<String>,
    /// Members of the task result that are known now.
    pub(super) note: Option<JsonWriter>,
    /// Events of the last call, for a listener of the host.
    pub(super) events: EventList,
}

impl DriveReply {
    /// Takes the member `events_json` of a result, events that the call made; absent: none.
    pub(super) fn take_events(&mut self, fields: &mut JsonFields<'_>) {
        let Some(events) = fields.take_optional_text("events_json") else { return };
        let events = ["{\"events\":", &events, "}"].concat();
        let Ok(mut read) = JsonFields::parse_argument(EVENT, &events) else {
            return fields.reject_field("events_json", "the list of events that the call returned");
        };
        for event in read.take_list("events") {
            self.events.push_json(json::slice_span(&events, event.span));
        }
    }

    pub(super) fn write(self, mut document: JsonWriter) -> String {
        if let Some(pass) = self.pass {
            document.add_object("pass", pass);
        }
        if !self.events.is_empty() {
            document.add_json("events", &self.events.into_json());
        }
        if let Some(note) = self.note {
            document.add_object("note", note);
        }
        if !self.warnings.is_empty() {
            document.add_texts("warnings", &self.warnings);
        }
        document.end_object()
    }
}

/// Builds the failure of a call, with the index of the message at fault if the index is known.
pub(super) fn build_failure(failed: &CallFailure) -> JsonWriter {
    let mut failure = JsonWriter::new_object();
    failure.add_text("code", &failed.code);
    if let Some(index) = failed.number {
        failure.add_number("index", index);
    }
    failure.add_text("message", &failed.message);
    failure
}

/// Builds the failure of a completion, with the milliseconds until a retry may succeed, if known.
pub(super) fn build_completion_failure(failed: &CallFailure) -> JsonWriter {
    let mut failure = JsonWriter::new_object();
    failure.add_text("code", &failed.code);
    failure.add_text("message", &failed.message);
    failure.add_optional_number("retry_after_ms", failed.number);
    failure
}
