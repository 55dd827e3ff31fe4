//! `lcm ingest` of folders, and of files with several conversations: one conversation each.
//!
//! In: folders, exports, or with `--dry-run` any files. Out: one row for each conversation, totals,
//! and the files that were not read, with the reason. Conversations of a folder get the folder in
//! which their program worked as their family, so that they are searched together.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use lcm_host::{
    Code, Error, Result,
    session_files::{self, FolderEntry},
};
use serde::Serialize;

use super::ingest::ingest_transcript;
use crate::{
    End,
    arguments::{Dialect, Global, Ingest},
    input::Transcript,
    output::{self, count, number},
    session::Session,
};

/// A conversation of the report.
#[derive(Serialize)]
struct Row {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<String>,
    /// Messages of the file, with those of branches.
    messages: u64,
    /// Absent with `--dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ingested: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    warnings: Vec<String>,
}

/// A file that was not read.
#[derive(Serialize)]
struct Refused {
    file: PathBuf,
    reason: String,
}

#[derive(Default, Serialize)]
struct Report {
    dry_run: bool,
    conversations: Vec<Row>,
    not_read: Vec<Refused>,
    /// Files with a conversation whose ingest failed.
    not_stored: Vec<Refused>,
    /// Files that `--since` left out.
    older_files: u64,
    ingested: u64,
    skipped: u64,
}

/// An error that ends a visit: of an ingest, or of a folder that cannot be listed.
struct VisitError(Error);

impl From<std::io::Error> for VisitError {
    fn from(error: std::io::Error) -> Self {
        Self(Error::new(Code::InvalidInput, format!("cannot read the folder: {error}")))
    }
}

/// Ingests the sessions of folders.
pub(super) fn run_folders(global: &Global, options: &Ingest) -> Result<End> {
    if options.dialect != Dialect::Auto || options.author.is_some() {
        return Err(Error::new(Code::InvalidInput, "a folder requires `--dialect auto`"));
    }
    let is_folder = |path: &PathBuf| path.is_dir();
    if let Some(file) = options.files.iter().find(|path| !is_folder(path)) {
        let message = format!(
            "the paths must be all folders or all files, got the file `{}`",
            file.display()
        );
        return Err(Error::new(Code::InvalidInput, message));
    }
    // Opening the store of a dry run would create it.
    let session = if options.dry_run { None } else { Some(Session::open(global)?) };
    let now = global.now.map_or(lcm_host::Clock::System, lcm_host::Clock::Fixed).now_ms();
    let since = options.since.as_deref().map(|text| {
        session_files::parse_since(text, now).ok_or_else(|| {
            let rule = "`--since` must be a date, a date and time, or days such as `7d`";
            Error::new(Code::InvalidInput, format!("{rule}, got `{text}`"))
        })
    });
    let since = since.transpose()?;
    let mut report = Report { dry_run: options.dry_run, ..Report::default() };
    let visited = session_files::visit_folders(&options.files, since, &mut |entry| {
        add_entry(session.as_ref(), options, entry, &mut report).map_err(VisitError)
    });
    visited.map_err(|VisitError(error)| error)?;
    let has_none = report.conversations.is_empty() && report.not_stored.is_empty();
    if has_none && report.older_files == 0 {
        let first = report.not_read.first();
        let first = first.map(|it| format!("; `{}` {}", it.file.display(), it.reason));
        let message = format!(
            "the folder must have session files; {} were compared{}",
            number(u64::try_from(report.not_read.len()).unwrap_or(u64::MAX)),
            first.unwrap_or_default()
        );
        return Err(Error::new(Code::InvalidInput, message));
    }
    print_report(global.json, &report)?;
    Ok(if report.not_stored.is_empty() { End::Done } else { End::Findings })
}

/// Ingests transcripts, each into a conversation of its own, or with `--dry-run` only prints them.
pub(super) fn run_transcripts(
    global: &Global,
    options: &Ingest,
    transcripts: &[Transcript],
) -> Result<()> {
    if options.dry_run {
        return store_all(None, (&global.conversation, global.json), options, transcripts);
    }
    store_transcripts(&Session::open(global)?, options, transcripts)
}

/// Ingests transcripts, each into a conversation of its own.
pub(super) fn store_transcripts(
    session: &Session<'_>,
    options: &Ingest,
    transcripts: &[Transcript],
) -> Result<()> {
    store_all(Some(session), (session.conversation, session.json), options, transcripts)
}

fn store_all(
    session: Option<&Session<'_>>,
    (name, json): (&str, bool),
    options: &Ingest,
    transcripts: &[Transcript],
) -> Result<()> {
    let mut report = Report { dry_run: options.dry_run, ..Report::default() };
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (index, transcript) in transcripts.iter().enumerate() {
        let numbered = || match transcripts.len() {
            1 => name.to_owned(),
            _ => format!("{name}/{}", index + 1),
        };
        let conversation = match &transcript.session {
            Some(id) if transcripts.len() > 1 => {
                let count = names.entry(id).or_default();
                *count += 1;
                if *count == 1 { id.clone() } else { format!("{id}#{count}") }
            }
            _ => numbered(),
        };
        let row = new_row(conversation, None, transcript, options.family.clone());
        add_row(session, options, transcript, row, &mut report)?;
    }
    print_report(json, &report)
}

fn new_row(
    conversation: String,
    file: Option<&Path>,
    transcript: &Transcript,
    family: Option<String>,
) -> Row {
    Row {
        conversation,
        file: file.map(Path::to_path_buf),
        format: transcript.format(),
        family,
        messages: transcript.session_messages().count_messages(),
        ingested: None,
        revision: None,
        warnings: transcript.warnings(),
    }
}

/// Stores a conversation, and adds its row.
fn add_row(
    session: Option<&Session<'_>>,
    options: &Ingest,
    transcript: &Transcript,
    mut row: Row,
    report: &mut Report,
) -> Result<()> {
    if let Some(session) = session {
        let options = Ingest { family: row.family.clone(), ..options.clone() };
        let stored = ingest_transcript(session, &row.conversation, &options, transcript)?;
        report.ingested = report.ingested.saturating_add(stored.ingested);
        report.skipped = report.skipped.saturating_add(stored.skipped);
        (row.ingested, row.revision) = (Some(stored.ingested), Some(stored.revision));
        row.warnings = stored.warnings;
    }
    report.conversations.push(row);
    Ok(())
}

fn add_entry(
    session: Option<&Session<'_>>,
    options: &Ingest,
    entry: FolderEntry,
    report: &mut Report,
) -> Result<()> {
    match entry {
        FolderEntry::Older(_) => report.older_files += 1,
        FolderEntry::Refused { path, reason } => {
            report.not_read.push(Refused { file: path, reason });
        }
        FolderEntry::Session(found) => {
            let family = options.family.clone().or(Some(found.family));
            let transcript = Transcript::new(&found.path, found.file);
            let row = new_row(found.conversation, Some(&found.path), &transcript, family);
            let file = row.file.clone().unwrap_or_default();
            match add_row(session, options, &transcript, row, report) {
                Err(error) if concerns_conversation(error.code) => {
                    report.not_stored.push(Refused { file, reason: error.message });
                }
                stored => stored?,
            }
        }
    }
    Ok(())
}

/// Returns whether other conversations can be stored after an error with this code.
const fn concerns_conversation(code: Code) -> bool {
    !matches!(
        code,
        Code::Cancelled
            | Code::Corrupt
            | Code::Internal
            | Code::StoreUnavailable
            | Code::WouldBlock
    )
}

fn print_report(json: bool, report: &Report) -> Result<()> {
    if json {
        return output::json(report);
    }
    let mut out = String::new();
    for row in &report.conversations {
        let stored = match row.ingested {
            Some(ingested) => format!(", {} stored", number(ingested)),
            None => String::new(),
        };
        let format = row.format.map_or(String::new(), |format| format!(", {format}"));
        let family = row.family.as_ref().map_or(String::new(), |family| format!(", in {family}"));
        out += &format!(
            "{}: {}{stored}{format}{family}\n",
            row.conversation,
            count(row.messages, "message")
        );
        out += &output::warnings(&row.warnings);
    }
    for (what, list) in [("not read", &report.not_read), ("not stored", &report.not_stored)] {
        for Refused { file, reason } in list {
            out += &format!("{what}: `{}` {reason}\n", file.display());
        }
    }
    if report.older_files > 0 {
        out += &format!("left out by --since: {}\n", count(report.older_files, "file"));
    }
    let rows = u64::try_from(report.conversations.len()).unwrap_or(u64::MAX);
    let what = if report.dry_run {
        "nothing stored (dry run)".to_owned()
    } else {
        format!("{} stored, {} skipped", count(report.ingested, "message"), number(report.skipped))
    };
    out += &format!("{}: {what}\n", count(rows, "conversation"));
    output::text(&out)
}
