//! What a host does after a turn: stores it, and compacts at once or later.
//!
//! In: new messages, or a conversation that owes compaction. Out: what was stored and what was
//! done. Whether something is due, whether it may wait and when it is tried again is the
//! component's decision: here it is asked, and told how it ended.

use serde::{Deserialize, Serialize};

use crate::{
    clock::Cancel,
    compaction::{CompactOptions, CompactReport, Pass},
    error::{Code, Error, Result},
    ingest::{IngestError, IngestOptions, IngestReport},
    json,
    lcm::Lcm,
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

/// Compaction that is due and was put off.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Debt {
    /// Whether nothing can be done until the context changes.
    pub exhausted: bool,
    /// Failures in a row.
    pub failures: u32,
    /// From when on it is tried again, such as `2026-01-02T03:04:05.000Z`.
    pub next_attempt_at: String,
    /// When it was seen first.
    pub since: String,
}

/// What a call of [`Lcm::maintain`] did.
#[derive(Clone, Debug)]
pub struct MaintainReport {
    /// What is owed now; `None`: nothing.
    pub debt: Option<Debt>,
    /// What the compaction did; `None`: it was not time for one, or the model refused to serve.
    pub compacted: Option<CompactReport>,
    /// How the model refused its key or the content.
    pub failure: Option<Error>,
}

/// The arguments of the verb `maintain`.
#[derive(Serialize)]
struct Maintain<'a> {
    budget: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_tokens: Option<u32>,
}

/// What the verb `maintain` answers, as far as a host needs it.
#[derive(Deserialize)]
struct Maintained {
    debt: Option<Debt>,
    drain: bool,
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
        let evaluate = || {
            let now = compact.clock.now_ms();
            self.evaluate(conversation, compact.budget, &compact.plan(None), now)
        };
        // What cannot be evaluated is refused before anything is stored.
        evaluate()?;
        let ingested = self.append_end(conversation, messages, &options.ingest, cancel)?;
        let mut report = TurnReport { ingested, compacted: None, deferred: false, failure: None };
        let decision = evaluate()?;
        if !decision.due {
            return Ok(report);
        }
        // What the verb sees no debt in, it would never do later: a forced pass, or a mode that
        // acts below the threshold.
        if options.defer && !decision.must {
            report.deferred = self.ask_maintain(conversation, compact, None)?.debt.is_some();
        }
        if !report.deferred {
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
        let asked = self.ask_maintain(conversation, options, None)?;
        let mut report = MaintainReport { debt: asked.debt, compacted: None, failure: None };
        if !asked.drain {
            return Ok(report);
        }
        let (ended, failed) = match self.compact_told(conversation, options, cancel, progress) {
            Ok(compacted) => (report.compacted.insert(compacted).reason.clone(), None),
            Err(broken) => match broken.reason {
                Some(reason) => (reason.to_owned(), Some(broken.error)),
                None => return Err(broken.error),
            },
        };
        let mut options = options.clone();
        // What was observed is of a context before the passes.
        if report.compacted.as_ref().is_some_and(|compacted| !compacted.passes.is_empty()) {
            options.observed_tokens = None;
        }
        let told = self.ask_maintain(conversation, &options, Some(&ended));
        match failed {
            Some(error) if error.code != Code::CompletionFailed => return Err(error),
            failed => report.failure = failed,
        }
        report.debt = told?.debt;
        Ok(report)
    }

    /// Asks the verb `maintain`, or tells it how a compaction ended.
    fn ask_maintain(
        &self,
        conversation: &str,
        options: &CompactOptions,
        ended: Option<&str>,
    ) -> Result<Maintained> {
        let CompactOptions { budget, observed_tokens, .. } = *options;
        let model = options.model.as_deref();
        let asked = Maintain { budget, ended, model, observed_tokens };
        let arguments = serde_json::json!(asked);
        let now = options.clock.now_ms();
        let text = self.admin_call(conversation, "maintain", &arguments.to_string(), now)?;
        json::read("admin.call", &text)
    }
}
