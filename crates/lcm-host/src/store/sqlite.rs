//! The default store on disk: one SQLite file, which the Rust, Node and Python hosts can share.
//!
//! In: a path. Out: a [`KeyValueStore`] over the table `kv(k, v)` of the file. A file that is
//! read-only, or no store of this format, is refused before this module writes to it.

use std::{
    fs::{self, File, OpenOptions},
    io::Read as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior,
    params, types::ValueRef,
};

use super::{Guard, KeyValueStore, Page, Put, Scan, StoreError};

/// The format of the stores that this crate reads and writes; `user_version` of an SQLite file.
pub const STORE_FORMAT: u32 = 1;

/// `application_id` of a store's file: `lcm1` in ASCII.
const APPLICATION_ID: u32 = 0x6C63_6D31;
/// Longest wait for a lock, unless the caller sets another.
const BUSY_TIMEOUT: Duration = Duration::from_millis(5_000);
/// Longest wait of one attempt to begin a transaction; SQLite tries 1, 3 and 5 ms after its start.
/// Also the pause between two attempts to turn the write-ahead log on.
const LOOK: Duration = Duration::from_millis(5);
/// Pages in the write-ahead log, about 16 MB, from which SQLite copies them into the file. Commits
/// write the same pages again and again; with SQLite's default of 1,000 pages a commit of 100
/// messages took 15 % longer.
const LOG_PAGES: u32 = 4_000;
/// Size of SQLite's page cache: 32,000 KiB. A positive number would count pages.
const CACHE_SIZE: i32 = -32_000;
/// First bytes of every SQLite file that is not empty.
const MAGIC: &[u8] = b"SQLite format 3\0";
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS kv (k TEXT PRIMARY KEY, v BLOB NOT NULL)";
const SELECT: &str = "SELECT v FROM kv WHERE k = ?1";

/// The values of several keys, in the order of the keys; `None`: the key is absent.
type Values = Vec<Option<Vec<u8>>>;

/// A store in one SQLite file.
#[derive(Debug)]
pub struct Sqlite {
    /// Connection to the file; `None`: the file did not exist, or was empty, at the last call.
    connection: Option<Connection>,
    path: PathBuf,
    busy_timeout: Duration,
}

/// What is at a path, judged by the first 100 bytes of the file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PathContent {
    /// No file, or an empty file.
    Nothing,
    /// An SQLite file with [`APPLICATION_ID`].
    Store,
    /// An SQLite file without [`APPLICATION_ID`], which may still be in the write-ahead log only.
    Unmarked,
}

impl Sqlite {
    /// Opens the store at `path`. If the file does not exist or is empty, the store is empty, and
    /// the first commit creates the file. A call waits at most 5 seconds for locks.
    ///
    /// # Errors
    ///
    /// - [`StoreError::Unsupported`]: the file is read-only, foreign, or of another format.
    /// - [`StoreError::Busy`]: another process holds the lock of the file.
    /// - [`StoreError::Unavailable`]: the file cannot be read, or cannot be created.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_waiting(path, BUSY_TIMEOUT)
    }

    /// Opens the store at `path` as [`Sqlite::open`] does; this and every later call waits at most
    /// `busy_timeout` for locks.
    ///
    /// # Errors
    ///
    /// - [`StoreError::Unsupported`]: the file is read-only, foreign, or of another format.
    /// - [`StoreError::Busy`]: another process holds the lock of the file.
    /// - [`StoreError::Unavailable`]: the file cannot be read, or cannot be created.
    pub fn open_waiting(path: &Path, busy_timeout: Duration) -> Result<Self, StoreError> {
        let mut store = Self { connection: None, path: path.to_owned(), busy_timeout };
        if store.find()?.is_none() {
            ensure_creatable(path)?;
        }
        Ok(store)
    }

    /// Returns the connection, and opens the file if necessary; `None`: no file, or an empty file.
    fn find(&mut self) -> Result<Option<&mut Connection>, StoreError> {
        if self.connection.is_none() {
            let found = inspect(&self.path)?;
            if found != PathContent::Nothing {
                self.connection = Some(self.connect(found)?);
            }
        }
        Ok(self.connection.as_mut())
    }

    /// Returns the connection, and creates the store if the file does not exist or is empty.
    fn make(&mut self) -> Result<&mut Connection, StoreError> {
        if self.connection.is_none() {
            let found = inspect(&self.path)?;
            self.connection = Some(self.connect(found)?);
        }
        self.connection.as_mut().ok_or_else(|| foreign(&self.path))
    }

    /// Opens the file as a database, creates the store for [`PathContent::Nothing`], and checks the
    /// format.
    fn connect(&self, found: PathContent) -> Result<Connection, StoreError> {
        if found == PathContent::Unmarked && !has_log(&self.path) {
            return Err(foreign(&self.path));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let begun = |error: rusqlite::Error| failure(&self.path, &error);
        let mut connection = Connection::open_with_flags(&self.path, flags).map_err(begun)?;
        connection.busy_timeout(self.busy_timeout).map_err(begun)?;
        if found == PathContent::Nothing {
            mark(&mut connection).map_err(begun)?;
        }
        let pragma = |name: &str| {
            connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).map_err(begun)
        };
        if pragma("application_id")? != APPLICATION_ID {
            return Err(foreign(&self.path));
        }
        let format = pragma("user_version")?;
        if format != STORE_FORMAT {
            return Err(StoreError::Unsupported(format!(
                "`{}` has store format {format}, this version reads and writes {STORE_FORMAT}",
                self.path.display()
            )));
        }
        set_pragmas(&connection, self.busy_timeout).map_err(begun)?;
        Ok(connection)
    }
}

impl KeyValueStore for Sqlite {
    fn get_many(&mut self, keys: &[String]) -> Result<Values, StoreError> {
        let path = self.path.clone();
        let Some(connection) = self.find()? else { return Ok(vec![None; keys.len()]) };
        read(connection, keys).map_err(|error| failure(&path, &error))
    }

    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError> {
        let order = if scan.reverse { "DESC" } else { "ASC" };
        let sql = format!("SELECT k, v FROM kv WHERE k >= ?1 AND k < ?2 ORDER BY k {order}");
        let path = self.path.clone();
        let Some(connection) = self.find()? else { return Ok(Page::default()) };
        let read = || -> rusqlite::Result<Page> {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map([scan.start, scan.end], |row| {
                Ok((row.get::<_, String>(0)?, blob(row.get_ref(1)?)?.to_vec()))
            })?;
            Page::fill(scan, rows)
        };
        read().map_err(|error| failure(&path, &error))
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let patience = self.busy_timeout;
        // An error before `BEGIN IMMEDIATE` has returned means that nothing was written.
        let transaction = begin(self.make()?, patience).map_err(|error| failure(&path, &error))?;
        let unknown = |error: rusqlite::Error| match failure(&path, &error) {
            StoreError::Busy(message) => StoreError::Unavailable(message),
            other => other,
        };
        for guard in guards {
            if !holds(&transaction, guard).map_err(unknown)? {
                return Err(StoreError::Conflict);
            }
        }
        write(&transaction, puts).map_err(unknown)?;
        transaction.commit().map_err(unknown)
    }

    fn bytes_on_disk(&self) -> Option<u64> {
        let log = fs::metadata(log_path(&self.path)).map_or(0, |found| found.len());
        fs::metadata(&self.path).ok().map(|found| found.len().saturating_add(log))
    }
}

fn read(connection: &mut Connection, keys: &[String]) -> rusqlite::Result<Values> {
    // One transaction: all keys see the same state.
    let transaction = connection.transaction()?;
    let mut statement = transaction.prepare_cached(SELECT)?;
    let mut value =
        |key| statement.query_row([key], |row| Ok(blob(row.get_ref(0)?)?.to_vec())).optional();
    let values = keys.iter().map(&mut value).collect::<rusqlite::Result<Values>>()?;
    drop(statement);
    transaction.finish()?;
    Ok(values)
}

/// Begins a write transaction, and waits at most `patience` for other writers.
///
/// While SQLite waits for a lock, it sleeps up to 100 ms between two attempts. A process that
/// writes without a pause would take the lock again each time. So this function repeats short
/// waits.
fn begin(connection: &mut Connection, patience: Duration) -> rusqlite::Result<Transaction<'_>> {
    let began = Instant::now();
    connection.busy_timeout(LOOK.min(patience))?;
    let transaction = loop {
        // `new_unchecked` does not check for an open transaction; there is none, because every
        // function of this module ends the transaction that it begins.
        match Transaction::new_unchecked(connection, TransactionBehavior::Immediate) {
            Err(error) if is_busy(&error) && began.elapsed() < patience => {}
            other => break other,
        }
    };
    connection.busy_timeout(patience)?;
    transaction
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Returns whether a guard holds.
fn holds(transaction: &Transaction<'_>, guard: &Guard) -> rusqlite::Result<bool> {
    let mut statement = transaction.prepare_cached(SELECT)?;
    let equal = statement
        .query_row([&guard.key], |row| Ok(Some(blob(row.get_ref(0)?)?) == guard.value.as_deref()))
        .optional()?;
    Ok(equal.unwrap_or(guard.value.is_none()))
}

fn write(transaction: &Transaction<'_>, puts: &[Put]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO kv (k, v) VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
    )?;
    let mut delete = transaction.prepare_cached("DELETE FROM kv WHERE k = ?1")?;
    for put in puts {
        match &put.value {
            Some(value) => insert.execute(params![put.key, value])?,
            None => delete.execute([&put.key])?,
        };
    }
    Ok(())
}

/// Writes [`APPLICATION_ID`], the format and the table into an empty file.
///
/// This happens before the write-ahead log exists, so [`APPLICATION_ID`] is in the file itself,
/// where [`inspect`] finds it.
fn mark(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let empty: bool =
        transaction.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    // If the file is not empty, another process has created the store meanwhile.
    if empty {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", STORE_FORMAT)?;
        transaction.execute(SCHEMA, [])?;
    }
    transaction.commit()
}

/// Sets the pragmas of the connection, and waits at most `patience` where another connection keeps
/// the write-ahead log from being turned on. A commit that returned then survives a power failure.
fn set_pragmas(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let began = Instant::now();
    // SQLite itself does not wait here for a connection that writes to a new file.
    let write_ahead =
        || connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
    while let Err(error) = write_ahead() {
        if !is_busy(&error) || began.elapsed() >= patience {
            return Err(error);
        }
        thread::sleep(LOOK);
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "cache_size", CACHE_SIZE)
}

/// Reads the first bytes of the file. Opening the file as a database could change the file.
fn inspect(path: &Path) -> Result<PathContent, StoreError> {
    let unreadable = |error: std::io::Error| {
        StoreError::Unavailable(format!("cannot read `{}`: {error}", path.display()))
    };
    let attributes = match fs::metadata(path) {
        Ok(attributes) => attributes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(PathContent::Nothing);
        }
        Err(error) => return Err(unreadable(error)),
    };
    if attributes.is_dir() {
        let message = format!("cannot read `{}`: it is a directory", path.display());
        return Err(StoreError::Unavailable(message));
    }
    let mut first = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(100).read_to_end(&mut first).map_err(unreadable)?;
    if attributes.permissions().readonly() {
        return Err(StoreError::Unsupported(format!("`{}` is read-only", path.display())));
    }
    if first.is_empty() {
        return Ok(PathContent::Nothing);
    }
    if !first.starts_with(MAGIC) || first.len() < 100 {
        return Err(foreign(path));
    }
    let marked = first.get(68..72) == Some(&APPLICATION_ID.to_be_bytes());
    Ok(if marked { PathContent::Store } else { PathContent::Unmarked })
}

/// Checks that a file can be created at `path`, or that the empty file there can be written.
fn ensure_creatable(path: &Path) -> Result<(), StoreError> {
    let unavailable = |error: std::io::Error| {
        StoreError::Unavailable(format!("cannot create `{}`: {error}", path.display()))
    };
    if path.exists() {
        return OpenOptions::new().write(true).open(path).map(drop).map_err(unavailable);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let probe = folder.unwrap_or(Path::new(".")).join(format!(".lcm-{}", std::process::id()));
    // Only an attempt shows what the file system allows.
    File::create_new(&probe).map_err(unavailable)?;
    fs::remove_file(&probe).map_err(unavailable)
}

fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Returns whether the file has a write-ahead log that is not empty.
fn has_log(path: &Path) -> bool {
    fs::metadata(log_path(path)).is_ok_and(|found| found.len() > 0)
}

fn blob(value: ValueRef<'_>) -> rusqlite::Result<&[u8]> {
    Ok(value.as_bytes()?)
}

fn foreign(path: &Path) -> StoreError {
    StoreError::Unsupported(format!("`{}` must be an lcm store", path.display()))
}

fn failure(path: &Path, error: &rusqlite::Error) -> StoreError {
    let file = path.display();
    match error.sqlite_error_code() {
        _ if is_busy(error) => StoreError::Busy(format!("`{file}` is locked by another process")),
        Some(ErrorCode::NotADatabase) => foreign(path),
        Some(ErrorCode::ReadOnly) => StoreError::Unsupported(format!("`{file}` is read-only")),
        _ => StoreError::Unavailable(format!("`{file}`: {error}")),
    }
}
