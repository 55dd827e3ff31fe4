//! Follows a file that grows: when to read it again, and how much of it is stored.
//!
//! In: the path of a file, and its messages whenever it was read. Out: whether it changed, and how
//! many of its first messages are proven to be stored. Not here: reading and storing.
//!
//! **The checkpoint** is the number and the hash of the messages that an ingest confirmed, with the
//! revision that it left. It advances after the commit and only then. When a file has grown, its
//! first messages have that hash and the conversation is still at that revision, the rest is new
//! and is appended under that revision; in every other case (the file was cut, replaced or
//! rewritten, a branch was abandoned, somebody else wrote) the whole file goes to the component
//! again, which finds what is new. So the checkpoint saves work and decides nothing. That is why it
//! lives no longer than the process that follows: a file beside the store could be older than the
//! store, or of another one, and starting again costs one comparison of hashes.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use sha2::{Digest as _, Sha256};

use crate::{
    error::{Code, Error, Result},
    ingest::Proven,
};

/// What is proven to be stored of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Checkpoint {
    proven: Proven,
    /// Over the messages.
    sha256: [u8; 32],
}

/// What tells that a file changed, without reading it.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device and number; a file that took the place of another has others.
    identity: Option<(u64, u64)>,
}

/// A file that is followed.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    stamp: Option<Stamp>,
    checkpoint: Option<Checkpoint>,
}

impl Follower {
    /// Follows the file at a path, of which nothing is known yet.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), stamp: None, checkpoint: None }
    }

    /// Whether the file is another than when this was last asked. A file that is not there (it is
    /// being replaced) has not changed. To be asked before reading, so that what is written
    /// meanwhile is a change again.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the file is there and cannot be looked at.
    pub fn has_changed(&mut self) -> Result<bool> {
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => {
                let message = format!("cannot follow `{}`: {error}", self.path.display());
                return Err(Error::new(Code::InvalidInput, message));
            }
        };
        let stamp = Some(Stamp {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            identity: identity(&metadata),
        });
        let changed = self.stamp != stamp;
        self.stamp = stamp;
        Ok(changed)
    }

    /// How many of these messages are stored, as the checkpoint has it; `None`: it is not of them.
    #[must_use]
    pub fn proven(&self, messages: &[String]) -> Option<Proven> {
        let checkpoint = self.checkpoint?;
        let first = messages.get(..checkpoint.proven.messages)?;
        (hash(first) == checkpoint.sha256).then_some(checkpoint.proven)
    }

    /// Advances the checkpoint: an ingest of these messages ended well and left the conversation at
    /// this revision.
    pub fn confirm(&mut self, messages: &[String], revision: u64) {
        let proven = Proven { messages: messages.len(), revision };
        self.checkpoint = Some(Checkpoint { proven, sha256: hash(messages) });
    }
}

/// A hash over the messages and where each ends.
fn hash(messages: &[String]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for message in messages {
        hash.update(u64::try_from(message.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(message.as_bytes());
    }
    hash.finalize().into()
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems do not tell")]
fn identity(metadata: &fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_checkpoint_is_of_the_first_messages_and_no_others() {
        let mut follower = Follower::new(Path::new("none"));
        assert_eq!(follower.proven(&texts(&["a", "b"])), None);
        follower.confirm(&texts(&["a", "b"]), 3);
        let proven = Some(Proven { messages: 2, revision: 3 });
        assert_eq!(follower.proven(&texts(&["a", "b", "c"])), proven);
        assert_eq!(follower.proven(&texts(&["a", "x", "c"])), None);
        assert_eq!(follower.proven(&texts(&["a"])), None);
        assert_eq!(follower.proven(&texts(&["ab", "", "c"])), None);
    }

    #[test]
    fn growing_and_replacing_a_file_changes_it_and_its_absence_does_not() {
        let folder = std::env::temp_dir().join(format!("lcm-follow-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("f.jsonl");
        let mut follower = Follower::new(&path);
        assert!(!follower.has_changed().unwrap());
        fs::write(&path, "a\n").unwrap();
        assert!(follower.has_changed().unwrap());
        assert!(!follower.has_changed().unwrap());
        fs::write(&path, "a\nb\n").unwrap();
        assert!(follower.has_changed().unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!follower.has_changed().unwrap());
        fs::write(&path, "").unwrap();
        assert!(follower.has_changed().unwrap());
        fs::remove_dir_all(&folder).unwrap();
    }
}
