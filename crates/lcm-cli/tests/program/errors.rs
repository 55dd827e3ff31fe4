//! Bad input: one line that names the field or file, the documented exit code, nothing written.

use std::fs;

use crate::{DEMO, Place};

#[test]
fn a_line_that_is_no_message_is_named_and_nothing_is_stored() {
    let place = Place::new();
    let good = "{\"role\":\"user\",\"content\":\"x\"}\n".repeat(150);
    let broken = place.write("broken.jsonl", format!("{good}\n{{\"role\":\n"));
    place.run(&["ingest", &broken]).failed(2, "invalid-input", "broken.jsonl` line 152: ");
    let role = place.write("role.jsonl", "{\"role\":\"nobody\",\"content\":\"x\"}\n");
    place.run(&["ingest", DEMO, &role, "--json"]).failed(2, "invalid-input", "line 1: ");
    let bytes = place.write("bytes.jsonl", b"{\"role\":\"user\",\"content\":\"\xFF\"}\n");
    place.run(&["ingest", &bytes]).failed(2, "invalid-input", "line 1 must be valid UTF-8");
    assert!(!place.folder.join("default.lcm.db").exists(), "a refused ingest makes no store");
}

#[test]
fn arguments_that_cannot_be_meant_are_named() {
    let place = Place::with_demo();
    let before = place.digest();
    let invalid = |arguments: &[&str], contains: &str| {
        place.run(arguments).failed(2, "invalid-input", contains);
    };
    invalid(&["ingest", "--dialect", "klingon", DEMO], "--dialect");
    invalid(&["compact", "--budget", "-5"], "--budget");
    invalid(&["compact", "--budget", "0"], "budget");
    invalid(&["compact", "--budget", "many"], "--budget");
    invalid(&["compact"], "--budget");
    invalid(&["compact", "--budget", "100", "--mode", "fast"], "--mode");
    invalid(&["compact", "--budget", "100", "--llm", "magic"], "got `magic`");
    invalid(&["compact", "--budget", "100", "--llm", "openai:x@localhost"], "base URL");
    invalid(&["assemble", "--budget", "-1", "--json"], "--budget");
    invalid(&["status", "--now", "yesterday"], "--now");
    invalid(&["messages", "--seq-first", "0"], "--seq-first");
    invalid(&["grant", "create", "--tokens-max", "0"], "tokens_max");
    invalid(&["grant", "give"], "give");
    invalid(&["frobnicate"], "frobnicate");
    invalid(&["status", "extra"], "extra");
    invalid(&[], "lcm --help");
    let unsupported = |arguments: &[&str], contains: &str| {
        place.run(arguments).failed(2, "unsupported", contains);
    };
    invalid(&["assemble", "--budget", "100", "--dialect", "auto"], "got `auto`");
    unsupported(&["status", "--store", "postgres://host/db"], "--store");
    assert_eq!(place.digest(), before);
}

#[test]
fn commands_that_are_not_built_say_so() {
    let place = Place::new();
    let names = [
        "rewrite",
        "dissolve",
        "repair",
        "transplant",
        "prune",
        "erase",
        "backup",
        "fork",
        "tui",
        "mcp",
        "proxy",
        "replay",
    ];
    for name in names {
        place.run(&[name, "--all", "x"]).failed(2, "unsupported", name);
        place.run(&["--json", name]).failed(2, "unsupported", name);
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    let place = Place::new();
    place.run(&["status"]).failed(3, "not-found", "`default`");
    place.run(&["summaries"]).failed(3, "not-found", "`default`");
    assert_eq!(fs::read_dir(&place.folder).unwrap().count(), 0, "asking makes no store");
    let place = Place::with_demo();
    place.run(&["check", "--conversation", "b"]).failed(3, "not-found", "`b`");
    place.run(&["messages", "--raw", "--conversation", "b"]).failed(3, "not-found", "`b`");
    let id = "sum_0123456789abcdef";
    place.run(&["describe", id]).failed(3, "not-found", id);
    place.run(&["expand", id, "--json"]).failed(3, "not-found", id);
    place.run(&["ingest", "no.jsonl"]).failed(3, "not-found", "`no.jsonl`");
}

#[test]
fn a_file_that_is_no_store_is_left_as_it_was() {
    let place = Place::with_demo();
    let text = place.write("text.db", "hello");
    place.run(&["ingest", DEMO, "--store", &text]).failed(2, "unsupported", "text.db");
    assert_eq!(fs::read(&text).unwrap(), b"hello");

    let store = place.folder.join("default.lcm.db");
    let mut newer = fs::read(&store).unwrap();
    newer[63] = 2;
    let newer = place.write("newer.db", newer);
    place.run(&["status", "--store", &newer]).failed(2, "unsupported", "store format 2");

    let folder = place.folder.to_str().unwrap();
    place.run(&["status", "--store", folder]).failed(5, "store-unavailable", folder);

    let mut permissions = fs::metadata(&store).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&store, permissions).unwrap();
    let before = fs::read(&store).unwrap();
    place.run(&["ingest", "--append-mode", "new", DEMO]).failed(2, "unsupported", "is read-only");
    assert_eq!(fs::read(&store).unwrap(), before);
}

#[test]
fn a_configuration_that_is_wrong_is_named() {
    let place = Place::with_demo();
    let config = place.write("config.json", "{\"fresh_tail_messages_max\": \"all\"}");
    let ran = place.run(&["status", "--config", &config]);
    ran.failed(2, "invalid-input", "config.json`: `fresh_tail_messages_max`");
    let list = place.write("list.json", "[]");
    place.run(&["status", "--config", &list]).failed(2, "invalid-input", "list.json");
    let unknown = place.write("unknown.json", "{\"colour\": 1}");
    let ran = place.run(&["status", "--config", &unknown]).ok();
    assert!(ran.err.starts_with("lcm: warning: ") && ran.err.contains("`colour`"), "{}", ran.err);
    let mut command = place.command(&["status"]);
    let ran = crate::Ran::of(command.env("LCM_FRESH_TAIL_COUNT", "all").output().unwrap());
    ran.failed(2, "invalid-input", "`LCM_FRESH_TAIL_COUNT` must be a whole number");
}

#[test]
fn findings_of_a_check_are_an_exit_code_of_their_own() {
    let place = Place::with_demo();
    let file = place.folder.join("default.lcm.db");
    // One bit of the pack that holds the messages.
    let connection = rusqlite::Connection::open(&file).unwrap();
    let sql = "SELECT k, v FROM kv WHERE k LIKE '%/m%' LIMIT 1";
    let row = connection
        .query_row(sql, [], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?)));
    let (key, mut value) = row.unwrap();
    let middle = value.len() / 2;
    value[middle] ^= 1;
    connection.execute("UPDATE kv SET v = ?1 WHERE k = ?2", (value, key)).unwrap();
    drop(connection);
    let ran = place.run(&["check", "--json"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    let check: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(check["ok"], false);
}
