//! Many other forms of messages: each is stored once, and none shortens the fresh tail.

use lcm_text::types::api::Dialect;
use serde_json::{Value, json};

use crate::host::{Host, call_messages, chat_of, long_message, text_of};

/// Calls and results, numbered from 0.
fn build_calls(count: usize) -> Vec<Value> {
    let step = |number: usize| {
        let id = format!("call_abcdefghij{number:04}");
        let text = format!("The result {number} of the build is in this file.");
        [
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id,
                "type": "function", "function": {"name": "read", "arguments": "{}"}}]}),
            json!({"role": "tool", "tool_call_id": id, "content": text}),
        ]
    };
    (0..count).flat_map(step).collect()
}

/// The host replaces 300 outputs by stubs; each output and each stub is stored once.
#[test]
fn every_form_is_stored_once_however_many_there_are() {
    let mut host = Host::new();
    let mut list = vec![long_message("user", 0)];
    list.extend(build_calls(300));
    assert_eq!(host.ingest(&list), 601);
    for (index, message) in list.iter_mut().enumerate().filter(|it| it.1["role"] == "tool") {
        message["content"] = json!(format!("[output {index} was cleared]"));
    }
    let mut stored = 601;
    for turn in 1..4 {
        list.push(long_message("user", turn));
        stored += if turn == 1 { 301 } else { 1 };
        host.ingest(&list);
        assert_eq!(host.stored().len(), stored, "{turn} {:?}", host.warnings.last());
    }
    let mut copy = host.copy_chat();
    list.push(long_message("user", 9));
    copy.ingest(&list);
    assert_eq!(copy.stored().len(), stored + 1);
    host.ensure_sound();
}

fn compact_and_check(host: &mut Host) -> Vec<String> {
    host.compact_chat(900);
    host.ensure_sound();
    host.context_texts()
}

/// Messages that leave the line do not end the fresh tail: after a compaction as many messages
/// stay raw as without them.
#[test]
fn withdrawn_messages_do_not_end_the_tail() {
    let words = "and the words of it are many. ".repeat(4);
    let long = |said: &Value| {
        let text = format!("{} {words}", text_of(said));
        json!({"role": said["role"], "content": text})
    };
    let chat: Vec<Value> = chat_of(33).iter().map(long).collect();
    let raw = |context: &[String]| {
        chat.iter().rev().take_while(|said| context.contains(&text_of(said))).count()
    };
    let mut plain = Host::new();
    plain.append(Dialect::OpenaiChat, &chat);
    let wanted = raw(&compact_and_check(&mut plain));
    assert!(wanted > 4, "{wanted}");
    let remind = |message: &Value| {
        let text = format!("{} <reminder>", text_of(message));
        json!({"role": message["role"], "content": text})
    };
    for what in ["reminder", "half", "edit", "undo", "reminders"] {
        let mut host = Host::new();
        let mut first = chat.clone();
        match what {
            "reminder" => first[30] = remind(&first[30]),
            "half" => first[32] = json!({"role": "user", "content": text_of(&first[32])}),
            "edit" => first[32] = long_message("user", 500),
            "undo" => first.extend([long_message("assistant", 500), long_message("user", 501)]),
            _ => {
                for count in (3..=33).step_by(2) {
                    let mut list = chat[..count].to_vec();
                    list[count - 1] = remind(&list[count - 1]);
                    host.append(Dialect::OpenaiChat, &list);
                }
                first = chat[..33].to_vec();
            }
        }
        host.append(Dialect::OpenaiChat, &first);
        host.append(Dialect::OpenaiChat, &chat);
        let context = compact_and_check(&mut host);
        let kept = chat.iter().rev().take(wanted).filter(|said| {
            context.contains(&text_of(said)) || context.contains(&text_of(&remind(said)))
        });
        assert_eq!(kept.count(), wanted, "{what} {:?}", host.warnings);
    }
}

/// Returns the leaves of a conversation from an export.
fn list_leaves(host: &mut Host) -> Vec<Value> {
    let lines = host.export_chat();
    let lines = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line["summary"].clone()).filter(|line| line["depth"] == 0).collect()
}

/// A host adds a reminder in each turn, edits every tenth question, and replaces old outputs by
/// stubs. The conversation has as many leaves as without this, of the same messages, and no leaf
/// has the text of a withdrawn message.
#[test]
fn withdrawn_messages_end_no_leaf() {
    let words = "and the words of it are many. ".repeat(12);
    let say = |role: &str, number: usize| {
        let text = format!("{} {words}", text_of(&long_message(role, number)));
        json!({"role": role, "content": text})
    };
    let play = |what: &str| {
        let (mut host, mut list) = (Host::new(), Vec::new());
        for turn in 0..120 {
            list.push(say("user", 2 * turn));
            let mut handed = list.clone();
            let newest = handed.last_mut().unwrap();
            match what {
                "reminder" => {
                    *newest = json!({"role": "user",
                        "content": format!("{} <reminder>{turn}</reminder>", text_of(newest))});
                }
                "edit" if turn % 10 == 5 => *newest = say("user", 50_000 + turn),
                _ => {}
            }
            host.ingest(&handed);
            list.push(say("assistant", 2 * turn + 1));
            host.ingest(&list);
            host.compact_chat(2_000);
        }
        host.ensure_sound();
        host
    };
    let mut plain = play("plain");
    let wanted = list_leaves(&mut plain).len();
    assert!(wanted > 10, "{wanted}");
    for what in ["reminder", "edit"] {
        let mut host = play(what);
        let leaves = list_leaves(&mut host);
        assert!(leaves.len() <= wanted + wanted / 10, "{what}: {} of {wanted}", leaves.len());
        assert!(leaves.iter().any(|leaf| leaf["gaps"].is_array()), "{what}: {leaves:?}");
        for leaf in &leaves {
            assert!(!leaf["text"].as_str().unwrap().contains("number 500"), "{what}: {leaf}");
        }
        let mut copy = host.copy_chat();
        assert_eq!(copy.digest(), host.digest(), "{what}");
        copy.ensure_sound();
    }
}

/// A host without ids that adds a reminder to the newest question from the first turn on, with its
/// whole list or a window of it: each question is stored once, and once more without its reminder.
#[test]
fn reminders_from_the_first_question_on_double_nothing() {
    let remind = |message: &Value| {
        let text = format!("{} <reminder>\nBe brief.\n</reminder>", text_of(message));
        json!({"role": message["role"], "content": text})
    };
    for window in [usize::MAX, 6, 7, 13, 20] {
        let (mut host, mut list) = (Host::new(), Vec::new());
        for turn in 0..30 {
            list.push(long_message("user", 2 * turn));
            for answers in 0..2 {
                if answers == 1 {
                    list.push(long_message("assistant", 2 * turn + 1));
                }
                let mut handed = list[list.len().saturating_sub(window)..].to_vec();
                if answers == 0 {
                    let newest = handed.last_mut().unwrap();
                    *newest = remind(newest);
                }
                host.append(Dialect::OpenaiChat, &handed);
            }
        }
        let wanted: Vec<String> = list
            .iter()
            .map(|said| if said["role"] == "user" { text_of(&remind(said)) } else { text_of(said) })
            .collect();
        assert_eq!(host.context_texts(), wanted, "{window} {:?}", host.warnings);
        assert_eq!(host.stored().len(), 90, "{window} {:?}", host.warnings);
        host.ensure_sound();
    }
}

/// An answer that is only a reference to audio or to an item is regenerated, as another reference.
#[test]
fn another_reference_is_another_answer() {
    let ways = [
        (
            Dialect::OpenaiChat,
            json!({"role": "assistant", "content": null, "audio": {"id": "a_1"}}),
        ),
        (Dialect::OpenaiResponses, json!({"type": "item_reference", "id": "msg_AAAA1234567890"})),
    ];
    for (dialect, first) in ways {
        let mut host = Host::new();
        let mut list = chat_of(5);
        list.push(first.clone());
        host.append(dialect, &list);
        let second = first.to_string().replace("a_1", "a_2").replace("AAAA", "BBBB");
        list[5] = serde_json::from_str(&second).unwrap();
        list.push(long_message("user", 6));
        host.append(dialect, &list);
        let stored = host.stored();
        assert!(stored.contains(&list[5]), "{stored:?} {:?}", host.warnings);
        assert_eq!(host.assemble_chat(dialect, 1_000_000), list);
    }
}

/// Call ids only count calls, old results become stubs, and a short text comes again after each
/// result. The list shares with the line all but the results.
#[test]
fn stubs_of_counted_calls_double_nothing() {
    for (keeps, is_planned) in [(1, false), (2, false), (2, true)] {
        let mut host = Host::new();
        let mut list = vec![long_message("user", 0)];
        for turn in 0..8 {
            list.extend(call_messages(turn, &format!("call_{turn}")));
            list.push(json!({"role": "assistant", "content": "Done."}));
            let results: Vec<usize> =
                (0..list.len()).filter(|index| list[*index]["role"] == "tool").collect();
            for index in &results[..results.len().saturating_sub(keeps)] {
                list[*index]["content"] = json!("[removed]");
            }
            match is_planned {
                true => host.ingest(&list),
                false => host.append(Dialect::OpenaiChat, &list).ingested as usize,
            };
        }
        assert_eq!(host.stored().len(), 25 + 8 - keeps, "{:?}", host.warnings);
        assert_eq!(host.context_texts().len(), 25);
        host.ensure_sound();
    }
}

/// A list goes another way directly behind a stub: the stub stands for its result, which stays.
#[test]
fn a_branch_begins_behind_a_stub() {
    let mut host = Host::new();
    let mut chat = [chat_of(3), call_messages(1, "call_0").to_vec(), chat_of(6)[4..].to_vec()];
    host.append(Dialect::OpenaiChat, &chat.concat());
    chat[1][1]["content"] = json!("[removed]");
    chat[2].push(long_message("user", 20));
    host.append(Dialect::OpenaiChat, &chat.concat());
    chat[2] = vec![long_message("assistant", 30)];
    assert_eq!(host.append(Dialect::OpenaiChat, &chat.concat()).ingested, 1, "{:?}", host.warnings);
    let texts = host.context_texts();
    assert_eq!(texts.len(), 6, "{texts:?}");
    assert!(texts.contains(&text_of(&call_messages(1, "call_0")[1])), "{texts:?}");
    host.ensure_sound();
}

/// A short list says again how the conversation began, with a shorter result of a counted call. It
/// is not the beginning, in which the result became a stub.
#[test]
fn a_short_list_with_another_result_is_new() {
    let mut host = Host::new();
    let says = |role: &str, text: &str| json!({"role": role, "content": text});
    let turn = |result: &str| {
        let mut messages = call_messages(1, "call_0");
        messages[1]["content"] = json!(result);
        let [call, result] = messages;
        vec![says("user", "hi"), call, result, says("assistant", "ok")]
    };
    host.append(Dialect::OpenaiChat, &[turn("a.txt and b.txt"), chat_of(4)].concat());
    let again = turn("a.txt");
    assert_eq!(host.append(Dialect::OpenaiChat, &again).ingested, 4, "{:?}", host.warnings);
    assert!(host.context_texts().contains(&"a.txt".to_owned()));
    host.ensure_sound();
}
