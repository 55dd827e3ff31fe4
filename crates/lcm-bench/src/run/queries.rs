//! Queries of a run: many different queries of each kind, drawn from the messages.
//!
//! In: the lines of a workload. Out: the same queries every time. Counts of words and of three
//! characters determine the kind of a query, in any conversation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Number of consecutive messages (a unit) for which an index may list three-character pieces.
const UNIT_MESSAGES: usize = 64;
/// Largest number of units, in percent of all units, that may contain a rare literal.
const UNITS_PERCENT_MAX: usize = 5;
/// Words that are neither frequent nor rare begin at this rank.
const MIDDLE_RANK: usize = 200;

/// Queries by kind.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Queries {
    /// Words of few messages.
    pub(super) rare: Vec<String>,
    /// Words of the most messages.
    pub(super) frequent: Vec<String>,
    /// Two Chinese characters.
    pub(super) cjk: Vec<String>,
    /// A frequent word, a word of middle frequency, and a rare word.
    pub(super) three: Vec<String>,
    /// Regular expressions that begin with three characters that few units contain.
    pub(super) literal: Vec<String>,
    /// Regular expressions of all kinds.
    pub(super) regex: Vec<String>,
}

/// The number of documents or units that contain a word, pair or gram, counted in order.
#[derive(Clone, Copy, Default)]
struct Count {
    holders: usize,
    /// Number of the last counted document or unit, from 1; 0: none.
    last: usize,
}

impl Count {
    fn see(&mut self, number: usize) {
        if self.last != number {
            self.last = number;
            self.holders += 1;
        }
    }
}

/// Counts of one conversation.
#[derive(Default)]
struct Counts {
    words: BTreeMap<String, Count>,
    pairs: BTreeMap<String, Count>,
    grams: BTreeMap<[u8; 3], Count>,
    units: usize,
}

impl Queries {
    /// Draws at most `count` queries of each kind.
    pub(super) fn derive(lines: &[String], count: usize) -> Self {
        let mut counts = Counts::default();
        for (index, line) in lines.iter().enumerate() {
            counts.add(index, line);
        }
        counts.queries(count)
    }
}

impl Counts {
    fn add(&mut self, index: usize, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return };
        let unit = index / UNIT_MESSAGES + 1;
        self.units = unit;
        let mut texts = Vec::new();
        for name in ["content", "parts"] {
            collect(message.get(name).unwrap_or(&Value::Null), &mut texts);
        }
        for text in texts {
            let text = text.to_ascii_lowercase();
            let words = text.split(|character: char| !character.is_ascii_alphanumeric());
            for word in words.filter(|word| word.len() > 1) {
                match self.words.get_mut(word) {
                    Some(found) => found.see(index + 1),
                    None => self.words.entry(word.to_owned()).or_default().see(index + 1),
                }
            }
            for gram in text.as_bytes().windows(3) {
                if let Ok(gram) = <[u8; 3]>::try_from(gram)
                    && gram.iter().all(u8::is_ascii_alphanumeric)
                {
                    self.grams.entry(gram).or_default().see(unit);
                }
            }
            let chinese: Vec<char> = text.chars().collect();
            for pair in chinese.windows(2).filter(|pair| pair.iter().all(is_chinese)) {
                self.pairs.entry(pair.iter().collect()).or_default().see(index + 1);
            }
        }
    }

    fn queries(&self, count: usize) -> Queries {
        // Codes and numbers are no words.
        let words =
            self.words.iter().filter(|(word, _)| word.bytes().all(|b| b.is_ascii_alphabetic()));
        let mut words: Vec<(usize, &String)> =
            words.map(|(word, found)| (found.holders, word)).collect();
        words.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.cmp(b)));
        let words: Vec<String> = words.into_iter().map(|(_, word)| word.clone()).collect();
        let frequent: Vec<String> = words.iter().take(count).cloned().collect();
        let rare: Vec<String> = words.iter().rev().take(count).cloned().collect();
        let middle: Vec<&String> = words.iter().skip(MIDDLE_RANK).take(3 * count).collect();
        let middle = middle.iter().cycle().step_by(2);
        let three = frequent.iter().zip(middle).zip(&rare);
        let three = three.map(|((one, two), three)| format!("{one} {two} {three}")).collect();

        let mut pairs: Vec<(usize, &String)> =
            self.pairs.iter().map(|(pair, found)| (found.holders, pair)).collect();
        pairs.sort();
        let cjk = spread(&pairs, count).map(|(_, pair)| (*pair).clone()).collect();

        let holders_max = (self.units * UNITS_PERCENT_MAX / 100).max(1);
        let mut grams: Vec<(usize, &[u8; 3])> =
            self.grams.iter().map(|(gram, found)| (found.holders, gram)).collect();
        grams.retain(|(holders, _)| *holders <= holders_max);
        grams.sort();
        let literal = spread(&grams, count)
            .map(|(_, gram)| format!("{}[a-z]*", String::from_utf8_lossy(gram.as_slice())))
            .collect();
        Queries { regex: regexes(&frequent, count), rare, frequent, cjk, three, literal }
    }
}

/// Returns at most `count` of the values, at equal distances.
fn spread<T>(values: &[T], count: usize) -> impl Iterator<Item = &T> {
    let wanted = count.min(values.len());
    (0..wanted).filter_map(move |index| values.get(index * values.len() / wanted))
}

/// Returns regular expressions of four kinds: with a frequent word, with the first two letters of
/// a word, with a choice of two words, and of character classes with few literal characters.
fn regexes(words: &[String], count: usize) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut out = Vec::new();
    let pairs = words.iter().zip(words.iter().cycle().skip(7)).enumerate();
    for (index, (one, other)) in pairs.cycle().take(2 * count) {
        let start: String = one.chars().take(2).collect();
        let pattern = match (index + out.len()) % 4 {
            0 => format!(r"{one}\s+\w+"),
            1 => format!(r"\b{start}\w{{{},{}}}\b", 3 + index % 5, 8 + index % 7),
            2 => format!(r"({one}|{other})[,.]\s"),
            _ => format!(r"[a-z]_\d{{1,3}}{}\b", index % 100),
        };
        if out.len() < count && found.insert(pattern.clone()) {
            out.push(pattern);
        }
    }
    out
}

/// Collects the texts and numbers of a JSON value.
fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => {
            let inner = fields.iter().filter(|(name, _)| {
                // Names of kinds and ids are not text.
                !matches!(name.as_str(), "type" | "id" | "call_id")
            });
            inner.for_each(|(_, value)| collect(value, texts));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn is_chinese(character: &char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::generate;

    #[test]
    fn there_are_enough_different_queries_of_every_kind_and_always_the_same() {
        let mut lines = Vec::new();
        generate(42, 2_000, &mut |line| lines.push(line.to_owned()));
        let queries = Queries::derive(&lines, 200);
        let Queries { rare, frequent, cjk, three, literal, regex } = &queries;
        for (name, kind) in [
            ("rare", rare),
            ("frequent", frequent),
            ("cjk", cjk),
            ("three", three),
            ("literal", literal),
            ("regex", regex),
        ] {
            let different: BTreeSet<&String> = kind.iter().collect();
            assert_eq!((different.len(), kind.len()), (200, 200), "{name}");
        }
        assert_eq!(queries, Queries::derive(&lines, 200));
        let holding =
            |word: &str| lines.iter().filter(|line| line.to_lowercase().contains(word)).count();
        assert!(holding(&rare[0]) < 5 && holding(&frequent[0]) > 1_000);
    }

    #[test]
    fn a_rare_literal_stands_in_few_units() {
        let line = |text: &str| format!(r#"{{"parts":[{{"type":"text","text":"{text}"}}]}}"#);
        let mut lines = vec![line("abc"); 64 * 40];
        lines[100] = line("Abc xyz");
        assert_eq!(Queries::derive(&lines, 9).literal, ["xyz[a-z]*"]);
    }
}
