//! The words and texts of a workload.
//!
//! In: random numbers. Out: pseudo-words with the frequencies of a language (Zipf's law with
//! exponent 1.05), sentences, and Chinese text. The sets of syllables, words and characters belong
//! to the format `lcm-workload/1`.

use std::collections::BTreeSet;

use super::random::Random;

/// Number of words in the vocabulary.
const WORDS_MAX: usize = 20_000;
/// Exponent of Zipf's law.
const EXPONENT: f64 = 1.05;

/// Beginnings of syllables.
pub(crate) const ONSETS: [&str; 29] = [
    "b", "c", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "br",
    "cr", "dr", "fl", "gr", "pl", "pr", "sh", "sl", "st", "tr", "th",
];
/// Middles of syllables.
pub(crate) const VOWELS: [&str; 9] = ["a", "e", "i", "o", "u", "ai", "ea", "ou", "io"];
/// Ends of words.
const CODAS: [&str; 10] = ["", "n", "r", "s", "t", "l", "m", "nd", "st", "ck"];
/// The most frequent words, in their order.
const FREQUENT: &str = "the of to and a in is it that for on with as this be are was we you not \
    have from or can will file error test run code data user build";
/// The Chinese characters, in lines.
const HAN: &str = include_str!("han.txt");

/// The words of a workload, most frequent first.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    words: Vec<String>,
    /// For each word, the probability of the word or any word before it.
    cumulative: Vec<f64>,
    han: Vec<char>,
}

impl Vocabulary {
    /// Makes the vocabulary: the frequent words, then random pseudo-words.
    pub(crate) fn new(random: &mut Random) -> Self {
        let mut words: Vec<String> = FREQUENT.split_whitespace().map(str::to_owned).collect();
        let mut known: BTreeSet<String> = words.iter().cloned().collect();
        while words.len() < WORDS_MAX {
            let word = made_up(random);
            if known.insert(word.clone()) {
                words.push(word);
            }
        }
        let mut sum = 0.0;
        let ranks = (2_u32..).take(WORDS_MAX);
        let sums = ranks.map(|rank| {
            sum += 1.0 / libm::pow(f64::from(rank), EXPONENT);
            sum
        });
        let cumulative: Vec<f64> = sums.collect();
        let cumulative = cumulative.iter().map(|share| share / sum).collect();
        let han = HAN.chars().filter(|character| *character != '\n').collect();
        Self { words, cumulative, han }
    }

    /// Returns the word of this rank, from 0; an empty text beyond the last word.
    pub(crate) fn ranked(&self, rank: u32) -> &str {
        let rank = usize::try_from(rank).unwrap_or(usize::MAX);
        self.words.get(rank).map_or("", String::as_str)
    }

    /// Draws a word by its frequency.
    pub(crate) fn word(&self, random: &mut Random) -> &str {
        let wanted = random.unit();
        let rank = self.cumulative.partition_point(|share| *share < wanted);
        self.words.get(rank).or(self.words.last()).map_or("", String::as_str)
    }

    /// Draws sentences of about `tokens` tokens, with 4 characters per token.
    pub(crate) fn sentences(&self, random: &mut Random, tokens: u64) -> String {
        let target = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
        let mut text = String::new();
        let mut words = 0;
        let mut words_max = 6 + random.below(14);
        while text.len() < target {
            let word = self.word(random);
            if words == 0 {
                push_capitalised(&mut text, word);
            } else {
                text.push_str(word);
            }
            words += 1;
            if words >= words_max {
                text.push_str(if random.chance(0.15) { ".\n" } else { ". " });
                words = 0;
                words_max = 6 + random.below(14);
            } else {
                text.push_str(if random.chance(0.06) { ", " } else { " " });
            }
        }
        text.truncate(text.trim_end().len());
        text.push('.');
        text
    }

    /// Draws a Chinese character.
    pub(crate) fn character(&self, random: &mut Random) -> char {
        let count = u32::try_from(self.han.len()).unwrap_or(u32::MAX);
        let index = usize::try_from(random.below(count)).unwrap_or(usize::MAX);
        self.han.get(index).copied().unwrap_or_default()
    }

    /// Draws `count` Chinese characters, with a comma or full stop after every 14 characters.
    pub(crate) fn chinese(&self, random: &mut Random, count: u32) -> String {
        const FULL_STOP: char = '\u{3002}';
        let mut text = String::new();
        for index in 0..count {
            text.push(self.character(random));
            match index % 28 {
                27 => text.push(FULL_STOP),
                13 => text.push(','),
                _ => {}
            }
        }
        text.push(FULL_STOP);
        text
    }
}

fn made_up(random: &mut Random) -> String {
    let syllables = 2 + random.below(3);
    let mut word = String::new();
    for _ in 0..syllables {
        word.push_str(random.pick(&ONSETS));
        word.push_str(random.pick(&VOWELS));
    }
    word.push_str(random.pick(&CODAS));
    word
}

fn push_capitalised(text: &mut String, word: &str) {
    let mut characters = word.chars();
    text.extend(characters.next().map(|first| first.to_ascii_uppercase()));
    text.push_str(characters.as_str());
}
