//! Compaction with a simulated, unreliable model.
//!
//! In: an actor and a conversation. Out: the first violation, if any; the outcome of every answer
//! is checked. The model answers well, too long, not at all, with an error, with its own prompt or
//! with markup of this project. Meanwhile messages arrive, answers are repeated and instances are
//! lost.

use crate::{
    facade::messages::padded,
    json::Json,
    simulation::{actor::Actor, invariants, workload::sentence},
};

/// Most plans of one compaction. A sweep whose requests are all answered ends long before, because
/// its passes and rounds are bounded.
const PLANS_MAX: u32 = 400;
/// Most plans of one compaction in which answers are lost.
const PLANS_CARELESS_MAX: u32 = 6;

/// Compacts one conversation, in one of several ways.
///
/// # Errors
///
/// Text about the first violation.
pub(super) fn compact(actor: &mut Actor, index: usize) -> Result<(), String> {
    if actor.conversations[index].reference.is_empty() {
        return Ok(());
    }
    if actor.random.chance(150) {
        return run(actor, index);
    }
    let careless = actor.random.chance(400);
    let options = options(actor);
    let mut sweep = Json::from("");
    for _ in 0..if careless { PLANS_CARELESS_MAX } else { PLANS_MAX } {
        let plan = plan(actor, index, &options, &sweep)?;
        let mut requests = plan.field("requests").map(Json::elements).unwrap_or_default().to_vec();
        if actor.random.chance(300) {
            requests.reverse();
        }
        for request in requests {
            if careless && actor.random.chance(200) {
                continue;
            }
            if !serve(actor, index, request, careless)? {
                return Ok(());
            }
        }
        sweep = plan.field("sweep").cloned().unwrap_or(Json::Null);
        let needs = plan.field("status").and_then(Json::as_str) == Some("needs-completions");
        if !needs && sweep.as_str().unwrap_or_default().is_empty() {
            return Ok(());
        }
    }
    if careless { Ok(()) } else { Err(format!("a sweep has not ended after {PLANS_MAX} plans")) }
}

fn options(actor: &mut Actor) -> Vec<(String, Json)> {
    let random = &mut actor.random;
    let mut options: Vec<(String, Json)> = Vec::new();
    let mode = *random.pick(&["threshold", "threshold", "sweep", "until-under"]);
    options.push(("mode".to_owned(), mode.into()));
    options.push(("requests_max".to_owned(), random.between(1, 4).into()));
    if random.chance(300) {
        options.push(("force".to_owned(), true.into()));
    }
    if random.chance(250) {
        let target = random.between(100, actor.budget);
        options.push(("target".to_owned(), target.into()));
    }
    if random.chance(150) {
        options.push(("lease_ms".to_owned(), random.between(1000, 50_000).into()));
    }
    if random.chance(100) {
        let observed = random.between(1000, 2 * actor.budget);
        options.push(("observed_tokens".to_owned(), observed.into()));
    }
    options
}

fn arguments(actor: &Actor, index: usize, entries: Vec<(&str, Json)>) -> Json {
    let mut args = vec![
        ("conversation".to_owned(), actor.conversations[index].id.as_str().into()),
        ("now".to_owned(), actor.time()),
    ];
    args.extend(entries.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Json::Object(args)
}

fn plan(
    actor: &mut Actor,
    index: usize,
    options: &[(String, Json)],
    sweep: &Json,
) -> Result<Json, String> {
    let mut options = options.to_vec();
    options.push(("sweep".to_owned(), sweep.clone()));
    let leases = options.iter().any(|(key, _)| key == "lease_ms");
    let budget = actor.budget.into();
    let args =
        arguments(actor, index, vec![("budget", budget), ("options", Json::Object(options))]);
    actor.maybe_fault();
    let commits = actor.host.store.commits();
    let (plan, unknown) = actor.call("compaction.plan", &args, &args)?;
    if !leases && !unknown && actor.host.store.commits() != commits {
        return Err(format!("a plan without leases wrote something: {plan}"));
    }
    invariants::reasons_are_listed(&plan)?;
    let text = |key: &str| plan.field(key).and_then(Json::as_str).unwrap_or_default();
    let requests = plan.field("requests").map(Json::elements).unwrap_or_default();
    if (text("status") == "needs-completions") == requests.is_empty()
        || text("reason").is_empty() == requests.is_empty()
    {
        return Err(format!("status, reason and requests do not agree: {plan}"));
    }
    for request in requests {
        let id = request.field("id").and_then(Json::as_str).unwrap_or_default();
        if id.len() > 200 || !id.is_ascii() || id.is_empty() {
            return Err(format!("`{id}` is no task token"));
        }
    }
    Ok(plan)
}

/// Answers a request and the retries that follow. Returns `false` if the model failed, so that this
/// compaction ends.
fn serve(
    actor: &mut Actor,
    index: usize,
    mut request: Json,
    careless: bool,
) -> Result<bool, String> {
    // A summary takes at most three completions: normal, aggressive, and one more with findings.
    for _ in 0..3 {
        if careless {
            disturb(actor, index)?;
        }
        let answer = answer(actor, &request);
        let outcome = apply(actor, index, &request, &answer)?;
        let text = |key: &str| outcome.field(key).and_then(Json::as_str).unwrap_or_default();
        match text("applied") {
            "retry" => {
                request = outcome.field("next").cloned().unwrap_or(Json::Null);
                if request == Json::Null {
                    return Err(format!("a retry without a request: {outcome}"));
                }
            }
            "refused" => return Ok(!text("reason").starts_with("model-")),
            _ => return Ok(true),
        }
    }
    Err("a node was asked for a fourth time".to_owned())
}

/// Makes something happen while the model answers: an append, a new instance, or nothing.
fn disturb(actor: &mut Actor, index: usize) -> Result<(), String> {
    match actor.random.between(0, 9) {
        0..=2 => {
            let (batch, transcript) = actor.batch(index, 1);
            actor.append_batch(index, &batch, transcript)
        }
        3 => actor.host.restart().map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

fn apply(actor: &mut Actor, index: usize, request: &Json, answer: &Json) -> Result<Json, String> {
    let id = request.field("id").cloned().unwrap_or(Json::Null);
    let mut entries = vec![("request_id", id), ("answer", answer.clone())];
    if actor.random.chance(200) {
        let over = actor.random.between(0, actor.budget);
        entries.push(("options", Json::object([("fallback_over_tokens", over.into())])));
    }
    let args = arguments(actor, index, entries);
    actor.maybe_fault();
    let (outcome, unknown) = actor.call("compaction.apply", &args, &args)?;
    invariants::reasons_are_listed(&outcome)?;
    invariants::a_pass_shrinks_the_context(&outcome, unknown && !shrank(&outcome))?;
    let committed = outcome.field("applied").and_then(Json::as_str) == Some("committed");
    if committed {
        actor.figures.summaries += 1;
        if actor.random.chance(150) {
            let commits = actor.host.store.commits();
            let (again, _) = actor.call("compaction.apply", &args, &args)?;
            invariants::a_pass_shrinks_the_context(&again, true)?;
            if again.field("summary_id") != outcome.field("summary_id") {
                return Err(format!("applied twice: {outcome}, then {again}"));
            }
            if actor.host.store.commits() != commits {
                return Err(format!("applied twice, written twice: {again}"));
            }
        }
    }
    Ok(outcome)
}

/// Returns whether the tokens of the context changed. They do not change in a repetition after a
/// lost reply, because the first call made the summary.
fn shrank(outcome: &Json) -> bool {
    outcome.field("tokens_before") != outcome.field("tokens_after")
}

fn answer(actor: &mut Actor, request: &Json) -> Json {
    let random = &mut actor.random;
    let number = |key: &str| request.field(key).and_then(Json::as_u64).unwrap_or_default();
    let input = number("input_tokens");
    let done = |text: String, finish: &str| {
        let fields = [("text", text.into()), ("finish", finish.into())];
        Json::object([("done", Json::object(fields))])
    };
    let failed = |code: &str| {
        let fields = [("code", code.into()), ("message", "planted".into())];
        Json::object([("failed", Json::object(fields))])
    };
    let good = random.between(8, 60);
    match random.between(0, 99) {
        0..=54 => done(sentence(random, good), "stop"),
        55..=64 => done(padded("a long summary ", 's', input / 3), "stop"),
        65..=72 => done(padded("a too long summary ", 's', input * 2), "stop"),
        73..=77 => done(" \n".to_owned(), "stop"),
        78..=80 => done("I cannot help with that.".to_owned(), "refusal"),
        81..=83 => done(sentence(random, good), "length"),
        84..=86 => {
            let prompt = request.field("prompt").and_then(Json::as_str).unwrap_or_default();
            done(prompt.to_owned(), "stop")
        }
        87..=89 => done(
            format!("<summary id=\"sum_0123456789abcdef\">{}</summary>", sentence(random, good)),
            "stop",
        ),
        90..=91 => done(format!("<think>{}", sentence(random, good)), "stop"),
        92..=93 => failed("context-too-long"),
        94..=95 => failed("timeout"),
        96..=97 => failed("unavailable"),
        98 => failed("auth"),
        _ => failed("policy"),
    }
}

/// Calls `compaction.run` up to three times; `run` calls the scripted model itself.
fn run(actor: &mut Actor, index: usize) -> Result<(), String> {
    let script =
        Json::object([("text", sentence(&mut actor.random, 40).into()), ("times", 0_u64.into())]);
    actor.host.model = crate::scripted_model::ScriptedModel::new(&[script])?;
    let options = options(actor);
    let mut sweep = Json::from("");
    for _ in 0..3 {
        let mut options = options.clone();
        options.retain(|(key, _)| key != "lease_ms");
        options.push(("sweep".to_owned(), sweep.clone()));
        let budget = actor.budget.into();
        let args =
            arguments(actor, index, vec![("budget", budget), ("options", Json::Object(options))]);
        actor.maybe_fault();
        let used = actor.host.model.used();
        let (outcome, unknown) = actor.call("compaction.run", &args, &args)?;
        if !unknown && actor.host.model.used() - used > 3 {
            return Err(format!("one run asked for more than 3 completions: {outcome}"));
        }
        invariants::reasons_are_listed(&outcome)?;
        invariants::a_pass_shrinks_the_context(&outcome, unknown && !shrank(&outcome))?;
        sweep = outcome.field("sweep").cloned().unwrap_or(Json::Null);
        if outcome.field("more") != Some(&Json::Bool(true)) {
            break;
        }
    }
    Ok(())
}
