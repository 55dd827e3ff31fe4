//! What every store owes the engine, and what a file must be to be one.

use std::{fs, path::Path, thread, time::Duration};

use lcm_host::store::{
    Guard, KeyValueStore, Memory, Page, Put, STORE_FORMAT, Scan, Sqlite, StoreError,
};

use crate::Folder;

/// Runs one test over every kind of store.
fn each(test: impl Fn(&mut dyn KeyValueStore)) {
    test(&mut Memory::new());
    let folder = Folder::new();
    test(&mut Sqlite::open(&folder.path("s.lcm.db")).unwrap());
    #[cfg(feature = "postgres")]
    test(&mut lcm_host::store::Postgres::open(&crate::postgres::fresh().1).unwrap());
}

fn put(key: &str, value: &str) -> Put {
    Put { key: key.into(), value: Some(value.into()) }
}

fn guard(key: &str, value: Option<&str>) -> Guard {
    Guard { key: key.into(), value: value.map(Into::into) }
}

fn get(store: &mut dyn KeyValueStore, key: &str) -> Option<String> {
    let values = store.get_many(&[key.into()]).unwrap();
    values[0].clone().map(|value| String::from_utf8(value).unwrap())
}

fn keys(page: &Page) -> Vec<&str> {
    page.entries.iter().map(|(key, _)| key.as_str()).collect()
}

#[test]
fn a_scan_has_byte_order_in_both_directions_and_excludes_its_end() {
    each(|store| {
        let names = ["b", "a", "a/1", "B", "a-1", "c", "a/10", "a/2"];
        let puts: Vec<Put> = names.iter().map(|key| put(key, key)).collect();
        store.commit(&[], &puts).unwrap();
        let mut scan =
            Scan { start: "a", end: "c", reverse: false, entries_max: 100, bytes_max: 1_000 };
        let forward = store.scan(&scan).unwrap();
        assert_eq!(keys(&forward), ["a", "a-1", "a/1", "a/10", "a/2", "b"]);
        assert!(!forward.more);
        scan.reverse = true;
        let back = store.scan(&scan).unwrap();
        assert_eq!(keys(&back), ["b", "a/2", "a/10", "a/1", "a-1", "a"]);
    });
}

#[test]
fn a_page_keeps_its_bounds_and_always_has_an_entry() {
    each(|store| {
        let puts: Vec<Put> = (0..5).map(|n| put(&format!("k{n}"), "0123456789")).collect();
        store.commit(&[], &puts).unwrap();
        let scan = |entries_max, bytes_max| Scan {
            start: "k",
            end: "l",
            reverse: false,
            entries_max,
            bytes_max,
        };
        let by_count = store.scan(&scan(2, 1_000)).unwrap();
        assert_eq!((by_count.entries.len(), by_count.more), (2, true));
        let by_bytes = store.scan(&scan(100, 36)).unwrap();
        assert_eq!((by_bytes.entries.len(), by_bytes.more), (3, true));
        let too_small = store.scan(&scan(100, 1)).unwrap();
        assert_eq!((too_small.entries.len(), too_small.more), (1, true));
        let exactly = store.scan(&scan(5, 60)).unwrap();
        assert_eq!((exactly.entries.len(), exactly.more), (5, false));
    });
}

#[test]
fn many_keys_come_back_in_their_order_with_gaps_and_repeats() {
    each(|store| {
        let puts: Vec<Put> = (0..250).map(|n| put(&format!("k{n:03}"), &n.to_string())).collect();
        store.commit(&[], &puts).unwrap();
        // 1,000 keys are two statements of SQLite; half of the names are absent.
        let asked: Vec<String> = (0..1_000).map(|n| format!("k{:03}", (n * 7) % 500)).collect();
        let values = store.get_many(&asked).unwrap();
        for (key, value) in asked.iter().zip(values) {
            let number: u32 = key[1..].parse().unwrap();
            let expected = (number < 250).then(|| number.to_string().into_bytes());
            assert_eq!(value, expected, "{key}");
        }
    });
}

#[test]
fn a_failed_guard_is_a_conflict_and_writes_nothing() {
    each(|store| {
        store.commit(&[guard("a", None)], &[put("a", "1")]).unwrap();
        let puts = [put("a", "2"), put("b", "2")];
        for failing in [guard("a", None), guard("a", Some("0")), guard("c", Some(""))] {
            let guards = [guard("a", Some("1")), failing];
            assert_eq!(store.commit(&guards, &puts), Err(StoreError::Conflict));
        }
        assert_eq!(get(store, "a").as_deref(), Some("1"));
        assert_eq!(get(store, "b"), None);
        store.commit(&[guard("a", Some("1")), guard("c", None)], &puts).unwrap();
        assert_eq!(get(store, "b").as_deref(), Some("2"));
    });
}

#[test]
fn of_several_puts_of_one_key_the_last_counts() {
    each(|store| {
        let gone = Put { key: "b".into(), value: None };
        let puts = [put("a", "1"), put("b", "1"), put("a", "2"), gone, put("c", "")];
        store.commit(&[], &puts).unwrap();
        assert_eq!(get(store, "a").as_deref(), Some("2"));
        assert_eq!(get(store, "b"), None);
        assert_eq!(get(store, "c").as_deref(), Some(""), "an empty value is a value");
    });
}

#[test]
fn a_file_appears_with_the_first_commit_and_keeps_what_was_committed() {
    let folder = Folder::new();
    let path = folder.path("s.lcm.db");
    let mut store = Sqlite::open(&path).unwrap();
    assert_eq!(get(&mut store, "a"), None);
    assert!(!path.exists(), "reading must not make a file");
    store.commit(&[], &[put("a", "1")]).unwrap();
    let mut other = Sqlite::open(&path).unwrap();
    assert_eq!(get(&mut other, "a").as_deref(), Some("1"));
    other.commit(&[guard("a", Some("1"))], &[put("a", "2")]).unwrap();
    assert_eq!(get(&mut store, "a").as_deref(), Some("2"));
    let stale = [guard("a", Some("1"))];
    assert_eq!(store.commit(&stale, &[put("a", "3")]), Err(StoreError::Conflict));
    assert!(store.bytes_on_disk().unwrap() > 4_096);
}

#[test]
fn the_file_is_the_one_that_all_hosts_share() {
    let folder = Folder::new();
    let path = folder.path("s.lcm.db");
    Sqlite::open(&path).unwrap().commit(&[], &[put("a", "1")]).unwrap();
    let header = fs::read(&path).unwrap();
    assert_eq!(&header[68..72], b"lcm1", "application id");
    assert_eq!(header[60..64], STORE_FORMAT.to_be_bytes(), "user version");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("PRAGMA journal_mode"), "wal");
    let schema = text("SELECT sql FROM sqlite_schema WHERE name = 'kv'");
    assert_eq!(schema, "CREATE TABLE kv (k TEXT PRIMARY KEY, v BLOB NOT NULL)");
}

/// The error of opening a file, and whether that left the file as it was.
fn refusal(path: &Path) -> StoreError {
    let before = fs::read(path).unwrap();
    let error = Sqlite::open(path).unwrap_err();
    assert_eq!(fs::read(path).unwrap(), before, "a refused file must not change");
    let (line, file) = (error.to_string(), path.display().to_string());
    assert!(line.contains(&file) && !line.contains('\n'), "{line}");
    error
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_as_it_was() {
    let folder = Folder::new();
    let text = folder.path("text");
    fs::write(&text, "certainly no database, but longer than the header of one is: ".repeat(4))
        .unwrap();
    assert!(matches!(refusal(&text), StoreError::Unsupported(_)));

    let foreign = folder.path("foreign.db");
    let connection = rusqlite::Connection::open(&foreign).unwrap();
    connection.execute_batch("CREATE TABLE kv (k TEXT PRIMARY KEY, v BLOB NOT NULL)").unwrap();
    drop(connection);
    assert!(matches!(refusal(&foreign), StoreError::Unsupported(_)));
}

#[test]
fn a_store_of_a_newer_format_is_refused_and_left_as_it_was() {
    let folder = Folder::new();
    let path = folder.path("s.lcm.db");
    Sqlite::open(&path).unwrap().commit(&[], &[put("a", "1")]).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", STORE_FORMAT + 1).unwrap();
    drop(connection);
    let error = refusal(&path);
    let expected = format!("format {}", STORE_FORMAT + 1);
    assert!(matches!(&error, StoreError::Unsupported(line) if line.contains(&expected)), "{error}");
}

#[test]
fn a_read_only_file_is_refused() {
    let folder = Folder::new();
    let path = folder.path("s.lcm.db");
    Sqlite::open(&path).unwrap().commit(&[], &[put("a", "1")]).unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let error = refusal(&path);
    assert!(matches!(&error, StoreError::Unsupported(line) if line.ends_with("is read-only")));
}

#[test]
fn a_folder_is_no_readable_file() {
    let folder = Folder::new();
    assert!(matches!(Sqlite::open(&folder.0), Err(StoreError::Unavailable(_))));
}

/// Two processes make one store: one of them writes while the other changes the journal.
#[test]
fn a_new_file_that_another_writes_is_waited_for() {
    let folder = Folder::new();
    let path = folder.path("s.lcm.db");
    Sqlite::open(&path).unwrap().commit(&[], &[put("a", "1")]).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE").unwrap();
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        other.execute_batch("ROLLBACK").unwrap();
    });
    let mut store = Sqlite::open(&path).unwrap();
    assert_eq!(get(&mut store, "a").as_deref(), Some("1"));
    writer.join().unwrap();
}

#[test]
fn a_locked_file_is_busy_and_nothing_is_written() {
    let folder = Folder::new();
    let path = folder.path("s.lcm.db");
    let mut store = Sqlite::open_waiting(&path, Duration::from_millis(20)).unwrap();
    store.commit(&[], &[put("a", "1")]).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.commit(&[], &[put("a", "2")]);
    assert!(matches!(refused, Err(StoreError::Busy(_))), "{refused:?}");
    assert_eq!(get(&mut store, "a").as_deref(), Some("1"), "readers are not locked out");
    other.execute_batch("ROLLBACK").unwrap();
    store.commit(&[], &[put("a", "2")]).unwrap();
    assert_eq!(get(&mut store, "a").as_deref(), Some("2"));
}
