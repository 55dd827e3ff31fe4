//! Lossless or saturating conversions between integer widths.
//!
//! The core has no `as` casts: `usize` differs between the guest (32 bit) and native tests (64
//! bit), so every crossing goes through one of these.

pub(crate) use lcm_loops::num::{to_u32, to_u64, to_usize};

/// A token count for the public interface, which has 32 bits.
pub(crate) fn tokens_u32(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
