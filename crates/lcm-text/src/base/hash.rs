//! Computes SHA-256 over fields, and encodes hashes as hex or base64url.
//!
//! Input: bytes. Output: hashes, and texts for ids and keys.

use alloc::{string::String, vec::Vec};

use sha2::{Digest, Sha256};

use crate::base::int;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns the base64url of `bytes` without padding, cut to at most `characters` characters.
pub fn encode_base64url(bytes: &[u8], characters: usize) -> String {
    let mut out = String::with_capacity(characters + 4);
    push_base64url(&mut out, bytes, characters);
    out
}

/// Appends at most the first `characters` characters of the base64url of `bytes` to `out`.
pub fn push_base64url(out: &mut String, bytes: &[u8], characters: usize) {
    let end = out.len() + characters;
    for group in bytes.chunks(3).take(characters.div_ceil(4)) {
        let mut word = 0u32;
        for index in 0..3 {
            word = (word << 8) | u32::from(group.get(index).copied().unwrap_or(0));
        }
        for shift in [18u32, 12, 6, 0].into_iter().take(group.len() + 1) {
            let index = int::to_usize(u64::from((word >> shift) & 63));
            out.push(char::from(ALPHABET.get(index).copied().unwrap_or(b'A')));
        }
    }
    out.truncate(end);
}

/// Returns `bytes` in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    let mut out = Vec::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    string_from_ascii(out)
}

/// Returns the text of `characters`, which must be ASCII.
fn string_from_ascii(characters: Vec<u8>) -> String {
    String::from_utf8(characters).unwrap_or_default()
}

/// Parses lower-case hex; `None`: an odd number of characters, or any other character.
pub fn decode_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2)
        || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    {
        return None;
    }
    text.as_bytes()
        .chunks(2)
        .map(|pair| {
            let digits = core::str::from_utf8(pair).ok()?;
            u8::from_str_radix(digits, 16).ok()
        })
        .collect()
}

/// Returns the SHA-256 over `fields`, each after its length as eight big-endian bytes. The lengths
/// make the hashed bytes of two different lists different.
pub fn hash_fields(fields: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for field in fields {
        hasher.update(int::to_u64(field.len()).to_be_bytes());
        hasher.update(field);
    }
    hasher.finalize().into()
}

/// Returns the first `N` bytes of a hash; zeros follow a shorter hash.
pub fn hash_prefix<const N: usize>(hash: &[u8]) -> [u8; N] {
    let mut out = [0u8; N];
    for (to, from) in out.iter_mut().zip(hash) {
        *to = *from;
    }
    out
}
