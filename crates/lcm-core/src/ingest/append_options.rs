//! Parses the argument `extra-json` of `append` and `stage`.
//!
//! In: a JSON object. Out: [`AppendExtra`] for `append`, or unread fields for `stage`. `reconcile`
//! uses [`parse_list_part`] to find the key of a list.

use alloc::string::String;

use lcm_text::{
    base::{
        error::{Error, Result},
        hash, int,
        json::JsonFields,
        limits,
    },
    types::api::{AppendMode, AppendOptions},
};

use super::{planned_line::PlannedLine, system_option::SystemOption};

/// Name of the argument that holds further options.
pub(super) const EXTRA_ARGUMENT: &str = "extra-json";
/// Greatest `list_offset` of a call, and most entries of one transcript.
pub(super) const ENTRIES_MAX: usize = 2_000_000;

/// The further options of an append.
pub(super) struct AppendExtra {
    /// Whether the call repeats a call of unknown outcome.
    pub(super) is_repeat: bool,
    /// The revision that the conversation must have, from `reconcile`, else `conflict`; `None`: any
    /// revision. Not checked if an earlier attempt of a repeated call took all its messages.
    pub(super) revision: Option<u64>,
    /// Whether the list must begin with an accepted list, which is recognised by its texts, else
    /// `conflict`.
    pub(super) must_continue: bool,
    /// Whether a new message without a `timestamp` has no time, as a message of a file without
    /// times; otherwise its time is that of the call.
    pub(super) is_undated: bool,
    /// Whether a likely replay is an error.
    pub(super) refuse_replay: bool,
    /// Seq up to which the caller has seen every message; `None` or 0: unknown.
    pub(super) seq_seen: Option<u64>,
    /// What the plan of `reconcile` does to the line; `None`: the call carries out no such plan.
    pub(super) planned: Option<PlannedLine>,
    /// Key of the family that the conversation belongs to or joins; `None`: no family is named.
    pub(super) family: Option<String>,
    /// The place of the call in a list; `None`: the call is not part of a list.
    pub(super) list_part: Option<ListPart>,
    /// The system prompt that the host hands over beside the list; `None`: not given.
    pub(super) system: Option<SystemOption>,
}

impl AppendExtra {
    /// Returns whether new messages that equal stored messages are counted. Where their place in
    /// the list is proven, equal messages are said again: in a call with `revision`, which carries
    /// out a plan of `reconcile`, and in one with `continues`, whose list begins with an accepted
    /// list. `refuse_replay` still needs the count.
    pub(super) fn counts_replays(&self) -> bool {
        let is_placed = self.revision.is_some() || self.must_continue;
        !is_placed || self.refuse_replay
    }
}

/// The place of a call in a list of messages that takes several calls.
#[derive(Clone, Copy)]
pub(super) struct ListPart {
    /// Hash of the name of the list.
    pub(super) hash: [u8; 12],
    /// Number of messages of the list before the messages of the call.
    pub(super) offset: u32,
}

/// Parses `extra-json` into its fields; absent or empty JSON counts as `{}`.
///
/// # Errors
///
/// `invalid-input`: not a JSON object.
pub(super) fn parse_extra_fields(json: Option<&str>) -> Result<JsonFields<'_>> {
    JsonFields::parse_argument(EXTRA_ARGUMENT, json.filter(|json| !json.is_empty()).unwrap_or("{}"))
}

/// Parses the further options of an append.
///
/// # Errors
///
/// `invalid-input`: an unknown option, a wrong value, or `list` or `continues` in the wrong mode;
/// `limit-exceeded`: `list_offset` is over [`ENTRIES_MAX`], or `system` is too large.
pub(super) fn parse_append_extra(options: &AppendOptions) -> Result<AppendExtra> {
    let mut fields = parse_extra_fields(options.extra_json.as_deref())?;
    let planned = fields.take_any("line");
    let extra = AppendExtra {
        is_repeat: fields.take_flag("repeat"),
        revision: fields.take_optional_u64("revision"),
        must_continue: fields.take_flag("continues"),
        is_undated: fields.take_flag("undated"),
        refuse_replay: fields.take_flag("refuse_replay"),
        seq_seen: fields.take_optional_u64("seq_seen"),
        planned: planned.map(|(text, _)| PlannedLine::parse(&text)).transpose()?,
        family: fields.take_optional_text("family"),
        list_part: parse_list_part(
            fields.take_optional_text("list"),
            fields.take_optional_u64("list_offset"),
        )?,
        system: SystemOption::take(&mut fields)?,
    };
    fields.finish(EXTRA_ARGUMENT)?;
    if extra.must_continue && options.append_mode == AppendMode::New {
        return Err(Error::invalid_input("`continues` requires the append mode `transcript`"));
    }
    if extra.list_part.is_some() && options.append_mode == AppendMode::Transcript {
        return Err(Error::invalid_input(
            "`list` requires the append mode `new`; call `reconcile` for a long transcript",
        ));
    }
    Ok(extra)
}

/// Returns the place of a call in a list, from the values of `list` and `list_offset`; `None`: no
/// list is named.
///
/// # Errors
///
/// `invalid-input`: an empty name, a name over 512 bytes, or an offset without a name;
/// `limit-exceeded`: the offset is over [`ENTRIES_MAX`].
pub(super) fn parse_list_part(name: Option<String>, from: Option<u64>) -> Result<Option<ListPart>> {
    let Some(name) = name else {
        return match from {
            None => Ok(None),
            Some(_) => Err(Error::invalid_input("`list_offset` requires `list`")),
        };
    };
    if name.is_empty() || name.len() > limits::CONVERSATION_BYTES_MAX {
        return Err(Error::invalid_input(format_args!(
            "`list` must have between 1 and {} bytes, got {}",
            limits::CONVERSATION_BYTES_MAX,
            name.len()
        )));
    }
    let most = int::to_u64(ENTRIES_MAX);
    let from = from.unwrap_or(0);
    if from > most {
        return Err(Error::limit_exceeded(format_args!(
            "`list_offset` must be at most {most}, got {from}; name another `list` for further \
             messages"
        )));
    }
    Ok(Some(ListPart {
        hash: hash::hash_prefix(&hash::hash_fields(&[b"lcm list", name.as_bytes()])),
        offset: int::saturate_tokens(from),
    }))
}
