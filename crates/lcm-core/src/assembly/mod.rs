//! Assembly: the context that fits a budget, rendered for the one who reads it.
//!
//! Reads only. The fresh tail and a pinned message always belong; which older items follow is said
//! by a policy. What is chosen is rendered and counted as it is returned; if a dialect made it
//! larger than the budget, less is chosen.

mod choose;
mod dialect;
mod marks;
mod policy;
mod render;

use alloc::{format, string::String, vec::Vec};

use crate::{
    api::{self, AssembleOptions, Assembled, Dialect},
    calibration,
    config::{Config, Policy},
    context::{Item, Run},
    error::{Error, Result},
    head::Loaded,
    history::History,
    keys::Keys,
    life, num,
    reader::Reader,
    tail::{self, Tail},
};
use choose::Choice;
pub(crate) use marks::Marks;
use policy::Keeping;
use render::Rendered;

/// Assembles a context.
///
/// # Errors
///
/// `not-found`: no such conversation; `invalid-input`: budget 0 or nothing left of it;
/// `unsupported`: a policy or option that is not offered yet; errors of the store.
pub(crate) fn assemble(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    budget: u32,
    dialect: Dialect,
    options: &AssembleOptions,
) -> Result<Assembled> {
    let keys = Keys::new(conversation)?;
    config.policy(budget)?;
    supported(options)?;
    let model = calibration::Wanted::of_options(&keys, options.extra_json.as_deref())?;
    let further: Vec<String> = model.iter().map(|model| model.key.clone()).collect();
    let (loaded, mut found) = Loaded::read(reader, &keys, conversation, &further)?;
    let loaded = loaded.existing()?;
    let calibration = calibration::Wanted::taken(model.as_ref(), &mut found)?;
    let head = &loaded.head;
    let named = model.as_ref().map(calibration::Wanted::model);
    let (estimated, reserved) = match &calibration {
        Some(calibration) => {
            (calibration.estimated(budget), calibration.estimated_of(options.reserve_tokens))
        }
        None => (budget, options.reserve_tokens),
    };
    let (policy, _) = life::policy(reader, config, &keys, head, named, (budget, estimated))?;
    let policy = less(policy, reserved)?;
    let history = History { keys: &keys, head };
    let mut items = choose::load(reader, &history, &policy)?;
    if !config.enabled {
        // A disabled engine passes its summaries over: the newest messages that fit, as they are.
        items = all_raw(reader, &history, &items)?;
    }
    let tail = tail::fresh_tail(reader, &history, &items, &policy)?;
    choose::prefetch(reader, &history, &items, &policy)?;
    let chosen = Chosen { history: &history, items: &items, tail: &tail, policy: &policy };
    let keeping = Keeping::new(reader, &chosen, config, options)?;
    let (choice, rendered) = chosen.fit(reader, dialect, &keeping)?;
    let mut warnings = Vec::new();
    if rendered.tokens > u64::from(policy.budget) {
        warnings.push(format!(
            "tail-over-budget: the newest message or call group alone has {} tokens",
            rendered.tokens
        ));
    }
    if head.context.tokens > u64::from(policy.threshold) && config.enabled {
        warnings.push(format!(
            "debt-pending: the stored context has {} tokens, the threshold is {}",
            head.context.tokens, policy.threshold
        ));
    }
    warnings.extend(rendered.warnings());
    let pieces = choice.pieces(&items);
    let left_out = pieces.iter().filter(|piece| !piece.included);
    let evicted = left_out.map(|piece| piece.count(&items)).sum::<u64>();
    Ok(Assembled {
        prefix: render::prefix(&rendered, options.previous.as_deref(), &keys, &items),
        tokens: num::tokens_u32(rendered.tokens),
        summaries: rendered.summaries,
        fresh_tail_messages: num::tokens_u32((head.messages + 1).saturating_sub(tail.seq_first)),
        evicted: num::tokens_u32(evicted),
        items: if options.explain {
            explain(&pieces, &items, &keys, &rendered)
        } else {
            Vec::new()
        },
        messages_json: rendered.messages_json,
        system: rendered.system,
        warnings,
    })
}

/// What there is to choose from, and by which rule.
struct Chosen<'a> {
    history: &'a History<'a>,
    items: &'a [Item],
    tail: &'a Tail,
    policy: &'a Policy,
}

impl Chosen<'_> {
    /// Chooses and renders. What a dialect adds, the fill has to give back: less is chosen until
    /// what is rendered fits, or is nothing but the tail and the pin.
    fn fit(
        &self,
        reader: &mut Reader<'_>,
        dialect: Dialect,
        keeping: &Keeping,
    ) -> Result<(Choice, Rendered)> {
        let Self { history, items, tail, policy } = *self;
        let budget = u64::from(policy.budget);
        let pinned = tail.pin.map_or(0, |pin| pin.tokens);
        let mut tokens = budget.saturating_sub(tail.tokens + pinned);
        loop {
            let fill = keeping.fill(items, tail, tokens);
            let choice = choose::choose(reader, history, items, tail, &fill)?;
            let rendered = render::render(reader, history, items, &choice, dialect)?;
            match choice.fill_tokens(items) {
                Some(chosen) if rendered.tokens > budget => {
                    let over = rendered.tokens - budget;
                    tokens = chosen.saturating_sub(over).min(tokens.saturating_sub(1));
                }
                _ => return Ok((choice, rendered)),
            }
        }
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

fn supported(options: &AssembleOptions) -> Result<()> {
    if !options.live_messages.is_empty() {
        return Err(Error::unsupported("live-messages: not offered by this version; append first"));
    }
    Ok(())
}

/// What is left of a policy beside what the host needs for itself.
fn less(policy: Policy, reserved: u32) -> Result<Policy> {
    if reserved >= policy.budget {
        return Err(Error::invalid("reserve-tokens: nothing is left of the budget"));
    }
    Ok(policy.less(reserved))
}

/// Every item of the stored context, runs cut where inclusion changes.
fn explain(
    pieces: &[choose::Piece],
    items: &[Item],
    keys: &Keys,
    rendered: &render::Rendered,
) -> Vec<api::Item> {
    let describe = |piece: &choose::Piece| {
        let (id, kind): (String, &str) = match items.get(piece.index) {
            Some(Item::Summary(summary)) => {
                let kind = if summary.depth == 0 { "leaf" } else { "condensed" };
                (crate::summary::name(summary.id), kind)
            }
            Some(Item::Withdrawn { .. }) => (keys.message_name(piece.seq_first), "withdrawn"),
            _ => (keys.message_name(piece.seq_first), "message"),
        };
        let done = if piece.included { rendered.done_to(piece) } else { String::new() };
        let tokens = if piece.included { rendered.tokens_of(piece) } else { piece.tokens };
        api::Item {
            id,
            kind: kind.into(),
            included: piece.included,
            why: if done.is_empty() { piece.why.into() } else { format!("{}: {done}", piece.why) },
            tokens: num::tokens_u32(tokens),
            seq_first: Some(piece.seq_first),
            seq_last: Some(piece.seq_last),
        }
    };
    pieces.iter().map(describe).collect()
}

impl Choice {
    /// The choice as pieces of the stored context, in order.
    fn pieces(&self, items: &[Item]) -> Vec<choose::Piece> {
        let mut out = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match item {
                Item::Summary(summary) => out.push(choose::Piece {
                    index,
                    seq_first: summary.seq_first,
                    seq_last: summary.seq_last,
                    tokens: item.rendered_tokens(),
                    included: self.has_summary(index),
                    why: self.why(index).unwrap_or("over-budget"),
                }),
                Item::Run(run) => self.cut(index, run, &mut out),
                Item::Withdrawn { seq_first, seq_last } => out.push(choose::Piece {
                    index,
                    seq_first: *seq_first,
                    seq_last: *seq_last,
                    tokens: 0,
                    included: false,
                    why: "withdrawn",
                }),
            }
        }
        out
    }
}
