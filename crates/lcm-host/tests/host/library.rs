//! What a program that embeds the host builds on: the builder, conversations, pools, and work in
//! the background.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake},
    thread,
    time::Duration,
};

use lcm_host::{
    Cancel, Clock, Code, CompactStatus, Lcm, Limits, ToolCall, context,
    ingestion::AppendMode,
    store::{Guard, KeyValueStore, Memory, Page, Put, Scan, Shared, StoreError},
    types::{
        Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult,
        Dialect, Finish, Purpose,
    },
};
use serde_json::json;

use crate::{
    Folder,
    engine::{NOW, component, transcript},
    wasm,
};

/// Longer than any of these tests may take on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn answer(text: &str) -> CompletionResult {
    CompletionResult::Done(Completion {
        text: text.to_owned(),
        finish: Finish::Stop,
        model: "m".to_owned(),
        input_tokens: 0,
        output_tokens: 0,
    })
}

fn failure(code: CompletionErrorCode) -> CompletionResult {
    let message = "down".to_owned();
    CompletionResult::Failed(CompletionError { code, message, retry_after_ms: None })
}

/// Waits for a future with nothing but the standard library.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_path_is_opened_again_with_what_was_stored() {
    let folder = Folder::new();
    let messages = transcript(3, 10);
    for _ in 0..2 {
        let lcm = Lcm::builder().path(folder.path("a.lcm.db")).open_with(&component()).unwrap();
        let chat = lcm.conversation("c", 8_000).clock(NOW);
        chat.append(&messages).unwrap();
        let assembled = chat.assemble().unwrap();
        assert_eq!(assembled.fresh_tail_messages, 3);
    }
}

#[test]
fn messages_with_more_ids_than_one_call_takes_are_stored() {
    let result = |at: usize| {
        let part = json!({
            "type": "tool_result",
            "call_id": format!("toolu_01{at}AbCdEfGhIjKlMnOpQr"),
            "output": format!("row {at}"),
        });
        let id = format!("id{at}");
        let key = format!("event{at}");
        json!({"role": "tool", "id": id, "event_key": key, "parts": [part]}).to_string()
    };
    let messages: Vec<String> = (0..100).map(result).collect();
    let lcm = Lcm::builder().open_with(&component()).unwrap();
    let chat = lcm.conversation("c", 8_000).clock(NOW);
    assert_eq!(chat.append(&messages).unwrap().ingested, 100);
    let again = chat.append(&messages).unwrap();
    assert_eq!((again.ingested, again.skipped), (0, 100));
}

#[test]
fn a_handle_sets_aside_what_its_caller_has_seen_and_nothing_else() {
    let lcm = Lcm::builder().open_with(&component()).unwrap();
    let chat = lcm.conversation("c", 8_000).clock(NOW);
    let list = |last: &str| {
        let lines = ["What grows in the north garden?", "Beans and peas, in four rows.", last];
        let line = |(at, text): (usize, &&str)| {
            let role = ["user", "assistant"][at % 2];
            json!({"role": role, "content": text}).to_string()
        };
        lines.iter().enumerate().map(line).collect::<Vec<_>>()
    };
    let context = || chat.assemble().unwrap().messages_json;
    chat.append(&list("And in the orchard?")).unwrap();
    chat.turn(&list("And behind the greenhouse?")).unwrap();
    assert!(context().contains("greenhouse") && !context().contains("orchard"));
    let other = json!({"role": "user", "content": "The well is dry."}).to_string();
    lcm.conversation("c", 8_000).clock(NOW).append(&[other]).unwrap();
    chat.turn(&list("And along the south wall?")).unwrap();
    assert!(context().contains("The well is dry.") && context().contains("south wall"));
    chat.delete().unwrap();
    assert_eq!(chat.append(&list("And in the orchard?")).unwrap().seq_seen, 3);
}

#[test]
fn a_deleted_conversation_is_gone_and_a_stopped_deletion_goes_on() {
    let lcm = Lcm::builder().open_with(&component()).unwrap();
    let chat = lcm.conversation("c", 8_000).clock(NOW);
    chat.append(&transcript(40, 90)).unwrap();
    // The first piece alone, as if the process had ended behind it.
    lcm.admin_call("c", "delete", "{}", NOW.now_ms()).unwrap();
    assert_eq!(chat.append(&transcript(1, 90)).unwrap_err().code, Code::Denied);
    let stopped = Cancel::default();
    stopped.cancel();
    assert_eq!(lcm.delete("c", NOW, &stopped).unwrap_err().code, Code::Cancelled);
    let receipt = chat.delete().unwrap();
    assert_eq!((receipt.done, receipt.messages), (true, 40));
    assert_eq!(chat.delete().unwrap_err().code, Code::NotFound);
    assert_eq!(chat.append(&transcript(3, 90)).unwrap().revision, 1);
}

#[test]
fn the_next_model_is_asked_when_one_fails_and_a_purpose_may_have_its_own() {
    let (down, up, condensed) =
        (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let count = |counter: &Arc<AtomicU32>, answer: CompletionResult| {
        let counter = Arc::clone(counter);
        move |_: &CompletionRequest| {
            counter.fetch_add(1, Ordering::SeqCst);
            answer.clone()
        }
    };
    let lcm = Lcm::builder()
        .model(count(&down, failure(CompletionErrorCode::Unavailable)))
        .model(count(&up, answer("They talked.\nExpand for details about: words")))
        .model_for(Purpose::Condensed, count(&condensed, answer("never asked")))
        .retries(0)
        .open_with(&component())
        .unwrap();
    let chat = lcm.conversation("c", 3_000).clock(NOW);
    let done = chat.turn(&transcript(40, 90)).unwrap().compacted.unwrap();
    assert_eq!(done.status, CompactStatus::Done);
    let asked = up.load(Ordering::SeqCst);
    assert!(asked > 0 && down.load(Ordering::SeqCst) == asked, "{asked}");
    assert!(done.passes.iter().all(|pass| pass.purpose == "leaf"));
    assert_eq!(condensed.load(Ordering::SeqCst), 0);
}

#[test]
fn a_configuration_that_cannot_be_is_refused_before_the_first_call() {
    let error = Lcm::builder()
        .config(r#"{"context_threshold_permille": 5000}"#)
        .open_with(&component())
        .unwrap_err();
    assert_eq!(error.code, Code::InvalidInput);
}

#[test]
fn limits_stop_a_call_and_the_next_instance_is_a_new_one() {
    let limits = Limits { memory_bytes_max: 1 << 16, ..Limits::default() };
    let small = Lcm::builder().limits(limits).open(&wasm()).unwrap();
    assert_eq!(small.version().unwrap_err().code, Code::Internal);
    let limits = Limits { call_ms_max: 0, ..Limits::default() };
    let hasty = Lcm::builder().limits(limits).open(&wasm()).unwrap();
    for _ in 0..2 {
        assert_eq!(hasty.version().unwrap_err().code, Code::Internal);
    }
}

#[test]
fn one_store_has_one_handle() {
    let refused = |builder: lcm_host::Builder| builder.pool(2, &wasm()).unwrap_err().code;
    assert_eq!(refused(Lcm::builder().store(Memory::new())), Code::InvalidInput);
    assert_eq!(refused(Lcm::builder()), Code::InvalidInput);
    assert_eq!(Lcm::builder().store(Memory::new()).pool(0, &wasm()).unwrap().len(), 1);
}

/// Lets the first reads of two handles go on only when both have come.
#[derive(Clone, Default)]
struct Meeting {
    store: Shared<Memory>,
    waiting: Arc<(Mutex<u32>, Condvar)>,
    has_met: bool,
}

impl Meeting {
    fn meet(&mut self) {
        if std::mem::replace(&mut self.has_met, true) {
            return;
        }
        let (count, changed) = &*self.waiting;
        let mut count = count.lock().unwrap();
        *count += 1;
        changed.notify_all();
        let (_count, timeout) =
            changed.wait_timeout_while(count, PATIENCE, |count| *count < 2).unwrap();
        assert!(!timeout.timed_out(), "one call waited for the other");
    }
}

impl KeyValueStore for Meeting {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.meet();
        self.store.get_many(keys)
    }

    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError> {
        self.meet();
        self.store.scan(scan)
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError> {
        self.store.commit(guards, puts)
    }
}

#[test]
fn two_conversations_of_a_pool_run_at_the_same_time() {
    let store = Meeting::default();
    let pool = Lcm::builder().stores(move || Ok(store.clone())).pool(2, &wasm()).unwrap();
    let other = (0..100)
        .map(|number| format!("c{number}"))
        .find(|id| !std::ptr::eq(pool.of(id), pool.of("c")))
        .unwrap();
    let messages = transcript(5, 20);
    thread::scope(|scope| {
        for id in ["c", &other] {
            let chat = pool.conversation(id, 8_000).clock(NOW);
            let messages = &messages;
            scope.spawn(move || chat.append(messages).unwrap());
        }
    });
    for id in ["c", &other] {
        let chat = pool.conversation(id, 8_000).clock(NOW);
        assert_eq!(chat.assemble().unwrap().fresh_tail_messages, 5);
        assert!(pool.of("c").check_all(id, &Cancel::default()).unwrap().ok);
    }
}

#[test]
fn a_pool_over_one_file_keeps_every_conversation_whole() {
    let folder = Folder::new();
    let pool = Lcm::builder().path(folder.path("pool.lcm.db")).pool(3, &wasm()).unwrap();
    let messages = transcript(60, 60);
    thread::scope(|scope| {
        for number in 0..6 {
            let chat = pool
                .conversation(&format!("c{number}"), 3_000)
                .clock(NOW)
                .append_mode(AppendMode::New);
            let messages = &messages;
            scope.spawn(move || messages.iter().for_each(|one| drop(chat.turn(&[one]).unwrap())));
        }
    });
    pool.park();
    for number in 0..6 {
        let (id, mut texts) = (format!("c{number}"), Vec::new());
        // Every handle sees what all have stored.
        let lcm = pool.of("c0");
        let each = &mut |text: &str| {
            texts.push(text.to_owned());
            Ok(())
        };
        lcm.messages_all(&id, 1, u64::MAX, &Cancel::default(), each).unwrap();
        assert_eq!(texts, messages);
        assert!(lcm.check_all(&id, &Cancel::default()).unwrap().ok);
    }
}

#[test]
fn work_in_the_background_is_a_future_of_any_runtime() {
    let lcm = Lcm::builder().open_with(&component()).unwrap();
    let chat = lcm.conversation("c", 3_000).clock(NOW);
    let done = block_on(async {
        let first = chat.background(|chat| chat.append(&transcript(40, 90)));
        first.await.unwrap();
        // Both run; they are awaited one after the other.
        let compacted = chat.background(|chat| chat.compact());
        let digest = lcm.background(|lcm, cancel| lcm.digest_all(false, cancel));
        (compacted.await.unwrap(), digest.await.unwrap())
    });
    assert!(!done.0.passes.is_empty());
    assert_eq!(done.1.len(), 64);
}

#[test]
fn what_is_dropped_is_asked_to_stop() {
    let (asked, was_asked) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let (stopped, was_stopped) = mpsc::channel();
    let may_go = Mutex::new(may_go);
    let model = move |_: &CompletionRequest| {
        asked.send(()).unwrap();
        may_go.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        answer("They talked.\nExpand for details about: words")
    };
    let lcm = Lcm::builder().model(model).open_with(&component()).unwrap();
    let chat = lcm.conversation("c", 3_000).clock(NOW);
    chat.append(&transcript(40, 90)).unwrap();
    let running = chat.background(move |chat| stopped.send(chat.compact()).unwrap());
    was_asked.recv_timeout(PATIENCE).unwrap();
    drop(running);
    go.send(()).unwrap();
    let error = was_stopped.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
}

#[test]
#[should_panic(expected = "the work went wrong")]
fn a_panic_of_the_work_is_one_of_who_awaits_it() {
    let lcm = Lcm::builder().open_with(&component()).unwrap();
    block_on(lcm.background(|_, _| panic!("the work went wrong")))
}

/// A conversation with something to be asked about.
fn with_gate_code(
    model: impl Fn(&CompletionRequest) -> CompletionResult + Send + Sync + 'static,
) -> Lcm {
    let lcm = Lcm::builder().model(model).retries(0).open_with(&component()).unwrap();
    let chat = lcm.conversation("c", 8_000).dialect(Dialect::Anthropic).clock(NOW);
    chat.append(&[r#"{"role": "user", "content": "The gate code is 4711."}"#]).unwrap();
    lcm
}

const QUESTION: &str = r#"{"prompt": "What is the gate code?", "query": "gate code"}"#;

#[test]
fn a_tool_call_asks_the_model_of_the_handle_and_cites_what_it_read() {
    let lcm = with_gate_code(|request| {
        assert_eq!(request.purpose, Purpose::Ask);
        let id = request.prompt.split_once("[msg_").unwrap().1;
        answer(&format!("It is 4711 [msg_{}].", &id[..16]))
    });
    let chat = lcm.conversation("c", 8_000).dialect(Dialect::Anthropic).clock(NOW);
    let found = chat.call_tool("lcm_expand_query", QUESTION).unwrap();
    assert!(!found.is_error && found.text.contains("It is 4711 [msg_"), "{}", found.text);
    let wrong = chat.call_tool("lcm_expand_query", "{}").unwrap();
    assert!(wrong.is_error && wrong.text.contains("prompt"), "{}", wrong.text);
}

/// Goal: the tools of a handle read its conversation, unless the program widens their scope.
/// Method: another conversation with the sought words, in both scopes.
#[test]
fn tools_read_other_conversations_only_in_the_scope_of_the_store() {
    let lcm = with_gate_code(|_| unreachable!("a search asks no model"));
    let other = lcm.conversation("d", 8_000).clock(NOW);
    other.append(&[r#"{"role": "user", "content": "The gate code is 9999."}"#]).unwrap();
    let chat = lcm.conversation("c", 8_000).dialect(Dialect::Anthropic).clock(NOW);
    let wide = chat.clone().tool_scope(context::ToolScope::Store);
    for name in ["allConversations", "conversationId"] {
        assert!(!chat.tools().unwrap().contains(name) && wide.tools().unwrap().contains(name));
    }
    let every = r#"{"pattern": "gate code", "allConversations": true}"#;
    assert!(wide.call_tool("lcm_grep", every).unwrap().text.contains("9999"));
    let refused = chat.call_tool("lcm_grep", every).unwrap();
    assert!(refused.is_error && refused.text.contains("`allConversations` is not an argument"));
    let found = chat.call_tool("lcm_grep", r#"{"pattern": "gate code"}"#).unwrap().text;
    assert!(found.contains("4711") && !found.contains("9999"), "{found}");
}

#[test]
fn a_tool_call_that_is_stopped_leaves_no_question_open() {
    let cancel = Cancel::default();
    let stop = cancel.clone();
    let lcm = with_gate_code(move |_| {
        stop.cancel();
        failure(CompletionErrorCode::Other)
    });
    let ask = |cancel: &Cancel| {
        lcm.answer_tool_call(
            "c",
            &ToolCall::new("lcm_expand_query", QUESTION),
            Clock::Fixed(1),
            cancel,
        )
    };
    assert_eq!(ask(&cancel).unwrap_err().code, Code::Cancelled);
    // An open question would keep this one out; its model fails, too.
    let next = ask(&Cancel::default());
    let text = next.unwrap().text;
    assert!(text.contains("down") || text.contains("failed"), "{text}");
}

#[test]
fn options_of_an_assembly_are_those_of_the_conversation_and_its_own() {
    let lcm = Lcm::builder().open_with(&component()).unwrap();
    let chat = lcm.conversation("c", 8_000).clock(NOW);
    chat.append(&transcript(2, 10)).unwrap();
    let options = context::Options { explain: true, ..context::Options::default() };
    let items = chat.assemble_with(&options).unwrap().items;
    assert_eq!(items.last().unwrap().seq_last, Some(2));
    assert!(chat.assemble().unwrap().items.is_empty());
}

#[test]
fn what_can_wait_is_left_for_maintenance_of_the_conversation() {
    let lcm = Lcm::builder().open_with(&component()).unwrap();
    let chat = lcm.conversation("c", 5_000).clock(NOW).defer(true);
    let report = chat.turn(&transcript(40, 90)).unwrap();
    assert!(report.deferred && report.compacted.is_none(), "{report:?}");
    let maintained = chat.maintain().unwrap();
    assert!(maintained.debt.is_none() && maintained.compacted.is_some(), "{maintained:?}");
}

#[test]
fn a_turn_does_one_pass_of_what_the_turn_before_deferred() {
    let lcm = Lcm::builder().open_with(&component()).unwrap();
    let messages = transcript(44, 90);
    let tokens = {
        let chat = lcm.conversation("measure", 100_000).clock(NOW);
        chat.turn(&messages[..40]).unwrap();
        chat.compact().unwrap().tokens_before
    };
    // Over the threshold of three quarters, not over the budget.
    let chat = lcm.conversation("c", tokens * 5 / 4).clock(NOW);
    let first = chat.turn(&messages[..40]).unwrap();
    assert!(first.deferred && first.compacted.is_none(), "{first:?}");
    let second = chat.turn(&messages[40..42]).unwrap();
    let passes = second.compacted.unwrap().passes;
    assert_eq!((passes.len(), second.deferred), (1, true), "{passes:?}");
    let inline = chat.clone().defer(false).turn(&messages[42..]).unwrap();
    assert!(!inline.deferred, "{inline:?}");
}
