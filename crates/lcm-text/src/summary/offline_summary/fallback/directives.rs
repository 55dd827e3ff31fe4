//! Removes sentences that look like instructions to a model.
//!
//! Input: a source. Output: the text of a fallback summary. The removal is for readability and is
//! no defence against instructions; for that, summaries are marked as untrusted.

use alloc::string::String;

use lcm_loops::char_fold;

use crate::summary::transcript::{LineKind, parse_inline_header, push_line};

/// Returns the text without sentences that look like instructions, and whether any was removed.
pub(super) fn remove_directives(text: &str) -> (String, bool) {
    let mut out = String::with_capacity(text.len());
    let mut removed = false;
    for line in text.split_inclusive('\n') {
        // The header of an extract is kept: it names the speaker of the lines that follow.
        let (header, line) = split_inline_header(line);
        out.push_str(header);
        let start = out.len();
        let mut after_directive = false;
        // Whether the first sentence of the line was removed. A later sentence then begins the
        // line, and must not look like a line of the engine.
        let mut lost_start = false;
        for sentence in split_sentences(line) {
            let lower = char_fold::lower_text(sentence);
            after_directive =
                is_directive(&lower, sentence) || (after_directive && continues_directive(&lower));
            removed |= after_directive;
            if after_directive {
                lost_start |= out.len() == start;
            } else if lost_start && out.len() == start {
                push_line(&mut out, sentence, LineKind::Content);
            } else {
                out.push_str(sentence);
            }
        }
        // A line whose last sentence was removed keeps its line break.
        if line.ends_with('\n') && !out.ends_with('\n') {
            out.truncate(out.trim_end().len().max(start));
            out.push('\n');
        }
    }
    (out, removed)
}

/// Splits a line into the header of an extract, with the space after it, and the rest; the header
/// is empty if there is none.
fn split_inline_header(line: &str) -> (&str, &str) {
    let text = parse_inline_header(line.trim_end()).map(|(_, text)| text);
    let length = text.map_or(0, |text| line.trim_end().len() - text.len());
    line.split_at_checked(length).unwrap_or(("", line))
}

/// Splits a line into sentences, each with the whitespace after the sentence.
fn split_sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (sentence, after) =
            rest.split_at_checked(find_sentence_end(rest)).unwrap_or((rest, ""));
        rest = after;
        Some(sentence)
    })
}

fn find_sentence_end(text: &str) -> usize {
    let mut ended = false;
    for (at, c) in text.char_indices() {
        if ended && !c.is_whitespace() {
            return at;
        }
        let next = text.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
        let spaced = next.is_none_or(char::is_whitespace);
        ended = (ended && c.is_whitespace())
            || (spaced && matches!(c, '.' | '!' | '?' | ';'))
            || matches!(c, '\u{3002}' | '\u{ff01}' | '\u{ff1f}' | '\u{ff1b}');
    }
    text.len()
}

/// A sentence is a directive if a phrase of the first list of a pair occurs in the sentence, and
/// after this phrase a phrase of the second list of the same pair.
const PAIRS: [(&[&str], &[&str]); 4] = [
    (
        &["ignore ", "disregard ", "forget ", "override ", "bypass "],
        &[
            "previous",
            "prior ",
            "earlier",
            "above",
            "preceding",
            "all instructions",
            "your instructions",
            "the instructions",
            "these instructions",
            "system prompt",
            "your rules",
            "your guidelines",
            "everything you",
        ],
    ),
    (
        &["reveal ", "print ", "show ", "repeat ", "output ", "leak ", "expose ", "tell me "],
        &[
            "system prompt",
            "hidden prompt",
            "hidden instructions",
            "your instructions",
            "initial instructions",
        ],
    ),
    (
        &["\u{5ffd}\u{7565}", "\u{65e0}\u{89c6}", "\u{5fd8}\u{8bb0}", "\u{5ffd}\u{8996}"],
        &["\u{6307}\u{4ee4}", "\u{6307}\u{793a}", "\u{63d0}\u{793a}", "\u{547d}\u{4ee4}"],
    ),
    (&["respond", "reply", "answer"], &["only with", "with only", "only in the form"]),
];

const PHRASES: [&str; 12] = [
    "you are now ",
    "you're now ",
    "from now on",
    "jailbreak",
    "do anything now",
    "dan mode",
    "developer mode enabled",
    "new system prompt",
    "new instructions:",
    "\u{4ece}\u{73b0}\u{5728}\u{8d77}",
    "\u{4ece}\u{73b0}\u{5728}\u{5f00}\u{59cb}",
    "\u{4f60}\u{73b0}\u{5728}\u{662f}",
];

fn is_directive(lower: &str, sentence: &str) -> bool {
    let pair = |(first, second): &(&[&str], &[&str])| {
        first
            .iter()
            .filter_map(|word| lower.split_once(word))
            .any(|(_, rest)| second.iter().any(|word| rest.contains(word)))
    };
    PHRASES.iter().any(|phrase| lower.contains(phrase))
        || PAIRS.iter().any(pair)
        || sentence.split(|c: char| !c.is_alphanumeric()).any(|word| word == "DAN")
            && lower.contains("you")
}

/// Returns whether a sentence after a directive continues the directive.
fn continues_directive(lower: &str) -> bool {
    const STARTS: [&str; 12] = [
        "and ", "then ", "instead", "also ", "do not ", "don't ", "output ", "reply ", "respond ",
        "answer ", "say ", "print ",
    ];
    let start = lower.trim_start();
    STARTS.iter().any(|word| start.starts_with(word))
}
