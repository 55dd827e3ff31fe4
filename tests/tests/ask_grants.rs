#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Questions on a grant: a question reads only what the grant covers. The commit that opens the
//! question charges exactly the tokens that the model is shown.

use lcm_core::{Error, ErrorCode};
use lcm_testing::{
    Host, Json,
    host::StoreMode,
    scripted_model::ScriptedModel,
    vector_runner::{Answers, drive},
};
use lcm_text::base::tokens;

const NOW: u64 = 1_700_000_000_000;
const CONFIG: &str = r#"{"fresh_tail_messages_max":2,"fresh_tail_tokens_max":null,
    "leaf_chunk_tokens_max":500}"#;

/// Returns the note on the grant in a document: tokens, tokens left, and whether the grant cut the
/// evidence.
fn note(document: &Json) -> (u64, u64, bool) {
    let note = document.field("grant").unwrap();
    let is_cut = note.field("truncated") == Some(&Json::Bool(true));
    (note.number("tokens"), note.number("tokens_left"), is_cut)
}

/// Creates conversation `a` with many leaves, and `b` and `c` with messages alone, all about the
/// same subjects.
fn world(mode: StoreMode) -> Host {
    let mut host = Host::new(Some(Json::of(CONFIG)), mode).unwrap();
    for (conversation, count) in [("a", 60_u64), ("b", 20), ("c", 5)] {
        let message = |number: u64| {
            let filler = "and so on ".repeat(usize::try_from(number % 7).unwrap());
            format!(
                r#"{{"role":"user","content":"parcel {number} of {conversation} weighs {}kg {filler}"}}"#,
                number * 7
            )
        };
        let messages: Vec<String> = (0..count).map(message).collect();
        let args =
            format!(r#"{{"conversation":"{conversation}","messages":[{}]}}"#, messages.join(","));
        host.told("ingest.append", &args).unwrap();
    }
    let args = r#"{"conversation":"a","budget":100000,"options":{"force":true}}"#;
    let script = r#"[{"text":"parcels were weighed","purpose":"leaf","times":0},
        {"tokens":60,"purpose":"condensed","times":0}]"#;
    host.model = ScriptedModel::new(Json::of(script).elements()).unwrap();
    drive(&mut host, &Json::of(args), Answers::Scripted).unwrap().unwrap();
    host
}

/// Lists the leaves of `a`, oldest first, each with its id, first seq and last seq.
fn leaves(host: &mut Host) -> Vec<(String, u64, u64)> {
    let args = r#"{"kind":"summaries","conversation":"a"}"#;
    let page = host.told("admin.listing", args).unwrap();
    let items = page.field("items").unwrap().elements();
    let leaves = items.iter().filter(|item| item.text("kind") == "leaf");
    let row = |item: &Json| (item.text("id"), item.number("seq_first"), item.number("seq_last"));
    let mut leaves: Vec<_> = leaves.map(row).collect();
    leaves.sort_by_key(|leaf| leaf.1);
    leaves
}

fn made(host: &mut Host, limits: &str) -> String {
    let args = format!(r#"{{"conversation":"a","grant_json":{limits}}}"#);
    host.told("recall.grant", &args).unwrap().text("id")
}

fn left(host: &mut Host, id: &str) -> u64 {
    let args = r#"{"kind":"grants","conversation":"a"}"#;
    let page = host.told("admin.listing", args).unwrap();
    let grants = page.field("items").unwrap().elements();
    grants.iter().find(|grant| grant.text("id") == id).unwrap().number("tokens_left")
}

fn question(conversation: &str, more: &str, grant: &str, now: u64) -> String {
    format!(
        r#"{{"conversation":"{conversation}","question_json":{{"question":"How much does parcel 7 weigh?",
            "grant":"{grant}"{more}}},"now":{now}}}"#
    )
}

fn plan(host: &mut Host, more: &str, grant: &str) -> Result<Json, Error> {
    host.told("recall.ask_plan", &question("a", more, grant, NOW))
}

fn apply_at(host: &mut Host, asked: &Json, said: &str, now: u64) -> Result<Json, Error> {
    let continuation = asked.text("continuation");
    let args = format!(
        r#"{{"conversation":"a","continuation":"{continuation}","now":{now},
            "answers":[{{"done":{{"text":"{said}"}}}}]}}"#
    );
    host.told("recall.ask_apply", &args)
}

fn apply(host: &mut Host, asked: &Json, said: &str) -> Result<Json, Error> {
    apply_at(host, asked, said, NOW)
}

/// Returns the passages that the model is shown.
fn passages(asked: &Json) -> Vec<String> {
    let prompt = asked.field("requests").unwrap().element(0).unwrap().text("prompt");
    let (_, rest) = prompt.split_once("<source>\n").unwrap();
    let (material, _) = rest.split_once("\n</source>").unwrap();
    let blocks = material.split("\n\n[").enumerate();
    blocks.map(|(at, block)| if at == 0 { block.into() } else { format!("[{block}") }).collect()
}

fn counted(passages: &[String]) -> u64 {
    passages.iter().map(|passage| u64::from(tokens::estimate(passage))).sum()
}

fn id_of(passage: &str) -> &str {
    passage.trim_start_matches('[').split(' ').next().unwrap()
}

fn denial(answer: Result<Json, Error>) -> String {
    let error = answer.err().unwrap();
    assert_eq!(error.code, ErrorCode::Denied, "{error}");
    error.message.clone()
}

fn check(host: &mut Host) {
    let report = host.told("admin.check", r#"{"conversation":"a"}"#).unwrap();
    assert_eq!(report.field("ok"), Some(&Json::Bool(true)), "{report}");
}

#[test]
fn a_question_takes_exactly_what_the_model_is_shown() {
    for mode in [StoreMode::Plain, StoreMode::WouldBlock] {
        let mut host = world(mode);
        let grant = made(&mut host, r#"{"tokens_max":6000}"#);
        let asked = plan(&mut host, "", &grant).unwrap();
        let shown = passages(&asked);
        let tokens = counted(&shown);
        assert!(shown.len() > 4 && tokens > 100, "{shown:?}");
        assert_eq!(asked.number("source_tokens"), tokens);
        assert_eq!(note(&asked), (tokens, 6_000 - tokens, false));
        assert_eq!(left(&mut host, &grant), 6_000 - tokens);
        let said = format!("49kg [{}].", id_of(&shown[0]));
        let answered = apply(&mut host, &asked, &said).unwrap();
        assert_eq!(answered.text("status"), "answered");
        assert_eq!(note(&answered), (tokens, 6_000 - tokens, false));
        // A repeated answer returns the same outcome and charges nothing.
        assert_eq!(apply(&mut host, &asked, &said).unwrap(), answered);
        assert_eq!(left(&mut host, &grant), 6_000 - tokens);
        // Another question has its own charge.
        plan(&mut host, "", &grant).unwrap();
        assert_eq!(left(&mut host, &grant), 6_000 - 2 * tokens);
        check(&mut host);
    }
}

#[test]
fn a_search_that_the_model_asks_for_is_taken_too_and_an_answer_of_no_use_is_not() {
    let mut host = world(StoreMode::Plain);
    let grant = made(&mut host, r#"{"tokens_max":2000}"#);
    let first = plan(&mut host, r#","tokens_max":200"#, &grant).unwrap();
    let again = apply(&mut host, &first, "no id in it").unwrap();
    assert_eq!(passages(&again), passages(&first));
    assert_eq!(note(&again), note(&first));
    assert_eq!(left(&mut host, &grant), note(&first).1);
    apply(&mut host, &again, "once more").unwrap();
    let before = left(&mut host, &grant);
    let first = plan(&mut host, r#","tokens_max":200"#, &grant).unwrap();
    let second = apply(&mut host, &first, "NOT FOUND\\nSEARCH: parcel 41").unwrap();
    let tokens = counted(&passages(&second));
    assert!(tokens > counted(&passages(&first)), "{second}");
    assert_eq!(note(&second), (tokens, before - tokens, false));
    assert_eq!(left(&mut host, &grant), before - tokens);
    check(&mut host);
}

#[test]
fn what_is_not_covered_is_not_read() {
    let mut host = world(StoreMode::Plain);
    let (leaf, first, last) = leaves(&mut host)[1].clone();
    let grant = made(&mut host, &format!(r#"{{"summary_ids":["{leaf}"]}}"#));
    for more in ["", r#","all_conversations":true"#, r#","only":true"#] {
        let query = format!(r#"{more},"query":"parcel weighs","tokens_max":4000"#);
        let asked = plan(&mut host, &query, &grant).unwrap();
        let shown = passages(&asked);
        assert!(shown.len() > 3, "{shown:?}");
        for passage in &shown {
            let id = id_of(passage);
            let seq = u64::from_str_radix(&id[id.len() - 10..], 16).unwrap();
            assert!(id == leaf || (first..=last).contains(&seq), "{passage}");
        }
        apply(&mut host, &asked, "NOT FOUND").unwrap();
    }
    let other = leaves(&mut host)[0].0.clone();
    let named = |id: &str| format!(r#","summary_ids":["{id}"]"#);
    assert!(denial(plan(&mut host, &named(&other), &grant)).contains("does not cover that id"));
    let asked = plan(&mut host, &named(&leaf), &grant).unwrap();
    assert!(passages(&asked).iter().any(|passage| id_of(passage) == leaf), "{asked}");
    apply(&mut host, &asked, "NOT FOUND").unwrap();
    // The question reads both conversations of the grant, and no third conversation.
    let both = made(&mut host, r#"{"conversations":["a","b"]}"#);
    let query = r#","query":"parcel 4 weighs","all_conversations":true"#;
    let asked = plan(&mut host, query, &both).unwrap();
    let read: Vec<String> = asked
        .field("conversations")
        .unwrap()
        .elements()
        .iter()
        .map(|row| row.text("conversation"))
        .collect();
    assert!(read.contains(&"b".to_owned()) && !read.contains(&"c".to_owned()), "{read:?}");
}

#[test]
fn a_grant_that_does_not_stand_reads_nothing_and_writes_nothing() {
    let mut host = world(StoreMode::Plain);
    let short = made(&mut host, r#"{"ttl_ms":1000}"#);
    let revoked = made(&mut host, "{}");
    let args = format!(r#"{{"conversation":"a","grant":"{revoked}"}}"#);
    host.told("recall.revoke", &args).unwrap();
    let spent = made(&mut host, r#"{"tokens_max":30}"#);
    let leaf = leaves(&mut host)[0].0.clone();
    let describe =
        format!(r#"{{"conversation":"a","id":"{leaf}","options_json":"{{}}","grant":"{spent}"}}"#);
    while left(&mut host, &spent) > 0 {
        host.told("recall.describe", &describe).unwrap();
    }
    let before = host.store.digest();
    for (grant, conversation, now, said) in [
        (&short, "a", NOW + 1_000, "expired at"),
        (&revoked, "a", NOW, "was revoked"),
        (&spent, "a", NOW, "no tokens left"),
        (&short, "b", NOW, "no right to read"),
        (&short, "nowhere", NOW, "no right to read"),
        (&"grant_0123456789abcdef".to_owned(), "a", NOW, "no right to read"),
    ] {
        for function in ["recall.ask_plan", "recall.ask_run"] {
            let asked = host.told(function, &question(conversation, "", grant, now));
            assert!(denial(asked).contains(said), "{said}");
        }
    }
    assert_eq!(host.store.digest(), before);
}

#[test]
fn a_grant_that_ends_before_the_answer_ends_the_question() {
    let mut host = world(StoreMode::Plain);
    for is_revoked in [true, false] {
        let grant = made(&mut host, r#"{"tokens_max":1000,"ttl_ms":60000}"#);
        let asked = plan(&mut host, "", &grant).unwrap();
        let (tokens, rest, _) = note(&asked);
        // An open question blocks other questions, which charge nothing.
        let busy = plan(&mut host, "", &grant).unwrap();
        assert_eq!(busy.text("status"), "busy");
        assert_eq!(left(&mut host, &grant), rest);
        let mut now = NOW;
        if is_revoked {
            let args = format!(r#"{{"conversation":"a","grant":"{grant}"}}"#);
            host.told("recall.revoke", &args).unwrap();
        } else {
            now += 60_000;
        }
        let before = host.store.digest();
        let said = format!("49kg [{}].", id_of(&passages(&asked)[0]));
        denial(apply_at(&mut host, &asked, &said, now));
        assert_eq!(host.store.digest(), before);
        assert_eq!(left(&mut host, &grant), 1_000 - tokens);
        // A question that nobody may answer does not block others.
        let free = question("a", "", "", now).replace(r#""grant":"""#, r#""only":true"#);
        let asked = host.told("recall.ask_plan", &free).unwrap();
        assert_eq!(asked.text("status"), "asked");
        apply_at(&mut host, &asked, "NOT FOUND", now).unwrap();
    }
}

#[test]
fn a_question_is_cut_to_what_is_left() {
    let mut host = world(StoreMode::Plain);
    let grant = made(&mut host, r#"{"tokens_max":150}"#);
    let asked = plan(&mut host, "", &grant).unwrap();
    let (tokens, rest, is_cut) = note(&asked);
    assert!(is_cut && tokens <= 150 && tokens + rest == 150, "{asked}");
    assert_eq!(counted(&passages(&asked)), tokens);
    // The grant has no tokens left for a search, and the question ends in time.
    let ended = apply(&mut host, &asked, "NOT FOUND\\nSEARCH: parcel 41").unwrap();
    assert_eq!(ended.text("status"), "not-found", "{ended}");
    assert_eq!((left(&mut host, &grant), note(&ended)), (rest, (tokens, rest, true)));
}

#[test]
fn what_would_be_read_is_free_and_what_came_to_nothing_too() {
    let mut host = world(StoreMode::Plain);
    let grant = made(&mut host, "{}");
    let before = host.store.digest();
    let planned = plan(&mut host, r#","plan_only":true"#, &grant).unwrap();
    assert_eq!((planned.text("status"), note(&planned)), ("planned".into(), (0, 4_000, false)));
    let nothing = plan(&mut host, r#","query":"zeppelin""#, &grant).unwrap();
    assert_eq!(nothing.text("status"), "no-evidence");
    assert_eq!(note(&nothing), (0, 4_000, false));
    assert_eq!(host.store.digest(), before);
}

#[test]
fn a_failed_commit_takes_nothing_and_a_repeated_question_is_charged_once_it_is_asked_again() {
    for at in 1.. {
        let mut host = world(StoreMode::Plain);
        let grant = made(&mut host, "{}");
        host.plan_fault(at, lcm_testing::Fault::Before);
        let asked = plan(&mut host, "", &grant);
        if !host.fault_fired() {
            assert!(at > 5, "{at}");
            break;
        }
        host.clear_fault();
        assert_eq!(asked.unwrap_err().code, ErrorCode::StoreUnavailable);
        assert_eq!(left(&mut host, &grant), 4_000);
        assert_eq!(plan(&mut host, "", &grant).unwrap().text("status"), "asked");
    }
    // The commit succeeded and the answer was lost: the repeated question is charged again.
    let mut host = world(StoreMode::Plain);
    let grant = made(&mut host, r#"{"ttl_ms":600000,"tokens_max":9000}"#);
    let tokens = plan(&mut host, "", &grant).unwrap().number("source_tokens");
    let repeated = question("a", "", &grant, NOW + 150_000);
    let again = host.told("recall.ask_plan", &repeated).unwrap();
    assert_eq!(note(&again), (tokens, 9_000 - 2 * tokens, false));
    assert_eq!(left(&mut host, &grant), 9_000 - 2 * tokens);
}

#[test]
fn questions_that_meet_are_charged_for_what_is_handed_out() {
    let mut met = 0;
    for at in 1.. {
        let mut host = world(StoreMode::Plain);
        let grant = made(&mut host, "{}");
        let mine = Json::of(&question("a", "", &grant, NOW));
        let theirs = Json::of(&question("a", r#","tokens_max":100"#, &grant, NOW));
        let (answer, interleaved) =
            host.ask_interleaved("recall.ask_plan", &mine, at, ("recall.ask_plan", &theirs));
        if !interleaved {
            break;
        }
        let spent = 4_000 - left(&mut host, &grant);
        assert!(spent > 0);
        match answer {
            // The other question was first; this one fails at its read or at its commit.
            Ok(busy) => {
                let busy = Json::of(busy.as_str().unwrap());
                assert_eq!(busy.text("status"), "busy", "{at}");
            }
            Err(error) => {
                assert_eq!(error.code, ErrorCode::Conflict, "{at}");
                met += 1;
            }
        }
        assert!(spent <= 100, "{at}: {spent}");
        check(&mut host);
    }
    assert!(met > 0);
}

#[test]
fn a_model_in_the_call_is_paid_in_its_one_commit() {
    let mut host = world(StoreMode::Plain);
    let grant = made(&mut host, "{}");
    let script = r#"[{"text":"NOT FOUND","purpose":"ask","times":0}]"#;
    host.model = ScriptedModel::new(Json::of(script).elements()).unwrap();
    let ended = host.told("recall.ask_run", &question("a", "", &grant, NOW)).unwrap();
    assert_eq!(ended.text("status"), "not-found");
    let tokens = ended.number("source_tokens");
    assert!(tokens > 100);
    assert_eq!(note(&ended), (tokens, 4_000 - tokens, false));
    assert_eq!(left(&mut host, &grant), 4_000 - tokens);
    check(&mut host);
}

#[test]
fn sub_agents_are_offered_no_question() {
    let mut host = world(StoreMode::Plain);
    let grant = made(&mut host, "{}");
    let args = format!(
        r#"{{"conversation":"a","name":"lcm_expand_query","arguments_json":{{"prompt":"x"}},
            "grant":"{grant}"}}"#
    );
    let outcome = host.told("tools.call", &args).unwrap();
    assert!(outcome.field("done").unwrap().text("text").contains("for the main agent"));
    let offered = host.told("tools.definitions", &format!(r#"{{"grant":"{grant}"}}"#));
    assert!(!offered.unwrap().to_string().contains("lcm_expand_query"));
}
