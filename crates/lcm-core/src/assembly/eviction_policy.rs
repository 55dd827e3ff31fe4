//! Which older items a context keeps when not everything fits.
//!
//! In: the stored context, a policy, and the prompt that it may look at. Out: for a number of
//! tokens the [`Fill`]. Not here: how units are cut, which is alike for all policies
//! ([`super::choose`]).

use alloc::vec::Vec;

use super::{Assembly, select::FillPlan};
use crate::{
    search::{
        Corpus, SearchIndex,
        full_text::{self, FullTextContext, NeighbourHits, RankedDocuments},
        score,
        text_query::{self, TextQuery},
        time_window::TimeWindow,
    },
    storage::{
        context::{ContextItem, MessageRun},
        fresh_tail::{self, MessageUnit},
        store_session::StoreSession,
    },
};
use lcm_text::{
    base::{error::Result, sort},
    config::Config,
    types::api::{AssembleOptions, EvictionPolicy},
};

/// Into how many steps a budget is divided by which the policy `layered` leaves out: with each the
/// prefix breaks once, and on average half a step of the budget stays empty.
const LAYER_STEPS: u64 = 8;
/// Messages and summaries that match a prompt and are looked at, the best first. Each message may
/// stand in a pack of its own, which is read.
const MATCHES_MAX: usize = 64;
/// Summaries of which it is looked up whether they stand in the context: the index has condensed
/// ones, too, so more than [`MATCHES_MAX`]; a context of a million tokens has fewer than these.
const SUMMARIES_MAX: usize = 1_024;
/// Messages that are read at a time to find the end of a unit: those of a pack, which is read
/// whole.
const UNIT_STEP: u64 = 64;

/// What a policy keeps of one context.
pub(super) enum EvictionPlan {
    /// Newest first.
    Newest,
    /// The oldest summary, then newest first, in steps of so many tokens.
    Layers { step: u64 },
    /// What matches, best first, with its tokens; then newest first.
    Matches(Vec<(KeepCandidate, u64)>),
}

/// What may be kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeepCandidate {
    /// A summary by its index.
    Summary(usize),
    /// Messages.
    Messages(MessageUnit),
}

impl EvictionPlan {
    /// What the policy keeps; of a context that fits, everything.
    ///
    /// # Errors
    ///
    /// As [`Index::postings`].
    pub(super) fn new(
        reader: &mut StoreSession<'_>,
        context: &Assembly<'_>,
        config: &Config,
        options: &AssembleOptions,
    ) -> Result<Self> {
        let policy = options.policy.unwrap_or(config.eviction_policy);
        let budget = u64::from(context.policy.budget);
        match (policy, options.prompt.as_deref()) {
            (EvictionPolicy::Layered, _) => {
                Ok(Self::Layers { step: (budget / LAYER_STEPS).max(1) })
            }
            (EvictionPolicy::PromptAware, Some(prompt))
                if context.evictable_tokens() > context.evictable_budget() =>
            {
                rank_matches(reader, context, prompt).map(Self::Matches)
            }
            _ => Ok(Self::Newest),
        }
    }

    /// What fills so many tokens beside what belongs in any case.
    pub(super) fn plan_fill(&self, context: &Assembly<'_>, tokens: u64) -> FillPlan {
        let evictable = context.evictable_tokens();
        let newest = FillPlan { tokens_left: tokens, ..FillPlan::default() };
        let fill = match self {
            _ if evictable <= tokens => newest,
            Self::Newest => newest,
            Self::Layers { step } => fill_layers(context, evictable, tokens, *step),
            Self::Matches(candidates) => fill_matches(candidates, tokens),
        };
        FillPlan { focus: context.focus.map(|focus| focus.index), ..fill }
    }
}

/// The summary that stands for the oldest messages, if it fits; and of the rest the newest. What is
/// left out ends at a multiple of the step, counted from the oldest item: it stays the same from
/// turn to turn until the next step, and so does the beginning of the context.
fn fill_layers(context: &Assembly<'_>, evictable: u64, tokens: u64, step: u64) -> FillPlan {
    let items = context.items;
    let oldest = items.iter().position(|item| matches!(item, ContextItem::Summary(_)));
    // A focus brief belongs anyway, and stands for the oldest messages.
    let oldest = oldest.filter(|index| !context.is_focus(*index));
    let cost = oldest.and_then(|index| items.get(index)).map_or(0, ContextItem::rendered_tokens);
    let oldest = oldest.filter(|_| cost <= tokens);
    let cost = oldest.map_or(0, |_| cost);
    let (rest, room) = (evictable - cost, tokens - cost);
    let over = rest.saturating_sub(room);
    let left = rest.saturating_sub(over.div_ceil(step).saturating_mul(step));
    FillPlan { tokens_left: left, oldest, ..FillPlan::default() }
}

/// The best that fit, and of the rest the newest.
fn fill_matches(candidates: &[(KeepCandidate, u64)], tokens: u64) -> FillPlan {
    let mut fill = FillPlan { tokens_left: tokens, skips_oversized: true, ..FillPlan::default() };
    for (candidate, cost) in candidates {
        let Some(left) = fill.tokens_left.checked_sub(*cost) else { continue };
        fill.tokens_left = left;
        match candidate {
            KeepCandidate::Summary(index) => fill.summaries.push(*index),
            KeepCandidate::Messages(unit) => fill.units.push(*unit),
        }
    }
    sort::sort(&mut fill.summaries);
    sort::sort_by(&mut fill.units, &mut |a, b| a.seq_first.cmp(&b.seq_first));
    fill
}

/// A candidate with its worth, its newest message and its tokens.
struct ScoredCandidate {
    worth: u64,
    seq: u64,
    candidate: KeepCandidate,
    tokens: u64,
}

/// What of the context matches a prompt, best first and of equals the newest.
fn rank_matches(
    reader: &mut StoreSession<'_>,
    context: &Assembly<'_>,
    prompt: &str,
) -> Result<Vec<(KeepCandidate, u64)>> {
    let query = TextQuery::parse(&text_query::strip_syntax(prompt));
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let mut index = SearchIndex::open(reader, context.history.keys, context.history.head)?;
    let mut found = match_summaries(reader, context, &mut index, &query)?;
    found.extend(match_messages(reader, context, &mut index, &query)?);
    sort::sort_by(&mut found, &mut |a, b| (b.worth, b.seq).cmp(&(a.worth, a.seq)));
    found.truncate(MATCHES_MAX);
    Ok(found.into_iter().map(|found| (found.candidate, found.tokens)).collect())
}

/// The summaries of the context that match. The index has those that were condensed, too.
fn match_summaries(
    reader: &mut StoreSession<'_>,
    context: &Assembly<'_>,
    index: &mut SearchIndex,
    query: &TextQuery,
) -> Result<Vec<ScoredCandidate>> {
    let ranked = rank_corpus(reader, context, index, Corpus::Summaries, query)?;
    let mut best = score::select_top(&mut scored_documents(&ranked), SUMMARIES_MAX);
    sort::sort_by(&mut best, &mut |a, b| a.1.cmp(&b.1));
    let documents: Vec<u64> = best.iter().map(|(_, document)| *document).collect();
    let known = index.read_summaries(reader, &documents)?;
    let found = best.iter().zip(known).filter_map(|((worth, _), (id, _))| {
        let is_it =
            |item: &ContextItem| matches!(item, ContextItem::Summary(summary) if summary.id == id);
        let at = context.items.iter().position(is_it)?;
        let item = context.items.get(at)?;
        let (seq, tokens) = (item.seq_last(), item.rendered_tokens());
        Some(ScoredCandidate { worth: *worth, seq, candidate: KeepCandidate::Summary(at), tokens })
    });
    Ok(found.collect())
}

/// The units outside the tail with a message that matches.
fn match_messages(
    reader: &mut StoreSession<'_>,
    context: &Assembly<'_>,
    index: &mut SearchIndex,
    query: &TextQuery,
) -> Result<Vec<ScoredCandidate>> {
    let ranked = rank_corpus(reader, context, index, Corpus::Messages, query)?;
    let run_of = |seq: u64| {
        context.items.iter().find_map(|item| match item {
            ContextItem::Run(run) if run.seq_first <= seq && seq <= run.seq_last => Some(*run),
            _ => None,
        })
    };
    let is_evictable = |row: &(u64, u64)| row.1 < context.tail.seq_first && run_of(row.1).is_some();
    let mut units: Vec<MessageUnit> = Vec::new();
    let mut found = Vec::new();
    for (worth, seq) in
        score::select_top(&mut scored_documents(&ranked).filter(is_evictable), MATCHES_MAX)
    {
        let is_in = |unit: &MessageUnit| unit.seq_first <= seq && seq <= unit.seq_last;
        if units.iter().any(is_in) {
            continue;
        }
        let Some(run) = run_of(seq) else { continue };
        let Some(unit) = find_unit(reader, context, &run, seq)? else { continue };
        units.push(unit);
        let pinned = context.tail.pinned.filter(|pin| unit.seq_first == pin.seq);
        let tokens = unit.tokens - pinned.map_or(0, |pin| pin.tokens.min(unit.tokens));
        found.push(ScoredCandidate {
            worth,
            seq,
            candidate: KeepCandidate::Messages(unit),
            tokens,
        });
    }
    Ok(found)
}

fn rank_corpus(
    reader: &mut StoreSession<'_>,
    context: &Assembly<'_>,
    index: &mut SearchIndex,
    corpus: Corpus,
    query: &TextQuery,
) -> Result<RankedDocuments> {
    let search = FullTextContext::new(context.history, index, query, TimeWindow::default());
    let gathered = full_text::gather_matches(reader, &search, corpus)?;
    gathered.rank_documents(reader, &search, &gathered.statistics, NeighbourHits::Exclude)
}

/// Scores with documents, of those that are worth anything.
fn scored_documents(ranked: &RankedDocuments) -> impl Iterator<Item = (u64, u64)> {
    let rows = ranked.scores.iter().copied().zip(ranked.documents.iter().copied());
    rows.filter(|(worth, _)| *worth > 0)
}

/// The unit of a message outside the tail.
fn find_unit(
    reader: &mut StoreSession<'_>,
    context: &Assembly<'_>,
    run: &MessageRun,
    seq: u64,
) -> Result<Option<MessageUnit>> {
    let last = run.seq_last.min(context.tail.seq_first - 1);
    let mut to = last.min(seq + UNIT_STEP);
    loop {
        let refs = context.history.find_pack_refs(reader, seq, to)?;
        let window = fresh_tail::read_whole_units(reader, context.history, run, refs, to)?;
        let units = fresh_tail::group_units(&window);
        let found = units.iter().find(|unit| unit.seq_first <= seq && seq <= unit.seq_last);
        match found {
            // It may go on behind what was read.
            Some(unit) if unit.seq_last == to && to < last => to = last.min(to + UNIT_STEP),
            found => return Ok(found.copied()),
        }
    }
}
