//! `lcm export` and `lcm import`: copy conversations from store to store as lines of text.
//!
//! In: a conversation or all, or an export. Out: an export in a file or on standard output, or
//! counts of what was stored.

use std::{
    fs::{self, File},
    io::{BufRead, BufWriter, Cursor, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use lcm_host::{Code, Error, ImportReport, Result};
use serde_json::json;

use crate::{
    End,
    arguments::{Export, Global, Import},
    input,
    output::{self, count, number},
    progress::Progress,
    session::Session,
};

/// Exported lines between two updates of the progress bar.
const STEP: u64 = 1_000;

pub(crate) fn export(global: &Global, options: &Export) -> Result<End> {
    let session = Session::open(global)?;
    if is_standard(&options.file) {
        // Every line of an export is JSON, so `--json` changes nothing here.
        lines(&session, options.all_conversations, &mut |line| output::text(&format!("{line}\n")))?;
        return Ok(End::Done);
    }
    let target = &options.file;
    let partial = partial(target);
    let written = write(&session, options.all_conversations, &partial)
        .and_then(|count| fs::rename(&partial, target).map(|()| count).map_err(cannot(target)));
    let written = written.inspect_err(|_| {
        // `import` would refuse an incomplete export.
        let _ = fs::remove_file(&partial);
    })?;
    let file = target.display().to_string();
    if session.json {
        output::json(&json!({"file": file, "lines": written}))?;
    } else {
        output::text(&format!("{file}: {}\n", count(written, "line")))?;
    }
    Ok(End::Done)
}

fn write(session: &Session<'_>, all: bool, file: &Path) -> Result<u64> {
    let mut out = BufWriter::new(File::create(file).map_err(cannot(file))?);
    let count = lines(session, all, &mut |line| {
        out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(cannot(file))
    })?;
    let out = out.into_inner().map_err(|error| cannot(file)(error.into_error()))?;
    out.sync_all().map_err(cannot(file))?;
    Ok(count)
}

fn lines(
    session: &Session<'_>,
    all: bool,
    each: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<u64> {
    let progress = Progress::open("export");
    let mut count = 0_u64;
    let conversation = (!all).then_some(session.conversation);
    session.lcm.export_all(conversation, &session.cancel, &mut |line| {
        count = count.saturating_add(1);
        if count.is_multiple_of(STEP) {
            progress.say(format!("{} lines", number(count)));
        }
        each(line)
    })?;
    Ok(count)
}

pub(crate) fn import(global: &Global, options: &Import) -> Result<End> {
    let source = Source::of(&options.file)?;
    let session = Session::open(global)?;
    let progress = Progress::open("import");
    let each = &mut |lines: u64| progress.say(format!("{} lines", number(lines)));
    let open = &mut || source.open();
    let report = session.lcm.import_all(open, session.clock, &session.cancel, each)?;
    drop(progress);
    print(&session, &report)?;
    Ok(End::Done)
}

fn print(session: &Session<'_>, report: &ImportReport) -> Result<()> {
    let skipped = report.messages.saturating_sub(report.ingested);
    if session.json {
        return output::json(&json!({
            "conversations": report.conversations,
            "ingested": report.ingested,
            "skipped": skipped,
            "summaries": report.summaries,
            "contexts": report.contexts,
        }));
    }
    output::text(&format!(
        "{}: {} and {} stored, {} skipped; {} replaced\n",
        count(report.conversations, "conversation"),
        count(report.ingested, "message"),
        count(report.summaries, "summary"),
        number(skipped),
        count(report.contexts, "context"),
    ))
}

/// Source of an import, which is read twice: a file, or the content of standard input.
enum Source {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl Source {
    fn of(file: &Path) -> Result<Self> {
        if is_standard(file) {
            let mut bytes = Vec::new();
            let read = input::open(file)?.read_to_end(&mut bytes);
            read.map_err(|error| input::unreadable(file, &error))?;
            return Ok(Self::Bytes(bytes.into()));
        }
        Ok(Self::File(file.to_owned()))
    }

    fn open(&self) -> Result<Box<dyn BufRead>> {
        Ok(match self {
            Self::File(path) => input::open(path)?,
            Self::Bytes(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
        })
    }
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Returns the name under which an export is written; it is renamed when the export is complete.
fn partial(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

fn cannot(file: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| {
        let message = format!("cannot write `{}`: {error}", file.display());
        Error::new(Code::InvalidInput, message)
    }
}
