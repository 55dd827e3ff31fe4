//! Assembly: selects the items of a context that fit a token budget, and renders them.
//!
//! Reads only. The protected part is always included: the fresh tail, the pinned message, the focus
//! brief and the live messages. An eviction policy selects the older items. The rendered context is
//! counted in its dialect; while it exceeds the budget, fewer items are selected. Every array for a
//! provider passes a final check.

mod dialect;
mod element_chain;
mod element_hashes;
mod eviction_policy;
mod explain;
mod explain_text;
mod final_check;
mod focus;
mod full_outputs;
mod input;
mod pending;
mod pieces;
mod prefix;
mod provider_array;
mod render;
mod render_cache;
mod rendered_context;
mod result;
mod select;

use alloc::{string::String, vec::Vec};

use crate::storage::{
    context::{ContextItem, MessageRun},
    fresh_tail,
    head::LoadedHead,
    history::MessageHistory,
    keys::ConversationKeys,
    records::{calibration, focus::FocusBrief},
    session,
    store_session::StoreSession,
};
use eviction_policy::EvictionPlan;
use full_outputs::FullOutputs;
use input::AssemblyInput;
use lcm_text::{
    base::{
        error::{Error, Result},
        json::JsonFields,
    },
    config::{self, Config},
    summary::transcript,
    types::api::{AssembleOptions, AssembledContext, Dialect},
};
pub(crate) use render_cache::RenderCache;
use rendered_context::RenderedContext;
use select::ContextChoice;

/// Returns the budget and the reserve in estimated tokens.
fn estimate_amounts(
    calibration: Option<&calibration::Calibration>,
    budget: u32,
    reserve: u32,
) -> (u32, u32) {
    calibration.map_or((budget, reserve), |calibration| {
        (calibration.to_estimated_floor(budget), calibration.to_estimated_ceil(reserve))
    })
}

/// Returns the function that writes a summary into a context.
fn choose_summary_markup(config: &Config) -> fn(&transcript::SummaryElement<'_>) -> String {
    match config.plain_summaries {
        true => transcript::render_summary_plain,
        false => transcript::render_summary_xml,
    }
}

/// Assembles a context.
///
/// # Errors
///
/// - `not-found`: the conversation does not exist, and no live message begins one
/// - `invalid-input`: the budget is 0 or used up by the reserve, or a live message is invalid
/// - `limit-exceeded`: too many live messages
/// - errors of the store
pub(crate) fn assemble(
    reader: &mut StoreSession<'_>,
    cache: &mut RenderCache,
    config: &Config,
    conversation: &str,
    budget: u32,
    dialect: Dialect,
    options: &AssembleOptions,
) -> Result<AssembledContext> {
    let keys = ConversationKeys::new(conversation)?;
    config.derive_policy(budget)?;
    let extra = ExtraOptions::read(&keys, options.extra_json.as_deref())?;
    let model = extra.model.as_ref();
    let mut further: Vec<String> = Vec::from([keys.focus_key()]);
    further.extend(model.map(|model| model.key.clone()));
    let (loaded, mut found) = LoadedHead::read_with_keys(reader, &keys, conversation, &further)?;
    cache.drop_stale(reader.generation());
    if options.live_messages.is_empty() {
        loaded.ensure_exists()?;
    }
    let calibration = calibration::CalibratedModel::pop_calibration(model, &mut found)?;
    let brief = found
        .pop()
        .flatten()
        .map(|value| FocusBrief::read(&keys.focus_key(), &value))
        .transpose()?;
    let head = &loaded.head;
    let named = model.map(calibration::CalibratedModel::model_name);
    let (estimated, reserved) =
        estimate_amounts(calibration.as_ref(), budget, options.reserve_tokens);
    let (policy, _) =
        session::select_policy(reader, config, &keys, head, named, (budget, estimated))?;
    let policy = subtract_reserve(policy, reserved)?;
    let history = MessageHistory { keys: &keys, head };
    let mut items = select::load_items(reader, &history, &policy)?;
    let live = pending::read_pending(dialect, &options.live_messages, head, &items)?;
    let mut focus = None;
    if !config.enabled {
        // A disabled engine ignores its summaries and shows the newest raw messages that fit.
        items = load_raw_items(reader, &history, &items)?;
    } else if let Some(brief) = &brief {
        focus = focus::replace_covered_summaries(brief, &mut items, config.plain_summaries);
    }
    let tail = fresh_tail::compute_fresh_tail(reader, &history, &items, &policy)?;
    select::prefetch_context(reader, &history, &items, &policy, focus.as_ref())?;
    let mut input = AssemblyInput {
        history: &history,
        items: &items,
        tail: &tail,
        policy: &policy,
        pending: &live,
        focus: focus.as_ref(),
        render_summary: choose_summary_markup(config),
        full_outputs: FullOutputs::default(),
        is_enabled: config.enabled,
    };
    if config.stub_large_tool_payloads {
        input.full_outputs =
            FullOutputs::select_from_tail(reader, &history, &tail, input.evictable_budget())?;
    }
    let eviction = EvictionPlan::new(reader, &input, config, options)?;
    let (choice, mut rendered) = fit_to_budget(reader, cache, &mut input, &eviction, dialect)?;
    let result = input.build_result(reader, options, &choice, &rendered)?;
    if extra.marks_caches {
        rendered.write_cache_marks(&result.prefix.breakpoints);
    }
    Ok(AssembledContext { messages_json: rendered.into_cached_json(cache), ..result })
}

/// The options in `extra-json`.
struct ExtraOptions {
    /// Model in whose tokens the budget is counted.
    model: Option<calibration::CalibratedModel>,
    /// Whether the array gets cache marks.
    marks_caches: bool,
}

impl ExtraOptions {
    fn read(keys: &ConversationKeys, json: Option<&str>) -> Result<Self> {
        const NAME: &str = "extra-json";
        let mut fields =
            JsonFields::parse_argument(NAME, json.filter(|json| !json.is_empty()).unwrap_or("{}"))?;
        let (model, marks_caches) =
            (fields.take_optional_text("model"), fields.take_flag("mark_caches"));
        fields.finish(NAME)?;
        let model =
            model.map(|model| calibration::CalibratedModel::new(keys, model)).transpose()?;
        Ok(Self { model, marks_caches })
    }
}

/// Selects and renders items until the rendered context fits the budget.
///
/// A dialect may add tokens. Each round selects fewer tokens by the excess of the last round. The
/// last rounds give up the full tool outputs, then return the protected part alone.
fn fit_to_budget(
    reader: &mut StoreSession<'_>,
    cache: &mut RenderCache,
    input: &mut AssemblyInput<'_>,
    eviction: &EvictionPlan,
    dialect: Dialect,
) -> Result<(ContextChoice, RenderedContext)> {
    cache.arrays.begin_assembly(input.history.keys.key_prefix());
    let budget = u64::from(input.policy.budget);
    let mut tokens = input.evictable_budget();
    loop {
        let fill = eviction.plan_fill(input, tokens);
        let choice = select::select_items(reader, input, &fill)?;
        let mut rendered = render::render(reader, cache, input, &choice, dialect)?;
        match choice.count_fill_tokens(input) {
            Some(selected) if rendered.tokens > budget && tokens > 0 => {
                let excess = rendered.tokens - budget;
                rendered.into_cached_json(cache);
                tokens = selected.saturating_sub(excess).min(tokens.saturating_sub(1));
            }
            None if rendered.tokens > budget && input.full_outputs.extra_tokens > 0 => {
                rendered.into_cached_json(cache);
                input.full_outputs = FullOutputs::default();
                tokens = input.evictable_budget();
            }
            _ => {
                rendered.close_array();
                return Ok((choice, rendered));
            }
        }
    }
}

/// Loads the conversation as one run of raw messages that begins with its newest session.
fn load_raw_items(
    reader: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    items: &[ContextItem],
) -> Result<Vec<ContextItem>> {
    let head = history.head;
    let withdrawn = items.iter().rev().find(|item| matches!(item, ContextItem::Withdrawn { .. }));
    let before = withdrawn.map_or(0, ContextItem::seq_last);
    let (seq_first, seq_last) = (before + 1, head.messages);
    if seq_first > seq_last {
        return Ok(Vec::new());
    }
    let first = match before {
        0 => None,
        _ => history.read_messages(reader, seq_first, seq_first)?.pop(),
    };
    let tokens_before = first.map_or(0, |placed| placed.tokens_before);
    let tokens = head.raw_tokens.saturating_sub(tokens_before);
    Ok(alloc::vec![ContextItem::Run(MessageRun { seq_first, seq_last, tokens_before, tokens })])
}

/// Returns the policy with the reserve subtracted from its budget.
fn subtract_reserve(policy: config::BudgetPolicy, reserve: u32) -> Result<config::BudgetPolicy> {
    if reserve >= policy.budget {
        let budget = policy.budget;
        return Err(Error::invalid_input(format_args!(
            "`reserve_tokens` must be smaller than the budget of {budget} tokens, got {reserve}"
        )));
    }
    Ok(policy.with_reserve(reserve))
}
