//! Digests: one hash over everything stored, or over what it means.
//!
//! The plain digest is over keys and values as they are; equal calls give equal digests in every
//! host. The logical digest is over messages, summaries and contexts, so that stores which were
//! filled in other batches compare equal.

use alloc::{format, string::String, vec::Vec};
use lcm_text::base::hash;

use sha2::{Digest, Sha256};

use crate::storage::{
    codec,
    context::Item,
    head::{Head, Loaded},
    history::History,
    keys::{self, Keys},
    store_session::Reader,
    summary::Summary,
};
use lcm_text::base::{error::Result, int, sort};

/// The digest of the whole store as `{"sha256", "cursor"}`.
///
/// # Errors
///
/// Of the store; `corrupt` for the logical digest of a damaged one.
pub(crate) fn digest(reader: &mut Reader<'_>, logical: bool) -> Result<String> {
    let mut hasher = Sha256::new();
    if logical {
        let mut names: Vec<String> = Vec::new();
        reader.scan(keys::NAMES, keys::NAMES_END, &mut |key, value| {
            let (_, id): (String, String) = codec::decode(key, value)?;
            names.push(id);
            Ok(())
        })?;
        sort::distinct(&mut names);
        for id in &names {
            conversation(reader, id, &mut hasher)?;
        }
    } else {
        // Keys are printable ASCII: everything lies between these two.
        reader.scan("!", "\u{7f}", &mut |key, value| {
            field(&mut hasher, key.as_bytes());
            field(&mut hasher, value);
            Ok(())
        })?;
    }
    Ok(format!("{{\"sha256\":\"{}\",\"cursor\":null}}", hash::hex(&hasher.finalize())))
}

fn field(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update(int::to_u32(bytes.len()).to_be_bytes());
    hasher.update(bytes);
}

fn conversation(reader: &mut Reader<'_>, id: &str, hasher: &mut Sha256) -> Result<()> {
    let keys = Keys::new(id)?;
    let loaded = Loaded::of(reader, &keys, id)?;
    let head: &Head = &loaded.head;
    field(hasher, id.as_bytes());
    if let Some(family) = head.family {
        field(hasher, &family);
    }
    if let Some(archived) = head.archived {
        field(hasher, archived.cause.as_str().as_bytes());
        field(hasher, &archived.successor.unwrap_or_default());
    }
    let history = History { keys: &keys, head };
    history.each_of(reader, &[(1, head.messages)], &mut |_, message| {
        field(hasher, message.text.as_bytes());
        Ok(())
    })?;
    let (start, end) = keys.range("s");
    reader.scan(&start, &end, &mut |key, value| {
        let summary: Summary = codec::decode(key, value)?;
        field(hasher, key.as_bytes());
        field(hasher, &summary.depth.to_be_bytes());
        field(hasher, summary.text.as_bytes());
        Ok(())
    })?;
    let items: Vec<Item> = head.context.load(reader, &keys)?;
    for item in items {
        let name = match item {
            Item::Run(_) => [0; 8],
            Item::Summary(summary) => summary.id,
            Item::Withdrawn { .. } => *b"withdraw",
        };
        field(hasher, &name);
        field(hasher, &item.seq_first().to_be_bytes());
        field(hasher, &item.seq_last().to_be_bytes());
    }
    Ok(())
}
