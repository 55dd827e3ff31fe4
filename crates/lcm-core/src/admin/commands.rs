//! Commands: operations on a conversation. A person or host calls a command by its name, the verb.
//!
//! In: a verb and its arguments as JSON. Out: a JSON report, in which `changed` tells whether the
//! command changed the store, or with `dry_run` would change the store; the report of `live` has no
//! such member. A command makes at most one commit, and none if nothing changes. This module parses
//! the arguments and reads the conversation. The commands are in [`super::session`],
//! [`super::calibration`], [`super::deletion`], [`super::focus`], [`super::maintenance`],
//! [`super::prompts`], [`super::resummarize`], [`super::rewind`] and [`super::usage`].

use alloc::{string::String, vec::Vec};

use crate::{
    compaction::advise::AdviseRequest,
    storage::{
        call::Call,
        changes::Changes,
        clock::ClockReading,
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
        json::{JsonFields, JsonKind, JsonWriter},
    },
    config::Config,
};

use super::{deletion, maintenance::MaintainRequest, prompts, rewind::RewindRequest};

/// Name of the argument with a command's arguments, for error texts.
const ARGUMENTS: &str = "arguments-json";

/// A verb with its arguments.
enum CommandRequest {
    Family {
        key: String,
    },
    Reset {
        successor: Option<String>,
    },
    /// Keeps only summaries of at least this depth in the context; `None`: keeps the whole context.
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
    /// Lets plans ask models for these provisional summaries again; `None`: for all provisional
    /// summaries.
    Resummarize {
        summary_ids: Option<Vec<String>>,
    },
    Usage(UsageReport),
    Advise(AdviseRequest),
    /// Sets the focus brief to `text`, which covers the messages up to `seq_last` (`None`: all
    /// messages). `text` is `None`: removes the brief.
    Focus {
        text: Option<String>,
        seq_last: Option<u64>,
    },
    /// Sets aside the messages after the last message to keep, and brings back set-aside messages
    /// that lead to that message.
    Rewind(RewindRequest),
}

/// Runs a command and returns its report as JSON.
///
/// # Errors
///
/// - `unsupported`: the verb is unknown.
/// - `invalid-input`: an argument breaks a rule.
/// - `not-found`, `exists`, `denied`, `limit-exceeded`: the command's rules refuse the call.
/// - `conflict`: the conversation changed during the call.
/// - Errors of the store.
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
    let clock = loaded.read_clock(call.now)?;
    let family = request.family_key();
    let skip_reason = session_rules::find_skip_reason(session, call, &loaded.head, family)?;
    let is_writable = skip_reason.is_none();
    if is_writable && family.is_none() {
        loaded.ensure_exists()?;
    }
    let command = CommandContext { session, call, clock, loaded, is_writable, dry_run };
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
        CommandRequest::Resummarize { summary_ids } => command.allow_remakes(summary_ids),
        CommandRequest::Usage(report) => command.record_usage(&report.validate()?),
        CommandRequest::Advise(request) => command.advise(&request),
        CommandRequest::Focus { text, seq_last } => command.set_focus(text, seq_last),
        CommandRequest::Rewind(request) => command.rewind_messages(request),
    }?;
    if let Some(reason) = skip_reason {
        answer.add_texts("warnings", &[session_rules::build_skip_warning(reason)]);
    }
    Ok(answer.end_object())
}

/// Runs the command `prompts`: lists the prompts of a configuration as JSON, without a
/// conversation.
///
/// # Errors
///
/// `invalid-input`: `arguments_json` has a field.
pub(crate) fn list_prompts(config: &Config, arguments_json: &str) -> Result<String> {
    parse_arguments(arguments_json)?.finish(ARGUMENTS)?;
    Ok(prompts::list_prompts(config)?.end_object())
}

/// Runs the command `live`: lists the members of a family, and finds the conversation that is not
/// archived. Of several such conversations, finds the latest to join; `conversation` is null if all
/// are archived.
///
/// # Errors
///
/// `invalid-input`: an argument breaks a rule; `not-found`: the family has no conversation; errors
/// of the store.
pub(crate) fn find_live(session: &mut StoreSession<'_>, arguments_json: &str) -> Result<String> {
    let mut fields = parse_arguments(arguments_json)?;
    let family = fields.take_text("family");
    fields.finish(ARGUMENTS)?;
    session_rules::ensure_family_key(&family)?;
    let members = session_rules::list_members(session, &family)?;
    let live = session_rules::find_live_member(session, &members)?;
    let mut answer = JsonWriter::new_object();
    answer.add_optional_text("conversation", live);
    answer.add_text("family", &family);
    answer.add_texts("members", &members);
    Ok(answer.end_object())
}

fn parse_arguments(arguments_json: &str) -> Result<JsonFields<'_>> {
    let is_blank = arguments_json.trim().is_empty();
    JsonFields::parse_argument(ARGUMENTS, if is_blank { "{}" } else { arguments_json })
}

impl CommandRequest {
    /// Reads the arguments of the command `verb`, except `dry_run`.
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
            "resummarize" => {
                Self::Resummarize { summary_ids: fields.take_optional_texts("summary_ids") }
            }
            "usage" => Self::Usage(UsageReport::read(fields)),
            "advise" => Self::Advise(AdviseRequest::read(fields)?),
            "focus" => Self::Focus {
                text: fields.take_optional_text("text"),
                seq_last: fields.take_optional_u64("seq_last"),
            },
            "rewind" => Self::Rewind(RewindRequest::read(fields)?),
            _ => {
                return Err(Error::not_supported(format_args!(
                    "`verb` must be family, reset, new, archive, calibrate, maintain, \
                     resummarize, usage, advise, focus, rewind, delete, live or prompts, got \
                     `{verb}`"
                )));
            }
        })
    }

    /// Returns the family key that the command `family` names; `None`: another command.
    fn family_key(&self) -> Option<&str> {
        match self {
            Self::Family { key } => Some(key),
            _ => None,
        }
    }
}

/// Reads `retain_depth` of `new`: absent or null gives the configured depth, and -1 gives `None`,
/// with which the whole context is kept.
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

/// The conversation that one command acts on, as read from the store.
pub(super) struct CommandContext<'a, 's> {
    pub(super) session: &'a mut StoreSession<'s>,
    /// The call.
    pub(super) call: Call<'a>,
    /// The clock of the conversation at the time of the call.
    pub(super) clock: ClockReading,
    pub(super) loaded: LoadedHead,
    /// Whether the configuration stores this session; if not, no command writes.
    pub(super) is_writable: bool,
    /// Whether the caller wants the report without a commit.
    pub(super) dry_run: bool,
}

impl CommandContext<'_, '_> {
    /// Ensures that the conversation exists and is not archived. A conversation that the
    /// configuration skips always passes, because nothing is written to it.
    pub(super) fn ensure_writable(&mut self) -> Result<()> {
        if self.is_writable {
            self.loaded.ensure_exists()?;
            session_rules::ensure_not_archived(self.session, &self.loaded.head)?;
        }
        Ok(())
    }

    /// Commits the changed conversation; does nothing with `dry_run` or if the configuration skips
    /// the session.
    pub(super) fn commit(self, act: JournalAction, changes: Changes) -> Result<()> {
        if self.dry_run || !self.is_writable {
            return Ok(());
        }
        self.loaded.commit_changes(self.session, self.call, act, changes)?;
        Ok(())
    }
}
