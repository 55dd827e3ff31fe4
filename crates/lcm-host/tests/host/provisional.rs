//! Summaries that a failing model left, from its first failure until it works again.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use lcm_host::{
    Cancel, Clock, Code, CompactOptions, FamilyReport, Lcm, Pass,
    completion::{Chain, CompletionProvider},
    types::{
        Completion, CompletionError, CompletionErrorCode, CompletionRequest, CompletionResult,
        Finish,
    },
};
use serde_json::{Value, json};

use crate::{build_request, engine::component};

const MINUTE_MS: u64 = 60_000;
const START: u64 = 1_700_000_000_000;
/// The context is over the threshold of both budgets, and larger than the second.
const BUDGETS: [u32; 2] = [4_500, 2_500];
const SAID: &str = "They spoke of a garden, a river and a letter.";
const SAYS_NOTHING: [&str; 6] = [
    "",
    "OK.",
    "---",
    "N/A",
    "I cannot summarize this conversation.",
    "Sure! What would you like me to do next?",
];

type Model = Box<dyn Fn(&CompletionRequest) -> CompletionResult + Send>;

fn complete_with(text: &str, finish: Finish) -> CompletionResult {
    let (text, model) = (text.to_owned(), "m".to_owned());
    CompletionResult::Done(Completion { text, finish, model, input_tokens: 0, output_tokens: 0 })
}

fn fail_with(code: CompletionErrorCode) -> Model {
    Box::new(move |_| {
        let message = "down".to_owned();
        CompletionResult::Failed(CompletionError { code, message, retry_after_ms: None })
    })
}

fn answer_with(text: &'static str, finish: Finish) -> Model {
    Box::new(move |_| complete_with(text, finish))
}

/// A message of about 100 tokens.
fn build_message(number: usize) -> String {
    let words = ["garden", "river", "market", "letter", "window", "harvest", "song"];
    let said: Vec<&str> = (0..76).map(|at| words[(at * number + at) % words.len()]).collect();
    let role = if number % 2 == 1 { "user" } else { "assistant" };
    json!({"role": role, "content": format!("{number} {}", said.join(" "))}).to_string()
}

fn build_messages() -> Vec<String> {
    (1..=40).map(build_message).collect()
}

/// Returns whether a failure concerns the model and not only one request.
fn is_of_model(code: CompletionErrorCode) -> bool {
    !matches!(code, CompletionErrorCode::Policy | CompletionErrorCode::ContextTooLong)
}

/// Leads a life whose model fails and later works.
fn lead_life(what: &str, budget: u32, fails: Model, is_failure: bool) {
    let state = Arc::new(Mutex::new((fails, 0_u32)));
    let model = Arc::clone(&state);
    let lcm = Lcm::builder()
        .model(move |request: &CompletionRequest| {
            let mut model = model.lock().unwrap();
            model.1 += 1;
            (model.0)(request)
        })
        .retries(0)
        .open_with(&component())
        .unwrap();
    let asked = || state.lock().unwrap().1;
    let mut now = START;
    let chat = |now| lcm.conversation("c", budget).clock(Clock::Fixed(now)).defer(false);
    let turn = chat(now).turn(&build_messages()).unwrap();
    assert_eq!(turn.ingested.ingested, 40, "{what}");
    let before = asked();
    assert!(before > 0 && (!is_failure || before == 1), "{what}: asked {before} times");
    for number in 1..=4 {
        now += MINUTE_MS;
        chat(now).turn(&[build_message(100 + number)]).unwrap();
        assert!(!is_failure || asked() == before, "{what}: a user waited again");
    }
    state.lock().unwrap().0 = answer_with(SAID, Finish::Stop);
    let is_done = (0..10).any(|_| {
        now += 31 * MINUTE_MS;
        chat(now).maintain().unwrap().debt.is_none()
    });
    assert!(is_done, "{what}: `maintain` still owes");
    let status: Value = serde_json::from_str(&lcm.status(Some("c"), now).unwrap()).unwrap();
    assert!(!status["summaries"].as_array().unwrap().is_empty(), "{what}");
    assert_eq!(status["provisional"], 0, "{what}");
    assert_eq!(chat(now).resummarize().unwrap().passes.len(), 0, "{what}");
}

#[test]
fn nothing_stays_provisional_when_the_model_works_again() {
    for budget in BUDGETS {
        for code in [
            CompletionErrorCode::Auth,
            CompletionErrorCode::Policy,
            CompletionErrorCode::ContextTooLong,
            CompletionErrorCode::RateLimited,
            CompletionErrorCode::Timeout,
            CompletionErrorCode::Unavailable,
            CompletionErrorCode::Other,
        ] {
            lead_life(&format!("{code:?}"), budget, fail_with(code), is_of_model(code));
        }
        for text in SAYS_NOTHING {
            lead_life(text, budget, answer_with(text, Finish::Stop), false);
        }
        lead_life("cut off", budget, answer_with(SAID, Finish::Length), false);
        lead_life("refusal", budget, answer_with("I will not.", Finish::Refusal), false);
    }
}

#[test]
fn a_family_is_served_until_nothing_is_owed_its_archived_conversations_included() {
    let is_down = Arc::new(AtomicBool::new(true));
    let model = Arc::clone(&is_down);
    let (down, up) = (fail_with(CompletionErrorCode::Unavailable), answer_with(SAID, Finish::Stop));
    let models = Mutex::new((down, up));
    let lcm = Lcm::builder()
        .model(move |request: &CompletionRequest| {
            let models = models.lock().unwrap();
            if model.load(Ordering::Relaxed) { (models.0)(request) } else { (models.1)(request) }
        })
        .retries(0)
        .open_with(&component())
        .unwrap();
    for (number, id) in (0..).zip(["a", "b", "c", "other"]) {
        let chat = lcm.conversation(id, BUDGETS[1]).clock(Clock::Fixed(START + number));
        chat.defer(false).turn(&build_messages()).unwrap();
        if id != "other" {
            lcm.admin_call(id, "family", r#"{"family": "garden"}"#, START + number).unwrap();
        }
    }
    let fresh: Value =
        serde_json::from_str(&lcm.admin_call("b", "reset", "{}", START + 9).unwrap()).unwrap();
    let members = [fresh["conversation"].as_str().unwrap(), "c", "b", "a"];
    let owed = || {
        ["a", "b", "c", "other"].map(|id| {
            let status = lcm.status(Some(id), START).unwrap();
            serde_json::from_str::<Value>(&status).unwrap()["provisional"] != 0
        })
    };
    let mut now = START;
    let mut passes: Vec<String> = Vec::new();
    let mut serve = |family: &str, budget| {
        now += 31 * MINUTE_MS;
        let options = CompactOptions::new(budget, Clock::Fixed(now));
        let progress = &mut |conversation: &str, _: &Pass| passes.push(conversation.to_owned());
        lcm.maintain_family(family, &options, &Cancel::default(), progress)
    };
    assert_eq!(owed(), [true; 4]);
    let done = serve("garden", BUDGETS[1]).unwrap();
    assert_eq!(done.unserved, ["b", "a"]);
    assert_eq!(list_served(&done), members[..2]);

    is_down.store(false, Ordering::Relaxed);
    let is_done = (0..10).any(|_| {
        let done = serve("garden", BUDGETS[1]).unwrap();
        assert_eq!((list_served(&done), done.unserved.len()), (members.to_vec(), 0));
        done.reports.iter().all(|one| one.result.as_ref().unwrap().debt.is_none())
    });
    assert!(is_done, "`maintain_family` still owes");
    assert_eq!(owed(), [false, false, false, true]);
    assert_eq!(serve("river", 1).unwrap_err().code, Code::NotFound);
    assert_eq!(serve("garden", 0).unwrap_err().code, Code::InvalidInput);
    let stopped = Cancel::default();
    stopped.cancel();
    let options = CompactOptions::new(BUDGETS[1], Clock::Fixed(now));
    let stopped = lcm.maintain_family("garden", &options, &stopped, &mut |_, _| ()).unwrap();
    assert_eq!(
        (list_served(&stopped), &stopped.unserved[..]),
        (vec![], &members.map(String::from)[..])
    );
    assert!(["a", "b", "c"].iter().all(|id| passes.iter().any(|served| served == id)));
}

/// The ids of the conversations that were served.
fn list_served(report: &FamilyReport) -> Vec<&str> {
    report.reports.iter().map(|one| one.conversation.as_str()).collect()
}

#[test]
fn the_next_model_is_asked_after_an_answer_that_says_nothing_or_was_cut_off() {
    let cut_off = [(SAID, Finish::Length)].into_iter();
    for (text, finish) in SAYS_NOTHING.map(|text| (text, Finish::Stop)).into_iter().chain(cut_off) {
        let lcm = Lcm::builder()
            .model(move |_: &CompletionRequest| complete_with(text, finish))
            .model(|_: &CompletionRequest| complete_with(SAID, Finish::Stop))
            .open_with(&component())
            .unwrap();
        let chat = lcm.conversation("c", BUDGETS[0]).clock(Clock::Fixed(START)).defer(false);
        let made = chat.turn(&build_messages()).unwrap().compacted.unwrap().passes;
        assert!(!made.is_empty() && made.iter().all(|pass| !pass.provisional), "{text}");
        assert!(made.iter().all(|pass| pass.level == "normal"), "{text}");
    }
}

#[test]
fn a_cut_off_answer_counts_if_the_next_model_refuses_and_nobody_stops() {
    let request = build_request("text");
    for code in [
        CompletionErrorCode::Auth,
        CompletionErrorCode::Policy,
        CompletionErrorCode::ContextTooLong,
    ] {
        for stops in [false, true] {
            let (cancel, refuses) = (Cancel::default(), Mutex::new(fail_with(code)));
            let stop = cancel.clone();
            let cut: Arc<dyn CompletionProvider> =
                Arc::new(|_: &CompletionRequest| complete_with(SAID, Finish::Length));
            let next: Arc<dyn CompletionProvider> = Arc::new(move |request: &CompletionRequest| {
                if stops {
                    stop.cancel();
                }
                (refuses.lock().unwrap())(request)
            });
            let chain = Chain::new(vec![cut, next]).with_judge(&component());
            match chain.complete(&request, &cancel) {
                CompletionResult::Done(done) => assert!(!stops && done.text == SAID, "{code:?}"),
                CompletionResult::Failed(error) => assert!(stops && error.code == code),
            }
        }
    }
}
