//! A turn: stores the newest messages, then compacts if the component decides so.

use crate::{
    clock::Cancel,
    error::Code,
    ingest::IngestResult,
    lcm::Lcm,
    shapes::TurnResult,
    turn::{TurnOptions, TurnReport},
};

impl Lcm {
    /// Takes one turn: stores the newest messages of the conversation, skips stored ones, and
    /// compacts when compaction is due, now or in [`Lcm::maintain`].
    ///
    /// The messages are stored whatever the model does.
    ///
    /// # Errors
    ///
    /// Errors of [`Lcm::ingest`] and of the component; `cancelled`: stored messages stay.
    pub fn turn(
        &self,
        conversation: &str,
        messages: &[String],
        options: &TurnOptions,
        cancel: &Cancel,
    ) -> IngestResult<TurnReport> {
        let TurnOptions { ingest, compact, .. } = options;
        // Options that `evaluate` refuses are refused before anything is stored.
        let asked = compact.plan_of_new();
        self.evaluate(conversation, compact.budget, &asked, compact.clock.now_ms())?;
        let ingested = self.append_end(conversation, messages, ingest, cancel)?;
        let task = options.build_task(conversation);
        let decision: TurnResult = self.drive(&task, compact.parts(cancel, None))?;
        let deferred = decision.deferred;
        let mut report = TurnReport { ingested, compacted: None, deferred, failure: None };
        if decision.compact {
            match self.compact(conversation, compact, cancel, &mut |_| {}) {
                Ok(compacted) => report.compacted = Some(compacted),
                Err(error) if error.code == Code::CompletionFailed => report.failure = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(report)
    }
}
