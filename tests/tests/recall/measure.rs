//! Recall at ten hits: the engine and plain BM25, question by question, and the table of both.
//!
//! In: conversations with questions. Out: for each question the share of its evidence among the
//! first ten hits, within its conversation and with all conversations in one store.

use std::{collections::BTreeSet, fmt::Write, fs, ops::RangeInclusive, path::Path};

use lcm_testing::{Host, Json, host::StoreMode};
use serde_json::{Value, json};

use crate::{
    Conversation,
    bm25::Bm25,
    world::{KINDS, Question, iso},
};

/// Number of hits that count.
const HITS: usize = 10;
/// Largest number of bytes of one append.
const BATCH_BYTES_MAX: usize = 400_000;
/// Largest number of messages of one append.
const BATCH_MESSAGES_MAX: usize = 100;

/// Allowed recall of plain BM25 within a conversation, for each kind of question.
const BASELINE: RangeInclusive<f64> = 0.25..=0.9;

/// Smallest mean difference between the recall of the engine and that of BM25, over the kinds of
/// conversation.
const BETTER: f64 = 0.08;

/// The measured values of one question.
pub(crate) struct Measured {
    pub(crate) conversation: usize,
    pub(crate) question: usize,
    pub(crate) kind: String,
    pub(crate) half: String,
    pub(crate) question_kind: String,
    pub(crate) figures: Figures,
    /// Ids of evidence that the engine does not show within the conversation.
    missed: Vec<String>,
}

/// Selects one of the figures of a question.
type Figure = fn(&Figures) -> f64;

/// Recall of one question.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) engine_within: f64,
    pub(crate) engine_all: f64,
    pub(crate) baseline_within: f64,
    pub(crate) baseline_all: f64,
}

/// Conversation and id of a message.
type Place = (String, String);

fn store(conversations: &[Conversation]) -> Host {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    for Conversation { world, messages } in conversations {
        let mut rest = messages.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |raw: &&str| {
                bytes += raw.len();
                bytes <= BATCH_BYTES_MAX
            };
            let raws = rest.iter().map(|message| message.raw.as_str());
            let batch: Vec<&str> = raws.take(BATCH_MESSAGES_MAX).take_while(fits).collect();
            let args = json!({"conversation": world.name, "messages": batch,
                "options": {"append_mode": "new"}});
            host.ask("ingest.append", &Json::parse(&args.to_string()).unwrap()).unwrap();
            rest = &rest[batch.len()..];
        }
    }
    host
}

/// Returns the bytes of keys and values of the index: manifests, segments with blocks, columns.
fn index_bytes(host: &Host) -> usize {
    let entries = host.store.entries();
    let of_search = |key: &str| {
        key.as_bytes()
            .get(22..)
            .is_some_and(|rest| matches!(rest, [b'/', b't'] | [b'/', b'p' | b'q', ..]))
    };
    let sizes = entries.iter().filter(|(key, _)| of_search(key));
    sizes.map(|(key, value)| key.len() + value.len()).sum()
}

/// Returns the hits of `lcm grep` for a typed question.
fn grep(host: &mut Host, conversation: &str, question: &str, now: i64, all: bool) -> Vec<Place> {
    let query = json!({"pattern": question, "mode": "full-text", "scope": "messages",
        "sort": "relevance", "limit": HITS, "all_conversations": all, "only": !all});
    let args = json!({"conversation": conversation, "query_json": query, "now": now * 1000});
    let answer = host.ask("recall.grep", &Json::parse(&args.to_string()).unwrap());
    let answer = answer.unwrap_or_else(|error| panic!("{question}: {error:?}"));
    let answer: Value = serde_json::from_str(answer.as_str().unwrap()).unwrap();
    let hits = answer["matches"].as_array().unwrap().iter();
    hits.map(|hit| {
        let text = |key: &str| hit[key].as_str().unwrap().to_owned();
        (text("conversation"), text("entry_id"))
    })
    .collect()
}

fn recall(conversation: &str, question: &Question, hits: &[Place]) -> f64 {
    let found = question.evidence.iter().filter(|id| is_found(conversation, id, hits)).count();
    found as f64 / question.evidence.len() as f64
}

fn is_found(conversation: &str, id: &str, hits: &[Place]) -> bool {
    hits.iter().any(|(place, hit)| place == conversation && hit == id)
}

/// Searches for every question and measures the results.
pub(crate) fn measure(conversations: &[Conversation]) -> Vec<Measured> {
    let mut host = store(conversations);
    let index = index_bytes(&host);
    let raw: usize =
        conversations.iter().flat_map(|one| &one.messages).map(|message| message.raw.len()).sum();
    println!("search index: {index} bytes, {:.3} of the raw text", index as f64 / raw as f64);
    let places: Vec<Vec<Place>> = conversations.iter().map(places).collect();
    let texts = |at: usize| conversations[at].messages.iter().map(|message| message.text.as_str());
    let of_all = Bm25::new((0..conversations.len()).flat_map(texts));
    let all_places = places.concat();
    let end = conversations.iter().flat_map(|one| &one.messages).map(|message| message.at).max();
    let mut out = Vec::new();
    for (at, Conversation { world, messages }) in conversations.iter().enumerate() {
        let of_one = Bm25::new(messages.iter().map(|message| message.text.as_str()));
        let shown = |hits: Vec<usize>, places: &[Place]| -> Vec<Place> {
            hits.into_iter().map(|hit| places[hit].clone()).collect()
        };
        for (number, question) in world.questions.iter().enumerate() {
            let text = &question.text;
            let now = question.now.or(end).unwrap();
            let within = grep(&mut host, &world.name, text, now, false);
            let recall = |hits: &[Place]| recall(&world.name, question, hits);
            let missed = |id: &&String| !is_found(&world.name, id, &within);
            out.push(Measured {
                conversation: at,
                question: number,
                kind: world.kind.clone(),
                half: world.half.clone(),
                question_kind: question.kind.clone(),
                missed: question.evidence.iter().filter(missed).cloned().collect(),
                figures: Figures {
                    engine_within: recall(&within),
                    engine_all: recall(&grep(&mut host, &world.name, text, now, true)),
                    baseline_within: recall(&shown(of_one.best(text, HITS), &places[at])),
                    baseline_all: recall(&shown(of_all.best(text, HITS), &all_places)),
                },
            });
        }
    }
    out
}

fn places(conversation: &Conversation) -> Vec<Place> {
    let ids = conversation.messages.iter().map(|message| message.id.clone());
    ids.map(|id| (conversation.world.name.clone(), id)).collect()
}

/// Returns the mean of a figure.
pub(crate) fn mean(measured: &[&Measured], figure: fn(&Figures) -> f64) -> f64 {
    measured.iter().map(|one| figure(&one.figures)).sum::<f64>() / measured.len() as f64
}

/// Returns a table with a row for each kind of conversation and question: engine / BM25.
pub(crate) fn table(measured: &[Measured]) -> String {
    let mut out = String::from("recall at 10, each engine / BM25\n");
    let half = "   n      within         all";
    let heading = format!("{:22}{half}   {half}", "");
    writeln!(out, "{:22}{:>6}{:>32}\n{heading}", "", "tune", "held-out").unwrap();
    let kinds: BTreeSet<&str> = measured.iter().map(|one| one.kind.as_str()).collect();
    for kind in kinds.into_iter().map(Some).chain([None]) {
        for question_kind in KINDS.into_iter().map(Some).chain([None]) {
            let row = [kind.unwrap_or("all"), question_kind.unwrap_or("all")];
            write!(out, "{:10} {:11}", row[0], row[1]).unwrap();
            for half in halves() {
                let is_meant = |one: &&Measured| {
                    one.half == *half
                        && kind.is_none_or(|kind| one.kind == kind)
                        && question_kind.is_none_or(|kind| one.question_kind == kind)
                };
                let meant: Vec<&Measured> = measured.iter().filter(is_meant).collect();
                let mean = |figure| mean(&meant, figure);
                let within = (mean(|one| one.engine_within), mean(|one| one.baseline_within));
                let all = (mean(|one| one.engine_all), mean(|one| one.baseline_all));
                let pair = |(engine, baseline)| format!("{engine:.2} / {baseline:.2}");
                write!(out, "{:4} {} {}   ", meant.len(), pair(within), pair(all)).unwrap();
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
    }
    out
}

/// Returns the means of engine and BM25 over all questions: within the conversation, and with all
/// conversations in one store.
pub(crate) fn of_all(measured: &[Measured]) -> [(&'static str, [f64; 2]); 2] {
    let all: Vec<&Measured> = measured.iter().collect();
    let mean = |figure| mean(&all, figure);
    [
        ("within", [mean(|one| one.engine_within), mean(|one| one.baseline_within)]),
        ("all in one store", [mean(|one| one.engine_all), mean(|one| one.baseline_all)]),
    ]
}

/// Returns a table with a row for each kind of question, for a set that has no halves.
pub(crate) fn table_of_others(measured: &[Measured]) -> String {
    let mut out = String::from("recall at 10, each engine / BM25: within, all in one store\n");
    let kinds: BTreeSet<&str> = measured.iter().map(|one| one.question_kind.as_str()).collect();
    for kind in kinds.into_iter().map(Some).chain([None]) {
        let is_meant = |one: &&Measured| kind.is_none_or(|kind| one.question_kind == kind);
        let meant: Vec<&Measured> = measured.iter().filter(is_meant).collect();
        let mean = |figure| mean(&meant, figure);
        let (name, count) = (kind.unwrap_or("all"), meant.len());
        writeln!(
            out,
            "{name:28}{count:6}   {:.3} / {:.3}   {:.3} / {:.3}",
            mean(|one| one.engine_within),
            mean(|one| one.baseline_within),
            mean(|one| one.engine_all),
            mean(|one| one.baseline_all),
        )
        .unwrap();
    }
    out
}

/// Returns the halves that are printed and checked.
pub(crate) fn halves() -> &'static [&'static str] {
    match std::env::var("LCM_RECALL_HALF").as_deref() {
        Ok("tune") => &["tune"],
        _ => &["tune", "held-out"],
    }
}

/// Returns the kinds of conversation of a half on which the engine is worse than BM25, and the mean
/// difference over the kinds if it is less than [`BETTER`].
pub(crate) fn worse(measured: &[Measured], half: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let kinds: BTreeSet<&str> = measured.iter().map(|one| one.kind.as_str()).collect();
    let stores: [(&str, Figure, Figure); 2] = [
        ("within", |one| one.engine_within, |one| one.baseline_within),
        ("all in one store", |one| one.engine_all, |one| one.baseline_all),
    ];
    let question_kinds: BTreeSet<&str> =
        measured.iter().map(|one| one.question_kind.as_str()).collect();
    for (store, engine, baseline) in stores {
        let mut better_by = |name: &str, is_meant: &dyn Fn(&Measured) -> bool| {
            let of_half = measured.iter().filter(|one| one.half == half);
            let meant: Vec<&Measured> = of_half.filter(|one| is_meant(one)).collect();
            let better = mean(&meant, engine) - mean(&meant, baseline);
            if better < 0.0 {
                findings.push(format!("{half}, {name}, {store}: {better:.3} to BM25"));
            }
            better
        };
        let of_kinds = kinds.iter().map(|kind| better_by(kind, &|one| one.kind == *kind));
        let better = of_kinds.sum::<f64>() / kinds.len() as f64;
        let mut least = better;
        for kind in &question_kinds {
            least = least.min(better_by(kind, &|one| one.question_kind == *kind));
        }
        println!("{half}, {store}: {better:.3} better than BM25 on average, {least:.3} at least");
        if better < BETTER {
            findings.push(format!("{half}, {store}: on average {better:.3} to BM25"));
        }
    }
    findings
}

/// Returns the kinds of conversation and question for which plain BM25 finds nearly everything or
/// nothing. Such kinds say little about a ranking.
pub(crate) fn spread(measured: &[Measured]) -> Vec<String> {
    let mut findings = Vec::new();
    let cells: BTreeSet<(&str, &str)> =
        measured.iter().map(|one| (one.kind.as_str(), one.question_kind.as_str())).collect();
    for (kind, question_kind) in cells {
        let is_meant = |one: &&Measured| one.kind == kind && one.question_kind == question_kind;
        let meant: Vec<&Measured> = measured.iter().filter(is_meant).collect();
        // Only within the conversation: in the whole store the message lengths of other kinds
        // have a larger effect than the words.
        let found = mean(&meant, |figures| figures.baseline_within);
        if !BASELINE.contains(&found) {
            findings.push(format!("{kind}, {question_kind}: BM25 finds {found:.2}"));
        }
    }
    findings
}

/// Returns the evidence of the half `tune` that the engine does not find.
pub(crate) fn misses(conversations: &[Conversation], measured: &[Measured]) -> String {
    let mut out = String::new();
    let is_shown = |one: &&Measured| one.half == "tune" && !one.missed.is_empty();
    for one in measured.iter().filter(is_shown) {
        let world = &conversations[one.conversation].world;
        let text = &world.questions[one.question].text;
        let missed = one.missed.join(" ");
        writeln!(out, "{} {}: {text} ({missed})", world.name, one.question_kind).unwrap();
    }
    out
}

/// Writes each conversation as `NAME.jsonl`, which `lcm ingest` reads, and its questions beside it.
pub(crate) fn dump(conversations: &[Conversation], folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for Conversation { world, messages } in conversations {
        let raws: Vec<&str> = messages.iter().map(|message| message.raw.as_str()).collect();
        fs::write(folder.join(format!("{}.jsonl", world.name)), raws.join("\n") + "\n").unwrap();
        let questions = world.questions.iter().map(|question| {
            let line = json!({"conversation": world.name, "half": world.half,
                "kind": question.kind, "question": question.text, "answer": question.answer,
                "evidence": question.evidence, "now": question.now.map(iso)});
            line.to_string() + "\n"
        });
        let path = folder.join(format!("{}.questions.jsonl", world.name));
        fs::write(path, questions.collect::<String>()).unwrap();
    }
}
