//! What the program says to find the way: proposals, help, completions, the manual, the store.

use std::fs;

use crate::Place;

#[test]
fn a_misspelt_name_is_answered_with_the_right_one() {
    let place = Place::with_demo();
    let proposes = |arguments: &[&str], name: &str| {
        let expected = format!("did you mean `{name}`?");
        place.run(arguments).failed(2, "invalid-input", &expected);
    };
    proposes(&["grap", "scheduler"], "grep");
    proposes(&["asemble"], "assemble");
    proposes(&["status", "--conversaton", "a"], "--conversation");
    proposes(&["compact", "--budgt", "100"], "--budget");
    proposes(&["compact", "--budget", "100", "--mode", "swep"], "sweep");
    proposes(&["grant", "creat"], "create");
    place.run(&["zzz"]).failed(2, "invalid-input", "see `lcm --help`");
}

#[test]
fn help_names_every_command_and_groups_what_all_have() {
    let place = Place::new();
    let page = place.run(&["help"]).ok().out;
    assert_eq!(page, place.run(&["--help"]).ok().out);
    let help = place.run(&["help", "grep"]).ok().out;
    let (own, global) = help.split_once("Global options:").unwrap();
    assert!(own.contains("--sort") && !own.contains("--store"), "{own}");
    for option in ["--store", "--conversation", "--config", "--json", "--now", "--record"] {
        assert!(global.contains(option), "{option}: {global}");
    }
    let manual = place.run(&["man"]).ok().out;
    assert!(manual.starts_with(".ie") && manual.contains(".TH lcm 1"), "{manual}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&["completions", shell]).ok().out;
        for name in ["assemble", "--all-conversations", "completions"] {
            assert!(script.contains(name.trim_start_matches('-')), "{shell}: {name}");
        }
    }
    let commands = page.split_once("Commands:").unwrap().1.split_once("Options:").unwrap().0;
    let mut count = 0;
    for name in commands.lines().filter_map(|line| line.split_whitespace().next()) {
        count += 1;
        let heading = format!("lcm {name} ").replace('-', "\\-");
        assert!(
            name == "help" || manual.contains(heading.trim_end()),
            "{name} is not in the manual"
        );
    }
    assert!(count > 25, "{commands}");
}

#[test]
fn an_unknown_conversation_is_answered_with_the_store() {
    let place = Place::new();
    let expected =
        "`default` does not exist in the store `./default.lcm.db`; there is no such file";
    for arguments in [
        &["status"][..],
        &["check"],
        &["messages"],
        &["messages", "--raw"],
        &["summaries"],
        &["grep", "a"],
        &["assemble", "--budget", "100"],
        &["compact", "--budget", "100"],
        &["maintain", "--budget", "100"],
        &["describe", "default"],
        &["describe", "sum_0123456789abcdef"],
        &["expand", "sum_0123456789abcdef"],
        &["ask", "what?"],
        &["export"],
        &["reset"],
        &["new"],
        &["archive", "--cause", "idle"],
        &["delete"],
        &["delete", "--apply"],
        &["focus"],
        &["grant", "list"],
        &["grant", "create"],
        &["calibrate", "--model", "m", "--estimated-tokens", "10", "--prompt-tokens", "12"],
        &["usage", "--purpose", "turn", "--output-tokens", "8"],
    ] {
        let ran = place.run(arguments);
        ran.failed(3, "not-found", expected);
    }
    let said = place.run(&["conversations"]).ok().out;
    assert_eq!(said, "no conversation in the store `./default.lcm.db`\n");
    assert_eq!(fs::read_dir(&place.folder).unwrap().count(), 0, "asking makes no store");
    let place = Place::with_demo();
    let ran = place.run(&["status", "--conversation", "b"]);
    ran.failed(3, "not-found", "`b` does not exist in the store `./default.lcm.db`");
    assert!(!ran.err.contains("no such file"), "{}", ran.err);
}

#[test]
fn a_store_that_cannot_be_created_fails_before_anything_is_looked_for() {
    let place = Place::new();
    for store in ["missing/a.db", "./missing/deeper/a.db", "/proc/a.db"] {
        let ran = place.run(&["status", "--store", store]);
        ran.failed(5, "store-unavailable", &format!("cannot create `{store}`"));
    }
    let file = place.write("file", "");
    let below = format!("{file}/a.db");
    place.run(&["conversations", "--store", &below]).failed(5, "store-unavailable", &below);
    assert_eq!(fs::read_dir(&place.folder).unwrap().count(), 1, "no probe stays behind");
}

#[test]
fn a_component_that_cannot_be_cached_is_warned_of() {
    let place = Place::new();
    let file = place.write("cache", "no folder");
    let mut command = place.command(&["version-of-nothing"]);
    drop(command.output());
    let mut command = place.command(&["conversations"]);
    command.env("XDG_CACHE_HOME", std::path::absolute(&file).unwrap());
    let ran = crate::Ran::of(command.output().unwrap()).ok();
    let expected = "lcm: warning: the compiled component cannot be cached in `";
    assert!(ran.err.starts_with(expected) && ran.err.lines().count() == 1, "{}", ran.err);
    let ran = place.run(&["conversations"]).ok();
    assert_eq!(ran.err, "");
}

#[test]
fn an_ingest_in_the_wrong_dialect_proposes_the_detection() {
    let place = Place::new();
    let session = concat!(
        r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","#,
        r#""content":"hi"},"uuid":"u1","timestamp":"2026-01-02T03:04:05.000Z","sessionId":"s"}"#,
        "\n"
    );
    let call = concat!(
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","#,
        r#""function":{"name":"ls","arguments":"{}"}}]}"#,
        "\n",
        r#"{"role":"tool","tool_call_id":"call_1","content":"a.txt"}"#,
        "\n"
    );
    let block = concat!(
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","#,
        r#""content":"b"}]}"#,
        "\n"
    );
    for (name, lines, format) in [
        ("session.jsonl", session.to_owned(), "a Claude Code session"),
        ("call.jsonl", call.to_owned(), "messages of `openai-chat`"),
        ("mixed.jsonl", format!("{call}{block}"), "messages of several dialects"),
    ] {
        let file = place.write(name, lines);
        let expected = format!("the lines are {format}: give `--dialect auto`");
        place.run(&["ingest", &file]).failed(2, "invalid-input", &expected);
        let conversation = ["--conversation", name];
        let read =
            place.json(&[&["ingest", "--dialect", "auto", &file], &conversation[..]].concat());
        assert_eq!((&read["skipped"], &read["format"]), (&0.into(), &format.into()), "{read}");
    }
    let wrong = place.write("wrong.jsonl", "{\"role\":\"nobody\",\"content\":\"x\"}\n");
    let ran = place.run(&["ingest", &wrong]);
    ran.failed(2, "invalid-input", "got `nobody`");
    assert!(!ran.err.contains("auto"), "{}", ran.err);
}
