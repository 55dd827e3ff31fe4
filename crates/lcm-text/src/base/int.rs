//! Lossless or saturating conversions between integer widths, and numbers formatted for people.
//!
//! The crates convert lengths and offsets with these functions instead of `as` casts, because
//! `usize` has 32 bits in the component and 64 bits in native tests.

use alloc::string::{String, ToString};

pub use lcm_loops::int::{to_u32, to_u64, to_usize};

/// Converts a token count to the 32 bits of the public interface; a larger count becomes
/// `u32::MAX`.
pub fn saturate_tokens(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// Formats a number with commas between thousands: `12,345`.
pub fn format_with_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
