//! System messages: the slot with the newest version, and the versions.
//!
//! In: stored versions, and what system messages say. Out: texts, keys and ids of versions.
//! [`crate::ingest`] decides which messages fill the slot, and builds the records; assembly puts
//! the newest version before every context.
//!
//! A version is stored whole, or only as its differences from a whole version that it shares text
//! with. The shared version is the previous version if that is whole, else the version with which
//! the previous version shares text. So reading a version takes at most two records, besides the
//! chunks of large texts.

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::storage::{
    codec::{self, SoundRecord},
    context::ContextItem,
    head::ConversationHead,
    history::MessageHistory,
    keys::ConversationKeys,
    message_mark::advance_list,
    pack::RawText,
    record_key::RecordKey,
    store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        hash, int,
        json::{self, JsonWriter},
        limits, sort,
    },
    message::{self, Part, Role, meaning::SaidPart},
    types::api::{Dialect, Timestamp},
};

/// Most system messages of one version, and most leading ones of a list; further ones belong to the
/// sequence.
pub(crate) const SYSTEM_MESSAGES_MAX: usize = 64;
/// Prefix of the printed id of a version.
const ID_PREFIX: &str = "sys_";

/// The newest version, with the number of versions.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SystemSlot {
    /// Number of versions of the conversation.
    pub(crate) versions: u64,
    /// Id of the newest version.
    pub(crate) id: [u8; 8],
    /// Tokens of the newest version.
    pub(crate) tokens: u32,
    /// Size of the encoded record of the newest version in bytes.
    pub(crate) bytes: u32,
}

impl SoundRecord for SystemSlot {
    fn is_sound(&self) -> bool {
        self.versions > 0
            && codec::are_countable(&[self.versions])
            && int::to_usize(self.bytes.into()) <= limits::VALUE_BYTES_MAX
    }
}

impl SystemSlot {
    /// Returns the key of the slot of a conversation.
    pub(crate) fn key(keys: &ConversationKeys) -> RecordKey<Self> {
        RecordKey::new(keys.system_slot_key())
    }

    /// Returns id, tokens and number of versions as JSON.
    pub(crate) fn to_object(self) -> JsonWriter {
        let mut object = JsonWriter::new_object();
        object.add_text("id", &format_system_id(self.id));
        object.add_number("tokens", self.tokens.into());
        object.add_number("versions", self.versions);
        object
    }
}

/// The version whose text another version shares.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SharedVersion {
    pub(crate) id: [u8; 8],
    /// Size of its encoded record in bytes.
    pub(crate) bytes: u32,
}

/// One message of a version.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SystemMessage {
    pub(crate) dialect: Dialect,
    /// Version of the rules that counted `tokens`.
    pub(crate) derivation_version: u32,
    pub(crate) tokens: u32,
    /// Numbers of bytes at the beginning and at the end of the text that equal the message with the
    /// same index in the shared version; `raw` is the text between them. Zeros: `raw` is the whole
    /// text.
    pub(crate) shared: [u32; 2],
    pub(crate) raw: RawText,
}

/// The record of one version: the messages of the option `system`, then the system messages with
/// which a list of the host began.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SystemVersion {
    /// Number of the version, from 1.
    pub(crate) number: u64,
    /// Time of the call that stored the version.
    pub(crate) time: Timestamp,
    /// Id of the version that was the newest before; `None`: there was none.
    pub(crate) previous: Option<[u8; 8]>,
    /// The whole version whose text this version shares; `None`: this version is whole.
    pub(crate) shared: Option<SharedVersion>,
    pub(crate) messages: Vec<SystemMessage>,
}

impl SoundRecord for SystemVersion {
    const IS_COMPRESSED: bool = true;

    fn is_sound(&self) -> bool {
        let is_whole = |message: &SystemMessage| message.shared == [0; 2];
        let is_bounded = |message: &SystemMessage| message.raw.bytes() <= limits::MESSAGE_BYTES_MAX;
        (1..1 << 40).contains(&self.number)
            && (1..=SYSTEM_MESSAGES_MAX).contains(&self.messages.len())
            && self.messages.iter().all(is_bounded)
            && (self.shared.is_some() || self.messages.iter().all(is_whole))
    }
}

/// A message of a version, as the host handed it over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SystemText {
    pub(crate) dialect: Dialect,
    pub(crate) raw: String,
    pub(crate) tokens: u32,
}

impl SystemText {
    /// Returns what the message says: its texts, joined by line breaks.
    pub(crate) fn read_said(&self) -> String {
        let parts = message::parse(self.dialect, &self.raw).map(|message| message.parts);
        let texts: Vec<_> = parts
            .iter()
            .flatten()
            .filter_map(|part| match part {
                Part::Text { text } => Some(json::text(&self.raw, *text)),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}

impl SystemVersion {
    /// Returns the key of the version with an id.
    pub(crate) fn key(keys: &ConversationKeys, id: [u8; 8]) -> RecordKey<Self> {
        RecordKey::new(keys.system_version_key(id))
    }

    /// Returns the tokens of the messages.
    pub(crate) fn tokens(&self) -> u32 {
        self.messages.iter().fold(0, |sum: u32, message| sum.saturating_add(message.tokens))
    }

    /// Reads the texts of the messages.
    ///
    /// # Errors
    ///
    /// `corrupt`: the shared version does not have a shared text; errors of the store.
    pub(crate) fn read_texts(
        &self,
        session: &mut StoreSession<'_>,
        history: &MessageHistory<'_>,
    ) -> Result<Vec<SystemText>> {
        let shared = match self.shared {
            None => None,
            Some(SharedVersion { id, bytes }) => {
                let wanted = [(Self::key(history.keys, id), bytes)];
                session.read_immutable_records(&wanted)?.pop()
            }
        };
        let mut texts = Vec::with_capacity(self.messages.len());
        for (place, message) in self.messages.iter().enumerate() {
            let SystemMessage { dialect, tokens, shared: [before, after], raw, .. } = message;
            let mut raw = history.read_raw_text(session, raw)?.into_owned();
            if [*before, *after] != [0; 2] {
                let same = shared.as_ref().and_then(|version| version.messages.get(place));
                raw = same.and_then(|same| same.enclose_text(&raw, [*before, *after])).ok_or_else(
                    || {
                        Error::corrupt_store(
                            "a version of the system messages shares text that its whole version \
                             does not have",
                        )
                    },
                )?;
            }
            texts.push(SystemText { dialect: *dialect, raw, tokens: *tokens });
        }
        Ok(texts)
    }
}

impl SystemMessage {
    /// Returns `middle` between the first and last bytes of the text of this message; `None`: the
    /// whole text is not in this record, or has no such bytes.
    fn enclose_text(&self, middle: &str, [before, after]: [u32; 2]) -> Option<String> {
        let RawText::Inline(text) = &self.raw else { return None };
        let before = text.get(..int::to_usize(before.into()))?;
        let after = text.get(text.len().checked_sub(int::to_usize(after.into()))?..)?;
        (self.shared == [0; 2]).then(|| [before, middle, after].concat())
    }

    /// Returns how many first and last bytes `text` shares with the text of this message, if they
    /// are at least half of `text`; zeros otherwise, or if the whole text of this message is not in
    /// this record.
    pub(crate) fn count_shared(&self, text: &str) -> [u32; 2] {
        let RawText::Inline(own) = &self.raw else { return [0; 2] };
        if self.shared != [0; 2] {
            return [0; 2];
        }
        let most = own.len().min(text.len());
        let equal = own.bytes().zip(text.bytes()).take_while(|(one, other)| one == other);
        let mut before = equal.count();
        while !(own.is_char_boundary(before) && text.is_char_boundary(before)) {
            before -= 1;
        }
        let equal = own.bytes().rev().zip(text.bytes().rev()).take(most - before);
        let mut after = equal.take_while(|(one, other)| one == other).count();
        while !(own.is_char_boundary(own.len() - after)
            && text.is_char_boundary(text.len() - after))
        {
            after -= 1;
        }
        match (before + after) * 2 >= text.len() {
            true => [int::to_u32(before), int::to_u32(after)],
            false => [0; 2],
        }
    }
}

/// Counts the system messages at the beginning of a list that become one version: at most
/// [`SYSTEM_MESSAGES_MAX`].
pub(crate) fn count_leading(roles: impl Iterator<Item = Role>) -> usize {
    roles.take_while(|role| *role == Role::System).take(SYSTEM_MESSAGES_MAX).count()
}

/// Returns whether the conversation has messages, and its context has a run or does not end with
/// withdrawn messages. So the result is false before the first message, and after a new session or
/// a rewind withdrew all messages that no summary covers.
pub(crate) fn is_begun(head: &ConversationHead) -> bool {
    let is_run = |item: &ContextItem| matches!(item, ContextItem::Run(_));
    let items = head.context.inline_items();
    let is_withdrawn = matches!(items.last(), Some(ContextItem::Withdrawn { .. }));
    head.messages > 0 && (!is_withdrawn || items.iter().any(is_run))
}

/// Computes the id of the version of these messages, from what they say.
pub(crate) fn hash_version<'a>(said: impl Iterator<Item = &'a [SaidPart]>) -> [u8; 8] {
    let running = said.fold([0; 16], |running, parts| advance_list(&running, parts, [0; 4]));
    hash::hash_prefix(&hash::hash_fields(&[b"lcm system", &running]))
}

/// Returns the texts of the messages of a version. The texts of one message are joined by line
/// breaks, the messages by blank lines.
pub(crate) fn join_texts(texts: &[SystemText]) -> String {
    let said: Vec<String> = texts.iter().map(SystemText::read_said).collect();
    said.join("\n\n")
}

/// Reads the newest version; `None`: the conversation has no system messages.
///
/// # Errors
///
/// `conflict`: the record is missing, and the head has changed; `corrupt`: a record is damaged, or
/// is missing under an unchanged head; errors of the store.
pub(crate) fn read_newest(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
) -> Result<Option<SystemVersion>> {
    let Some(slot) = history.head.system else { return Ok(None) };
    let wanted = [(SystemVersion::key(history.keys, slot.id), slot.bytes)];
    Ok(session.read_immutable_records(&wanted)?.pop())
}

/// Reads all versions with their ids and the sizes of their records, in the order of their numbers;
/// the version in the slot comes last, whatever its number.
///
/// # Errors
///
/// `corrupt`: a record is damaged; errors of the store.
pub(crate) fn list_versions(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
) -> Result<Vec<StoredVersion>> {
    let mut versions = Vec::new();
    let Some(slot) = history.head.system else { return Ok(versions) };
    let slot_key = SystemSlot::key(history.keys);
    let (start, end) = history.keys.record_range("r");
    session.scan_range(&start, &end, &mut |key, value| {
        if key != slot_key.name() {
            let digits = key.get(slot_key.name().len()..).and_then(hash::decode_hex);
            let id = digits.and_then(|digits| digits.try_into().ok()).unwrap_or_default();
            let version: SystemVersion = codec::decode(key, value)?;
            versions.push(StoredVersion { id, bytes: int::to_u32(value.len()), version });
        }
        Ok(())
    })?;
    sort::sort_by(&mut versions, &mut |left, right| {
        let place =
            |stored: &StoredVersion| (stored.id == slot.id, stored.version.number, stored.id);
        place(left).cmp(&place(right))
    });
    Ok(versions)
}

/// A version with its id and the size of its encoded record in bytes.
pub(crate) struct StoredVersion {
    pub(crate) id: [u8; 8],
    pub(crate) bytes: u32,
    pub(crate) version: SystemVersion,
}

/// Formats the printed id of a version.
pub(crate) fn format_system_id(id: [u8; 8]) -> String {
    format!("{ID_PREFIX}{}", hash::hex(&id))
}

/// Parses the printed id of a version; `None`: the text is no such id.
pub(crate) fn parse_system_id(name: &str) -> Option<[u8; 8]> {
    let bytes = hash::decode_hex(name.strip_prefix(ID_PREFIX)?)?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> SystemMessage {
        let raw = RawText::Inline(text.into());
        SystemMessage {
            dialect: Dialect::Lcm,
            derivation_version: 0,
            tokens: 1,
            shared: [0; 2],
            raw,
        }
    }

    /// Goal: a text that is stored without its shared bytes is restored exactly. Method: texts that
    /// differ at each place and in length, with characters of several bytes.
    #[test]
    fn a_text_between_shared_bytes_is_whole_again() {
        let base = "t\u{e9}xt of a rule \u{20ac} and more words \u{e9}";
        let starts: Vec<usize> = base.char_indices().map(|(at, _)| at).collect();
        for from in &starts {
            for to in starts.iter().filter(|to| *to >= from) {
                for new in ["", "\u{e8}", "\u{20ad} 12:00", "x"] {
                    let part = |range| base.get(range).unwrap();
                    let text = [part(0..*from), new, part(*to..base.len())].concat();
                    let shared = whole(base).count_shared(&text);
                    let [before, after] = shared.map(|bytes| int::to_usize(bytes.into()));
                    let middle = text.get(before..text.len() - after).unwrap();
                    if shared != [0; 2] {
                        assert_eq!(
                            whole(base).enclose_text(middle, shared).as_deref(),
                            Some(&*text)
                        );
                        assert!(middle.len() * 2 <= text.len());
                    }
                }
            }
        }
        assert_eq!(whole(base).count_shared("something else"), [0; 2]);
        assert_eq!(whole("aa").enclose_text("x", [3, 0]), None);
    }

    #[test]
    fn an_id_is_read_as_it_was_printed() {
        assert_eq!(parse_system_id(&format_system_id([7; 8])), Some([7; 8]));
        assert_eq!(parse_system_id("sum_0707070707070707"), None);
    }
}
