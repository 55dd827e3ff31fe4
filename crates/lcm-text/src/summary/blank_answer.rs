//! Recognises answers that say nothing about the material, the text to summarise: a stock phrase, a
//! heading without its text, an apology, an offer, an error in place of an answer, a repetition of
//! the instruction or of a line of the material, or one sentence many times.
//!
//! In: an answer without reasoning, the instruction and the material. Out: whether the answer says
//! nothing.

use alloc::{string::String, vec::Vec};

use lcm_loops::char_fold;

/// Words that say nothing about a conversation. An answer of only these words, single letters and
/// digits says nothing, however long it is.
#[rustfmt::skip]
const STOCK_WORDS: &str = "\
    a an and answered anything as asked assistant available between certainly complete concise \
    content conversation course done else empty error false for get got had have hello help \
    here hi i if in insert is it know let like loading me message more n na nan need nil no \
    none nothing null object of ok okay on place placeholder promise provided redacted removed \
    request requested response s see string summarise summarised summarize summarized summary \
    sure text thank thanks that the there this to todo took true undefined understood user was \
    were will yes you your";
/// Fewest letters and digits of an answer that says something.
const LETTERS_MIN: usize = 3;
/// Most words of a heading without its text.
const HEADING_WORDS_MAX: usize = 12;
/// Beginnings of an apology or a refusal.
const APOLOGIES: [&str; 33] = [
    "\u{5bf9}\u{4e0d}\u{8d77}",
    "\u{5f88}\u{62b1}\u{6b49}",
    "\u{62b1}\u{6b49}",
    "\u{7533}\u{3057}\u{8a33}",
    "as a language model",
    "as an ai",
    "es tut mir leid",
    "i am sorry",
    "i am unable",
    "i apologize",
    "i can not",
    "i can't",
    "i cannot",
    "i do not have access",
    "i do not have enough",
    "i don't have access",
    "i don't have enough",
    "i will not summarize",
    "i won't summarize",
    "i'm not able",
    "i'm ready",
    "i'm sorry",
    "i'm unable",
    "it is not possible for me",
    "it's not possible for me",
    "je ne peux pas",
    "je suis d\u{e9}sol\u{e9}",
    "lo siento",
    "please provide",
    "please share",
    "sorry",
    "this conversation contains content",
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
/// Parts of an error; they count in an answer that begins with `error`.
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
/// Beginnings of an error whose first word is not `error`. A summary may also begin with these
/// words, so only a short answer counts as an error.
const ERROR_STARTS: [&str; 7] = [
    "bad gateway",
    "gateway timeout",
    "internal server error",
    "rate limit reached",
    "request timed out",
    "service unavailable",
    "too many requests",
];
/// Beginnings of an error that is addressed to a person.
const ERROR_TALK: [&str; 5] = [
    "an error occurred",
    "something went wrong",
    "upstream connect error",
    "you exceeded your",
    "your session has expired",
];
/// Most words of an error that begins with one of [`ERROR_STARTS`].
const ERROR_WORDS_MAX: usize = 6;
/// Most words of an error that begins with `error` and contains one of [`ERRORS`].
const ERROR_ANSWER_WORDS_MAX: usize = 10;
/// Most words of an apology, an offer, or an error that begins with one of [`ERROR_TALK`].
const SHORT_WORDS_MAX: usize = 40;
/// Fewest words of a copy; shorter texts may be equal by chance.
const COPY_WORDS_MIN: usize = 5;
/// Characters between sentences.
const SENTENCE_ENDS: [char; 5] = ['.', '!', '?', ':', '\n'];
/// Fewest sentences among which repetition counts.
const SENTENCES_MIN: usize = 6;

/// Returns whether an answer says nothing about the material.
///
/// `instructions`: texts that told the model what to do. A copy of a line of the material counts
/// only if the material has at least four times as many words as the copy.
#[must_use]
pub fn says_nothing(answer: &str, instructions: &[&str], material: &str) -> bool {
    let words = split_words(answer);
    if words.iter().all(|word| is_stock_word(word)) {
        return true;
    }
    let end = answer.trim_end();
    let is_heading = end.ends_with([':', '\u{ff1a}']) && !end.trim_start().contains('\n');
    if (is_heading && words.len() <= HEADING_WORDS_MAX)
        || words.iter().flat_map(|word| word.chars()).count() < LETTERS_MIN
    {
        return true;
    }
    let plain = words.join(" ");
    let has = |parts: &[&str]| parts.iter().any(|part| plain.contains(part));
    let starts = |parts: &[&str]| parts.iter().any(|part| starts_with_words(&plain, part));
    if words.len() <= SHORT_WORDS_MAX {
        let is_offer = end.ends_with('?') && has(&OFFERS);
        if starts(&APOLOGIES) || is_offer || starts(&ERROR_TALK) {
            return true;
        }
    }
    let is_named_error = starts(&["error"]) && has(&ERRORS);
    // A status may stand before its words, as in `502 Bad Gateway`.
    let named = plain.strip_prefix("http").unwrap_or(&plain);
    let named = named.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    let starts_error = || ERROR_STARTS.iter().any(|part| starts_with_words(named, part));
    if (is_named_error && words.len() <= ERROR_ANSWER_WORDS_MAX)
        || (words.len() <= ERROR_WORDS_MAX && starts_error())
    {
        return true;
    }
    is_copy(answer, instructions, material) || repeats_sentences(answer)
}

/// Returns whether a text begins with `words`. A word of the text must end where `words` end with
/// an ASCII letter; other scripts may have no spaces.
fn starts_with_words(plain: &str, words: &str) -> bool {
    let is_spaced = words.ends_with(|c: char| c.is_ascii_alphabetic());
    let rest = plain.strip_prefix(words);
    rest.is_some_and(|rest| !is_spaced || rest.is_empty() || rest.starts_with(' '))
}

/// Returns whether a word is a stock word, or a single letter or digit.
pub(super) fn is_stock_word(word: &str) -> bool {
    word.chars().count() == 1 || STOCK_WORDS.split(' ').any(|stock| stock == word)
}

/// Returns whether the answer, without its sentences of stock words, is a copy. It is a copy if the
/// whole answer or each of its sentences is a part of an instruction, or if the answer is the end
/// of a line of the material.
fn is_copy(answer: &str, instructions: &[&str], material: &str) -> bool {
    let sentences = answer.split(SENTENCE_ENDS).map(split_words);
    let sentences: Vec<Vec<String>> =
        sentences.filter(|words| !words.iter().all(|word| is_stock_word(word))).collect();
    let told: Vec<String> = instructions.iter().map(|told| split_words(told).join(" ")).collect();
    let is_told = |words: &[String]| {
        let plain = words.join(" ");
        words.len() >= COPY_WORDS_MIN && told.iter().any(|told| told.contains(&plain))
    };
    let words = sentences.concat();
    if is_told(&words) || sentences.iter().all(|words| is_told(words)) {
        return true;
    }
    let plain = words.join(" ");
    let is_line = |line: &str| split_words(line).join(" ").ends_with(&plain);
    words.len() >= COPY_WORDS_MIN
        && material.lines().any(is_line)
        && split_words(material).len() >= 4 * words.len()
}

/// Returns whether the answer repeats its sentences: the answer has at least six sentences, and
/// each distinct sentence occurs at least four times on average. From the seventh distinct sentence
/// on, the average up to each sentence must be at least four.
fn repeats_sentences(answer: &str) -> bool {
    let mut count = 0usize;
    let mut distinct: Vec<Vec<String>> = Vec::new();
    for sentence in answer.split(SENTENCE_ENDS) {
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
pub(super) fn split_words(text: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '\'';
    let normal = char_fold::lower_text(&text.replace('\u{2019}', "'"));
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
            "x",
            "[object Object]",
            "true",
            "## Summary",
            "Here is the summary of the conversation:",
            "Certainly! Here is the summary you requested.",
            "The user asked and the assistant answered.",
            "[Your summary here]",
            "the the the the the the",
            "Bad Gateway",
            "HTTP 502 Bad Gateway",
            "429 Too Many Requests",
            "You exceeded your current quota, please check your plan and billing details.",
            "I won't summarize this.",
            "Es tut mir leid, dabei kann ich nicht helfen.",
            "\u{5f88}\u{62b1}\u{6b49}\u{ff0c}\u{6211}\u{65e0}\u{6cd5}\u{534f}\u{52a9}",
            "Sure. Keep what the person asked for.",
            "Keep what the person asked for. Keep what the person asked for.",
            "Here is the summary: I moved it, and all tests pass again.",
            "\u{6458}\u{8981}\u{ff1a}",
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
            "Internal server error on /login came from a null session; fixed in auth.rs.",
            "Request timed out in CI; raised to 30 s.",
            "Error handling: the client retries after a timeout of 3 s, then gives up.",
            "Unfortunately it failed on Windows; the fix waits for review.",
            "As an airline, they want the price in euros.",
            "Open:\n- publish the crate, with a line in:",
            "summary 1 sssssssssssssssssss",
            "Ab. Bc. Cd. De. Ef. Fg. Gh. Hi there. Ab. Bc. Cd. De.",
            "Errors: rate limit exceeded in `client.rs`, solved by a pause of 3 s, then again a \
             timeout that was solved by a larger limit; the third failure, an unavailable host, \
             stays open, and nobody knows whether the provider will answer before the next week.",
            "\u{8bdd}\u{9898}\u{662f}\u{89e3}\u{6790}\u{5668}",
        ] {
            assert!(!says_nothing(answer, &[INSTRUCTION], MATERIAL), "{answer}");
        }
    }
}
