#![expect(clippy::unwrap_used, reason = "a panic in a test is its failure")]
//! Behaviour over several calls of a session: copies, failures, many sessions.

use lcm_core::{Error, ErrorCode};
use lcm_testing::{
    Fault, Host, Json,
    host::StoreMode,
    scripted_model::ScriptedModel,
    vector_runner::{Answers, drive},
};

const CONFIG: &str = r#"{"fresh_tail_messages_max":2,"leaf_chunk_tokens_max":1000,
    "leaf_tokens_target":600,"condensed_tokens_target":512,"summary_prefix_tokens_target":5000}"#;

fn host() -> Host {
    let mut host = Host::new(Some(Json::of(CONFIG)), StoreMode::Plain).unwrap();
    let script = Json::of(
        r#"[{"tokens":300,"purpose":"leaf","times":0},{"tokens":150,"purpose":"condensed","times":0}]"#,
    );
    host.model = ScriptedModel::new(script.elements()).unwrap();
    host
}

fn append(host: &mut Host, first: u64, count: u64) {
    let args = format!(
        r#"{{"messages":[{{"$generate":{{"count":{count},"tokens":200,
            "roles":["user","assistant"],"first":{first}}}}}],"options":{{"append_mode":"new"}}}}"#
    );
    host.told("ingest.append", &args).unwrap();
}

fn compact(host: &mut Host, target: u64) {
    let args = format!(r#"{{"budget":4000,"options":{{"mode":"sweep","target":{target}}}}}"#);
    drive(host, &Json::of(&args), Answers::Scripted).unwrap().unwrap();
}

fn verb(host: &mut Host, verb: &str, arguments: &str) -> Result<Json, Error> {
    host.told("admin.call", &format!(r#"{{"verb":"{verb}","arguments_json":{arguments}}}"#))
}

fn items(host: &mut Host) -> Vec<(String, u64, u64)> {
    let args = r#"{"budget":1000000,"options":{"explain":true}}"#;
    let assembled = host.told("context.assemble", args).unwrap();
    let item = |item: &Json| {
        let number = |key: &str| item.field(key).unwrap().as_u64().unwrap();
        let kind = item.field("kind").unwrap().as_str().unwrap().to_owned();
        (kind, number("seq_first"), number("seq_last"))
    };
    assembled.field("items").unwrap().elements().iter().map(item).collect()
}

fn check(host: &mut Host) {
    let report = host.told("admin.check", "{}").unwrap();
    assert_eq!(report.field("ok"), Some(&Json::Bool(true)), "{report}");
}

fn logical(host: &mut Host) -> Json {
    host.told("admin.digest", r#"{"logical":true}"#).unwrap()
}

fn export(host: &mut Host) -> Json {
    let page = host.told("admin.export_page", r#"{"conversation":""}"#).unwrap();
    assert_eq!(page.field("cursor"), Some(&Json::Null), "one page");
    page.field("lines").unwrap().clone()
}

/// Imports a whole export, with as many lines in each call as the engine accepts.
fn import(host: &mut Host, lines: &Json) {
    let mut at = 0;
    let mut cursor = Json::Null;
    for _ in 0..1_000 {
        let rest: Vec<Json> = lines.elements().iter().skip(at).cloned().collect();
        let args = Json::object([("lines", Json::Array(rest)), ("cursor", cursor)]);
        let answer = Json::of(host.ask("admin.import_page", &args).unwrap().as_str().unwrap());
        let consumed = answer.field("consumed").unwrap().as_u64().unwrap();
        at += usize::try_from(consumed).unwrap();
        if answer.field("rewind") == Some(&Json::Bool(true)) {
            at = 0;
        }
        cursor = answer.field("cursor").unwrap().clone();
        if cursor == Json::Null {
            return;
        }
    }
    panic!("an import without end");
}

fn summarised() -> Host {
    let mut host = host();
    append(&mut host, 1, 12);
    compact(&mut host, 900);
    host
}

#[test]
fn what_was_withdrawn_archived_and_joined_goes_along_with_a_copy() {
    let mut original = summarised();
    let before = export(&mut original);
    assert_eq!(
        verb(&mut original, "new", r#"{"retain_depth":1}"#).unwrap().field("messages"),
        Some(&Json::Number(2))
    );
    append(&mut original, 13, 3);
    verb(&mut original, "family", r#"{"family":"agent:main"}"#).unwrap();
    verb(&mut original, "reset", "{}").unwrap();
    let lines = export(&mut original);
    let mut copy = host();
    import(&mut copy, &lines);
    assert_eq!(logical(&mut copy), logical(&mut original));
    assert_eq!(items(&mut copy), items(&mut original));
    check(&mut copy);
    let status = copy.told("admin.status", r#"{"conversation":"c"}"#).unwrap();
    assert_eq!(status.field("family").unwrap().as_str(), Some("agent:main"));
    let archived = status.field("archived").unwrap();
    assert_eq!(archived.field("successor").unwrap().as_str(), Some("c#2"));
    let bytes = copy.store.digest();
    import(&mut copy, &lines);
    assert_eq!(copy.store.digest(), bytes, "an import over itself changes nothing");
    // An import of the earlier export does not restore anything.
    import(&mut original, &before);
    assert_eq!(logical(&mut copy), logical(&mut original));
}

#[test]
fn an_older_copy_comes_to_what_was_withdrawn_and_never_back() {
    let mut original = summarised();
    let before = export(&mut original);
    verb(&mut original, "new", r#"{"retain_depth":1}"#).unwrap();
    let after = export(&mut original);
    let mut copy = host();
    import(&mut copy, &before);
    import(&mut copy, &after);
    assert_eq!(items(&mut copy), items(&mut original));
    import(&mut copy, &before);
    assert_eq!(items(&mut copy), items(&mut original));
    verb(&mut original, "new", r#"{"retain_depth":9}"#).unwrap();
    assert_eq!(items(&mut original), [("withdrawn".to_owned(), 1, 12)]);
    import(&mut original, &after);
    assert_eq!(items(&mut original), [("withdrawn".to_owned(), 1, 12)]);
    check(&mut original);
}

#[test]
fn after_any_failure_a_reset_was_made_as_a_whole_or_not_at_all() {
    for fault in [Fault::Before, Fault::ReplyLost] {
        for at in 1.. {
            let mut host = host();
            append(&mut host, 1, 2);
            let before = host.store.digest();
            host.plan_fault(at, fault);
            let result = verb(&mut host, "reset", "{}");
            let fired = host.fault_fired();
            host.clear_fault();
            if !fired {
                result.unwrap();
                assert!(at > 3, "too few operations");
                break;
            }
            assert_eq!(result.unwrap_err().code, ErrorCode::StoreUnavailable);
            let list = r#"{"kind":"conversations"}"#;
            let count = host.told("admin.listing", list).unwrap();
            let count = count.field("items").unwrap().elements().len();
            assert_eq!(count == 1, host.store.digest() == before, "{fault:?} at {at}");
            host.restart().unwrap();
            let again = verb(&mut host, "reset", "{}").unwrap();
            assert_eq!(again.field("conversation").unwrap().as_str(), Some("c#2"));
            check(&mut host);
        }
    }
}

/// Goal: the context of a conversation of many sessions stays small. Method: each session leaves a
/// deep summary; the items between these summaries must not prevent their condensation.
#[test]
fn a_conversation_of_many_sessions_fits_its_budget() {
    let mut host = host();
    for session in 0..30 {
        append(&mut host, session * 12 + 1, 12);
        compact(&mut host, 900);
        verb(&mut host, "new", r#"{"retain_depth":1}"#).unwrap();
        compact(&mut host, 900);
    }
    check(&mut host);
    let stored = host.told("admin.status", r#"{"conversation":"c"}"#).unwrap();
    let tokens = stored.field("context").unwrap().field("tokens").unwrap().as_u64().unwrap();
    assert!((1..=900).contains(&tokens), "{stored}");
    let items = items(&mut host);
    assert_eq!((items.first().unwrap().1, items.last().unwrap().2), (1, 360));
    let follow = items.iter().zip(items.iter().skip(1)).all(|(one, next)| one.2 + 1 == next.1);
    assert!(follow, "{items:?}");
}

/// Goal: with patterns of sessions that are not stored, other conversations need no more reads.
#[test]
fn patterns_cost_a_warm_instance_no_read() {
    let config = r#"{"ignore_session_patterns":["agent:*:cron:**"]}"#;
    let mut host = Host::new(Some(Json::of(config)), StoreMode::Plain).unwrap();
    append(&mut host, 1, 3);
    verb(&mut host, "family", r#"{"family":"agent:main:chat"}"#).unwrap();
    for first in [4, 5] {
        append(&mut host, first, 1);
        let counts = host.store.counts();
        let family = u32::from(first == 4);
        assert!(counts.get_many <= 2 + family, "{first}: {counts:?}");
        assert_eq!((counts.scan, counts.commit), (0, 1), "{counts:?}");
    }
}

/// Goal: in a family of more than 33 conversations only the newest are searched, and the answer
/// says that the family has more. Method: families above and below the bound, and the whole store.
#[test]
fn a_family_that_is_too_large_is_searched_in_part() {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    for number in 1..=34 {
        let name = format!("c{number}");
        let said = format!(
            r#"{{"conversation":"{name}","messages":["{{\"role\":\"user\",\"content\":\"a needle\"}}"]}}"#
        );
        host.ask("ingest.append", &Json::of(&said)).unwrap();
        let joined = format!(
            r#"{{"conversation":"{name}","verb":"family","arguments_json":{{"family":"agent:main"}}}}"#
        );
        host.ask("admin.call", &Json::of(&joined)).unwrap();
        if number < 33 {
            continue;
        }
        let mut found = |more: &str| {
            let args = format!(
                r#"{{"conversation":"c1","query_json":{{"pattern":"needle","mode":"full-text"{more}}}}}"#
            );
            let answer = host.ask("recall.grep", &Json::of(&args)).unwrap();
            let answer = Json::of(answer.as_str().unwrap());
            (answer.number("total"), answer.list("notes").to_vec())
        };
        let noted = if number > 33 { vec![Json::from("family-limited")] } else { Vec::new() };
        assert_eq!(found(""), (33, noted));
        assert_eq!(found(r#","all_conversations":true"#), (number, Vec::new()));
        assert_eq!(found(r#","only":true"#), (1, Vec::new()));
    }
}

/// Returns the prompt for the first leaf; with `withdraw`, a new session begins after message 6.
fn prompt_of_first_leaf(withdraw: bool) -> String {
    let mut host = host();
    append(&mut host, 1, 6);
    if withdraw {
        verb(&mut host, "new", "{}").unwrap();
    }
    append(&mut host, 7, 8);
    let plan = host.told("compaction.plan", r#"{"budget":4000,"options":{"force":true}}"#).unwrap();
    let requests = plan.field("requests").unwrap().elements();
    requests.first().unwrap().field("prompt").unwrap().as_str().unwrap().to_owned()
}

#[test]
fn no_prompt_shows_what_was_withdrawn() {
    let prompt = prompt_of_first_leaf(true);
    assert!(prompt.contains("message 7 ") && !prompt.contains("message 6 "), "{prompt}");
    assert!(prompt_of_first_leaf(false).contains("message 1 "), "a leaf begins with the oldest");
}
