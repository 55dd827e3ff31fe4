//! `lcm resummarize`: makes provisional summaries again.
//!
//! In: a budget, the models of `--llm` and ids of summaries. Out: the summaries that were made, as
//! `lcm compact` prints them.

use lcm_host::{CompactOptions, Pass, Result};

use super::compact;
use crate::{
    End,
    arguments::{Global, Resummarize},
    output::{self, number},
    progress::Progress,
    session::Session,
};

pub(crate) fn run(global: &Global, options: &Resummarize) -> Result<End> {
    let session = Session::with_models(global, &options.models)?;
    let compact = CompactOptions {
        force: options.force,
        model: options.model.clone(),
        requests_max: options.requests_max,
        // A person sees each refusal, so a refusal need not count for the breaker.
        counts_refusals: false,
        ..CompactOptions::new(options.budget, session.clock)
    };
    let named = Some(options.summary_ids.as_slice()).filter(|ids| !ids.is_empty());
    let progress = Progress::open("resummarize");
    let each = &mut |pass: &Pass| {
        progress.say(format!("{} tokens", number(u64::from(pass.tokens_after))));
    };
    let Session { lcm, conversation, cancel, .. } = &session;
    let report = lcm.resummarize(conversation, named, &compact, cancel, each)?;
    drop(progress);
    if session.json {
        output::json(&compact::Output::of(&report))?;
    } else {
        output::text(&compact::text(&report))?;
    }
    Ok(compact::end(&report))
}
