//! Forms of one message: whether an entry is the stored message at its place, written otherwise.
//!
//! In: an entry and the message at its place, which say different things. Out: the form that the
//! entry is of the message, or none. No context has both forms, so a mistake here would hide what
//! was said.

use crate::storage::message_mark::MessageMark;
use lcm_text::message::{
    Role,
    meaning::{self, SaidPart},
};

use super::{alignment::AlignableEntry, stored_line::ComparedMessage};

/// An entry as a form of a stored message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum MessageForm {
    /// The entry begins with the stored text and says more: a streamed answer that went on.
    Longer,
    /// The stored text begins or ends with the entry, and of a user the rest is a block that the
    /// host added; or both are results of the same call.
    Other,
    /// The stored text of a user begins or ends with the entry, and the rest is no block: an edit,
    /// which is another message, unless the list goes on like the line.
    Shortened,
}

/// Returns which form of a message an entry is; `None`: the entry is another message, or an id of
/// it is stored. `text`: what the entry says; `None`: unknown, so that no entry is a longer form.
///
/// A longer text of a user is an edit, which is another message. A shorter form must be long enough
/// to be evidence by itself, or lack only a block that the host added.
pub(super) fn compare_forms(
    entry: &AlignableEntry,
    text: Option<&str>,
    message: &ComparedMessage,
) -> Option<MessageForm> {
    let (mark, stored_mark) = (&entry.mark, &message.mark);
    let differs = mark.has_other_id(stored_mark) || mark.has_other_call(stored_mark);
    if entry.role != message.role || entry.is_known() || differs {
        return None;
    }
    if let Some(stored) = message.said.as_deref() {
        let begins = text.is_some_and(|text| text.len() > stored.len() && text.starts_with(stored));
        if begins && entry.role != Role::User && !stored.is_empty() {
            return Some(MessageForm::Longer);
        }
        let is_user = entry.role == Role::User;
        let text = entry.text.filter(|(bytes, _)| (1..stored.len()).contains(bytes));
        let text = text.filter(|_| is_user || entry.is_discriminating);
        match text.and_then(|text| find_rest(entry.role, text, stored)) {
            Some(rest) if is_user && is_block(rest) => return Some(MessageForm::Other),
            Some(_) if is_user && entry.is_discriminating => return Some(MessageForm::Shortened),
            Some(_) if !is_user => return Some(MessageForm::Other),
            _ => {}
        }
    }
    let is_result = entry.role == Role::Tool && mark.has_same_call(stored_mark);
    is_result.then_some(MessageForm::Other)
}

/// Returns what a stored text has beside the text of an entry, given as bytes and hash. `None`: the
/// stored text neither begins nor ends with the text of the entry.
pub(super) fn find_rest(
    role: Role,
    (bytes, said): (usize, [u8; 16]),
    stored: &str,
) -> Option<&str> {
    let rest_bytes = stored.len().checked_sub(bytes)?;
    let ends = [
        (stored.get(..bytes), stored.get(bytes..)),
        (stored.get(rest_bytes..), stored.get(..rest_bytes)),
    ];
    let is_entry = |text: &str| meaning::hash_text(role, text) == said;
    ends.into_iter().find_map(|(text, rest)| rest.filter(|_| text.is_some_and(is_entry)))
}

/// Returns whether a part of a text is in tags or brackets, as hosts write what they add to the
/// words of a user.
pub(super) fn is_block(rest: &str) -> bool {
    let rest = rest.trim();
    [('<', '>'), ('[', ']')]
        .iter()
        .any(|(first, last)| rest.starts_with(*first) && rest.ends_with(*last))
}

/// Returns whether an entry may be a stub: a shorter result of a call with the same id. The id may
/// only count calls, so the caller must compare the neighbours, too.
pub(super) fn may_be_stub(entry: &AlignableEntry, message: &ComparedMessage) -> bool {
    let is_shorter = |said: &str| entry.text.is_some_and(|(bytes, _)| bytes < said.len());
    entry.role == Role::Tool
        && may_be_form(entry, message)
        && entry.mark.has_call()
        && entry.mark.call == message.mark.call
        && message.said.as_deref().is_some_and(is_shorter)
}

/// Returns whether an entry may be another form of the message at its place, if its neighbours are
/// stored: the roles agree, no ids differ, and no id of the entry is stored.
pub(super) fn may_be_form(entry: &AlignableEntry, message: &ComparedMessage) -> bool {
    let (mark, stored) = (&entry.mark, &message.mark);
    let differs = mark.has_other_id(stored) || mark.has_other_call(stored);
    entry.role == message.role && !entry.is_known() && !differs
}

/// Returns whether an entry is of a user, and a message is its text with a block that the host
/// added.
pub(super) fn adds_block(entry: &AlignableEntry, message: &ComparedMessage) -> bool {
    entry.role == Role::User && compare_forms(entry, None, message) == Some(MessageForm::Other)
}

/// Returns whether an entry was stored before as another form of a message, and may be a form of
/// the message at its place: it says more, or is a stub. `known`: the marks of stored forms. Of an
/// answer that was summarised before it was whole, the line keeps the first part.
pub(super) fn is_stored_form(
    entry: &AlignableEntry,
    message: &ComparedMessage,
    known: &[MessageMark],
) -> bool {
    let is_longer =
        |said: &str| !said.is_empty() && entry.text.is_some_and(|(bytes, _)| bytes > said.len());
    let is_longer = entry.role != Role::User
        && entry.is_discriminating
        && may_be_form(entry, message)
        && message.said.as_deref().is_some_and(is_longer);
    (is_longer || may_be_stub(entry, message))
        && known.iter().any(|form| form.is_same_message(&entry.mark))
}

/// Returns whether an entry is of a person or a model, not of a tool or the host.
pub(super) fn is_text(entry: &AlignableEntry) -> bool {
    matches!(entry.role, Role::User | Role::Assistant)
}

/// Most parts of a message in which the parts of another are looked for: calls are compared each
/// with each.
const HELD_PARTS_MAX: usize = 4_096;

/// Returns whether a message, of at most [`HELD_PARTS_MAX`] parts, has every part of another. Calls
/// and results are found by their ids, wherever they stand, because clients put a result behind its
/// call. Other parts must be in order.
pub(super) fn holds_parts(message: &[SaidPart], other: &[SaidPart]) -> bool {
    let mut rest = message.iter();
    message.len() <= HELD_PARTS_MAX
        && other.iter().all(|part| match part.call == [0; 4] {
            true => rest.any(|found| found.said == part.said),
            false => message.iter().any(|found| {
                found.call == part.call && (part.has_unique_call() || found.said == part.said)
            }),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::message_mark::MessageMark;
    use alloc::string::String;

    fn compare(role: Role, text: &str, stored: &str, calls: [u8; 2]) -> Option<MessageForm> {
        let mark = |call: u8| MessageMark { meaning: [call; 8], id: [0; 4], call: [call; 4] };
        let entry = AlignableEntry {
            mark: mark(calls[0]),
            role,
            text: Some((text.len(), meaning::hash_text(role, text))),
            list_hash: [0; 16],
            known_seq: None,
            position: None,
            is_discriminating: text.len() >= 24,
            redacted_copy: None,
            is_id_taken: false,
            may_be_form: core::cell::Cell::new(false),
            has_grown: false,
        };
        let message = ComparedMessage {
            mark: mark(calls[1]),
            role,
            text: String::new(),
            parts: alloc::vec::Vec::new(),
            said: Some(stored.into()),
        };
        compare_forms(&entry, Some(text), &message)
    }

    #[test]
    fn a_form_holds_the_other_whole() {
        let long = "The answer has two parts, and the second follows.";
        let begin = long.get(..30).expect("a beginning");
        let compare_texts = |role, text, stored| compare(role, text, stored, [0, 0]);
        assert_eq!(compare_texts(Role::Assistant, long, "The ans"), Some(MessageForm::Longer));
        assert_eq!(compare_texts(Role::Assistant, begin, long), Some(MessageForm::Other));
        assert_eq!(compare_texts(Role::User, begin, long), Some(MessageForm::Shortened));
        assert_eq!(compare_texts(Role::User, long, begin), None);
        let reminded = alloc::format!("{long}\n\n<reminder>Be brief.</reminder>");
        assert_eq!(compare_texts(Role::User, long, &reminded), Some(MessageForm::Other));
        assert_eq!(compare_texts(Role::Assistant, "The ans", long), None);
        assert_eq!(compare_texts(Role::Assistant, "Another", long), None);
    }

    #[test]
    fn a_result_of_the_same_call_is_a_form() {
        assert_eq!(compare(Role::Tool, "[removed]", "a body", [7, 7]), Some(MessageForm::Other));
        assert_eq!(compare(Role::Tool, "[removed]", "a body", [7, 8]), None);
        assert_eq!(compare(Role::Tool, "[removed]", "a body", [7, 0]), None);
    }
}
