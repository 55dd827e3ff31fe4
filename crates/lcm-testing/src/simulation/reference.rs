//! The reference model of a conversation: a list of raw messages, and the rule by which a batch
//! extends the list.
//!
//! In: batches of the workload. Out: the expected messages of the store. The model has no
//! summaries, packs or heads.

use std::collections::BTreeSet;

/// A message of the workload, with the facts that the reference model needs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// JSON text of the message.
    pub raw: String,
    /// Text of the message in a batch: `raw`, or `@upload SHA-256` if the message was uploaded.
    pub carried: String,
    /// The host's id of the entry.
    pub entry_id: Option<String>,
    /// Whether the message is an anchor: a message with equal content is the same message.
    pub strong: bool,
    /// Position in its tool-call group: 0 for the call, then its results; `None`: in no group.
    pub in_group: Option<u32>,
    /// Whether the message is a failed turn without content, which is never stored.
    pub failed_and_empty: bool,
}

/// The expected counts of a receipt of `append`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Expected {
    /// Messages stored.
    pub ingested: u64,
    /// Messages that are stored already, and failed turns without content.
    pub skipped: u64,
}

/// The reference model of a conversation: the list of its messages.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    messages: Vec<Message>,
    ids: BTreeSet<String>,
}

impl Reference {
    /// Returns the stored messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the number of stored messages.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Returns whether no message is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds the new messages of a batch, and returns the expected counts. `transcript`: the batch
    /// may begin with the newest stored messages.
    pub fn append(&mut self, batch: &[Message], transcript: bool) -> Expected {
        let aligned = if transcript { self.aligned(batch) } else { 0 };
        let (mut ingested, mut skipped) = (0, aligned as u64);
        for message in &batch[aligned..] {
            let known = message.entry_id.as_ref().is_some_and(|id| self.ids.contains(id));
            if known || message.failed_and_empty {
                skipped += 1;
                continue;
            }
            self.ids.extend(message.entry_id.clone());
            self.messages.push(message.clone());
            ingested += 1;
        }
        Expected { ingested, skipped }
    }

    /// Returns the length of the longest beginning of the batch that equals the newest stored
    /// messages and contains an anchor; 0: there is none.
    fn aligned(&self, batch: &[Message]) -> usize {
        (1..=batch.len().min(self.messages.len()))
            .rev()
            .find(|&length| {
                let tail = &self.messages[self.messages.len() - length..];
                tail.iter().zip(batch).all(|(stored, new)| stored.raw == new.raw)
                    && batch[..length].iter().any(|message| message.strong)
            })
            .unwrap_or(0)
    }

    /// Returns the first and last seq of the tool-call group of a message; for a message in no
    /// group, its own seq twice.
    #[must_use]
    pub fn group(&self, seq: u64) -> (u64, u64) {
        let index = (seq - 1) as usize;
        let Some(position) = self.messages[index].in_group else { return (seq, seq) };
        let first = index - (position as usize).min(index);
        let mut last = index;
        while let Some(next) = self.messages.get(last + 1)
            && next.in_group.is_some_and(|position| position as usize == last + 1 - first)
        {
            last += 1;
        }
        (first as u64 + 1, last as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str, id: Option<&str>) -> Message {
        Message {
            raw: text.to_owned(),
            carried: text.to_owned(),
            entry_id: id.map(str::to_owned),
            strong: text.len() > 2,
            in_group: None,
            failed_and_empty: false,
        }
    }

    #[test]
    fn a_replayed_tail_is_recognised_when_it_has_an_anchor() {
        let mut reference = Reference::default();
        let stored = [message("first", None), message("ok", None)];
        reference.append(&stored, true);
        let batch = [stored[0].clone(), stored[1].clone(), message("third", None)];
        assert_eq!(reference.append(&batch, true), Expected { ingested: 1, skipped: 2 });
        let batch = [message("ok", None)];
        reference.append(&batch, true);
        assert_eq!(reference.append(&batch, true), Expected { ingested: 1, skipped: 0 });
    }

    #[test]
    fn a_known_id_is_skipped_wherever_it_stands() {
        let mut reference = Reference::default();
        reference.append(&[message("first", Some("a"))], true);
        let batch = [message("second", Some("b")), message("changed", Some("a"))];
        assert_eq!(reference.append(&batch, true), Expected { ingested: 1, skipped: 1 });
    }
}
