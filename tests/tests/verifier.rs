#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure"
)]
//! Measures how often the verifier is wrong: false alarms, and errors that it does not find.
//!
//! The test uses summaries written by hand (`tests/fixtures/verifier/`: those in `tuned` existed
//! while the rules were made, those in `held-out` were written afterwards) and summaries of the
//! offline summariser. It checks each summary unchanged, with false numbers, identifiers and paths
//! planted in it, and with each of its failures removed or changed to a success. The table is in
//! `docs/verifier.md`; it is printed by
//! `cargo test --release -p lcm-tests --test verifier -- --nocapture`; `LCM_DATA=FOLDER` adds real
//! conversations in the `lcm` dialect, `LCM_SHOW=1` every case that is judged wrongly.

#[path = "summaries/facts.rs"]
mod facts;
#[path = "verifier/fixtures.rs"]
mod fixtures;
#[path = "summaries/generated.rs"]
#[expect(dead_code, reason = "shared with the measurement of summaries")]
mod generated;
#[path = "summaries/measure.rs"]
#[expect(dead_code, reason = "shared with the measurement of summaries")]
mod measure;
#[path = "verifier/plants.rs"]
mod plants;

use std::{env, fmt, time::Instant};

use fixtures::Fixture;
use lcm_testing::simulation::random::Random;
use lcm_text::{
    base::tokens::estimate,
    summary::{
        offline_summary::summarize_extractively,
        verify::{Finding, FindingKind, format_findings, verify},
    },
};

/// Number of random plantings for each summary.
const ROUNDS: u64 = 5;

/// A number of hits, of a number of tries.
#[derive(Clone, Copy, Default)]
struct Share {
    hits: u32,
    all: u32,
}

impl Share {
    fn add(&mut self, hit: bool) {
        self.hits += u32::from(hit);
        self.all += 1;
    }

    /// Returns whether the share of hits is at most `permille` thousandths.
    fn at_most(self, permille: u32) -> bool {
        self.hits * 1000 <= self.all * permille
    }

    fn at_least(self, permille: u32) -> bool {
        self.hits * 1000 >= self.all * permille
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = f64::from(self.hits) * 100.0 / f64::from(self.all.max(1));
        write!(f, "{:5}/{:5} {percent:6.2} %", self.hits, self.all)
    }
}

/// One row of the table.
#[derive(Clone, Default)]
struct Row {
    name: String,
    /// Correct summaries with a finding of any kind; `unsupported`: with a finding about a piece
    /// that is not in the source.
    alarms: Share,
    unsupported: Share,
    numbers: Share,
    names: Share,
    paths: Share,
    dropped: Share,
    inverted: Share,
}

const HEADING: &str = "summaries         false alarms          of them pieces        numbers found         \
    identifiers found     paths found           dropped failures      inverted failures";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, alarms, unsupported, numbers, names, paths, dropped, inverted } = self;
        write!(f, "{name:16}")?;
        for share in [alarms, unsupported, numbers, names, paths, dropped, inverted] {
            write!(f, "  {share}")?;
        }
        Ok(())
    }
}

fn is_piece(finding: &Finding) -> bool {
    !matches!(finding.kind, FindingKind::FailureDropped | FindingKind::FailureInverted)
}

fn show(what: &str, name: &str, text: &str) {
    if env::var_os("LCM_SHOW").is_some() {
        println!("{what} {name}: {text}");
    }
}

impl Row {
    fn check(&mut self, name: &str, source: &str, summary: &str) -> Vec<Finding> {
        let findings = verify(source, summary);
        if !findings.is_empty() {
            show("ALARM", name, &format_findings(&findings).join(" | "));
        }
        assert!(format_findings(&findings).join("\n").len() <= 2048, "{name}");
        self.alarms.add(!findings.is_empty());
        self.unsupported.add(findings.iter().any(is_piece));
        findings
    }

    /// Plants false pieces in a summary, and counts those that the verifier finds.
    fn plant(&mut self, name: &str, source: &str, summary: &str, others: &plants::Others) {
        let before = verify(source, summary).iter().filter(|finding| is_piece(finding)).count();
        for seed in 0..ROUNDS {
            let mut random = Random::new(seed ^ u64::try_from(summary.len()).unwrap() << 8);
            for (kind, planted, what) in plants::plant(&mut random, source, summary, others) {
                let found = verify(source, &planted).iter().filter(|f| is_piece(f)).count();
                let share = match kind {
                    plants::Kind::Number => &mut self.numbers,
                    plants::Kind::Name => &mut self.names,
                    plants::Kind::Path => &mut self.paths,
                };
                share.add(found > before);
                if found <= before {
                    show("MISSED", name, &what);
                }
            }
        }
    }

    fn failures(&mut self, fixture: &Fixture) {
        for at in 0..fixture.failures() {
            let dropped = fixture.without(at);
            let found = verify(&fixture.source, &dropped);
            let hit = found.iter().any(|finding| !is_piece(finding));
            self.dropped.add(hit);
            if !hit {
                show("MISSED DROP", &fixture.name, &dropped);
            }
            let inverted = fixture.inverted(at);
            let found = verify(&fixture.source, &inverted);
            let hit = found.iter().any(|finding| !is_piece(finding));
            self.inverted.add(hit);
            if !hit {
                show("MISSED INVERSION", &fixture.name, &inverted);
            }
        }
    }

    fn of_fixtures(name: &str) -> Self {
        let fixtures = fixtures::read(name);
        let mut row = Self { name: name.into(), ..Self::default() };
        let others = plants::Others::of(fixtures.iter().map(|fixture| fixture.source.as_str()));
        for fixture in &fixtures {
            row.check(&fixture.name, &fixture.source, &fixture.summary());
            row.plant(&fixture.name, &fixture.source, &fixture.summary(), &others);
            row.failures(fixture);
        }
        row
    }

    fn of_offline(name: &str, sources: &[String], plant: bool) -> Self {
        let mut row = Self { name: name.into(), ..Self::default() };
        let others = plants::Others::of(sources.iter().map(String::as_str));
        for source in sources {
            let summary = summarize_extractively(source, estimate(source) / 5);
            row.check(name, source, &summary);
            if plant {
                row.plant(name, source, &summary, &others);
            }
        }
        row
    }
}

/// Goal: the verifier has few false alarms and finds most planted errors. Method: as described at
/// the beginning of this file.
#[test]
fn false_alarms_are_rare_and_plants_are_found() {
    let mut rows = ["tuned", "second", "held-out"].map(Row::of_fixtures).to_vec();
    for set in &generated::SETS {
        let sources = measure::sources(&(set.make)());
        rows.push(Row::of_offline(&format!("offline {}", set.name), &sources, true));
    }
    if let Some(folder) = env::var_os("LCM_DATA") {
        for set in &measure::SETS {
            let sources = measure::sources(&set.read(folder.as_ref()));
            rows.push(Row::of_offline(&format!("real {}", set.name), &sources, false));
        }
    }
    println!("{HEADING}");
    rows.iter().for_each(|row| println!("{row}"));
    for row in rows.iter().filter(|row| !row.name.starts_with("real")) {
        assert!(row.alarms.all > 0, "{}: nothing to check", row.name);
        assert!(row.unsupported.at_most(10), "{}: false alarms", row.name);
        for plants in [row.numbers, row.names, row.paths] {
            assert!(plants.at_least(990), "{}: plants that are not found", row.name);
        }
    }
    for row in &rows[..3] {
        assert!(row.alarms.at_most(10), "{}: false alarms", row.name);
        assert!(row.dropped.all > 0 && row.dropped.at_least(1000), "{}: dropped", row.name);
        assert!(row.inverted.all > 0 && row.inverted.at_least(1000), "{}: inverted", row.name);
    }
}

/// Goal: the verifier has findings for useless summaries. Method: a summary without content, and
/// the summary of another source.
#[test]
fn what_says_nothing_and_what_belongs_elsewhere_has_findings() {
    let fixtures = fixtures::read("tuned");
    let with_failures = fixtures.iter().filter(|fixture| fixture.failures() > 0);
    for fixture in with_failures {
        assert!(!verify(&fixture.source, "Nothing of note.").is_empty(), "{}", fixture.name);
    }
    let next = fixtures.iter().skip(1);
    let alien = fixtures
        .iter()
        .zip(next)
        .filter(|(one, other)| verify(&one.source, &other.summary()).iter().any(is_piece));
    assert!(alien.count() * 100 >= (fixtures.len() - 1) * 90);
}

/// Goal: the time to check a leaf of the largest default size is bounded. Method: generated text.
#[test]
fn twenty_thousand_tokens_are_checked_in_milliseconds() {
    let sources: Vec<String> =
        generated::SETS.iter().flat_map(|set| measure::sources(&(set.make)())).collect();
    let source = sources.iter().cycle().take(5).cloned().collect::<Vec<_>>().join("\n\n");
    let summary = summarize_extractively(&source, 2_400);
    let begin = Instant::now();
    for _ in 0..10 {
        std::hint::black_box(verify(&source, &summary));
    }
    let each = begin.elapsed() / 10;
    println!("{} tokens of source, {} of summary: {each:?}", estimate(&source), estimate(&summary));
    // The bound allows for a slow and busy machine; the measured time is a tenth of it.
    assert!(each.as_millis() < 200, "{each:?}");
}
