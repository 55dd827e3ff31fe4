//! Assembly: the context that fits a budget, rendered for the one who reads it.
//!
//! Reads only. The fresh tail and a pinned message always belong; which older items follow is said
//! by a policy. What is chosen is rendered and counted as it is returned; if a dialect made it
//! larger than the budget, less is chosen. Every array for a provider is checked before it leaves.

mod dialect;
mod element_hashes;
mod eviction_policy;
mod explain;
mod explain_text;
mod final_check;
mod focus;
mod full_outputs;
mod pending;
mod prefix;
mod render;
mod render_cache;
mod select;

use crate::storage::session;
use alloc::{format, rc::Rc, string::String, vec::Vec};

use crate::storage::{
    context::{ContextItem, MessageRun},
    fresh_tail::{self, FreshTail},
    head::LoadedHead,
    history::MessageHistory,
    keys::ConversationKeys,
    records::{calibration, focus::FocusBrief},
    store_session::StoreSession,
};
use element_hashes::ElementHashes;
use eviction_policy::EvictionPlan;
use focus::FocusElement;
use full_outputs::FullOutputs;
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::JsonFields,
    },
    config::{self, Config},
    summary::transcript,
    types::api::{AssembleOptions, AssembledContext, Dialect},
};
use pending::PendingMessage;
use render::RenderedContext;
use render_cache::RenderedArrays;
use select::ContextChoice;

/// What assemblies leave for the next one: element hashes and rendered provider arrays.
#[derive(Debug, Default)]
pub(crate) struct RenderCache {
    /// Generation of the read cache under which the rest was made.
    generation: u64,
    /// Of the last assembly of any conversation.
    marks: Rc<ElementHashes>,
    /// Of the last assemblies of one conversation for providers.
    arrays: RenderedArrays,
}

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
/// `not-found`: no such conversation, and no live message to begin one; `invalid-input`: budget 0
/// or nothing left of it, or a live message; `limit-exceeded`: too many of these; errors of the
/// store.
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
    let extra = AssembleExtra::read(&keys, options.extra_json.as_deref())?;
    let model = extra.model.as_ref();
    let mut further: Vec<String> = Vec::from([keys.focus_key()]);
    further.extend(model.map(|model| model.key.clone()));
    let (loaded, mut found) = LoadedHead::read_with_keys(reader, &keys, conversation, &further)?;
    if cache.generation != reader.generation() {
        // Another store or a restored one: what was rendered from the old one is dropped.
        *cache = RenderCache { generation: reader.generation(), ..RenderCache::default() };
    }
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
    let live = pending::read(dialect, &options.live_messages, head, &items)?;
    let mut focus = None;
    if !config.enabled {
        // A disabled engine passes its summaries over: the newest messages that fit, as they are.
        items = load_raw_items(reader, &history, &items)?;
    } else if let Some(brief) = &brief {
        focus = focus::replace_covered_summaries(brief, &mut items, config.plain_summaries);
    }
    let tail = fresh_tail::compute_fresh_tail(reader, &history, &items, &policy)?;
    select::prefetch_context(reader, &history, &items, &policy, focus.as_ref())?;
    let mut assembly = Assembly {
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
        assembly.full_outputs =
            FullOutputs::select_from_tail(reader, &history, &tail, assembly.evictable_budget())?;
    }
    let keeping = EvictionPlan::new(reader, &assembly, config, options)?;
    let (choice, mut rendered) = assembly.fit_to_budget(reader, cache, dialect, &keeping)?;
    let assembled =
        assembly.build_assembled(reader, (dialect, &extra), options, &choice, &mut rendered)?;
    Ok(AssembledContext { messages_json: rendered.into_cached_json(cache), ..assembled })
}

/// What `extra-json` asks for.
struct AssembleExtra {
    /// By whose tokens the budget is meant.
    model: Option<calibration::CalibratedModel>,
    mark_caches: bool,
}

impl AssembleExtra {
    fn read(keys: &ConversationKeys, json: Option<&str>) -> Result<Self> {
        const NAME: &str = "extra-json";
        let mut fields =
            JsonFields::parse_argument(NAME, json.filter(|json| !json.is_empty()).unwrap_or("{}"))?;
        let (model, mark_caches) =
            (fields.take_optional_text("model"), fields.take_flag("mark_caches"));
        fields.finish(NAME)?;
        let model =
            model.map(|model| calibration::CalibratedModel::new(keys, model)).transpose()?;
        Ok(Self { model, mark_caches })
    }
}

/// What there is to choose from, and by which rule.
struct Assembly<'a> {
    history: &'a MessageHistory<'a>,
    /// The stored context, with the focus brief in place of what it covers.
    items: &'a [ContextItem],
    tail: &'a FreshTail,
    policy: &'a config::BudgetPolicy,
    /// What is not stored and ends the context.
    pending: &'a [PendingMessage],
    focus: Option<&'a FocusElement>,
    /// How a summary is written.
    render_summary: fn(&transcript::SummaryElement<'_>) -> String,
    full_outputs: FullOutputs,
    /// Whether anything is ever compacted.
    is_enabled: bool,
}

impl Assembly<'_> {
    /// Tokens of what belongs whatever else fits: tail, pin, brief and live messages.
    fn protected_tokens(&self) -> u64 {
        let live = self.pending.iter().map(|live| u64::from(live.message.tokens)).sum::<u64>();
        self.protected_item_tokens() + live + self.full_outputs.extra_tokens
    }

    /// Those of items of the stored context, as they are stored.
    fn protected_item_tokens(&self) -> u64 {
        let pinned = self.tail.pinned.map_or(0, |pin| pin.tokens);
        self.tail.tokens + pinned + self.focus.map_or(0, |focus| focus.tokens)
    }

    /// Tokens of items that may be left out.
    fn evictable_tokens(&self) -> u64 {
        let all = self.items.iter().map(ContextItem::rendered_tokens).sum::<u64>();
        all.saturating_sub(self.protected_item_tokens())
    }

    /// Tokens of the budget for them.
    fn evictable_budget(&self) -> u64 {
        u64::from(self.policy.budget).saturating_sub(self.protected_tokens())
    }

    /// Chooses and renders. What a dialect adds, the fill has to give back: less is chosen until
    /// what is rendered fits, or is nothing but what belongs in any case.
    fn fit_to_budget(
        &mut self,
        reader: &mut StoreSession<'_>,
        cache: &mut RenderCache,
        dialect: Dialect,
        keeping: &EvictionPlan,
    ) -> Result<(ContextChoice, RenderedContext)> {
        cache.arrays.begin_assembly(self.history.keys.key_prefix());
        let budget = u64::from(self.policy.budget);
        let mut tokens = self.evictable_budget();
        loop {
            let fill = keeping.plan_fill(self, tokens);
            let choice = select::select_items(reader, self, &fill)?;
            let mut rendered = render::render(reader, cache, self, &choice, dialect)?;
            match choice.count_fill_tokens(self) {
                Some(chosen) if rendered.tokens > budget && tokens > 0 => {
                    let over = rendered.tokens - budget;
                    rendered.into_cached_json(cache);
                    tokens = chosen.saturating_sub(over).min(tokens.saturating_sub(1));
                }
                None if rendered.tokens > budget && self.full_outputs.extra_tokens > 0 => {
                    rendered.into_cached_json(cache);
                    self.full_outputs = FullOutputs::default();
                    tokens = self.evictable_budget();
                }
                _ => {
                    rendered.close_array(dialect);
                    return Ok((choice, rendered));
                }
            }
        }
    }

    /// What is to be said of a context that waits for compaction.
    fn debt_warning(&self) -> Option<String> {
        let (tokens, threshold) = (self.history.head.context.tokens, self.policy.threshold);
        (tokens > u64::from(threshold) && self.is_enabled).then(|| {
            format!(
                "debt-pending: the stored context has {tokens} tokens, the threshold is {threshold}"
            )
        })
    }

    /// What is to be said of a context that is over its budget: each part of it that belongs in any
    /// case, which is all of it, with its tokens.
    fn over_budget_warning(&self, rendered: &RenderedContext) -> Option<String> {
        let (budget, tokens) = (self.policy.budget, rendered.tokens);
        if tokens <= u64::from(budget) {
            return None;
        }
        let is_live = |(index, _): (usize, u64)| index == self.items.len();
        let is_tail = |(index, seq)| !is_live((index, seq)) && seq >= self.tail.seq_first;
        let pin = self.tail.pinned.map(|pin| pin.seq);
        let parts = [
            ("focus brief", rendered.count_tokens_of(&|(index, _)| self.is_focus(index))),
            ("pinned message", rendered.count_tokens_of(&|(_, seq)| Some(seq) == pin)),
            ("fresh tail", rendered.count_tokens_of(&is_tail)),
            ("live messages", rendered.count_tokens_of(&is_live)),
        ];
        let told = parts.iter().filter(|(_, tokens)| *tokens > 0);
        let told: Vec<String> = told.map(|(name, tokens)| format!("{name} {tokens}")).collect();
        let told = told.join(", ");
        Some(format!("tail-over-budget: {tokens} tokens, the budget is {budget}: {told}"))
    }

    /// What is returned.
    fn build_assembled(
        &self,
        reader: &mut StoreSession<'_>,
        (dialect, extra): (Dialect, &AssembleExtra),
        options: &AssembleOptions,
        choice: &ContextChoice,
        rendered: &mut RenderedContext,
    ) -> Result<AssembledContext> {
        let mut warnings = Vec::new();
        warnings.extend(self.over_budget_warning(rendered));
        warnings.extend(self.debt_warning());
        warnings.extend(rendered.list_warnings());
        let pieces = choice.split_pieces(self.items);
        let evicted = explain::count_omitted_items(&pieces, self.items);
        let fresh = (self.history.head.messages + 1).saturating_sub(self.tail.seq_first);
        let items = if options.explain {
            self.explain_items(reader, &pieces, rendered)?
        } else {
            Vec::new()
        };
        let text =
            options.explain.then(|| explain_text::render_explanation(&items, self.policy.budget));
        let previous = options.previous.as_deref();
        let prefix = self.compare_prefix(rendered, dialect, previous);
        if previous.is_some() && prefix.stable_tokens.is_none() {
            warnings.push("previous-unknown: `previous` is no token of this conversation".into());
        }
        if extra.mark_caches {
            rendered.write_cache_marks(dialect, &prefix.breakpoints);
        }
        Ok(AssembledContext {
            prefix,
            tokens: int::saturate_tokens(rendered.tokens),
            summaries: rendered.summaries,
            fresh_tail_messages: int::saturate_tokens(fresh),
            evicted: int::saturate_tokens(evicted),
            items,
            explanation_text: text,
            system: rendered.system.clone(),
            warnings,
            messages_json: String::new(),
        })
    }

    /// Id of an item; `seq`: the first message that is meant.
    fn item_name(&self, index: usize, seq: u64) -> String {
        match self.items.get(index) {
            Some(ContextItem::Summary(_)) if self.is_focus(index) => self.focus_name().into(),
            Some(ContextItem::Summary(summary)) => {
                crate::storage::summary::format_summary_id(summary.id)
            }
            Some(_) => self.history.keys.message_id(seq),
            None => format!("live-{}", seq.saturating_sub(self.history.head.messages)),
        }
    }

    fn is_focus(&self, index: usize) -> bool {
        self.focus.is_some_and(|focus| focus.index == index)
    }

    fn focus_name(&self) -> &str {
        self.focus.map_or("", |focus| &focus.name)
    }
}

/// The conversation as if nothing had been summarised, from its newest session on.
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

/// What is left of a policy beside what the host needs for itself.
fn subtract_reserve(policy: config::BudgetPolicy, reserved: u32) -> Result<config::BudgetPolicy> {
    if reserved >= policy.budget {
        return Err(Error::invalid_input("reserve-tokens: nothing is left of the budget"));
    }
    Ok(policy.with_reserve(reserved))
}
