//! A deletion runs between the reads and the commit of every call that could store something of
//! the deleted conversation again.

use lcm_core::{Engine, ErrorCode};
use lcm_testing::{
    Host, Json, ModelStore,
    facade::{self, Instance},
    host::StoreMode,
    interleave::InterleavingStore,
    scripted_model::ScriptedModel,
};

use crate::{
    delete, delete_all,
    traces::Traces,
    world::{DELETED, SECRET, World},
};

/// The part of a deletion that happens between two store operations of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Meanwhile {
    /// The first piece of the deletion.
    Begins,
    /// The whole deletion.
    Ends,
    /// The whole deletion; then another conversation begins under the id.
    BeginsAnew,
}

const NOW: u64 = 1_700_000_900_000;

/// A call that reads the deleted conversation, or would store its name in a record.
struct Caller {
    conversation: &'static str,
    name: &'static str,
    args: String,
}

fn caller(conversation: &'static str, name: &'static str, args: impl Into<String>) -> Caller {
    Caller { conversation, name, args: args.into() }
}

fn callers(world: &mut World) -> Vec<Caller> {
    let question = r#"{"question_json":{"question":"who has the parcel in the hall?",
        "all_conversations":true}}"#;
    let continuation = world.call("b", "recall.ask_plan", question).unwrap().text("continuation");
    let answer = format!(
        r#"{{"continuation":"{continuation}","answers":[{{"done":{{"text":"The {SECRET}."}}}}]}}"#
    );
    let plan =
        world.call(DELETED, "compaction.plan", r#"{"budget":100000,"options":{"force":true}}"#);
    let request = plan.unwrap().list("requests").first().unwrap().text("id");
    let apply =
        format!(r#"{{"request_id":"{request}","answer":{{"done":{{"text":"A {SECRET}."}}}}}}"#);
    let page = world.call(DELETED, "admin.listing", r#"{"kind":"messages"}"#).unwrap();
    let id = page.list("items").first().unwrap().text("id");
    let vectors =
        format!(r#"{{"vectors_json":{{"vectors":[{{"id":"{id}","vector":[1,0,0,0,0,0,0,1]}}]}}}}"#);
    let upload = lcm_testing::digest::text_sha256(SECRET);
    let command = |verb: &str, arguments: &str| {
        format!(r#"{{"verb":"{verb}","arguments_json":{arguments}}}"#)
    };
    let covered = format!(r#"{{"grant_json":{{"conversations":["a","{DELETED}"]}}}}"#);
    let append = format!(r#"{{"messages":[{{"role":"user","content":"{SECRET} once more"}}]}}"#);
    vec![
        caller(DELETED, "ingest.append", append),
        caller(
            DELETED,
            "ingest.stage",
            format!(r#"{{"upload":"{upload}","offset":0,"text":"{SECRET}"}}"#),
        ),
        caller(
            DELETED,
            "compaction.plan",
            r#"{"budget":100000,"options":{"force":true,"lease_ms":1000}}"#,
        ),
        caller(DELETED, "compaction.apply", apply),
        caller(DELETED, "recall.embed", vectors),
        caller(DELETED, "recall.grant", covered.clone()),
        caller("a", "recall.grant", covered),
        caller(DELETED, "recall.ask_plan", question),
        caller("a", "recall.ask_plan", question),
        caller("a", "recall.ask_run", question),
        caller("b", "recall.ask_apply", answer),
        caller("a", "admin.call", command("reset", &format!(r#"{{"successor":"{DELETED}"}}"#))),
        caller(DELETED, "admin.call", command("reset", "{}")),
        caller(DELETED, "admin.call", command("family", r#"{"family":"all"}"#)),
        caller(DELETED, "admin.call", command("usage", r#"{"purpose":"turn","input_tokens":5}"#)),
        caller(DELETED, "admin.call", command("focus", &format!(r#"{{"text":"{SECRET}"}}"#))),
        caller(DELETED, "admin.call", command("maintain", r#"{"budget":10}"#)),
    ]
}

/// Makes the call; the deletion happens before its store operation `at`. `None`: the call has
/// fewer operations.
fn meet(
    world: &mut World,
    caller: &Caller,
    at: u64,
    meanwhile: Meanwhile,
) -> Option<facade::Answer> {
    let other = |store: &mut ModelStore| {
        let mut host = Host::new(None, StoreMode::Plain).unwrap();
        host.store = std::mem::take(store);
        match meanwhile {
            Meanwhile::Begins => {
                delete(&mut host, false, NOW).unwrap();
            }
            Meanwhile::Ends => {
                delete_all(&mut host, NOW);
            }
            Meanwhile::BeginsAnew => {
                delete_all(&mut host, NOW);
                let append = format!(
                    r#"{{"conversation":"{DELETED}","now":{NOW},
                        "messages":[{{"role":"user","content":"a new beginning"}}]}}"#
                );
                host.told("ingest.append", &append).unwrap();
            }
        }
        *store = host.store;
    };
    let mut model = ScriptedModel::new(&[Json::of(r#"{"text":"The parcel.","times":9}"#)]).unwrap();
    let Json::Object(mut args) = Json::of(&caller.args) else { panic!("an object") };
    args.push(("conversation".to_owned(), caller.conversation.into()));
    if caller.name != "recall.embed" {
        args.push(("now".to_owned(), (NOW + 1).into()));
    }
    let mut store = InterleavingStore::new(&mut world.host.store, at, other);
    let instance =
        &mut Instance { engine: &mut Engine::new(), store: &mut store, model: &mut model };
    let answer = facade::call(instance, caller.name, &Json::Object(args));
    let answer = answer.unwrap_or_else(|misuse| panic!("{}: {misuse}", caller.name));
    store.interleaved().then_some(answer)
}

fn prepare() -> World {
    let mut world = World::new(1);
    for conversation in ["a", "b"] {
        let family = r#"{"verb":"family","arguments_json":{"family":"all"}}"#;
        world.call(conversation, "admin.call", family).unwrap();
    }
    world
}

/// Checks a call with a deletion in it; returns whether the call was refused. `None`: the call has
/// fewer operations than `at`.
fn check_meeting(number: usize, at: u64, meanwhile: Meanwhile) -> Option<bool> {
    let mut world = prepare();
    let caller = callers(&mut world).swap_remove(number);
    let traces = Traces::of(&world.host.store);
    let Caller { conversation, name, .. } = caller;
    let place = format!("{name} of {conversation}, {meanwhile:?} before operation {at}");
    let answer = meet(&mut world, &caller, at, meanwhile)?;
    let codes = [ErrorCode::Conflict, ErrorCode::Denied, ErrorCode::NotFound, ErrorCode::Exists];
    if let Err(error) = &answer {
        assert!(codes.contains(&error.code), "{place}: {error}");
    }
    let is_own = conversation == DELETED;
    if meanwhile == Meanwhile::Begins && is_own {
        // A call that began before the deletion may have read everything; it makes no commit.
        assert!(at > 1 || answer.is_err(), "{place}: the call passed");
        let append = r#"{"messages":[{"role":"user","content":"hello"}]}"#;
        let error = world.call(DELETED, "ingest.append", append).unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied, "{place}: {error}");
    }
    if meanwhile == Meanwhile::BeginsAnew {
        for (key, value) in world.host.store.entries() {
            let text = String::from_utf8_lossy(value);
            assert!(!text.contains(SECRET), "{place}: `{key}` quotes the earlier conversation");
        }
        for conversation in [DELETED, "a", "b"] {
            let report = world.call(conversation, "admin.check", "{}").unwrap();
            assert_eq!(report.field("ok"), Some(&Json::Bool(true)), "{place}: {report}");
        }
        return Some(answer.is_err());
    }
    if let Ok(status) = world.call(DELETED, "admin.status", "{}") {
        // The call made its commit after the deletion, which began a new conversation.
        assert_eq!(meanwhile, Meanwhile::Ends, "{place}");
        assert_eq!(status.number("revision"), 1, "{place}: {status}");
        assert!(status.number("messages") <= 1, "{place}: {status}");
        assert!(answer.is_ok(), "{place}");
    } else {
        if world.host.store.entries().keys().any(|key| key.starts_with("x/")) {
            delete_all(&mut world.host, NOW + 2);
        }
        assert_eq!(traces.find(&world.host.store), Vec::<String>::new(), "{place}");
    }
    Some(answer.is_err())
}

#[test]
fn no_call_brings_a_deleted_conversation_back_wherever_they_meet() {
    let count = callers(&mut prepare()).len();
    let mut refused = 0;
    for number in 0..count {
        let mut met = 0;
        for meanwhile in [Meanwhile::Begins, Meanwhile::Ends, Meanwhile::BeginsAnew] {
            // A call of the new conversation is not part of this test.
            let first = if meanwhile == Meanwhile::BeginsAnew { 2 } else { 1 };
            for at in first.. {
                let Some(is_refused) = check_meeting(number, at, meanwhile) else { break };
                met += 1;
                refused += u32::from(is_refused);
            }
        }
        assert!(met >= 2, "caller {number} met the deletion {met} times");
    }
    println!("{count} calls, {refused} refused");
    assert!(refused > 60, "only {refused} calls met a conflict");
}
