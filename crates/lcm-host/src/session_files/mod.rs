//! Reads session files of agent programs, with one JSON object per line.
//!
//! In: the lines of one file. Out: its messages in order and their dialect, which is `auto` if they
//! have several, with warnings that count skipped lines. An ingest of the messages follows; this
//! module reads no store.
//!
//! Each message of a session file gets the entry id and, if its line has a time, the time of the
//! line. Files in the format *messages* are passed on unchanged.
//!
//! | format | messages | dialect | entry id |
//! |---|---|---|---|
//! | Claude Code | `user` and `assistant` lines with `message` | `anthropic` | `uuid` |
//! | Codex | `response_item` lines, in early files bare items | `lcm` | session id, `/`, item id |
//! | `OpenClaw` | `message` and `custom_message` entries | `lcm` | session id, `/`, entry id |
//! | messages | every line | its own | id of the message |
//!
//! **Kept content.** The whole content of a message is kept.
//!
//! - A Claude Code message keeps every member as written. Its own `id` is renamed to `message_id`,
//!   and its own `timestamp` to `message_timestamp` if the line has a time. Marks of the line, such
//!   as `isMeta`, are added. If the message already has a member of such a name, `_` is appended to
//!   the new name.
//! - Parts of Codex and OpenClaw messages get the types and names of the dialect `lcm`, and keep
//!   their other members. `source` of a message has the members for which the dialect has no name.
//! - Other members of a line are not kept, such as renderings of a result for a screen.
//! - Warnings count the lines without a message, by type.
//!
//! **Entry ids** stay the same when a file grows.
//!
//! - The id of a line without an id is `line:` and 16 hex digits of its SHA-256. A second equal
//!   line has `#2` at its end, a third `#3`. So the id does not depend on the position.
//! - If a file has an id again with other content, `#` and a hash of the content are appended.
//! - If a program rewrites a line under the same id after an ingest, the line counts as stored. The
//!   next ingest does not store the new content.
//! - Ids of Codex and OpenClaw are unique only within a session, so the session id is their prefix.
//!
//! **Branches.** Of a session tree only the live branch is read, see `tree`. Stored messages stay
//! stored when their branch is abandoned later.
//!
//! **Summaries** that the program made of earlier messages are skipped, because those messages are
//! read. A summary before all messages of a file is kept, because the file lacks its messages.

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
    /// One message per line, of this dialect; `auto`: of several dialects.
    Messages(Dialect),
}

/// One message of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileMessage {
    /// Text of the message in [`SessionFile::dialect`].
    pub text: String,
    /// Index of the message's line in the lines given to [`read`], from 0.
    pub line: usize,
}

/// Content of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionFile {
    /// Detected format; `None`: the file has no lines, or its lines fit several formats so far.
    /// There are then no messages.
    pub format: Option<Format>,
    /// Dialect of the messages; `lcm` without a format.
    pub dialect: Dialect,
    /// Messages, in order.
    pub messages: Vec<FileMessage>,
    /// Warnings about skipped lines and renamed ids, one line each.
    pub warnings: Vec<String>,
}

/// The error of a file that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct LineError {
    /// Index of the line at fault in the lines given to [`read`], from 0; `None`: the whole file.
    pub line: Option<usize>,
    /// Text to print after the name of the line or file, such as `must be a JSON object`.
    pub reason: String,
}

impl LineError {
    fn at(line: usize, reason: impl Into<String>) -> Self {
        Self { line: Some(line), reason: reason.into() }
    }
}

/// The messages and warnings that the reader of one format returns.
struct Found {
    messages: Vec<FileMessage>,
    warnings: Vec<String>,
}

/// Detects the format of a file and reads its messages. `lines` must not contain blank lines.
///
/// # Errors
///
/// - A line is not a JSON object, or lacks a member of its format.
/// - A line fits no known format, or no format of all preceding lines. Messages of different
///   dialects are no error.
/// - The lines fit several formats, in which their meaning differs.
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
    /// Returns the name of the format for people, such as `a Codex session`.
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
            Self::Messages(Dialect::Auto) => "messages of several dialects",
        }
    }
}

#[cfg(test)]
mod tests;
