//! Lossless or saturating conversions between integer widths.
//!
//! There are no `as` casts: `usize` differs between the guest (32 bit) and native tests (64 bit),
//! so every crossing goes through one of these.

/// The length as `u32`; saturates, which no bound of the engine reaches.
#[inline]
#[must_use]
pub fn to_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The length as `u64`.
#[inline]
#[must_use]
pub fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// An index from a stored number; saturates, so that a wrong one finds nothing.
#[inline]
#[must_use]
pub fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
