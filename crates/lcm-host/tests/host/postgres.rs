//! The store in a database: what a file does not have. `tests/postgres/run` starts a server and
//! names it in `LCM_POSTGRES`; without one there is nothing to test here.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use lcm_host::{
    Cancel, Code, Lcm,
    ingestion::AppendMode,
    store::{Memory, Postgres, StoreError},
};
use postgres::{Client, NoTls};

use crate::{
    engine::{NOW, component, transcript},
    wasm,
};

/// The URL of the server.
fn server() -> String {
    std::env::var("LCM_POSTGRES")
        .unwrap_or_else(|_| panic!("LCM_POSTGRES names no server: run tests/postgres/run"))
}

fn client() -> Client {
    Client::connect(&server(), NoTls).unwrap()
}

/// A URL with a schema of its own, which is also the name of its connections.
pub(crate) fn fresh() -> (String, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("lcm_{}_{number}", std::process::id());
    client().batch_execute(&format!("CREATE SCHEMA {name}")).unwrap();
    let url = format!("{}?application_name={name}&options=-csearch_path%3D{name}", server());
    (name, url)
}

#[test]
fn the_same_calls_make_the_same_store_as_in_memory() {
    let (_, url) = fresh();
    let of = |lcm: Lcm| {
        let chat = lcm.conversation("c", 3_000).clock(NOW);
        for batch in transcript(80, 60).chunks(7) {
            chat.turn(batch).unwrap();
        }
        chat.assemble().unwrap();
        assert!(lcm.check_all("c", &Cancel::default()).unwrap().ok);
        lcm.digest_all(false, &Cancel::default()).unwrap()
    };
    let database = Lcm::builder().store(Postgres::open(&url).unwrap());
    let memory = Lcm::builder().store(Memory::new());
    let digests = [database, memory].map(|builder| of(builder.open_with(&component()).unwrap()));
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn writers_of_one_conversation_lose_and_double_nothing() {
    let (_, url) = fresh();
    let pool = Lcm::builder().stores(move || Postgres::open(&url)).pool(3, &wasm()).unwrap();
    let text = |writer: usize, number: usize| {
        let words = "word ".repeat(60);
        format!(r#"{{"id": "{writer}-{number}", "role": "user", "content": "{number} {words}"}}"#)
    };
    // Handles of three names, so that all of them write into one conversation.
    let handles: Vec<&Lcm> = (0..100).map(|name| pool.of(&format!("{name}"))).collect();
    thread::scope(|scope| {
        for writer in 0..3 {
            let chat = handles[writer * 33]
                .conversation("c", 3_000)
                .clock(NOW)
                .append_mode(AppendMode::New);
            scope.spawn(move || {
                for number in 0..20 {
                    while let Err(error) = chat.turn(&[text(writer, number)]) {
                        assert_eq!(error.code, Code::Conflict, "{error}");
                    }
                }
            });
        }
    });
    let (lcm, mut texts) = (pool.of("c"), Vec::new());
    let each = &mut |text: &str| {
        texts.push(text.to_owned());
        Ok(())
    };
    lcm.messages_all("c", 1, u64::MAX, &Cancel::default(), each).unwrap();
    for writer in 0..3 {
        let own = format!(r#"{{"id": "{writer}-"#);
        let found: Vec<&String> = texts.iter().filter(|text| text.starts_with(&own)).collect();
        let wrote: Vec<String> = (0..20).map(|number| text(writer, number)).collect();
        assert_eq!(found, wrote.iter().collect::<Vec<_>>());
    }
    assert_eq!(texts.len(), 60);
    assert!(lcm.check_all("c", &Cancel::default()).unwrap().ok);
}

#[test]
fn a_connection_that_is_cut_is_made_anew() {
    let (name, url) = fresh();
    let store = Postgres::open(&url).unwrap();
    let lcm = Lcm::builder().store(store).open_with(&component()).unwrap();
    let chat = lcm.conversation("c", 3_000).clock(NOW);
    chat.append(&transcript(2, 10)).unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    assert_eq!(client().query(cut, &[&name]).unwrap().len(), 1);
    lcm.park();
    // The first call may be the one that finds out.
    if let Err(error) = chat.assemble() {
        assert_eq!(error.code, Code::StoreUnavailable);
    }
    assert_eq!(chat.assemble().unwrap().fresh_tail_messages, 2);
}

#[test]
fn tables_of_others_and_of_other_formats_are_refused_and_left_as_they_were() {
    let refused = |sql: &str| {
        let (name, url) = fresh();
        client().batch_execute(&format!("SET search_path = {name}; {sql}")).unwrap();
        let error = Postgres::open(&url).unwrap_err();
        assert!(matches!(error, StoreError::Unsupported(_)), "{error}");
    };
    refused("CREATE TABLE kv (x int)");
    refused("CREATE TABLE lcm_store (format int); INSERT INTO lcm_store VALUES (1)");
    refused(
        "CREATE TABLE kv (k text, v bytea); CREATE TABLE lcm_store (format int);
         INSERT INTO lcm_store VALUES (99)",
    );
}

#[test]
fn what_cannot_be_reached_is_busy_and_no_password_is_shown() {
    let error = Postgres::open("postgres://me:secret@127.0.0.1:1/db").unwrap_err();
    assert!(matches!(&error, StoreError::Busy(text) if text.contains("`db`")), "{error}");
    let other = Postgres::open("postgres://me:secret@[broken").unwrap_err();
    assert!(matches!(other, StoreError::Unsupported(_)), "{other}");
    for error in [error, other] {
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
