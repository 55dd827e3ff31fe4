//! Content identity of a message: a hash of its content.
//!
//! In: the members of a message. Out: 16 bytes. Two messages have equal identities if they differ
//! only in spacing, escapes, the order of top-level keys, or the host's ids. The identity is part
//! of the store format: the hash of a stored message never changes.
//!
//! The hash covers a domain tag, then each member except `id` and `event_key`. Members are ordered
//! by the bytes of their decoded keys; of equal keys, only the last counts. A member is hashed as
//! its key and then the tokens of its value:
//!
//! | token | hashed bytes |
//! |---|---|
//! | string or key | `s`, length in bytes as u64 big-endian, decoded bytes |
//! | number | `n`, length in bytes as u64 big-endian, text as written |
//! | any other | one of `{ } [ ] t f z` |
//!
//! Strings are hashed as WTF-8: each unpaired surrogate is encoded like a character. `id` and
//! `event_key` are hashed, too, if their values are no string, number or `null` and so cannot be
//! ids. `id` is also hashed in Responses items whose `id` refers to another item.

use alloc::vec::Vec;
use core::cmp::Ordering;

use sha2::{Digest, Sha256};

use crate::base::{
    json::{self, JsonKind, JsonMember, JsonScanner, JsonTokenKind, StringPiece},
    sort,
};

/// Domain tag: separates these hashes from all other hashes of the engine.
const DOMAIN: &[u8] = b"lcm message identity 1\0";

/// Keys of the host's ids, which are no content.
const ID_KEYS: [&str; 2] = ["\"id\"", "\"event_key\""];

/// Returns the content identity of a message.
pub(super) fn hash_content(raw: &str, members: &[JsonMember]) -> [u8; 16] {
    hash_members_without(raw, members, &ID_KEYS)
}

/// Returns the content identity of a message whose `id` is content.
pub(super) fn hash_content_with_id(raw: &str, members: &[JsonMember]) -> [u8; 16] {
    let [_, event_key] = ID_KEYS;
    hash_members_without(raw, members, &[event_key])
}

/// Hashes all members except those whose key is in `id_keys` and whose value can be an id.
fn hash_members_without(raw: &str, members: &[JsonMember], id_keys: &[&str]) -> [u8; 16] {
    let key = |member: &JsonMember| json::slice_span(raw, member.key);
    let mut sorted: Vec<&JsonMember> = members.iter().collect();
    // Members with equal keys are ordered by position, so that the last member stays last.
    sort::sort_by(&mut sorted, &mut |a, b| {
        compare_keys(key(a), key(b)).then_with(|| a.key.start.cmp(&b.key.start))
    });
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    for (at, member) in sorted.iter().enumerate() {
        let repeated =
            sorted.get(at + 1).is_some_and(|next| compare_keys(key(member), key(next)).is_eq());
        let is_id = || id_keys.iter().any(|id_key| compare_keys(key(member), id_key).is_eq());
        if repeated || (can_be_id(member) && is_id()) {
            continue;
        }
        add_string(&mut hash, key(member));
        add_value(&mut hash, json::slice_span(raw, member.value));
    }
    let digest: [u8; 32] = hash.finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// Returns whether the value of `id` or `event_key` can be an id, or is `null`.
///
/// Any other value must be hashed: no lookup by id finds the message, and two messages may differ
/// only in this value.
const fn can_be_id(member: &JsonMember) -> bool {
    matches!(member.kind, JsonKind::String | JsonKind::Number | JsonKind::Null)
}

/// Compares two keys, given as string literals, by their decoded bytes.
fn compare_keys(a: &str, b: &str) -> Ordering {
    // The quotes are left out, because a quote would sort after some bytes of a longer key.
    let plain = |key| json::string_body(key).filter(|key| !key.as_bytes().contains(&b'\\'));
    match (plain(a), plain(b)) {
        (Some(a), Some(b)) => a.cmp(b),
        _ => decode_bytes(a).cmp(&decode_bytes(b)),
    }
}

/// Returns the decoded bytes of a string literal as WTF-8.
fn decode_bytes(literal: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(literal.len());
    each_bytes(literal, &mut |bytes| out.extend_from_slice(bytes));
    out
}

/// Adds the tokens of a value to the hash.
fn add_value(hash: &mut Sha256, value: &str) {
    let mut scanner = JsonScanner::new(value);
    while let Ok(Some(token)) = scanner.next_token() {
        let written = value.get(token.start..token.end).unwrap_or_default();
        match token.kind {
            JsonTokenKind::Key | JsonTokenKind::String => add_string(hash, written),
            JsonTokenKind::Number => {
                hash.update(b"n");
                add_length(hash, written.len());
                hash.update(written);
            }
            JsonTokenKind::ObjectStart => hash.update(b"{"),
            JsonTokenKind::ObjectEnd => hash.update(b"}"),
            JsonTokenKind::ArrayStart => hash.update(b"["),
            JsonTokenKind::ArrayEnd => hash.update(b"]"),
            JsonTokenKind::True => hash.update(b"t"),
            JsonTokenKind::False => hash.update(b"f"),
            JsonTokenKind::Null => hash.update(b"z"),
        }
    }
}

/// Adds a string or key to the hash.
fn add_string(hash: &mut Sha256, literal: &str) {
    if let Some(plain) = json::string_body(literal).filter(|text| !text.contains('\\')) {
        hash.update(b"s");
        add_length(hash, plain.len());
        hash.update(plain);
        return;
    }
    let mut length = 0;
    each_bytes(literal, &mut |bytes| length += bytes.len());
    hash.update(b"s");
    add_length(hash, length);
    each_bytes(literal, &mut |bytes| hash.update(bytes));
}

/// Adds a length to the hash.
fn add_length(hash: &mut Sha256, length: usize) {
    hash.update(u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes());
}

/// Calls `emit` with the decoded bytes of a string literal as WTF-8, in pieces.
fn each_bytes(literal: &str, emit: &mut dyn FnMut(&[u8])) {
    json::each_piece(literal, &mut |piece| match piece {
        StringPiece::Plain(plain) => emit(plain.as_bytes()),
        StringPiece::Char(c) => emit(c.encode_utf8(&mut [0; 4]).as_bytes()),
        StringPiece::LoneSurrogate(unit) => {
            let [high, low] = unit.to_be_bytes();
            let middle = 0x80 | (high & 0x0F) << 2 | low >> 6;
            emit(&[0xE0 | high >> 4, middle, 0x80 | low & 0x3F]);
        }
    });
}
