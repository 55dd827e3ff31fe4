//! Commands: operations on a conversation that a person or host calls by name.
//!
//! In: a verb and its arguments as JSON. Out: a JSON report, in which `changed` tells whether the
//! command changed the store, or with `dry_run` would change it. A command makes at most one
//! commit; a repeated command makes none. This module parses the arguments and reads the
//! conversation. The commands are in [`super::session`], [`super::calibration`],
//! [`super::deletion`], [`super::focus`], [`super::maintenance`], [`super::prompts`] and
//! [`super::usage`].

use alloc::string::String;

use crate::{
    compaction::advise::AdviseRequest,
    storage::{
        call::Call,
        changes::Changes,
        head::{JournalAction, LoadedHead},
        record_key::RecordReads,
        records::{grants::GrantRecord, session::ArchiveCause, usage::UsageReport},
        session as session_rules,
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{JsonFields, JsonKind},
    },
    config::Config,
};

use super::{deletion, maintenance::MaintainRequest, prompts};

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
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    verb: &str,
    arguments_json: &str,
) -> Result<String> {
    let mut fields = parse_arguments(arguments_json)?;
    if verb == "delete" {
        // Nothing but a deletion reads a tombstone.
        return deletion::delete_piece(session, call, fields, ARGUMENTS);
    }
    let request = CommandRequest::read(&mut fields, call.config, verb)?;
    let dry_run = fields.take_flag("dry_run");
    fields.finish(ARGUMENTS)?;
    let mut reads = RecordReads::default();
    let grants = matches!(request, CommandRequest::Maintain(_))
        .then(|| reads.add_record(GrantRecord::key(call.keys)));
    let (loaded, values) = LoadedHead::open_with_records(session, call, &reads)?;
    let call = Call { now: loaded.effective_time(call.now)?, ..call };
    let family = request.family_key();
    let skip_reason = session_rules::find_skip_reason(session, call, &loaded.head, family)?;
    let is_writable = skip_reason.is_none();
    let command = CommandContext { session, call, loaded, is_writable, dry_run };
    let mut answer = match request {
        CommandRequest::Family { key } => command.join_family(&key),
        CommandRequest::Reset { successor } => command.reset(successor),
        CommandRequest::New { retain_depth } => command.start_new_session(retain_depth),
        CommandRequest::Archive { cause } => command.archive(cause),
        CommandRequest::Calibrate { model, estimated_tokens, prompt_tokens } => {
            command.record_calibration(model, estimated_tokens, prompt_tokens)
        }
        CommandRequest::Maintain(request) => {
            let grants = grants.map(|slot| values.decode_guarded(slot)).transpose()?;
            command.maintain(&request, grants)
        }
        CommandRequest::Usage(report) => command.record_usage(&report.validate()?),
        CommandRequest::Advise(request) => command.advise(&request),
        CommandRequest::Focus { text, seq_last } => command.set_focus(text, seq_last),
    }?;
    if let Some(reason) = skip_reason {
        answer.add_texts("warnings", &[session_rules::build_skip_warning(reason)]);
    }
    Ok(answer.end_object())
}

/// Lists the prompts of a configuration as JSON: the command `prompts`, which reads no
/// conversation.
///
/// # Errors
///
/// `invalid-input`: an argument is given.
pub(crate) fn list_prompts(config: &Config, arguments_json: &str) -> Result<String> {
    parse_arguments(arguments_json)?.finish(ARGUMENTS)?;
    Ok(prompts::list_prompts(config)?.end_object())
}

fn parse_arguments(arguments_json: &str) -> Result<JsonFields<'_>> {
    let is_blank = arguments_json.trim().is_empty();
    JsonFields::parse_argument(ARGUMENTS, if is_blank { "{}" } else { arguments_json })
}

impl CommandRequest {
    /// Reads the arguments of a command.
    fn read(fields: &mut JsonFields<'_>, config: &Config, verb: &str) -> Result<Self> {
        Ok(match verb {
            "family" => Self::Family { key: fields.take_text("family") },
            "reset" => Self::Reset { successor: fields.take_optional_text("successor") },
            "new" => Self::New { retain_depth: read_retain_depth(fields, config)? },
            "archive" => Self::Archive {
                cause: ArchiveCause::from_index(fields.take_choice("cause", &ArchiveCause::NAMES)),
            },
            "calibrate" => Self::Calibrate {
                model: fields.take_text("model"),
                estimated_tokens: fields.take_u32("estimated_tokens"),
                prompt_tokens: fields.take_u32("prompt_tokens"),
            },
            "maintain" => Self::Maintain(MaintainRequest::read(fields)),
            "usage" => Self::Usage(UsageReport::read(fields)),
            "advise" => Self::Advise(AdviseRequest::read(fields)?),
            "focus" => Self::Focus {
                text: fields.take_optional_text("text"),
                seq_last: fields.take_optional_u64("seq_last"),
            },
            _ => return Err(Error::not_supported(format_args!("verb: there is no `{verb}`"))),
        })
    }

    /// Returns the family key of `family`; `None`: another command.
    fn family_key(&self) -> Option<&str> {
        match self {
            Self::Family { key } => Some(key),
            _ => None,
        }
    }
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
    pub(super) session: &'a mut StoreSession<'s>,
    /// The call, with the effective time as `now`.
    pub(super) call: Call<'a>,
    pub(super) loaded: LoadedHead,
    /// Whether the configuration allows writes to the conversation.
    pub(super) is_writable: bool,
    /// Whether the caller asks for the report without the commit.
    pub(super) dry_run: bool,
}

impl CommandContext<'_, '_> {
    /// Refuses a conversation that does not exist or is archived, unless the configuration forbids
    /// writes to the conversation.
    pub(super) fn ensure_writable(&mut self) -> Result<()> {
        if self.is_writable {
            self.loaded.ensure_exists()?;
            session_rules::ensure_not_archived(self.session, &self.loaded.head)?;
        }
        Ok(())
    }

    /// Commits the changed conversation, unless `dry_run` or the configuration forbids the write.
    pub(super) fn commit(self, act: JournalAction, changes: Changes) -> Result<()> {
        if self.dry_run || !self.is_writable {
            return Ok(());
        }
        self.loaded.commit_changes(self.session, self.call, act, changes)?;
        Ok(())
    }
}
