//! The options of `lcm ingest`; doc comments are their help texts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lcm_host::session_files;

use super::{AppendMode, Dialect};

#[derive(Args, Clone, Debug)]
pub(crate) struct Ingest {
    /// Dialect of the messages: lcm, anthropic, openai-chat, openai-responses, gemini, ai-sdk,
    /// openclaw, langchain, openai-agents, or auto, which detects the dialect and also reads
    /// session files of agents and exports of chats
    #[arg(long, value_name = "D", default_value = "lcm")]
    pub(crate) dialect: Dialect,
    /// Follow one file while it grows and when it is rotated, until interrupted; print one result
    /// for each change
    #[arg(long, conflicts_with = "append_mode")]
    pub(crate) tail: bool,
    /// Treatment of stored messages: transcript skips them; new stores every message unless its id
    /// or event key is stored
    #[arg(long, value_enum, default_value = "transcript")]
    pub(crate) append_mode: AppendMode,
    /// Store nothing when the messages look like a replay
    #[arg(long)]
    pub(crate) refuse_replay: bool,
    /// System prompt that the messages do not have
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Key of the family that the conversation belongs to or joins
    #[arg(long, value_name = "KEY")]
    pub(crate) family: Option<String>,
    /// Read plain text; each paragraph becomes a message of this author
    #[arg(long = "as", value_name = "AUTHOR", value_enum, conflicts_with = "dialect")]
    pub(crate) author: Option<Author>,
    /// Read only files of a folder that were changed since this date (2026-01-31), this time in UTC
    /// (2026-01-31T12:00), or in the last days (7d)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Print the conversations that would be stored, and store nothing
    #[arg(long, conflicts_with = "tail")]
    pub(crate) dry_run: bool,
    /// Files with one message per line, or with --dialect auto session files, exports and folders;
    /// - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) files: Vec<PathBuf>,
}

/// Author of a plain text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Author {
    User,
    Assistant,
    System,
}

impl From<Author> for session_files::Author {
    fn from(author: Author) -> Self {
        match author {
            Author::User => Self::User,
            Author::Assistant => Self::Assistant,
            Author::System => Self::System,
        }
    }
}
