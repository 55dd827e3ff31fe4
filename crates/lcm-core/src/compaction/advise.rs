//! Advise: whether compacting now pays, given prices and the lifetime of the provider's cache.
//!
//! In: a conversation, a budget, prices. Out: the cost of the coming prompts and summaries if the
//! context is compacted now or later, and the cheaper choice. `admin` serves the verb `advise` with
//! this module. Nothing is stored.
//!
//! Tokens that also begin the previous prompt are priced as reads from the cache. Tokens after a
//! change that compaction makes, and all tokens while the cache is cold, are priced as writes.
//! [`super::evaluate()`] decides whether compaction is due. Advice may recommend to compact earlier
//! or to wait up to the budget.

use alloc::string::String;

use crate::storage::{
    call::Call, clock::is_within_pause, head::ConversationHead, record_key::RecordReads,
    records::usage::UsageRecord, store_session::StoreSession,
};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{JsonFields, JsonKind, JsonWriter},
        limits,
    },
    config::BudgetPolicy,
    types::{api::CompactionOptions, model::Level},
};

use super::{
    extra::build_model_option,
    goal::derive_goal,
    planner::{Planner, PlannerInput},
    setup::CompactionSetup,
    sweep::SweepToken,
};

/// Maximum number of turns of a forecast. Later turns differ little, because both choices have
/// compacted several times by then.
const TURNS_MAX: u64 = 512;
/// Minimum number of turns of a forecast if the host gives no number: a new conversation does not
/// end at once.
const TURNS_MIN: u64 = 8;
/// Numbers of turns that the forecast tries, both as the wait before the first compaction and as
/// the period between later compactions. From 2 to 96, each number is a third or half more than the
/// number before. A period of `x` times the best period multiplies the cost that depends on the
/// period by `(x + 1/x) / 2` (the economic order quantity of Harris, 1913). Few conversations have
/// more than 96 turns, so the steps after 96 are greater.
const TURN_SPANS: [u64; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 192, TURNS_MAX];
/// Assumed messages of a turn: the message of the model, and the answer of a person or a tool.
const TURN_MESSAGES: u64 = 2;
/// Assumed tokens of a request for a summary, without its sources.
const REQUEST_TOKENS: u64 = 650;
/// Highest price of a million tokens, in millionths of a currency: 1,000 units.
const PRICE_MAX: u64 = 1_000_000_000;
/// Number of tokens for which a price is given.
const PRICE_TOKENS: u64 = 1_000_000;
/// Milliseconds for which a provider keeps a cached prefix, if the host gives no number: 5 minutes.
const CACHE_MS: u64 = 5 * 60 * 1_000;

/// Prices of a million tokens, in millionths of any currency.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TokenPrices {
    /// Price of prompt tokens in the cache.
    cache_read: u64,
    /// Price of prompt tokens that are not in the cache.
    cache_write: u64,
    summary_input: u64,
    summary_output: u64,
}

impl TokenPrices {
    /// Reads the field `prices`. An absent price defaults to the price `input`; an absent
    /// `summary_output` defaults to the price `output`.
    fn read(fields: &mut JsonFields<'_>) -> Result<Self> {
        const NAME: &str = "prices";
        let json = match fields.take_any(NAME) {
            Some((text, JsonKind::Object)) => String::from(text),
            _ => {
                return Err(Error::invalid_input(
                    "`prices` must be an object with `input` and `output`",
                ));
            }
        };
        let mut fields = JsonFields::parse_argument(NAME, &json)?;
        let (input, output) = (fields.take_u64("input"), fields.take_u64("output"));
        let mut take_or = |key: &str, other: u64| fields.take_optional_u64(key).unwrap_or(other);
        let prices = Self {
            cache_read: take_or("cache_read", input),
            cache_write: take_or("cache_write", input),
            summary_input: take_or("summary_input", input),
            summary_output: take_or("summary_output", output),
        };
        fields.finish(NAME)?;
        let Self { cache_read, cache_write, summary_input, summary_output } = prices;
        let all = [input, output, cache_read, cache_write, summary_input, summary_output];
        let highest = all.into_iter().max().unwrap_or(0);
        if highest > PRICE_MAX {
            let message = format_args!(
                "each of `prices` must be at most {PRICE_MAX} millionths of a currency for a \
                 million tokens, got {highest}"
            );
            return Err(Error::invalid_input(message));
        }
        Ok(prices)
    }
}

/// The arguments of `advise`.
pub(crate) struct AdviseRequest {
    budget: u32,
    observed_tokens: Option<u32>,
    model: Option<String>,
    prices: TokenPrices,
    /// Milliseconds for which the provider keeps a cached prefix.
    cache_ms: u64,
    /// Number of prompts to come; the forecast uses at most 512. `None`: as many as the
    /// conversation has had, but at least 8 and at most 512.
    turns: Option<u32>,
}

impl AdviseRequest {
    /// Takes the arguments from `fields`.
    ///
    /// # Errors
    ///
    /// `invalid-input`: wrong prices. [`JsonFields::finish`] reports other wrong fields.
    pub(crate) fn read(fields: &mut JsonFields<'_>) -> Result<Self> {
        let budget = fields.take_u32("budget");
        if budget == 0 {
            fields.reject_field("budget", "at least 1");
        }
        Ok(Self {
            budget,
            observed_tokens: fields.take_optional_u32("observed_tokens"),
            model: fields.take_optional_text("model"),
            prices: TokenPrices::read(fields)?,
            cache_ms: fields.take_optional_u64("cache_ms").unwrap_or(CACHE_MS),
            turns: fields.take_optional_u32("turns"),
        })
    }

    fn build_options(&self) -> CompactionOptions {
        let extra_json = build_model_option(self.model.as_deref());
        let observed_tokens = self.observed_tokens;
        CompactionOptions { observed_tokens, extra_json, ..CompactionOptions::default() }
    }
}

/// Computes whether compacting now pays.
///
/// # Errors
///
/// `not-found`: no such conversation; `invalid-input`: an invalid name of a model; errors of the
/// store.
pub(crate) fn advise(
    session: &mut StoreSession<'_>,
    call: Call<'_>,
    request: &AdviseRequest,
) -> Result<JsonWriter> {
    let options = request.build_options();
    let reads = RecordReads::default();
    let setup = CompactionSetup::open(session, call, request.budget, &options, reads)?;
    let (policy, options) = (setup.policy.with_reserve(0), &setup.options);
    let loaded = setup.loaded.require_existing()?;
    let head = &loaded.head;
    let usage = UsageRecord::read(session, call.keys)?;
    let sweep = SweepToken::start(head, options.observed_tokens);
    let goal = derive_goal(head, &policy, options, &sweep);
    let planner = Planner::open(session, PlannerInput { call, head, policy, goal }, 1)?;
    let state = ContextTokens {
        fixed: sweep.overhead + planner.protected_tokens(),
        summaries: planner.summary_tokens(),
        raw: planner.eligible_raw().tokens,
    };
    let is_cold = usage.turn_at().map(|turn_at| {
        !is_within_pause(
            call.now,
            turn_at,
            turn_at.saturating_add(request.cache_ms).saturating_add(1),
        )
    });
    let so_far = usage.count_turns().max(head.messages / TURN_MESSAGES);
    let turns = request.turns.map_or(so_far.clamp(TURNS_MIN, TURNS_MAX), u64::from).min(TURNS_MAX);
    // Above the threshold, compaction is due. The advice then says whether compaction can wait
    // until the budget is reached.
    let is_due = state.tokens() > u64::from(policy.threshold);
    let bound = if is_due { policy.budget } else { policy.threshold };
    let growth = estimate_growth(head);
    let prices = request.prices;
    let cached = usage.cached_permille(growth);
    let reread_price = (prices.cache_read * cached + prices.cache_write * (1_000 - cached)) / 1_000;
    let forecast =
        CostForecast { policy, prices, growth, turns, tokens_max: bound.into(), reread_price };
    Ok(build_advice(call.conversation, &forecast, &state, is_cold))
}

/// Estimates the tokens that a turn adds, at least 1, from the packs that the head lists.
fn estimate_growth(head: &ConversationHead) -> u64 {
    let messages: u64 = head.packs.iter().map(|pack| u64::from(pack.count)).sum();
    let tokens: u64 = head.packs.iter().map(|pack| pack.tokens).sum();
    (tokens * TURN_MESSAGES).checked_div(messages).unwrap_or(0).max(1)
}

fn build_advice(
    conversation: &str,
    forecast: &CostForecast,
    state: &ContextTokens,
    is_cold: Option<bool>,
) -> JsonWriter {
    let cold = is_cold.unwrap_or(false);
    let forced_in = forecast.turns_until_forced(state);
    let (compacted, completions) = forecast.simulate_sweep(state);
    let cost_now = forecast.least_cost_after(state, 0, cold);
    let (waiting, cost_wait) = forecast.find_best_wait(state, cold);
    let shrinks = compacted.tokens() < state.tokens();
    let reason = match (shrinks, forced_in, cost_now < cost_wait) {
        (false, ..) => "nothing-to-compact",
        (true, Some(0), _) => "over-budget",
        (true, _, true) => "saves-more-than-it-costs",
        (true, _, false) => "costs-more-than-it-saves",
    };
    let pays = shrinks && (forced_in == Some(0) || cost_now < cost_wait);
    let mut object = JsonWriter::new_object();
    object.add_text("advice", if pays { "compact" } else { "wait" });
    let cache = match is_cold {
        None => "unknown",
        Some(true) => "cold",
        Some(false) => "warm",
    };
    object.add_text("cache", cache);
    object.add_flag("changed", false);
    object.add_number("completions_cost_micros", completions / PRICE_TOKENS);
    object.add_text("conversation", conversation);
    object.add_number("cost_now_micros", cost_now / PRICE_TOKENS);
    object.add_number("cost_wait_micros", cost_wait / PRICE_TOKENS);
    object.add_optional_number("forced_in_turns", forced_in);
    object.add_text("reason", reason);
    object.add_number("tokens", state.tokens());
    object.add_number("tokens_after", compacted.tokens().min(state.tokens()));
    object.add_number("turn_tokens", forecast.growth);
    object.add_number("turns", forecast.turns);
    // A `wait_turns` equal to `turns` means that the conversation ends before the compaction.
    object.add_optional_number("wait_turns", (!pays).then_some(waiting));
    object
}

/// The parts of a context, in tokens.
#[derive(Clone, Copy, Debug)]
struct ContextTokens {
    /// Tokens that compaction cannot remove: the host's, the fresh tail and the pinned message.
    fixed: u64,
    summaries: u64,
    /// Raw messages outside the fresh tail, without the pinned message.
    raw: u64,
}

impl ContextTokens {
    fn tokens(&self) -> u64 {
        self.fixed.saturating_add(self.summaries).saturating_add(self.raw)
    }
}

/// The assumptions about the turns to come. Costs are tokens times prices and saturate at the
/// greatest `u64`. If the costs of both choices saturate, the costs are equal, so the advice is to
/// wait.
#[derive(Clone, Copy, Debug)]
struct CostForecast {
    policy: BudgetPolicy,
    prices: TokenPrices,
    /// Tokens that a turn adds.
    growth: u64,
    /// Prompts to come.
    turns: u64,
    /// Tokens above which compaction cannot wait.
    tokens_max: u64,
    /// Average price of a prompt token that the previous prompt also had. The average weighs the
    /// prices of cache reads and writes by the share of such tokens that the provider has read from
    /// its cache so far. If no cache reads were reported, all such tokens count as read from the
    /// cache.
    reread_price: u64,
}

impl CostForecast {
    /// Returns the number of turns after which compaction cannot wait; `None`: the forecast ends
    /// first.
    fn turns_until_forced(&self, state: &ContextTokens) -> Option<u64> {
        let tokens = state.tokens();
        let room = self.tokens_max.checked_sub(tokens).map(|room| room / self.growth + 1);
        Some(room.unwrap_or(0)).filter(|turns| *turns < self.turns)
    }

    /// Simulates a sweep and returns the remaining context and the cost of the completions.
    fn simulate_sweep(&self, state: &ContextTokens) -> (ContextTokens, u64) {
        if state.raw < limits::BRIDGE_TOKENS_MAX {
            return (*state, 0);
        }
        let policy = &self.policy;
        let chunk = u64::from(policy.leaf_chunk_tokens_max).max(1);
        let target = |tokens: u64| {
            u64::from(policy.leaf_target(int::saturate_tokens(tokens), Level::Normal))
        };
        let (full, rest) = (state.raw / chunk, state.raw % chunk);
        let last = if rest == 0 { 0 } else { target(rest).min(rest) };
        let leaves = full.saturating_mul(target(chunk).min(chunk)).saturating_add(last);
        let requests = full + u64::from(rest > 0);
        let mut cost = self.completion_cost(state.raw, leaves, requests);
        let mut summaries = state.summaries.saturating_add(leaves);
        if summaries > u64::from(policy.summary_prefix_tokens_target) {
            let leaf = u64::from(policy.leaf_tokens_target);
            let run = leaf.saturating_mul(policy.condense_leaves_min.into());
            let run = run.min(policy.threshold.into()).max(chunk);
            let condensed = u64::from(policy.condensed_tokens_target).max(1);
            let groups = summaries.div_ceil(run);
            let after = groups.saturating_mul(condensed).min(summaries);
            cost = cost.saturating_add(self.completion_cost(summaries, after, groups));
            summaries = after;
        }
        (ContextTokens { raw: 0, summaries, ..*state }, cost)
    }

    fn completion_cost(&self, input: u64, output: u64, requests: u64) -> u64 {
        let input = input.saturating_add(requests.saturating_mul(REQUEST_TOKENS));
        let input = input.saturating_mul(self.prices.summary_input);
        input.saturating_add(output.saturating_mul(self.prices.summary_output))
    }

    /// Computes the cost of all prompts and summaries. The context is compacted after `wait` turns,
    /// then after every `period` turns, and then also whenever compaction cannot wait. `cold`:
    /// whether the cache is cold in the first turn.
    fn compute_cost(&self, state: &ContextTokens, (wait, period): (u64, u64), cold: bool) -> u64 {
        let mut state = *state;
        let mut cost = 0u64;
        let mut next = wait;
        for turn in 0..self.turns {
            // The previous prompt had everything but the newest turn.
            let mut equal = state.tokens().saturating_sub(self.growth);
            if turn == next || (turn > wait && state.tokens() > self.tokens_max) {
                let (compacted, completions) = self.simulate_sweep(&state);
                cost = cost.saturating_add(completions);
                let kept = compacted.summaries >= state.summaries;
                equal = if kept { state.summaries } else { 0 };
                state = compacted;
                next = turn + period;
            }
            let equal = equal.min(state.tokens());
            let written = (state.tokens() - equal).saturating_mul(self.prices.cache_write);
            let price = match (turn, cold) {
                (0, true) => self.prices.cache_write,
                (0, false) => self.prices.cache_read,
                _ => self.reread_price,
            };
            let read = equal.saturating_mul(price);
            cost = cost.saturating_add(written).saturating_add(read);
            state.raw = state.raw.saturating_add(self.growth);
        }
        cost
    }

    /// Returns the least cost, over all tried periods, with a first compaction after `wait` turns.
    fn least_cost_after(&self, state: &ContextTokens, wait: u64, cold: bool) -> u64 {
        let costs = TURN_SPANS.iter().map(|period| self.compute_cost(state, (wait, *period), cold));
        costs.min().unwrap_or(u64::MAX)
    }

    /// Returns the tried waiting time, of at least one turn, with the least cost, and the cost.
    fn find_best_wait(&self, state: &ContextTokens, cold: bool) -> (u64, u64) {
        let last = self.turns_until_forced(state).unwrap_or(self.turns).max(1);
        let waits = TURN_SPANS.iter().copied().filter(|wait| *wait < last).chain([last]);
        let costs = waits.map(|wait| (wait, self.least_cost_after(state, wait, cold)));
        costs.min_by_key(|(_, cost)| *cost).unwrap_or((1, u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three currency units for a million tokens, read at a tenth and written at 1.25.
    const PRICES: TokenPrices = TokenPrices {
        cache_read: 300_000,
        cache_write: 3_750_000,
        summary_input: 3_000_000,
        summary_output: 15_000_000,
    };

    fn forecast(turns: u64) -> CostForecast {
        let policy = lcm_text::config::Config::default().derive_policy(100_000).unwrap();
        let (prices, again) = (PRICES, PRICES.cache_read);
        CostForecast { policy, prices, growth: 500, turns, tokens_max: 75_000, reread_price: again }
    }

    fn state(raw: u64) -> ContextTokens {
        ContextTokens { fixed: 30_000, summaries: 2_000, raw }
    }

    fn advice(forecast: &CostForecast, state: &ContextTokens, cold: Option<bool>) -> String {
        let answer = build_advice("c", forecast, state, cold).end_object();
        let value: serde_json::Value = serde_json::from_str(&answer).unwrap();
        alloc::format!(
            "{} {}",
            value["advice"].as_str().unwrap(),
            value["reason"].as_str().unwrap()
        )
    }

    #[test]
    fn a_conversation_that_ends_soon_is_not_compacted() {
        assert_eq!(
            advice(&forecast(3), &state(40_000), Some(false)),
            "wait costs-more-than-it-saves"
        );
    }

    #[test]
    fn a_long_one_is_when_reading_it_again_costs_more() {
        // To read 40,000 raw tokens 400 times costs 4.80 units at 0.30 a million tokens. The
        // summaries and a new write of the tail to the cache cost 0.35 units.
        let dear = CostForecast { tokens_max: 1_000_000, ..forecast(400) };
        assert_eq!(advice(&dear, &state(40_000), Some(false)), "compact saves-more-than-it-costs");
        assert_eq!(advice(&dear, &state(300), Some(false)), "wait costs-more-than-it-saves");
    }

    /// Goal: compaction pays sooner if the cache is cold, because then every token is written
    /// anyway.
    #[test]
    fn a_compaction_that_saves_money_with_a_cold_cache_costs_money_with_a_warm_cache() {
        let mut sooner = 0;
        for turns in (4..=64).step_by(4) {
            for raw in (2_000..=40_000).step_by(2_000) {
                let forecast = CostForecast { tokens_max: 100_000, ..forecast(turns) };
                let pays = |cold| advice(&forecast, &state(raw), Some(cold)).starts_with("compact");
                assert!(pays(true) || !pays(false), "{turns} {raw}");
                sooner += u32::from(pays(true) && !pays(false));
            }
        }
        assert!(sooner > 10, "{sooner}");
    }

    #[test]
    fn what_is_over_its_bound_cannot_wait_and_a_tail_alone_cannot_shrink() {
        assert_eq!(advice(&forecast(3), &state(50_000), None), "compact over-budget");
        assert_eq!(advice(&forecast(90), &state(31), None), "wait nothing-to-compact");
        assert_eq!(forecast(90).turns_until_forced(&state(42_600)), Some(1));
        assert_eq!(forecast(90).turns_until_forced(&state(43_000)), Some(1));
        assert_eq!(forecast(90).turns_until_forced(&state(43_001)), Some(0));
        assert_eq!(forecast(9).turns_until_forced(&state(30_000)), None);
    }

    #[test]
    fn nothing_overflows() {
        let far = TokenPrices { cache_read: PRICE_MAX, cache_write: PRICE_MAX, ..PRICES };
        let forecast =
            CostForecast { prices: far, growth: u64::MAX, turns: TURNS_MAX, ..forecast(9) };
        let state = ContextTokens { fixed: u64::MAX, summaries: u64::MAX, raw: u64::MAX };
        assert_eq!(forecast.compute_cost(&state, (0, 1), true), u64::MAX);
        assert_eq!(advice(&forecast, &state, Some(true)), "wait nothing-to-compact");
    }
}
