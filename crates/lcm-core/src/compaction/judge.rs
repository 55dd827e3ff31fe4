//! What an answer is worth, from facts in the task and its sources alone.

use alloc::string::String;

use crate::{
    extract, limits,
    model::{Completion, Finish, Level},
    source, tokens,
};

use super::task::Task;

/// What follows from an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// It becomes the summary.
    Accept { text: String, capped: bool },
    /// It is rejected; the model is asked again at this level.
    Retry(Level),
    /// It is rejected; the summary is made without the model.
    Fallback,
}

/// The answer as it would be stored: reasoning stripped, cut to its cap.
pub(crate) fn settle_text(task: &Task, completion: &Completion) -> (String, bool) {
    let text = source::strip_reasoning(&completion.text);
    let tokens = tokens::estimate(&text);
    if tokens > task.tokens_cap {
        return (extract::cap(&text, task.tokens_cap, tokens), true);
    }
    (text, false)
}

/// Judges an answer (architecture, rules 4 and 5).
pub(crate) fn judge(task: &Task, completion: &Completion, source_tokens: u64) -> Verdict {
    let stripped = source::strip_reasoning(&completion.text);
    if completion.finish == Finish::Refusal || stripped.trim().is_empty() {
        return Verdict::Fallback;
    }
    let too_large = u64::from(tokens::estimate(&stripped)) >= source_tokens;
    let last = task.attempt >= limits::ATTEMPTS_MAX;
    match task.level {
        Level::Normal if too_large || completion.finish == Finish::Length => {
            if last {
                Verdict::Fallback
            } else {
                Verdict::Retry(Level::Aggressive)
            }
        }
        Level::Aggressive | Level::Fallback if too_large => Verdict::Fallback,
        _ => {
            let (text, capped) = settle_text(task, completion);
            // A cap that leaves nothing of an answer makes it no answer.
            if text.trim().is_empty() {
                return Verdict::Fallback;
            }
            Verdict::Accept { text, capped }
        }
    }
}
