//! `lcm compact`: replaces old messages by summaries.
//!
//! In: a budget and the models of `--llm`. Out: the summaries that were made, and how the
//! compaction ended. `lcm maintain` and `lcm demo` print their compaction with this module.

use lcm_host::{CompactOptions, CompactReport, CompactStatus, Pass, Result};
use serde::Serialize;

use crate::{
    End,
    arguments::{Compact, Global},
    output::{self, Table, count, number},
    progress::Progress,
    session::Session,
};

/// The report of a compaction, for `--json`.
#[derive(Serialize)]
pub(super) struct Output<'a> {
    status: &'static str,
    reason: &'a str,
    passes: Vec<OnePass<'a>>,
    completions: u32,
    tokens_before: u32,
    tokens_after: u32,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct OnePass<'a> {
    summary_id: &'a str,
    purpose: &'a str,
    depth: u32,
    level: &'a str,
    capped: bool,
    provisional: bool,
    replaces: Option<&'a str>,
    tokens_before: u32,
    tokens_after: u32,
}

impl<'a> Output<'a> {
    pub(super) fn of(report: &'a CompactReport) -> Self {
        Self {
            status: report.status.as_str(),
            reason: &report.reason,
            passes: report.passes.iter().map(OnePass::of).collect(),
            completions: report.completions,
            tokens_before: report.tokens_before,
            tokens_after: report.tokens_after,
            warnings: &report.warnings,
        }
    }
}

impl<'a> OnePass<'a> {
    fn of(pass: &'a Pass) -> Self {
        Self {
            summary_id: &pass.summary_id,
            purpose: &pass.purpose,
            depth: pass.depth,
            level: &pass.level,
            capped: pass.capped,
            provisional: pass.provisional,
            replaces: pass.replaces.as_deref(),
            tokens_before: pass.tokens_before,
            tokens_after: pass.tokens_after,
        }
    }
}

pub(crate) fn run(global: &Global, options: &Compact) -> Result<End> {
    let session = Session::with_models(global, &options.models)?;
    let compact = CompactOptions {
        budget: options.budget,
        mode: options.mode.into(),
        force: options.force,
        target: options.target,
        model: options.model.clone(),
        observed_tokens: options.observed_tokens,
        requests_max: options.requests_max,
        passes_max: None,
        // A person sees each refusal, so a refusal need not count for the breaker.
        counts_refusals: false,
        clock: session.clock,
    };
    let progress = Progress::open("compact");
    let each = &mut |pass: &Pass| {
        progress.say(format!("{} tokens", number(u64::from(pass.tokens_after))));
    };
    let report = session.lcm.compact(session.conversation, &compact, &session.cancel, each)?;
    drop(progress);
    if session.json {
        output::json(&Output::of(&report))?;
    } else {
        output::text(&text(&report))?;
    }
    Ok(end(&report))
}

/// Returns how the command ends. If a model failed, prints the reason to standard error, even if
/// summaries were made without the model.
pub(super) fn end(report: &CompactReport) -> End {
    if report.status != CompactStatus::ModelUnavailable && report.failure.is_none() {
        return End::Done;
    }
    // The last warning is the failure of the model. With an open breaker no model was asked.
    let failure = report.warnings.last().filter(|_| report.reason != "breaker-open");
    let why = failure.unwrap_or(&report.reason);
    let why = why.strip_prefix("completion-failed: ").unwrap_or(why);
    eprintln!("lcm: completion-failed: {why}");
    End::ModelUnavailable
}

/// Formats a report for people: the passes, the status and the warnings.
pub(super) fn text(report: &CompactReport) -> String {
    let mut text = passes(&report.passes);
    text.push_str(&format!(
        "{} ({}): {} to {} tokens, {}\n",
        report.status.as_str(),
        report.reason,
        number(u64::from(report.tokens_before)),
        number(u64::from(report.tokens_after)),
        count(u64::from(report.completions), "completion"),
    ));
    text.push_str(&output::warnings(&report.warnings));
    text
}

/// Formats passes as a table; empty without passes.
pub(crate) fn passes(passes: &[Pass]) -> String {
    if passes.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["summary", "purpose", ">depth", "level", ">before", ">after"]);
    for pass in passes {
        let capped = if pass.capped { ", capped" } else { "" };
        let again = if pass.replaces.is_some() { ", made again" } else { "" };
        let provisional = if pass.provisional { ", provisional" } else { "" };
        table.row(vec![
            pass.summary_id.clone(),
            pass.purpose.to_owned(),
            pass.depth.to_string(),
            format!("{}{capped}{provisional}{again}", pass.level),
            number(u64::from(pass.tokens_before)),
            number(u64::from(pass.tokens_after)),
        ]);
    }
    table.render()
}
