#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! The store fails at operation N, for every N of every script. Afterwards the store has the state
//! before or after the call, `check` finds nothing, the call can be repeated, and in the end
//! no message is lost or stored twice.
//!
//! The same is tested with a commit that succeeds while its reply is lost, and with another
//! instance that writes before operation N.

use lcm_core::ErrorCode;
use lcm_testing::{
    Fault, Host, Json,
    facade::messages::{message_texts, padded},
    host::StoreMode,
    vector_runner::replace_references,
};

/// A call, and the arguments with which a host repeats it after an unknown outcome.
struct Step {
    name: &'static str,
    args: Json,
    repeated: Json,
}

struct Script {
    name: &'static str,
    steps: Vec<Step>,
}

fn with_option(args: &Json, key: &str, value: Json) -> Json {
    let Json::Object(mut entries) = args.clone() else { panic!("arguments are an object") };
    let mut options = match args.field("options") {
        Some(Json::Object(options)) => options.clone(),
        _ => Vec::new(),
    };
    options.push((key.to_owned(), value));
    entries.retain(|(name, _)| name != "options");
    entries.push(("options".to_owned(), Json::Object(options)));
    Json::Object(entries)
}

fn append(args: &str) -> Step {
    let args = Json::of(args);
    let repeated = with_option(&args, "extra_json", Json::of(r#"{"repeat":true}"#));
    Step { name: "ingest.append", args, repeated }
}

fn step(name: &'static str, args: &str) -> Step {
    Step { name, args: Json::of(args), repeated: Json::of(args) }
}

fn apply(request: &str, answer: &str) -> Step {
    let args = format!(r#"{{"request_id":"{request}","answer":{answer}}}"#);
    step("compaction.apply", &args)
}

fn answer(tokens: u64) -> String {
    let text = padded("summary ", 's', tokens);
    format!(r#"{{"done":{{"text":"{text}"}}}}"#)
}

const MESSAGES: &str = r#"{"messages":[{"$generate":
    {"count":12,"tokens":100,"roles":["user","assistant"],"first":1}}],
    "options":{"append_mode":"new"}}"#;
const PLAN: &str = r#"{"budget":100000,"options":{"force":true}}"#;
const PLAN_TWO: &str = r#"{"budget":100000,"options":{"force":true,"requests_max":2}}"#;
const CONFIG: &str = r#"{"fresh_tail_messages_max":2,"fresh_tail_tokens_max":null,
    "leaf_chunk_tokens_max":400,"condense_leaves_min":2,"condensed_tokens_target":512,
    "summary_prefix_tokens_target":600}"#;

/// Returns every operation that writes, each in its own script.
fn scripts() -> Vec<Script> {
    let more = r#"{"messages":[{"$generate":
        {"count":8,"tokens":60,"roles":["user","assistant"],"first":9}}]}"#;
    // The same messages at another time, so that they count as new.
    let again = MESSAGES.replace("{\"messages\"", "{\"now\":1700000005000,\"messages\"");
    let leased = r#"{"budget":100000,"options":{"force":true,"lease_ms":1000}}"#;
    let expired = r#"{"budget":100000,"now":1700000009000,
        "options":{"force":true,"lease_ms":1000}}"#;
    let mut scripts = vec![
        Script { name: "append", steps: vec![append(MESSAGES), append(more), append(&again)] },
        Script { name: "stage", steps: staging() },
        Script {
            name: "plan with leases",
            steps: vec![
                append(MESSAGES),
                Step {
                    name: "compaction.plan",
                    args: Json::of(leased),
                    // Tasks whose lease may have been granted are free again when it has ended.
                    repeated: Json::of(expired),
                },
                apply("$1.requests.0.id", &answer(50)),
            ],
        },
    ];
    scripts.extend(compactions());
    scripts.push(Script { name: "grant", steps: granting() });
    scripts
}

/// Returns a script for every outcome of an answer.
fn compactions() -> Vec<Script> {
    let forced = r#"{"request_id":"$1.requests.0.id","options":{"fallback_over_tokens":10},
        "answer":{"failed":{"code":"unavailable"}}}"#;
    vec![
        Script {
            name: "accepted",
            steps: vec![
                append(MESSAGES),
                step("compaction.plan", PLAN_TWO),
                apply("$1.requests.1.id", &answer(350)),
                apply("$1.requests.0.id", &answer(350)),
                step("compaction.plan", PLAN),
                apply("$4.requests.0.id", &answer(90)),
                step("compaction.plan", PLAN),
                apply("$6.requests.0.id", &answer(100)),
            ],
        },
        Script {
            name: "rejected",
            steps: vec![
                append(MESSAGES),
                step("compaction.plan", PLAN),
                apply("$1.requests.0.id", &answer(900)),
                step("compaction.plan", PLAN),
                apply("$3.requests.0.id", &answer(900)),
                step("compaction.plan", PLAN),
                apply("$5.requests.0.id", &answer(50)),
            ],
        },
        Script {
            name: "blank",
            steps: vec![
                append(MESSAGES),
                step("compaction.plan", PLAN),
                apply("$1.requests.0.id", r#"{"done":{"text":" "}}"#),
            ],
        },
        Script {
            name: "failing model",
            steps: vec![
                append(MESSAGES),
                step("compaction.plan", PLAN),
                apply("$1.requests.0.id", r#"{"failed":{"code":"auth"}}"#),
                step("compaction.apply", forced),
            ],
        },
        Script {
            name: "stale",
            steps: vec![
                append(MESSAGES),
                step("compaction.plan", PLAN),
                apply("$1.requests.0.id", &answer(50)),
                apply("$1.requests.0.id", &answer(60)),
            ],
        },
    ]
}

/// Returns the steps that make a grant, derive a grant from it, read with it and revoke it. A
/// repeated read leaves fewer tokens.
fn granting() -> Vec<Step> {
    let found = r#"{"query_json":{"pattern":"word"},"grant":"$2.id"}"#;
    vec![
        append(MESSAGES),
        step("recall.grant", r#"{"grant_json":{"tokens_max":100000}}"#),
        step("recall.grant", r#"{"grant_json":{"parent":"$1.id"}}"#),
        step("recall.grep", found),
        step("recall.grep", &found.replace("$2", "$1")),
        step("recall.revoke", r#"{"grant":"$1.id"}"#),
    ]
}

fn staging() -> Vec<Step> {
    let text = format!(r#"{{"role":"user","content":"{}"}}"#, "lossless ".repeat(40_000));
    let upload = lcm_testing::digest::text_sha256(&text);
    let mut steps: Vec<Step> = text
        .as_bytes()
        .chunks(150_000)
        .enumerate()
        .map(|(index, piece)| {
            let args = Json::object([
                ("upload", upload.as_str().into()),
                ("offset", (index as u64 * 150_000).into()),
                ("text", std::str::from_utf8(piece).unwrap().into()),
            ]);
            Step { name: "ingest.stage", repeated: args.clone(), args }
        })
        .collect();
    steps.push(append(&format!(
        r#"{{"messages":["@upload {upload}",{{"role":"assistant","content":"read"}}]}}"#
    )));
    steps
}

fn new_host() -> Host {
    Host::new(Some(Json::of(CONFIG)), StoreMode::Plain).unwrap()
}

/// Returns a result in the form to which later steps refer.
fn referable(result: Json) -> Json {
    match result.as_str() {
        Some(text) if text.starts_with('{') => Json::of(text),
        _ => result,
    }
}

/// The store after each step of an undisturbed run; index 0 is the empty store.
struct Undisturbed {
    digests: Vec<String>,
    messages: Vec<String>,
    logical: Json,
}

fn messages(host: &mut Host) -> Vec<String> {
    let (mut texts, mut next) = (Vec::new(), 1_u64);
    loop {
        let args = Json::object([("seq_first", next.into()), ("seq_last", 1000_u64.into())]);
        let page = host.ask("recall.messages", &args).unwrap();
        if page.elements().is_empty() {
            return texts;
        }
        next += page.elements().len() as u64;
        texts.extend(page.elements().iter().map(|text| text.as_str().unwrap().to_owned()));
    }
}

fn logical(host: &mut Host) -> Json {
    host.ask("admin.digest", &Json::of(r#"{"logical":true}"#)).unwrap()
}

fn undisturbed(script: &Script) -> Undisturbed {
    let mut host = new_host();
    let (mut digests, mut results) = (vec![host.store.digest()], Vec::new());
    for step in &script.steps {
        let args = replace_references(&step.args, &results).unwrap();
        let result = host.ask(step.name, &args);
        let what = step.name;
        let result = result.unwrap_or_else(|error| panic!("{}: {what}: {error}", script.name));
        results.push(referable(result));
        digests.push(host.store.digest());
    }
    Undisturbed { digests, messages: messages(&mut host), logical: logical(&mut host) }
}

fn check_is_ok(host: &mut Host, place: &str) {
    if host.store.entries().is_empty() {
        return;
    }
    let report = match host.ask("admin.check", &Json::Null) {
        Ok(report) => Json::of(report.as_str().unwrap()),
        // The store has only staged text: there is no conversation yet.
        Err(error) if error.code == ErrorCode::NotFound => return,
        Err(error) => panic!("{place}: check: {error}"),
    };
    assert_eq!(report.field("ok"), Some(&Json::Bool(true)), "{place}: {report}");
}

/// Runs the script with one failure at operation `at`. `false`: the script has fewer operations.
fn disturbed(
    script: &Script,
    expected: &Undisturbed,
    at: u64,
    (fault, cold): (Fault, bool),
) -> bool {
    let mut host = new_host();
    host.cold = cold;
    host.plan_fault(at, fault);
    let mut results: Vec<Json> = Vec::new();
    for (index, step) in script.steps.iter().enumerate() {
        let place = format!("{}, {fault:?} at {at}, step {index} ({})", script.name, step.name);
        let args =
            replace_references(&step.args, &results).unwrap_or_else(|why| panic!("{place}: {why}"));
        let fired_before = host.fault_fired();
        let result = match host.ask(step.name, &args) {
            Ok(result) => result,
            Err(error) if !fired_before && host.fault_fired() => {
                assert_eq!(error.code, ErrorCode::StoreUnavailable, "{place}: {error}");
                let digest = host.store.digest();
                assert!(
                    digest == expected.digests[index] || digest == expected.digests[index + 1],
                    "{place}: the store is neither as before nor as after"
                );
                if fault == Fault::Before {
                    assert_eq!(digest, expected.digests[index], "{place}: a failed call wrote");
                }
                host.undisturbed(|host| check_is_ok(host, &place));
                let repeated = replace_references(&step.repeated, &results).unwrap();
                host.ask(step.name, &repeated)
                    .unwrap_or_else(|error| panic!("{place}: repeated: {error}"))
            }
            Err(error) => panic!("{place}: {error}"),
        };
        host.undisturbed(|host| check_is_ok(host, &place));
        results.push(referable(result));
    }
    let place = format!("{}, {fault:?} at {at}", script.name);
    let fired = host.fault_fired();
    host.clear_fault();
    assert_eq!(messages(&mut host), expected.messages, "{place}: messages");
    assert_eq!(logical(&mut host), expected.logical, "{place}: logical digest");
    let leases = script.name == "plan with leases";
    if fault == Fault::Before && !leases {
        assert_eq!(Some(&host.store.digest()), expected.digests.last(), "{place}: digest");
    }
    fired
}

fn fails_at_every_operation(fault: Fault) {
    for script in scripts() {
        let expected = undisturbed(&script);
        // With instances that know the conversation already, and with new ones for every call.
        for cold in [false, true] {
            let mut at = 1;
            while disturbed(&script, &expected, at, (fault, cold)) {
                at += 1;
                assert!(at < 10_000, "{} does not come to an end", script.name);
            }
            println!("{}, cold {cold}: {} operations failed one by one", script.name, at - 1);
            assert!(at > script.steps.len() as u64, "{}: too few operations", script.name);
        }
    }
}

#[test]
fn a_failed_operation_changes_nothing_and_the_call_can_be_repeated() {
    fails_at_every_operation(Fault::Before);
}

#[test]
fn a_lost_reply_leaves_the_state_after_the_call_and_the_call_can_be_repeated() {
    fails_at_every_operation(Fault::ReplyLost);
}

/// Returns a store with 12 messages, and two tasks that wait for their answers.
fn prepared() -> (Host, [Json; 2]) {
    let mut host = new_host();
    host.ask("ingest.append", &Json::of(MESSAGES)).unwrap();
    let plan = host.ask("compaction.plan", &Json::of(PLAN_TWO)).unwrap();
    let id = |index: usize| {
        let request = plan.field("requests").unwrap().element(index).unwrap();
        request.field("id").unwrap().clone()
    };
    let ids = [id(0), id(1)];
    (host, ids)
}

fn answered(id: &Json, answer: &str) -> Json {
    Json::object([("request_id", id.clone()), ("answer", Json::of(answer))])
}

fn new_messages(text: &str) -> Json {
    Json::of(&format!(
        r#"{{"messages":[{{"role":"user","content":"{text}"}}],"options":{{"append_mode":"new"}}}}"#
    ))
}

#[test]
fn two_instances_lose_nothing_wherever_they_meet() {
    let upload = lcm_testing::digest::text_sha256("x");
    let stage = Json::of(&format!(r#"{{"upload":"{upload}","offset":0,"text":"x"}}"#));
    let leased = Json::of(r#"{"budget":100000,"options":{"force":true,"lease_ms":1000}}"#);
    let (_, ids) = prepared();
    let calls = [
        ("ingest.append", new_messages("mine")),
        ("ingest.stage", stage.clone()),
        ("compaction.plan", leased),
        ("compaction.apply", answered(&ids[0], &answer(50))),
        ("compaction.apply", answered(&ids[0], &answer(900))),
        ("compaction.apply", answered(&ids[0], r#"{"failed":{"code":"auth"}}"#)),
    ];
    let others = [
        ("ingest.append", new_messages("theirs")),
        ("ingest.stage", stage),
        ("compaction.apply", answered(&ids[0], &answer(60))),
        ("compaction.apply", answered(&ids[1], &answer(60))),
        ("compaction.apply", answered(&ids[1], &answer(900))),
    ];
    let mut conflicts = 0;
    for (name, args) in &calls {
        for (other_name, other_args) in &others {
            let other = (*other_name, other_args);
            let mut at = 1;
            while let Some(conflicted) = meet(name, args, other, at) {
                conflicts += u32::from(conflicted);
                at += 1;
            }
            assert!(at > 1, "{name} beside {other_name}: no operation");
        }
    }
    println!("{conflicts} conflicts");
    assert!(conflicts > 10, "instances hardly ever met");
}

/// Makes a call; another instance makes the call `other` before its operation `at`. Returns whether
/// the call met a conflict; `None`: it has fewer operations.
fn meet(name: &str, args: &Json, other: (&str, &Json), at: u64) -> Option<bool> {
    let (mut host, _) = prepared();
    let place = format!("{name} beside {} at {at}", other.0);
    let before = messages(&mut host).len();
    let (answer, interleaved) = host.ask_interleaved(name, args, at, other);
    if !interleaved {
        return None;
    }
    let conflicted = match answer {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.code, ErrorCode::Conflict, "{place}: {error}");
            host.ask(name, args).unwrap_or_else(|error| panic!("{place}: repeated: {error}"));
            true
        }
    };
    check_is_ok(&mut host, &place);
    let appended = u32::from(name == "ingest.append") + u32::from(other.0 == "ingest.append");
    let texts = messages(&mut host);
    assert_eq!(texts.len(), before + appended as usize, "{place}: messages");
    let first: Vec<String> = message_texts(Json::of(MESSAGES).field("messages").unwrap()).unwrap();
    assert_eq!(texts[..before], first, "{place}: old messages");
    let assembled = host
        .ask("context.assemble", &Json::of(r#"{"budget":1000000,"options":{"explain":true}}"#))
        .unwrap();
    let items = lcm_testing::simulation::invariants::items(&assembled).unwrap();
    lcm_testing::simulation::invariants::context_items_partition_the_sequence(
        &items,
        texts.len() as u64,
    )
    .unwrap_or_else(|why| panic!("{place}: {why}"));
    Some(conflicted)
}
