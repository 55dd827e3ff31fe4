//! The known formats of files: names, detection by their records, and readers.
//!
//! In: the records of a file. Out: its format, if all records fit a format and one of them is
//! typical of it. Claude Code, Codex, `OpenClaw` and messages share types of lines, so `detect`
//! tells these apart. Exports that are one document are recognised by `document`.

use super::{
    Growth, LineError, SessionContent, agent_chat, antigravity, claude_code, codex, codex_exec,
    copilot, frameworks, gemini_cli, line::Object, open_claw, open_code,
};
use crate::bindings::types::Dialect;

/// Defines the formats with the list of those that one program or library has.
macro_rules! define_formats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The format of a file.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum Format {
            $($(#[$doc])* $name,)*
            /// One message per line, of this dialect; `auto`: of several dialects.
            Messages(Dialect),
        }

        /// All formats but lists of messages.
        const PROGRAM_FORMATS: &[Format] = &[$(Format::$name,)*];
    };
}

define_formats! {
    /// A session of Claude Code, or its output in the format `stream-json`.
    ClaudeCode,
    /// A rollout of the Codex CLI.
    Codex,
    /// Output of `codex exec --json`.
    CodexExec,
    /// A session of `OpenClaw`, of the Pi agent, or of Droid.
    OpenClaw,
    /// A chat of the Gemini CLI, as one document or as lines.
    GeminiCli,
    /// Events of a session of the Copilot CLI.
    CopilotCli,
    /// Messages of opencode with their parts: an export, or its storage.
    OpenCode,
    /// Steps of a trajectory of Antigravity.
    Antigravity,
    /// Messages of Chat Completions with records of an agent between them: Kimi or Hermes.
    AgentChat,
    /// Conversations in the format of `ShareGPT`.
    ShareGpt,
    /// An export of `ChatGPT`.
    ChatGpt,
    /// An export of Claude.ai.
    ClaudeAi,
    /// A Markdown history of aider.
    Aider,
    /// A text of a person or program, one message for each paragraph.
    Notes,
}

/// All dialects. A test compares their number with the interface.
const DIALECTS: [Dialect; 10] = [
    Dialect::Lcm,
    Dialect::Anthropic,
    Dialect::OpenaiChat,
    Dialect::OpenaiResponses,
    Dialect::Gemini,
    Dialect::AiSdk,
    Dialect::Openclaw,
    Dialect::Langchain,
    Dialect::OpenaiAgents,
    Dialect::Auto,
];

/// A format with records that no other format has.
struct RecordFormat {
    format: Format,
    /// Returns how a record fits the format.
    compare: fn(&Object<'_>) -> Fit,
}

/// How a record fits a format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fit {
    /// Only this format has such records.
    Typical,
    /// Other formats may have such records, too.
    Possible,
    /// The format has no such record.
    No,
}

impl Fit {
    /// Returns `Typical` or `No`.
    pub(super) const fn typical_if(is_typical: bool) -> Self {
        if is_typical { Self::Typical } else { Self::No }
    }
}

/// Formats of records, in the order of their comparison.
const RECORD_FORMATS: [RecordFormat; 10] = [
    RecordFormat { format: Format::CodexExec, compare: codex_exec::compare_record },
    RecordFormat { format: Format::CopilotCli, compare: copilot::compare_record },
    RecordFormat { format: Format::Antigravity, compare: antigravity::compare_record },
    RecordFormat { format: Format::GeminiCli, compare: gemini_cli::compare_record },
    RecordFormat { format: Format::OpenCode, compare: open_code::compare_record },
    RecordFormat { format: Format::AgentChat, compare: agent_chat::compare_record },
    framework_row(Dialect::Langchain, frameworks::compare_lang_chain),
    framework_row(Dialect::AiSdk, frameworks::compare_ai_sdk),
    framework_row(Dialect::Openclaw, frameworks::compare_open_claw),
    framework_row(Dialect::OpenaiAgents, frameworks::compare_openai_agents),
];

/// Returns the row of messages that the component reads in a dialect.
const fn framework_row(dialect: Dialect, compare: fn(&Object<'_>) -> Fit) -> RecordFormat {
    RecordFormat { format: Format::Messages(dialect), compare }
}

/// Lists all formats.
pub(super) fn list_formats() -> impl Iterator<Item = Format> {
    PROGRAM_FORMATS.iter().copied().chain(DIALECTS.map(Format::Messages))
}

/// Returns the format that all records fit and of which one is typical; `None`: no such format.
pub(super) fn detect_format(objects: &[Object<'_>]) -> Option<Format> {
    let fits = |row: &&RecordFormat| {
        let mut is_typical = false;
        let all = objects.iter().map(row.compare).all(|fit| {
            is_typical |= fit == Fit::Typical;
            fit != Fit::No
        });
        all && is_typical
    };
    RECORD_FORMATS.iter().find(fits).map(|row| row.format)
}

/// Reads the records of a format that is no list of messages: at least one conversation.
pub(super) fn read(
    format: Format,
    lines: &[String],
    objects: &[Object<'_>],
    growth: Growth,
) -> Result<Vec<SessionContent>, LineError> {
    let content = match format {
        Format::ClaudeCode => claude_code::read(lines, objects, growth)?,
        Format::Codex => codex::read(lines, objects, growth)?,
        Format::OpenClaw => open_claw::read(lines, objects)?,
        Format::CodexExec => return Ok(codex_exec::read(lines, objects)),
        Format::GeminiCli => gemini_cli::read(lines, objects),
        Format::CopilotCli => copilot::read(lines, objects),
        Format::OpenCode => open_code::read(lines, objects),
        Format::Antigravity => antigravity::read(lines, objects),
        Format::AgentChat => agent_chat::read(lines, objects),
        Format::ShareGpt
        | Format::ChatGpt
        | Format::ClaudeAi
        | Format::Aider
        | Format::Notes
        | Format::Messages(_) => {
            return Err(LineError::for_file(format!("must be lines, got {}", format.name())));
        }
    };
    Ok(Vec::from([content]))
}

/// Returns the names of all formats, for an error.
pub(super) fn list_names() -> String {
    format!(
        "{}, messages of a provider, or a document with `messages`, `input` or `contents`",
        list_formats().flat_map(Format::programs).copied().collect::<Vec<_>>().join(", ")
    )
}

impl Format {
    /// Returns the name of the format for people, such as `a Codex session`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "a Claude Code session",
            Self::Codex => "a Codex session",
            Self::CodexExec => "output of `codex exec --json`",
            Self::OpenClaw => "an OpenClaw session",
            Self::GeminiCli => "a Gemini CLI chat",
            Self::CopilotCli => "a Copilot CLI session",
            Self::OpenCode => "an opencode session",
            Self::Antigravity => "an Antigravity trajectory",
            Self::AgentChat => "a Kimi or Hermes session",
            Self::ShareGpt => "ShareGPT conversations",
            Self::ChatGpt => "a ChatGPT export",
            Self::ClaudeAi => "a Claude.ai export",
            Self::Aider => "an aider history",
            Self::Notes => "notes",
            Self::Messages(Dialect::Lcm) => "messages of `lcm`",
            Self::Messages(Dialect::Anthropic) => "messages of `anthropic`",
            Self::Messages(Dialect::OpenaiChat) => "messages of `openai-chat`",
            Self::Messages(Dialect::OpenaiResponses) => "items of `openai-responses`",
            Self::Messages(Dialect::Gemini) => "contents of `gemini`",
            Self::Messages(Dialect::AiSdk) => "messages of `ai-sdk`",
            Self::Messages(Dialect::Openclaw) => "messages of `openclaw`",
            Self::Messages(Dialect::Langchain) => "messages of `langchain`",
            Self::Messages(Dialect::OpenaiAgents) => "items of `openai-agents`",
            Self::Messages(Dialect::Auto) => "messages of several dialects",
        }
    }

    /// Returns the dialect of the messages that the reader of the format returns.
    #[must_use]
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::Messages(dialect) => dialect,
            Self::ClaudeCode => Dialect::Anthropic,
            Self::AgentChat => Dialect::OpenaiChat,
            Self::OpenClaw => Dialect::Openclaw,
            Self::Codex
            | Self::CodexExec
            | Self::GeminiCli
            | Self::CopilotCli
            | Self::OpenCode
            | Self::Antigravity
            | Self::ShareGpt
            | Self::ChatGpt
            | Self::ClaudeAi
            | Self::Aider
            | Self::Notes => Dialect::Lcm,
        }
    }

    /// Returns the programs and libraries that have the format, for an error; empty: the format is
    /// that of a provider, or of a text that the caller names.
    pub(super) const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &["Claude Code"],
            Self::Codex => &["Codex"],
            Self::CodexExec => &["`codex exec --json`"],
            Self::OpenClaw => &["OpenClaw", "Pi", "Droid"],
            Self::GeminiCli => &["Gemini CLI"],
            Self::CopilotCli => &["Copilot CLI"],
            Self::OpenCode => &["opencode"],
            Self::Antigravity => &["Antigravity"],
            Self::AgentChat => &["Kimi", "Hermes"],
            Self::ShareGpt => &["ShareGPT"],
            Self::ChatGpt => &["ChatGPT"],
            Self::ClaudeAi => &["Claude.ai"],
            Self::Aider => &["aider"],
            Self::Messages(Dialect::Langchain) => &["LangChain"],
            Self::Messages(Dialect::AiSdk) => &["AI SDK"],
            Self::Messages(Dialect::OpenaiAgents) => &["OpenAI Agents"],
            Self::Notes
            | Self::Messages(
                Dialect::Lcm
                | Dialect::Anthropic
                | Dialect::OpenaiChat
                | Dialect::OpenaiResponses
                | Dialect::Gemini
                | Dialect::Openclaw
                | Dialect::Auto,
            ) => &[],
        }
    }
}
