//! The version of the rules that derive values from stored texts.
//!
//! Every record with derived values holds this version, so that a later version may derive more
//! without reporting older records as corrupt. The layout of a record has its own version, the
//! format byte. Content identities, ids and the hashes over them never change for a stored message.

/// Version of the rules by which values are derived from texts.
///
/// The rules cover:
///
/// - the parsed message: role, parts, call id, tokens;
/// - large payloads with their placeholders and outlines;
/// - the token estimate;
/// - the element that shows a summary.
///
/// Raise the version with any change of these rules.
pub const DERIVATION_VERSION: u32 = 1;

/// Returns [`DERIVATION_VERSION`] if all `versions` are equal to the constant, else 0, which is not
/// the version of any rules.
pub fn common_version(versions: impl IntoIterator<Item = u32>) -> u32 {
    let is_current = |version| version == DERIVATION_VERSION;
    if versions.into_iter().all(is_current) { DERIVATION_VERSION } else { 0 }
}
