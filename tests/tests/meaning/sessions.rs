//! Hosts that begin a new session in a conversation: their lists begin at the new session, and the
//! earlier messages stay stored.

use lcm_text::types::api::Dialect;
use serde_json::Value;

use crate::host::{CHAT, Host, chat_of, long_message, text_of};

const EARLIER: usize = 10;

/// Returns a conversation with an earlier session, and the first `count` messages of the new one.
fn begin_session(count: usize) -> (Host, Vec<Value>) {
    let mut host = Host::new();
    host.append(Dialect::OpenaiChat, &chat_of(EARLIER));
    host.store.begin_call();
    host.engine.call(&mut host.store, CHAT, "new", "{}", host.now).expect("a new session");
    let role = |number: usize| if number.is_multiple_of(2) { "user" } else { "assistant" };
    let list: Vec<Value> =
        (0..count).map(|number| long_message(role(number), 100 + number)).collect();
    host.seen = 0;
    host.append(Dialect::OpenaiChat, &list);
    assert_eq!(host.stored().len(), EARLIER + count, "{:?}", host.warnings);
    (host, list)
}

fn ensure_context(host: &mut Host, list: &[Value]) {
    let wanted: Vec<String> = list.iter().map(text_of).collect();
    assert_eq!(host.context_texts(), wanted, "{:?}", host.warnings);
    host.ensure_sound();
}

/// A restarted process knows nothing of the earlier session. Its whole list of the new session
/// shows the engine which messages it has seen.
#[test]
fn a_restart_in_a_new_session_sees_the_session() {
    let (mut host, mut list) = begin_session(4);
    for turn in 0..3 {
        host.seen = 0;
        list.extend([
            long_message("user", 200 + 2 * turn),
            long_message("assistant", 201 + 2 * turn),
        ]);
        let receipt = host.append(Dialect::OpenaiChat, &list);
        assert_eq!((receipt.ingested, receipt.seq_seen), (2, (EARLIER + list.len()) as u64));
        ensure_context(&mut host, &list);
    }
    list.truncate(4);
    list.push(long_message("user", 300));
    host.append(Dialect::OpenaiChat, &list);
    ensure_context(&mut host, &list);
}

#[test]
fn turns_of_a_new_session_are_taken_back() {
    for left in [2, 4, 10] {
        let (mut host, list) = begin_session(14);
        host.append(Dialect::OpenaiChat, &list[..left]);
        ensure_context(&mut host, &list[..left]);
        host.append(Dialect::OpenaiChat, &list);
        ensure_context(&mut host, &list);
        assert_eq!(host.stored().len(), EARLIER + 14);
    }
}

/// The first answer of the new session is regenerated.
#[test]
fn the_first_answer_of_a_new_session_is_made_again() {
    for further in [0, 2] {
        let (mut host, mut list) = begin_session(2);
        list[1] = long_message("assistant", 300);
        list.extend((0..further).map(|number| long_message("user", 400 + number)));
        host.append(Dialect::OpenaiChat, &list);
        ensure_context(&mut host, &list);
        assert_eq!(host.stored().len(), EARLIER + 3 + further);
    }
}
