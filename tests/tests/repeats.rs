#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic in a test is its failure"
)]
//! Repeated calls with unknown outcome: no message is stored twice, and none is left out.

use lcm_core::Engine;
use lcm_testing::ModelStore;
use lcm_text::{
    base::error::ErrorCode,
    types::api::{AppendMode, AppendOptions, Dialect, Receipt},
};

const CHAT: &str = "c";
const NOW: u64 = 1_700_000_000_000;

struct Chat {
    engine: Engine,
    store: ModelStore,
}

impl Chat {
    fn new() -> Self {
        Self { engine: Engine::new(), store: ModelStore::new() }
    }

    fn append(
        &mut self,
        messages: &[String],
        mode: AppendMode,
        extra: &str,
        now: u64,
    ) -> Result<Receipt, ErrorCode> {
        self.store.begin_call();
        let options =
            AppendOptions { append_mode: mode, partial: true, extra_json: Some(extra.into()) };
        self.engine
            .append(&mut self.store, CHAT, Dialect::Lcm, messages, &options, now)
            .map_err(|error| error.code)
    }
}

fn said(text: &str) -> String {
    serde_json::json!({"role": "user", "content": text}).to_string()
}

/// Returns the numbers of stored and skipped messages, and the revision, from a receipt.
fn taken(receipt: &Receipt) -> (u32, u32, u64) {
    (receipt.ingested, receipt.skipped, receipt.revision)
}

/// Goal: a host that names a revision may repeat its batch after an unknown outcome, and learns
/// whether the batch was stored. Method: in both modes a batch that was stored, one that was stored
/// before others wrote, and one that was not stored while others wrote. The texts are too short to
/// be recognised.
#[test]
fn a_repeated_batch_is_recognised_before_its_revision_is_compared() {
    for mode in [AppendMode::New, AppendMode::Transcript] {
        let mut chat = Chat::new();
        let (batch, other) = ([said("ok"), said("ok")], [said("no")]);
        assert_eq!(taken(&chat.append(&other, mode, "{}", NOW).unwrap()), (1, 0, 1));

        assert_eq!(
            taken(&chat.append(&batch, mode, r#"{"revision":1}"#, NOW + 1).unwrap()),
            (2, 0, 2)
        );
        let repeat = r#"{"revision":1,"repeat":true}"#;
        assert_eq!(taken(&chat.append(&batch, mode, repeat, NOW + 1).unwrap()), (0, 2, 2));

        chat.append(&other, AppendMode::New, "{}", NOW + 2).unwrap();
        assert_eq!(taken(&chat.append(&batch, mode, repeat, NOW + 1).unwrap()), (0, 2, 3));

        // At another time it is another batch, and its revision is no longer the newest.
        assert_eq!(chat.append(&batch, mode, repeat, NOW + 3).unwrap_err(), ErrorCode::Conflict);
        let repeat = r#"{"revision":3,"repeat":true}"#;
        assert_eq!(taken(&chat.append(&batch, mode, repeat, NOW + 3).unwrap()), (2, 0, 4));
    }
}

/// Goal: without `repeat` a revision is compared before anything else.
#[test]
fn a_batch_that_is_no_repetition_is_a_conflict_at_another_revision() {
    for mode in [AppendMode::New, AppendMode::Transcript] {
        let mut chat = Chat::new();
        let batch = [said("ok")];
        chat.append(&batch, mode, r#"{"revision":0}"#, NOW).unwrap();
        let again = chat.append(&batch, mode, r#"{"revision":0}"#, NOW);
        assert_eq!(again.unwrap_err(), ErrorCode::Conflict);
    }
}

/// Goal: equal batches that name different revisions are no repetition of each other. Method: of
/// two equal batches, the second was not stored, and is repeated with the same time.
#[test]
fn equal_batches_at_two_revisions_are_two() {
    let mut chat = Chat::new();
    let batch = [said("ok"), said("ok")];
    let at = |revision: u64| format!(r#"{{"revision":{revision},"repeat":true}}"#);
    let new = AppendMode::New;
    assert_eq!(taken(&chat.append(&batch, new, r#"{"revision":0}"#, NOW).unwrap()), (2, 0, 1));
    assert_eq!(taken(&chat.append(&batch, new, &at(1), NOW).unwrap()), (2, 0, 2));
    assert_eq!(taken(&chat.append(&batch, new, &at(1), NOW).unwrap()), (0, 2, 2));
    assert_eq!(taken(&chat.append(&batch, new, &at(0), NOW).unwrap()), (0, 2, 2));
}

/// A named list that a host appends in several calls.
struct List<'a> {
    name: &'a str,
    texts: &'a [String],
    /// Largest number of messages of a call.
    cut: usize,
}

impl List<'_> {
    /// Appends the part from index `from`; returns the numbers of stored and consumed messages.
    fn call(&self, chat: &mut Chat, from: usize, repeat: bool) -> (u32, u32) {
        let List { name, texts, cut } = self;
        let part = &texts[from..texts.len().min(from + cut)];
        let extra =
            serde_json::json!({"list": name, "list_offset": from, "repeat": repeat}).to_string();
        let receipt = chat.append(part, AppendMode::New, &extra, NOW).unwrap();
        let (ingested, skipped, _) = taken(&receipt);
        assert_eq!(usize::try_from(ingested + skipped).unwrap(), part.len());
        (ingested, skipped)
    }

    /// Makes `calls` calls from index `from` on; returns how many messages were stored.
    fn hand_over(&self, chat: &mut Chat, from: usize, calls: usize, repeat: bool) -> u32 {
        let places = (from..self.texts.len()).step_by(self.cut).take(calls);
        places.map(|from| self.call(chat, from, repeat).0).sum()
    }
}

fn equal(count: usize) -> Vec<String> {
    vec![said("ok"); count]
}

/// Goal: each message of a list is stored once, for any length, for equal messages, and if the
/// repetition has calls of another size. Method: the calls of a list stop at every place; then the
/// whole list is repeated with the same time in calls of another size.
#[test]
fn a_list_that_is_repeated_as_a_whole_is_stored_once() {
    let different: Vec<String> = (0..90).map(|number| said(&format!("no {number}"))).collect();
    for texts in [equal(90), different] {
        for (landed, cut) in (0..=9).flat_map(|landed| [7, 10, 25, 90].map(|cut| (landed, cut))) {
            let mut chat = Chat::new();
            let first = List { name: "l", texts: &texts, cut: 10 };
            let stored = first.hand_over(&mut chat, 0, landed, false);
            let again = List { name: "l", texts: &texts, cut };
            let further = again.hand_over(&mut chat, 0, usize::MAX, true);
            assert_eq!(stored + further, 90, "{landed} calls, then calls of {cut}");
            assert_eq!(again.hand_over(&mut chat, 0, usize::MAX, true), 0);
        }
    }
}

/// Goal: two lists whose calls alternate, with single messages between, do not affect each other.
/// An equal list with another name is another list.
#[test]
fn lists_that_are_written_in_turns_are_each_stored_once() {
    let texts = equal(100);
    let [a, b] = ["a", "b"].map(|name| List { name, texts: &texts, cut: 10 });
    let mut chat = Chat::new();
    for turn in 0..6 {
        assert_eq!(a.call(&mut chat, turn * 10, false), (10, 0));
        assert_eq!(b.call(&mut chat, turn * 10, false), (10, 0));
        for _ in 0..3 {
            chat.append(&[said("between")], AppendMode::New, "{}", NOW).unwrap();
        }
    }
    assert_eq!(a.hand_over(&mut chat, 0, usize::MAX, true), 40);
    assert_eq!(b.hand_over(&mut chat, 0, usize::MAX, true), 40);
}

/// Goal: messages are skipped only with `repeat`. Method: a list is appended again under its old
/// name without `repeat`, and is stored each time.
#[test]
fn a_list_that_is_not_said_to_be_repeated_is_stored_again() {
    let texts = equal(30);
    let list = List { name: "l", texts: &texts, cut: 10 };
    let mut chat = Chat::new();
    for from in [0, 0, 10, 10, 20, 20] {
        assert_eq!(list.call(&mut chat, from, false), (10, 0));
    }
}

/// Goal: a message is stored unless the engine knows that it is stored already. Method: a list that
/// is not among the last 8 lists, and one whose record counts fewer messages than were appended.
#[test]
fn what_a_list_is_not_known_to_hold_is_stored() {
    let texts = equal(30);
    let [list, long] = [10, 20].map(|cut| List { name: "l", texts: &texts, cut });
    let mut chat = Chat::new();
    assert_eq!(list.call(&mut chat, 0, false), (10, 0));
    assert_eq!(list.call(&mut chat, 20, true), (10, 0));
    for number in 0..8 {
        let other = [said(&format!("other {number}"))];
        chat.append(&other, AppendMode::New, "{}", NOW).unwrap();
    }
    assert_eq!(list.call(&mut chat, 10, true), (10, 0));
    assert_eq!(long.call(&mut chat, 10, true), (10, 10));
}

/// Goal: a list needs the mode `new` and a name; a place in a list needs a list.
#[test]
fn a_list_that_is_none_is_refused() {
    let long = "x".repeat(513);
    let refused = [
        (AppendMode::Transcript, serde_json::json!({"list": "l"})),
        (AppendMode::New, serde_json::json!({"list_offset": 1})),
        (AppendMode::New, serde_json::json!({"list": ""})),
        (AppendMode::New, serde_json::json!({"list": long})),
        (AppendMode::New, serde_json::json!({"list": 7})),
    ];
    for (mode, extra) in refused {
        let mut chat = Chat::new();
        let refusal = chat.append(&equal(1), mode, &extra.to_string(), NOW);
        assert_eq!(refusal.unwrap_err(), ErrorCode::InvalidInput, "{extra}");
    }
    let far = r#"{"list":"l","list_offset":2000001}"#;
    let refusal = Chat::new().append(&equal(1), AppendMode::New, far, NOW);
    assert_eq!(refusal.unwrap_err(), ErrorCode::LimitExceeded);
}

/// Goal: if a part of a call was stored before, the rest is stored relative to the right revision.
#[test]
fn a_part_that_is_new_relies_on_its_revision() {
    let texts = equal(20);
    let mut chat = Chat::new();
    List { name: "l", texts: &texts, cut: 10 }.call(&mut chat, 0, false);
    let extra = r#"{"list":"l","revision":0,"repeat":true}"#;
    let of_both = chat.append(&texts, AppendMode::New, extra, NOW);
    assert_eq!(of_both.unwrap_err(), ErrorCode::Conflict);
    let of_first = chat.append(&texts[..10], AppendMode::New, extra, NOW).unwrap();
    assert_eq!(taken(&of_first), (0, 10, 1));
    let extra = r#"{"list":"l","revision":1,"repeat":true}"#;
    let of_both = chat.append(&texts, AppendMode::New, extra, NOW).unwrap();
    assert_eq!(taken(&of_both), (10, 10, 2));
}
