//! Names the conversations of folders, so that every session has a conversation of its own.
//!
//! In: the sessions of all files, each with the name that it claims. Out: a name for each. A name
//! that one session claims is its own. Of several that claim one name, such as forks and copies of
//! a session, the only one whose file or folder has this name gets it; every other gets the name,
//! `/` and the path of its file. So no name depends on which files have grown or are visited.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use super::{Format, SessionFile, folder::file_stem};

/// Shortest session id that is looked for in the path of its file.
const ID_BYTES_MIN: usize = 8;
/// Beginning of the name of a file with the session of a sub-agent of Claude Code.
const SUB_AGENT: &str = "agent-";

/// A file of a folder.
#[derive(Debug)]
pub(super) struct FilePlace {
    pub(super) path: std::path::PathBuf,
    /// Name of the folder, and path of the file in it, with `/`.
    label: String,
}

/// The name that a session claims.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Claim {
    /// Session id, or the label of the file without its extension.
    name: String,
    label: String,
    /// Whether the name of the file or of its folder contains the name.
    is_in_path: bool,
    /// Number of sessions before it in its file that claim the same name.
    earlier: usize,
}

impl FilePlace {
    /// Creates the place of a file. `root`: name of the folder; `within`: path of the file in it.
    pub(super) fn new(root: &str, within: &Path, path: &Path) -> Self {
        let steps = within.iter().map(|step| step.to_string_lossy().into_owned());
        let steps: Vec<String> = std::iter::once(root.to_owned()).chain(steps).collect();
        Self { path: path.to_owned(), label: steps.join("/") }
    }

    /// Returns the claim of each session of the file.
    pub(super) fn claim_names(&self, files: &[SessionFile]) -> Vec<Claim> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let claim = |file: &SessionFile| {
            let name = self.claim_name(file);
            let count = counts.entry(name.clone()).or_default();
            let earlier = std::mem::replace(count, *count + 1);
            Claim { is_in_path: self.is_in_path(&name), label: self.label.clone(), name, earlier }
        };
        files.iter().map(claim).collect()
    }

    /// Returns the name that a session claims.
    fn claim_name(&self, file: &SessionFile) -> String {
        let stem = file_stem(&self.path);
        let session = file.session.clone();
        // A sub-agent has the session id of its caller, and an early resumed session begins with
        // lines of the earlier one.
        let is_named = file.format == Some(Format::ClaudeCode)
            && (is_uuid(&stem) || stem.starts_with(SUB_AGENT));
        match session {
            _ if is_named => stem,
            Some(session) => session,
            None => self.label_without_extension().to_owned(),
        }
    }

    fn is_in_path(&self, name: &str) -> bool {
        let folder = self.path.parent().map(file_stem).unwrap_or_default();
        let file = file_stem(&self.path);
        name == file || (name.len() >= ID_BYTES_MIN && (file.contains(name) || folder == name))
    }

    fn label_without_extension(&self) -> &str {
        let extension = self.path.extension().map(|it| it.to_string_lossy().len() + 1);
        let end = self.label.len().saturating_sub(extension.unwrap_or_default());
        self.label.get(..end).unwrap_or(&self.label)
    }
}

/// Names of all sessions of folders.
#[derive(Debug, Default)]
pub(super) struct FolderNames {
    names: HashMap<Claim, String>,
}

impl FolderNames {
    /// Assigns the names. `claims` has the sessions of all files, in the order of their paths.
    pub(super) fn assign_names(claims: Vec<Claim>) -> Self {
        let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
        for claim in &claims {
            let (all, in_path) = counts.entry(&claim.name).or_default();
            *all += 1;
            *in_path += usize::from(claim.is_in_path);
        }
        let is_alone = |claim: &Claim| match counts.get(claim.name.as_str()) {
            Some((all, in_path)) => *all == 1 || (*in_path == 1 && claim.is_in_path),
            None => false,
        };
        let alone: Vec<bool> = claims.iter().map(is_alone).collect();
        let mut names = HashMap::new();
        let of_alone = claims.iter().zip(&alone).filter(|(_, alone)| **alone);
        let mut taken: HashSet<String> = of_alone.map(|(claim, _)| claim.name.clone()).collect();
        for (claim, is_alone) in claims.into_iter().zip(alone) {
            let mut name = if is_alone { claim.name.clone() } else { claim.long_name() };
            while !is_alone && !taken.insert(name.clone()) {
                name.push('+');
            }
            names.insert(claim, name);
        }
        Self { names }
    }

    /// Returns the name of a session. A session that began after the names were assigned has its
    /// long name.
    pub(super) fn find_name(&self, claim: &Claim) -> String {
        self.names.get(claim).cloned().unwrap_or_else(|| claim.long_name())
    }
}

impl Claim {
    /// Returns the name with the path of the file, and with a number behind the first of a file.
    fn long_name(&self) -> String {
        let begin = if self.label.starts_with(&self.name) {
            self.label.clone()
        } else {
            format!("{}/{}", self.name, self.label)
        };
        match self.earlier {
            0 => begin,
            earlier => format!("{begin}#{}", earlier + 1),
        }
    }
}

/// Returns whether a text has the form of a UUID.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_file(session: &str) -> SessionFile {
        let session = (!session.is_empty()).then(|| session.to_owned());
        SessionFile { session, ..SessionFile::without_format(Vec::new()) }
    }

    /// Names of the sessions of files, each file with its path and the ids of its sessions.
    fn names_of(files: &[(&str, &[&str])]) -> Vec<String> {
        let claims = files.iter().flat_map(|(path, sessions)| {
            let sessions: Vec<SessionFile> = sessions.iter().map(|id| session_file(id)).collect();
            let path = Path::new(path);
            FilePlace::new("root", path, &Path::new("/root").join(path)).claim_names(&sessions)
        });
        let claims: Vec<Claim> = claims.collect();
        let names = FolderNames::assign_names(claims.clone());
        claims.iter().map(|claim| names.find_name(claim)).collect()
    }

    #[test]
    fn sessions_of_files_with_one_name_are_conversations_of_their_own() {
        let files: &[(&str, &[&str])] = &[
            ("a/log.json", &["one"]),
            ("b/log.json", &["two"]),
            ("c/log.json", &[""]),
            ("d/log.json", &[""]),
        ];
        assert_eq!(names_of(files), ["one", "two", "root/c/log", "root/d/log"]);
    }

    #[test]
    fn sessions_with_one_id_get_their_paths_but_the_file_that_has_the_id() {
        let files: &[(&str, &[&str])] =
            &[("a/x.json", &["session-1"]), ("b/session-1.json", &["session-1"])];
        assert_eq!(names_of(files), ["session-1/root/a/x.json", "session-1"]);
        let files: &[(&str, &[&str])] = &[("a/x.json", &["one"]), ("b/x.json", &["one"])];
        assert_eq!(names_of(files), ["one/root/a/x.json", "one/root/b/x.json"]);
    }

    #[test]
    fn every_conversation_of_a_file_has_a_name() {
        let files: &[(&str, &[&str])] =
            &[("a.json", &["", "", "x"]), ("a.jsonl", &[""]), ("b.json", &["", ""])];
        let expected =
            ["root/a.json", "root/a.json#2", "x", "root/a.jsonl", "root/b.json", "root/b.json#2"];
        assert_eq!(names_of(files), expected);
    }
}
