//! `lcm ingest`: stores the messages of files, once or while a file grows, or of whole folders.
//!
//! In: files with messages. Out: counts of stored and skipped messages, for each ingest. The
//! component recognises stored messages; `lcm_host::session_files::Follower` follows a file.
//! Folders, and files of several conversations, are in `ingest_many`.

use std::{io::BufReader, path::Path, time::Duration};

use lcm_host::{
    Code, Error, IngestOptions, IngestReport, Result,
    session_files::{self, Follower, Growth},
};
use serde::Serialize;

use super::ingest_many;
use crate::{
    End,
    arguments::{Dialect, Global, Ingest},
    input::{self, ReadOptions, Transcript, unreadable},
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

/// Ingests files once, or follows a file with `--tail`. A file that cannot be read is an error, and
/// nothing that was read with the file is stored.
pub(crate) fn run(global: &Global, options: &Ingest) -> Result<End> {
    if options.tail {
        return follow_file(global, options);
    }
    if options.files.iter().any(|file| file.is_dir()) {
        return ingest_many::run_folders(global, options);
    }
    if options.since.is_some() {
        return Err(Error::new(Code::InvalidInput, "`--since` requires a folder"));
    }
    let transcripts = input::read_files(&options.files, ReadOptions::new(options))?;
    match transcripts.as_slice() {
        [transcript] if !options.dry_run => {
            let session = Session::open(global)?;
            let report = ingest_transcript(&session, session.conversation, options, transcript)?;
            print_report(&session, transcript, &report)?;
        }
        transcripts => ingest_many::run_transcripts(global, options, transcripts)?,
    }
    Ok(End::Done)
}

/// Ingests a file, and again after each change, until interrupted.
fn follow_file(global: &Global, options: &Ingest) -> Result<End> {
    let path = match options.files.as_slice() {
        [path] if path.as_os_str() != "-" => path,
        _ => return Err(Error::new(Code::InvalidInput, "`--tail` must have exactly one file")),
    };
    let mut follower = Follower::new(path);
    let Some(first) = follower.look()? else {
        return Err(unreadable(path, &std::io::ErrorKind::NotFound.into()));
    };
    let transcripts = read_followed(path, options, first)?;
    let session = Session::open(global)?;
    ingest_followed(&session, options, &mut follower, &transcripts)?;
    drop(transcripts);
    loop {
        session.cancel.check()?;
        session.cancel.sleep(POLL);
        let Some(reading) = follower.look()? else { continue };
        let was = name_replaced_file(path, &reading);
        let transcripts = read_followed(path, options, reading).map_err(&was)?;
        if follower.is_ingested(&all_texts(&transcripts)) {
            continue;
        }
        ingest_followed(&session, options, &mut follower, &transcripts).map_err(&was)?;
    }
}

/// Ingests the conversations of a followed file.
fn ingest_followed(
    session: &Session<'_>,
    options: &Ingest,
    follower: &mut Follower,
    transcripts: &[Transcript],
) -> Result<()> {
    match transcripts {
        [transcript] => {
            let report = ingest_transcript(session, session.conversation, options, transcript)?;
            print_report(session, transcript, &report)?;
        }
        transcripts => ingest_many::store_transcripts(session, options, transcripts)?,
    }
    follower.remember_ingested(&all_texts(transcripts));
    Ok(())
}

fn all_texts(transcripts: &[Transcript]) -> Vec<String> {
    transcripts.iter().flat_map(Transcript::all_texts).collect()
}

/// Reads the messages of the complete lines of a followed file.
fn read_followed(
    path: &Path,
    options: &Ingest,
    reading: session_files::Reading,
) -> Result<Vec<Transcript>> {
    let growth = if reading.is_growing { Growth::Growing } else { Growth::Ended };
    let mut source = BufReader::new(reading.file);
    input::read_open(path, &mut source, ReadOptions::new(options), growth)
}

/// Returns a function that maps errors. If `reading` is of a file that was replaced, the function
/// says so before the message of each error, except `cancelled`.
fn name_replaced_file(
    path: &Path,
    reading: &session_files::Reading,
) -> impl Fn(Error) -> Error + use<> {
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

/// Stores the messages of a transcript in a conversation.
pub(super) fn ingest_transcript(
    session: &Session<'_>,
    conversation: &str,
    options: &Ingest,
    transcript: &Transcript,
) -> Result<IngestReport> {
    let ingest = IngestOptions {
        append_mode: options.append_mode.into(),
        // Times that a file does not have are not invented.
        is_undated: true,
        refuse_replay: options.refuse_replay,
        system: options.system.clone().into(),
        family: options.family.clone(),
        ..IngestOptions::new(transcript.dialect(), session.clock)
    };
    let messages = transcript.session_messages();
    let progress = Progress::counted("ingest", messages.live.len());
    let mut report = session
        .lcm
        .ingest_session(conversation, &messages, &ingest, &session.cancel, &mut |done| {
            progress.at(done);
        })
        .map_err(|failure| match failure.index {
            Some(index) => {
                propose_auto(options, transcript, transcript.add_place(index, &failure.error))
            }
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

fn print_report(
    session: &Session<'_>,
    transcript: &Transcript,
    report: &IngestReport,
) -> Result<()> {
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
