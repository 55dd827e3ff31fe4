#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
//! Clocks: the clock of a host jumps, and is right again later. Then grants, pauses, debts and the
//! order of messages are as if the clock had always been right, except for anything that expired
//! meanwhile. A debt is compaction that is due and was not done.
//!
//! Two hosts make the same calls in two stores. The clock of one is always right; the clock of the
//! other jumps ahead or back, and is right again. The test computes the allowed differences from
//! the true times alone.
//!
//! `LCM_SEEDS=1000` sets the number of lives (random call sequences); `LCM_SEED=123` runs one.

use std::env;

use lcm_core::ErrorCode;
use lcm_testing::{Host, Json, host::StoreMode, simulation::random::Random};
use serde_json::{Value, json};

/// Number of lives of a run without `LCM_SEEDS`.
const SEEDS: u64 = 150;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const YEAR: i64 = 365 * 24 * 3_600_000;
/// Largest step of a clock, in milliseconds, that the engine takes for no jump.
const SMALL: u64 = 5 * MINUTE;
/// Default length of a pause, in milliseconds.
const PAUSE: u64 = 30 * MINUTE;
const BEGIN: u64 = 1_772_352_000_000;
const BUDGET: u64 = 40_000;
const CONFIG: &str = r#"{"fresh_tail_messages_max":1,"fresh_tail_tokens_max":null,
    "leaf_chunk_tokens_max":300,"context_threshold":0.005,"summary_max_calls_per_window":1}"#;

/// A grant, pause or back-off: it begins at a time and ends after a length.
#[derive(Clone, Copy, Debug)]
struct Term {
    /// True time at which it began.
    began: u64,
    lasts: u64,
    /// Milliseconds by which the jumping clock went too fast since then.
    lost: u64,
    /// True time from which the length counts: the beginning; if the clock was wrong then, the
    /// first call with a right clock or the newest commit that stored a step back. `None`: no such
    /// call was made yet.
    counts_from: Option<u64>,
}

impl Term {
    fn new(began: u64, lasts: u64, is_right: bool) -> Self {
        Self { began, lasts, lost: 0, counts_from: is_right.then_some(began) }
    }

    const fn holds_truly(&self, at: u64) -> bool {
        at < self.began + self.lasts
    }

    /// Returns whether the term must still be in force: the jumping clock did not reach its end.
    const fn must_hold(&self, at: u64) -> bool {
        at - self.began + self.lost < self.lasts
    }

    /// Returns whether the term must have ended: its length and [`SMALL`] have passed since the
    /// time from which the length counts.
    fn must_have_ended(&self, at: u64) -> bool {
        self.counts_from.is_some_and(|from| at - from >= self.lasts + SMALL)
    }

    fn check(mut self, at: u64, holds: bool, lost: u64, place: &str) {
        self.lost += lost;
        assert!(holds || !self.must_hold(at), "{place}: ended too early: {self:?} at {at}");
        assert!(!holds || !self.must_have_ended(at), "{place}: too late: {self:?} at {at}");
    }
}

struct Grant {
    ids: [String; 2],
    term: Term,
    has_ended: bool,
}

struct Life {
    seed: u64,
    /// The host whose clock is right, and the other.
    hosts: [Host; 2],
    at: u64,
    offset: i64,
    /// Newest `now` of the jumping clock in any commit, with the true time of that commit;
    /// `newest_head`: the same for commits of the head.
    newest: (u64, u64),
    newest_head: (u64, u64),
    /// Time in the head of the jumping host.
    reference: u64,
    grants: Vec<Grant>,
    pause: Option<Term>,
    debt: Option<Term>,
    failures: u32,
    times: Vec<u64>,
    jumps: u64,
}

fn call(host: &mut Host, name: &str, args: &Value) -> Result<Value, lcm_core::Error> {
    let answer = host.told(name, &args.to_string())?;
    Ok(serde_json::from_str(&answer.compact()).unwrap())
}

impl Life {
    fn new(seed: u64) -> Self {
        let host = || Host::new(Some(Json::of(CONFIG)), StoreMode::Plain).unwrap();
        Self {
            seed,
            hosts: [host(), host()],
            at: BEGIN,
            offset: 0,
            newest: (BEGIN, BEGIN),
            newest_head: (BEGIN, BEGIN),
            reference: BEGIN,
            grants: Vec::new(),
            pause: None,
            debt: None,
            failures: 0,
            times: Vec::new(),
            jumps: 0,
        }
    }

    fn place(&self) -> String {
        format!("seed {}, minute {}, offset {}", self.seed, (self.at - BEGIN) / MINUTE, self.offset)
    }

    fn now(&self, host: usize) -> u64 {
        if host == 0 { self.at } else { self.at.saturating_add_signed(self.offset) }
    }

    fn call(&mut self, host: usize, name: &str, mut args: Value) -> Result<Value, lcm_core::Error> {
        let now = self.now(host);
        args["conversation"] = "c".into();
        args["now"] = now.into();
        call(&mut self.hosts[host], name, &args)
    }

    fn both(&mut self, name: &str, args: &Value) -> [Value; 2] {
        [0, 1].map(|host| {
            self.call(host, name, args.clone())
                .unwrap_or_else(|error| panic!("{}: {name}: {error}", self.place()))
        })
    }

    /// Returns the revision in the store of the jumping host: its number of commits of the head.
    fn revision(&mut self) -> u64 {
        self.call(1, "admin.status", json!({})).unwrap()["revision"].as_u64().unwrap()
    }

    /// Returns the milliseconds by which the jumping clock went too fast since the newest commits.
    /// The record of grants and the head each store a time; either may be ahead of the true time.
    fn lost(&self, is_head: bool) -> u64 {
        let too_fast = |(before, then): (u64, u64)| {
            self.now(1).saturating_sub(before).saturating_sub(self.at - then)
        };
        too_fast(self.newest).max(if is_head { too_fast(self.newest_head) } else { 0 })
    }

    /// Updates every term after a commit of the jumping host.
    fn committed(&mut self, is_head: bool) {
        let (at, now) = (self.at, self.now(1));
        let lost = self.lost(is_head);
        let is_step = is_head && now + SMALL < self.reference;
        let grants = self.grants.iter_mut().map(|grant| &mut grant.term);
        for term in grants.chain(&mut self.pause).chain(&mut self.debt) {
            term.lost += lost;
            if is_step || (term.counts_from.is_none() && self.offset == 0) {
                term.counts_from = Some(at);
            }
        }
        self.newest = (now, at);
        if is_head {
            self.newest_head = (now, at);
            // Clocks of two hosts may differ, so a few minutes back do not count as a step back.
            let is_small = now < self.reference && self.reference <= now + SMALL;
            self.reference = if is_small { self.reference } else { now };
        }
    }

    fn append(&mut self) {
        let number = self.times.len();
        let text = format!("message {number} {}", "word ".repeat(90));
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        let receipts = self.both(
            "ingest.append",
            &json!({"messages": [{"role": role,
            "content": text}], "options": {"append_mode": "new"}}),
        );
        let is_told = |receipt: &Value| receipt["warnings"].to_string().contains("stepped-back");
        let is_step = self.now(1) + SMALL < self.reference;
        assert_eq!(receipts.each_ref().map(is_told), [false, is_step], "{}", self.place());
        self.times.push(self.now(1));
        self.committed(true);
    }

    fn grant(&mut self, random: &mut Random) {
        let before = self.revision();
        let lasts = *random.pick(&[MINUTE, 20 * MINUTE, HOUR, 3 * HOUR]);
        let made = self.both(
            "recall.grant",
            &json!({"grant_json": {"ttl_ms": lasts,
            "tokens_max": 1_000_000}}),
        );
        let is_head = self.revision() > before;
        self.committed(is_head);
        self.grants.push(Grant {
            ids: made.map(|grant| grant["id"].as_str().unwrap().to_owned()),
            term: Term::new(self.at, lasts, self.offset == 0),
            has_ended: false,
        });
    }

    /// Reads with every grant.
    fn read(&mut self) {
        for index in 0..self.grants.len() {
            let ids = self.grants[index].ids.clone();
            let holds = [0, 1].map(|host| {
                let query = json!({"pattern": "message"});
                let args = json!({"query_json": query, "grant": ids[host]});
                match self.call(host, "recall.grep", args) {
                    Ok(found) => {
                        assert!(found["total"].as_u64() > Some(0), "{found}");
                        true
                    }
                    Err(error) => {
                        assert_eq!(error.code, ErrorCode::Denied, "{error}");
                        false
                    }
                }
            });
            let place = self.place();
            let term = self.grants[index].term;
            assert_eq!(holds[0], term.holds_truly(self.at), "{place}: {term:?}");
            if holds[1] {
                self.committed(false);
            }
            if self.offset == 0 {
                term.check(self.at, holds[1], self.lost(true), &place);
            }
            // A refusal stores nothing, so a refusal with a wrong clock has no later effect.
            let is_right = self.offset == 0;
            let grant = &mut self.grants[index];
            assert!(!(grant.has_ended && holds[1]), "{place}: came back to life: {term:?}");
            grant.has_ended |= is_right && !holds[1];
        }
    }

    /// Makes the model refuse to summarise, which begins a pause.
    fn refuse(&mut self) {
        let plans = self.both(
            "compaction.plan",
            &json!({"budget": BUDGET,
            "options": {"force": true, "requests_max": 1}}),
        );
        let ids = plans.each_ref().map(|plan| plan["requests"][0]["id"].clone());
        assert_eq!(ids[0].is_null(), ids[1].is_null(), "{}", self.place());
        if ids[0].is_null() {
            return;
        }
        for (host, id) in ids.iter().enumerate() {
            let args = json!({"request_id": id, "answer": {"done": {"text": "I cannot do that.",
                "finish": "refusal", "model": "scripted"}}});
            self.call(host, "compaction.apply", args).unwrap();
        }
        self.committed(true);
        self.pause = Some(Term::new(self.at, PAUSE, self.offset == 0));
    }

    /// Checks whether the pause and the back-off are in force as they must be.
    fn look(&mut self) {
        if self.times.len() < 6 {
            return;
        }
        let plans = self.both("compaction.plan", &json!({"budget": BUDGET, "options": {}}));
        let paused = plans.each_ref().map(|plan| plan["reason"] == "spend-limit");
        let place = self.place();
        assert_eq!(
            plans[0]["reason"] == "below-threshold",
            plans[1]["reason"] == "below-threshold"
        );
        match self.pause.filter(|_| plans[0]["reason"] != "below-threshold") {
            None => assert_eq!(paused, [false, false], "{place}"),
            Some(term) => {
                assert_eq!(paused[0], term.holds_truly(self.at), "{place}: {term:?}");
                // A plan stores nothing: no pause is in force between a step back and a commit.
                let is_stored = self.now(1) + SMALL >= self.reference;
                assert!(is_stored || !paused[1], "{place}: {term:?}");
                if self.offset == 0 && is_stored {
                    term.check(self.at, paused[1], self.lost(true), &place);
                }
            }
        }
        let before = self.revision();
        let reports = self.both(
            "admin.call",
            &json!({"verb": "maintain",
            "arguments_json": {"budget": BUDGET}}),
        );
        if reports[1]["changed"] == true {
            let is_head = self.revision() > before;
            self.committed(is_head);
        }
        let waits = reports.each_ref().map(|report| report["drain"] == false);
        assert_eq!(reports[0]["debt"].is_null(), reports[1]["debt"].is_null(), "{place}");
        if reports[0]["debt"].is_null() {
            // Nothing is due any more.
            (self.debt, self.failures) = (None, 0);
        }
        if let Some(term) = self.debt {
            assert_eq!(waits[0], term.holds_truly(self.at), "{place}: {term:?} {}", reports[0]);
            if self.offset == 0 {
                term.check(self.at, waits[1], 0, &place);
            }
        }
    }

    /// Reports that a model failed, which begins a back-off.
    fn fail(&mut self) {
        if self.times.len() < 6 {
            return;
        }
        let reports = self.both(
            "admin.call",
            &json!({"verb": "maintain",
            "arguments_json": {"budget": BUDGET, "ended": "model-unavailable"}}),
        );
        if reports[0]["debt"].is_null() {
            (self.debt, self.failures) = (None, 0);
            return;
        }
        self.committed(true);
        let minutes = (5 << self.failures.min(3)).min(30);
        self.failures += 1;
        self.debt = Some(Term::new(self.at, minutes * MINUTE, self.offset == 0));
    }

    fn jump(&mut self, random: &mut Random) {
        if self.offset != 0 {
            if random.chance(500) {
                self.offset = 0;
            }
        } else if random.chance(200) {
            let jumps = [YEAR, YEAR, YEAR, 24 * 3_600_000, 600_000, -600_000, -YEAR];
            self.offset = *random.pick(&jumps);
            self.jumps += 1;
        } else {
            return;
        }
        // An append is the most frequent next call; any call is possible.
        if random.chance(700) {
            self.append();
        }
    }

    fn act(&mut self, random: &mut Random) {
        self.at += random.between(SECOND, 25 * MINUTE);
        self.jump(random);
        match random.between(0, 9) {
            0..=2 => self.append(),
            3 | 4 => self.grant(random),
            5 => self.read(),
            6 => self.refuse(),
            7 => self.fail(),
            _ => {
                self.look();
                self.read();
            }
        }
    }

    /// Checks both hosts after the clock is right again and every term has had time to end.
    fn end(&mut self) {
        self.offset = 0;
        self.append();
        self.look();
        self.read();
        self.at += 4 * HOUR;
        self.look();
        self.read();
        let place = self.place();
        let made = self.both("recall.grant", &json!({"grant_json": {"ttl_ms": MINUTE}}));
        for (host, grant) in made.iter().enumerate() {
            let query = json!({"query_json": {"pattern": "message"}, "grant": grant["id"]});
            for (after, holds) in [(0, true), (MINUTE - 1, true), (MINUTE, false)] {
                self.at += after;
                let answer = self.call(host, "recall.grep", query.clone());
                assert_eq!(answer.is_ok(), holds, "{place}: host {host} after {after}");
                self.at -= after;
            }
        }
        let last = self.times.len();
        let [right, jumping] = [0, 1].map(|host| {
            let args = json!({"seq_first": 1, "seq_last": last, "conversation": "c"});
            let messages = call(&mut self.hosts[host], "recall.messages", &args).unwrap();
            let args = json!({"conversation": "c"});
            let check = call(&mut self.hosts[host], "admin.check", &args).unwrap();
            assert_eq!(check["ok"], true, "{place}: {check}");
            messages
        });
        assert_eq!(right, jumping, "{place}");
        let args = json!({"conversation": "c"});
        let page = call(&mut self.hosts[1], "admin.export_page", &args).unwrap();
        let lines: Vec<String> = page["lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().map_or_else(|| line.to_string(), Into::into))
            .collect();
        let times = lines.iter().filter_map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["message"]["time"].as_str().map(str::to_owned)
        });
        let stored: Vec<String> = times.collect();
        assert_eq!(stored.len(), last, "{place}");
        for (stored, now) in stored.iter().zip(&self.times) {
            assert_eq!(*stored, lcm_text::base::time::iso_millis(*now), "{place}");
        }
    }
}

fn live(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut life = Life::new(seed);
    for _ in 0..8 {
        life.append();
    }
    for _ in 0..random.between(10, 40) {
        life.act(&mut random);
    }
    life.end();
    life.jumps
}

#[test]
fn a_clock_that_was_wrong_leaves_no_trace() {
    let number = |name: &str| env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    if let Some(seed) = number("LCM_SEED") {
        live(seed);
        return;
    }
    let seeds = number("LCM_SEEDS").unwrap_or(SEEDS);
    let jumps: u64 = (0..seeds).map(live).sum();
    println!("{seeds} lives, {jumps} jumps");
    assert!(jumps >= seeds, "{jumps}");
}
