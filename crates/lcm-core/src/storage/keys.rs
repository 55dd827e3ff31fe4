//! The keys of the store: short printable ASCII, computable from what a head says.
//!
//! `docs/store-format.md` draws them all. Numbers are ten lower-case hex digits, so that byte
//! order is numeric order in every store.

use alloc::{format, string::String};

use lcm_text::base::{
    error::{Error, Result},
    hash::{decode_hex, encode_base64url, hash_fields, hash_prefix, hex},
    limits,
};

/// Key of the store's format version.
pub(crate) const FORMAT_VERSION_KEY: &str = "v";
/// Prefix of the keys that list the conversations.
pub(crate) const NAMES_PREFIX: &str = "n/";
/// First key behind those that list the conversations.
pub(crate) const NAMES_END: &str = "n0";

/// What a family is known by in keys and heads.
pub(crate) fn family_hash(key: &str) -> [u8; 16] {
    hash_prefix(&hash_fields(&[b"lcm family", b"", key.as_bytes()]))
}

/// The keys that list a family, as a range.
pub(crate) fn family_members_range(family: [u8; 16]) -> (String, String) {
    let name = encode_base64url(&family, 22);
    (format!("f/{name}/"), format!("f/{name}0"))
}

/// The entry in the list of conversations of the one with this hash.
pub(crate) fn conversation_name_key(conversation: [u8; 16]) -> String {
    format!("{NAMES_PREFIX}{}", encode_base64url(&conversation, 22))
}

/// The keys of one conversation.
#[derive(Clone, Debug)]
pub(crate) struct ConversationKeys {
    root: String,
    conversation_hash: [u8; 16],
    id_tag: [u8; 3],
}

impl ConversationKeys {
    /// Keys of the conversation with this id, in the default tenant.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the id is empty or longer than 512 bytes.
    pub(crate) fn new(conversation: &str) -> Result<Self> {
        if conversation.is_empty() || conversation.len() > limits::CONVERSATION_BYTES_MAX {
            return Err(Error::invalid_input(format_args!(
                "conversation: an id has 1 to {} bytes, this one has {}",
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

    /// The 22 characters that begin every key of the conversation.
    pub(crate) fn key_prefix(&self) -> &str {
        &self.root
    }

    /// The hash that names the conversation in keys.
    pub(crate) fn conversation_hash(&self) -> [u8; 16] {
        self.conversation_hash
    }

    /// The conversation's entry in the list of its family.
    pub(crate) fn family_member_key(&self, family: [u8; 16]) -> String {
        family_members_range(family).0 + &self.root
    }

    /// The printed id of a message: three bytes of the conversation, then the seq.
    ///
    /// It is computed, not stored, and says at once when it is used in another conversation.
    pub(crate) fn message_id(&self, seq: u64) -> String {
        format!("msg_{}{seq:010x}", hex(&self.id_tag))
    }

    /// The seq in a printed id; `None`: it is no id of a message of this conversation.
    pub(crate) fn parse_message_id(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix("msg_")?.strip_prefix(hex(&self.id_tag).as_str())?;
        if digits.len() != 10 || decode_hex(digits).is_none() {
            return None;
        }
        u64::from_str_radix(digits, 16).ok()
    }

    /// The head: the one guarded key.
    pub(crate) fn head_key(&self) -> String {
        format!("{}/h", self.root)
    }

    /// The entry in the list of conversations.
    pub(crate) fn name_key(&self) -> String {
        format!("{NAMES_PREFIX}{}", self.root)
    }

    /// A pack, by its first seq.
    pub(crate) fn pack_key(&self, seq_first: u64) -> String {
        format!("{}/m{seq_first:010x}", self.root)
    }

    /// A sealed pack, by its first seq.
    pub(crate) fn compressed_pack_key(&self, seq_first: u64) -> String {
        format!("{}/z{seq_first:010x}", self.root)
    }

    /// A directory node.
    pub(crate) fn directory_key(&self, node: u64) -> String {
        format!("{}/d{node:010x}", self.root)
    }

    /// The record of an upload.
    pub(crate) fn upload_key(&self, sha256: &[u8; 32]) -> String {
        format!("{}/b{}", self.root, hex(sha256))
    }

    /// A chunk of an upload.
    pub(crate) fn chunk_key(&self, sha256: &[u8; 32], number: u32) -> String {
        format!("{}/b{}/{number:010x}", self.root, hex(sha256))
    }

    /// The record of a payload.
    pub(crate) fn payload_key(&self, id: [u8; 8]) -> String {
        format!("{}/f{}", self.root, hex(&id))
    }

    /// An identity, by the hash of its kind and text.
    pub(crate) fn identity_key(&self, hash: &[u8; 32]) -> String {
        // Without `format!`: every append makes hundreds of these.
        let name = encode_base64url(hash.get(..9).unwrap_or(&[]), 11);
        [self.root.as_str(), "/i", name.as_str()].concat()
    }

    /// A summary.
    pub(crate) fn summary_key(&self, id: [u8; 8]) -> String {
        format!("{}/s{}", self.root, hex(&id))
    }

    /// What was derived from a summary.
    pub(crate) fn derived_key(&self, id: [u8; 8]) -> String {
        format!("{}/u{}", self.root, hex(&id))
    }

    /// A context node.
    pub(crate) fn context_node_key(&self, revision: u64, number: u32) -> String {
        format!("{}/x{revision:010x}/{number:04x}", self.root)
    }

    /// A journal entry.
    pub(crate) fn journal_key(&self, revision: u64) -> String {
        format!("{}/j{revision:010x}", self.root)
    }

    /// The attempt record of a task's sources.
    pub(crate) fn attempt_key(&self, sources: &[u8; 16]) -> String {
        format!("{}/a{}", self.root, encode_base64url(sources, 22))
    }

    /// The question that is being answered, or was last.
    pub(crate) fn ask_key(&self) -> String {
        format!("{}/k", self.root)
    }

    /// What was reported of the prompts of a model.
    pub(crate) fn calibration_key(&self, model: &str) -> String {
        format!(
            "{}/c{}",
            self.root,
            encode_base64url(&hash_fields(&[b"lcm model", model.as_bytes()]), 11)
        )
    }

    /// What a host reported of tokens and money.
    pub(crate) fn usage_key(&self) -> String {
        format!("{}/e", self.root)
    }

    /// The focus brief.
    pub(crate) fn focus_key(&self) -> String {
        format!("{}/y", self.root)
    }

    /// The grants of a conversation.
    pub(crate) fn grants_key(&self) -> String {
        format!("{}/g", self.root)
    }

    /// The manifest of the search index.
    pub(crate) fn manifest_key(&self) -> String {
        format!("{}/t", self.root)
    }

    /// The root of a search segment.
    pub(crate) fn segment_key(&self, id: &[u8; 8]) -> String {
        format!("{}/p{}", self.root, encode_base64url(id, 11))
    }

    /// A block of a search segment.
    pub(crate) fn segment_block_key(&self, id: &[u8; 8], number: u32) -> String {
        format!("{}/p{}/{number:04x}", self.root, encode_base64url(id, 11))
    }

    /// A column of the search index.
    pub(crate) fn column_key(&self, corpus: char, kind: char, number: u32) -> String {
        format!("{}/q{corpus}{kind}{number:08x}", self.root)
    }

    /// What a conversation has of vectors.
    pub(crate) fn vectors_key(&self) -> String {
        format!("{}/v", self.root)
    }

    /// The signs of a block of vectors, or the vector of a document.
    pub(crate) fn vector_key(&self, corpus: char, kind: char, number: u64) -> String {
        format!("{}/v{corpus}{kind}{number:010x}", self.root)
    }

    /// First and first-behind key of one kind of record; of everything for an empty kind.
    pub(crate) fn record_range(&self, kind: &str) -> (String, String) {
        let start = format!("{}/{kind}", self.root);
        let end = match kind.bytes().last() {
            // '0' is the character behind '/'.
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

/// The guard record of a model scope.
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

    /// A key as the table of the document draws it, with `.` for any hex digit or character of
    /// base64url.
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

    /// Letters that follow `before`, in order, each once.
    fn letters(text: &str, before: &str) -> Vec<char> {
        let mut found: Vec<char> =
            text.split(before).skip(1).filter_map(|rest| rest.chars().next()).collect();
        found.retain(char::is_ascii_lowercase);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Goal: the table of the document draws exactly the keys that are made here. Method: a key of
    /// each function against the rows; and so that none is left out of this list, the letters in
    /// the text of this file against those in the rows.
    #[test]
    fn the_document_draws_every_key() {
        let (_, table) = include_str!("../../../../docs/store-format.md")
            .split_once("\n| key | value |")
            .unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with("| "));
        let cells = rows.filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
        // A scope is any text of its own.
        let drawn: Vec<String> = cells.filter(|cell| *cell != "`g/` scope").map(pattern).collect();
        let keys = ConversationKeys::new("c").unwrap();
        let made = [
            FORMAT_VERSION_KEY.into(),
            keys.name_key(),
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
            keys.context_node_key(7, 7),
            keys.attempt_key(&[7; 16]),
            keys.calibration_key("m"),
            keys.usage_key(),
            keys.focus_key(),
            keys.grants_key(),
            keys.ask_key(),
            keys.journal_key(7),
            keys.manifest_key(),
            keys.segment_key(&[7; 8]),
            keys.segment_block_key(&[7; 8], 7),
            keys.column_key('m', 'l', 7),
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
