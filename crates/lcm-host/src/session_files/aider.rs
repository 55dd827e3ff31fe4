//! Reads Markdown histories of aider.
//!
//! In: lines: `# aider chat started at TIME` begins a session, `####` is a line of the person, `>`
//! a line of the program or a quotation of the model, and all others are the answer of the model.
//! Out: one conversation for each session, with messages of `lcm`. Lines of the program are context
//! that the person saw, and become user messages with the mark `console`.
//!
//! The program ends its lines with two spaces, unless an editor removed them. So a `>` line is of
//! the program if it has this end, begins as the program's lines do, or stands before the answer.
//! An answer that was interrupted may leave its code fence open; a line of the person closes it.
//!
//! The time of a session has no time zone and is no time of a message, so messages are undated.

use super::{
    Growth, SessionContent,
    records::{self, Collector, Draft},
};

const START: &str = "# aider chat started at ";

/// Beginnings of lines of the program that may follow an answer.
const PROGRAM: [&str; 16] = [
    "^C",
    "Add ",
    "Added ",
    "Allow ",
    "Applied edit",
    "Attempt",
    "Commit ",
    "Cost:",
    "Create new file",
    "Did not apply",
    "Edit the files",
    "Fix ",
    "Only ",
    "Repo-map",
    "Run",
    "Tokens:",
];

/// Returns whether a file is a history of aider.
pub(super) fn is_history(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(START))
}

/// Lines, each with its index in the file.
type IndexedLines<'a> = Vec<(usize, &'a str)>;

/// Author of consecutive lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LineAuthor {
    Person,
    Model,
    Program,
}

/// Reads the sessions of a history. Lines before the first session are one, too. The last message
/// of a growing file is not read, because its next line may belong to it.
pub(super) fn read(text: &str, growth: Growth) -> Vec<SessionContent> {
    let mut sessions: Vec<(Option<&str>, IndexedLines<'_>)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(time) = line.strip_prefix(START) {
            sessions.push((Some(time.trim()), Vec::new()));
        } else if sessions.is_empty() {
            sessions.push((None, Vec::from([(index, line)])));
        } else if let Some((_, lines)) = sessions.last_mut() {
            lines.push((index, line));
        }
    }
    let last = sessions.len();
    let sessions = sessions.into_iter().enumerate().map(|(index, (time, lines))| {
        let growth = if index + 1 < last { Growth::Ended } else { growth };
        read_session(time, &lines, growth)
    });
    sessions.filter(|found| !found.messages.is_empty()).collect()
}

fn read_session(time: Option<&str>, lines: &[(usize, &str)], growth: Growth) -> SessionContent {
    let mut out = Collector::default();
    let session = time.map(|time| format!("aider {time}"));
    out.ids.enter_session(session.as_deref().unwrap_or_default());
    out.set_session(session, None);
    let mut run: Vec<&str> = Vec::new();
    let (mut author, mut first) = (LineAuthor::Model, 0);
    let (mut is_fenced, mut is_answered) = (false, false);
    for (index, line) in lines {
        let prefixed = read_prefix(line, is_fenced, is_answered);
        // A blank line ends neither an answer nor a prompt of several lines.
        let is_blank = line.trim().is_empty();
        let (next, text) = match prefixed {
            Some(prefixed) => prefixed,
            None if is_blank => (author, ""),
            None => (LineAuthor::Model, *line),
        };
        match next {
            LineAuthor::Person => (is_fenced, is_answered) = (false, false),
            LineAuthor::Program => is_fenced = false,
            LineAuthor::Model => is_answered |= !is_blank,
        }
        if line.trim_start().starts_with("```") && next == LineAuthor::Model {
            is_fenced = !is_fenced;
        }
        if next != author {
            push_message(&mut out, author, first, &run);
            (author, first) = (next, *index);
            run.clear();
        }
        if run.is_empty() {
            first = *index;
        }
        run.push(text.strip_suffix("  ").unwrap_or(text));
    }
    if growth == Growth::Ended {
        push_message(&mut out, author, first, &run);
    }
    out.into_content()
}

/// Returns the author and the text of a line with a prefix; `None`: the line has none, or is part
/// of an answer. `is_answered`: the answer to the last prompt has begun.
fn read_prefix(line: &str, is_fenced: bool, is_answered: bool) -> Option<(LineAuthor, &str)> {
    if let Some(text) = line.strip_prefix("####").filter(|it| it.is_empty() || it.starts_with(' '))
    {
        return Some((LineAuthor::Person, text.strip_prefix(' ').unwrap_or(text)));
    }
    let text = line.strip_prefix('>')?.trim_start();
    let is_of_program = !is_answered
        || PROGRAM.iter().any(|begin| text.starts_with(begin))
        || (line.ends_with("  ") && !is_fenced);
    is_of_program.then_some((LineAuthor::Program, text))
}

fn push_message(out: &mut Collector, author: LineAuthor, index: usize, run: &[&str]) {
    let text = run.join("\n");
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    let role = if author == LineAuthor::Model { "assistant" } else { "user" };
    let mut draft = Draft::new(role).with_parts(Vec::from([records::text_part(text)]));
    if author == LineAuthor::Program {
        r#"{"console":true}"#.clone_into(&mut draft.source);
    }
    out.push(index, &format!("{role} {text}"), &draft);
}
