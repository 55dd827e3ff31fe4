//! Steps without a store: what a token remembers, and what every event leads to.

use alloc::{format, string::ToString, vec::Vec};

use serde_json::{Value, json};

use super::*;
use lcm_text::base::error::ErrorCode;

const NOW: Timestamp = 1_700_000_000_000;

/// Begins a task under the default configuration.
fn begin(task_json: &str, now: Timestamp) -> Result<String> {
    super::begin(&Config::default(), task_json, now)
}

/// Continues a task under the default configuration.
fn step(token: &str, event_json: &str, now: Timestamp) -> Result<String> {
    super::step(&Config::default(), token, event_json, now)
}

fn begun(task: &Value) -> Value {
    serde_json::from_str(&begin(&task.to_string(), NOW).unwrap()).unwrap()
}

/// Begins a task with a list whose beginning the engine does not know.
fn begun_unknown(task: &Value) -> Value {
    let first = begun(task);
    assert_eq!(extra(&first)["continues"], true, "{first}");
    stepped(&first, &error("conflict"))
}

fn stepped(before: &Value, event: &Value) -> Value {
    let token = before["token"].as_str().unwrap();
    let prompt = token.split_once(r#""system":""#).map_or(0, |(_, rest)| rest.find('"').unwrap());
    assert!(token.len() < 4096 + prompt, "{}", token.len());
    let after = step(token, &event.to_string(), NOW + 1).unwrap();
    assert_eq!(step(token, &event.to_string(), NOW + 1).unwrap(), after, "repeated");
    serde_json::from_str(&after).unwrap()
}

fn transcript(count: u64) -> Value {
    json!({"task": "ingest", "conversation": "c", "count": count, "bytes": count * 10,
        "bytes_longest": 10})
}

/// The identities of the messages of a call, as `ingest.identify` returns them.
fn identities(instruction: &Value) -> Value {
    let count = instruction["messages"]["count"].as_u64().unwrap();
    let from = instruction["messages"]["index_first"].as_u64().unwrap();
    let hash = |at| json!({"hash": format!("{:032x}", from + at)});
    json!({"result": Value::from((0..count).map(hash).collect::<Vec<_>>()).to_string()})
}

fn plan(revision: u64, missing: &[(u64, u64)]) -> Value {
    let missing: Vec<_> =
        missing.iter().map(|(from, to)| json!({"index_first": from, "index_last": to})).collect();
    let plan =
        json!({"missing_ranges": missing, "revision": revision, "warnings": [], "by": "none"});
    json!({"result": plan.to_string()})
}

fn receipt(revision: u64, ingested: u64) -> Value {
    json!({"result": {"revision": revision, "ingested": ingested, "skipped": 0, "seq_first": 1,
        "seq_last": ingested, "context_tokens": 7, "warnings": []}})
}

fn error(code: &str) -> Value {
    json!({"error": {"code": code, "message": "why"}})
}

fn extra(instruction: &Value) -> Value {
    let text = instruction["arguments"]["options"]["extra_json"].as_str().unwrap_or("{}");
    serde_json::from_str(text).unwrap()
}

/// A transcript of 150 messages, identified and planned.
fn planned() -> Value {
    let first = begun_unknown(&transcript(150));
    assert_eq!(first["call"], "ingest.identify");
    let second = stepped(&first, &identities(&first));
    assert_eq!(second["messages"]["index_first"], 100);
    let reconcile = stepped(&second, &identities(&second));
    assert_eq!(reconcile["call"], "ingest.reconcile");
    assert_eq!(reconcile["entries"], true);
    stepped(&reconcile, &plan(4, &[(10, 149)]))
}

#[test]
fn one_call_takes_what_fits() {
    let task = json!({"task": "append", "conversation": "c", "count": 2, "bytes": 20,
        "bytes_longest": 10, "family": "f"});
    let first = begun(&task);
    assert_eq!(first["call"], "ingest.append");
    assert_eq!(first["arguments"]["options"]["append_mode"], "transcript");
    assert_eq!(extra(&first), json!({"family": "f"}));
    let done = stepped(&first, &receipt(1, 2));
    assert_eq!((&done["do"], &done["result"]["ingested"]), (&json!("done"), &json!(2)));
    assert!(done["token"].is_null());
    let several = stepped(&first, &error("limit-exceeded"));
    assert_eq!(several["call"], "ingest.identify");
}

#[test]
fn a_list_that_goes_on_is_one_append() {
    let list = |count: u64, kind: &str| {
        let mut task = transcript(count);
        (task["task"], task["seq_seen"]) = (json!(kind), json!(4));
        begun(&task)
    };
    let first = list(9_000, "append");
    assert_eq!(first["messages"], json!({"index_first": 0, "count": 9_000, "bytes_max": 4 << 20}));
    let options = &first["arguments"]["options"];
    assert_eq!(
        (&options["append_mode"], &options["partial"]),
        (&json!("transcript"), &json!(false))
    );
    assert_eq!(extra(&first), json!({"continues": true, "seq_seen": 4}));
    assert_eq!(first["once"], true);
    let again = stepped(&first, &error("store-unavailable"));
    assert_eq!(extra(&again), json!({"continues": true, "repeat": true, "seq_seen": 4}));
    let known = json!({"result": {"revision": 8, "ingested": 2, "skipped": 8_998, "seq_first": 9,
        "seq_last": 10, "seq_seen": 10, "context_tokens": 7, "warnings": []}});
    let done = stepped(&again, &known);
    assert_eq!((&done["do"], &done["result"]["skipped"]), (&json!("done"), &json!(8_998)));
    for code in ["conflict", "limit-exceeded"] {
        assert_eq!(stepped(&first, &error(code))["call"], "ingest.identify");
    }
    assert_eq!(list(10_001, "append")["call"], "ingest.identify");
    assert_eq!(list(1, "ingest")["call"], "ingest.identify");
    assert!(extra(&list(100, "append"))["continues"].is_null(), "one append takes 100 messages");
}

#[test]
fn a_plan_is_appended_under_its_revision() {
    let first = planned();
    assert_eq!(first["messages"], json!({"index_first": 10, "count": 100, "bytes_max": 524_288}));
    assert_eq!((extra(&first), &first["once"]), (json!({"revision": 4}), &json!(true)));
    let second = stepped(&first, &receipt(5, 60));
    assert_eq!(
        (&second["messages"]["index_first"], extra(&second)),
        (&json!(70), json!({"revision": 5}))
    );
    let done = stepped(&second, &receipt(6, 80));
    assert_eq!(
        done["result"],
        json!({"context_tokens": 7, "ingested": 140, "revision": 6,
        "seq_first": 1, "seq_last": 80, "seq_seen": 0, "skipped": 10})
    );
}

#[test]
fn an_outage_repeats_the_same_call_and_no_more_than_eight_times() {
    let mut instruction = planned();
    let expected = json!({"repeat": true, "revision": 4});
    for _ in 0..8 {
        instruction = stepped(&instruction, &error("store-unavailable"));
        assert_eq!(extra(&instruction), expected);
        assert!(instruction["wait_ms"].as_u64().unwrap() <= 256);
    }
    let failed = stepped(&instruction, &error("store-unavailable"));
    assert_eq!(failed["error"], json!({"code": "store-unavailable", "message": "why"}));
}

#[test]
fn a_jump_of_the_revision_plans_again_and_is_bounded() {
    let again = stepped(&planned(), &receipt(9, 100));
    assert_eq!(again["call"], "ingest.reconcile");
    let text = again["arguments"]["transcript_json"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["confirmed"], 110);
    let mut instruction = stepped(&again, &plan(9, &[(110, 149)]));
    let mut plans = 0;
    while instruction["do"] == "call" {
        let again = stepped(&instruction, &error("conflict"));
        instruction = match again["call"].as_str() {
            Some("ingest.reconcile") => stepped(&again, &plan(9, &[(110, 149)])),
            _ => again,
        };
        plans += 1;
    }
    assert_eq!((plans, &instruction["error"]["code"]), (257, &json!("conflict")));
}

#[test]
fn a_token_holds_so_many_ranges_and_asks_for_the_rest() {
    let first = begun_unknown(&transcript(100));
    let reconcile = stepped(&first, &identities(&first));
    let odd: Vec<_> = (0..50).map(|at| (2 * at, 2 * at)).collect();
    let mut instruction = stepped(&reconcile, &plan(1, &odd));
    for at in 0..32 {
        assert_eq!(instruction["messages"]["index_first"], 2 * at);
        instruction = stepped(&instruction, &receipt(2 + at, 1));
    }
    assert_eq!(instruction["call"], "ingest.reconcile");
    let last = stepped(&instruction, &plan(33, &odd[32..33]));
    assert_eq!(stepped(&last, &receipt(34, 1))["result"]["ingested"], 33);
}

#[test]
fn a_list_is_named_by_its_messages_and_its_time() {
    let task = |now: Timestamp, cut: u64| {
        let task = json!({"task": "append", "conversation": "c", "count": 150, "bytes": 1500,
            "bytes_longest": 10, "append_mode": "new", "repeat": true});
        let mut at: Value = serde_json::from_str(&begin(&task.to_string(), now).unwrap()).unwrap();
        while at["call"] == "ingest.identify" {
            let count = at["messages"]["count"].as_u64().unwrap().min(cut);
            at["messages"]["count"] = json!(count);
            at = stepped(&at, &identities(&at));
        }
        extra(&at)
    };
    let whole = task(NOW, 100);
    assert_eq!((&whole["list_offset"], &whole["repeat"]), (&json!(0), &json!(true)));
    assert_eq!(task(NOW, 7), whole, "the name does not depend on the cut");
    assert_ne!(task(NOW + 1, 100)["list"], whole["list"]);
}

#[test]
fn a_task_is_bounded_beside_its_system_prompt() {
    let mut task = transcript(2);
    task["system"] = "Be kind.\n".repeat(20_000).into();
    let first = begun_unknown(&task);
    let reconcile = stepped(&first, &identities(&first));
    let append = stepped(&reconcile, &plan(0, &[(0, 1)]));
    assert_eq!(extra(&append)["system"], task["system"]);
    task["system"] = "x".repeat(600_000).into();
    let refusal = begin(&task.to_string(), NOW).unwrap_err();
    assert!(refusal.message.starts_with("`system` must have at most 524288 bytes"), "{refusal}");
    task["system"] = json!("Be kind.");
    task["family"] = "f".repeat(17_000).into();
    let refusal = begin(&task.to_string(), NOW).unwrap_err();
    assert!(refusal.message.contains("at most 16384 bytes beside `system`"), "{refusal}");
}

#[test]
fn large_messages_are_uploaded_and_planned_again() {
    let mut task = transcript(2);
    task["bytes_longest"] = json!(600_000);
    let first = begun(&task);
    let reconcile = stepped(&first, &identities(&first));
    let stage = stepped(&reconcile, &plan(0, &[(0, 1)]));
    assert_eq!((&stage["do"], &stage["count"]), (&json!("stage"), &json!(2)));
    let again = stepped(&stage, &json!({"staged": 1}));
    assert_eq!(again["call"], "ingest.reconcile");
    let stage = stepped(&again, &plan(1, &[(0, 1)]));
    assert_eq!(stepped(&stage, &json!({"staged": 0}))["call"], "ingest.append");
}

#[test]
fn an_error_names_the_message_of_the_task() {
    let first = begun_unknown(&transcript(150));
    let second = stepped(&first, &identities(&first));
    let refusal = json!({"error": {"code": "invalid-input", "message": "messages[7]: no role"}});
    let failed = stepped(&second, &refusal);
    assert_eq!(
        failed["error"],
        json!({"code": "invalid-input", "index": 107,
        "message": "messages[107]: no role"})
    );
}

#[test]
fn what_is_no_token_or_no_answer_is_refused() {
    let first = begun_unknown(&transcript(2));
    let token = first["token"].as_str().unwrap();
    let refused = |token: &str, event: &Value| {
        let error = step(token, &event.to_string(), NOW).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput);
        error.message.clone()
    };
    let cut: &str = &token[..30];
    for foreign in ["", "step1.", "step1.00.{}", "step2.00.{}", "s1:1:1:1", cut] {
        let message = refused(foreign, &identities(&first));
        assert!(message.starts_with("`token` must be"), "{message}");
    }
    let compact = begun(&json!({"task": "compact", "conversation": "c", "budget": 1000}));
    let (_, task) = compact["token"].as_str().unwrap()[6..].split_once('.').unwrap();
    let (state, _) = token[6..].split_once('.').unwrap();
    refused(&format!("step1.{state}.{task}"), &identities(&first));
    for event in [
        json!({"staged": 1}),
        json!({"answers": []}),
        json!({}),
        json!({"result": "[]"}),
        json!({"result": 1}),
        json!({"result": {}}),
        json!({"result": "x", "staged": 1}),
        json!({"error": {"code": 1}}),
        plan(1, &[]),
    ] {
        refused(token, &event);
    }
    let planned = planned();
    let token = planned["token"].as_str().unwrap();
    for event in [receipt(5, 0), receipt(5, 141), plan(1, &[]), json!({"result": "x"})] {
        refused(token, &event);
    }
}

#[test]
fn tasks_are_bounded_and_have_known_members() {
    let task = json!({"task": "compact", "conversation": "c".repeat(17 << 10), "budget": 1});
    assert_eq!(begin(&task.to_string(), NOW).unwrap_err().code, ErrorCode::LimitExceeded);
    for task in [
        json!({"task": "other"}),
        json!({}),
        json!({"task": "compact"}),
        json!({"task": "append", "conversation": "c", "budget": 1}),
    ] {
        assert_eq!(begin(&task.to_string(), NOW).unwrap_err().code, ErrorCode::InvalidInput);
    }
}

fn compacting(kind: &str) -> Value {
    json!({"task": kind, "conversation": "c", "budget": 1000, "requests_max": 2,
        "observed_tokens": 5})
}

fn needs(sweep: &str, requests: usize) -> Value {
    let requests: Vec<_> = (0..requests).map(|at| json!({"id": at.to_string()})).collect();
    json!({"result": {"status": "needs-completions", "reason": "", "sweep": sweep,
        "requests": requests, "revision": 1}})
}

fn no_work(status: &str, reason: &str, sweep: &str) -> Value {
    json!({"result": {"status": status, "reason": reason, "sweep": sweep, "requests": []}})
}

fn outcome(applied: &str, reason: &str, before: u32, after: u32) -> Value {
    json!({"result": {"applied": applied, "reason": reason, "summary_id": "sum_1", "purpose": "leaf",
        "depth": 0, "level": "normal", "capped": false, "tokens_before": before,
        "tokens_after": after, "more": true, "next": null, "sweep": "", "warnings": ["line"]}})
}

fn decision(due: bool, must: bool) -> Value {
    let explained = json!({"inputs": {"stored_tokens": 321}, "warnings": []});
    json!({"result": {"due": due, "must": must, "explanation_json": explained.to_string()}})
}

fn failed(code: &str) -> Value {
    json!({"failed": {"code": code, "message": "down", "retry_after_ms": null}, "asked": 3})
}

#[test]
fn a_sweep_is_planned_completed_and_applied() {
    let plan = begun(&compacting("compact"));
    assert_eq!(
        (&plan["call"], &plan["arguments"]["options"]["observed_tokens"]),
        (&json!("compaction.plan"), &json!(5))
    );
    let complete = stepped(&plan, &needs("s", 2));
    assert_eq!((&complete["do"], &complete["count"]), (&json!("complete"), &json!(2)));
    let apply = stepped(&complete, &json!({"answers": [{"done": true}, {"done": {"text": ""}}]}));
    assert_eq!((&apply["call"], &apply["request"]), (&json!("compaction.apply"), &json!(0)));
    let second = stepped(&apply, &outcome("committed", "", 900, 700));
    assert_eq!((&second["pass"]["summary_id"], &second["request"]), (&json!("sum_1"), &json!(1)));
    assert_eq!(second["warnings"], json!(["line"]));
    // An answer that an equal call committed before is no pass.
    let plan = stepped(&second, &outcome("committed", "", 700, 700));
    assert!(plan["pass"].is_null());
    assert_eq!(plan["arguments"]["options"]["sweep"], "s");
    let evaluate = stepped(&plan, &no_work("nothing-due", "reached-target", ""));
    assert!(evaluate["arguments"]["options"]["observed_tokens"].is_null());
    let done = stepped(&evaluate, &decision(false, false));
    assert_eq!(
        done["result"],
        json!({"completions": 2, "failure": null,
        "reason": "reached-target", "status": "done", "tokens_after": 700, "tokens_before": 900})
    );
}

#[test]
fn empty_plans_end() {
    let mut instruction = begun(&compacting("compact"));
    let mut plans = 0;
    while instruction["call"] == "compaction.plan" {
        instruction = stepped(&instruction, &no_work("stopped", "pass-limit", "again"));
        plans += 1;
    }
    assert_eq!(plans, compaction::EMPTY_PLANS_MAX);
    let done = stepped(&instruction, &decision(true, false));
    assert_eq!(
        (&done["result"]["reason"], &done["result"]["status"]),
        (&json!("no-progress"), &json!("partial"))
    );
}

#[test]
fn an_exhausted_model_is_asked_no_more() {
    let complete = stepped(&begun(&compacting("compact")), &needs("s", 1));
    let apply = stepped(&complete, &json!({"answers": [failed("timeout")]}));
    assert_eq!(apply["arguments"]["options"]["fallback_over_tokens"], 1000);
    let plan = stepped(&apply, &outcome("committed", "", 1200, 900));
    let apply = stepped(&plan, &needs("s", 1));
    assert_eq!(apply["arguments"]["answer"]["failed"]["code"], "timeout");
    let evaluate = stepped(&apply, &outcome("refused", "model-unavailable", 900, 900));
    let done = stepped(&evaluate, &decision(true, false));
    assert_eq!(
        (&done["result"]["status"], &done["result"]["failure"]["message"]),
        (&json!("partial"), &json!("down"))
    );
    assert_eq!(done["warnings"], json!(["completion-failed: timeout: down"]));
    assert_eq!(done["result"]["completions"], 3);
}

#[test]
fn a_rejected_answer_is_asked_for_again() {
    let complete = stepped(&begun(&compacting("compact")), &needs("s", 2));
    let answers = json!({"answers": [{"done": true}, {"done": true}]});
    let apply = stepped(&complete, &answers);
    let mut retry = outcome("retry", "", 900, 900);
    retry["result"]["next"] = json!({"id": "x"});
    let again = stepped(&apply, &retry);
    assert_eq!(
        (&again["do"], &again["index_first"], &again["count"]),
        (&json!("complete"), &json!(0), &json!(1))
    );
    let apply = stepped(&again, &json!({"answers": [{"done": true}]}));
    let second = stepped(&apply, &outcome("committed", "", 900, 800));
    assert_eq!((&second["call"], &second["request"]), (&json!("compaction.apply"), &json!(1)));
}

#[test]
fn a_refused_key_fails_the_task_and_is_counted_unless_asked_otherwise() {
    let complete = stepped(&begun(&compacting("compact")), &needs("s", 1));
    let apply = stepped(&complete, &json!({"answers": [failed("auth")]}));
    assert!(apply["arguments"]["options"]["fallback_over_tokens"].is_null());
    let end = stepped(&apply, &outcome("refused", "model-auth", 900, 900));
    assert_eq!(end["error"], json!({"code": "completion-failed", "message": "model-auth: down"}));
    let mut task = compacting("compact");
    task["counts_refusals"] = json!(false);
    let complete = stepped(&begun(&task), &needs("s", 1));
    let end = stepped_back(&complete, &json!({"answers": [failed("policy")]}), &[0]);
    assert_eq!(end["do"], "fail");
}

/// Advances by an event after which the requests at these places are given back.
fn stepped_back(previous: &Value, event: &Value, places: &[u64]) -> Value {
    let mut next = stepped(previous, event);
    for place in places {
        assert_eq!((&next["call"], &next["request"]), (&json!("compaction.apply"), &json!(place)));
        let failed = &next["arguments"]["answer"]["failed"];
        assert_eq!(failed["message"], "the task ended before the answer");
        assert!(next["arguments"]["options"]["fallback_over_tokens"].is_null());
        next = stepped(&next, &outcome("refused", "model-unavailable", 900, 900));
    }
    next
}

#[test]
fn whoever_stops_gets_what_was_done() {
    let complete = stepped(&begun(&compacting("compact")), &needs("s", 2));
    let apply = stepped_back(&complete, &json!({"answers": [{}, {"done": true}]}), &[0]);
    assert_eq!(apply["request"], 1, "what is paid for is applied");
    assert!(apply["arguments"]["answer"].is_null());
    let evaluate = stepped(&apply, &outcome("committed", "", 900, 800));
    assert_eq!(evaluate["call"], "compaction.evaluate");
    let done = stepped(&evaluate, &decision(true, false));
    assert_eq!(
        (&done["result"]["reason"], &done["result"]["status"]),
        (&json!("cancelled"), &json!("partial"))
    );
    let evaluate = stepped_back(&complete, &json!({"stopped": true}), &[0, 1]);
    assert_eq!(evaluate["call"], "compaction.evaluate");
    let mut task = compacting("compact");
    task["lease_ms"] = json!(0);
    let plan = begun(&task);
    assert_eq!(plan["arguments"]["options"]["lease_ms"], 0);
    let evaluate = stepped(&stepped(&plan, &needs("s", 2)), &json!({"stopped": true}));
    assert_eq!(evaluate["call"], "compaction.evaluate", "nothing is given back without a lease");
}

/// If a caller stops between an answer and its settlement, no fallback replaces the answer of a
/// model that failed.
#[test]
fn whoever_stops_gets_no_stand_in() {
    let complete = stepped(&begun(&compacting("compact")), &needs("s", 2));
    let answers = json!({"answers": [{"done": true}, failed("timeout")]});
    let apply = stepped(&complete, &answers);
    let first = stepped(&apply, &json!({"stopped": true}));
    assert_eq!((&first["call"], &first["request"]), (&apply["call"], &json!(0)));
    assert!(first["arguments"]["answer"].is_null(), "the answer of the model is applied");
    let committed = outcome("committed", "", 900, 800);
    assert_eq!(stepped_back(&first, &committed, &[1])["call"], "compaction.evaluate");
    let second = stepped(&apply, &committed);
    assert_eq!(second["arguments"]["options"]["fallback_over_tokens"], 1000);
    let evaluate = stepped_back(&second, &json!({"stopped": true}), &[1]);
    assert_eq!(evaluate["call"], "compaction.evaluate");
}

#[test]
fn a_failed_task_gives_its_requests_back() {
    let complete = stepped(&begun(&compacting("compact")), &needs("s", 2));
    // The model's function is wrong, or the store fails.
    let end = stepped_back(&complete, &error("invalid-input"), &[0, 1]);
    assert_eq!(end["error"]["code"], "invalid-input");
    let answers = json!({"answers": [{"done": true}, {"done": true}]});
    let apply = stepped(&complete, &answers);
    let end = stepped_back(&apply, &error("store-unavailable"), &[0, 1]);
    assert_eq!(end["error"]["code"], "store-unavailable");
    // The call that gives a request back fails, too. The task reports the first failure, which is
    // the cause.
    let back = stepped(&apply, &error("store-unavailable"));
    assert_eq!(stepped(&back, &error("not-found"))["error"]["code"], "store-unavailable");
}

/// A model function that returns no answer fails in every turn: the task records the failure as a
/// failure of the model, so that later turns wait.
#[test]
fn a_wrong_model_function_is_paused() {
    let mut turn = compacting("compact");
    turn["turn"] = json!(true);
    for mut task in [turn, compacting("maintain")] {
        task["lease_ms"] = json!(0);
        let plan = stepped(&begun(&task), &debt(true, &json!({"failures": 0})));
        let complete = stepped(&plan, &needs("s", 2));
        let tell = stepped(&complete, &error("invalid-input"));
        assert_eq!(tell["call"], "admin.call", "{tell}");
        assert!(
            tell["arguments"]["arguments_json"].as_str().unwrap().contains("model-unavailable")
        );
        let end = stepped(&tell, &debt(false, &json!({"failures": 1})));
        assert_eq!(end["error"]["code"], "invalid-input");
    }
}

#[test]
fn a_task_ends_after_its_most_passes() {
    let mut task = compacting("maintain");
    task["passes_max"] = json!(1);
    let plan = stepped(&begun(&task), &debt(true, &json!({"failures": 0})));
    assert_eq!(plan["arguments"]["options"]["lease_ms"], 120_000);
    let complete = stepped(&plan, &needs("s", 1));
    let apply = stepped(&complete, &json!({"answers": [{"done": true}]}));
    let evaluate = stepped(&apply, &outcome("committed", "", 900, 800));
    assert_eq!(evaluate["call"], "compaction.evaluate");
    let tell = stepped(&evaluate, &decision(true, false));
    assert!(tell["arguments"]["arguments_json"].as_str().unwrap().contains("pass-limit"));
    // A failure of the model ends the passes, too: another request would fail in the same way.
    let apply = stepped(&complete, &json!({"answers": [failed("timeout")]}));
    let evaluate = stepped(&apply, &outcome("refused", "model-unavailable", 900, 900));
    assert_eq!(evaluate["call"], "compaction.evaluate");
}

fn debt(is_time: bool, owed: &Value) -> Value {
    json!({"result": json!({"drain": is_time, "debt": owed, "must": false}).to_string()})
}

#[test]
fn deferred_compaction_is_told_how_it_ended() {
    let ask = begun(&compacting("maintain"));
    assert_eq!(ask["call"], "admin.call");
    let owed = json!({"failures": 0});
    let later = stepped(&ask, &debt(false, &owed));
    assert_eq!((&later["note"]["debt"], &later["result"]["compacted"]), (&owed, &Value::Null));
    let plan = stepped(&ask, &debt(true, &owed));
    let evaluate = stepped(&plan, &no_work("nothing-due", "below-threshold", ""));
    let tell = stepped(&evaluate, &decision(false, false));
    let told = tell["arguments"]["arguments_json"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(told).unwrap(),
        json!({"budget": 1000, "ended": "below-threshold", "observed_tokens": 5})
    );
    let done = stepped(&tell, &debt(false, &Value::Null));
    assert_eq!(done["result"]["compacted"]["status"], "nothing-to-do");
    assert_eq!(done["note"], json!({"debt": null}));
    // A conflict postpones the next attempt, and the task fails with `conflict`.
    let tell = stepped(&plan, &error("conflict"));
    assert!(tell["arguments"]["arguments_json"].as_str().unwrap().contains("conflict"));
    assert_eq!(stepped(&tell, &error("not-found"))["error"]["code"], "conflict");
}

#[test]
fn a_turn_compacts_now_later_or_not() {
    let mut task = compacting("turn");
    task["defer"] = json!(true);
    let decide = begun(&task);
    let none = stepped(&decide, &decision(false, false));
    assert_eq!(none["result"], json!({"compact": false, "deferred": false}));
    assert_eq!(none["note"]["decision"]["due"], false);
    let now = stepped(&decide, &decision(true, true));
    assert_eq!(now["result"], json!({"compact": true, "deferred": false}));
    let ask = stepped(&decide, &decision(true, false));
    assert_eq!(ask["call"], "admin.call");
    let later = stepped(&ask, &debt(true, &json!({})));
    assert_eq!(later["result"], json!({"compact": false, "deferred": true}));
    let forced = stepped(&ask, &debt(false, &Value::Null));
    assert_eq!(forced["result"], json!({"compact": true, "deferred": false}));
}
