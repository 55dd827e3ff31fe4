//! The verbs that are tasks of several calls: intake, compaction, turns and deletion.

use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    clock::{Cancel, Clock},
    compaction::{CompactOptions, CompactReport, Pass},
    drive::{Instruction, Parts},
    error::{Code, Result},
    ingest::{IngestOptions, IngestReport, IngestResult},
    json,
    lcm::Lcm,
    shapes::{DeletionResult, LiveAnswer},
    turn::{FamilyReport, MaintainReport, MemberReport},
};

impl Lcm {
    /// Stores the missing messages of a transcript of any length. The component reads every message
    /// that it does not know by its text before it stores the first. `progress` receives the number
    /// of finished messages.
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
        let task = options.build_task(options.task_name(), conversation, messages);
        let on_instruction = &mut |next: &Instruction| match next.messages {
            _ if next.kind == "done" => progress(messages.len()),
            Some(range) if next.call == "ingest.append" => progress(range.index_first),
            _ => (),
        };
        self.drive(&task, Parts { clock: options.clock, cancel, messages, on_instruction })
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
        let task = options.build_task("append", conversation, messages);
        let parts = Parts { clock: options.clock, cancel, messages, on_instruction: &mut |_| () };
        self.drive(&task, parts)
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
        self.drive_passes(&task, options.clock, cancel, progress)
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
        self.drive_passes(&task, options.clock, cancel, progress)
    }

    /// Calls [`Lcm::maintain`] for every conversation of a family, the latest to join first.
    /// `progress` receives the conversation with each summary.
    ///
    /// After a failure of a model the rest is not served, because the model would fail there, too;
    /// nor is it after `cancel`. Another failure concerns one conversation and is in its report. Of
    /// an archived conversation only provisional summaries are made again. Observed tokens of the
    /// options have no effect.
    ///
    /// # Errors
    ///
    /// - `not-found`: the family has no conversation.
    /// - `invalid-input`: the options; reports of conversations that were served are lost.
    pub fn maintain_family(
        &self,
        family: &str,
        options: &CompactOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&str, &Pass),
    ) -> Result<FamilyReport> {
        let arguments = json!({ "family": family }).to_string();
        let answer = self.admin_call("", "live", &arguments, options.clock.now_ms())?;
        let mut unserved = json::read::<LiveAnswer>("admin.call", &answer)?.members;
        let options = CompactOptions { observed_tokens: None, ..options.clone() };
        let (mut reports, mut is_over) = (Vec::new(), false);
        while !is_over && !unserved.is_empty() {
            let conversation = unserved.remove(0);
            let each = &mut |pass: &Pass| progress(&conversation, pass);
            let result = match self.maintain(&conversation, &options, cancel, each) {
                Err(error) if error.code == Code::Cancelled => {
                    unserved.insert(0, conversation);
                    break;
                }
                Err(error) if error.code == Code::InvalidInput => return Err(error),
                result => result,
            };
            is_over = result.as_ref().is_ok_and(MaintainReport::is_model_failed);
            reports.push(MemberReport { conversation, result });
        }
        Ok(FamilyReport { reports, unserved })
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
        self.drive_passes(&task, options.clock, cancel, progress)
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
        let task = json!({"task": "delete", "conversation": conversation});
        self.drive_passes(&task, clock, cancel, &mut |_| ())
    }

    /// Carries out a task without messages. `progress` receives each summary.
    pub(crate) fn drive_passes<T: DeserializeOwned>(
        &self,
        task: &Value,
        clock: Clock,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Pass),
    ) -> Result<T> {
        let on_instruction = &mut |next: &Instruction| {
            if let Some(Ok(pass)) = next.pass.as_ref().map(Pass::deserialize) {
                progress(&pass);
            }
        };
        Ok(self.drive(task, Parts { clock, cancel, messages: &[], on_instruction })?)
    }
}
