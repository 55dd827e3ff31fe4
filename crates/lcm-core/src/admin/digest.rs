//! Digests: one hash over the stored bytes, or over the stored conversations.
//!
//! In: the store. Out: a SHA-256. The plain digest covers all keys and values; equal calls give
//! equal digests in every host. The logical digest covers, of each conversation, id, family,
//! archive, system messages, message texts, summaries, withdrawn ranges with branches, and context
//! items. Stores with equal conversations have equal logical digests, even if their messages came
//! in different batches.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256, digest::common::hazmat::SerializableState as _};

use crate::storage::{
    codec::{self, SoundRecord},
    context::ContextItem,
    conversation_list,
    head::{ConversationHead, LoadedHead},
    history::MessageHistory,
    keys::ConversationKeys,
    records::{
        system_slot,
        withdrawals::{WithdrawalReason, Withdrawals},
    },
    store_session::{StoreSession, successor_key},
    summary::Summary,
};
use lcm_text::base::{
    error::{Error, Result},
    int, limits,
};

use super::cursor;

/// Reads of the store for one page: at most 4,000 entries, so that a page takes milliseconds.
const PAGE_SCANS: usize = 4;

/// Progress of a plain digest.
#[derive(Deserialize, Serialize)]
struct DigestProgress {
    /// The first key of the next page.
    next_key: String,
    /// State of the hash.
    state: Vec<u8>,
}

impl SoundRecord for DigestProgress {}

/// Computes the digest of the whole store, page by page, and returns `{"sha256", "cursor"}`;
/// `sha256` is null before the last page. A logical digest has one page.
///
/// # Errors
///
/// `invalid-input`: the cursor is of another call, or is given with `logical`; `corrupt`: the store
/// is damaged (logical digest only); errors of the store.
pub(crate) fn digest(
    session: &mut StoreSession<'_>,
    cursor: Option<&str>,
    logical: bool,
) -> Result<String> {
    let wrong = || {
        Error::invalid_input(
            "`cursor` must be a cursor that this digest returned, and must be absent with \
             `logical`",
        )
    };
    if logical {
        if cursor.is_some() {
            return Err(wrong());
        }
        let mut hasher = Sha256::new();
        for id in conversation_list::list_all_conversations(session)? {
            hash_conversation(session, &id, &mut hasher)?;
        }
        return Ok(render(hasher));
    }
    // Keys are printable ASCII, so this range holds every key.
    let (mut next_key, mut hasher) = (String::from("!"), Sha256::new());
    if let Some(cursor) = cursor {
        let progress: DigestProgress = cursor::read(cursor).ok_or_else(wrong)?;
        let state = progress.state.as_slice().try_into().map_err(|_| wrong())?;
        hasher = Sha256::deserialize(state).map_err(|_| wrong())?;
        next_key = progress.next_key;
    }
    for _ in 0..PAGE_SCANS {
        let (entries, more) = session.scan_page(&next_key, "\u{7f}", limits::CALL_BYTES_MAX)?;
        for entry in &entries {
            hash_field(&mut hasher, entry.key.as_bytes());
            hash_field(&mut hasher, &entry.value);
        }
        match entries.last() {
            Some(last) if more => next_key = successor_key(&last.key),
            _ => return Ok(render(hasher)),
        }
    }
    let progress = DigestProgress { next_key, state: hasher.serialize().to_vec() };
    Ok(format!("{{\"sha256\":null,\"cursor\":\"{}\"}}", cursor::write(&progress)?))
}

fn render(hasher: Sha256) -> String {
    format!("{{\"sha256\":\"{}\",\"cursor\":null}}", hash::hex(&hasher.finalize()))
}

fn hash_field(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update(int::to_u32(bytes.len()).to_be_bytes());
    hasher.update(bytes);
}

fn hash_conversation(session: &mut StoreSession<'_>, id: &str, hasher: &mut Sha256) -> Result<()> {
    let keys = ConversationKeys::new(id)?;
    let loaded = LoadedHead::load_head(session, &keys, id)?;
    let head: &ConversationHead = &loaded.head;
    hash_field(hasher, id.as_bytes());
    if let Some(family) = head.family {
        hash_field(hasher, &family);
    }
    if let Some(archived) = head.archived {
        hash_field(hasher, archived.cause.as_str().as_bytes());
        hash_field(hasher, &archived.successor.unwrap_or_default());
    }
    let history = MessageHistory { keys: &keys, head };
    for stored in system_slot::list_versions(session, &history)? {
        hash_field(hasher, &stored.id);
        for text in stored.version.read_texts(session, &history)? {
            hash_field(hasher, text.raw.as_bytes());
        }
    }
    history.visit_messages(session, &[(1, head.messages)], &mut |_, message| {
        hash_field(hasher, message.text.as_bytes());
        Ok(())
    })?;
    let (start, end) = keys.record_range("s");
    session.scan_range(&start, &end, &mut |key, value| {
        let summary: Summary = codec::decode(key, value)?;
        hash_field(hasher, key.as_bytes());
        hash_field(hasher, &summary.depth.to_be_bytes());
        hash_field(hasher, summary.text.as_bytes());
        Ok(())
    })?;
    let withdrawals = session.read_record(&Withdrawals::key(&keys))?.unwrap_or_default();
    for start in withdrawals.branches {
        hash_field(hasher, &start.seq.to_be_bytes());
        hash_field(hasher, &start.after.to_be_bytes());
    }
    for range in withdrawals.ranges {
        let (after, is_revision) = match range.reason {
            WithdrawalReason::SetAside { after } => (after, 0),
            WithdrawalReason::Revision => (0, 1),
        };
        for number in [range.seq_first, range.seq_last, after, is_revision] {
            hash_field(hasher, &number.to_be_bytes());
        }
    }
    let items: Vec<ContextItem> = head.context.load_items(session, &keys)?;
    for item in items {
        let name = match item {
            ContextItem::Run(_) => [0; 8],
            ContextItem::Summary(summary) => summary.id,
            ContextItem::Withdrawn { .. } => *b"withdraw",
        };
        hash_field(hasher, &name);
        hash_field(hasher, &item.seq_first().to_be_bytes());
        hash_field(hasher, &item.seq_last().to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, search::tests::Memory};
    use alloc::format;

    /// Goal: the digest of many pages equals the digest of one pass. Method: stores around the
    /// bounds of a page, hashed entry by entry beside it.
    #[test]
    fn the_digest_of_pages_is_that_of_one_pass() {
        for entries in [0, 1, 999, 3_999, 4_000, 4_001, 9_000] {
            let mut store = Memory::default();
            let mut hasher = Sha256::new();
            for number in 0..entries {
                let (key, value) = (format!("k/{number:06}"), alloc::vec![1; number % 7]);
                hash_field(&mut hasher, key.as_bytes());
                hash_field(&mut hasher, &value);
                store.entries.insert(key, value);
            }
            let mut engine = Engine::new();
            let (mut cursor, mut pages) = (None::<String>, 0);
            let last = loop {
                let page = engine.digest(&mut store, cursor.as_deref(), false).unwrap();
                pages += 1;
                match page.strip_prefix(r#"{"sha256":null,"cursor":""#) {
                    Some(rest) => cursor = rest.strip_suffix("\"}").map(String::from),
                    None => break page,
                }
            };
            assert_eq!(last, render(hasher), "{entries}");
            // A full page asks once more whether there is an entry behind it.
            assert!(pages <= 1 + entries / 4_000, "{entries} entries in {pages} pages");
            if let Some(cursor) = cursor {
                let (other, logical) = (format!("{cursor}00"), Some(cursor.as_str()));
                assert!(engine.digest(&mut store, Some(&other), false).is_err());
                assert!(engine.digest(&mut store, logical, true).is_err());
            }
        }
    }
}
