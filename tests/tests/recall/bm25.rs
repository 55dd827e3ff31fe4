//! A plain BM25 over messages, with which the engine is compared: words in lower case, nothing
//! else, k1 = 1.2 and b = 0.75.

use std::collections::BTreeMap;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// An index over texts.
pub(crate) struct Bm25 {
    /// For each word, the numbers of the texts that have it, each with the count of the word.
    postings: BTreeMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

impl Bm25 {
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut index = Self { postings: BTreeMap::new(), lengths: Vec::new() };
        for (at, text) in texts.enumerate() {
            let words = words(text);
            index.lengths.push(words.len() as f64);
            let mut counts: BTreeMap<String, f64> = BTreeMap::new();
            for word in words {
                *counts.entry(word).or_default() += 1.0;
            }
            for (word, count) in counts {
                index.postings.entry(word).or_default().push((at, count));
            }
        }
        index
    }

    /// Returns the best texts for a question, best first; of equally good texts the newest first.
    pub(crate) fn best(&self, question: &str, limit: usize) -> Vec<usize> {
        let count = self.lengths.len() as f64;
        let mean = self.lengths.iter().sum::<f64>() / count;
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        let mut terms = words(question);
        terms.sort();
        terms.dedup();
        for term in terms {
            let Some(postings) = self.postings.get(&term) else { continue };
            let holding = postings.len() as f64;
            let idf = (1.0 + (count - holding + 0.5) / (holding + 0.5)).ln();
            for (at, times) in postings {
                let norm = K1 * (1.0 - B + B * self.lengths[*at] / mean);
                *scores.entry(*at).or_default() += idf * times * (K1 + 1.0) / (times + norm);
            }
        }
        let mut order: Vec<(usize, f64)> = scores.into_iter().collect();
        order.sort_by(|left, right| right.1.total_cmp(&left.1).then(right.0.cmp(&left.0)));
        order.into_iter().take(limit).map(|(at, _)| at).collect()
    }
}

#[test]
fn the_text_with_the_rare_word_comes_first() {
    let texts = ["the cat sat", "the dog sat and sat", "The Owl, the cat"];
    let index = Bm25::new(texts.into_iter());
    assert_eq!(index.best("where is the owl?", 10)[0], 2);
    assert_eq!(index.best("dog sat", 1), [1]);
    assert_eq!(index.best("horse", 10), Vec::<usize>::new());
}
