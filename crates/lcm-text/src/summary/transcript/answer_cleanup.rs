//! Removes reasoning and truncation notes from the answer of a model.
//!
//! Input: an answer or a stored summary. Output: the text for a summary or a prompt.

use alloc::string::String;

/// Prefix of the line that should end every summary and lists omitted details.
pub(crate) const EXPAND_PREFIX: &str = "Expand for details about:";
/// Note in a fallback summary from which text in the form of instructions was removed.
pub(crate) const DIRECTIVE_NOTE: &str =
    "[LCM fallback summary; directive-shaped untrusted content omitted]";

const FIXED_NOTES: [&str; 5] = [
    DIRECTIVE_NOTE,
    "[LCM fallback summary; truncated for context management]",
    "[Truncated for context management]",
    "[Capped]",
    "[truncated for context management]",
];
/// Names of reasoning in angle brackets, as in `<think>` and `</think>`: of DeepSeek R1 and Qwen 3
/// (`think`), of EXAONE (`thought`), of Seed-OSS (`seed:think`), and of prompts that ask for a
/// draft before the answer (`analysis`, `scratchpad`, `reflection`).
const REASONING_TAGS: [&str; 8] = [
    "thinking",
    "think",
    "reasoning",
    "thought",
    "analysis",
    "scratchpad",
    "reflection",
    "seed:think",
];
/// Marks before and after reasoning in other forms, in lower case: of Magistral, Kimi-VL, gpt-oss
/// (harmony), Gemma 4, Sky-T1, Command A and Apertus.
const REASONING_MARKS: [(&str, &str); 8] = [
    ("[think]", "[/think]"),
    ("\u{25c1}think\u{25b7}", "\u{25c1}/think\u{25b7}"),
    ("<|channel|>", "<|channel|>final<|message|>"),
    ("<|start|>assistant<|channel|>", "<|channel|>final<|message|>"),
    ("<|channel>", "<channel|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
];
/// First characters of all tags and marks.
const MARK_STARTS: [char; 3] = ['<', '[', '\u{25c1}'];
/// Channel names of gpt-oss without the marks around them, which some servers drop: the reasoning
/// begins with the first name, and the answer follows the second.
const BARE_CHANNELS: (&str, &str) = ("analysis", "assistantfinal");
const THINKING_HEADER: &str = "thinking process:";

/// Removes the model's reasoning and trims; the result is empty if the answer was only reasoning.
///
/// Removed are:
///
/// - blocks of [`REASONING_TAGS`] and [`REASONING_MARKS`] at the start; a block without a closing
///   tag extends to the end;
/// - later blocks that begin and end at line bounds;
/// - everything before a closing tag that has no opening tag and ends its line, if the tag is alone
///   on the line or directly after the end of a sentence;
/// - a leading `Thinking Process:` with its list, and a leading [`BARE_CHANNELS`].
///
/// A tag within a line is kept.
#[must_use]
pub fn strip_reasoning(text: &str) -> String {
    let text = text.trim();
    let mut closings = ClosingTagScanner::new(text);
    // `rest` is always a suffix of `text`, so its length gives its offset.
    let mut rest = text;
    loop {
        let at = text.len() - rest.len();
        let after = if strip_opening_tag(rest).is_some() {
            // Without a closing tag, the whole rest is reasoning.
            Some(closings.next_from(at).and_then(|tag| text.get(tag.end..)).unwrap_or(""))
        } else {
            let stray = closings.next_from(at).filter(|tag| tag.is_stray(at));
            let stray = stray.and_then(|tag| text.get(tag.end..));
            stray.or_else(|| skip_thinking_header(rest)).or_else(|| skip_bare_channels(rest))
        };
        let Some(after) = after else { break };
        rest = after.trim_start();
    }
    strip_reasoning_blocks(rest)
}

/// A closing tag with its surroundings.
#[derive(Clone, Copy)]
struct ClosingTag {
    start: usize,
    end: usize,
    /// Offset of the last opening tag before the closing tag; `None`: no opening tag was found.
    opening_at: Option<usize>,
    /// Whether the tag ends its line, and is alone on the line or follows the end of a sentence.
    is_apart: bool,
}

impl ClosingTag {
    /// Returns whether the tag is apart and no opening tag at or after `at` precedes the tag. Some
    /// chat templates put the opening tag into the prompt.
    fn is_stray(&self, at: usize) -> bool {
        self.is_apart && self.opening_at.is_none_or(|opening| opening < at)
    }
}

/// A scanner of closing tags that reads the text once. A new search for each opening tag would take
/// quadratic time on repetitive answers.
struct ClosingTagScanner<'a> {
    text: &'a str,
    next: Option<ClosingTag>,
}

impl<'a> ClosingTagScanner<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, next: find_closing_tag(text, 0) }
    }

    /// Returns the first closing tag at `at` or later; `at` must not decrease between calls.
    fn next_from(&mut self, at: usize) -> Option<ClosingTag> {
        if self.next.is_some_and(|tag| tag.start < at) {
            self.next = find_closing_tag(self.text, at);
        }
        self.next
    }
}

fn find_closing_tag(text: &str, from: usize) -> Option<ClosingTag> {
    let (before, after) = split_at_closing_tag(text.get(from..)?)?;
    let opening = before
        .rmatch_indices(MARK_STARTS)
        .find(|(at, _)| before.get(*at..).is_some_and(|tagged| strip_opening_tag(tagged).is_some()))
        .map(|(at, _)| from + at);
    let is_apart = (after.is_empty() || after.starts_with(['\n', '\r']))
        && (before.ends_with(['.', '!', '?'])
            || before.rsplit('\n').next().is_none_or(|line| line.trim().is_empty()));
    let (start, end) = (from + before.len(), text.len() - after.len());
    Some(ClosingTag { start, end, opening_at: opening, is_apart })
}

/// Returns the text after the opening tag that `text` starts with; `None`: `text` starts with no
/// opening tag of [`REASONING_TAGS`] and no opening mark of [`REASONING_MARKS`].
fn strip_opening_tag(text: &str) -> Option<&str> {
    let mut marks = REASONING_MARKS.iter();
    if let Some((opening, _)) = marks.find(|(mark, _)| starts_with_ignore_case(text, mark)) {
        return text.get(opening.len()..);
    }
    let rest = text.strip_prefix('<')?;
    let tag = REASONING_TAGS.iter().find(|tag| starts_with_ignore_case(rest, tag))?;
    let rest = rest.get(tag.len()..)?;
    if rest.starts_with(' ') {
        // A tag with attributes must end on its line.
        let end = rest.find(['>', '<', '\n'])?;
        return rest.get(end..)?.strip_prefix('>');
    }
    rest.strip_prefix('>')
}

/// Returns the text before and after the first closing tag or mark; `None`: there is none.
fn split_at_closing_tag(text: &str) -> Option<(&str, &str)> {
    let mut marks = text.match_indices(MARK_STARTS);
    marks.find_map(|(at, _)| {
        let (before, rest) = text.split_at_checked(at)?;
        Some((before, strip_closing_tag(rest)?))
    })
}

/// Returns the text after the closing tag or mark that `text` starts with; `None`: `text` starts
/// with neither.
fn strip_closing_tag(text: &str) -> Option<&str> {
    let mut marks = REASONING_MARKS.iter();
    if let Some((_, closing)) = marks.find(|(_, mark)| starts_with_ignore_case(text, mark)) {
        return text.get(closing.len()..);
    }
    let inside = text.strip_prefix("</")?;
    let name = REASONING_TAGS.iter().find(|tag| starts_with_ignore_case(inside, tag))?;
    inside.get(name.len()..)?.trim_start().strip_prefix('>')
}

/// Returns the text after leading [`BARE_CHANNELS`]; `None`: `text` does not start with them.
fn skip_bare_channels(text: &str) -> Option<&str> {
    let reasoning = text.strip_prefix(BARE_CHANNELS.0)?;
    let (reasoning, answer) = reasoning.split_once(BARE_CHANNELS.1)?;
    // A word that begins with the name is no channel.
    reasoning.starts_with(|c: char| c == '\n' || c.is_uppercase()).then_some(answer)
}

/// Returns the text after a leading `Thinking Process:` and the paragraphs of its list; `None`:
/// `text` does not start with this header.
fn skip_thinking_header(text: &str) -> Option<&str> {
    let bare = text.trim_start_matches(['#', '*', ' ']);
    if !starts_with_ignore_case(bare, THINKING_HEADER) {
        return None;
    }
    let mut rest = bare;
    loop {
        let Some((_, after)) = rest.split_once("\n\n") else { return Some("") };
        let item = after.trim_start();
        if item.starts_with(|c: char| c.is_ascii_digit()) {
            rest = item;
        } else if after.starts_with([' ', '\t', '-', '*']) {
            rest = after;
        } else {
            return Some(after);
        }
    }
}

/// Removes blocks of reasoning whose opening tag starts a line and closing tag ends one.
fn strip_reasoning_blocks(text: &str) -> String {
    let mut closings = ClosingTagScanner::new(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let block = strip_opening_tag(rest.trim_start_matches([' ', '\t']))
            .and_then(|_| closings.next_from(text.len() - rest.len()))
            .and_then(|tag| text.get(tag.end..));
        match block {
            Some(after) if after.is_empty() || after.starts_with(['\n', '\r']) => {
                rest = after.trim_start_matches(['\n', '\r']);
            }
            _ => {
                let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
                let (line, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
                out.push_str(line);
                rest = after;
            }
        }
    }
    out.truncate(out.trim_end().len());
    out
}

fn starts_with_ignore_case(text: &str, lower: &str) -> bool {
    text.get(..lower.len()).is_some_and(|head| head.eq_ignore_ascii_case(lower))
}

/// Returns whether the trimmed `text` is exactly one truncation note.
pub(crate) fn is_truncation_note(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('[') && truncation_note_length(text) == Some(text.len())
}

/// Removes truncation notes and trims the end.
///
/// Callers use this function before a summary becomes previous context of a prompt, because a model
/// that reads such a note copies the note. A line with only notes is removed.
#[must_use]
pub fn strip_truncation_notes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let start = out.len();
        let mut rest = line;
        let mut found = false;
        while let Some(at) = rest.find('[') {
            let (before, bracket) = rest.split_at_checked(at).unwrap_or((rest, ""));
            out.push_str(before);
            let length = truncation_note_length(bracket);
            if length.is_none() {
                out.push('[');
            }
            found |= length.is_some();
            rest = bracket.get(length.unwrap_or(1)..).unwrap_or("");
        }
        out.push_str(rest);
        if found && out.get(start..).is_some_and(|kept| kept.trim().is_empty()) {
            out.truncate(start);
        } else {
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Returns the length in bytes of the truncation note that `text` starts with; `None`: no note.
fn truncation_note_length(text: &str) -> Option<usize> {
    if let Some(fixed) = FIXED_NOTES.iter().find(|marker| text.starts_with(**marker)) {
        return Some(fixed.len());
    }
    // The search ends at the next bracket, so that a text of only brackets takes linear time.
    let (inside, _) = text.strip_prefix('[')?.split_once(['[', ']'])?;
    let end = inside.len() + 1;
    if !text.get(end..)?.starts_with(']') {
        return None;
    }
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let truncated = || {
        let count = inside.strip_prefix("Truncated from ")?.strip_suffix(" tokens")?;
        number(count).then_some(())
    };
    let capped = || {
        let (from, to) = inside.strip_prefix("Capped ")?.split_once("to ~")?;
        let from = match from {
            "" => true,
            _ => number(from.strip_prefix("from ")?.strip_suffix(" tokens ")?),
        };
        (from && number(to)).then_some(())
    };
    truncated().or_else(capped).map(|()| end + 1)
}
