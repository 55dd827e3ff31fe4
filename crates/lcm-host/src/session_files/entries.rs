//! Entry ids, and counts of skipped entries, for all readers.

use std::collections::{BTreeMap, HashMap};

use crate::digest::sha256_hex;

/// Reason to skip messages of a session tree.
pub(super) const ABANDONED: &str =
    "messages of abandoned branches: the conversation went on without them";
/// Reason to skip summaries.
pub(super) const SUMMARY: &str =
    "summaries of the program: the messages that they stand for are taken";
/// Hex digits of a line's hash in an id.
const HASH_DIGITS: usize = 16;

/// Assigns ids to entries.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Prefix of ids that are unique only within their file; empty: unknown session.
    session: String,
    /// Lines by their ids.
    lines: HashMap<String, Vec<String>>,
    renamed: usize,
}

impl Ids {
    /// Sets the session of the following ids. The first header counts, because a session that was
    /// made of another session also contains the other header. Entries before any header keep their
    /// ids.
    pub(super) fn enter(&mut self, session: &str) {
        if self.session.is_empty() && !session.is_empty() {
            self.session = format!("{session}/");
        }
    }

    /// Returns the id of an entry with its own id. Equal content is the same entry, whatever the
    /// rest of the line contains.
    pub(super) fn own(&mut self, id: &str, content: &str) -> String {
        let hash = hash(content);
        let id = &format!("{}{id}", self.session);
        let lines = self.lines.entry(id.to_owned()).or_default();
        let known = lines.iter().position(|known| *known == hash);
        let name = match known.unwrap_or(lines.len()) {
            0 => id.clone(),
            // A hash, not a number, because the file may lose its beginning.
            _ => format!("{id}#{hash}"),
        };
        if known.is_none() {
            self.renamed += usize::from(!lines.is_empty());
            lines.push(hash);
        }
        name
    }

    /// Returns the id of an entry without an id. An equal line is another entry.
    pub(super) fn of_line(&mut self, line: &str) -> String {
        let id = format!("{}line:{}", self.session, hash(line));
        let lines = self.lines.entry(id.clone()).or_default();
        lines.push(String::new());
        numbered(&id, lines.len() - 1)
    }

    /// Returns the warning about repeated ids with other content.
    pub(super) fn warning(&self) -> Option<String> {
        (self.renamed > 0).then(|| {
            format!("ids that another entry has, too ({}): kept as `id#HASH`", self.renamed)
        })
    }
}

fn numbered(id: &str, place: usize) -> String {
    if place == 0 { id.to_owned() } else { format!("{id}#{}", place + 1) }
}

fn hash(line: &str) -> String {
    let mut digits = sha256_hex(line.as_bytes());
    digits.truncate(HASH_DIGITS);
    digits
}

/// Counts of skipped lines and messages.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Lines without a message, by type.
    others: BTreeMap<String, usize>,
    /// Messages, by reason.
    messages: BTreeMap<&'static str, usize>,
}

impl Left {
    /// Counts a line without a message.
    pub(super) fn other(&mut self, kind: &str) {
        const CHARACTERS_MAX: usize = 40;
        let plain = kind.chars().filter(|c| !c.is_control()).take(CHARACTERS_MAX);
        *self.others.entry(plain.collect()).or_default() += 1;
    }

    /// Counts a skipped message.
    pub(super) fn message(&mut self, reason: &'static str) {
        *self.messages.entry(reason).or_default() += 1;
    }

    /// Returns one line for each reason.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut out: Vec<String> = self
            .messages
            .iter()
            .map(|(reason, count)| format!("not taken ({count}): {reason}"))
            .collect();
        if !self.others.is_empty() {
            let kinds: Vec<String> =
                self.others.iter().map(|(kind, count)| format!("{count} `{kind}`")).collect();
            out.push(format!("not taken: lines that are no messages: {}", kinds.join(", ")));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_with_other_content_is_another_entry() {
        let mut ids = Ids::default();
        assert_eq!(ids.own("a", "1"), "a");
        assert_eq!(ids.own("a", "1"), "a");
        assert_eq!(ids.warning(), None);
        let other = ids.own("a", "2");
        assert_eq!(other, format!("a#{}", hash("2")));
        assert_eq!(ids.own("a", "1"), "a");
        assert!(ids.warning().unwrap().contains("(1)"));
    }

    #[test]
    fn an_id_of_another_session_is_another_id() {
        let mut ids = Ids::default();
        assert_eq!(ids.own("a", "1"), "a");
        ids.enter("");
        ids.enter("s");
        ids.enter("t");
        assert_eq!(ids.own("a", "1"), "s/a");
        assert!(ids.of_line("1").starts_with("s/line:"));
    }

    #[test]
    fn equal_lines_without_an_id_are_different_entries() {
        let mut ids = Ids::default();
        let first = ids.of_line("ok");
        assert_eq!(first.len(), "line:".len() + HASH_DIGITS);
        assert_eq!(ids.of_line("ok"), format!("{first}#2"));
        assert_ne!(ids.of_line("no"), first);
    }
}
