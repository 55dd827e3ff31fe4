//! What a host does after a turn: stores it, and compacts at once or later.
//!
//! In: new messages, or a conversation that owes compaction. Out: what was stored and what was
//! done. Whether something is due, whether it may wait and when it is tried again is the
//! component's decision.

use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    clock::Cancel,
    compaction::{self, CompactOptions, CompactReport, Pass},
    drive::Parts,
    error::{Code, Error, Result},
    ingest::{IngestError, IngestOptions, IngestReport},
    lcm::Lcm,
    shapes::DeferredCompaction,
};

/// How a turn is taken in.
#[derive(Clone, Debug)]
pub struct TurnOptions {
    /// How its messages are stored.
    pub ingest: IngestOptions,
    /// How the conversation is compacted.
    pub compact: CompactOptions,
    /// Whether compaction that can wait is left for [`Lcm::maintain`].
    pub defer: bool,
}

impl TurnOptions {
    /// What is due is done at once.
    #[must_use]
    pub const fn new(ingest: IngestOptions, compact: CompactOptions) -> Self {
        Self { ingest, compact, defer: false }
    }
}

/// What one turn did.
#[derive(Clone, Debug)]
pub struct TurnReport {
    /// What was stored.
    pub ingested: IngestReport,
    /// What the compaction did; `None`: nothing was due, it was deferred, or the model failed.
    pub compacted: Option<CompactReport>,
    /// Whether compaction was due and is left for [`Lcm::maintain`].
    pub deferred: bool,
    /// Why the model failed; the next turn tries again.
    pub failure: Option<Error>,
}

/// What a call of [`Lcm::maintain`] did.
#[derive(Clone, Debug)]
pub struct MaintainReport {
    /// What is owed now; `None`: nothing.
    pub debt: Option<DeferredCompaction>,
    /// What the compaction did; `None`: it was not time for one, or the model refused to serve.
    pub compacted: Option<CompactReport>,
    /// How the model refused its key or the content.
    pub failure: Option<Error>,
}

impl Lcm {
    /// One turn: stores the messages that end the conversation, of which some may be stored
    /// already, asks whether compaction is due, and does what is, or leaves it for
    /// [`Lcm::maintain`].
    ///
    /// The messages are stored whatever the model does.
    ///
    /// # Errors
    ///
    /// As [`Lcm::ingest`]; `cancelled`: what was stored stays; what the component answers.
    pub fn turn(
        &self,
        conversation: &str,
        messages: &[String],
        options: &TurnOptions,
        cancel: &Cancel,
    ) -> std::result::Result<TurnReport, IngestError> {
        let compact = &options.compact;
        // What cannot be evaluated is refused before anything is stored.
        self.evaluate(conversation, compact.budget, &compact.plan(), compact.clock.now_ms())?;
        let ingested = self.append_end(conversation, messages, &options.ingest, cancel)?;
        let mut report = TurnReport { ingested, compacted: None, deferred: false, failure: None };
        let mut task = compact.task("turn", conversation);
        if let Some(members) = task.as_object_mut() {
            members.insert("defer".into(), options.defer.into());
        }
        let parts = Parts {
            clock: compact.clock,
            messages: &[],
            cancel,
            progress: &mut |_| {},
            tells_stop: false,
        };
        let told = self.drive(&task, parts).map_err(|fault| fault.error)?.result;
        report.deferred = told.get("deferred") == Some(&Value::Bool(true));
        if told.get("compact") == Some(&Value::Bool(true)) {
            match self.compact(conversation, compact, cancel, &mut |_| {}) {
                Ok(compacted) => report.compacted = Some(compacted),
                Err(error) if error.code == Code::CompletionFailed => report.failure = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(report)
    }

    /// Does compaction that was put off, when it is time for it: after a turn, when nobody waits.
    /// The component measures anew, remembers how it ends, and pauses after failures.
    ///
    /// # Errors
    ///
    /// - `cancelled`: what was stored before stays, and it is tried again after a pause.
    /// - as [`Lcm::compact`], but that a model that refuses to serve is `failure` of the report.
    pub fn maintain(
        &self,
        conversation: &str,
        options: &CompactOptions,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Pass),
    ) -> Result<MaintainReport> {
        let outcome = self.work("maintain", conversation, options, cancel, progress)?;
        let (mut result, passes) = (outcome.result, outcome.passes);
        let unexpected = |error| Error::internal(format!("`maintain` ended unexpectedly: {error}"));
        let debt = result.remove("debt").unwrap_or_default();
        let mut report = MaintainReport {
            debt: Option::deserialize(debt).map_err(unexpected)?,
            compacted: None,
            failure: None,
        };
        match result.remove("compacted") {
            Some(compacted) if !compacted.is_null() => {
                report.compacted = Some(compaction::report(compacted, passes, outcome.warnings)?);
            }
            _ => {
                let message = result.get("failure").and_then(|told| told.get("message"));
                let message = message.and_then(Value::as_str);
                report.failure = message.map(|told| Error::new(Code::CompletionFailed, told));
            }
        }
        Ok(report)
    }
}
