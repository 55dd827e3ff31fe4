//! Intake: stores any number of messages, each once.
//!
//! What one call takes is one append. More of mode `new` is a list of appends. More of a transcript
//! is identified as a whole, reconciled, and only what is missing is appended, under the revision
//! of the plan. An append of unknown outcome is repeated as it was, which the engine recognises.

use alloc::{string::String, vec::Vec};

use crate::{
    api::Timestamp,
    error::Result,
    json::{self, Fields, Writer},
    keys, num,
};

use super::{
    CONFLICTS_MAX,
    event::{EVENT, Event, Failed},
    instruction::{self, BYTES_MAX, Instruction, MESSAGES_MAX, Reply},
    state::State,
    unanswered,
};

/// How often an append of unknown outcome is repeated.
const REPEATS_MAX: u64 = 8;
/// Ranges of missing messages that a token holds. Further ones are asked for again.
const RANGES_MAX: usize = 32;

/// What is to be stored.
pub(super) struct Task {
    conversation: String,
    dialect: String,
    family: Option<String>,
    count: u64,
    /// Of all messages.
    bytes: u64,
    /// Of the longest message.
    bytes_longest: u64,
    /// All messages are new, unless their ids are stored.
    is_new: bool,
    /// A later call may repeat this one: its appends are parts of a list.
    is_list: bool,
    /// This call repeats one.
    repeat: bool,
    refuse_replay: bool,
    /// So many first messages are stored, at this revision.
    proven: Option<(u64, u64)>,
}

impl Task {
    /// Reads the members of a task; `is_append`: a call of `append` and no transcript.
    pub(super) fn read(fields: &mut Fields<'_>, is_append: bool) -> Self {
        let proven = fields.number_or_none("proven").zip(fields.number_or_none("proven_revision"));
        let count = fields.number("count");
        Self {
            conversation: fields.text("conversation"),
            dialect: fields.text_or_none("dialect").unwrap_or_else(|| "lcm".into()),
            family: fields.text_or_none("family"),
            count,
            bytes: fields.number("bytes"),
            bytes_longest: fields.number("bytes_longest"),
            is_new: fields.choice("mode", &["transcript", "new"]) == Some(1),
            is_list: is_append,
            repeat: fields.flag("repeat"),
            refuse_replay: fields.flag("refuse_replay"),
            proven: proven.filter(|(messages, _)| *messages < count),
        }
    }

    /// Whether one call takes everything.
    fn is_whole(&self) -> bool {
        self.count <= 1 || (self.count <= MESSAGES_MAX && self.bytes <= BYTES_MAX)
    }

    fn has_uploads(&self) -> bool {
        self.bytes_longest > BYTES_MAX
    }

    fn all(&self) -> Vec<Range> {
        self.ranges_from(0)
    }

    fn ranges_from(&self, from: u64) -> Vec<Range> {
        (from < self.count).then_some(Range { from, end: self.count }).into_iter().collect()
    }
}

/// Indexes from 0; `end` is behind the last.
#[derive(Clone, Copy)]
struct Range {
    from: u64,
    end: u64,
}

/// How the messages are stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Route {
    /// By one append.
    Whole,
    /// By appends that are parts of a list.
    List,
    /// By appends of what a plan says is missing.
    Aligned,
    /// By appends behind the messages that the caller knows are stored.
    Proven,
}

/// What is done now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// The messages from the place on are identified.
    Identify,
    Reconcile,
    /// The large messages of the range of the place are uploaded.
    Stage,
    Append,
    Done,
}

const ROUTES: [Route; 4] = [Route::Whole, Route::List, Route::Aligned, Route::Proven];
const PHASES: [Phase; 5] =
    [Phase::Identify, Phase::Reconcile, Phase::Stage, Phase::Append, Phase::Done];

/// How far an intake is.
pub(super) struct Progress {
    /// The time of all calls: a repeated call is recognised by its time, too.
    now: Timestamp,
    route: Route,
    phase: Phase,
    place: u64,
    /// Hash over the identities so far, in hex digits.
    name: String,
    /// What is to be appended.
    ranges: Vec<Range>,
    /// Whether more is missing behind the ranges.
    has_more: bool,
    /// Whether something was uploaded since the plan.
    has_staged: bool,
    /// The revision that the next append relies on.
    revision: u64,
    /// Index behind the last message that an append confirmed.
    confirmed: u64,
    /// Messages that the smallest plan said are missing.
    fewest: u64,
    /// Plans since then.
    plans: u64,
    /// Repetitions of this append.
    repeats: u64,
    wait_ms: u64,
    totals: Totals,
    failure: Failed,
}

/// What the appends stored together.
#[derive(Default)]
struct Totals {
    revision: u64,
    ingested: u64,
    /// 0: no message was stored.
    seq_first: u64,
    seq_last: u64,
    context_tokens: u64,
}

impl Progress {
    /// The beginning of a task.
    pub(super) fn begin(task: &Task, now: Timestamp) -> Self {
        let mut this = Self {
            now,
            route: Route::Whole,
            phase: Phase::Append,
            place: 0,
            name: String::new(),
            ranges: task.all(),
            has_more: false,
            has_staged: false,
            revision: 0,
            confirmed: 0,
            fewest: u64::MAX,
            plans: 0,
            repeats: 0,
            wait_ms: 0,
            totals: Totals::default(),
            failure: Failed::default(),
        };
        match task.proven {
            _ if task.is_list && task.is_whole() => this.prepare(task),
            Some((messages, revision)) if !task.refuse_replay => {
                this.route = Route::Proven;
                this.revision = revision;
                this.ranges = task.ranges_from(messages);
                (this.phase, this.place) = (Phase::Identify, messages);
            }
            _ => this.identify(task),
        }
        this
    }

    /// Reads all messages before the first of them is stored.
    fn identify(&mut self, task: &Task) {
        let is_list = task.is_new && task.is_list && !task.refuse_replay;
        self.route = if is_list { Route::List } else { Route::Aligned };
        self.ranges = task.all();
        let kind: &[u8] = if task.is_new { b"new" } else { b"transcript" };
        self.name = name(&[kind, &self.now.to_be_bytes()]);
        (self.phase, self.place) = (Phase::Identify, 0);
        if task.count == 0 {
            self.identified(task);
        }
    }

    fn identified(&mut self, task: &Task) {
        match self.route {
            Route::Aligned => self.phase = Phase::Reconcile,
            _ => self.prepare(task),
        }
    }

    /// Uploads what is too large for a call, then appends.
    fn prepare(&mut self, task: &Task) {
        let uploads = task.has_uploads() && !self.ranges.is_empty();
        self.has_staged = false;
        self.phase = if uploads { Phase::Stage } else { Phase::Append };
        self.place = 0;
    }

    /// Reads or writes it.
    pub(super) fn visit(&mut self, state: &mut State) {
        state.choice(&mut self.route, &ROUTES);
        state.choice(&mut self.phase, &PHASES);
        let mut count = num::to_u64(self.ranges.len());
        state.number(&mut count);
        self.ranges.resize(num::to_usize(count).min(RANGES_MAX), Range { from: 0, end: 0 });
        for range in &mut self.ranges {
            state.number(&mut range.from);
            state.number(&mut range.end);
        }
        state.text(&mut self.name);
        self.failure.visit(state);
        state.flag(&mut self.has_more);
        state.flag(&mut self.has_staged);
        state.number(&mut self.now);
        state.number(&mut self.place);
        state.number(&mut self.revision);
        state.number(&mut self.confirmed);
        state.number(&mut self.fewest);
        state.number(&mut self.plans);
        state.number(&mut self.repeats);
        state.number(&mut self.wait_ms);
        state.number(&mut self.totals.revision);
        state.number(&mut self.totals.ingested);
        state.number(&mut self.totals.seq_first);
        state.number(&mut self.totals.seq_last);
        state.number(&mut self.totals.context_tokens);
    }

    /// Takes an event in.
    pub(super) fn advance(&mut self, task: &Task, event: Event, reply: &mut Reply) -> Result<()> {
        self.wait_ms = 0;
        match (event, self.phase) {
            (Event::Stopped, _) => self.phase = Phase::Done,
            (Event::Failed(failed), _) => self.fail(task, failed),
            (Event::Staged(count), Phase::Stage) => self.add_staged(task, count),
            (Event::Returned(json), Phase::Identify) => {
                let json = ["{\"entries\":", &json, "}"].concat();
                let mut fields = Fields::of_argument(EVENT, &json)?;
                self.add_identities(task, &json, &mut fields);
                fields.end_of_known(EVENT)?;
            }
            (Event::Returned(json), Phase::Reconcile | Phase::Append) => {
                let mut fields = Fields::of_argument(EVENT, &json)?;
                match self.phase {
                    Phase::Append => self.take_receipt(task, &mut fields, reply),
                    _ => self.take_plan(task, &json, &mut fields, reply),
                }
                fields.end_of_known(EVENT)?;
            }
            _ => return Err(unanswered("`result`, `staged` or `error`")),
        }
        Ok(())
    }

    fn fail(&mut self, task: &Task, failed: Failed) {
        let is_append = self.phase == Phase::Append && !self.ranges.is_empty();
        match failed.code.as_str() {
            // One append is repeated by the caller, who knows whether the messages are still wanted.
            "store-unavailable"
                if is_append && self.route != Route::Whole && self.repeats < REPEATS_MAX =>
            {
                self.repeats += 1;
                self.wait_ms = pause_ms(self.repeats, 256);
            }
            "conflict" if is_append && self.route == Route::Proven => self.identify(task),
            "conflict"
                if is_append && self.route == Route::Aligned && self.plans < CONFLICTS_MAX =>
            {
                self.plan_again();
                self.wait_ms = pause_ms(self.plans, 8);
            }
            // A call has further bounds than those by which batches are cut, such as that of ids.
            "limit-exceeded" if is_append && self.route == Route::Whole && task.count > 1 => {
                self.identify(task);
            }
            _ => {
                self.failure = self.placed(failed);
                self.phase = Phase::Done;
            }
        }
    }

    /// An error about a message of a call, as one about a message of the task.
    fn placed(&self, failed: Failed) -> Failed {
        let from = match self.phase {
            Phase::Identify => self.place,
            Phase::Append => self.ranges.first().map_or(0, |range| range.from),
            _ => return failed,
        };
        let told = failed.message.strip_prefix("messages[").and_then(|rest| rest.split_once("]: "));
        let Some((Ok(index), reason)) = told.map(|(index, why)| (index.parse::<u64>(), why)) else {
            return failed;
        };
        let index = index.saturating_add(from);
        let message = alloc::format!("messages[{index}]: {reason}");
        Failed { message, number: Some(index), ..failed }
    }

    fn plan_again(&mut self) {
        self.plans = self.plans.saturating_add(1);
        self.repeats = 0;
        self.phase = Phase::Reconcile;
    }

    fn add_identities(&mut self, task: &Task, json: &str, fields: &mut Fields<'_>) {
        let entries = fields.list("entries");
        let end = self.place.saturating_add(num::to_u64(entries.len()));
        if entries.is_empty() || end > task.count {
            fields.must_be("entries", "one identity for each message");
        }
        for entry in entries {
            let hash = Fields::of_argument(EVENT, json::slice(json, entry.span))
                .map_or_else(|_| String::new(), |mut entry| entry.text("hash"));
            self.name = name(&[self.name.as_bytes(), hash.as_bytes()]);
        }
        self.place = end;
        if end == task.count {
            self.identified(task);
        }
    }

    fn take_plan(&mut self, task: &Task, json: &str, fields: &mut Fields<'_>, reply: &mut Reply) {
        let missing = fields.list("missing");
        self.revision = fields.number("revision");
        let warnings = fields.texts("warnings");
        if self.confirmed == 0 {
            // Later ones would also speak of what was stored here.
            reply.warnings = warnings;
        }
        self.has_more = missing.len() > RANGES_MAX;
        self.ranges.clear();
        let (mut total, mut behind) = (0_u64, 0);
        for element in missing {
            let mut range = Range { from: 0, end: 0 };
            if let Ok(mut found) = Fields::of_argument(EVENT, json::slice(json, element.span)) {
                range.from = found.number("from");
                range.end = found.number("to").saturating_add(1);
            }
            if range.from < behind || range.end <= range.from || range.end > task.count {
                fields.must_be("missing", "ranges in the order of the messages");
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
        self.prepare(task);
    }

    fn add_staged(&mut self, task: &Task, count: u64) {
        self.has_staged |= count > 0;
        self.place = self.place.saturating_add(1);
        if num::to_usize(self.place) < self.ranges.len() {
            return;
        }
        // An upload moves the conversation on, and what relies on its revision is planned again.
        match self.route {
            Route::Aligned if self.has_staged && self.plans < CONFLICTS_MAX => self.plan_again(),
            Route::Proven if self.has_staged => self.identify(task),
            _ => self.phase = Phase::Append,
        }
    }

    fn take_receipt(&mut self, task: &Task, fields: &mut Fields<'_>, reply: &mut Reply) {
        let relied = self.revision;
        let ingested = fields.number("ingested");
        let taken = ingested.saturating_add(fields.number("skipped"));
        self.revision = fields.number("revision");
        reply.warnings = fields.texts("warnings");
        let open = self.ranges.first().map_or(0, |range| range.end.saturating_sub(range.from));
        let is_partial = self.route == Route::Whole && taken != open;
        if taken > open || (taken == 0 && open > 0) || is_partial {
            fields.must_be("ingested", "a number of the messages of the call");
        }
        let totals = &mut self.totals;
        totals.revision = self.revision;
        totals.ingested = totals.ingested.saturating_add(ingested);
        let seq_first = fields.number_or_none("seq_first").unwrap_or(0);
        if totals.seq_first == 0 {
            totals.seq_first = seq_first;
        }
        totals.seq_last = fields.number_or_none("seq_last").unwrap_or(totals.seq_last);
        totals.context_tokens = fields.number("context_tokens");
        self.repeats = 0;
        if let Some(range) = self.ranges.first_mut() {
            range.from = range.from.saturating_add(taken);
            self.confirmed = range.from;
            if range.from >= range.end {
                self.ranges.remove(0);
            }
        }
        // Others wrote between the call that was recognised and this one.
        let has_jumped = self.revision > relied.saturating_add(1);
        match self.route {
            _ if self.ranges.is_empty() && !self.has_more => self.phase = Phase::Done,
            Route::Proven if has_jumped => self.identify(task),
            Route::Aligned if has_jumped || self.ranges.is_empty() => self.phase = Phase::Reconcile,
            _ => {}
        }
    }

    /// What the host does next.
    pub(super) fn instruct(&self, task: &Task) -> Instruction {
        if self.failure.is_some() {
            return Instruction::fail(instruction::failure(&self.failure));
        }
        let mut arguments = Writer::object();
        match self.phase {
            Phase::Identify => {
                arguments.text("dialect", &task.dialect);
                Instruction::call("ingest.identify", arguments)
                    .with_messages(self.place, task.count.saturating_sub(self.place))
                    .with_flag("keep")
            }
            Phase::Reconcile => {
                arguments.text("conversation", &task.conversation);
                arguments.number("now", self.now);
                arguments.text("transcript_json", &self.transcript(task));
                Instruction::call("ingest.reconcile", arguments)
                    .with_flag("entries")
                    .with_wait(self.wait_ms)
            }
            Phase::Stage => {
                arguments.text("conversation", &task.conversation);
                arguments.text_or_null("family", task.family.as_deref());
                arguments.number("now", self.now);
                let range = self.ranges.get(num::to_usize(self.place));
                let (from, end) = range.map_or((0, 0), |range| (range.from, range.end));
                Instruction::stage(from, end.saturating_sub(from), arguments)
            }
            Phase::Append => self.append(task),
            Phase::Done => Instruction::done(&self.totals.result(task).end_object()),
        }
    }

    /// What a plan is asked for, but for the entries, which the host adds.
    fn transcript(&self, task: &Task) -> String {
        let mut asked = Writer::object();
        asked.number("confirmed", self.confirmed);
        if task.repeat && task.is_list {
            asked.text("list", &self.name);
        }
        asked.flag("new", task.is_new);
        asked.flag("refuse_replay", task.refuse_replay);
        asked.end_object()
    }

    fn append(&self, task: &Task) -> Instruction {
        let range = self.ranges.first().copied();
        let (from, count) =
            range.map_or((0, 0), |range| (range.from, range.end.saturating_sub(range.from)));
        let is_planned = matches!(self.route, Route::Aligned | Route::Proven) && count > 0;
        let is_whole = self.route == Route::Whole;
        let is_part = count > 0
            && match self.route {
                Route::List => true,
                Route::Aligned => task.is_list,
                Route::Whole | Route::Proven => false,
            };
        let mut extra = Writer::object();
        if let Some(family) = &task.family {
            extra.text("family", family);
        }
        if is_part {
            extra.number("from", from);
            extra.text("list", &self.name);
        }
        if is_whole && task.refuse_replay {
            extra.flag("refuse_replay", true);
        }
        if self.repeats > 0 || (task.repeat && !is_planned && (is_whole || is_part)) {
            extra.flag("repeat", true);
        }
        if is_planned {
            extra.number("revision", self.revision);
        }
        let mut options = Writer::object();
        if !extra.is_empty() {
            options.text("extra_json", &extra.end_object());
        }
        options.text("mode", if task.is_new || !is_whole { "new" } else { "transcript" });
        options.flag("partial", !is_whole);
        let mut arguments = Writer::object();
        arguments.text("conversation", &task.conversation);
        arguments.text("dialect", &task.dialect);
        arguments.number("now", self.now);
        arguments.object_at("options", options);
        let call = Instruction::call("ingest.append", arguments)
            .with_messages(from, count)
            .with_wait(self.wait_ms);
        if is_planned { call.with_flag("once") } else { call }
    }
}

/// The name of a list of these parts.
fn name(parts: &[&[u8]]) -> String {
    keys::hex(&keys::hash(parts))
}

/// The longest pause before the given repetition; it doubles from 1 ms.
fn pause_ms(repeats: u64, max: u64) -> u64 {
    (1 << repeats.min(16)).min(max)
}

impl Totals {
    fn result(&self, task: &Task) -> Writer {
        let mut result = Writer::object();
        result.number("context_tokens", self.context_tokens);
        result.number("ingested", self.ingested);
        result.number("revision", self.revision);
        let stored = |seq: u64| (seq > 0).then_some(seq);
        result.number_or_null("seq_first", stored(self.seq_first));
        result.number_or_null("seq_last", stored(self.seq_last));
        result.number("skipped", task.count.saturating_sub(self.ingested));
        result
    }
}
