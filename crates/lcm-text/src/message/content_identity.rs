//! The identity of a message by its content.
//!
//! In: the members of a message. Out: 16 bytes, equal for two messages that differ in nothing but
//! spacing, escapes, the order of the top-level keys, or the host's ids. It is part of the store
//! format: what is hashed never changes for a message that was once stored.
//!
//! Hashed are a domain tag and then, for each member but `id` and `event_key`, ordered by the bytes
//! of its decoded key, the last of equal keys only: the key and the tokens of the value in their
//! order. A string (or key) is `s`, its length in bytes as u64 big-endian, and its decoded bytes; a
//! number likewise with `n`, as written; the rest are the single bytes `{ } [ ] t f z`.
//! Strings are taken as WTF-8, so that each half of a surrogate pair is a character of its own.
//! Where `id` says what a message is about, it is hashed like any other member; and either of the
//! two where it cannot be an id: where it is neither a string, nor a number, nor `null`.

use alloc::vec::Vec;
use core::cmp::Ordering;

use sha2::{Digest, Sha256};

use crate::base::{
    json::{self, JsonKind, JsonMember, JsonScanner, JsonTokenKind, StringPiece},
    sort,
};

/// Sets these hashes apart from all others of the engine.
const DOMAIN: &[u8] = b"lcm message identity 1\0";

/// Members that say how a host calls a message, not what it is.
const NAME_KEYS: [&str; 2] = ["\"id\"", "\"event_key\""];

pub(super) fn hash_content(raw: &str, members: &[JsonMember]) -> [u8; 16] {
    hash_members_without(raw, members, &NAME_KEYS)
}

/// The identity of a message whose `id` is content.
pub(super) fn hash_content_with_id(raw: &str, members: &[JsonMember]) -> [u8; 16] {
    let [_, event_key] = NAME_KEYS;
    hash_members_without(raw, members, &[event_key])
}

fn hash_members_without(raw: &str, members: &[JsonMember], no_content: &[&str]) -> [u8; 16] {
    let key = |member: &JsonMember| json::slice_span(raw, member.key);
    let mut sorted: Vec<&JsonMember> = members.iter().collect();
    // By place, too, so that of equal keys the last one of the message stays the last.
    sort::sort_by(&mut sorted, &mut |a, b| {
        compare_keys(key(a), key(b)).then_with(|| a.key.start.cmp(&b.key.start))
    });
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    for (at, member) in sorted.iter().enumerate() {
        let repeated =
            sorted.get(at + 1).is_some_and(|next| compare_keys(key(member), key(next)).is_eq());
        let is_name = || no_content.iter().any(|name| compare_keys(key(member), name).is_eq());
        if repeated || (is_name_value(member) && is_name()) {
            continue;
        }
        add_string(&mut hash, key(member));
        add_value(&mut hash, json::slice_span(raw, member.value));
    }
    let digest: [u8; 32] = hash.finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// Whether a host can call a message so, or say that it has no name for it. Anything else under the
/// name of an id is found by no id: were it no content either, two messages would be told apart by
/// nothing.
const fn is_name_value(member: &JsonMember) -> bool {
    matches!(member.kind, JsonKind::String | JsonKind::Number | JsonKind::Null)
}

/// The order of two keys by their decoded bytes. Few have escapes; the others need no copy.
fn compare_keys(a: &str, b: &str) -> Ordering {
    // Without the quotes, which are not below every byte of a longer key.
    let plain = |key| json::string_body(key).filter(|key| !key.as_bytes().contains(&b'\\'));
    match (plain(a), plain(b)) {
        (Some(a), Some(b)) => a.cmp(b),
        _ => decode_bytes(a).cmp(&decode_bytes(b)),
    }
}

fn decode_bytes(literal: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(literal.len());
    each_bytes(literal, &mut |bytes| out.extend_from_slice(bytes));
    out
}

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

fn add_length(hash: &mut Sha256, length: usize) {
    hash.update(u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes());
}

/// The decoded bytes of a string literal as WTF-8.
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
