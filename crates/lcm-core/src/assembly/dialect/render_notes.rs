//! Notes on the changes that rendering made to entries. In a result, `why` counts the notes of an
//! item and `warnings` describes each kind of change.

use alloc::{format, string::String, vec::Vec};

use super::RenderEntry;

/// Maximum number of seqs that a warning lists.
const NAMED_MAX: usize = 8;

/// A change that rendering made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::assembly) enum RenderNote {
    /// The entry became part of the message of the entry before.
    Merged,
    /// A call without a result got a placeholder result.
    SyntheticResult,
    /// A placeholder turn was added before or after the entry, because the provider requires one.
    SyntheticTurn,
    /// A result whose call is not in the context became text.
    OrphanResult,
    /// A further result of an answered call was omitted.
    DuplicateResult,
    /// A further call with the id of a kept call was omitted.
    DuplicateCall,
    /// A call got an id or name that the provider accepts.
    RenamedCall,
    /// A result without a call id became text.
    ResultAsText,
    /// A system message that does not lead the context became user text.
    SystemAsUser,
    /// Reasoning was omitted: the dialect cannot express it, or the provider would refuse it.
    ReasoningLeftOut,
    /// Content that the dialect cannot express was omitted, or a text replaces it.
    BlockLeftOut,
    /// The entry was empty and was omitted.
    DroppedEmpty,
    /// The final check removed the message of the entry.
    Invalid,
}

impl RenderNote {
    /// All kinds of notes, in the order of the warnings.
    const ALL: [Self; 13] = [
        Self::Merged,
        Self::SyntheticResult,
        Self::SyntheticTurn,
        Self::OrphanResult,
        Self::DuplicateResult,
        Self::DuplicateCall,
        Self::RenamedCall,
        Self::ResultAsText,
        Self::SystemAsUser,
        Self::ReasoningLeftOut,
        Self::BlockLeftOut,
        Self::DroppedEmpty,
        Self::Invalid,
    ];

    /// Returns the name in `why` and `warnings`.
    pub(in crate::assembly) const fn name(self) -> &'static str {
        match self {
            Self::Merged => "merged",
            Self::SyntheticResult => "synthetic-result",
            Self::SyntheticTurn => "synthetic-turn",
            Self::OrphanResult => "orphan-result-as-text",
            Self::DuplicateResult => "dropped-duplicate-result",
            Self::DuplicateCall => "dropped-duplicate-call",
            Self::RenamedCall => "renamed-call",
            Self::ResultAsText => "result-as-text",
            Self::SystemAsUser => "system-as-user",
            Self::ReasoningLeftOut => "reasoning-left-out",
            Self::BlockLeftOut => "block-left-out",
            Self::DroppedEmpty => "dropped-empty",
            Self::Invalid => "invalid-context",
        }
    }

    /// Returns the text of the warning; `None`: the note has no warning.
    const fn warning_text(self) -> Option<&'static str> {
        Some(match self {
            Self::Merged | Self::Invalid => return None,
            Self::SyntheticResult => "calls without a result got a placeholder result",
            Self::SyntheticTurn => "a user turn was added where the provider requires one",
            Self::OrphanResult => "results whose call is not in the context became text",
            Self::DuplicateResult => "further results of an answered call were omitted",
            Self::DuplicateCall => "further calls with the id of a kept call were omitted",
            Self::RenamedCall => "calls got an id or a name that the provider accepts",
            Self::ResultAsText => "results without a call id became text",
            Self::SystemAsUser => "system messages that do not lead the context became user text",
            Self::ReasoningLeftOut => {
                "reasoning that the dialect or the provider does not accept was omitted"
            }
            Self::BlockLeftOut => {
                "content that the dialect cannot express was omitted or became text"
            }
            Self::DroppedEmpty => "messages without content were omitted",
        })
    }
}

/// Notes, each with the index of its entry.
#[derive(Clone, Debug, Default)]
pub(in crate::assembly) struct RenderNotes {
    list: Vec<(usize, RenderNote)>,
}

impl RenderNotes {
    pub(in crate::assembly) fn add_note(&mut self, entry: usize, note: RenderNote) {
        self.list.push((entry, note));
    }

    /// Keeps only the notes on entries before an index.
    pub(in crate::assembly) fn retain_before(&mut self, entry: usize) {
        self.list.retain(|(noted, _)| *noted < entry);
    }

    /// Appends notes; `from` is added to the indexes of their entries.
    pub(in crate::assembly) fn extend(&mut self, others: Self, from: usize) {
        self.list.extend(others.list.into_iter().map(|(entry, note)| (entry + from, note)));
    }

    /// Returns whether an entry that `includes` accepts has the note `note`.
    pub(in crate::assembly) fn has_note(
        &self,
        note: RenderNote,
        includes: &dyn Fn(usize) -> bool,
    ) -> bool {
        self.list.iter().any(|(entry, made)| *made == note && includes(*entry))
    }

    /// Lists the entries that `includes` accepts, once for each note `note` on them.
    fn entries_with(&self, note: RenderNote, includes: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let made = self.list.iter().filter(|(entry, made)| *made == note && includes(*entry));
        made.map(|(entry, _)| *entry).collect()
    }

    /// Formats the count of each note on the entries that `includes` accepts, as `name N`.
    pub(in crate::assembly) fn format_counts(&self, includes: &dyn Fn(usize) -> bool) -> String {
        let mut out = String::new();
        for note in RenderNote::ALL {
            let count = self.entries_with(note, includes).len();
            if count > 0 {
                let separator = if out.is_empty() { "" } else { ", " };
                out.push_str(&format!("{separator}{} {count}", note.name()));
            }
        }
        out
    }

    /// Formats one warning for each kind of note that was added and has a warning text. A warning
    /// lists at most [`NAMED_MAX`] seqs, then the number of the others.
    pub(in crate::assembly) fn format_warnings(&self, entries: &[RenderEntry]) -> Vec<String> {
        let mut out = Vec::new();
        for note in RenderNote::ALL {
            let Some(text) = note.warning_text() else { continue };
            let made = self.entries_with(note, &|_| true);
            let mut is_noted = Vec::new();
            is_noted.resize(entries.len(), false);
            for at in made {
                if let Some(slot) = is_noted.get_mut(at) {
                    *slot = true;
                }
            }
            let noted = entries.iter().zip(is_noted).filter(|(_, is_noted)| *is_noted);
            let seqs: Vec<u64> = noted.map(|(entry, _)| entry.seq).collect();
            let mut named = String::new();
            for seq in seqs.iter().take(NAMED_MAX) {
                let separator = if named.is_empty() { "" } else { ", " };
                named.push_str(&format!("{separator}{seq}"));
            }
            match seqs.len() {
                0 => continue,
                1 => out.push(format!("{}: {text} (message {named})", note.name())),
                count => {
                    if let Some(more) = count.checked_sub(NAMED_MAX).filter(|more| *more > 0) {
                        named.push_str(&format!(" and {more} more"));
                    }
                    out.push(format!("{}: {text} (messages {named})", note.name()));
                }
            }
        }
        out
    }
}
