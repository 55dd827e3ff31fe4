#![expect(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Lists as hosts write them: the whole list is handed over after every turn, and its old messages
//! are written otherwise each time.
//!
//! Each message is stored once. What a list no longer has is set aside: stored, and in no context.

use lcm_core::Engine;
use lcm_testing::ModelStore;
use lcm_text::types::api::{AppendMode, AppendOptions, AssembleOptions, Dialect, Receipt};
use serde_json::{Value, json};

const CHAT: &str = "c";
const TURNS: usize = 20;

/// A host with one conversation.
struct Host {
    engine: Engine,
    store: ModelStore,
    now: u64,
    seen: u64,
    warnings: Vec<String>,
}

impl Host {
    fn new() -> Self {
        let (engine, store) = (Engine::new(), ModelStore::new());
        Self { engine, store, now: 1_700_000_000_000, seen: 0, warnings: Vec::new() }
    }

    /// Hands a list over as a caller that saw the conversation at `seen`.
    fn append_seen(&mut self, dialect: Dialect, list: &[Value], seen: Option<u64>) -> Receipt {
        self.now += 1_000;
        let messages: Vec<String> = list.iter().map(Value::to_string).collect();
        let extra = seen.map(|seen| json!({ "seq_seen": seen }).to_string());
        let options = AppendOptions {
            append_mode: AppendMode::Transcript,
            extra_json: extra,
            ..AppendOptions::default()
        };
        self.store.begin_call();
        let receipt = self
            .engine
            .append(&mut self.store, CHAT, dialect, &messages, &options, self.now)
            .expect("an append");
        self.warnings.extend(receipt.warnings.iter().cloned());
        receipt
    }

    fn append(&mut self, dialect: Dialect, list: &[Value]) -> Receipt {
        let receipt = self.append_seen(dialect, list, Some(self.seen));
        self.seen = receipt.seq_seen;
        receipt
    }

    /// Stores a list of any length by the plan of `reconcile`. Returns how many messages are stored.
    fn ingest(&mut self, list: &[Value]) -> usize {
        self.now += 1_000;
        let list: Vec<String> = list.iter().map(Value::to_string).collect();
        let mut entries: Vec<Value> = Vec::new();
        for batch in list.chunks(100) {
            let of_batch = self.engine.identify(Dialect::OpenaiChat, batch).expect("entries");
            entries.extend(serde_json::from_str::<Vec<Value>>(&of_batch).unwrap());
        }
        let transcript = json!({"entries": entries, "seq_seen": self.seen}).to_string();
        self.store.begin_call();
        let plan = self.engine.reconcile(&mut self.store, CHAT, &transcript, self.now);
        let mut plan: Value = serde_json::from_str(&plan.expect("a plan")).unwrap();
        let warnings = plan["warnings"].as_array().unwrap();
        self.warnings.extend(warnings.iter().map(|it| it.as_str().unwrap().to_owned()));
        let mut stored = 0;
        let mut batches: Vec<(Vec<String>, bool)> = Vec::new();
        for range in plan["missing_ranges"].as_array().unwrap() {
            let [from, to] =
                ["index_first", "index_last"].map(|key| range[key].as_u64().unwrap() as usize);
            let parts = list[from..=to].chunks(100);
            batches.extend(parts.map(|part| (part.to_vec(), range["revision"] == true)));
        }
        let count = batches.len();
        for (number, (batch, is_revision)) in batches.into_iter().enumerate() {
            let mut line = plan["line"].take();
            plan["line"] = json!({"list_hash": line["list_hash"], "seq_seen": line["seq_seen"]});
            line["count"] = json!(batch.len());
            line["revision"] = json!(is_revision);
            if number + 1 < count {
                line["list_hash"] = Value::Null;
            }
            let extra = json!({"revision": plan["revision"], "line": line}).to_string();
            let options = AppendOptions {
                append_mode: AppendMode::New,
                extra_json: Some(extra),
                ..AppendOptions::default()
            };
            let (dialect, now) = (Dialect::OpenaiChat, self.now);
            self.store.begin_call();
            let receipt = self.engine.append(&mut self.store, CHAT, dialect, &batch, &options, now);
            let receipt = receipt.expect("an append");
            plan["revision"] = json!(receipt.revision);
            self.seen = receipt.seq_seen;
            stored += receipt.ingested as usize;
        }
        stored
    }

    /// The stored messages.
    fn stored(&mut self) -> Vec<Value> {
        let mut messages: Vec<Value> = Vec::new();
        loop {
            self.store.begin_call();
            let first = messages.len() as u64 + 1;
            let page = self
                .engine
                .messages(&mut self.store, CHAT, first, u64::MAX >> 12, 1 << 20)
                .expect("messages");
            if page.is_empty() {
                return messages;
            }
            messages.extend(page.iter().map(|message| serde_json::from_str(message).unwrap()));
        }
    }

    /// The texts of the context in the dialect of Chat, oldest first.
    fn context(&mut self) -> Vec<String> {
        let (dialect, options) = (Dialect::OpenaiChat, AssembleOptions::default());
        self.store.begin_call();
        let assembled = self
            .engine
            .assemble(&mut self.store, CHAT, 1_000_000, dialect, &options, self.now)
            .expect("a context");
        let messages: Vec<Value> = serde_json::from_str(&assembled.messages_json).unwrap();
        messages.iter().map(|message| message["content"].as_str().unwrap_or("").into()).collect()
    }

    fn ensure_sound(&mut self) {
        self.store.begin_call();
        let report = self.engine.check(&mut self.store, CHAT, None).expect("a report");
        let report: Value = serde_json::from_str(&report).unwrap();
        for check in report["checks"].as_array().unwrap() {
            assert_eq!(check["status"], "pass", "{check}");
        }
    }
}

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

fn text_of(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}

/// What hosts do to messages between two turns.
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
        let context = host.context();
        assert_eq!(context.len(), said.len(), "{name}: {:?} {context:#?}", host.warnings);
        host.ensure_sound();
    }
}

/// A list in another dialect, whose messages begin elsewhere, is the same list.
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

fn long(role: &str, number: usize) -> Value {
    json!({"role": role, "content": format!("{role} said sentence number {number} of this chat.")})
}

/// An edited question and a regenerated answer set aside what they replace; a list that goes back
/// makes it live again, and nothing is stored twice.
#[test]
fn a_branch_sets_aside_and_comes_back() {
    let mut host = Host::new();
    let chat: Vec<Value> =
        (0..6).map(|number| long(["user", "assistant"][number % 2], number)).collect();
    host.append(Dialect::OpenaiChat, &chat);
    let mut edited = chat[..4].to_vec();
    edited.push(json!({"role": "user", "content": "Another question in place of the third one."}));
    let receipt = host.append(Dialect::OpenaiChat, &edited);
    assert_eq!(receipt.ingested, 1, "{:?}", receipt.warnings);
    assert!(receipt.warnings[0].starts_with("set-aside: "), "{:?}", receipt.warnings);
    assert_eq!(host.context(), edited.iter().map(text_of).collect::<Vec<_>>());
    edited.push(long("assistant", 7));
    assert_eq!(host.append(Dialect::OpenaiChat, &edited).ingested, 1);
    host.ensure_sound();
    // The host goes back to what was set aside.
    let mut back = chat.clone();
    back.push(long("user", 8));
    let receipt = host.append(Dialect::OpenaiChat, &back);
    assert_eq!(receipt.ingested, 1, "{:?}", receipt.warnings);
    assert_eq!(host.context(), back.iter().map(text_of).collect::<Vec<_>>());
    assert_eq!(host.stored().len(), 9);
    host.ensure_sound();
    // And once more to the other branch, without anything new.
    assert_eq!(host.append(Dialect::OpenaiChat, &edited).ingested, 0);
    assert_eq!(host.context(), edited.iter().map(text_of).collect::<Vec<_>>());
    host.ensure_sound();
}

/// Messages that the caller did not see are never set aside, nor anything in doubt.
#[test]
fn nothing_is_set_aside_in_doubt() {
    let mut host = Host::new();
    let chat: Vec<Value> =
        (0..4).map(|number| long(["user", "assistant"][number % 2], number)).collect();
    let seen = host.append(Dialect::OpenaiChat, &chat[..2]).seq_seen;
    host.append(Dialect::OpenaiChat, &chat);
    let other = [chat[0].clone(), chat[1].clone(), long("user", 9)];
    for (seen, why) in [(None, "seq_seen"), (Some(seen), "others stored messages")] {
        let mut list = other.to_vec();
        list.push(
            json!({"role": "assistant", "content": format!("An answer for {why}, in full.")}),
        );
        let receipt = host.append_seen(Dialect::OpenaiChat, &list, seen);
        let warning = receipt.warnings.first().cloned().unwrap_or_default();
        assert!(warning.starts_with("branch-in-doubt: ") && warning.contains(why), "{warning}");
    }
    assert_eq!(host.context().len(), host.stored().len());
    let short = |text: &str| json!({"role": "user", "content": text});
    let mut host = Host::new();
    host.append(Dialect::OpenaiChat, &[short("hi"), short("hello")]);
    let receipt = host.append(Dialect::OpenaiChat, &[short("hi"), long("assistant", 1)]);
    assert_eq!(receipt.ingested, 2, "{:?}", receipt.warnings);
    assert_eq!(host.context().len(), 4);
}

/// A list of one message is new, a longer list of old messages is not, and says so.
#[test]
fn short_lists_are_told_apart() {
    let mut host = Host::new();
    let poll = long("user", 1);
    for count in 1..=3 {
        host.append(Dialect::OpenaiChat, std::slice::from_ref(&poll));
        assert_eq!(host.stored().len(), count);
    }
    let chat: Vec<Value> = (2..8).map(|number| long("user", number)).collect();
    host.append(Dialect::OpenaiChat, &chat);
    let receipt = host.append(Dialect::OpenaiChat, &chat[3..]);
    assert_eq!(receipt.ingested, 0);
    assert!(receipt.warnings[0].starts_with("nothing-new: "), "{:?}", receipt.warnings);
    // The newest messages, said again behind something new.
    let again = [long("user", 20), chat[4].clone(), chat[5].clone()];
    assert_eq!(host.append(Dialect::OpenaiChat, &again).ingested, 3);
}

/// A poll: a call and its result that say the same each time, under an id of their own.
fn poll(number: usize) -> [Value; 2] {
    let id = format!("call_abcdefghij{number:04}");
    [
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": "status", "arguments": "{\"job\":\"the nightly build of main\"}"}}]}),
        json!({"role": "tool", "tool_call_id": id, "content": "The job is still in the queue."}),
    ]
}

/// Calls whose ids differ are different calls, in windows and in whole lists.
#[test]
fn polls_are_never_taken_for_one() {
    let mut host = Host::new();
    let polls: Vec<Value> = (0..12).flat_map(poll).collect();
    for window in polls.chunks(4) {
        assert_eq!(host.append(Dialect::OpenaiChat, window).ingested, 4, "{:?}", host.warnings);
    }
    let mut whole = Host::new();
    for count in [2, 6, 24] {
        whole.append(Dialect::OpenaiChat, &polls[..count]);
    }
    assert_eq!((host.stored().len(), whole.stored().len()), (24, 24));
    assert_eq!(host.context().len(), 24);
}

/// After mode `new`, a list that begins as the list before is the new one.
#[test]
fn mode_new_begins_a_list_anew() {
    let mut host = Host::new();
    let chat: Vec<Value> =
        (0..4).map(|number| long(["user", "assistant"][number % 2], number)).collect();
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
    let next = [chat[0].clone(), chat[1].clone(), long("user", 9)];
    let receipt = host.append(Dialect::OpenaiChat, &next);
    assert_eq!((receipt.ingested, &receipt.warnings[..]), (1, &[][..]));
    // The whole of both lists is the longer match.
    let mut both = chat.clone();
    both.extend(next);
    both.push(long("assistant", 10));
    let receipt = host.append(Dialect::OpenaiChat, &both);
    assert_eq!((receipt.ingested, &receipt.warnings[..]), (1, &[][..]));
    assert_eq!(host.context().len(), 8);
    host.ensure_sound();
}

/// What a list has comes back: from a third branch, by id, and if nothing may be set aside.
#[test]
fn what_a_list_has_is_never_hidden() {
    for with_ids in [false, true] {
        let say = |role: &str, number: usize| {
            let mut message = long(role, number);
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
                // Every second return is made by a caller that does not say what it saw.
                let seen = Some(host.seen).filter(|_| turn != 1);
                host.warnings.clear();
                let receipt = host.append_seen(Dialect::OpenaiChat, list, seen);
                host.seen = receipt.seq_seen;
                assert_eq!(receipt.ingested, 0, "{with_ids} {place} {:?}", host.warnings);
                let context = host.context();
                let missing: Vec<String> =
                    list.iter().map(text_of).filter(|text| !context.contains(text)).collect();
                assert!(missing.is_empty(), "{with_ids} {place} {missing:?} {:?}", host.warnings);
            }
        }
        assert_eq!(host.stored().len(), 10);
        host.ensure_sound();
    }
}

/// A streamed answer that goes on replaces its first part, even for a caller that says nothing.
#[test]
fn a_streamed_answer_grows() {
    let mut host = Host::new();
    let question = long("user", 1);
    let answer = long("assistant", 2);
    let half = json!({"role": "assistant", "content": text_of(&answer)[..12]});
    host.append(Dialect::OpenaiChat, &[long("assistant", 0), question.clone(), half]);
    let whole = [long("assistant", 0), question, answer];
    let receipt = host.append_seen(Dialect::OpenaiChat, &whole, None);
    assert!(receipt.warnings[0].starts_with("revision: "), "{:?}", receipt.warnings);
    assert_eq!(host.context(), whole.iter().map(text_of).collect::<Vec<_>>());
    assert_eq!(host.stored().len(), 4);
    host.ensure_sound();
}

/// What others stored is not seen by a caller whose list does not have it.
#[test]
fn a_receipt_says_what_the_caller_saw() {
    let mut host = Host::new();
    let start: Vec<Value> =
        (0..4).map(|number| long(["user", "assistant"][number % 2], number)).collect();
    let of = |host: &mut Host, numbers: &[usize], seen: Option<u64>| {
        let mut list = start.clone();
        list.extend(numbers.iter().map(|number| long("user", *number)));
        let receipt = host.append_seen(Dialect::OpenaiChat, &list, seen);
        (receipt.ingested, receipt.seq_seen)
    };
    assert_eq!(of(&mut host, &[], None), (4, 4));
    assert_eq!(of(&mut host, &[10], Some(4)), (1, 5));
    // Another caller, which never saw message 5.
    assert_eq!(of(&mut host, &[20], Some(4)), (1, 4));
    assert_eq!(of(&mut host, &[20, 21], Some(4)), (1, 4));
    assert_eq!(of(&mut host, &[22], Some(4)), (1, 4));
    assert_eq!(host.context().len(), 8, "nothing is set aside");
    // The first caller reads all of it, and may then leave what it read.
    assert_eq!(of(&mut host, &[10, 20, 21, 22], Some(5)), (0, 8));
    assert_eq!(of(&mut host, &[11], Some(8)), (1, 9));
    assert_eq!(host.context().len(), 5);
    host.ensure_sound();
}

/// A list that ended before the newest message is not remembered at a wrong place.
#[test]
fn a_list_that_goes_back_twice_is_known_again() {
    let mut host = Host::new();
    let of = |names: &[usize]| {
        let mut list = vec![long("user", 0), long("assistant", 1)];
        list.extend(names.iter().map(|number| long(["user", "assistant"][number % 2], *number)));
        list
    };
    for names in [&[10, 11, 12][..], &[20], &[10], &[10, 11, 12], &[10, 11, 14]] {
        host.append(Dialect::OpenaiChat, &of(names));
    }
    let wanted: Vec<String> = of(&[10, 11, 14]).iter().map(text_of).collect();
    assert_eq!(host.context(), wanted, "{:?}", host.warnings);
    assert_eq!(host.stored().len(), 7);
    host.ensure_sound();
}

/// A result that is filled in later, under the id of its call, replaces the first one.
#[test]
fn a_result_that_was_pending_is_filled_in() {
    let mut host = Host::new();
    let [call, result] = poll(1);
    let result = |text: &str| {
        let mut result = result.clone();
        result["content"] = json!(text);
        result
    };
    host.append(Dialect::OpenaiChat, &[long("user", 1), call.clone(), result("pending")]);
    let rows = result("finished: twelve rows of the table");
    host.append(Dialect::OpenaiChat, &[long("user", 1), call, rows, long("assistant", 2)]);
    assert!(host.context().contains(&"finished: twelve rows of the table".to_owned()));
    assert!(!host.context().contains(&"pending".to_owned()), "{:?}", host.context());
    host.ensure_sound();
}

/// A chat of long messages, a question and an answer in turn.
fn chat_of(count: usize) -> Vec<Value> {
    (0..count).map(|number| long(["user", "assistant"][number % 2], number)).collect()
}

/// Each message is stored once.
fn ensure_once(host: &mut Host, what: &str) {
    let mut texts: Vec<String> = host.stored().iter().map(Value::to_string).collect();
    let count = texts.len();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), count, "{what}: {:?}", host.warnings);
    host.ensure_sound();
}

/// A host changes its first question, or has its first messages summarised, and keeps the rest.
#[test]
fn a_new_beginning_doubles_nothing() {
    let summary = json!({"role": "user", "content": "Summary of the conversation so far: a chat."});
    let notes = [json!({"role": "system", "content": "You help people."}), summary.clone()];
    let begins: [(&str, usize, &[Value]); 4] = [
        (
            "question",
            1,
            &[json!({"role": "user", "content": "The first question in other words."})],
        ),
        ("summary", 6, std::slice::from_ref(&summary)),
        ("one for one", 1, std::slice::from_ref(&summary)),
        ("system", 4, &notes),
    ];
    for (what, dropped, first) in begins {
        let mut host = Host::new();
        let chat = chat_of(12);
        host.append(Dialect::OpenaiChat, &chat[..6]);
        host.append(Dialect::OpenaiChat, &chat);
        let mut list = first.to_vec();
        list.extend_from_slice(&chat[dropped..]);
        for turn in 0..3 {
            list.extend([long("user", 20 + 2 * turn), long("assistant", 21 + 2 * turn)]);
            let receipt = host.append(Dialect::OpenaiChat, &list);
            let beginning = if turn == 0 { first.len() as u32 } else { 0 };
            assert_eq!(receipt.ingested, 2 + beginning, "{what} {turn} {:?}", host.warnings);
        }
        ensure_once(&mut host, what);
    }
}

/// A window that keeps the first question and drops the middle, in a run of one question.
#[test]
fn a_window_may_keep_the_first_question() {
    for form in ["texts", "unique ids", "counted ids"] {
        let mut host = Host::new();
        let mut list = vec![long("user", 0)];
        for turn in 0..30 {
            let [mut call, mut result] = poll(turn);
            if form == "counted ids" {
                call["tool_calls"][0]["id"] = json!(format!("call_{turn}"));
                result["tool_call_id"] = call["tool_calls"][0]["id"].clone();
            }
            match form {
                "texts" => list.push(long("assistant", turn + 1)),
                _ => list.extend([call, result]),
            }
            let mut window = list.clone();
            if window.len() > 9 {
                window.drain(1..list.len() - 8);
            }
            host.append(Dialect::OpenaiChat, &window);
        }
        assert_eq!(host.stored().len(), list.len(), "{form} {:?}", host.warnings);
        assert_eq!(host.context().len(), list.len(), "{form}");
    }
}

/// Windows of polls whose ids are of a host of its own, or counted through the conversation.
#[test]
fn windows_of_polls_are_aligned_by_their_ids() {
    let forms: [fn(usize) -> String; 3] = [
        |number| format!("550e8400-e29b-41d4-a716-44665544{number:04}"),
        |number| format!("call_{number}"),
        |number| format!("functions.status:{number}"),
    ];
    for id_of in forms {
        let mut host = Host::new();
        let list: Vec<Value> = (0..20)
            .flat_map(|number| {
                let id = json!(id_of(number));
                [
                    json!({"role": "assistant", "content": null, "tool_calls": [{"id": id,
                        "type": "function", "function": {"name": "status", "arguments": "{}"}}]}),
                    json!({"role": "tool", "tool_call_id": id, "content": "pending"}),
                ]
            })
            .collect();
        for end in (2..=list.len()).step_by(2) {
            host.append(Dialect::OpenaiChat, &list[end.saturating_sub(6)..end]);
        }
        let count = host.stored().len();
        assert_eq!(count, list.len(), "{} {:?}", id_of(7), host.warnings);
    }
    // Counted anew in each turn: what is said again is new.
    let mut host = Host::new();
    let turn = [
        json!({"role": "user", "content": "status?"}),
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_0",
            "type": "function", "function": {"name": "status", "arguments": "{}"}}]}),
        json!({"role": "tool", "tool_call_id": "call_0", "content": "pending"}),
        json!({"role": "assistant", "content": "pending"}),
    ];
    host.append(Dialect::OpenaiChat, &turn);
    for number in 0..3 {
        let list = [&[long("user", number)], &turn[1..]].concat();
        host.append(Dialect::OpenaiChat, &list);
    }
    assert_eq!(host.stored().len(), 16, "{:?}", host.warnings);
}

/// A short message belongs to the long one behind it, not to an equal one before.
#[test]
fn a_short_message_is_aligned_with_its_neighbour() {
    let ok = || json!({"role": "user", "content": "ok"});
    let mut host = Host::new();
    let mut list = chat_of(4);
    list.extend([ok(), long("assistant", 5), long("user", 6), long("assistant", 7), ok()]);
    list.extend([long("assistant", 9), long("user", 10)]);
    host.append(Dialect::OpenaiChat, &list);
    // What the host leaves out lies between two equal short messages.
    let mut next = list[..3].to_vec();
    next.extend_from_slice(&list[8..]);
    next.push(long("assistant", 11));
    let receipt = host.append(Dialect::OpenaiChat, &next);
    assert_eq!(receipt.ingested, 1, "{:?}", receipt.warnings);
    host.ensure_sound();
}

/// Changes in a long list, before more than 1,000 messages that stay.
#[test]
fn a_long_list_may_change_early() {
    for changed in [&[0][..], &[2], &[2, 700], &[3, 1_300], &[5, 6, 1_250, 2_450]] {
        let mut host = Host::new();
        let mut list = chat_of(2_500);
        host.ingest(&list);
        for place in changed {
            list[*place]["content"] = json!(format!("Other words at place {place} of the list."));
        }
        list.push(long("user", 9_000));
        let stored = host.ingest(&list);
        assert_eq!(stored, changed.len() + 1, "{changed:?} {:?}", host.warnings);
    }
}

/// A question that is edited to its own beginning, or to its end, is another question.
#[test]
fn a_shortened_question_is_an_edit() {
    let question = "Please write the report about the harbour, and add a table of all ships.";
    for (from, to) in [(0, 41), (29, question.len())] {
        for is_answered in [false, true] {
            let mut host = Host::new();
            let mut chat = chat_of(4);
            chat.push(json!({"role": "user", "content": question}));
            host.append(Dialect::OpenaiChat, &chat);
            if is_answered {
                chat.push(long("assistant", 5));
                host.append(Dialect::OpenaiChat, &chat);
            }
            let mut edited = chat[..4].to_vec();
            edited.push(json!({"role": "user", "content": &question[from..to]}));
            let receipt = host.append(Dialect::OpenaiChat, &edited);
            assert_eq!(receipt.ingested, 1, "{:?}", receipt.warnings);
            let wanted: Vec<String> = edited.iter().map(text_of).collect();
            assert_eq!(host.context(), wanted, "{is_answered} {:?}", receipt.warnings);
            host.ensure_sound();
        }
    }
    // A reminder that the next list leaves out is no edit.
    let mut host = Host::new();
    let mut chat = chat_of(4);
    for turn in 0..6 {
        let mut list = chat.clone();
        list.push(json!({"role": "user", "content": format!("{question} {turn} <reminder>")}));
        host.append(Dialect::OpenaiChat, &list);
        chat.push(json!({"role": "user", "content": format!("{question} {turn}")}));
        chat.push(json!({"role": "assistant", "content": "done"}));
    }
    host.append(Dialect::OpenaiChat, &chat);
    assert_eq!(host.context().len(), chat.len(), "{:?}", host.warnings);
}

/// Stubs for old results whose call ids only count calls.
#[test]
fn stubs_of_counted_calls_hide_nothing() {
    let turn = |number: usize, is_stub: bool| {
        let id = format!("call_{number}");
        let text = format!("The whole of page {number}, which is long and says a lot.");
        let text = if is_stub { "[removed]" } else { &text };
        [
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id,
                "type": "function", "function": {"name": "page", "arguments": "{}"}}]}),
            json!({"role": "tool", "tool_call_id": id, "content": text}),
        ]
    };
    for question in ["Read all pages of the book and tell me what they say.", "go"] {
        let mut host = Host::new();
        let mut list = Vec::new();
        for count in 1..=16 {
            list = vec![json!({"role": "user", "content": question})];
            list.extend((0..count).flat_map(|number| turn(number, number + 3 < count)));
            host.append(Dialect::OpenaiChat, &list);
        }
        let context = host.context();
        for number in 0..16 {
            let text = text_of(&turn(number, false)[1]);
            let found = context.iter().filter(|one| **one == text).count();
            assert_eq!(found, 1, "{question} {number} {context:?} {:?}", host.warnings);
        }
        assert_eq!(context.len(), list.len(), "{question} {:?}", host.warnings);
        host.ensure_sound();
    }
}

/// A shorter list takes back what follows it, at once and not with the next message.
#[test]
fn an_undo_acts_at_once() {
    let mut host = Host::new();
    let chat = chat_of(8);
    host.append(Dialect::OpenaiChat, &chat[..6]);
    host.append(Dialect::OpenaiChat, &chat);
    for count in [4, 8, 6, 4] {
        let receipt = host.append(Dialect::OpenaiChat, &chat[..count]);
        assert_eq!(receipt.ingested, 0, "{:?}", receipt.warnings);
        assert_eq!(host.context().len(), count, "{:?}", receipt.warnings);
        host.ensure_sound();
    }
    // Not by a caller that did not see all, and not by a window.
    host.append(Dialect::OpenaiChat, &chat);
    for (list, seen) in [(&chat[..4], None), (&chat[..4], Some(6)), (&chat[2..6], Some(host.seen))]
    {
        let receipt = host.append_seen(Dialect::OpenaiChat, list, seen);
        assert_eq!((receipt.ingested, host.context().len()), (0, 8), "{:?}", receipt.warnings);
    }
}

/// A host with windows goes back to an earlier branch.
#[test]
fn a_window_leads_back_to_its_branch() {
    let mut host = Host::new();
    let mut chat = chat_of(20);
    host.append(Dialect::OpenaiChat, &chat);
    let mut other = chat[..6].to_vec();
    other.extend((30..40).map(|number| long(["user", "assistant"][number % 2], number)));
    host.append(Dialect::OpenaiChat, &other);
    let mut third = other[..12].to_vec();
    third.extend((50..54).map(|number| long(["user", "assistant"][number % 2], number)));
    host.append(Dialect::OpenaiChat, &third);
    for list in [&mut chat, &mut other, &mut third] {
        list.push(json!({"role": "user", "content": format!("{} and more", list.last().unwrap())}));
        let receipt = host.append(Dialect::OpenaiChat, &list[list.len() - 4..]);
        assert_eq!(receipt.ingested, 1, "{:?}", receipt.warnings);
        let wanted: Vec<String> = list.iter().map(text_of).collect();
        assert_eq!(host.context(), wanted, "{:?}", receipt.warnings);
        host.ensure_sound();
    }
    ensure_once(&mut host, "windows");
}

/// A list that shares nothing with what is stored says so.
#[test]
fn a_list_without_overlap_is_announced() {
    let mut host = Host::new();
    assert_eq!(host.append(Dialect::OpenaiChat, &chat_of(4)).warnings.len(), 0);
    let others: Vec<Value> = (10..14).map(|number| long("user", number)).collect();
    let receipt = host.append(Dialect::OpenaiChat, &others);
    assert_eq!(receipt.ingested, 4);
    assert!(receipt.warnings[0].starts_with("no-overlap: "), "{:?}", receipt.warnings);
    assert_eq!(receipt.warnings.len(), 1);
}

/// Other text under the id of a stored message is never lost in silence.
#[test]
fn a_taken_id_is_announced() {
    let say = |id: usize, number: usize| {
        let mut message = long(["user", "assistant"][number % 2], number);
        message["id"] = json!(format!("m{id}"));
        message
    };
    let list = |numbers: &[(usize, usize)]| -> Vec<Value> {
        numbers.iter().map(|(id, number)| say(*id, *number)).collect()
    };
    let call = |host: &mut Host, list: &[Value], append_mode: AppendMode| {
        host.now += 1_000;
        let messages: Vec<String> = list.iter().map(Value::to_string).collect();
        let options = AppendOptions { append_mode, ..AppendOptions::default() };
        let (dialect, now) = (Dialect::OpenaiChat, host.now);
        host.store.begin_call();
        host.engine.append(&mut host.store, CHAT, dialect, &messages, &options, now)
    };
    for mode in [AppendMode::Transcript, AppendMode::New] {
        let mut host = Host::new();
        call(&mut host, &list(&[(0, 0), (1, 1), (2, 2)]), mode).expect("new messages");
        // One of three is lost, and announced; ids and texts that are known are not.
        let receipt = call(&mut host, &list(&[(1, 1), (2, 20), (3, 3)]), mode).expect("a warning");
        let warning = receipt.warnings.iter().find(|it| it.starts_with("id-taken: "));
        let warning = warning.unwrap_or_else(|| panic!("{mode:?} {:?}", receipt.warnings));
        assert!(warning.contains("1 of 3 messages, first `messages[1]`"), "{warning}");
        let again = call(&mut host, &list(&[(0, 0), (1, 1)]), mode).expect("known messages");
        assert!(!again.warnings.iter().any(|it| it.starts_with("id-taken")), "{again:?}");
        // Ids that begin anew, of stored messages and within one list.
        let stored = [(0, 40), (1, 41), (2, 42), (3, 43), (9, 44)];
        let repeated = [(20, 50), (20, 51), (20, 52), (20, 53), (20, 54), (21, 55)];
        for lost in [&stored[..], &repeated] {
            let error = call(&mut host, &list(lost), mode).expect_err("most is lost");
            assert!(error.message.contains("an id of its own"), "{}", error.message);
        }
        assert_eq!(host.stored().len(), 4);
    }
}
