//! Parses JSON numbers of the configuration exactly, without floating point.
//!
//! Input: the text of a JSON number. Output: a whole number, or the number times a power of ten.

/// Parses a JSON number that is whole in any notation (`2e4`, `20000.0`); `None`: not whole,
/// negative, or above `u32::MAX`.
pub(super) fn parse_whole(number: &str) -> Option<u32> {
    let scaled = scale_decimal(number, 0).filter(|scaled| scaled.exact)?;
    u32::try_from(scaled.floor).ok()
}

/// A decimal number multiplied by a power of ten.
pub(super) struct ScaledDecimal {
    /// The product without its fraction.
    pub(super) floor: u64,
    /// Whether the dropped fraction is a half or more.
    pub(super) rounds_up: bool,
    /// Whether the product has no fraction.
    pub(super) exact: bool,
}

/// Multiplies a JSON number by ten to the power of `places`; `None`: the number is negative, or the
/// product or the exponent is too large.
pub(super) fn scale_decimal(number: &str, places: i64) -> Option<ScaledDecimal> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let negative = integer.starts_with('-');
    let integer = integer.trim_start_matches('-');
    let digits = || integer.bytes().chain(fraction.bytes());
    if digits().all(|digit| digit == b'0') {
        return Some(ScaledDecimal { floor: 0, rounds_up: false, exact: true });
    }
    if negative {
        return None;
    }
    let point = i64::try_from(integer.len()).ok()?;
    let kept = exponent.parse::<i64>().ok()?.checked_add(places)?.checked_add(point)?;
    let mut scaled = ScaledDecimal { floor: 0, rounds_up: false, exact: true };
    let mut at = 0;
    for digit in digits() {
        if at < kept {
            let value = u64::from(digit.saturating_sub(b'0'));
            scaled.floor = scaled.floor.checked_mul(10)?.checked_add(value)?;
        } else {
            scaled.rounds_up |= at == kept && digit >= b'5';
            scaled.exact &= digit == b'0';
        }
        at += 1;
    }
    while at < kept {
        // The floor is not 0 here, so an overflow ends the loop after at most 20 rounds.
        scaled.floor = scaled.floor.checked_mul(10)?;
        at += 1;
    }
    Some(scaled)
}
