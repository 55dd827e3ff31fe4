#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Imports of exports: into an empty store, over an older copy, over the exported store itself; of
//! truncated and altered exports, and with a store that fails at every operation.

use lcm_core::{Error, ErrorCode};
use lcm_testing::{
    Fault, Host, Json,
    host::StoreMode,
    scripted_model::ScriptedModel,
    simulation::{random::Random, workload::Workload},
    vector_runner::{Answers, drive},
};

/// Bytes of one piece of a staged text.
const PIECE_BYTES: usize = 150_000;
/// Largest number of lines of one call.
const LINES_MAX: usize = 128;
/// Largest number of calls of one import, so that an endless import fails.
const CALLS_MAX: usize = 20_000;

fn host() -> Host {
    Host::new(None, StoreMode::Plain).unwrap()
}

/// Appends messages; those of a batch of an odd number without a timestamp have no time.
fn append_to(host: &mut Host, conversation: &str, messages: Vec<Json>) {
    let undated = if messages.len() % 2 == 1 { r#","extra_json":{"undated":true}"# } else { "" };
    let options = format!(r#"{{"append_mode":"new"{undated}}}"#);
    let args = Json::object([
        ("conversation", conversation.into()),
        ("options", Json::of(&options)),
        ("messages", Json::Array(messages)),
    ]);
    host.ask("ingest.append", &args).unwrap();
}

fn append(host: &mut Host, turns: u64, seed: u64) {
    let mut random = Random::new(seed);
    let mut workload = Workload::new(&format!("t{seed}"), true);
    for _ in 0..turns {
        let messages = workload.next(&mut random);
        let messages = messages.iter().map(|message| message.raw.as_str().into()).collect();
        append_to(host, "c", messages);
    }
}

/// Appends a message of over half a megabyte, whose text has many escapes in JSON.
fn append_large(host: &mut Host, letter: &str) {
    let said = format!("{letter} \\\"quoted\\\" gr\u{fc}n ").repeat(30_000);
    let text = format!(r#"{{"role":"user","content":"{said}"}}"#);
    let upload = lcm_testing::digest::text_sha256(&text);
    let mut offset = 0;
    while offset < text.len() {
        let end = text.floor_char_boundary(offset + PIECE_BYTES);
        let args = Json::object([
            ("upload", upload.as_str().into()),
            ("offset", u64::try_from(offset).unwrap().into()),
            ("text", text[offset..end].into()),
        ]);
        host.ask("ingest.stage", &args).unwrap();
        offset = end;
    }
    append_to(host, "c", vec![format!("@upload {upload}").into()]);
}

fn compact(host: &mut Host, budget: u64) {
    let args = Json::object([("budget", budget.into())]);
    drive(host, &args, Answers::Offline).unwrap().unwrap();
}

/// Returns a host with messages of every size, summaries of two depths, and a context of both.
fn filled() -> Host {
    let mut host = host();
    append(&mut host, 60, 3);
    append_large(&mut host, "a");
    compact(&mut host, 6_000);
    append(&mut host, 60, 4);
    append_large(&mut host, "a");
    append_large(&mut host, "b");
    append(&mut host, 10, 5);
    compact(&mut host, 6_000);
    append(&mut host, 2, 6);
    assert!(field(&status(&mut host), "summaries").elements().len() > 1, "no second depth");
    host
}

fn answer(host: &mut Host, name: &str, args: &Json) -> Result<Json, Error> {
    host.ask(name, args).map(|text| Json::of(text.as_str().unwrap()))
}

fn field(value: &Json, key: &str) -> Json {
    value.field(key).unwrap_or_else(|| panic!("no `{key}` in {value}")).clone()
}

fn number(value: &Json, key: &str) -> u64 {
    field(value, key).as_u64().unwrap()
}

fn status(host: &mut Host) -> Json {
    answer(host, "admin.status", &Json::of(r#"{"conversation":"c"}"#)).unwrap()
}

fn export(host: &mut Host, conversation: &str, bytes_max: u64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut cursor = Json::Null;
    loop {
        let args = Json::object([
            ("conversation", conversation.into()),
            ("cursor", cursor),
            ("bytes_max", bytes_max.into()),
        ]);
        let page = answer(host, "admin.export_page", &args).unwrap();
        let found = field(&page, "lines");
        assert!(!found.elements().is_empty(), "a page has at least one line");
        lines.extend(found.elements().iter().map(|line| line.as_str().unwrap().to_owned()));
        cursor = field(&page, "cursor");
        if cursor == Json::Null {
            return lines;
        }
    }
}

/// Imports the lines as a host does, and returns the last answer.
fn import(host: &mut Host, lines: &[String]) -> Result<Json, Error> {
    let mut at = 0;
    let mut cursor = Json::Null;
    for _ in 0..CALLS_MAX {
        let mut bytes = 0;
        let fits = |line: &&String| {
            bytes += line.len();
            bytes <= 768 << 10
        };
        let count = lines[at..].iter().take(LINES_MAX).take_while(fits).count();
        let page = &lines[at..(at + count.max(1)).min(lines.len())];
        let texts = page.iter().map(|line| line.as_str().into()).collect();
        let args = Json::object([("lines", Json::Array(texts)), ("cursor", cursor.clone())]);
        let result = answer(host, "admin.import_page", &args)?;
        cursor = field(&result, "cursor");
        if cursor == Json::Null {
            return Ok(result);
        }
        at += usize::try_from(number(&result, "consumed")).unwrap();
        if field(&result, "rewind") == Json::Bool(true) {
            at = 0;
        }
    }
    panic!("the import does not come to an end");
}

fn logical(host: &mut Host) -> Json {
    host.ask("admin.digest", &Json::of(r#"{"logical":true}"#)).unwrap()
}

fn check(host: &mut Host, conversation: &str) {
    let args = Json::object([("conversation", conversation.into())]);
    let report = answer(host, "admin.check", &args).unwrap();
    assert_eq!(field(&report, "ok"), Json::Bool(true), "{report}");
}

/// Returns the descriptions of all summaries, which must be equal in every copy of the store.
fn summaries(host: &mut Host) -> Json {
    let listing = r#"{"kind":"summaries","conversation":"c"}"#;
    let items = field(&answer(host, "admin.listing", &Json::of(listing)).unwrap(), "items");
    let ids = items.elements().iter().map(|item| field(item, "id"));
    let described = ids.map(|id| {
        let args = Json::object([("id", id)]);
        answer(host, "recall.describe", &args).unwrap()
    });
    Json::Array(described.collect())
}

fn refused(result: Result<Json, Error>, code: ErrorCode, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.contains(words), "{error}, not: {words}");
}

#[test]
fn an_empty_store_gets_equal_messages_summaries_and_context() {
    let mut original = filled();
    let lines = export(&mut original, "c", 1 << 20);
    for bytes_max in [1, 100_000] {
        assert_eq!(export(&mut original, "c", bytes_max), lines, "pages of {bytes_max} bytes");
    }
    for (mode, cold) in
        [(StoreMode::Plain, false), (StoreMode::Plain, true), (StoreMode::WouldBlock, false)]
    {
        let mut copy = Host::new(None, mode).unwrap();
        copy.cold = cold;
        let report = import(&mut copy, &lines).unwrap();
        assert_eq!(logical(&mut copy), logical(&mut original));
        assert_eq!(summaries(&mut copy), summaries(&mut original));
        check(&mut copy, "c");
        let all = number(&report, "messages");
        assert_eq!((number(&report, "ingested"), number(&report, "contexts")), (all, 1));
        assert_eq!(export(&mut copy, "c", 1 << 20), lines);

        let before = copy.store.digest();
        let again = import(&mut copy, &lines).unwrap();
        assert_eq!(copy.store.digest(), before, "a second time changes nothing");
        let stored = ["ingested", "summaries", "contexts"].map(|key| number(&again, key));
        assert_eq!(stored, [0, 0, 0]);
    }
}

#[test]
fn a_copy_goes_on_like_the_original() {
    let mut original = filled();
    let mut copy = host();
    import(&mut copy, &export(&mut original, "c", 1 << 20)).unwrap();
    for host in [&mut original, &mut copy] {
        append(host, 40, 9);
        compact(host, 5_000);
        check(host, "c");
    }
    assert_eq!(logical(&mut copy), logical(&mut original));
}

#[test]
fn an_older_copy_gets_what_is_missing_and_a_newer_one_nothing() {
    let mut original = host();
    append(&mut original, 60, 3);
    compact(&mut original, 6_000);
    let older = export(&mut original, "c", 1 << 20);
    append(&mut original, 60, 4);
    append_large(&mut original, "a");
    let appended = export(&mut original, "c", 1 << 20);
    compact(&mut original, 5_000);
    let newer = export(&mut original, "c", 1 << 20);

    let mut copy = host();
    for (lines, summaries) in [(&older, true), (&appended, false), (&newer, true)] {
        let report = import(&mut copy, lines).unwrap();
        assert_eq!(number(&report, "summaries") > 0, summaries, "{report}");
        check(&mut copy, "c");
    }
    assert_eq!(logical(&mut copy), logical(&mut original));
    let before = copy.store.digest();
    for lines in [&older, &appended, &newer] {
        import(&mut copy, lines).unwrap();
        assert_eq!(copy.store.digest(), before, "nothing of it is newer");
    }
}

#[test]
fn other_messages_and_other_summaries_are_refused_and_nothing_is_written() {
    let mut original = host();
    append(&mut original, 60, 3);
    let raw = export(&mut original, "c", 1 << 20);
    compact(&mut original, 3_000);
    let lines = export(&mut original, "c", 1 << 20);
    let mut other = host();
    append(&mut other, 70, 8);
    let before = other.store.digest();
    refused(import(&mut other, &lines), ErrorCode::Exists, "holds other messages");
    assert_eq!(other.store.digest(), before);
    let mut shorter = host();
    append(&mut shorter, 5, 8);
    let before = shorter.store.digest();
    refused(import(&mut shorter, &lines), ErrorCode::Exists, "holds other messages");
    assert_eq!(shorter.store.digest(), before);

    // The same leaves, condensed to a summary with other words.
    let scripted = |host: &mut Host, words: &str| {
        let completions = [
            r#"{"text":{"$repeat":{"text":"the call failed, an error; ","count":40}},"purpose":"leaf","times":0}"#
                .to_owned(),
            format!(r#"{{"text":"{words}","purpose":"condensed","times":0}}"#),
        ];
        let completions = completions.map(|text| Json::of(&text));
        host.model = ScriptedModel::new(&completions).unwrap();
        let args = Json::of(r#"{"budget":100000,"options":{"force":true}}"#);
        drive(host, &args, Answers::Scripted).unwrap().unwrap();
    };
    let config = r#"{"fresh_tail_messages_max":2,"fresh_tail_tokens_max":null,
        "leaf_chunk_tokens_max":1000,"condense_leaves_min":2,"condensed_tokens_target":512,
        "summary_prefix_tokens_target":600}"#;
    let mut condensed = Host::new(Some(Json::of(config)), StoreMode::Plain).unwrap();
    let mut otherwise = Host::new(Some(Json::of(config)), StoreMode::Plain).unwrap();
    for (host, words) in [(&mut condensed, "the call failed"), (&mut otherwise, "it was an error")]
    {
        import(host, &raw).unwrap();
        scripted(host, words);
    }
    let lines = export(&mut otherwise, "c", 1 << 20);
    let before = condensed.store.digest();
    refused(import(&mut condensed, &lines), ErrorCode::Exists, "into another summary");
    assert_eq!(condensed.store.digest(), before);
}

#[test]
fn what_is_no_whole_export_is_refused_by_its_line_and_nothing_is_written() {
    let mut original = filled();
    let lines = export(&mut original, "c", 1 << 20);
    let mut copy = host();
    let mut refuse = |lines: &[String], line: usize, words: &str| {
        let result = import(&mut copy, lines);
        refused(result, ErrorCode::InvalidInput, &format!("line {} {words}", line + 1));
        assert!(copy.store.entries().is_empty(), "something was written");
    };
    for line in (0..lines.len()).step_by(17).chain([lines.len() - 1]) {
        refuse(&lines[..line], line, "is missing");
        let mut without = lines.clone();
        without.remove(line);
        let words = if line + 1 == lines.len() { "is missing" } else { "was changed" };
        refuse(&without, line, words);
        let mut changed = lines.clone();
        let middle = changed[line].floor_char_boundary(changed[line].len() / 2);
        changed[line].insert(middle, ' ');
        refuse(&changed, line, "was changed");
        let mut twice = lines.clone();
        twice.insert(line, lines[line].clone());
        let words = if line + 1 == lines.len() { "follows the end" } else { "was changed" };
        refuse(&twice, line + 1, words);
    }
    refuse(&["{}".to_owned()], 0, "is not a line of an export");
    refuse(&[String::new()], 0, "is not a line of an export");
}

#[test]
fn after_any_failure_the_copy_is_sound_and_repeating_completes_it() {
    let mut original = host();
    append(&mut original, 45, 3);
    append_large(&mut original, "a");
    compact(&mut original, 3_000);
    let lines = export(&mut original, "c", 1 << 20);
    for fault in [Fault::Before, Fault::ReplyLost] {
        let mut at = 1;
        loop {
            let mut copy = host();
            copy.plan_fault(at, fault);
            let result = import(&mut copy, &lines);
            let fired = copy.fault_fired();
            copy.clear_fault();
            if !fired {
                result.unwrap();
                break;
            }
            assert_eq!(result.unwrap_err().code, ErrorCode::StoreUnavailable);
            if !copy.store.entries().is_empty() {
                check(&mut copy, "c");
            }
            copy.restart().unwrap();
            import(&mut copy, &lines).unwrap();
            assert_eq!(logical(&mut copy), logical(&mut original), "{fault:?} at {at}");
            check(&mut copy, "c");
            at += 1;
        }
        println!("{fault:?}: {} operations failed one by one", at - 1);
        assert!(at > 20, "too few operations");
    }
}

#[test]
fn all_conversations_go_together() {
    let mut original = filled();
    append_to(&mut original, "second", vec![r#"{"role":"user","content":"hello"}"#.into()]);
    append_to(&mut original, "third", vec![r#"{"role":"user","content":"bye"}"#.into()]);
    // A conversation with nothing but one staged piece of a text.
    let upload = lcm_testing::digest::text_sha256("text");
    let args = [
        ("conversation", "none".into()),
        ("upload", upload.as_str().into()),
        ("text", "te".into()),
    ];
    original.ask("ingest.stage", &Json::object(args)).unwrap();
    let lines = export(&mut original, "", 1 << 20);
    assert_eq!(export(&mut original, "", 1), lines);
    let mut copy = host();
    let report = import(&mut copy, &lines).unwrap();
    assert_eq!(number(&report, "conversations"), 4);
    assert_eq!(logical(&mut copy), logical(&mut original));
    for conversation in ["c", "second", "third"] {
        check(&mut copy, conversation);
    }
    let before = copy.store.digest();
    import(&mut copy, &lines).unwrap();
    assert_eq!(copy.store.digest(), before);

    // If one conversation is refused, none is imported.
    let mut other = host();
    append_to(&mut other, "third", vec![r#"{"role":"user","content":"something else"}"#.into()]);
    let before = other.store.digest();
    refused(import(&mut other, &lines), ErrorCode::Exists, "`third` holds other messages");
    assert_eq!(other.store.digest(), before);
}

#[test]
fn a_context_of_many_items_comes_back() {
    let config = r#"{"fresh_tail_messages_max":2,"leaf_chunk_tokens_max":60,
        "condense_summaries_min":1000,"condense_leaves_min":1000,
        "summary_prefix_tokens_target":1000000}"#;
    let mut original = Host::new(Some(Json::of(config)), StoreMode::Plain).unwrap();
    append(&mut original, 200, 3);
    let args = Json::of(r#"{"budget":200000,"options":{"force":true}}"#);
    // One sweep makes twelve summaries.
    for _ in 0..16 {
        drive(&mut original, &args, Answers::Offline).unwrap().unwrap();
    }
    let items = number(&field(&status(&mut original), "context"), "items");
    assert!(items > 140, "only {items} items");
    let lines = export(&mut original, "c", 1 << 20);
    let mut copy = host();
    import(&mut copy, &lines).unwrap();
    assert_eq!(logical(&mut copy), logical(&mut original));
    check(&mut copy, "c");
}

#[test]
fn an_export_does_not_mix_two_states() {
    let mut original = filled();
    let args = Json::of(r#"{"bytes_max":1}"#);
    let page = answer(&mut original, "admin.export_page", &args).unwrap();
    append(&mut original, 1, 7);
    let args = Json::object([("cursor", field(&page, "cursor"))]);
    refused(
        answer(&mut original, "admin.export_page", &args),
        ErrorCode::Conflict,
        "changed during",
    );
    let args = Json::of(r#"{"conversation":"unknown"}"#);
    refused(answer(&mut original, "admin.export_page", &args), ErrorCode::NotFound, "unknown");
}
