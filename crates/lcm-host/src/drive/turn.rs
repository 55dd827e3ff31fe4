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
        // Options that `evaluate` refuses are refused before anything is stored.
        let (asked, now) = (compact.plan_of_new(), compact.clock.now_ms());
        self.evaluate(conversation, compact.budget, &asked, now)?;
        let mut report =
            TurnReport::new(self.append_end(conversation, messages, ingest, cancel)?);
        match self.compact_appended(conversation, options, cancel, &mut report.deferred) {
            Err(error) if error.code == Code::Cancelled => return Err(error.into()),
            ended => report.take_compaction(ended),
        }
        Ok(report)
    }

    /// Compacts after the append of a turn if the component decides so; sets `deferred`.
    fn compact_appended(
        &self,
        conversation: &str,
        options: &TurnOptions,
        cancel: &Cancel,
        deferred: &mut bool,
    ) -> Result<Option<CompactReport>> {
        let clock = options.compact.clock;
        let task = options.build_task(conversation);
        let decided: TurnResult = self.drive_passes(&task, clock, cancel, &mut |_| ())?;
        *deferred = decided.deferred;
        if !decided.compact {
            return Ok(None);
        }
        let task = options.compact.build_turn_task(conversation);
        self.drive_passes(&task, clock, cancel, &mut |_| ()).map(Some)
    }
}
