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
/// The least of `salient` for one block.
const BLOCK_CHARACTERS_MIN: usize = 12;
/// A word of so many letters counts as salient.
const WORD_LETTERS_MIN: usize = 5;

/// Who writes the summaries.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The beginning of the source.
    Head,
    /// The words of each block that look as if they mattered.
    Salient,
    /// The engine's own summariser.
    #[default]
    Offline,
}

/// Who writes the summaries, and how long they are.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub(crate) struct Summarizer {
    /// Who writes.
    pub(crate) kind: Kind,
    /// Tokens of a summary of messages.
    pub(crate) leaf_tokens: usize,
    /// Tokens of a summary of summaries.
    pub(crate) condensed_tokens: usize,
}

impl Default for Summarizer {
    /// The sizes that the reference engine asks a model for.
    fn default() -> Self {
        Self { kind: Kind::Offline, leaf_tokens: 2_400, condensed_tokens: 2_000 }
    }
}

impl Summarizer {
    /// The summary of a source; `None`: the engine writes it itself.
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

/// An equal share of each block that a line with `[` opens.
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
    /// How long it took.
    pub(super) duration: Duration,
}

/// The answers of a model since somebody looked, and who gives them.
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
    /// Says who answers from now on.
    pub(super) fn choose(&self, summarizer: Summarizer) {
        self.locked(|state| *state = State { summarizer, answers: Vec::new() });
    }

    /// Who answers.
    pub(super) fn summarizer(&self) -> Summarizer {
        self.locked(|state| state.summarizer)
    }

    /// Notes an answer that began then.
    pub(super) fn add(&self, begin: Instant, input_tokens: u32, output_tokens: u32) {
        let duration = begin.elapsed();
        let answer = Answer { input_tokens, output_tokens, duration };
        self.locked(|state| state.answers.push(answer));
    }

    /// The answers since the last look.
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
