//! How a record becomes a value: a format byte, a codec byte, then the payload.
//!
//! Every value of the store goes through here. A value of another format or codec is refused by
//! name rather than guessed at.

use alloc::{format, string::String, vec::Vec};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    error::{Error, Result},
    limits,
};

/// Version of the store format, the first byte of every value.
pub(crate) const FORMAT: u8 = 1;
/// Codec of records.
const POSTCARD: u8 = 0;
/// Codec of chunks: the bytes as they are.
const BYTES: u8 = 1;

/// Writes a record.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB.
pub(crate) fn encode<T: Serialize>(record: &T) -> Result<Vec<u8>> {
    let value = postcard::to_extend(record, alloc::vec![FORMAT, POSTCARD])
        .map_err(|error| Error::corrupt(format!("a record cannot be written: {error}")))?;
    bounded(value)
}

/// What a record must be, beyond readable, for arithmetic on it never to overflow.
///
/// A store is not trusted: a record that is out of bounds is `corrupt`, not a trap.
pub(crate) trait Sound {
    /// Whether every number of the record is within the bounds of the format.
    fn is_sound(&self) -> bool {
        true
    }
}

impl Sound for () {}
impl Sound for [u8; 8] {}
impl Sound for (String, String) {}

/// Whether numbers count something that exists: no conversation has 2^40 of anything.
pub(crate) fn countable(numbers: &[u64]) -> bool {
    numbers.iter().all(|number| *number < 1 << 40)
}

/// Reads the record that stands under `key`.
///
/// # Errors
///
/// `corrupt`: it is not one, or out of bounds; `unsupported`: it was written by a newer format.
pub(crate) fn decode<T: DeserializeOwned + Sound>(key: &str, value: &[u8]) -> Result<T> {
    let payload = payload(key, value, POSTCARD)?;
    match postcard::take_from_bytes::<T>(payload) {
        Ok((record, [])) if record.is_sound() => Ok(record),
        Ok((_, [])) => Err(Error::corrupt(format!("`{key}` holds numbers out of bounds"))),
        Ok(_) => Err(Error::corrupt(format!("`{key}` is longer than its record"))),
        Err(error) => Err(Error::corrupt(format!("`{key}` cannot be read: {error}"))),
    }
}

/// Writes a chunk of text.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB.
pub(crate) fn encode_bytes(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut value = Vec::with_capacity(bytes.len() + 2);
    value.extend_from_slice(&[FORMAT, BYTES]);
    value.extend_from_slice(bytes);
    bounded(value)
}

/// Reads the chunk that stands under `key`.
///
/// # Errors
///
/// As [`decode`].
pub(crate) fn decode_bytes<'a>(key: &str, value: &'a [u8]) -> Result<&'a [u8]> {
    payload(key, value, BYTES)
}

fn bounded(value: Vec<u8>) -> Result<Vec<u8>> {
    if value.len() > limits::VALUE_BYTES_MAX {
        return Err(Error::limit(format!(
            "a record of {} bytes is over the bound of {}",
            value.len(),
            limits::VALUE_BYTES_MAX
        )));
    }
    Ok(value)
}

fn payload<'a>(key: &str, value: &'a [u8], codec: u8) -> Result<&'a [u8]> {
    match value {
        [FORMAT, found, payload @ ..] if *found == codec => Ok(payload),
        [FORMAT, found, ..] => {
            Err(Error::corrupt(format!("`{key}` has codec {found} where {codec} belongs")))
        }
        [format, ..] if *format > FORMAT => Err(Error::unsupported(format!(
            "`{key}` has store format {format}; this engine reads up to {FORMAT}"
        ))),
        _ => Err(Error::corrupt(format!("`{key}` is no value of this store format"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    impl Sound for u64 {}
    impl Sound for (String, u64) {}

    #[test]
    fn what_is_written_is_read_back() {
        let value = encode(&("text", 7u64)).unwrap();
        assert_eq!(value.get(..2), Some(&[FORMAT, POSTCARD][..]));
        assert_eq!(decode::<(String, u64)>("k", &value).unwrap(), ("text".into(), 7));
        assert_eq!(decode_bytes("k", &encode_bytes(b"abc").unwrap()).unwrap(), b"abc");
    }

    #[test]
    fn foreign_values_are_named_not_guessed() {
        let mut value = encode(&7u64).unwrap();
        value.push(0);
        assert_eq!(decode::<u64>("k", &value).unwrap_err().code, ErrorCode::Corrupt);
        assert_eq!(decode::<u64>("k", &[2, 0, 7]).unwrap_err().code, ErrorCode::Unsupported);
        assert_eq!(decode::<u64>("k", &[]).unwrap_err().code, ErrorCode::Corrupt);
        assert_eq!(decode::<u64>("k", &[1, 1, 7]).unwrap_err().code, ErrorCode::Corrupt);
        assert!(encode(&alloc::vec![0u8; 300_000]).is_err());
    }
}
