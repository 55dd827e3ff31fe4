//! Reads Markdown histories of aider.
//!
//! In: lines: `# aider chat started at TIME` begins a session, `####` is a line of the person, `>`
//! a line of the program, and all others are the answer of the model. Out: one conversation for
//! each session, with messages of `lcm`. Lines of the program are context that the person saw, and
//! become user messages with the mark `console`.
//!
//! The time of a session has no time zone and is no time of a message, so messages are undated.

use super::{
    Growth, SessionContent,
    records::{self, Collector, Draft},
};

const START: &str = "# aider chat started at ";

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
    let mut is_fenced = false;
    for (index, line) in lines {
        let prefixed = match (line.strip_prefix("#### "), line.strip_prefix('>')) {
            (Some(text), _) if !is_fenced => Some((LineAuthor::Person, text)),
            (None, _) if *line == "####" && !is_fenced => Some((LineAuthor::Person, "")),
            (None, Some(text)) if !is_fenced => Some((LineAuthor::Program, text.trim_start())),
            _ => None,
        };
        // A blank line ends neither an answer nor a prompt of several lines.
        let is_blank = line.trim().is_empty();
        let (next, text) = match prefixed {
            Some(prefixed) => prefixed,
            None if is_blank => (author, ""),
            None => (LineAuthor::Model, *line),
        };
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
