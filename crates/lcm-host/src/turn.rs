//! Options and reports of a turn and of deferred compaction.
//!
//! In: a caller's options. Out: the typed results of tasks of `wit/drive.wit`.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    compaction::{CompactOptions, CompactReport},
    error::{Code, Error},
    ingest::{IngestOptions, IngestReport},
    shapes::DeferredCompaction,
};

/// How a turn is taken in.
#[derive(Clone, Debug)]
pub struct TurnOptions {
    /// How its messages are stored.
    pub ingest: IngestOptions,
    /// How the conversation is compacted.
    pub compact: CompactOptions,
    /// Whether compaction that can wait is left for [`Lcm::maintain`](crate::Lcm::maintain).
    pub defer: bool,
}

impl TurnOptions {
    /// What is due is done at once.
    #[must_use]
    pub const fn new(ingest: IngestOptions, compact: CompactOptions) -> Self {
        Self { ingest, compact, defer: false }
    }

    /// Returns the task that decides after the append.
    pub(crate) fn task(&self, conversation: &str) -> Value {
        let mut task = self.compact.task("turn", conversation);
        if let Some(members) = task.as_object_mut() {
            members.insert("defer".to_owned(), self.defer.into());
        }
        task
    }
}

/// What one turn did.
#[derive(Clone, Debug)]
pub struct TurnReport {
    /// What was stored.
    pub ingested: IngestReport,
    /// What the compaction did; `None`: nothing was due, it was deferred, or the model failed.
    pub compacted: Option<CompactReport>,
    /// Whether compaction was due and is left for [`Lcm::maintain`](crate::Lcm::maintain).
    pub deferred: bool,
    /// Why the model failed; the next turn tries again.
    pub failure: Option<Error>,
}

/// The decision after an append.
#[derive(Deserialize)]
pub(crate) struct TurnDecision {
    /// Whether to compact now.
    pub(crate) compact: bool,
    /// Whether compaction is due and waits for [`Lcm::maintain`](crate::Lcm::maintain).
    pub(crate) deferred: bool,
}

/// What a call of [`Lcm::maintain`](crate::Lcm::maintain) did.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "MaintainResult")]
pub struct MaintainReport {
    /// What is owed now; `None`: nothing.
    pub debt: Option<DeferredCompaction>,
    /// What the compaction did; `None`: it was not time for one, or the model refused to serve.
    pub compacted: Option<CompactReport>,
    /// How the model refused its key or the content.
    pub failure: Option<Error>,
}

/// The result of a task `maintain`.
#[derive(Deserialize)]
struct MaintainResult {
    debt: Option<DeferredCompaction>,
    compacted: Option<CompactReport>,
    failure: Option<ModelFailure>,
}

/// How a model failed.
#[derive(Deserialize)]
struct ModelFailure {
    message: String,
}

impl From<MaintainResult> for MaintainReport {
    fn from(result: MaintainResult) -> Self {
        let MaintainResult { debt, compacted, failure } = result;
        // A model that failed and was replaced by the fallback is in the report of the compaction.
        let refusal = failure.filter(|_| compacted.is_none());
        let failure = refusal.map(|told| Error::new(Code::CompletionFailed, told.message));
        Self { debt, compacted, failure }
    }
}
