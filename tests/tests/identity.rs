#![expect(clippy::unwrap_used, reason = "a panic in a test is its failure")]
//! Which messages count as the same: overlaps, repetitions and replays of transcripts.
//!
//! Each test sends transcripts as a host does, and checks the number of stored messages afterwards.
//! If a message is missing, it was lost; if there is one too many, it was stored twice.

use lcm_core::Engine;
use lcm_testing::ModelStore;
use lcm_text::{
    base::error::{Error, ErrorCode},
    types::{
        api::{
            AppendMode, AppendOptions, AssembleOptions, CompactionMode, CompactionOptions, Dialect,
        },
        model::{Completion, CompletionResult, Finish},
    },
};

const CHAT: &str = "c";

struct Chat {
    engine: Engine,
    store: ModelStore,
    now: u64,
}

impl Chat {
    fn new() -> Self {
        Self { engine: Engine::new(), store: ModelStore::new(), now: 1_700_000_000_000 }
    }

    fn append_with(&mut self, messages: &[String], extra: Option<&str>) -> Result<u32, ErrorCode> {
        self.now += 1_000;
        self.store.begin_call();
        let mode = if extra.is_some() { AppendMode::New } else { AppendMode::Transcript };
        let options =
            AppendOptions { append_mode: mode, partial: true, extra_json: extra.map(String::from) };
        self.engine
            .append(&mut self.store, CHAT, Dialect::Lcm, messages, &options, self.now)
            .map(|receipt| receipt.ingested)
            .map_err(|error| error.code)
    }

    fn append(&mut self, messages: &[String]) -> u32 {
        self.append_with(messages, None).unwrap()
    }

    /// Plans a transcript. `members` are further members of the request in JSON, each followed by a
    /// comma.
    fn plan_with(
        &mut self,
        transcript: &[String],
        members: &str,
    ) -> Result<serde_json::Value, Error> {
        self.store.begin_call();
        let entries = self.engine.identify(Dialect::Lcm, transcript).unwrap();
        let json = format!("{{{members}\"entries\":{entries}}}");
        let plan = self.engine.reconcile(&mut self.store, CHAT, &json, self.now)?;
        Ok(serde_json::from_str(&plan).unwrap())
    }

    fn plan(&mut self, transcript: &[String]) -> serde_json::Value {
        self.plan_with(transcript, "").unwrap()
    }

    /// Plans a transcript; checks that the entry at an index is another form of a stored message.
    fn plan_revision(&mut self, transcript: &[String], index: u64) {
        let plan = self.plan(transcript);
        let range = plan.pointer("/missing_ranges/0").unwrap();
        let wanted =
            serde_json::json!({"index_first": index, "index_last": index, "revision": true});
        assert_eq!(range, &wanted, "{plan}");
    }

    /// Ingests a transcript as hosts do; returns how many messages were stored.
    fn ingest(&mut self, transcript: &[String]) -> u32 {
        let plan = self.plan(transcript);
        let mut stored = 0;
        for range in plan.get("missing_ranges").unwrap().as_array().unwrap() {
            let at =
                |key: &str| usize::try_from(range.get(key).unwrap().as_u64().unwrap()).unwrap();
            let missing = transcript.get(at("index_first")..=at("index_last")).unwrap();
            for batch in missing.chunks(100) {
                stored += self.append_with(batch, Some("{}")).unwrap();
            }
        }
        stored
    }
}

fn said(role: &str, text: &str) -> String {
    serde_json::json!({"role": role, "content": text}).to_string()
}

fn line(number: u32) -> String {
    let role = if number % 2 == 1 { "user" } else { "assistant" };
    said(role, &format!("this is what was said in line number {number} of it"))
}

fn lines(from: u32, to: u32) -> Vec<String> {
    (from..=to).map(line).collect()
}

fn failed() -> String {
    serde_json::json!({"role": "assistant", "content": "", "stop_reason": "error"}).to_string()
}

#[test]
fn a_long_text_that_is_said_again_later_is_kept() {
    let mut chat = Chat::new();
    let again = said("user", "please continue with the next step of the plan");
    assert_eq!(chat.append(std::slice::from_ref(&again)), 1);
    for number in 1..=50 {
        assert_eq!(chat.append(&[line(number * 2)]), 1);
    }
    assert_eq!(chat.append(&[again]), 1);
}

#[test]
fn a_failed_turn_does_not_break_an_overlap() {
    let mut chat = Chat::new();
    let (a, b, c) = (line(1), line(2), line(3));
    assert_eq!(chat.append(&[a.clone(), failed(), b.clone()]), 2);
    assert_eq!(chat.append(&[a.clone(), failed(), b.clone(), c.clone()]), 1);
    assert_eq!(chat.ingest(&[a, failed(), b, c]), 0);
}

#[test]
fn a_failed_turn_with_anything_else_in_it_is_kept() {
    let mut chat = Chat::new();
    let message = serde_json::json!({
        "role": "assistant", "content": "", "stop_reason": "error", "error_detail": {"code": 7},
    });
    assert_eq!(chat.append(&[message.to_string()]), 1);
}

#[test]
fn a_message_known_by_its_id_does_not_break_an_overlap() {
    let mut chat = Chat::new();
    let part = |text: &str| {
        serde_json::json!({"role": "assistant", "content": text, "id": "e1"}).to_string()
    };
    let user = line(1);
    assert_eq!(chat.append(&[part("strea"), user.clone()]), 2);
    // The longer form of the answer is stored as well.
    assert_eq!(chat.append(&[part("streaming finished"), user.clone(), line(2)]), 2);
    let file = [part("strea"), user.clone(), part("streaming finished"), line(2)];
    assert_eq!(chat.ingest(&file), 0);
    assert_eq!(chat.ingest(&file), 0);
}

#[test]
fn a_transcript_that_begins_earlier_brings_what_is_missing() {
    let mut chat = Chat::new();
    let file = lines(1, 12);
    assert_eq!(chat.ingest(&lines(12, 12)), 1);
    assert_eq!(chat.ingest(&file), 11, "what came before the stored message is missing");
    let mut chat = Chat::new();
    let file = lines(1, 300);
    for batch in lines(101, 300).chunks(100) {
        chat.append_with(batch, Some("{}")).unwrap();
    }
    let mut missing = 0;
    for range in chat.plan(&file).get("missing_ranges").unwrap().as_array().unwrap() {
        missing += range.get("index_last").unwrap().as_u64().unwrap() + 1
            - range.get("index_first").unwrap().as_u64().unwrap();
    }
    assert_eq!(missing, 100);
}

#[test]
fn a_part_of_a_stored_transcript_adds_nothing() {
    let mut chat = Chat::new();
    assert_eq!(chat.ingest(&lines(1, 12)), 12);
    assert_eq!(chat.ingest(&lines(1, 6)), 0, "its beginning");
    assert_eq!(chat.ingest(&lines(4, 9)), 0, "its middle");
    assert_eq!(chat.ingest(&lines(7, 12)), 0, "its end");
    assert_eq!(chat.ingest(&lines(7, 15)), 3, "its end and more");
    let mut chat = Chat::new();
    for batch in lines(1, 400).chunks(100) {
        chat.append_with(batch, Some("{}")).unwrap();
    }
    assert_eq!(chat.ingest(&lines(1, 100)), 0, "a beginning that the head does not remember");
    assert_eq!(chat.ingest(&lines(1, 400)), 0);
}

#[test]
fn one_message_that_stands_somewhere_in_the_middle_is_kept() {
    let mut chat = Chat::new();
    assert_eq!(chat.ingest(&lines(1, 12)), 12);
    assert_eq!(chat.ingest(&lines(5, 5)), 1);
}

#[test]
fn an_append_at_an_outdated_revision_is_a_conflict() {
    let mut chat = Chat::new();
    chat.append(&lines(1, 2));
    let seen = chat.plan(&lines(1, 4)).get("revision").unwrap().as_u64().unwrap();
    chat.append(&lines(3, 3));
    let extra = format!("{{\"revision\":{seen}}}");
    assert_eq!(chat.append_with(&lines(3, 4), Some(&extra)), Err(ErrorCode::Conflict));
    assert_eq!(chat.ingest(&lines(1, 4)), 1);
}

#[test]
fn the_newest_user_message_stays_raw_however_often_is_compacted() {
    let mut chat = Chat::new();
    let filler = "and this is what the assistant did in a step of its own, at length. ".repeat(6);
    let step = |number: u32| said("assistant", &format!("step {number}: {filler}"));
    let mut messages: Vec<String> = (1..=4).map(step).collect();
    messages.push(said("user", "Fix the bug in parser.rs"));
    messages.extend((5..=34).map(step));
    chat.append(&messages);
    for (mode, target) in
        [(CompactionMode::Threshold, None), (CompactionMode::UntilUnder, Some(900))]
    {
        compact(&mut chat, mode, target);
        chat.store.begin_call();
        let options = AssembleOptions::default();
        let context = chat
            .engine
            .assemble(&mut chat.store, CHAT, 2_000, Dialect::Lcm, &options, chat.now)
            .unwrap();
        let raw = said("user", "Fix the bug in parser.rs");
        assert!(context.messages_json.contains(&raw), "{mode:?}: {}", context.messages_json);
    }
}

fn compact(chat: &mut Chat, mode: CompactionMode, target: Option<u32>) {
    let mut options = CompactionOptions { mode, target, ..CompactionOptions::default() };
    let mut budgeted = 100;
    loop {
        chat.store.begin_call();
        let plan = chat.engine.plan(&mut chat.store, CHAT, 2_000, &options, chat.now).unwrap();
        if plan.requests.is_empty() && plan.sweep.is_empty() {
            return;
        }
        for request in &plan.requests {
            let completion: Completion = chat.engine.complete_offline(request);
            assert_eq!(completion.finish, Finish::Stop);
            let answer = CompletionResult::Done(completion);
            let options = lcm_text::types::api::ApplyOptions::default();
            chat.store.begin_call();
            chat.engine
                .apply(&mut chat.store, CHAT, &request.id, &answer, &options, chat.now)
                .unwrap();
        }
        options.sweep = Some(plan.sweep);
        budgeted -= 1;
        assert!(budgeted > 0, "the sweep does not end");
    }
}

#[test]
fn a_changed_message_is_another_form_and_a_branch_is_new() {
    for (length, at) in [(12, 6), (12, 2), (300, 150), (300, 2)] {
        let mut chat = Chat::new();
        let file = lines(1, length);
        assert_eq!(chat.ingest(&file), length);
        let mut changed = file.clone();
        *changed.get_mut(at).unwrap() = said("user", "somebody wrote this into it afterwards");
        chat.plan_revision(&changed, u64::try_from(at).unwrap());
        let mut branch = file.get(..at).unwrap().to_vec();
        branch.extend(lines(1_000, 1_009));
        assert_eq!(chat.ingest(&branch), 10, "what is new in a branch of {length} at {at}");
        assert_eq!(chat.ingest(&branch), 0, "the branch, read again");
    }
}

#[test]
fn a_copy_in_which_a_secret_was_covered_is_the_same_message() {
    let secret = said("user", "the key for the staging host is sk-12345, try again");
    let covered = said("user", "the key for the staging host is [REDACTED], try again");
    let other = said("user", "the key for the other host is [REDACTED], try again");
    let with = |message: &String, to: u32| {
        let mut list = lines(1, 3);
        list.push(message.clone());
        list.extend(lines(4, to));
        list
    };
    for to in [5, 200] {
        let mut chat = Chat::new();
        assert_eq!(chat.ingest(&with(&secret, to)), to + 1);
        assert_eq!(chat.ingest(&with(&covered, to + 4)), 4, "the file, read again");
        assert_eq!(chat.ingest(&with(&covered, to + 4)), 0);
        chat.plan_revision(&with(&other, to + 4), 3);
    }
    let mut chat = Chat::new();
    assert_eq!(chat.append(&with(&secret, 5)), 6);
    assert_eq!(chat.append(&with(&covered, 8)), 3, "the newest messages, handed over again");
    assert_eq!(chat.append(&[lines(8, 8), vec![covered.clone()]].concat()), 1, "a new message");
    assert_eq!(chat.append(&[secret]), 1);
    assert_eq!(chat.append(&[covered]), 1, "alone it proves nothing");
}

#[test]
fn a_long_branch_that_is_read_again_adds_what_is_new() {
    let mut chat = Chat::new();
    assert_eq!(chat.ingest(&lines(1, 100)), 100);
    let mut branch = lines(1, 3);
    branch.extend(lines(1_001, 1_200));
    assert_eq!(chat.ingest(&branch), 200);
    assert_eq!(chat.ingest(&branch), 0);
    branch.extend(lines(1_201, 1_201));
    assert_eq!(chat.ingest(&branch), 1);
    let mut window = lines(1, 1);
    window.extend(lines(1_050, 1_201));
    assert_eq!(chat.ingest(&window), 0, "cut behind the first message");
    let mut first = lines(1, 100);
    first.extend(lines(101, 102));
    assert_eq!(chat.ingest(&first), 2, "the first way goes on");
    branch.extend(lines(1_202, 1_203));
    assert_eq!(chat.ingest(&branch), 2, "and the other again");
}

#[test]
fn a_mark_in_a_new_message_hides_nothing() {
    let with_id = |id: &str, key: &str| {
        let text = format!("the key for the staging host is {key}, try it again");
        serde_json::json!({"role": "user", "id": id, "content": text}).to_string()
    };
    let mut chat = Chat::new();
    let rest = lines(1, 2);
    let list = |message: String| [rest.clone(), vec![message]].concat();
    assert_eq!(chat.append(&list(with_id("a", "sk-12345"))), 3);
    assert_eq!(chat.append(&list(with_id("b", "[REDACTED]"))), 1, "its id says it is another");
    let log = |steps: &str| said("user", &format!("the log begins [REDACTED] {steps} [REDACTED]"));
    let mut chat = Chat::new();
    assert_eq!(chat.append(&list(log("all of the tests passed"))), 3);
    assert_eq!(chat.append(&list(log("one of the tests failed"))), 1, "other text between marks");
}

/// Stores messages as another writer of the same conversation.
fn others(chat: &mut Chat, from: u32, count: u32) {
    for batch in lines(from + 1, from + count).chunks(100) {
        chat.append_with(batch, Some("{}")).unwrap();
    }
}

#[test]
fn what_a_caller_saw_stored_is_never_missing() {
    let file = lines(1, 250);
    // Others store messages before the first append of the caller, before the second and after it.
    for before in [0, 1, 70, 200] {
        for between in [0, 1, 70, 200] {
            for after in [0, 1, 70, 200] {
                let mut chat = Chat::new();
                others(&mut chat, 1_000, before);
                chat.append_with(&lines(1, 100), Some("{}")).unwrap();
                others(&mut chat, 2_000, between);
                chat.append_with(&lines(101, 150), Some("{}")).unwrap();
                others(&mut chat, 3_000, after);
                let place = format!("{before}, {between}, {after}");
                let plan = chat.plan_with(&file, "\"confirmed\":150,").unwrap();
                let missing = serde_json::json!([{"index_first": 150, "index_last": 249}]);
                assert_eq!(plan.get("missing_ranges"), Some(&missing), "{place}: {plan}");
                assert_ne!(plan.get("by").unwrap(), "none", "{place}");
                let bounded = "\"bounded\":true,\"confirmed\":150,";
                let plan = chat.plan_with(&file, bounded).unwrap();
                let stored = before + between + after + 150;
                let to = 150 + (stored / 5).clamp(50, 100) - 1;
                let missing = serde_json::json!([{"index_first": 150, "index_last": to}]);
                assert_eq!(plan.get("missing_ranges"), Some(&missing), "{place}: {plan}");
                assert_eq!(plan.get("more").unwrap(), &serde_json::Value::Bool(to < 249));
                assert!(plan.get("blocked").unwrap().is_null(), "{place}: {plan}");
                let plan = chat.plan_with(&lines(1, 150), "\"confirmed\":150,").unwrap();
                assert_eq!(
                    plan.get("missing_ranges"),
                    Some(&serde_json::json!([])),
                    "{place}: {plan}"
                );
                assert_eq!(plan.pointer("/checkpoint/entries").unwrap(), 150, "{place}");
            }
        }
    }
}

#[test]
fn what_was_stored_behind_what_was_confirmed_is_recognised() {
    let file = lines(1, 250);
    for (before, after) in [(0, 0), (0, 10), (1, 0), (1, 10)] {
        let mut chat = Chat::new();
        others(&mut chat, 1_000, before);
        // The reply to the third append was lost.
        for (from, to) in [(1, 100), (101, 150), (151, 200)] {
            chat.append_with(&lines(from, to), Some("{}")).unwrap();
        }
        others(&mut chat, 2_000, after);
        let plan = chat.plan_with(&file, "\"confirmed\":150,").unwrap();
        let from =
            plan.pointer("/missing_ranges/0/index_first").and_then(serde_json::Value::as_u64);
        assert_eq!(from, Some(200), "{before}, {after}: {plan}");
    }
    let mut chat = Chat::new();
    others(&mut chat, 1_000, 1);
    chat.append_with(&lines(1, 100), Some("{}")).unwrap();
    others(&mut chat, 2_000, 10);
    chat.append_with(&lines(101, 200), Some("{}")).unwrap();
    others(&mut chat, 3_000, 10);
    let plan = chat.plan_with(&file, "\"confirmed\":100,").unwrap();
    let missing = serde_json::json!([{"index_first": 200, "index_last": 249}]);
    assert_eq!(plan.get("missing_ranges"), Some(&missing), "nothing is doubled: {plan}");
}

#[test]
fn a_replay_in_a_long_transcript_is_refused_as_a_whole() {
    let mut chat = Chat::new();
    chat.append(&lines(1, 100));
    let replayed = [lines(101, 250), lines(81, 100)].concat();
    let error =
        chat.plan_with(&replayed, "\"append_mode\":\"new\",\"refuse_replay\":true,").unwrap_err();
    assert_eq!(error.code, ErrorCode::Exists, "{error:?}");
    assert!(error.message.contains("likely replay"), "{error:?}");
    let plan = chat
        .plan_with(&lines(101, 250), "\"append_mode\":\"new\",\"refuse_replay\":true,")
        .unwrap();
    assert_eq!(
        plan.get("missing_ranges"),
        Some(&serde_json::json!([{"index_first": 0, "index_last": 149}]))
    );
    let plan = chat.plan_with(&lines(1, 150), "\"refuse_replay\":true,").unwrap();
    assert_eq!(
        plan.get("missing_ranges"),
        Some(&serde_json::json!([{"index_first": 100, "index_last": 149}]))
    );
    let plan = chat.plan_with(&lines(1, 3), "\"append_mode\":\"new\",").unwrap();
    assert_eq!(
        plan.get("missing_ranges"),
        Some(&serde_json::json!([{"index_first": 0, "index_last": 2}]))
    );
}

#[test]
fn what_is_skipped_does_not_hide_another_of_its_ids() {
    let mut chat = Chat::new();
    let failed = r#"{"role":"assistant","content":"","stop_reason":"error","id":"b"}"#;
    let again = r#"{"role":"assistant","content":"the real answer","id":"b"}"#;
    let file = [failed, again].map(String::from);
    let missing =
        |chat: &mut Chat| chat.plan_with(&file, "").unwrap().get("missing_ranges").cloned();
    assert_eq!(missing(&mut chat), Some(serde_json::json!([{"index_first": 1, "index_last": 1}])));
    chat.append(&file);
    assert_eq!(missing(&mut chat), Some(serde_json::json!([])));
    let chained = [
        r#"{"role":"user","content":"one","id":"a","event_key":"k"}"#,
        r#"{"role":"user","content":"two","id":"c","event_key":"k"}"#,
        r#"{"role":"user","content":"three","id":"c"}"#,
    ];
    let plan = Chat::new().plan_with(&chained.map(String::from), "").unwrap();
    let wanted = serde_json::json!([{"index_first": 0, "index_last": 2}]);
    assert_eq!(plan.get("missing_ranges"), Some(&wanted));
}

#[test]
fn more_confirmed_than_there_is_is_refused() {
    let mut chat = Chat::new();
    let file = lines(1, 3);
    chat.append(&file);
    for confirmed in ["4", "18446744073709551615", "-1", "\"3\""] {
        let error = chat.plan_with(&file, &format!("\"confirmed\":{confirmed},")).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput, "{confirmed}: {error:?}");
    }
    for confirmed in ["0", "3", "null"] {
        let plan = chat.plan_with(&file, &format!("\"confirmed\":{confirmed},")).unwrap();
        assert_eq!(plan.get("by").unwrap(), "list");
        assert_eq!(plan.get("missing_ranges"), Some(&serde_json::json!([])));
    }
}
