#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Search, compared with the simplest correct method: a scan with the regex crate, and BM25 in
//! floats over words split at spaces.
//!
//! The test searches generated transcripts, and also those of the folder in `LCM_DATA` if it is
//! set.

#[path = "search/pages.rs"]
mod pages;

use std::{collections::BTreeMap, env, fs, path::Path};

use lcm_testing::{Host, Json, host::StoreMode};
use serde_json::{Value, json, value::RawValue};

/// Largest number of searched messages of one file of `LCM_DATA`.
const MESSAGES_PER_FILE_MAX: usize = 4_000;

/// Largest number of hits of a query, which is the bound of the interface.
const LIMIT: usize = 200;

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const WORDS: [&str; 24] = [
    "alpha",
    "beta",
    "Gamma",
    "delta_one",
    "src/main.rs",
    "E0425",
    "mutex",
    "the",
    "a",
    "of",
    "caf\u{e9}",
    "\u{6570}\u{636e}\u{5e93}",
    "\u{8fc1}\u{79fb}",
    "\u{1f600}",
    "fooBar",
    "x=1;",
    "line\nbreak",
    "tab\there",
    "\"quoted\"",
    "back\\slash",
    "na\u{ef}ve",
    "K\u{212a}k",
    "--flag",
    "https://example.org/a?b=c",
];

fn sentence(numbers: &mut Numbers, words: usize) -> String {
    let words: Vec<&str> = (0..words).map(|_| numbers.of(&WORDS)).collect();
    words.join(" ")
}

/// Messages of every shape.
fn generated(count: usize) -> Vec<String> {
    let mut numbers = Numbers(7);
    (0..count)
        .map(|number| {
            let length = 1 + numbers.below(if number % 97 == 0 { 9_000 } else { 30 });
            let text = sentence(&mut numbers, length);
            match numbers.below(5) {
                0 => json!({"role": "user", "content": text}),
                1 => json!({"role": "assistant", "parts": [
                    {"type": "reasoning", "text": text},
                    {"type": "text", "text": sentence(&mut numbers, 3)},
                    {"type": "unknown", "text": "beta hidden"}]}),
                2 => json!({"role": "assistant", "parts": [{"type": "tool_call", "id": "t1",
                    "name": "run_it", "input": {"command": text, "n": [1, 2.5, true]}}]}),
                3 => json!({"role": "tool", "parts": [{"type": "tool_result", "call_id": "t1",
                    "name": "run_it", "output": text}]}),
                _ => json!({"role": "user", "parts": [{"type": "file", "name": "notes.md",
                    "mime": "text/markdown", "text": text}]}),
            }
            .to_string()
        })
        .collect()
}

/// Returns the members of an object with their original JSON texts.
fn members(raw: &RawValue) -> BTreeMap<String, Box<RawValue>> {
    serde_json::from_str(raw.get()).unwrap()
}

/// Returns the texts of a message; each is searched separately.
fn texts(raw: &str) -> Vec<String> {
    let message = members(serde_json::from_str(raw).unwrap());
    let mut out = Vec::new();
    let mut add = |value: Option<&Box<RawValue>>| {
        if let Some(value) = value {
            let text = value.get();
            out.push(serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned()));
        }
    };
    add(message.get("content"));
    let parts = message.get("parts").map(|parts| parts.get()).unwrap_or("[]");
    for part in serde_json::from_str::<Vec<Box<RawValue>>>(parts).unwrap() {
        let part = members(&part);
        let names: &[&str] = match part["type"].get() {
            r#""text""# | r#""reasoning""# => &["text"],
            r#""tool_call""# => &["name", "input"],
            r#""tool_result""# => &["name", "output"],
            r#""file""# => &["name", "text"],
            _ => &[],
        };
        names.iter().for_each(|name| add(part.get(*name)));
    }
    // An empty text does not count.
    out.retain(|text| !text.is_empty());
    out
}

fn append(host: &mut Host, messages: &[String], batch: usize) {
    let mut rest = messages;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |message: &&String| {
            bytes += message.len();
            bytes <= 400_000
        };
        let count = rest.iter().take(batch).take_while(fits).count().max(1);
        let args =
            json!({"messages": rest[..count], "options": {"append_mode": "new"}}).to_string();
        host.ask("ingest.append", &Json::parse(&args).unwrap()).unwrap();
        rest = &rest[count..];
    }
}

fn stored(messages: &[String], batch: usize) -> Host {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    append(&mut host, messages, batch);
    host
}

fn grep(host: &mut Host, query: &Value) -> Value {
    let args = json!({"query_json": query}).to_string();
    let answer = host.ask("recall.grep", &Json::parse(&args).unwrap());
    let answer = answer.unwrap_or_else(|error| panic!("{query}: {error:?}"));
    serde_json::from_str(answer.as_str().unwrap()).unwrap()
}

fn seqs(answer: &Value) -> Vec<usize> {
    let hits = answer["matches"].as_array().unwrap().iter();
    hits.map(|hit| hit["seq"].as_u64().unwrap() as usize).collect()
}

/// Returns expressions made from pieces of the texts, so that many of them match.
fn expressions(all: &[Vec<String>], count: usize) -> Vec<String> {
    let mut numbers = Numbers(11);
    let mut out: Vec<String> = [
        "",
        ".",
        "x*",
        "^",
        "$",
        r"\bthe\b",
        r"(?i)GAMMA",
        r"\d{3,}",
        r"[A-Z]\w+\s",
        "(a+)+b",
        r"\\",
        "\"",
        "\u{6570}",
        r"(?i)k",
        r"\w+@\w+",
        "^$",
        r"(?m)^\s*$",
        r"(?s)a.*b.*c",
        "zzzzzz",
        r"\n",
    ]
    .map(String::from)
    .into();
    let mut piece = || loop {
        let texts = &all[numbers.below(all.len())];
        if texts.is_empty() {
            continue;
        }
        let characters: Vec<char> = texts[numbers.below(texts.len())].chars().collect();
        if characters.is_empty() {
            continue;
        }
        let from = numbers.below(characters.len());
        let length = 1 + numbers.below(9);
        let cut: String = characters[from..].iter().take(length).collect();
        return regex::escape(&cut);
    };
    for number in 0..count {
        out.push(match number % 8 {
            0 | 1 => piece(),
            2 => format!("{}|{}", piece(), piece()),
            3 => format!("{}.*{}", piece(), piece()),
            4 => format!("(?i){}", piece()),
            5 => format!(r"\b{}\w*", piece()),
            6 => format!("(?:{}|{})+[a-z]?{}", piece(), piece(), piece()),
            _ => format!("[^{}]{}", 'x', piece()),
        });
    }
    out
}

fn assert_equal_to_a_scan(messages: &[String], batch: usize, count: usize, place: &str) {
    let mut host = stored(messages, batch);
    let all: Vec<Vec<String>> = messages.iter().map(|message| texts(message)).collect();
    let mut matched = 0;
    for pattern in expressions(&all, count) {
        let Ok(reference) = regex::Regex::new(&pattern) else { continue };
        let expected: Vec<usize> = (0..all.len())
            .rev()
            .filter(|at| all[*at].iter().any(|text| reference.is_match(text)))
            .map(|at| at + 1)
            .collect();
        if pattern.is_empty() {
            continue;
        }
        let query = json!({"pattern": pattern, "mode": "regex", "limit": LIMIT,
            "scope": "messages", "sort": "recency"});
        let answer = grep(&mut host, &query);
        assert_eq!(answer["total"], expected.len(), "{place}: `{pattern}`");
        let mut shown = seqs(&answer);
        shown.sort_unstable_by(|left, right| right.cmp(left));
        if expected.len() <= LIMIT {
            assert_eq!(shown, expected, "{place}: `{pattern}`");
        }
        for hit in answer["matches"].as_array().unwrap() {
            assert!(hit["snippet"].as_str().unwrap().chars().count() <= 200, "{pattern}");
        }
        matched += usize::from(!expected.is_empty());
    }
    assert!(matched > count / 2, "{place}: {matched} of {count} expressions match");
}

#[test]
fn expressions_match_what_a_scan_matches() {
    let messages = generated(700);
    assert_equal_to_a_scan(&messages, 100, 160, "batches");
    assert_equal_to_a_scan(&messages[..330], 1, 80, "one by one");
}

/// Adds every `.jsonl` file below a folder.
fn files(folder: &Path, out: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|name| name == "jsonl") {
            out.push(path);
        }
    }
}

#[test]
fn expressions_match_what_a_scan_of_real_transcripts_matches() {
    let Some(folder) = env::var_os("LCM_DATA") else { return };
    let mut paths = Vec::new();
    files(Path::new(&folder), &mut paths);
    assert!(!paths.is_empty(), "no transcript below LCM_DATA");
    paths.sort();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let is_message = |line: &&str| !line.trim().is_empty();
        let messages: Vec<String> =
            text.lines().filter(is_message).take(MESSAGES_PER_FILE_MAX).map(String::from).collect();
        assert_equal_to_a_scan(&messages, 100, 48, &path.display().to_string());
    }
}

/// Returns the scores of `docs/ranking.md` in floats, for each message with a word of the query
/// and, if the query is a question, for the messages beside it. All messages are in one session,
/// and none has a speaker or is a question.
fn formula(messages: &[Vec<&str>], query: &[&str], asks: bool) -> BTreeMap<usize, f64> {
    let length = |words: &[&str]| (words.len() + 2) as f64;
    let count = messages.len() as f64;
    let mean = messages.iter().map(|words| length(words)).sum::<f64>() / count;
    let idf = |all: f64, holding: f64| (1.0 + (all - holding + 0.5) / (holding + 0.5)).ln();
    let mut scores = BTreeMap::new();
    for word in query {
        let is_it = |other: &&&str| *other == word;
        let times = |words: &&Vec<&str>| words.iter().filter(is_it).count() as f64;
        let all: f64 = messages.iter().map(|words| times(&words)).sum();
        if all == 0.0 {
            continue;
        }
        let holding = messages.iter().filter(|words| words.contains(word)).count() as f64;
        let session = 0.4 * idf(1.0, 1.0) * all / (all + 1.0);
        for (at, words) in messages.iter().enumerate() {
            let near = |distance: isize, share: f64| {
                let other = at.checked_add_signed(distance).and_then(|at| messages.get(at));
                other.map_or(0.0, |other| share * times(&other).min(2.0))
            };
            let own = times(&words).min(2.0) / (0.3 + 0.7 * length(words) / mean);
            let x = own + near(-1, 0.15) + near(-2, 0.15) + near(1, 0.1) + near(2, 0.1);
            let worth = 1.2 * idf(count, holding) * 1.6 * x / (x + 0.6);
            let score: &mut (f64, bool) = scores.entry(at + 1).or_default();
            score.0 += worth + session;
            score.1 |= if asks && query.len() > 1 { x > 0.0 } else { own > 0.0 };
        }
    }
    scores.into_iter().filter(|(_, (_, fits))| *fits).map(|(at, (score, _))| (at, score)).collect()
}

/// Goal: words rank as the formula says, whether in the index or not yet. Method: short messages,
/// whose lengths the index keeps exactly; scores that differ by less than their rounding may change
/// places.
#[test]
fn words_rank_as_the_formula_says() {
    let vocabulary: Vec<String> = (0..60).map(|number| format!("w{number}")).collect();
    let mut numbers = Numbers(3);
    let texts: Vec<String> = (0..900)
        .map(|_| {
            let word = |numbers: &mut Numbers| {
                let bound = 1 + numbers.below(vocabulary.len());
                vocabulary[numbers.below(bound)].clone()
            };
            let words: Vec<String> =
                (0..1 + numbers.below(13)).map(|_| word(&mut numbers)).collect();
            words.join(" ")
        })
        .collect();
    for (count, batch) in [(900, 100), (150, 1), (63, 7)] {
        let messages: Vec<String> = texts[..count]
            .iter()
            .map(|text| json!({"role": "user", "content": text}).to_string())
            .collect();
        let split: Vec<Vec<&str>> =
            texts[..count].iter().map(|text| text.split(' ').collect()).collect();
        let mut host = stored(&messages, batch);
        for query in
            ["w1", "w59?", "w1 w2", "w1 w2?", "w3 w40 w55?", "w0 w1 w2 w3 w4 w5 w6 w7", "w99"]
        {
            let words: Vec<&str> = query.trim_end_matches('?').split(' ').collect();
            let expected = formula(&split, &words, query.ends_with('?'));
            let answer = grep(&mut host, &json!({"pattern": query, "limit": LIMIT}));
            assert_eq!(answer["total"], expected.len(), "{query}");
            let found: Vec<(usize, f64)> =
                seqs(&answer).into_iter().map(|seq| (seq, expected[&seq])).collect();
            assert_eq!(found.len(), expected.len().min(LIMIT));
            for (hit, (seq, score)) in answer["matches"].as_array().unwrap().iter().zip(&found) {
                let shown = hit["score"].as_f64().unwrap() / 1_000.0;
                assert!((shown - score).abs() < 0.01, "{query}, {seq}: {shown}, not {score}");
            }
            for pair in found.windows(2) {
                let ((left, better), (right, worse)) = (pair[0], pair[1]);
                let is_tie = (better - worse).abs() < 0.002;
                assert!(better > worse || is_tie, "{query}: {pair:?}");
                // Equal sums over neighbours may be rounded differently.
                let may_differ = query.contains(' ');
                assert!(
                    left > right || better != worse || may_differ,
                    "{query}: ties are newest first: {pair:?}"
                );
            }
            let least = found.last().map_or(0.0, |(_, score)| *score) + 0.002;
            let missed = expected.iter().filter(|(seq, score)| {
                **score > least && !found.iter().any(|(found, _)| found == *seq)
            });
            assert_eq!(missed.count(), 0, "{query}");
        }
    }
}
