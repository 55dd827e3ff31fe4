//! Recognition of stored messages by their identities.
//!
//! In: a message and the stored records of its identities. Out: whether the message is stored.
//! `append` and `import` use this module.
//!
//! An entry id or event key of the host is authoritative. A call id counts only together with equal
//! content, because a provider may use a call id again.

use lcm_text::{base::sort::SortedMap, message::ParsedMessage};

use crate::storage::records::identity::{IdentityLookup, IdentityPrefix, StoredIdentity};

/// The stored record under the key of each identity of a batch; `None`: there is no record.
pub(super) type KnownIdentities = SortedMap<IdentityPrefix, Option<StoredIdentity>>;

/// Whether the identities of a message are stored.
pub(super) enum IdentityMatch {
    /// The message is stored at `seq`.
    Stored { seq: u64 },
    /// The message is new; `keeps_call_id`: whether its call id becomes an identity of the message.
    New { keeps_call_id: bool },
}

/// Returns whether a message is stored according to its identities in `known`.
pub(super) fn match_identities(
    lookups: &[IdentityLookup],
    message: &ParsedMessage,
    known: &KnownIdentities,
) -> IdentityMatch {
    let mut keeps_call_id = true;
    for lookup in lookups {
        let record = known.get(&lookup.key_prefix()).and_then(Option::as_ref);
        let Some(record) = record.filter(|record| record.matches_lookup(lookup)) else { continue };
        if !lookup.is_call() {
            return IdentityMatch::Stored { seq: record.seq };
        }
        // A message with an id of the host that is not stored is new, whatever its call id is.
        let has_host_id = lookups.iter().any(|lookup| !lookup.is_call());
        if record.has_equal_content(message) && !has_host_id {
            return IdentityMatch::Stored { seq: record.seq };
        }
        keeps_call_id = false;
    }
    IdentityMatch::New { keeps_call_id }
}
