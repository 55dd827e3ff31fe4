//! Lists in doubt: after a restart a host edits its list and passes no `seq_seen`, so the engine is
//! not certain and sets nothing aside. Later lists must be as certain as without the restart.

use lcm_text::{
    base::error::ErrorCode,
    types::api::{AppendMode, AppendOptions, Dialect},
};
use serde_json::{Value, json};

use crate::host::{CHAT, Host, call_messages, chat_of, long_message, text_of};

fn texts_of(list: &[Value]) -> Vec<String> {
    list.iter().map(text_of).collect()
}

/// Messages of a branch, numbered from `number` on.
fn branch_of(number: usize, count: usize) -> Vec<Value> {
    (number..number + count)
        .map(|number| long_message(["user", "assistant"][number % 2], number))
        .collect()
}

fn hand_over(host: &mut Host, list: &[Value], by_plan: bool) -> usize {
    let stored = match by_plan {
        true => host.ingest(list),
        false => host.append(Dialect::OpenaiChat, list).ingested as usize,
    };
    host.ensure_sound();
    stored
}

/// Returns a host with ten messages that restarted and edited its fifth message, and the lists
/// before and after. The new branch is stored after the ten messages.
fn edited_after_restart(by_plan: bool) -> (Host, Vec<Value>, Vec<Value>) {
    let mut host = Host::new();
    let chat = chat_of(10);
    hand_over(&mut host, &chat, by_plan);
    host.seen = 0;
    let mut list = chat[..4].to_vec();
    list.extend(branch_of(60, 4));
    assert_eq!(hand_over(&mut host, &list, by_plan), 4);
    assert!(
        host.warnings.iter().any(|it| it.starts_with("branch-in-doubt: ")),
        "{:?}",
        host.warnings
    );
    assert_eq!(host.context_texts(), [texts_of(&chat), texts_of(&list[4..])].concat());
    host.warnings.clear();
    (host, chat, list)
}

/// The host edits messages of the branch in doubt: these are set aside, and the messages that the
/// list in doubt left stay.
#[test]
fn later_edits_are_certain() {
    for by_plan in [false, true] {
        for is_new_handle in [false, true] {
            let (mut host, chat, mut list) = edited_after_restart(by_plan);
            list.extend(branch_of(64, 2));
            host.seen = if is_new_handle { 0 } else { host.seen };
            assert_eq!(hand_over(&mut host, &list, by_plan), 2);
            for (kept, number) in [(9, 71), (8, 80), (6, 90), (4, 100)] {
                list.truncate(kept);
                list.extend(branch_of(number, 1));
                assert_eq!(hand_over(&mut host, &list, by_plan), 1);
                let wanted = [texts_of(&chat), texts_of(&list[4..])].concat();
                assert_eq!(host.context_texts(), wanted, "{kept} {:?}", host.warnings);
            }
            assert!(!host.warnings.iter().any(|it| it.contains("doubt")), "{:?}", host.warnings);
        }
    }
}

/// The messages at a fork, and the first of a branch, may be handed over in other forms later.
#[test]
fn other_forms_beside_a_fork_lead_to_the_branch() {
    let remind = |message: &Value| {
        let text = format!("{} <reminder>Be brief.</reminder>", text_of(message));
        json!({"role": message["role"], "content": text})
    };
    for reminded in [3, 4] {
        for is_first_form in [false, true] {
            let mut host = Host::new();
            let mut chat = chat_of(10);
            let mut list = [chat[..4].to_vec(), branch_of(60, 4)].concat();
            let plain = list.clone();
            if is_first_form {
                list[reminded] = remind(&list[reminded]);
            }
            if reminded < 4 {
                chat[reminded] = list[reminded].clone();
            }
            hand_over(&mut host, &chat, false);
            host.seen = 0;
            assert_eq!(hand_over(&mut host, &list, false), 4);
            let stored = host.stored().len();
            list = plain;
            if !is_first_form {
                list[reminded] = remind(&list[reminded]);
            }
            list.extend(branch_of(64, 2));
            host.seen = 0;
            hand_over(&mut host, &list, false);
            // Two new messages are stored, and another form of one message.
            assert_eq!(host.stored().len(), stored + 3, "{reminded} {:?}", host.warnings);
            assert_eq!(host.context_texts().len(), 16);
        }
    }
}

/// The host undoes messages; an earlier message was appended in another form.
#[test]
fn an_undo_beside_another_form_acts() {
    for is_first_form in [false, true] {
        let mut host = Host::new();
        let chat = chat_of(10);
        let mut other = chat.clone();
        let text = format!("{} <reminder>Be brief.</reminder>", text_of(&chat[2]));
        other[2] = json!({"role": "user", "content": text});
        let (first, then) = if is_first_form { (&other, &chat) } else { (&chat, &other) };
        hand_over(&mut host, first, false);
        hand_over(&mut host, &then[..6], false);
        assert_eq!(host.context_texts(), texts_of(&first[..6]), "{:?}", host.warnings);
        hand_over(&mut host, first, false);
        assert_eq!(host.context_texts(), texts_of(first));
        assert_eq!(host.stored().len(), 11);
    }
}

/// The messages of a list in doubt come back after a rewind to the fork; none is stored twice.
#[test]
fn a_rewind_ends_the_doubt() {
    for by_plan in [false, true] {
        let (mut host, chat, mut list) = edited_after_restart(by_plan);
        rewind_to(&mut host, 4);
        assert_eq!(host.context_texts(), texts_of(&chat[..4]));
        list.extend(branch_of(64, 2));
        assert_eq!(hand_over(&mut host, &list, by_plan), 2, "{:?}", host.warnings);
        assert_eq!(host.context_texts(), texts_of(&list));
        // The first branch is there, too.
        assert_eq!(hand_over(&mut host, &chat, by_plan), 0, "{:?}", host.warnings);
        assert_eq!(host.context_texts(), texts_of(&chat));
        assert_eq!(host.stored().len(), 16);
    }
}

/// A list that is edited before the fork of an earlier list in doubt sets no message aside.
#[test]
fn an_edit_before_the_doubt_is_in_doubt() {
    let (mut host, chat, mut list) = edited_after_restart(false);
    let branch = list.split_off(4);
    list.truncate(2);
    list.extend(branch_of(70, 1));
    assert_eq!(hand_over(&mut host, &list, false), 1);
    assert!(host.warnings[0].contains("the caller had no list with"), "{:?}", host.warnings);
    let wanted = [texts_of(&chat), texts_of(&branch), texts_of(&list[2..])].concat();
    assert_eq!(host.context_texts(), wanted);
}

/// An undo that the engine does not carry out is announced. A shorter list of a host that has not
/// seen the newest messages is not announced.
#[test]
fn an_undo_in_doubt_is_announced() {
    let mut host = Host::new();
    let chat = chat_of(10);
    hand_over(&mut host, &chat, false);
    let receipt = host.append_seen(Dialect::OpenaiChat, &chat[..6], None);
    assert_eq!(receipt.warnings.len(), 1, "{:?}", receipt.warnings);
    assert!(receipt.warnings[0].starts_with("branch-in-doubt: the list ends after message 6"));
    let receipt = host.append_seen(Dialect::OpenaiChat, &chat[..6], Some(6));
    assert_eq!(receipt.warnings, Vec::<String>::new());
    assert_eq!(host.context_texts(), texts_of(&chat));
}

/// Rewinds without `seq_seen`.
fn rewind_to(host: &mut Host, to: u64) {
    host.store.begin_call();
    let arguments = json!({ "to": to }).to_string();
    let answer = host.engine.call(&mut host.store, CHAT, "rewind", &arguments, host.now);
    answer.expect("a rewind");
}

/// A list with every message of the line and new ones ends the doubt; all are in the context.
#[test]
fn a_list_with_every_message_ends_the_doubt() {
    for by_plan in [false, true] {
        let (mut host, chat, list) = edited_after_restart(by_plan);
        let mut whole = [&chat[..], &list[4..]].concat();
        whole.extend(branch_of(70, 2));
        assert_eq!(hand_over(&mut host, &whole, by_plan), 2, "{:?}", host.warnings);
        assert_eq!(host.context_texts(), texts_of(&whole));
        let mut copy = host.copy_chat();
        assert_eq!(copy.context_texts(), texts_of(&whole));
        // The doubt has ended: an edit sets aside everything after it.
        whole.truncate(6);
        whole.extend(branch_of(80, 1));
        assert_eq!(hand_over(&mut host, &whole, by_plan), 1);
        assert_eq!(host.context_texts(), texts_of(&whole), "{:?}", host.warnings);
    }
}

/// A host leaves a branch again that came back before other messages; no message is stored twice.
#[test]
fn a_branch_in_front_of_another_is_left_again() {
    let mut host = Host::new();
    let first = chat_of(6);
    hand_over(&mut host, &first, false);
    let mut second = first[..2].to_vec();
    second.extend(branch_of(60, 4));
    hand_over(&mut host, &second, false);
    host.seen = 0;
    let mut back = first.clone();
    back.extend(branch_of(70, 1));
    hand_over(&mut host, &back, false);
    rewind_to(&mut host, 2);
    second.extend(branch_of(64, 1));
    host.warnings.clear();
    assert_eq!(hand_over(&mut host, &second, false), 1, "{:?}", host.warnings);
    assert_eq!(host.context_texts(), texts_of(&second));
}

/// A host that undoes its own branch in doubt never sets aside messages of another host.
#[test]
fn the_messages_of_others_stay_after_an_undo() {
    for goes_by_copy in [false, true] {
        let mut host = Host::new();
        let chat = chat_of(4);
        let mut other = chat.clone();
        other.extend(branch_of(20, 2));
        hand_over(&mut host, &other, false);
        host.seen = 0;
        let with = |number: usize| [&chat[..], &branch_of(number, 2)].concat();
        hand_over(&mut host, &with(30), false);
        hand_over(&mut host, &chat, false);
        assert_eq!(host.context_texts(), texts_of(&other), "{:?}", host.warnings);
        if goes_by_copy {
            let seen = host.seen;
            host = host.copy_chat();
            host.seen = seen;
        }
        assert_eq!(hand_over(&mut host, &with(40), false), 2);
        let wanted = [texts_of(&other), texts_of(&branch_of(40, 2))].concat();
        assert_eq!(host.context_texts(), wanted, "{:?}", host.warnings);
    }
}

/// A copy knows which branches are in doubt.
#[test]
fn a_copy_keeps_the_doubt() {
    let (mut host, chat, mut list) = edited_after_restart(false);
    let mut copy = host.copy_chat();
    assert_eq!(copy.digest(), host.digest());
    rewind_to(&mut copy, 4);
    list.extend(branch_of(64, 1));
    assert_eq!(hand_over(&mut copy, &list, false), 1, "{:?}", copy.warnings);
    assert_eq!(copy.context_texts(), texts_of(&list));
    assert_eq!(hand_over(&mut copy, &chat, false), 0, "{:?}", copy.warnings);
}

/// An undo inside a branch in doubt acts at once, and an undo after a restart leaves later edits
/// certain.
#[test]
fn an_undo_of_a_branch_in_doubt_acts_at_once() {
    let (mut host, chat, list) = edited_after_restart(false);
    assert_eq!(hand_over(&mut host, &list[..6], false), 0);
    let wanted = [texts_of(&chat), texts_of(&list[4..6])].concat();
    assert_eq!(host.context_texts(), wanted, "{:?}", host.warnings);
    let mut host = Host::new();
    for end in [2, 4, 6, 8] {
        hand_over(&mut host, &chat[..end], false);
    }
    host.seen = 0;
    hand_over(&mut host, &chat[..4], false);
    let mut list = [&chat[..4], &branch_of(60, 4)].concat();
    hand_over(&mut host, &list, false);
    host.warnings.clear();
    list.truncate(6);
    list.extend(branch_of(70, 2));
    hand_over(&mut host, &list, false);
    let wanted = [texts_of(&chat[..8]), texts_of(&list[4..])].concat();
    assert_eq!(host.context_texts(), wanted, "{:?}", host.warnings);
}

/// A host edits its question until no more messages can be set aside: from then on edits are in
/// doubt. Every question is stored and in the context. `LCM_EDITS=5000` reaches the limit.
#[test]
fn an_endless_edit_locks_no_conversation() {
    let mut host = Host::new();
    let begin = chat_of(4);
    host.append(Dialect::OpenaiChat, &begin);
    let edits = std::env::var("LCM_EDITS").map_or(50, |edits| edits.parse().unwrap());
    for edit in 1..=edits {
        host.warnings.clear();
        let list = [begin.clone(), vec![long_message("user", 10_000 + edit)]].concat();
        assert_eq!(host.append(Dialect::OpenaiChat, &list).ingested, 1, "{edit}");
        // The first edit sets nothing aside; each later one makes a range.
        let is_in_doubt = |warning: &String| warning.starts_with("branch-in-doubt");
        assert_eq!(host.warnings.iter().any(is_in_doubt), edit > 4_097, "{edit}");
        if edit > 4_097 {
            assert!(host.warnings[0].contains("too many ranges of set-aside messages"));
            break;
        }
    }
    let is_full = edits > 4_097;
    assert_eq!(host.context_texts().len(), if is_full { 6 } else { 5 });
    // The first edit comes back, or is stored again, and nothing is lost.
    let list = [begin, vec![long_message("user", 10_001), long_message("assistant", 9)]].concat();
    let stored = host.append(Dialect::OpenaiChat, &list).ingested;
    assert_eq!(stored, if is_full { 2 } else { 1 }, "{:?}", host.warnings);
    host.ensure_sound();
}

/// More results became stubs than a conversation stores other forms: the rest is announced.
#[test]
fn endless_stubs_lock_no_conversation() {
    let mut host = Host::new();
    let mut list = chat_of(2);
    for number in 0..4_100 {
        list.extend(call_messages(number, &format!("call_abcdefghij{number:06}")));
    }
    assert_eq!(host.ingest(&list), 8_202);
    for message in list.iter_mut().filter(|message| message["role"] == "tool") {
        message["content"] = json!("[removed]");
    }
    list.push(long_message("user", 9));
    assert_eq!(host.ingest(&list), 4_097, "{:?}", host.warnings);
    let is_full = |warning: &&String| warning.starts_with("forms-full: 4 of");
    assert_eq!(host.warnings.iter().filter(is_full).count(), 1, "{:?}", host.warnings);
    list.push(long_message("assistant", 10));
    assert_eq!(host.ingest(&list), 1);
    host.ensure_sound();
}

/// A plan whose ranges are not ascending is refused, and nothing changes.
#[test]
fn a_wrong_plan_is_refused() {
    let mut host = Host::new();
    host.append(Dialect::OpenaiChat, &chat_of(6));
    let before = host.store.digest();
    for (first, last) in [(5, 3), (0, 0), (1_u64 << 52, 2)] {
        let line = json!({"fork": 6, "restored": [{"seq_first": first, "seq_last": last}]});
        let options = AppendOptions {
            append_mode: AppendMode::New,
            extra_json: Some(json!({"revision": 1, "line": line}).to_string()),
            ..AppendOptions::default()
        };
        let text = [long_message("user", 9).to_string()];
        host.store.begin_call();
        let (store, now) = (&mut host.store, host.now);
        let error = host.engine.append(store, CHAT, Dialect::OpenaiChat, &text, &options, now);
        let error = error.expect_err("a wrong plan");
        assert_eq!(error.code, ErrorCode::InvalidInput, "{error}");
        assert!(error.to_string().contains("restored"), "{error}");
    }
    assert_eq!(host.store.digest(), before);
}
