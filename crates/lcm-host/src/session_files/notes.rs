//! Reads plain text, such as notes of a person.
//!
//! In: a text and the role of its author. Out: one message of `lcm` for each paragraph; a blank
//! line inside a code block ends none. Messages are undated.

use super::{
    Format, Growth, LineError, SessionFile, damage,
    records::{self, Collector, Draft},
};

/// Role of the author of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Author {
    /// A person.
    User,
    /// A model.
    Assistant,
    /// Instructions.
    System,
}

/// Reads the paragraphs of a text as messages of one author. The last paragraph of a growing file
/// is not read before a blank line ends it.
///
/// # Errors
///
/// The text has a NUL byte, so it is no text.
pub fn read_notes(bytes: &[u8], author: Author, growth: Growth) -> Result<SessionFile, LineError> {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') {
        return Err(LineError::for_file("must be a text, got a NUL byte"));
    }
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    let role = match author {
        Author::User => "user",
        Author::Assistant => "assistant",
        Author::System => "system",
    };
    let mut out = Collector::default();
    let mut paragraph: Vec<&str> = Vec::new();
    let (mut first, mut is_fenced) = (0, false);
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() && !is_fenced {
            push_paragraph(&mut out, role, first, &paragraph);
            paragraph.clear();
            continue;
        }
        if paragraph.is_empty() {
            first = index;
        }
        is_fenced ^= line.trim_start().starts_with("```");
        paragraph.push(line);
    }
    if growth == Growth::Ended {
        push_paragraph(&mut out, role, first, &paragraph);
    }
    Ok(SessionFile::new(Format::Notes, out.into_content()))
}

fn push_paragraph(out: &mut Collector, role: &'static str, index: usize, paragraph: &[&str]) {
    let text = paragraph.join("\n");
    if !text.trim().is_empty() {
        let draft = Draft::new(role).with_parts(Vec::from([records::text_part(&text)]));
        out.push(index, &text, &draft);
    }
}

/// Returns the text of the lines of a source, for a Markdown history.
pub(super) fn join_lines(source: &damage::SourceLines) -> String {
    let mut text = String::new();
    let mut next = 0;
    for (index, line) in source.lines() {
        while next < *index {
            text.push('\n');
            next += 1;
        }
        text.push_str(line);
        text.push('\n');
        next += 1;
    }
    text
}
