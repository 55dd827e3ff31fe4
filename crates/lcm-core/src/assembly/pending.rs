//! Messages that a host holds and has not stored: they end the context.
//!
//! In: messages in the dialect asked for, as for an append. Out: those of them that are new. A host
//! may hand over the newest part of what it holds without knowing how much of it is stored.

use alloc::{string::String, vec::Vec};
use lcm_text::message::batch_limit;

use crate::storage::{context::ContextItem, head::ConversationHead, pack};
use lcm_text::{
    base::error::{Error, Result},
    message::{self, ParsedMessage},
    types::api::Dialect,
};

/// A message that is not stored.
#[derive(Debug)]
pub(super) struct PendingMessage {
    pub(super) raw: String,
    pub(super) message: ParsedMessage,
}

/// The messages that are not stored, without failed turns that have no content.
///
/// # Errors
///
/// `invalid-input`: one that an append would refuse; `limit-exceeded`: more than an append takes.
pub(super) fn read(
    dialect: Dialect,
    list: &[String],
    head: &ConversationHead,
    items: &[ContextItem],
) -> Result<Vec<PendingMessage>> {
    let mut out = Vec::new();
    let mut hashes = Vec::new();
    for (index, raw) in batch_limit::take_fitting(list, false)?.iter().enumerate() {
        let message = message::parse(dialect, raw).map_err(|error| {
            let message = &error.message;
            Error::new(error.code, format_args!("live-messages[{index}]: {message}"))
        })?;
        if !message.is_failed_and_empty {
            hashes.push(pack::message_hash(raw, &message));
            out.push(PendingMessage { raw: raw.clone(), message });
        }
    }
    // What a new session left behind is in no context, so that it stands for nothing here.
    let withdrawn = items.iter().rev().find(|item| matches!(item, ContextItem::Withdrawn { .. }));
    let messages = head.messages.saturating_sub(withdrawn.map_or(0, ContextItem::seq_last));
    let older =
        head.recent_hashes.len().saturating_sub(usize::try_from(messages).unwrap_or(usize::MAX));
    out.drain(..count_stored(&out, &hashes, head.recent_hashes.get(older..).unwrap_or_default()));
    Ok(out)
}

/// How many of the first are stored: the most that end as the stored messages do, as far back as
/// these are known. Without one that is unlikely to be said twice they are new.
fn count_stored(live: &[PendingMessage], hashes: &[[u8; 16]], known: &[[u8; 12]]) -> usize {
    let is_known = |count: usize| {
        let from = count.saturating_sub(known.len());
        let (of_live, of_hashes) = (live.get(from..count), hashes.get(from..count));
        let of_known = known.get(known.len().saturating_sub(count)..);
        let (Some(of_live), Some(of_hashes), Some(of_known)) = (of_live, of_hashes, of_known)
        else {
            return false;
        };
        of_hashes.len() == of_known.len()
            && of_hashes.iter().zip(of_known).all(|(hash, known)| hash.starts_with(known))
            && of_live.iter().any(|live| is_anchor(&live.message))
    };
    (1..=live.len()).rev().find(|count| is_known(*count)).unwrap_or(0)
}

/// Whether an equal message is evidence of being the same one.
fn is_anchor(message: &ParsedMessage) -> bool {
    message.is_discriminating
        || message.unique_call_id.is_some()
        || message.entry_id.is_some()
        || message.event_key.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn live(texts: &[&str]) -> (Vec<PendingMessage>, Vec<[u8; 16]>) {
        let of = |text: &&str| {
            let raw = format!(r#"{{"role":"user","content":"{text}"}}"#);
            let message = message::parse(Dialect::Lcm, &raw).unwrap();
            let hash = pack::message_hash(&raw, &message);
            (PendingMessage { raw, message }, hash)
        };
        texts.iter().map(of).unzip()
    }

    /// How many of `texts` count as stored behind `known`.
    fn stored_of(texts: &[&str], known: &[&str]) -> usize {
        let known: Vec<[u8; 12]> =
            live(known).1.iter().map(|hash| lcm_text::base::hash::hash_prefix(hash)).collect();
        let (live, hashes) = live(texts);
        count_stored(&live, &hashes, &known)
    }

    const LONG: &str = "a sentence of more than twenty-four letters";

    #[test]
    fn what_ends_the_stored_messages_is_not_new() {
        assert_eq!(stored_of(&["a", LONG, "c", "d"], &["x", "a", LONG, "c"]), 3);
        assert_eq!(stored_of(&[LONG, "d"], &["x", LONG]), 1);
        assert_eq!(stored_of(&[LONG], &["x", LONG]), 1);
        // The host holds more than is known.
        assert_eq!(stored_of(&["y", "x", LONG, "d"], &["x", LONG]), 3);
    }

    #[test]
    fn what_may_be_said_again_is_new() {
        assert_eq!(stored_of(&["ok"], &["x", "ok"]), 0);
        assert_eq!(stored_of(&["ok", "d"], &[LONG, "ok"]), 0);
        assert_eq!(stored_of(&[LONG], &[LONG, "ok"]), 0);
        assert_eq!(stored_of(&[LONG], &[]), 0);
        assert_eq!(stored_of(&[], &["x"]), 0);
    }
}
