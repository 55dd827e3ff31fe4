//! Making, ending and listing grants.
//!
//! In: limits as JSON, from whoever may read everything. Out: the grant, in one commit that writes
//! the record of the conversation that issues it and a reference in every other one that it covers.
//! What has expired goes in the same commit. Not here: what a grant means for a read.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use super::{
    CONVERSATIONS_MAX, CoveredSummary, DEPTH_DEFAULT, DEPTH_MAX, FOREIGN_GRANTS_MAX, ForeignGrant,
    GRANTS_MAX, Grant, GrantAccess, GrantRecord, LoadedGrants, SUMMARIES_MAX, TOKENS_MAX,
    TTL_MS_DEFAULT, TTL_MS_MAX, conversation_names, denied_error, grant_name, is_within,
};
use crate::storage::{
    codec,
    keys::ConversationKeys,
    store_session::StoreSession,
    summary::{self, Summary},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{JsonFields, JsonWriter},
        time,
    },
    config::Config,
    types::api::Timestamp,
};

/// Name of the argument that holds the limits.
const GRANT: &str = "grant-json";
/// Summaries that are read at a time: their texts come with them.
const SUMMARIES_PER_READ: usize = 16;

/// Limits as they are asked for.
struct GrantRequest {
    conversations: Option<Vec<String>>,
    summaries: Option<Vec<String>>,
    depth_max: Option<u64>,
    tokens_max: Option<u64>,
    ttl_ms: Option<u64>,
    inherits_from: Option<String>,
}

impl GrantRequest {
    fn read(grant_json: &str) -> Result<Self> {
        let none = grant_json.trim().is_empty();
        let mut fields = JsonFields::parse_argument(GRANT, if none { "{}" } else { grant_json })?;
        let asked = Self {
            conversations: read_id_list(&mut fields, "conversations", CONVERSATIONS_MAX),
            summaries: read_id_list(&mut fields, "summary_ids", SUMMARIES_MAX),
            depth_max: read_limit(&mut fields, "depth_max", DEPTH_MAX.into()),
            tokens_max: read_limit(&mut fields, "tokens_max", TOKENS_MAX.into()),
            ttl_ms: read_limit(&mut fields, "ttl_ms", TTL_MS_MAX),
            inherits_from: fields.take_optional_text("parent"),
        };
        fields.finish(GRANT)?;
        Ok(asked)
    }
}

/// A list that, when it is there, names something; each once.
fn read_id_list(fields: &mut JsonFields<'_>, key: &str, count_max: usize) -> Option<Vec<String>> {
    let mut distinct: Vec<String> = Vec::new();
    for text in fields.take_optional_texts(key)? {
        if !distinct.contains(&text) {
            distinct.push(text);
        }
    }
    if distinct.is_empty() || distinct.len() > count_max {
        fields.reject_field(key, &format!("a list of 1 to {count_max} ids"));
    }
    Some(distinct)
}

/// A whole number from 1 on.
fn read_limit(fields: &mut JsonFields<'_>, key: &str, max: u64) -> Option<u64> {
    let number = fields.take_optional_u64(key)?;
    if number == 0 || number > max {
        fields.reject_field(key, &format!("from 1 to {max}"));
    }
    Some(number)
}

/// A conversation that a new grant covers.
struct CoveredConversation {
    keys: ConversationKeys,
    /// Its grants with the bytes that guard them; `None`: it is the one that issues the grant.
    record: Option<(GrantRecord, Option<Vec<u8>>)>,
}

/// Makes a grant and returns it as JSON.
///
/// # Errors
///
/// `invalid-input`: limits out of their bounds; `not-found`: a conversation or summary;
/// `limit-exceeded`: too many grants; `denied`: the grant that it is to inherit from does not stand
/// or does not allow it; `conflict`; errors of the store.
pub(crate) fn create_grant(
    reader: &mut StoreSession<'_>,
    config: &Config,
    conversation: &str,
    grant_json: &str,
    now: Timestamp,
) -> Result<String> {
    let asked = GrantRequest::read(grant_json)?;
    let own = LoadedGrants::read(reader, conversation, now)?;
    own.loaded.ensure_exists()?;
    let above = match &asked.inherits_from {
        Some(from) => Some(GrantAccess::from_grant(reader, conversation, from, now)?),
        None => None,
    };
    let covered = match (&asked.conversations, &above) {
        (Some(names), _) => names.clone(),
        (None, Some(above)) => above.list_conversations(reader)?,
        (None, None) => alloc::vec![conversation.into()],
    };
    let mut grant = derive_limits(&asked, config, above.as_ref())?;
    if let Some(above) = &above {
        for name in &covered {
            above.ensure_covers(reader, name)?;
        }
    }
    let issuer = above.as_ref().map_or(&own, |above| &above.record).keys.conversation_hash();
    let mut places = load_conversations(reader, &covered, issuer)?;
    grant.conversations = places.iter().map(|place| place.keys.conversation_hash()).collect();
    grant.summaries = resolve_summaries(reader, &asked, &places, above.as_ref())?;
    let LoadedGrants { keys, bytes, mut grants, now, .. } = match above {
        Some(above) => above.record,
        None => own,
    };
    grant.issued_at = now;
    let ttl_ms = asked.ttl_ms.unwrap_or(TTL_MS_DEFAULT);
    grant.expires_at = grant.expires_at.min(now.saturating_add(ttl_ms)).min(time::MS_MAX);
    let at = insert_grant(&mut grants, grant, &keys, now)?;
    let Some(grant) = grants.own_grants.get(at) else {
        return Err(Error::corrupt_store("a grant is lost"));
    };
    let (id, expires_at) = (grant.id, grant.expires_at);
    let answer = build_object(&grants, grant, &covered).end_object();
    let (guard, put) = grants.build_commit(&keys, now, bytes)?;
    let (mut guards, mut puts) = (alloc::vec![guard], alloc::vec![put]);
    for place in &mut places {
        let Some((mut grants, bytes)) = place.record.take() else { continue };
        grants.remove_expired(now);
        if grants.foreign_grants.len() >= FOREIGN_GRANTS_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "conversations: {FOREIGN_GRANTS_MAX} grants of others cover one of these; wait until \
                 one expires"
            )));
        }
        grants.foreign_grants.push(ForeignGrant {
            id,
            conversation: keys.conversation_hash(),
            expires_at,
        });
        let (guard, put) = grants.build_commit(&place.keys, now, bytes)?;
        guards.push(guard);
        puts.push(put);
    }
    reader.commit(&guards, &puts)?;
    Ok(answer)
}

/// The numbers of a new grant: those asked for, within those of the one that it inherits from.
fn derive_limits(
    asked: &GrantRequest,
    config: &Config,
    above: Option<&GrantAccess>,
) -> Result<Grant> {
    let default = u64::from(config.expand_tokens_max.min(TOKENS_MAX));
    let mut depth_max = asked.depth_max.unwrap_or(DEPTH_DEFAULT.into());
    let mut tokens_max = asked.tokens_max.unwrap_or(default);
    let (mut from, mut expires_at) = (None, time::MS_MAX);
    if let Some(above) = above {
        above.ensure_tokens_left()?;
        let deeper = u64::from(above.depth_max() - 1);
        if deeper == 0 {
            return Err(denied_error("from: that grant has a depth of 1 and gives none on"));
        }
        depth_max = depth_max.min(deeper);
        tokens_max = tokens_max.min(above.tokens_left().into());
        (from, expires_at) = (Some(above.granted_record()?.id), above.granted_record()?.expires_at);
    }
    Ok(Grant {
        id: [0; 8],
        inherits_from: from,
        issued_at: 0,
        expires_at,
        revoked: false,
        depth_max: int::saturate_tokens(depth_max),
        tokens_max: int::saturate_tokens(tokens_max),
        tokens_spent: 0,
        conversations: Vec::new(),
        summaries: None,
    })
}

/// The conversations that a grant is to cover, all of which exist.
fn load_conversations(
    reader: &mut StoreSession<'_>,
    names: &[String],
    issuer: [u8; 16],
) -> Result<Vec<CoveredConversation>> {
    let mut wanted = Vec::new();
    for name in names {
        let keys = ConversationKeys::new(name)?;
        wanted.extend([keys.head_key(), keys.grants_key()]);
    }
    let values = reader.read_uncached(&wanted)?;
    let mut places = Vec::with_capacity(names.len());
    for (name, values) in names.iter().zip(values.chunks(2)) {
        let [Some(_), bytes] = values else {
            return Err(Error::not_found(format_args!("conversation `{name}` does not exist")));
        };
        let keys = ConversationKeys::new(name)?;
        let record = if keys.conversation_hash() == issuer {
            None
        } else {
            Some((
                GrantRecord::decode_or_default(&keys.grants_key(), bytes.as_deref())?,
                bytes.clone(),
            ))
        };
        places.push(CoveredConversation { keys, record });
    }
    Ok(places)
}

/// The summaries that a grant is to be limited to.
fn resolve_summaries(
    reader: &mut StoreSession<'_>,
    asked: &GrantRequest,
    places: &[CoveredConversation],
    above: Option<&GrantAccess>,
) -> Result<Option<Vec<CoveredSummary>>> {
    let Some(names) = &asked.summaries else { return inherit_summaries(places, above) };
    let mut ids = Vec::new();
    for name in names {
        ids.push(summary::parse_summary_id(name)?);
    }
    let mut found: Vec<Option<CoveredSummary>> = ids.iter().map(|_| None).collect();
    for (place, conversation) in places.iter().zip(0u32..) {
        let spans = above.and_then(|above| above.covered_spans(&place.keys));
        let slots = found.chunks_mut(SUMMARIES_PER_READ);
        for (ids, slots) in ids.chunks(SUMMARIES_PER_READ).zip(slots) {
            let keys: Vec<String> = ids.iter().map(|id| place.keys.summary_key(*id)).collect();
            for (((id, key), slot), value) in
                ids.iter().zip(&keys).zip(slots).zip(reader.read_uncached(&keys)?)
            {
                let Some(value) = value else { continue };
                let record: Summary = codec::decode(key, &value)?;
                let (seq_first, seq_last) = (record.seq_first, record.seq_last);
                if slot.is_none() && is_within(spans.as_deref(), seq_first, seq_last) {
                    *slot = Some(CoveredSummary { id: *id, conversation, seq_first, seq_last });
                }
            }
        }
    }
    let missing = names.iter().zip(&found).find(|(_, found)| found.is_none());
    match missing {
        None => Ok(Some(found.into_iter().flatten().collect())),
        Some((name, _)) => Err(above.and_then(GrantAccess::uncovered_error).unwrap_or_else(|| {
            Error::not_found(format_args!("summaries: there is no `{name}` in what is covered"))
        })),
    }
}

/// The summaries of the grant above, in the conversations that the new one covers.
fn inherit_summaries(
    places: &[CoveredConversation],
    above: Option<&GrantAccess>,
) -> Result<Option<Vec<CoveredSummary>>> {
    let Some(above) = above else { return Ok(None) };
    let grant = above.granted_record()?;
    let Some(covered) = &grant.summaries else { return Ok(None) };
    let mut list = Vec::new();
    for one in covered {
        let id = grant.conversations.get(int::to_usize(one.conversation.into()));
        let place = places.iter().position(|place| Some(&place.keys.conversation_hash()) == id);
        if let Some(place) = place {
            list.push(CoveredSummary { conversation: int::to_u32(place), ..*one });
        }
    }
    if list.is_empty() {
        return Err(denied_error("from: that grant covers nothing in these conversations"));
    }
    Ok(Some(list))
}

/// Takes a new grant into a record, when there is a place for it; returns which.
fn insert_grant(
    grants: &mut GrantRecord,
    mut grant: Grant,
    keys: &ConversationKeys,
    now: Timestamp,
) -> Result<usize> {
    grants.remove_expired(now);
    if grants.own_grants.len() >= GRANTS_MAX {
        let stands: Vec<bool> =
            (0..grants.own_grants.len()).map(|at| !grants.is_revoked(at)).collect();
        let mut stands = stands.into_iter();
        grants.own_grants.retain(|_| stands.next().unwrap_or(true));
    }
    if grants.own_grants.len() >= GRANTS_MAX {
        return Err(Error::limit_exceeded(format_args!(
            "the conversation has {GRANTS_MAX} grants that stand; revoke one, or wait until one \
             expires"
        )));
    }
    let contents = codec::encode(&grant)?;
    let number = grants.issued_count.to_be_bytes();
    grant.id = hash::hash_prefix(&hash::hash_fields(&[
        b"lcm grant",
        &keys.conversation_hash(),
        &number,
        &contents,
    ]));
    grants.issued_count += 1;
    grants.own_grants.push(grant);
    Ok(grants.own_grants.len() - 1)
}

/// A grant as JSON.
fn build_object(grants: &GrantRecord, grant: &Grant, conversations: &[String]) -> JsonWriter {
    let left = grants.find_index(grant.id).map_or(0, |at| grants.tokens_left(at));
    let mut w = JsonWriter::new_object();
    w.add_texts("conversations", conversations);
    w.add_number("depth_max", grant.depth_max.into());
    w.add_time("expires_at", grant.expires_at);
    w.add_text("id", &grant_name(grant.id));
    w.add_time("issued_at", grant.issued_at);
    w.add_optional_text("parent", grant.inherits_from.map(grant_name).as_deref());
    w.add_flag("revoked", grants.find_index(grant.id).is_some_and(|at| grants.is_revoked(at)));
    match &grant.summaries {
        None => w.add_null("summary_ids"),
        Some(covered) => {
            let ids: Vec<String> =
                covered.iter().map(|one| summary::format_summary_id(one.id)).collect();
            w.add_texts("summary_ids", &ids);
        }
    }
    w.add_number("tokens_left", left.into());
    w.add_number("tokens_max", grant.tokens_max.into());
    w
}

/// Ends a grant at once, and with it those that inherit from it.
///
/// # Errors
///
/// `not-found`: neither issued by the conversation nor covering it; `conflict`; errors of the
/// store.
pub(crate) fn revoke_grant(
    reader: &mut StoreSession<'_>,
    conversation: &str,
    grant: &str,
    now: Timestamp,
) -> Result<()> {
    let Some((record, at)) = LoadedGrants::find_grant(reader, conversation, grant, now)? else {
        return Err(Error::not_found("there is no such grant of this conversation"));
    };
    let LoadedGrants { keys, bytes, mut grants, now, .. } = record;
    match grants.own_grants.get_mut(at) {
        Some(grant) if !grant.revoked => grant.revoked = true,
        _ => return Ok(()),
    }
    let (guard, put) = grants.build_commit(&keys, now, bytes)?;
    reader.commit(&[guard], &[put])
}

/// The grants that a conversation issued, in that order, until they are swept.
///
/// # Errors
///
/// `not-found`; errors of the store.
pub(crate) fn list_grants(reader: &mut StoreSession<'_>, conversation: &str) -> Result<JsonWriter> {
    let record = LoadedGrants::read(reader, conversation, 0)?;
    record.loaded.ensure_exists()?;
    let mut items = JsonWriter::new_array();
    for grant in &record.grants.own_grants {
        let conversations = conversation_names(reader, &grant.conversations)?;
        items.push_object(build_object(&record.grants, grant, &conversations));
    }
    Ok(items)
}
