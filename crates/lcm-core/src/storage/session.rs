//! The life of a session: its family, its archive, and whether it is written to at all.
//!
//! In: heads and the configuration. Out: what they mean for a call. Here are the
//! rules that other calls ask for; what a person asks for, as to archive, is
//! [`crate::admin::call`].

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, Sound},
    head::Head,
    keys::{self, Keys},
    records::session::{Archived, Member},
    store::Put,
    store_session::Reader,
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        glob,
        json::Writer,
        limits,
    },
    config::{Config, Policy, Situation},
    types::api::Timestamp,
};

/// Makes a conversation one of a family, when it is of none. Returns whether it was of none.
/// `numbered_from` is that of [`Member`].
///
/// # Errors
///
/// `invalid-input`: a key that is empty or too long; `exists`: it is of another family.
pub(crate) fn join(
    head: &mut Head,
    keys: &Keys,
    family: &str,
    numbered_from: Option<String>,
    now: Timestamp,
    puts: &mut Vec<Put>,
) -> Result<bool> {
    if family.is_empty() || family.len() > limits::CONVERSATION_BYTES_MAX {
        return Err(Error::invalid(format_args!(
            "family: a key has 1 to {} bytes, this one has {}",
            limits::CONVERSATION_BYTES_MAX,
            family.len()
        )));
    }
    let hash = keys::family(family);
    let conversation = &head.conversation;
    match head.family {
        Some(known) if known == hash => return Ok(false),
        Some(_) => {
            let message = format!("conversation `{conversation}` is of another family");
            return Err(Error::new(ErrorCode::Exists, message));
        }
        None => {}
    }
    let conversation = conversation.clone();
    let member = Member { family: family.into(), conversation, joined: now, numbered_from };
    puts.push(Put { key: keys.member(hash), value: Some(codec::encode(&member)?) });
    head.family = Some(hash);
    Ok(true)
}

/// The conversations of a family except one, the newest in it first.
///
/// # Errors
///
/// Of the store.
pub(crate) fn others(
    reader: &mut Reader<'_>,
    family: [u8; 16],
    conversation: &str,
) -> Result<Vec<Member>> {
    let (start, end) = keys::members(family);
    let mut members = Vec::new();
    reader.scan(&start, &end, &mut |key, value| {
        let member: Member = codec::decode(key, value)?;
        if member.conversation != conversation {
            members.push(member);
        }
        Ok(())
    })?;
    lcm_text::base::sort::sort_by(&mut members, &mut |a, b| {
        b.joined.cmp(&a.joined).then_with(|| a.conversation.cmp(&b.conversation))
    });
    Ok(members)
}

/// Why nothing is written to a conversation, by configuration; `None`: it is written to.
///
/// Patterns are compared with the key of its family, as the call or the head knows it, else with
/// its id. Only where there are patterns and a family that the call did not name is it read.
///
/// # Errors
///
/// Of the store.
pub(crate) fn passed_over(
    reader: &mut Reader<'_>,
    config: &Config,
    keys: &Keys,
    head: &Head,
    family: Option<&str>,
) -> Result<Option<&'static str>> {
    let none: &[String] = &[];
    let stateless: &[String] =
        if config.skip_stateless_sessions { &config.stateless_session_patterns } else { none };
    if config.ignore_session_patterns.is_empty() && stateless.is_empty() {
        return Ok(None);
    }
    let name = match family {
        Some(family) => family.into(),
        None => session_name(reader, keys, head)?,
    };
    let fits = |patterns: &[String]| patterns.iter().any(|pattern| glob::fits(pattern, &name));
    Ok(match () {
        () if fits(&config.ignore_session_patterns) => Some("ignored-session"),
        () if fits(stateless) => Some("stateless-session"),
        () => None,
    })
}

/// Refuses to write to a session for which nothing is stored, by configuration.
///
/// # Errors
///
/// `denied`; errors of the store.
pub(crate) fn must_be_stored(
    reader: &mut Reader<'_>,
    config: &Config,
    keys: &Keys,
    head: &Head,
) -> Result<()> {
    match passed_over(reader, config, keys, head, None)? {
        Some(reason) => Err(Error::new(ErrorCode::Denied, warning(reason))),
        None => Ok(()),
    }
}

/// What patterns of sessions are compared with: the key of its family, else its id.
///
/// # Errors
///
/// As [`member_of`].
pub(crate) fn session_name(reader: &mut Reader<'_>, keys: &Keys, head: &Head) -> Result<String> {
    Ok(family_of(reader, keys, head)?.unwrap_or_else(|| head.conversation.clone()))
}

/// The numbers that decide a call, by the override that applies to it; with its place.
///
/// `budget` is as the call has it, `estimated` the same in estimated tokens.
///
/// # Errors
///
/// As [`member_of`] and [`Config::policy`].
pub(crate) fn policy(
    reader: &mut Reader<'_>,
    config: &Config,
    keys: &Keys,
    head: &Head,
    model: Option<&str>,
    (budget, estimated): (u32, u32),
) -> Result<(Policy, Option<usize>)> {
    let named = config.has_session_overrides();
    let session = if named { session_name(reader, keys, head)? } else { String::new() };
    let rule = config.override_of(&Situation { model, session: &session, budget });
    Ok((config.policy_by(estimated, rule)?, rule))
}

/// The warning of a call that stored nothing for this reason.
pub(crate) fn warning(reason: &str) -> String {
    format!("{reason}: the configuration says that nothing is stored for it")
}

/// The key of the family of a conversation.
///
/// # Errors
///
/// As [`member_of`].
pub(crate) fn family_of(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
) -> Result<Option<String>> {
    Ok(member_of(reader, keys, head)?.map(|member| member.family))
}

/// What the family of a conversation says of it.
///
/// # Errors
///
/// Of the store; `corrupt`: the family does not list it.
pub(crate) fn member_of(
    reader: &mut Reader<'_>,
    keys: &Keys,
    head: &Head,
) -> Result<Option<Member>> {
    let Some(hash) = head.family else { return Ok(None) };
    let key = keys.member(hash);
    let Some(value) = reader.kept(core::slice::from_ref(&key), &[])?.pop().flatten() else {
        return Err(reader.missing(&key));
    };
    let member: Member = codec::decode(&key, &value)?;
    if keys::family(&member.family) != hash || member.conversation != head.conversation {
        return Err(Error::corrupt(format_args!("`{key}` names another family")));
    }
    Ok(Some(member))
}

/// Refuses to write to an archived conversation.
///
/// # Errors
///
/// `denied`; errors of the store.
pub(crate) fn goes_on(reader: &mut Reader<'_>, head: &Head) -> Result<()> {
    let Some(archived) = head.archived else { return Ok(()) };
    let successor = successor(reader, &archived)?;
    let elsewhere = successor.map_or(String::new(), |id| format!("; it goes on in `{id}`"));
    let (id, cause) = (&head.conversation, archived.cause.as_str());
    let message = format!("conversation `{id}` was archived ({cause}){elsewhere}");
    Err(Error::new(ErrorCode::Denied, message))
}

/// The conversation that goes on in place of an archived one, when the store has it.
///
/// # Errors
///
/// Of the store.
pub(crate) fn successor(reader: &mut Reader<'_>, archived: &Archived) -> Result<Option<String>> {
    let Some(hash) = archived.successor else { return Ok(None) };
    let key = keys::name_of(hash);
    let value = reader.kept(core::slice::from_ref(&key), &[])?.pop().flatten();
    let Some(value) = value else { return Ok(None) };
    let (_, id): (String, String) = codec::decode(&key, &value)?;
    Ok(Some(id))
}

/// What a person is told of the life of a conversation.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Life {
    pub(crate) family: Option<String>,
    /// With the id of its successor.
    pub(crate) archived: Option<(Archived, Option<String>)>,
}

impl Sound for Life {
    fn is_sound(&self) -> bool {
        self.archived.as_ref().is_none_or(|(archived, _)| archived.is_sound())
    }
}

impl Life {
    /// Of a conversation.
    ///
    /// # Errors
    ///
    /// As [`family_of`].
    pub(crate) fn read(reader: &mut Reader<'_>, keys: &Keys, head: &Head) -> Result<Self> {
        let archived = match head.archived {
            Some(archived) => Some((archived, successor(reader, &archived)?)),
            None => None,
        };
        Ok(Self { family: family_of(reader, keys, head)?, archived })
    }

    /// Keys of everything that will be read for it.
    pub(crate) fn wanted(keys: &Keys, head: &Head) -> impl Iterator<Item = String> {
        let successor = head.archived.and_then(|archived| archived.successor);
        let family = head.family.map(|family| keys.member(family));
        family.into_iter().chain(successor.map(keys::name_of))
    }

    /// Writes the member `archived`: null, or an object.
    pub(crate) fn write_archived(&self, object: &mut Writer) {
        let Some((archived, successor)) = &self.archived else {
            object.null("archived");
            return;
        };
        let mut inner = Writer::object();
        inner.text("cause", archived.cause.as_str());
        inner.text_or_null("successor", successor.as_deref());
        inner.time("time", archived.time);
        object.object_at("archived", inner);
    }
}
