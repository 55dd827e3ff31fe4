//! Lists whose beginning the engine knows by its texts, so that it parses only the rest.

use lcm_text::{
    base::error::{Error, ErrorCode},
    types::api::{AppendMode, AppendOptions, Dialect, Receipt},
};
use serde_json::{Value, json};

use crate::host::{CHAT, Host, chat_of, long_message};

/// Appends texts with these further options.
fn append_texts(host: &mut Host, texts: &[String], extra: &Value) -> Result<Receipt, Error> {
    let options = AppendOptions { extra_json: Some(extra.to_string()), ..AppendOptions::default() };
    host.store.begin_call();
    let (store, now) = (&mut host.store, host.now);
    host.engine.append(store, CHAT, Dialect::OpenaiChat, texts, &options, now)
}

/// Appends a list only if the engine knows its beginning.
fn continue_list(host: &mut Host, list: &[Value]) -> Result<Receipt, Error> {
    let texts: Vec<String> = list.iter().map(Value::to_string).collect();
    append_texts(host, &texts, &json!({"continues": true, "seq_seen": host.seen}))
}

/// Returns whether the engine knows the beginning of a list; stores nothing.
fn is_known(host: &Host, list: &[Value]) -> bool {
    let mut copy = Host { seen: host.seen, now: host.now, ..Host::new() };
    copy.store = host.store.clone();
    match continue_list(&mut copy, list) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.code, ErrorCode::Conflict, "{error}");
            false
        }
    }
}

/// Only the rest of a list is parsed, so the whole list may have more messages and bytes than a
/// batch.
#[test]
fn a_list_of_any_length_goes_on() {
    let mut host = Host::new();
    let mut list: Vec<Value> = chat_of(120);
    list[7]["content"] = json!("x".repeat(400_000));
    list[110]["content"] = json!("y".repeat(400_000));
    assert_eq!(host.ingest(&list), 120);
    for turn in 0..3 {
        list.extend([long_message("user", 200 + turn), long_message("assistant", 300 + turn)]);
        let receipt = continue_list(&mut host, &list).expect("a list that goes on");
        assert_eq!((receipt.ingested, receipt.skipped), (2, 120 + 2 * turn as u32));
        assert_eq!(receipt.seq_seen, list.len() as u64);
        assert!(receipt.warnings.is_empty(), "{:?}", receipt.warnings);
        host.seen = receipt.seq_seen;
    }
    assert_eq!(host.stored(), list);
    host.ensure_sound();
}

/// The engine compares the whole list whenever the rest does not decide alone.
#[test]
fn other_lists_are_compared_whole() {
    let list = chat_of(28);
    let begin = || {
        let mut host = Host::new();
        host.append(Dialect::OpenaiChat, &list[..26]);
        host
    };
    let mut host = begin();
    assert!(is_known(&host, &list));
    assert!(!is_known(&host, &list[..26]), "a list without a rest");
    assert!(!is_known(&host, &list[1..]), "a list without its first message");
    assert!(!is_known(&Host::new(), &list), "no conversation");
    let mut edited = list.clone();
    edited[25]["content"] = json!("An answer that was edited.");
    assert!(!is_known(&host, &edited), "another text at the end of the beginning");
    let mut with_id = list.clone();
    with_id[27]["id"] = json!("m7");
    assert!(is_known(&host, &with_id), "a new id");

    // Another host stores a message, which the list lacks.
    host.append_seen(Dialect::OpenaiChat, &[long_message("user", 50)], None);
    assert!(!is_known(&host, &list), "a message of another host");

    let mut host = begin();
    host.append(Dialect::OpenaiChat, &list[..24]);
    assert!(!is_known(&host, &list), "messages that were set aside");
    host.append(Dialect::OpenaiChat, &list);
    assert_eq!(host.stored(), list, "they come back");

    let mut host = begin();
    let options = AppendOptions { append_mode: AppendMode::New, ..AppendOptions::default() };
    let text = [long_message("user", 60).to_string()];
    host.store.begin_call();
    let (store, now) = (&mut host.store, host.now);
    host.engine.append(store, CHAT, Dialect::OpenaiChat, &text, &options, now).expect("a message");
    assert!(!is_known(&host, &list), "a message in mode `new`");

    // The same texts in another dialect may say something else.
    let host = begin();
    let texts: Vec<String> = list.iter().map(Value::to_string).collect();
    let options = AppendOptions {
        extra_json: Some(json!({"continues": true}).to_string()),
        ..AppendOptions::default()
    };
    let mut copy = Host { now: host.now, store: host.store.clone(), ..Host::new() };
    copy.store.begin_call();
    let (store, now) = (&mut copy.store, copy.now);
    let other = copy.engine.append(store, CHAT, Dialect::Anthropic, &texts, &options, now);
    assert_eq!(other.expect_err("another dialect").code, ErrorCode::Conflict);
}

/// After an edit, what was set aside may come back with the rest, until so many messages follow the
/// edit that no list reaches back to it.
#[test]
fn a_list_is_compared_until_five_messages_follow_an_edit() {
    let list = chat_of(32);
    let mut host = Host::new();
    host.append(Dialect::OpenaiChat, &list[..26]);
    let mut edited = list[..24].to_vec();
    host.append(Dialect::OpenaiChat, &edited);
    for following in 1..=6 {
        edited.push(long_message("user", 100 + following));
        host.append(Dialect::OpenaiChat, &edited);
        let mut longer = edited.clone();
        longer.push(long_message("user", 200));
        assert_eq!(is_known(&host, &longer), following >= 5, "{following} messages follow");
    }
    assert_eq!(host.stored().len(), 32, "every message once");
}

/// A message with the id of a stored message is compared with it, wherever that message is.
#[test]
fn an_id_that_is_stored_is_compared() {
    let mut list = chat_of(8);
    for (number, message) in list.iter_mut().enumerate() {
        message["id"] = json!(if number % 2 == 0 { format!("m{number}") } else { "agent".into() });
    }
    let mut host = Host::new();
    host.append(Dialect::OpenaiChat, &list[..6]);
    assert!(!is_known(&host, &list), "`agent` is the id of every answer");
    assert_eq!(host.append(Dialect::OpenaiChat, &list).ingested, 2);
    assert_eq!(host.stored(), list);
}

/// A mark of the prompt cache moves to the newest message each turn, so the last message of the
/// list before has another text.
#[test]
fn a_mark_may_move_behind_a_known_beginning() {
    let chat = chat_of(60);
    let marked = |count: usize| {
        let mut list = chat[..count].to_vec();
        let text = list[count - 1]["content"].clone();
        list[count - 1]["content"] =
            json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
        list
    };
    let mut host = Host::new();
    host.append(Dialect::OpenaiChat, &marked(24));
    host.append(Dialect::OpenaiChat, &marked(26));
    for count in (28..=60).step_by(2) {
        let receipt = continue_list(&mut host, &marked(count)).expect("a list that goes on");
        assert_eq!((receipt.ingested, receipt.skipped), (2, count as u32 - 2));
        host.seen = receipt.seq_seen;
    }
    assert_eq!(host.stored().len(), 60);
    host.ensure_sound();
}

/// The option `system` may have a clock, and the slot keeps what the list and the option say.
#[test]
fn system_messages_are_as_of_a_list_that_is_compared() {
    let lead = json!({"role": "system", "content": "You help people with their tax returns."});
    let clock = |turn: usize| json!(format!("It is {turn} o'clock."));
    for (has_lead, has_option) in [(true, false), (false, true), (true, true), (false, false)] {
        let mut hosts = [Host::new(), Host::new()];
        for turn in 1..8 {
            let mut list = if has_lead { vec![lead.clone()] } else { Vec::new() };
            list.extend(chat_of(2 * turn));
            let given = if has_option || turn == 5 { clock(turn) } else { Value::Null };
            let mut found = Vec::new();
            for (spaces, host) in hosts.iter_mut().enumerate() {
                host.now += 1_000;
                // The spaces make other texts of the same messages in each turn.
                let spaces = " ".repeat(spaces * turn);
                let texts: Vec<String> =
                    list.iter().map(|message| format!("{spaces}{message}")).collect();
                let extra = json!({"seq_seen": host.seen, "system": given});
                let receipt = append_texts(host, &texts, &extra).expect("an append");
                host.seen = receipt.seq_seen;
                let context = host.assemble_chat(Dialect::OpenaiChat, 100_000);
                found.push((receipt.ingested, receipt.skipped, receipt.warnings, context));
            }
            assert_eq!(found[0], found[1], "lead {has_lead}, option {has_option}, turn {turn}");
        }
        hosts.iter_mut().for_each(Host::ensure_sound);
    }
}

/// A list in the middle of the conversation begins with a system message, which becomes a message
/// of the sequence. It stays one when the list is handed over again, and fills no slot.
#[test]
fn a_system_message_of_the_sequence_stays_one() {
    let lead = json!({"role": "system", "content": "You help people with their tax returns."});
    let other = json!({"role": "system", "content": "The office is closed from now on."});
    for count in [1, 3] {
        let mut host = Host::new();
        let mut list = vec![lead.clone()];
        list.extend(chat_of(6));
        host.append(Dialect::OpenaiChat, &list);
        let mut list = vec![other.clone()];
        list.extend((0..count).map(|number| long_message("user", 90 + number)));
        assert_eq!(host.append(Dialect::OpenaiChat, &list).ingested, 1 + count as u32);
        for number in 0..3 {
            assert_eq!(host.append(Dialect::OpenaiChat, &list).ingested, number.min(1));
            assert_eq!(host.append(Dialect::OpenaiChat, &list).ingested, 0);
            let context = host.assemble_chat(Dialect::OpenaiChat, 100_000);
            assert_eq!(context.iter().filter(|message| **message == other).count(), 1);
            list.push(long_message("assistant", 95 + number as usize));
        }
        let lines = host.export_chat();
        let versions = lines.iter().filter(|line| line.contains("tax returns"));
        assert_eq!(versions.count(), 1, "{count}");
        assert_eq!(lines.iter().filter(|line| line.contains("is closed")).count(), 1, "{count}");
        host.ensure_sound();
    }
}

/// A window may begin with a system message of the sequence, behind which messages are left out.
/// The prompt stays in the slot.
#[test]
fn a_window_that_begins_with_a_system_message_keeps_the_prompt() {
    let lead = json!({"role": "system", "content": "You help people with their tax returns."});
    let note = json!({"role": "system", "content": "The office is closed from now on."});
    let mut host = Host::new();
    let chat = chat_of(8);
    let list = [&[lead], &chat[..2], std::slice::from_ref(&note), &chat[2..6]].concat();
    host.append(Dialect::OpenaiChat, &list);
    let window = [&[note], &chat[4..7]].concat();
    assert_eq!(host.append(Dialect::OpenaiChat, &window).ingested, 1, "{:?}", host.warnings);
    let lines = host.export_chat();
    assert_eq!(lines.iter().filter(|line| line.contains("is closed")).count(), 1);
    host.ensure_sound();
}

/// An error names the message by its place in the whole list.
#[test]
fn an_error_after_a_known_beginning_has_the_index_in_the_list() {
    let mut host = Host::new();
    let list = chat_of(6);
    host.append(Dialect::OpenaiChat, &list);
    let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
    texts.push(long_message("user", 7).to_string());
    texts.push("{\"role\":\"nobody\"}".into());
    let refusal = append_texts(&mut host, &texts, &json!({})).expect_err("a wrong message");
    assert!(refusal.message.starts_with("messages[7]: "), "{refusal}");
    assert_eq!(host.stored(), list);
}

/// A call of unknown outcome is repeated with `repeat`, and stores nothing twice.
#[test]
fn a_repeated_call_is_recognised() {
    let mut host = Host::new();
    let list = chat_of(28);
    host.append(Dialect::OpenaiChat, &list[..26]);
    let mut short = list.clone();
    short[26]["content"] = json!("ok");
    short[27]["content"] = json!("ok");
    let first = continue_list(&mut host, &short).expect("a list that goes on");
    assert_eq!(first.ingested, 2);
    let texts: Vec<String> = short.iter().map(Value::to_string).collect();
    let extra = json!({"repeat": true, "seq_seen": host.seen});
    let again = append_texts(&mut host, &texts, &extra).expect("the same call");
    assert_eq!((again.ingested, again.skipped), (0, 28));
    assert_eq!(host.stored(), short);
}

/// A list that was stored behind the line in doubt is an accepted list with the newest message; the
/// longer list that begins like it is an older one, and nothing of it is new.
#[test]
fn a_short_list_in_doubt_does_not_hide_the_longer_one() {
    let list = [
        json!({"role": "user", "content": "please look at the migration of the orders table"}),
        json!({"role": "assistant", "content": "ok"}),
        json!({"role": "user", "content": "now write the test for the new column of it"}),
        json!({"role": "assistant", "content": "yes"}),
    ];
    for seen in [None, Some(4), Some(6)] {
        let mut host = Host::new();
        host.append_seen(Dialect::OpenaiChat, &list, None);
        host.append_seen(Dialect::OpenaiChat, &list[..2], None);
        assert_eq!(host.stored().len(), 6, "the common beginning is short");
        assert!(!is_known(&host, &list));
        assert_eq!(host.append_seen(Dialect::OpenaiChat, &list, seen).ingested, 0, "{seen:?}");
    }
}

/// System messages alone are messages of the sequence, but at the head of a longer list they fill
/// the slot.
#[test]
fn system_messages_alone_are_no_known_beginning() {
    let system = |text: &str| json!({"role": "system", "content": text});
    let planner = [
        system("You are the planner of the team."),
        long_message("user", 0),
        long_message("assistant", 1),
    ];
    let coder = [
        system("You are the coder of the team."),
        system("Use Rust for all programs."),
        long_message("user", 2),
    ];
    let mut host = Host::new();
    host.append(Dialect::OpenaiChat, &planner);
    host.append(Dialect::OpenaiChat, &coder[..2]);
    assert!(!is_known(&host, &coder));
    let receipt = host.append(Dialect::OpenaiChat, &coder);
    assert_eq!(receipt.ingested, 3, "the slot has both system messages");
}

/// A transcript of one message is stored once, however often it is handed over; an append of one
/// message is new, because people say the same again.
#[test]
fn a_transcript_of_one_message_is_stored_once() {
    let list = [json!({"role": "user", "content": "Please remember where the deploy key lives."})];
    let mut host = Host::new();
    assert_eq!([host.ingest(&list), host.ingest(&list), host.ingest(&list)], [1, 0, 0]);
    assert_eq!(host.append(Dialect::OpenaiChat, &list).ingested, 1);
    host.ensure_sound();
}
