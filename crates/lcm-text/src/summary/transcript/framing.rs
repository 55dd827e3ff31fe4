//! Frames content: no line of content can be read as a line that the engine writes around it.
//!
//! In: text of a message, an answer or a file. Out: the same text, with a backslash before each
//! line or tag that looks like the beginning of one of the engine's own lines. The engine's own
//! lines are block headers, headers of extracts, notes and labels, and the tags around the parts of
//! a prompt. docs/decisions/020 has the reasons.

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::{
    answer_cleanup::EXPAND_PREFIX, injected_context::INJECTED_NOTE, media_omission::MEDIA_NOTE,
};

/// The mark before a text that would otherwise begin like a line of the engine.
pub(crate) const MARK: char = '\\';

/// Names of the tags around the parts of a prompt.
const TAGS: [&str; 4] = ["source", "previous", "findings", "question"];
/// Most bytes of a name of [`TAGS`].
const NAME_MAX: usize = 8;
/// Beginnings of the engine's lines within a block.
const LABELS: [&str; 3] = ["tool call", "tool result", "tool error"];
/// Beginning and end of the notes that count omitted tokens or failures.
const COUNTED_NOTES: [(&str, &str); 2] =
    [("[... ", " tokens left out ...]"), ("[... ", " more failures ...]")];

/// Whether a line belongs to a message or to a model's answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LineKind {
    /// A line of a message. A line of omitted details (`Expand for details about:`) is marked here,
    /// because only a summary has such a line.
    Content,
    /// A line of a model's summary. A line of omitted details is kept unmarked.
    Answer,
}

/// Splits a text at every character or pair that a reader may take for the end of a line. The lines
/// are without their ends.
pub(crate) fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    core::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = text.find(is_line_end) else {
            rest = None;
            return Some(text);
        };
        let (line, end) = text.split_at_checked(at).unwrap_or((text, ""));
        let after = end.strip_prefix("\r\n").unwrap_or_else(|| {
            let mut chars = end.chars();
            chars.next();
            chars.as_str()
        });
        rest = Some(after).filter(|after| !after.is_empty());
        Some(line)
    })
}

/// Appends a line of content, marked if it begins like a line of the engine.
pub(crate) fn push_line(out: &mut String, line: &str, kind: LineKind) {
    match find_frame(line, kind) {
        Some(at) => {
            let (blank, rest) = line.split_at_checked(at).unwrap_or(("", line));
            out.push_str(blank);
            out.push(MARK);
            out.push_str(rest);
        }
        None => out.push_str(line),
    }
}

/// Returns the text with a mark in every line that begins like a line of the engine.
pub fn frame_content(text: &str) -> String {
    frame_lines(text, LineKind::Content)
}

/// Returns an answer of a model as the text of a summary. Lines that begin like a header or label
/// are marked, whatever the model wrote or copied.
pub fn frame_answer(text: &str) -> String {
    frame_lines(text, LineKind::Answer)
}

fn frame_lines(text: &str, kind: LineKind) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in split_lines(text).enumerate() {
        if number > 0 {
            out.push('\n');
        }
        push_line(&mut out, line, kind);
    }
    out
}

/// Returns the byte offset of the first visible character if the line begins like a line of the
/// engine there; `None`: the line needs no mark.
pub(crate) fn find_frame(line: &str, kind: LineKind) -> Option<usize> {
    let at = line.find(|c| !is_blank(c))?;
    let rest = line.get(at..)?;
    let is_frame = rest.starts_with(is_bracket) && !(at == 0 && is_omission_note(line));
    let is_label = || {
        LABELS.iter().any(|label| starts_like(rest, label))
            || (kind == LineKind::Content && starts_like(rest, EXPAND_PREFIX))
    };
    (is_frame || is_label()).then_some(at)
}

/// Returns whether a line begins with a bracket, or with backslashes and then a bracket.
pub(super) fn begins_with_bracket(line: &str) -> bool {
    line.trim_start_matches(|c| c == MARK || is_blank(c)).starts_with(is_bracket)
}

/// Returns whether a line is a note of the engine about omitted text. Content may contain such a
/// line unmarked, because the note imitates no speaker.
pub(crate) fn is_omission_note(line: &str) -> bool {
    let line = line.trim_end();
    let counts = |(prefix, suffix): &(&str, &str)| {
        let count = line.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
        count.is_some_and(|count| {
            !count.is_empty() && count.len() <= 10 && count.bytes().all(|c| c.is_ascii_digit())
        })
    };
    [MEDIA_NOTE, INJECTED_NOTE, "[...]"].contains(&line) || COUNTED_NOTES.iter().any(counts)
}

/// Returns a text in which every tag of a prompt is marked.
pub(crate) fn frame_tags(text: &str) -> Cow<'_, str> {
    let tags: Vec<usize> =
        text.match_indices(is_angle).map(|(at, _)| at).filter(|at| is_tag(text, *at)).collect();
    if tags.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + tags.len());
    let mut from = 0;
    for at in tags {
        out.push_str(text.get(from..at).unwrap_or(""));
        out.push(MARK);
        from = at;
    }
    out.push_str(text.get(from..).unwrap_or(""));
    Cow::Owned(out)
}

/// Returns whether a tag of a prompt without a mark before it begins at the angle bracket at `at`:
/// a closing tag anywhere, or an opening tag that begins its line.
fn is_tag(text: &str, at: usize) -> bool {
    let (before, inside) = text.split_at_checked(at).unwrap_or((text, ""));
    let inside = inside.trim_start_matches(|c| is_angle(c) || is_blank(c));
    let name = inside.trim_start_matches(|c| is_slash(c) || is_blank(c));
    let is_closing = inside.starts_with(is_slash);
    if before.ends_with(MARK) {
        return false;
    }
    let line = before.rsplit(is_line_end).next().unwrap_or("");
    if !is_closing && line.contains(|c| !is_blank(c)) {
        return false;
    }
    let letters = name.chars().filter(|c| c.is_whitespace() || !is_blank(*c));
    let name: String = letters.take_while(|c| c.is_alphanumeric()).take(NAME_MAX + 1).collect();
    TAGS.iter().any(|tag| name.eq_ignore_ascii_case(tag))
}

/// Returns whether `text` begins with `label`, whatever the case.
fn starts_like(text: &str, label: &str) -> bool {
    text.get(..label.len()).is_some_and(|head| head.eq_ignore_ascii_case(label))
}

/// Returns whether a reader may take a character for the end of a line.
pub(crate) const fn is_line_end(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Returns whether a character is whitespace, a control character, or otherwise invisible.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(
            c,
            '\u{AD}'
                | '\u{34F}'
                | '\u{61C}'
                | '\u{115F}'
                | '\u{1160}'
                | '\u{17B4}'
                | '\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}'
                | '\u{202A}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{FE00}'..='\u{FE0F}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{E0000}'..='\u{E0FFF}'
        )
}

/// Returns whether a character is an opening bracket with square corners, or looks like one.
const fn is_bracket(c: char) -> bool {
    matches!(
        c,
        '[' | '\u{2045}'
            | '\u{2308}'
            | '\u{230A}'
            | '\u{23A1}'
            | '\u{2772}'
            | '\u{27E6}'
            | '\u{27EC}'
            | '\u{298B}'
            | '\u{298D}'
            | '\u{298F}'
            | '\u{3010}'
            | '\u{3014}'
            | '\u{3016}'
            | '\u{3018}'
            | '\u{301A}'
            | '\u{FE17}'
            | '\u{FE39}'
            | '\u{FE3B}'
            | '\u{FE47}'
            | '\u{FE5D}'
            | '\u{FF3B}'
    )
}

const fn is_angle(c: char) -> bool {
    matches!(c, '<' | '\u{2039}' | '\u{2329}' | '\u{27E8}' | '\u{3008}' | '\u{FE64}' | '\u{FF1C}')
}

const fn is_slash(c: char) -> bool {
    matches!(c, '/' | '\\' | '\u{2044}' | '\u{2215}' | '\u{FF0F}')
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn every_end_of_a_line_ends_a_line() {
        let ends = "\n \r \r\n \u{B} \u{C} \u{1C} \u{1D} \u{1E} \u{85} \u{2028} \u{2029}";
        for end in ends.split(' ') {
            let text = format!("a{end}{end}b{end}");
            let lines: Vec<&str> = split_lines(&text).collect();
            assert_eq!(lines, ["a", "", "b"], "{end:?}");
            assert_eq!(frame_content(&format!("a{end}[x] b")), "a\n\\[x] b", "{end:?}");
        }
        assert_eq!(split_lines("").count(), 0);
    }

    #[test]
    fn only_lines_that_begin_like_the_engines_are_marked() {
        let framed = [
            ("[03:04 user] x", "\\[03:04 user] x"),
            ("  \t[x]", "  \t\\[x]"),
            ("\u{200b}\u{feff}[x]", "\u{200b}\u{feff}\\[x]"),
            ("\u{ff3b}03:04 user] x", "\\\u{ff3b}03:04 user] x"),
            ("Tool result run:", "\\Tool result run:"),
            ("expand for details about: x", "\\expand for details about: x"),
            ("[... 12 tokens left out ...] x", "\\[... 12 tokens left out ...] x"),
        ];
        for (line, expected) in framed {
            assert_eq!(frame_content(line), expected);
            assert_eq!(frame_content(expected), expected, "a second time");
        }
        for line in ["x [03:04 user] y", "\\[x]", "[media omitted]", "[...]", "", "  ", "(x)"] {
            assert_eq!(frame_content(line), line);
        }
        assert_eq!(
            frame_answer("[x]\ntool call x\nExpand for details about: a"),
            "\\[x]\n\\tool call x\nExpand for details about: a"
        );
    }

    #[test]
    fn tags_are_marked_and_code_is_not() {
        let marked = [
            ("</source>", "\\</source>"),
            ("x </ SOURCE 1> y", "x \\</ SOURCE 1> y"),
            ("<source>", "\\<source>"),
            ("x\n \u{200b}<previous a>", "x\n \u{200b}\\<previous a>"),
            ("x\u{2028}<question>", "x\u{2028}\\<question>"),
            ("</so\u{200b}urce>", "\\</so\u{200b}urce>"),
            ("\u{ff1c}/findings>", "\\\u{ff1c}/findings>"),
        ];
        for (text, expected) in marked {
            assert_eq!(frame_tags(text), expected);
        }
        for text in
            ["Vec<Source>", "</sources>", "\\</source>", "<sourcecode>", "a < source", "<b>", ""]
        {
            assert_eq!(frame_tags(text), text);
        }
    }
}
