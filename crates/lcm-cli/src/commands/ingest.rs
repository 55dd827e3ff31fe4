//! `lcm ingest`.

use lcm_host::{Code, Error, IngestOptions, IngestReport, Result};
use serde::Serialize;

use crate::{
    End,
    arguments::{Global, Ingest},
    input::Transcript,
    output::{self, count, number},
    progress::Progress,
    session::Session,
};

#[derive(Serialize)]
struct Output<'a> {
    conversation: &'a str,
    ingested: u64,
    skipped: u64,
    seq_first: Option<u64>,
    seq_last: Option<u64>,
    context_tokens: u64,
    revision: u64,
    warnings: &'a [String],
}

/// Reads all lines first: nothing is stored when one of them is no message.
pub(crate) fn run(global: &Global, options: &Ingest) -> Result<End> {
    let Some(dialect) = options.dialect.wit() else {
        return Err(Error::new(Code::Unsupported, "`--dialect auto` is not built yet"));
    };
    let transcript = Transcript::read(&options.files)?;
    let session = Session::open(global)?;
    let ingest = IngestOptions {
        dialect,
        new: options.new,
        refuse_replay: options.refuse_replay,
        clock: session.clock,
    };
    let messages = &transcript.messages;
    let progress = Progress::counted("ingest", messages.len());
    let mut report = session
        .lcm
        .ingest(session.conversation, messages, &ingest, &session.cancel, &mut |done| {
            progress.at(done);
        })
        .map_err(|failure| match failure.index {
            Some(index) => transcript.at(index, &failure.error),
            None => failure.error,
        })?;
    drop(progress);
    report.warnings.extend(transcript.warnings());
    print(&session, &report)?;
    Ok(End::Done)
}

fn print(session: &Session<'_>, report: &IngestReport) -> Result<()> {
    if session.json {
        return output::json(&Output {
            conversation: session.conversation,
            ingested: report.ingested,
            skipped: report.skipped,
            seq_first: report.seq_first,
            seq_last: report.seq_last,
            context_tokens: report.context_tokens,
            revision: report.revision,
            warnings: &report.warnings,
        });
    }
    let seqs = match (report.seq_first, report.seq_last) {
        (Some(first), Some(last)) => format!(" ({} to {})", number(first), number(last)),
        _ => String::new(),
    };
    output::text(&format!(
        "{}: {} stored{seqs}, {} skipped\ncontext: {}, revision {}\n{}",
        session.conversation,
        count(report.ingested, "message"),
        number(report.skipped),
        count(report.context_tokens, "token"),
        number(report.revision),
        output::warnings(&report.warnings),
    ))
}
