//! Limits of one append, so that its commit stays under 1 MiB.

/// Most identity records of one commit. The rest of the key limit is for packs, chunks and the
/// head.
pub(in crate::ingest) const IDENTITY_PUTS_MAX: usize = 200;
/// Most packs that one append writes.
///
/// Two neighbours together hold over 64 KiB of text or take over 200 KiB. So at most 8 pairs fit
/// [`COMMIT_RECORDS_BYTES_MAX`] and 512 KiB of text. One more cut may fall on a directory boundary,
/// and one on the most messages of a pack.
pub(in crate::ingest) const PACKS_MAX: usize = 20;
/// Most bytes of the record of a pack. The largest possible message takes less.
pub(super) const PACK_RECORD_BYTES_MAX: usize = 200 << 10;
/// Most bytes of packs, chunks and their records in one commit. The rest of the 1 MiB is for
/// identities, directory, context and head.
pub(super) const COMMIT_RECORDS_BYTES_MAX: usize = 768 << 10;
/// Most bytes of text that one commit indexes, so that the index fits the commit, too; see
/// [`crate::search::INDEXED_BYTES_MAX`].
pub(super) const COMMIT_INDEXED_BYTES_MAX: usize = 2 << 20;
