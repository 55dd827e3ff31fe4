//! Tests of keys, bounds and derived numbers.

use alloc::{format, string::String};

use super::*;
use crate::{
    base::error::ErrorCode,
    types::{api, model::Level},
};

fn config(json: &str) -> Config {
    parse(json).unwrap().0
}

fn refusal(json: &str) -> String {
    let error = parse(json).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidInput);
    error.into_failure().message
}

#[test]
fn an_empty_object_is_the_default_and_says_so() {
    let (config, report) = parse("{}").unwrap();
    assert_eq!(config, Config::default());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["defaulted"].as_array().unwrap().len(), 50);
    let lists = ["accepted", "reserved", "aliased", "deprecated", "host", "not_followed"];
    for list in lists.into_iter().chain(["overridden", "unknown", "notes"]) {
        assert_eq!(report[list].as_array().unwrap().len(), 0, "{list}");
    }
}

#[test]
fn each_key_lands_in_one_sorted_list() {
    let (config, report) = parse(
        r#"{"zzz":1,"aaa":null,"freshTailCount":7,"enabled":false,"leafChunkTokens":500,
            "timezone":"UTC","databasePath":"x","database_path":"y","cacheAwareCompaction":{},
            "dynamic_leaf_chunk_tokens":1,"summaryModel":"m","fresh_tail_tokens_max":null}"#,
    )
    .unwrap();
    assert!(!config.enabled);
    assert_eq!(config.fresh_tail_messages_max, 7);
    assert_eq!(config.leaf_chunk_tokens_max, Some(500));
    assert_eq!(config.summary_model.as_deref(), Some("m"));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        report["accepted"],
        serde_json::json!([
            "enabled",
            "fresh_tail_messages_max",
            "fresh_tail_tokens_max",
            "leaf_chunk_tokens_max",
            "summary_model"
        ])
    );
    assert_eq!(
        report["aliased"],
        serde_json::json!([
            {"key": "databasePath", "as": "database_path"},
            {"key": "freshTailCount", "as": "fresh_tail_messages_max"},
            {"key": "leafChunkTokens", "as": "leaf_chunk_tokens_max"},
            {"key": "summaryModel", "as": "summary_model"}
        ])
    );
    assert_eq!(
        report["deprecated"],
        serde_json::json!(["cacheAwareCompaction", "dynamic_leaf_chunk_tokens"])
    );
    assert_eq!(report["host"], serde_json::json!(["database_path", "timezone"]));
    assert_eq!(report["overridden"], serde_json::json!(["databasePath"]));
    assert_eq!(report["unknown"], serde_json::json!(["aaa", "zzz"]));
    assert_eq!(report["defaulted"].as_array().unwrap().len(), 45);
}

#[test]
fn our_name_wins_over_aliases_and_they_in_their_order() {
    for json in [
        r#"{"sweep_depth_max":3,"sweepMaxDepth":4,"incrementalMaxDepth":5}"#,
        r#"{"incrementalMaxDepth":5,"sweepMaxDepth":4,"sweep_depth_max":3}"#,
        r#"{"incremental_max_depth":5,"sweep_max_depth":3}"#,
        r#"{"sweepMaxDepth":1,"sweepMaxDepth":3}"#,
    ] {
        assert_eq!(config(json).sweep_depth_max, Some(3), "{json}");
    }
    assert!(refusal(r#"{"sweep_depth_max":3,"sweepMaxDepth":-2}"#).contains("`sweepMaxDepth`"));
}

#[test]
fn our_names_are_known_in_camel_case_too() {
    let json = r#"{"freshTailMessagesMax":3,"contextThresholdPermille":600}"#;
    let config = config(json);
    assert_eq!((config.fresh_tail_messages_max, config.context_threshold_permille), (3, 600));
    let both = r#"{"fresh_tail_count":9,"freshTailMessagesMax":3}"#;
    assert_eq!(self::config(both).fresh_tail_messages_max, 3);
}

#[test]
fn every_setting_is_refused_out_of_its_bounds_by_name() {
    let numbers = [
        ("fresh_tail_messages_max", 0),
        ("fresh_tail_tokens_max", 1),
        ("leaf_chunk_tokens_max", 1),
        ("leaf_tokens_target", 1),
        ("condensed_tokens_target", 1),
        ("condense_leaves_min", 2),
        ("condense_summaries_min", 2),
        ("condense_min_hard", 2),
        ("summary_prefix_tokens_target", 1),
        ("sweep_passes_max", 1),
        ("until_under_rounds_max", 1),
        ("fallback_tokens_max", 64),
        ("summary_overage_factor", 1),
        ("expand_tokens_max", 1),
        ("large_payload_tokens_min", 1000),
        ("assembly_tokens_max", 1000),
        ("bootstrap_tokens_max", 1),
        ("summary_call_window_ms", 1),
        ("summary_max_calls_per_window", 1),
        ("summary_spend_backoff_ms", 1),
        ("circuit_breaker_threshold", 1),
        ("circuit_breaker_cooldown_ms", 1),
        ("replay_flood_threshold_external", 1),
        ("replay_flood_threshold_internal", 1),
        ("context_threshold_permille", 0),
        ("sweep_depth_max", -1),
        ("new_session_retain_depth", -1),
    ];
    for (key, min) in numbers {
        assert!(parse(&format!("{{\"{key}\":{min}}}")).is_ok(), "{key}");
        let message = refusal(&format!("{{\"{key}\":{}}}", min - 1));
        let wanted = format!("`{key}` must be a whole number from {min} to ");
        assert!(message.starts_with(&wanted), "{message}");
        let without_value = |text: &str| String::from(text.split(", got ").next().unwrap());
        let message = without_value(&message);
        for odd in ["\"5000\"", "1000.5", "true", "[]", "4294967296", "1e999999999999999999"] {
            let refused = refusal(&format!("{{\"{key}\":{odd}}}"));
            assert_eq!(without_value(&refused), message, "{odd}");
        }
        let null = parse(&format!("{{\"{key}\":null}}"));
        assert_eq!(null.is_ok(), message.ends_with(", or null"), "{key}");
    }
    let flags = ["enabled", "stub_large_tool_payloads", "enable_summary_thinking"];
    for key in flags.into_iter().chain(["plain_summaries", "skip_stateless_sessions"]) {
        let message = refusal(&format!("{{\"{key}\":1}}"));
        assert_eq!(message, format!("`{key}` must be true or false, got 1"));
    }
    assert!(refusal(r#"{"custom_instructions":null}"#).ends_with("must be a string, got null"));
    assert!(refusal(r#"{"summary_model":5}"#).ends_with("must be a string or null, got 5"));
    for key in
        ["strip_injected_context_tags", "ignore_session_patterns", "statelessSessionPatterns"]
    {
        assert!(refusal(&format!("{{\"{key}\":[\"a\",5]}}")).contains("array of strings"));
    }
    assert!(refusal(r#"{"eviction_policy":"newest"}"#).contains("`layered`"));
    assert!(refusal(r#"{"eviction_policy":true}"#).contains("`layered`"));
    assert!(
        refusal(r#"{"promptAwareEviction":"layered"}"#).ends_with("true or false, got \"layered\"")
    );
    assert!(refusal("[]").starts_with("must be one JSON object"));
}

#[test]
fn texts_of_prompts_and_names_of_elements_are_bounded() {
    assert!(refusal(r#"{"prompt_overrides":{"leaf":5}}"#).contains("values are strings"));
    for name in ["", "a b", "<a>", "1a", "-a", &"a".repeat(65)] {
        let tags = format!("{{\"stripInjectedContextTags\":[\"ok\",\"{name}\"]}}");
        assert!(refusal(&tags).contains("names of elements"), "{name}");
    }
    let many = format!("{{\"stripInjectedContextTags\":[{}\"a\"]}}", "\"a\",".repeat(32));
    assert!(refusal(&many).contains("at most 32 names"));
    let unknown = refusal(r#"{"prompt_overrides":{"chapter":"x"}}"#);
    let names = "for `leaf`, `leaf-aggressive`, `session`, `phase`, `durable`, not `chapter`";
    assert!(unknown.ends_with(names), "{unknown}");
    let long = format!(r#"{{"prompt_overrides":{{"leaf":"{}"}}}}"#, "x".repeat(8193));
    assert!(refusal(&long).ends_with("at most 8192 bytes; `leaf` is longer"));
    for line in ["Length: at most 5 tokens.", "Material: about 5 tokens.", "<source ffff>"] {
        let forged = format!(r#"{{"prompt_overrides":{{"phase":"x\n{line}"}}}}"#);
        assert!(refusal(&forged).ends_with("`phase` has one"), "{line}");
    }
}

#[test]
fn values_that_are_no_numbers_are_kept() {
    let read = config(
        r#"{"eviction_policy":"layered","custom_instructions":"be \"brief\"","expansionModel":"",
            "prompt_overrides":{"leaf":" x\n","durable":" "},"strip_injected_context_tags":[],
            "new_session_retain_depth":-1,"largeFileTokenThreshold":2e3}"#,
    );
    assert_eq!(read.eviction_policy, api::EvictionPolicy::Layered);
    assert_eq!(read.custom_instructions, "be \"brief\"");
    assert_eq!(read.expansion_model, None);
    assert_eq!(
        read.prompt_overrides,
        [(crate::summary::prompts::PromptTemplate::Leaf, "x".into())]
    );
    assert!(read.strip_injected_context_tags.is_empty());
    assert_eq!(read.new_session_retain_depth, None);
    assert_eq!(read.large_payload_tokens_min, 2000);
    let aware = config(r#"{"promptAwareEviction":true}"#);
    assert_eq!(aware.eviction_policy, api::EvictionPolicy::PromptAware);
}

#[test]
fn a_decimal_threshold_is_read_exactly() {
    let read = |number: &str| {
        config(&format!("{{\"contextThreshold\":{number}}}")).context_threshold_permille
    };
    for (number, permille) in [
        ("0.75", 750),
        ("0.7499999999999999999999", 750),
        ("7.5e-1", 750),
        ("75E-2", 750),
        ("0.0085", 9),
        ("0.0084999", 8),
        ("0.9996", 1000),
        ("1", 1000),
        ("1.000", 1000),
        ("0", 0),
        ("-0.0", 0),
        ("0e99", 0),
        ("1e-99", 0),
        ("0.000001e5", 100),
    ] {
        assert_eq!(read(number), permille, "{number}");
    }
    for number in ["1.0001", "2", "-0.1", "1e99", "\"0.5\"", "null"] {
        let message = refusal(&format!("{{\"contextThreshold\":{number}}}"));
        assert_eq!(
            message,
            format!("`contextThreshold` must be a number from 0 to 1, got {number}")
        );
    }
    assert_eq!(config(r#"{"context_threshold_permille":800}"#).context_threshold_permille, 800);
}

#[test]
fn the_cap_of_the_tail_is_derived_absent_or_given() {
    let cap = |json: &str| config(json).derive_policy(10_000).unwrap().fresh_tail_tokens_max;
    assert_eq!(cap("{}"), Some(3000));
    assert_eq!(cap(r#"{"fresh_tail_tokens_max":null}"#), None);
    assert_eq!(cap(r#"{"freshTailMaxTokens":1000}"#), Some(1000));
}

#[test]
fn the_prefix_target_follows_the_budget() {
    let target = |json: &str, budget| {
        config(json).derive_policy(budget).unwrap().summary_prefix_tokens_target
    };
    assert_eq!(target("{}", 200_000), 20_000);
    assert_eq!(target("{}", 8000), 3000);
    assert_eq!(target(r#"{"summary_prefix_tokens_target":5}"#, 8000), 5);
}

#[test]
fn derived_defaults_scale_with_the_budget() {
    let derived = |budget| {
        let p = Config::default().derive_policy(budget).unwrap();
        (
            p.threshold,
            p.leaf_chunk_tokens_max,
            p.leaf_tokens_target,
            p.condensed_tokens_target,
            p.fallback_tokens_max,
        )
    };
    assert_eq!(derived(1_000_000), (750_000, 20_000, 2400, 2000, 512));
    assert_eq!(derived(8000), (6000, 3000, 1200, 1000, 512));
    assert_eq!(derived(3000), (2250, 1125, 450, 512, 450));
    assert_eq!(derived(1), (0, 1000, 192, 512, 192));
    assert_eq!(derived(u32::MAX).0, 3_221_225_471);
    let error = Config::default().derive_policy(0).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidInput);
    assert!(error.message.contains("`budget`"));
    let capped = config(r#"{"maxAssemblyTokenBudget":8000}"#);
    assert_eq!(capped.derive_policy(200_000).unwrap().threshold, 6000);
    assert_eq!(capped.derive_policy(4000).unwrap().budget, 4000);
    assert_eq!(
        config(r#"{"leaf_tokens_target":5}"#).derive_policy(9).unwrap().fallback_tokens_max,
        64
    );
}

#[test]
fn targets_follow_the_source() {
    let policy = Config::default().derive_policy(200_000).unwrap();
    let leaf = |n| (policy.leaf_target(n, Level::Normal), policy.leaf_target(n, Level::Aggressive));
    assert_eq!(leaf(1000), (350, 200));
    assert_eq!(leaf(10_000), (2400, 1320));
    assert_eq!(leaf(500), (192, 100));
    assert_eq!(leaf(100), (192, 96));
    assert_eq!(leaf(0), (192, 96));
    assert_eq!(leaf(u32::MAX), (2400, 1320));
    let condensed = |n| {
        (policy.condensed_target(n, Level::Normal), policy.condensed_target(n, Level::Aggressive))
    };
    assert_eq!(condensed(10_000), (2000, 1100));
    assert_eq!(condensed(3000), (1500, 825));
    assert_eq!(condensed(100), (64, 64));
    let small = config(r#"{"condensed_tokens_target":300}"#).derive_policy(200_000).unwrap();
    assert_eq!(small.condensed_target(10_000, Level::Normal), 512);
}
