//! Verbs: what a person or host asks of a conversation whose shape is not settled.
//!
//! In: a verb and its arguments as JSON. Out: what was done, as JSON; `changed` says whether
//! anything was, or with `dry_run` would be. Each makes at most one commit and, repeated, none.
//! Here they are read and begun; what they do is in [`super::life`], [`super::calibrate`],
//! [`super::focus`], [`super::maintain`], [`super::prompts`] and [`super::usage`].

use crate::storage::records::session::ArchiveCause;
use crate::storage::session;
use alloc::{string::String, vec::Vec};

use crate::{
    compaction::advise::AdviseRequest as Asking,
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

/// Name of the argument that holds the verb's own.
const ARGUMENTS: &str = "arguments-json";

/// A verb with its arguments.
enum CommandRequest {
    Family {
        key: String,
    },
    Reset {
        successor: Option<String>,
    },
    /// Summaries from this depth on stay; `None`: everything does.
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
    Advise(Asking),
    /// `text`: `None` takes the brief away.
    Focus {
        text: Option<String>,
        seq_last: Option<u64>,
    },
}

/// Does what a verb says.
///
/// # Errors
///
/// `unsupported`: no such verb; `invalid-input`: its arguments; `not-found`, `exists`, `denied` as
/// the verb says; `conflict`; errors of the store.
pub(crate) fn run_command(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    verb: &str,
    arguments_json: &str,
    now: Timestamp,
) -> Result<String> {
    let none = arguments_json.trim().is_empty();
    let mut fields =
        JsonFields::parse_argument(ARGUMENTS, if none { "{}" } else { arguments_json })?;
    // What is configured says nothing of any conversation.
    if verb == "prompts" {
        fields.finish(ARGUMENTS)?;
        return Ok(prompts::list_prompts(config)?.end_object());
    }
    let keys = ConversationKeys::new(conversation)?;
    let asked = match verb {
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
        "advise" => CommandRequest::Advise(Asking::read(&mut fields)?),
        "focus" => CommandRequest::Focus {
            text: fields.take_optional_text("text"),
            seq_last: fields.take_optional_u64("seq_last"),
        },
        _ => return Err(Error::not_supported(format_args!("verb: there is no `{verb}`"))),
    };
    let dry_run = fields.take_flag("dry_run");
    fields.finish(ARGUMENTS)?;
    let grants = matches!(asked, CommandRequest::Maintain(_)).then(|| keys.grants_key());
    let (loaded, mut rest) =
        LoadedHead::read_with_keys(reader, &keys, conversation, grants.as_slice())?;
    let now = loaded.effective_time(now)?;
    let family = match &asked {
        CommandRequest::Family { key } => Some(key.as_str()),
        _ => None,
    };
    let passed_over = session::find_skip_reason(reader, config, &keys, &loaded.head, family)?;
    let is_stored = passed_over.is_none();
    let session = CommandContext { reader, keys, loaded, now, is_writable: is_stored, dry_run };
    let mut answer = match asked {
        CommandRequest::Family { key } => session.join_family(&key),
        CommandRequest::Reset { successor } => session.reset(successor),
        CommandRequest::New { retain_depth } => session.start_new_session(retain_depth),
        CommandRequest::Archive { cause } => session.archive(cause),
        CommandRequest::Calibrate { model, estimated_tokens, prompt_tokens } => {
            session.record_calibration(model, (estimated_tokens, prompt_tokens))
        }
        CommandRequest::Maintain(asked) => session.maintain(config, &asked, rest.pop().flatten()),
        CommandRequest::Usage(report) => session.record_usage(&report.validate()?),
        CommandRequest::Advise(asked) => session.advise(config, &asked),
        CommandRequest::Focus { text, seq_last } => session.set_focus(text, seq_last),
    }?;
    if let Some(reason) = passed_over {
        answer.add_texts("warnings", &[session::build_skip_warning(reason)]);
    }
    Ok(answer.end_object())
}

/// The argument of `new`, or what is configured.
fn read_retain_depth(fields: &mut JsonFields<'_>, config: &Config) -> Result<Option<u32>> {
    match fields.take_any("retain_depth") {
        None | Some((_, JsonKind::Null)) => Ok(config.new_session_retain_depth),
        Some((text, JsonKind::Number)) if text == "-1" => Ok(None),
        Some((text, kind)) => {
            let depth = text.parse().ok().filter(|_| kind == JsonKind::Number);
            let wrong = || Error::invalid_input("retain_depth: a whole number from -1");
            depth.map(Some).ok_or_else(wrong)
        }
    }
}

/// One conversation, read.
pub(super) struct CommandContext<'a, 's> {
    pub(super) reader: &'a mut StoreSession<'s>,
    pub(super) keys: ConversationKeys,
    pub(super) loaded: LoadedHead,
    pub(super) now: Timestamp,
    /// Whether the configuration lets anything of it be stored.
    pub(super) is_writable: bool,
    /// Whether somebody only asks what would be done.
    pub(super) dry_run: bool,
}

impl CommandContext<'_, '_> {
    /// Commits what was done to the conversation, unless nobody wants that.
    pub(super) fn commit(self, act: JournalAction, puts: Vec<Put>) -> Result<()> {
        self.commit_guarded(act, puts, Vec::new())
    }

    /// As [`Session::commit`], where further keys must be as they were read.
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
