//! Intake: stores any number of messages, each once.
//!
//! What one call takes is one append. More of mode `new` is a list of appends. More of a transcript
//! is identified as a whole, reconciled, and only what is missing is appended, under the revision
//! of the plan. An append of unknown outcome is repeated as it was, which the engine recognises.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    api::Timestamp,
    error::Result,
    json::{Fields, Writer},
    keys,
};

use super::{
    CONFLICTS_MAX,
    event::{EVENT, Event, Failed},
    instruction::{self, BYTES_MAX, Instruction, MESSAGES_MAX, Reply},
    unanswered,
};

/// How often an append of unknown outcome is repeated.
const REPEATS_MAX: u32 = 8;
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
#[derive(Clone, Copy, Deserialize, Serialize)]
struct Range {
    from: u64,
    end: u64,
}

/// How the messages are stored.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
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
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
enum Phase {
    /// The messages from this index on are identified.
    Identify(u64),
    Reconcile,
    /// The large messages of the range of this place are uploaded.
    Stage(u32),
    Append,
    Done,
}

/// How far an intake is.
#[derive(Deserialize, Serialize)]
pub(super) struct Progress {
    /// The time of all calls: a repeated call is recognised by its time, too.
    now: Timestamp,
    route: Route,
    phase: Phase,
    /// Hash over the identities so far.
    name: [u8; 32],
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
    plans: u32,
    /// Repetitions of this append.
    repeats: u32,
    wait_ms: u64,
    totals: Totals,
    failure: Option<(String, String, Option<u64>)>,
}

/// What the appends stored together.
#[derive(Default, Deserialize, Serialize)]
struct Totals {
    revision: u64,
    ingested: u64,
    seq_first: Option<u64>,
    seq_last: Option<u64>,
    context_tokens: u64,
}

/// What an append did.
struct Receipt {
    revision: u64,
    ingested: u64,
    skipped: u64,
    seq_first: Option<u64>,
    seq_last: Option<u64>,
    context_tokens: u64,
    warnings: Vec<String>,
}

impl Progress {
    /// The beginning of a task.
    pub(super) fn begin(task: &Task, now: Timestamp) -> Self {
        let mut this = Self {
            now,
            route: Route::Whole,
            phase: Phase::Append,
            name: [0; 32],
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
            failure: None,
        };
        match task.proven {
            _ if task.is_list && task.is_whole() => this.prepare(task),
            Some((messages, revision)) if !task.refuse_replay => {
                this.route = Route::Proven;
                this.revision = revision;
                this.ranges = task.ranges_from(messages);
                this.phase = Phase::Identify(messages);
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
        self.name = seed(task, self.now);
        self.phase = Phase::Identify(0);
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
        self.phase = if uploads { Phase::Stage(0) } else { Phase::Append };
    }

    /// Takes an event in.
    pub(super) fn advance(&mut self, task: &Task, event: Event, reply: &mut Reply) -> Result<()> {
        self.wait_ms = 0;
        match (event, self.phase) {
            (Event::Stopped, _) => self.phase = Phase::Done,
            (Event::Failed(failed), _) => self.fail(task, failed),
            (Event::Returned(json), Phase::Identify(from)) => {
                self.add_identities(task, from, &json)?
            }
            (Event::Returned(json), Phase::Reconcile) => self.take_plan(task, &json, reply)?,
            (Event::Returned(json), Phase::Append) => self.take_receipt(task, &json, reply)?,
            (Event::Staged(count), Phase::Stage(place)) => self.add_staged(task, place, count),
            (_, Phase::Stage(_)) => return Err(unanswered("`staged` or `error`")),
            _ => return Err(unanswered("`result` or `error`")),
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
                let (message, index) = self.placed(&failed);
                self.failure = Some((failed.code, message, failed.index.or(index)));
                self.phase = Phase::Done;
            }
        }
    }

    /// An error about a message of a call, as one about a message of the task.
    fn placed(&self, failed: &Failed) -> (String, Option<u64>) {
        let from = match self.phase {
            Phase::Identify(from) => from,
            Phase::Append => self.ranges.first().map_or(0, |range| range.from),
            _ => return (failed.message.clone(), None),
        };
        let told = failed.message.strip_prefix("messages[").and_then(|rest| rest.split_once("]: "));
        match told.and_then(|(index, reason)| Some((index.parse::<u64>().ok()?, reason))) {
            Some((index, reason)) => {
                let index = index.saturating_add(from);
                (alloc::format!("messages[{index}]: {reason}"), Some(index))
            }
            None => (failed.message.clone(), None),
        }
    }

    fn plan_again(&mut self) {
        self.plans = self.plans.saturating_add(1);
        self.repeats = 0;
        self.phase = Phase::Reconcile;
    }

    fn add_identities(&mut self, task: &Task, from: u64, json: &str) -> Result<()> {
        let wrapped = ["{\"entries\":", json, "}"].concat();
        let mut fields = Fields::of_argument(EVENT, &wrapped)?;
        let entries = fields.list("entries");
        fields.end(EVENT)?;
        let end = from.saturating_add(crate::num::to_u64(entries.len()));
        if entries.is_empty() || end > task.count {
            return Err(unanswered("one identity for each message"));
        }
        for entry in entries {
            let mut entry = Fields::of_argument(EVENT, crate::json::slice(&wrapped, entry.span))?;
            let hash = entry.text("hash");
            entry.end_of_known(EVENT)?;
            self.name = keys::hash(&[&self.name, hash.as_bytes()]);
        }
        self.phase = Phase::Identify(end);
        if end == task.count {
            self.identified(task);
        }
        Ok(())
    }

    fn take_plan(&mut self, task: &Task, json: &str, reply: &mut Reply) -> Result<()> {
        let mut fields = Fields::of_argument(EVENT, json)?;
        let missing = fields.list("missing");
        let (revision, warnings) = (fields.number("revision"), fields.texts("warnings"));
        fields.end_of_known(EVENT)?;
        if self.confirmed == 0 {
            // Later ones would also speak of what was stored here.
            reply.warnings = warnings;
        }
        self.has_more = missing.len() > RANGES_MAX;
        self.ranges.clear();
        let (mut total, mut behind) = (0_u64, 0);
        for element in missing {
            let mut range = Fields::of_argument(EVENT, crate::json::slice(json, element.span))?;
            let (from, to) = (range.number("from"), range.number("to"));
            range.end(EVENT)?;
            if from < behind || to < from || to >= task.count {
                return Err(unanswered("ranges in the order of the messages"));
            }
            behind = to.saturating_add(1);
            total = total.saturating_add(behind - from);
            if self.ranges.len() < RANGES_MAX {
                self.ranges.push(Range { from, end: behind });
            }
        }
        if total < self.fewest {
            self.fewest = total;
            self.plans = 0;
        }
        self.revision = revision;
        self.prepare(task);
        Ok(())
    }

    fn add_staged(&mut self, task: &Task, place: u32, count: u64) {
        self.has_staged |= count > 0;
        let next = place.saturating_add(1);
        if crate::num::to_usize(u64::from(next)) < self.ranges.len() {
            self.phase = Phase::Stage(next);
            return;
        }
        // An upload moves the conversation on, and what relies on its revision is planned again.
        match self.route {
            Route::Aligned if self.has_staged && self.plans < CONFLICTS_MAX => self.plan_again(),
            Route::Proven if self.has_staged => self.identify(task),
            _ => self.phase = Phase::Append,
        }
    }

    fn take_receipt(&mut self, task: &Task, json: &str, reply: &mut Reply) -> Result<()> {
        let mut receipt = Receipt::read(json)?;
        let taken = receipt.ingested.saturating_add(receipt.skipped);
        let open = self.ranges.first().map_or(0, |range| range.end.saturating_sub(range.from));
        let is_partial = self.route == Route::Whole && taken != open;
        if taken > open || (taken == 0 && open > 0) || is_partial {
            return Err(unanswered("a receipt of the messages of the call"));
        }
        reply.warnings = core::mem::take(&mut receipt.warnings);
        let has_jumped = receipt.revision > self.revision.saturating_add(1);
        self.repeats = 0;
        self.revision = receipt.revision;
        self.totals.add(&receipt);
        if let Some(range) = self.ranges.first_mut() {
            range.from = range.from.saturating_add(taken);
            self.confirmed = range.from;
            if range.from >= range.end {
                self.ranges.remove(0);
            }
        }
        let is_over = self.ranges.is_empty() && !self.has_more;
        match self.route {
            _ if is_over => self.phase = Phase::Done,
            // Others wrote between the call that was recognised and this one.
            Route::Proven if has_jumped => self.identify(task),
            Route::Aligned if has_jumped || self.ranges.is_empty() => self.phase = Phase::Reconcile,
            _ => {}
        }
        Ok(())
    }

    /// What the host does next.
    pub(super) fn instruct(&self, task: &Task) -> Instruction {
        if let Some((code, message, index)) = &self.failure {
            return Instruction::fail(instruction::error(code, message, *index));
        }
        let mut arguments = Writer::object();
        match self.phase {
            Phase::Identify(from) => {
                arguments.text("dialect", &task.dialect);
                Instruction::call("ingest.identify", arguments)
                    .with_messages(from, task.count.saturating_sub(from))
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
            Phase::Stage(place) => {
                arguments.text("conversation", &task.conversation);
                arguments.text_or_null("family", task.family.as_deref());
                arguments.number("now", self.now);
                let place = crate::num::to_usize(u64::from(place));
                let range = self.ranges.get(place).copied().unwrap_or(Range { from: 0, end: 0 });
                Instruction::stage(range.from, range.end.saturating_sub(range.from), arguments)
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
            asked.text("list", &keys::hex(&self.name));
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
            extra.text("list", &keys::hex(&self.name));
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

/// The beginning of the name of a list: its time, and whether all messages are new.
fn seed(task: &Task, now: Timestamp) -> [u8; 32] {
    let kind: &[u8] = if task.is_new { b"new" } else { b"transcript" };
    keys::hash(&[b"lcm list", kind, &now.to_be_bytes()])
}

/// The longest pause before the given repetition; it doubles from 1 ms.
fn pause_ms(repeats: u32, max: u64) -> u64 {
    1_u64.checked_shl(repeats.min(16)).unwrap_or(max).min(max)
}

impl Receipt {
    fn read(json: &str) -> Result<Self> {
        let mut fields = Fields::of_argument(EVENT, json)?;
        let receipt = Self {
            revision: fields.number("revision"),
            ingested: fields.number("ingested"),
            skipped: fields.number("skipped"),
            seq_first: fields.number_or_none("seq_first"),
            seq_last: fields.number_or_none("seq_last"),
            context_tokens: fields.number("context_tokens"),
            warnings: fields.texts("warnings"),
        };
        fields.end_of_known(EVENT)?;
        Ok(receipt)
    }
}

impl Totals {
    fn add(&mut self, receipt: &Receipt) {
        self.revision = receipt.revision;
        self.ingested = self.ingested.saturating_add(receipt.ingested);
        self.seq_first = self.seq_first.or(receipt.seq_first);
        self.seq_last = receipt.seq_last.or(self.seq_last);
        self.context_tokens = receipt.context_tokens;
    }

    fn result(&self, task: &Task) -> Writer {
        let mut result = Writer::object();
        result.number("context_tokens", self.context_tokens);
        result.number("ingested", self.ingested);
        result.number("revision", self.revision);
        result.number_or_null("seq_first", self.seq_first);
        result.number_or_null("seq_last", self.seq_last);
        result.number("skipped", task.count.saturating_sub(self.ingested));
        result
    }
}
