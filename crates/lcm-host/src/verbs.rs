//! The verbs that are tasks of several calls: intake, compaction, turns and deletion.

use serde_json::json;

use crate::{
    clock::{Cancel, Clock},
    compaction::{CompactOptions, CompactReport, Pass},
    drive::Parts,
    error::Result,
    ingest::{IngestOptions, IngestReport, IngestResult},
    lcm::Lcm,
    shapes::DeletionResult,
    turn::MaintainReport,
};

impl CompactOptions {
    pub(crate) fn parts<'a>(
        &self,
        cancel: &'a Cancel,
        on_pass: Option<&'a mut dyn FnMut(&Pass)>,
    ) -> Parts<'a> {
        Parts { clock: self.clock, cancel, messages: &[], on_messages: None, on_pass }
    }
}

impl Lcm {
    /// Stores the missing messages of a transcript of any length. The component reads every message
    /// before it stores the first. `progress` receives the number of finished messages.
    ///
    /// # Errors
    ///
    /// - `invalid-input`, with an index: the message is not valid; nothing was stored.
    /// - `cancelled`: stored messages stay, and the next ingest continues after them.
    /// - `exists`: the transcript changes stored messages, or with `refuse_replay` looks like a
    ///   replay; nothing was stored.
    /// - errors of the component.
    pub fn ingest(
        &self,
        conversation: &str,
        messages: &[String],
        options: &IngestOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(usize),
    ) -> IngestResult<IngestReport> {
        let (clock, on_messages) = (options.clock, &mut |finished| progress(finished));
        let parts =
            Parts { clock, cancel, messages, on_messages: Some(on_messages), on_pass: None };
        self.drive(&options.build_task(options.task_name(), conversation, messages), parts)
    }

    /// Stores the newest messages of a conversation. Messages that fit one call and follow the
    /// stored ones are appended without a comparison of the whole transcript.
    pub(crate) fn append_end(
        &self,
        conversation: &str,
        messages: &[String],
        options: &IngestOptions,
        cancel: &Cancel,
    ) -> IngestResult<IngestReport> {
        let clock = options.clock;
        let parts = Parts { clock, cancel, messages, on_messages: None, on_pass: None };
        self.drive(&options.build_task("append", conversation, messages), parts)
    }

    /// Compacts until nothing is due or the component stops for another reason, which the report
    /// names. Other calls run while a model works. `progress` receives each summary.
    ///
    /// # Errors
    ///
    /// - `completion-failed`: the model refused the key or the content; that request changed
    ///   nothing.
    /// - `cancelled`: stored summaries stay.
    /// - errors of the component.
    pub fn compact(
        &self,
        conversation: &str,
        options: &CompactOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Pass),
    ) -> Result<CompactReport> {
        let task = options.build_task("compact", conversation);
        Ok(self.drive(&task, options.parts(cancel, Some(&mut |pass| progress(pass))))?)
    }

    /// Does deferred compaction when it is due: after a turn, when nobody waits. The component
    /// measures again, records how the compaction ends, and pauses after failures.
    ///
    /// # Errors
    ///
    /// - `cancelled`: stored summaries stay, and the component tries again after a pause.
    /// - errors of [`Lcm::compact`], but a refusal of the model is `failure` of the report.
    pub fn maintain(
        &self,
        conversation: &str,
        options: &CompactOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Pass),
    ) -> Result<MaintainReport> {
        let task = options.build_task("maintain", conversation);
        Ok(self.drive(&task, options.parts(cancel, Some(&mut |pass| progress(pass))))?)
    }

    /// Makes provisional summaries again: `summary_ids`, or with `None` all, also those that the
    /// model was asked for again in vain. Mode, target and observed tokens of the options have no
    /// effect.
    ///
    /// # Errors
    ///
    /// - `not-found`: there is no such summary.
    /// - `invalid-input`: a summary is not provisional, or was made again.
    /// - errors of [`Lcm::compact`].
    pub fn resummarize(
        &self,
        conversation: &str,
        summary_ids: Option<&[String]>,
        options: &CompactOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Pass),
    ) -> Result<CompactReport> {
        let mut task = options.build_task("resummarize", conversation);
        if let Some(members) = task.as_object_mut() {
            members
                .retain(|name, _| !["mode", "target", "observed_tokens"].contains(&name.as_str()));
            members.insert("summary_ids".to_owned(), summary_ids.into());
        }
        Ok(self.drive(&task, options.parts(cancel, Some(&mut |pass| progress(pass))))?)
    }

    /// Deletes the conversation with all its records, and what other conversations have of it:
    /// grants that cover it, questions and answers with evidence from it. Then the id is free.
    ///
    /// A deletion that a crash or `cancel` interrupted goes on with the next call of any caller.
    /// Until then every other call on the id is refused with `denied`.
    ///
    /// # Errors
    ///
    /// - `not-found`: the conversation does not exist.
    /// - `cancelled`: deleted records stay deleted.
    /// - errors of the component.
    pub fn delete(
        &self,
        conversation: &str,
        clock: Clock,
        cancel: &Cancel,
    ) -> Result<DeletionResult> {
        let parts = Parts { clock, cancel, messages: &[], on_messages: None, on_pass: None };
        Ok(self.drive(&json!({"task": "delete", "conversation": conversation}), parts)?)
    }
}
