//! Lossless or saturating conversions between integer widths.
//!
//! The crates use these functions in place of `as` casts, because `usize` has 32 bits in the
//! component and 64 bits in native tests.

/// Converts a length to `u32`. A greater length becomes `u32::MAX`; the engine has no such length.
#[inline]
#[must_use]
pub fn to_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Converts a length to `u64`.
#[inline]
#[must_use]
pub fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Converts a stored number to an index. A greater number becomes `usize::MAX`, so that a lookup by
/// a wrong number finds nothing.
#[inline]
#[must_use]
pub fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
