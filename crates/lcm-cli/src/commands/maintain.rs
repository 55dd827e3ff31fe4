//! `lcm maintain`: compacts if deferred compaction is due, in one conversation or in every
//! conversation of a family.
//!
//! In: a budget and the models of `--llm`. Out: what was compacted, and which compaction is still
//! deferred.

use lcm_host::{
    CompactOptions, DeferredCompaction, FamilyReport, MaintainReport, MemberReport, Pass, Result,
};
use serde::Serialize;

use super::compact;
use crate::{
    End,
    arguments::{Global, Maintain},
    output::{self, count, number},
    progress::Progress,
    session::Session,
};

#[derive(Serialize)]
struct Output<'a> {
    conversation: &'a str,
    debt: Option<&'a DeferredCompaction>,
    compacted: Option<compact::Output<'a>>,
    /// Why the call failed; absent: the call did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

#[derive(Serialize)]
struct FamilyOutput<'a> {
    reports: Vec<Output<'a>>,
    unserved: &'a [String],
}

impl<'a> Output<'a> {
    fn from_report(conversation: &'a str, report: &'a MaintainReport) -> Self {
        let debt = report.debt.as_ref();
        let compacted = report.compacted.as_ref().map(compact::Output::of);
        let failure = report.failure.as_ref().map(ToString::to_string);
        Self { conversation, debt, compacted, failure }
    }

    fn from_member(MemberReport { conversation, result }: &'a MemberReport) -> Self {
        match result {
            Ok(report) => Self::from_report(conversation, report),
            Err(error) => {
                let failure = Some(error.to_string());
                Self { conversation, debt: None, compacted: None, failure }
            }
        }
    }
}

pub(crate) fn run(global: &Global, options: &Maintain) -> Result<End> {
    let session = Session::with_models(global, &options.models)?;
    let compact = CompactOptions {
        model: options.model.clone(),
        observed_tokens: options.observed_tokens,
        requests_max: options.requests_max,
        ..CompactOptions::new(options.budget, session.clock)
    };
    if let Some(family) = &options.family {
        return run_family(&session, family, &compact);
    }
    let progress = Progress::open("maintain");
    let each = &mut |pass: &Pass| {
        progress.say(format!("{} tokens", number(u64::from(pass.tokens_after))));
    };
    let report = session.lcm.maintain(session.conversation, &compact, &session.cancel, each)?;
    drop(progress);
    if let Some(error) = report.failure {
        return Err(error);
    }
    if session.json {
        output::json(&Output::from_report(session.conversation, &report))?;
    } else {
        output::text(&describe(&report))?;
    }
    Ok(report.compacted.as_ref().map_or(End::Done, compact::end))
}

/// Serves a family. All reports are printed, also if the command then ends with the first error of
/// a conversation, or with a failure of a model. A stopped command prints none.
fn run_family(session: &Session<'_>, family: &str, options: &CompactOptions) -> Result<End> {
    let progress = Progress::open("maintain");
    let each = &mut |conversation: &str, pass: &Pass| {
        progress.say(format!("{conversation}, {} tokens", number(u64::from(pass.tokens_after))));
    };
    let done = session.lcm.maintain_family(family, options, &session.cancel, each)?;
    drop(progress);
    session.cancel.check()?;
    let FamilyReport { reports, unserved } = &done;
    if session.json {
        let reports = reports.iter().map(Output::from_member).collect();
        output::json(&FamilyOutput { reports, unserved })?;
    } else {
        let mut text = String::new();
        for MemberReport { conversation, result } in reports {
            let told = result.as_ref().map_or_else(|error| format!("{error}\n"), describe);
            text.push_str(&format!("{conversation}:\n{told}"));
        }
        if !unserved.is_empty() {
            let left = u64::try_from(unserved.len()).unwrap_or(u64::MAX);
            let unserved = count(left, "conversation");
            text.push_str(&format!("{unserved} not served, because a model failed\n"));
        }
        output::text(&text)?;
    }
    let mut end = End::Done;
    for MemberReport { result, .. } in done.reports {
        let report = result?;
        if let Some(error) = report.failure {
            return Err(error);
        }
        if let Some(End::ModelUnavailable) = report.compacted.as_ref().map(compact::end) {
            end = End::ModelUnavailable;
        }
    }
    Ok(end)
}

/// Formats what was compacted, and which compaction is still deferred, for people.
fn describe(report: &MaintainReport) -> String {
    let done = report.compacted.as_ref().map(compact::text).unwrap_or_default();
    let failure = report.failure.as_ref().map(|error| format!("{error}\n")).unwrap_or_default();
    format!("{done}{failure}{}", describe_deferred(report.debt.as_ref()))
}

/// Formats deferred compaction for people; `None`: no compaction is deferred.
fn describe_deferred(debt: Option<&DeferredCompaction>) -> String {
    match debt {
        None => "no compaction is deferred\n".to_owned(),
        Some(DeferredCompaction { exhausted: true, began_at, .. }) => {
            format!("deferred since {began_at}: blocked until the context changes\n")
        }
        Some(DeferredCompaction { failures, next_attempt_at, began_at, .. }) => {
            let failures = count(u64::from(*failures), "failure");
            format!("deferred since {began_at}: {failures}, next attempt at {next_attempt_at}\n")
        }
    }
}
