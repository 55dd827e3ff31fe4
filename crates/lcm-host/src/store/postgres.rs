//! A store in a PostgreSQL database or a database with the same protocol, for processes on many
//! machines.
//!
//! In: a connection URL. Out: a [`KeyValueStore`] over the table `kv(k, v)`; the table `lcm_store`
//! has the format. Both are in the first schema of the connection's search path. Commits are
//! serializable transactions, which other servers of the protocol offer, too. Connections are not
//! encrypted: use a tunnel or a trusted network to reach another machine.

use std::str::FromStr as _;

use postgres::{
    Client, Config, IsolationLevel, NoTls, Row, Transaction, error::SqlState, types::ToSql,
};

use super::{Guard, KeyValueStore, Page, Put, STORE_FORMAT, Scan, StoreError};

/// Rows to fetch at a time. A page is limited in bytes, so its number of rows is not known before.
const ROWS: i32 = 64;
const TABLES: &str = "
    CREATE TABLE kv (k text COLLATE \"C\" PRIMARY KEY, v bytea NOT NULL);
    CREATE TABLE lcm_store (format integer NOT NULL)";
const FORMAT: &str = "SELECT format FROM lcm_store";
const SELECT: &str = "SELECT k, v FROM kv WHERE k = ANY($1)";
const INSERT: &str = "
    INSERT INTO kv (k, v) SELECT * FROM unnest($1::text[], $2::bytea[])
    ON CONFLICT (k) DO UPDATE SET v = excluded.v";
const DELETE: &str = "DELETE FROM kv WHERE k = ANY($1)";

/// A store in a PostgreSQL database. After a lost connection the next call connects again.
pub struct Postgres {
    config: Config,
    client: Option<Client>,
    /// Whether the tables are known to exist; without tables the store is empty.
    has_tables: bool,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Postgres").field("database", &self.name()).finish_non_exhaustive()
    }
}

/// The step at which a commit failed.
enum Broken {
    /// A statement before the commit failed; nothing was written.
    Before(postgres::Error),
    /// A guard did not hold; nothing was written.
    Guard,
    /// The tables are not those of a store of this format; nothing was written.
    Foreign(StoreError),
    /// The commit itself failed. The outcome is unknown, unless the server says that it undid it.
    Commit(postgres::Error),
}

impl From<postgres::Error> for Broken {
    fn from(error: postgres::Error) -> Self {
        Self::Before(error)
    }
}

impl Postgres {
    /// Connects to `postgres://USER:PASSWORD@HOST/DATABASE`. If the tables do not exist, the store
    /// is empty, and the first commit creates the tables.
    ///
    /// # Errors
    ///
    /// - [`StoreError::Unsupported`]: the URL is invalid, or the tables are of another program or
    ///   format.
    /// - [`StoreError::Busy`]: the connection failed.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        // The parser's message is dropped, because it may contain a part of the password.
        let config = Config::from_str(url).map_err(|_| {
            let form = "the store must be a URL such as postgres://USER:PASSWORD@HOST/DATABASE";
            StoreError::Unsupported(form.to_owned())
        })?;
        let mut store = Self { config, client: None, has_tables: false };
        store.client()?;
        Ok(store)
    }

    /// Returns the name of the store in messages: the database, without user and password.
    fn name(&self) -> String {
        format!("postgres database `{}`", self.config.get_dbname().unwrap_or("(default)"))
    }

    /// Returns the connection, after connecting and looking for the tables where necessary.
    fn client(&mut self) -> Result<&mut Client, StoreError> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            let connected = self.config.connect(NoTls);
            let client = connected.map_err(|error| StoreError::Busy(self.line(&error)))?;
            self.client = Some(client);
        }
        let name = self.name();
        let busy = || StoreError::Busy(format!("{name}: no connection"));
        let client = self.client.as_mut().ok_or_else(busy)?;
        if !self.has_tables {
            let found = tables(client).map_err(|error| StoreError::Busy(line(&name, &error)))?;
            self.has_tables = is_store(&name, found)?;
        }
        Ok(client)
    }

    fn line(&self, error: &postgres::Error) -> String {
        line(&self.name(), error)
    }

    /// Converts the error of a read, and drops the connection.
    fn unreadable(&mut self, error: &postgres::Error) -> StoreError {
        self.client = None;
        StoreError::Unavailable(self.line(error))
    }

    /// Converts the error of a commit; drops the connection unless the server undid the commit.
    fn failed(&mut self, broken: Broken) -> StoreError {
        match broken {
            Broken::Guard => StoreError::Conflict,
            Broken::Foreign(error) => error,
            // The server reported that it undid the transaction.
            Broken::Before(error) | Broken::Commit(error) if was_later(&error) => {
                StoreError::Conflict
            }
            Broken::Before(error) => {
                self.client = None;
                StoreError::Busy(self.line(&error))
            }
            Broken::Commit(error) => {
                self.client = None;
                StoreError::Unavailable(self.line(&error))
            }
        }
    }
}

impl KeyValueStore for Postgres {
    fn get_many(&mut self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let client = self.client()?;
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        let read = match client.query(SELECT, &[&names]) {
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
            read => read.and_then(|rows| rows.iter().map(entry).collect()),
        };
        let found: std::collections::HashMap<String, Vec<u8>> = match read {
            Ok(entries) => entries.into_iter().collect(),
            Err(error) => return Err(self.unreadable(&error)),
        };
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    fn scan(&mut self, scan: &Scan<'_>) -> Result<Page, StoreError> {
        let client = self.client()?;
        match page(client, scan) {
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Page::default()),
            page => page.map_err(|error| self.unreadable(&error)),
        }
    }

    fn commit(&mut self, guards: &[Guard], puts: &[Put]) -> Result<(), StoreError> {
        let (name, has_tables) = (self.name(), self.has_tables);
        let client = self.client()?;
        match write(client, &name, has_tables, guards, puts) {
            Ok(()) => {
                self.has_tables = true;
                Ok(())
            }
            Err(broken) => Err(self.failed(broken)),
        }
    }
}

fn write(
    client: &mut Client,
    name: &str,
    has_tables: bool,
    guards: &[Guard],
    puts: &[Put],
) -> Result<(), Broken> {
    let begin = client.build_transaction().isolation_level(IsolationLevel::Serializable);
    let mut transaction = begin.start()?;
    if !has_tables {
        make(&mut transaction, name)?;
    }
    let names: Vec<&str> = guards.iter().map(|guard| guard.key.as_str()).collect();
    let rows = transaction.query(SELECT, &[&names])?;
    let found: Vec<(String, Vec<u8>)> = rows.iter().map(entry).collect::<Result<_, _>>()?;
    for guard in guards {
        let value = found.iter().find(|(key, _)| *key == guard.key).map(|(_, value)| value);
        if value != guard.value.as_ref() {
            return Err(Broken::Guard);
        }
    }
    // Of several puts of one key the last counts; `INSERT` must not have a key twice.
    let last: std::collections::BTreeMap<&str, Option<&[u8]>> =
        puts.iter().map(|put| (put.key.as_str(), put.value.as_deref())).collect();
    let deleted: Vec<&str> =
        last.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| *key).collect();
    let (keys, values): (Vec<&str>, Vec<&[u8]>) =
        last.iter().filter_map(|(key, value)| Some((*key, (*value)?))).unzip();
    if !keys.is_empty() {
        transaction.execute(INSERT, &[&keys, &values])?;
    }
    if !deleted.is_empty() {
        transaction.execute(DELETE, &[&deleted])?;
    }
    transaction.commit().map_err(Broken::Commit)
}

/// Creates the tables and writes the format, unless another process created them meanwhile.
fn make(transaction: &mut Transaction<'_>, name: &str) -> Result<(), Broken> {
    let found = tables(transaction)?;
    if is_store(name, found).map_err(Broken::Foreign)? {
        return Ok(());
    }
    transaction.batch_execute(TABLES)?;
    let format = i32::try_from(STORE_FORMAT).unwrap_or(i32::MAX);
    transaction.execute("INSERT INTO lcm_store (format) VALUES ($1)", &[&format])?;
    Ok(())
}

/// Returns whether the table `kv` exists, and the format in the table `lcm_store`: `None` if that
/// table is absent, 0 if it is empty.
fn tables(
    client: &mut impl postgres::GenericClient,
) -> Result<(bool, Option<i32>), postgres::Error> {
    let name = "SELECT to_regclass($1::text) IS NOT NULL";
    let has_values = client.query_one(name, &[&"kv"])?.try_get(0)?;
    if !client.query_one(name, &[&"lcm_store"])?.try_get(0)? {
        return Ok((has_values, None));
    }
    let format = client.query_opt(FORMAT, &[])?;
    Ok((has_values, Some(format.map_or(Ok(0), |row| row.try_get(0))?)))
}

/// Returns whether the result of [`tables`] is a store of this format; false: neither table exists.
///
/// # Errors
///
/// [`StoreError::Unsupported`]: another format, or only one of the tables.
fn is_store(name: &str, found: (bool, Option<i32>)) -> Result<bool, StoreError> {
    match found {
        (false, None) => Ok(false),
        (true, Some(format)) if u32::try_from(format) == Ok(STORE_FORMAT) => Ok(true),
        (true, Some(format)) => Err(StoreError::Unsupported(format!(
            "{name} has store format {format}, this version reads and writes {STORE_FORMAT}"
        ))),
        _ => Err(StoreError::Unsupported(format!("{name} must be an lcm store"))),
    }
}

fn page(client: &mut Client, scan: &Scan<'_>) -> Result<Page, postgres::Error> {
    let order = if scan.reverse { "DESC" } else { "ASC" };
    let sql = format!("SELECT k, v FROM kv WHERE k >= $1 AND k < $2 ORDER BY k {order}");
    let mut transaction = client.transaction()?;
    let statement = transaction.prepare(&sql)?;
    let range: [&(dyn ToSql + Sync); 2] = [&scan.start, &scan.end];
    let portal = transaction.bind(&statement, &range)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut is_over = false;
    let entries = std::iter::from_fn(|| {
        if rows.is_empty() && !is_over {
            match transaction.query_portal(&portal, ROWS) {
                Ok(next) => rows = next,
                Err(error) => return Some(Err(error)),
            }
            is_over = rows.len() < usize::try_from(ROWS).unwrap_or(usize::MAX);
            rows.reverse();
        }
        rows.pop().map(|row| entry(&row))
    });
    Page::fill(scan, entries)
}

fn entry(row: &Row) -> Result<(String, Vec<u8>), postgres::Error> {
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// Returns whether the server undid the transaction because another transaction was first.
fn was_later(error: &postgres::Error) -> bool {
    let later = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        // Another process created the tables at the same time.
        SqlState::DUPLICATE_TABLE,
        SqlState::UNIQUE_VIOLATION,
    ];
    error.code().is_some_and(|code| later.contains(code))
}

fn line(name: &str, error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(of_server) => format!("{name}: {}", of_server.message()),
        None => format!("{name}: {error}"),
    }
}
