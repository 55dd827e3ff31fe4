//! Reads session files of agent programs, exports of chats, and files of messages.
//!
//! In: the bytes of one file. Out: its conversations, each with its messages in order and their
//! dialect, which is `auto` if they have several, and warnings that count skipped lines. An ingest
//! of the messages follows; this module reads no store.
//!
//! Each message of a session file gets an entry id and, if the file has its time, that time. A time
//! that the file does not have is not invented. Messages of a provider's dialect are passed on
//! unchanged.
//!
//! | format | messages | dialect | entry id |
//! |---|---|---|---|
//! | Claude Code | `user` and `assistant` lines, attachments, prompts | `anthropic` | `uuid` |
//! | Codex | `response_item` lines, items, events without an item | `lcm` | session, `/`, item id |
//! | `OpenClaw` | `message` and `custom_message` entries | `openclaw` | session, `/`, entry id |
//! | Kimi, Hermes | lines with a role | `openai-chat` | hash of the line |
//! | other agents, exports | of persons, models, tools | `lcm` | id of the record |
//! | messages | every line | its own | id of the message |
//!
//! **Kept content.** The whole content of a message is kept.
//!
//! - A Claude Code message keeps every member as written. Its own `id` is renamed to `message_id`,
//!   and its own `timestamp` to `message_timestamp` if the line has a time. Marks of the line, such
//!   as `isMeta`, are added. If the message already has a member of such a name, `_` is appended to
//!   the new name.
//! - Parts of Codex messages get the types and names of the dialect `lcm`, and keep their other
//!   members. `source` of a message has the members for which the dialect has no name.
//! - Messages of `OpenClaw` keep every member as written, and get the id of their entry; one with
//!   an `id` of its own keeps it as `message_id`.
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
//! **Branches.** The messages of a session tree that are not on its live branch, and turns that
//! were rolled back, are [`Branch`]es: an ingest stores them and sets them aside.
//!
//! **Damaged lines** are skipped and named in a warning. A whole record behind the torn beginning
//! of another one is read, see `damage`.
//!
//! **Summaries** that the program made of earlier messages are skipped, because those messages are
//! read. A summary before all messages of a file is kept, because the file lacks its messages.

mod agent_chat;
mod aider;
mod answers;
mod antigravity;
mod attachments;
mod claude_code;
mod codex;
mod codex_events;
mod codex_exec;
mod copilot;
mod damage;
mod detect;
mod document;
mod dropped;
mod entries;
mod exports;
mod folder;
mod folder_names;
mod follow;
mod formats;
mod frameworks;
mod gemini_cli;
mod line;
mod notes;
mod open_claw;
mod open_code;
mod queue;
mod records;
mod share_gpt;
mod tree;

pub use dropped::{DroppedCounts, is_whole_line};
pub use folder::{FolderEntry, FolderSession, parse_since, visit_folders};
pub use follow::{Follower, Reading};
pub use formats::Format;
pub use notes::{Author, read_notes};

use line::Object;

use crate::bindings::types::Dialect;

/// One message of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileMessage {
    /// Text of the message in [`SessionFile::dialect`].
    pub text: String,
    /// Index of the message's line in the file, from 0; of a file that is one document, the index
    /// of its record.
    pub line: usize,
}

/// Messages of a file that its live conversation does not have: an abandoned branch, or turns that
/// were rolled back. An ingest stores and sets aside these messages.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Branch {
    /// Entry id of the message that the branch follows; `None`: the branch begins a conversation.
    pub after: Option<String>,
    /// Messages of the branch, in order; at least one.
    pub messages: Vec<FileMessage>,
}

/// Returns the number of messages of branches.
pub(crate) fn count_aside(branches: &[Branch]) -> usize {
    branches.iter().map(|branch| branch.messages.len()).sum()
}

/// One conversation of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionFile {
    /// Detected format; `None`: the file has no lines, or its lines fit several formats so far.
    /// There are then no messages.
    pub format: Option<Format>,
    /// Dialect of the messages; `lcm` without a format.
    pub dialect: Dialect,
    /// Messages of the live conversation, in order.
    pub messages: Vec<FileMessage>,
    /// Branches that the conversation did not continue, in the order of their first lines.
    pub branches: Vec<Branch>,
    /// Id that the program gave the session; `None`: the file has none.
    pub session: Option<String>,
    /// Folder in which the session worked, or the name that the program gave the folder's project;
    /// `None`: the file has none.
    pub project: Option<String>,
    /// Warnings about skipped lines and renamed ids, one line each.
    pub warnings: Vec<String>,
}

impl SessionFile {
    /// Returns the number of all messages, with those of branches.
    #[must_use]
    pub fn count_messages(&self) -> usize {
        self.messages.len() + count_aside(&self.branches)
    }
}

/// The error of a file that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct LineError {
    /// Index of the line at fault in the file, from 0; `None`: the whole file.
    pub line: Option<usize>,
    /// Text to print after the name of the line or file, such as `must be a JSON object`.
    pub reason: String,
}

impl LineError {
    fn at(line: usize, reason: impl Into<String>) -> Self {
        Self { line: Some(line), reason: reason.into() }
    }

    fn for_file(reason: impl Into<String>) -> Self {
        Self { line: None, reason: reason.into() }
    }
}

/// Content of one conversation, as the reader of a format returns it.
#[derive(Default)]
struct SessionContent {
    messages: Vec<FileMessage>,
    branches: Vec<Branch>,
    session: Option<String>,
    project: Option<String>,
    warnings: Vec<String>,
}

/// Whether a program may still write to a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Growth {
    /// The file is as its program left it.
    Ended,
    /// The last line may be incomplete: unless it is a whole JSON object, it is not read.
    Growing,
}

/// Reads all conversations of a file: JSON lines, one JSON document, or a Markdown history.
///
/// # Errors
///
/// Errors of [`read`]; a document that is no known export and has no list of messages. The reason
/// names the formats that were compared.
pub fn read_bytes(bytes: &[u8], growth: Growth) -> Result<Vec<SessionFile>, LineError> {
    let mut source = damage::split_lines(bytes, growth);
    let dropped = source.dropped_warnings();
    let is_blank = source.lines().is_empty();
    let mut files = match document::read(&source, growth)? {
        Some(files) => files,
        None => read_records(source.take_lines(), growth)?,
    };
    require_messages(is_blank, &mut files, growth)?;
    // In a Markdown history blank lines have a meaning.
    let first = files.first_mut().filter(|file| file.format != Some(Format::Aider));
    first.into_iter().for_each(|file| drop(file.warnings.splice(0..0, dropped.clone())));
    Ok(files)
}

/// Requires that a file that has ended has messages, and warns of each conversation without any.
///
/// # Errors
///
/// The file has records, and none of them was understood as a message.
fn require_messages(
    is_blank: bool,
    files: &mut [SessionFile],
    growth: Growth,
) -> Result<(), LineError> {
    let is_empty = |file: &SessionFile| file.format.is_some() && file.count_messages() == 0;
    if growth == Growth::Growing || is_blank {
        return Ok(());
    }
    if !files.is_empty() && files.iter().all(is_empty) {
        let format = files.iter().find_map(|file| file.format).map_or("", Format::name);
        let left: Vec<&str> =
            files.iter().flat_map(|file| &file.warnings).map(String::as_str).collect();
        let left = if left.is_empty() { String::new() } else { format!("; {}", left.join("; ")) };
        let reason = format!(
            "is {format}, but no message was understood in it{left}; the formats of files are {}",
            formats::list_names()
        );
        return Err(LineError::for_file(reason));
    }
    for file in files.iter_mut().filter(|file| is_empty(file)) {
        file.warnings.push("has no message that was understood".to_owned());
    }
    Ok(())
}

/// Reads the messages of lines: the first of their conversations. `lines` must not contain blank
/// lines.
///
/// # Errors
///
/// - No line is a JSON object, or an object lacks a member of its format.
/// - A line fits no known format, or no format of all preceding lines. Messages of different
///   dialects are no error.
/// - The lines fit several formats, in which their meaning differs.
pub fn read(lines: Vec<String>) -> Result<SessionFile, LineError> {
    let files = read_records(lines.into_iter().enumerate().collect(), Growth::Growing)?;
    Ok(files.into_iter().next().unwrap_or_else(|| SessionFile::without_format(Vec::new())))
}

/// Reads the conversations of lines, each line with its index in the file; at least one.
fn read_records(
    lines: Vec<(usize, String)>,
    growth: Growth,
) -> Result<Vec<SessionFile>, LineError> {
    let (places, lines, mut warnings) = damage::take_whole(lines)?;
    let mut objects = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        objects.push(Object::read(line).map_err(|reason| LineError::at(index, reason))?);
    }
    let at = |index: usize| places.get(index).copied().unwrap_or(index);
    let named = |error: LineError| LineError { line: error.line.map(at), ..error };
    let format = match formats::detect_format(&objects) {
        Some(format) => Some(format),
        None => detect::intersect_formats(&objects).map_err(named)?,
    };
    let Some(format) = format else {
        if growth == Growth::Ended && !lines.is_empty() {
            let first = objects.first().map(describe_record).unwrap_or_default();
            let reason = format!(
                "must have one of the formats {}; got a record {first}",
                formats::list_names()
            );
            return Err(named(LineError::at(0, reason)));
        }
        return Ok(Vec::from([SessionFile::without_format(warnings)]));
    };
    let found = match format {
        Format::Messages(_) => {
            drop(objects);
            let of_line = |(line, text)| FileMessage { text, line };
            let messages = lines.into_iter().enumerate().map(of_line).collect();
            Vec::from([SessionContent { messages, ..SessionContent::default() }])
        }
        _ => formats::read(format, &lines, &objects, growth).map_err(named)?,
    };
    let finish = |mut found: SessionContent| {
        let branches = found.branches.iter_mut().flat_map(|branch| &mut branch.messages);
        let messages = found.messages.iter_mut().chain(branches);
        messages.for_each(|message| message.line = at(message.line));
        // Damaged lines are named once, with the first conversation.
        found.warnings.splice(0..0, std::mem::take(&mut warnings));
        SessionFile::new(format, found)
    };
    Ok(found.into_iter().map(finish).collect())
}

/// Describes the first record of a file for an error.
fn describe_record(object: &Object<'_>) -> String {
    let kind = object.text("type").map(|kind| {
        format!("of the type `{}` ", line::cut_text(&kind, line::SHOWN_CHARACTERS_MAX))
    });
    format!("{}with {}", kind.unwrap_or_default(), object.names())
}

impl SessionFile {
    fn without_format(warnings: Vec<String>) -> Self {
        let found = SessionContent { warnings, ..SessionContent::default() };
        Self { format: None, ..Self::new(Format::Messages(Dialect::Lcm), found) }
    }

    fn new(format: Format, found: SessionContent) -> Self {
        let SessionContent { messages, branches, session, project, warnings } = found;
        let (dialect, format) = (format.dialect(), Some(format));
        Self { format, dialect, messages, branches, session, project, warnings }
    }
}

#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod tests;
