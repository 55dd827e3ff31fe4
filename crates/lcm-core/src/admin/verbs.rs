//! Verbs: what a person or host asks of a conversation whose shape is not settled.
//!
//! In: a verb and its arguments as JSON. Out: what was done, as JSON; `changed` says whether
//! anything was, or with `dry_run` would be. Each makes at most one commit and, repeated, none.
//! Here they are read and begun; what they do is in [`super::life`], [`super::calibrate`],
//! [`super::focus`], [`super::maintain`], [`super::prompts`] and [`super::usage`].

use crate::storage::records::session::Cause;
use crate::storage::session;
use alloc::{string::String, vec::Vec};

use crate::{
    compaction::advise::Asked as Asking,
    storage::{
        head::{Act, Journal, Loaded},
        keys::Keys,
        records::usage::Report,
        store::{Guard, Put},
        store_session::Reader,
    },
};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::{Fields, Kind},
    },
    config::Config,
    types::api::Timestamp,
};

use super::{maintain::Maintain, prompts};

/// Name of the argument that holds the verb's own.
const ARGUMENTS: &str = "arguments-json";

/// A verb with its arguments.
enum Asked {
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
        cause: Cause,
    },
    Calibrate {
        model: String,
        estimated_tokens: u32,
        prompt_tokens: u32,
    },
    Maintain(Maintain),
    Usage(Report),
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
pub(crate) fn call(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    verb: &str,
    arguments_json: &str,
    now: Timestamp,
) -> Result<String> {
    let none = arguments_json.trim().is_empty();
    let mut fields = Fields::of_argument(ARGUMENTS, if none { "{}" } else { arguments_json })?;
    // What is configured says nothing of any conversation.
    if verb == "prompts" {
        fields.end(ARGUMENTS)?;
        return Ok(prompts::prompts(config)?.end_object());
    }
    let keys = Keys::new(conversation)?;
    let asked = match verb {
        "family" => Asked::Family { key: fields.text("key") },
        "reset" => Asked::Reset { successor: fields.text_or_none("successor") },
        "new" => Asked::New { retain_depth: retain_depth(&mut fields, config)? },
        "archive" => Asked::Archive { cause: Cause::at(fields.place("cause", &Cause::NAMES)) },
        "calibrate" => Asked::Calibrate {
            model: fields.text("model"),
            estimated_tokens: fields.small("estimated_tokens"),
            prompt_tokens: fields.small("prompt_tokens"),
        },
        "maintain" => Asked::Maintain(Maintain::read(&mut fields)),
        "usage" => Asked::Usage(Report::read(&mut fields)),
        "advise" => Asked::Advise(Asking::read(&mut fields)?),
        "focus" => Asked::Focus {
            text: fields.text_or_none("text"),
            seq_last: fields.number_or_none("seq_last"),
        },
        _ => return Err(Error::unsupported(format_args!("verb: there is no `{verb}`"))),
    };
    let dry_run = fields.flag("dry_run");
    fields.end(ARGUMENTS)?;
    let grants = matches!(asked, Asked::Maintain(_)).then(|| keys.grants());
    let (loaded, mut rest) = Loaded::read(reader, &keys, conversation, grants.as_slice())?;
    let now = loaded.now(now)?;
    let family = match &asked {
        Asked::Family { key } => Some(key.as_str()),
        _ => None,
    };
    let passed_over = session::passed_over(reader, config, &keys, &loaded.head, family)?;
    let is_stored = passed_over.is_none();
    let session = Session { reader, keys, loaded, now, is_stored, dry_run };
    let mut answer = match asked {
        Asked::Family { key } => session.family(&key),
        Asked::Reset { successor } => session.reset(successor),
        Asked::New { retain_depth } => session.new_session(retain_depth),
        Asked::Archive { cause } => session.archive(cause),
        Asked::Calibrate { model, estimated_tokens, prompt_tokens } => {
            session.calibrate(model, (estimated_tokens, prompt_tokens))
        }
        Asked::Maintain(asked) => session.maintain(config, &asked, rest.pop().flatten()),
        Asked::Usage(report) => session.usage(&report.sound()?),
        Asked::Advise(asked) => session.advise(config, &asked),
        Asked::Focus { text, seq_last } => session.focus(text, seq_last),
    }?;
    if let Some(reason) = passed_over {
        answer.texts("warnings", &[session::warning(reason)]);
    }
    Ok(answer.end_object())
}

/// The argument of `new`, or what is configured.
fn retain_depth(fields: &mut Fields<'_>, config: &Config) -> Result<Option<u32>> {
    match fields.any("retain_depth") {
        None | Some((_, Kind::Null)) => Ok(config.new_session_retain_depth),
        Some((text, Kind::Number)) if text == "-1" => Ok(None),
        Some((text, kind)) => {
            let depth = text.parse().ok().filter(|_| kind == Kind::Number);
            let wrong = || Error::invalid("retain_depth: a whole number from -1");
            depth.map(Some).ok_or_else(wrong)
        }
    }
}

/// One conversation, read.
pub(super) struct Session<'a, 's> {
    pub(super) reader: &'a mut Reader<'s>,
    pub(super) keys: Keys,
    pub(super) loaded: Loaded,
    pub(super) now: Timestamp,
    /// Whether the configuration lets anything of it be stored.
    pub(super) is_stored: bool,
    /// Whether somebody only asks what would be done.
    pub(super) dry_run: bool,
}

impl Session<'_, '_> {
    /// Commits what was done to the conversation, unless nobody wants that.
    pub(super) fn commit(self, act: Act, puts: Vec<Put>) -> Result<()> {
        self.commit_guarded(act, puts, Vec::new())
    }

    /// As [`Session::commit`], where further keys must be as they were read.
    pub(super) fn commit_guarded(self, act: Act, puts: Vec<Put>, guards: Vec<Guard>) -> Result<()> {
        if self.dry_run || !self.is_stored {
            return Ok(());
        }
        let entry = Journal { time: self.now, act };
        self.loaded.commit(self.reader, &self.keys, self.now, &entry, puts, guards)?;
        Ok(())
    }
}
