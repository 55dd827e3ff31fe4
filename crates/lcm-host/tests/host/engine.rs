//! The handle: instances, conflicts, unknown outcomes, and transcripts through the component.

use std::sync::{Arc, Mutex, OnceLock};

use lcm_host::{
    Cancel, Clock, Code, CompactOptions, Component, ExpandOptions, IngestOptions, IngestReport,
    Lcm, Limits, LoadOptions, Recorder,
    completion::{Chain, Offline},
    ingestion::{self, AppendMode},
    store::{Guard, KeyValueStore, Memory, Page, Put, Scan, StoreError},
    types::Dialect,
};

use crate::{Folder, wasm};

/// The clock of all tests.
pub(crate) const NOW: Clock = Clock::Fixed(1_700_000_000_000);

/// The component, compiled once for all tests.
pub(crate) fn component() -> Component {
    static COMPONENT: OnceLock<Component> = OnceLock::new();
    COMPONENT.get_or_init(|| load(Limits::default())).clone()
}

fn load(limits: Limits) -> Component {
    Component::load(&wasm(), &LoadOptions { limits, ..LoadOptions::default() }).unwrap()
}

pub(crate) fn open(store: impl KeyValueStore + 'static) -> Lcm {
    let component = component();
    let offline = Arc::new(Offline::new(&component));
    Lcm::new(&component, Box::new(store), Arc::new(Chain::new(vec![offline])))
}

/// Messages of about this many tokens each.
pub(crate) fn transcript(count: usize, tokens: usize) -> Vec<String> {
    let roles = ["user", "assistant"];
    let message = |n: usize| {
        let text = format!("message {n} says {}", "word ".repeat(tokens));
        serde_json::json!({"role": roles[n % 2], "content": text}).to_string()
    };
    (0..count).map(message).collect()
}

pub(crate) fn ingest(lcm: &Lcm, messages: &[String]) -> IngestReport {
    let options = IngestOptions::new(Dialect::Lcm, NOW);
    lcm.ingest("c", messages, &options, &Cancel::default(), &mut |_| ()).unwrap()
}

pub(crate) fn stored(lcm: &Lcm) -> Vec<String> {
    let mut texts = Vec::new();
    let each = &mut |text: &str| {
        texts.push(text.to_owned());
        Ok(())
    };
    match lcm.messages_all("c", 1, u64::MAX, &Cancel::default(), each) {
        Ok(()) => texts,
        Err(error) if error.code == Code::NotFound => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// What a faulty store does instead of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Says that another writer was first.
    Conflict,
    /// Writes nothing and does not know.
    Lost,
    /// Writes and does not know.
    ReplyLost,
    /// Never began.
    Busy,
    /// Writes: what goes wrong comes later.
    Sound,
}

/// A store in memory whose next commits go wrong.
#[derive(Clone, Default)]
pub(crate) struct Faulty {
    memory: Arc<Mutex<Memory>>,
    faults: Arc<Mutex<Vec<Fault>>>,
}

impl Faulty {
    fn with(faults: &[Fault]) -> Self {
        let faults = Arc::new(Mutex::new(faults.iter().rev().copied().collect()));
        Self { memory: Arc::default(), faults }
    }

    /// Has the next commit go wrong.
    pub(crate) fn fail_next(&self, fault: Fault) {
        self.faults.lock().unwrap().push(fault);
    }
}

impl KeyValueStore for Faulty {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.memory.lock().unwrap().get_many(keys)
    }

    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError> {
        self.memory.lock().unwrap().scan(scan)
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError> {
        let fault = self.faults.lock().unwrap().pop();
        let unknown = || StoreError::Unavailable("the reply was lost".into());
        match fault {
            Some(Fault::Conflict) => Err(StoreError::Conflict),
            Some(Fault::Busy) => Err(StoreError::Busy("locked".into())),
            Some(Fault::Lost) => Err(unknown()),
            Some(Fault::ReplyLost) => {
                self.memory.lock().unwrap().commit(guards, puts)?;
                Err(unknown())
            }
            None | Some(Fault::Sound) => self.memory.lock().unwrap().commit(guards, puts),
        }
    }
}

#[test]
fn a_transcript_is_stored_once_and_comes_back_byte_for_byte() {
    let lcm = open(Memory::new());
    let messages = transcript(250, 20);
    let report = ingest(&lcm, &messages[..150]);
    assert_eq!((report.ingested, report.skipped), (150, 0));
    let report = ingest(&lcm, &messages);
    assert_eq!((report.ingested, report.skipped), (100, 150));
    assert_eq!((report.seq_first, report.seq_last), (Some(151), Some(250)));
    let report = ingest(&lcm, &messages);
    assert_eq!((report.ingested, report.skipped), (0, 250));
    assert!(report.revision > 0 && report.context_tokens > 0);
    assert_eq!(stored(&lcm), messages);
}

#[test]
fn a_message_too_large_for_one_call_is_handed_over_in_pieces() {
    let lcm = open(Memory::new());
    // Three bytes a character: pieces of 192 KiB end between characters only with care.
    let large = serde_json::json!({"role": "user", "content": "\u{20ac}".repeat(400_000)});
    let mut messages = transcript(3, 5);
    messages.insert(1, large.to_string());
    let report = ingest(&lcm, &messages);
    assert_eq!(report.ingested, 4);
    assert_eq!(stored(&lcm), messages);
    assert_eq!(ingest(&lcm, &messages).ingested, 0);
}

#[test]
fn a_large_message_that_comes_first_is_handed_over_for_its_family() {
    let large = serde_json::json!({"role": "user", "content": "x".repeat(600_000)}).to_string();
    for (pattern, ingested) in [("family", 0), ("c", 1)] {
        for append_mode in [AppendMode::Transcript, AppendMode::New] {
            let lcm = open(Memory::new());
            let config = serde_json::json!({"ignore_session_patterns": [pattern]});
            lcm.configure(&config.to_string()).unwrap();
            let mut options = IngestOptions::new(Dialect::Lcm, NOW);
            (options.family, options.append_mode) = (Some("family".to_owned()), append_mode);
            let messages = std::slice::from_ref(&large);
            let done = lcm.ingest("c", messages, &options, &Cancel::default(), &mut |_| ());
            assert_eq!(done.unwrap().ingested, ingested, "{pattern}, {append_mode:?}");
            let status = lcm.status(Some("c"), 0);
            assert_eq!(status.is_ok(), ingested == 1, "{pattern}, {append_mode:?}: {status:?}");
        }
    }
}

#[test]
fn nothing_is_stored_when_a_later_message_is_none() {
    let lcm = open(Memory::new());
    let before = lcm.digest_all(false, &Cancel::default()).unwrap();
    let mut messages = transcript(230, 5);
    messages[217] = r#"{"role":"nobody","content":"x"}"#.to_owned();
    let options = IngestOptions::new(Dialect::Lcm, NOW);
    let failure =
        lcm.ingest("c", &messages, &options, &Cancel::default(), &mut |_| ()).unwrap_err();
    assert_eq!(failure.index, Some(217));
    assert_eq!(failure.error.code, Code::InvalidInput);
    assert!(!failure.error.message.contains("messages["), "{failure}");
    assert_eq!(lcm.digest_all(false, &Cancel::default()).unwrap(), before);
}

#[test]
fn a_refused_upload_names_its_message() {
    let lcm = open(Memory::new());
    let mut messages = transcript(5, 5);
    for (place, bytes) in [(1, 600_000), (3, 33 << 20)] {
        let large = serde_json::json!({"role": "user", "content": "x".repeat(bytes)});
        messages[place] = large.to_string();
    }
    let options = IngestOptions::new(Dialect::Lcm, NOW);
    let failure =
        lcm.ingest("c", &messages, &options, &Cancel::default(), &mut |_| ()).unwrap_err();
    assert_eq!((failure.index, failure.error.code), (Some(3), Code::LimitExceeded));
    assert!(stored(&lcm).is_empty());
}

#[test]
fn ingest_stops_between_calls_and_goes_on_later() {
    let lcm = open(Memory::new());
    let messages = transcript(300, 5);
    let cancel = Cancel::default();
    let options = IngestOptions::new(Dialect::Lcm, NOW);
    let stop = &mut |done| {
        if done >= 100 {
            cancel.cancel();
        }
    };
    let failure = lcm.ingest("c", &messages, &options, &cancel, stop).unwrap_err();
    assert_eq!(failure.error.code, Code::Cancelled);
    assert_eq!(stored(&lcm).len(), 100);
    assert_eq!(ingest(&lcm, &messages).ingested, 200);
    assert_eq!(stored(&lcm), messages);
}

#[test]
fn a_conflict_is_repeated_often_and_not_for_ever() {
    let messages = transcript(3, 5);
    let lcm = open(Faulty::with(&[Fault::Conflict; 20]));
    assert_eq!(ingest(&lcm, &messages).ingested, 3);
    let lcm = open(Faulty::with(&[Fault::Conflict; 257]));
    let options = IngestOptions::new(Dialect::Lcm, NOW);
    let failure =
        lcm.ingest("c", &messages, &options, &Cancel::default(), &mut |_| ()).unwrap_err();
    assert_eq!(failure.error.code, Code::Conflict);
    assert!(stored(&lcm).is_empty());
}

#[test]
fn an_append_of_unknown_outcome_is_repeated_and_stores_once() {
    let messages = transcript(3, 5);
    for fault in [Fault::Lost, Fault::ReplyLost] {
        let lcm = open(Faulty::with(&[fault]));
        ingest(&lcm, &messages);
        assert_eq!(stored(&lcm), messages, "{fault:?}");
    }
}

/// Goal: an outcome that stays unknown for a while doubles nothing and leaves nothing out, whatever
/// the messages are. Method: equal ones too short to be recognised, in calls that are equal to each
/// other, of which each in turn fails before or after it was written, once or thrice.
#[test]
fn a_call_of_unknown_outcome_is_repeated_as_it_was() {
    let messages = vec![r#"{"role":"user","content":"ok"}"#.to_owned(); 250];
    let failures: [&[Fault]; 4] = [
        &[Fault::Lost],
        &[Fault::ReplyLost],
        &[Fault::Lost, Fault::Lost, Fault::ReplyLost],
        &[Fault::ReplyLost, Fault::Conflict],
    ];
    for (place, failure) in (0..3).flat_map(|place| failures.map(|failure| (place, failure))) {
        for append_mode in [AppendMode::Transcript, AppendMode::New] {
            let faults = [&vec![Fault::Sound; place], failure].concat();
            let lcm = open(Faulty::with(&faults));
            let options = IngestOptions { append_mode, ..IngestOptions::new(Dialect::Lcm, NOW) };
            let report =
                lcm.ingest("c", &messages, &options, &Cancel::default(), &mut |_| ()).unwrap();
            assert_eq!(stored(&lcm).len(), 250, "{place}, {failure:?}, {append_mode:?}");
            assert_eq!(report.revision, 3);
        }
    }
}

/// Goal: a list of any length may be repeated as a whole. Method: its ninth call fails until the
/// host gives up, having landed or not.
#[test]
fn a_list_that_was_given_up_is_repeated_as_a_whole() {
    let equal = vec![r#"{"role":"user","content":"ok"}"#.to_owned(); 950];
    for messages in [equal, transcript(950, 5)] {
        for first in [Fault::Lost, Fault::ReplyLost] {
            let faults = [vec![Fault::Sound; 8], vec![first], vec![Fault::Busy]].concat();
            let lcm = open(Faulty::with(&faults));
            let mut options = IngestOptions::new(Dialect::Lcm, NOW);
            options.append_mode = AppendMode::New;
            let ingest = |options: &IngestOptions| {
                lcm.ingest("c", &messages, options, &Cancel::default(), &mut |_| ())
            };
            // What landed needs no commit when it is repeated: the next call is the busy one.
            assert_eq!(ingest(&options).unwrap_err().error.code, Code::StoreUnavailable);
            options.repeat = true;
            ingest(&options).unwrap();
            assert_eq!(stored(&lcm), messages, "{first:?}");
        }
    }
}

#[test]
fn a_store_that_never_began_is_not_asked_again() {
    let store = Faulty::with(&[Fault::Busy]);
    let lcm = open(store.clone());
    let options = IngestOptions::new(Dialect::Lcm, NOW);
    let messages = transcript(3, 5);
    let failure =
        lcm.ingest("c", &messages, &options, &Cancel::default(), &mut |_| ()).unwrap_err();
    assert_eq!(failure.error.code, Code::StoreUnavailable);
    assert!(stored(&lcm).is_empty());
    // The handle goes on with a new instance.
    assert_eq!(ingest(&lcm, &messages).ingested, 3);
}

#[test]
fn a_call_past_its_time_traps_and_the_store_is_kept() {
    let limits = Limits { call_ms_max: 0, ..Limits::default() };
    let store = Faulty::default();
    let component = load(limits);
    let offline = Arc::new(Offline::new(&component));
    let lcm = Lcm::new(&component, Box::new(store.clone()), Arc::new(Chain::new(vec![offline])));
    for _ in 0..2 {
        let error = lcm.status(Some("c"), 0).unwrap_err();
        assert_eq!(error.code, Code::Internal);
        assert!(error.message.contains("`admin.status` stopped the component"), "{error}");
    }
    assert_eq!(ingest(&open(store), &transcript(3, 5)).ingested, 3);
}

#[test]
fn an_instance_keeps_to_its_memory() {
    let limits = Limits { memory_bytes_max: 3 << 20, ..Limits::default() };
    let component = load(limits);
    let offline = Arc::new(Offline::new(&component));
    let lcm = Lcm::new(&component, Box::new(Memory::new()), Arc::new(Chain::new(vec![offline])));
    let large = vec!["x".repeat(8 << 20)];
    let error = lcm.identify(Dialect::Lcm, &large).unwrap_err();
    assert_eq!(error.code, Code::Internal);
    // A call that needs less is served by the instance that replaced the dead one.
    lcm.identify(Dialect::Lcm, &transcript(1, 5)).unwrap();
}

#[test]
fn a_refused_configuration_leaves_the_one_before() {
    let lcm = open(Memory::new());
    lcm.configure(r#"{"fresh_tail_messages_max": 7}"#).unwrap();
    let error = lcm.configure(r#"{"fresh_tail_messages_max": "many"}"#).unwrap_err();
    assert_eq!(error.code, Code::InvalidInput);
    ingest(&lcm, &transcript(3, 5));
    lcm.park();
    let status = lcm.status(Some("c"), 0).unwrap();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["fresh_tail"]["messages_max"], 7);
}

#[test]
fn two_handles_on_one_store_see_each_other() {
    let store = Faulty::default();
    let (first, second) = (open(store.clone()), open(store));
    let messages = transcript(4, 5);
    ingest(&first, &messages[..2]);
    ingest(&second, &messages[..3]);
    assert_eq!(ingest(&first, &messages).ingested, 1);
    assert_eq!(stored(&second), messages);
}

/// Goal: writers of one conversation over one file are overtaken and all get through.
#[test]
fn three_writers_of_one_conversation_store_everything() {
    let folder = Folder::new();
    let path = folder.0.join("a.db");
    let handles: Vec<Lcm> =
        (0..3).map(|_| open(lcm_host::store::Sqlite::open(&path).unwrap())).collect();
    let options =
        ingestion::Options { append_mode: AppendMode::New, partial: false, extra_json: None };
    std::thread::scope(|scope| {
        for (writer, lcm) in handles.iter().enumerate() {
            let options = &options;
            scope.spawn(move || {
                for (number, now) in (0..40).zip(NOW.now_ms()..) {
                    let content = format!("writer {writer} says {number}");
                    let message = serde_json::json!({"role": "user", "content": content});
                    lcm.append("c", Dialect::Lcm, &[message.to_string()], options, now).unwrap();
                }
            });
        }
    });
    let texts = stored(&handles[0]);
    assert_eq!(texts.len(), 120);
    for writer in 0..3 {
        let own = texts.iter().filter(|text| text.contains(&format!("writer {writer} ")));
        let said = own.enumerate().all(|(at, text)| text.contains(&format!(" {at}\"")));
        assert!(said, "each of a writer's messages once, in its order");
    }
}

#[test]
fn two_ingests_of_one_transcript_store_every_message_once() {
    // The first is interrupted by the second after it was told what is missing.
    for (reached, by_first) in [(0, 0), (100, 100), (200, 200)] {
        let store = Faulty::default();
        let (first, second) = (open(store.clone()), open(store));
        let messages = transcript(250, 5);
        let options = IngestOptions::new(Dialect::Lcm, NOW);
        let mut of_second = None;
        let between = &mut |done| {
            if done == reached && of_second.is_none() {
                of_second = Some(ingest(&second, &messages));
            }
        };
        let report = first.ingest("c", &messages, &options, &Cancel::default(), between).unwrap();
        let of_second = of_second.unwrap();
        assert_eq!((report.ingested, report.skipped), (by_first, 250 - by_first));
        assert_eq!((of_second.ingested, of_second.skipped), (250 - by_first, by_first));
        assert_eq!(report.revision, of_second.revision);
        assert_eq!(stored(&first), messages);
    }
}

#[test]
fn an_ingest_goes_on_behind_what_it_stored_when_others_append() {
    let store = Faulty::default();
    let (first, second) = (open(store.clone()), open(store));
    let messages = transcript(250, 5);
    let other = vec![r#"{"role":"user","content":"from elsewhere"}"#.to_owned()];
    let options = IngestOptions::new(Dialect::Lcm, NOW);
    let between = &mut |done| {
        if done == 100 && stored(&second).len() == 100 {
            second.append("c", Dialect::Lcm, &other, &new_messages(), NOW.now_ms()).unwrap();
        }
    };
    let report = first.ingest("c", &messages, &options, &Cancel::default(), between).unwrap();
    assert_eq!((report.ingested, report.skipped), (250, 0));
    assert_eq!(stored(&first), [&messages[..100], &other, &messages[100..]].concat());
}

#[test]
fn an_expansion_on_a_grant_follows_its_pages_and_keeps_what_was_paid_for() {
    let (store, cancel) = (Faulty::default(), Cancel::default());
    let lcm = open(store.clone());
    lcm.configure(r#"{"leaf_chunk_tokens_max":1000000}"#).unwrap();
    ingest(&lcm, &transcript(60, 5_000));
    let compact = CompactOptions::new(20_000, NOW);
    lcm.compact("c", &compact, &cancel, &mut |_| ()).unwrap();
    // The one that stands for most.
    let (mut top, mut most) = (String::new(), 0);
    let each = &mut |item: &serde_json::value::RawValue| {
        let item: serde_json::Value = serde_json::from_str(item.get()).unwrap();
        let count = item["seq_last"].as_u64().unwrap() - item["seq_first"].as_u64().unwrap();
        if count > most {
            (top, most) = (item["id"].as_str().unwrap().to_owned(), count);
        }
        Ok(())
    };
    lcm.list_all("summaries", Some("c"), None, &cancel, each).unwrap();
    let expand = |grant: Option<&str>, cursor: Option<String>| {
        let grant = grant.map(str::to_owned);
        let options =
            ExpandOptions { include_messages: true, grant, cursor, ..ExpandOptions::default() };
        lcm.expand_all("c", &top, &options, NOW.now_ms(), &cancel)
    };
    let made = |tokens_max: u64| {
        let limits = format!(r#"{{"tokens_max":{tokens_max},"depth_max":10}}"#);
        let grant = lcm.grant("c", &limits, NOW.now_ms()).unwrap();
        let grant: serde_json::Value = serde_json::from_str(&grant).unwrap();
        grant["id"].as_str().unwrap().to_owned()
    };
    let all = expand(None, None).unwrap();
    let bytes: usize = all.messages.iter().map(|message| message.get().len()).sum();
    assert!(bytes > 1 << 20 && all.cursor.is_none(), "{bytes}");
    let grant = made(1_000_000);
    let paid = expand(Some(&grant), None).unwrap();
    assert_eq!((paid.messages.len(), &paid.cursor), (all.messages.len(), &None));
    let note = paid.grant.unwrap();
    assert_eq!((note.tokens, note.truncated), (paid.tokens, false));
    assert_eq!(note.tokens_left, 1_000_000 - paid.tokens);
    // One that is spent half way ends there, and says where.
    let short = expand(Some(&made(20_000)), None).unwrap();
    assert!(short.grant.unwrap().truncated && short.cursor.is_some() && !short.messages.is_empty());
    // A failure behind the first page loses nothing: what follows is read from there on.
    let grant = made(1_000_000);
    *store.faults.lock().unwrap() = vec![Fault::Lost, Fault::Sound];
    let first = expand(Some(&grant), None).unwrap();
    let read = first.messages.len();
    assert!(read > 0 && read < all.messages.len() && first.cursor.is_some(), "{read}");
    let rest = expand(Some(&grant), first.cursor).unwrap();
    assert_eq!(read + rest.messages.len(), all.messages.len());
    *store.faults.lock().unwrap() = vec![Fault::Lost];
    assert_eq!(expand(Some(&grant), None).unwrap_err().code, Code::StoreUnavailable);
}

fn new_messages() -> ingestion::Options {
    ingestion::Options { append_mode: AppendMode::New, partial: false, extra_json: None }
}

#[test]
fn a_record_has_a_line_for_every_call() {
    let folder = Folder::new();
    let path = folder.path("record.jsonl");
    let component = component();
    let model = Arc::new(Chain::new(vec![Arc::new(Offline::new(&component))]));
    let recorder = Recorder::create(&path).unwrap();
    let lcm = Lcm::recorded(&component, Box::new(Memory::new()), model, Some(recorder));
    ingest(&lcm, &transcript(2, 5));
    lcm.describe("c", "sum_0", "{}", None, 0).unwrap_err();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls =
        |key: &str| -> Vec<&str> { lines.iter().filter_map(|line| line[key].as_str()).collect() };
    let expected = [
        "ingest.append",
        "ingest.identify",
        "ingest.reconcile",
        "ingest.append",
        "recall.describe",
    ];
    assert_eq!(calls("call"), expected);
    assert_eq!(calls("host_call").iter().filter(|call| **call == "store.commit").count(), 1);
    assert!(lines.last().unwrap()["error"]["code"].is_string());
}

/// After an undo the list is compared whole although its beginning is an accepted list, because the
/// messages after it may be those that were set aside.
#[test]
fn set_aside_messages_after_an_accepted_list_come_back() {
    let lcm = open(Memory::new());
    let messages = transcript(6, 30);
    let seq_seen = Some(ingest(&lcm, &messages).seq_seen);
    let options = IngestOptions { seq_seen, ..IngestOptions::new(Dialect::Lcm, NOW) };
    let hand_over = |count: usize| {
        let list = &messages[..count];
        lcm.ingest("c", list, &options, &Cancel::default(), &mut |_| ()).unwrap()
    };
    let undone = hand_over(4);
    assert!(undone.warnings[0].starts_with("set-aside: "), "{undone:?}");
    let redone = hand_over(6);
    assert_eq!(redone.ingested, 0, "{redone:?}");
    assert_eq!(stored(&lcm), messages);
    assert!(redone.warnings[0].starts_with("restored: "), "{redone:?}");
}

/// A list with a message that must be uploaded is compared whole, so the message is stored although
/// the messages before it are an accepted list.
#[test]
fn a_large_message_after_an_accepted_list_is_stored() {
    let lcm = open(Memory::new());
    let mut messages = transcript(6, 30);
    ingest(&lcm, &messages);
    let large = serde_json::json!({"role": "user", "content": "large ".repeat(100_000)});
    messages.push(large.to_string());
    let done = ingest(&lcm, &messages);
    assert_eq!((done.ingested, stored(&lcm).len()), (1, 7), "{done:?}");
}

/// After a list that takes several appends, the receipt says that the caller has seen all of it.
#[test]
fn the_receipt_of_several_appends_names_the_newest_message() {
    let lcm = open(Memory::new());
    let messages = transcript(370, 5);
    let seq_seen = Some(ingest(&lcm, &messages[..120]).seq_seen);
    for append_mode in [AppendMode::New, AppendMode::Transcript] {
        let is_new = append_mode == AppendMode::New;
        let list = if is_new { &messages[120..] } else { &messages[..] };
        let options =
            IngestOptions { seq_seen, append_mode, ..IngestOptions::new(Dialect::Lcm, NOW) };
        let done = lcm.ingest("c", list, &options, &Cancel::default(), &mut |_| ()).unwrap();
        assert_eq!(done.seq_seen, 370, "{append_mode:?} {done:?}");
    }
}
