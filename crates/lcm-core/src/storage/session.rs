//! Rules of a session: its family, its archive, and whether the configuration skips the session.
//!
//! In: a head and the configuration. Out: whether a write is refused, the family, the successor,
//! and the policy of a call. All operations use these rules. The records are in
//! [`crate::storage::records::session`], the commands in `crate::admin`.

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    call::Call,
    changes::Changes,
    codec::{self, SoundRecord},
    head::{ConversationHead, LoadedHead},
    keys::{self, ConversationKeys},
    records::session::{ArchiveRecord, FamilyMember},
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        glob,
        json::JsonWriter,
        limits,
    },
    config::{BudgetPolicy, OverrideContext},
};

/// Most family keys that a conversation without a family tries.
const FREE_FAMILIES_MAX: u32 = 1_000;

/// Adds a conversation to the family with the key `family`: changes the head, and adds the member
/// record to `changes`. Returns false if the conversation is in this family already.
///
/// `call.now` becomes the time of joining. `numbered_from` is stored
/// in [`FamilyMember::numbered_from`].
///
/// # Errors
///
/// `invalid-input`: `family` is empty or longer than 512 bytes; `exists`: the conversation has
/// another family.
pub(crate) fn join_family(
    call: Call<'_>,
    head: &mut ConversationHead,
    family: &str,
    numbered_from: Option<String>,
    changes: &mut Changes,
) -> Result<bool> {
    ensure_family_key(family)?;
    let hash = keys::family_hash(family);
    let conversation = &head.conversation;
    match head.family {
        Some(known) if known == hash => return Ok(false),
        Some(_) => {
            let message = format!("conversation `{conversation}` belongs to another family");
            return Err(Error::new(ErrorCode::Exists, message));
        }
        None => {}
    }
    let conversation = conversation.clone();
    let joined_at = call.now;
    let member = FamilyMember { family: family.into(), conversation, joined_at, numbered_from };
    changes.write_record(&FamilyMember::key(call.keys, hash), &member)?;
    head.family = Some(hash);
    Ok(true)
}

/// Ensures that a family key has 1 to 512 bytes.
///
/// # Errors
///
/// `invalid-input`: the key is empty or longer.
pub(crate) fn ensure_family_key(family: &str) -> Result<()> {
    if (1..=limits::CONVERSATION_BYTES_MAX).contains(&family.len()) {
        return Ok(());
    }
    Err(Error::invalid_input(format_args!(
        "`family` must have 1 to {} bytes, got {}",
        limits::CONVERSATION_BYTES_MAX,
        family.len()
    )))
}

/// Lists the conversations of the family with the key `family`, latest to join first.
///
/// # Errors
///
/// `not-found`: the family has no conversation; errors of the store.
pub(crate) fn list_members(session: &mut StoreSession<'_>, family: &str) -> Result<Vec<String>> {
    let members = list_other_members(session, keys::family_hash(family), "")?;
    // Another family may have the same hash.
    let members = members.into_iter().filter(|member| member.family == family);
    let ids: Vec<String> = members.map(|member| member.conversation).collect();
    if ids.is_empty() {
        return Err(Error::not_found(format_args!("family `{family}` does not exist")));
    }
    Ok(ids)
}

/// Returns the first of these conversations that is not archived; `None`: all are archived.
///
/// # Errors
///
/// Errors of [`LoadedHead::load_head`].
pub(crate) fn find_live_member<'a>(
    session: &mut StoreSession<'_>,
    members: &'a [String],
) -> Result<Option<&'a str>> {
    for conversation in members {
        let keys = ConversationKeys::new(conversation)?;
        let loaded = LoadedHead::load_head(session, &keys, conversation)?;
        if loaded.bytes.is_some() && loaded.head.archived.is_none() {
            return Ok(Some(conversation));
        }
    }
    Ok(None)
}

/// Returns whether a conversation belongs to a family other than `family`.
pub(crate) fn has_other_family(head: &ConversationHead, family: &str) -> bool {
    head.family.is_some_and(|known| known != keys::family_hash(family))
}

/// Returns a family key for a conversation without a family. The key is the conversation's id, or
/// the id with a number if the family with the key `id` has other members.
///
/// A deleted conversation with the same id may have left successors in the family `id`. Calls on
/// this conversation must not read these successors.
///
/// # Errors
///
/// `exists`: all 1,000 such families have members; errors of the store.
pub(crate) fn find_free_family(
    session: &mut StoreSession<'_>,
    conversation: &str,
) -> Result<String> {
    for number in 1..=FREE_FAMILIES_MAX {
        let key = match number {
            1 => String::from(conversation),
            _ => format!("{conversation}~{number}"),
        };
        if list_other_members(session, keys::family_hash(&key), conversation)?.is_empty() {
            return Ok(key);
        }
    }
    let message = format!(
        "`family` must be joined first: the families `{conversation}` to \
         `{conversation}~{FREE_FAMILIES_MAX}` have members"
    );
    Err(Error::new(ErrorCode::Exists, message))
}

/// Lists the members of a family except `conversation`, latest to join first.
///
/// # Errors
///
/// Errors of the store.
pub(crate) fn list_other_members(
    session: &mut StoreSession<'_>,
    family: [u8; 16],
    conversation: &str,
) -> Result<Vec<FamilyMember>> {
    let (start, end) = keys::family_members_range(family);
    let mut members = Vec::new();
    session.scan_range(&start, &end, &mut |key, value| {
        let member: FamilyMember = codec::decode(key, value)?;
        if member.conversation != conversation {
            members.push(member);
        }
        Ok(())
    })?;
    lcm_text::base::sort::sort_by(&mut members, &mut |a, b| {
        b.joined_at.cmp(&a.joined_at).then_with(|| a.conversation.cmp(&b.conversation))
    });
    Ok(members)
}

/// Returns why the configuration skips a conversation; `None`: the conversation is stored.
///
/// The reason is `ignored-session`, or `stateless-session` if the configuration sets
/// `skip_stateless_sessions`. If both fit, the reason is `ignored-session`. Patterns are compared
/// with `family`, the family key that the call names. If the call names none, patterns are compared
/// with the stored family key, or with the conversation id if there is no family.
///
/// # Errors
///
/// Errors of [`read_family`].
pub(crate) fn find_skip_reason(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    family: Option<&str>,
) -> Result<Option<&'static str>> {
    let config = call.config;
    let none: &[String] = &[];
    let stateless: &[String] =
        if config.skip_stateless_sessions { &config.stateless_session_patterns } else { none };
    if config.ignore_session_patterns.is_empty() && stateless.is_empty() {
        return Ok(None);
    }
    let name = match family {
        Some(family) => family.into(),
        None => read_session_name(session, call.keys, head)?,
    };
    let fits = |patterns: &[String]| patterns.iter().any(|pattern| glob::matches(pattern, &name));
    Ok(match () {
        () if fits(&config.ignore_session_patterns) => Some("ignored-session"),
        () if fits(stateless) => Some("stateless-session"),
        () => None,
    })
}

/// Ensures that the configuration does not skip the session.
///
/// # Errors
///
/// `denied`: the configuration skips the session; errors of [`read_family`].
pub(crate) fn ensure_not_skipped(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
) -> Result<()> {
    match find_skip_reason(session, call, head, None)? {
        Some(reason) => Err(Error::new(ErrorCode::Denied, build_skip_warning(reason))),
        None => Ok(()),
    }
}

/// Returns the name that session patterns match: the family key, else the conversation id.
///
/// # Errors
///
/// Errors of [`read_family`].
fn read_session_name(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    head: &ConversationHead,
) -> Result<String> {
    Ok(read_family(session, keys, head)?.unwrap_or_else(|| head.conversation.clone()))
}

/// The model and budget of a call, from which the policy follows.
pub(crate) struct PolicyRequest<'a> {
    /// Model of the call, which an override may name; `None`: the call names no model.
    pub(crate) model: Option<&'a str>,
    /// Budget of the call, in tokens as the provider counts them.
    pub(crate) budget: u32,
    /// `budget`, converted to estimated tokens; equal to `budget` without calibration.
    pub(crate) estimated_budget: u32,
}

/// Returns the budget policy of a call, and the index of the override that applies; `None`: no
/// override applies.
///
/// # Errors
///
/// `invalid-input`: the budget is 0; errors of [`read_family`].
pub(crate) fn select_policy(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    request: &PolicyRequest<'_>,
) -> Result<(BudgetPolicy, Option<usize>)> {
    let Call { config, keys, .. } = call;
    let PolicyRequest { model, budget, estimated_budget } = *request;
    let name = match config.has_session_overrides() {
        true => read_session_name(session, keys, head)?,
        false => String::new(),
    };
    let rule = config.find_override(&OverrideContext { model, session: &name, budget });
    Ok((config.derive_policy_with(estimated_budget, rule)?, rule))
}

/// Builds the text that tells that the configuration skips the session.
pub(crate) fn build_skip_warning(reason: &str) -> String {
    format!("{reason}: the configuration stores nothing of this session")
}

/// Returns the family key of a conversation; `None`: the conversation has no family.
///
/// # Errors
///
/// - `conflict`: the family does not list the conversation, and the head has changed.
/// - `corrupt`: the family does not list the conversation, and the head has not changed; or the
///   member record is damaged, or names another family or conversation.
/// - `unsupported`: the member record has a newer format.
/// - Errors of the store.
pub(crate) fn read_family(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    head: &ConversationHead,
) -> Result<Option<String>> {
    let Some(hash) = head.family else { return Ok(None) };
    let key = keys.family_member_key(hash);
    let value = session.read_content_addressed(core::slice::from_ref(&key), &[])?.pop().flatten();
    let Some(value) = value else { return Err(session.missing_record_error(&key)) };
    // The cached record may be of an earlier life of the id, in the same family.
    Ok(Some(decode_member(&key, &value, head)?.family))
}

/// Reads the member record of a conversation in its family; `None`: no family.
///
/// # Errors
///
/// Errors of [`read_family`].
pub(crate) fn read_member(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
    head: &ConversationHead,
) -> Result<Option<FamilyMember>> {
    let Some(hash) = head.family else { return Ok(None) };
    let key = keys.family_member_key(hash);
    let Some(value) = session.read_one_uncached(&key)? else {
        return Err(session.missing_record_error(&key));
    };
    decode_member(&key, &value, head).map(Some)
}

fn decode_member(key: &str, value: &[u8], head: &ConversationHead) -> Result<FamilyMember> {
    let member: FamilyMember = codec::decode(key, value)?;
    let is_family = head.family == Some(keys::family_hash(&member.family));
    if !is_family || member.conversation != head.conversation {
        return Err(Error::corrupt_store(format_args!(
            "`{key}` names another family or conversation"
        )));
    }
    Ok(member)
}

/// Ensures that the conversation is not archived.
///
/// # Errors
///
/// `denied`: the conversation is archived; errors of the store.
pub(crate) fn ensure_not_archived(
    session: &mut StoreSession<'_>,
    head: &ConversationHead,
) -> Result<()> {
    let Some(archived) = head.archived else { return Ok(()) };
    let successor = find_successor(session, &archived)?;
    let elsewhere =
        successor.map_or(String::new(), |id| format!("; write to its successor `{id}`"));
    let (id, cause) = (&head.conversation, archived.cause.as_str());
    let message = format!("conversation `{id}` was archived ({cause}){elsewhere}");
    Err(Error::new(ErrorCode::Denied, message))
}

/// Returns the id of the successor; `None`: there is no successor, or it was deleted or is being
/// deleted.
///
/// # Errors
///
/// Errors of the store.
pub(crate) fn find_successor(
    session: &mut StoreSession<'_>,
    archived: &ArchiveRecord,
) -> Result<Option<String>> {
    let Some(hash) = archived.successor else { return Ok(None) };
    Ok(read_conversation_names(session, &[hash])?.pop().flatten())
}

/// Reads the ids of conversations from their hashes; `None`: the conversation does not exist or is
/// being deleted.
///
/// Nothing is cached, because another instance may delete a conversation.
///
/// # Errors
///
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
pub(crate) fn read_conversation_names(
    session: &mut StoreSession<'_>,
    hashes: &[[u8; 16]],
) -> Result<Vec<Option<String>>> {
    let keys: Vec<String> = hashes.iter().copied().map(keys::conversation_name_key).collect();
    let decode_name = |(key, value): (&String, Option<Vec<u8>>)| {
        value.map(|value| codec::decode::<(String, String)>(key, &value)).transpose()
    };
    let names = keys.iter().zip(session.read_uncached(&keys)?).map(decode_name);
    names.map(|name| Ok(name?.map(|(_, id)| id))).collect()
}

/// Family key (`None`: no family) and archive record of a conversation, for listings, status and
/// export.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct SessionLifecycle {
    pub(crate) family: Option<String>,
    /// The archive record, with the id of the successor; `None`: not archived.
    pub(crate) archived: Option<(ArchiveRecord, Option<String>)>,
}

impl SoundRecord for SessionLifecycle {
    fn is_sound(&self) -> bool {
        self.archived.as_ref().is_none_or(|(archived, _)| archived.is_sound())
    }
}

impl SessionLifecycle {
    /// Reads the family key and the id of the successor to which the head refers.
    ///
    /// # Errors
    ///
    /// Errors of [`read_family`].
    pub(crate) fn read(
        session: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        head: &ConversationHead,
    ) -> Result<Self> {
        let successor = match &head.archived {
            Some(archived) => find_successor(session, archived)?,
            None => None,
        };
        Self::with_successor(session, keys, head, successor)
    }

    /// Reads the family of a conversation whose successor was read.
    ///
    /// # Errors
    ///
    /// Errors of [`read_family`].
    pub(crate) fn with_successor(
        session: &mut StoreSession<'_>,
        keys: &ConversationKeys,
        head: &ConversationHead,
        successor: Option<String>,
    ) -> Result<Self> {
        let archived = head.archived.map(|archived| (archived, successor));
        Ok(Self { family: read_family(session, keys, head)?, archived })
    }

    /// Adds the member `archived` to a JSON object: the archive record, or null if not archived.
    pub(crate) fn write_archived(&self, object: &mut JsonWriter) {
        let Some((archived, successor)) = &self.archived else {
            object.add_null("archived");
            return;
        };
        let mut inner = JsonWriter::new_object();
        inner.add_text("cause", archived.cause.as_str());
        inner.add_optional_text("successor", successor.as_deref());
        inner.add_time("archived_at", archived.time);
        object.add_object("archived", inner);
    }
}
