//! The keys of the store: printable ASCII of at most 128 bytes.
//!
//! In: ids, hashes and numbers. Out: keys; `docs/store-format.md` lists all of them. A number has a
//! fixed width in lower-case hex digits, so that the order of bytes is the order of numbers.

use alloc::{format, string::String};

use lcm_text::base::{
    error::{Error, Result},
    hash::{decode_hex, encode_base64url, hash_fields, hash_prefix, hex},
    limits,
};

/// Key of the store's format version.
pub(crate) const FORMAT_VERSION_KEY: &str = "v";
/// Prefix of the keys in the list of conversations.
pub(crate) const NAMES_PREFIX: &str = "n/";
/// End of the list of conversations: greater than all keys of the list.
pub(crate) const NAMES_END: &str = "n0";

/// Prefix of the keys in the list of conversations that are being deleted.
pub(crate) const DELETIONS_PREFIX: &str = "x/";
/// First key after the list of conversations that are being deleted.
pub(crate) const DELETIONS_END: &str = "x0";

/// Returns the hash by which keys and heads identify the family with this family key.
pub(crate) fn family_hash(key: &str) -> [u8; 16] {
    hash_prefix(&hash_fields(&[b"lcm family", b"", key.as_bytes()]))
}

/// Returns the range of the keys of a family's members: the start, and the end, which is excluded.
pub(crate) fn family_members_range(family: [u8; 16]) -> (String, String) {
    let name = encode_base64url(&family, 22);
    (format!("f/{name}/"), format!("f/{name}0"))
}

/// Returns the key of a conversation in the list of conversations, from its hash.
pub(crate) fn conversation_name_key(conversation: [u8; 16]) -> String {
    format!("{NAMES_PREFIX}{}", encode_base64url(&conversation, 22))
}

/// The keys of one conversation.
#[derive(Clone, Debug)]
pub(crate) struct ConversationKeys {
    root: String,
    conversation_hash: [u8; 16],
    /// Bytes of the conversation's hash in printed message ids.
    id_tag: [u8; 3],
}

impl ConversationKeys {
    /// Creates the keys of the conversation with this id. The tenant in the hash is always empty;
    /// no other tenant exists yet.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the id is empty or longer than 512 bytes.
    pub(crate) fn new(conversation: &str) -> Result<Self> {
        if conversation.is_empty() || conversation.len() > limits::CONVERSATION_BYTES_MAX {
            return Err(Error::invalid_input(format_args!(
                "`conversation` must have 1 to {} bytes, got {}",
                limits::CONVERSATION_BYTES_MAX,
                conversation.len()
            )));
        }
        let digest = hash_fields(&[b"lcm conversation", b"", conversation.as_bytes()]);
        let root = encode_base64url(digest.get(..16).unwrap_or(&[]), 22);
        Ok(Self {
            root,
            conversation_hash: hash_prefix(&digest),
            id_tag: hash_prefix(digest.get(16..).unwrap_or(&[])),
        })
    }

    /// Returns the 22 characters with which the keys of the conversation's records begin. The keys
    /// of its entries in the lists of conversations, deletions and family members end with these
    /// characters.
    pub(crate) fn key_prefix(&self) -> &str {
        &self.root
    }

    /// Returns the hash of the conversation, of which `key_prefix` is the text form.
    pub(crate) fn conversation_hash(&self) -> [u8; 16] {
        self.conversation_hash
    }

    /// Returns the key of the conversation's member record in the family with this hash.
    pub(crate) fn family_member_key(&self, family: [u8; 16]) -> String {
        family_members_range(family).0 + &self.root
    }

    /// Formats the printed id of a message: three bytes of the conversation's hash, then the seq.
    ///
    /// The id is computed and not stored. The bytes of the hash show whether an id belongs to
    /// another conversation.
    pub(crate) fn message_id(&self, seq: u64) -> String {
        format!("msg_{}{seq:010x}", hex(&self.id_tag))
    }

    /// Parses the seq in a printed id, without a check that this message exists. `None`: the text
    /// is no message id, or the message id of another conversation.
    pub(crate) fn parse_message_id(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix("msg_")?.strip_prefix(hex(&self.id_tag).as_str())?;
        if digits.len() != 10 || decode_hex(digits).is_none() {
            return None;
        }
        u64::from_str_radix(digits, 16).ok()
    }

    /// Returns the key of the head, the guarded record.
    pub(crate) fn head_key(&self) -> String {
        format!("{}/h", self.root)
    }

    /// Returns the key of the conversation in the list of conversations.
    pub(crate) fn name_key(&self) -> String {
        format!("{NAMES_PREFIX}{}", self.root)
    }

    /// Returns the key of the conversation in the list of conversations that are being deleted.
    pub(crate) fn deletion_key(&self) -> String {
        format!("{DELETIONS_PREFIX}{}", self.root)
    }

    /// Returns the key of the life: the first journal entry, by which a conversation differs from a
    /// later conversation with the same id.
    pub(crate) fn life_key(&self) -> String {
        self.journal_key(1)
    }

    /// Returns the key of the link to another conversation.
    pub(crate) fn link_key(&self, other: &Self) -> String {
        format!("{}/l{}", self.root, other.root)
    }

    /// Returns the key of a pack, from its first seq.
    pub(crate) fn pack_key(&self, seq_first: u64) -> String {
        format!("{}/m{seq_first:010x}", self.root)
    }

    /// Returns the key of a compressed pack, from its first seq.
    pub(crate) fn compressed_pack_key(&self, seq_first: u64) -> String {
        format!("{}/z{seq_first:010x}", self.root)
    }

    /// Returns the key of the directory node with this number.
    pub(crate) fn directory_key(&self, node: u64) -> String {
        format!("{}/d{node:010x}", self.root)
    }

    /// Returns the key of the upload record of the text with this SHA-256.
    pub(crate) fn upload_key(&self, sha256: &[u8; 32]) -> String {
        format!("{}/b{}", self.root, hex(sha256))
    }

    /// Returns the key of the chunk with this number, from 0, of the text with this SHA-256.
    pub(crate) fn chunk_key(&self, sha256: &[u8; 32], number: u32) -> String {
        format!("{}/b{}/{number:010x}", self.root, hex(sha256))
    }

    /// Returns the key of a payload record.
    pub(crate) fn payload_key(&self, id: [u8; 8]) -> String {
        format!("{}/f{}", self.root, hex(&id))
    }

    /// Returns the key of an identity, from the hash of its kind and text.
    pub(crate) fn identity_key(&self, hash: &[u8; 32]) -> String {
        // `concat` is faster than `format!`; an append makes hundreds of these keys.
        let name = encode_base64url(hash.get(..9).unwrap_or(&[]), 11);
        [self.root.as_str(), "/i", name.as_str()].concat()
    }

    /// Returns the key of a summary.
    pub(crate) fn summary_key(&self, id: [u8; 8]) -> String {
        format!("{}/s{}", self.root, hex(&id))
    }

    /// Returns the key of the record that names the summary derived from a summary.
    pub(crate) fn derived_key(&self, id: [u8; 8]) -> String {
        format!("{}/u{}", self.root, hex(&id))
    }

    /// Returns the key of the remakes of provisional summaries.
    pub(crate) fn remakes_key(&self) -> String {
        format!("{}/o", self.root)
    }

    /// Returns the key of a context node, from the revision that wrote it and its number there.
    pub(crate) fn context_node_key(&self, revision: u64, number: u32) -> String {
        format!("{}/x{revision:010x}/{number:04x}", self.root)
    }

    /// Returns the key of the journal entry of a revision.
    pub(crate) fn journal_key(&self, revision: u64) -> String {
        format!("{}/j{revision:010x}", self.root)
    }

    /// Returns the key of the attempts of a task, from the hash of its sources.
    pub(crate) fn attempt_key(&self, sources: &[u8; 16]) -> String {
        format!("{}/a{}", self.root, encode_base64url(sources, 22))
    }

    /// Returns the key of the open or last question of `ask`.
    pub(crate) fn ask_key(&self) -> String {
        format!("{}/k", self.root)
    }

    /// Returns the key of the calibration of a model.
    pub(crate) fn calibration_key(&self, model: &str) -> String {
        format!(
            "{}/c{}",
            self.root,
            encode_base64url(&hash_fields(&[b"lcm model", model.as_bytes()]), 11)
        )
    }

    /// Returns the key of the usage record.
    pub(crate) fn usage_key(&self) -> String {
        format!("{}/e", self.root)
    }

    /// Returns the key of the record of summaries by depth.
    pub(crate) fn summary_counts_key(&self) -> String {
        format!("{}/n", self.root)
    }

    /// Returns the key of the focus brief.
    pub(crate) fn focus_key(&self) -> String {
        format!("{}/y", self.root)
    }

    /// Returns the key of the grants record.
    pub(crate) fn grants_key(&self) -> String {
        format!("{}/g", self.root)
    }

    /// Returns the key of the manifest of the search index.
    pub(crate) fn manifest_key(&self) -> String {
        format!("{}/t", self.root)
    }

    /// Returns the key of the root of a search segment.
    pub(crate) fn segment_key(&self, id: &[u8; 8]) -> String {
        format!("{}/p{}", self.root, encode_base64url(id, 11))
    }

    /// Returns the key of a block of a search segment.
    pub(crate) fn segment_block_key(&self, id: &[u8; 8], number: u32) -> String {
        format!("{}/p{}/{number:04x}", self.root, encode_base64url(id, 11))
    }

    /// Returns the key of a block of doc values.
    pub(crate) fn column_key(&self, corpus: char, kind: char, number: u32) -> String {
        format!("{}/q{corpus}{kind}{number:08x}", self.root)
    }

    /// Returns the key of the record of the withdrawn messages.
    pub(crate) fn withdrawals_key(&self) -> String {
        format!("{}/w", self.root)
    }

    /// Returns the key of the slot of system messages.
    pub(crate) fn system_slot_key(&self) -> String {
        format!("{}/r", self.root)
    }

    /// Returns the key of a version of the system messages.
    pub(crate) fn system_version_key(&self, id: [u8; 8]) -> String {
        format!("{}/r{}", self.root, hex(&id))
    }

    /// Returns the key of the record of the conversation's vectors.
    pub(crate) fn vectors_key(&self) -> String {
        format!("{}/v", self.root)
    }

    /// Returns the key of the sign bits of a block of vectors, or of the vector of a document.
    pub(crate) fn vector_key(&self, corpus: char, kind: char, number: u64) -> String {
        format!("{}/v{corpus}{kind}{number:010x}", self.root)
    }

    /// Returns the range of the keys that continue with `kind` after the prefix and `/`: the start,
    /// and the end, which is excluded. An empty `kind` covers all records.
    pub(crate) fn record_range(&self, kind: &str) -> (String, String) {
        let start = format!("{}/{kind}", self.root);
        let end = match kind.bytes().last() {
            // '0' is the character after '/'.
            None => format!("{}0", self.root),
            Some(last) => {
                let next = char::from(last.saturating_add(1));
                let stem: String =
                    kind.chars().take(kind.chars().count().saturating_sub(1)).collect();
                format!("{}/{stem}{next}", self.root)
            }
        };
        (start, end)
    }
}

/// Returns the key of the breaker of a model scope.
pub(crate) fn breaker_key(scope: &str) -> String {
    format!("g/{scope}")
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn base64url_equals_the_standard() {
        assert_eq!(encode_base64url(b"f", 9), "Zg");
        assert_eq!(encode_base64url(b"fo", 9), "Zm8");
        assert_eq!(encode_base64url(b"foobar", 9), "Zm9vYmFy");
        assert_eq!(encode_base64url(&[0xfb, 0xff], 9), "-_8");
    }

    #[test]
    fn keys_are_short_printable_and_in_numeric_order() {
        let keys = ConversationKeys::new("a/b\0\u{1f600}").unwrap();
        assert_eq!(keys.key_prefix().len(), 22);
        let longest = keys.chunk_key(&[255; 32], u32::MAX);
        assert!(longest.len() <= 128 && longest.bytes().all(|byte| (33..127).contains(&byte)));
        assert!(keys.pack_key(9) < keys.pack_key(10) && keys.pack_key(255) < keys.pack_key(256));
        let (start, end) = keys.record_range("s");
        assert!(start < keys.summary_key([0; 8]) && keys.summary_key([255; 8]) < end);
        let (start, end) = keys.record_range("");
        assert!(start < keys.head_key() && keys.head_key() < end);
    }

    /// Converts a cell of the document's table to a pattern, with `.` for a hex digit or a
    /// character of base64url.
    fn pattern(cell: &str) -> String {
        let mut out = String::new();
        let mut words = cell.split(' ');
        while let Some(word) = words.next() {
            if let Ok(width) = word.parse() {
                assert!(matches!(words.next(), Some("hex" | "characters")), "{cell}");
                out.push_str(&".".repeat(width));
            } else if let Some(literal) = word.strip_prefix('`').and_then(|w| w.strip_suffix('`')) {
                out.push_str(&literal.replace('C', &".".repeat(22)));
            } else if cell.ends_with("seq of the first message") && word == "seq" {
                out.push_str(&".".repeat(10));
                break;
            } else {
                assert!(matches!(word, "node" | "revision" | "number"), "{cell}");
                out.push_str(&".".repeat(10));
            }
        }
        out
    }

    fn fits(pattern: &str, key: &str) -> bool {
        let is_any = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let same = |(a, b): (char, char)| if a == '.' { is_any(b) } else { a == b };
        pattern.len() == key.len() && pattern.chars().zip(key.chars()).all(same)
    }

    /// Returns the letters that follow `before`, in order, each once.
    fn letters(text: &str, before: &str) -> Vec<char> {
        let mut found: Vec<char> =
            text.split(before).skip(1).filter_map(|rest| rest.chars().next()).collect();
        found.retain(char::is_ascii_lowercase);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Goal: the table in docs/store-format.md lists exactly the keys of this module. Method:
    /// compares a key of each function with the rows. The letters in the text of this file must
    /// equal the letters in the rows, so that no function is without a key in this test.
    #[test]
    fn the_document_draws_every_key() {
        let (_, table) = include_str!("../../../../docs/store-format.md")
            .split_once("\n| key | value |")
            .unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with("| "));
        let cells = rows.filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
        // A scope is free text, so no pattern describes its key.
        let drawn: Vec<String> = cells.filter(|cell| *cell != "`g/` scope").map(pattern).collect();
        let keys = ConversationKeys::new("c").unwrap();
        let made = [
            FORMAT_VERSION_KEY.into(),
            keys.name_key(),
            keys.deletion_key(),
            keys.link_key(&keys),
            keys.family_member_key(family_hash("f")),
            keys.head_key(),
            keys.pack_key(7),
            keys.compressed_pack_key(7),
            keys.directory_key(7),
            keys.upload_key(&[7; 32]),
            keys.chunk_key(&[7; 32], 7),
            keys.payload_key([7; 8]),
            keys.identity_key(&[7; 32]),
            keys.summary_key([7; 8]),
            keys.derived_key([7; 8]),
            keys.remakes_key(),
            keys.context_node_key(7, 7),
            keys.attempt_key(&[7; 16]),
            keys.calibration_key("m"),
            keys.usage_key(),
            keys.focus_key(),
            keys.summary_counts_key(),
            keys.grants_key(),
            keys.ask_key(),
            keys.journal_key(7),
            keys.manifest_key(),
            keys.segment_key(&[7; 8]),
            keys.segment_block_key(&[7; 8], 7),
            keys.column_key('m', 'l', 7),
            keys.withdrawals_key(),
            keys.system_slot_key(),
            keys.system_version_key([7; 8]),
            keys.vectors_key(),
            keys.vector_key('m', 's', 7),
        ];
        for key in &made {
            let count = drawn.iter().filter(|row| fits(row, key)).count();
            assert_eq!(count, 1, "rows that draw {key}");
        }
        for row in &drawn {
            assert!(made.iter().any(|key| fits(row, key)), "no key is like {row}");
        }
        let (code, _) = include_str!("keys.rs").split_once("#[cfg(test)]").unwrap();
        let mut in_code = letters(code, "\"{}/");
        in_code.extend(letters(code, "\"/"));
        in_code.sort_unstable();
        assert_eq!(in_code, letters(table, "\n| `C/"));
    }

    #[test]
    fn ids_are_bounded() {
        assert!(ConversationKeys::new("").is_err());
        assert!(ConversationKeys::new(&"x".repeat(512)).is_ok());
        assert!(ConversationKeys::new(&"x".repeat(513)).is_err());
    }
}
