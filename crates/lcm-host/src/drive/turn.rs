//! A turn: stores the newest messages, then compacts if the component decides so.

use crate::{
    clock::Cancel,
    compaction::{CompactOptions, CompactReport},
    error::{Code, Result},
    ingest::IngestResult,
    lcm::Lcm,
    shapes::TurnResult,
    turn::{TurnOptions, TurnReport},
};

impl Lcm {
    /// Carries out [`Lcm::turn`].
    pub(crate) fn take_turn(
        &self,
        conversation: &str,
        messages: &[String],
        options: &TurnOptions,
        cancel: &Cancel,
    ) -> IngestResult<TurnReport> {
        let TurnOptions { ingest, compact, .. } = options;
        // Options that `evaluate` refuses are refused before anything is stored.
        self.evaluate(conversation, compact.budget, &compact.plan(), compact.clock.now_ms())?;
        let ingested = self.append_end(conversation, messages, ingest, cancel)?;
        let task = options.build_task(conversation);
        let decision: TurnResult = self.drive(&task, compact.parts(cancel, None))?;
        let deferred = decision.deferred;
        let mut report = TurnReport { ingested, compacted: None, deferred, failure: None };
        if decision.compact {
            match self.compact_turn(conversation, compact, cancel) {
                Ok(compacted) => report.compacted = Some(compacted),
                Err(error) if error.code == Code::CompletionFailed => report.failure = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(report)
    }

    /// Compacts as a part of a turn, which respects the pause after a failed model.
    fn compact_turn(
        &self,
        conversation: &str,
        options: &CompactOptions,
        cancel: &Cancel,
    ) -> Result<CompactReport> {
        let mut task = options.build_task("compact", conversation);
        task["turn"] = true.into();
        Ok(self.drive(&task, options.parts(cancel, None))?)
    }
}
