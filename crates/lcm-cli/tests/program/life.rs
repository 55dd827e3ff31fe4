//! Families, resets, new sessions and archives.

use serde_json::{Value, json};

use crate::{DEMO, Place};

#[test]
fn a_dry_run_changes_nothing() {
    let place = Place::with_demo();
    let before = place.digest();
    let reset = place.json(&["reset", "--dry-run"]);
    assert_eq!((&reset["conversation"], &reset["applied"]), (&json!("default#2"), &json!(false)));
    let new = place.json(&["new", "--retain-depth", "0", "--dry-run"]);
    assert_eq!((&new["messages"], &new["tokens_after"]), (&json!(83), &json!(0)));
    assert_eq!(place.json(&["archive", "--cause", "idle", "--dry-run"])["changed"], true);
    let said = place.run(&["reset", "--dry-run"]).ok().out;
    assert!(said.ends_with("nothing was changed: without --dry-run it is\n"), "{said}");
    assert_eq!(place.digest(), before);
    place.run(&["archive", "--cause", "boredom"]).failed(2, "invalid-input", "`cause`");
}

#[test]
fn a_reset_goes_on_in_the_family_and_grep_looks_into_both() {
    let place = Place::with_demo();
    assert_eq!(place.json(&["family", "demo"])["family"], "demo");
    place.run(&["family", "other"]).failed(4, "exists", "`default`");
    place.run(&["reset"]).ok();
    place.run(&["ingest", DEMO]).failed(4, "denied", "write to its successor `default#2`");
    assert_eq!(place.json(&["reset"])["changed"], false);
    assert_eq!(place.run(&["live", "demo"]).ok().out, "default#2\n");
    assert_eq!(place.json(&["live", "demo"])["conversation"], "default#2");
    place.run(&["live", "nobody"]).failed(3, "not-found", "family `nobody` does not exist");
    let status = place.json(&["status"]);
    assert_eq!(status["family"], "demo");
    assert_eq!(status["archived"]["successor"], "default#2");
    let found = |more: &[&str]| {
        let base = ["grep", "scheduler", "--conversation", "default#2"];
        place.json(&[&base, more].concat())["total"].clone()
    };
    assert!(found(&[]).as_u64().unwrap() > 0);
    assert_eq!(found(&["--only"]), 0);
    let line = "{\"role\":\"user\",\"content\":\"the scheduler again\"}\n";
    let file = place.write("more.jsonl", line);
    place.run(&["ingest", &file, "--conversation", "x", "--family", "demo"]).ok();
    let hits = place.json(&["grep", "\"scheduler again\"", "--conversation", "default#2"]);
    assert_eq!(hits["matches"][0]["conversation"], "x");
    let list = place.json(&["conversations"])["conversations"].clone();
    let families: Vec<&Value> = list.as_array().unwrap().iter().map(|one| &one["family"]).collect();
    assert_eq!(families, [&json!("demo"); 3]);
    let said = place.run(&["conversations"]).ok().out;
    assert!(said.contains("manual-reset, continues in default#2"), "{said}");
}

#[test]
fn a_new_session_empties_the_context_and_keeps_what_was_said() {
    let place = Place::with_demo();
    let new = place.json(&["new", "--retain-depth", "-1"]);
    assert_eq!(new["changed"], false);
    let new = place.json(&["new"]);
    assert_eq!((&new["changed"], &new["applied"]), (&json!(true), &json!(true)));
    let assembled = place.json(&["assemble", "--budget", "20000", "--explain"]);
    assert_eq!(assembled["items"][0]["why"], "withdrawn");
    assert_eq!(assembled["tokens"], 0);
    let bytes = std::fs::read(DEMO).unwrap();
    assert_eq!(place.run(&["messages", "--raw"]).ok().out.as_bytes(), bytes);
    assert_eq!(place.json(&["check"])["ok"], true);
}

#[test]
fn a_brief_is_shown_in_place_of_summaries_until_it_is_taken_away() {
    let place = Place::with_demo();
    place.run(&["compact", "--budget", "8000"]).ok();
    let drawn = || place.run(&["assemble", "--budget", "8000", "--explain"]).ok().out;
    let before = drawn();
    let picture = |text: &str| text.lines().find(|line| line.starts_with('[')).unwrap().to_owned();
    assert!(picture(&before).starts_with("[C"), "{before}");
    assert!(picture(&before).contains("tt") && picture(&before).ends_with("of 8,000 tokens"));
    let file = place.write("brief.txt", "What matters now.");
    assert_eq!(place.json(&["focus", &file, "--dry-run"])["applied"], false);
    assert_eq!(drawn(), before);
    let set = place.json(&["focus", &file]);
    assert_eq!((&set["changed"], &set["focus"]["seq_last"]), (&json!(true), &json!(83)));
    let with = drawn();
    // The brief is too small for a letter of its own.
    assert!(with.contains("focus_") && !picture(&with).contains('C'), "{with}");
    let said = place.run(&["focus"]).ok().out;
    assert!(said.starts_with("default has no brief"), "{said}");
    assert_eq!(drawn(), before);
    place.run(&["focus", &file, "--seq-last", "84"]).failed(2, "invalid-input", "1 to 83");
}

#[test]
fn newest_messages_are_set_aside_and_come_back() {
    let place = Place::with_demo();
    // What is restored is a run of its own, so that the fresh tail is another one.
    let assembled = || place.json(&["assemble", "--budget", "200000"])["messages"].clone();
    let before = assembled();
    assert_eq!(place.json(&["rewind", "--units", "1", "--dry-run"])["applied"], false);
    let back = place.json(&["rewind", "--to", "80"]);
    assert_eq!((&back["set_aside"], &back["seq_last"]), (&json!(3), &json!(80)));
    assert_ne!(assembled(), before);
    let shown = || place.run(&["messages", "--seq-first", "80"]).ok().out;
    assert_eq!(shown().matches(", set aside").count(), 3, "{}", shown());
    let counts = place.run(&["status"]).ok().out;
    assert!(counts.contains("revisions 0, set_aside 3"), "{counts}");
    let said = place.run(&["rewind", "--to", "83"]).ok().out;
    assert!(said.contains("3 messages back; it ends with message 83"), "{said}");
    assert_eq!(assembled(), before);
    assert!(!shown().contains("set aside"), "{}", shown());
    place.run(&["rewind", "--to", "84"]).failed(2, "invalid-input", "at most 83");
}

#[test]
fn a_deleted_conversation_is_gone_and_its_id_is_free() {
    let place = Place::with_demo();
    let before = place.digest();
    let planned = place.json(&["delete"]);
    assert_eq!((&planned["applied"], &planned["messages"]), (&json!(false), &json!(83)));
    assert_eq!(place.digest(), before);
    let receipt = place.json(&["delete", "--apply"]);
    assert_eq!((&receipt["done"], &receipt["messages"]), (&json!(true), &json!(83)));
    place.run(&["status"]).failed(3, "not-found", "`default`");
    place.run(&["delete", "--apply"]).failed(3, "not-found", "`default`");
    assert_eq!(place.json(&["conversations"])["conversations"], json!([]));
    assert_eq!(place.json(&["conversations", "--deletions"])["conversations"], json!([]));
    place.run(&["ingest", DEMO]).ok();
    let said = place.run(&["delete", "--apply"]).ok().out;
    assert!(said.starts_with("default is deleted: 83 messages, "), "{said}");
}

/// The program and the packages do the same thing: one call of the verb, without a further option.
#[test]
fn reset_new_and_archive_act_at_once() {
    for (arguments, changed) in [
        (&["reset"][..], "archived"),
        (&["archive", "--cause", "discarded"], "archived"),
        (&["new"], "context"),
    ] {
        let place = Place::with_demo();
        let before = place.json(&["status"])[changed].clone();
        place.run(arguments).ok();
        assert_ne!(place.json(&["status"])[changed], before, "{arguments:?}");
    }
    let place = Place::with_demo();
    place.run(&["archive", "--cause", "deleted"]).failed(2, "invalid-input", "`cause`");
}
