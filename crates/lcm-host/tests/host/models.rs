//! The loop of compaction with models that answer, fail, or refuse.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use lcm_host::{
    Cancel, Clock, Code, CompactOptions, CompactReport, CompactStatus, IngestOptions, Lcm, Result,
    completion::{Chain, CompletionProvider},
    store::Memory,
    types::{
        Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult,
        Dialect, Finish,
    },
};

use crate::engine::{NOW, component, ingest, open, stored, transcript};

fn lcm_with(provider: impl CompletionProvider + 'static) -> Lcm {
    let chain = Chain::new(vec![Arc::new(provider)]).with_retries(0);
    Lcm::new(&component(), Box::new(Memory::new()), Arc::new(chain))
}

fn compact(lcm: &Lcm, budget: u32) -> Result<CompactReport> {
    let options = CompactOptions::new(budget, NOW);
    lcm.compact("c", &options, &Cancel::default(), &mut |_| ())
}

fn digest(lcm: &Lcm) -> String {
    lcm.digest_all(false, &Cancel::default()).unwrap()
}

fn answer(text: &str) -> CompletionResult {
    CompletionResult::Done(Completion {
        text: text.into(),
        finish: Finish::Stop,
        model: "test".into(),
        input_tokens: 0,
        output_tokens: 0,
    })
}

fn failing(code: CompletionErrorCode) -> impl CompletionProvider {
    move |_: &CompletionRequest| {
        let message = "out of order".to_owned();
        CompletionResult::Failed(CompletionError { code, message, retry_after_ms: None })
    }
}

#[test]
fn offline_compaction_fits_the_context_and_keeps_every_message() {
    let lcm = open(Memory::new());
    let messages = transcript(120, 60);
    ingest(&lcm, &messages);
    let report = compact(&lcm, 4_000).unwrap();
    assert_eq!(report.status, CompactStatus::Done, "{report:?}");
    assert!(report.tokens_after <= 3_000 && report.tokens_before > 3_000, "{report:?}");
    assert_eq!(report.passes.first().unwrap().tokens_before, report.tokens_before);
    assert_eq!(report.passes.last().unwrap().tokens_after, report.tokens_after);
    assert_eq!(stored(&lcm), messages);
    assert!(lcm.check_all("c", &Cancel::default()).unwrap().ok);
    let again = compact(&lcm, 4_000).unwrap();
    assert_eq!(again.status, CompactStatus::NothingToDo);
    assert_eq!((again.passes.len(), again.completions), (0, 0));
}

#[test]
fn a_turn_appends_and_compacts_when_it_is_due_and_keeps_its_messages_when_the_model_fails() {
    let messages = transcript(120, 60);
    let turn = |lcm: &Lcm, count: usize, budget: u32| {
        let (ingest, compact) =
            (IngestOptions::new(Dialect::Lcm, NOW), CompactOptions::new(budget, NOW));
        lcm.turn("c", &messages[..count], &ingest, &compact, &Cancel::default()).unwrap()
    };
    let lcm = open(Memory::new());
    let first = turn(&lcm, 2, 100_000);
    assert_eq!(first.ingested.ingested, 2);
    assert!(first.compacted.is_none() && first.failure.is_none(), "{first:?}");
    let second = turn(&lcm, 120, 4_000);
    assert_eq!(second.ingested.ingested, 118);
    assert_eq!(second.compacted.unwrap().status, CompactStatus::Done);
    let lcm = lcm_with(failing(CompletionErrorCode::Auth));
    let failed = turn(&lcm, 120, 4_000);
    assert_eq!(failed.failure.unwrap().code, Code::CompletionFailed);
    assert!(failed.compacted.is_none());
    assert_eq!(stored(&lcm), messages);
}

#[test]
fn a_turn_that_begins_as_the_conversation_did_loses_nothing() {
    for opening in ["ok", "please go on with the next file of the list"] {
        let lcm = open(Memory::new());
        let compact = CompactOptions::new(100_000, NOW);
        let mut ingest = IngestOptions::new(Dialect::Lcm, NOW);
        for round in 0..4 {
            // The same call at the same time is the same call.
            ingest.clock = Clock::Fixed(1_700_000_000_000 + round);
            let said = format!("{{\"role\":\"user\",\"content\":\"{opening}\"}}");
            let answer =
                format!("{{\"role\":\"assistant\",\"content\":\"the answer of round {round}\"}}");
            let messages = [said, answer];
            for message in messages {
                let cancel = Cancel::default();
                let report = lcm.turn("c", &[message], &ingest, &compact, &cancel).unwrap();
                assert_eq!(report.ingested.ingested, 1, "{opening}, {round}: {report:?}");
                assert!(report.ingested.warnings.is_empty(), "{report:?}");
            }
        }
        assert_eq!(stored(&lcm).len(), 8);
        ingest.clock = NOW;
        let wrong = CompactOptions::new(0, NOW);
        let message = String::from("{\"role\":\"user\",\"content\":\"not stored\"}");
        let refused = lcm.turn("c", &[message], &ingest, &wrong, &Cancel::default()).unwrap_err();
        assert_eq!(refused.error.code, Code::InvalidInput);
        assert_eq!(stored(&lcm).len(), 8, "a turn that is refused stores nothing");
    }
}

#[test]
fn a_model_that_refuses_the_key_ends_it_at_once_and_nothing_is_written() {
    for code in [CompletionErrorCode::Auth, CompletionErrorCode::Policy] {
        let lcm = lcm_with(failing(code));
        ingest(&lcm, &transcript(120, 60));
        let before = digest(&lcm);
        let error = compact(&lcm, 4_000).unwrap_err();
        assert_eq!(error.code, Code::CompletionFailed);
        assert!(error.message.ends_with("out of order"), "{error}");
        assert_eq!(digest(&lcm), before);
    }
}

#[test]
fn without_a_model_nothing_is_written_while_the_context_fits() {
    let lcm = lcm_with(failing(CompletionErrorCode::Unavailable));
    ingest(&lcm, &transcript(40, 60));
    let before = digest(&lcm);
    // Over the threshold of three quarters, not over the budget.
    let tokens = compact(&lcm, 1_000_000).unwrap().tokens_before;
    let report = compact(&lcm, tokens + 10).unwrap();
    assert_eq!(report.status, CompactStatus::ModelUnavailable, "{report:?}");
    assert_eq!(report.reason, "model-unavailable");
    assert!(report.passes.is_empty());
    assert_eq!(digest(&lcm), before);
}

#[test]
fn without_a_model_the_fallback_is_made_when_the_context_does_not_fit() {
    let lcm = lcm_with(failing(CompletionErrorCode::Unavailable));
    let messages = transcript(120, 60);
    ingest(&lcm, &messages);
    let report = compact(&lcm, 4_000).unwrap();
    assert_eq!(report.status, CompactStatus::Partial, "{report:?}");
    assert!(report.tokens_after <= 4_000, "{report:?}");
    assert!(report.passes.iter().all(|pass| pass.level == "fallback"));
    assert!(report.warnings.iter().any(|line| line.contains("out of order")), "{report:?}");
    assert_eq!(report.completions, 0);
    assert_eq!(stored(&lcm), messages);
}

#[test]
fn a_failing_model_is_asked_once_and_not_again_in_the_same_command() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let failing = failing(CompletionErrorCode::Timeout);
    let lcm = lcm_with(move |request: &CompletionRequest| {
        count.fetch_add(1, Ordering::SeqCst);
        failing.complete(request, &Cancel::default())
    });
    ingest(&lcm, &transcript(120, 60));
    let report = compact(&lcm, 4_000).unwrap();
    assert!(report.passes.len() > 1, "{report:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn an_empty_answer_ends_in_a_summary_all_the_same() {
    let lcm = lcm_with(|_: &CompletionRequest| answer(""));
    ingest(&lcm, &transcript(120, 60));
    let report = compact(&lcm, 4_000).unwrap();
    assert!(report.tokens_after <= 3_000, "{report:?}");
    assert!(report.passes.iter().all(|pass| pass.level == "fallback"), "{report:?}");
}

#[test]
fn parallel_answers_are_applied_in_the_order_of_their_requests() {
    let run = |parallel| {
        let lcm = lcm_with(|request: &CompletionRequest| answer(&format!("of {}", request.id)));
        ingest(&lcm, &transcript(200, 60));
        let options = CompactOptions { parallel, ..CompactOptions::new(4_000, NOW) };
        let report = lcm.compact("c", &options, &Cancel::default(), &mut |_| ()).unwrap();
        assert!(lcm.check_all("c", &Cancel::default()).unwrap().ok);
        assert!(report.passes.len() > 3, "{report:?}");
        (digest(&lcm), report.status)
    };
    assert_eq!(run(3), run(3), "threads must not change what is stored");
}

#[test]
fn compaction_stops_when_it_is_told_to() {
    let lcm = open(Memory::new());
    ingest(&lcm, &transcript(120, 60));
    let cancel = Cancel::default();
    let options = CompactOptions::new(4_000, NOW);
    let stop = &mut |_: &_| cancel.cancel();
    let error = lcm.compact("c", &options, &cancel, stop).unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
    let report = compact(&lcm, 4_000).unwrap();
    assert_eq!(report.status, CompactStatus::Done);
}

#[test]
fn an_unknown_conversation_is_not_found() {
    assert_eq!(compact(&open(Memory::new()), 4_000).unwrap_err().code, Code::NotFound);
}
