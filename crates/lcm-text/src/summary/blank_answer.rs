//! Recognises answers that say nothing about the material: a stock phrase, an apology, an offer, an
//! error in place of an answer, the instruction or a line of the material repeated, or one sentence
//! many times.
//!
//! In: an answer without reasoning, the instruction and the material. Out: whether it says nothing.

use alloc::{string::String, vec::Vec};

/// Answers of at most three of these words say nothing.
const STOCK_WORDS: [&str; 16] = [
    "a",
    "done",
    "empty",
    "error",
    "n",
    "na",
    "nil",
    "no",
    "none",
    "nothing",
    "null",
    "ok",
    "okay",
    "sure",
    "undefined",
    "understood",
];
/// Beginnings of an apology or a refusal.
const APOLOGIES: [&str; 13] = [
    "as an ai",
    "i am sorry",
    "i am unable",
    "i apologize",
    "i can not",
    "i can't",
    "i cannot",
    "i do not have enough",
    "i'm not able",
    "i'm sorry",
    "i'm unable",
    "sorry",
    "unfortunately i",
];
/// Parts of an offer to go on.
const OFFERS: [&str; 6] = [
    "can i assist",
    "can i help",
    "do you want me",
    "please provide",
    "should i do next",
    "would you like",
];
/// Parts of an error in place of an answer.
const ERRORS: [&str; 8] = [
    "exceeded",
    "internal server",
    "overloaded",
    "rate limit",
    "timed out",
    "timeout",
    "try again",
    "unavailable",
];
/// Most words of an apology, an offer or an error.
const SHORT_WORDS_MAX: usize = 40;
/// Fewest words of a copy; shorter texts may be equal by chance.
const COPY_WORDS_MIN: usize = 5;
/// Fewest sentences among which repetition counts.
const SENTENCES_MIN: usize = 6;

/// Returns whether an answer says nothing about the material.
///
/// `instructions`: texts that told the model what to do. A copy of a line of the material counts
/// only if the material has at least four times as many words.
#[must_use]
pub fn says_nothing(answer: &str, instructions: &[&str], material: &str) -> bool {
    let words = split_words(answer);
    if words.iter().all(|word| STOCK_WORDS.contains(&word.as_str())) && words.len() <= 3 {
        return true;
    }
    let plain = words.join(" ");
    let has = |parts: &[&str]| parts.iter().any(|part| plain.contains(part));
    if words.len() <= SHORT_WORDS_MAX {
        let is_apology = APOLOGIES.iter().any(|start| plain.starts_with(start));
        let is_offer = answer.trim_end().ends_with('?') && has(&OFFERS);
        let is_error = plain.starts_with("error") && has(&ERRORS);
        if is_apology || is_offer || is_error {
            return true;
        }
    }
    is_copy(&words, &plain, instructions, material) || repeats_sentences(answer)
}

/// Returns whether the answer is a part of an instruction, or the end of a line of the material.
fn is_copy(words: &[String], plain: &str, instructions: &[&str], material: &str) -> bool {
    if words.len() < COPY_WORDS_MIN {
        return false;
    }
    if instructions.iter().any(|told| split_words(told).join(" ").contains(plain)) {
        return true;
    }
    let is_line = material.lines().any(|line| split_words(line).join(" ").ends_with(plain));
    is_line && split_words(material).len() >= 4 * words.len()
}

/// Returns whether the answer repeats its sentences: on average each occurs four times.
fn repeats_sentences(answer: &str) -> bool {
    let mut count = 0usize;
    let mut distinct: Vec<Vec<String>> = Vec::new();
    for sentence in answer.split(['.', '!', '?', '\n']) {
        let words = split_words(sentence);
        if words.is_empty() {
            continue;
        }
        count += 1;
        if !distinct.contains(&words) {
            distinct.push(words);
        }
        if distinct.len() * 4 > count && distinct.len() > SENTENCES_MIN {
            return false;
        }
    }
    count >= SENTENCES_MIN && distinct.len() * 4 <= count
}

/// Splits a text into words: letters, digits and apostrophes, in lower case.
fn split_words(text: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '\'';
    let normal = text.replace('\u{2019}', "'").to_lowercase();
    normal.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSTRUCTION: &str = "Task: condense this segment of a conversation so that the work can \
                               go on from your text. Keep what the person asked for.";
    const MATERIAL: &str = "[2026-11-25 10:00 user]\nPlease move the parser into its own crate \
                            today.\n[2026-11-25 10:01 assistant]\nI moved it, and all tests pass \
                            again.\n[2026-11-25 10:02 user]\nThen publish the crate, and write a \
                            changelog entry about the new parser for the next release.";

    #[test]
    fn the_answers_that_were_seen_say_nothing() {
        let repeated = "They spoke of the parser. ".repeat(60);
        for answer in [
            "OK.",
            "...",
            "---",
            "None",
            "N/A",
            "I'm sorry, but I can\u{2019}t assist with that request.",
            "I cannot summarize this conversation.",
            "Sure! What would you like me to do next?",
            "Error: rate limit exceeded, please try again later.",
            "Condense this segment of a conversation so that the work can go on from your text.",
            "Please move the parser into its own crate today.",
            repeated.as_str(),
        ] {
            assert!(says_nothing(answer, &[INSTRUCTION], MATERIAL), "{answer}");
        }
    }

    #[test]
    fn a_summary_says_something() {
        for answer in [
            "The parser is its own crate; all tests pass. To do: publish it with a changelog entry.",
            "Der Parser ist eine eigene Crate.",
            "The user asked whether the tests pass. What would fix the release is open?",
            "Tests pass.",
            "summary 1 sssssssssssssssssss",
            "A. B. C. D. E. F. G. H. A. B. C. D.",
            "Errors: rate limit exceeded in `client.rs`, solved by a pause of 3 s, then again a \
             timeout that was solved by a larger limit; the third failure, an unavailable host, \
             stays open, and nobody knows whether the provider will answer before the next week.",
            "\u{8bdd}\u{9898}\u{662f}\u{89e3}\u{6790}\u{5668}",
        ] {
            assert!(!says_nothing(answer, &[INSTRUCTION], MATERIAL), "{answer}");
        }
    }
}
