//! The setup of a compaction call: the head, the policy, and the options in estimated tokens.
//!
//! In: budget and options as the host gave them. Out: [`CompactionSetup`]. `evaluate`, `plan`,
//! `run` and `advise` use this module.

use crate::storage::{
    call::Call,
    head::LoadedHead,
    record_key::{RecordReads, RecordValues},
    records::calibration::Calibration,
    session::{self as session_rules, PolicyRequest},
    store_session::StoreSession,
};
use lcm_text::{
    base::error::{Error, Result},
    config::BudgetPolicy,
    types::api::CompactionOptions,
};

use super::extra::{CompactionExtra, PlanScope};

/// The records that a compaction call reads first, and the policy and options that follow from
/// them.
pub(crate) struct CompactionSetup {
    pub(crate) loaded: LoadedHead,
    /// Values of the further records that the caller asked for.
    pub(crate) values: RecordValues,
    pub(crate) policy: BudgetPolicy,
    /// The options of the call, with counts of the provider converted to estimated tokens.
    pub(crate) options: CompactionOptions,
    /// The calibration of the model that the call names; `None`: the call names no model, or no
    /// calibration of the model is stored.
    pub(super) calibration: Option<Calibration>,
    /// Index of the configuration override that applies; `None`: no override applies.
    pub(super) override_index: Option<usize>,
    /// The kind of tasks that the call plans.
    pub(super) scope: PlanScope,
    /// Maximum number of remakes of the sweep; `None`: 16, or no limit if the call is for remakes
    /// only.
    pub(super) remakes_max: Option<u32>,
}

impl CompactionSetup {
    /// Reads the head, the records of `reads` and the calibration of the named model.
    ///
    /// # Errors
    ///
    /// `invalid-input`: a budget or target of 0, or wrong further options; `not-found`: the
    /// conversation does not exist, `may_be_new` is not set, and the configuration does not skip
    /// the conversation; or a text in `summary_ids` is not a summary id; `corrupt`; errors of the
    /// store.
    pub(crate) fn open(
        session: &mut StoreSession<'_>,
        call: Call<'_>,
        budget: u32,
        options: &CompactionOptions,
        mut reads: RecordReads,
    ) -> Result<Self> {
        let Call { config, .. } = call;
        // Refuses a budget of 0 before anything is read.
        config.derive_policy(budget)?;
        if options.target == Some(0) {
            return Err(Error::invalid_input("`target` must be at least 1, got 0"));
        }
        let extra = CompactionExtra::read(call, options.extra_json.as_deref())?;
        let model = extra.model.map(|model| (model.add_to(&mut reads), model));
        let (loaded, values) = LoadedHead::open_with_records(session, call, &reads)?;
        // A conversation that the configuration skips never begins to exist.
        if !extra.may_be_new
            && session_rules::find_skip_reason(session, call, &loaded.head, None)?.is_none()
        {
            loaded.ensure_exists()?;
        }
        let calibration = match &model {
            Some((slot, model)) => model.decode_from(&values, slot)?,
            None => None,
        };
        let mut options = options.clone();
        let mut estimated = budget;
        if let Some(calibration) = &calibration {
            estimated = calibration.to_estimated_floor(budget);
            options.target = options.target.map(|tokens| calibration.to_estimated_floor(tokens));
            let observed = options.observed_tokens;
            options.observed_tokens = observed.map(|tokens| calibration.to_estimated_ceil(tokens));
        }
        let model = model.as_ref().map(|(_, model)| model.model_name());
        let request = PolicyRequest { model, budget, estimated_budget: estimated };
        let (policy, override_index) =
            session_rules::select_policy(session, call, &loaded.head, &request)?;
        let (scope, remakes_max) = (extra.scope, extra.remakes_max);
        Ok(Self {
            loaded,
            values,
            policy,
            options,
            calibration,
            override_index,
            scope,
            remakes_max,
        })
    }
}
