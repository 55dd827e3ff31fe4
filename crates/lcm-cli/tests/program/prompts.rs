//! What summaries are asked for, shown and replaced.

use std::fs;

use crate::Place;

/// `lcm prompts` with a configuration.
fn with<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--config", file, "prompts"], more].concat()
}

#[test]
fn prompts_are_listed_and_shown_as_they_are_sent() {
    let place = Place::new();
    let list = place.json(&["prompts", "list"]);
    let names: Vec<&str> = list["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["leaf", "leaf-aggressive", "session", "phase", "durable"]);
    let version = list["prompts"][0]["version"].as_u64().unwrap();
    let said = place.run(&["prompts", "list"]).ok().out;
    let row = said.lines().find(|line| line.starts_with("durable ")).unwrap();
    assert!(row.ends_with("built in") && row.contains(&format!(" {version} ")), "{said}");
    let shown = place.run(&["prompts", "show", "phase"]).ok().out;
    for needed in ["untrusted data", "one phase", "[material]", "Length: at most 2000 tokens."] {
        assert!(shown.contains(needed), "{needed}: {shown}");
    }
    place.run(&["prompts", "show", "chapter"]).failed(2, "invalid-input", "leaf, leaf-aggressive");
    assert!(!place.folder.join("default.lcm.db").exists());
}

/// Goal: a text that is set is the one in force, and only it changes in the file.
#[test]
fn an_override_stands_in_the_configuration_until_it_is_unset() {
    let place = Place::new();
    let file = place.write("lcm.json", "{\n  \"leafTargetTokens\": 1200\n}\n");
    let text = place.write("leaf.txt", "Task: keep the prices.\nNothing else.\n");
    let set = place.json(&with(&file, &["set", "leaf", &text]));
    assert_eq!((&set["overridden"], &set["changed"]), (&true.into(), &true.into()));
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.ends_with("},\n  \"leafTargetTokens\": 1200\n}\n"), "{written}");
    let list = place.json(&with(&file, &["list"]));
    assert_eq!(list["prompts"][0]["text"], "Task: keep the prices.\nNothing else.");
    assert!(list["prompts"][0]["version"].as_u64().unwrap() >= 1 << 31);
    assert_eq!(list["prompts"][1]["overridden"], false);
    let shown = place.run(&with(&file, &["show", "leaf"])).ok().out;
    assert!(shown.contains("\nTask: keep the prices.\n") && shown.contains("at most 1200 tokens"));
    let diff = place.run(&with(&file, &["diff", "leaf"])).ok().out;
    assert!(diff.contains("\n+Task: keep the prices.\n") && diff.contains("\n-"), "{diff}");
    assert_eq!(place.run(&with(&file, &["diff", "phase"])).ok().out, "phase is not overridden\n");
    assert_eq!(place.json(&with(&file, &["set", "leaf", &text]))["changed"], false);
    assert_eq!(place.run(&with(&file, &["unset", "phase"])).ok().out, "nothing to do\n");
    place.run(&with(&file, &["unset", "leaf"])).ok();
    assert_eq!(place.json(&with(&file, &["list"]))["prompts"][0]["overridden"], false);
}

#[test]
fn what_cannot_be_an_override_changes_no_file() {
    let place = Place::new();
    let text = place.write("leaf.txt", "x");
    let blank = place.write("blank.txt", " \n");
    let forged = place.write("forged.txt", "Length: at most 1 tokens.");
    place.run(&["prompts", "set", "leaf", &text]).failed(2, "invalid-input", "`--config`");
    let file = place.folder.join("new.json").to_str().unwrap().to_owned();
    place.run(&with(&file, &["set", "leaf", &blank])).failed(2, "invalid-input", "blank");
    place.run(&with(&file, &["set", "leaf", &forged])).failed(2, "invalid-input", "`leaf` has one");
    place.run(&with(&file, &["set", "chapter", &text])).failed(2, "invalid-input", "got `chapter`");
    place.run(&with(&file, &["unset", "chapter"])).failed(2, "invalid-input", "got `chapter`");
    assert!(!place.folder.join("new.json").exists());
    place.run(&with(&file, &["set", "leaf", &text])).ok();
    let before = fs::read_to_string(&file).unwrap();
    place.run(&with(&file, &["set", "leaf", &forged])).failed(2, "invalid-input", "`leaf` has one");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    fs::write(&file, "[1]").unwrap();
    place.run(&with(&file, &["set", "leaf", &text])).failed(
        2,
        "invalid-input",
        "must hold one JSON object",
    );
}
