//! Reads transcripts from files and standard input.
//!
//! In: files with one message per line, or with `--dialect auto` session files, exports and
//! documents. Out: conversations, each with its messages, their files and lines for errors, and
//! warnings. The component decides whether a line is a message; `lcm_host::session_files` reads the
//! other formats.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _},
    path::{Path, PathBuf},
    rc::Rc,
};

use lcm_host::{
    Code, Error, Result, SessionMessages,
    session_files::{self, Author, Branch, DroppedCounts, Growth, LineError, SessionFile},
    types::Dialect as WitDialect,
};

use crate::arguments::{Dialect, Ingest};

/// Messages of one conversation, in order.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Texts of the messages.
    pub(crate) messages: Vec<String>,
    /// Branches that the conversation did not continue.
    branches: Vec<Branch>,
    /// Index of the line of each message, over all files; empty: no file has branches.
    lines: Vec<usize>,
    /// Place of each message.
    places: Vec<Place>,
    /// Id that the program of the session gave it; `None`: none.
    pub(crate) session: Option<String>,
    dropped: DroppedCounts,
    /// Detected format of the files; `None`: the dialect was given, or the format is unknown yet.
    format: Option<session_files::Format>,
    /// Given or detected dialect; `None`: unknown yet.
    dialect: Option<WitDialect>,
    /// Warnings of `lcm_host::session_files`.
    left: Vec<String>,
}

/// The file and line of a message.
#[derive(Clone, Debug)]
struct Place {
    file: Rc<Path>,
    /// Line number, from 1.
    line: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} line {}", show_path(&self.file), self.line)
    }
}

/// How to read files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadOptions {
    pub(crate) dialect: Dialect,
    /// Author of plain texts; `None`: the files have messages.
    pub(crate) author: Option<Author>,
}

impl ReadOptions {
    /// Returns the options that `lcm ingest` got.
    pub(crate) fn new(options: &Ingest) -> Self {
        Self { dialect: options.dialect, author: options.author.map(Into::into) }
    }
}

/// Reads files one after the other: one conversation of all files together, or, if a file has
/// several, each on its own.
pub(crate) fn read_files(files: &[PathBuf], read_options: ReadOptions) -> Result<Vec<Transcript>> {
    let mut transcripts = Vec::new();
    for file in files {
        let next = read_open(file, &mut open(file)?, read_options, Growth::Ended)?;
        transcripts.extend(next);
    }
    if transcripts.len() > files.len() {
        return Ok(transcripts);
    }
    let mut joined = Transcript { dialect: read_options.dialect.wit(), ..Transcript::default() };
    for transcript in transcripts {
        joined.join(transcript)?;
    }
    Ok(Vec::from([joined]))
}

/// Reads the conversations of an open file. While it grows, a last line without a line end is
/// skipped unless it is a complete JSON object.
pub(crate) fn read_open(
    file: &Path,
    source: &mut dyn BufRead,
    read_options: ReadOptions,
    growth: Growth,
) -> Result<Vec<Transcript>> {
    if read_options.author.is_none() && read_options.dialect.wit().is_some() {
        let mut transcript =
            Transcript { dialect: read_options.dialect.wit(), ..Transcript::default() };
        transcript.add(file, source, growth == Growth::Growing)?;
        return Ok(Vec::from([transcript]));
    }
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).map_err(|error| unreadable(file, &error))?;
    let read = match read_options.author {
        Some(author) => session_files::read_notes(&bytes, author, growth).map(|it| Vec::from([it])),
        None => session_files::read_bytes(&bytes, growth),
    };
    let sessions = read.map_err(|error| locate_error(file, &error))?;
    Ok(sessions.into_iter().map(|session| Transcript::new(file, session)).collect())
}

/// Returns the error of a file or line.
fn locate_error(file: &Path, error: &LineError) -> Error {
    let place = match error.line {
        Some(line) => Place { file: file.into(), line: line + 1 }.to_string(),
        None => show_path(file),
    };
    Error::new(Code::InvalidInput, format!("{place} {}", error.reason))
}

impl Transcript {
    /// Returns the messages of a session of a file.
    pub(crate) fn new(file: &Path, session: SessionFile) -> Self {
        let shared: Rc<Path> = file.into();
        let mut transcript = Self {
            branches: session.branches,
            session: session.session,
            format: session.format,
            dialect: session.format.map(|_| session.dialect),
            left: session.warnings,
            ..Self::default()
        };
        if session.format.is_none() {
            transcript.left.push(format!("{} holds no message yet", show_path(file)));
        }
        for message in session.messages {
            transcript.lines.push(message.line);
            transcript.places.push(Place { file: Rc::clone(&shared), line: message.line + 1 });
            transcript.messages.push(message.text);
        }
        transcript
    }

    /// Adds the messages of the next file.
    fn join(&mut self, mut next: Self) -> Result<()> {
        if let (Some(dialect), Some(found)) = (self.dialect, next.dialect)
            && dialect != found
        {
            let name = |it: &Self| it.format().unwrap_or("another format");
            let file = next.places.first().map(|place| show_path(&place.file));
            let message = format!(
                "{} is {}, but the preceding files are {}; ingest each format on its own",
                file.unwrap_or_default(),
                name(&next),
                name(self)
            );
            return Err(Error::new(Code::InvalidInput, message));
        }
        let last = |branch: &Branch| branch.messages.last().map(|message| message.line);
        let aside = self.branches.iter().filter_map(last);
        let offset = self.lines.iter().copied().chain(aside).max().map_or(0, |last| last + 1);
        let messages = next.branches.iter_mut().flat_map(|branch| &mut branch.messages);
        messages.for_each(|message| message.line += offset);
        self.lines.extend(next.lines.iter().map(|line| line + offset));
        self.messages.append(&mut next.messages);
        self.branches.append(&mut next.branches);
        self.places.append(&mut next.places);
        self.left.append(&mut next.left);
        self.dropped.add(next.dropped);
        self.format = next.format.or(self.format);
        self.dialect = next.dialect.or(self.dialect);
        self.session = self.session.take().or(next.session);
        Ok(())
    }

    /// Returns the dialect of the messages; `lcm` if unknown.
    pub(crate) fn dialect(&self) -> WitDialect {
        self.dialect.unwrap_or(WitDialect::Lcm)
    }

    /// Returns the messages for an ingest.
    pub(crate) fn session_messages(&self) -> SessionMessages<'_> {
        SessionMessages { live: &self.messages, lines: &self.lines, branches: &self.branches }
    }

    /// Returns the texts of all messages, with those of branches.
    pub(crate) fn all_texts(&self) -> Vec<String> {
        let aside = self.branches.iter().flat_map(|branch| &branch.messages);
        let aside = aside.map(|message| &message.text);
        self.messages.iter().chain(aside).cloned().collect()
    }

    /// Returns the name of the format that `--dialect auto` would find; `None`: it finds none.
    pub(crate) fn detect_format(&self) -> Option<&'static str> {
        let read = session_files::read(self.messages.clone()).ok()?;
        read.format.map(session_files::Format::name)
    }

    /// Returns the name of the detected format; `None`: the dialect was given, or the format is
    /// unknown yet.
    pub(crate) fn format(&self) -> Option<&'static str> {
        self.format.map(session_files::Format::name)
    }

    /// Adds each line of a file that is not blank as a message. Lines are read one at a time, so
    /// memory holds one copy.
    pub(crate) fn add(
        &mut self,
        file: &Path,
        source: &mut dyn BufRead,
        growing: bool,
    ) -> Result<()> {
        let shared: Rc<Path> = file.into();
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            let read = source.read_until(b'\n', &mut bytes);
            if read.map_err(|error| unreadable(file, &error))? == 0 {
                break;
            }
            if growing && !bytes.ends_with(b"\n") && !session_files::is_whole_line(&bytes) {
                break;
            }
            let text = if line == 1 { self.dropped.strip_mark(&bytes) } else { &bytes };
            let Some(text) = self.dropped.strip_line(text) else { continue };
            let place = Place { file: Rc::clone(&shared), line };
            let text = std::str::from_utf8(text).map_err(|_| {
                Error::new(Code::InvalidInput, format!("{place} must be valid UTF-8"))
            })?;
            self.messages.push(text.to_owned());
            self.places.push(place);
        }
        Ok(())
    }

    /// Returns an error with the place of the message of this index before its text.
    pub(crate) fn add_place(&self, index: usize, error: &Error) -> Error {
        match self.places.get(index) {
            Some(place) => Error::new(error.code, format!("{place}: {}", error.message)),
            None => error.clone(),
        }
    }

    /// Returns the counts of dropped lines and characters, and the warnings of session files, one
    /// line each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let dropped = self.dropped.warnings().into_iter();
        dropped.chain(self.left.iter().cloned()).collect()
    }
}

/// Reads a file as text; `-` is standard input.
pub(crate) fn read_text(file: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    open(file)?.read_to_end(&mut bytes).map_err(|error| unreadable(file, &error))?;
    String::from_utf8(bytes).map_err(|_| {
        Error::new(Code::InvalidInput, format!("{} must be valid UTF-8", show_path(file)))
    })
}

/// Opens a file; `-` is standard input.
pub(crate) fn open(file: &Path) -> Result<Box<dyn BufRead>> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    match File::open(file) {
        Ok(opened) => Ok(Box::new(BufReader::new(opened))),
        Err(error) => Err(unreadable(file, &error)),
    }
}

/// Returns the error of a file that cannot be read: `not-found` or `invalid-input`.
pub(crate) fn unreadable(file: &Path, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => Code::NotFound,
        _ => Code::InvalidInput,
    };
    Error::new(code, format!("cannot read {}: {error}", show_path(file)))
}

fn show_path(file: &Path) -> String {
    if file.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        format!("`{}`", file.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(mut bytes: &[u8]) -> Result<Transcript> {
        let mut transcript = Transcript::default();
        transcript.add(Path::new("t.jsonl"), &mut bytes, false).map(|()| transcript)
    }

    #[test]
    fn what_is_no_message_is_dropped_and_counted() {
        let read = transcript(b"\xEF\xBB\xBF{\"a\":1}\r\n\n  \n{\"b\":2}\n").unwrap();
        assert_eq!(read.messages, ["{\"a\":1}", "{\"b\":2}"]);
        let expected =
            ["dropped 2 blank lines", "dropped 1 byte-order mark", "dropped 1 carriage return"];
        assert_eq!(read.warnings(), expected);
    }

    #[test]
    fn the_end_of_the_last_line_is_no_blank_line() {
        assert!(transcript(b"{}\n").unwrap().warnings().is_empty());
        assert!(transcript(b"{}").unwrap().warnings().is_empty());
        assert!(transcript(b"").unwrap().messages.is_empty());
    }

    #[test]
    fn a_line_that_is_being_written_waits() {
        let growing = |mut bytes: &[u8]| {
            let mut transcript = Transcript::default();
            transcript.add(Path::new("t.jsonl"), &mut bytes, true).unwrap();
            transcript.messages
        };
        assert_eq!(growing(b"{}\n{\"a\":{}"), ["{}"]);
        assert_eq!(growing(b"{}\n\xE4\xBD"), ["{}"]);
        assert_eq!(growing(b"{}\n{\"a\":{}}"), ["{}", "{\"a\":{}}"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_named_by_file_and_line() {
        let error = transcript(b"{}\n\n\xFF\n").unwrap_err();
        assert_eq!(error.to_string(), "invalid-input: `t.jsonl` line 3 must be valid UTF-8");
    }

    #[test]
    fn a_place_counts_lines_that_were_dropped() {
        let read = transcript(b"\n\n{}\n").unwrap();
        let error = read.add_place(0, &Error::new(Code::InvalidInput, "no role"));
        assert_eq!(error.message, "`t.jsonl` line 3: no role");
    }
}
