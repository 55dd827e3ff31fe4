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
//! The family is the project in which the session worked. Without it, the family is the path of the
//! next folder above the file whose name names a project: `chats` and `storage` have the files of
//! one or of all projects. So unrelated sessions have no family in common, and `grep` of one never
//! returns words of the other.
//!
//! The storage of opencode was read from files of opencode, 2026-11-28. The folder of its
//! sessions is in files below `session`.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    Format, Growth, SessionFile,
    folder_names::{FilePlace, FolderNames},
    line::{self, Object, Text},
    read_bytes, read_records,
};
use crate::digest::sha256_hex;

/// Name of a history of aider.
const AIDER: &str = ".aider.chat.history.md";
/// Folders whose files are no sessions.
const IGNORED: [&str; 3] = ["node_modules", ".git", "tool-results"];

/// Names of folders that programs have in every project, or for all projects together.
const GENERIC: [&str; 14] = [
    "archived_sessions",
    "chats",
    "checkpoints",
    "conversations",
    "history",
    "info",
    "logs",
    "message",
    "messages",
    "session",
    "session-state",
    "sessions",
    "storage",
    "transcripts",
];

/// Most bytes of a family that is a path; of a longer path, the family is its SHA-256.
const FAMILY_BYTES_MAX: usize = 512;

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
            let family = file.project.clone().unwrap_or_else(|| name_family(&path, file.format));
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
    let root = folder.parent().and_then(Path::parent).unwrap_or(folder);
    let parts = root.join("part");
    let mut records: Vec<String> = find_open_code_session(root, folder).into_iter().collect();
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

/// Returns the record of a session of opencode, which names its folder, from `session/PROJECT` of
/// its storage `root`; `None`: it has none. `folder`: folder of its messages.
fn find_open_code_session(root: &Path, folder: &Path) -> Option<String> {
    let name = format!("{}.json", folder.file_name()?.to_string_lossy());
    let projects = fs::read_dir(root.join("session")).ok()?;
    let texts = projects.filter_map(|project| {
        let session = fs::read_to_string(project.ok()?.path().join(&name)).ok()?;
        let has_folder = Object::read(&session).ok()?.text("directory").is_some();
        has_folder.then(|| Text::default().raw("info", &session).end())
    });
    texts.min()
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

/// Returns the family of a file whose session names no project: a path.
fn name_family(path: &Path, format: Option<Format>) -> String {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let step_name = |folder: &Path| folder.file_name().map(|it| it.to_string_lossy().into_owned());
    let is_generic = |folder: &&Path| {
        step_name(folder).is_none_or(|name| GENERIC.contains(&name.to_lowercase().as_str()))
    };
    // Sessions of Codex are in folders of days, and those of opencode in one folder.
    let is_shared = match format {
        Some(Format::Codex | Format::CodexExec) => {
            path.parent().and_then(step_name).is_some_and(|name| {
                is_generic(&Path::new(&name)) || name.chars().all(|c| c.is_ascii_digit())
            })
        }
        _ => path.is_dir(),
    };
    let folder = path.ancestors().skip(1).find(|folder| !is_generic(folder));
    let family = folder.filter(|_| !is_shared).unwrap_or(&path).to_string_lossy().into_owned();
    if family.len() > FAMILY_BYTES_MAX { sha256_hex(family.as_bytes()) } else { family }
}

/// Returns why a conversation is not stored: it has no messages. Warnings say what it has.
fn describe_empty(file: &SessionFile) -> String {
    match file.warnings.as_slice() {
        [] => "has no messages".to_owned(),
        warnings => format!("has no messages; {}", warnings.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed at the end of a test.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("lcm-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            Self(fs::canonicalize(folder).unwrap())
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }

        /// Families of all conversations, by the id of the conversation.
        fn list_families(&self) -> Vec<(String, String)> {
            let mut found = Vec::new();
            let mut visit = |entry| {
                let FolderEntry::Session(session) = entry else { panic!("{entry:?}") };
                let base = format!("{}/", self.0.display());
                found.push((session.conversation, session.family.replace(&base, "")));
                io::Result::Ok(())
            };
            visit_folders(std::slice::from_ref(&self.0), None, &mut visit).unwrap();
            found
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn owned_pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(id, family)| ((*id).to_owned(), (*family).to_owned())).collect()
    }

    #[test]
    fn projects_of_gemini_share_no_family() {
        let place = Place::new("gemini-families");
        let chat = |id: &str, hash: &str| {
            let said = r#"[{"id":"1","type":"user","content":"x"}]"#;
            format!(r#"{{"sessionId":"{id}",{hash}"messages":{said}}}"#)
        };
        place.write("tmp/aa/chats/one.json", &chat("s1", r#""projectHash":"aa","#));
        place.write("tmp/aa/chats/two.json", &chat("s2", r#""projectHash":"aa","#));
        place.write("tmp/bb/chats/one.json", &chat("s3", r#""projectHash":"bb","#));
        let line = r#"{"id":"1","type":"user","content":"x"}"#;
        place.write("tmp/cc/chats/session-4.jsonl", line);
        place.write("tmp/dd/chats/session-5.jsonl", line);
        let families: Vec<String> =
            place.list_families().into_iter().map(|(_, family)| family).collect();
        assert_eq!(families, ["aa", "aa", "bb", "tmp/cc", "tmp/dd"]);
    }

    #[test]
    fn projects_of_opencode_share_no_family() {
        let place = Place::new("opencode-families");
        for id in ["a1", "a2", "b1", "c1", "d1"] {
            let info = format!(r#"{{"id":"m{id}","role":"user","sessionID":"ses_{id}"}}"#);
            place.write(&format!("storage/message/ses_{id}/m{id}.json"), &info);
            let part = format!(r#"{{"type":"text","text":"words of {id}"}}"#);
            place.write(&format!("storage/part/m{id}/p.json"), &part);
        }
        for (id, folder) in [("a1", "/srv/a"), ("a2", "/srv/a"), ("b1", "/srv/b")] {
            let session = format!(r#"{{"id":"ses_{id}","projectID":"p","directory":"{folder}"}}"#);
            place.write(&format!("storage/session/p{id}/ses_{id}.json"), &session);
        }
        place.write("storage/session/global/ses_c1.json", r#"{"id":"ses_c1"}"#);
        let expected = owned_pairs(&[
            ("ses_a1", "/srv/a"),
            ("ses_a2", "/srv/a"),
            ("ses_b1", "/srv/b"),
            ("ses_c1", "storage/message/ses_c1"),
            ("ses_d1", "storage/message/ses_d1"),
        ]);
        assert_eq!(place.list_families(), expected);
    }

    #[test]
    fn files_without_a_project_share_the_family_of_their_folder_only() {
        let place = Place::new("folder-families");
        let chat = r#"{"messages":[{"role":"user","content":"x"}]}"#;
        for path in ["a/work/chat.json", "b/work/chat.json", "b/work/logs/chat.json"] {
            place.write(path, chat);
        }
        let rollout = |id: &str| {
            let said = r#"{"type":"message","role":"user","content":"x"}"#;
            format!(
                r#"{{"timestamp":"t","type":"session_meta","payload":{{"id":"{id}"}}}}
{{"timestamp":"t","type":"response_item","payload":{said}}}"#
            )
        };
        place.write(&format!("{}c.json", "long/".repeat(120)), chat);
        place.write("sessions/2026/01/02/one.jsonl", &rollout("s1"));
        place.write("sessions/2026/01/02/two.jsonl", &rollout("s2"));
        let mut families: Vec<String> =
            place.list_families().into_iter().map(|(_, family)| family).collect();
        let long = families.remove(3);
        assert!(long.len() == 64 && long.chars().all(|c| c.is_ascii_hexdigit()), "{long}");
        let expected = [
            "a/work",
            "b/work",
            "b/work",
            "sessions/2026/01/02/one.jsonl",
            "sessions/2026/01/02/two.jsonl",
        ];
        assert_eq!(families, expected);
    }
}
