#![expect(clippy::unwrap_used, reason = "a panic in a test is its failure")]
//! Calls of unknown outcome that are repeated: nothing is stored twice, nothing is left out.

use lcm_core::{
    Engine,
    api::{AppendOptions, Dialect, IngestMode, Receipt},
    error::ErrorCode,
};
use lcm_testing::ModelStore;

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
        mode: IngestMode,
        extra: &str,
        now: u64,
    ) -> Result<Receipt, ErrorCode> {
        self.store.begin_call();
        let options = AppendOptions { mode, partial: true, extra_json: Some(extra.into()) };
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
    for mode in [IngestMode::New, IngestMode::Transcript] {
        let mut chat = Chat::new();
        let (batch, other) = ([said("ok"), said("ok")], [said("no")]);
        assert_eq!(taken(&chat.append(&other, mode, "{}", NOW).unwrap()), (1, 0, 1));

        assert_eq!(
            taken(&chat.append(&batch, mode, r#"{"revision":1}"#, NOW + 1).unwrap()),
            (2, 0, 2)
        );
        let repeat = r#"{"revision":1,"repeat":true}"#;
        assert_eq!(taken(&chat.append(&batch, mode, repeat, NOW + 1).unwrap()), (0, 2, 2));

        chat.append(&other, IngestMode::New, "{}", NOW + 2).unwrap();
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
    for mode in [IngestMode::New, IngestMode::Transcript] {
        let mut chat = Chat::new();
        let batch = [said("ok")];
        chat.append(&batch, mode, r#"{"revision":0}"#, NOW).unwrap();
        let again = chat.append(&batch, mode, r#"{"revision":0}"#, NOW);
        assert_eq!(again.unwrap_err(), ErrorCode::Conflict);
    }
}
