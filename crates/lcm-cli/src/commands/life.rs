//! `lcm family`, `lcm live`, `lcm reset`, `lcm new`, `lcm archive`, `lcm delete`, `lcm focus`,
//! `lcm rewind` and `lcm calibrate`: each runs a verb of the component.
//!
//! In: options. Out: one sentence about the change; with `--json` the answer of the verb. `run`
//! adds `applied` to the answer, which is false after a dry run. `delete` changes nothing without
//! `--apply`, and a command that has `--dry-run` changes nothing with it.

use lcm_host::{Code, DeletionResult, Error, Result};
use serde_json::{Value, json};

use super::{
    admin::archived,
    recall::{field, parse},
};
use crate::{
    End,
    arguments::{
        Archive, Calibrate, Delete, DryRun, Family, Focus, Global, Live, New, Reset, Rewind,
    },
    input::read_text,
    output::{self, count},
    session::Session,
};

/// Whether a verb writes its change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    Written,
    /// Nothing is written. `how` is the part of the output that names the option for a write.
    Planned {
        how: &'static str,
    },
}

impl Effect {
    const fn of(DryRun { dry_run }: DryRun) -> Self {
        if dry_run { Self::Planned { how: "without --dry-run it is" } } else { Self::Written }
    }
}

pub(crate) fn family(global: &Global, options: &Family) -> Result<End> {
    run(global, "family", json!({ "family": options.family }), Effect::Written, |answer| {
        format!(
            "{} belongs to the family {}",
            field(answer, "conversation"),
            field(answer, "family")
        )
    })
}

pub(crate) fn live(global: &Global, options: &Live) -> Result<End> {
    let session = Session::open(global)?;
    let arguments = json!({ "family": options.family }).to_string();
    let text = session.lcm.admin_call("", "live", &arguments, session.now())?;
    if session.json {
        output::text(&(text + "\n"))?;
        return Ok(End::Done);
    }
    let answer = parse("admin.call", &text)?;
    output::text(&match answer.get("conversation").and_then(Value::as_str) {
        Some(id) => format!("{id}\n"),
        None => format!("all conversations of the family {} are archived\n", options.family),
    })?;
    Ok(End::Done)
}

pub(crate) fn reset(global: &Global, options: &Reset) -> Result<End> {
    let mut arguments = json!({});
    if let Some(successor) = &options.successor {
        arguments = json!({ "successor": successor });
    }
    run(global, "reset", arguments, Effect::of(options.dry_run), |answer| {
        let next = field(answer, "conversation");
        match answer.get("archived_conversation").and_then(Value::as_str) {
            Some(id) => format!("{id} is archived and continues in {next}"),
            None => format!("{next} continues: nothing to reset"),
        }
    })
}

pub(crate) fn new_session(global: &Global, options: &New) -> Result<End> {
    run(
        global,
        "new",
        json!({ "retain_depth": options.retain_depth }),
        Effect::of(options.dry_run),
        |answer| {
            let of = |key: &str| field(answer, key);
            format!(
                "{}: {} messages and {} summaries are withdrawn from the context, {} tokens become {}",
                of("conversation"),
                of("messages"),
                of("summaries"),
                of("tokens_before"),
                of("tokens_after"),
            )
        },
    )
}

pub(crate) fn archive(global: &Global, options: &Archive) -> Result<End> {
    run(
        global,
        "archive",
        json!({ "cause": options.cause }),
        Effect::of(options.dry_run),
        |answer| {
            let id = field(answer, "conversation");
            match answer.get("archived") {
                Some(why) if !why.is_null() => format!("{id} is archived: {}", archived(why)),
                _ => format!("{id} is not archived"),
            }
        },
    )
}

pub(crate) fn delete(global: &Global, options: &Delete) -> Result<End> {
    if !options.apply.apply {
        return run(
            global,
            "delete",
            json!({}),
            Effect::Planned { how: "--apply writes the change" },
            |answer| {
                let messages = answer.get("messages").and_then(Value::as_u64).unwrap_or_default();
                format!("{} has {}", field(answer, "conversation"), count(messages, "message"))
            },
        );
    }
    let session = Session::open(global)?;
    let receipt = session.lcm.delete(session.conversation, session.clock, &session.cancel)?;
    let DeletionResult { conversation, messages, records, bytes, .. } = &receipt;
    if session.json {
        output::json(&receipt)?;
    } else {
        output::text(&format!(
            "{conversation} is deleted: {}, {}, {}\n",
            count(*messages, "message"),
            count(*records, "record"),
            count(*bytes, "byte"),
        ))?;
    }
    Ok(End::Done)
}

pub(crate) fn focus(global: &Global, options: &Focus) -> Result<End> {
    let text = options.file.as_deref().map(read_text).transpose()?;
    let arguments = json!({ "text": text, "seq_last": options.seq_last });
    run(global, "focus", arguments, Effect::of(options.dry_run), |answer| {
        let id = field(answer, "conversation");
        match answer.get("focus") {
            Some(brief) if !brief.is_null() => format!(
                "{id} has the brief {} of {} tokens for messages up to {}",
                field(brief, "id"),
                field(brief, "tokens"),
                field(brief, "seq_last"),
            ),
            _ => format!("{id} has no brief"),
        }
    })
}

pub(crate) fn rewind(global: &Global, options: &Rewind) -> Result<End> {
    let given = [("to", options.to), ("units", options.units)];
    let arguments = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let arguments: serde_json::Map<String, Value> =
        arguments.map(|(name, value)| (name.to_owned(), value.into())).collect();
    run(global, "rewind", arguments.into(), Effect::of(options.dry_run), |answer| {
        let number = |name| answer.get(name).and_then(Value::as_u64).unwrap_or_default();
        format!(
            "{} of {} set aside, {} back; it ends with message {}",
            count(number("set_aside"), "message"),
            field(answer, "conversation"),
            count(number("restored"), "message"),
            number("seq_last"),
        )
    })
}

pub(crate) fn calibrate(global: &Global, options: &Calibrate) -> Result<End> {
    let Calibrate { model, estimated_tokens, prompt_tokens } = options;
    let arguments = json!({
        "model": model, "estimated_tokens": estimated_tokens, "prompt_tokens": prompt_tokens,
    });
    run(global, "calibrate", arguments, Effect::Written, |answer| {
        let calibration = answer.get("calibration").unwrap_or(&Value::Null);
        format!(
            "{} of {}: {} thousandths of the estimate after {} reports",
            field(calibration, "model"),
            field(answer, "conversation"),
            field(calibration, "factor_permille"),
            field(calibration, "reports"),
        )
    })
}

/// Runs a verb, as a dry run if the effect is planned, and prints its answer. `said` formats the
/// answer for people.
pub(super) fn run(
    global: &Global,
    verb: &str,
    mut arguments: Value,
    effect: Effect,
    said: impl Fn(&Value) -> String,
) -> Result<End> {
    let session = Session::open(global)?;
    let apply = matches!(effect, Effect::Written);
    let not_an_object = || Error::new(Code::Internal, format!("`{verb}` must return an object"));
    if let Some(arguments) = arguments.as_object_mut().filter(|_| !apply) {
        arguments.insert("dry_run".to_owned(), true.into());
    }
    let arguments = arguments.to_string();
    let text = session.lcm.admin_call(session.conversation, verb, &arguments, session.now())?;
    let mut answer = parse("admin.call", &text)?;
    let object = answer.as_object_mut().ok_or_else(not_an_object)?;
    object.insert("applied".to_owned(), apply.into());
    if session.json {
        output::json(&answer)?;
        return Ok(End::Done);
    }
    let changed = answer.get("changed") == Some(&Value::Bool(true));
    let end = match (changed, effect) {
        (true, Effect::Written) => String::new(),
        (true, Effect::Planned { how }) => format!("nothing was changed: {how}\n"),
        (false, _) => "nothing to do\n".to_owned(),
    };
    let warnings = answer.get("warnings").and_then(Value::as_array).into_iter().flatten();
    let warnings: Vec<String> = warnings.filter_map(Value::as_str).map(str::to_owned).collect();
    output::text(&format!("{}\n{end}{}", said(&answer), output::warnings(&warnings)))?;
    Ok(End::Done)
}
