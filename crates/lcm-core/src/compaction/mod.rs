//! Compaction: old messages become summaries, old summaries become fewer.
//!
//! The model is never called from inside a decision. [`evaluate()`] says whether anything is due,
//! [`plan`] proposes tasks as completion requests, [`apply`] takes an answer and makes one commit
//! of it; [`run`] does both around a model that may block. A task names its sources, so that
//! nothing has to be remembered between the calls, by anybody.

mod acceptance;
pub(crate) mod advise;
mod apply;
mod attempts;
mod evaluate;
mod plan;
mod request;
mod run;
mod select;
mod source_text;
mod spend_limit;
mod splice;
mod sweep;
pub(crate) mod task;

use crate::storage::session;
use alloc::{string::String, vec::Vec};

use crate::storage::{
    head::{ConversationHead, LoadedHead},
    keys::ConversationKeys,
    records::calibration::{self, Calibration},
    store_session::StoreSession,
};
pub(crate) use apply::apply;
pub(crate) use attempts::ModelBreaker;
pub(crate) use evaluate::evaluate;
use lcm_text::{
    base::{
        error::{Error, Result},
        json::JsonWriter,
    },
    config::{BudgetPolicy, Config},
    types::api::{CompactionMode, CompactionOptions},
};
pub(crate) use plan::plan;
pub(crate) use run::run;
pub(crate) use source_text::has_previous_context;
use sweep::SweepToken;

/// The closed list of reasons.
pub(crate) mod reason {
    pub(crate) const BELOW_THRESHOLD: &str = "below-threshold";
    pub(crate) const REACHED_TARGET: &str = "reached-target";
    pub(crate) const NO_ELIGIBLE_CHUNK: &str = "no-eligible-chunk";
    pub(crate) const NO_PROGRESS: &str = "no-progress";
    pub(crate) const TAIL_OVER_TARGET: &str = "tail-over-target";
    pub(crate) const PASS_LIMIT: &str = "pass-limit";
    pub(crate) const ROUND_LIMIT: &str = "round-limit";
    pub(crate) const SPEND_LIMIT: &str = "spend-limit";
    pub(crate) const BREAKER_OPEN: &str = "breaker-open";
    pub(crate) const MODEL_AUTH: &str = "model-auth";
    pub(crate) const MODEL_POLICY: &str = "model-policy";
    pub(crate) const MODEL_UNAVAILABLE: &str = "model-unavailable";
    /// Of a host: somebody stopped it.
    pub(crate) const CANCELLED: &str = "cancelled";
    pub(crate) const CONFLICT: &str = "conflict";

    /// All of them.
    pub(crate) const ALL: [&str; 14] = [
        BELOW_THRESHOLD,
        REACHED_TARGET,
        NO_ELIGIBLE_CHUNK,
        NO_PROGRESS,
        TAIL_OVER_TARGET,
        PASS_LIMIT,
        ROUND_LIMIT,
        SPEND_LIMIT,
        BREAKER_OPEN,
        MODEL_AUTH,
        MODEL_POLICY,
        MODEL_UNAVAILABLE,
        CANCELLED,
        CONFLICT,
    ];
}

/// What is to be reached, in tokens of the stored context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactionGoal {
    /// Compaction is due above this many tokens (`until-under`: from it on).
    due_above: u64,
    /// Tokens that the decision is about: stored, or observed when that is more.
    current: u64,
    /// The stored context is to have at most this many.
    pub(crate) target: u64,
    /// Whether the caller named the target: then leaves stop once it is reached.
    pub(crate) is_explicit: bool,
    is_inclusive: bool,
}

/// Derives the goal of a call from its options.
pub(crate) fn derive_goal(
    head: &ConversationHead,
    policy: &BudgetPolicy,
    options: &CompactionOptions,
    sweep: &SweepToken,
) -> CompactionGoal {
    let stored = head.context.tokens;
    let observed = u64::from(options.observed_tokens.unwrap_or(0));
    let current = stored.max(observed);
    let threshold = u64::from(policy.threshold);
    let target = options.target.map_or(threshold, u64::from);
    let due_above = match options.mode {
        CompactionMode::Sweep => threshold.min(target),
        CompactionMode::UntilUnder => target,
        CompactionMode::Threshold | CompactionMode::Incremental => threshold,
    };
    CompactionGoal {
        due_above,
        current,
        // What the host adds to the stored context (system prompt, tools) has to fit beside it.
        target: target.saturating_sub(sweep.overhead).max(1),
        is_explicit: options.target.is_some(),
        is_inclusive: options.mode == CompactionMode::UntilUnder,
    }
}

impl CompactionGoal {
    /// Whether a stored context of so many tokens still has to shrink.
    pub(crate) fn is_over(&self, tokens: u64) -> bool {
        tokens > self.target || (self.is_inclusive && tokens == self.target)
    }

    /// Whether compaction is due without being forced.
    pub(crate) fn is_due(&self) -> bool {
        self.current > self.due_above || (self.is_inclusive && self.current == self.due_above)
    }
}

/// The further options of a call that is for this model.
pub(crate) fn build_model_option(model: Option<&str>) -> Option<String> {
    let mut object = JsonWriter::new_object();
    object.add_text("model", model?);
    Some(object.end_object())
}

/// A call with its first read made and its tokens estimated ones.
pub(crate) struct CompactionCall {
    pub(crate) loaded: LoadedHead,
    /// Values of the further keys that were asked for.
    pub(crate) extra_values: Vec<Option<Vec<u8>>>,
    pub(crate) policy: BudgetPolicy,
    pub(crate) options: CompactionOptions,
    /// What was reported of the model that the call is for.
    calibration: Option<Calibration>,
    /// Place of the override that applies.
    override_index: Option<usize>,
}

impl CompactionCall {
    /// Reads the head and further keys, and the record of the model when one is named.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a budget or target of 0, or the further options; errors of the store.
    pub(crate) fn open(
        reader: &mut StoreSession<'_>,
        config: &Config,
        keys: &ConversationKeys,
        conversation: &str,
        (budget, options): (u32, &CompactionOptions),
        mut further: Vec<String>,
    ) -> Result<Self> {
        // Before anything is read: a host asks by `evaluate` whether a turn may begin, of a
        // conversation that need not exist yet.
        config.derive_policy(budget)?;
        if options.target == Some(0) {
            return Err(Error::invalid_input("`target` must be at least 1, got 0"));
        }
        let model =
            calibration::CalibratedModel::from_options(keys, options.extra_json.as_deref())?;
        further.extend(model.iter().map(|model| model.key.clone()));
        let (loaded, mut further) =
            LoadedHead::read_with_keys(reader, keys, conversation, &further)?;
        let calibration =
            calibration::CalibratedModel::pop_calibration(model.as_ref(), &mut further)?;
        let mut options = options.clone();
        let mut estimated = budget;
        if let Some(calibration) = &calibration {
            estimated = calibration.to_estimated_floor(budget);
            options.target = options.target.map(|tokens| calibration.to_estimated_floor(tokens));
            let observed = options.observed_tokens;
            options.observed_tokens = observed.map(|tokens| calibration.to_estimated_ceil(tokens));
        }
        let model = model.as_ref().map(calibration::CalibratedModel::model_name);
        let head = &loaded.head;
        let (policy, rule) =
            session::select_policy(reader, config, keys, head, model, (budget, estimated))?;
        Ok(Self {
            loaded,
            extra_values: further,
            policy,
            options,
            calibration,
            override_index: rule,
        })
    }
}
