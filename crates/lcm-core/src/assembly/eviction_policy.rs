//! Eviction policies: which older items a context keeps when not all items fit.
//!
//! In: the stored context, a policy, and a prompt for the policy `prompt-aware`. Out: a
//! [`FillPlan`] for a number of tokens. [`super::select`] then selects items by the plan, for all
//! policies alike.

use alloc::vec::Vec;

use super::{input::AssemblyInput, select::FillPlan};
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
    types::api::{AssembleOptions, EvictionPolicy},
};

/// Steps per budget: the policy `layered` evicts tokens in multiples of the budget divided by this
/// number. Each step breaks the prefix once, and on average half a step of the budget stays empty.
const LAYER_STEPS: u64 = 8;
/// Maximum number of matching messages that are considered; also the maximum number of candidates,
/// including summaries. The candidates with the best scores are taken. Each message may cost the
/// read of a pack.
const MATCHES_MAX: usize = 64;
/// Maximum number of matching summaries that are looked up in the context, the best first. The
/// index also has summaries that left the context, such as condensed ones.
const SUMMARIES_MAX: usize = 1_024;
/// Messages that are read at a time to find the end of a call group: as many as a pack holds.
const UNIT_STEP: u64 = 64;

/// An eviction policy applied to one context.
pub(super) enum EvictionPlan {
    /// Newest first, up to the first item that does not fit.
    Newest,
    /// The oldest summary if it fits, then newest first; evicts in multiples of `step` tokens.
    Layers { step: u64 },
    /// Candidates that match the prompt, best first, each with its tokens. Other items fill the
    /// tokens that the candidates leave, newest first.
    Matches(Vec<(KeepCandidate, u64)>),
}

/// A candidate that a policy may keep.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeepCandidate {
    /// Index of a summary in the items of the context.
    Summary(usize),
    /// A call group.
    Messages(MessageUnit),
}

impl EvictionPlan {
    /// Applies the policy of the options, else of the configuration, to a context.
    ///
    /// `prompt-aware` needs a prompt and items that do not all fit; else items are selected newest
    /// first.
    ///
    /// # Errors
    ///
    /// Errors of the store, in a search of the index.
    pub(super) fn new(
        session: &mut StoreSession<'_>,
        input: &AssemblyInput<'_>,
        options: &AssembleOptions,
    ) -> Result<Self> {
        let policy = options.policy.unwrap_or(input.call.config.eviction_policy);
        let budget = u64::from(input.policy.budget);
        match (policy, options.prompt.as_deref()) {
            (EvictionPolicy::Layered, _) => {
                Ok(Self::Layers { step: (budget / LAYER_STEPS).max(1) })
            }
            (EvictionPolicy::PromptAware, Some(prompt))
                if input.evictable_tokens() > input.evictable_budget() =>
            {
                rank_matches(session, input, prompt).map(Self::Matches)
            }
            _ => Ok(Self::Newest),
        }
    }

    /// Plans which items fill `tokens`, in addition to the protected part.
    pub(super) fn plan_fill(&self, input: &AssemblyInput<'_>, tokens: u64) -> FillPlan {
        let evictable = input.evictable_tokens();
        let newest = FillPlan { tokens_left: tokens, ..FillPlan::default() };
        let fill = match self {
            _ if evictable <= tokens => newest,
            Self::Newest => newest,
            Self::Layers { step } => fill_layers(input, evictable, tokens, *step),
            Self::Matches(candidates) => fill_matches(candidates, tokens),
        };
        FillPlan { focus: input.focus.map(|focus| focus.index), ..fill }
    }
}

/// Plans the oldest summary, if it fits, and the newest of the rest.
///
/// The tokens to evict are rounded up to a multiple of the step. Until the next step, the room for
/// the rest grows with the new messages: the same items stay evicted and the prefix is kept.
fn fill_layers(input: &AssemblyInput<'_>, evictable: u64, tokens: u64, step: u64) -> FillPlan {
    let items = input.items;
    let oldest = items.iter().position(|item| matches!(item, ContextItem::Summary(_)));
    // A focus brief is protected and has replaced the oldest summary.
    let oldest = oldest.filter(|index| !input.is_focus(*index));
    let cost = oldest.and_then(|index| items.get(index)).map_or(0, ContextItem::rendered_tokens);
    let oldest = oldest.filter(|_| cost <= tokens);
    let cost = oldest.map_or(0, |_| cost);
    let (rest, room) = (evictable - cost, tokens - cost);
    let over = rest.saturating_sub(room);
    let left = rest.saturating_sub(over.div_ceil(step).saturating_mul(step));
    FillPlan { tokens_left: left, oldest, ..FillPlan::default() }
}

/// Plans the best candidates that fit, and the newest of the rest.
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

/// A candidate with its score.
struct ScoredCandidate {
    score: u64,
    /// Seq of the matching message, or the last seq that the summary covers.
    seq: u64,
    candidate: KeepCandidate,
    tokens: u64,
}

/// Ranks the summaries and call groups that match a prompt, each with its tokens: at most
/// [`MATCHES_MAX`], best first, at equal scores newest first.
fn rank_matches(
    session: &mut StoreSession<'_>,
    input: &AssemblyInput<'_>,
    prompt: &str,
) -> Result<Vec<(KeepCandidate, u64)>> {
    let query = TextQuery::parse(&text_query::strip_syntax(prompt));
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let mut index = SearchIndex::open(session, input.call.keys, input.history.head)?;
    let mut found = match_summaries(session, input, &mut index, &query)?;
    found.extend(match_messages(session, input, &mut index, &query)?);
    sort::sort_by(&mut found, &mut |a, b| (b.score, b.seq).cmp(&(a.score, a.seq)));
    found.truncate(MATCHES_MAX);
    Ok(found.into_iter().map(|found| (found.candidate, found.tokens)).collect())
}

/// Finds the summaries of the context that match a query, among the best [`SUMMARIES_MAX`] matches.
fn match_summaries(
    session: &mut StoreSession<'_>,
    input: &AssemblyInput<'_>,
    index: &mut SearchIndex,
    query: &TextQuery,
) -> Result<Vec<ScoredCandidate>> {
    let ranked = rank_corpus(session, input, index, Corpus::Summaries, query)?;
    let mut best = score::select_top(&mut scored_documents(&ranked), SUMMARIES_MAX);
    sort::sort_by(&mut best, &mut |a, b| a.1.cmp(&b.1));
    let documents: Vec<u64> = best.iter().map(|(_, document)| *document).collect();
    let known = index.read_summaries(session, &documents)?;
    let found = best.iter().zip(known).filter_map(|((score, _), (id, _))| {
        let is_same =
            |item: &ContextItem| matches!(item, ContextItem::Summary(summary) if summary.id == id);
        let at = input.items.iter().position(is_same)?;
        let item = input.items.get(at)?;
        let (seq, tokens) = (item.seq_last(), item.rendered_tokens());
        Some(ScoredCandidate { score: *score, seq, candidate: KeepCandidate::Summary(at), tokens })
    });
    Ok(found.collect())
}

/// Finds the raw call groups outside the fresh tail that have one of the best [`MATCHES_MAX`]
/// matching messages.
fn match_messages(
    session: &mut StoreSession<'_>,
    input: &AssemblyInput<'_>,
    index: &mut SearchIndex,
    query: &TextQuery,
) -> Result<Vec<ScoredCandidate>> {
    let ranked = rank_corpus(session, input, index, Corpus::Messages, query)?;
    let run_of = |seq: u64| {
        input.items.iter().find_map(|item| match item {
            ContextItem::Run(run) if run.seq_first <= seq && seq <= run.seq_last => Some(*run),
            _ => None,
        })
    };
    let is_evictable = |row: &(u64, u64)| row.1 < input.tail.seq_first && run_of(row.1).is_some();
    let mut units: Vec<MessageUnit> = Vec::new();
    let mut found = Vec::new();
    for (score, seq) in
        score::select_top(&mut scored_documents(&ranked).filter(is_evictable), MATCHES_MAX)
    {
        let contains = |unit: &MessageUnit| unit.seq_first <= seq && seq <= unit.seq_last;
        if units.iter().any(contains) {
            continue;
        }
        let Some(run) = run_of(seq) else { continue };
        let Some(unit) = find_unit(session, input, &run, seq)? else { continue };
        units.push(unit);
        let pinned = input.tail.pinned.filter(|pin| unit.seq_first == pin.seq);
        let tokens = unit.tokens - pinned.map_or(0, |pin| pin.tokens.min(unit.tokens));
        found.push(ScoredCandidate {
            score,
            seq,
            candidate: KeepCandidate::Messages(unit),
            tokens,
        });
    }
    Ok(found)
}

fn rank_corpus(
    session: &mut StoreSession<'_>,
    input: &AssemblyInput<'_>,
    index: &mut SearchIndex,
    corpus: Corpus,
    query: &TextQuery,
) -> Result<RankedDocuments> {
    let search = FullTextContext::new(input.history, index, query, TimeWindow::default());
    let gathered = full_text::gather_matches(session, &search, corpus)?;
    gathered.rank_documents(session, &search, &gathered.statistics, NeighbourHits::Exclude)
}

/// Returns the score and number of each document with a positive score.
fn scored_documents(ranked: &RankedDocuments) -> impl Iterator<Item = (u64, u64)> {
    let rows = ranked.scores.iter().copied().zip(ranked.documents.iter().copied());
    rows.filter(|(score, _)| *score > 0)
}

/// Finds the call group of a message of `run` outside the fresh tail; `None`: the run has no such
/// message.
fn find_unit(
    session: &mut StoreSession<'_>,
    input: &AssemblyInput<'_>,
    run: &MessageRun,
    seq: u64,
) -> Result<Option<MessageUnit>> {
    let last = run.seq_last.min(input.tail.seq_first - 1);
    let mut to = last.min(seq + UNIT_STEP);
    loop {
        let refs = input.history.find_pack_refs(session, seq, to)?;
        let window = fresh_tail::read_whole_units(session, input.history, run, refs, to)?;
        let units = fresh_tail::group_units(&window);
        let found = units.iter().find(|unit| unit.seq_first <= seq && seq <= unit.seq_last);
        match found {
            // The group may continue behind the messages that were read.
            Some(unit) if unit.seq_last == to && to < last => to = last.min(to + UNIT_STEP),
            found => return Ok(found.copied()),
        }
    }
}
