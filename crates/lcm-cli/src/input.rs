//! Reads transcripts, line by line, from files and standard input.
//!
//! In: files with one message per line, or session files. Out: the messages, their files and lines
//! for errors, and counts of dropped lines. The component decides whether a line is a message;
//! `lcm_host::session_files` converts the lines of session files.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _},
    path::{Path, PathBuf},
    rc::Rc,
};

use lcm_host::{Code, Error, Result, session_files, types::Dialect as WitDialect};

use crate::arguments::Dialect;

/// Messages of files, in order.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Texts of the messages.
    pub(crate) messages: Vec<String>,
    /// Place of each message.
    places: Vec<Place>,
    blank_lines: usize,
    byte_order_marks: usize,
    carriage_returns: usize,
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
        write!(formatter, "{} line {}", shown(&self.file), self.line)
    }
}

impl Transcript {
    /// Reads files one after the other.
    pub(crate) fn read(files: &[PathBuf], dialect: Dialect) -> Result<Self> {
        let mut transcript = Self { dialect: dialect.wit(), ..Self::default() };
        for file in files {
            transcript.add_file(file, &mut open(file)?, dialect, false)?;
        }
        Ok(transcript)
    }

    /// Reads an open file. `growing`: another program may still write to the file, so a last line
    /// without a line end is skipped unless it is a complete JSON object.
    pub(crate) fn read_open(
        file: &Path,
        source: &mut dyn BufRead,
        dialect: Dialect,
        growing: bool,
    ) -> Result<Self> {
        let mut transcript = Self { dialect: dialect.wit(), ..Self::default() };
        transcript.add_file(file, source, dialect, growing)?;
        Ok(transcript)
    }

    fn add_file(
        &mut self,
        file: &Path,
        source: &mut dyn BufRead,
        dialect: Dialect,
        growing: bool,
    ) -> Result<()> {
        let first = self.messages.len();
        self.add(file, source, growing)?;
        if dialect.wit().is_none() { self.recognise(file, first) } else { Ok(()) }
    }

    /// Returns the dialect of the messages; `lcm` if unknown.
    pub(crate) fn dialect(&self) -> WitDialect {
        self.dialect.unwrap_or(WitDialect::Lcm)
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

    /// Detects the format of the lines from index `first` on, which are those of `file`, and
    /// replaces the lines by their messages.
    fn recognise(&mut self, file: &Path, first: usize) -> Result<()> {
        let lines = self.messages.split_off(first);
        let places = self.places.split_off(first);
        let count = lines.len();
        let read = session_files::read(lines).map_err(|error| {
            let place = error.line.and_then(|line| places.get(line));
            let place = place.map_or_else(|| shown(file), Place::to_string);
            Error::new(Code::InvalidInput, format!("{place} {}", error.reason))
        })?;
        let Some(format) = read.format else {
            if count > 0 {
                self.left.push(format!("{} holds no message yet", shown(file)));
            }
            return Ok(());
        };
        if let Some(dialect) = self.dialect
            && dialect != read.dialect
        {
            let before = self.format.map_or("another format", session_files::Format::name);
            let message = format!(
                "{} is {}, but the preceding files are {before}; ingest each format on its own",
                shown(file),
                format.name()
            );
            return Err(Error::new(Code::InvalidInput, message));
        }
        (self.format, self.dialect) = (Some(format), Some(read.dialect));
        self.left.extend(read.warnings);
        for message in read.messages {
            self.places.extend(places.get(message.line).cloned());
            self.messages.push(message.text);
        }
        Ok(())
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
            if growing && !bytes.ends_with(b"\n") && !is_whole(&bytes) {
                break;
            }
            let without_mark = bytes.strip_prefix(b"\xEF\xBB\xBF").filter(|_| line == 1);
            self.byte_order_marks += usize::from(without_mark.is_some());
            let text = without_mark.unwrap_or(&bytes);
            let text = text.strip_suffix(b"\n").unwrap_or(text);
            let bare = text.strip_suffix(b"\r");
            let place = Place { file: Rc::clone(&shared), line };
            let text = std::str::from_utf8(bare.unwrap_or(text)).map_err(|_| {
                Error::new(Code::InvalidInput, format!("{place} must be valid UTF-8"))
            })?;
            if text.trim().is_empty() {
                // A lone byte-order mark does not count as a line.
                self.blank_lines += usize::from(bytes.ends_with(b"\n") || !text.is_empty());
                continue;
            }
            self.carriage_returns += usize::from(bare.is_some());
            self.messages.push(text.to_owned());
            self.places.push(place);
        }
        Ok(())
    }

    /// Returns an error with the place of the message of this index before its text.
    pub(crate) fn at(&self, index: usize, error: &Error) -> Error {
        match self.places.get(index) {
            Some(place) => Error::new(error.code, format!("{place}: {}", error.message)),
            None => error.clone(),
        }
    }

    /// Returns the counts of dropped lines and characters, and the warnings of session files, one
    /// line each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let counted = [
            (self.blank_lines, "blank line"),
            (self.byte_order_marks, "byte-order mark"),
            (self.carriage_returns, "carriage return"),
        ];
        let dropped = counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| {
            let plural = if *count == 1 { "" } else { "s" };
            format!("dropped {count} {what}{plural}")
        });
        dropped.chain(self.left.iter().cloned()).collect()
    }
}

/// Returns whether a line without an end is a complete JSON object.
fn is_whole(line: &[u8]) -> bool {
    let whole = || serde_json::from_slice::<&serde_json::value::RawValue>(line).is_ok();
    line.trim_ascii_end().ends_with(b"}") && whole()
}

/// Reads a file as text; `-` is standard input.
pub(crate) fn read_text(file: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    open(file)?.read_to_end(&mut bytes).map_err(|error| unreadable(file, &error))?;
    String::from_utf8(bytes)
        .map_err(|_| Error::new(Code::InvalidInput, format!("{} must be valid UTF-8", shown(file))))
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
    Error::new(code, format!("cannot read {}: {error}", shown(file)))
}

fn shown(file: &Path) -> String {
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
        let error = read.at(0, &Error::new(Code::InvalidInput, "no role"));
        assert_eq!(error.message, "`t.jsonl` line 3: no role");
    }
}
