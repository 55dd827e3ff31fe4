//! `lcm usage` reports the tokens of a model's answer; `lcm advise` asks whether to compact now.
//!
//! In: token counts, costs and prices. Out: the sums of all reports, or the advice of the
//! component.

use lcm_host::Result;
use serde_json::{Map, Value, json};

use super::{
    life::{self, Effect},
    recall::{field, parse},
};
use crate::{
    End,
    arguments::{Advise, Global, Usage},
    output::{self, count, number},
    session::Session,
};

pub(crate) fn usage(global: &Global, options: &Usage) -> Result<End> {
    let arguments = json!({
        "purpose": options.purpose,
        "input_tokens": options.input_tokens,
        "cache_read_tokens": options.cache_read_tokens,
        "cache_write_tokens": options.cache_write_tokens,
        "output_tokens": options.output_tokens,
        "cost_micros": options.cost_micros,
    });
    life::run(global, "usage", arguments, Effect::Written, |answer| {
        let sums = ["turns", "summaries"].map(|name| format!("{name}: {}", sum(answer, name)));
        format!("{}\n{}", field(answer, "conversation"), sums.join("\n"))
    })
}

/// Formats the sums `name` (`turns` or `summaries`) of an answer for people.
fn sum(answer: &Value, name: &str) -> String {
    let sums = answer.get("usage").and_then(|usage| usage.get(name)).unwrap_or(&Value::Null);
    format!(
        "{}, {} tokens in ({} read from the cache, {} written), {} out, {} millionths",
        count(sums.get("calls").and_then(Value::as_u64).unwrap_or(0), "call"),
        field(sums, "input_tokens"),
        field(sums, "cache_read_tokens"),
        field(sums, "cache_write_tokens"),
        field(sums, "output_tokens"),
        field(sums, "cost_micros"),
    )
}

pub(crate) fn advise(global: &Global, options: &Advise) -> Result<End> {
    let session = Session::open(global)?;
    let mut prices = Map::new();
    for (name, price) in [
        ("input", Some(options.price_input)),
        ("output", Some(options.price_output)),
        ("cache_read", options.price_cache_read),
        ("cache_write", options.price_cache_write),
        ("summary_input", options.price_summary_input),
        ("summary_output", options.price_summary_output),
    ] {
        prices.extend(price.map(|price| (name.to_owned(), price.into())));
    }
    let arguments = json!({
        "budget": options.budget,
        "prices": prices,
        "cache_ms": options.cache_ms,
        "turns": options.turns,
        "observed_tokens": options.observed_tokens,
        "model": options.model,
    });
    let (lcm, arguments) = (&session.lcm, arguments.to_string());
    let text = lcm.admin_call(session.conversation, "advise", &arguments, session.now())?;
    let answer = parse("admin.call", &text)?;
    if session.json {
        output::json(&answer)?;
    } else {
        let tokens = |name: &str| number(answer.get(name).and_then(Value::as_u64).unwrap_or(0));
        output::text(&format!(
            "{}: {}\n{} tokens, {} after it; the cache is {}\nfor {} turns of {} tokens: now {} \
             millionths, later {}\n",
            field(&answer, "advice"),
            field(&answer, "reason").replace('-', " "),
            tokens("tokens"),
            tokens("tokens_after"),
            field(&answer, "cache"),
            field(&answer, "turns"),
            field(&answer, "turn_tokens"),
            tokens("cost_now_micros"),
            tokens("cost_wait_micros"),
        ))?;
    }
    Ok(End::Done)
}
