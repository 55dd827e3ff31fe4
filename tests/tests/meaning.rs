#![expect(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Lists as hosts write them: a host appends its whole list after every turn, and writes the old
//! messages differently each time.
//!
//! Each message is stored once. Messages that a list no longer has are set aside: they stay stored
//! and are in no context. The *line* is the stored messages with which a list is compared: all but
//! those set aside and other forms of messages. A list is *in doubt* if the engine is not certain
//! that it may set messages aside for it.

#[path = "meaning/beginnings.rs"]
mod beginnings;
#[path = "meaning/copies.rs"]
mod copies;
#[path = "meaning/doubts.rs"]
mod doubts;
#[path = "meaning/forms.rs"]
mod forms;
#[path = "meaning/growth.rs"]
mod growth;
#[path = "meaning/host.rs"]
mod host;
#[path = "meaning/ids.rs"]
mod ids;
#[path = "meaning/reach.rs"]
mod reach;
#[path = "meaning/sessions.rs"]
mod sessions;
#[path = "meaning/steps.rs"]
mod steps;

use host::{CHAT, Host, long_message, poll_messages, text_of};
use lcm_text::types::api::{AppendMode, AppendOptions, Dialect};
use serde_json::{Value, json};

const TURNS: usize = 20;

/// The messages of one turn in the dialect of Chat: a question, a call, its result, an answer.
fn chat_turn(turn: usize) -> Vec<Value> {
    let arguments = json!({"path": format!("src/part{turn}.rs"), "line": turn}).to_string();
    vec![
        json!({"role": "user", "content": format!("Please read part {turn} of the program.")}),
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("call_{turn}"),
            "type": "function", "function": {"name": "read", "arguments": arguments}}]}),
        json!({"role": "tool", "tool_call_id": format!("call_{turn}"),
            "content": format!("pub fn part{turn}() {{ /* a long body of the function */ }}")}),
        json!({"role": "assistant", "content": format!("Part {turn} defines one function.")}),
    ]
}

/// Writes the message at `index` of a list of `count` messages, as it is handed over in a turn.
type Form = fn(&mut Value, turn: usize, index: usize, count: usize);

/// Changes that hosts make to messages between two turns.
const FORMS: [(&str, Form); 8] = [
    ("nulls of a dumped object", |message, turn, _, _| {
        if turn % 2 == 1 {
            message["name"] = Value::Null;
            message["refusal"] = Value::Null;
        }
    }),
    ("text as a part", |message, turn, _, _| {
        if turn % 2 == 1 && message["content"].is_string() {
            message["content"] = json!([{"type": "text", "text": text_of(message)}]);
        }
    }),
    ("an id that is added later", |message, _, index, count| {
        if index + 8 < count {
            message["id"] = json!(format!("m{index}"));
        }
    }),
    ("a mark that moves", |message, _, index, count| {
        if index + 3 > count && message["content"].is_string() {
            message["content"] = json!([{"type": "text", "text": text_of(message),
                "cache_control": {"type": "ephemeral"}}]);
        }
    }),
    ("white space at the end", |message, turn, _, _| {
        if turn % 2 == 1 && message["content"].is_string() {
            message["content"] = json!(format!("{}\n", text_of(message)));
        }
    }),
    ("arguments in another order", |message, turn, index, _| {
        if turn % 2 == 1 && message["tool_calls"].is_array() {
            let of = index / 4;
            let arguments = format!("{{ \"line\": {of}, \"path\": \"src/part{of}.rs\" }}");
            message["tool_calls"][0]["function"]["arguments"] = json!(arguments);
        }
    }),
    ("an empty text for null", |message, turn, _, _| {
        if turn % 2 == 1 && message["content"].is_null() {
            message["content"] = json!("");
        }
    }),
    ("stubs for old outputs", |message, _, index, count| {
        if message["role"] == "tool" && index + 9 < count {
            message["content"] = json!("[old output removed]");
        }
    }),
];

/// Each message is stored once, and the context holds each once.
#[test]
fn every_form_of_a_list_is_recognised() {
    for (name, form) in FORMS {
        let mut host = Host::new();
        let mut said = Vec::new();
        for turn in 0..TURNS {
            said.extend(chat_turn(turn));
            let mut list = said.clone();
            let count = list.len();
            for (index, message) in list.iter_mut().enumerate() {
                form(message, turn, index, count);
            }
            host.append(Dialect::OpenaiChat, &list);
        }
        let stored = host.stored();
        let stubs = stored.iter().filter(|one| one["content"] == "[old output removed]").count();
        assert_eq!(stored.len() - stubs, said.len(), "{name}: {:?}", host.warnings);
        assert!(stubs <= TURNS, "{name}: {stubs} stubs");
        let context = host.context_texts();
        assert_eq!(context.len(), said.len(), "{name}: {:?} {context:#?}", host.warnings);
        host.ensure_sound();
    }
}

/// A list in another dialect, which divides its content into other messages, is the same list.
#[test]
fn a_list_in_another_dialect_is_recognised() {
    let mut host = Host::new();
    let mut chat = Vec::new();
    for turn in 0..TURNS {
        chat.extend(chat_turn(turn));
        host.append(Dialect::OpenaiChat, &chat);
        let anthropic: Vec<Value> = chat
            .iter()
            .map(|message| {
                let id = message["tool_calls"][0]["id"].clone();
                let call = &message["tool_calls"][0]["function"];
                match message["role"].as_str() {
                    Some("tool") => json!({"role": "user", "content": [{"type": "tool_result",
                        "tool_use_id": message["tool_call_id"], "content": message["content"]}]}),
                    Some("assistant") if !id.is_null() => {
                        let input: Value =
                            serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
                        json!({"role": "assistant", "content": [{"type": "tool_use", "id": id,
                            "name": call["name"], "input": input}]})
                    }
                    _ => message.clone(),
                }
            })
            .collect();
        assert_eq!(host.append(Dialect::Anthropic, &anthropic).ingested, 0, "turn {turn}");
    }
    assert_eq!(host.stored().len(), 4 * TURNS);
}

/// Parallel results are one message of Anthropic and several of Chat.
#[test]
fn borders_of_messages_do_not_count() {
    let question = json!({"role": "user", "content": "Read both parts of the program, please."});
    let call =
        |id: &str| json!({"type": "tool_use", "id": id, "name": "read", "input": {"part": id}});
    let result = |id: &str| {
        let text = format!("part {id}");
        json!({"type": "tool_result", "tool_use_id": id, "content": text})
    };
    let apart = [
        question.clone(),
        json!({"role": "assistant", "content": [call("a"), call("b")]}),
        json!({"role": "user", "content": [result("a")]}),
        json!({"role": "user", "content": [result("b")]}),
    ];
    let joined = [
        question,
        apart[1].clone(),
        json!({"role": "user", "content": [result("a"), result("b")]}),
        json!({"role": "assistant", "content": "Both parts define one function each."}),
    ];
    let mut host = Host::new();
    host.append(Dialect::Anthropic, &apart);
    assert_eq!(host.append(Dialect::Anthropic, &joined).ingested, 1);
    host.ensure_sound();
}

/// An edited question and a regenerated answer set aside the messages that they replace. A list
/// that goes back restores these messages, and no message is stored twice.
#[test]
fn a_branch_sets_aside_and_comes_back() {
    let mut host = Host::new();
    let chat: Vec<Value> =
        (0..6).map(|number| long_message(["user", "assistant"][number % 2], number)).collect();
    host.append(Dialect::OpenaiChat, &chat);
    let mut edited = chat[..4].to_vec();
    edited.push(json!({"role": "user", "content": "Another question in place of the third one."}));
    let receipt = host.append(Dialect::OpenaiChat, &edited);
    assert_eq!(receipt.ingested, 1, "{:?}", receipt.warnings);
    assert!(receipt.warnings[0].starts_with("set-aside: "), "{:?}", receipt.warnings);
    assert_eq!(host.context_texts(), edited.iter().map(text_of).collect::<Vec<_>>());
    edited.push(long_message("assistant", 7));
    assert_eq!(host.append(Dialect::OpenaiChat, &edited).ingested, 1);
    host.ensure_sound();
    // The host goes back to messages that were set aside.
    let mut back = chat.clone();
    back.push(long_message("user", 8));
    let receipt = host.append(Dialect::OpenaiChat, &back);
    assert_eq!(receipt.ingested, 1, "{:?}", receipt.warnings);
    assert_eq!(host.context_texts(), back.iter().map(text_of).collect::<Vec<_>>());
    assert_eq!(host.stored().len(), 9);
    host.ensure_sound();
    // And once more to the other branch, without anything new.
    assert_eq!(host.append(Dialect::OpenaiChat, &edited).ingested, 0);
    assert_eq!(host.context_texts(), edited.iter().map(text_of).collect::<Vec<_>>());
    host.ensure_sound();
}

/// Messages that the caller did not see are never set aside, and no list in doubt sets any aside.
#[test]
fn nothing_is_set_aside_in_doubt() {
    let mut host = Host::new();
    let chat: Vec<Value> =
        (0..4).map(|number| long_message(["user", "assistant"][number % 2], number)).collect();
    let seen = host.append(Dialect::OpenaiChat, &chat[..2]).seq_seen;
    host.append(Dialect::OpenaiChat, &chat);
    let other = [chat[0].clone(), chat[1].clone(), long_message("user", 9)];
    for (seen, why) in [(None, "seq_seen"), (Some(seen), "others stored messages")] {
        let mut list = other.to_vec();
        list.push(
            json!({"role": "assistant", "content": format!("An answer for {why}, in full.")}),
        );
        let receipt = host.append_seen(Dialect::OpenaiChat, &list, seen);
        let warning = receipt.warnings.first().cloned().unwrap_or_default();
        assert!(warning.starts_with("branch-in-doubt: ") && warning.contains(why), "{warning}");
    }
    assert_eq!(host.context_texts().len(), host.stored().len());
    let short = |text: &str| json!({"role": "user", "content": text});
    let mut host = Host::new();
    host.append(Dialect::OpenaiChat, &[short("hi"), short("hello")]);
    let receipt = host.append(Dialect::OpenaiChat, &[short("hi"), long_message("assistant", 1)]);
    assert_eq!(receipt.ingested, 2, "{:?}", receipt.warnings);
    assert_eq!(host.context_texts().len(), 4);
}

/// A list of one message is new. A longer list of old messages is not, and a warning says so.
#[test]
fn short_lists_are_told_apart() {
    let mut host = Host::new();
    let poll = long_message("user", 1);
    for count in 1..=3 {
        host.append(Dialect::OpenaiChat, std::slice::from_ref(&poll));
        assert_eq!(host.stored().len(), count);
    }
    let chat: Vec<Value> = (2..8).map(|number| long_message("user", number)).collect();
    host.append(Dialect::OpenaiChat, &chat);
    let receipt = host.append(Dialect::OpenaiChat, &chat[3..]);
    assert_eq!(receipt.ingested, 0);
    assert!(receipt.warnings[0].starts_with("nothing-new: "), "{:?}", receipt.warnings);
    // The newest messages, said again behind something new.
    let again = [long_message("user", 20), chat[4].clone(), chat[5].clone()];
    assert_eq!(host.append(Dialect::OpenaiChat, &again).ingested, 3);
}

/// Calls with different ids are different calls, in the end of a list and in whole lists.
#[test]
fn polls_are_never_taken_for_one() {
    let mut host = Host::new();
    let polls: Vec<Value> = (0..12).flat_map(poll_messages).collect();
    for window in polls.chunks(4) {
        assert_eq!(host.append(Dialect::OpenaiChat, window).ingested, 4, "{:?}", host.warnings);
    }
    let mut whole = Host::new();
    for count in [2, 6, 24] {
        whole.append(Dialect::OpenaiChat, &polls[..count]);
    }
    assert_eq!((host.stored().len(), whole.stored().len()), (24, 24));
    assert_eq!(host.context_texts().len(), 24);
}

/// After an append with mode `new`, a list that begins like the list before continues the new list.
#[test]
fn mode_new_begins_a_list_anew() {
    let mut host = Host::new();
    let chat: Vec<Value> =
        (0..4).map(|number| long_message(["user", "assistant"][number % 2], number)).collect();
    host.append(Dialect::OpenaiChat, &chat);
    let options = AppendOptions {
        append_mode: AppendMode::New,
        extra_json: Some(json!({"seq_seen": host.seen}).to_string()),
        ..AppendOptions::default()
    };
    let again: Vec<String> = chat[..2].iter().map(Value::to_string).collect();
    host.now += 1_000;
    host.store.begin_call();
    let receipt = host
        .engine
        .append(&mut host.store, CHAT, Dialect::OpenaiChat, &again, &options, host.now)
        .expect("an append");
    assert_eq!((receipt.ingested, receipt.seq_seen), (2, 6));
    host.seen = receipt.seq_seen;
    let next = [chat[0].clone(), chat[1].clone(), long_message("user", 9)];
    let receipt = host.append(Dialect::OpenaiChat, &next);
    assert_eq!((receipt.ingested, &receipt.warnings[..]), (1, &[][..]));
    // A list with all messages of both lists matches both, because this is the longer match.
    let mut both = chat.clone();
    both.extend(next);
    both.push(long_message("assistant", 10));
    let receipt = host.append(Dialect::OpenaiChat, &both);
    assert_eq!((receipt.ingested, &receipt.warnings[..]), (1, &[][..]));
    assert_eq!(host.context_texts().len(), 8);
    host.ensure_sound();
}

/// Every message of a list comes back into the context: from a third branch, by its id, and also if
/// no message may be set aside.
#[test]
fn what_a_list_has_is_never_hidden() {
    for with_ids in [false, true] {
        let say = |role: &str, number: usize| {
            let mut message = long_message(role, number);
            if with_ids {
                message["id"] = json!(format!("m{number}"));
            }
            message
        };
        let start: Vec<Value> =
            (0..4).map(|number| say(["user", "assistant"][number % 2], number)).collect();
        let branch = |at: usize, numbers: [usize; 2]| {
            let mut list = start[..at].to_vec();
            list.extend([say("user", numbers[0]), say("assistant", numbers[1])]);
            list
        };
        let lists = [start.clone(), branch(4, [10, 11]), branch(2, [20, 21]), branch(4, [30, 31])];
        let mut host = Host::new();
        for list in &lists {
            host.append(Dialect::OpenaiChat, list);
        }
        for turn in 0..3 {
            for (place, list) in lists.iter().enumerate() {
                // Every second return is by a caller that does not pass `seq_seen`.
                let seen = Some(host.seen).filter(|_| turn != 1);
                host.warnings.clear();
                let receipt = host.append_seen(Dialect::OpenaiChat, list, seen);
                host.seen = receipt.seq_seen;
                assert_eq!(receipt.ingested, 0, "{with_ids} {place} {:?}", host.warnings);
                let context = host.context_texts();
                let missing: Vec<String> =
                    list.iter().map(text_of).filter(|text| !context.contains(text)).collect();
                assert!(missing.is_empty(), "{with_ids} {place} {missing:?} {:?}", host.warnings);
            }
        }
        assert_eq!(host.stored().len(), 10);
        host.ensure_sound();
    }
}

/// A longer part of a streamed answer replaces the first part, even without `seq_seen`.
#[test]
fn a_streamed_answer_grows() {
    let mut host = Host::new();
    let question = long_message("user", 1);
    let answer = long_message("assistant", 2);
    let half = json!({"role": "assistant", "content": text_of(&answer)[..12]});
    host.append(Dialect::OpenaiChat, &[long_message("assistant", 0), question.clone(), half]);
    let whole = [long_message("assistant", 0), question, answer];
    let receipt = host.append_seen(Dialect::OpenaiChat, &whole, None);
    assert!(receipt.warnings[0].starts_with("revision: "), "{:?}", receipt.warnings);
    assert_eq!(host.context_texts(), whole.iter().map(text_of).collect::<Vec<_>>());
    assert_eq!(host.stored().len(), 4);
    host.ensure_sound();
}

/// A caller did not see messages of others that are not in its list; its receipt says so.
#[test]
fn a_receipt_says_what_the_caller_saw() {
    let mut host = Host::new();
    let start: Vec<Value> =
        (0..4).map(|number| long_message(["user", "assistant"][number % 2], number)).collect();
    let of = |host: &mut Host, numbers: &[usize], seen: Option<u64>| {
        let mut list = start.clone();
        list.extend(numbers.iter().map(|number| long_message("user", *number)));
        let receipt = host.append_seen(Dialect::OpenaiChat, &list, seen);
        (receipt.ingested, receipt.seq_seen)
    };
    assert_eq!(of(&mut host, &[], None), (4, 4));
    assert_eq!(of(&mut host, &[10], Some(4)), (1, 5));
    // Another caller, which never saw message 5.
    assert_eq!(of(&mut host, &[20], Some(4)), (1, 4));
    assert_eq!(of(&mut host, &[20, 21], Some(4)), (1, 4));
    assert_eq!(of(&mut host, &[22], Some(4)), (1, 4));
    assert_eq!(host.context_texts().len(), 8, "nothing is set aside");
    // The first caller reads all of it, and may then leave what it read.
    assert_eq!(of(&mut host, &[10, 20, 21, 22], Some(5)), (0, 8));
    assert_eq!(of(&mut host, &[11], Some(8)), (1, 9));
    assert_eq!(host.context_texts().len(), 5);
    host.ensure_sound();
}

/// The engine finds the right place of a list that ended before the newest message.
#[test]
fn a_list_that_goes_back_twice_is_known_again() {
    let mut host = Host::new();
    let of = |names: &[usize]| {
        let mut list = vec![long_message("user", 0), long_message("assistant", 1)];
        list.extend(
            names.iter().map(|number| long_message(["user", "assistant"][number % 2], *number)),
        );
        list
    };
    for names in [&[10, 11, 12][..], &[20], &[10], &[10, 11, 12], &[10, 11, 14]] {
        host.append(Dialect::OpenaiChat, &of(names));
    }
    let wanted: Vec<String> = of(&[10, 11, 14]).iter().map(text_of).collect();
    assert_eq!(host.context_texts(), wanted, "{:?}", host.warnings);
    assert_eq!(host.stored().len(), 7);
    host.ensure_sound();
}

/// A result that is filled in later, under the id of its call, replaces the first one.
#[test]
fn a_result_that_was_pending_is_filled_in() {
    let mut host = Host::new();
    let [call, result] = poll_messages(1);
    let result = |text: &str| {
        let mut result = result.clone();
        result["content"] = json!(text);
        result
    };
    host.append(Dialect::OpenaiChat, &[long_message("user", 1), call.clone(), result("pending")]);
    let rows = result("finished: twelve rows of the table");
    host.append(
        Dialect::OpenaiChat,
        &[long_message("user", 1), call, rows, long_message("assistant", 2)],
    );
    assert!(host.context_texts().contains(&"finished: twelve rows of the table".to_owned()));
    assert!(!host.context_texts().contains(&"pending".to_owned()), "{:?}", host.context_texts());
    host.ensure_sound();
}
