//! Assigns entry ids and counts skipped lines, for the readers of all session files.

use std::collections::{BTreeMap, HashMap};

use super::{
    Branch, count_aside,
    line::{SHOWN_CHARACTERS_MAX, cut_text},
};
use crate::digest::sha256_hex;

/// Reason to skip summaries of a session tree, for a warning.
pub(super) const SUMMARY: &str = "summaries of the program, whose messages are in the file";
/// Reason to skip messages of sub-agents, for a warning.
pub(super) const SUB_AGENTS: &str = "messages of sub-agents";
/// Hex digits of a line's hash in an id.
const HASH_DIGITS: usize = 16;

/// Assigns ids to the entries of one file.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Prefix of the following ids: the session id and `/`; empty: no prefix.
    session: String,
    /// For each id before renaming, the content hashes of its entries; empty texts for entries
    /// without an own id.
    lines: HashMap<String, Vec<String>>,
    /// Number of entries whose id was used before with other content.
    renamed: usize,
}

impl Ids {
    /// Sets the session whose id is the prefix of the following ids. Only the first call with a
    /// session id counts, because a session that was made from another also contains the header of
    /// the other.
    pub(super) fn enter_session(&mut self, session: &str) {
        if self.session.is_empty() && !session.is_empty() {
            self.session = format!("{session}/");
        }
    }

    /// Returns the id of an entry that has an own id. An entry with the same id and equal content
    /// gets the same id, even if other members of its line differ.
    pub(super) fn name_entry(&mut self, id: &str, content: &str) -> String {
        let hash = hash_text(content);
        let id = &format!("{}{id}", self.session);
        let lines = self.lines.entry(id.to_owned()).or_default();
        let known = lines.iter().position(|known| *known == hash);
        let name = match known.unwrap_or(lines.len()) {
            0 => id.clone(),
            // A number would change if the program cut the beginning of the file.
            _ => format!("{id}#{hash}"),
        };
        if known.is_none() {
            self.renamed += usize::from(!lines.is_empty());
            lines.push(hash);
        }
        name
    }

    /// Returns the id of an entry without an own id; each equal line gets another id.
    pub(super) fn name_line(&mut self, line: &str) -> String {
        let id = format!("{}line:{}", self.session, hash_text(line));
        let lines = self.lines.entry(id.clone()).or_default();
        lines.push(String::new());
        number_id(&id, lines.len() - 1)
    }

    /// Returns the warning about ids that occur again with other content; `None`: no such id.
    pub(super) fn warning(&self) -> Option<String> {
        (self.renamed > 0).then(|| {
            format!("entries with the id of an earlier entry ({}): kept as `ID#HASH`", self.renamed)
        })
    }
}

fn number_id(id: &str, place: usize) -> String {
    if place == 0 { id.to_owned() } else { format!("{id}#{}", place + 1) }
}

fn hash_text(line: &str) -> String {
    let mut digits = sha256_hex(line.as_bytes());
    digits.truncate(HASH_DIGITS);
    digits
}

/// Counts of skipped lines and messages.
#[derive(Debug, Default)]
pub(super) struct SkippedCounts {
    /// Lines without a message, by type.
    others: BTreeMap<String, usize>,
    /// Messages, by reason.
    messages: BTreeMap<&'static str, usize>,
    /// Messages of branches.
    aside: usize,
}

impl SkippedCounts {
    /// Counts a line without a message.
    pub(super) fn count_line(&mut self, kind: &str) {
        *self.others.entry(cut_text(kind, SHOWN_CHARACTERS_MAX)).or_default() += 1;
    }

    /// Counts a skipped message.
    pub(super) fn count_message(&mut self, reason: &'static str) {
        *self.messages.entry(reason).or_default() += 1;
    }

    /// Counts the messages of branches, which are set aside.
    pub(super) fn set_aside(&mut self, branches: &[Branch]) {
        self.aside = count_aside(branches);
    }

    /// Returns one line for the messages of branches, one for each reason, and one for all lines
    /// without a message.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.aside > 0 {
            out.push(format!(
                "set aside ({}): messages that the conversation did not continue",
                self.aside
            ));
        }
        let reasons = self.messages.iter();
        out.extend(reasons.map(|(reason, count)| format!("not taken ({count}): {reason}")));
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
        assert_eq!(ids.name_entry("a", "1"), "a");
        assert_eq!(ids.name_entry("a", "1"), "a");
        assert_eq!(ids.warning(), None);
        let other = ids.name_entry("a", "2");
        assert_eq!(other, format!("a#{}", hash_text("2")));
        assert_eq!(ids.name_entry("a", "1"), "a");
        assert!(ids.warning().unwrap().contains("(1)"));
    }

    #[test]
    fn an_id_of_another_session_is_another_id() {
        let mut ids = Ids::default();
        assert_eq!(ids.name_entry("a", "1"), "a");
        ids.enter_session("");
        ids.enter_session("s");
        ids.enter_session("t");
        assert_eq!(ids.name_entry("a", "1"), "s/a");
        assert!(ids.name_line("1").starts_with("s/line:"));
    }

    #[test]
    fn equal_lines_without_an_id_are_different_entries() {
        let mut ids = Ids::default();
        let first = ids.name_line("ok");
        assert_eq!(first.len(), "line:".len() + HASH_DIGITS);
        assert_eq!(ids.name_line("ok"), format!("{first}#2"));
        assert_ne!(ids.name_line("no"), first);
    }
}
