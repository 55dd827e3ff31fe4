//! From the texts of one append to packs: parsing, cutting to one commit, and layout.

mod candidate;
pub(super) mod commit_limits;
mod pack_builder;
mod record_size;

pub(super) use candidate::{
    AppendCandidate, CandidateParser, StagedUploads, read_candidates, resolve_uploads,
};
pub(super) use pack_builder::{NumberedDirectoryNode, PackBuilder, flush_packs};

#[cfg(test)]
#[expect(clippy::as_conversions, reason = "a failing test may panic")]
mod tests;
