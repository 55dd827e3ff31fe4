//! Selection of the candidates of an append that are new messages.
//!
//! In: candidates, the head and the stored identities. Out: an [`AppendDecision`]. `append` and
//! `import` use this module.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    head::ConversationHead, message_mark::MessageMark, records::identity::StoredIdentity,
};
use lcm_text::{base::int, message::Role, types::event::EventList};

use super::{
    batch::AppendCandidate,
    identity::{self, KeptIdentities, KnownIdentities},
};

/// A candidate that becomes a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NewCandidate {
    /// Index of the candidate.
    pub(super) index: usize,
    pub(super) kept: KeptIdentities,
}

/// A candidate that may be stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CandidatePlace {
    pub(super) index: usize,
    /// Whether the candidate is another form of a stored message.
    pub(super) is_revision: bool,
    /// Whether the candidate is new even if a stored message has its identity and says the same.
    pub(super) is_certain: bool,
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
    /// Number of first candidates that an earlier attempt of the call stored or skipped.
    pub(super) repeated: u32,
    /// Number of messages before the candidates, which are stored.
    pub(super) known: u32,
    pub(super) events: EventList,
}

impl AppendDecision {
    /// Lists the marks of the first new messages, which are other forms of stored messages.
    pub(super) fn list_form_marks(&self, candidates: &[AppendCandidate<'_>]) -> Vec<MessageMark> {
        let forms = self.new_messages.iter().take(self.revisions);
        forms.filter_map(|new| Some(candidates.get(new.index)?.entry.mark)).collect()
    }

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

/// Selects the candidates that become messages, among those of `order` and in this order. A
/// candidate is skipped if it is a failed turn without content, or if the message with one of its
/// identities says the same and its place is not certain. Adds the identities of the new messages
/// to `known`, so that a later candidate that repeats one is skipped. A new message takes over the
/// id of a message that says something else, unless it is another form of a message.
pub(super) fn select_new(
    head: &ConversationHead,
    candidates: &[AppendCandidate<'_>],
    known: &mut KnownIdentities,
    order: &[CandidatePlace],
) -> AppendDecision {
    let mut decided = AppendDecision::default();
    for CandidatePlace { index, is_revision, is_certain } in order.iter().copied() {
        let Some(candidate) = candidates.get(index) else { continue };
        if candidate.message.is_failed_and_empty {
            continue;
        }
        let found = identity::match_identities(candidate, known);
        if found.stored.is_some() && !is_certain {
            continue;
        }
        let seq = head.messages + int::to_u64(decided.new_messages.len()) + 1;
        let kept = KeptIdentities {
            has_call_id: identity::has_free_call_id(candidate, known),
            has_host_ids: !is_revision || found.other.is_none(),
            repeats_id: found.other.max(found.stored).is_some_and(|seq| seq > head.messages),
        };
        for lookup in candidate.lookups.iter().filter(|lookup| kept.has_lookup(lookup)) {
            let value = StoredIdentity::new(seq, lookup, &candidate.identity_content());
            known.insert(lookup.key_prefix(), Some(value));
        }
        if head.recent_marks.iter().any(|mark| mark.is_same_message(&candidate.entry.mark)) {
            decided.duplicates.push((index, seq));
        }
        decided.revisions += usize::from(is_revision);
        decided.new_messages.push(NewCandidate { index, kept });
    }
    decided
}
