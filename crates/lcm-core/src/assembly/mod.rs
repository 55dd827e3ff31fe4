//! Assembly: selects the items of a context that fit a token budget, and renders them.
//!
//! In: a conversation, a budget, a dialect and the live messages. Out: the JSON array of messages
//! for a model, with counts and warnings. The export `assemble` is its only caller. Assembly writes
//! nothing to the store.
//!
//! The protected part is always included: the system messages, the fresh tail, the pinned message,
//! the focus brief and the live messages. An eviction policy selects the older items. The rendered
//! context is counted in its dialect; while it exceeds the budget, fewer items are selected. An
//! array for a provider is checked at the end: messages that the provider would refuse are removed.

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

use alloc::vec::Vec;

use crate::storage::{
    call::Call,
    context::{ContextItem, MessageRun},
    fresh_tail,
    head::LoadedHead,
    history::MessageHistory,
    record_key::RecordReads,
    records::{
        calibration,
        focus::FocusBrief,
        system_slot::{self, SystemText},
    },
    session::{self as session_rules, PolicyRequest},
    store_session::StoreSession,
};
use eviction_policy::EvictionPlan;
use full_outputs::FullOutputs;
use input::{AssemblyInput, SystemPart};
use lcm_text::{
    base::{
        error::{Error, Result},
        json::JsonFields,
    },
    config,
    types::api::{AssembleOptions, AssembledContext, Dialect},
};
pub(crate) use render_cache::RenderCache;
use rendered_context::RenderedContext;
use select::ContextChoice;

/// Converts budget and reserve to estimated tokens; without a calibration both stay unchanged.
fn estimate_amounts(
    calibration: Option<&calibration::Calibration>,
    budget: u32,
    reserve: u32,
) -> (u32, u32) {
    calibration.map_or((budget, reserve), |calibration| {
        (calibration.to_estimated_floor(budget), calibration.to_estimated_ceil(reserve))
    })
}

/// Arguments of an assembly.
pub(crate) struct AssembleRequest<'a> {
    /// Token budget of the context: in tokens of the model that `extra-json` names, if the model is
    /// calibrated, else in estimated tokens.
    pub(crate) budget: u32,
    /// Dialect of the returned messages and of the live messages.
    pub(crate) dialect: Dialect,
    pub(crate) options: &'a AssembleOptions,
}

/// Assembles a context.
///
/// # Errors
///
/// - `not-found`: the conversation does not exist, and there is neither a live message nor
///   `may_be_new`
/// - `invalid-input`: the budget is 0 or at most the reserve, `extra-json` is invalid, or `append`
///   would refuse a live message
/// - `limit-exceeded`: more live messages or bytes than one `append` takes, or system messages that
///   exceed the budget alone
/// - `denied`: the conversation is being deleted
/// - `conflict`: the conversation changed during the call
/// - `corrupt` or `unsupported`: a record is damaged, or has a newer format
/// - errors of the store
pub(crate) fn assemble(
    session: &mut StoreSession<'_>,
    cache: &mut RenderCache,
    call: Call<'_>,
    request: &AssembleRequest<'_>,
) -> Result<AssembledContext> {
    let AssembleRequest { budget, dialect, options } = *request;
    let Call { config, keys, .. } = call;
    config.derive_policy(budget)?;
    let extra = ExtraOptions::read(call, options.extra_json.as_deref())?;
    let model = extra.model.as_ref();
    let mut reads = RecordReads::default();
    let brief = reads.add_record(FocusBrief::key(keys));
    let calibration = model.map(|model| model.add_to(&mut reads));
    let (loaded, records) = LoadedHead::open_with_records(session, call, &reads)?;
    cache.drop_stale(session.generation());
    if options.live_messages.is_empty() && !extra.may_be_new {
        loaded.ensure_exists()?;
    }
    let calibration = match model.zip(calibration) {
        Some((model, slot)) => model.decode_from(&records, &slot)?,
        None => None,
    };
    let brief = records.decode(&brief)?;
    let head = &loaded.head;
    let model = model.map(calibration::CalibratedModel::model_name);
    let (estimated_budget, reserved) =
        estimate_amounts(calibration.as_ref(), budget, options.reserve_tokens);
    let request = PolicyRequest { model, budget, estimated_budget };
    let (policy, _) = session_rules::select_policy(session, call, head, &request)?;
    let policy = subtract_reserve(policy, reserved)?;
    let history = MessageHistory::new(call, head);
    let mut items = select::load_items(session, &history, &policy)?;
    let live = pending::read_pending(dialect, &options.live_messages, head, &items)?;
    let system = read_system(session, &history, live.system)?;
    system.ensure_fits(policy.budget)?;
    let mut focus = None;
    if !config.enabled {
        // A disabled engine ignores its summaries: the context is selected from raw messages only.
        items = load_raw_items(session, &history, &items)?;
    } else if let Some(brief) = &brief {
        focus = focus::replace_covered_summaries(brief, &mut items, config);
    }
    let tail = fresh_tail::compute_fresh_tail(session, &history, &items, &policy)?;
    select::prefetch_context(session, &history, &items, &policy, focus.as_ref())?;
    let mut input = AssemblyInput {
        call,
        history: &history,
        items: &items,
        tail: &tail,
        policy: &policy,
        system: &system,
        pending: &live.messages,
        focus: focus.as_ref(),
        full_outputs: FullOutputs::default(),
    };
    if config.stub_large_tool_payloads {
        input.full_outputs = FullOutputs::select_from_tail(session, &input)?;
    }
    let eviction = EvictionPlan::new(session, &input, options)?;
    let (choice, mut rendered) = fit_to_budget(session, cache, &mut input, &eviction, dialect)?;
    let result = input.build_result(session, options, &choice, &rendered)?;
    if extra.marks_caches {
        rendered.write_cache_marks(&result.prefix.breakpoints);
    }
    Ok(AssembledContext { messages_json: rendered.into_cached_json(cache), ..result })
}

/// Returns the system messages of the context: live ones, or else the newest version.
fn read_system(
    session: &mut StoreSession<'_>,
    history: &MessageHistory<'_>,
    live: Vec<SystemText>,
) -> Result<SystemPart> {
    if !live.is_empty() {
        return Ok(SystemPart::new(&live, None));
    }
    let Some(version) = system_slot::read_newest(session, history)? else {
        return Ok(SystemPart::default());
    };
    let texts = version.read_texts(session, history)?;
    Ok(SystemPart::new(&texts, history.head.system.map(|slot| slot.id)))
}

/// The options in `extra-json`.
struct ExtraOptions {
    /// Model in whose tokens the budget is counted; `None`: estimated tokens.
    model: Option<calibration::CalibratedModel>,
    /// Whether cache marks are written into the array; only the dialect `anthropic` has them.
    marks_caches: bool,
    /// Whether the conversation need not exist.
    may_be_new: bool,
}

impl ExtraOptions {
    fn read(call: Call<'_>, json: Option<&str>) -> Result<Self> {
        const NAME: &str = "extra-json";
        let mut fields =
            JsonFields::parse_argument(NAME, json.filter(|json| !json.is_empty()).unwrap_or("{}"))?;
        let (model, marks_caches) =
            (fields.take_optional_text("model"), fields.take_flag("mark_caches"));
        let may_be_new = fields.take_flag("may_be_new");
        fields.finish(NAME)?;
        let model =
            model.map(|model| calibration::CalibratedModel::new(call.keys, model)).transpose()?;
        Ok(Self { model, marks_caches, may_be_new })
    }
}

/// Selects and renders items until the rendered context fits the budget.
///
/// A context may have more tokens rendered than stored. Each round therefore selects at most as
/// many tokens as the last round, less the tokens by which the last round exceeded the budget. If
/// the protected part alone exceeds the budget, the full tool outputs become references and the
/// selection starts again. A protected part that still exceeds the budget is returned alone.
fn fit_to_budget(
    session: &mut StoreSession<'_>,
    cache: &mut RenderCache,
    input: &mut AssemblyInput<'_>,
    eviction: &EvictionPlan,
    dialect: Dialect,
) -> Result<(ContextChoice, RenderedContext)> {
    cache.arrays.begin_assembly(input.call.keys.key_prefix());
    let budget = u64::from(input.policy.budget);
    let mut tokens = input.evictable_budget();
    loop {
        let fill = eviction.plan_fill(input, tokens);
        let choice = select::select_items(session, input, &fill)?;
        let mut rendered = render::render(session, cache, input, &choice, dialect)?;
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

/// Returns all messages behind the newest withdrawn message as one run; without a withdrawn
/// message, all messages. Empty: no message is behind the withdrawn message.
fn load_raw_items(
    session: &mut StoreSession<'_>,
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
        _ => history.read_messages(session, seq_first, seq_first)?.pop(),
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
            "`reserve_tokens` must be smaller than the budget of {budget} estimated tokens, which \
             is at most `assembly_tokens_max`; got {reserve}"
        )));
    }
    Ok(policy.with_reserve(reserve))
}
