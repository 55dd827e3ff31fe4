//! Fake language models: fast, deterministic, and the same in every adapter.
//!
//! In: the source of a summary. Out: a text of about the requested length. The engine itself has
//! `offline`, its own summariser.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde::Deserialize;

/// Characters of a token, by the estimate of the protocol.
const CHARACTERS_PER_TOKEN: usize = 4;
/// Smallest number of characters that [`Kind::Salient`] takes of one block.
const BLOCK_CHARACTERS_MIN: usize = 12;
/// Smallest number of letters of a word that counts as salient for its length.
const WORD_LETTERS_MIN: usize = 5;

/// A way to write summaries.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The beginning of the source.
    Head,
    /// Of each block, the first words with a capital, a digit, or at least 5 letters.
    Salient,
    /// The engine's own summariser.
    #[default]
    Offline,
}

/// How summaries are written, and their lengths.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub(crate) struct Summarizer {
    /// The way to write.
    pub(crate) kind: Kind,
    /// Tokens of a summary of messages.
    pub(crate) leaf_tokens: usize,
    /// Tokens of a summary of summaries.
    pub(crate) condensed_tokens: usize,
}

impl Default for Summarizer {
    /// Returns the offline summariser, with the lengths that the reference engine requests.
    fn default() -> Self {
        Self { kind: Kind::Offline, leaf_tokens: 2_400, condensed_tokens: 2_000 }
    }
}

impl Summarizer {
    /// Returns the summary of a source; `None`: the engine's own summariser must write it.
    /// `aggressive` halves the length.
    pub(crate) fn write(&self, source: &str, condensed: bool, aggressive: bool) -> Option<String> {
        let tokens = if condensed { self.condensed_tokens } else { self.leaf_tokens };
        let characters = tokens.saturating_mul(CHARACTERS_PER_TOKEN);
        let characters = if aggressive { characters / 2 } else { characters };
        let mut text = match self.kind {
            Kind::Offline => return None,
            Kind::Head => source.chars().take(characters).collect(),
            Kind::Salient => salient(source, characters),
        };
        let tokens = source.chars().count().div_ceil(CHARACTERS_PER_TOKEN);
        text.push_str(&format!("\nExpand for details about: {tokens} source tokens"));
        Some(text)
    }
}

/// Takes salient words from each block, an equal share of `characters` for each. A line that starts
/// with `[` begins a block.
fn salient(source: &str, characters: usize) -> String {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in source.lines() {
        match blocks.last_mut() {
            Some(block) if !line.starts_with('[') => block.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    let share = (characters / blocks.len().max(1)).max(BLOCK_CHARACTERS_MIN);
    let texts: Vec<String> = blocks.iter().map(|lines| salient_words(lines, share)).collect();
    texts.join("\n")
}

fn salient_words(lines: &[&str], characters: usize) -> String {
    let mut text = String::new();
    let mut left = characters;
    let words = lines.iter().flat_map(|line| line.split_whitespace());
    for word in words.filter(|word| is_salient(word)) {
        let length = word.chars().count() + usize::from(!text.is_empty());
        if length > left {
            break;
        }
        left -= length;
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

fn is_salient(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
        || word.chars().any(char::is_numeric)
        || word.chars().filter(|character| character.is_alphabetic()).count() >= WORD_LETTERS_MIN
}

/// One answer of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Tokens of the request.
    pub(super) input_tokens: u32,
    /// Tokens of the answer.
    pub(super) output_tokens: u32,
    /// Time from the request to the answer.
    pub(super) duration: Duration,
}

/// The summariser in use, and its answers since the last [`Meter::take`].
#[derive(Debug, Default)]
pub(super) struct Meter {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    summarizer: Summarizer,
    answers: Vec<Answer>,
}

impl Meter {
    /// Sets the summariser, and removes all recorded answers.
    pub(super) fn choose(&self, summarizer: Summarizer) {
        self.locked(|state| *state = State { summarizer, answers: Vec::new() });
    }

    /// Returns the summariser in use.
    pub(super) fn summarizer(&self) -> Summarizer {
        self.locked(|state| state.summarizer)
    }

    /// Records an answer to a request that was made at `begin`.
    pub(super) fn add(&self, begin: Instant, input_tokens: u32, output_tokens: u32) {
        let duration = begin.elapsed();
        let answer = Answer { input_tokens, output_tokens, duration };
        self.locked(|state| state.answers.push(answer));
    }

    /// Returns and removes the recorded answers.
    pub(super) fn take(&self) -> Vec<Answer> {
        self.locked(|state| std::mem::take(&mut state.answers))
    }

    fn locked<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "[one] so Anna\nwent to 12 or\n[two] it is a longest\n";

    fn write(kind: Kind, aggressive: bool) -> String {
        let summarizer = Summarizer { kind, leaf_tokens: 5, condensed_tokens: 1_000 };
        summarizer.write(SOURCE, false, aggressive).unwrap()
    }

    #[test]
    fn head_is_the_beginning_and_half_of_it_when_aggressive() {
        let ending = "\nExpand for details about: 13 source tokens";
        assert_eq!(write(Kind::Head, false), format!("[one] so Anna\nwent t{ending}"));
        assert_eq!(write(Kind::Head, true), format!("[one] so A{ending}"));
    }

    #[test]
    fn salient_takes_from_every_block() {
        assert!(write(Kind::Salient, false).starts_with("Anna 12\nlongest\nExpand"));
    }

    #[test]
    fn the_engine_writes_offline_summaries_itself() {
        assert_eq!(Summarizer::default().write(SOURCE, false, false), None);
    }
}
