//! What turns and summaries cost, and advice whether compacting now pays.

use lcm_host::{
    AdviseOptions, Cancel, Code, CompactOptions, CompactStatus, Lcm, TokenPrices, UsagePurpose,
    UsageReport, UsageSum,
    shapes::{AdviceAction, CacheState},
    store::Memory,
};

use crate::engine::{NOW, ingest, open, transcript};

const PRICES: TokenPrices = TokenPrices {
    cache_read: Some(300_000),
    cache_write: Some(3_750_000),
    ..TokenPrices::new(3_000_000, 15_000_000)
};

/// A conversation whose newest turn was reported now.
fn begin() -> Lcm {
    let lcm = open(Memory::new());
    ingest(&lcm, &transcript(120, 60));
    let report = UsageReport { input_tokens: 9_000, ..UsageReport::new(UsagePurpose::Turn) };
    lcm.usage("c", &report, NOW.now_ms()).unwrap();
    lcm
}

#[test]
fn what_is_reported_is_summed_by_purpose_and_once() {
    let lcm = open(Memory::new());
    ingest(&lcm, &transcript(2, 60));
    let turn = UsageReport {
        purpose: UsagePurpose::Turn,
        input_tokens: 900,
        cache_read_tokens: 800,
        cache_write_tokens: 90,
        output_tokens: 70,
        cost_micros: 45,
    };
    let spent = UsageSum {
        calls: 1,
        input_tokens: 900,
        cache_read_tokens: 800,
        cache_write_tokens: 90,
        output_tokens: 70,
        cost_micros: 45,
    };
    for _ in 0..2 {
        let usage = lcm.usage("c", &turn, NOW.now_ms()).unwrap();
        assert_eq!((usage.turns, usage.summaries), (spent, UsageSum::default()));
    }
    let summary = UsageReport { purpose: UsagePurpose::Summary, ..turn };
    let usage = lcm.usage("c", &summary, NOW.now_ms() + 1).unwrap();
    assert_eq!((usage.turns, usage.summaries), (spent, spent));
    let nothing = UsageReport::new(UsagePurpose::Turn);
    assert_eq!(lcm.usage("c", &nothing, NOW.now_ms()).unwrap_err().code, Code::InvalidInput);
    assert_eq!(lcm.usage("x", &turn, NOW.now_ms()).unwrap_err().code, Code::NotFound);
}

#[test]
fn every_option_of_advice_counts() {
    let lcm = begin();
    lcm.admin_call(
        "c",
        "calibrate",
        r#"{"model":"m","estimated_tokens":1000,"prompt_tokens":3000}"#,
        NOW.now_ms(),
    )
    .unwrap();
    let digest = || lcm.digest_all(false, &Cancel::default()).unwrap();
    let before = digest();
    let ask = |options: &AdviseOptions, now| lcm.advise("c", options, now).unwrap();
    let asked = AdviseOptions { turns: Some(40), ..AdviseOptions::new(100_000, PRICES) };
    let first = ask(&asked, NOW.now_ms());
    assert_eq!((first.cache, first.turns), (CacheState::Warm, 40));
    let prices = |prices| AdviseOptions { prices, ..asked.clone() };
    let others = [
        AdviseOptions { budget: 9_000, ..asked.clone() },
        AdviseOptions { observed_tokens: Some(60_000), ..asked.clone() },
        AdviseOptions { model: Some("m".into()), budget: 27_000, ..asked.clone() },
        AdviseOptions { turns: None, ..asked.clone() },
        prices(TokenPrices { input: 4_000_000, ..PRICES }),
        prices(TokenPrices { output: 16_000_000, ..PRICES }),
        prices(TokenPrices { cache_read: None, ..PRICES }),
        prices(TokenPrices { cache_write: None, ..PRICES }),
        prices(TokenPrices { summary_input: Some(1_000_000), ..PRICES }),
        prices(TokenPrices { summary_output: Some(5_000_000), ..PRICES }),
    ];
    for other in others {
        assert_ne!(ask(&other, NOW.now_ms()), first, "{other:?}");
    }
    let estimated = AdviseOptions { budget: 27_000, ..asked.clone() };
    let counted = AdviseOptions { model: Some("m".into()), ..estimated.clone() };
    assert_ne!(ask(&counted, NOW.now_ms()), ask(&estimated, NOW.now_ms()));
    let later = NOW.now_ms() + 60_000;
    let short = AdviseOptions { cache_ms: Some(59_999), ..asked.clone() };
    assert_eq!(
        (ask(&asked, later).cache, ask(&short, later).cache),
        (CacheState::Warm, CacheState::Cold)
    );
    assert_eq!(digest(), before, "advice changes nothing");
    let wrong = AdviseOptions::new(0, PRICES);
    assert_eq!(lcm.advise("c", &wrong, later).unwrap_err().code, Code::InvalidInput);
}

#[test]
fn advice_that_comes_before_the_threshold_is_followed_with_force() {
    let lcm = begin();
    // Where nothing is cached every turn pays for the whole context.
    let prices = TokenPrices::new(3_000_000, 15_000_000);
    let asked = AdviseOptions { turns: Some(500), ..AdviseOptions::new(14_000, prices) };
    let advice = lcm.advise("c", &asked, NOW.now_ms()).unwrap();
    assert_eq!((advice.advice, advice.wait_turns), (AdviceAction::Compact, None), "{advice:?}");
    let mut compact = CompactOptions::new(asked.budget, NOW);
    let mut run = |force| {
        compact.force = force;
        lcm.compact("c", &compact, &Cancel::default(), &mut |_| ()).unwrap()
    };
    assert_eq!(run(false).status, CompactStatus::NothingToDo);
    let done = run(true);
    assert_eq!(done.status, CompactStatus::Done);
    assert!(done.tokens_after < done.tokens_before, "{done:?}");
    let after = lcm.advise("c", &asked, NOW.now_ms()).unwrap();
    assert_eq!(after.tokens, u64::from(done.tokens_after));
}
