//! Grants: rights to read, limited in conversations, summaries, depth, tokens and time.
//!
//! In: the id of a grant and the conversation to read. Out: a [`GrantAccess`] with the covered
//! conversations, the tokens left and the changes that charge tokens. [`lifecycle`] creates,
//! revokes and lists grants. [`crate::recall`], [`crate::ask`] and [`crate::agent_tools`] read with
//! grants.
//!
//! A read with a grant takes these steps: [`GrantAccess::from_grant`],
//! [`GrantAccess::ensure_covers`], [`GrantAccess::ensure_tokens_left`], and a read of at most
//! [`GrantAccess::tokens_left`] tokens. The call then adds the charge to its own changes with
//! [`GrantAccess::add_charge`], or calls [`GrantAccess::commit_charge`].

mod lifecycle;

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};

use crate::storage::{
    call::Call,
    changes::Changes,
    clock::{Clock, ClockReading, TICKS_MAX},
    codec::{self, SoundRecord},
    head::LoadedHead,
    keys::ConversationKeys,
    record_key::{GuardedRecord, RecordKey},
    session::read_conversation_names,
    store::Guard,
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
pub(crate) use lifecycle::{create_grant, forget_conversation, list_grants, revoke_grant};

/// Most grants in the record of one conversation, which then has at most 115 KB.
const GRANTS_MAX: usize = 64;
/// Most grants of other conversations that cover one conversation.
const FOREIGN_GRANTS_MAX: usize = 256;
/// Most conversations that a grant covers, because each conversation costs a search.
const CONVERSATIONS_MAX: usize = 16;
/// Most summaries that a grant names.
const SUMMARIES_MAX: usize = 64;
/// Most steps down the sources that a grant may allow for one expansion.
pub(crate) const DEPTH_MAX: u32 = 10;
/// Steps down the sources that a grant allows for one expansion by default.
pub(crate) const DEPTH_DEFAULT: u32 = 3;
/// Most tokens of a grant: as many as a large model's window has.
const TOKENS_MAX: u32 = 1_000_000;
/// Default lifetime of a grant in milliseconds: five minutes.
const TTL_MS_DEFAULT: u64 = 5 * 60 * 1_000;
/// Greatest lifetime of a grant in milliseconds: one day.
const TTL_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Most ids that an error text names.
const NAMED_MAX: usize = 8;

/// The grants record of a conversation.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct GrantRecord {
    /// Number of grants that the conversation ever issued.
    issued_count: u64,
    /// Clock of the commits that wrote this record, by which its grants end.
    clock: Clock,
    /// Grants that the conversation issued, without removed ones; each grant follows its parent.
    own_grants: Vec<Grant>,
    /// References to grants of other conversations that cover this conversation.
    foreign_grants: Vec<ForeignGrant>,
}

/// A reference to a grant of another conversation that covers this conversation.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct ForeignGrant {
    id: [u8; 8],
    /// Hash of the issuing conversation.
    conversation: [u8; 16],
    /// End of the grant, in ticks of this record.
    expires_at: u64,
}

/// The record of one grant.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Grant {
    id: [u8; 8],
    /// Id of the parent grant; `None`: the grant has no parent.
    inherits_from: Option<[u8; 8]>,
    issued_at: Timestamp,
    /// Ticks of the record from which the grant is invalid.
    expires_at: u64,
    /// Ticks of the issuer's head from which the grant is invalid. The grant has two ends, because
    /// a step back of the host's clock may be stored first with the head or first with the grants
    /// record.
    head_expires_at: u64,
    /// Whether this grant itself was revoked; grants that inherit from it are not marked.
    revoked: bool,
    /// Most steps down the sources in one expansion.
    depth_max: u32,
    tokens_max: u32,
    /// Tokens charged to this grant and to grants that inherit from it.
    tokens_spent: u32,
    /// Hashes of the covered conversations.
    conversations: Vec<[u8; 16]>,
    /// The covered summaries; `None`: everything in the conversations.
    summaries: Option<Vec<CoveredSummary>>,
}

/// A summary that a grant covers, and with it all messages and summaries from first to last seq.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct CoveredSummary {
    id: [u8; 8],
    /// Index of the summary's conversation in [`Grant::conversations`].
    conversation: u32,
    seq_first: u64,
    seq_last: u64,
}

impl SoundRecord for GrantRecord {
    fn is_sound(&self) -> bool {
        let follows_parent = |index: usize, grant: &Grant| {
            let mut before = self.own_grants.iter().take(index);
            grant.inherits_from.is_none_or(|parent| before.any(|grant| grant.id == parent))
        };
        codec::are_countable(&[self.issued_count])
            && self.clock.is_sound()
            && self.own_grants.len() <= GRANTS_MAX
            && self.foreign_grants.len() <= FOREIGN_GRANTS_MAX
            && self.foreign_grants.iter().all(|one| one.expires_at <= TICKS_MAX)
            && self
                .own_grants
                .iter()
                .enumerate()
                .all(|(index, grant)| grant.is_sound() && follows_parent(index, grant))
    }
}

impl SoundRecord for Grant {
    fn is_sound(&self) -> bool {
        let covered = self.summaries.as_deref().unwrap_or(&[]);
        let count = int::to_u32(self.conversations.len());
        self.issued_at <= time::MS_MAX
            && self.expires_at.max(self.head_expires_at) <= TICKS_MAX
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

impl Grant {
    /// Sets the end, which is not later than it was.
    fn set_end(&mut self, ttl_ms: u64, clock: &ClockReading, head_clock: &ClockReading) {
        self.expires_at = self.expires_at.min(clock.deadline_after(ttl_ms));
        self.head_expires_at = self.head_expires_at.min(head_clock.deadline_after(ttl_ms));
    }

    /// Returns the end of the grant as a time of the hosts' clock: the earlier by both clocks.
    fn end_time(&self, clock: Clock, head_clock: Clock) -> Timestamp {
        clock.to_time(self.expires_at).min(head_clock.to_time(self.head_expires_at))
    }

    /// Returns whether the grant has ended by one of its clocks.
    const fn has_expired(&self, clock: &ClockReading, head_clock: &ClockReading) -> bool {
        self.expires_at <= clock.ticks || self.head_expires_at <= head_clock.ticks
    }
}

impl GrantRecord {
    /// Returns the key of the grants record of a conversation.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.grants_key())
    }

    /// Decodes the record in `value`; `None` gives an empty record. Never inlined, so that the
    /// component stays small.
    #[inline(never)]
    fn decode_or_default(key: &str, value: Option<&[u8]>) -> Result<Self> {
        value.map_or_else(|| Ok(Self::default()), |value| codec::decode(key, value))
    }

    fn find_index(&self, id: [u8; 8]) -> Option<usize> {
        self.own_grants.iter().position(|grant| grant.id == id)
    }

    /// Returns the indices of a grant and its ancestors: the grant, its parent, and so on.
    fn inheritance_chain(&self, index: usize) -> Vec<usize> {
        let mut chain = alloc::vec![index];
        let mut next = self.own_grants.get(index).and_then(|grant| grant.inherits_from);
        while let Some(index) = next.and_then(|id| self.find_index(id)) {
            chain.push(index);
            next = self.own_grants.get(index).and_then(|grant| grant.inherits_from);
        }
        chain
    }

    /// Returns whether a grant or one of its ancestors was revoked.
    fn is_revoked(&self, index: usize) -> bool {
        let chain = self.inheritance_chain(index);
        chain.iter().filter_map(|index| self.own_grants.get(*index)).any(|grant| grant.revoked)
    }

    /// Returns the tokens that may still be read with a grant: the least number that the grant and
    /// its ancestors have left.
    fn tokens_left(&self, index: usize) -> u32 {
        let chain = self.inheritance_chain(index);
        let grants = chain.iter().filter_map(|index| self.own_grants.get(*index));
        grants.map(|grant| grant.tokens_max - grant.tokens_spent).min().unwrap_or(0)
    }

    /// Removes expired grants and references; returns whether any was removed.
    ///
    /// No grant expires after its parent, so no remaining grant loses its parent.
    fn remove_expired(&mut self, clock: &ClockReading, head_clock: &ClockReading) -> bool {
        let before = self.own_grants.len() + self.foreign_grants.len();
        self.own_grants.retain(|grant| !grant.has_expired(clock, head_clock));
        self.foreign_grants.retain(|one| one.expires_at > clock.ticks);
        before != self.own_grants.len() + self.foreign_grants.len()
    }

    /// Adds to `changes` the write of this record, guarded by `read_value`, the value that was
    /// read.
    fn write_to(
        mut self,
        keys: &ConversationKeys,
        clock: Clock,
        read_value: Option<Vec<u8>>,
        changes: &mut Changes,
    ) -> Result<()> {
        self.clock = clock;
        changes.add_guard(Guard { key: keys.grants_key(), value: read_value });
        changes.write_record(&Self::key(keys), &self)?;
        Ok(())
    }
}

/// The grants record and the head of a conversation, as read from the store.
struct LoadedGrants {
    keys: ConversationKeys,
    loaded: LoadedHead,
    /// The encoded grants record; `None`: the key is absent.
    bytes: Option<Vec<u8>>,
    grants: GrantRecord,
    /// The clock of the record at the time of the call.
    clock: ClockReading,
    /// The clock of the head at the time of the call.
    head_clock: ClockReading,
}

impl LoadedGrants {
    fn read(session: &mut StoreSession<'_>, conversation: &str, now: Timestamp) -> Result<Self> {
        let keys = ConversationKeys::new(conversation)?;
        let key = keys.grants_key();
        let wanted = core::slice::from_ref(&key);
        let (loaded, mut rest) = LoadedHead::read_with_keys(session, &keys, conversation, wanted)?;
        let bytes = rest.pop().flatten();
        let grants = GrantRecord::decode_or_default(&key, bytes.as_deref())?;
        let (clock, head_clock) = (grants.clock.read_at(now), loaded.read_clock(now)?);
        Ok(Self { keys, loaded, bytes, grants, clock, head_clock })
    }

    /// Finds a grant: its issuer's record and its index there. `conversation` is the issuer, or
    /// another conversation that the grant covers. `None`: `name` is no grant id, the record of
    /// `conversation` neither has the grant nor refers to it, or the issuer no longer has the
    /// grant.
    fn find_grant(
        session: &mut StoreSession<'_>,
        conversation: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<(Self, usize)>> {
        let Some(id) = parse_grant_name(name) else { return Ok(None) };
        let record = Self::read(session, conversation, now)?;
        if let Some(index) = record.grants.find_index(id) {
            return Ok(Some((record, index)));
        }
        let Some(foreign) = record.grants.foreign_grants.iter().find(|foreign| foreign.id == id)
        else {
            return Ok(None);
        };
        let issuer = conversation_names(session, &[foreign.conversation])?;
        let Some(issuer) = issuer.first() else { return Ok(None) };
        let record = Self::read(session, issuer, now)?;
        Ok(record.grants.find_index(id).map(|index| (record, index)))
    }
}

/// Formats the printed id of a grant: `grant_` and 16 hex digits.
fn grant_name(id: [u8; 8]) -> String {
    format!("grant_{}", hash::hex(&id))
}

/// Parses the printed id of a grant; `None`: the text is not the id of a grant.
fn parse_grant_name(text: &str) -> Option<[u8; 8]> {
    let bytes = hash::decode_hex(text.strip_prefix("grant_")?)?;
    (bytes.len() == 8).then(|| hash::hash_prefix(&bytes))
}

/// Reads the ids of conversations from their hashes, without those that are being deleted.
fn conversation_names(session: &mut StoreSession<'_>, hashes: &[[u8; 16]]) -> Result<Vec<String>> {
    Ok(read_conversation_names(session, hashes)?.into_iter().flatten().collect())
}

/// Formats names for an error text: the first eight, and the number of the others.
fn format_names(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = names.len() - shown.len();
    let note = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("`{}`{note}", shown.join("`, `"))
}

/// Builds a `denied` error.
fn denied_error(message: impl lcm_text::base::error::ErrorMessage) -> Error {
    Error::new(ErrorCode::Denied, message)
}

/// A grant that was valid when it was read, used by one call.
pub(crate) struct GrantAccess {
    record: LoadedGrants,
    index: usize,
}

impl GrantAccess {
    /// Reads the grant with the printed id `name`. `conversation` is its issuer, or another
    /// conversation that the grant covers.
    ///
    /// # Errors
    ///
    /// `denied`: the grant is unknown, revoked or expired. The error of an unknown grant does not
    /// reveal whether the conversation exists. `invalid-input`: `conversation` is no id; errors of
    /// the store.
    pub(crate) fn from_grant(
        session: &mut StoreSession<'_>,
        conversation: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<Self> {
        ConversationKeys::new(conversation)?;
        let Some((record, index)) = LoadedGrants::find_grant(session, conversation, name, now)?
        else {
            return Err(denied_error(
                "the grant gives no right to read this conversation; ask for a new grant",
            ));
        };
        if record.grants.is_revoked(index) {
            return Err(denied_error("the grant was revoked; ask for a new grant"));
        }
        let access = Self { record, index };
        let (grant, record) = (access.granted_record()?, &access.record);
        if grant.has_expired(&record.clock, &record.head_clock) {
            let end = grant.end_time(record.clock.clock, record.head_clock.clock);
            let time = time::iso_millis(end);
            return Err(denied_error(format_args!(
                "the grant expired at {time}; ask for a new grant"
            )));
        }
        Ok(access)
    }

    /// Reads the grant of a call, which must cover the call's conversation; `None`: `name` is
    /// `None`.
    ///
    /// # Errors
    ///
    /// `denied`: the grant is unknown, revoked or expired, or does not cover the conversation;
    /// `invalid-input`: the conversation is no id; errors of the store.
    pub(crate) fn for_call(
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        name: Option<&str>,
    ) -> Result<Option<Self>> {
        let Some(name) = name else { return Ok(None) };
        let access = Self::from_grant(session, call.conversation, name, call.now)?;
        access.ensure_covers(session, call.conversation)?;
        Ok(Some(access))
    }

    /// Returns a hash of what the grant covers: its conversations and its named summaries. A cursor
    /// is bound to the hash. When the tokens of one grant are spent, the cursor stays valid with
    /// another grant that covers the same content.
    pub(crate) fn coverage_hash(&self) -> [u8; 32] {
        let grant = self.record.grants.own_grants.get(self.index);
        let conversations = grant.iter().flat_map(|grant| &grant.conversations);
        let mut fields: Vec<&[u8]> = conversations.map(<[u8; 16]>::as_slice).collect();
        let summaries = grant.and_then(|grant| grant.summaries.as_deref()).unwrap_or_default();
        fields.extend(summaries.iter().map(|covered| covered.id.as_slice()));
        hash::hash_fields(&fields)
    }

    fn granted_record(&self) -> Result<&Grant> {
        let grant = self.record.grants.own_grants.get(self.index);
        grant.ok_or_else(|| {
            Error::corrupt_store(format_args!(
                "`{}` has no grant at index {}, which would be a bug of the engine",
                self.record.keys.grants_key(),
                self.index
            ))
        })
    }

    /// Ensures that the grant covers a conversation. The error does not reveal whether the
    /// conversation exists.
    ///
    /// # Errors
    ///
    /// `denied`: the grant does not cover `conversation`; `invalid-input`: `conversation` is no id;
    /// errors of the store.
    pub(crate) fn ensure_covers(
        &self,
        session: &mut StoreSession<'_>,
        conversation: &str,
    ) -> Result<()> {
        let id = ConversationKeys::new(conversation)?.conversation_hash();
        if self.granted_record()?.conversations.contains(&id) {
            return Ok(());
        }
        let covered = format_names(&self.list_conversations(session)?);
        Err(denied_error(format_args!(
            "the grant does not cover that conversation; it covers {covered}"
        )))
    }

    /// Reads the ids of the covered conversations, without those that are being deleted.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub(crate) fn list_conversations(&self, session: &mut StoreSession<'_>) -> Result<Vec<String>> {
        conversation_names(session, &self.granted_record()?.conversations)
    }

    /// Returns the covered messages of a covered conversation as ranges of seqs, both ends
    /// included; `None`: all messages. Callers first check with [`Self::ensure_covers`], because
    /// another conversation also gives `None`.
    pub(crate) fn covered_spans(&self, keys: &ConversationKeys) -> Option<Vec<(u64, u64)>> {
        let grant = self.record.grants.own_grants.get(self.index)?;
        let covered = grant.summaries.as_deref()?;
        let index = grant.conversations.iter().position(|id| *id == keys.conversation_hash())?;
        let summaries =
            covered.iter().filter(|summary| int::to_usize(summary.conversation.into()) == index);
        Some(summaries.map(|summary| (summary.seq_first, summary.seq_last)).collect())
    }

    /// Builds the error of an id that the grant does not cover; `None`: the grant covers everything
    /// in its conversations.
    ///
    /// The error does not reveal whether the id exists.
    pub(crate) fn uncovered_error(&self) -> Option<Error> {
        let grant = self.record.grants.own_grants.get(self.index)?;
        let covered = grant.summaries.as_deref()?;
        let names: Vec<String> =
            covered.iter().map(|one| summary::format_summary_id(one.id)).collect();
        let covered = format_names(&names);
        Some(denied_error(format_args!(
            "the grant does not cover that id; it covers {covered} and their sources"
        )))
    }

    /// Returns the most steps down the sources in one expansion.
    pub(crate) fn depth_max(&self) -> u32 {
        self.record.grants.own_grants.get(self.index).map_or(0, |grant| grant.depth_max)
    }

    /// Returns the tokens that may still be read with the grant.
    pub(crate) fn tokens_left(&self) -> u32 {
        self.record.grants.tokens_left(self.index)
    }

    /// Ensures that the grant has tokens left.
    ///
    /// # Errors
    ///
    /// `denied`: the grant has no tokens left.
    pub(crate) fn ensure_tokens_left(&self) -> Result<()> {
        if self.tokens_left() > 0 {
            return Ok(());
        }
        Err(denied_error(
            "the grant has no tokens left; answer with what is known, or ask for a new grant",
        ))
    }

    /// Adds the charge of `tokens` to the changes of a commit.
    ///
    /// The charge counts for the grant and its ancestors. With 0 tokens only a guard is added,
    /// unless the clock stepped back: the commit fails if the grants record has changed, for
    /// example by a revocation.
    ///
    /// # Errors
    ///
    /// `denied`: the grant has fewer tokens left than `tokens`.
    pub(crate) fn add_charge(self, tokens: u32, changes: &mut Changes) -> Result<()> {
        if tokens > self.tokens_left() {
            return Err(denied_error(format_args!(
                "the grant has {} tokens left, {tokens} are needed",
                self.tokens_left()
            )));
        }
        let LoadedGrants { keys, bytes, mut grants, clock, .. } = self.record;
        // A step back of the clock is stored, so that the grant ends.
        if tokens == 0 && clock.step_back_ms == 0 {
            changes.add_guard(Guard { key: keys.grants_key(), value: bytes });
            return Ok(());
        }
        for index in grants.inheritance_chain(self.index) {
            if let Some(grant) = grants.own_grants.get_mut(index) {
                grant.tokens_spent += tokens;
            }
        }
        grants.write_to(&keys, clock.clock, bytes, changes)
    }

    /// Charges `tokens` in a commit; 0 tokens need no commit, unless the clock stepped back.
    ///
    /// # Errors
    ///
    /// `denied`: the grant has fewer tokens left than `tokens`; `conflict`: the record has changed,
    /// and the caller must not return what was read; errors of the store.
    pub(crate) fn commit_charge(self, session: &mut StoreSession<'_>, tokens: u32) -> Result<()> {
        if tokens == 0 && self.record.clock.step_back_ms == 0 {
            return Ok(());
        }
        let mut changes = Changes::default();
        self.add_charge(tokens, &mut changes)?;
        session.commit_changes(&changes)
    }

    /// Builds the member `grant` of an answer: the charged tokens, the tokens left after the
    /// charge, and whether text was cut to the tokens left.
    pub(crate) fn build_note(&self, tokens: u32, left: u32, truncated: bool) -> JsonWriter {
        let mut note = JsonWriter::new_object();
        note.add_number("tokens", tokens.into());
        note.add_number("tokens_left", left.into());
        note.add_flag("truncated", truncated);
        note
    }
}

/// Returns whether the seqs from `first` to `last` lie in one of the spans; `None`: always true.
pub(crate) fn is_within(spans: Option<&[(u64, u64)]>, first: u64, last: u64) -> bool {
    spans.is_none_or(|spans| spans.iter().any(|span| span.0 <= first && last <= span.1))
}

/// Returns the changes that remove expired grants and references from a record. The changes are
/// empty if none has expired, or if there is no record. `head_clock` is the clock of the
/// conversation. The command `maintain` commits the changes.
///
/// # Errors
///
/// `limit-exceeded`: the record is too large, which its bounds prevent.
pub(crate) fn remove_expired_grants(
    mut read: GuardedRecord<GrantRecord>,
    head_clock: &ClockReading,
    now: Timestamp,
) -> Result<Changes> {
    let mut changes = Changes::default();
    if let Some(mut record) = read.record.take() {
        let clock = record.clock.read_at(now);
        if record.remove_expired(&clock, head_clock) {
            record.clock = clock.clock;
            changes.replace_record(&read, &record)?;
        }
    }
    Ok(changes)
}

/// Checks the grants record of a conversation and returns the findings as texts.
///
/// # Errors
///
/// `corrupt`: the record cannot be decoded; errors of the store.
pub(crate) fn check(
    session: &mut StoreSession<'_>,
    keys: &ConversationKeys,
) -> Result<Vec<String>> {
    let key = keys.grants_key();
    let (start, end) = keys.record_range("g");
    let mut findings = Vec::new();
    let mut grants = GrantRecord::default();
    session.scan_range(&start, &end, &mut |found, value| {
        if found == key {
            grants = GrantRecord::decode_or_default(found, Some(value))?;
        } else {
            findings.push(format!("`{found}` is not the key of the grants record"));
        }
        Ok(())
    })?;
    if int::to_u64(grants.own_grants.len()) > grants.issued_count {
        findings.push(format!(
            "the record has {} grants, but counts {} issued grants",
            grants.own_grants.len(),
            grants.issued_count
        ));
    }
    for (index, grant) in grants.own_grants.iter().enumerate() {
        let id = grant_name(grant.id);
        if grants.find_index(grant.id) != Some(index) {
            findings.push(format!("`{id}` is in the record twice"));
        }
        let Some(parent) =
            grant.inherits_from.and_then(|from| grants.own_grants.get(grants.find_index(from)?))
        else {
            continue;
        };
        let is_covered = grant.conversations.iter().all(|id| parent.conversations.contains(id));
        let is_limited =
            grant.depth_max < parent.depth_max && grant.expires_at <= parent.expires_at;
        if !is_covered || !is_limited {
            findings.push(format!("`{id}` allows more than `{}`", grant_name(parent.id)));
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
            expires_at: TICKS_MAX,
            head_expires_at: TICKS_MAX,
            revoked: false,
            depth_max: DEPTH_MAX,
            tokens_max: TOKENS_MAX,
            tokens_spent: TOKENS_MAX,
            conversations: alloc::vec![[255; 16]; CONVERSATIONS_MAX],
            summaries: Some(alloc::vec![covered; SUMMARIES_MAX]),
        };
        let elsewhere =
            ForeignGrant { id: [255; 8], conversation: [255; 16], expires_at: TICKS_MAX };
        GrantRecord {
            issued_count: 1 << 39,
            clock: Clock { time: time::MS_MAX, ahead: TICKS_MAX },
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
        assert!((50..=90).contains(&bytes), "{bytes}");
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
            |grants| grants.clock.time += 1,
        ];
        for damage in damages {
            let mut grants = full();
            damage(&mut grants);
            assert!(!grants.is_sound());
        }
    }
}
