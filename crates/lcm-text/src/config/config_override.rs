//! An override: a rule that changes settings for some models, sessions or budgets.
//!
//! Input: model, session and budget of a call. Output: the weight of the rule, if the rule applies.
//! The weight is the sum over the conditions of the rule. A condition on the model outweighs all
//! others together, and a condition on the session outweighs both bounds of the budget.

use alloc::string::String;

use crate::base::glob;

const MODEL_WEIGHT: u32 = 100;
const SESSION_WEIGHT: u32 = 50;
const WINDOW_WEIGHT: u32 = 20;

/// One rule: up to four conditions and up to three settings. An absent condition always holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ConfigOverride {
    /// Pattern for the `model` of a call; `None`: any model, or no model.
    pub model: Option<String>,
    /// Pattern for the session, as in `ignore_session_patterns`; `None`: any session.
    pub session: Option<String>,
    /// Least budget of a call, in tokens; `None`: no bound.
    pub window_min: Option<u32>,
    /// Greatest budget of a call, in tokens; `None`: no bound.
    pub window_max: Option<u32>,
    /// Replaces [`Config::context_threshold_permille`](super::Config); `None`: unchanged.
    pub context_threshold_permille: Option<u32>,
    /// Replaces [`Config::fresh_tail_messages_max`](super::Config); `None`: unchanged.
    pub fresh_tail_messages_max: Option<u32>,
    /// Replaces [`Config::leaf_chunk_tokens_max`](super::Config); `None`: unchanged.
    pub leaf_chunk_tokens_max: Option<u32>,
}

/// The properties of a call that the conditions of rules are compared with.
#[derive(Clone, Copy, Debug)]
pub struct OverrideContext<'a> {
    /// The model of the call; `None`: the call names no model.
    pub model: Option<&'a str>,
    /// Name of the session: the key of the conversation's family, else the conversation's id.
    pub session: &'a str,
    /// The budget of the call, in tokens.
    pub budget: u32,
}

impl ConfigOverride {
    /// Returns the sum of the weights of the rule's conditions; `None`: the rule does not apply.
    pub(super) fn match_weight(&self, call: &OverrideContext<'_>) -> Option<u32> {
        let mut weight = 0;
        if let Some(model) = &self.model {
            weight += MODEL_WEIGHT;
            call.model.filter(|name| glob::matches(model, name))?;
        }
        if let Some(session) = &self.session {
            weight += SESSION_WEIGHT;
            glob::matches(session, call.session).then_some(())?;
        }
        for (bound, fits) in [
            (self.window_min, self.window_min.is_none_or(|min| call.budget >= min)),
            (self.window_max, self.window_max.is_none_or(|max| call.budget <= max)),
        ] {
            weight += bound.map_or(0, |_| WINDOW_WEIGHT);
            fits.then_some(())?;
        }
        Some(weight)
    }
}
