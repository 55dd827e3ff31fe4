//! Intake tasks: store any number of messages with as many calls as needed.
//!
//! In: a task, its progress and an event. Out: the new progress, from which
//! [`IntakeProgress::next_instruction`] makes the next instruction. [`crate::drive`] uses this
//! module.
//!
//! Messages of `append` that fit one call are one append. A longer list, and every list of
//! `ingest`, is first tried as one append that continues an accepted list, which the engine
//! recognises by its texts; if it does not, that call stores nothing and costs its hashes. Not
//! tried are mode `new`, `refuse_replay`, uploads and longer lists than one such append takes. More
//! messages of `append` in mode `new` without `refuse_replay` are a list of appends. Other messages
//! are identified and reconciled; only the missing messages are appended, at the revision of the
//! plan. An append of unknown outcome is repeated unchanged, and the engine recognises the
//! repetition.

mod instruction;
mod task;

use alloc::{string::String, vec::Vec};

use lcm_text::{
    base::error::Result,
    base::hash,
    base::int,
    base::json::{self, JsonFields},
    types::{api::Timestamp, event::SkipReason},
};

use crate::ingest::PlannedLine;

use super::{
    event::{CallFailure, DriveEvent, EVENT, unanswered_error},
    instruction::DriveReply,
    state::DriveState,
};
pub(super) use task::IntakeTask;
use task::{IndexRange, RANGE_KINDS, RangeKind};

/// Maximum number of new plans, after conflicts or uploads, that do not lower the smallest number
/// of missing messages so far.
pub(super) const CONFLICTS_MAX: u64 = 256;
/// Maximum number of repetitions of an append of unknown outcome.
const REPEATS_MAX: u64 = 8;
/// Maximum number of ranges of missing messages in a token. For further ranges the task plans
/// again.
const RANGES_MAX: usize = 32;

/// How the messages are stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum IntakeRoute {
    /// By one append.
    Whole,
    /// By appends that are parts of a list.
    List,
    /// By appends of the messages that a plan of `reconcile` lists as missing.
    Aligned,
    /// By one append of the whole list, which begins with an accepted list.
    Continued,
}

/// The next step of an intake task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum IntakePhase {
    /// Identify the messages from index `place` on.
    Identify,
    Reconcile,
    /// Upload the large messages of the range with index `place`.
    Stage,
    Append,
    Done,
}

const ROUTES: [IntakeRoute; 4] =
    [IntakeRoute::Whole, IntakeRoute::List, IntakeRoute::Aligned, IntakeRoute::Continued];
const PHASES: [IntakePhase; 5] = [
    IntakePhase::Identify,
    IntakePhase::Reconcile,
    IntakePhase::Stage,
    IntakePhase::Append,
    IntakePhase::Done,
];

/// The progress of an intake task.
pub(super) struct IntakeProgress {
    /// The time of all calls of the task: the engine recognises a repeated call by its time, too.
    now: Timestamp,
    route: IntakeRoute,
    phase: IntakePhase,
    /// Index of the next message to identify, or of the range to upload.
    place: u64,
    /// Name of the list: hash over time, mode and the message hashes so far, in hex digits.
    name: String,
    /// The messages to append.
    ranges: Vec<IndexRange>,
    /// How the plan changes the line, which is the stored messages without set-aside messages and
    /// other forms; `None`: there is no plan, or the plan does not change the line.
    line: Option<PlannedLine>,
    /// Whether the plan has further missing messages after the ranges.
    has_more: bool,
    /// Whether a message of the ranges was uploaded.
    has_staged: bool,
    /// The revision that the next append requires.
    revision: u64,
    /// Index after the last message that an append confirmed.
    confirmed: u64,
    /// Minimum number of missing messages of any plan so far.
    fewest: u64,
    /// Number of new plans after conflicts and uploads since `fewest` fell.
    plans: u64,
    /// Repetitions of the current append.
    repeats: u64,
    /// Maximum pause before the next call, in milliseconds; 0: no pause.
    wait_ms: u64,
    totals: IntakeTotals,
    failure: CallFailure,
    /// Number of identified messages that are failed turns without content.
    blanks: u64,
}

/// The totals of all appends of the task.
#[derive(Default)]
struct IntakeTotals {
    revision: u64,
    ingested: u64,
    /// Seq of the first stored message; 0: no message was stored.
    seq_first: u64,
    seq_last: u64,
    /// Seq up to which the caller has now seen every message.
    seq_seen: u64,
    context_tokens: u64,
    /// Messages that the appends themselves skipped.
    skipped: u64,
}

impl IntakeProgress {
    /// Returns the progress of a task that has not started.
    pub(super) fn begin(task: &IntakeTask, now: Timestamp) -> Self {
        let mut this = Self {
            now,
            route: IntakeRoute::Whole,
            phase: IntakePhase::Append,
            place: 0,
            name: String::new(),
            ranges: task.list_all_ranges(),
            line: None,
            has_more: false,
            has_staged: false,
            revision: 0,
            confirmed: 0,
            fewest: u64::MAX,
            plans: 0,
            repeats: 0,
            wait_ms: 0,
            totals: IntakeTotals::default(),
            failure: CallFailure::default(),
            blanks: 0,
        };
        if task.is_append && task.is_whole() {
            this.prepare_append(task);
        } else if task.may_continue() {
            this.route = IntakeRoute::Continued;
        } else {
            this.identify(task);
        }
        this
    }

    /// Starts over with the first message: identifies all messages before more are stored.
    fn identify(&mut self, task: &IntakeTask) {
        let is_named_list = task.is_new && task.is_append && !task.refuse_replay;
        self.route = if is_named_list { IntakeRoute::List } else { IntakeRoute::Aligned };
        self.ranges = task.list_all_ranges();
        let kind: &[u8] = if task.is_new { b"new" } else { b"transcript" };
        self.name = name(&[kind, &self.now.to_be_bytes()]);
        (self.phase, self.place, self.blanks) = (IntakePhase::Identify, 0, 0);
        if task.count == 0 {
            self.finish_identify(task);
        }
    }

    fn finish_identify(&mut self, task: &IntakeTask) {
        match self.route {
            IntakeRoute::Aligned => self.phase = IntakePhase::Reconcile,
            _ => self.prepare_append(task),
        }
    }

    /// Continues with the upload of messages that are too large for a call, if there are any; else
    /// with the append.
    fn prepare_append(&mut self, task: &IntakeTask) {
        let uploads = task.has_uploads() && !self.ranges.is_empty();
        self.has_staged = false;
        self.phase = if uploads { IntakePhase::Stage } else { IntakePhase::Append };
        self.place = 0;
    }

    /// Reads or writes every value of the progress.
    pub(super) fn visit(&mut self, state: &mut DriveState) {
        state.visit_choice(&mut self.route, &ROUTES);
        state.visit_choice(&mut self.phase, &PHASES);
        let mut count = int::to_u64(self.ranges.len());
        state.visit_number(&mut count);
        self.ranges.resize(int::to_usize(count).min(RANGES_MAX), IndexRange::default());
        for range in &mut self.ranges {
            state.visit_number(&mut range.from);
            state.visit_number(&mut range.end);
            state.visit_choice(&mut range.kind, &RANGE_KINDS);
        }
        let mut line =
            self.line.as_ref().map_or_else(String::new, |it| it.to_object().end_object());
        state.text(&mut line);
        self.line = PlannedLine::parse(&line).ok().filter(|_| !line.is_empty());
        state.text(&mut self.name);
        self.failure.visit(state);
        state.visit_flag(&mut self.has_more);
        state.visit_flag(&mut self.has_staged);
        state.visit_number(&mut self.now);
        state.visit_number(&mut self.place);
        state.visit_number(&mut self.revision);
        state.visit_number(&mut self.confirmed);
        state.visit_number(&mut self.fewest);
        state.visit_number(&mut self.plans);
        state.visit_number(&mut self.repeats);
        state.visit_number(&mut self.wait_ms);
        state.visit_number(&mut self.totals.revision);
        state.visit_number(&mut self.totals.ingested);
        state.visit_number(&mut self.totals.seq_first);
        state.visit_number(&mut self.totals.seq_last);
        state.visit_number(&mut self.totals.seq_seen);
        state.visit_number(&mut self.totals.context_tokens);
        state.visit_number(&mut self.totals.skipped);
        state.visit_number(&mut self.blanks);
    }

    /// Advances the progress by one event.
    pub(super) fn advance(
        &mut self,
        task: &IntakeTask,
        event: DriveEvent,
        reply: &mut DriveReply,
    ) -> Result<()> {
        self.wait_ms = 0;
        match (event, self.phase) {
            (DriveEvent::Stopped, _) => self.phase = IntakePhase::Done,
            (DriveEvent::Failed(failed), _) => self.handle_failure(task, failed, reply),
            (DriveEvent::Staged(count), IntakePhase::Stage) => self.add_staged(count),
            (DriveEvent::Returned(json), IntakePhase::Identify) => {
                let json = ["{\"entries\":", &json, "}"].concat();
                let mut fields = JsonFields::parse_argument(EVENT, &json)?;
                self.add_identities(task, &json, &mut fields);
                fields.finish_known(EVENT)?;
            }
            (DriveEvent::Returned(json), IntakePhase::Reconcile | IntakePhase::Append) => {
                let mut fields = JsonFields::parse_argument(EVENT, &json)?;
                match self.phase {
                    IntakePhase::Append => self.take_receipt(task, &mut fields, reply),
                    _ => self.take_plan(task, &json, &mut fields, reply),
                }
                fields.finish_known(EVENT)?;
            }
            _ => return Err(unanswered_error("`result`, `staged` or `error`")),
        }
        Ok(())
    }

    fn handle_failure(&mut self, task: &IntakeTask, failed: CallFailure, reply: &mut DriveReply) {
        let has_work = !self.ranges.is_empty() || self.has_change();
        let is_append = self.phase == IntakePhase::Append && has_work;
        match failed.code.as_str() {
            // The caller repeats an append that is the whole task: only the caller knows whether
            // its messages are still wanted.
            "store-unavailable"
                if is_append && self.route != IntakeRoute::Whole && self.repeats < REPEATS_MAX =>
            {
                self.repeats += 1;
                self.wait_ms = pause_ms(self.repeats, 256);
            }
            // The engine does not know the beginning of the list, or another writer was faster.
            "conflict" | "limit-exceeded" if is_append && self.route == IntakeRoute::Continued => {
                self.identify(task);
            }
            "conflict"
                if is_append
                    && self.route == IntakeRoute::Aligned
                    && self.plans < CONFLICTS_MAX =>
            {
                self.plan_again();
                reply.events.push_repeated(&task.conversation, APPEND, self.plans);
                self.wait_ms = pause_ms(self.plans, 8);
            }
            // An append has further limits, such as the number of ids. So the messages are split.
            "limit-exceeded" if is_append && self.route == IntakeRoute::Whole && task.count > 1 => {
                self.identify(task);
            }
            _ => {
                self.failure = self.locate_failure(failed);
                self.phase = IntakePhase::Done;
            }
        }
    }

    /// Turns the message index of a failed call into the index within the task.
    fn locate_failure(&self, failed: CallFailure) -> CallFailure {
        let from = match self.phase {
            IntakePhase::Identify => self.place,
            IntakePhase::Append => self.ranges.first().map_or(0, |range| range.from),
            _ => return failed,
        };
        let told = failed.message.strip_prefix("messages[").and_then(|rest| rest.split_once("]: "));
        let Some((Ok(index), reason)) = told.map(|(index, why)| (index.parse::<u64>(), why)) else {
            return failed;
        };
        let index = index.saturating_add(from);
        let message = alloc::format!("messages[{index}]: {reason}");
        CallFailure { message, number: Some(index), ..failed }
    }

    /// Returns whether messages leave the line or come back to it with the next append.
    fn has_change(&self) -> bool {
        self.line.as_ref().is_some_and(PlannedLine::has_change)
    }

    /// Returns whether one append takes all messages.
    fn is_one_append(&self) -> bool {
        matches!(self.route, IntakeRoute::Whole | IntakeRoute::Continued)
    }

    fn plan_again(&mut self) {
        self.plans = self.plans.saturating_add(1);
        self.repeats = 0;
        self.phase = IntakePhase::Reconcile;
    }

    fn add_identities(&mut self, task: &IntakeTask, json: &str, fields: &mut JsonFields<'_>) {
        let entries = fields.take_list("entries");
        let end = self.place.saturating_add(int::to_u64(entries.len()));
        if entries.is_empty() || end > task.count {
            fields.reject_field("entries", "one identity for each message");
        }
        for entry in entries {
            let mut hash = String::new();
            if let Ok(mut entry) =
                JsonFields::parse_argument(EVENT, json::slice_span(json, entry.span))
            {
                hash = entry.take_text("said");
                self.blanks += u64::from(entry.take_flag("empty"));
            }
            self.name = name(&[self.name.as_bytes(), hash.as_bytes()]);
        }
        self.place = end;
        if end == task.count {
            self.finish_identify(task);
        }
    }

    fn take_plan(
        &mut self,
        task: &IntakeTask,
        json: &str,
        fields: &mut JsonFields<'_>,
        reply: &mut DriveReply,
    ) {
        self.line = match fields.take_any("line").map(|(text, _)| PlannedLine::parse(&text)) {
            Some(Err(_)) => {
                fields.reject_field("line", "what `reconcile` planned");
                None
            }
            line => line.and_then(core::result::Result::ok),
        };
        let missing = fields.take_list("missing_ranges");
        self.revision = fields.take_u64("revision");
        let warnings = fields.take_texts("warnings");
        if self.confirmed == 0 {
            // Warnings of a later plan would also be about messages that this task stored.
            reply.warnings = warnings;
        }
        self.has_more = missing.len() > RANGES_MAX;
        self.ranges.clear();
        let (mut total, mut behind) = (0_u64, 0);
        for element in missing {
            let mut range = IndexRange::default();
            if let Ok(mut found) =
                JsonFields::parse_argument(EVENT, json::slice_span(json, element.span))
            {
                range.from = found.take_u64("index_first");
                range.end = found.take_u64("index_last").saturating_add(1);
                range.kind = if found.take_flag("revision") {
                    RangeKind::Revisions
                } else if found.take_flag("system") {
                    RangeKind::System
                } else {
                    RangeKind::Messages
                };
            }
            if range.from < behind || range.end <= range.from || range.end > task.count {
                fields.reject_field("missing_ranges", "ranges in the order of the messages");
            }
            behind = range.end;
            total = total.saturating_add(behind.saturating_sub(range.from));
            if self.ranges.len() < RANGES_MAX {
                self.ranges.push(range);
            }
        }
        if total < self.fewest {
            self.fewest = total;
            self.plans = 0;
        }
        self.prepare_append(task);
    }

    fn add_staged(&mut self, count: u64) {
        self.has_staged |= count > 0;
        self.place = self.place.saturating_add(1);
        if int::to_usize(self.place) < self.ranges.len() {
            return;
        }
        // An upload changes the revision, so a plan for the old revision is made again.
        match self.route {
            IntakeRoute::Aligned if self.has_staged && self.plans < CONFLICTS_MAX => {
                self.plan_again()
            }
            _ => self.phase = IntakePhase::Append,
        }
    }

    fn take_receipt(
        &mut self,
        task: &IntakeTask,
        fields: &mut JsonFields<'_>,
        reply: &mut DriveReply,
    ) {
        let relied = self.revision;
        let ingested = fields.take_u64("ingested");
        let skipped = fields.take_u64("skipped");
        let taken = ingested.saturating_add(skipped);
        reply.take_events(fields);
        self.revision = fields.take_u64("revision");
        reply.warnings = fields.take_texts("warnings");
        let open = self.ranges.first().map_or(0, |range| range.end.saturating_sub(range.from));
        let is_partial = self.is_one_append() && taken != open;
        if taken > open || (taken == 0 && open > 0) || is_partial {
            fields.reject_field("ingested", "a number of the messages of the call");
        }
        let totals = &mut self.totals;
        totals.revision = self.revision;
        totals.ingested = totals.ingested.saturating_add(ingested);
        totals.skipped = totals.skipped.saturating_add(skipped);
        let seq_first = fields.take_optional_u64("seq_first").unwrap_or(0);
        if totals.seq_first == 0 {
            totals.seq_first = seq_first;
        }
        totals.seq_last = fields.take_optional_u64("seq_last").unwrap_or(totals.seq_last);
        totals.context_tokens = fields.take_u64("context_tokens");
        self.repeats = 0;
        totals.seq_seen = fields.take_optional_u64("seq_seen").unwrap_or(totals.seq_seen);
        let is_first = |kind| self.ranges.first().is_some_and(|range| range.kind == kind);
        let (is_system, is_revision) =
            (is_first(RangeKind::System), is_first(RangeKind::Revisions));
        if let Some(line) = &mut self.line {
            line.finish_change(is_system, is_revision);
        }
        if let Some(range) = self.ranges.first_mut() {
            range.from = range.from.saturating_add(taken);
            self.confirmed = range.from;
            if range.from >= range.end {
                self.ranges.remove(0);
            }
        }
        // Another writer committed between the last plan or append and this append.
        let has_jumped = self.revision > relied.saturating_add(1);
        match self.route {
            _ if self.ranges.is_empty() && !self.has_more => {
                self.add_skip_events(task, reply);
                self.phase = IntakePhase::Done;
            }
            IntakeRoute::Aligned if has_jumped || self.ranges.is_empty() => {
                self.phase = IntakePhase::Reconcile
            }
            _ => {}
        }
    }

    /// Adds the events of messages that no append received, because the plan found them stored.
    fn add_skip_events(&self, task: &IntakeTask, reply: &mut DriveReply) {
        let IntakeTotals { ingested, skipped, .. } = self.totals;
        let left = task.count.saturating_sub(ingested.saturating_add(skipped));
        let blanks = self.blanks.min(left);
        let conversation = &task.conversation;
        reply.events.push_skipped(conversation, left - blanks, SkipReason::Known);
        reply.events.push_skipped(conversation, blanks, SkipReason::Blank);
    }
}

/// Export that stores messages.
const APPEND: &str = "ingest.append";

/// Returns the hash of these parts in hex digits, for the name of a list.
fn name(parts: &[&[u8]]) -> String {
    hash::hex(&hash::hash_fields(parts))
}

/// Returns the maximum pause before repetition number `repeats`, in milliseconds: 2 before the
/// first, then twice as long each time, at most `max`.
fn pause_ms(repeats: u64, max: u64) -> u64 {
    (1 << repeats.min(16)).min(max)
}
