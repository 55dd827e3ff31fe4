//! Recognition of stored messages by their identities.
//!
//! In: a candidate and the stored records of its identities. Out: the message that the candidate
//! is, and the message that has its id and says something else. `append` and `import` use this
//! module.
//!
//! An id of the host counts together with what the message says, or with a form of it. A call id
//! counts only together with equal content, because a provider may use a call id again.

use lcm_text::base::sort::SortedMap;

use crate::storage::records::identity::{
    IdentityContent, IdentityLookup, IdentityPrefix, StoredIdentity,
};

use super::batch::AppendCandidate;

/// The stored record under the key of each identity of a batch; `None`: there is no record.
pub(super) type KnownIdentities = SortedMap<IdentityPrefix, Option<StoredIdentity>>;

/// The stored messages with identities of a candidate.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct IdentityMatch {
    /// Seq of the message that has an identity of the candidate and says the same.
    pub(super) stored: Option<u64>,
    /// Greatest seq of a message that has an id of the host of the candidate and says something
    /// else.
    pub(super) other: Option<u64>,
}

impl IdentityMatch {
    /// Adds the record under an identity of a message. `has_host_id`: whether the message has an id
    /// of the host that counts.
    pub(super) fn add_record(
        &mut self,
        (lookup, record): (&IdentityLookup, &StoredIdentity),
        content: &IdentityContent,
        has_host_id: bool,
    ) {
        let is_equal = record.has_content(lookup, content);
        if !lookup.is_call() {
            let slot = if is_equal && has_host_id { &mut self.stored } else { &mut self.other };
            *slot = (*slot).max(Some(record.seq));
        } else if is_equal && !has_host_id {
            // A message with an id of the host that is not stored is new, whatever its call id is.
            self.stored = self.stored.or(Some(record.seq));
        }
    }
}

/// Which identities of a new message get a record that leads to the message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct KeptIdentities {
    pub(super) has_call_id: bool,
    pub(super) has_host_ids: bool,
    /// Whether a message of the same commit has one of the ids.
    pub(super) repeats_id: bool,
}

impl KeptIdentities {
    /// Returns whether an identity of the message is kept.
    pub(super) fn has_lookup(self, lookup: &IdentityLookup) -> bool {
        if lookup.is_call() { self.has_call_id } else { self.has_host_ids }
    }
}

/// Finds the stored messages with identities of a candidate in `known`.
pub(super) fn match_identities(
    candidate: &AppendCandidate<'_>,
    known: &KnownIdentities,
) -> IdentityMatch {
    let mut found = IdentityMatch::default();
    let has_host_id = candidate.entry.has_host_id();
    let content = candidate.identity_content();
    for lookup in &candidate.lookups {
        let Some(record) = find_record(lookup, known) else { continue };
        found.add_record((lookup, record), &content, has_host_id);
    }
    found
}

/// Returns whether no stored message has the call id of a candidate.
pub(super) fn has_free_call_id(candidate: &AppendCandidate<'_>, known: &KnownIdentities) -> bool {
    let mut calls = candidate.lookups.iter().filter(|lookup| lookup.is_call());
    calls.all(|lookup| find_record(lookup, known).is_none())
}

fn find_record<'a>(
    lookup: &IdentityLookup,
    known: &'a KnownIdentities,
) -> Option<&'a StoredIdentity> {
    let record = known.get(&lookup.key_prefix()).and_then(Option::as_ref);
    record.filter(|record| record.matches_lookup(lookup))
}
