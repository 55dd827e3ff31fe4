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
        let (asked, now) = (compact.plan_of_new(), compact.clock.now_ms());
        self.evaluate(conversation, compact.budget, &asked, now)?;
        let ingested = self.append_end(conversation, messages, ingest, cancel)?;
        let (task, parts) = (options.build_task(conversation), compact.parts(cancel, None));
        let mut report = TurnReport::new(ingested);
        let decided: Result<TurnResult> = self.drive(&task, parts).map_err(Into::into);
        let compacted = decided.and_then(|turn| {
            report.deferred = turn.deferred;
            let compacted = || self.compact_turn(conversation, compact, cancel);
            turn.compact.then(compacted).transpose()
        });
        match compacted {
            Err(error) if error.code == Code::Cancelled => return Err(error.into()),
            ended => report.take_compaction(ended),
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
        let task = options.build_turn_task(conversation);
        Ok(self.drive(&task, options.parts(cancel, None))?)
    }
}
