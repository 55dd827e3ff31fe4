//! Compaction of a life, and the messages to which the items of the context expand.
//!
//! A third of the lives with compaction have a model that fails now and then, so that some
//! summaries are provisional and are made again later.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use lcm_testing::{simulation::random::Random, transcripts::export_lines};
use lcm_text::types::{
    api::{ApplyOptions, CompactionMode, CompactionOptions, PlanStatus},
    model::CompletionResult,
};
use serde_json::{Value, json};

use crate::{CHAT, Life};

/// Largest number of plans of one compaction.
const PLANS_MAX: usize = 40;

/// Compaction in a life.
pub(crate) struct Compaction {
    random: Random,
    config: Value,
    has_model: bool,
    /// Whether the test removes a message from the checked context, to see that the check fails.
    pub(crate) is_planted: bool,
    pub(crate) figures: Figures,
}

/// Counts of what happened to the lists and the summaries of all lives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) summaries: u64,
    pub(crate) condensed: u64,
    pub(crate) gave_way: u64,
    pub(crate) withdrawn: u64,
    pub(crate) remade: u64,
    pub(crate) known_beginnings: u64,
}

impl Figures {
    pub(crate) fn add_figures(&mut self, other: Self) {
        self.summaries += other.summaries;
        self.condensed += other.condensed;
        self.gave_way += other.gave_way;
        self.withdrawn += other.withdrawn;
        self.remade += other.remade;
        self.known_beginnings += other.known_beginnings;
    }

    pub(crate) fn every_kind_occurred(&self) {
        let counts = [self.summaries, self.condensed, self.gave_way, self.withdrawn, self.remade];
        assert!(self.known_beginnings > 0 && counts.iter().all(|count| *count > 0), "{self:?}");
    }
}

impl Compaction {
    /// Returns the compaction of a life; `None` for half of the seeds. The compaction has its own
    /// random numbers, so those of the life do not change.
    pub(crate) fn for_seed(seed: u64) -> Option<Self> {
        let mut random = Random::new(seed ^ 0x5eed);
        if random.chance(500) {
            return None;
        }
        let has_model = random.chance(333);
        let mut config = json!({
            "fresh_tail_messages_max": random.between(0, 4),
            "leaf_chunk_tokens_max": random.between(40, 160),
            "leaf_tokens_target": 16,
            "condensed_tokens_target": 16,
            "summary_prefix_tokens_target": 30,
        });
        if has_model {
            config["summary_model"] = json!("m");
        }
        Some(Self { random, config, has_model, is_planted: false, figures: Figures::default() })
    }
}

impl Life {
    /// Configures a new engine.
    pub(crate) fn configure_engine(&mut self) {
        let config = self.compaction.as_ref().map(|it| it.config.to_string());
        if let Some(config) = config {
            self.engine.configure(&config).expect("a configuration");
        }
    }

    /// Compacts, now and then, and checks the context and the store.
    pub(crate) fn compact_line(&mut self) -> Result<(), String> {
        let Some(compaction) = &mut self.compaction else { return Ok(()) };
        if compaction.random.chance(600) {
            return Ok(());
        }
        // A provisional summary is made again after a pause, so some plans come later.
        let is_later = compaction.random.chance(500);
        let works = !compaction.has_model || compaction.random.chance(500);
        let target = compaction.random.between(1, 120) as u32;
        let mut options = CompactionOptions {
            mode: CompactionMode::Sweep,
            force: true,
            target: Some(target),
            requests_max: 1,
            ..CompactionOptions::default()
        };
        self.now += if is_later { 100_000 } else { 0 };
        self.log.push(format!("  compact to {target}, the model works: {works}"));
        for _ in 0..PLANS_MAX {
            self.store.begin_call();
            let plan = self.engine.plan(&mut self.store, CHAT, 4_000, &options, self.now);
            let plan = plan.map_err(|error| format!("plan: {error}"))?;
            for request in plan.requests {
                let mut next = Some(request);
                while let Some(request) = next {
                    let mut answer = self.engine.complete_offline(&request);
                    if works && self.compaction.as_ref().is_some_and(|it| it.has_model) {
                        answer.model = "m".into();
                    }
                    let (done, settled) = (CompletionResult::Done(answer), ApplyOptions::default());
                    let applied = self.apply_answer(&request.id, &done, &settled)?;
                    self.log.push(format!("    {applied:?}"));
                    next = applied.next;
                }
            }
            if plan.status != PlanStatus::NeedsCompletions && plan.sweep.is_empty() {
                break;
            }
            options.sweep = Some(plan.sweep);
        }
        self.check_store()?;
        let before = self.stored_context.clone();
        let context = self.expand_context()?;
        if context != before && !before.is_empty() {
            return Err(format!("compaction changed the messages {before:?} to {context:?}"));
        }
        Ok(())
    }

    /// Checks the store.
    pub(crate) fn check_store(&mut self) -> Result<(), String> {
        self.store.begin_call();
        let report = self.engine.check(&mut self.store, CHAT, None).expect("a report");
        let report: Value = serde_json::from_str(&report).unwrap();
        match report["checks"].as_array().unwrap().iter().find(|it| it["status"] != "pass") {
            Some(check) => Err(check.to_string()),
            None => Ok(()),
        }
    }

    /// Returns the seqs of the messages to which the context expands, in order, by an export.
    /// Checks that they are the messages of the line, each exactly once.
    pub(crate) fn expand_context(&mut self) -> Result<Vec<u64>, String> {
        let lines = export_lines(&mut self.engine, &mut self.store, CHAT);
        let (mut summaries, mut items, mut withdrawn) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut messages = 0;
        let mut figures = Figures::default();
        for line in lines {
            let line: Value = serde_json::from_str(&line).unwrap();
            let kind = |name: &&str| line[*name].is_object();
            let kind = ["header", "summary", "withdrawn", "context"].into_iter().find(kind);
            let line = &line[kind.unwrap_or_default()];
            match kind.unwrap_or_default() {
                "header" => messages = line["messages"].as_u64().unwrap_or(0),
                "summary" => {
                    figures.summaries += 1;
                    figures.condensed += u64::from(line["depth"] != 0);
                    figures.gave_way += u64::from(line["exit"] == "gave-way");
                    figures.withdrawn += u64::from(line["exit"] == "withdrawn");
                    figures.remade += u64::from(line["replaces"].is_string());
                    summaries.insert(line["id"].as_str().unwrap().to_owned(), line.clone());
                }
                "withdrawn" => {
                    withdrawn.extend(line["ranges"].as_array().cloned().unwrap_or_default());
                }
                "context" => items.extend(line["items"].as_array().cloned().unwrap()),
                _ => {}
            }
        }
        let withdrawn: BTreeSet<u64> = withdrawn.iter().flat_map(list_range).collect();
        let mut seqs: Vec<u64> = Vec::new();
        for item in &items {
            match item["summary"].as_str() {
                Some(id) => list_messages(&summaries, id, &mut seqs),
                None if item["withdrawn"] == true => {}
                None => seqs.extend(list_range(item)),
            }
        }
        let line: Vec<u64> = (1..=messages).filter(|seq| !withdrawn.contains(seq)).collect();
        if seqs != line {
            return Err(format!("the context leads to the messages {seqs:?}, not {line:?}"));
        }
        if let Some(compaction) = &mut self.compaction {
            compaction.figures = figures;
            let has_summary = items.iter().any(|item| item["summary"].is_string());
            // The plant removes a message only sometimes, so that a list misses it, too.
            if compaction.is_planted && has_summary && self.now.is_multiple_of(3) {
                seqs.pop();
            }
        }
        self.stored_context.clone_from(&seqs);
        Ok(seqs)
    }
}

/// Returns the seqs of an item, a range or a leaf with its gaps.
fn list_range(value: &Value) -> RangeInclusive<u64> {
    value["seq_first"].as_u64().unwrap()..=value["seq_last"].as_u64().unwrap()
}

/// Adds the seqs of the messages below a summary.
fn list_messages(summaries: &BTreeMap<String, Value>, id: &str, seqs: &mut Vec<u64>) {
    let record = &summaries[id];
    match record["sources"].as_array() {
        Some(sources) => sources
            .iter()
            .for_each(|source| list_messages(summaries, source.as_str().unwrap(), seqs)),
        None => {
            let gaps = record["gaps"].as_array().cloned().unwrap_or_default();
            let is_in_gap = |seq: &u64| gaps.iter().any(|gap| list_range(gap).contains(seq));
            seqs.extend(list_range(record).filter(|seq| !is_in_gap(seq)));
        }
    }
}
