//! Acceptance: decides whether an answer becomes a summary.
//!
//! In: a task, its gathered sources and an answer; the verdict depends on nothing else. Out: a
//! verdict to accept, to ask again or to make a fallback. `apply` and `run` use this module.

use alloc::{string::String, vec::Vec};

use crate::storage::summary::{OFFLINE_MODEL, StoredFinish, StoredLevel};
use lcm_text::{
    base::{limits, tokens},
    summary::{blank_answer, offline_summary, prompts, transcript, verify},
    types::model::{Completion, CompletionRequest, Finish, Level, Purpose},
};

use super::{
    source_text::{GatheredSources, SettledAnswer},
    task::SummaryTask,
};

/// The verdict on an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum CompletionVerdict {
    /// The answer becomes the summary.
    Accept(AcceptedText),
    /// The answer is rejected, and the model gets another request at `level`. `findings` lists the
    /// verifier's findings in the rejected answer, one per line; the next request shows them to the
    /// model. `findings` is empty if a rule other than [`RejectionRule::Findings`] rejected the
    /// answer.
    Retry { rule: RejectionRule, level: Level, findings: String },
    /// The answer is rejected, and the model is not asked again; `findings` as in [`Self::Retry`].
    /// The caller then makes a fallback, except for a remake, which gets no fallback.
    Fallback { rule: RejectionRule, findings: String },
}

impl CompletionVerdict {
    /// Returns the fallback after a rejection by a rule without findings.
    const fn new_fallback(rule: RejectionRule) -> Self {
        Self::Fallback { rule, findings: String::new() }
    }
}

/// Why an answer is rejected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RejectionRule {
    Refusal,
    Blank,
    TooLarge,
    CutOff,
    Findings,
}

impl RejectionRule {
    /// Returns the name of the rule.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Refusal => "refusal",
            Self::Blank => "blank",
            Self::TooLarge => "too-large",
            Self::CutOff => "cut-off",
            Self::Findings => "findings",
        }
    }

    /// Returns the warning about the rejection. The text depends only on the rule, so a host can
    /// show each warning once.
    pub(crate) const fn warning_text(self) -> &'static str {
        match self {
            Self::Refusal => "answer-rejected: refusal: the model refused to summarise",
            Self::Blank => "answer-rejected: blank: the answer says nothing about the material",
            Self::TooLarge => {
                "answer-rejected: too-large: the answer is not smaller than its sources"
            }
            Self::CutOff => "answer-rejected: cut-off: the answer ended at its token limit",
            Self::Findings => {
                "answer-rejected: findings: the answer has names or numbers that its sources do \
                 not have, or drops a failure or reports it as a success"
            }
        }
    }
}

/// The text of an answer that becomes the summary.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct AcceptedText {
    text: String,
    /// Whether the text was cut to the cap.
    capped: bool,
    /// Findings of the verifier in the text; empty unless the offline summariser made the text.
    findings: Vec<String>,
}

impl AcceptedText {
    /// Returns the answer to store: this text, with `level` and the model and finish of the
    /// completion. `is_provisional`: whether the text is provisional.
    pub(crate) fn into_answer(
        self,
        level: StoredLevel,
        completion: &Completion,
        is_provisional: bool,
    ) -> SettledAnswer<'_> {
        let Self { text, capped, findings } = self;
        let finish = Some(StoredFinish::from(completion.finish));
        let model = &completion.model;
        SettledAnswer { text, capped, findings, level, model, finish, is_provisional }
    }
}

/// The text of an answer in the form that a summary would store.
pub(crate) struct CleanedAnswer {
    pub(crate) text: String,
    /// Whether the text was cut to the cap.
    pub(crate) capped: bool,
}

/// Strips the reasoning from an answer, and what a model wrote around its answer. Frames the lines
/// of a model's answer, so that no line is read as a header or note of the engine. The lines of the
/// offline summariser are not framed, because the engine itself wrote their headers.
fn read_answer(completion: &Completion) -> String {
    let text = transcript::strip_reasoning(&completion.text);
    match &*completion.model {
        OFFLINE_MODEL => text,
        _ => transcript::frame_answer(transcript::unwrap_answer(&text)),
    }
}

/// Strips the reasoning from an answer, frames a model's lines, and cuts the text to the cap of the
/// task.
pub(crate) fn clean_answer(task: &SummaryTask, completion: &Completion) -> CleanedAnswer {
    let text = read_answer(completion);
    let tokens = tokens::estimate(&text);
    if tokens > task.tokens_cap {
        let text = offline_summary::cap_summary(&text, task.tokens_cap, tokens);
        return CleanedAnswer { text, capped: true };
    }
    CleanedAnswer { text, capped: false }
}

/// Decides whether an answer becomes a summary, leads to another request, or to a fallback.
///
/// A blank that ended at its token limit is asked for again, with more room. A cut-off answer is
/// rejected at the normal level only. At a later level its beginning is judged
/// like a complete answer.
pub(crate) fn judge_completion(
    task: &SummaryTask,
    completion: &Completion,
    gathered: &GatheredSources,
) -> CompletionVerdict {
    let stripped = read_answer(completion);
    if completion.finish == Finish::Refusal {
        return CompletionVerdict::new_fallback(RejectionRule::Refusal);
    }
    let instructions = [prompts::SYSTEM_TEXT, task.prompt_template().built_in_text()];
    // The offline summariser may return one line of short material, which is a sound summary.
    let is_model = completion.model != OFFLINE_MODEL;
    if stripped.trim().is_empty()
        || (is_model && blank_answer::says_nothing(&stripped, &instructions, &gathered.text))
    {
        let rule = RejectionRule::Blank;
        // A model that reasons may reach the limit before its answer begins.
        return match completion.finish {
            Finish::Length => retry_or_fall_back(task, rule, task.level, String::new()),
            _ => CompletionVerdict::new_fallback(rule),
        };
    }
    let too_large = u64::from(tokens::estimate(&stripped)) >= gathered.tokens;
    match task.level {
        Level::Normal if too_large || completion.finish == Finish::Length => {
            let rule = if too_large { RejectionRule::TooLarge } else { RejectionRule::CutOff };
            retry_or_fall_back(task, rule, Level::Aggressive, String::new())
        }
        Level::Aggressive | Level::Fallback if too_large => {
            CompletionVerdict::new_fallback(RejectionRule::TooLarge)
        }
        _ => judge_findings(task, completion, gathered),
    }
}

/// Returns why another model should be asked for a summary: `blank` or `cut-off`. `None`: the
/// answer has neither fault, the model refused, the offline summariser answered, or the request
/// does not ask for a summary.
pub(crate) fn find_answer_fault(
    request: &CompletionRequest,
    completion: &Completion,
) -> Option<&'static str> {
    let is_summary = matches!(request.purpose, Purpose::Leaf | Purpose::Condensed);
    if !is_summary || completion.model == OFFLINE_MODEL || completion.finish == Finish::Refusal {
        return None;
    }
    let stripped = transcript::strip_reasoning(&completion.text);
    let (instruction, material) = prompts::split_instruction(&request.prompt);
    let instructions = [request.system.as_str(), instruction];
    let answer = transcript::unwrap_answer(&stripped);
    if blank_answer::says_nothing(answer, &instructions, material) {
        return Some("blank");
    }
    let is_cut = completion.finish == Finish::Length && request.level == Level::Normal;
    is_cut.then_some("cut-off")
}

/// Accepts the text that would be stored if the verifier has no findings, or if the offline
/// summariser made the text; else rejects the answer.
fn judge_findings(
    task: &SummaryTask,
    completion: &Completion,
    gathered: &GatheredSources,
) -> CompletionVerdict {
    let CleanedAnswer { text, capped } = clean_answer(task, completion);
    // The cap may leave nothing of an answer.
    if text.trim().is_empty() {
        return CompletionVerdict::new_fallback(RejectionRule::Blank);
    }
    let findings = verify::format_findings(&verify::verify(&gathered.text, &text));
    // The offline summariser would return the same text again.
    if findings.is_empty() || completion.model == OFFLINE_MODEL {
        return CompletionVerdict::Accept(AcceptedText { text, capped, findings });
    }
    // Findings allow a second attempt at the level of the first; later attempts are aggressive.
    let level = if task.attempt == 1 { task.level } else { Level::Aggressive };
    retry_or_fall_back(task, RejectionRule::Findings, level, findings.join("\n"))
}

/// Returns another attempt, or a fallback after the last attempt.
fn retry_or_fall_back(
    task: &SummaryTask,
    rule: RejectionRule,
    level: Level,
    findings: String,
) -> CompletionVerdict {
    if task.attempt >= limits::ATTEMPTS_MAX {
        return CompletionVerdict::Fallback { rule, findings };
    }
    CompletionVerdict::Retry { rule, level, findings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lcm_text::summary::prompts::{Prompt, PromptInput};

    const MATERIAL: &str = "[2026-11-25 10:00 user]\nPlease move the parser into its own crate \
                            today.\n[2026-11-25 10:01 assistant]\nI moved it, and every test passes \
                            again.\n[2026-11-25 10:02 user]\nThen publish the crate, and write a \
                            changelog entry about it for the next release, please.";

    /// Goal: an answer that repeats an instruction is blank, wherever the instruction is in the
    /// request. Method: answers with each line of a built prompt.
    #[test]
    fn each_line_of_a_request_is_a_blank_answer() {
        let Prompt { system, prompt } = prompts::build(&PromptInput {
            purpose: Purpose::Leaf,
            depth: 0,
            level: Level::Normal,
            tokens_target: 40,
            task: None,
            source: MATERIAL,
            source_tokens: 60,
            previous: None,
            instructions: "",
            findings: None,
        });
        let request = CompletionRequest {
            id: "task".into(),
            purpose: Purpose::Leaf,
            level: Level::Normal,
            system: system.clone(),
            prompt: prompt.clone(),
            input_tokens: 1,
            output_tokens_max: 1,
            temperature_permille: 0,
            model: None,
        };
        let judge = |text: &str, finish| {
            let model = "m".into();
            let completion =
                Completion { text: text.into(), finish, model, input_tokens: 0, output_tokens: 0 };
            find_answer_fault(&request, &completion)
        };
        let (before, _) = prompt.split_once("<source>").unwrap();
        let is_long = |line: &&str| line.split(' ').count() > 5;
        for line in system.lines().chain(before.lines()).filter(is_long) {
            assert_eq!(judge(line, Finish::Stop), Some("blank"), "{line}");
        }
        assert_eq!(judge("I moved it, and every test passes again.", Finish::Stop), Some("blank"));
        let said = "The parser is its own crate; publish it with a changelog entry.";
        assert_eq!(judge(said, Finish::Stop), None);
        assert_eq!(judge(said, Finish::Length), Some("cut-off"));
    }
}
