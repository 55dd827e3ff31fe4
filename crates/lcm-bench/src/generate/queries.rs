//! The queries that come with a workload, of the format `lcm-queries/1`.

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::{Needle, random, random::Random, words::Vocabulary};

/// The queries of a workload.
#[derive(Debug, Serialize)]
pub(crate) struct Queries {
    format: &'static str,
    full_text: Vec<Query>,
    regex: Vec<Query>,
    cjk: Vec<Query>,
}

#[derive(Debug, Serialize)]
struct Query {
    kind: &'static str,
    q: String,
    /// Id of a message that must be found; `None`: no certain match is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<String>,
}

impl Query {
    fn new(kind: &'static str, q: String) -> Self {
        Self { kind, q, expect: None }
    }
}

impl Queries {
    /// Draws queries from the words and codes of a workload.
    pub(super) fn new(words: &Vocabulary, random: &mut Random, needles: &[Needle]) -> Self {
        let mut ranked =
            |first: u32, count: u32| words.ranked(first + random.below(count)).to_owned();
        let mut full_text: Vec<Query> = (0..10)
            .filter_map(|index| needle(needles, index, 0.5, 10))
            .map(|found| Query {
                kind: "needle",
                q: found.code.clone(),
                expect: Some(found.id.clone()),
            })
            .collect();
        full_text.extend((0..10).map(|_| Query::new("rare", ranked(8_000, 10_000))));
        full_text.extend((0..10).map(|_| {
            let first = ranked(200, 600);
            Query::new("two_mid", format!("{first} {}", ranked(200, 600)))
        }));
        full_text.extend((0..10).map(|_| Query::new("common", ranked(5, 30))));

        let mut regex: Vec<Query> = (0..5)
            .filter_map(|index| needle(needles, index, 0.2, 5))
            .map(|found| {
                let (front, _) = found.code.rsplit_once('-').unwrap_or((&found.code, ""));
                let q = format!("{front}-[a-z]+");
                Query { kind: "needle", q, expect: Some(found.id.clone()) }
            })
            .collect();
        let of_word = |word: String| Query::new("rare_word", format!("\\b{word}\\b"));
        regex.extend((0..5).map(|_| of_word(ranked(9_000, 9_000))));
        regex.extend((0..5).map(|_| Query::new("common", format!("{}\\s+\\w+", ranked(20, 20)))));
        regex.extend((0..5).map(|index| Query::new("no_match", format!("zzqq{index}\\d{{9}}"))));
        let mut pair = || [words.character(random), words.character(random)];
        let cjk = (0..5).map(|_| Query::new("cjk2", pair().iter().collect())).collect();
        Self { format: "lcm-queries/1", full_text, regex, cjk }
    }

    /// Returns the text of the side file `FILE.queries.json`.
    pub(crate) fn text(&self) -> String {
        let mut out = Vec::new();
        let mut writer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b" "));
        // Strings always have a JSON form, and a write to memory cannot fail.
        let _ = self.serialize(&mut writer);
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Returns the needle at the fraction `(index + offset) / parts` of the list.
fn needle(needles: &[Needle], index: u32, offset: f64, parts: u32) -> Option<&Needle> {
    let count = f64::from(u32::try_from(needles.len()).unwrap_or(u32::MAX));
    let place = random::whole((f64::from(index) + offset) * count / f64::from(parts));
    needles.get(usize::try_from(place).ok()?)
}
