//! What an answer is worth, from facts in the task and its sources alone.

use alloc::{string::String, vec::Vec};

use crate::storage::summary::{OFFLINE_MODEL, StoredFinish, StoredLevel};
use lcm_text::{
    base::{limits, tokens},
    summary::{offline_summary, transcript, verify},
    types::model::{Completion, Finish, Level},
};

use super::{source_text::GatheredSources, task::SummaryTask};

/// What follows from an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum CompletionVerdict {
    /// It becomes the summary.
    Accept(AcceptedText),
    /// It is rejected; the model is asked again at this level and told what was found, one finding
    /// a line; empty: nothing was, it was too large.
    Retry { rule: RejectionRule, level: Level, findings: String },
    /// It is rejected; the summary is made without the model.
    Fallback { rule: RejectionRule },
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
    /// The warning of an outcome. The same for every answer, so that a host shows it once.
    pub(crate) const fn warning_text(self) -> &'static str {
        match self {
            Self::Refusal => "answer-rejected: refusal: the model refused to summarise",
            Self::Blank => "answer-rejected: blank: nothing is left of it without its reasoning",
            Self::TooLarge => "answer-rejected: too-large: not smaller than what it summarises",
            Self::CutOff => "answer-rejected: cut-off: it ended at its limit of tokens",
            Self::Findings => {
                "answer-rejected: findings: names or numbers that its sources do not have, or a \
                 failure left out or told as a success"
            }
        }
    }
}

/// The text of an answer that becomes the summary.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct AcceptedText {
    text: String,
    /// Whether it was cut to the cap.
    capped: bool,
    /// What the verifier found in it.
    findings: Vec<String>,
}

impl AcceptedText {
    /// The text with who wrote it, and how that ended.
    pub(crate) fn into_answer(
        self,
        level: StoredLevel,
        completion: &Completion,
    ) -> SettledAnswer<'_> {
        let Self { text, capped, findings } = self;
        let finish = Some(StoredFinish::from(completion.finish));
        SettledAnswer { text, capped, findings, level, model: &completion.model, finish }
    }
}

/// A text that becomes a summary.
pub(crate) struct SettledAnswer<'a> {
    pub(crate) text: String,
    pub(crate) capped: bool,
    pub(crate) findings: Vec<String>,
    pub(crate) level: StoredLevel,
    pub(crate) model: &'a str,
    /// How the answer that was judged last ended; `None`: there was none.
    pub(crate) finish: Option<StoredFinish>,
}

/// The answer as it would be stored: reasoning stripped, cut to its cap.
pub(crate) fn clean_answer(task: &SummaryTask, completion: &Completion) -> (String, bool) {
    let text = transcript::strip_reasoning(&completion.text);
    let tokens = tokens::estimate(&text);
    if tokens > task.tokens_cap {
        return (offline_summary::cap_summary(&text, task.tokens_cap, tokens), true);
    }
    (text, false)
}

/// Decides whether an answer becomes a summary, is asked for again, or is replaced by a fallback.
pub(crate) fn judge_completion(
    task: &SummaryTask,
    completion: &Completion,
    gathered: &GatheredSources,
) -> CompletionVerdict {
    let stripped = transcript::strip_reasoning(&completion.text);
    if completion.finish == Finish::Refusal {
        return CompletionVerdict::Fallback { rule: RejectionRule::Refusal };
    }
    if stripped.trim().is_empty() {
        return CompletionVerdict::Fallback { rule: RejectionRule::Blank };
    }
    let too_large = u64::from(tokens::estimate(&stripped)) >= gathered.tokens;
    match task.level {
        Level::Normal if too_large || completion.finish == Finish::Length => {
            let rule = if too_large { RejectionRule::TooLarge } else { RejectionRule::CutOff };
            retry_or_fall_back(task, rule, Level::Aggressive, String::new())
        }
        Level::Aggressive | Level::Fallback if too_large => {
            CompletionVerdict::Fallback { rule: RejectionRule::TooLarge }
        }
        _ => judge_findings(task, completion, gathered),
    }
}

/// Judges the text that would be stored by what the verifier finds in it.
fn judge_findings(
    task: &SummaryTask,
    completion: &Completion,
    gathered: &GatheredSources,
) -> CompletionVerdict {
    let (text, capped) = clean_answer(task, completion);
    // A cap that leaves nothing of an answer makes it no answer.
    if text.trim().is_empty() {
        return CompletionVerdict::Fallback { rule: RejectionRule::Blank };
    }
    let findings = verify::format_findings(&verify::verify(&gathered.text, &text));
    // The offline summariser would say the same again.
    if findings.is_empty() || completion.model == OFFLINE_MODEL {
        return CompletionVerdict::Accept(AcceptedText { text, capped, findings });
    }
    // A second attempt at the normal level can only be one that followed findings.
    let level = if task.attempt == 1 { task.level } else { Level::Aggressive };
    retry_or_fall_back(task, RejectionRule::Findings, level, findings.join("\n"))
}

/// Asks again, unless that was the last time.
fn retry_or_fall_back(
    task: &SummaryTask,
    rule: RejectionRule,
    level: Level,
    findings: String,
) -> CompletionVerdict {
    if task.attempt >= limits::ATTEMPTS_MAX {
        return CompletionVerdict::Fallback { rule };
    }
    CompletionVerdict::Retry { rule, level, findings }
}
