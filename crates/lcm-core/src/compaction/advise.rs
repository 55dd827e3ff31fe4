//! Advise: whether compacting now pays, given prices and the life of the provider's cache.
//!
//! In: a conversation, a budget, prices. Out: what the coming prompts and summaries would cost if
//! the context were compacted now, what if later, and which is less. A prompt whose beginning
//! stood in the prompt before costs the price of reading it from the cache; a compaction changes
//! the beginning, so that what follows is written anew; a cache that is cold is written in any
//! case. Nothing is stored. Whether compaction is *due* is [`super::evaluate()`]'s: advice may come
//! before it, or say that it can wait up to the budget.

use alloc::string::String;

use crate::storage::{head::Head, keys::Keys, records::usage::Usage, store_session::Reader};
use lcm_text::{
    base::{
        error::{Error, Result},
        int,
        json::{Fields, Kind, Writer},
        limits,
    },
    config::{Config, Policy},
    types::api::{CompactionOptions, Timestamp},
};

use super::{Call, goal, plan::Planner, sweep::Sweep};

/// Turns that are looked ahead at most. What is saved by then decides; beyond it both ways have
/// compacted several times and differ by little.
const TURNS_MAX: u64 = 512;
/// Turns that are looked ahead at least: a conversation that begins is not taken to end at once.
const TURNS_MIN: u64 = 8;
/// Numbers of turns that are tried, as waiting and as period: each about a half more than the one
/// before, and from 96 on twice and more, where few conversations reach. With a period of `x` times
/// the best one the part of the cost that depends on it is `(x + 1/x) / 2` times its least (the
/// economic order quantity of Harris, 1913): mostly below 1.03 here.
const SPANS: [u64; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 192, TURNS_MAX];
/// Messages of a turn: what the model said, and what came back from a person or a tool.
const TURN_MESSAGES: u64 = 2;
/// Tokens of a request for a summary beside its material: the five prompts have 582 to 732, by
/// `lcm prompts list`.
const REQUEST_TOKENS: u64 = 650;
/// Highest price: a thousand of any currency for a million tokens.
const PRICE_MAX: u64 = 1_000_000_000;
/// Tokens that a price is for.
const PRICE_TOKENS: u64 = 1_000_000;
/// How long a provider keeps a prefix unless its price list says otherwise: the shortest of those
/// that publish one, 5 minutes.
const CACHE_MS: u64 = 5 * 60 * 1_000;

/// Prices of a million tokens, in millionths of any currency.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Prices {
    /// Of a prompt's tokens that were in the cache.
    read: u64,
    /// Of those that were not.
    write: u64,
    summary_input: u64,
    summary_output: u64,
}

impl Prices {
    /// Reads the member `prices`.
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        const NAME: &str = "prices";
        let json = match fields.any(NAME) {
            Some((text, Kind::Object)) => String::from(text),
            _ => return Err(Error::invalid("prices: must be an object with `input` and `output`")),
        };
        let mut fields = Fields::of_argument(NAME, &json)?;
        let (input, output) = (fields.number("input"), fields.number("output"));
        let mut or = |key: &str, other: u64| fields.number_or_none(key).unwrap_or(other);
        let prices = Self {
            read: or("cache_read", input),
            write: or("cache_write", input),
            summary_input: or("summary_input", input),
            summary_output: or("summary_output", output),
        };
        fields.end(NAME)?;
        let all = [input, output, prices.read, prices.write];
        if all.iter().chain(&[prices.summary_input, prices.summary_output]).any(|p| *p > PRICE_MAX)
        {
            let message = format_args!("prices: at most {PRICE_MAX} for a million tokens");
            return Err(Error::invalid(message));
        }
        Ok(prices)
    }
}

/// The arguments.
pub(crate) struct Asked {
    budget: u32,
    observed_tokens: Option<u32>,
    model: Option<String>,
    prices: Prices,
    cache_ms: u64,
    /// Prompts that are still to come; `None`: as many as there were.
    turns: Option<u32>,
}

impl Asked {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the prices.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let budget = fields.small("budget");
        if budget == 0 {
            fields.must_be("budget", "at least 1");
        }
        Ok(Self {
            budget,
            observed_tokens: fields.small_or_none("observed_tokens"),
            model: fields.text_or_none("model"),
            prices: Prices::read(fields)?,
            cache_ms: fields.number_or_none("cache_ms").unwrap_or(CACHE_MS),
            turns: fields.small_or_none("turns"),
        })
    }

    fn options(&self) -> CompactionOptions {
        let extra_json = super::model_option(self.model.as_deref());
        let observed_tokens = self.observed_tokens;
        CompactionOptions { observed_tokens, extra_json, ..CompactionOptions::default() }
    }
}

/// Says whether compacting now pays.
///
/// # Errors
///
/// `not-found`, `invalid-input`; errors of the store.
pub(crate) fn advise(
    reader: &mut Reader<'_>,
    config: &Config,
    conversation: &str,
    asked: &Asked,
    now: Timestamp,
) -> Result<Writer> {
    let keys = Keys::new(conversation)?;
    let options = asked.options();
    let call =
        Call::begin(reader, config, &keys, conversation, (asked.budget, &options), [].into())?;
    let (policy, options) = (call.policy.less(0), &call.options);
    let loaded = call.loaded.existing()?;
    let head = &loaded.head;
    let usage = Usage::load(reader, &keys)?;
    let sweep = Sweep::begin(head.context.tokens, options.observed_tokens);
    let goal = goal(head, &policy, options, &sweep);
    let planner = Planner::prepare(reader, config, &keys, head, policy, goal, 1)?;
    let state = State {
        fixed: sweep.overhead + planner.kept(),
        summaries: planner.summary_tokens(),
        raw: planner.outside().tokens,
    };
    let is_cold = usage.turn_at().map(|turn_at| now.saturating_sub(turn_at) > asked.cache_ms);
    let so_far = usage.turns().max(head.messages / TURN_MESSAGES);
    let turns = asked.turns.map_or(so_far.clamp(TURNS_MIN, TURNS_MAX), u64::from).min(TURNS_MAX);
    // What is over the threshold is due; the question is then whether it can wait up to the budget.
    let due = state.tokens() > u64::from(policy.threshold);
    let bound = if due { policy.budget } else { policy.threshold };
    let growth = growth(head);
    let prices = asked.prices;
    let cached = usage.cached_permille(growth);
    let again = (prices.read * cached + prices.write * (1_000 - cached)) / 1_000;
    let forecast = Forecast { policy, prices, growth, turns, bound: bound.into(), again };
    Ok(answer(conversation, &forecast, &state, is_cold))
}

/// Tokens that a turn adds, by the newest messages.
fn growth(head: &Head) -> u64 {
    let messages: u64 = head.packs.iter().map(|pack| u64::from(pack.count)).sum();
    let tokens: u64 = head.packs.iter().map(|pack| pack.tokens).sum();
    (tokens * TURN_MESSAGES).checked_div(messages).unwrap_or(0).max(1)
}

fn answer(conversation: &str, forecast: &Forecast, state: &State, is_cold: Option<bool>) -> Writer {
    let cold = is_cold.unwrap_or(false);
    let forced_in = forecast.forced_in(state);
    let (compacted, completions) = forecast.compacted(state);
    let cost_now = forecast.best(state, 0, cold);
    let (waiting, cost_wait) = forecast.least(state, cold);
    let shrinks = compacted.tokens() < state.tokens();
    let reason = match (shrinks, forced_in, cost_now < cost_wait) {
        (false, ..) => "nothing-to-compact",
        (true, Some(0), _) => "over-budget",
        (true, _, true) => "saves-more-than-it-costs",
        (true, _, false) => "costs-more-than-it-saves",
    };
    let pays = shrinks && (forced_in == Some(0) || cost_now < cost_wait);
    let mut object = Writer::object();
    object.text("advice", if pays { "compact" } else { "wait" });
    let cache = match is_cold {
        None => "unknown",
        Some(true) => "cold",
        Some(false) => "warm",
    };
    object.text("cache", cache);
    object.flag("changed", false);
    object.number("completions_cost_micros", completions / PRICE_TOKENS);
    object.text("conversation", conversation);
    object.number("cost_now_micros", cost_now / PRICE_TOKENS);
    object.number("cost_wait_micros", cost_wait / PRICE_TOKENS);
    object.number_or_null("forced_in_turns", forced_in);
    object.text("reason", reason);
    object.number("tokens", state.tokens());
    object.number("tokens_after", compacted.tokens().min(state.tokens()));
    object.number("turn_tokens", forecast.growth);
    object.number("turns", forecast.turns);
    // As many as there are turns: never, the conversation ends before.
    object.number_or_null("wait_turns", (!pays).then_some(waiting));
    object
}

/// A context by what compaction does to its parts, in tokens.
#[derive(Clone, Copy, Debug)]
struct State {
    /// What the host adds, and the fresh tail.
    fixed: u64,
    summaries: u64,
    /// Raw messages outside the tail.
    raw: u64,
}

impl State {
    fn tokens(&self) -> u64 {
        self.fixed.saturating_add(self.summaries).saturating_add(self.raw)
    }
}

/// What is supposed of the turns to come. Sums are tokens times prices, which saturate where no
/// budget in use comes to: both ways cost the same there, and the advice is to wait.
#[derive(Clone, Copy, Debug)]
struct Forecast {
    policy: Policy,
    prices: Prices,
    /// Tokens that a turn adds.
    growth: u64,
    /// Prompts to come.
    turns: u64,
    /// Above so many tokens compaction cannot wait.
    bound: u64,
    /// What a token costs that stood in the prompt before: of some it is not known whether the
    /// cache still has them.
    again: u64,
}

impl Forecast {
    /// After how many turns compaction cannot wait any longer; `None`: the conversation ends first.
    fn forced_in(&self, state: &State) -> Option<u64> {
        let tokens = state.tokens();
        let room = self.bound.checked_sub(tokens).map(|room| room / self.growth + 1);
        Some(room.unwrap_or(0)).filter(|turns| *turns < self.turns)
    }

    /// A sweep: what remains, and what its completions cost.
    fn compacted(&self, state: &State) -> (State, u64) {
        if state.raw < limits::BRIDGE_TOKENS_MAX {
            return (*state, 0);
        }
        let policy = &self.policy;
        let chunk = u64::from(policy.leaf_chunk_tokens_max).max(1);
        let target = |tokens: u64| u64::from(policy.leaf_target(int::tokens_u32(tokens), false));
        let (full, rest) = (state.raw / chunk, state.raw % chunk);
        let last = if rest == 0 { 0 } else { target(rest).min(rest) };
        let leaves = full.saturating_mul(target(chunk).min(chunk)).saturating_add(last);
        let requests = full + u64::from(rest > 0);
        let mut cost = self.completions(state.raw, leaves, requests);
        let mut summaries = state.summaries.saturating_add(leaves);
        if summaries > u64::from(policy.summary_prefix_tokens_target) {
            let leaf = u64::from(policy.leaf_tokens_target);
            let run = leaf.saturating_mul(policy.condense_leaves_min.into());
            let run = run.min(policy.threshold.into()).max(chunk);
            let condensed = u64::from(policy.condensed_tokens_target).max(1);
            let groups = summaries.div_ceil(run);
            let after = groups.saturating_mul(condensed).min(summaries);
            cost = cost.saturating_add(self.completions(summaries, after, groups));
            summaries = after;
        }
        (State { raw: 0, summaries, ..*state }, cost)
    }

    fn completions(&self, input: u64, output: u64, requests: u64) -> u64 {
        let input = input.saturating_add(requests.saturating_mul(REQUEST_TOKENS));
        let input = input.saturating_mul(self.prices.summary_input);
        input.saturating_add(output.saturating_mul(self.prices.summary_output))
    }

    /// What all prompts and summaries cost when the context is compacted after `wait` turns, from
    /// then on after every `period`, and whenever it cannot wait.
    fn cost(&self, state: &State, (wait, period): (u64, u64), cold: bool) -> u64 {
        let mut state = *state;
        let mut cost = 0u64;
        let mut next = wait;
        for turn in 0..self.turns {
            // All but what came since stood in the prompt before.
            let mut equal = state.tokens().saturating_sub(self.growth);
            if turn == next || (turn > wait && state.tokens() > self.bound) {
                let (compacted, completions) = self.compacted(&state);
                cost = cost.saturating_add(completions);
                let kept = compacted.summaries >= state.summaries;
                equal = if kept { state.summaries } else { 0 };
                state = compacted;
                next = turn + period;
            }
            let equal = equal.min(state.tokens());
            let written = (state.tokens() - equal).saturating_mul(self.prices.write);
            let again = match (turn, cold) {
                (0, true) => self.prices.write,
                (0, false) => self.prices.read,
                _ => self.again,
            };
            let read = equal.saturating_mul(again);
            cost = cost.saturating_add(written).saturating_add(read);
            state.raw = state.raw.saturating_add(self.growth);
        }
        cost
    }

    /// The least that it can cost with a first compaction after `wait` turns.
    fn best(&self, state: &State, wait: u64, cold: bool) -> u64 {
        let costs = SPANS.iter().map(|period| self.cost(state, (wait, *period), cold));
        costs.min().unwrap_or(u64::MAX)
    }

    /// After how many turns, at least one, a first compaction costs least, and what.
    fn least(&self, state: &State, cold: bool) -> (u64, u64) {
        let last = self.forced_in(state).unwrap_or(self.turns).max(1);
        let waits = SPANS.iter().copied().filter(|wait| *wait < last).chain([last]);
        let costs = waits.map(|wait| (wait, self.best(state, wait, cold)));
        costs.min_by_key(|(_, cost)| *cost).unwrap_or((1, u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three currency units for a million tokens, read at a tenth and written at 1.25.
    const PRICES: Prices = Prices {
        read: 300_000,
        write: 3_750_000,
        summary_input: 3_000_000,
        summary_output: 15_000_000,
    };

    fn forecast(turns: u64) -> Forecast {
        let policy = Config::default().policy(100_000).unwrap();
        let (prices, again) = (PRICES, PRICES.read);
        Forecast { policy, prices, growth: 500, turns, bound: 75_000, again }
    }

    fn state(raw: u64) -> State {
        State { fixed: 30_000, summaries: 2_000, raw }
    }

    fn advice(forecast: &Forecast, state: &State, cold: Option<bool>) -> String {
        let answer = answer("c", forecast, state, cold).end_object();
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
        // 40,000 raw tokens read 400 times at .3 are 4.80; summaries and writing the tail anew .35.
        let dear = Forecast { bound: 1_000_000, ..forecast(400) };
        assert_eq!(advice(&dear, &state(40_000), Some(false)), "compact saves-more-than-it-costs");
        assert_eq!(advice(&dear, &state(300), Some(false)), "wait costs-more-than-it-saves");
    }

    /// Goal: where the cache is cold and all is written anyway, compaction pays sooner.
    #[test]
    fn a_cold_cache_makes_a_compaction_worth_while_that_a_warm_one_does_not() {
        let mut sooner = 0;
        for turns in (4..=64).step_by(4) {
            for raw in (2_000..=40_000).step_by(2_000) {
                let forecast = Forecast { bound: 100_000, ..forecast(turns) };
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
        assert_eq!(forecast(90).forced_in(&state(42_600)), Some(1));
        assert_eq!(forecast(90).forced_in(&state(43_000)), Some(1));
        assert_eq!(forecast(90).forced_in(&state(43_001)), Some(0));
        assert_eq!(forecast(9).forced_in(&state(30_000)), None);
    }

    #[test]
    fn nothing_overflows() {
        let far = Prices { read: PRICE_MAX, write: PRICE_MAX, ..PRICES };
        let forecast = Forecast { prices: far, growth: u64::MAX, turns: TURNS_MAX, ..forecast(9) };
        let state = State { fixed: u64::MAX, summaries: u64::MAX, raw: u64::MAX };
        assert_eq!(forecast.cost(&state, (0, 1), true), u64::MAX);
        assert_eq!(advice(&forecast, &state, Some(true)), "wait nothing-to-compact");
    }
}
