//! `lcm ingest`: stores the messages of files, once or while a file grows.
//!
//! In: files with messages. Out: counts of stored and skipped messages, for each ingest. The
//! component recognises stored messages; `lcm_host::session_files::Follower` follows a file.

use std::{io::BufReader, path::Path, time::Duration};

use lcm_host::{
    Code, Error, IngestOptions, IngestReport, Result,
    session_files::{Follower, Reading},
};
use serde::Serialize;

use crate::{
    End,
    arguments::{Dialect, Global, Ingest},
    input::{Transcript, unreadable},
    output::{self, count, number},
    progress::Progress,
    session::Session,
};

/// Interval between two polls of a followed file.
const POLL: Duration = Duration::from_millis(300);

#[derive(Serialize)]
struct Output<'a> {
    conversation: &'a str,
    ingested: u64,
    skipped: u64,
    seq_first: Option<u64>,
    seq_last: Option<u64>,
    context_tokens: u64,
    revision: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    warnings: &'a [String],
}

/// Ingests files once, or follows a file with `--tail`. A line that cannot be read is an error, and
/// nothing that was read with the line is stored.
pub(crate) fn run(global: &Global, options: &Ingest) -> Result<End> {
    if options.tail {
        return tail(global, options);
    }
    let transcript = Transcript::read(&options.files, options.dialect)?;
    let session = Session::open(global)?;
    let report = ingest(&session, options, &transcript)?;
    print(&session, &transcript, &report)?;
    Ok(End::Done)
}

/// Ingests a file, and again after each change, until interrupted.
fn tail(global: &Global, options: &Ingest) -> Result<End> {
    let path = match options.files.as_slice() {
        [path] if path.as_os_str() != "-" => path,
        _ => return Err(Error::new(Code::InvalidInput, "`--tail` must have exactly one file")),
    };
    let mut follower = Follower::new(path);
    let Some(first) = follower.look()? else {
        return Err(unreadable(path, &std::io::ErrorKind::NotFound.into()));
    };
    let transcript = read(path, options, first)?;
    let session = Session::open(global)?;
    let report = ingest(&session, options, &transcript)?;
    follower.remember_ingested(&transcript.messages);
    print(&session, &transcript, &report)?;
    drop(transcript);
    loop {
        session.cancel.check()?;
        session.cancel.sleep(POLL);
        let Some(reading) = follower.look()? else { continue };
        let was = replaced(path, &reading);
        let transcript = read(path, options, reading).map_err(&was)?;
        if follower.is_ingested(&transcript.messages) {
            continue;
        }
        let report = ingest(&session, options, &transcript).map_err(&was)?;
        follower.remember_ingested(&transcript.messages);
        print(&session, &transcript, &report)?;
    }
}

/// Reads the messages of the complete lines of a followed file.
fn read(path: &Path, options: &Ingest, reading: Reading) -> Result<Transcript> {
    let mut source = BufReader::new(reading.file);
    Transcript::read_open(path, &mut source, options.dialect, reading.is_growing)
}

/// Returns a function that maps errors. If `reading` is of a file that was replaced, the function
/// says so before the message of each error, except `cancelled`.
fn replaced(path: &Path, reading: &Reading) -> impl Fn(Error) -> Error + use<> {
    let before = reading.is_replaced.then(|| {
        format!("in the old file at `{}`, before the file was replaced: ", path.display())
    });
    move |error| match &before {
        Some(before) if error.code != Code::Cancelled => {
            Error::new(error.code, format!("{before}{}", error.message))
        }
        _ => error,
    }
}

fn ingest(
    session: &Session<'_>,
    options: &Ingest,
    transcript: &Transcript,
) -> Result<IngestReport> {
    let ingest = IngestOptions {
        append_mode: options.append_mode.into(),
        refuse_replay: options.refuse_replay,
        system: options.system.clone().into(),
        family: options.family.clone(),
        ..IngestOptions::new(transcript.dialect(), session.clock)
    };
    let messages = &transcript.messages;
    let progress = Progress::counted("ingest", messages.len());
    let mut report = session
        .lcm
        .ingest(session.conversation, messages, &ingest, &session.cancel, &mut |done| {
            progress.at(done);
        })
        .map_err(|failure| match failure.index {
            Some(index) => propose_auto(options, transcript, transcript.at(index, &failure.error)),
            None => failure.error,
        })?;
    drop(progress);
    report.warnings.extend(transcript.warnings());
    Ok(report)
}

/// Adds the advice `--dialect auto` to an error about a line, if a session format is detected.
fn propose_auto(options: &Ingest, transcript: &Transcript, error: Error) -> Error {
    if options.dialect == Dialect::Auto {
        return error;
    }
    let Some(format) = transcript.detect_format() else { return error };
    let message = format!("{}; the lines are {format}: give `--dialect auto`", error.message);
    Error::new(error.code, message)
}

fn print(session: &Session<'_>, transcript: &Transcript, report: &IngestReport) -> Result<()> {
    if session.json {
        return output::json(&Output {
            conversation: session.conversation,
            ingested: report.ingested,
            skipped: report.skipped,
            seq_first: report.seq_first,
            seq_last: report.seq_last,
            context_tokens: report.context_tokens,
            revision: report.revision,
            format: transcript.format(),
            warnings: &report.warnings,
        });
    }
    let seqs = match (report.seq_first, report.seq_last) {
        (Some(first), Some(last)) => format!(" ({} to {})", number(first), number(last)),
        _ => String::new(),
    };
    let format = transcript.format().map(|format| format!("read as {format}\n"));
    output::text(&format!(
        "{}{}: {} stored{seqs}, {} skipped\ncontext: {}, revision {}\n{}",
        format.unwrap_or_default(),
        session.conversation,
        count(report.ingested, "message"),
        number(report.skipped),
        count(report.context_tokens, "token"),
        number(report.revision),
        output::warnings(&report.warnings),
    ))
}
