//! Finds the session files of a folder.
//!
//! In: a folder, and optionally the earliest time that counts. Out: each conversation of its files,
//! with the id and the family under which to store it, and each file that was not read. Files are
//! visited in the order of their paths, so equal folders give equal ids.
//!
//! Read are `.jsonl`, `.ndjson` and `.json` files, histories of aider, and the storage of opencode,
//! whose messages and parts are files of their own. Symbolic links are not followed.
//!
//! | conversation id | of |
//! |---|---|
//! | id that the program gave the session | a session with an id |
//! | name of the file, which is an id of its own | sub-agents and UUIDs of Claude Code |
//! | name of the folder, `/`, path of the file in it | files without an id |
//!
//! Every session is a conversation of its own. See `folder_names` for sessions with one id.
//!
//! The family is the folder in which the session worked; without it, the folder of the file.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    Growth, SessionFile,
    folder_names::{FilePlace, FolderNames},
    line::{self, Object, Text},
    read_bytes, read_records,
};

/// Name of a history of aider.
const AIDER: &str = ".aider.chat.history.md";
/// Folders whose files are no sessions.
const IGNORED: [&str; 3] = ["node_modules", ".git", "tool-results"];

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// Returns the time of a text in milliseconds since the Unix epoch: a date, a date and time, in UTC
/// unless it has a zone, or `7d` for the days before `now`; `None`: another text.
#[must_use]
pub fn parse_since(text: &str, now: u64) -> Option<u64> {
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok()) {
        return Some(now.saturating_sub(days.saturating_mul(DAY_MS)));
    }
    let zoned = text.parse::<jiff::Timestamp>().ok();
    let time = zoned.or_else(|| {
        let local = text.parse::<jiff::civil::DateTime>().ok()?;
        local.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    });
    u64::try_from(time?.as_millisecond()).ok()
}

/// A conversation of a file in a folder.
#[derive(Debug)]
pub struct FolderSession {
    /// Path of the file.
    pub path: PathBuf,
    /// Id of the conversation.
    pub conversation: String,
    /// Key of the family.
    pub family: String,
    /// Messages of the conversation.
    pub file: SessionFile,
}

/// A conversation or a file of a folder.
#[derive(Debug)]
pub enum FolderEntry {
    /// A conversation.
    Session(Box<FolderSession>),
    /// A file that was not read, and why.
    Refused {
        /// Path of the file.
        path: PathBuf,
        /// Text to print after the name of the file.
        reason: String,
    },
    /// A file that was not changed since the earliest time.
    Older(PathBuf),
}

/// Visits the conversations of folders and of all folders below. `since_ms`: files that were last
/// changed before this time, in milliseconds since the Unix epoch, are not visited. These files
/// are read nevertheless, because no other conversation may get their ids.
///
/// # Errors
///
/// A folder cannot be listed, or errors of `visit`.
pub fn visit_folders<E: From<io::Error>>(
    roots: &[PathBuf],
    since_ms: Option<u64>,
    visit: &mut dyn FnMut(FolderEntry) -> Result<(), E>,
) -> Result<(), E> {
    let places = list_places(roots)?;
    let mut claims = Vec::new();
    for place in &places {
        let files = read_path(&place.path).unwrap_or_default();
        claims.extend(place.claim_names(&files));
    }
    let names = FolderNames::assign_names(claims);
    for place in &places {
        let path = place.path.clone();
        let is_older = since_ms.is_some_and(|since| changed_ms(&path) < since);
        if is_older {
            visit(FolderEntry::Older(path))?;
            continue;
        }
        let files = match read_path(&path) {
            Ok(files) => files,
            Err(reason) => {
                visit(FolderEntry::Refused { path, reason })?;
                continue;
            }
        };
        let claims = place.claim_names(&files);
        for (file, claim) in files.into_iter().zip(claims) {
            let path = path.clone();
            if file.count_messages() == 0 {
                let reason = describe_empty(&file);
                visit(FolderEntry::Refused { path, reason })?;
                continue;
            }
            let family = file.project.clone().unwrap_or_else(|| folder_name(&path));
            let conversation = names.find_name(&claim);
            let session = FolderSession { path, conversation, family, file };
            visit(FolderEntry::Session(Box::new(session)))?;
        }
    }
    Ok(())
}

/// Lists the files of folders in the order of their paths, each file once.
fn list_places(roots: &[PathBuf]) -> io::Result<Vec<FilePlace>> {
    let (mut places, mut known) = (Vec::new(), HashSet::new());
    for root in roots {
        let mut paths = Vec::new();
        list_files(root, &mut paths)?;
        paths.sort();
        let whole = fs::canonicalize(root)?;
        let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
        for path in paths {
            let within = path.strip_prefix(root).unwrap_or(&path);
            if known.insert(whole.join(within)) {
                places.push(FilePlace::new(name.as_deref().unwrap_or_default(), within, &path));
            }
        }
    }
    Ok(places)
}

/// Lists the files that may be sessions, and the folders that are sessions of opencode.
fn list_files(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    let (messages, parts) = (folder.join("message"), folder.join("part"));
    if messages.is_dir() && parts.is_dir() {
        for entry in fs::read_dir(messages)? {
            paths.push(entry?.path());
        }
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if kind.is_dir() && !IGNORED.contains(&&*name) {
            list_files(&path, paths)?;
        }
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        let is_session = ["jsonl", "ndjson", "json"].contains(&extension) || name == AIDER;
        if kind.is_file() && is_session {
            paths.push(path);
        }
    }
    Ok(())
}

/// Returns when a file was last changed, in milliseconds; `u64::MAX`: unknown.
fn changed_ms(path: &Path) -> u64 {
    let changed: Option<SystemTime> = fs::metadata(path).and_then(|data| data.modified()).ok();
    let since = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| u64::try_from(since.as_millis()).ok()).unwrap_or(u64::MAX)
}

/// Reads the conversations of a path; `Err`: why it was not read.
fn read_path(path: &Path) -> Result<Vec<SessionFile>, String> {
    if path.is_dir() {
        return read_open_code(path);
    }
    let bytes = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    // A program may be writing to a file of lines; a history would wait for its next prompt.
    let is_history = path.file_name().is_some_and(|name| name == AIDER);
    let growth = if is_history { Growth::Ended } else { Growth::Growing };
    let files = read_bytes(&bytes, growth).map_err(|error| match error.line {
        Some(line) => format!("line {} {}", line + 1, error.reason),
        None => error.reason,
    })?;
    match files.iter().all(|file| file.format.is_none()) {
        true => Err("has no records in a known format".to_owned()),
        false => Ok(files),
    }
}

/// Reads a session from the storage of opencode: a folder of messages; the parts of each message
/// are in a folder with its id.
fn read_open_code(folder: &Path) -> Result<Vec<SessionFile>, String> {
    let named = |error: io::Error| format!("cannot be read: {error}");
    let parts = folder.parent().and_then(Path::parent).map(|root| root.join("part"));
    let parts = parts.unwrap_or_default();
    let mut records = Vec::new();
    for path in list_json(folder).map_err(named)? {
        let info = fs::read_to_string(&path).map_err(named)?;
        let mut texts = Vec::new();
        for part in list_json(&parts.join(file_stem(&path))).unwrap_or_default() {
            texts.push(fs::read_to_string(part).map_err(named)?);
        }
        texts.retain(|text| Object::read(text).is_ok());
        if Object::read(&info).is_ok() {
            let record = Text::default().raw("info", &info).raw("parts", &line::array(&texts));
            records.push(record.end());
        }
    }
    let records = records.into_iter().enumerate().collect();
    read_records(records, Growth::Growing).map_err(|error| error.reason)
}

/// Lists the JSON files of a folder by name.
fn list_json(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

pub(super) fn file_stem(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn folder_name(path: &Path) -> String {
    let name = path.parent().and_then(Path::file_name);
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns why a conversation is not stored: it has no messages. Warnings say what it has.
fn describe_empty(file: &SessionFile) -> String {
    match file.warnings.as_slice() {
        [] => "has no messages".to_owned(),
        warnings => format!("has no messages; {}", warnings.join("; ")),
    }
}
