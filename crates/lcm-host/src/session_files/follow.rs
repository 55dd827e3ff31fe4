//! Follows a file that grows: says when to read the file again, and whether its messages changed.
//!
//! In: the path of a file, and its messages after each ingest. Out: the open file to read next.
//! `lcm ingest --tail` uses this module; the caller reads the lines and ingests the messages.
//!
//! **The open file, not its path** is followed. After a rotation or a replacement, the next poll
//! opens the new file. The new file is read after the last read of the old file, so that messages
//! stay in order. A program can write to a renamed file for a while, so an old file is closed only
//! after [`QUIET_LOOKS`] polls without a change. A renamed or deleted file is followed until
//! another file is at the path.
//!
//! **Data loss** is possible in three cases. The rotated copy contains the lost messages.
//!
//! - A program writes to an old file after this module closed the file.
//! - A file was at the path only between two polls.
//! - A file is cut in place (`copytruncate`) after a write that no poll saw.
//!
//! If the process ends before the last read of an old file, ingest the old file under its new name.

use std::{
    collections::VecDeque,
    fs::{self, File, Metadata},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};

use sha2::{Digest as _, Sha256};

use crate::error::{Code, Error, Result};

/// Polls without a change before a replaced file is closed: about a second at the interval of `lcm
/// ingest --tail`. A program that rotates its log opens the new file sooner.
const QUIET_LOOKS: u32 = 3;

/// Most files to keep open, to bound the file handles of the process. Beyond the bound, the oldest
/// file is read a last time and closed at once.
const HELD_MAX: usize = 16;

/// Size and modification time of a file, by which a change of its content is noticed.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { bytes: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// An open file that is or was at the path.
#[derive(Debug)]
struct Held {
    file: File,
    /// Size and time before the last read; `None`: not read yet.
    stamp: Option<Stamp>,
    /// Consecutive polls that found the file replaced and unchanged.
    quiet: u32,
}

/// A file to read as a whole.
#[derive(Debug)]
pub struct Reading {
    /// The file, at its beginning.
    pub file: File,
    /// Whether a program may still write to the file. A last line without a line end may then be
    /// incomplete. False: this is the last read of the file.
    pub is_growing: bool,
    /// Whether another file is at the path now.
    pub is_replaced: bool,
}

/// A path whose file is followed, with the files that were replaced there.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    /// Open files, oldest first; the last was at the path when a poll last found a file there.
    held: VecDeque<Held>,
    /// Hash of the messages of the last ingest; `None`: there was no ingest.
    ingested: Option<[u8; 32]>,
}

impl Follower {
    /// Follows the file at a path.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), held: VecDeque::new(), ingested: None }
    }

    /// Polls, and returns the next file to read: a file that changed since its last read, or a
    /// replaced file for its last read. `None`: no change, no file yet, or a replaced file is not
    /// closed yet, which delays the files after it. A write during the read counts as a change at
    /// the next poll.
    ///
    /// # Errors
    ///
    /// `invalid-input`: the file at the path cannot be opened, or an open file cannot be read. A
    /// change of a replaced file is returned before the error of the file at the path.
    pub fn look(&mut self) -> Result<Option<Reading>> {
        let opened = self.open();
        let reading = self.next().map_err(|error| self.failed(&error))?;
        if reading.is_none() {
            opened.map_err(|error| self.failed(&error))?;
        }
        Ok(reading)
    }

    /// Opens the file at the path if it is not the last file opened.
    fn open(&mut self) -> io::Result<()> {
        let named = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            named => named?,
        };
        if let Some(last) = self.held.back()
            && is_same(&last.file, &named)?
        {
            return Ok(());
        }
        match File::open(&self.path) {
            Ok(file) => self.held.push_back(Held { file, stamp: None, quiet: 0 }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns the oldest open file with a change, and closes replaced files that are quiet.
    fn next(&mut self) -> io::Result<Option<Reading>> {
        loop {
            let is_replaced = self.held.len() > 1;
            let is_too_many = self.held.len() > HELD_MAX;
            let Some(oldest) = self.held.front_mut() else { return Ok(None) };
            let stamp = Some(Stamp::of(&oldest.file.metadata()?));
            if oldest.stamp != stamp && !is_too_many {
                oldest.quiet = 0;
                let file = from_beginning(&oldest.file, oldest.stamp.is_some())?;
                oldest.stamp = stamp;
                return Ok(Some(Reading { file, is_growing: true, is_replaced }));
            }
            if !is_replaced {
                return Ok(None);
            }
            oldest.quiet += 1;
            if oldest.quiet < QUIET_LOOKS && !is_too_many {
                return Ok(None);
            }
            let Some(left) = self.held.pop_front() else { return Ok(None) };
            let is_read = left.stamp == stamp && ends_with_a_line(&left.file)?;
            if !is_read {
                let file = from_beginning(&left.file, true)?;
                return Ok(Some(Reading { file, is_growing: false, is_replaced }));
            }
        }
    }

    fn failed(&self, error: &io::Error) -> Error {
        let message = format!("cannot follow `{}`: {error}", self.path.display());
        Error::new(Code::InvalidInput, message)
    }

    /// Returns whether the last ingest was of exactly these messages.
    #[must_use]
    pub fn is_ingested(&self, messages: &[String]) -> bool {
        self.ingested == Some(hash(messages))
    }

    /// Remembers a successful ingest of all these messages.
    pub fn remember_ingested(&mut self, messages: &[String]) {
        self.ingested = Some(hash(messages));
    }
}

/// Returns a SHA-256 over the lengths and texts of the messages.
fn hash(messages: &[String]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for message in messages {
        hash.update(u64::try_from(message.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(message.as_bytes());
    }
    hash.finalize().into()
}

/// Returns a second handle on an open file, at the beginning. `is_read`: the file was read before,
/// so the position is set back; other files need not be able to seek.
fn from_beginning(file: &File, is_read: bool) -> io::Result<File> {
    let mut file = file.try_clone()?;
    if is_read {
        file.rewind()?;
    }
    Ok(file)
}

/// Returns whether a file is empty or ends with a line end.
fn ends_with_a_line(file: &File) -> io::Result<bool> {
    let mut file = file.try_clone()?;
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Returns whether `named`, the metadata of the path, is of the open file `held`. Device and inode
/// are unique while a file is open.
#[cfg(unix)]
fn is_same(held: &File, named: &Metadata) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let held = held.metadata()?;
    Ok((held.dev(), held.ino()) == (named.dev(), named.ino()))
}

#[cfg(not(unix))]
fn is_same(held: &File, named: &Metadata) -> io::Result<bool> {
    looks_same(held, named)
}

/// Returns whether `named`, the metadata of the path, is of the open file `held`, for systems
/// without inodes: by length and times. A wrong false only causes another read.
#[cfg(any(not(unix), test))]
fn looks_same(held: &File, named: &Metadata) -> io::Result<bool> {
    let of = |metadata: &Metadata| (Stamp::of(metadata), metadata.created().ok());
    let held_now = of(&held.metadata()?);
    // If the file changed between the two reads of its metadata, the next poll decides.
    Ok(held_now == of(named) || held_now != of(&held.metadata()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn only_equal_messages_are_ingested_messages() {
        let mut follower = Follower::new(Path::new("none"));
        assert!(!follower.is_ingested(&[]));
        follower.remember_ingested(&texts(&["a", "b"]));
        assert!(follower.is_ingested(&texts(&["a", "b"])));
        for other in [&["a", "b", "c"][..], &["a"], &["ab", ""], &["a", "x"]] {
            assert!(!follower.is_ingested(&texts(other)));
        }
    }

    /// A folder of its own with the path of a file that is followed.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir();
            let folder = folder.join(format!("lcm-follow-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.path(name), text).unwrap();
        }

        fn append(&self, name: &str, text: &str) {
            let mut file = fs::OpenOptions::new().append(true).open(self.path(name)).unwrap();
            io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        }

        fn rename(&self, from: &str, to: &str) {
            fs::rename(self.path(from), self.path(to)).unwrap();
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// What a look gives to read; a file that was let go has a `!`.
    fn look(follower: &mut Follower) -> Option<String> {
        let mut reading = follower.look().unwrap()?;
        let mut text = String::new();
        reading.file.read_to_string(&mut text).unwrap();
        assert!(reading.is_growing || reading.is_replaced);
        Some(if reading.is_growing { text } else { format!("{text}!") })
    }

    /// What the looks up to one after all have become quiet give.
    fn looks(follower: &mut Follower) -> Vec<String> {
        let mut read = Vec::new();
        let mut quiet = 0;
        while quiet <= QUIET_LOOKS {
            match look(follower) {
                Some(text) => {
                    read.push(text);
                    quiet = 0;
                }
                None => quiet += 1,
            }
        }
        read
    }

    #[test]
    fn growing_and_replacing_a_file_changes_it_and_its_absence_does_not() {
        let place = Place::new("grows");
        let mut follower = Follower::new(&place.path("f"));
        assert_eq!(look(&mut follower), None);
        place.write("f", "a\n");
        assert_eq!(look(&mut follower).as_deref(), Some("a\n"));
        assert_eq!(look(&mut follower), None);
        place.append("f", "b\n");
        assert_eq!(look(&mut follower).as_deref(), Some("a\nb\n"));
        fs::remove_file(place.path("f")).unwrap();
        assert!(looks(&mut follower).is_empty());
        place.write("f", "");
        assert_eq!(looks(&mut follower), [""]);
        // Cut in place: the same file, from its beginning.
        place.append("f", "c\nd\n");
        assert_eq!(looks(&mut follower), ["c\nd\n"]);
        place.write("f", "e\n");
        assert_eq!(looks(&mut follower), ["e\n"]);
    }

    #[test]
    fn a_renamed_file_is_read_to_its_end_before_the_new_one() {
        let place = Place::new("renamed");
        let mut follower = Follower::new(&place.path("f"));
        place.write("f", "a\n");
        assert_eq!(looks(&mut follower), ["a\n"]);
        place.append("f", "b\n");
        place.rename("f", "f.1");
        place.write("f", "c\n");
        assert_eq!(look(&mut follower).as_deref(), Some("a\nb\n"));
        // Its writer has it open for a while.
        assert_eq!(look(&mut follower), None);
        place.append("f.1", "b2\n");
        assert_eq!(look(&mut follower).as_deref(), Some("a\nb\nb2\n"));
        place.append("f", "d\n");
        for _ in 1..QUIET_LOOKS {
            assert_eq!(look(&mut follower), None);
        }
        assert_eq!(look(&mut follower).as_deref(), Some("c\nd\n"));
        place.append("f.1", "too late\n");
        assert!(looks(&mut follower).is_empty());
        // The number of a file that was let go says nothing.
        fs::remove_file(place.path("f.1")).unwrap();
        fs::remove_file(place.path("f")).unwrap();
        place.write("f", "e\n");
        assert_eq!(looks(&mut follower), ["e\n"]);
    }

    #[test]
    fn a_renamed_file_is_followed_until_there_is_another() {
        let place = Place::new("gone");
        let mut follower = Follower::new(&place.path("f"));
        place.write("f", "a\n");
        place.append("f", "b");
        assert_eq!(looks(&mut follower), ["a\nb"]);
        place.rename("f", "f.1");
        assert!(looks(&mut follower).is_empty());
        place.append("f.1", "c");
        assert_eq!(looks(&mut follower), ["a\nbc"]);
        place.append("f.1", "d");
        place.write("f", "e\n");
        // With its last line, which has no end and gets none any more.
        assert_eq!(looks(&mut follower), ["a\nbcd", "a\nbcd!", "e\n"]);
    }

    #[test]
    fn rotations_between_two_looks_lose_the_files_in_between_only() {
        let place = Place::new("between");
        let mut follower = Follower::new(&place.path("f"));
        place.write("f", "a\n");
        assert_eq!(looks(&mut follower), ["a\n"]);
        place.append("f", "b\n");
        place.rename("f", "f.2");
        place.write("f", "never seen\n");
        place.rename("f", "f.1");
        place.write("f", "c\n");
        assert_eq!(look(&mut follower).as_deref(), Some("a\nb\n"));
        // Once seen, a file is not lost, however soon the next one comes.
        let mut read = Vec::new();
        for round in 0..3 {
            place.append("f", "more\n");
            place.rename("f", &format!("f.{}", round + 3));
            place.write("f", &format!("{round}\n"));
            read.extend(look(&mut follower));
        }
        read.extend(looks(&mut follower));
        assert_eq!(read, ["c\nmore\n", "0\nmore\n", "1\nmore\n", "2\n"]);
    }

    #[test]
    fn files_that_come_with_every_look_are_read_and_let_go() {
        let place = Place::new("many");
        let mut follower = Follower::new(&place.path("f"));
        let mut read = Vec::new();
        let rounds = 3 * HELD_MAX;
        for round in 0..rounds {
            place.write("f", &round.to_string());
            read.extend(look(&mut follower));
            place.rename("f", &format!("f.{round}"));
            assert!(follower.held.len() <= HELD_MAX + 1);
        }
        read.extend(looks(&mut follower));
        let mut texts: Vec<String> = read.iter().map(|text| text.replace('!', "")).collect();
        texts.dedup();
        assert_eq!(texts, (0..rounds).map(|round| round.to_string()).collect::<Vec<_>>());
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_that_cannot_be_opened_comes_after_what_the_old_one_has() {
        let place = Place::new("closed");
        let mut follower = Follower::new(&place.path("f"));
        place.write("f", "a\n");
        assert_eq!(looks(&mut follower), ["a\n"]);
        place.append("f", "b\n");
        place.rename("f", "f.1");
        std::os::unix::fs::symlink(place.path("f"), place.path("f")).unwrap();
        assert_eq!(look(&mut follower).as_deref(), Some("a\nb\n"));
        let error = follower.look().unwrap_err();
        assert_eq!(error.code, Code::InvalidInput);
        assert!(error.message.starts_with("cannot follow `"), "{error}");
    }

    #[test]
    fn where_a_file_has_no_number_its_length_and_times_tell() {
        let place = Place::new("times");
        place.write("f", "a\n");
        let held = File::open(place.path("f")).unwrap();
        let named = || fs::metadata(place.path("f")).unwrap();
        assert!(looks_same(&held, &named()).unwrap());
        place.append("f", "b\n");
        assert!(looks_same(&held, &named()).unwrap());
        place.rename("f", "f.1");
        place.write("f", "c\n");
        assert!(!looks_same(&held, &named()).unwrap());
    }
}
