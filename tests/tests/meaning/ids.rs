//! Host ids that two messages share: an edited message keeps its id, counters begin again at the
//! start, an agent has one id for every answer. No message is lost, and none is stored twice.

use lcm_text::types::api::Dialect;
use serde_json::{Value, json};

use crate::host::{CHAT, Host, call_messages, chat_of, long_message, text_of};

/// Returns a message with an id.
fn with_id(id: &str, number: usize) -> Value {
    let mut message = long_message(["user", "assistant"][number % 2], number);
    message["id"] = json!(id);
    message
}

/// Returns a chat whose messages have the ids `m0`, `m1` and so on.
fn chat_with_ids(numbers: impl Iterator<Item = usize>) -> Vec<Value> {
    numbers.enumerate().map(|(place, number)| with_id(&format!("m{place}"), number)).collect()
}

fn texts_of(list: &[Value]) -> Vec<String> {
    list.iter().map(text_of).collect()
}

/// Returns whether a notice says that ids are taken.
fn says_taken(warnings: &[String]) -> bool {
    warnings.iter().any(|it| it.starts_with("id-taken: "))
}

/// Hands a list over by `append`, or by the plan of `reconcile`.
fn hand_over(host: &mut Host, list: &[Value], by_plan: bool) -> usize {
    match by_plan {
        true => host.ingest(list),
        false => host.append(Dialect::OpenaiChat, list).ingested as usize,
    }
}

/// A web page keeps the id of a message that its user edits. The context ends with the edited
/// question, and from then on the id means this question.
#[test]
fn an_edited_message_may_keep_its_id() {
    for by_plan in [false, true] {
        let mut host = Host::new();
        let mut chat = chat_with_ids(0..7);
        assert_eq!(hand_over(&mut host, &chat, by_plan), 7);
        let first = chat.clone();
        chat.truncate(4);
        chat.push(with_id("m4", 40));
        assert_eq!(hand_over(&mut host, &chat, by_plan), 1, "{:?}", host.warnings);
        assert!(says_taken(&host.warnings), "{:?}", host.warnings);
        assert_eq!(host.context_texts(), texts_of(&chat), "{:?}", host.warnings);
        host.warnings.clear();
        for number in [41, 42] {
            chat.push(with_id(&format!("n{number}"), number));
            assert_eq!(hand_over(&mut host, &chat, by_plan), 1, "{:?}", host.warnings);
            assert_eq!(host.context_texts(), texts_of(&chat));
        }
        assert!(!says_taken(&host.warnings), "{:?}", host.warnings);
        // The user goes back to the first question, and then to the second.
        for list in [&first, &chat] {
            assert_eq!(hand_over(&mut host, list, by_plan), 0, "{:?}", host.warnings);
            assert_eq!(host.context_texts(), texts_of(list), "{:?}", host.warnings);
        }
        assert_eq!(host.stored().len(), 10);
        host.ensure_sound();
    }
}

/// The host counts its ids from 0 again in each session.
#[test]
fn counters_may_begin_anew() {
    for by_plan in [false, true] {
        let mut host = Host::new();
        let mut chat = chat_with_ids(0..40);
        hand_over(&mut host, &chat, by_plan);
        for turn in 0..12 {
            chat.extend(
                (0..2).map(|at| with_id(&format!("m{}", 2 * turn + at), 50 + 2 * turn + at)),
            );
            assert_eq!(hand_over(&mut host, &chat, by_plan), 2, "{:?}", host.warnings);
        }
        assert_eq!(host.context_texts(), texts_of(&chat));
        host.ensure_sound();
    }
    // The new session hands over its own messages only.
    let mut host = Host::new();
    let old = chat_with_ids(0..40);
    host.append(Dialect::OpenaiChat, &old);
    let mut session: Vec<Value> = Vec::new();
    for turn in 0..12 {
        session
            .extend((0..2).map(|at| with_id(&format!("m{}", 2 * turn + at), 50 + 2 * turn + at)));
        let receipt = host.append_new(&session);
        assert_eq!((receipt.ingested, receipt.skipped), (2, 2 * turn as u32));
    }
    let wanted = [texts_of(&old), texts_of(&session)].concat();
    assert_eq!(host.context_texts(), wanted);
    host.ensure_sound();
}

/// An agent framework that has one id for every answer.
#[test]
fn one_id_for_every_answer_loses_none() {
    let chat: Vec<Value> = chat_of(40)
        .into_iter()
        .enumerate()
        .map(|(number, mut message)| {
            if number % 2 == 1 {
                message["id"] = json!("__fake_id__");
            }
            message
        })
        .collect();
    for by_plan in [false, true] {
        let mut host = Host::new();
        for end in (2..=40).step_by(2) {
            assert_eq!(hand_over(&mut host, &chat[..end], by_plan), 2, "{:?}", host.warnings);
        }
        assert_eq!(host.context_texts(), texts_of(&chat));
        assert_eq!(hand_over(&mut host, &chat, by_plan), 0, "{:?}", host.warnings);
        host.ensure_sound();
    }
    let mut host = Host::new();
    for message in &chat {
        assert_eq!(host.append_new(std::slice::from_ref(message)).ingested, 1);
    }
    assert_eq!(host.context_texts(), texts_of(&chat));
    host.ensure_sound();
}

/// Two messages of one append have one id; the append may also be repeated.
#[test]
fn one_call_may_repeat_an_id() {
    let list = [with_id("a", 0), with_id("a", 1), with_id("b", 2), with_id("a", 3)];
    for by_plan in [false, true] {
        let mut host = Host::new();
        assert_eq!(hand_over(&mut host, &list, by_plan), 4);
        assert!(says_taken(&host.warnings));
        assert_eq!(hand_over(&mut host, &list, by_plan), 0, "{:?}", host.warnings);
        assert_eq!(host.context_texts(), texts_of(&list));
        host.ensure_sound();
    }
}

/// A message that is appended again with its id, in its newest or an older form, is not stored.
#[test]
fn an_id_still_recognises_its_message() {
    let mut host = Host::new();
    host.append_new(&[with_id("a", 0), with_id("b", 1)]);
    assert_eq!(host.append_new(&[with_id("b", 11)]).ingested, 1);
    assert_eq!(host.append_new(&[with_id("b", 11)]).ingested, 0);
    let mut shorter = with_id("b", 11);
    let text = text_of(&shorter);
    shorter["content"] = json!(text[..text.len() - 8]);
    let receipt = host.append_new(&[shorter]);
    assert_eq!((receipt.ingested, receipt.warnings), (0, Vec::new()));
    host.ensure_sound();
}

/// An export has all messages with repeated ids, and its copy continues like the original.
#[test]
fn repeated_ids_are_exported() {
    let mut host = Host::new();
    let mut chat = chat_with_ids(0..6);
    chat.extend((6..10).map(|number| with_id("m5", number)));
    host.append(Dialect::OpenaiChat, &chat);
    let mut copy = host.copy_chat();
    copy.ensure_sound();
    assert_eq!(copy.context_texts(), texts_of(&chat));
    chat.push(with_id("m5", 20));
    copy.seen = 10;
    assert_eq!(copy.append(Dialect::OpenaiChat, &chat).ingested, 1, "{:?}", copy.warnings);
    copy.ensure_sound();
}

/// A shorter text with the id of a stored message is stored, too.
#[test]
fn a_shorter_message_under_a_stored_id_is_stored() {
    let say = |role: &str, text: &str, id: &str| json!({"role": role, "content": text, "id": id});
    // A user shortens a question.
    let mut host = Host::new();
    let long = "Write the tests for the parser module and run them on all machines";
    let mut chat = vec![with_id("q1", 0), with_id("a1", 1), say("user", long, "q2")];
    chat.push(with_id("a2", 3));
    host.append(Dialect::OpenaiChat, &chat);
    chat.truncate(2);
    chat.push(say("user", "Write the tests for the parser module", "q2"));
    chat.push(with_id("a3", 5));
    assert_eq!(host.append(Dialect::OpenaiChat, &chat).ingested, 2);
    assert_eq!(host.context_texts(), texts_of(&chat), "{:?}", host.warnings);
    // An agent has one id for all its answers.
    let mut host = Host::new();
    for text in ["Done. All tests pass now.", "Done."] {
        assert_eq!(host.append_new(&[say("assistant", text, "ans")]).ingested, 1);
    }
    // A result of another call, and another result of the same call, are stored.
    let call = |id: &str| {
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": "read", "arguments": "{}"}}], "id": "m2"})
    };
    let result = |call: &str, text: &str| {
        let content = text;
        json!({"role": "tool", "tool_call_id": call, "content": content, "id": "m3"})
    };
    let mut host = Host::new();
    let (one, two) = ("call_aaaaaaaaaaaaaa01", "call_bbbbbbbbbbbbbb02");
    host.append_new(&[call(one), result(one, "a long text of the first of all the files")]);
    host.append_new(&[call(two), result(two, "exit code 1: disk full")]);
    host.append_new(&[result(two, "exit code 0")]);
    let stored = host.stored();
    assert_eq!(stored.len(), 5, "{stored:?}");
    host.ensure_sound();
}

/// A streamed answer that is appended alone, each time longer, is one message of the context.
#[test]
fn a_streamed_answer_grows_under_its_id() {
    let mut host = Host::new();
    let whole = "The deployment failed because the disk of the second machine is full.";
    host.append(Dialect::OpenaiChat, &[with_id("q", 0), with_id("a", 1), with_id("r", 2)]);
    for end in [4, 15, 40, whole.len()] {
        let part = json!({"role": "assistant", "content": whole[..end], "id": "s"});
        assert_eq!(host.append(Dialect::OpenaiChat, &[part]).ingested, 1);
    }
    assert_eq!(host.context_texts().len(), 4, "{:?}", host.context_texts());
    assert_eq!(host.context_texts()[3], whole);
    host.ensure_sound();
}

/// An answer with a call becomes longer under its id, and a call gets new arguments under its id:
/// each text is stored.
#[test]
fn a_call_that_says_more_under_its_id_is_stored() {
    let call = |text: &str, arguments: &str| {
        json!({"role": "assistant", "content": text, "id": "c", "tool_calls": [{
            "id": "call_aaaaaaaaaaaaaa01", "type": "function",
            "function": {"name": "read", "arguments": arguments}}]})
    };
    let result = json!({"role": "tool", "tool_call_id": "call_aaaaaaaaaaaaaa01", "id": "r",
        "content": "The file has two lines about the disk."});
    let mut host = Host::new();
    let mut chat = vec![with_id("q", 0), with_id("a", 1), with_id("n", 2)];
    chat.extend([call("I look", r#"{"path":"a"}"#), result, with_id("e", 5)]);
    host.append(Dialect::OpenaiChat, &chat);
    for (text, arguments) in
        [("I look at the file first.", r#"{"path":"a"}"#), ("I look", r#"{"path":"b"}"#)]
    {
        chat[3] = call(text, arguments);
        assert_eq!(host.append(Dialect::OpenaiChat, &chat).ingested, 1, "{:?}", host.warnings);
        assert_eq!(host.append(Dialect::OpenaiChat, &chat).ingested, 0, "{:?}", host.warnings);
        assert!(host.stored().contains(&chat[3]), "{:?}", host.stored());
    }
    assert_eq!(host.context_texts().len(), 6);
    host.ensure_sound();
}

/// A host leaves a branch whose last answer was still streamed, and comes back with the whole
/// answer under the same id: the context has it whole.
#[test]
fn a_half_answer_that_comes_back_whole_is_stored() {
    let say = |role: &str, text: &str, id: &str| json!({"role": role, "content": text, "id": id});
    let whole = "The deployment failed because the disk of the second machine is full.";
    let start = [with_id("q", 0), with_id("a", 1), with_id("r", 2), with_id("b", 3)];
    let question = say("user", "Why did the deployment of last night fail?", "w");
    let chat = |rest: &[Value]| [&start[..], rest].concat();
    for by_plan in [false, true] {
        let mut host = Host::new();
        let half = say("assistant", &whole[..40], "s");
        hand_over(&mut host, &chat(&[question.clone(), half]), by_plan);
        hand_over(&mut host, &chat(&[with_id("x", 6), with_id("y", 7)]), by_plan);
        let back = chat(&[question.clone(), say("assistant", whole, "s"), with_id("z", 9)]);
        assert_eq!(hand_over(&mut host, &back, by_plan), 2, "{:?}", host.warnings);
        assert_eq!(host.context_texts(), texts_of(&back), "{:?}", host.warnings);
        assert_eq!(hand_over(&mut host, &back, by_plan), 0, "{:?}", host.warnings);
        host.ensure_sound();
    }
}

/// The first message of the conversation was undone while it was streamed. It comes back whole,
/// with the messages after it.
#[test]
fn a_first_message_that_comes_back_whole_is_stored() {
    let greet = |text: &str| json!({"role": "assistant", "content": text, "id": "g"});
    let rest = [with_id("u", 0), with_id("a", 1)];
    let chat = |text: &str| [&[greet(text)], &rest[..]].concat();
    let mut host = Host::new();
    host.append(Dialect::OpenaiChat, &chat("Hello, I am"));
    host.store.begin_call();
    let whole = json!({"to": 0, "seq_seen": host.seen}).to_string();
    host.engine.call(&mut host.store, CHAT, "rewind", &whole, host.now).expect("a rewind");
    let whole = chat("Hello, I am your assistant of today.");
    assert_eq!(host.append(Dialect::OpenaiChat, &whole).ingested, 1, "{:?}", host.warnings);
    assert!(host.stored().contains(&whole[0]));
    host.ensure_sound();
}

/// A message that comes back by its id after another message replaces the messages after that one.
#[test]
fn a_message_that_comes_back_by_its_id_sets_aside() {
    let say = |number: usize| with_id(&format!("m{number}"), number);
    let mut host = Host::new();
    for list in [&[1, 2, 3, 4][..], &[1, 2, 5, 6, 7], &[1, 2, 3], &[1, 2, 7], &[1, 2, 7, 8]] {
        let list: Vec<Value> = list.iter().map(|number| say(*number)).collect();
        host.append(Dialect::OpenaiChat, &list);
        assert_eq!(host.context_texts(), texts_of(&list), "{:?}", host.warnings);
    }
    assert_eq!(host.stored().len(), 8);
    host.ensure_sound();
}

/// After a rewind the host appends only a short message that is also the first of the left branch,
/// and then goes back to that branch.
#[test]
fn a_branch_is_found_behind_its_short_beginning() {
    let short = json!({"role": "user", "content": "ok"});
    let chat = vec![
        long_message("user", 0),
        long_message("assistant", 1),
        short.clone(),
        long_message("assistant", 3),
    ];
    for first in [2, 4] {
        let mut host = Host::new();
        host.append(Dialect::OpenaiChat, &chat[..first]);
        host.append(Dialect::OpenaiChat, &chat);
        host.store.begin_call();
        let back = json!({"to": 2, "seq_seen": host.seen}).to_string();
        host.engine.call(&mut host.store, CHAT, "rewind", &back, host.now).expect("a rewind");
        host.append(Dialect::OpenaiChat, std::slice::from_ref(&short));
        assert_eq!(host.append(Dialect::OpenaiChat, &chat).ingested, 0, "{:?}", host.warnings);
        assert_eq!(host.context_texts(), texts_of(&chat), "{:?}", host.warnings);
        host.ensure_sound();
    }
}

/// The users' messages have ids. A long answer is left out and said again at another place, with an
/// answer behind it that the line has later, too: no message counts for two of the list.
#[test]
fn an_answer_said_again_beside_a_moved_one_is_stored() {
    for by_plan in [false, true] {
        let mut host = Host::new();
        let answer = |text: &str| json!({"role": "assistant", "content": text});
        let (moved, again) = (
            answer("an answer that is said at another place"),
            answer("a long answer that is said again, word for word"),
        );
        let turn = |number: usize| {
            [with_id(&format!("u{number}"), 2 * number), long_message("assistant", number)]
        };
        let mut list: Vec<Value> = (0..12).flat_map(turn).collect();
        (list[13], list[19]) = (moved.clone(), again.clone());
        hand_over(&mut host, &list, by_plan);
        list.insert(10, with_id("n0", 100));
        assert_eq!(hand_over(&mut host, &list, by_plan), 1, "{:?}", host.warnings);
        list.remove(14);
        list.splice(4..4, [moved, with_id("n1", 102), again.clone(), with_id("n2", 104)]);
        assert_eq!(hand_over(&mut host, &list, by_plan), 3, "{:?}", host.warnings);
        let stored = host.stored();
        assert_eq!(stored.iter().filter(|message| **message == again).count(), 2);
        host.ensure_sound();
    }
}

/// An answer with an id moves to the end of the list, and an answer without an id says the same at
/// its place: both are in the list, so both are stored.
#[test]
fn an_answer_said_again_at_the_place_of_a_moved_one_is_stored() {
    for by_plan in [false, true] {
        let mut host = Host::new();
        let mut list = chat_of(8);
        hand_over(&mut host, &list, by_plan);
        let mut moved = json!({"role": "assistant", "content": "an answer that is said twice"});
        let again = moved.clone();
        moved["id"] = json!("m1");
        list.extend([long_message("user", 20), moved.clone(), long_message("user", 21)]);
        list.extend([long_message("assistant", 22), long_message("user", 23)]);
        assert_eq!(hand_over(&mut host, &list, by_plan), 5);
        list[9] = again;
        list.push(moved);
        assert_eq!(hand_over(&mut host, &list, by_plan), 1, "{:?}", host.warnings);
        let stored = host.stored();
        let said = |message: &&Value| text_of(message).contains("is said twice");
        assert_eq!(stored.iter().filter(said).count(), 2, "{:?}", host.warnings);
        host.ensure_sound();
    }
}

/// A message with an id moves forward in the list, and one without an id says the same behind it.
/// What the list has by its id is not set aside, and no message counts for two.
#[test]
fn a_message_that_its_id_moves_stays_in_the_context() {
    for by_plan in [false, true] {
        let mut host = Host::new();
        let chat = chat_of(8);
        let mut moved = chat[4].clone();
        moved["id"] = json!("m1");
        hand_over(&mut host, &chat[..2], by_plan);
        let list = [&chat[..4], std::slice::from_ref(&moved)].concat();
        hand_over(&mut host, &list, by_plan);
        let mut list = chat[..2].to_vec();
        list.extend([moved.clone(), chat[2].clone(), chat[3].clone(), chat[4].clone()]);
        list.push(with_id("m2", 12));
        assert_eq!(hand_over(&mut host, &list, by_plan), 2, "{:?}", host.warnings);
        let context = host.context_texts();
        let same = context.iter().filter(|text| **text == text_of(&moved));
        assert_eq!(same.count(), 2, "{:?}", host.warnings);
        host.ensure_sound();

        let mut host = Host::new();
        let mut first = chat[0].clone();
        first["id"] = json!("m1");
        hand_over(&mut host, &[&[first.clone()], &chat[1..3]].concat(), by_plan);
        let list = [&chat[..3], &[first.clone()], &chat[3..4]].concat();
        hand_over(&mut host, &list, by_plan);
        let list = [&chat[..3], &chat[..1], &chat[3..4], &[first], &chat[5..6]].concat();
        hand_over(&mut host, &list, by_plan);
        let texts = texts_of(&host.stored());
        let same = texts.iter().filter(|text| **text == text_of(&chat[0]));
        assert_eq!(same.count(), 3, "{:?}", host.warnings);
        host.ensure_sound();
    }
}

/// Ids count places, call ids count calls, and a turn with a tool is made again: another call with
/// the same ids, and its result.
#[test]
fn another_call_with_counted_ids_is_a_branch() {
    for is_planned in [false, true] {
        let mut host = Host::new();
        let numbered = |list: &[Value]| {
            let mut list = list.to_vec();
            for (place, message) in list.iter_mut().enumerate() {
                message["id"] = json!(format!("m{place}"));
            }
            list
        };
        let first = [chat_of(3), call_messages(4, "call_0").to_vec(), chat_of(6)[5..].to_vec()];
        host.append(Dialect::OpenaiChat, &numbered(&first.concat()));
        let again = [chat_of(3), call_messages(7, "call_0").to_vec()].concat();
        match is_planned {
            true => host.ingest(&numbered(&again)),
            false => host.append(Dialect::OpenaiChat, &numbered(&again)).ingested as usize,
        };
        assert_eq!(host.context_texts(), again.iter().map(text_of).collect::<Vec<_>>());
        host.ensure_sound();
    }
}

/// Ids count places. A short answer of a set-aside branch is said again after another question: it
/// stays behind this question.
#[test]
fn a_short_answer_stays_behind_its_question() {
    let mut host = Host::new();
    let with_id = |mut message: Value, id: &str| {
        message["id"] = json!(id);
        message
    };
    let okay = with_id(json!({"role": "assistant", "content": "okay"}), "m3");
    let base =
        [with_id(long_message("user", 1), "m0"), with_id(long_message("assistant", 2), "m1")];
    let question = |number: usize| with_id(long_message("user", number), "m2");
    host.append(Dialect::OpenaiChat, &[&base[..], &[question(3), okay.clone()]].concat());
    let mut edited = [&base[..], &[question(5)]].concat();
    host.append(Dialect::OpenaiChat, &edited);
    edited.push(okay);
    host.append(Dialect::OpenaiChat, &edited);
    assert_eq!(host.context_texts(), edited.iter().map(text_of).collect::<Vec<_>>());
    host.append(Dialect::OpenaiChat, &edited);
    assert_eq!(host.context_texts().len(), 4, "{:?}", host.warnings);
    host.ensure_sound();
}

/// The id and a long text tell for certain that the list begins with the stored question.
#[test]
fn the_first_answer_made_again_replaces_the_answer() {
    let message =
        |id: &str, role: &str, text: &str| json!({"id": id, "role": role, "content": text});
    let question = "Which of the two roads to the lake is open in the winter months?";
    let question = message("m-1", "user", question);
    let first = message("m-2", "assistant", "The eastern road is open all year.");
    let second = message("m-3", "assistant", "Both are open, but the western one is icy.");
    let mut host = Host::new();
    host.append(Dialect::OpenaiChat, std::slice::from_ref(&question));
    host.append(Dialect::OpenaiChat, &[question.clone(), first]);
    host.append(Dialect::OpenaiChat, &[question.clone(), second.clone()]);
    assert_eq!(host.context_texts(), [text_of(&question), text_of(&second)]);
    assert!(host.warnings[0].starts_with("set-aside: "), "{:?}", host.warnings);
}
