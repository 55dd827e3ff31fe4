//! Recall: from the context back to what was said.

mod describe;
mod expand;
mod file;
mod grep;
mod messages;

use alloc::{string::String, vec::Vec};

use crate::{
    codec,
    error::{Error, ErrorCode, Result},
    head::Loaded,
    json::Fields,
    keys::Keys,
    life, payload,
    reader::Reader,
    summary::{self, Summary},
};
pub(crate) use describe::{describe, row};
pub(crate) use expand::expand;
pub(crate) use file::{CONTENT_BYTES_MAX, CONTENT_BYTES_MIN};
pub(crate) use grep::{LIMIT_MAX, grep};
pub(crate) use messages::messages;

/// Name of the argument that holds options.
const OPTIONS: &str = "options-json";

/// What an id names.
enum Named {
    Summary([u8; 8]),
    Message(u64),
    File([u8; 8]),
}

/// What `ask` answers of a conversation, or when that does not know the id, of the newest of its
/// family that does.
///
/// However many conversations the family has, each costs one key of a `get-many`.
///
/// # Errors
///
/// Those of `ask`; `not-found`: no conversation of the family knows the id.
pub(crate) fn in_family(
    reader: &mut Reader<'_>,
    conversation: &str,
    id: &str,
    ask: &dyn Fn(&mut Reader<'_>, &str) -> Result<String>,
) -> Result<String> {
    let is_unknown = |answer: &Result<String>| {
        answer.as_ref().is_err_and(|error| error.code == ErrorCode::NotFound)
    };
    let answer = ask(reader, conversation);
    if !is_unknown(&answer) {
        return answer;
    }
    let head = Loaded::of(reader, &Keys::new(conversation)?, conversation)?.head;
    let Some(family) = head.family else { return answer };
    for member in holders(reader, family, conversation, id)? {
        let other = ask(reader, &member);
        if !is_unknown(&other) {
            return other;
        }
    }
    answer
}

/// The other conversations of a family that know the id, the newest first. The name of a message
/// has only three bytes of its conversation, so that some may turn out not to.
fn holders(
    reader: &mut Reader<'_>,
    family: [u8; 16],
    conversation: &str,
    id: &str,
) -> Result<Vec<String>> {
    let mut members = Vec::new();
    let mut wanted = Vec::new();
    for member in life::others(reader, family, conversation)? {
        let keys = Keys::new(&member.conversation)?;
        let key = match named(&keys, id) {
            Ok(Named::Message(_)) => keys.head(),
            Ok(Named::Summary(id)) => keys.summary(id),
            Ok(Named::File(id)) => keys.file(id),
            Err(_) => continue,
        };
        members.push(member.conversation);
        wanted.push(key);
    }
    let found = reader.fresh(&wanted)?;
    let known = members.into_iter().zip(found).filter(|(_, value)| value.is_some());
    Ok(known.map(|(member, _)| member).collect())
}

/// Finds the id in what was copied: the bare id, or text around it.
///
/// # Errors
///
/// `not-found`: no id, or one of another conversation; `invalid-input`: a placeholder.
fn named(keys: &Keys, text: &str) -> Result<Named> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let id = text
        .split(|c: char| !is_word(c))
        .find(|word| ["sum_", "msg_", "file_"].iter().any(|kind| word.starts_with(kind)))
        .ok_or_else(|| {
            Error::not_found(format_args!("`{text}` holds no id of a summary, message or file"))
        })?;
    if id.starts_with("file_") {
        return payload::parse_name(id).map(Named::File).ok_or_else(|| {
            Error::not_found(format_args!("`{id}` is no id of a file: 16 hex digits"))
        });
    }
    if id.starts_with("msg_") {
        return keys.message_seq(id).map(Named::Message).ok_or_else(|| {
            Error::not_found(format_args!("there is no message `{id}` in this conversation"))
        });
    }
    summary::parse_name(id).map(Named::Summary)
}

/// Reads a summary by id.
///
/// # Errors
///
/// `not-found`: there is none of this id in the conversation.
fn summary(reader: &mut Reader<'_>, keys: &Keys, id: [u8; 8]) -> Result<Summary> {
    let key = keys.summary(id);
    let value = reader.fresh_one(&key)?;
    let name = summary::name(id);
    let value = value.ok_or_else(|| {
        Error::not_found(format_args!(
            "there is no summary `{name}` in this conversation; ids belong to one conversation"
        ))
    })?;
    codec::decode(&key, &value)
}

/// Options as JSON; an empty text means none.
fn options(options_json: &str) -> Result<Fields<'_>> {
    let none = options_json.trim().is_empty();
    Fields::of_argument(OPTIONS, if none { "{}" } else { options_json })
}

/// Grants are not offered yet; whoever names one is refused rather than given everything.
fn ungranted(grant: Option<&str>) -> Result<()> {
    match grant {
        None => Ok(()),
        Some(_) => Err(Error::unsupported("grant: not offered by this version")),
    }
}
