//! A turn: stores the newest messages, then compacts if the component decides so.

use crate::{
    clock::Cancel,
    compaction::CompactReport,
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
        let clock = compact.clock;
        // Options that `evaluate` refuses are refused before anything is stored.
        self.evaluate(conversation, compact.budget, &compact.plan_of_new(), clock.now_ms())?;
        let ingested = self.append_end(conversation, messages, ingest, cancel)?;
        let mut report = TurnReport::new(ingested);
        let mut compact_appended = || -> Result<Option<CompactReport>> {
            let task = options.build_task(conversation);
            let decided: TurnResult = self.drive_passes(&task, clock, cancel, &mut |_| ())?;
            // `deferred` stays set if the compaction fails.
            report.deferred = decided.deferred;
            let task = decided.compact.then(|| compact.build_turn_task(conversation));
            task.map(|task| self.drive_passes(&task, clock, cancel, &mut |_| ())).transpose()
        };
        match compact_appended() {
            Err(error) if error.code == Code::Cancelled => return Err(error.into()),
            ended => report.take_compaction(ended),
        }
        Ok(report)
    }
}
