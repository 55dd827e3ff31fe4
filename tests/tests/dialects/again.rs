//! The render cache of an engine does not change a context.
//!
//! Generated histories grow step by step and are assembled after each step. Between the steps they
//! are compacted, extended by another engine, given a focus brief, or restored to an earlier state
//! of their store. Every assembly must equal the assembly of an engine without a cache. The
//! reported stable prefix must agree with the bytes that two contexts share.

use lcm_text::{
    message,
    types::api::{AssembledContext, Dialect},
};
use serde_json::value::RawValue;

use crate::{
    Chat, DIALECTS,
    generate::{Event, Generator, write},
    properties::each_seed,
};

/// Seeds of every test run.
const SEEDS: u64 = 600;
/// A budget that fits every context.
const LARGE: u32 = 10_000_000;

const CONFIG: &str = r#"{"fresh_tail_messages_max": 6, "fresh_tail_tokens_max": null,
    "leaf_chunk_tokens_max": 400, "leaf_tokens_target": 200, "condensed_tokens_target": 200}"#;
const WITH_WHOLE: &str = r#"{"fresh_tail_messages_max": 9, "large_payload_tokens_min": 1000,
    "stub_large_tool_payloads": true, "plain_summaries": true}"#;

/// Checks the reported stable prefix against the bytes that two contexts share. Two dialects may
/// have equal bytes for different elements.
fn check_stable_prefix(
    (earlier, before): &(Dialect, AssembledContext),
    after: &AssembledContext,
    dialect: Dialect,
) {
    let stable = after.prefix.stable_tokens.unwrap();
    if before.system != after.system {
        assert_eq!(stable, 0);
        return;
    }
    let pairs = before.messages_json.bytes().zip(after.messages_json.bytes());
    let equal = pairs.take_while(|(one, other)| one == other).count();
    let list: Vec<&RawValue> = serde_json::from_str(&after.messages_json).unwrap();
    let tokens = |raw: &&RawValue| message::parse(dialect, raw.get()).unwrap().tokens;
    let start = after.messages_json.as_ptr().addr();
    let end_of = |raw: &&RawValue| raw.get().as_ptr().addr() + raw.get().len() - start;
    let whole: u32 = list.iter().take_while(|raw| end_of(raw) <= equal).map(tokens).sum();
    let begun: u32 = list.iter().find(|raw| end_of(raw) > equal).map_or(0, tokens);
    let system = after.tokens - list.iter().map(tokens).sum::<u32>();
    let least = if *earlier == dialect { system + whole } else { 0 };
    assert!(
        (least..=system + whole + begun).contains(&stable),
        "reported {stable}, equal {system} + {whole} to {begun} more:\n{}\n{}",
        before.messages_json,
        after.messages_json,
    );
}

fn run(seed: u64) {
    let mut generator = Generator::new(seed, seed.is_multiple_of(3));
    let config = if seed % 5 == 1 { WITH_WHOLE } else { CONFIG };
    let mut chat = Chat::new(config);
    let mut earlier = None;
    let (mut last, mut budget) = (*generator.random.pick(&DIALECTS), LARGE);
    let mut shape = last;
    let mut previous: Option<(Dialect, AssembledContext)> = None;
    chat.append(Dialect::OpenaiChat, &[r#"{"role":"user","content":"w0x"}"#.into()]);
    for step in 0..generator.random.between(8, 30) {
        for mut event in generator.next() {
            if let Event::Results { list, .. } = &mut event
                && config == WITH_WHOLE
            {
                list.iter_mut().for_each(|one| one.word.push_str(&"a long output ".repeat(400)));
            }
            if generator.random.chance(60) {
                shape = *generator.random.pick(&DIALECTS);
            }
            let batch = write(shape, &event, &mut generator.random);
            if !batch.is_empty() && generator.random.chance(200) {
                // Another process continues the conversation.
                let mut other = chat.anew(config);
                other.append(shape, &batch);
                chat.restore(&other);
            } else if !batch.is_empty() {
                chat.append(shape, &batch);
            }
        }
        match generator.random.between(0, 39) {
            0 | 1 => chat.compact(100),
            2 => chat.focus(Some("what matters"), None),
            3 => chat.focus(None, None),
            4 => earlier = Some(chat.anew(config)),
            5 => earlier.iter().for_each(|then| chat.restore(then)),
            6..=9 => last = *generator.random.pick(&DIALECTS),
            10..=13 => budget = generator.random.between(1, 900) as u32,
            14 | 15 => budget = LARGE,
            _ => {}
        }
        let mut live = Vec::new();
        if generator.random.chance(80) {
            live = write(last, &Event::User(format!("live {step}")), &mut generator.random);
        }
        for _ in 0..generator.random.between(1, 2) {
            let mut fresh = chat.anew(config);
            let token = previous.as_ref().map(|(_, before)| before.prefix.token.clone());
            let found = chat.assemble_with(last, budget, token.clone(), live.clone());
            let expected = fresh.assemble_with(last, budget, token, live.clone());
            assert_eq!(found, expected, "step {step}, {last:?}, {budget}");
            previous.iter().for_each(|before| check_stable_prefix(before, &found, last));
            previous = Some((last, found));
        }
    }
}

#[test]
fn the_render_cache_changes_no_context() {
    each_seed(SEEDS, run);
}

/// Goal: a token holds a hash of every element, and is valid for one conversation.
#[test]
fn a_token_compares_all_of_a_long_context() {
    let mut chat = Chat::new(CONFIG);
    let said = |number: u32| format!("{{\"role\":\"user\",\"content\":\"w{number}x\"}}");
    for batch in 0..100 {
        let messages: Vec<String> = (0..100).map(|at| said(batch * 100 + at)).collect();
        chat.append(Dialect::OpenaiChat, &messages);
    }
    let before = chat.assemble(Dialect::OpenaiChat, 10_000_000, None);
    let token = before.prefix.token.clone();
    assert_eq!(token.rsplit('.').next().map(str::len), Some(6 * 10_000));
    chat.append(Dialect::OpenaiChat, &[said(10_000)]);
    let after = chat.assemble(Dialect::OpenaiChat, 10_000_000, Some(token.clone()));
    assert_eq!(after.prefix.stable_tokens, Some(before.tokens));
    assert_eq!((after.prefix.broken_by, after.prefix.broken_why), (None, None));
    // A compaction and another budget: the new summary is the reason.
    chat.compact(1_000);
    let after = chat.assemble(Dialect::OpenaiChat, 1_000_000, Some(token.clone()));
    assert_eq!(after.prefix.broken_why.as_deref(), Some("compaction"));
    let before = after.prefix.token;
    let after = chat.assemble(Dialect::OpenaiChat, 2_000, Some(before));
    assert_eq!(after.prefix.broken_why.as_deref(), Some("budget"));
    // The token of another conversation is invalid.
    let other = token.replacen('.', ".x", 1);
    let after = chat.assemble(Dialect::OpenaiChat, 10_000_000, Some(other));
    assert_eq!(after.prefix.stable_tokens, None);
    assert!(after.warnings.iter().any(|line| line.starts_with("previous-unknown: ")));
    // The contexts of two dialects are not compared.
    let after = chat.assemble(Dialect::Gemini, 10_000_000, Some(token));
    assert_eq!(after.prefix.stable_tokens, Some(0));
    assert_eq!(after.prefix.broken_why.as_deref(), Some("dialect"));
}
