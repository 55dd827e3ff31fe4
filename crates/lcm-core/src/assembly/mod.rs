//! Assembly: the context that fits a budget, rendered for the one who reads it.
//!
//! Reads only. The fresh tail and a pinned message always belong; which older items follow is said
//! by a policy. What is chosen is rendered and counted as it is returned; if a dialect made it
//! larger than the budget, less is chosen. Every array for a provider is checked before it leaves.

mod accepted;
mod again;
mod choose;
mod dialect;
mod explain;
mod focus;
mod live;
mod marks;
mod picture;
mod policy;
mod prefix;
mod render;
mod whole;

use crate::storage::session;
use alloc::{format, rc::Rc, string::String, vec::Vec};

use crate::storage::{
    context::{Item, Run},
    fresh_tail::{self, Tail},
    head::Loaded,
    history::History,
    keys::Keys,
    records::{calibration, focus::Brief},
    store_session::Reader,
};
use again::Renderings;
use choose::Choice;
use focus::Focus;
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::Fields,
    },
    config::{self, Config},
    summary::transcript,
    types::api::{AssembleOptions, Assembled, Dialect},
};
use live::Live;
use marks::Marks;
use policy::Keeping;
use render::Rendered;
use whole::Whole;

/// What assemblies leave for the next one: element hashes and rendered provider arrays.
#[derive(Debug, Default)]
pub(crate) struct RenderCache {
    /// Generation of the read cache under which the rest was made.
    generation: u64,
    /// Of the last assembly of any conversation.
    marks: Rc<Marks>,
    /// Of the last assemblies of one conversation for providers.
    renderings: Renderings,
}

/// Assembles a context.
///
/// # Errors
///
/// `not-found`: no such conversation, and no live message to begin one; `invalid-input`: budget 0
/// or nothing left of it, or a live message; `limit-exceeded`: too many of these; errors of the
/// store.
pub(crate) fn assemble(
    reader: &mut Reader<'_>,
    cache: &mut RenderCache,
    config: &Config,
    conversation: &str,
    budget: u32,
    dialect: Dialect,
    options: &AssembleOptions,
) -> Result<Assembled> {
    let keys = Keys::new(conversation)?;
    config.policy(budget)?;
    let extra = Extra::read(&keys, options.extra_json.as_deref())?;
    let model = extra.model.as_ref();
    let mut further: Vec<String> = Vec::from([keys.focus()]);
    further.extend(model.map(|model| model.key.clone()));
    let (loaded, mut found) = Loaded::read(reader, &keys, conversation, &further)?;
    if cache.generation != reader.generation() {
        // Another store or a restored one: what was rendered from the old one is dropped.
        *cache = RenderCache { generation: reader.generation(), ..RenderCache::default() };
    }
    if options.live_messages.is_empty() {
        loaded.must_exist()?;
    }
    let calibration = calibration::Wanted::taken(model, &mut found)?;
    let brief =
        found.pop().flatten().map(|value| Brief::read(&keys.focus(), &value)).transpose()?;
    let head = &loaded.head;
    let named = model.map(calibration::Wanted::model);
    let (estimated, reserved) = match &calibration {
        Some(calibration) => {
            (calibration.estimated(budget), calibration.estimated_of(options.reserve_tokens))
        }
        None => (budget, options.reserve_tokens),
    };
    let (policy, _) = session::policy(reader, config, &keys, head, named, (budget, estimated))?;
    let policy = less(policy, reserved)?;
    let history = History { keys: &keys, head };
    let mut items = choose::load(reader, &history, &policy)?;
    let live = live::read(dialect, &options.live_messages, head, &items)?;
    let mut focus = None;
    if !config.enabled {
        // A disabled engine passes its summaries over: the newest messages that fit, as they are.
        items = all_raw(reader, &history, &items)?;
    } else if let Some(brief) = &brief {
        focus = focus::lay_over(brief, &mut items, config.plain_summaries);
    }
    let tail = fresh_tail::fresh_tail(reader, &history, &items, &policy)?;
    choose::prefetch(reader, &history, &items, &policy, focus.as_ref())?;
    let mut assembly = Assembly {
        history: &history,
        items: &items,
        tail: &tail,
        policy: &policy,
        live: &live,
        focus: focus.as_ref(),
        form: if config.plain_summaries {
            transcript::summary_plain
        } else {
            transcript::summary_xml
        },
        whole: Whole::default(),
        is_enabled: config.enabled,
    };
    if config.stub_large_tool_payloads {
        assembly.whole = Whole::of_tail(reader, &history, &tail, assembly.room())?;
    }
    let keeping = Keeping::new(reader, &assembly, config, options)?;
    let (choice, mut rendered) = assembly.fit(reader, cache, dialect, &keeping)?;
    let assembled =
        assembly.assembled(reader, (dialect, &extra), options, &choice, &mut rendered)?;
    Ok(Assembled { messages_json: rendered.keep(cache), ..assembled })
}

/// What `extra-json` asks for.
struct Extra {
    /// By whose tokens the budget is meant.
    model: Option<calibration::Wanted>,
    mark_caches: bool,
}

impl Extra {
    fn read(keys: &Keys, json: Option<&str>) -> Result<Self> {
        const NAME: &str = "extra-json";
        let mut fields =
            Fields::of_argument(NAME, json.filter(|json| !json.is_empty()).unwrap_or("{}"))?;
        let (model, mark_caches) = (fields.text_or_none("model"), fields.flag("mark_caches"));
        fields.end(NAME)?;
        let model = model.map(|model| calibration::Wanted::of(keys, model)).transpose()?;
        Ok(Self { model, mark_caches })
    }
}

/// What there is to choose from, and by which rule.
struct Assembly<'a> {
    history: &'a History<'a>,
    /// The stored context, with the focus brief in place of what it covers.
    items: &'a [Item],
    tail: &'a Tail,
    policy: &'a config::Policy,
    /// What is not stored and ends the context.
    live: &'a [Live],
    focus: Option<&'a Focus>,
    /// How a summary is written.
    form: fn(&transcript::SummaryElement<'_>) -> String,
    whole: Whole,
    /// Whether anything is ever compacted.
    is_enabled: bool,
}

impl Assembly<'_> {
    /// Tokens of what belongs whatever else fits: tail, pin, brief and live messages.
    fn kept(&self) -> u64 {
        let live = self.live.iter().map(|live| u64::from(live.message.tokens)).sum::<u64>();
        self.kept_items() + live + self.whole.tokens
    }

    /// Those of items of the stored context, as they are stored.
    fn kept_items(&self) -> u64 {
        let pinned = self.tail.pin.map_or(0, |pin| pin.tokens);
        self.tail.tokens + pinned + self.focus.map_or(0, |focus| focus.tokens)
    }

    /// Tokens of items that may be left out.
    fn evictable(&self) -> u64 {
        let all = self.items.iter().map(Item::rendered_tokens).sum::<u64>();
        all.saturating_sub(self.kept_items())
    }

    /// Tokens of the budget for them.
    fn room(&self) -> u64 {
        u64::from(self.policy.budget).saturating_sub(self.kept())
    }

    /// Chooses and renders. What a dialect adds, the fill has to give back: less is chosen until
    /// what is rendered fits, or is nothing but what belongs in any case.
    fn fit(
        &mut self,
        reader: &mut Reader<'_>,
        cache: &mut RenderCache,
        dialect: Dialect,
        keeping: &Keeping,
    ) -> Result<(Choice, Rendered)> {
        cache.renderings.begin(self.history.keys.root());
        let budget = u64::from(self.policy.budget);
        let mut tokens = self.room();
        loop {
            let fill = keeping.fill(self, tokens);
            let choice = choose::choose(reader, self, &fill)?;
            let mut rendered = render::render(reader, cache, self, &choice, dialect)?;
            match choice.fill_tokens(self) {
                Some(chosen) if rendered.tokens > budget && tokens > 0 => {
                    let over = rendered.tokens - budget;
                    rendered.keep(cache);
                    tokens = chosen.saturating_sub(over).min(tokens.saturating_sub(1));
                }
                None if rendered.tokens > budget && self.whole.tokens > 0 => {
                    rendered.keep(cache);
                    self.whole = Whole::default();
                    tokens = self.room();
                }
                _ => {
                    rendered.close(dialect);
                    return Ok((choice, rendered));
                }
            }
        }
    }

    /// What is to be said of a context that waits for compaction.
    fn debt(&self) -> Option<String> {
        let (tokens, threshold) = (self.history.head.context.tokens, self.policy.threshold);
        (tokens > u64::from(threshold) && self.is_enabled).then(|| {
            format!(
                "debt-pending: the stored context has {tokens} tokens, the threshold is {threshold}"
            )
        })
    }

    /// What is to be said of a context that is over its budget: each part of it that belongs in any
    /// case, which is all of it, with its tokens.
    fn over_budget(&self, rendered: &Rendered) -> Option<String> {
        let (budget, tokens) = (self.policy.budget, rendered.tokens);
        if tokens <= u64::from(budget) {
            return None;
        }
        let is_live = |(index, _): (usize, u64)| index == self.items.len();
        let is_tail = |(index, seq)| !is_live((index, seq)) && seq >= self.tail.seq_first;
        let pin = self.tail.pin.map(|pin| pin.seq);
        let parts = [
            ("focus brief", rendered.tokens_of(&|(index, _)| self.is_focus(index))),
            ("pinned message", rendered.tokens_of(&|(_, seq)| Some(seq) == pin)),
            ("fresh tail", rendered.tokens_of(&is_tail)),
            ("live messages", rendered.tokens_of(&is_live)),
        ];
        let told = parts.iter().filter(|(_, tokens)| *tokens > 0);
        let told: Vec<String> = told.map(|(name, tokens)| format!("{name} {tokens}")).collect();
        let told = told.join(", ");
        Some(format!("tail-over-budget: {tokens} tokens, the budget is {budget}: {told}"))
    }

    /// What is returned.
    fn assembled(
        &self,
        reader: &mut Reader<'_>,
        (dialect, extra): (Dialect, &Extra),
        options: &AssembleOptions,
        choice: &Choice,
        rendered: &mut Rendered,
    ) -> Result<Assembled> {
        let mut warnings = Vec::new();
        warnings.extend(self.over_budget(rendered));
        warnings.extend(self.debt());
        warnings.extend(rendered.warnings());
        let pieces = choice.pieces(self.items);
        let evicted = explain::left_out(&pieces, self.items);
        let fresh = (self.history.head.messages + 1).saturating_sub(self.tail.seq_first);
        let items =
            if options.explain { self.explain(reader, &pieces, rendered)? } else { Vec::new() };
        let text = options.explain.then(|| picture::explanation(&items, self.policy.budget));
        let previous = options.previous.as_deref();
        let prefix = self.prefix(rendered, dialect, previous);
        if previous.is_some() && prefix.stable_tokens.is_none() {
            warnings.push("previous-unknown: `previous` is no token of this conversation".into());
        }
        if extra.mark_caches {
            rendered.mark_caches(dialect, &prefix.breakpoints);
        }
        Ok(Assembled {
            prefix,
            tokens: int::tokens_u32(rendered.tokens),
            summaries: rendered.summaries,
            fresh_tail_messages: int::tokens_u32(fresh),
            evicted: int::tokens_u32(evicted),
            items,
            explanation_text: text,
            system: rendered.system.clone(),
            warnings,
            messages_json: String::new(),
        })
    }

    /// Id of an item; `seq`: the first message that is meant.
    fn name(&self, index: usize, seq: u64) -> String {
        match self.items.get(index) {
            Some(Item::Summary(_)) if self.is_focus(index) => self.focus_name().into(),
            Some(Item::Summary(summary)) => crate::storage::summary::name(summary.id),
            Some(_) => self.history.keys.message_name(seq),
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
fn all_raw(reader: &mut Reader<'_>, history: &History<'_>, items: &[Item]) -> Result<Vec<Item>> {
    let head = history.head;
    let withdrawn = items.iter().rev().find(|item| matches!(item, Item::Withdrawn { .. }));
    let before = withdrawn.map_or(0, Item::seq_last);
    let (seq_first, seq_last) = (before + 1, head.messages);
    if seq_first > seq_last {
        return Ok(Vec::new());
    }
    let first = match before {
        0 => None,
        _ => history.messages(reader, seq_first, seq_first)?.pop(),
    };
    let tokens_before = first.map_or(0, |placed| placed.tokens_before);
    let tokens = head.raw_tokens.saturating_sub(tokens_before);
    Ok(alloc::vec![Item::Run(Run { seq_first, seq_last, tokens_before, tokens })])
}

/// What is left of a policy beside what the host needs for itself.
fn less(policy: config::Policy, reserved: u32) -> Result<config::Policy> {
    if reserved >= policy.budget {
        return Err(Error::invalid("reserve-tokens: nothing is left of the budget"));
    }
    Ok(policy.less(reserved))
}
