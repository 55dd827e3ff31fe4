//! The list of the store's conversations, for administration and searches over the whole store.
//!
//! In: nothing, a conversation, or a cursor. Out: ids, a count, or a page of heads. Pages follow
//! the order of the keys, which hold hashes of the ids: a new conversation may come anywhere in the
//! list.

use alloc::{string::String, vec::Vec};

use crate::storage::{
    codec,
    head::ConversationHead,
    keys::{self, ConversationKeys},
    session::{self, SessionLifecycle},
    store::Entry,
    store_session::{self, StoreSession},
};
use lcm_text::base::{
    error::{Error, Result},
    limits, sort,
};

/// The head of a listed conversation, with its family and archive.
pub(crate) struct ListedConversation {
    pub(crate) head: ConversationHead,
    pub(crate) life: SessionLifecycle,
}

/// A page of the list of conversations.
pub(crate) struct ConversationPage {
    pub(crate) conversations: Vec<ListedConversation>,
    /// Cursor of the next page; `None`: this is the last page.
    pub(crate) cursor: Option<String>,
}

/// Decodes an entry of the list and returns the id of its conversation.
fn decode_id(key: &str, value: &[u8]) -> Result<String> {
    let (_, id): (String, String) = codec::decode(key, value)?;
    Ok(id)
}

/// Lists the ids of all conversations of the store, sorted by id.
///
/// # Errors
///
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
pub(crate) fn list_all_conversations(session: &mut StoreSession<'_>) -> Result<Vec<String>> {
    let mut ids: Vec<String> = Vec::new();
    session.scan_range(keys::NAMES_PREFIX, keys::NAMES_END, &mut |key, value| {
        ids.push(decode_id(key, value)?);
        Ok(())
    })?;
    sort::sort(&mut ids);
    Ok(ids)
}

/// Returns the number of conversations of the store.
///
/// # Errors
///
/// Errors of the store.
pub(crate) fn count_conversations(session: &mut StoreSession<'_>) -> Result<u64> {
    let mut count = 0;
    session.scan_range(keys::NAMES_PREFIX, keys::NAMES_END, &mut |_, _| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// Returns the id of the conversation after `previous` in the order of the keys, or of the first
/// conversation if `previous` is `None`. Returns `None` at the end of the list.
///
/// # Errors
///
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
pub(crate) fn next_conversation(
    session: &mut StoreSession<'_>,
    previous: Option<&ConversationKeys>,
) -> Result<Option<String>> {
    let start = previous.map_or_else(
        || keys::NAMES_PREFIX.into(),
        |keys| store_session::successor_key(&keys.name_key()),
    );
    let (entries, _) = session.scan_page(&start, keys::NAMES_END, 1)?;
    let Some(entry) = entries.first() else { return Ok(None) };
    decode_id(&entry.key, &entry.value).map(Some)
}

/// Reads the page after `cursor`, or the first page if `cursor` is `None`. A page has at most
/// `count_max` conversations, and may have fewer, even none, although more pages follow. Returns
/// `None` if `cursor` does not begin as a key of this list does.
///
/// # Errors
///
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
pub(crate) fn read_conversation_page(
    session: &mut StoreSession<'_>,
    cursor: Option<&str>,
    count_max: usize,
) -> Result<Option<ConversationPage>> {
    let start = cursor.map_or_else(|| keys::NAMES_PREFIX.into(), store_session::successor_key);
    if !start.starts_with(keys::NAMES_PREFIX) {
        return Ok(None);
    }
    let (mut entries, has_more) =
        session.scan_page(&start, keys::NAMES_END, limits::CALL_BYTES_MAX)?;
    let has_more = has_more || entries.len() > count_max;
    entries.truncate(count_max);
    let mut listed = Vec::new();
    let heads = read_listed_heads(session, &entries)?;
    let successor = |head: &ConversationHead| head.archived.and_then(|one| one.successor);
    let hashes: Vec<[u8; 16]> = heads.iter().filter_map(|(_, head)| successor(head)).collect();
    let mut successors = session::read_conversation_names(session, &hashes)?.into_iter();
    let member_key = |(keys, head): &(ConversationKeys, ConversationHead)| {
        head.family.map(|family| keys.family_member_key(family))
    };
    let wanted: Vec<String> = heads.iter().filter_map(member_key).collect();
    session.read_content_addressed(&wanted, &[])?;
    for (keys, head) in heads {
        let successor = successor(&head).and_then(|_| successors.next().flatten());
        let life = SessionLifecycle::with_successor(session, &keys, &head, successor)?;
        listed.push(ListedConversation { head, life });
    }
    let cursor = entries.pop().filter(|_| has_more).map(|entry| entry.key);
    Ok(Some(ConversationPage { conversations: listed, cursor }))
}

/// Reads a page of the ids of conversations that are being deleted: the page after `cursor`, or the
/// first page. Returns the ids and the cursor of the next page (`None`: this is the last page). The
/// outer `None`: `cursor` is not a cursor of this list.
///
/// # Errors
///
/// `corrupt`: a record is damaged; `unsupported`: a record has a newer format; errors of the store.
pub(crate) fn read_deletion_page(
    session: &mut StoreSession<'_>,
    cursor: Option<&str>,
) -> Result<Option<(Vec<String>, Option<String>)>> {
    let start = cursor.map_or_else(|| keys::DELETIONS_PREFIX.into(), store_session::successor_key);
    if !start.starts_with(keys::DELETIONS_PREFIX) {
        return Ok(None);
    }
    let (mut entries, has_more) =
        session.scan_page(&start, keys::DELETIONS_END, limits::CALL_BYTES_MAX)?;
    let ids: Result<Vec<String>> =
        entries.iter().map(|entry| decode_id(&entry.key, &entry.value)).collect();
    let cursor = entries.pop().filter(|_| has_more).map(|entry| entry.key);
    Ok(Some((ids?, cursor)))
}

/// Reads the heads of entries of the list, without conversations whose deletion began after the
/// entries were read.
fn read_listed_heads(
    session: &mut StoreSession<'_>,
    entries: &[Entry],
) -> Result<Vec<(ConversationKeys, ConversationHead)>> {
    let mut conversations = Vec::new();
    for entry in entries {
        conversations.push(ConversationKeys::new(&decode_id(&entry.key, &entry.value)?)?);
    }
    let head_keys: Vec<String> = conversations.iter().map(ConversationKeys::head_key).collect();
    let values = session.read_uncached(&head_keys)?;
    let mut heads = Vec::new();
    for ((keys, key), value) in conversations.into_iter().zip(head_keys).zip(values) {
        match value {
            Some(value) if codec::is_tombstone(&value) => {}
            Some(value) => heads.push((keys, codec::decode(&key, &value)?)),
            None if session.read_one_uncached(&keys.name_key())?.is_none() => {}
            None => {
                return Err(Error::corrupt_store(format_args!(
                    "the head `{key}` of a listed conversation is missing"
                )));
            }
        }
    }
    Ok(heads)
}
