//! Reads Markdown histories of aider. Read from aider 0.86.2 (`io.py`), 2026-11-28.
//!
//! In: lines: `# aider chat started at TIME` begins a session, `#### ` is a line of the person,
//! `> ` a line of the program, and all others are the answer of the model, kept as written.
//! Out: one conversation for each session, with messages of `lcm`. Lines of the program are context
//! that the person saw, and become user messages with the mark `console`.
//!
//! The program ends lines of the person and its own lines with two spaces, and writes an answer as
//! the model gave it. So if one line of a person has this end, only lines with this end are of the
//! person or the program. Otherwise an editor removed the spaces: every `#### ` line is of the
//! person, and a `> ` line is of the program if it begins as the program's lines do, or stands
//! before the answer. An answer that was interrupted may leave its code fence open; a line of the
//! person closes it.
//!
//! The time of a session has no time zone and is no time of a message, so messages are undated.

use super::{
    Growth, SessionContent,
    records::{self, Collector, Draft},
};

const START: &str = "# aider chat started at ";
/// Form of the date and time behind it; `0` is any digit.
const TIME_FORM: &str = "0000-00-00 00:00:00";
/// End of lines of the person and of the program.
const LINE_END: &str = "  ";

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
    text.lines().any(|line| read_start(line).is_some())
}

/// Returns the time at which a session began; `None`: the line begins none.
fn read_start(line: &str) -> Option<&str> {
    let time = line.strip_prefix(START)?.trim();
    let form = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
    (form.eq(TIME_FORM.chars())).then_some(time)
}

/// Returns whether lines of the person have the end that the program gives them.
fn has_line_ends(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("#### ") && line.ends_with(LINE_END))
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
        if let Some(time) = read_start(line) {
            sessions.push((Some(time), Vec::new()));
        } else if sessions.is_empty() {
            sessions.push((None, Vec::from([(index, line)])));
        } else if let Some((_, lines)) = sessions.last_mut() {
            lines.push((index, line));
        }
    }
    let last = sessions.len();
    let has_ends = has_line_ends(text);
    let sessions = sessions.into_iter().enumerate().map(|(index, (time, lines))| {
        let growth = if index + 1 < last { Growth::Ended } else { growth };
        read_session(time, &lines, has_ends, growth)
    });
    sessions.filter(|found| !found.messages.is_empty()).collect()
}

/// Reads a session. `has_ends`: lines of the person and of the program end with two spaces.
fn read_session(
    time: Option<&str>,
    lines: &[(usize, &str)],
    has_ends: bool,
    growth: Growth,
) -> SessionContent {
    let mut out = Collector::default();
    let session = time.map(|time| format!("aider {time}"));
    out.ids.enter_session(session.as_deref().unwrap_or_default());
    out.set_session(session, None);
    let mut run: Vec<&str> = Vec::new();
    let (mut author, mut first) = (LineAuthor::Model, 0);
    let (mut is_fenced, mut is_answered) = (false, false);
    for (index, line) in lines {
        let prefixed = match has_ends && !line.ends_with(LINE_END) {
            true => None,
            false => read_prefix(line, has_ends, is_fenced, is_answered),
        };
        // A blank line ends neither an answer nor a prompt of several lines.
        let is_blank = line.trim().is_empty();
        let (next, text) = match prefixed {
            Some(prefixed) => prefixed,
            None if is_blank => (author, *line),
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
        run.push(match author {
            LineAuthor::Model => text,
            LineAuthor::Person | LineAuthor::Program => text.strip_suffix(LINE_END).unwrap_or(text),
        });
    }
    if growth == Growth::Ended {
        push_message(&mut out, author, first, &run);
    }
    out.into_content()
}

/// Returns the author and the text of a line with a prefix; `None`: the line has none, or is part
/// of an answer. `has_ends`: the line has the end of the program's lines, as lines of the person in
/// this file do. `is_answered`: the answer to the last prompt has begun.
fn read_prefix(
    line: &str,
    has_ends: bool,
    is_fenced: bool,
    is_answered: bool,
) -> Option<(LineAuthor, &str)> {
    let behind = |prefix| line.strip_prefix(prefix).filter(|it: &&str| is_blank_first(it));
    if let Some(text) = behind("####") {
        return Some((LineAuthor::Person, text.strip_prefix(' ').unwrap_or(text)));
    }
    let text = behind(">")?.trim_start();
    let is_of_program = has_ends
        || !is_answered
        || PROGRAM.iter().any(|begin| text.starts_with(begin))
        || (line.ends_with("  ") && !is_fenced);
    is_of_program.then_some((LineAuthor::Program, text))
}

/// Returns whether a text behind a prefix is empty or begins with a space.
fn is_blank_first(text: &str) -> bool {
    text.is_empty() || text.starts_with(' ')
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_files::line::Object;

    /// Roles and texts of the messages of each session; the role of a line of the program is
    /// `console`.
    fn read_texts(text: &str) -> Vec<Vec<(String, String)>> {
        let describe = |text: &str| {
            let message = Object::read(text).unwrap();
            let part = message.list("parts").unwrap()[0];
            let said = Object::from_value(part).unwrap().text("text").unwrap();
            let role =
                if message.has("source") { "console" } else { &message.text("role").unwrap() };
            (role.to_owned(), said)
        };
        let sessions = read(text, Growth::Ended);
        let of = |found: &SessionContent| {
            found.messages.iter().map(|message| describe(&message.text)).collect()
        };
        sessions.iter().map(of).collect()
    }

    fn owned_pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
    }

    const ANSWER: &str = "README.md\n````markdown\n<<<<<<< SEARCH\n# Title\n=======\n\
        #### Install\n   \n> Note: needs Node 20\nA line  \n>>>>>>> REPLACE\n````\n\n\
        #### What I changed\n\n# aider chat started at noon\n\n> Add nothing";

    #[test]
    fn the_answer_of_a_model_is_kept_as_written() {
        let text = format!(
            "# aider chat started at 2025-07-20 22:15:06\n\n> Aider v0.86.2  \n\n\
             #### write  \n#### the readme  \n\n{ANSWER}\n\n> Tokens: 11k sent  \n\
             > Applied edit to README.md  \n\n#### > thanks  \n\nYou are welcome.\n"
        );
        let expected = [
            ("console", "Aider v0.86.2"),
            ("user", "write\nthe readme"),
            ("assistant", ANSWER),
            ("console", "Tokens: 11k sent\nApplied edit to README.md"),
            ("user", "> thanks"),
            ("assistant", "You are welcome."),
        ];
        assert_eq!(read_texts(&text), [owned_pairs(&expected)]);
    }

    #[test]
    fn without_spaces_at_the_end_a_mark_of_an_edit_is_kept() {
        let text = "# aider chat started at 2025-07-20 22:15:06\n\n#### write\n\n\
            >>>>>>> REPLACE\n\n> Tokens: 11k sent\n";
        let expected =
            [("user", "write"), ("assistant", ">>>>>>> REPLACE"), ("console", "Tokens: 11k sent")];
        assert_eq!(read_texts(text), [owned_pairs(&expected)]);
    }

    #[test]
    fn only_a_date_and_time_begins_a_session() {
        for time in ["", "noon", "2025-07-20", "2025-07-20 22:15", "2025-07-20 22:15:06 UTC"] {
            assert!(!is_history(&format!("{START}{time}\n")), "{time}");
        }
        assert!(is_history("x\n\n# aider chat started at 2025-07-20 22:15:06\n"));
    }
}
