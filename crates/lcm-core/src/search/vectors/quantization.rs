//! Quantisation of decimals to one byte for each dimension.
//!
//! Input: numbers as JSON text. Output: each number as a fraction, in 127ths, of the largest
//! absolute value. The cosine is independent of scale, so no scale is kept. Decimals are parsed as
//! integers with an exponent, without floats, so that the same text gives the same bytes on every
//! host.

use alloc::vec::Vec;

use lcm_text::base::{
    error::{Error, Result},
    json::{self, JsonFields, JsonKind},
    limits::{VECTOR_DIMENSIONS_MAX, VECTOR_DIMENSIONS_MIN},
};

/// Absolute value of the largest quantised number of a vector.
const LARGEST: u64 = 127;
/// Least mantissa of nine digits. All mantissas have nine digits, so a greater exponent means a
/// greater number.
const MANTISSA_MIN: u32 = 100_000_000;
/// Greatest exponent at which every mantissa of nine digits fits a 64-bit float.
const EXPONENT_MAX: i32 = 299;

/// Decimal cut to nine digits; zero has the mantissa 0.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Decimal {
    is_negative: bool,
    /// Power of ten that multiplies the mantissa.
    exponent: i32,
    mantissa: u32,
}

impl Decimal {
    /// Parses a number; `None`: the text is not a number, or its exponent is too great for a float.
    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-');
        let (is_negative, digits) = (digits.is_some(), digits.unwrap_or(text));
        let (digits, mut exponent) = match digits.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, parse_exponent(exponent)?),
            None => (digits, 0),
        };
        let (mut mantissa, mut is_behind) = (0u32, false);
        for byte in digits.bytes() {
            let digit = byte.wrapping_sub(b'0');
            match byte {
                b'.' if !is_behind => is_behind = true,
                _ if digit > 9 => return None,
                _ if mantissa < MANTISSA_MIN => {
                    mantissa = mantissa * 10 + u32::from(digit);
                    exponent -= i32::from(is_behind);
                }
                _ => exponent += i32::from(!is_behind),
            }
        }
        if mantissa == 0 {
            return Some(Self::default());
        }
        while mantissa < MANTISSA_MIN {
            mantissa *= 10;
            exponent -= 1;
        }
        (exponent <= EXPONENT_MAX).then_some(Self { is_negative, exponent, mantissa })
    }

    /// Returns this number in 127ths of the absolute value of `largest`, rounded to the nearest.
    fn scale_to(self, largest: Self) -> i8 {
        let mut doubled = 2 * LARGEST * u64::from(self.mantissa);
        for _ in self.exponent..largest.exponent.min(self.exponent + 12) {
            doubled /= 10;
        }
        let largest = u64::from(largest.mantissa).max(1);
        let part = i8::try_from((doubled + largest) / (2 * largest)).unwrap_or(i8::MAX);
        if self.is_negative { -part } else { part }
    }
}

/// Parses an exponent with an optional sign; `None`: not a number below 1,000. No float has a
/// greater exponent.
fn parse_exponent(text: &str) -> Option<i32> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("-", digits) => (-1, digits),
        ("+", digits) => (1, digits),
        _ => (1, text),
    };
    let number: u32 = digits.parse().ok().filter(|number| *number < 1_000)?;
    Some(sign * i32::try_from(number).unwrap_or(0))
}

/// Parses and quantises the field `vector`. `None`: the field is absent or `null`.
///
/// # Errors
///
/// `invalid-input`: not a list of numbers, too few or too many, not finite, or all zero.
pub(crate) fn parse_vector(fields: &mut JsonFields<'_>) -> Result<Option<Vec<i8>>> {
    Ok(parse_nullable_vector(fields)?.flatten())
}

/// Parses like [`parse_vector`]. `None`: the field is absent; `Some(None)`: the field is `null`.
///
/// # Errors
///
/// `invalid-input`: not a list of numbers, too few or too many, not finite, or all zero.
pub(crate) fn parse_nullable_vector(
    fields: &mut JsonFields<'_>,
) -> Result<Option<Option<Vec<i8>>>> {
    let Some((text, kind)) = fields.take_any("vector") else { return Ok(None) };
    match kind {
        JsonKind::Null => return Ok(Some(None)),
        JsonKind::Array => {}
        _ => return Err(Error::invalid_input("`vector` must be a list of numbers")),
    }
    let mut decimals = Vec::new();
    for element in json::list_elements(&text, json::ByteSpan::from_range(0, text.len())) {
        let number = json::slice_span(&text, element.span);
        let decimal = Decimal::parse(number).filter(|_| element.kind == JsonKind::Number);
        let wrong = || {
            let at = decimals.len();
            Error::invalid_input(format_args!("`vector[{at}]` must be a finite number"))
        };
        decimals.push(decimal.ok_or_else(wrong)?);
    }
    quantize_decimals(&decimals).map(|parts| Some(Some(parts)))
}

fn quantize_decimals(decimals: &[Decimal]) -> Result<Vec<i8>> {
    let dimensions = decimals.len();
    if !(VECTOR_DIMENSIONS_MIN..=VECTOR_DIMENSIONS_MAX).contains(&dimensions) {
        return Err(Error::invalid_input(format_args!(
            "`vector` must have between {VECTOR_DIMENSIONS_MIN} and {VECTOR_DIMENSIONS_MAX} \
             dimensions, got {dimensions}"
        )));
    }
    let nonzero = decimals.iter().copied().filter(|decimal| decimal.mantissa > 0);
    let Some(largest) = nonzero.max_by_key(|decimal| (decimal.exponent, decimal.mantissa)) else {
        return Err(Error::invalid_input("`vector` must have a number other than zero"));
    };
    Ok(decimals.iter().map(|decimal| decimal.scale_to(largest)).collect())
}

/// Returns the bytes of a quantised vector.
pub(crate) fn vector_bytes(vector: &[i8]) -> Vec<u8> {
    vector.iter().flat_map(|part| part.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> core::result::Result<Option<Vec<i8>>, alloc::string::String> {
        let mut fields = JsonFields::parse_argument("name", json).unwrap();
        parse_vector(&mut fields).map_err(|error| error.into_failure().message)
    }

    /// Goal: each number becomes the nearest fraction of the largest number. Method: compares with
    /// the result in floats.
    #[test]
    #[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "small floats")]
    fn a_vector_is_parts_of_its_largest_number() {
        let texts = [
            "0.5",
            "-1",
            "1.0e0",
            "0.00394",
            "-3.93e-3",
            "0",
            "-0.0",
            "1e-30",
            "0.24999999999999",
            "9.999999999999E-1",
            "2.5E+2",
            "-1000e-1",
            "0.000000000000000000012",
        ];
        let floats: Vec<f64> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let largest = floats.iter().fold(0f64, |most, float| most.max(float.abs()));
        let expected: Vec<i8> =
            floats.iter().map(|float| (float / largest * 127.0).round() as i8).collect();
        let json = alloc::format!(r#"{{"vector":[{}]}}"#, texts.join(","));
        assert_eq!(read(&json).unwrap().unwrap(), expected);
        // No scale is kept: the same numbers times a power of ten give the same vector.
        let scaled: Vec<_> =
            floats.iter().map(|float| alloc::format!("{:e}", float * 1e-9)).collect();
        let json = alloc::format!(r#"{{"vector":[{}]}}"#, scaled.join(","));
        assert_eq!(read(&json).unwrap().unwrap(), expected);
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        assert_eq!(read("{}"), Ok(None));
        assert_eq!(read(r#"{"vector":null}"#), Ok(None));
        for (vector, wrong) in [
            ("\"a\"", "must be a list of numbers"),
            ("[]", "between 8 and 4096 dimensions, got 0"),
            ("[1,2,3,4,5,6,7]", "dimensions, got 7"),
            ("[0,0,0,0,0,0,0,-0.0e5]", "a number other than zero"),
            ("[0,0,1e309,0,0,0,0,1]", "`vector[2]` must be a finite number"),
            ("[0,0,0,0,0,0,0,1e99999999999]", "`vector[7]` must be a finite number"),
            ("[0,null,0,0,0,0,0,1]", "`vector[1]` must be a finite number"),
            ("[0,\"1\",0,0,0,0,0,1]", "`vector[1]` must be a finite number"),
        ] {
            let error = read(&alloc::format!(r#"{{"vector":{vector}}}"#)).unwrap_err();
            assert!(error.contains(wrong), "{vector}: {error}");
        }
        let long = ["1"; 4_097].join(",");
        let error = read(&alloc::format!(r#"{{"vector":[{long}]}}"#)).unwrap_err();
        assert!(error.contains("got 4097"), "{error}");
    }
}
