//! Live messages: messages that a host holds and has not appended. They end the context.
//!
//! In: the newest messages of the host, in the requested dialect. Out: the messages among them that
//! are not stored. A host need not know how many of its messages are stored.

use alloc::{string::String, vec::Vec};
use lcm_text::message::batch_limit;

use crate::storage::{
    context::ContextItem,
    head::ConversationHead,
    message_mark::MessageMark,
    records::system_slot::{self, SystemText},
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
    },
    message::{self, ParsedMessage, meaning},
    types::api::Dialect,
};

/// A message that the host passed as live and that is not among the newest stored messages. A copy
/// of a withdrawn message counts as not stored.
#[derive(Debug)]
pub(super) struct PendingMessage {
    pub(super) raw: String,
    pub(super) message: ParsedMessage,
}

/// The live messages that are not stored.
#[derive(Debug)]
pub(super) struct LiveMessages {
    /// The leading system messages, if they replace the stored system messages in the context; else
    /// empty.
    pub(super) system: Vec<SystemText>,
    pub(super) messages: Vec<PendingMessage>,
}

/// Parses the live messages and returns those that are not stored. Failed turns without content are
/// dropped.
///
/// # Errors
///
/// - `invalid-input`: `append` would refuse a message
/// - `limit-exceeded`: more messages or bytes than one `append` takes
pub(super) fn read_pending(
    dialect: Dialect,
    list: &[String],
    head: &ConversationHead,
    items: &[ContextItem],
) -> Result<LiveMessages> {
    let mut out = parse_live(dialect, list)?;
    // A withdrawn message is in no context: a live copy of it counts as not stored.
    let withdrawn = || items.iter().filter(|item| matches!(item, ContextItem::Withdrawn { .. }));
    let is_withdrawn = |seq: u64| {
        withdrawn().rev().any(|item| (item.seq_first()..=item.seq_last()).contains(&seq))
    };
    let seq_first = head.messages + 1 - int::to_u64(head.recent_marks.len());
    let known = (seq_first..).zip(&head.recent_marks).filter(|(seq, _)| !is_withdrawn(*seq));
    let known: Vec<MessageMark> = known.map(|(_, mark)| *mark).collect();
    let mut lead = system_slot::count_leading(out.iter().map(|live| live.message.role));
    if lead == out.len() && system_slot::is_begun(head) {
        lead = 0;
    }
    let mut rest = out.split_off(lead);
    let marks: Vec<MessageMark> =
        rest.iter().map(|live| MessageMark::from_message(&live.raw, &live.message)).collect();
    let stored = count_stored(&rest, &marks, &known);
    rest.drain(..stored);
    let said: Vec<_> =
        out.iter().map(|live| meaning::hash_parts(&live.raw, &live.message)).collect();
    let id = system_slot::hash_version(said.iter().map(Vec::as_slice));
    if head.system.is_some_and(|slot| slot.id == id) {
        out.clear();
    }
    // As in `append`: if the sequence has begun and no live message is stored, leading system
    // messages join the sequence.
    if stored == 0 && system_slot::is_begun(head) {
        out.append(&mut rest);
        return Ok(LiveMessages { system: Vec::new(), messages: out });
    }
    let system = out.into_iter().map(|live| SystemText {
        dialect: live.message.dialect,
        tokens: live.message.tokens,
        raw: live.raw,
    });
    Ok(LiveMessages { system: system.collect(), messages: rest })
}

fn parse_live(dialect: Dialect, list: &[String]) -> Result<Vec<PendingMessage>> {
    let mut out = Vec::new();
    let list = batch_limit::take_fitting(list, false).map_err(|error| {
        let message = error.message.replace("`messages", "`live_messages");
        Error::new(error.code, message)
    })?;
    for (index, raw) in list.iter().enumerate() {
        let message = message::parse_given(dialect.into(), raw).map_err(|error| {
            let message = &error.message;
            Error::new(error.code, format_args!("live_messages[{index}]: {message}"))
        })?;
        if !message.is_failed_and_empty {
            out.push(PendingMessage { raw: raw.clone(), message });
        }
    }
    Ok(out)
}

/// Counts how many of the first live messages are stored.
///
/// Returns the greatest count for which the first `count` live messages are the newest stored
/// messages. The two lists are compared from their ends, as far back as both reach. At least one
/// compared message must be an anchor.
fn count_stored(live: &[PendingMessage], marks: &[MessageMark], known: &[MessageMark]) -> usize {
    let is_known = |count: usize| {
        let from = count.saturating_sub(known.len());
        let (of_live, of_marks) = (live.get(from..count), marks.get(from..count));
        let of_known = known.get(known.len().saturating_sub(count)..);
        let (Some(of_live), Some(of_marks), Some(of_known)) = (of_live, of_marks, of_known) else {
            return false;
        };
        of_marks.len() == of_known.len()
            && of_marks.iter().zip(of_known).all(|(mark, known)| mark.is_same_message(known))
            && of_live.iter().any(|live| is_anchor(&live.message))
    };
    (1..=live.len()).rev().find(|count| is_known(*count)).unwrap_or(0)
}

/// Returns whether equal content proves that two messages are the same.
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

    fn live(texts: &[&str]) -> (Vec<PendingMessage>, Vec<MessageMark>) {
        let of = |text: &&str| {
            let raw = format!(r#"{{"role":"user","content":"{text}"}}"#);
            let message = message::parse(Dialect::Lcm, &raw).unwrap();
            let mark = MessageMark::from_message(&raw, &message);
            (PendingMessage { raw, message }, mark)
        };
        texts.iter().map(of).unzip()
    }

    /// Counts how many of `texts` are stored, if the stored messages end with `known`.
    fn count_known(texts: &[&str], known: &[&str]) -> usize {
        let known = live(known).1;
        let (live, marks) = live(texts);
        count_stored(&live, &marks, &known)
    }

    const LONG: &str = "a sentence of more than twenty-four letters";

    #[test]
    fn live_messages_that_end_the_stored_ones_are_stored() {
        assert_eq!(count_known(&["a", LONG, "c", "d"], &["x", "a", LONG, "c"]), 3);
        assert_eq!(count_known(&[LONG, "d"], &["x", LONG]), 1);
        assert_eq!(count_known(&[LONG], &["x", LONG]), 1);
        // The host holds more messages than the head has marks.
        assert_eq!(count_known(&["y", "x", LONG, "d"], &["x", LONG]), 3);
    }

    #[test]
    fn a_text_that_may_repeat_is_new() {
        assert_eq!(count_known(&["ok"], &["x", "ok"]), 0);
        assert_eq!(count_known(&["ok", "d"], &[LONG, "ok"]), 0);
        assert_eq!(count_known(&[LONG], &[LONG, "ok"]), 0);
        assert_eq!(count_known(&[LONG], &[]), 0);
        assert_eq!(count_known(&[], &["x"]), 0);
    }
}
