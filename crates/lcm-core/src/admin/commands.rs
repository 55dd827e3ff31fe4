//! Commands: operations on a conversation that a person or host calls by name.
//!
//! In: a verb and its arguments as JSON. Out: a JSON report, in which `changed` tells whether the
//! command changed the store, or with `dry_run` would change it. A command makes at most one
//! commit; a repeated command makes none. This module parses the arguments and reads the
//! conversation. The commands are in [`super::session`], [`super::calibration`],
//! [`super::focus`], [`super::maintenance`], [`super::prompts`] and [`super::usage`].

use crate::storage::records::session::ArchiveCause;
use crate::storage::session;
use alloc::{string::String, vec::Vec};

use crate::{
    compaction::advise::AdviseRequest,
    storage::{
        head::{JournalAction, JournalEntry, LoadedHead},
        keys::ConversationKeys,
        records::usage::UsageReport,
        store::{Guard, Put},
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{JsonFields, JsonKind},
    },
    config::Config,
    types::api::Timestamp,
};

use super::{maintenance::MaintainRequest, prompts};

/// Name of the argument that holds a command's arguments, for errors.
const ARGUMENTS: &str = "arguments-json";

/// A verb with its arguments.
enum CommandRequest {
    Family {
        key: String,
    },
    Reset {
        successor: Option<String>,
    },
    /// Keeps summaries of at least this depth; `None`: keeps the whole context.
    New {
        retain_depth: Option<u32>,
    },
    Archive {
        cause: ArchiveCause,
    },
    Calibrate {
        model: String,
        estimated_tokens: u32,
        prompt_tokens: u32,
    },
    Maintain(MaintainRequest),
    Usage(UsageReport),
    Advise(AdviseRequest),
    /// Sets the focus brief; `text` of `None` removes the brief.
    Focus {
        text: Option<String>,
        seq_last: Option<u64>,
    },
}

/// Runs a command and returns its report as JSON.
///
/// # Errors
///
/// `unsupported`: the verb is unknown; `invalid-input`: an argument breaks a rule; `not-found`,
/// `exists` and `denied` by the rules of the command; `conflict`; errors of the store.
pub(crate) fn run_command(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    verb: &str,
    arguments_json: &str,
    now: Timestamp,
) -> Result<String> {
    let is_blank = arguments_json.trim().is_empty();
    let mut fields =
        JsonFields::parse_argument(ARGUMENTS, if is_blank { "{}" } else { arguments_json })?;
    // `prompts` depends on the configuration alone and reads no conversation.
    if verb == "prompts" {
        fields.finish(ARGUMENTS)?;
        return Ok(prompts::list_prompts(config)?.end_object());
    }
    let keys = ConversationKeys::new(conversation)?;
    let request = match verb {
        "family" => CommandRequest::Family { key: fields.take_text("family") },
        "reset" => CommandRequest::Reset { successor: fields.take_optional_text("successor") },
        "new" => CommandRequest::New { retain_depth: read_retain_depth(&mut fields, config)? },
        "archive" => CommandRequest::Archive {
            cause: ArchiveCause::from_index(fields.take_choice("cause", &ArchiveCause::NAMES)),
        },
        "calibrate" => CommandRequest::Calibrate {
            model: fields.take_text("model"),
            estimated_tokens: fields.take_u32("estimated_tokens"),
            prompt_tokens: fields.take_u32("prompt_tokens"),
        },
        "maintain" => CommandRequest::Maintain(MaintainRequest::read(&mut fields)),
        "usage" => CommandRequest::Usage(UsageReport::read(&mut fields)),
        "advise" => CommandRequest::Advise(AdviseRequest::read(&mut fields)?),
        "focus" => CommandRequest::Focus {
            text: fields.take_optional_text("text"),
            seq_last: fields.take_optional_u64("seq_last"),
        },
        _ => return Err(Error::not_supported(format_args!("verb: there is no `{verb}`"))),
    };
    let dry_run = fields.take_flag("dry_run");
    fields.finish(ARGUMENTS)?;
    let grants = matches!(request, CommandRequest::Maintain(_)).then(|| keys.grants_key());
    let (loaded, mut rest) =
        LoadedHead::read_with_keys(reader, &keys, conversation, grants.as_slice())?;
    let now = loaded.effective_time(now)?;
    let family = match &request {
        CommandRequest::Family { key } => Some(key.as_str()),
        _ => None,
    };
    let skip_reason = session::find_skip_reason(reader, config, &keys, &loaded.head, family)?;
    let is_writable = skip_reason.is_none();
    let session = CommandContext { reader, keys, loaded, now, is_writable, dry_run };
    let mut answer = match request {
        CommandRequest::Family { key } => session.join_family(&key),
        CommandRequest::Reset { successor } => session.reset(successor),
        CommandRequest::New { retain_depth } => session.start_new_session(retain_depth),
        CommandRequest::Archive { cause } => session.archive(cause),
        CommandRequest::Calibrate { model, estimated_tokens, prompt_tokens } => {
            session.record_calibration(model, estimated_tokens, prompt_tokens)
        }
        CommandRequest::Maintain(request) => {
            session.maintain(config, &request, rest.pop().flatten())
        }
        CommandRequest::Usage(report) => session.record_usage(&report.validate()?),
        CommandRequest::Advise(request) => session.advise(config, &request),
        CommandRequest::Focus { text, seq_last } => session.set_focus(text, seq_last),
    }?;
    if let Some(reason) = skip_reason {
        answer.add_texts("warnings", &[session::build_skip_warning(reason)]);
    }
    Ok(answer.end_object())
}

/// Reads the depth that `new` keeps; defaults to the configured depth.
fn read_retain_depth(fields: &mut JsonFields<'_>, config: &Config) -> Result<Option<u32>> {
    match fields.take_any("retain_depth") {
        None | Some((_, JsonKind::Null)) => Ok(config.new_session_retain_depth),
        Some((text, JsonKind::Number)) if text == "-1" => Ok(None),
        Some((text, kind)) => {
            let depth = text.parse().ok().filter(|_| kind == JsonKind::Number);
            let error = || {
                Error::invalid_input(format_args!(
                    "`retain_depth` must be a whole number of at least -1, got {text}"
                ))
            };
            depth.map(Some).ok_or_else(error)
        }
    }
}

/// The conversation of one command, read from the store.
pub(super) struct CommandContext<'a, 's> {
    pub(super) reader: &'a mut StoreSession<'s>,
    pub(super) keys: ConversationKeys,
    pub(super) loaded: LoadedHead,
    pub(super) now: Timestamp,
    /// Whether the configuration allows writes to the conversation.
    pub(super) is_writable: bool,
    /// Whether the caller asks for the report without the commit.
    pub(super) dry_run: bool,
}

impl CommandContext<'_, '_> {
    /// Commits the changed conversation, unless `dry_run` or the configuration forbids the write.
    pub(super) fn commit(self, act: JournalAction, puts: Vec<Put>) -> Result<()> {
        self.commit_guarded(act, puts, Vec::new())
    }

    /// Commits as [`CommandContext::commit`], guarded by the values of further keys, too.
    pub(super) fn commit_guarded(
        self,
        act: JournalAction,
        puts: Vec<Put>,
        guards: Vec<Guard>,
    ) -> Result<()> {
        if self.dry_run || !self.is_writable {
            return Ok(());
        }
        let entry = JournalEntry { time: self.now, act };
        self.loaded.commit(self.reader, &self.keys, self.now, &entry, puts, guards)?;
        Ok(())
    }
}
