//! Takes an answer out of what models write around it: an announcement, a code fence, an element,
//! and marks of chat templates.
//!
//! Input: an answer without reasoning. Output: the part of it that is the answer.

use super::super::blank_answer;

/// Elements in which prompts and chat templates ask for an answer.
const ANSWER_TAGS: [&str; 5] = ["summary", "answer", "response", "output", "final"];
/// First words of a line that announces a summary.
const ANNOUNCEMENTS: [&str; 8] =
    ["absolutely", "below", "certainly", "here", "here's", "of", "okay", "sure"];
/// Most layers around an answer; each may take a search through the whole text.
const LAYERS_MAX: u32 = 4;
/// Most bytes of a line that announces a summary.
const ANNOUNCEMENT_BYTES_MAX: usize = 120;
/// Most bytes of the name in a mark of a chat template.
const MARK_NAME_BYTES_MAX: usize = 24;

/// Returns an answer without its announcement, and without all that encloses the whole answer.
#[must_use]
pub fn unwrap_answer(text: &str) -> &str {
    let mut bare = text;
    for _ in 0..LAYERS_MAX {
        bare = strip_enclosure(strip_announcement(bare));
    }
    bare
}

/// Strips a code fence, an element of [`ANSWER_TAGS`] or marks of a chat template that enclose the
/// whole text, and trims. The end of an enclosure may be missing, because the text may be cut off.
#[must_use]
pub fn strip_enclosure(text: &str) -> &str {
    let text = strip_template_marks(text);
    if text == "```" {
        return "";
    }
    let fenced = text.strip_prefix("```").and_then(|rest| rest.split_once('\n'));
    if let Some((_, inside)) = fenced {
        let inside = inside.strip_suffix("```").unwrap_or(inside);
        // A fence that ends earlier is part of the text.
        return if inside.contains("```") { text } else { inside.trim() };
    }
    let Some((name, inside)) = text.strip_prefix('<').and_then(|rest| rest.split_once('>')) else {
        return text;
    };
    if !ANSWER_TAGS.iter().any(|tag| name.eq_ignore_ascii_case(tag)) {
        return text;
    }
    match inside.rsplit_once("</") {
        Some((inside, end)) if end.trim_end_matches('>').eq_ignore_ascii_case(name) => {
            inside.trim()
        }
        None if inside.starts_with('\n') => inside.trim(),
        _ => text,
    }
}

/// Strips marks such as `<|return|>` from both ends of a text, and trims.
fn strip_template_marks(text: &str) -> &str {
    let is_name = |name: &str| {
        name.len() <= MARK_NAME_BYTES_MAX && !name.contains(|c: char| c.is_whitespace())
    };
    let mut text = text.trim();
    while let Some((before, name)) = text.strip_suffix("|>").and_then(|rest| rest.rsplit_once("<|"))
        && is_name(name)
    {
        text = before.trim_end();
    }
    while let Some((name, after)) = text.strip_prefix("<|").and_then(|rest| rest.split_once("|>"))
        && is_name(name)
    {
        text = after.trim_start();
    }
    text
}

/// Strips the first line if it announces a summary, such as `Here is the summary:`, with lines
/// before that say nothing.
fn strip_announcement(text: &str) -> &str {
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n')
        && line.len() <= ANNOUNCEMENT_BYTES_MAX
    {
        let words = blank_answer::split_words(line);
        let is_stock = words.iter().all(|word| blank_answer::is_stock_word(word));
        let end = line.trim_end_matches(['*', '_', ' ', '\r']);
        let announces = words.first().is_some_and(|word| ANNOUNCEMENTS.contains(&&**word));
        if end.ends_with(':')
            && (is_stock || announces)
            && words.iter().any(|word| word.starts_with("summar"))
        {
            return after.trim_start();
        }
        if !is_stock {
            break;
        }
        rest = after;
    }
    text
}
