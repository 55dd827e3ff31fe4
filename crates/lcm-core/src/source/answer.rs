//! Cleans what a model wrote: reasoning, and the notes that a summary was cut.

use alloc::string::String;

/// Begins the last line of every summary: what was left out.
pub(crate) const EXPAND_PREFIX: &str = "Expand for details about:";
/// Says that instructions were left out of a fallback text.
pub(crate) const DIRECTIVE_NOTE: &str =
    "[LCM fallback summary; directive-shaped untrusted content omitted]";

const FIXED_MARKERS: [&str; 5] = [
    DIRECTIVE_NOTE,
    "[LCM fallback summary; truncated for context management]",
    "[Truncated for context management]",
    "[Capped]",
    "[truncated for context management]",
];
const TAGS: [&str; 4] = ["thinking", "think", "reasoning", "thought"];
const THINKING_HEADER: &str = "thinking process:";

/// The answer without the model's reasoning, trimmed; empty when nothing else was there.
///
/// Left out are tagged blocks (`think`, `thinking`, `reasoning`, `thought`) at the start, closed
/// or not; blocks that stand on lines of their own; everything before a closing tag that has no
/// opening one; and a leading `Thinking Process:` with its list. A tag inside a sentence stays.
#[must_use]
pub fn strip_reasoning(text: &str) -> String {
    let mut rest = text.trim();
    loop {
        if let Some(after) = opening(rest) {
            // Without an end, all of it is reasoning.
            rest = closing(after).map_or("", |(_, after)| after).trim();
        } else if let Some(after) = stray_closing(rest) {
            rest = after.trim();
        } else if let Some(after) = thinking_header(rest) {
            rest = after.trim();
        } else {
            break;
        }
    }
    strip_blocks(rest)
}

/// What follows the opening tag that `text` starts with.
fn opening(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('<')?;
    let tag = TAGS.iter().find(|tag| starts_with(rest, tag))?;
    let rest = rest.get(tag.len()..)?;
    if let Some(after) = rest.strip_prefix('>') {
        return Some(after);
    }
    // Attributes stand on the line of the tag.
    let (attributes, after) = rest.split_once('>')?;
    (attributes.starts_with(' ') && !attributes.contains(['\n', '<'])).then_some(after)
}

/// What precedes and follows the first closing tag in `text`.
fn closing(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find("</")?;
        let inside = text.get(at + 2..)?;
        let after = TAGS
            .iter()
            .find(|tag| starts_with(inside, tag))
            .and_then(|tag| inside.get(tag.len()..))
            .and_then(|rest| rest.trim_start().strip_prefix('>'));
        if let Some(after) = after {
            return Some((text.get(..at)?, after));
        }
        from = at + 2;
    }
}

/// What follows a closing tag that fills a line and was never opened: some chat templates write the
/// opening tag into the prompt.
fn stray_closing(text: &str) -> Option<&str> {
    let (before, after) = closing(text)?;
    let opened = before
        .match_indices('<')
        .any(|(at, _)| before.get(at..).is_some_and(|tagged| opening(tagged).is_some()));
    let fills_line = (after.is_empty() || after.starts_with(['\n', '\r']))
        && before
            .lines()
            .last()
            .is_none_or(|line| before.ends_with('\n') || line.trim().is_empty());
    (fills_line && !opened).then_some(after)
}

/// What follows a leading `Thinking Process:` and the paragraphs of its list.
fn thinking_header(text: &str) -> Option<&str> {
    let bare = text.trim_start_matches(['#', '*', ' ']);
    if !starts_with(bare, THINKING_HEADER) {
        return None;
    }
    let mut rest = bare;
    loop {
        let Some((_, after)) = rest.split_once("\n\n") else { return Some("") };
        let listed = after.starts_with([' ', '\t', '-', '*'])
            || after.trim_start().starts_with(|c: char| c.is_ascii_digit());
        if !listed {
            return Some(after);
        }
        rest = after;
    }
}

/// Leaves out blocks whose opening tag starts a line and whose closing tag ends one.
fn strip_blocks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let block = opening(rest.trim_start_matches([' ', '\t'])).and_then(closing);
        match block {
            Some((_, after)) if after.is_empty() || after.starts_with(['\n', '\r']) => {
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

fn starts_with(text: &str, lower: &str) -> bool {
    text.get(..lower.len()).is_some_and(|head| head.eq_ignore_ascii_case(lower))
}

/// Whether `text`, trimmed, is one note about cutting and nothing else.
pub(crate) fn is_marker(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('[') && marker_length(text) == Some(text.len())
}

/// The text without the notes that say it was cut, trimmed at the end.
///
/// To be used before a summary goes into a prompt as previous context: a model that sees such a
/// note copies it. A line that held nothing else goes as a whole.
#[must_use]
pub fn strip_markers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let start = out.len();
        let mut rest = line;
        let mut found = false;
        while let Some(at) = rest.find('[') {
            let (before, bracket) = rest.split_at_checked(at).unwrap_or((rest, ""));
            out.push_str(before);
            let length = marker_length(bracket);
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

/// The length of the note that `text` starts with, in bytes.
fn marker_length(text: &str) -> Option<usize> {
    if let Some(fixed) = FIXED_MARKERS.iter().find(|marker| text.starts_with(**marker)) {
        return Some(fixed.len());
    }
    let end = text.find(']')?;
    let inside = text.get(1..end)?;
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
