//! Options and reports of a turn and of deferred compaction.
//!
//! In: a caller's options. Out: the typed results of tasks of `wit/drive.wit`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    compaction::{CompactOptions, CompactReport},
    error::{Code, Error, Result},
    ingest::{IngestOptions, IngestReport},
    json,
    shapes::{DeferredCompaction, ModelFailure},
};

/// Options of a turn.
#[derive(Clone, Debug)]
pub struct TurnOptions {
    /// Options of the intake.
    pub ingest: IngestOptions,
    /// Options of the compaction.
    pub compact: CompactOptions,
    /// Whether compaction that can wait is deferred to [`Lcm::maintain`](crate::Lcm::maintain);
    /// `None`: as `turn_compaction` of the configuration says.
    pub defer: Option<bool>,
}

impl TurnOptions {
    /// Returns options that defer compaction as configured.
    #[must_use]
    pub const fn new(ingest: IngestOptions, compact: CompactOptions) -> Self {
        Self { ingest, compact, defer: None }
    }

    /// Returns the task that decides after the append.
    pub(crate) fn build_task(&self, conversation: &str) -> Value {
        let task = self.compact.build_task("turn", conversation);
        match self.defer {
            Some(defer) => json::merge(task, json!({ "defer": defer })),
            None => task,
        }
    }
}

/// Result of a turn.
#[derive(Clone, Debug)]
pub struct TurnReport {
    /// Result of the intake.
    pub ingested: IngestReport,
    /// Result of the compaction; of a [`Conversation`](crate::Conversation) also of the one pass
    /// after two turns in a row that deferred compaction. `None`: nothing was compacted.
    pub compacted: Option<CompactReport>,
    /// Whether due compaction was deferred to [`Lcm::maintain`](crate::Lcm::maintain).
    pub deferred: bool,
    /// Failure after the messages were stored, in most cases of the model; the next turn tries
    /// again. `None`: nothing failed.
    pub failure: Option<Error>,
}

impl TurnReport {
    /// Returns the report of a turn after its append.
    pub(crate) const fn new(ingested: IngestReport) -> Self {
        Self { ingested, compacted: None, deferred: false, failure: None }
    }

    /// Takes how a compaction ended. An error would hide that the messages are stored, so an error
    /// is the failure of the turn.
    pub(crate) fn take_compaction(&mut self, ended: Result<Option<CompactReport>>) {
        self.failure = match &ended {
            Err(error) => Some(error.clone()),
            Ok(compacted) => compacted
                .as_ref()
                .and_then(|compacted| compacted.failure.as_ref())
                .map(|failure| Error::new(Code::CompletionFailed, failure.message.clone())),
        };
        self.compacted = ended.ok().flatten();
    }
}

/// Result of [`Lcm::maintain`](crate::Lcm::maintain).
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "MaintainResult")]
pub struct MaintainReport {
    /// Deferred compaction after the call; `None`: no compaction is deferred.
    pub debt: Option<DeferredCompaction>,
    /// Result of the compaction; `None`: not due, or the model refused the request.
    pub compacted: Option<CompactReport>,
    /// Refusal of the key or the content by the model; `None`: no refusal.
    pub failure: Option<Error>,
}

impl MaintainReport {
    /// Returns whether a model failed, even if a summary was made without it.
    pub(crate) fn is_model_failed(&self) -> bool {
        let compacted = self.compacted.as_ref();
        self.failure.is_some() || compacted.is_some_and(|compacted| compacted.failure.is_some())
    }
}

/// Result of [`Lcm::maintain_family`](crate::Lcm::maintain_family).
#[derive(Clone, Debug)]
pub struct FamilyReport {
    /// A report for each conversation that was served, in the order of service.
    pub reports: Vec<MemberReport>,
    /// Ids of the conversations that were not served to the end, because a model failed or the call
    /// was stopped before.
    pub unserved: Vec<String>,
}

/// What [`Lcm::maintain_family`](crate::Lcm::maintain_family) did for one conversation.
#[derive(Clone, Debug)]
pub struct MemberReport {
    /// Id of the conversation.
    pub conversation: String,
    /// Result of [`Lcm::maintain`](crate::Lcm::maintain) for the conversation.
    pub result: Result<MaintainReport>,
}

/// The result of a task `maintain`.
#[derive(Deserialize)]
struct MaintainResult {
    debt: Option<DeferredCompaction>,
    compacted: Option<CompactReport>,
    failure: Option<ModelFailure>,
}

impl From<MaintainResult> for MaintainReport {
    fn from(result: MaintainResult) -> Self {
        let MaintainResult { debt, compacted, failure } = result;
        // A model that failed and was replaced by the fallback is in the report of the compaction.
        let refusal = failure.filter(|_| compacted.is_none());
        let failure = refusal.map(|failure| Error::new(Code::CompletionFailed, failure.message));
        Self { debt, compacted, failure }
    }
}
