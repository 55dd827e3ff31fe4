//! A life, the simulated history of a few conversations: random steps, with checks after each step.
//!
//! In: a seed and a [`Conduct`]. Out: the figures and the digest of the store, or the first
//! violation of an invariant. [`super::driver`] compacts.

use lcm_core::ErrorCode;

use crate::{
    digest::text_sha256,
    fault_store::Fault,
    host::Host,
    json::Json,
    plant::Plant,
    simulation::{
        Conduct, Figures, driver,
        invariants::{self, Seen},
        random::Random,
        reference::{Expected, Message, Reference},
        workload::Workload,
    },
};

/// Time at which every life begins, in milliseconds since 1970.
const START: u64 = 1_700_000_000_000;
/// Most bytes of the messages of one batch.
const BATCH_BYTES_MAX: usize = 400_000;
/// Least bytes of a large message that is uploaded in pieces (`stage`). Few messages are large,
/// because reading large messages takes time.
const LARGE_BYTES_MIN: u64 = 300_000;
/// Bytes of one uploaded piece.
const PIECE_BYTES: usize = 150_000;
/// Most attempts of one call, after planted failures and conflicts, before the step counts as
/// failed.
const REPEATS_MAX: u32 = 8;

/// A conversation of the life, with the messages that its store must contain.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) id: String,
    pub(super) reference: Reference,
    workload: Workload,
    seen: Seen,
}

/// The state of one life: the host, the conversations and the random numbers.
#[derive(Debug)]
pub struct Actor {
    pub(super) random: Random,
    pub(super) host: Host,
    pub(super) conversations: Vec<Conversation>,
    pub(super) figures: Figures,
    pub(super) budget: u64,
    conduct: Conduct,
    now: u64,
}

impl Actor {
    /// Creates the life of a seed, before its first step.
    #[must_use]
    pub fn new(seed: u64, plant: Plant, conduct: Conduct) -> Self {
        let mut random = Random::new(seed);
        let budget = *random.pick(&[1_500, 3_000, 6_000, 12_000, 30_000]);
        let config = configuration(&mut random);
        let mut host = Host::new(Some(config), conduct.mode).expect("a sound configuration");
        host.plant = plant;
        host.cold = conduct.cold;
        let conversations = [("main/\u{1f600}", "m"), ("other", "o")].map(|(id, prefix)| {
            let with_ids = random.chance(500);
            Conversation {
                id: id.to_owned(),
                reference: Reference::default(),
                workload: Workload::new(prefix, with_ids),
                seen: Seen::default(),
            }
        });
        Self {
            random,
            host,
            conversations: conversations.into(),
            figures: Figures::default(),
            budget,
            conduct,
            now: START,
        }
    }

    /// Makes one random step, then checks the invariants of one conversation. Calls `say` with the
    /// name of the step.
    ///
    /// # Errors
    ///
    /// Text about the first violation.
    pub fn act(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), String> {
        self.tick();
        let index = usize::from(self.random.chance(120));
        match self.random.between(0, 99) {
            0..=44 => {
                say("append");
                self.append(index)?;
            }
            45..=49 => {
                say("append replayed old messages");
                self.append_old(index)?;
            }
            50..=53 => {
                say("append staged");
                self.append_staged(index)?;
            }
            54..=63 => {
                say("two writers");
                self.two_writers(index)?;
            }
            64..=87 => {
                say("compact");
                driver::compact(self, index)?;
            }
            88..=93 => {
                say("restart");
                self.host.restart().map_err(|error| error.to_string())?;
            }
            _ => {
                say("new configuration");
                let config = configuration(&mut self.random);
                self.host.restart_with(config).map_err(|error| error.to_string())?;
            }
        }
        self.check(index)
    }

    /// Checks all conversations at the end of the life, and returns the figures and the digest of
    /// the store.
    ///
    /// # Errors
    ///
    /// Text about the first violation.
    pub fn finish(mut self, say: &mut dyn FnMut(&str)) -> Result<(Figures, String), String> {
        say("at the end");
        self.host.restart().map_err(|error| error.to_string())?;
        for conversation in &self.conversations {
            let (id, reference) = (&conversation.id, &conversation.reference);
            invariants::all_again(&mut self.host, id, reference, self.budget)?;
            self.figures.messages += reference.len();
        }
        let digest = self.host.store.digest();
        let by_engine = self.host.read_digest()?;
        if by_engine != digest {
            return Err(format!("admin.digest says {by_engine}, the store is {digest}"));
        }
        Ok((self.figures, digest))
    }

    fn check(&mut self, index: usize) -> Result<(), String> {
        let budget = *self.random.pick(&[600, self.budget, self.budget, 3 * self.budget]);
        let conversation = &mut self.conversations[index];
        invariants::all(
            &mut self.host,
            &conversation.id,
            &conversation.reference,
            &mut conversation.seen,
            budget,
        )
    }

    /// Advances the time, and sometimes steps back by up to a day, as a host's clock may.
    fn tick(&mut self) {
        self.now += self.random.between(1, 90_000);
        if self.random.chance(40) {
            self.now -= self.random.between(1, 86_400_000);
        }
    }

    pub(super) fn time(&self) -> Json {
        self.now.into()
    }

    /// Sometimes plans a failure for the next calls, if this life has failures.
    pub(super) fn maybe_fault(&mut self) {
        if !self.conduct.faults || !self.random.chance(300) {
            return;
        }
        let kind = if self.random.chance(500) { Fault::Before } else { Fault::ReplyLost };
        let at = self.random.between(1, 6);
        self.host.plan_fault(at, kind);
    }

    /// Makes one call that writes, and repeats the call after a planted failure or a conflict, as
    /// every host does. `repeated`: the arguments of a call after a planted failure. Returns the
    /// result, and whether a planted failure happened.
    pub(super) fn call(
        &mut self,
        name: &str,
        args: &Json,
        repeated: &Json,
    ) -> Result<(Json, bool), String> {
        let mut unknown = false;
        for _ in 0..REPEATS_MAX {
            let answer = self.host.ask(name, if unknown { repeated } else { args });
            let fired = self.host.fault_fired();
            self.host.clear_fault();
            match answer {
                Ok(result) => return Ok((result, unknown)),
                Err(error) if error.code == ErrorCode::StoreUnavailable && fired => {
                    self.figures.faults += 1;
                    unknown = true;
                }
                Err(error) if error.code == ErrorCode::Conflict => self.figures.conflicts += 1,
                Err(error) => return Err(format!("{name}: {error}")),
            }
        }
        Err(format!("{name} does not come to an end"))
    }

    /// Makes a batch of new messages, which may begin with a repetition of the newest stored
    /// messages. Also returns whether the append mode is `transcript`.
    pub(super) fn batch(&mut self, index: usize, count: u64) -> (Vec<Message>, bool) {
        let conversation = &mut self.conversations[index];
        let transcript = self.random.chance(600);
        let mut batch: Vec<Message> = Vec::new();
        if transcript {
            let length = self.random.between(0, 40).min(conversation.reference.len()) as usize;
            let stored = conversation.reference.messages();
            let replayed = &stored[stored.len() - length..];
            // A short message alone is no anchor: the engine would store its repetition as a new
            // message.
            let anchored = replayed.iter().any(|message| message.strong);
            if anchored && carried_bytes(replayed) <= BATCH_BYTES_MAX / 2 {
                batch.extend_from_slice(replayed);
            }
        }
        for _ in 0..count {
            let next = conversation.workload.next(&mut self.random);
            if carried_bytes(&batch) + carried_bytes(&next) <= BATCH_BYTES_MAX {
                batch.extend(next);
            }
        }
        (batch, transcript)
    }

    fn append(&mut self, index: usize) -> Result<(), String> {
        let count = self.random.between(1, 9);
        let (batch, transcript) = self.batch(index, count);
        self.append_batch(index, &batch, transcript)
    }

    /// Appends old messages with ids, from any place of the conversation, among new messages.
    fn append_old(&mut self, index: usize) -> Result<(), String> {
        if !self.conversations[index].workload.with_ids() {
            return self.append(index);
        }
        let (mut batch, _) = self.batch(index, 2);
        let stored = self.conversations[index].reference.messages().to_vec();
        for _ in 0..self.random.between(1, 8) {
            if let Some(last) = stored.len().checked_sub(1) {
                let old = &stored[self.random.between(0, last as u64) as usize];
                // Messages of tool-call groups are left out: a call without its results would be
                // another group than the stored group.
                if old.in_group.is_none() && old.carried.len() < 20_000 {
                    batch.push(old.clone());
                }
            }
        }
        let transcript = self.random.chance(500);
        self.append_batch(index, &batch, transcript)
    }

    fn append_staged(&mut self, index: usize) -> Result<(), String> {
        let low = if self.random.chance(900) { 2_000 } else { LARGE_BYTES_MIN };
        let conversation = &mut self.conversations[index];
        let mut message = conversation.workload.large(&mut self.random, low, low * 2);
        let upload = text_sha256(&message.raw);
        let (id, mut offset) = (conversation.id.clone(), 0);
        while offset < message.raw.len() {
            let end = (offset + PIECE_BYTES).min(message.raw.len());
            let args = Json::object([
                ("conversation", id.as_str().into()),
                ("upload", upload.as_str().into()),
                ("offset", (offset as u64).into()),
                ("text", message.raw[offset..end].into()),
                ("now", self.time()),
            ]);
            self.maybe_fault();
            let (next, _) = self.call("ingest.stage", &args, &args)?;
            if next != Json::Number(end as u64) {
                return Err(format!("staging {offset} to {end} answers {next}"));
            }
            if self.random.chance(200) {
                self.host.restart().map_err(|error| error.to_string())?;
            }
            // The same piece is sometimes sent again.
            offset = if self.random.chance(100) { offset } else { end };
        }
        message.carried = format!("@upload {upload}");
        let transcript = self.random.chance(500);
        self.append_batch(index, &[message], transcript)
    }

    pub(super) fn append_args(
        &self,
        index: usize,
        batch: &[Message],
        transcript: bool,
        repeat: bool,
    ) -> Json {
        let mut options =
            vec![("append_mode".to_owned(), if transcript { "transcript" } else { "new" }.into())];
        if repeat {
            let extra = Json::object([("repeat", true.into())]);
            options.push(("extra_json".to_owned(), extra));
        }
        let texts = batch.iter().map(|message| message.carried.as_str().into()).collect();
        Json::object([
            ("conversation", self.conversations[index].id.as_str().into()),
            ("messages", Json::Array(texts)),
            ("options", Json::Object(options)),
            ("now", self.time()),
        ])
    }

    pub(super) fn append_batch(
        &mut self,
        index: usize,
        batch: &[Message],
        transcript: bool,
    ) -> Result<(), String> {
        let batch = without_leading_system(batch);
        if batch.is_empty() {
            return Ok(());
        }
        let args = self.append_args(index, batch, transcript, false);
        let repeated = self.append_args(index, batch, transcript, true);
        self.maybe_fault();
        let (receipt, unknown) = self.call("ingest.append", &args, &repeated)?;
        let before = self.conversations[index].reference.len();
        let expected = self.conversations[index].reference.append(batch, transcript);
        if unknown { Ok(()) } else { receipt_matches(&receipt, &expected, before) }
    }

    /// Appends a batch while a second instance appends another batch before a random operation of
    /// this append.
    fn two_writers(&mut self, index: usize) -> Result<(), String> {
        let (mine, _) = self.batch(index, 2);
        let theirs = self.conversations[index].workload.next(&mut self.random);
        // Neither batch repeats stored messages, so the outcome does not depend on which append is
        // first.
        let stored = self.conversations[index].reference.messages();
        let mine: Vec<Message> =
            mine.into_iter().filter(|message| !stored.contains(message)).collect();
        let mine = without_leading_system(&mine).to_vec();
        let theirs = without_leading_system(&theirs).to_vec();
        if mine.is_empty() || theirs.is_empty() {
            return Ok(());
        }
        if !self.conduct.faults {
            // The place of the other append depends on the cache of this instance. A life without
            // failures is led twice and compared, so it makes both appends one after the other.
            self.append_batch(index, &theirs, false)?;
            return self.append_batch(index, &mine, false);
        }
        let args = self.append_args(index, &mine, false, false);
        let their_args = self.append_args(index, &theirs, false, false);
        let at = self.random.between(1, 4);
        let other = ("ingest.append", &their_args);
        let (answer, theirs_done) = self.host.ask_interleaved("ingest.append", &args, at, other);
        let reference = &mut self.conversations[index].reference;
        if theirs_done {
            reference.append(&theirs, false);
        }
        match answer {
            Ok(_) => {
                reference.append(&mine, false);
            }
            Err(error) if error.code == ErrorCode::Conflict && theirs_done => {
                self.figures.conflicts += 1;
                self.append_batch(index, &mine, false)?;
            }
            Err(error) => return Err(format!("ingest.append beside another: {error}")),
        }
        if theirs_done { Ok(()) } else { self.append_batch(index, &theirs, false) }
    }
}

/// Returns a batch without the system messages at its beginning. System messages at the beginning
/// of a list belong to the slot, which the reference model does not have
/// (`tests/tests/system_messages.rs` tests the slot).
fn without_leading_system(batch: &[Message]) -> &[Message] {
    let is_system = |message: &Message| message.raw.starts_with("{\"role\":\"system\"");
    let leading = batch.iter().take_while(|message| is_system(message)).count();
    &batch[leading..]
}

fn carried_bytes(batch: &[Message]) -> usize {
    batch.iter().map(|message| message.carried.len()).sum()
}

fn receipt_matches(receipt: &Json, expected: &Expected, before: u64) -> Result<(), String> {
    let number = |key: &str| receipt.field(key).and_then(Json::as_u64);
    let span = (expected.ingested > 0).then_some((before + 1, before + expected.ingested));
    let sound = number("ingested") == Some(expected.ingested)
        && number("skipped") == Some(expected.skipped)
        && number("seq_first") == span.map(|(first, _)| first)
        && number("seq_last") == span.map(|(_, last)| last);
    if sound {
        return Ok(());
    }
    Err(format!("append says {receipt}, expected {expected:?} after {before} messages"))
}

fn configuration(random: &mut Random) -> Json {
    let mut entries: Vec<(String, Json)> = Vec::new();
    let mut maybe = |random: &mut Random, key: &str, values: &[u64]| {
        if random.chance(400) {
            entries.push((key.to_owned(), (*random.pick(values)).into()));
        }
    };
    maybe(random, "fresh_tail_messages_max", &[0, 1, 4, 20]);
    maybe(random, "fresh_tail_tokens_max", &[200, 1000]);
    maybe(random, "leaf_chunk_tokens_max", &[200, 1000, 5000]);
    maybe(random, "leaf_tokens_target", &[192, 600]);
    maybe(random, "condensed_tokens_target", &[512, 900]);
    maybe(random, "condense_leaves_min", &[2, 3, 8]);
    maybe(random, "sweep_depth_max", &[0, 1, 3]);
    maybe(random, "sweep_passes_max", &[1, 5, 12]);
    maybe(random, "summary_prefix_tokens_target", &[600, 2000]);
    maybe(random, "context_threshold_permille", &[500, 900]);
    Json::Object(entries)
}
