//! Reads session files: what agent programs write while they run, one JSON object a line.
//!
//! In: the lines of one file. Out: its messages in order, each as the text of one dialect with an
//! entry id and a time, and what was not taken. Which of them are stored already is the component's
//! decision; nothing here looks into a store.
//!
//! | form | messages are | dialect | entry id |
//! |---|---|---|---|
//! | Claude Code | `user` and `assistant` lines with `message` | `anthropic` | `uuid` |
//! | Codex | `response_item` lines, in early files bare items | `lcm` | `id` of the item |
//! | `OpenClaw` | `message` and `custom_message` entries | `lcm` | session id, `/`, entry id |
//! | messages | every line | its own | what the message has |
//!
//! **What is kept.** Of a message everything that the program or the model said: a Claude Code
//! message member by member as it is written, its own id as `message_id` and its own time, if the
//! line has one, as `message_timestamp` (with `_` behind it where the message has that, too, which
//! goes for the marks of a line as well); of the other two, parts
//! are renamed to those of the dialect `lcm` with all their fields, and what the dialect has no
//! name for stands as it is written under `source`. Not kept is the envelope of the line, which
//! speaks of the program and the machine, and second renderings of the same result for a screen.
//! No line is passed over in silence: what is no message is counted in the warnings, by its type.
//!
//! **Entry ids** stay the same when a file grows. A line without an id of its own gets one from its
//! bytes, `line:` and 16 hex digits of their SHA-256, and `#2` if the very same line stood before:
//! it does not depend on the place, and a line that was changed is another entry. An id of the file
//! that comes again in it with other content gets `#` and the hash of it, so that nothing
//! hides behind it. A line that was rewritten under its own id after it was stored counts as the
//! stored one. Where ids are told apart by their session only (Codex, OpenClaw), the id of the
//! session stands in front.
//!
//! **Branches.** Of a session tree the live branch is taken, see `tree`. Messages that were live
//! when they were stored stay stored when their branch is abandoned later.
//!
//! **Summaries** that the program made of its own messages are not taken: the messages are. Only a
//! summary with no message before it in its file is, because nothing else tells of what it stands
//! for.

mod claude_code;
mod codex;
mod detect;
mod entries;
mod follow;
mod line;
mod open_claw;
mod tree;

pub use follow::{Follower, Reading};

use line::Object;

use crate::bindings::types::Dialect;

/// What kind of file it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// A session of Claude Code.
    ClaudeCode,
    /// A rollout of the Codex CLI.
    Codex,
    /// A session of `OpenClaw`, which is one of the pi agent.
    OpenClaw,
    /// One message of this dialect a line.
    Messages(Dialect),
}

/// One message of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileMessage {
    /// The message, as the file's dialect has it.
    pub text: String,
    /// Index of its line among those that were read, from 0.
    pub line: usize,
}

/// What a file holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionFile {
    /// What it was found to be; `None`: no line says, and then there are no messages.
    pub format: Option<Format>,
    /// The shape of its messages.
    pub dialect: Dialect,
    /// Its messages in order.
    pub messages: Vec<FileMessage>,
    /// What was not taken and why, each one line.
    pub warnings: Vec<String>,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct LineError {
    /// Index of the line at fault, from 0; `None`: it is the file as a whole.
    pub line: Option<usize>,
    /// What is wrong, to be read after the name of the line or file.
    pub reason: String,
}

impl LineError {
    fn at(line: usize, reason: impl Into<String>) -> Self {
        Self { line: Some(line), reason: reason.into() }
    }
}

/// What one of the readers found.
struct Found {
    messages: Vec<FileMessage>,
    warnings: Vec<String>,
}

/// Finds out by the content of its lines what a file is, and reads its messages. `lines` has no
/// blank lines.
///
/// # Errors
///
/// The first line that is no JSON object, that fits no known form, or that does not fit what the
/// lines before it are; or that the lines fit several forms which would be read differently.
pub fn read(lines: Vec<String>) -> Result<SessionFile, LineError> {
    let mut objects = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        objects.push(Object::read(line).map_err(|reason| LineError::at(index, reason))?);
    }
    let format = detect::format(&objects)?;
    let found = match format {
        Some(Format::ClaudeCode) => claude_code::read(&lines, &objects)?,
        Some(Format::Codex) => codex::read(&lines, &objects)?,
        Some(Format::OpenClaw) => open_claw::read(&lines, &objects)?,
        Some(Format::Messages(_)) => {
            drop(objects);
            let of_line = |(line, text)| FileMessage { text, line };
            let messages = lines.into_iter().enumerate().map(of_line).collect();
            Found { messages, warnings: Vec::new() }
        }
        None => Found { messages: Vec::new(), warnings: Vec::new() },
    };
    let dialect = match format {
        Some(Format::Messages(dialect)) => dialect,
        Some(Format::ClaudeCode) => Dialect::Anthropic,
        Some(Format::Codex | Format::OpenClaw) | None => Dialect::Lcm,
    };
    Ok(SessionFile { format, dialect, messages: found.messages, warnings: found.warnings })
}

impl Format {
    /// Its name in messages for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "a Claude Code session",
            Self::Codex => "a Codex session",
            Self::OpenClaw => "an OpenClaw session",
            Self::Messages(Dialect::Lcm) => "messages of `lcm`",
            Self::Messages(Dialect::Anthropic) => "messages of `anthropic`",
            Self::Messages(Dialect::OpenaiChat) => "messages of `openai-chat`",
            Self::Messages(Dialect::OpenaiResponses) => "items of `openai-responses`",
            Self::Messages(Dialect::Gemini) => "contents of `gemini`",
        }
    }
}

#[cfg(test)]
mod tests;
