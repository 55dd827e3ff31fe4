//! Apply: judges one answer and settles its task in at most one commit.
//!
//! In: a request id, which is the token of a task, and the answer of a model. Out: the outcome. The
//! engine calls [`apply`] for the export `compaction.apply`.
//!
//! The task names the sources, which must still be in the context unchanged. Only an answer to the
//! current attempt is judged. The verdict depends only on the task, the answer and the stored
//! sources without injected text; the configuration defines injected text. The outcome after a
//! rejected answer or a failure of the model also depends on [`ApplyOptions`], the spend limits,
//! the breaker, the prompt overrides and the clock.

use crate::storage::{call::Call, store_session::StoreSession, summary::StoredLevel};
use lcm_text::{
    base::error::Result,
    types::{
        api::{ApplyOptions, ApplyOutcome, ApplyStatus},
        model::{Completion, CompletionResult},
    },
};

use super::{acceptance, extra::CompactionExtra, settlement::TaskSettlement, task::SummaryTask};

/// Settles the answer to a request: commits a summary, records a rejected answer or a failure of
/// the model, or finds that the answer came too late.
///
/// # Errors
///
/// `invalid-input`: `request_id` is not the token of a task, or wrong further options; `not-found`:
/// no such conversation; `denied`: the conversation is archived, and the request is no remake;
/// `conflict`: another call committed first; `limit-exceeded`: the context or the search index
/// would have too many parts; errors of the store.
pub(crate) fn apply(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    request_id: &str,
    answer: &CompletionResult,
    options: &ApplyOptions,
) -> Result<ApplyOutcome> {
    let task = SummaryTask::parse(request_id)?;
    let CompactionExtra { model, is_stand_in, .. } =
        CompactionExtra::read(call, options.extra_json.as_deref())?;
    let expected = match answer {
        CompletionResult::Done(completion) => Some(compute_summary_id(&task, completion)),
        CompletionResult::Failed(_) => None,
    };
    let mut settlement = TaskSettlement::open(session, call, task, expected)?;
    settlement.is_stand_in = is_stand_in;
    // The summary may be stored although it left the context: when a later list takes another way,
    // the sources can be raw again. Then the answer is settled once more.
    if let Some((id, record)) = settlement.committed_summary()
        && settlement.locate_sources(session)?.is_none()
    {
        let mut outcome = settlement.build_outcome(ApplyStatus::Committed, "", Some(*id));
        outcome.capped = record.capped;
        outcome.level = record.shown_level().into();
        outcome.provisional = record.is_provisional();
        return Ok(outcome);
    }
    let mut fallback_over = options.fallback_over_tokens;
    if let (CompletionResult::Failed(_), Some(tokens), Some(model)) =
        (answer, &mut fallback_over, &model)
        && let Some(calibration) = model.read_calibration(session)?
    {
        *tokens = calibration.to_estimated_floor(*tokens);
    }
    let in_context = settlement.tokens() + settlement.loaded.head.system_tokens();
    let is_over = fallback_over.is_some_and(|over| in_context > u64::from(over));
    let completion = match answer {
        CompletionResult::Done(completion) => Some(completion),
        CompletionResult::Failed(failure) => {
            let is_refused = settlement.task.is_refused_by(failure.code);
            settlement.failure = Some(failure.code);
            // A provisional summary stays as it is while the model fails.
            let falls_back = is_over && settlement.task.replaced_id().is_none();
            if !is_refused && !falls_back {
                // The commit of an earlier equal call may have shrunk the context below the bound.
                if options.fallback_over_tokens.is_some()
                    && settlement.locate_sources(session)?.is_none()
                    && let Some(outcome) = settlement.find_committed_fallback(session)?
                {
                    return Ok(outcome);
                }
                return settlement.record_model_failure(session, failure.code);
            }
            None
        }
    };
    settlement.settle_answer(session, completion)
}

/// Computes the id that the summary has if the answer is accepted.
fn compute_summary_id(task: &SummaryTask, completion: &Completion) -> [u8; 8] {
    let text = acceptance::clean_answer(task, completion).text;
    task.identify_summary(StoredLevel::from(task.level)).compute_id(&text)
}
