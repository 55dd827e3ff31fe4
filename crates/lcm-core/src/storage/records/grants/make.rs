//! Making, ending and listing grants.
//!
//! In: limits as JSON, from whoever may read everything. Out: the grant, in one commit that writes
//! the record of the conversation that issues it and a reference in every other one that it covers.
//! What has expired goes in the same commit. Not here: what a grant means for a read.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use super::{
    CONVERSATIONS_MAX, Covered, DEPTH, DEPTH_MAX, ELSEWHERE_MAX, Elsewhere, GRANTS_MAX, Grant,
    Grants, Permit, Record, SUMMARIES_MAX, TOKENS_MAX, TTL_MS, TTL_MS_MAX, denied, is_within, name,
    names,
};
use crate::storage::{
    codec,
    keys::Keys,
    store_session::Reader,
    summary::{self, Summary},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{Fields, Writer},
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
struct Asked {
    conversations: Option<Vec<String>>,
    summaries: Option<Vec<String>>,
    depth_max: Option<u64>,
    tokens_max: Option<u64>,
    ttl_ms: Option<u64>,
    from: Option<String>,
}

impl Asked {
    fn read(grant_json: &str) -> Result<Self> {
        let none = grant_json.trim().is_empty();
        let mut fields = Fields::of_argument(GRANT, if none { "{}" } else { grant_json })?;
        let asked = Self {
            conversations: list(&mut fields, "conversations", CONVERSATIONS_MAX),
            summaries: list(&mut fields, "summaries", SUMMARIES_MAX),
            depth_max: number(&mut fields, "depth_max", DEPTH_MAX.into()),
            tokens_max: number(&mut fields, "tokens_max", TOKENS_MAX.into()),
            ttl_ms: number(&mut fields, "ttl_ms", TTL_MS_MAX),
            from: fields.text_or_none("from"),
        };
        fields.end(GRANT)?;
        Ok(asked)
    }
}

/// A list that, when it is there, names something; each once.
fn list(fields: &mut Fields<'_>, key: &str, count_max: usize) -> Option<Vec<String>> {
    let mut distinct: Vec<String> = Vec::new();
    for text in fields.texts_or_none(key)? {
        if !distinct.contains(&text) {
            distinct.push(text);
        }
    }
    if distinct.is_empty() || distinct.len() > count_max {
        fields.must_be(key, &format!("a list of 1 to {count_max} ids"));
    }
    Some(distinct)
}

/// A whole number from 1 on.
fn number(fields: &mut Fields<'_>, key: &str, max: u64) -> Option<u64> {
    let number = fields.number_or_none(key)?;
    if number == 0 || number > max {
        fields.must_be(key, &format!("from 1 to {max}"));
    }
    Some(number)
}

/// A conversation that a new grant covers.
struct Place {
    keys: Keys,
    /// Its grants with the bytes that guard them; `None`: it is the one that issues the grant.
    record: Option<(Grants, Option<Vec<u8>>)>,
}

/// Makes a grant and returns it as JSON.
///
/// # Errors
///
/// `invalid-input`: limits out of their bounds; `not-found`: a conversation or summary;
/// `limit-exceeded`: too many grants; `denied`: the grant that it is to inherit from does not stand
/// or does not allow it; `conflict`; errors of the store.
pub(crate) fn make(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    grant_json: &str,
    now: Timestamp,
) -> Result<String> {
    let asked = Asked::read(grant_json)?;
    let own = Record::read(reader, conversation, now)?;
    own.loaded.must_exist()?;
    let above = match &asked.from {
        Some(from) => Some(Permit::of(reader, conversation, from, now)?),
        None => None,
    };
    let covered = match (&asked.conversations, &above) {
        (Some(names), _) => names.clone(),
        (None, Some(above)) => above.conversations(reader)?,
        (None, None) => alloc::vec![conversation.into()],
    };
    let mut grant = limits(&asked, config, above.as_ref())?;
    if let Some(above) = &above {
        for name in &covered {
            above.must_cover(reader, name)?;
        }
    }
    let issuer = above.as_ref().map_or(&own, |above| &above.record).keys.id();
    let mut places = places(reader, &covered, issuer)?;
    grant.conversations = places.iter().map(|place| place.keys.id()).collect();
    grant.summaries = summaries(reader, &asked, &places, above.as_ref())?;
    let Record { keys, bytes, mut grants, now, .. } = match above {
        Some(above) => above.record,
        None => own,
    };
    grant.issued_at = now;
    let ttl_ms = asked.ttl_ms.unwrap_or(TTL_MS);
    grant.expires_at = grant.expires_at.min(now.saturating_add(ttl_ms)).min(time::MS_MAX);
    let at = take(&mut grants, grant, &keys, now)?;
    let Some(grant) = grants.own.get(at) else { return Err(Error::corrupt("a grant is lost")) };
    let (id, expires_at) = (grant.id, grant.expires_at);
    let answer = object(&grants, grant, &covered).end_object();
    let (guard, put) = grants.change(&keys, now, bytes)?;
    let (mut guards, mut puts) = (alloc::vec![guard], alloc::vec![put]);
    for place in &mut places {
        let Some((mut grants, bytes)) = place.record.take() else { continue };
        grants.sweep(now);
        if grants.elsewhere.len() >= ELSEWHERE_MAX {
            return Err(Error::limit(format_args!(
                "conversations: {ELSEWHERE_MAX} grants of others cover one of these; wait until \
                 one expires"
            )));
        }
        grants.elsewhere.push(Elsewhere { id, conversation: keys.id(), expires_at });
        let (guard, put) = grants.change(&place.keys, now, bytes)?;
        guards.push(guard);
        puts.push(put);
    }
    reader.commit(&guards, &puts)?;
    Ok(answer)
}

/// The numbers of a new grant: those asked for, within those of the one that it inherits from.
fn limits(asked: &Asked, config: &Config, above: Option<&Permit>) -> Result<Grant> {
    let default = u64::from(config.expand_tokens_max.min(TOKENS_MAX));
    let mut depth_max = asked.depth_max.unwrap_or(DEPTH.into());
    let mut tokens_max = asked.tokens_max.unwrap_or(default);
    let (mut from, mut expires_at) = (None, time::MS_MAX);
    if let Some(above) = above {
        above.must_have_left()?;
        let deeper = u64::from(above.depth_max() - 1);
        if deeper == 0 {
            return Err(denied("from: that grant has a depth of 1 and gives none on"));
        }
        depth_max = depth_max.min(deeper);
        tokens_max = tokens_max.min(above.left().into());
        (from, expires_at) = (Some(above.grant()?.id), above.grant()?.expires_at);
    }
    Ok(Grant {
        id: [0; 8],
        from,
        issued_at: 0,
        expires_at,
        revoked: false,
        depth_max: int::tokens_u32(depth_max),
        tokens_max: int::tokens_u32(tokens_max),
        spent: 0,
        conversations: Vec::new(),
        summaries: None,
    })
}

/// The conversations that a grant is to cover, all of which exist.
fn places(reader: &mut Reader<'_>, names: &[String], issuer: [u8; 16]) -> Result<Vec<Place>> {
    let mut wanted = Vec::new();
    for name in names {
        let keys = Keys::new(name)?;
        wanted.extend([keys.head(), keys.grants()]);
    }
    let values = reader.fresh(&wanted)?;
    let mut places = Vec::with_capacity(names.len());
    for (name, values) in names.iter().zip(values.chunks(2)) {
        let [Some(_), bytes] = values else {
            return Err(Error::not_found(format_args!("conversation `{name}` does not exist")));
        };
        let keys = Keys::new(name)?;
        let record = if keys.id() == issuer {
            None
        } else {
            Some((Grants::of(&keys.grants(), bytes.as_deref())?, bytes.clone()))
        };
        places.push(Place { keys, record });
    }
    Ok(places)
}

/// The summaries that a grant is to be limited to.
fn summaries(
    reader: &mut Reader<'_>,
    asked: &Asked,
    places: &[Place],
    above: Option<&Permit>,
) -> Result<Option<Vec<Covered>>> {
    let Some(names) = &asked.summaries else { return inherited(places, above) };
    let mut ids = Vec::new();
    for name in names {
        ids.push(summary::parse_name(name)?);
    }
    let mut found: Vec<Option<Covered>> = ids.iter().map(|_| None).collect();
    for (place, conversation) in places.iter().zip(0u32..) {
        let spans = above.and_then(|above| above.spans(&place.keys));
        let slots = found.chunks_mut(SUMMARIES_PER_READ);
        for (ids, slots) in ids.chunks(SUMMARIES_PER_READ).zip(slots) {
            let keys: Vec<String> = ids.iter().map(|id| place.keys.summary(*id)).collect();
            for (((id, key), slot), value) in
                ids.iter().zip(&keys).zip(slots).zip(reader.fresh(&keys)?)
            {
                let Some(value) = value else { continue };
                let record: Summary = codec::decode(key, &value)?;
                let (seq_first, seq_last) = (record.seq_first, record.seq_last);
                if slot.is_none() && is_within(spans.as_deref(), seq_first, seq_last) {
                    *slot = Some(Covered { id: *id, conversation, seq_first, seq_last });
                }
            }
        }
    }
    let missing = names.iter().zip(&found).find(|(_, found)| found.is_none());
    match missing {
        None => Ok(Some(found.into_iter().flatten().collect())),
        Some((name, _)) => Err(above.and_then(Permit::uncovered).unwrap_or_else(|| {
            Error::not_found(format_args!("summaries: there is no `{name}` in what is covered"))
        })),
    }
}

/// The summaries of the grant above, in the conversations that the new one covers.
fn inherited(places: &[Place], above: Option<&Permit>) -> Result<Option<Vec<Covered>>> {
    let Some(above) = above else { return Ok(None) };
    let grant = above.grant()?;
    let Some(covered) = &grant.summaries else { return Ok(None) };
    let mut list = Vec::new();
    for one in covered {
        let id = grant.conversations.get(int::to_usize(one.conversation.into()));
        let place = places.iter().position(|place| Some(&place.keys.id()) == id);
        if let Some(place) = place {
            list.push(Covered { conversation: int::to_u32(place), ..*one });
        }
    }
    if list.is_empty() {
        return Err(denied("from: that grant covers nothing in these conversations"));
    }
    Ok(Some(list))
}

/// Takes a new grant into a record, when there is a place for it; returns which.
fn take(grants: &mut Grants, mut grant: Grant, keys: &Keys, now: Timestamp) -> Result<usize> {
    grants.sweep(now);
    if grants.own.len() >= GRANTS_MAX {
        let stands: Vec<bool> = (0..grants.own.len()).map(|at| !grants.is_revoked(at)).collect();
        let mut stands = stands.into_iter();
        grants.own.retain(|_| stands.next().unwrap_or(true));
    }
    if grants.own.len() >= GRANTS_MAX {
        return Err(Error::limit(format_args!(
            "the conversation has {GRANTS_MAX} grants that stand; revoke one, or wait until one \
             expires"
        )));
    }
    let contents = codec::encode(&grant)?;
    let number = grants.issued.to_be_bytes();
    grant.id = hash::prefix(&hash::hash(&[b"lcm grant", &keys.id(), &number, &contents]));
    grants.issued += 1;
    grants.own.push(grant);
    Ok(grants.own.len() - 1)
}

/// A grant as JSON.
fn object(grants: &Grants, grant: &Grant, conversations: &[String]) -> Writer {
    let left = grants.place(grant.id).map_or(0, |at| grants.left(at));
    let mut w = Writer::object();
    w.texts("conversations", conversations);
    w.number("depth_max", grant.depth_max.into());
    w.time("expires_at", grant.expires_at);
    w.text_or_null("from", grant.from.map(name).as_deref());
    w.text("id", &name(grant.id));
    w.time("issued_at", grant.issued_at);
    w.flag("revoked", grants.place(grant.id).is_some_and(|at| grants.is_revoked(at)));
    match &grant.summaries {
        None => w.null("summaries"),
        Some(covered) => {
            let ids: Vec<String> = covered.iter().map(|one| summary::name(one.id)).collect();
            w.texts("summaries", &ids);
        }
    }
    w.number("tokens_left", left.into());
    w.number("tokens_max", grant.tokens_max.into());
    w
}

/// Ends a grant at once, and with it those that inherit from it.
///
/// # Errors
///
/// `not-found`: neither issued by the conversation nor covering it; `conflict`; errors of the
/// store.
pub(crate) fn revoke(
    reader: &mut Reader<'_>,
    conversation: &str,
    grant: &str,
    now: Timestamp,
) -> Result<()> {
    let Some((record, at)) = Record::with(reader, conversation, grant, now)? else {
        return Err(Error::not_found("there is no such grant of this conversation"));
    };
    let Record { keys, bytes, mut grants, now, .. } = record;
    match grants.own.get_mut(at) {
        Some(grant) if !grant.revoked => grant.revoked = true,
        _ => return Ok(()),
    }
    let (guard, put) = grants.change(&keys, now, bytes)?;
    reader.commit(&[guard], &[put])
}

/// The grants that a conversation issued, in that order, until they are swept.
///
/// # Errors
///
/// `not-found`; errors of the store.
pub(crate) fn listing(reader: &mut Reader<'_>, conversation: &str) -> Result<Writer> {
    let record = Record::read(reader, conversation, 0)?;
    record.loaded.must_exist()?;
    let mut items = Writer::array();
    for grant in &record.grants.own {
        let conversations = names(reader, &grant.conversations)?;
        items.push_object(object(&record.grants, grant, &conversations));
    }
    Ok(items)
}
