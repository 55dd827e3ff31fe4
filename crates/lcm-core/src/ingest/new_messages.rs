//! Selection of the candidates of an append that are new messages.
//!
//! In: candidates, the head and the stored identities. Out: an [`AppendDecision`]. `append` and
//! `import` use this module.

use alloc::{string::String, vec::Vec};

use crate::storage::{head::ConversationHead, records::identity::StoredIdentity};
use lcm_text::{base::int, message::Role, types::event::EventList};

use super::{
    batch::AppendCandidate,
    identity::{self, IdentityMatch, KnownIdentities},
};

/// A candidate that becomes a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NewCandidate {
    /// Index of the candidate.
    pub(super) index: usize,
    /// Whether the call id of the candidate becomes an identity of the message.
    pub(super) keeps_call_id: bool,
}

/// A candidate that may be stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CandidatePlace {
    pub(super) index: usize,
    /// Whether the candidate is another form of a stored message.
    pub(super) is_revision: bool,
}

/// The new messages of a batch, with warnings for the receipt.
#[derive(Debug, Default)]
pub(super) struct AppendDecision {
    /// The new messages, in order.
    pub(super) new_messages: Vec<NewCandidate>,
    /// Number of first new messages that are other forms of stored messages.
    pub(super) revisions: usize,
    /// Index of the candidate and seq of the new message, for each new message that equals one of
    /// the newest stored messages.
    pub(super) duplicates: Vec<(usize, u64)>,
    pub(super) warnings: Vec<String>,
    /// Number of first candidates that an earlier attempt of the call stored.
    pub(super) repeated: u32,
    pub(super) events: EventList,
    pub(super) is_likely_replay: bool,
}

impl AppendDecision {
    /// Counts the system messages, after other forms of messages, with which the new messages
    /// begin; 0: all of them are system messages.
    pub(super) fn count_lead(&self, candidates: &[AppendCandidate<'_>]) -> usize {
        let is_system = |new: &NewCandidate| {
            candidates.get(new.index).is_some_and(|it| it.message.role == Role::System)
        };
        let new = self.new_messages.iter().skip(self.revisions);
        new.clone().position(|new| !is_system(new)).unwrap_or(0)
    }
}

/// Selects the messages of a batch that are stored, among the candidates of `order`, in this order.
/// A candidate with a stored identity is skipped. Adds the identities of the new messages to
/// `known`, so that a later candidate with an equal identity is skipped.
pub(super) fn select_new(
    head: &ConversationHead,
    candidates: &[AppendCandidate<'_>],
    known: &mut KnownIdentities,
    order: &[CandidatePlace],
) -> AppendDecision {
    let mut decided = AppendDecision::default();
    for CandidatePlace { index, is_revision } in order.iter().copied() {
        let Some(candidate) = candidates.get(index) else { continue };
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
        if head.recent_marks.iter().any(|mark| mark.is_same_message(&candidate.entry.mark)) {
            decided.duplicates.push((index, seq));
        }
        decided.revisions += usize::from(is_revision);
        decided.new_messages.push(NewCandidate { index, keeps_call_id });
    }
    decided
}

/// Returns the places of the candidates from index `from` on, none of them a revision.
pub(super) fn list_places(from: usize, count: usize) -> Vec<CandidatePlace> {
    (from..count).map(|index| CandidatePlace { index, is_revision: false }).collect()
}
