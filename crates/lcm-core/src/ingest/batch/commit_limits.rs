//! Limits of the messages that one append takes, so that its commit stays under 1 MiB.
//!
//! Batches are cut to these limits; a first message that exceeds them alone is still taken.

/// Most records of identities, payloads and uploads in one commit. The other puts of
/// [`lcm_text::base::limits::PUTS_MAX`] are for packs, chunks, index, directory and head.
pub(in crate::ingest) const IDENTITY_PUTS_MAX: usize = 200;
/// Upper bound of the packs that one append writes. The commit moves packs to the directory only if
/// the directory node was read before, so the append reads the node in good time.
///
/// Two neighbouring packs hold over 64 KiB of text or take over 200 KiB, unless a directory node or
/// 64 messages end between them. So the limits of a batch bound the number of packs.
pub(in crate::ingest) const PACKS_MAX: usize = 20;
/// Most estimated bytes of a pack of several messages; a message that would exceed the number
/// begins a new pack.
pub(super) const PACK_RECORD_BYTES_MAX: usize = 200 << 10;
/// Most estimated bytes of packs, chunks, uploads and payload records in one commit. The rest of
/// the 1 MiB is for identities, index, directory, context and head.
pub(super) const COMMIT_RECORDS_BYTES_MAX: usize = 768 << 10;
/// Most raw bytes that one commit indexes, so that the index fits the commit. A message counts at
/// most [`crate::search::INDEXED_BYTES_MAX`] bytes.
pub(super) const COMMIT_INDEXED_BYTES_MAX: usize = 2 << 20;
