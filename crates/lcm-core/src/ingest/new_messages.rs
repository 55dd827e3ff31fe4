//! Selection of the candidates of an append that are new messages.
//!
//! In: candidates, the head and the stored identities. Out: an [`AppendDecision`]. `append` and
//! `import` use this module.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    call::Call, head::ConversationHead, history::MessageHistory, records::identity::StoredIdentity,
    store_session::StoreSession,
};
use lcm_text::base::{error::Result, hash, int};

use super::{
    alignment::{self, AlignableEntry, NewestMessages},
    batch::AppendCandidate,
    identity::{self, IdentityMatch, KnownIdentities},
    redaction::RedactedCopy,
};

/// A candidate that becomes a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NewCandidate {
    /// Index of the candidate.
    pub(super) index: usize,
    /// Whether the call id of the candidate becomes an identity of the message.
    pub(super) keeps_call_id: bool,
}

/// The new messages of a batch, with warnings for the receipt.
#[derive(Debug, Default)]
pub(super) struct AppendDecision {
    /// The new messages, in order.
    pub(super) new_messages: Vec<NewCandidate>,
    /// Index of the candidate and seq of the new message, for each new message that equals one of
    /// the newest stored messages.
    pub(super) duplicates: Vec<(usize, u64)>,
    pub(super) warnings: Vec<String>,
    pub(super) is_likely_replay: bool,
}

/// Selects the new messages among the candidates from index `aligned` on; the candidates before are
/// stored. Adds the identities of the new messages to `known`, so that a later candidate with an
/// equal identity is skipped.
pub(super) fn select_new(
    head: &ConversationHead,
    candidates: &[AppendCandidate<'_>],
    known: &mut KnownIdentities,
    aligned: usize,
) -> AppendDecision {
    let mut decided = AppendDecision::default();
    for (index, candidate) in candidates.iter().enumerate().skip(aligned) {
        if candidate.message.is_failed_and_empty {
            continue;
        }
        let matched = identity::match_identities(&candidate.lookups, &candidate.message, known);
        let IdentityMatch::New { keeps_call_id } = matched else { continue };
        let seq = head.messages + int::to_u64(decided.new_messages.len()) + 1;
        for lookup in &candidate.lookups {
            if keeps_call_id || !lookup.is_call() {
                let value = StoredIdentity::new(seq, lookup, &candidate.message);
                known.insert(lookup.key_prefix(), Some(value));
            }
        }
        let hash: [u8; 12] = hash::hash_prefix(&candidate.hash);
        if head.recent_hashes.contains(&hash) {
            decided.duplicates.push((index, seq));
        }
        decided.new_messages.push(NewCandidate { index, keeps_call_id });
    }
    decided
}

/// Returns how many first candidates of a transcript are the newest stored messages.
///
/// Reads stored texts, in the third read of an append, only if a candidate is a redacted copy.
///
/// # Errors
///
/// Errors of the store.
pub(super) fn count_stored(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    head: &ConversationHead,
    candidates: &[AppendCandidate<'_>],
    known: &KnownIdentities,
) -> Result<usize> {
    let is_copy = |candidate: &AppendCandidate<'_>| {
        RedactedCopy::from_message(&candidate.raw, &candidate.message).is_some()
    };
    let texts = match candidates.iter().any(is_copy) {
        true => {
            let history = MessageHistory::new(call, head);
            alignment::read_newest_texts(session, &history, candidates.len())?
        }
        false => Vec::new(),
    };
    Ok(count_aligned(head, candidates, known, &texts))
}

/// Returns how many first candidates are the newest stored messages.
///
/// Failed turns without content are not compared; those before the last match are counted.
fn count_aligned(
    head: &ConversationHead,
    candidates: &[AppendCandidate<'_>],
    known: &KnownIdentities,
    texts: &[String],
) -> usize {
    let mut entries = Vec::new();
    let mut indexes = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.message.is_failed_and_empty {
            continue;
        }
        let AppendCandidate { raw, message, hash, lookups, .. } = candidate;
        let seq = match identity::match_identities(lookups, message, known) {
            IdentityMatch::Stored { seq } => Some(seq),
            IdentityMatch::New { .. } => None,
        };
        let redacted_copy =
            if texts.is_empty() { None } else { RedactedCopy::from_message(raw, message) };
        entries.push(AlignableEntry {
            hash: *hash,
            seq,
            is_discriminating: message.is_discriminating,
            redacted_copy,
        });
        indexes.push(index);
    }
    let newest = NewestMessages { hashes: &head.recent_hashes, texts, seq_last: head.messages };
    let count = alignment::count_aligned_prefix(&newest, &entries);
    count.checked_sub(1).and_then(|last| indexes.get(last)).map_or(0, |index| index + 1)
}
