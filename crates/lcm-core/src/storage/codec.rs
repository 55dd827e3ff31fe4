//! Encoding of values: a format byte, a codec byte, then the payload.
//!
//! In: a record or bytes. Out: the value for the store, and back. A value with a newer format or
//! another codec than expected is refused with an error that names the key.

use alloc::{borrow::Cow, string::String, vec::Vec};

use serde::{Serialize, de::DeserializeOwned};

use lcm_text::base::{
    deflate,
    error::{Error, Result},
    int, limits,
};

/// Version of the store format: the first byte of every value.
pub(crate) const FORMAT: u8 = 1;
/// Codec of records that are not deflated.
const POSTCARD: u8 = 0;
/// Codec of bytes that are not deflated, such as chunks of a large text.
const BYTES: u8 = 1;
/// Codec of deflated records.
const RECORD_DEFLATED: u8 = 2;
/// Codec of deflated chunks.
const BYTES_DEFLATED: u8 = 3;
/// Codec of compressed packs.
const COMPRESSED_PACK: u8 = 4;
/// Codec of tombstones, which stand in the place of a head.
const TOMBSTONE: u8 = 5;

/// Encodes a record without deflating it.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB.
pub(crate) fn encode<T: Serialize>(record: &T) -> Result<Vec<u8>> {
    finish_encoding(postcard::to_extend(record, alloc::vec![FORMAT, POSTCARD]))
}

/// Encodes a tombstone, which no reader takes for a head.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB.
pub(crate) fn encode_tombstone<T: Serialize>(record: &T) -> Result<Vec<u8>> {
    finish_encoding(postcard::to_extend(record, alloc::vec![FORMAT, TOMBSTONE]))
}

/// Returns whether a value is a tombstone.
pub(crate) fn is_tombstone(value: &[u8]) -> bool {
    matches!(value, [FORMAT, TOMBSTONE, ..])
}

/// Decodes the tombstone in the value of `key`.
///
/// # Errors
///
/// `corrupt`: the value is no tombstone, or out of bounds; `unsupported`: the value has a newer
/// format.
pub(crate) fn decode_tombstone<T: DeserializeOwned + SoundRecord>(
    key: &str,
    value: &[u8],
) -> Result<T> {
    decode_payload(key, payload_of_codec(key, value, TOMBSTONE)?)
}

/// Encodes a record, deflated if that is smaller.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB.
pub(crate) fn encode_compressed<T: Serialize>(record: &T) -> Result<Vec<u8>> {
    let plain = encode(record)?;
    Ok(deflate_if_smaller(plain, RECORD_DEFLATED))
}

/// Encodes a record as its type demands: deflated if [`SoundRecord::IS_COMPRESSED`] and smaller.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB.
pub(crate) fn encode_record<T: Serialize + SoundRecord>(record: &T) -> Result<Vec<u8>> {
    if T::IS_COMPRESSED { encode_compressed(record) } else { encode(record) }
}

/// Returns the value with its payload deflated, or unchanged if deflating does not shrink it.
///
/// The inflated length precedes the deflated stream, so that a decoder can check it first.
fn deflate_if_smaller(plain: Vec<u8>, codec: u8) -> Vec<u8> {
    let payload = plain.get(2..).unwrap_or(&[]);
    let mut value = alloc::vec![FORMAT, codec];
    value.extend_from_slice(&int::to_u32(payload.len()).to_be_bytes());
    value.extend(deflate::deflate(payload));
    if value.len() < plain.len() { value } else { plain }
}

/// Inflates a payload that [`deflate_if_smaller`] deflated.
///
/// # Errors
///
/// `corrupt`: the declared length is over 256 KiB, or the stream does not inflate to this length.
fn inflate_payload(key: &str, payload: &[u8]) -> Result<Vec<u8>> {
    let damaged = || Error::corrupt_store(format_args!("`{key}` cannot be inflated"));
    let (length, stream) = payload.split_first_chunk().ok_or_else(damaged)?;
    let length = int::to_usize(u64::from(u32::from_be_bytes(*length)));
    if length > limits::VALUE_BYTES_MAX {
        return Err(damaged());
    }
    deflate::inflate(stream, length).ok_or_else(damaged)
}

/// A record type with bounds on its fields, so that arithmetic on a decoded record cannot overflow.
///
/// A store is not trusted: decoding a record out of bounds fails with `corrupt`.
pub(crate) trait SoundRecord {
    /// Whether the record is stored deflated if that is smaller.
    const IS_COMPRESSED: bool = false;

    /// Returns whether the fields of the record are within their bounds; by default always.
    fn is_sound(&self) -> bool {
        true
    }
}

impl SoundRecord for () {}
impl SoundRecord for [u8; 8] {}
impl SoundRecord for (String, String) {}

/// Returns whether all numbers are below 2^40, which no count in a real conversation reaches.
pub(crate) fn are_countable(numbers: &[u64]) -> bool {
    numbers.iter().all(|number| *number < 1 << 40)
}

/// Decodes the record in the value of `key`.
///
/// # Errors
///
/// `corrupt`: the value is no record of this type, or out of bounds; `unsupported`: the value has a
/// newer format.
#[inline(never)]
pub(crate) fn decode<T: DeserializeOwned + SoundRecord>(key: &str, value: &[u8]) -> Result<T> {
    decode_payload(key, &record_payload(key, value)?)
}

/// Returns the payload of a record, inflated if its codec says that it is deflated.
#[inline(never)]
fn record_payload<'v>(key: &str, value: &'v [u8]) -> Result<Cow<'v, [u8]>> {
    match value {
        [FORMAT, RECORD_DEFLATED, payload @ ..] => inflate_payload(key, payload).map(Cow::Owned),
        _ => payload_of_codec(key, value, POSTCARD).map(Cow::Borrowed),
    }
}

/// Decodes the record in a payload.
///
/// # Errors
///
/// `corrupt`: the payload is no record of this type, is longer than the record, or is out of
/// bounds.
pub(crate) fn decode_payload<T: DeserializeOwned + SoundRecord>(
    key: &str,
    payload: &[u8],
) -> Result<T> {
    match postcard::take_from_bytes::<T>(payload) {
        Ok((record, [])) if record.is_sound() => Ok(record),
        _ => Err(unreadable_record_error(key)),
    }
}

/// Encodes bytes without deflating them, for content that is compact already.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB.
pub(crate) fn encode_raw_bytes(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut value = Vec::with_capacity(bytes.len() + 2);
    value.extend_from_slice(&[FORMAT, BYTES]);
    value.extend_from_slice(bytes);
    ensure_value_bounded(value)
}

/// Decodes the plain bytes in the value of `key`.
///
/// # Errors
///
/// `corrupt`: the value has another codec; `unsupported`: the value has a newer format.
pub(crate) fn decode_raw_bytes<'a>(key: &str, value: &'a [u8]) -> Result<&'a [u8]> {
    payload_of_codec(key, value, BYTES)
}

/// Encodes a chunk of text, deflated if that is smaller.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB.
pub(crate) fn encode_chunk(bytes: &[u8]) -> Result<Vec<u8>> {
    Ok(deflate_if_smaller(encode_raw_bytes(bytes)?, BYTES_DEFLATED))
}

/// Decodes the chunk in the value of `key`.
///
/// # Errors
///
/// `corrupt`: the value has another codec or cannot be inflated; `unsupported`: the value has a
/// newer format.
pub(crate) fn decode_chunk<'a>(key: &str, value: &'a [u8]) -> Result<Cow<'a, [u8]>> {
    match value {
        [FORMAT, BYTES_DEFLATED, payload @ ..] => inflate_payload(key, payload).map(Cow::Owned),
        _ => payload_of_codec(key, value, BYTES).map(Cow::Borrowed),
    }
}

/// Encodes a compressed pack: its header, then its two deflated streams.
///
/// # Errors
///
/// `limit-exceeded`: the value would be larger than 256 KiB.
pub(crate) fn encode_compressed_pack<T: Serialize>(
    head: &T,
    streams: [&[u8]; 2],
) -> Result<Vec<u8>> {
    let mut value =
        finish_encoding(postcard::to_extend(head, alloc::vec![FORMAT, COMPRESSED_PACK]))?;
    streams.iter().for_each(|stream| value.extend_from_slice(stream));
    ensure_value_bounded(value)
}

/// Decodes the header of the compressed pack in the value of `key`; returns the header and the
/// bytes after the header, which hold both streams.
///
/// # Errors
///
/// `corrupt`: the value has another codec, or its header cannot be decoded or is out of bounds;
/// `unsupported`: the value has a newer format.
pub(crate) fn decode_compressed_pack<'a, T: DeserializeOwned + SoundRecord>(
    key: &str,
    value: &'a [u8],
) -> Result<(T, &'a [u8])> {
    match postcard::take_from_bytes::<T>(payload_of_codec(key, value, COMPRESSED_PACK)?) {
        Ok((head, streams)) if head.is_sound() => Ok((head, streams)),
        _ => Err(unreadable_record_error(key)),
    }
}

// The next functions are not generic, so that the component holds their code only once.

#[inline(never)]
fn finish_encoding(value: postcard::Result<Vec<u8>>) -> Result<Vec<u8>> {
    ensure_value_bounded(value.map_err(|_| unwritable_record_error())?)
}

/// Returns the error `corrupt` of a record that cannot be encoded, which no type of record causes.
/// It leaves out the reason of the library, which names no member.
#[cold]
#[inline(never)]
pub(super) fn unwritable_record_error() -> Error {
    Error::corrupt_store(format_args!("a record cannot be written"))
}

#[cold]
#[inline(never)]
fn unreadable_record_error(key: &str) -> Error {
    Error::corrupt_store(format_args!(
        "`{key}` must hold one whole record of its kind, with numbers within their bounds"
    ))
}

fn ensure_value_bounded(value: Vec<u8>) -> Result<Vec<u8>> {
    if value.len() > limits::VALUE_BYTES_MAX {
        return Err(Error::limit_exceeded(format_args!(
            "a record must have at most {} bytes, got {}",
            limits::VALUE_BYTES_MAX,
            value.len()
        )));
    }
    Ok(value)
}

fn payload_of_codec<'a>(key: &str, value: &'a [u8], codec: u8) -> Result<&'a [u8]> {
    match value {
        [FORMAT, found, payload @ ..] if *found == codec => Ok(payload),
        [FORMAT, found, ..] => Err(Error::corrupt_store(format_args!(
            "`{key}` holds another kind of value: its codec byte is {found}, expected {codec}"
        ))),
        [format, ..] if *format > FORMAT => Err(Error::not_supported(format_args!(
            "`{key}` has store format {format}; this engine reads at most format {FORMAT}"
        ))),
        _ => Err(Error::corrupt_store(format_args!("`{key}` is not a value of this store format"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lcm_text::base::error::ErrorCode;

    impl SoundRecord for u64 {}
    impl SoundRecord for (String, u64) {}

    #[test]
    fn what_is_written_is_read_back() {
        let value = encode(&("text", 7u64)).unwrap();
        assert_eq!(value.get(..2), Some(&[FORMAT, POSTCARD][..]));
        assert_eq!(decode::<(String, u64)>("k", &value).unwrap(), ("text".into(), 7));
        assert_eq!(&*decode_chunk("k", &encode_chunk(b"abc").unwrap()).unwrap(), b"abc");
    }

    #[test]
    fn what_deflate_makes_smaller_is_read_back_by_the_same_functions() {
        let text = "again and again, ".repeat(1_000);
        for (text, codec) in [(text.as_str(), RECORD_DEFLATED), ("once", POSTCARD)] {
            let value = encode_compressed(&(text, 7u64)).unwrap();
            assert_eq!(value.get(..2), Some(&[FORMAT, codec][..]));
            assert_eq!(decode::<(String, u64)>("k", &value).unwrap(), (text.into(), 7));
        }
        for (text, codec) in [(text.as_str(), BYTES_DEFLATED), ("once", BYTES)] {
            let value = encode_chunk(text.as_bytes()).unwrap();
            assert_eq!(value.get(..2), Some(&[FORMAT, codec][..]));
            assert_eq!(&*decode_chunk("k", &value).unwrap(), text.as_bytes());
        }
    }

    /// A length over the bound of a value is refused before a byte is inflated.
    #[test]
    fn a_declared_length_is_bounded() {
        let mut value = alloc::vec![FORMAT, BYTES_DEFLATED];
        value.extend_from_slice(&(int::to_u32(limits::VALUE_BYTES_MAX) + 1).to_be_bytes());
        value.extend(deflate::deflate(&alloc::vec![0; limits::VALUE_BYTES_MAX + 1]));
        assert_eq!(decode_chunk("k", &value).unwrap_err().code, ErrorCode::Corrupt);
        for value in [&[FORMAT, RECORD_DEFLATED][..], &[FORMAT, RECORD_DEFLATED, 0, 0, 0, 9, 1]] {
            assert_eq!(decode::<u64>("k", value).unwrap_err().code, ErrorCode::Corrupt);
        }
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
