//! Removes elements that memory plugins insert into messages; the configuration lists their names.
//!
//! Input: a text of a user or system message, and names. Output: the text without `<name
//! ...>...</name>` and `<name/>`, and without a line that announces an element directly before the
//! element. An element that is never closed is kept, because a text may mention a tag.

use alloc::{borrow::Cow, string::String, vec, vec::Vec};

/// The note that replaces a text of only injected elements.
pub(super) const INJECTED_NOTE: &str = "[injected context omitted]";

/// Prefix of a line that announces an element.
const ANNOUNCEMENT_PREFIX: &str = "Untrusted context (metadata";

/// Removes the elements whose names are in `names`.
pub(super) fn strip_injected_context<'t>(text: Cow<'t, str>, names: &[String]) -> Cow<'t, str> {
    let found = find_elements(&text, names);
    if found.is_empty() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end) in found {
        let between = text.get(from..start).unwrap_or("");
        let begins_line = out.is_empty() || out.ends_with('\n');
        push_between(&mut out, strip_announcement(between, begins_line));
        from = end;
    }
    push_between(&mut out, text.get(from..).unwrap_or(""));
    out.truncate(out.trim_end().len());
    if out.is_empty() { Cow::Borrowed(INJECTED_NOTE) } else { Cow::Owned(out) }
}

/// Returns `between`, the text before an element, without its last line if this line announces the
/// element. Only the last line is read, so that the total time is linear.
fn strip_announcement(between: &str, begins_line: bool) -> &str {
    let kept = between.trim_end();
    let (before, line) = match kept.rfind('\n') {
        Some(at) => kept.split_at(at + 1),
        None if begins_line => ("", kept),
        None => return between,
    };
    if line.trim_start().starts_with(ANNOUNCEMENT_PREFIX) { before } else { between }
}

/// Appends the text between removed elements. If the output is at the start of a line, line breaks
/// at the start of the text are dropped.
fn push_between(out: &mut String, text: &str) {
    let at_start = out.is_empty() || out.ends_with('\n');
    out.push_str(if at_start { text.trim_start_matches(['\n', '\r']) } else { text });
}

/// Returns the byte ranges of the outermost elements, in order.
fn find_elements(text: &str, names: &[String]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    // Open elements as (start, index of the name), and the number of open elements by name.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut counts = vec![0_u32; names.len()];
    for (at, _) in text.match_indices('<') {
        let Some(tag) = parse_injected_tag(text, at, names) else { continue };
        let start = match tag.kind {
            InjectedTagKind::Opening => {
                open.push((tag.name, at));
                adjust_count(&mut counts, tag.name, 1);
                continue;
            }
            InjectedTagKind::Empty => at,
            InjectedTagKind::Closing => {
                if counts.get(tag.name).is_none_or(|count| *count == 0) {
                    continue;
                }
                // Elements that were opened inside this element and not closed end with it.
                let mut start = at;
                while let Some((name, opened)) = open.pop() {
                    adjust_count(&mut counts, name, -1);
                    start = opened;
                    if name == tag.name {
                        break;
                    }
                }
                start
            }
        };
        while found.last().is_some_and(|(inner, _)| *inner >= start) {
            found.pop();
        }
        found.push((start, tag.end));
    }
    found
}

fn adjust_count(counts: &mut [u32], name: usize, by: i32) {
    if let Some(count) = counts.get_mut(name) {
        *count = count.saturating_add_signed(by);
    }
}

enum InjectedTagKind {
    Opening,
    Closing,
    Empty,
}

struct InjectedTag {
    /// Index among the names.
    name: usize,
    kind: InjectedTagKind,
    /// Offset behind the `>`.
    end: usize,
}

/// Parses the tag at the `<` at offset `at`, if it has one of these names.
fn parse_injected_tag(text: &str, at: usize, names: &[String]) -> Option<InjectedTag> {
    let rest = text.get(at + 1..)?;
    let (rest, closing) = match rest.strip_prefix('/') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let ends = |rest: &str| rest.starts_with(['>', '/', ' ', '\t', '\n', '\r']);
    let (name, rest) = names.iter().enumerate().find_map(|(place, name)| {
        Some((place, rest.strip_prefix(name.as_str()).filter(|rest| ends(rest))?))
    })?;
    // A tag contains no `<`, so the search ends at the next `<`.
    let length = rest.find(['>', '<'])?;
    let after = rest.get(length..)?.strip_prefix('>')?;
    let empty = rest.get(..length)?.ends_with('/');
    let kind = match (closing, empty) {
        (true, _) => InjectedTagKind::Closing,
        (false, true) => InjectedTagKind::Empty,
        (false, false) => InjectedTagKind::Opening,
    };
    Some(InjectedTag { name, kind, end: text.len() - after.len() })
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::ToString};

    use super::*;

    fn stripped(text: &str) -> String {
        let names = ["memory", "memory-2"].map(|name| name.to_string());
        strip_injected_context(Cow::Borrowed(text), &names).into_owned()
    }

    #[test]
    fn elements_are_left_out_and_nothing_else() {
        let cases = [
            ("plain < b", "plain < b"),
            ("a <memory>x</memory> b", "a  b"),
            ("<memory>\nx\n</memory>\n\nasked", "asked"),
            ("asked\n<memory id=\"1\"\n n='2'>x</memory >\nmore", "asked\nmore"),
            ("a\n<memory/>\nb<memory-2 />c", "a\nbc"),
            ("a <memory>x<memory>y</memory>z</memory> b", "a  b"),
            ("a <memory>x<memory-2>y</memory> b", "a  b"),
            ("a <memory-2>x</memory-2> <memory>y</memory>", "a"),
            // Elements that are not closed or not opened, and elements with other names.
            ("a <memory> b", "a <memory> b"),
            ("a </memory> b", "a </memory> b"),
            ("<memory>a<memory>b</memory>c", "<memory>ac"),
            (
                "<memory-3>x</memory-3><Memory>y</Memory>",
                "<memory-3>x</memory-3><Memory>y</Memory>",
            ),
            ("<memory <b>x</memory>", "<memory <b>x</memory>"),
            // An announcement is removed together with its element, and is kept without an element.
            ("Untrusted context (metadata, no orders):\n<memory>x</memory>\nasked", "asked"),
            ("a\nUntrusted context (metadata):\n\n<memory>x</memory>\nb", "a\nb"),
            (
                "Untrusted context (metadata) is a line\nb",
                "Untrusted context (metadata) is a line\nb",
            ),
            ("<memory>x</memory>", INJECTED_NOTE),
        ];
        for (text, expected) in cases {
            assert_eq!(stripped(text), expected, "{text:?}");
        }
        let none = strip_injected_context(Cow::Borrowed("<memory>x</memory>"), &[]);
        assert_eq!(none, "<memory>x</memory>");
    }

    /// Goal: the time is linear in the length of the text. A search of all open elements for each
    /// tag would take a minute.
    #[test]
    fn stripping_takes_time_with_the_length_of_what_is_repeated() {
        for unit in ["<memory>", "<memory ", "</memory>", "<memory-2></memory>"] {
            let text = unit.repeat((1 << 20) / unit.len());
            assert_eq!(stripped(&text), text);
        }
        let line = "x".repeat(1 << 20);
        assert_eq!(stripped(&format!("{line}{}", "<memory/>x".repeat(1 << 16))).len(), 17 << 16);
        let blanks = " ".repeat(1 << 20);
        assert_eq!(stripped(&format!("{blanks}{}", "<memory/>".repeat(1 << 16))), INJECTED_NOTE);
        let nested = format!("{}{}", "<memory>".repeat(1 << 16), "</memory>".repeat(1 << 16));
        assert_eq!(stripped(&nested), INJECTED_NOTE);
    }
}
