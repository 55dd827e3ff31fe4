//! A table of the words with which providers name the end of an answer.
//!
//! The rows are those of `docs/model-failures.md` with the evidence `finish`; a test compares them.
//! In: a word. Out: the end of the answer, or a failure.

use crate::types::{CompletionErrorCode as Code, Finish};

/// The meaning of a provider's word for the end of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FinishMeaning {
    /// The answer ended so.
    Ended(Finish),
    /// There is no answer.
    Failed(Code),
}

/// Words in lower case with underscores; any other word means a complete answer. From the API
/// references of `OpenAI`, Anthropic, Gemini, Bedrock, Mistral, Cohere, `DeepSeek`, GLM, watsonx
/// and LM Studio.
const FINISH_TABLE: [(FinishMeaning, &[&str]); 6] = [
    (
        FinishMeaning::Ended(Finish::Length),
        &["length", "max_tokens", "max_output_tokens", "token_limit", "maxpredictedtokensreached"],
    ),
    (
        FinishMeaning::Ended(Finish::Refusal),
        &[
            "refusal",
            "content_filter",
            "content_filtered",
            "guardrail_intervened",
            "safety",
            "recitation",
            "blocklist",
            "prohibited_content",
            "spii",
            "sensitive",
            "error_toxic",
        ],
    ),
    (
        FinishMeaning::Failed(Code::ContextTooLong),
        &["model_context_window_exceeded", "model_length", "error_limit", "contextlengthreached"],
    ),
    (FinishMeaning::Failed(Code::Timeout), &["timeout", "time_limit"]),
    (
        FinishMeaning::Failed(Code::Unavailable),
        &["error", "network_error", "insufficient_system_resource"],
    ),
    (
        FinishMeaning::Failed(Code::Other),
        &[
            "tool_calls",
            "tool_call",
            "tool_use",
            "function_call",
            "pause_turn",
            "malformed_function_call",
            "malformed_tool_use",
            "unexpected_tool_call",
        ],
    ),
];

/// Returns what a word means, in any case; `None`: the provider gave no word.
pub(super) fn read_finish(word: Option<&str>) -> FinishMeaning {
    let word = word.unwrap_or_default().trim().to_ascii_lowercase().replace('-', "_");
    let row = FINISH_TABLE.iter().find(|(_, words)| words.contains(&&*word));
    row.map_or(FinishMeaning::Ended(Finish::Stop), |row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        completion::{error_name, failure_table::tests::list_documented},
        record::finish_name,
    };

    #[test]
    fn the_words_for_ends_are_those_of_the_document() {
        let rows = FINISH_TABLE.iter().map(|(meaning, words)| {
            let meaning = match meaning {
                FinishMeaning::Ended(finish) => finish_name(*finish),
                FinishMeaning::Failed(code) => error_name(*code),
            };
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            ("finish".to_owned(), meaning.to_owned(), words)
        });
        let documented = list_documented().into_iter().filter(|row| row.0 == "finish");
        assert!(rows.eq(documented));
    }

    #[test]
    fn words_of_any_case_and_unknown_words_are_read() {
        for (word, meaning) in [
            ("STOP", FinishMeaning::Ended(Finish::Stop)),
            ("end_turn", FinishMeaning::Ended(Finish::Stop)),
            ("", FinishMeaning::Ended(Finish::Stop)),
            ("a-new-word", FinishMeaning::Ended(Finish::Stop)),
            ("MAX_TOKENS", FinishMeaning::Ended(Finish::Length)),
            ("content-filter", FinishMeaning::Ended(Finish::Refusal)),
            ("contextLengthReached", FinishMeaning::Failed(Code::ContextTooLong)),
        ] {
            assert_eq!(read_finish(Some(word)), meaning, "{word}");
        }
        assert_eq!(read_finish(None), FinishMeaning::Ended(Finish::Stop));
    }
}
