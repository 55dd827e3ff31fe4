//! Feature terms: properties of a message that are indexed like words.
//!
//! Input: texts and speaker of a message, and whether the message begins a session, has a large
//! payload, or was indexed only in part. Output: terms of kind `p` (word of the speaker name) and
//! `f` (property). A term takes space only for messages with the property; a column would take
//! space for every message.

use alloc::vec::Vec;

use super::{
    fields::{IndexingBudget, SearchField},
    terms::each_term,
};
use lcm_text::{base::json, message::trust::BACKGROUND_LINE, types::api::Timestamp};

/// Kind of a term that is a word of the speaker name.
pub(super) const SPEAKER: u8 = b'p';
/// Terms of four properties, in this order:
///
/// 1. The message begins a session.
/// 2. Its text has a question mark.
/// 3. Its text ends with a question mark.
/// 4. The message calls a tool of this engine, or has an answer of such a tool.
pub(super) const FEATURES: [&[u8]; 4] = [b"f/", b"f?", b"f.", b"f!"];
/// The message has a large payload. Only a search in files uses this term.
pub(super) const PAYLOAD: &[u8] = b"f@";
/// Term for: the message was indexed only in part. Used for the note `partly-read` when a query
/// finds nothing.
pub(super) const PARTIAL: &[u8] = b"f~";

/// Longest pause between two messages of one session, in milliseconds: half an hour.
const SESSION_GAP_MS: u64 = 30 * 60 * 1_000;

/// Beginning of the names of this engine's tools, and of their answers to mistakes.
const ENGINE_TOOL: &str = "lcm_";
/// Separator of the name of a server and a tool's name, which some clients write before the name.
const SERVER_SEPARATOR: &str = "__";
/// Bytes of a result that are searched for the first line of an answer. In JSON, members and the
/// type of a block precede the text.
const ANSWER_START_BYTES: usize = 256;

/// Returns whether a message begins a session. `before`: time of the previous message; `None`: the
/// message is the first, so it begins a session. An undated message behind another begins none, a
/// dated one behind an undated one does.
pub(super) fn begins_session(before: Option<Timestamp>, time: Timestamp) -> bool {
    before.is_none_or(|before| time.saturating_sub(before) > SESSION_GAP_MS)
}

/// Features of one message, collected from its texts.
#[derive(Debug, Default)]
pub(super) struct FeatureTerms {
    begins_session: bool,
    has_payload: bool,
    is_partial: bool,
    has_question: bool,
    ends_with_question: bool,
    uses_engine_tool: bool,
}

impl FeatureTerms {
    /// Creates the features of a message before its first text is observed.
    pub(super) fn new(begins_session: bool, has_payload: bool) -> Self {
        Self { begins_session, has_payload, ..Self::default() }
    }

    /// Records whether the message was indexed only in part.
    pub(super) const fn observe_budget(&mut self, budget: &IndexingBudget) {
        self.is_partial = budget.is_exceeded;
    }

    /// Observes the next text of the message. A `Text` is examined for question marks, a tool name
    /// or a result for tools of this engine. Texts of other fields have no features.
    pub(super) fn observe_text(&mut self, field: SearchField, text: &str) {
        match field {
            SearchField::Text => {
                let question_marks = ['?', '\u{ff1f}', '\u{61f}'];
                self.has_question |= text.contains(question_marks);
                self.ends_with_question = text.trim_end().ends_with(question_marks);
            }
            SearchField::ToolName => {
                let name = text.rsplit(SERVER_SEPARATOR).next().unwrap_or(text);
                self.uses_engine_tool |= name.starts_with(ENGINE_TOOL);
            }
            SearchField::Result => self.uses_engine_tool |= is_engine_answer(text),
            _ => {}
        }
    }

    /// Calls `each` with every feature term of the message, and with a term for each distinct word
    /// of the member `speaker` of `raw`.
    pub(super) fn each_feature(&self, raw: &str, each: &mut dyn FnMut(&[u8])) {
        if self.has_payload {
            each(PAYLOAD);
        }
        if self.is_partial {
            each(PARTIAL);
        }
        let has = [
            self.begins_session,
            self.has_question,
            self.ends_with_question,
            self.uses_engine_tool,
        ];
        FEATURES
            .iter()
            .zip(has)
            .filter(|(_, is_set)| *is_set)
            .for_each(|(feature, _)| each(feature));
        if !raw.contains("\"speaker\"") {
            return;
        }
        let Ok(members) = json::parse_object(raw) else { return };
        let Some(member) = json::find_member(&members, raw, "speaker") else { return };
        each_speaker_term(&json::text(raw, member.value), each);
    }
}

/// Returns whether a result is an answer of a tool of this engine. Most providers do not repeat the
/// name of the tool in the result.
fn is_engine_answer(result: &str) -> bool {
    let start = result.get(..result.floor_char_boundary(ANSWER_START_BYTES)).unwrap_or(result);
    start.starts_with(ENGINE_TOOL) || start.contains(BACKGROUND_LINE)
}

/// Passes a term for each distinct word of a speaker name to a callback.
pub(super) fn each_speaker_term(name: &str, each: &mut dyn FnMut(&[u8])) {
    let mut known: Vec<Vec<u8>> = Vec::new();
    each_term(SearchField::Text, name, &mut |term, _, _| {
        if let [b'w', word @ ..] = term {
            let term = [&[SPEAKER], word].concat();
            if !known.contains(&term) {
                each(&term);
                known.push(term);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn a_session_begins_after_half_an_hour_of_silence() {
        assert!(begins_session(None, 0));
        assert!(!begins_session(Some(5), 5 + SESSION_GAP_MS));
        assert!(begins_session(Some(5), 6 + SESSION_GAP_MS));
        assert!(!begins_session(Some(9), 3));
    }

    #[test]
    fn speaker_and_question_marks_are_signs() {
        let of = |raw: &str, texts: &[(SearchField, &str)], begins| {
            let mut features = FeatureTerms::new(begins, raw.is_empty());
            texts.iter().for_each(|(field, text)| features.observe_text(*field, text));
            let mut out = Vec::new();
            features.each_feature(raw, &mut |term| {
                out.push(String::from_utf8_lossy(term).into_owned());
            });
            out
        };
        let raw = r#"{"role":"user","speaker":"Ann-Mary Ann","content":"x"}"#;
        assert_eq!(of(raw, &[(SearchField::Text, "why? so")], true), ["f/", "f?", "pann", "pmary"]);
        assert_eq!(of("", &[], true), ["f@", "f/"]);
        assert_eq!(
            of("{}", &[(SearchField::Text, "so"), (SearchField::Text, "why? ")], false),
            ["f?", "f."]
        );
        assert_eq!(of("{}", &[(SearchField::Result, "why?")], false), Vec::<String>::new());
        let answer =
            alloc::format!("[{{\"type\":\"text\",\"text\":\"{BACKGROUND_LINE}\\nMatches: 0\"}}]");
        for (field, text) in [
            (SearchField::ToolName, "lcm_grep"),
            (SearchField::ToolName, "mcp__history__lcm_describe"),
            (SearchField::Result, "lcm_grep: `pattern` must be a string"),
            (SearchField::Result, &answer),
        ] {
            assert_eq!(of("{}", &[(field, text)], false), ["f!"], "{text}");
        }
        let later = alloc::format!("{}{BACKGROUND_LINE}", "x".repeat(300));
        for (field, text) in [
            (SearchField::ToolName, "calm_grep"),
            (SearchField::Text, "lcm_grep"),
            (SearchField::Result, &later),
        ] {
            assert_eq!(of("{}", &[(field, text)], false), Vec::<String>::new(), "{text}");
        }
        let other = r#"{"role":"user","content":"\"speaker\""}"#;
        assert_eq!(of(other, &[], false), Vec::<String>::new());
    }
}
