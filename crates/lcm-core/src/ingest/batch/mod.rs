//! Turns the raw texts of one append into packs.
//!
//! In: raw messages. Out: parsed candidates, cut to one commit, and the puts of their packs.
//! `append` and `import` use this module.

mod candidate;
pub(super) mod commit_limits;
mod pack_builder;
mod record_size;

pub(super) use candidate::{
    AppendCandidate, CandidateParser, StagedUploads, find_upload, read_candidates, resolve_uploads,
};
pub(super) use pack_builder::{NumberedDirectoryNode, PackBuilder, flush_packs};

#[cfg(test)]
#[expect(clippy::as_conversions, reason = "a failing test may panic")]
mod tests;
