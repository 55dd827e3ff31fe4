//! Copies of a conversation by export and import: each continues as the original would, with its
//! branches and with the other forms of its messages.

use lcm_text::types::api::Dialect;
use serde_json::{Value, json};

use crate::host::{CHAT, Host, chat_of, long_message, text_of};

fn texts_of(list: &[Value]) -> Vec<String> {
    list.iter().map(text_of).collect()
}

/// Appends a list, and returns how many messages were stored.
fn hand_over(host: &mut Host, list: &[Value]) -> u32 {
    let receipt = host.append(Dialect::OpenaiChat, list);
    host.ensure_sound();
    receipt.ingested
}

/// The host of a copy can return to a branch that was left before the export.
#[test]
fn a_copy_goes_on_with_any_branch() {
    let mut host = Host::new();
    let first = chat_of(10);
    let mut second = first[..6].to_vec();
    second.extend((60..62).map(|number| long_message(["user", "assistant"][number % 2], number)));
    hand_over(&mut host, &first);
    hand_over(&mut host, &second);
    let branches = [&first, &second];
    for list in branches {
        let mut copy = host.copy_chat();
        assert_eq!(copy.digest(), host.digest());
        assert_eq!(copy.context_texts(), texts_of(&second));
        // A host that never saw the other branch does not set it aside.
        let mut unseen = host.copy_chat();
        assert_eq!(hand_over(&mut unseen, list), 0, "{:?}", unseen.warnings);
        let context = unseen.context_texts();
        assert!(texts_of(list).iter().all(|text| context.contains(text)), "{:?}", unseen.warnings);
        assert!(texts_of(&second).iter().all(|text| context.contains(text)), "{context:?}");
        copy.seen = 12;
        assert_eq!(hand_over(&mut copy, list), 0, "{:?}", copy.warnings);
        assert_eq!(copy.context_texts(), texts_of(list), "{:?}", copy.warnings);
        let mut longer = list.clone();
        longer.extend((70..72).map(|number| long_message("user", number)));
        assert_eq!(hand_over(&mut copy, &longer), 2, "{:?}", copy.warnings);
        // An edit in the copy sets aside the messages that the edit replaces.
        longer.truncate(longer.len() - 1);
        longer.push(long_message("user", 80));
        assert_eq!(hand_over(&mut copy, &longer), 1, "{:?}", copy.warnings);
        assert_eq!(copy.context_texts(), texts_of(&longer), "{:?}", copy.warnings);
        // A copy of the copy, and the first branch once more.
        let mut again = copy.copy_chat();
        assert_eq!(again.digest(), copy.digest());
        hand_over(&mut again, &longer);
        for list in branches {
            assert_eq!(hand_over(&mut again, list), 0, "{:?}", again.warnings);
            assert_eq!(again.context_texts(), texts_of(list), "{:?}", again.warnings);
        }
    }
}

/// Other forms of messages stay out of the context of a copy, and are not stored again.
#[test]
fn a_copy_knows_other_forms() {
    let mut host = Host::new();
    let mut chat = chat_of(8);
    hand_over(&mut host, &chat);
    chat[3]["content"] = json!(format!("{} [cut]", &text_of(&chat[3])[..30]));
    chat.push(long_message("user", 8));
    assert_eq!(hand_over(&mut host, &chat), 2, "{:?}", host.warnings);
    let mut copy = host.copy_chat();
    assert_eq!(copy.digest(), host.digest());
    assert_eq!(copy.context_texts(), host.context_texts());
    chat.push(long_message("assistant", 9));
    assert_eq!(hand_over(&mut copy, &chat), 1, "{:?}", copy.warnings);
    assert_eq!(copy.context_texts().len(), 10);
}

/// Returns the ids of the hits of a search, with their marks.
fn find_marks(host: &mut Host, pattern: &str) -> Vec<(String, Value)> {
    let query = json!({"pattern": pattern, "limit": 200}).to_string();
    host.store.begin_call();
    let found = host.engine.grep(&mut host.store, CHAT, &query, None, host.now).expect("hits");
    let found: Value = serde_json::from_str(&found).unwrap();
    let hits = found["matches"].as_array().unwrap().iter();
    let mut hits: Vec<(String, Value)> = hits
        .map(|hit| (hit["id"].as_str().unwrap().to_owned(), hit["withdrawn"].clone()))
        .collect();
    hits.sort_by(|left, right| left.0.cmp(&right.0));
    hits
}

/// Withdrawn messages are marked in a copy, too, even inside the range of a leaf that skips them. A
/// summary of only withdrawn messages is also marked.
#[test]
fn a_copy_marks_what_was_withdrawn() {
    let words = "and the words of it are many. ".repeat(8);
    let say = |role: &str, number: usize| {
        let text = format!("Number {number} of this chat, {words}");
        json!({"role": role, "content": text})
    };
    let chat = |numbers: std::ops::Range<usize>| -> Vec<Value> {
        numbers.map(|number| say(["user", "assistant"][number % 2], number)).collect()
    };
    let (mut host, mut list) = (Host::new(), chat(0..4));
    hand_over(&mut host, &[list.clone(), vec![say("user", 60)]].concat());
    list.extend(chat(4..40));
    hand_over(&mut host, &list);
    host.compact_chat(1_200);
    let hits = find_marks(&mut host, "number");
    assert_eq!(hits.iter().filter(|(_, mark)| *mark == "set-aside").count(), 1, "{hits:?}");
    assert_eq!(find_marks(&mut host.copy_chat(), "number"), hits);
    // All messages of a summary are set aside.
    let mut other = list[..30].to_vec();
    other.extend(chat(70..72));
    hand_over(&mut host, &other);
    let hits = find_marks(&mut host, "number");
    let is_set_aside = |(_, mark): &&(String, Value)| *mark == "set-aside";
    let count = |prefix: &str| {
        hits.iter().filter(is_set_aside).filter(|(id, _)| id.starts_with(prefix)).count()
    };
    assert_eq!(count("msg_"), 11, "{hits:?}");
    assert!(count("sum_") > 0, "{hits:?}");
    assert!(hits.iter().any(|(id, mark)| id.starts_with("sum_") && mark.is_null()), "{hits:?}");
    let mut copy = host.copy_chat();
    assert_eq!(find_marks(&mut copy, "number"), hits);
    assert_eq!(copy.digest(), host.digest());
}

/// An import into a store whose conversation continued, or took another branch, does not change the
/// line of the conversation.
#[test]
fn an_import_repeats_without_a_change() {
    let mut host = Host::new();
    hand_over(&mut host, &chat_of(10));
    let mut second = chat_of(6);
    second.push(long_message("user", 60));
    hand_over(&mut host, &second);
    let lines = host.export_chat();
    let before = host.digest();
    host.import_chat(&lines);
    assert_eq!(host.digest(), before);
    hand_over(&mut host, &chat_of(10));
    let before = host.digest();
    host.import_chat(&lines);
    assert_eq!(host.digest(), before);
    host.ensure_sound();
}
