//! Digests: one hash over the stored bytes, or over the stored conversations.
//!
//! In: the store. Out: a SHA-256. The plain digest covers all keys and values; equal calls give
//! equal digests in every host. The logical digest covers, of each conversation, id, family,
//! archive, message texts, summaries and context items. Stores with equal conversations have
//! equal logical digests, even if their messages came in different batches.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use sha2::{Digest, Sha256};

use crate::storage::{
    codec,
    context::ContextItem,
    conversation_list,
    head::{ConversationHead, LoadedHead},
    history::MessageHistory,
    keys::ConversationKeys,
    store_session::StoreSession,
    summary::Summary,
};
use lcm_text::base::{error::Result, int};

/// Computes the digest of the whole store and returns `{"sha256", "cursor"}`; `cursor` is always
/// null.
///
/// # Errors
///
/// `corrupt`: the store is damaged (logical digest only); errors of the store.
pub(crate) fn digest(session: &mut StoreSession<'_>, logical: bool) -> Result<String> {
    let mut hasher = Sha256::new();
    if logical {
        for id in conversation_list::list_all_conversations(session)? {
            hash_conversation(session, &id, &mut hasher)?;
        }
    } else {
        // Keys are printable ASCII, so this range holds every key.
        session.scan_range("!", "\u{7f}", &mut |key, value| {
            hash_field(&mut hasher, key.as_bytes());
            hash_field(&mut hasher, value);
            Ok(())
        })?;
    }
    Ok(format!("{{\"sha256\":\"{}\",\"cursor\":null}}", hash::hex(&hasher.finalize())))
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
