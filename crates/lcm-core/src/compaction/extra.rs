//! The options in `extra_json` of a compaction call, `CompactionExtra` in `schema/`.
//!
//! In: the JSON text of `extra_json`. Out: [`CompactionExtra`]. `plan`, `apply` and `run` use this
//! module.

use alloc::{string::String, vec::Vec};

use crate::storage::{call::Call, records::calibration::CalibratedModel, summary};
use lcm_text::base::{
    error::{Error, Result},
    json::{JsonFields, JsonWriter},
};

/// Maximum number of summary ids of one call.
const SUMMARY_IDS_MAX: usize = 64;

/// The options in `extra_json` of a compaction call.
pub(crate) struct CompactionExtra {
    /// The model whose provider counted the tokens in the other arguments, such as the budget;
    /// `None`: the call names no model.
    pub(crate) model: Option<CalibratedModel>,
    /// Whether the answer replaces the answer of a model that failed: the offline summariser may
    /// have written it. The summary is then provisional.
    pub(crate) is_stand_in: bool,
    pub(crate) scope: PlanScope,
    /// Maximum number of remakes of the sweep; `None`: 16, or no limit if the call is for remakes
    /// only.
    pub(crate) remakes_max: Option<u32>,
    /// Whether the conversation need not exist.
    pub(crate) may_be_new: bool,
}

/// The kind of tasks that a plan proposes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) enum PlanScope {
    /// Compaction, with remakes of provisional summaries.
    #[default]
    All,
    /// Remakes of all provisional summaries.
    Remakes,
    /// Remakes of these summaries, and of the provisional summaries below them.
    Named(Vec<[u8; 8]>),
}

impl CompactionExtra {
    /// Reads the options; an absent or empty text has none.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the text has unknown options, an invalid name of a model, not 1 to 64
    /// summary ids, or an id of zeros; `not-found`: a text in `summary_ids` is not a summary id.
    pub(crate) fn read(call: Call<'_>, extra_json: Option<&str>) -> Result<Self> {
        const NAME: &str = "extra-json";
        let json = extra_json.filter(|json| !json.is_empty()).unwrap_or("{}");
        let mut fields = JsonFields::parse_argument(NAME, json)?;
        let model = fields.take_optional_text("model");
        let is_stand_in = fields.take_flag("stand_in");
        let is_remake = fields.take_flag("resummarize");
        let remakes_max = fields.take_optional_u32("remakes_max");
        let named = fields.take_optional_texts("summary_ids");
        let may_be_new = fields.take_flag("may_be_new");
        fields.finish(NAME)?;
        let scope = match named {
            Some(names) => PlanScope::Named(parse_summary_ids(&names)?),
            None if is_remake => PlanScope::Remakes,
            None => PlanScope::All,
        };
        let model = model.map(|model| CalibratedModel::new(call.keys, model)).transpose()?;
        Ok(Self { model, is_stand_in, scope, remakes_max, may_be_new })
    }
}

fn parse_summary_ids(names: &[String]) -> Result<Vec<[u8; 8]>> {
    if names.is_empty() || names.len() > SUMMARY_IDS_MAX {
        return Err(Error::invalid_input(format_args!(
            "`summary_ids` must have 1 to {SUMMARY_IDS_MAX} ids, got {}",
            names.len()
        )));
    }
    names.iter().map(|name| summary::parse_summary_id(name)).collect()
}

/// Builds the `extra-json` of the `evaluate` that follows an append. Sets `may_be_new`, because the
/// append may have skipped the conversation, which then does not exist.
pub(crate) fn build_decision_option(model: Option<&str>) -> String {
    let mut object = JsonWriter::new_object();
    object.add_flag("may_be_new", true);
    if let Some(model) = model {
        object.add_text("model", model);
    }
    object.end_object()
}

/// Builds the `extra-json` of a call that names `model`; `None`: no model is named.
pub(crate) fn build_model_option(model: Option<&str>) -> Option<String> {
    let mut object = JsonWriter::new_object();
    object.add_text("model", model?);
    Some(object.end_object())
}
