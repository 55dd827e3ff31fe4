//! Grants: rights to read that are limited in conversations, summaries, depth, tokens and time.
//!
//! In: the id of a grant and the conversation that is read. Out: a [`Permit`], which says what may
//! be read and how many tokens of it, and what a commit has to write when they were. Records, their
//! checks and their spending are here, making and ending them in [`make`]. Not here: what is read
//! with one ([`crate::recall`], [`crate::agent_tools`]).
//!
//! Whoever reads on a grant calls [`Permit::of`], [`Permit::must_cover`] and
//! [`Permit::must_have_left`], reads at most [`Permit::left`] tokens, and makes [`Permit::charge`]
//! part of the one commit of the call, or lets [`Permit::spend`] be that commit.

mod lifecycle;

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    head::LoadedHead,
    keys::{self, ConversationKeys},
    store::{Guard, Put},
    store_session::StoreSession,
    summary,
};
use lcm_text::{
    base::{
        error::{Error, ErrorCode, Result},
        int,
        json::JsonWriter,
        time,
    },
    types::api::Timestamp,
};
pub(crate) use lifecycle::{create_grant, list_grants, revoke_grant};

/// Grants of one conversation that stand at a time: a record of them all has at most 115 KB.
const GRANTS_MAX: usize = 64;
/// Grants of other conversations that cover one.
const FOREIGN_GRANTS_MAX: usize = 256;
/// Conversations that a grant covers: each costs a search of its own.
const CONVERSATIONS_MAX: usize = 16;
/// Summaries that a grant may be limited to.
const SUMMARIES_MAX: usize = 64;
/// Steps of one expansion, the most and by default, as in the reference system.
pub(crate) const DEPTH_MAX: u32 = 10;
pub(crate) const DEPTH_DEFAULT: u32 = 3;
/// Tokens of one grant: the greatest windows of models. A grant is for a look, not for an export.
const TOKENS_MAX: u32 = 1_000_000;
/// For how long a grant is, by default (as in the reference system) and at most (a day).
const TTL_MS_DEFAULT: u64 = 5 * 60 * 1_000;
const TTL_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Conversations or summaries that a message names.
const NAMED_MAX: usize = 8;

/// The grants of a conversation.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct GrantRecord {
    /// How many it has made.
    issued_count: u64,
    /// The greatest `now` of a commit of this record.
    time: Timestamp,
    /// Each behind the one that it inherits from.
    own_grants: Vec<Grant>,
    foreign_grants: Vec<ForeignGrant>,
}

/// A grant of another conversation that covers this one.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct ForeignGrant {
    id: [u8; 8],
    /// Hash of the conversation that issued it.
    conversation: [u8; 16],
    expires_at: Timestamp,
}

/// A grant.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Grant {
    id: [u8; 8],
    /// The one that it inherits from.
    inherits_from: Option<[u8; 8]>,
    issued_at: Timestamp,
    /// From then on it is no more.
    expires_at: Timestamp,
    revoked: bool,
    depth_max: u32,
    tokens_max: u32,
    tokens_spent: u32,
    /// Hashes of the conversations that it covers.
    conversations: Vec<[u8; 16]>,
    /// `None`: all of them.
    summaries: Option<Vec<CoveredSummary>>,
}

/// A summary that a grant covers with what lies below it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct CoveredSummary {
    id: [u8; 8],
    /// Place of its conversation among those of the grant.
    conversation: u32,
    seq_first: u64,
    seq_last: u64,
}

impl SoundRecord for GrantRecord {
    fn is_sound(&self) -> bool {
        let is_behind = |at: usize, grant: &Grant| {
            let mut before = self.own_grants.iter().take(at);
            grant.inherits_from.is_none_or(|from| before.any(|one| one.id == from))
        };
        codec::are_countable(&[self.issued_count])
            && self.time <= time::MS_MAX
            && self.own_grants.len() <= GRANTS_MAX
            && self.foreign_grants.len() <= FOREIGN_GRANTS_MAX
            && self.foreign_grants.iter().all(|one| one.expires_at <= time::MS_MAX)
            && self
                .own_grants
                .iter()
                .enumerate()
                .all(|(at, one)| one.is_sound() && is_behind(at, one))
    }
}

impl SoundRecord for Grant {
    fn is_sound(&self) -> bool {
        let covered = self.summaries.as_deref().unwrap_or(&[]);
        let count = int::to_u32(self.conversations.len());
        self.issued_at <= self.expires_at
            && self.expires_at <= time::MS_MAX
            && (1..=DEPTH_MAX).contains(&self.depth_max)
            && (1..=TOKENS_MAX).contains(&self.tokens_max)
            && self.tokens_spent <= self.tokens_max
            && (1..=CONVERSATIONS_MAX).contains(&self.conversations.len())
            && covered.len() <= SUMMARIES_MAX
            && covered.iter().all(|one| {
                one.conversation < count
                    && 0 < one.seq_first
                    && one.seq_first <= one.seq_last
                    && codec::are_countable(&[one.seq_last])
            })
    }
}

impl GrantRecord {
    /// Reads a record: the one place that does, for the size of the component.
    #[inline(never)]
    fn decode_or_default(key: &str, value: Option<&[u8]>) -> Result<Self> {
        value.map_or_else(|| Ok(Self::default()), |value| codec::decode(key, value))
    }

    fn find_index(&self, id: [u8; 8]) -> Option<usize> {
        self.own_grants.iter().position(|grant| grant.id == id)
    }

    /// A grant and those that it inherits from, nearest first.
    fn inheritance_chain(&self, at: usize) -> Vec<usize> {
        let mut line = alloc::vec![at];
        let mut next = self.own_grants.get(at).and_then(|grant| grant.inherits_from);
        while let Some(at) = next.and_then(|id| self.find_index(id)) {
            line.push(at);
            next = self.own_grants.get(at).and_then(|grant| grant.inherits_from);
        }
        line
    }

    /// Whether a grant, or one that it inherits from, was revoked.
    fn is_revoked(&self, at: usize) -> bool {
        let line = self.inheritance_chain(at);
        line.iter().filter_map(|at| self.own_grants.get(*at)).any(|grant| grant.revoked)
    }

    /// Tokens that may still be read on a grant, and on those that it inherits from.
    fn tokens_left(&self, at: usize) -> u32 {
        let line = self.inheritance_chain(at);
        let grants = line.iter().filter_map(|at| self.own_grants.get(*at));
        grants.map(|grant| grant.tokens_max - grant.tokens_spent).min().unwrap_or(0)
    }

    /// Drops what has expired; returns whether there was anything.
    ///
    /// None outlives the one that it inherits from, so no line is broken.
    fn remove_expired(&mut self, now: Timestamp) -> bool {
        let before = self.own_grants.len() + self.foreign_grants.len();
        self.own_grants.retain(|grant| grant.expires_at > now);
        self.foreign_grants.retain(|one| one.expires_at > now);
        before != self.own_grants.len() + self.foreign_grants.len()
    }

    /// What a commit writes and what guards it.
    fn build_commit(
        mut self,
        keys: &ConversationKeys,
        now: Timestamp,
        old: Option<Vec<u8>>,
    ) -> Result<(Guard, Put)> {
        self.time = self.time.max(now);
        let (key, value) = (keys.grants_key(), Some(codec::encode(&self)?));
        Ok((Guard { key: key.clone(), value: old }, Put { key, value }))
    }
}

/// The grants of a conversation, read.
struct LoadedGrants {
    keys: ConversationKeys,
    loaded: LoadedHead,
    bytes: Option<Vec<u8>>,
    grants: GrantRecord,
    /// The effective time.
    now: Timestamp,
}

impl LoadedGrants {
    fn read(reader: &mut StoreSession<'_>, conversation: &str, now: Timestamp) -> Result<Self> {
        let keys = ConversationKeys::new(conversation)?;
        let key = keys.grants_key();
        let wanted = core::slice::from_ref(&key);
        let (loaded, mut rest) = LoadedHead::read_with_keys(reader, &keys, conversation, wanted)?;
        let bytes = rest.pop().flatten();
        let grants = GrantRecord::decode_or_default(&key, bytes.as_deref())?;
        let now = loaded.effective_time(now)?.max(grants.time);
        Ok(Self { keys, loaded, bytes, grants, now })
    }

    /// The record that a grant stands in, and its place there, found from a conversation that
    /// issued it or that it covers; `None`: neither knows it.
    fn find_grant(
        reader: &mut StoreSession<'_>,
        conversation: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<(Self, usize)>> {
        let Some(id) = parse_grant_name(name) else { return Ok(None) };
        let record = Self::read(reader, conversation, now)?;
        if let Some(at) = record.grants.find_index(id) {
            return Ok(Some((record, at)));
        }
        let Some(one) = record.grants.foreign_grants.iter().find(|one| one.id == id) else {
            return Ok(None);
        };
        let issuer = conversation_names(reader, &[one.conversation])?;
        let Some(issuer) = issuer.first() else { return Ok(None) };
        let record = Self::read(reader, issuer, now)?;
        Ok(record.grants.find_index(id).map(|at| (record, at)))
    }
}

/// The printed id of a grant.
fn grant_name(id: [u8; 8]) -> String {
    format!("grant_{}", hash::hex(&id))
}

/// The id from its printed form; `None`: it is none.
fn parse_grant_name(text: &str) -> Option<[u8; 8]> {
    let bytes = hash::decode_hex(text.strip_prefix("grant_")?)?;
    (bytes.len() == 8).then(|| hash::hash_prefix(&bytes))
}

/// The ids of conversations, from their hashes.
fn conversation_names(reader: &mut StoreSession<'_>, hashes: &[[u8; 16]]) -> Result<Vec<String>> {
    let keys: Vec<String> = hashes.iter().copied().map(keys::conversation_name_key).collect();
    let mut names = Vec::with_capacity(keys.len());
    for (key, value) in keys.iter().zip(reader.read_content_addressed(&keys, &[])?) {
        let Some(value) = value else { return Err(reader.missing_record_error(key)) };
        let (_, name): (String, String) = codec::decode(key, &value)?;
        names.push(name);
    }
    Ok(names)
}

/// A list as a message names it.
fn format_names(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = names.len() - shown.len();
    let note = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("`{}`{note}", shown.join("`, `"))
}

/// The one error of whoever may not read, whatever the cause.
fn denied_error(message: impl lcm_text::base::error::ErrorMessage) -> Error {
    Error::new(ErrorCode::Denied, message)
}

/// A grant that stands, for one call.
pub(crate) struct GrantAccess {
    record: LoadedGrants,
    index: usize,
}

impl GrantAccess {
    /// The grant of this id, as one finds it from the conversation that issued it or from one that
    /// it covers: known, then not revoked, then not expired.
    ///
    /// # Errors
    ///
    /// `denied`: it is not so. Of a grant that is not known from here nothing is told, nor whether
    /// the conversation exists. `invalid-input`: `conversation` is no id; errors of the store.
    pub(crate) fn from_grant(
        reader: &mut StoreSession<'_>,
        conversation: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<Self> {
        ConversationKeys::new(conversation)?;
        let Some((record, at)) = LoadedGrants::find_grant(reader, conversation, name, now)? else {
            return Err(denied_error(
                "the grant gives no right to read this conversation; ask for a new one",
            ));
        };
        if record.grants.is_revoked(at) {
            return Err(denied_error("the grant was revoked; ask for a new one"));
        }
        let permit = Self { record, index: at };
        let expires_at = permit.granted_record()?.expires_at;
        if expires_at <= permit.record.now {
            let at = time::iso_millis(expires_at);
            return Err(denied_error(format_args!("the grant expired at {at}; ask for a new one")));
        }
        Ok(permit)
    }

    /// As [`Permit::of`] of a call that may name a grant, which must cover the conversation.
    ///
    /// # Errors
    ///
    /// As [`Permit::of`] and [`Permit::must_cover`].
    pub(crate) fn for_call(
        reader: &mut StoreSession<'_>,
        conversation: &str,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Self>> {
        let Some(name) = name else { return Ok(None) };
        let permit = Self::from_grant(reader, conversation, name, now)?;
        permit.ensure_covers(reader, conversation)?;
        Ok(Some(permit))
    }

    fn granted_record(&self) -> Result<&Grant> {
        let grant = self.record.grants.own_grants.get(self.index);
        grant.ok_or_else(|| Error::corrupt_store("a grant left its record"))
    }

    /// Refuses a conversation that the grant does not cover, in the same words whether there is
    /// one of this id or not.
    ///
    /// # Errors
    ///
    /// `denied`; `invalid-input`: it is no id; errors of the store.
    pub(crate) fn ensure_covers(
        &self,
        reader: &mut StoreSession<'_>,
        conversation: &str,
    ) -> Result<()> {
        let id = ConversationKeys::new(conversation)?.conversation_hash();
        if self.granted_record()?.conversations.contains(&id) {
            return Ok(());
        }
        let covered = format_names(&self.list_conversations(reader)?);
        Err(denied_error(format_args!(
            "the grant does not cover that conversation; it covers {covered}"
        )))
    }

    /// The ids of the conversations that it covers.
    ///
    /// # Errors
    ///
    /// Of the store.
    pub(crate) fn list_conversations(&self, reader: &mut StoreSession<'_>) -> Result<Vec<String>> {
        conversation_names(reader, &self.granted_record()?.conversations)
    }

    /// What of a conversation it covers, as ranges of seqs, both ends included; `None`: all.
    pub(crate) fn covered_spans(&self, keys: &ConversationKeys) -> Option<Vec<(u64, u64)>> {
        let grant = self.record.grants.own_grants.get(self.index)?;
        let covered = grant.summaries.as_deref()?;
        let place = grant.conversations.iter().position(|id| *id == keys.conversation_hash())?;
        let here = covered.iter().filter(|one| int::to_usize(one.conversation.into()) == place);
        Some(here.map(|one| (one.seq_first, one.seq_last)).collect())
    }

    /// The error of an id that the grant does not cover, in the same words whether there is such an
    /// id or not; `None`: it covers everything in its conversations.
    pub(crate) fn uncovered_error(&self) -> Option<Error> {
        let grant = self.record.grants.own_grants.get(self.index)?;
        let covered = grant.summaries.as_deref()?;
        let names: Vec<String> =
            covered.iter().map(|one| summary::format_summary_id(one.id)).collect();
        let covered = format_names(&names);
        Some(denied_error(format_args!(
            "the grant does not cover that id; it covers {covered} and what lies below"
        )))
    }

    /// Most steps of one expansion.
    pub(crate) fn depth_max(&self) -> u32 {
        self.record.grants.own_grants.get(self.index).map_or(0, |grant| grant.depth_max)
    }

    /// Tokens that may still be read on it.
    pub(crate) fn tokens_left(&self) -> u32 {
        self.record.grants.tokens_left(self.index)
    }

    /// Refuses a grant on which everything was read.
    ///
    /// # Errors
    ///
    /// `denied`.
    pub(crate) fn ensure_tokens_left(&self) -> Result<()> {
        if self.tokens_left() > 0 {
            return Ok(());
        }
        Err(denied_error(
            "the grant has no tokens left; answer with what is known, or ask for a new one",
        ))
    }

    /// What the commit of a call writes that read so many tokens, and what guards it: the grant and
    /// those that it inherits from have so many less.
    ///
    /// # Errors
    ///
    /// `denied`: it has not so many left.
    pub(crate) fn build_charge(self, tokens: u32) -> Result<(Guard, Put)> {
        if tokens > self.tokens_left() {
            return Err(denied_error(format_args!(
                "the grant has {} tokens left and {tokens} are asked for",
                self.tokens_left()
            )));
        }
        let LoadedGrants { keys, bytes, mut grants, now, .. } = self.record;
        for at in grants.inheritance_chain(self.index) {
            if let Some(grant) = grants.own_grants.get_mut(at) {
                grant.tokens_spent += tokens;
            }
        }
        grants.build_commit(&keys, now, bytes)
    }

    /// The one commit of a call that read so many tokens; of one that read none there is none.
    ///
    /// # Errors
    ///
    /// As [`Permit::charge`]; `conflict`: another call was faster, so that nothing of what was read
    /// may be handed out; errors of the store.
    pub(crate) fn commit_charge(self, reader: &mut StoreSession<'_>, tokens: u32) -> Result<()> {
        if tokens == 0 {
            return Ok(());
        }
        let (guard, put) = self.build_charge(tokens)?;
        reader.commit(&[guard], &[put])
    }

    /// What an answer says of the tokens that it takes, and of those that are left after it;
    /// `truncated`: a text was cut to what was left.
    pub(crate) fn build_note(&self, tokens: u32, left: u32, truncated: bool) -> JsonWriter {
        let mut note = JsonWriter::new_object();
        note.add_number("tokens", tokens.into());
        note.add_number("tokens_left", left.into());
        note.add_flag("truncated", truncated);
        note
    }
}

/// Whether seqs lie in one of the spans; without any everything does.
pub(crate) fn is_within(spans: Option<&[(u64, u64)]>, first: u64, last: u64) -> bool {
    spans.is_none_or(|spans| spans.iter().any(|span| span.0 <= first && last <= span.1))
}

/// What `maintain` writes of the record that it read with the head, when anything in it expired.
///
/// # Errors
///
/// `corrupt`.
pub(crate) fn sweep_record(
    keys: &ConversationKeys,
    bytes: Option<Vec<u8>>,
    now: Timestamp,
) -> Result<Option<(Guard, Put)>> {
    let mut grants = GrantRecord::decode_or_default(&keys.grants_key(), bytes.as_deref())?;
    if !grants.remove_expired(now) {
        return Ok(None);
    }
    grants.build_commit(keys, now, bytes).map(Some)
}

/// What is wrong with the record of a conversation, for its check.
///
/// # Errors
///
/// `corrupt`: it cannot be read; errors of the store.
pub(crate) fn check(reader: &mut StoreSession<'_>, keys: &ConversationKeys) -> Result<Vec<String>> {
    let key = keys.grants_key();
    let (start, end) = keys.record_range("g");
    let mut findings = Vec::new();
    let mut grants = GrantRecord::default();
    reader.scan_range(&start, &end, &mut |found, value| {
        if found == key {
            grants = GrantRecord::decode_or_default(found, Some(value))?;
        } else {
            findings.push(format!("`{found}` is no key of grants"));
        }
        Ok(())
    })?;
    if int::to_u64(grants.own_grants.len()) > grants.issued_count {
        findings.push(format!(
            "{} grants of {} issued",
            grants.own_grants.len(),
            grants.issued_count
        ));
    }
    for (at, grant) in grants.own_grants.iter().enumerate() {
        let id = grant_name(grant.id);
        if grants.find_index(grant.id) != Some(at) {
            findings.push(format!("`{id}` stands twice"));
        }
        let Some(above) =
            grant.inherits_from.and_then(|from| grants.own_grants.get(grants.find_index(from)?))
        else {
            continue;
        };
        let within = grant.conversations.iter().all(|id| above.conversations.contains(id));
        let less = grant.depth_max < above.depth_max && grant.expires_at <= above.expires_at;
        if !within || !less {
            findings.push(format!("`{id}` allows more than `{}`", grant_name(above.id)));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> GrantRecord {
        let covered = CoveredSummary {
            id: [255; 8],
            conversation: int::to_u32(CONVERSATIONS_MAX) - 1,
            seq_first: 1 << 39,
            seq_last: 1 << 39,
        };
        let grant = |number: u8| Grant {
            id: [number; 8],
            inherits_from: (number > 0).then_some([0; 8]),
            issued_at: time::MS_MAX,
            expires_at: time::MS_MAX,
            revoked: false,
            depth_max: DEPTH_MAX,
            tokens_max: TOKENS_MAX,
            tokens_spent: TOKENS_MAX,
            conversations: alloc::vec![[255; 16]; CONVERSATIONS_MAX],
            summaries: Some(alloc::vec![covered; SUMMARIES_MAX]),
        };
        let elsewhere =
            ForeignGrant { id: [255; 8], conversation: [255; 16], expires_at: time::MS_MAX };
        GrantRecord {
            issued_count: 1 << 39,
            time: time::MS_MAX,
            own_grants: (0..64).map(grant).collect(),
            foreign_grants: alloc::vec![elsewhere; FOREIGN_GRANTS_MAX],
        }
    }

    #[test]
    fn a_record_with_every_list_full_stays_under_its_bound() {
        let full = full();
        assert_eq!(full.own_grants.len(), GRANTS_MAX);
        assert!(full.is_sound());
        let bytes = codec::encode(&full).unwrap().len();
        assert!((100_000..=115_000).contains(&bytes), "{bytes}");
        let mut one = full;
        one.own_grants.truncate(1);
        one.own_grants[0].summaries = None;
        one.own_grants[0].conversations.truncate(1);
        one.foreign_grants.clear();
        let bytes = codec::encode(&one).unwrap().len();
        assert!((50..=80).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_record_out_of_bounds_is_not_sound() {
        type Damage = fn(&mut GrantRecord);
        let damages: [Damage; 8] = [
            |grants| grants.own_grants.push(grants.own_grants[0].clone()),
            |grants| grants.own_grants[0].inherits_from = Some([9; 8]),
            |grants| grants.own_grants[5].inherits_from = Some([6; 8]),
            |grants| grants.own_grants[7].depth_max = 0,
            |grants| grants.own_grants[7].tokens_spent += 1,
            |grants| grants.own_grants[7].conversations.clear(),
            |grants| grants.own_grants[7].summaries.as_mut().unwrap()[0].conversation = 16,
            |grants| grants.time += 1,
        ];
        for damage in damages {
            let mut grants = full();
            damage(&mut grants);
            assert!(!grants.is_sound());
        }
    }
}
