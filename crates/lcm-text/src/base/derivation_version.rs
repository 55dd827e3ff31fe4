//! The version of what is made from stored bytes.
//!
//! In: nothing. Out: a number that stands in every record with derived values, so that a later
//! version may derive more without calling older records damaged. Not here: how records lie, whose
//! version is the format byte of each value, and what never changes for a stored message: its
//! content identity, its ids, and the hashes over them.

/// Version of the rules by which values are derived from texts.
///
/// It covers the projection of a message (role, parts, the call id that counts, tokens), what of it
/// is a payload, the stand-in, explorations, the estimate of tokens, and the element that stands
/// for a summary. Raise it with any change to them.
pub const DERIVATION_VERSION: u32 = 1;

/// The version of a value that counts others: [`RULES`] if all of those are of it, else 0, which no
/// rules have.
pub fn common_version(rules: impl IntoIterator<Item = u32>) -> u32 {
    if rules.into_iter().all(|one| one == DERIVATION_VERSION) { DERIVATION_VERSION } else { 0 }
}
