//! `lcm maintain`: compacts if deferred compaction is due.
//!
//! In: a budget and the models of `--llm`. Out: what was compacted, and which compaction is still
//! deferred.

use lcm_host::{CompactOptions, DeferredCompaction, MaintainReport, Pass, Result};
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
}

pub(crate) fn run(global: &Global, options: &Maintain) -> Result<End> {
    let session = Session::with_models(global, &options.models)?;
    let compact = CompactOptions {
        model: options.model.clone(),
        observed_tokens: options.observed_tokens,
        requests_max: options.requests_max,
        ..CompactOptions::new(options.budget, session.clock)
    };
    let progress = Progress::open("maintain");
    let each = &mut |pass: &Pass| {
        progress.say(format!("{} tokens", number(u64::from(pass.tokens_after))));
    };
    let report = session.lcm.maintain(session.conversation, &compact, &session.cancel, each)?;
    drop(progress);
    let MaintainReport { debt, compacted, failure } = report;
    if let Some(error) = failure {
        return Err(error);
    }
    let (debt, compacted) = (debt.as_ref(), compacted.as_ref());
    if session.json {
        let conversation = session.conversation;
        let compacted = compacted.map(compact::Output::of);
        output::json(&Output { conversation, debt, compacted })?;
    } else {
        let done = compacted.map(compact::text).unwrap_or_default();
        output::text(&format!("{done}{}", describe_deferred(debt)))?;
    }
    Ok(compacted.map_or(End::Done, compact::end))
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
