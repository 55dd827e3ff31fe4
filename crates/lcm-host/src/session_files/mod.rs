//! Reads session files of agent programs, with one JSON object per line.
//!
//! In: the lines of one file. Out: its messages in order, each as text of one dialect with an entry
//! id and a time, and counts of skipped lines. The component recognises stored messages; this
//! module reads no store.
//!
//! | format | messages | dialect | entry id |
//! |---|---|---|---|
//! | Claude Code | `user` and `assistant` lines with `message` | `anthropic` | `uuid` |
//! | Codex | `response_item` lines, in early files bare items | `lcm` | `id` of the item |
//! | `OpenClaw` | `message` and `custom_message` entries | `lcm` | session id, `/`, entry id |
//! | messages | every line | its own | id of the message |
//!
//! **Kept content.** The whole content of a message is kept.
//!
//! - A Claude Code message keeps every member as written. Its id becomes `message_id`, and its time
//!   `message_timestamp` if the line has a time. A member that exists already gets `_` at its end,
//!   also for the marks of a line.
//! - Parts of Codex and OpenClaw messages are renamed to those of the dialect `lcm`, with all
//!   fields.
//!   `source` holds fields without a name in the dialect, as written.
//! - The envelope of a line, and second renderings of a result for a screen, are not kept.
//! - The warnings count every line without a message, by type.
//!
//! **Entry ids** stay the same when a file grows.
//!
//! - The id of a line without an id is `line:` and 16 hex digits of its SHA-256, with `#2` for an
//!   equal second line. So the id does not depend on the position.
//! - A repeated id with other content gets `#` and the hash of the content.
//! - A line that was rewritten under its own id after the ingest counts as the stored line.
//! - Ids of Codex and OpenClaw are unique only within a session, so the session id is their prefix.
//!
//! **Branches.** The live branch of a session tree is read, see `tree`. Stored messages stay when
//! their branch is abandoned later.
//!
//! **Summaries** that the program made of its own messages are skipped, because the messages are
//! read. A summary at the beginning of a file is kept, because its messages are missing.

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

/// The format of a session file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// A session of Claude Code.
    ClaudeCode,
    /// A rollout of the Codex CLI.
    Codex,
    /// A session of `OpenClaw`, in the format of the pi agent.
    OpenClaw,
    /// One message of this dialect per line.
    Messages(Dialect),
}

/// One message of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileMessage {
    /// Text of the message in the dialect of the file.
    pub text: String,
    /// Index of its line, from 0.
    pub line: usize,
}

/// Content of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionFile {
    /// Detected format; `None`: unknown, without messages.
    pub format: Option<Format>,
    /// Dialect of the messages.
    pub dialect: Dialect,
    /// Messages, in order.
    pub messages: Vec<FileMessage>,
    /// Warnings about skipped lines, one line each.
    pub warnings: Vec<String>,
}

/// Error of a line or file.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct LineError {
    /// Index of the line at fault, from 0; `None`: the whole file.
    pub line: Option<usize>,
    /// Predicate that follows the name of the line or file.
    pub reason: String,
}

impl LineError {
    fn at(line: usize, reason: impl Into<String>) -> Self {
        Self { line: Some(line), reason: reason.into() }
    }
}

/// Result of a reader.
struct Found {
    messages: Vec<FileMessage>,
    warnings: Vec<String>,
}

/// Detects the format of a file and reads its messages. `lines` has no blank lines.
///
/// # Errors
///
/// The first line that is not a JSON object, fits no known format, or does not fit the preceding
/// lines; or lines that would mean different things in several formats.
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
    /// Returns the name for people.
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
