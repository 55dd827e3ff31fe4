//! The stored records that an append or import reads before it decides.
//!
//! In: candidates. Out: the records of their identities, the chunk lengths of their large texts
//! that are stored, and one directory node.

use alloc::vec::Vec;

use crate::{
    search::{IndexMaintenance, NewMessage},
    storage::{
        call::Call,
        head::ConversationHead,
        history,
        pack::DirectoryNode,
        record_key::{RecordReads, RecordSlot},
        records::{
            identity::{IdentityPrefix, StoredIdentity},
            upload::Upload,
        },
        store_session::StoreSession,
    },
};
use lcm_text::base::{error::Result, limits, sort::SortedMap};

use super::{
    batch::{AppendCandidate, NumberedDirectoryNode, commit_limits::PACKS_MAX},
    identity::KnownIdentities,
};

/// The stored records that an append needs.
pub(super) struct StoredState {
    /// The record under each identity of the candidates.
    pub(super) identities: KnownIdentities,
    /// Chunk lengths, by SHA-256, of the candidates' large texts that are stored already.
    pub(super) large_texts: SortedMap<[u8; 32], Vec<u32>>,
    /// The directory node that the commit may extend; `None`: the head has room for all packs.
    pub(super) node: Option<NumberedDirectoryNode>,
}

impl StoredState {
    /// Reads the records in one host call, together with the index records that the append needs.
    ///
    /// # Errors
    ///
    /// `conflict`: the conversation has changed; `corrupt`; errors of the store.
    pub(super) fn read(
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        head: &ConversationHead,
        candidates: &[AppendCandidate<'_>],
        index_maintenance: &mut IndexMaintenance<'_>,
    ) -> Result<Self> {
        let mut reads = RecordReads::default();
        let lookups = candidates.iter().flat_map(|candidate| &candidate.lookups);
        let identities: Vec<(IdentityPrefix, RecordSlot<StoredIdentity>)> = lookups
            .map(|lookup| {
                (lookup.key_prefix(), reads.add_record(StoredIdentity::key(call.keys, lookup)))
            })
            .collect();
        let large = candidates.iter().flat_map(AppendCandidate::unread_large_names);
        let large: Vec<([u8; 32], RecordSlot<Upload>)> = large
            .map(|sha256| (sha256, reads.add_record(Upload::key(call.keys, &sha256))))
            .collect();
        // With the packs of this append, the head may exceed its limit and extend the directory.
        let may_flush = head.packs.len() > limits::RECENT_PACKS_MAX - PACKS_MAX;
        let node = head.packs.first().filter(|_| may_flush);
        let node = node.map(|pack| history::directory_node(pack.seq_first));
        let node =
            node.map(|number| (number, reads.add_record(DirectoryNode::key(call.keys, number))));
        let new: Vec<NewMessage<'_>> =
            candidates.iter().map(|candidate| candidate.to_searchable(0)).collect();
        let values = index_maintenance.read_append_inputs(session, head, &new, &reads)?;

        let mut state = Self {
            identities: SortedMap::from_entries(
                identities.iter().map(|(prefix, _)| (*prefix, None)).collect(),
            ),
            large_texts: SortedMap::default(),
            node: None,
        };
        for (prefix, slot) in &identities {
            if let Some(record) = values.decode(slot)? {
                state.identities.insert(*prefix, Some(record));
            }
        }
        for (sha256, slot) in &large {
            if let Some(upload) = values.decode(slot)?.filter(|upload| upload.is_final) {
                state.large_texts.insert(*sha256, upload.chunks);
            }
        }
        if let Some((number, slot)) = &node {
            let node = values.decode(slot)?.unwrap_or_default();
            state.node = Some(NumberedDirectoryNode { number: *number, node });
        }
        Ok(state)
    }
}
