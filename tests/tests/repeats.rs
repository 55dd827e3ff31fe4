#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic in a test is its failure"
)]
//! Calls of unknown outcome that are repeated: nothing is stored twice, nothing is left out.

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

/// What a receipt says of the messages: stored, skipped, and the revision.
fn taken(receipt: &Receipt) -> (u32, u32, u64) {
    (receipt.ingested, receipt.skipped, receipt.revision)
}

/// Goal: a host that relies on a revision may repeat its batch after an unknown outcome, and
/// learns whether it landed. Method: in both modes a batch that landed, one that landed before
/// others wrote, and one that did not land while others wrote; texts too short to be recognised.
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

        // Said at another time it is another batch, and the conversation moved on.
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

/// Goal: equal batches that rely on different revisions are no repetition of each other. Method:
/// the second of two equal ones did not land when it is repeated under the same time.
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

/// A list that a host hands over in calls of some size, under a name.
struct List<'a> {
    name: &'a str,
    texts: &'a [String],
    /// Messages of a call.
    cut: usize,
}

impl List<'_> {
    /// The call of this place in it; returns how many messages it consumed.
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

    /// Its calls from a place on, as many as are said; returns how many messages were stored.
    fn hand_over(&self, chat: &mut Chat, from: usize, calls: usize, repeat: bool) -> u32 {
        let places = (from..self.texts.len()).step_by(self.cut).take(calls);
        places.map(|from| self.call(chat, from, repeat).0).sum()
    }
}

fn equal(count: usize) -> Vec<String> {
    vec![said("ok"); count]
}

/// Goal: however long a list is, however equal its messages are and wherever the repetition cuts
/// it, each message is stored once. Method: lists whose calls stop at every place, after which the
/// whole is repeated in calls of another size under the same time.
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

/// Goal: two lists that are written in turns, and single messages between, do not disturb each
/// other, and an equal list of another name is another list.
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

/// Goal: only `repeat` skips. Method: a list begun anew under its old name, twice at a time, is
/// stored as often as it is handed over.
#[test]
fn a_list_that_is_not_said_to_be_repeated_is_stored_again() {
    let texts = equal(30);
    let list = List { name: "l", texts: &texts, cut: 10 };
    let mut chat = Chat::new();
    for from in [0, 0, 10, 10, 20, 20] {
        assert_eq!(list.call(&mut chat, from, false), (10, 0));
    }
}

/// Goal: in doubt a message is stored. Method: a list that is none of the last 8 any more, and one
/// whose mark says less than was handed over.
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

/// Goal: a list is of mode `new`, has a name, and a place only with it.
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

/// Goal: a call of a list that was consumed in part stands on the revision that its rest needs.
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
