//! `lcm usage` and `lcm advise`.

use serde_json::json;

use crate::Place;

const PRICES: [&str; 4] = ["--price-input", "3000000", "--price-output", "15000000"];

#[test]
fn what_was_spent_is_summed_and_shown() {
    let place = Place::with_demo();
    let report = [
        "usage",
        "--purpose",
        "turn",
        "--input-tokens",
        "900",
        "--cache-read-tokens",
        "800",
        "--cache-write-tokens",
        "90",
        "--output-tokens",
        "70",
        "--cost-micros",
        "45",
        "--now",
        "1700000000000",
    ];
    let first = place.json(&report);
    assert_eq!((&first["changed"], &first["applied"]), (&json!(true), &json!(true)));
    let spent = json!({
        "calls": 1, "input_tokens": 900, "cache_read_tokens": 800, "cache_write_tokens": 90,
        "output_tokens": 70, "cost_micros": 45,
    });
    assert_eq!(first["usage"]["turns"], spent);
    assert_eq!(place.json(&report)["changed"], false);
    assert_eq!(place.json(&["status"])["usage"]["turns"], spent);
    let text = place.run(&["usage", "--purpose", "summary", "--input-tokens", "5"]).ok().out;
    assert!(text.contains("turns: 1 call, 900 tokens in (800 read"), "{text}");
    assert!(text.contains("summaries: 1 call, 5 tokens in"), "{text}");
    place.run(&["usage", "--purpose", "nap", "--input-tokens", "5"]).failed(
        2,
        "invalid-input",
        "purpose",
    );
    place.run(&["usage", "--purpose", "turn"]).failed(2, "invalid-input", "greater than 0");
}

#[test]
fn advice_weighs_the_prices_and_changes_nothing() {
    let place = Place::with_demo();
    let before = place.json(&["digest"]);
    let advise = |more: &[&str]| place.json(&[&["advise"], &PRICES[..], more].concat());
    let few = advise(&["--budget", "100000", "--turns", "1"]);
    assert_eq!((&few["advice"], &few["turns"]), (&json!("wait"), &json!(1)));
    let over = advise(&["--budget", "3000", "--turns", "1"]);
    assert_eq!((&over["advice"], &over["reason"]), (&json!("compact"), &json!("over-budget")));
    let read = advise(&["--budget", "100000", "--price-cache-read", "300000"]);
    let dear = advise(&["--budget", "100000"]);
    assert!(read["cost_wait_micros"].as_u64() < dear["cost_wait_micros"].as_u64(), "{read} {dear}");
    assert_eq!(place.json(&["digest"]), before);
    let text = place.run(&[&["advise", "--budget", "3000"], &PRICES[..]].concat()).ok().out;
    assert!(text.starts_with("compact: over budget\n"), "{text}");
    let far = ["advise", "--budget", "9", "--price-input", "1000000001", "--price-output", "1"];
    place.run(&far).failed(2, "invalid-input", "prices");
}
