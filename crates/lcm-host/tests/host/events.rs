//! Events: a subscriber of `tracing` gets the same list as a listener of any other host.

use std::{
    collections::VecDeque,
    fmt, fs, io,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use lcm_host::{
    Cancel, Clock, CompactOptions, IngestOptions, Lcm, TurnOptions,
    ingestion::AppendMode,
    types::{
        Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult,
        Dialect, Finish,
    },
};
use serde_json::{Map, Value, json};
use tracing::{
    Dispatch, Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
    subscriber,
};
use tracing_subscriber::{
    layer::{Context, Layer, SubscriberExt as _},
    registry::{LookupSpan, Registry},
};

use crate::engine::{Fault, Faulty};

#[path = "../../../../host-examples/rust/events.rs"]
#[allow(dead_code, reason = "its `main`")]
mod example;

/// The script that every host runs, with its events.
fn script_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/events/script.json")
}

/// Returns a second subscriber, to keep while another one listens to this thread. With a single
/// one, `tracing` asks the subscriber of the thread that reaches an event first, and leaves the
/// event out everywhere if this is the thread of another test, which has none.
fn create_second_subscriber() -> Dispatch {
    Dispatch::new(Registry::default())
}

/// Keeps events with the conversation of their span.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Value>>>);

/// The fields of an event or a span.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_list = field.name() == "findings";
        let list = || serde_json::from_str(value).unwrap();
        self.0.insert(field.name().into(), if is_list { list() } else { value.into() });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        panic!("{field} is no plain value: {value:?}");
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Kept {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        if attributes.metadata().target() == "lcm" {
            attributes.record(&mut fields);
        }
        context.span(id).unwrap().extensions_mut().insert(fields.0);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if event.metadata().target() != "lcm" {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        if let Some(span) = context.event_span(event) {
            let extensions = span.extensions();
            let conversation = &extensions.get::<Map<String, Value>>().unwrap()["conversation"];
            fields.0.entry("conversation").or_insert_with(|| conversation.clone());
        }
        self.0.lock().unwrap().push(fields.0.into());
    }
}

/// Opens a handle whose model gives the answers of the list.
fn open_scripted(store: &Faulty, config: &Value, answers: &Arc<Mutex<VecDeque<Value>>>) -> Lcm {
    let answers = Arc::clone(answers);
    let model = move |_: &CompletionRequest| {
        let answer = answers.lock().unwrap().pop_front().unwrap();
        let Some(text) = answer.as_str() else {
            let code = match answer["failed"].as_str().unwrap() {
                "context-too-long" => CompletionErrorCode::ContextTooLong,
                "rate-limited" => CompletionErrorCode::RateLimited,
                "timeout" => CompletionErrorCode::Timeout,
                _ => CompletionErrorCode::Unavailable,
            };
            let message = "injected".into();
            return CompletionResult::Failed(CompletionError {
                code,
                message,
                retry_after_ms: None,
            });
        };
        CompletionResult::Done(Completion {
            text: text.into(),
            finish: Finish::Stop,
            model: "scripted".into(),
            input_tokens: 100,
            output_tokens: 10,
        })
    };
    let builder = Lcm::builder().store(store.clone()).config(config.to_string());
    let wasm = include_bytes!("../../../../dist/lcm.wasm");
    builder.model(model).retries(0).open(wasm).unwrap()
}

/// Performs a step of the script.
fn perform_step(lcm: &Lcm, step: &Value) {
    let clock = Clock::Fixed(step["now"].as_u64().unwrap());
    let chat = step["conversation"].as_str().unwrap();
    let cancel = Cancel::default();
    let texts = step["messages"].as_array().into_iter().flatten();
    let messages: Vec<String> = texts.map(|text| text.as_str().unwrap().into()).collect();
    let mut ingest = IngestOptions::new(Dialect::Lcm, clock);
    ingest.seq_seen = step["seq_seen"].as_u64();
    ingest.repeat = step["repeat"] == true;
    let budget = step["budget"].as_u64().unwrap_or(1);
    let mut compact = CompactOptions::new(u32::try_from(budget).unwrap(), clock);
    compact.force = step["force"] == true;
    match step["do"].as_str().unwrap() {
        "append" => {
            ingest.append_mode = AppendMode::New;
            lcm.ingest(chat, &messages, &ingest, &cancel, &mut |_| {}).unwrap();
        }
        "ingest" => {
            lcm.ingest(chat, &messages, &ingest, &cancel, &mut |_| {}).unwrap();
        }
        "turn" => {
            let mut turn = TurnOptions::new(ingest, compact);
            turn.defer = step["defer"].as_bool();
            lcm.turn(chat, &messages, &turn, &cancel).unwrap();
        }
        "maintain" => {
            lcm.maintain(chat, &compact, &cancel, &mut |_| {}).unwrap();
        }
        _ => {
            lcm.compact(chat, &compact, &cancel, &mut |_| {}).unwrap();
        }
    }
}

fn run_script(script: &Value) {
    let (store, answers) = (Faulty::default(), Arc::default());
    let lcm = open_scripted(&store, &script["config"], &answers);
    for step in script["steps"].as_array().unwrap() {
        if step["do"] == "conflict" {
            store.fail_next(Fault::Conflict);
            continue;
        }
        let listed = step["answers"].as_array().cloned().unwrap_or_default();
        *answers.lock().unwrap() = listed.into();
        perform_step(&lcm, step);
        assert!(answers.lock().unwrap().is_empty(), "{step}");
    }
}

/// Removes what a subscriber does not get, null, and the time that a model took.
fn to_comparable(event: &Value) -> Value {
    let mut members = event.as_object().unwrap().clone();
    assert_eq!(members.remove("ms").is_some(), members["kind"] == "model-called");
    members.retain(|_, value| !value.is_null());
    members.into()
}

#[test]
fn a_conversation_is_reported_as_in_every_host() {
    let script: Value = serde_json::from_str(&fs::read_to_string(script_path()).unwrap()).unwrap();
    let (kept, _second) = (Kept::default(), create_second_subscriber());
    let listening = Registry::default().with(kept.clone());
    subscriber::with_default(listening, || run_script(&script));
    let events: Vec<Value> = kept.0.lock().unwrap().iter().map(to_comparable).collect();
    let expected = script["events"].as_array().unwrap().iter();
    let expected: Vec<Value> = expected
        .map(|event| {
            let mut event = event.clone();
            let is_called = event["kind"] == "model-called";
            if is_called {
                event["ms"] = 0.into();
            }
            to_comparable(&event)
        })
        .collect();
    assert_eq!(events, expected);
}

/// A writer whose text can be read.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_example_prints_what_was_stored_and_summaries_without_a_model() {
    let (written, _second) = (Written::default(), create_second_subscriber());
    example::listen(written.clone()).unwrap();
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let lines = |kind: &str| text.lines().filter(move |line| line.contains(kind)).count();
    assert_eq!(lines("messages-stored"), 1, "{text}");
    assert!(lines("summary-made") > 0, "{text}");
    assert_eq!(lines("summary-made"), lines("level=\"fallback\""), "{text}");
    assert!(text.lines().all(|line| line.contains("conversation=\"chat-1\"")), "{text}");
    assert_eq!(lines("model-called"), 0, "{text}");
}

#[test]
fn a_listener_that_panics_breaks_no_call() {
    struct Broken(Arc<Mutex<u32>>);
    impl<S: Subscriber> Layer<S> for Broken {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            *self.0.lock().unwrap() += 1;
            panic!("the listener is broken");
        }
    }
    let (count, _second) = (Arc::new(Mutex::new(0)), create_second_subscriber());
    let broken = Registry::default().with(Broken(Arc::clone(&count)));
    let lcm = open_scripted(&Faulty::default(), &json!({}), &Arc::default());
    let options = IngestOptions::new(Dialect::Lcm, Clock::Fixed(1));
    let message = [r#"{"role": "user", "content": "one", "id": "m1"}"#.to_owned()];
    let append = || lcm.ingest("chat", &message, &options, &Cancel::default(), &mut |_| {});
    let report = subscriber::with_default(broken, append).unwrap();
    assert_eq!(report.ingested, 1);
    assert_eq!(*count.lock().unwrap(), 1);
    assert_eq!(append().unwrap().skipped, 1);
}
