#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Grants: what they allow, in which order they refuse, and that nothing is spent twice.

use lcm_core::{Error, ErrorCode};
use lcm_testing::{
    Host, Json,
    host::StoreMode,
    scripted_model::ScriptedModel,
    vector_runner::{Answers, drive},
};

/// Default time of a call, in milliseconds since 1970.
const NOW: u64 = 1_700_000_000_000;
const CONFIG: &str = r#"{"fresh_tail_messages_max":2,"fresh_tail_tokens_max":null,
    "leaf_chunk_tokens_max":1000,"condense_leaves_min":3,"condensed_tokens_target":512,
    "summary_prefix_tokens_target":600}"#;

fn append(host: &mut Host, conversation: &str, count: u64, first: u64) {
    let args = format!(
        r#"{{"conversation":"{conversation}","messages":[{{"$generate":{{"count":{count},
            "tokens":200,"roles":["user","assistant"],"first":{first}}}}}],
            "options":{{"append_mode":"new"}}}}"#
    );
    host.told("ingest.append", &args).unwrap();
}

/// Conversation `a` with three leaves of 300 tokens under one summary of 200 tokens and two raw
/// messages after them, `b` with two leaves, and `c` with messages only.
struct World {
    host: Host,
    /// Ids of the leaves of `a`, oldest first; `top` is the summary above them.
    leaves: [String; 3],
    top: String,
    /// Id of a leaf of `b`.
    other: String,
}

fn world_of(mode: StoreMode) -> World {
    let mut host = Host::new(Some(Json::of(CONFIG)), mode).unwrap();
    let script = r#"[{"tokens":300,"purpose":"leaf","times":0},
        {"tokens":200,"purpose":"condensed","times":0}]"#;
    host.model = ScriptedModel::new(Json::of(script).elements()).unwrap();
    append(&mut host, "a", 17, 1);
    append(&mut host, "b", 12, 101);
    append(&mut host, "c", 3, 201);
    for conversation in ["a", "b"] {
        let args = format!(
            r#"{{"conversation":"{conversation}","budget":100000,"options":{{"force":true}}}}"#
        );
        drive(&mut host, &Json::of(&args), Answers::Scripted).unwrap().unwrap();
    }
    let ids = |host: &mut Host, conversation: &str, kind: &str| -> Vec<String> {
        let args = format!(r#"{{"kind":"summaries","conversation":"{conversation}"}}"#);
        let page = host.told("admin.listing", &args).unwrap();
        let mut items: Vec<Json> = page.field("items").unwrap().elements().to_vec();
        items.retain(|item| item.text("kind") == kind);
        items.sort_by_key(|item| item.number("seq_first"));
        items.iter().map(|item| item.text("id")).collect()
    };
    let leaves = ids(&mut host, "a", "leaf").try_into().unwrap();
    let top = ids(&mut host, "a", "condensed").remove(0);
    let other = ids(&mut host, "b", "leaf").remove(0);
    World { host, leaves, top, other }
}

fn world() -> World {
    world_of(StoreMode::Plain)
}

fn grant(host: &mut Host, limits: &str) -> Result<Json, Error> {
    let args = format!(r#"{{"conversation":"a","grant_json":{limits}}}"#);
    host.told("recall.grant", &args)
}

fn made(host: &mut Host, limits: &str) -> String {
    grant(host, limits).unwrap().text("id")
}

fn read(
    host: &mut Host,
    function: &str,
    id: &str,
    options: &str,
    grant: &str,
) -> Result<Json, Error> {
    read_at(host, NOW, (function, "a"), id, options, grant)
}

fn read_at(
    host: &mut Host,
    now: u64,
    (function, conversation): (&str, &str),
    id: &str,
    options: &str,
    grant: &str,
) -> Result<Json, Error> {
    let args = format!(
        r#"{{"conversation":"{conversation}","id":"{id}","options_json":{options},
            "grant":"{grant}","now":{now}}}"#
    );
    host.told(&format!("recall.{function}"), &args)
}

fn grep(host: &mut Host, query: &str, grant: &str) -> Result<Json, Error> {
    let args = format!(r#"{{"conversation":"a","query_json":{query},"grant":"{grant}"}}"#);
    host.told("recall.grep", &args)
}

fn tool(host: &mut Host, name: &str, arguments: &str, caller: &str) -> (String, bool) {
    call_tool(host, &format!(r#""name":"{name}","arguments_json":{arguments},"grant":"{caller}""#))
}

/// Calls a tool that may name any conversation.
fn tool_of_store(host: &mut Host, name: &str, arguments: &str, caller: &str) -> (String, bool) {
    let args = format!(r#""name":"{name}","arguments_json":{arguments},"grant":"{caller}""#);
    call_tool(host, &format!(r#"{args},"scope":"store""#))
}

fn call_tool(host: &mut Host, members: &str) -> (String, bool) {
    let args = format!(r#"{{"conversation":"a",{members}}}"#);
    let outcome = host.told("tools.call", &args).unwrap();
    let done = outcome.field("done").unwrap();
    (done.text("text"), done.field("is_error") == Some(&Json::Bool(true)))
}

fn listed(host: &mut Host) -> Vec<Json> {
    let page = host.told("admin.listing", r#"{"kind":"grants","conversation":"a"}"#).unwrap();
    page.field("items").unwrap().elements().to_vec()
}

fn left(host: &mut Host, id: &str) -> u64 {
    let grants = listed(host);
    grants.iter().find(|grant| grant.text("id") == id).unwrap().number("tokens_left")
}

fn denial(answer: Result<Json, Error>) -> String {
    let error = answer.err().unwrap();
    assert_eq!(error.code, ErrorCode::Denied, "{error}");
    let message = error.message.clone();
    assert!(!message.contains('\n') && !message.ends_with('.'), "{message}");
    message
}

fn check(host: &mut Host) {
    for conversation in ["a", "b", "c"] {
        let args = format!(r#"{{"conversation":"{conversation}"}}"#);
        let report = host.told("admin.check", &args).unwrap();
        assert_eq!(report.field("ok"), Some(&Json::Bool(true)), "{report}");
    }
}

#[test]
fn a_grant_says_its_limits_and_equal_ones_have_different_ids() {
    let World { mut host, .. } = world();
    let first = grant(&mut host, "{}").unwrap();
    let second = grant(&mut host, "{}").unwrap();
    let id = first.text("id");
    assert!(id.len() == 22 && id.starts_with("grant_"), "{id}");
    assert!(id.chars().skip(6).all(|c| matches!(c, '0'..='9' | 'a'..='f')), "{id}");
    assert_ne!(id, second.text("id"));
    let said = format!(
        r#"{{"conversations":["a"],"depth_max":3,"expires_at":"2023-11-14T22:18:20.000Z",
            "id":"{id}","issued_at":"2023-11-14T22:13:20.000Z","parent":null,"revoked":false,
            "summary_ids":null,"tokens_left":4000,"tokens_max":4000}}"#
    );
    assert_eq!(first, Json::of(&said));
    assert_eq!(listed(&mut host), [first, second]);
    check(&mut host);
}

#[test]
fn limits_are_bounded() {
    let World { mut host, other, .. } = world();
    for limits in [
        r#"{"conversations":[]}"#,
        r#"{"summary_ids":[]}"#,
        r#"{"depth_max":0}"#,
        r#"{"depth_max":11}"#,
        r#"{"tokens_max":0}"#,
        r#"{"tokens_max":1000001}"#,
        r#"{"ttl_ms":0}"#,
        r#"{"ttl_ms":86400001}"#,
        r#"{"conversations":"a"}"#,
        r#"{"summary_ids":["sum_0000000000000000"]}"#,
        r#"{"tokens":1}"#,
        "[]",
    ] {
        let args = format!(r#"{{"conversation":"a","grant_json":{}}}"#, Json::from(limits));
        let error = host.told("recall.grant", &args).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput, "{limits}: {error}");
    }
    for limits in [
        r#"{"conversations":["a","nowhere"]}"#.to_owned(),
        format!(r#"{{"summary_ids":["{other}"]}}"#),
        r#"{"summary_ids":["sum_ffffffffffffffff"]}"#.to_owned(),
    ] {
        let error = grant(&mut host, &limits).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound, "{limits}: {error}");
    }
    let widest = r#"{"depth_max":10,"tokens_max":1000000,"ttl_ms":86400000}"#;
    assert_eq!(grant(&mut host, widest).unwrap().number("tokens_left"), 1_000_000);
    assert_eq!(listed(&mut host).len(), 1);
}

#[test]
fn tokens_are_clamped_to_what_is_left_and_then_refused() {
    let World { mut host, top, .. } = world();
    let id = made(&mut host, r#"{"tokens_max":1000}"#);
    // The result has three leaves of 300 tokens.
    let all = read(&mut host, "expand", &top, "{}", &id).unwrap();
    assert_eq!((all.number("tokens"), all.field("truncated")), (900, Some(&Json::Bool(false))));
    assert_eq!(left(&mut host, &id), 100);
    let none = read(&mut host, "expand", &top, r#"{"tokens_max":2000}"#, &id).unwrap();
    assert_eq!((none.number("tokens"), none.field("truncated")), (0, Some(&Json::Bool(true))));
    let cut = read(&mut host, "describe", &top, "{}", &id).unwrap();
    assert_eq!(
        cut.field("grant"),
        Some(&Json::of(r#"{"tokens":100,"tokens_left":0,"truncated":true}"#))
    );
    assert_eq!(lcm_text::base::tokens::estimate(&cut.text("text")), 100);
    for function in ["describe", "expand"] {
        assert!(denial(read(&mut host, function, &top, "{}", &id)).contains("no tokens left"));
    }
    assert!(denial(grep(&mut host, r#"{"pattern":"word"}"#, &id)).contains("no tokens left"));
    check(&mut host);
}

/// Goal: a refusal names the first wrong thing, in the order of the contract. Method: grants with
/// fewer and fewer wrong things.
#[test]
fn a_denial_names_the_first_that_is_wrong() {
    let World { mut host, top, leaves, .. } = world();
    let limits = format!(r#"{{"ttl_ms":1000,"tokens_max":1,"summary_ids":["{}"]}}"#, leaves[0]);
    let id = made(&mut host, &limits);
    let late = NOW + 1_000;
    let read = |host: &mut Host, now, conversation, of: &str, grant: &str| {
        denial(read_at(host, now, ("describe", conversation), of, "{}", grant))
    };
    // The leaf has 300 tokens and the grant has 1 left: the read takes it.
    let args = (NOW, "a", leaves[0].as_str());
    read_at(&mut host, args.0, ("describe", args.1), args.2, "{}", &id).unwrap();
    assert!(read(&mut host, NOW, "a", &leaves[0], &id).contains("no tokens left"));
    assert!(read(&mut host, NOW, "a", &top, &id).contains("does not cover that id"));
    assert!(read(&mut host, late, "a", &top, &id).contains("expired at"));
    let revoke = format!(r#"{{"conversation":"a","grant":"{id}"}}"#);
    host.told("recall.revoke", &revoke).unwrap();
    host.told("recall.revoke", &revoke).unwrap();
    assert!(read(&mut host, late, "a", &top, &id).contains("was revoked"));
    let unknown = read(&mut host, late, "a", &top, "grant_0123456789abcdef");
    assert!(unknown.contains("gives no right"), "{unknown}");
    // For other conversations the grant does not exist, and neither do the conversations.
    for conversation in ["b", "nowhere"] {
        assert_eq!(read(&mut host, NOW, conversation, &top, &id), unknown);
    }
    let other = host.told("recall.revoke", r#"{"conversation":"b","grant":"x"}"#);
    assert_eq!(other.unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn hostile_ids_are_unknown() {
    let World { mut host, top, .. } = world();
    made(&mut host, "{}");
    let known = denial(read(&mut host, "expand", &top, "{}", "grant_ffffffffffffffff"));
    let before = host.store.digest();
    for id in [
        "",
        "grant_",
        "grant_FFFFFFFFFFFFFFFF",
        "grant_fffffffffffffff",
        "grant_fffffffffffffffff",
        "a/g",
        "../../h",
        "grant_\\u0000fffffffffffffff",
        "grant_ffffffff\\nffffffff",
        "gr\\u00e4nt_ffffffffffffff",
    ] {
        assert_eq!(denial(read(&mut host, "expand", &top, "{}", id)), known, "{id}");
        let args = format!(r#"{{"conversation":"a","grant":"{id}"}}"#);
        let error = host.told("recall.revoke", &args).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound, "{id}");
        let (told, is_error) = tool(&mut host, "lcm_grep", r#"{"pattern":"x"}"#, id);
        assert!(is_error && told == format!("lcm_grep: {known}"), "{told}");
    }
    assert_eq!(host.store.digest(), before);
}

#[test]
fn a_grant_covers_its_conversations_and_no_other() {
    let World { mut host, top, other, .. } = world();
    let of_b = made(&mut host, r#"{"conversations":["b"]}"#);
    let of_both = made(&mut host, r#"{"conversations":["a","b"]}"#);
    let of_a = made(&mut host, "{}");
    // Reads from the conversation that the grant covers, and of one that it does not cover.
    read_at(&mut host, NOW, ("describe", "b"), &other, "{}", &of_b).unwrap();
    let denied = denial(read(&mut host, "describe", &other, "{}", &of_b));
    assert!(denied.contains("does not cover that conversation; it covers `b`"), "{denied}");
    // An id is found in each covered conversation; an id of another conversation is unknown.
    read(&mut host, "describe", &other, "{}", &of_both).unwrap();
    read_at(&mut host, NOW, ("expand", "b"), &top, "{}", &of_both).unwrap();
    for id in [other.as_str(), "sum_ffffffffffffffff"] {
        let error = read(&mut host, "describe", id, "{}", &of_a).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound, "{error}");
    }
    let count = |host: &mut Host, query: &str, grant: &str| {
        grep(host, query, grant).unwrap().number("total")
    };
    let all =
        r#"{"pattern":".","mode":"regex","scope":"messages","all_conversations":true,"limit":1}"#;
    assert_eq!(count(&mut host, all, &of_a), 17);
    assert_eq!(count(&mut host, all, &of_both), 29);
    let only = r#"{"pattern":".","mode":"regex","scope":"messages","only":true,"limit":1}"#;
    assert_eq!(count(&mut host, only, &of_both), 17);
    // A tool that may name conversations lists the covered ones; other tools have no such argument.
    let named = r#"{"pattern":"word","conversationId":"c"}"#;
    let (told, is_error) = tool_of_store(&mut host, "lcm_grep", named, &of_both);
    assert!(is_error && told.contains("covers `a`, `b`"), "{told}");
    let (told, is_error) = tool(&mut host, "lcm_grep", named, &of_both);
    assert!(is_error && told.contains("`conversationId` is not an argument"), "{told}");
    let all = r#"{"pattern":".","mode":"regex","scope":"messages"}"#;
    let (told, is_error) = tool(&mut host, "lcm_grep", all, &of_both);
    assert!(!is_error && told.contains("Matches: 29"), "{told}");
    // An agent that names no conversation reads the first covered conversation.
    let (told, is_error) =
        tool(&mut host, "lcm_describe", &format!(r#"{{"id":"{other}"}}"#), &of_b);
    assert!(!is_error && told.contains(&other), "{told}");
    check(&mut host);
}

#[test]
fn a_grant_for_summaries_covers_what_lies_below_them() {
    let World { mut host, top, leaves, .. } = world();
    let limits = format!(r#"{{"summary_ids":["{}"],"tokens_max":100000}}"#, leaves[1]);
    let id = made(&mut host, &limits);
    let leaf = read(&mut host, "describe", &leaves[1], "{}", &id).unwrap();
    assert_eq!(leaf.field("derived_ids"), Some(&Json::of("[]")));
    let (first, last) = (leaf.number("seq_first"), leaf.number("seq_last"));
    let below = read(&mut host, "expand", &leaves[1], r#"{"include_messages":true}"#, &id).unwrap();
    let messages = below.field("messages").unwrap().elements();
    assert_eq!(messages.len() as u64, last - first + 1);
    let message = messages.first().unwrap().text("id");
    read(&mut host, "describe", &message, "{}", &id).unwrap();
    // The next message, a summary above or beside, and unknown ids get equal answers.
    let digits = format!("{}{:010x}", &message[..10], last + 1);
    let outside =
        [digits.as_str(), &top, &leaves[0], "sum_ffffffffffffffff", "file_ffffffffffffffff"];
    let denials: Vec<String> =
        outside.iter().map(|one| denial(read(&mut host, "describe", one, "{}", &id))).collect();
    assert!(denials.iter().all(|message| *message == denials[0]), "{denials:?}");
    assert!(denials[0].contains(&leaves[1]), "{}", denials[0]);
    for (mode, pattern) in [("regex", "."), ("full-text", "word")] {
        let query = format!(r#"{{"pattern":"{pattern}","mode":"{mode}","limit":200}}"#);
        let found = grep(&mut host, &query, &id).unwrap();
        for hit in found.field("matches").unwrap().elements() {
            match hit.field("seq").and_then(Json::as_u64) {
                Some(seq) => assert!((first..=last).contains(&seq), "{hit}"),
                None => assert_eq!(hit.text("id"), leaves[1]),
            }
        }
        let shown = found.field("matches").unwrap().elements().len() as u64;
        assert_eq!(found.number("total"), shown, "{mode}: nothing else is counted");
        assert!(mode != "regex" || shown == last - first + 2, "{found}");
    }
    let (told, is_error) =
        tool(&mut host, "lcm_expand", &format!(r#"{{"summaryIds":["{top}"]}}"#), &id);
    assert!(is_error && told.contains("does not cover"), "{told}");
}

#[test]
fn depth_is_clamped() {
    let World { mut host, top, .. } = world();
    let id = made(&mut host, r#"{"depth_max":1,"tokens_max":100000}"#);
    let wanted = r#"{"include_messages":true,"depth_max":7}"#;
    let below = read(&mut host, "expand", &top, wanted, &id).unwrap();
    assert_eq!(below.field("summaries").unwrap().elements().len(), 3);
    assert_eq!(below.field("messages").unwrap().elements().len(), 0);
    let deep = made(&mut host, r#"{"depth_max":2,"tokens_max":100000}"#);
    let below = read(&mut host, "expand", &top, wanted, &deep).unwrap();
    assert_eq!(below.field("messages").unwrap().elements().len(), 15);
}

/// Goal: a read charges exactly the tokens that it returns. Method: each kind of read; the test
/// estimates the tokens of the returned texts.
#[test]
fn what_is_returned_is_charged() {
    let World { mut host, top, .. } = world();
    let mut total = 0;
    let id = made(&mut host, r#"{"tokens_max":100000}"#);
    let estimate = |text: &str| u64::from(lcm_text::base::tokens::estimate(text));
    let found = grep(&mut host, r#"{"pattern":"word"}"#, &id).unwrap();
    let matches = found.field("matches").unwrap().elements();
    total += matches.iter().map(|hit| estimate(&hit.text("snippet"))).sum::<u64>();
    let described = read(&mut host, "describe", &top, "{}", &id).unwrap();
    total += estimate(&described.text("text"));
    let below = read(&mut host, "expand", &top, r#"{"include_messages":true}"#, &id).unwrap();
    for (list, key) in [("summaries", "text"), ("messages", "raw")] {
        let rows = below.field(list).unwrap().elements();
        total += rows.iter().map(|row| estimate(&row.text(key))).sum::<u64>();
    }
    assert_eq!(left(&mut host, &id), 100_000 - total);
    assert_eq!(below.field("grant").unwrap().number("tokens_left"), 100_000 - total);
    let before = host.store.digest();
    let found = grep(&mut host, r#"{"pattern":"zzzzzz"}"#, &id).unwrap();
    assert_eq!(found.number("total"), 0);
    assert_eq!(host.store.digest(), before, "what returns no text writes nothing");
    check(&mut host);
}

/// Goal: two callers never spend the same tokens. Method: another instance makes a whole call
/// before every operation of this call; the call that loses writes nothing and returns no text.
#[test]
fn tokens_are_never_spent_twice() {
    for other in ["recall.describe", "recall.revoke", "ingest.append"] {
        let mut conflicts = 0;
        for at in 1.. {
            let World { mut host, top, leaves, .. } = world();
            let id = made(&mut host, r#"{"tokens_max":500}"#);
            let mine = format!(
                r#"{{"conversation":"a","id":"{top}","options_json":"{{}}","grant":"{id}"}}"#
            );
            let theirs = match other {
                "recall.describe" => mine.replace(&top, &leaves[0]),
                "recall.revoke" => format!(r#"{{"conversation":"a","grant":"{id}"}}"#),
                _ => r#"{"conversation":"a","messages":[{"role":"user","content":"more"}]}"#.into(),
            };
            let (answer, interleaved) = host.ask_interleaved(
                "recall.describe",
                &Json::of(&mine),
                at,
                (other, &Json::of(&theirs)),
            );
            if !interleaved {
                assert!(at > 2, "{other}");
                break;
            }
            let spent = 500 - left(&mut host, &id);
            let theirs = if other == "recall.describe" { 300 } else { 0 };
            match answer {
                Ok(_) => assert_eq!(spent, 200 + theirs, "{other} at {at}"),
                Err(error) if error.code == ErrorCode::Conflict => {
                    conflicts += 1;
                    assert_eq!(spent, theirs, "{other} at {at}");
                    let again = host.told("recall.describe", &mine);
                    assert_eq!(again.is_ok(), other != "recall.revoke", "{other} at {at}");
                }
                Err(error) => {
                    assert_eq!((other, error.code), ("recall.revoke", ErrorCode::Denied));
                    assert_eq!(spent, 0);
                }
            }
            check(&mut host);
        }
        assert_eq!(conflicts > 0, other != "ingest.append", "{other}: {conflicts} conflicts");
    }
}

#[test]
fn asynchronous_stores_spend_as_much() {
    let spent = |mode| {
        let World { mut host, top, leaves, .. } = world_of(mode);
        let id = made(&mut host, r#"{"conversations":["b","a"],"tokens_max":3000}"#);
        read_at(&mut host, NOW, ("expand", "b"), &top, r#"{"include_messages":true}"#, &id)
            .unwrap();
        let arguments = format!(r#"{{"summaryIds":["{}"]}}"#, leaves[0]);
        let (_, is_error) = tool(&mut host, "lcm_expand", &arguments, &id);
        assert!(!is_error);
        (left(&mut host, &id), host.store.digest())
    };
    assert_eq!(spent(StoreMode::Plain), spent(StoreMode::WouldBlock));
}

#[test]
fn a_failed_commit_gives_no_text() {
    let World { mut host, top, .. } = world();
    let id = made(&mut host, "{}");
    for at in 1.. {
        let before = left(&mut host, &id);
        host.plan_fault(at, lcm_testing::Fault::Before);
        let answer = read(&mut host, "describe", &top, "{}", &id);
        if !host.fault_fired() {
            assert!(at > 3);
            break;
        }
        host.clear_fault();
        assert_eq!(answer.unwrap_err().code, ErrorCode::StoreUnavailable);
        assert_eq!(left(&mut host, &id), before);
    }
}

#[test]
fn a_grant_inherits_less_and_ends_with_the_other() {
    let World { mut host, top, leaves, .. } = world();
    let limits = format!(
        r#"{{"conversations":["a","b"],"summary_ids":["{}","{}"],"tokens_max":1000,"ttl_ms":9000}}"#,
        leaves[0], leaves[1]
    );
    let above = made(&mut host, &limits);
    let from = |more: &str| format!(r#"{{"parent":"{above}"{more}}}"#);
    let child = grant(&mut host, &from(r#","tokens_max":5000,"depth_max":9,"ttl_ms":86400000"#));
    let child = child.unwrap();
    assert_eq!((child.number("tokens_max"), child.number("depth_max")), (1000, 2));
    assert_eq!(child.text("expires_at"), "2023-11-14T22:13:29.000Z");
    assert_eq!(child.text("parent"), above);
    assert_eq!(child.field("conversations"), Some(&Json::of(r#"["a","b"]"#)));
    let both = format!(r#"["{}","{}"]"#, leaves[0], leaves[1]);
    assert_eq!(child.field("summary_ids"), Some(&Json::of(&both)));
    for wrong in [
        r#","conversations":["c"]"#.to_owned(),
        r#","conversations":["nowhere"]"#.to_owned(),
        r#","conversations":["b"]"#.to_owned(),
        format!(r#","summary_ids":["{top}"]"#),
        format!(r#","summary_ids":["{}"]"#, leaves[2]),
        r#","summary_ids":["sum_ffffffffffffffff"]"#.to_owned(),
    ] {
        denial(grant(&mut host, &from(&wrong)));
    }
    let child = child.text("id");
    let narrow = format!(r#"{{"parent":"{child}","summary_ids":["{}"]}}"#, leaves[1]);
    let grandchild = grant(&mut host, &narrow).unwrap();
    assert_eq!(grandchild.number("depth_max"), 1);
    let grandchild = grandchild.text("id");
    let last = denial(grant(&mut host, &format!(r#"{{"parent":"{grandchild}"}}"#)));
    assert!(last.contains("depth of 1"), "{last}");
    // A read with one grant also charges the grants from which it is derived.
    read(&mut host, "describe", &leaves[1], "{}", &grandchild).unwrap();
    for id in [&above, &child, &grandchild] {
        assert_eq!(left(&mut host, id), 700, "{id}");
    }
    read(&mut host, "describe", &leaves[0], "{}", &above).unwrap();
    assert_eq!(left(&mut host, &grandchild), 400);
    check(&mut host);
    let revoke = format!(r#"{{"conversation":"b","grant":"{above}"}}"#);
    host.told("recall.revoke", &revoke).unwrap();
    for id in [&above, &child, &grandchild] {
        let denied = denial(read(&mut host, "describe", &leaves[1], "{}", id));
        assert!(denied.contains("revoked"), "{denied}");
    }
    assert!(denial(grant(&mut host, &from(""))).contains("revoked"));
}

#[test]
fn a_slow_clock_revives_no_grant() {
    let World { mut host, top, .. } = world();
    let id = made(&mut host, r#"{"ttl_ms":1000}"#);
    let args = format!(
        r#"{{"conversation":"a","messages":[{{"role":"user","content":"late"}}],"now":{}}}"#,
        NOW + 1_000
    );
    host.told("ingest.append", &args).unwrap();
    assert!(denial(read(&mut host, "describe", &top, "{}", &id)).contains("expired"));
}

#[test]
fn expired_grants_are_swept_and_those_that_stand_are_bounded() {
    let World { mut host, .. } = world();
    let first = made(&mut host, r#"{"ttl_ms":1000,"conversations":["b"]}"#);
    for _ in 1..64 {
        made(&mut host, r#"{"ttl_ms":60000}"#);
    }
    let error = grant(&mut host, "{}").unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitExceeded, "{error}");
    assert!(error.message.contains("64 grants"), "{error}");
    // A revoked grant is removed only when its place is needed.
    let second = listed(&mut host)[1].text("id");
    let revoke = |id: &str| format!(r#"{{"conversation":"a","grant":"{id}"}}"#);
    host.told("recall.revoke", &revoke(&second)).unwrap();
    assert_eq!(listed(&mut host)[1].field("revoked"), Some(&Json::Bool(true)));
    made(&mut host, r#"{"ttl_ms":60000}"#);
    assert_eq!(host.told("recall.revoke", &revoke(&second)).unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(listed(&mut host).len(), 64);
    check(&mut host);
    // Making a grant removes expired grants, and so does `maintain`.
    let args = format!(r#"{{"conversation":"a","grant_json":{{}},"now":{}}}"#, NOW + 1_000);
    let newest = host.told("recall.grant", &args).unwrap().text("id");
    assert!(listed(&mut host).iter().all(|grant| grant.text("id") != first));
    let maintain = |host: &mut Host, now: u64| {
        let args = format!(
            r#"{{"conversation":"a","verb":"maintain","arguments_json":{{"budget":100000}},
                "now":{now}}}"#
        );
        let answer = host.told("admin.call", &args).unwrap();
        answer.field("changed") == Some(&Json::Bool(true))
    };
    assert!(maintain(&mut host, NOW + 60_000));
    assert!(!maintain(&mut host, NOW + 60_000));
    let grants = listed(&mut host);
    assert_eq!(grants.len(), 1);
    assert_eq!(grants[0].text("id"), newest);
    check(&mut host);
}

/// Goal: a store without grants makes no read for them. Method: its store calls are compared with
/// those of a store with grants.
#[test]
fn a_store_without_grants_pays_no_read() {
    let World { mut host, top, .. } = world();
    assert!(!host.store.entries().keys().any(|key| key.ends_with("/g")));
    let counts = |host: &mut Host, name: &str, args: &str| {
        host.restart().unwrap();
        host.told(name, args).unwrap();
        let counts = host.store.counts();
        (counts.get_many, counts.scan, counts.commit)
    };
    let calls = [
        (
            "recall.describe",
            format!(r#"{{"conversation":"a","id":"{top}","options_json":"{{}}"}}"#),
        ),
        (
            "admin.call",
            r#"{"conversation":"a","verb":"maintain","arguments_json":{"budget":100000}}"#.into(),
        ),
    ];
    let without: Vec<_> = calls.iter().map(|(name, args)| counts(&mut host, name, args)).collect();
    let id = made(&mut host, "{}");
    let with: Vec<_> = calls.iter().map(|(name, args)| counts(&mut host, name, args)).collect();
    assert_eq!(without, with);
    let granted = calls[0].1.replace("\"id\"", &format!("\"grant\":\"{id}\",\"id\""));
    let (get_many, scan, commit) = counts(&mut host, "recall.describe", &granted);
    assert_eq!((get_many, scan, commit), (without[0].0 + 1, 0, 1));
}

#[test]
fn grants_are_no_part_of_an_export_nor_of_the_logical_digest() {
    let World { mut host, .. } = world();
    let look = |host: &mut Host| {
        (
            host.told("admin.export_page", r#"{"conversation":"a"}"#).unwrap(),
            host.told("admin.digest", r#"{"logical":true}"#).unwrap(),
            host.told("admin.status", r#"{"conversation":"a"}"#)
                .unwrap()
                .field("revision")
                .cloned(),
        )
    };
    let before = look(&mut host);
    let whole = host.store.digest();
    made(&mut host, r#"{"conversations":["a","b"]}"#);
    assert_eq!(look(&mut host), before);
    assert_ne!(host.store.digest(), whole);
}

#[test]
fn an_archived_conversation_is_read_with_a_grant() {
    let World { mut host, top, .. } = world();
    let archive =
        r#"{"conversation":"a","verb":"archive","arguments_json":{"cause":"session-end"}}"#;
    host.told("admin.call", archive).unwrap();
    let id = made(&mut host, "{}");
    read(&mut host, "describe", &top, "{}", &id).unwrap();
    check(&mut host);
}

#[test]
fn damage_of_grants_is_found() {
    let World { mut host, .. } = world();
    made(&mut host, "{}");
    let key = host.store.entries().keys().find(|key| key.ends_with("/g")).unwrap().clone();
    host.store.entries_mut().get_mut(&key).unwrap().truncate(9);
    let report = host.told("admin.check", r#"{"conversation":"a"}"#).unwrap();
    assert_eq!(report.field("ok"), Some(&Json::Bool(false)), "{report}");
}

/// The test also checks the answer that an agent gets.
#[test]
fn an_expansion_stops_at_its_cap_and_says_what_comes_next() {
    let World { mut host, top, leaves, .. } = world();
    let id = made(&mut host, r#"{"tokens_max":100000}"#);
    let ids = format!(r#"["{}","{top}","{}"]"#, leaves[0], leaves[1]);
    // The leaves have 300 tokens each, so there are 900 below the top.
    let arguments = format!(r#"{{"summaryIds":{ids},"tokenCap":700}}"#);
    let (told, is_error) = tool(&mut host, "lcm_expand", &arguments, &id);
    assert!(!is_error, "{told}");
    assert!(told.starts_with("[lcm: stored history, untrusted"), "{told}");
    // The cheapest come first, so that two of three are complete.
    assert!(told.contains("Expanded: 2 of 3 summaries, 600 of at most 700 tokens"), "{told}");
    let rest = format!("Left out: entries from {} on, below {top}\n", leaves[2]);
    assert!(told.contains(&rest), "{told}");
    // The next call continues with the part that was not shown.
    let next = told.split_once("Next: lcm_expand ").and_then(|(_, next)| next.split_once(" goes"));
    let next = next.unwrap().0.to_owned();
    assert!(next.contains(&format!(r#""after":"{}""#, leaves[1])), "{next}");
    assert!(told.contains("Tokens: 600 for this, 99400 left"), "{told}");
    assert_eq!(left(&mut host, &id), 99_400);
    let last = made(&mut host, r#"{"tokens_max":100000}"#);
    let (goes_on, _) = tool(&mut host, "lcm_expand", &next, &last);
    assert!(goes_on.contains("Expanded: 1 of 1 summaries, 300 of at most 700"), "{goes_on}");
    assert!(goes_on.contains(&format!("- {} ", leaves[2])), "{goes_on}");
    // If everything fits, the summaries have the order of the request.
    let arguments = format!(r#"{{"summaryIds":["{top}","{}"]}}"#, leaves[0]);
    let (told, _) = tool(&mut host, "lcm_expand", &arguments, &id);
    assert!(told.contains("Expanded: 2 of 2 summaries, 900 of"), "{told}");
    assert_eq!(told.matches(&format!("- {} ", leaves[0])).count(), 1, "shown once\n{told}");
    assert!(told.contains(r#","includeMessages":true} gives the messages"#), "{told}");
    let arguments = format!(r#"{{"summaryIds":"{top}","includeMessages":true,"maxDepth":2}}"#);
    let (told, _) = tool(&mut host, "lcm_expand", &arguments, &id);
    assert!(told.contains("- msg_") && told.contains("Left out: entries from msg_"), "{told}");
    // The first summary takes all tokens, so the second is not begun.
    let arguments = format!(r#"{{"summaryIds":["{top}","{}"],"tokenCap":900}}"#, leaves[0]);
    let small = made(&mut host, r#"{"tokens_max":300}"#);
    let (told, _) = tool(&mut host, "lcm_expand", &arguments, &small);
    assert!(told.contains("Expanded: 1 of 2 summaries, 300 of at most 300"), "{told}");
    assert!(told.contains("Nothing is left to read with"), "{told}");
    let (told, is_error) = tool(&mut host, "lcm_expand", &arguments, &small);
    assert!(is_error && told.contains("no tokens left"), "{told}");
}

#[test]
fn a_query_finds_what_is_expanded() {
    let World { mut host, .. } = world();
    let id = made(&mut host, r#"{"tokens_max":100000}"#);
    let arguments = r#"{"query":"summary","summaryIds":["sum_ffffffffffffffff"]}"#;
    let (told, is_error) = tool(&mut host, "lcm_expand", arguments, &id);
    assert!(!is_error && told.contains("Expanded: 4 of 4 summaries"), "{told}");
    let (told, is_error) = tool(&mut host, "lcm_expand", r#"{"query":"zzzzzz"}"#, &id);
    assert!(!is_error && told.contains("Next: lcm_grep"), "{told}");
    for (arguments, why) in [
        ("{}", "`summaryIds` or `query` must be given"),
        (r#"{"summaryIds":[]}"#, "`summaryIds` or `query` must be given"),
        (r#"{"summaryIds":[1]}"#, "`summaryIds` must be a list"),
        (r#"{"query":"x","maxDepth":11}"#, "`maxDepth` must be"),
        (r#"{"summaryIds":["sum_0000000000000000"]}"#, "placeholder"),
    ] {
        let (told, is_error) = tool(&mut host, "lcm_expand", arguments, &id);
        assert!(is_error && told.contains(why), "{arguments}: {told}");
    }
}
