//! The loop of a question with models that answer, search, fail, take too long or are stopped.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use lcm_host::{
    AskOptions, AskReport, AskStatus, Cancel, Code, Lcm, Result,
    completion::{Chain, CompletionProvider},
    store::Memory,
    types::{Completion, CompletionRequest, CompletionResult, Finish, Purpose},
};

use crate::engine::{NOW, component, ingest, open};

const QUESTION: &str = "What is the release called?";

fn with(provider: impl CompletionProvider + 'static) -> Lcm {
    let chain = Chain::new(vec![Arc::new(provider)]).with_retries(0);
    let lcm = Lcm::new(&component(), Box::new(Memory::new()), Arc::new(chain));
    said(&lcm);
    lcm
}

fn said(lcm: &Lcm) {
    let messages = ["the release is called heron", "lunch is at noon"];
    ingest(lcm, &messages.map(|text| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}")));
}

fn ask(lcm: &Lcm, options: &AskOptions) -> Result<AskReport> {
    lcm.ask("c", QUESTION, options, &Cancel::default())
}

fn done(text: String) -> CompletionResult {
    CompletionResult::Done(Completion {
        text,
        finish: Finish::Stop,
        model: "test".into(),
        input_tokens: 0,
        output_tokens: 0,
    })
}

/// The first id that a prompt shows.
fn first_id(prompt: &str) -> &str {
    &prompt[prompt.find("msg_").unwrap()..][..20]
}

/// A model that is waited for until the work is stopped; says when it was asked.
struct Slow(Arc<AtomicU32>, Option<Cancel>);

impl CompletionProvider for Slow {
    fn complete(&self, _request: &CompletionRequest, cancel: &Cancel) -> CompletionResult {
        self.0.fetch_add(1, Ordering::SeqCst);
        if let Some(stop) = &self.1 {
            stop.cancel();
        }
        cancel.sleep(std::time::Duration::from_secs(60));
        let message = "stopped".to_owned();
        let code = lcm_host::types::CompletionErrorCode::Unavailable;
        CompletionResult::Failed(lcm_host::types::CompletionError {
            code,
            message,
            retry_after_ms: None,
        })
    }
}

#[test]
fn a_question_is_answered_with_what_it_rests_on() {
    let lcm = open(Memory::new());
    said(&lcm);
    let report = ask(&lcm, &AskOptions::new(NOW)).unwrap();
    assert_eq!(report.status, AskStatus::Answered);
    assert!(report.answer.unwrap().contains("heron"));
    assert_eq!((report.cited_ids.len(), report.cited_conversations.len()), (1, 1));
    assert_eq!((report.completions, report.source_conversations), (1, vec!["c".to_owned()]));
    assert!(report.source_tokens > 0 && report.failure.is_none());
}

#[test]
fn the_component_decides_whether_a_second_completion_is_asked_for() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let lcm = with(move |request: &CompletionRequest| {
        let mut requests = seen.lock().unwrap();
        requests.push(request.clone());
        match requests.len() {
            1 => done("NOT FOUND\nSEARCH: lunch".to_owned()),
            _ => done(format!("Heron [{}].", first_id(&request.prompt))),
        }
    });
    // The neighbour of the hit would be read at once.
    let options =
        AskOptions { tokens_max: Some(40), answer_tokens_max: Some(77), ..AskOptions::new(NOW) };
    let report = ask(&lcm, &options).unwrap();
    assert_eq!((report.status, report.completions), (AskStatus::Answered, 2), "{report:?}");
    let requests = requests.lock().unwrap();
    assert!(requests.iter().all(|request| request.purpose == Purpose::Ask));
    assert!(requests[0].prompt.contains("at most 77 tokens"), "{}", requests[0].prompt);
    assert!(!requests[0].prompt.contains("noon") && requests[1].prompt.contains("noon"));
}

#[test]
fn a_model_that_takes_too_long_or_is_stopped_leaves_no_open_question() {
    let asked = Arc::new(AtomicU32::new(0));
    let lcm = with(Slow(Arc::clone(&asked), None));
    let options = AskOptions { deadline_ms: Some(30), ..AskOptions::new(NOW) };
    let report = ask(&lcm, &options).unwrap();
    assert_eq!(report.status, AskStatus::TimedOut);
    let failure = report.failure.unwrap();
    assert_eq!((failure.code.as_str(), failure.message.contains("30 ms")), ("timeout", true));
    // The next one is not kept out.
    assert_eq!(ask(&lcm, &options).unwrap().status, AskStatus::TimedOut);
    let stop = Cancel::default();
    let lcm = with(Slow(Arc::clone(&asked), Some(stop.clone())));
    let error = lcm.ask("c", QUESTION, &AskOptions::new(NOW), &stop).unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
    assert_eq!(ask(&lcm, &options).unwrap().status, AskStatus::TimedOut);
    let error = lcm.ask("c", QUESTION, &options, &stop).unwrap_err();
    assert_eq!((error.code, asked.load(Ordering::SeqCst)), (Code::Cancelled, 4));
}

#[test]
fn two_questions_of_one_conversation_are_not_answered_beside_each_other() {
    let own: Arc<Mutex<Option<Lcm>>> = Arc::default();
    let inside = Arc::clone(&own);
    let lcm = with(move |request: &CompletionRequest| {
        let lcm = inside.lock().unwrap().take().unwrap();
        let report = ask(&lcm, &AskOptions::new(NOW)).unwrap();
        assert_eq!((report.status, report.answer), (AskStatus::Busy, None));
        assert_eq!(report.expires_at.as_deref(), Some("2023-11-14T22:15:50.000Z"));
        done(format!("Heron [{}].", first_id(&request.prompt)))
    });
    *own.lock().unwrap() = Some(lcm.clone());
    assert_eq!(ask(&lcm, &AskOptions::new(NOW)).unwrap().status, AskStatus::Answered);
}

#[test]
fn what_cannot_be_asked_is_an_error() {
    let lcm = open(Memory::new());
    assert_eq!(ask(&lcm, &AskOptions::new(NOW)).unwrap_err().code, Code::NotFound);
    said(&lcm);
    let options = AskOptions { answer_tokens_max: Some(0), ..AskOptions::new(NOW) };
    assert_eq!(ask(&lcm, &options).unwrap_err().code, Code::InvalidInput);
    let options = AskOptions { deadline_ms: Some(600_001), ..AskOptions::new(NOW) };
    let error = ask(&lcm, &options).unwrap_err();
    assert_eq!(error.code, Code::InvalidInput);
    let rule = "`deadline_ms` must be from 1 to 600000, got 600001";
    assert!(error.message.starts_with(rule), "{}", error.message);
}
