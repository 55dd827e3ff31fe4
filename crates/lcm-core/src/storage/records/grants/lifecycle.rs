//! Lifecycle of grants: creation, revocation and listing.
//!
//! In: limits as JSON, from a caller who may read everything. Out: the grant as JSON. One commit
//! writes the record of the issuing conversation and a reference in every other covered
//! conversation, and removes expired grants from these records.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use super::{
    CONVERSATIONS_MAX, CoveredSummary, DEPTH_DEFAULT, DEPTH_MAX, FOREIGN_GRANTS_MAX, ForeignGrant,
    GRANTS_MAX, Grant, GrantAccess, GrantRecord, LoadedGrants, SUMMARIES_MAX, TOKENS_MAX,
    TTL_MS_DEFAULT, TTL_MS_MAX, conversation_names, denied_error, grant_name, is_within,
};
use crate::storage::{
    call::Call,
    changes::Changes,
    clock::{Clock, ClockReading, STEP_BACK_MS_MAX, TICKS_MAX},
    codec,
    head::{ConversationHead, JournalAction, LoadedHead, deletion_error},
    keys::ConversationKeys,
    links::ConversationLinks,
    store_session::StoreSession,
    summary::{self, Summary},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{JsonFields, JsonWriter},
    },
    config::Config,
    types::api::Timestamp,
};

/// Name of the argument with the limits, for error texts.
const GRANT: &str = "grant-json";
/// Most summary records that one host call reads; a record includes its text.
const SUMMARIES_PER_READ: usize = 16;

/// The limits that a caller requests for a grant; `None`: the field is absent.
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
        let is_blank = grant_json.trim().is_empty();
        let json = if is_blank { "{}" } else { grant_json };
        let mut fields = JsonFields::parse_argument(GRANT, json)?;
        let request = Self {
            conversations: read_id_list(&mut fields, "conversations", CONVERSATIONS_MAX),
            summaries: read_id_list(&mut fields, "summary_ids", SUMMARIES_MAX),
            depth_max: read_limit(&mut fields, "depth_max", DEPTH_MAX.into()),
            tokens_max: read_limit(&mut fields, "tokens_max", TOKENS_MAX.into()),
            ttl_ms: read_limit(&mut fields, "ttl_ms", TTL_MS_MAX),
            inherits_from: fields.take_optional_text("parent"),
        };
        fields.finish(GRANT)?;
        Ok(request)
    }
}

/// Reads an optional list of 1 to `count_max` ids and drops repetitions before counting. `None`:
/// the field is absent or no list of strings. A list of another length is returned, and `fields`
/// keeps the fault.
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

/// Reads an optional number from 1 to `max`. `None`: the field is absent or no number. A number out
/// of bounds is returned, and `fields` keeps the fault.
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
    /// The clocks of its grants record and of its head at the time of the call.
    clocks: [ClockReading; 2],
    /// The grants record, with its encoded value (`None`: absent). The outer `None`: the
    /// conversation issues the new grant, so its record needs no reference.
    record: Option<(GrantRecord, Option<Vec<u8>>)>,
}

/// Creates a grant and returns the grant as JSON.
///
/// Absent conversations are those of the parent grant; without a parent, the conversation of the
/// call. The new grant has at most one step less than its parent's depth, the tokens that the
/// parent has left, and the parent's end.
///
/// # Errors
///
/// - `invalid-input`: a limit is out of bounds.
/// - `not-found`: a conversation or summary does not exist.
/// - `limit-exceeded`: there are too many grants.
/// - `denied`: a conversation is being deleted; or the parent grant is not valid, has a depth of 1
///   or no tokens left, or does not cover a conversation or summary.
/// - `conflict`: another call committed first.
/// - Errors of the store.
pub(crate) fn create_grant(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    grant_json: &str,
) -> Result<String> {
    let Call { config, conversation, now, .. } = call;
    let request = GrantRequest::read(grant_json)?;
    let own = LoadedGrants::read(session, conversation, now)?;
    own.loaded.ensure_exists()?;
    let parent = match &request.inherits_from {
        Some(name) => Some(GrantAccess::from_grant(session, conversation, name, now)?),
        None => None,
    };
    let names = match (&request.conversations, &parent) {
        (Some(names), _) => names.clone(),
        (None, Some(parent)) => parent.list_conversations(session)?,
        (None, None) => alloc::vec![conversation.into()],
    };
    let mut grant = derive_limits(&request, config, parent.as_ref())?;
    if let Some(parent) = &parent {
        for name in &names {
            parent.ensure_covers(session, name)?;
        }
    }
    let issuer = &parent.as_ref().map_or(&own, |parent| &parent.record).loaded.head.conversation;
    let links = call.with_conversation(issuer, |call| {
        ConversationLinks::read(session, call, names.iter().map(String::as_str))
    })?;
    let issuer = ConversationKeys::new(issuer)?.conversation_hash();
    let mut covered = load_conversations(session, &names, issuer, now)?;
    grant.conversations = covered.iter().map(|one| one.keys.conversation_hash()).collect();
    grant.summaries = resolve_summaries(session, &request, &covered, parent.as_ref())?;
    let LoadedGrants { keys, loaded, bytes, mut grants, clock, head_clock } = match parent {
        Some(parent) => parent.record,
        None => own,
    };
    grants.clock = clock.clock;
    grant.issued_at = now;
    grant.set_end(request.ttl_ms.unwrap_or(TTL_MS_DEFAULT), &clock, &head_clock);
    let left_ms = grant.expires_at.saturating_sub(clock.ticks);
    let index = insert_grant(&mut grants, grant, &keys, [&clock, &head_clock])?;
    let Some(grant) = grants.own_grants.get(index) else {
        return Err(Error::corrupt_store("the new grant is missing in its record"));
    };
    let id = grant.id;
    let answer = build_object(&grants, head_clock.clock, grant, &names).end_object();
    let mut changes = Changes::default();
    links.add_to(&mut changes)?;
    store_head_clock(call, loaded, &head_clock, &mut changes)?;
    grants.write_to(&keys, clock.clock, bytes, &mut changes)?;
    for conversation in &mut covered {
        let Some((mut grants, bytes)) = conversation.record.take() else { continue };
        let [clock, head_clock] = conversation.clocks;
        grants.remove_expired(&clock, &head_clock);
        if grants.foreign_grants.len() >= FOREIGN_GRANTS_MAX {
            return Err(Error::limit_exceeded(format_args!(
                "`conversations` must name conversations that fewer than {FOREIGN_GRANTS_MAX} \
                 grants of other conversations cover; wait until one of these grants expires"
            )));
        }
        grants.foreign_grants.push(ForeignGrant {
            id,
            conversation: keys.conversation_hash(),
            expires_at: clock.deadline_after(left_ms),
        });
        grants.write_to(&conversation.keys, clock.clock, bytes, &mut changes)?;
    }
    session.commit_changes(&changes)?;
    Ok(answer)
}

/// Adds to `changes` a head of the issuer with the clock of the call, if the clock of the head is
/// more than five minutes behind or ahead. So after a step back of the host's clock, the first call
/// of any kind that commits stores the step, and from then on the ticks run towards the end of the
/// grant.
fn store_head_clock(
    call: Call<'_>,
    loaded: LoadedHead,
    clock: &ClockReading,
    changes: &mut Changes,
) -> Result<()> {
    let is_behind = clock.clock.time > loaded.head.clock.time.saturating_add(STEP_BACK_MS_MAX);
    if !is_behind && clock.step_back_ms == 0 {
        return Ok(());
    }
    let issuer = loaded.head.conversation.clone();
    call.with_conversation(&issuer, |call| {
        loaded.append_changes(call, JournalAction::Clock, changes).map(drop)
    })
}

/// Derives the limits of a new grant from the request, the defaults and the parent grant.
fn derive_limits(
    request: &GrantRequest,
    config: &Config,
    parent: Option<&GrantAccess>,
) -> Result<Grant> {
    let default = u64::from(config.expand_tokens_max.min(TOKENS_MAX));
    let mut depth_max = request.depth_max.unwrap_or(DEPTH_DEFAULT.into());
    let mut tokens_max = request.tokens_max.unwrap_or(default);
    let (mut inherits_from, mut expires_at, mut head_expires_at) = (None, TICKS_MAX, TICKS_MAX);
    if let Some(parent) = parent {
        parent.ensure_tokens_left()?;
        let parent_depth = u64::from(parent.depth_max() - 1);
        if parent_depth == 0 {
            return Err(denied_error("the parent grant has a depth of 1 and cannot be passed on"));
        }
        depth_max = depth_max.min(parent_depth);
        tokens_max = tokens_max.min(parent.tokens_left().into());
        let grant = parent.granted_record()?;
        (inherits_from, expires_at) = (Some(grant.id), grant.expires_at);
        head_expires_at = grant.head_expires_at;
    }
    Ok(Grant {
        id: [0; 8],
        inherits_from,
        issued_at: 0,
        expires_at,
        head_expires_at,
        revoked: false,
        depth_max: int::saturate_tokens(depth_max),
        tokens_max: int::saturate_tokens(tokens_max),
        tokens_spent: 0,
        conversations: Vec::new(),
        summaries: None,
    })
}

/// Reads the grants records of the conversations to cover, which must exist. `issuer` is the hash
/// of the issuing conversation.
fn load_conversations(
    session: &mut StoreSession<'_>,
    names: &[String],
    issuer: [u8; 16],
    now: Timestamp,
) -> Result<Vec<CoveredConversation>> {
    let mut wanted = Vec::new();
    for name in names {
        let keys = ConversationKeys::new(name)?;
        wanted.extend([keys.head_key(), keys.grants_key()]);
    }
    let values = session.read_uncached(&wanted)?;
    let mut covered = Vec::with_capacity(names.len());
    for (name, values) in names.iter().zip(values.chunks(2)) {
        let [Some(head), bytes] = values else {
            return Err(LoadedHead::missing_error(name));
        };
        if codec::is_tombstone(head) {
            return Err(deletion_error(name));
        }
        let keys = ConversationKeys::new(name)?;
        let head: ConversationHead = codec::decode(&keys.head_key(), head)?;
        let grants = GrantRecord::decode_or_default(&keys.grants_key(), bytes.as_deref())?;
        let clocks = [grants.clock.read_at(now), head.clock.read_at(now)];
        let record = (keys.conversation_hash() != issuer).then(|| (grants, bytes.clone()));
        covered.push(CoveredConversation { keys, clocks, record });
    }
    Ok(covered)
}

/// Finds the requested summaries in the covered conversations; `None`: the grant covers all
/// summaries.
fn resolve_summaries(
    session: &mut StoreSession<'_>,
    request: &GrantRequest,
    conversations: &[CoveredConversation],
    parent: Option<&GrantAccess>,
) -> Result<Option<Vec<CoveredSummary>>> {
    let Some(names) = &request.summaries else { return inherit_summaries(conversations, parent) };
    let mut ids = Vec::new();
    for name in names {
        ids.push(summary::parse_summary_id(name)?);
    }
    let mut found: Vec<Option<CoveredSummary>> = ids.iter().map(|_| None).collect();
    for (covered, conversation) in conversations.iter().zip(0u32..) {
        let spans = parent.and_then(|parent| parent.covered_spans(&covered.keys));
        let slots = found.chunks_mut(SUMMARIES_PER_READ);
        for (ids, slots) in ids.chunks(SUMMARIES_PER_READ).zip(slots) {
            let keys: Vec<String> = ids.iter().map(|id| covered.keys.summary_key(*id)).collect();
            for (((id, key), slot), value) in
                ids.iter().zip(&keys).zip(slots).zip(session.read_uncached(&keys)?)
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
        Some((name, _)) => {
            Err(parent.and_then(GrantAccess::uncovered_error).unwrap_or_else(|| {
                Error::not_found(format_args!(
                    "there is no summary `{name}` in the covered conversations"
                ))
            }))
        }
    }
}

/// Returns the summaries that the parent grant names in the conversations of the new grant. `None`:
/// there is no parent, or the parent covers all summaries.
fn inherit_summaries(
    conversations: &[CoveredConversation],
    parent: Option<&GrantAccess>,
) -> Result<Option<Vec<CoveredSummary>>> {
    let Some(parent) = parent else { return Ok(None) };
    let grant = parent.granted_record()?;
    let Some(covered) = &grant.summaries else { return Ok(None) };
    let mut list = Vec::new();
    for summary in covered {
        let id = grant.conversations.get(int::to_usize(summary.conversation.into()));
        let is_conversation = |one: &CoveredConversation| Some(&one.keys.conversation_hash()) == id;
        if let Some(index) = conversations.iter().position(is_conversation) {
            list.push(CoveredSummary { conversation: int::to_u32(index), ..*summary });
        }
    }
    if list.is_empty() {
        return Err(denied_error("the parent grant covers no summary of these conversations"));
    }
    Ok(Some(list))
}

/// Adds a new grant to a record; returns its index. Removes expired grants first, and revoked
/// grants if the record is full.
fn insert_grant(
    grants: &mut GrantRecord,
    mut grant: Grant,
    keys: &ConversationKeys,
    [clock, head_clock]: [&ClockReading; 2],
) -> Result<usize> {
    grants.remove_expired(clock, head_clock);
    if grants.own_grants.len() >= GRANTS_MAX {
        let are_valid: Vec<bool> =
            (0..grants.own_grants.len()).map(|index| !grants.is_revoked(index)).collect();
        let mut are_valid = are_valid.into_iter();
        grants.own_grants.retain(|_| are_valid.next().unwrap_or(true));
    }
    if grants.own_grants.len() >= GRANTS_MAX {
        return Err(Error::limit_exceeded(format_args!(
            "a conversation must have at most {GRANTS_MAX} grants; revoke a grant, or wait until a \
             grant expires"
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

/// Returns a grant as JSON, with the ids of its conversations.
fn build_object(
    grants: &GrantRecord,
    head_clock: Clock,
    grant: &Grant,
    conversations: &[String],
) -> JsonWriter {
    let left = grants.find_index(grant.id).map_or(0, |at| grants.tokens_left(at));
    let mut w = JsonWriter::new_object();
    w.add_texts("conversations", conversations);
    w.add_number("depth_max", grant.depth_max.into());
    w.add_time("expires_at", grant.end_time(grants.clock, head_clock));
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

/// Revokes a grant, and thereby all grants that inherit from it. Revoking again changes nothing.
///
/// # Errors
///
/// `not-found`: the grant was removed after it expired, or the conversation neither issued the
/// grant nor is covered by it; `conflict`: another call committed first; errors of the store.
pub(crate) fn revoke_grant(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    grant: &str,
) -> Result<()> {
    let found = LoadedGrants::find_grant(session, call.conversation, grant, call.now)?;
    let Some((record, index)) = found else {
        LoadedHead::open_existing(session, call)?;
        return Err(Error::not_found(format_args!(
            "this conversation neither issued the grant `{grant}` nor is covered by it; an expired \
             grant needs no revocation"
        )));
    };
    let LoadedGrants { keys, bytes, mut grants, clock, .. } = record;
    match grants.own_grants.get_mut(index) {
        Some(grant) if !grant.revoked => grant.revoked = true,
        _ => return Ok(()),
    }
    let mut changes = Changes::default();
    grants.write_to(&keys, clock.clock, bytes, &mut changes)?;
    session.commit_changes(&changes)
}

/// Removes from the grants record of another conversation all entries that name a deleted
/// conversation. These entries are the grants that cover the deleted conversation, the grants that
/// inherit from those grants, and the references to grants that the deleted conversation issued.
/// Returns the changed record; `None`: no entry was removed.
pub(crate) fn forget_conversation(
    mut record: GrantRecord,
    deleted: [u8; 16],
) -> Option<GrantRecord> {
    let before = record.own_grants.len() + record.foreign_grants.len();
    let mut gone: Vec<[u8; 8]> = Vec::new();
    // A grant follows its parent.
    record.own_grants.retain(|grant| {
        let is_heir = grant.inherits_from.is_some_and(|parent| gone.contains(&parent));
        let is_gone = is_heir || grant.conversations.contains(&deleted);
        if is_gone {
            gone.push(grant.id);
        }
        !is_gone
    });
    record.foreign_grants.retain(|foreign| foreign.conversation != deleted);
    let after = record.own_grants.len() + record.foreign_grants.len();
    (after != before).then_some(record)
}

/// Lists the grants that a conversation issued, in order of creation, without removed grants.
///
/// # Errors
///
/// `not-found`: the conversation does not exist; `denied`: the conversation is being deleted;
/// errors of the store.
pub(crate) fn list_grants(session: &mut StoreSession<'_>, call: Call<'_>) -> Result<JsonWriter> {
    let record = LoadedGrants::read(session, call.conversation, 0)?;
    record.loaded.ensure_exists()?;
    let head_clock = record.loaded.head.clock;
    let mut items = JsonWriter::new_array();
    for grant in &record.grants.own_grants {
        let conversations = conversation_names(session, &grant.conversations)?;
        items.push_object(build_object(&record.grants, head_clock, grant, &conversations));
    }
    Ok(items)
}
