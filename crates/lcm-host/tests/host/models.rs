//! The loop of compaction with models that answer, fail, or refuse.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use lcm_host::{
    Cancel, Clock, Code, CompactOptions, CompactReport, CompactStatus, IngestOptions, Lcm,
    MaintainReport, Result, TurnOptions,
    completion::{Chain, CompletionProvider},
    store::{Memory, Sqlite},
    types::{
        Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult,
        Dialect, Finish,
    },
    work::{self, ApplyOptions, Mode},
};

use crate::{
    Folder,
    engine::{NOW, component, ingest, open, stored, transcript},
};

fn lcm_with(provider: impl CompletionProvider + 'static) -> Lcm {
    let chain = Chain::new(vec![Arc::new(provider)]).with_retries(0);
    Lcm::new(&component(), Box::new(Memory::new()), Arc::new(chain))
}

fn compact(lcm: &Lcm, budget: u32) -> Result<CompactReport> {
    let options = CompactOptions::new(budget, NOW);
    lcm.compact("c", &options, &Cancel::default(), &mut |_| ())
}

fn turn_options(budget: u32) -> TurnOptions {
    TurnOptions::new(IngestOptions::new(Dialect::Lcm, NOW), CompactOptions::new(budget, NOW))
}

fn digest(lcm: &Lcm) -> String {
    lcm.digest_all(false, &Cancel::default()).unwrap()
}

fn digest_messages(lcm: &Lcm) -> String {
    lcm.digest_all(true, &Cancel::default()).unwrap()
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
        lcm.turn("c", &messages[..count], &turn_options(budget), &Cancel::default()).unwrap()
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
        let mut options = turn_options(100_000);
        for round in 0..4 {
            // The same call at the same time is the same call.
            options.ingest.clock = Clock::Fixed(1_700_000_000_000 + round);
            let said = format!("{{\"role\":\"user\",\"content\":\"{opening}\"}}");
            let answer =
                format!("{{\"role\":\"assistant\",\"content\":\"the answer of round {round}\"}}");
            let messages = [said, answer];
            for message in messages {
                let report = lcm.turn("c", &[message], &options, &Cancel::default()).unwrap();
                assert_eq!(report.ingested.ingested, 1, "{opening}, {round}: {report:?}");
                assert!(report.ingested.warnings.is_empty(), "{report:?}");
            }
        }
        assert_eq!(stored(&lcm).len(), 8);
        let wrong = turn_options(0);
        let message = String::from("{\"role\":\"user\",\"content\":\"not stored\"}");
        let refused = lcm.turn("c", &[message], &wrong, &Cancel::default()).unwrap_err();
        assert_eq!(refused.error.code, Code::InvalidInput);
        assert_eq!(stored(&lcm).len(), 8, "a turn that is refused stores nothing");
    }
}

fn plan_options() -> work::Options {
    work::Options {
        mode: Mode::Threshold,
        force: false,
        target: None,
        observed_tokens: None,
        requests_max: 1,
        lease_ms: 0,
        sweep: None,
        extra_json: None,
    }
}

/// Goal: a refused key or content ends a compaction at once; the component is told, as by every
/// other host, and nothing of the conversation changes. Method: the bytes of the store against
/// those that plan and apply leave.
#[test]
fn a_refusal_ends_it_at_once_and_leaves_the_bytes_that_plan_and_apply_leave() {
    for code in [CompletionErrorCode::Auth, CompletionErrorCode::Policy] {
        let [lcm, by_hand] = [lcm_with(failing(code)), lcm_with(failing(code))];
        for lcm in [&lcm, &by_hand] {
            ingest(lcm, &transcript(120, 60));
        }
        let logical_before = digest_messages(&lcm);
        let untold = CompactOptions { counts_refusals: false, ..CompactOptions::new(4_000, NOW) };
        for lcm in [&lcm, &by_hand] {
            lcm.compact("c", &untold, &Cancel::default(), &mut |_| ()).unwrap_err();
        }
        let before = digest(&lcm);

        let error = compact(&lcm, 4_000).unwrap_err();
        assert_eq!(error.code, Code::CompletionFailed);
        assert!(error.message.ends_with("out of order"), "{error}");
        let leased = work::Options { lease_ms: 120_000, ..plan_options() };
        let plan = by_hand.plan("c", 4_000, &leased, NOW.now_ms()).unwrap();
        let [request] = plan.requests.as_slice() else { panic!("{plan:?}") };
        let refused = failing(code).complete(request, &Cancel::default());
        let apply = ApplyOptions { fallback_over_tokens: None, extra_json: None };
        by_hand.apply("c", &request.id, &refused, &apply, NOW.now_ms()).unwrap();
        assert_eq!(digest(&lcm), digest(&by_hand), "{code:?}");
        assert_ne!(digest(&lcm), before, "{code:?}");
        assert_eq!(digest_messages(&lcm), logical_before, "{code:?}");
    }
}

#[test]
fn a_model_that_refuses_again_and_again_is_left_alone() {
    let lcm = lcm_with(failing(CompletionErrorCode::Auth));
    ingest(&lcm, &transcript(120, 60));
    for _ in 0..5 {
        assert_eq!(compact(&lcm, 4_000).unwrap_err().code, Code::CompletionFailed);
    }
    let report = compact(&lcm, 4_000).unwrap();
    assert_eq!((report.reason.as_str(), report.completions), ("breaker-open", 0));
}

#[test]
fn what_the_host_adds_counts_when_it_is_reported_until_a_summary_was_made() {
    let lcm = open(Memory::new());
    let messages = transcript(41, 60);
    ingest(&lcm, &messages[..40]);
    let tokens = compact(&lcm, 1_000_000).unwrap().tokens_before;
    let budget = 2 * tokens;
    assert_eq!(compact(&lcm, budget).unwrap().status, CompactStatus::NothingToDo);
    // All but 50 tokens below the threshold of three quarters is what the host adds.
    let observed_tokens = Some(tokens + tokens / 2 + 50);
    let options = CompactOptions { observed_tokens, ..CompactOptions::new(budget, NOW) };
    let copy = open(Memory::new());
    ingest(&copy, &messages[..40]);
    let report = copy.compact("c", &options, &Cancel::default(), &mut |_| {}).unwrap();
    assert_eq!((report.status, report.reason.as_str()), (CompactStatus::Done, "reached-target"));
    let intake = IngestOptions::new(Dialect::Lcm, NOW);
    let turn = TurnOptions { defer: Some(true), ..TurnOptions::new(intake, options.clone()) };
    let deferred = lcm.turn("c", &messages, &turn, &Cancel::default()).unwrap();
    assert!(deferred.deferred, "{deferred:?}");
    let done = lcm.maintain("c", &options, &Cancel::default(), &mut |_| {}).unwrap();
    assert_eq!(done.compacted.unwrap().status, CompactStatus::Done);
    assert_eq!(done.debt, None, "nothing is owed for a prompt that is no more");
}

#[test]
fn without_a_model_no_summary_is_written_while_the_context_fits() {
    let lcm = lcm_with(failing(CompletionErrorCode::Unavailable));
    ingest(&lcm, &transcript(40, 60));
    let before = digest_messages(&lcm);
    // Over the threshold of three quarters, not over the budget.
    let tokens = compact(&lcm, 1_000_000).unwrap().tokens_before;
    let report = compact(&lcm, tokens + 10).unwrap();
    assert_eq!(report.status, CompactStatus::ModelUnavailable, "{report:?}");
    assert_eq!(report.reason, "model-unavailable");
    assert!(report.passes.is_empty());
    assert_eq!(digest_messages(&lcm), before);
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
    let run = |requests_max| {
        let lcm = lcm_with(|request: &CompletionRequest| answer(&format!("of {}", request.id)));
        ingest(&lcm, &transcript(200, 60));
        let options = CompactOptions { requests_max, ..CompactOptions::new(4_000, NOW) };
        let report = lcm.compact("c", &options, &Cancel::default(), &mut |_| ()).unwrap();
        assert!(lcm.check_all("c", &Cancel::default()).unwrap().ok);
        assert!(report.passes.len() > 3, "{report:?}");
        (digest(&lcm), report.status)
    };
    assert_eq!(run(3), run(3), "threads must not change what is stored");
}

/// Returns a model that counts its answers and takes its time for each.
fn slow_model(asked: &Arc<AtomicU32>) -> impl Fn(&CompletionRequest) -> CompletionResult + use<> {
    let asked = Arc::clone(asked);
    move |_: &CompletionRequest| {
        asked.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(30));
        answer("They said the same word again and again.")
    }
}

#[test]
fn several_processes_ask_a_model_once_for_each_summary() {
    let folder = Folder::new();
    let path = folder.path("agent.lcm.db");
    let asked = Arc::new(AtomicU32::new(0));
    let open = || {
        let store = Sqlite::open(&path).unwrap();
        let chain = Chain::new(vec![Arc::new(slow_model(&asked))]);
        Lcm::new(&component(), Box::new(store), Arc::new(chain))
    };
    ingest(&open(), &transcript(400, 60));
    let reports: Vec<_> = std::thread::scope(|scope| {
        let compacting: Vec<_> =
            (0..3).map(|_| scope.spawn(|| compact(&open(), 6_000).unwrap())).collect();
        compacting.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let made: usize = reports.iter().map(|report| report.passes.len()).sum();
    assert!(made >= 5, "{reports:?}");
    assert_eq!(asked.load(Ordering::SeqCst), u32::try_from(made).unwrap(), "{reports:?}");
    assert!(open().check_all("c", &Cancel::default()).unwrap().ok);
}

/// Requests that another process leased postpone compaction. The model is still asked afterwards.
#[test]
fn a_lease_of_another_process_postpones_and_pauses_no_model() {
    let lcm = lcm_with(|_: &CompletionRequest| answer("They said the same word again and again."));
    ingest(&lcm, &transcript(120, 60));
    let leased = work::Options { lease_ms: 120_000, requests_max: 64, ..plan_options() };
    let plan = lcm.plan("c", 4_000, &leased, NOW.now_ms()).unwrap();
    assert!(plan.requests.len() > 1);
    let conflict = maintain(&lcm, 4_000, 0).unwrap();
    assert_eq!(conflict.compacted.unwrap().reason, "conflict");
    assert_eq!(conflict.debt.unwrap().failures, 0);
    let done = maintain(&lcm, 4_000, 2).unwrap().compacted.unwrap();
    assert_eq!((done.status, done.warnings), (CompactStatus::Done, Vec::<String>::new()));
    assert!(done.passes.iter().all(|pass| !pass.provisional));
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
fn an_unknown_conversation_is_not_compacted() {
    let error = compact(&open(Memory::new()), 4_000).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert_eq!(error.message, "conversation `c` does not exist");
}

/// What `maintain` does so many minutes after the beginning of the tests.
fn maintain(lcm: &Lcm, budget: u32, minutes: u64) -> Result<MaintainReport> {
    let clock = Clock::Fixed(NOW.now_ms() + minutes * 60_000);
    let options = CompactOptions::new(budget, clock);
    lcm.maintain("c", &options, &Cancel::default(), &mut |_| ())
}

#[test]
fn a_turn_leaves_for_later_what_can_wait_and_nothing_else() {
    let lcm = open(Memory::new());
    let messages = transcript(120, 60);
    let options = |budget| TurnOptions { defer: Some(true), ..turn_options(budget) };
    let turn = |count: usize, options: &TurnOptions| {
        lcm.turn("c", &messages[..count], options, &Cancel::default()).unwrap()
    };
    let early = turn(20, &options(9_000));
    assert!(!early.deferred && early.compacted.is_none(), "{early:?}");
    let tokens = compact(&lcm, 100_000).unwrap().tokens_before;
    let over = turn(20, &options(tokens * 5 / 4));
    assert!(over.deferred && over.compacted.is_none(), "{over:?}");
    assert!(lcm.status(Some("c"), NOW.now_ms()).unwrap().contains("\"failures\":0"));
    let done = maintain(&lcm, tokens * 5 / 4, 0).unwrap();
    assert_eq!((done.compacted.unwrap().status, done.debt), (CompactStatus::Done, None));
    let idle = maintain(&lcm, tokens * 5 / 4, 0).unwrap();
    assert!(idle.compacted.is_none() && idle.debt.is_none(), "{idle:?}");
    let must = turn(120, &options(4_000));
    assert!(!must.deferred && must.compacted.is_some(), "{must:?}");
    let mut forced = options(100_000);
    forced.compact.force = true;
    assert!(!turn(120, &forced).deferred, "nobody would do later what is not due later");
}

#[test]
fn what_was_put_off_is_tried_again_after_a_pause_that_grows() {
    let lcm = lcm_with(failing(CompletionErrorCode::Unavailable));
    ingest(&lcm, &transcript(120, 60));
    let budget = compact(&lcm, 100_000).unwrap().tokens_before * 5 / 4;
    for (minutes, failures, tried) in [(0, 1, true), (4, 1, false), (5, 2, true), (14, 2, false)] {
        let report = maintain(&lcm, budget, minutes).unwrap();
        assert_eq!(report.compacted.is_some(), tried, "{minutes}: {report:?}");
        assert_eq!(report.debt.unwrap().failures, failures, "{minutes}");
    }
}

#[test]
fn a_refused_key_is_said_and_tried_again_at_once_over_the_budget() {
    let lcm = lcm_with(failing(CompletionErrorCode::Auth));
    ingest(&lcm, &transcript(120, 60));
    for failures in 1..=2 {
        let report = maintain(&lcm, 4_000, 0).unwrap();
        assert_eq!(report.failure.unwrap().code, Code::CompletionFailed);
        assert_eq!((report.compacted, report.debt.unwrap().failures), (None, failures));
    }
    let debt = maintain(&lcm, 0, 0).unwrap_err();
    assert_eq!(debt.code, Code::InvalidInput);
}

#[test]
fn stopped_maintenance_is_no_failure_of_the_model() {
    let cancel = Cancel::default();
    let stop = cancel.clone();
    let lcm = lcm_with(move |_: &CompletionRequest| {
        stop.cancel();
        answer("too late")
    });
    ingest(&lcm, &transcript(120, 60));
    let options = CompactOptions::new(4_000, NOW);
    let error = lcm.maintain("c", &options, &cancel, &mut |_| ()).unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
    let status = lcm.status(Some("c"), NOW.now_ms()).unwrap();
    assert!(status.contains("\"failures\":0"), "{status}");
}

#[test]
fn one_leaf_at_a_time_is_made_before_the_threshold() {
    let lcm = open(Memory::new());
    lcm.configure(r#"{"leaf_chunk_tokens_max": 1000}"#).unwrap();
    ingest(&lcm, &transcript(120, 60));
    let mode = Mode::Incremental;
    let options = CompactOptions { mode, ..CompactOptions::new(100_000, NOW) };
    let report = lcm.compact("c", &options, &Cancel::default(), &mut |_| ()).unwrap();
    assert_eq!(report.passes.len(), 1, "{report:?}");
    assert_eq!((report.passes[0].purpose.as_str(), report.passes[0].depth), ("leaf", 0));
    assert_eq!(report.tokens_before, report.passes[0].tokens_before);
    assert_eq!(report.status, CompactStatus::Partial, "there is another leaf to make");
}

#[test]
fn a_pause_after_answers_in_vain_leaves_work_and_an_open_breaker_no_model() {
    let lcm = lcm_with(|_: &CompletionRequest| answer(&"long ".repeat(5_000)));
    lcm.configure(r#"{"leaf_chunk_tokens_max": 200, "summary_max_calls_per_window": 1}"#).unwrap();
    ingest(&lcm, &transcript(60, 60));
    let report = compact(&lcm, 2_000).unwrap();
    assert_eq!((report.status, report.reason.as_str()), (CompactStatus::Partial, "spend-limit"));
    let [rejected, paused] = report.warnings.as_slice() else { panic!("{report:?}") };
    assert!(rejected.starts_with("answer-rejected: too-large"), "{rejected}");
    assert!(paused.starts_with("models-paused: "), "{paused}");
    assert_eq!(compact(&lcm, 2_000).unwrap().warnings, std::slice::from_ref(paused));

    let lcm = lcm_with(failing(CompletionErrorCode::Auth));
    ingest(&lcm, &transcript(60, 60));
    let work = CompactOptions::new(2_000, NOW);
    let plan = lcm.plan("c", work.budget, &plan_options(), NOW.now_ms()).unwrap();
    let refused =
        failing(CompletionErrorCode::Auth).complete(&plan.requests[0], &Cancel::default());
    for _ in 0..5 {
        let apply = ApplyOptions { fallback_over_tokens: None, extra_json: None };
        lcm.apply("c", &plan.requests[0].id, &refused, &apply, NOW.now_ms()).unwrap();
    }
    let report = compact(&lcm, 2_000).unwrap();
    let expected = (CompactStatus::ModelUnavailable, "breaker-open");
    assert_eq!((report.status, report.reason.as_str()), expected);
}
