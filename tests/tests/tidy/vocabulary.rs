//! One word per idea: names that must not be used, and remarks about the making of the project.

use crate::{
    Finding, assert_none,
    code::{Code, has_word, words},
    files::{self, File},
};

/// Endings of type names that say nothing.
const EMPTY_ENDINGS: [&str; 6] = ["Manager", "Helper", "Helpers", "Util", "Utils", "Data"];

/// Words for which the vocabulary has another word: summaries are derived from *sources*.
const OTHER_WORDS: [&str; 6] = ["parent", "parents", "child", "children", "ancestor", "ancestors"];

/// The files with the types of the interface.
const BOUNDARY: [&str; 3] = [
    "crates/lcm-text/src/types/api.rs",
    "crates/lcm-text/src/types/model.rs",
    "crates/lcm-core/src/storage/store.rs",
];

/// Remarks about the making of the project, in lower case.
const TALK: [&str; 9] =
    ["skeleton", "phase 1", "phase 2", "phase one", "spine", "todo", "fixme", "hack", "xxx"];

fn names(file: &File) -> Vec<Finding> {
    let code = Code::of(&file.text);
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(&code.lines) {
        let mut declares = false;
        for word in words(line) {
            if declares && (is_banned_name(word) || is_getter(line, word)) {
                findings.push(format!("{}:{number}: the name `{word}`", file.path));
            }
            declares =
                matches!(word, "fn" | "struct" | "enum" | "trait" | "type" | "mod" | "union");
        }
    }
    findings
}

fn is_banned_name(name: &str) -> bool {
    let empty = EMPTY_ENDINGS.iter().any(|ending| name.ends_with(ending));
    let prefixed = name.strip_prefix("Lcm").is_some_and(|rest| !rest.is_empty());
    let module = matches!(name, "util" | "utils" | "helper" | "helpers" | "common" | "misc");
    empty || prefixed || module
}

/// Returns whether a function only returns a field but begins with `get_`. Such a function must
/// have the name of the field; `get_` is for a look-up by a key.
fn is_getter(line: &str, name: &str) -> bool {
    name.starts_with("get_") && line.contains(&format!("fn {name}(&self)"))
}

/// The folder of grants, each of which may have a parent grant.
const GRANTS: &str = "crates/lcm-core/src/storage/records/grants/";

/// Finds [`OTHER_WORDS`] in the engine, the guest and the interface, also in comments.
fn other_words(file: &File) -> Vec<Finding> {
    let code = Code::of(&file.text);
    let mut findings = Vec::new();
    for (number, (line, comment)) in (1..).zip(code.lines.iter().zip(&code.comments)) {
        // Modules have parent modules, and a grant has a parent grant in its field `parent`.
        let comment = comment.to_lowercase().replace("parent module", "").replace("`parent`", "");
        let text = format!("{line} {comment}");
        for word in OTHER_WORDS {
            if has_word(&text, word) {
                findings.push(format!("{}:{number}: the word `{word}`", file.path));
            }
        }
    }
    findings
}

fn talk(file: &File) -> Vec<Finding> {
    let code = Code::of(&file.text);
    let mut findings = Vec::new();
    for (number, comment) in (1..).zip(&code.comments) {
        // Code quoted in a comment is no remark.
        let prose: String = comment.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        for phrase in TALK {
            if has_word(&prose.to_lowercase(), phrase) {
                findings.push(format!("{}:{number}: `{phrase}` in a comment", file.path));
            }
        }
    }
    findings
}

/// Finds `usize` in stored or exported types, because its width differs between hosts.
fn widths(file: &File) -> Vec<Finding> {
    let code = Code::of(&file.text);
    let boundary = BOUNDARY.contains(&file.path.as_str());
    let mut findings = Vec::new();
    // Number of open braces inside an encoded item; `None`: outside such an item.
    let mut encoded: Option<u32> = None;
    for (number, line) in (1..).zip(&code.lines) {
        let derives = line.contains("derive(") && has_word(line, "Serialize");
        if derives {
            encoded = Some(0);
        }
        if (boundary || encoded.is_some()) && has_word(line, "usize") {
            findings.push(format!("{}:{number}: `usize` is stored or exported", file.path));
        }
        if let Some(open) = &mut encoded {
            let before = *open;
            for character in line.chars() {
                match character {
                    '{' => *open += 1,
                    '}' => *open = open.saturating_sub(1),
                    _ => {}
                }
            }
            let ended = before > 0 || line.contains('{') || line.trim_end().ends_with(';');
            if *open == 0 && ended && !derives {
                encoded = None;
            }
        }
    }
    findings
}

#[test]
fn names_follow_the_vocabulary() {
    assert_none(&files::all(&[".rs"]).iter().flat_map(names).collect::<Vec<_>>());
}

#[test]
fn summaries_have_sources_and_no_family() {
    let mut files = files::all(&[".rs", ".wit"]);
    let folders = [
        "crates/lcm-core/",
        "crates/lcm-loops/",
        "crates/lcm-text/",
        "crates/lcm-component/",
        "wit/",
    ];
    files.retain(|file| folders.iter().any(|folder| file.path.starts_with(folder)));
    files.retain(|file| !file.path.starts_with(GRANTS));
    assert_none(&files.iter().flat_map(other_words).collect::<Vec<_>>());
}

#[test]
fn comments_do_not_talk_about_the_making() {
    let files = files::all(&[".rs", ".wit", ".js", ".mjs", ".ts"]);
    assert_none(&files.iter().flat_map(talk).collect::<Vec<_>>());
}

#[test]
fn nothing_stored_or_exported_has_the_width_of_a_pointer() {
    let mut files = files::all(&[".rs"]);
    files.retain(|file| {
        ["crates/lcm-core/src/", "crates/lcm-text/src/"]
            .iter()
            .any(|folder| file.path.starts_with(folder))
    });
    assert_none(&files.iter().flat_map(widths).collect::<Vec<_>>());
}

#[test]
fn each_rule_for_words_can_fail() {
    let check = |rule: fn(&File) -> Vec<Finding>, path: &str, good: &str, bad: &str| {
        assert_eq!(rule(&File::new(path, good)), Vec::<Finding>::new());
        assert_eq!(rule(&File::new(path, bad)).len(), 1, "{bad}");
    };
    for bad in ["fn get_head(&self) {}", "struct StoreManager;", "struct LcmStore;", "mod util;"] {
        check(names, "a.rs", "fn get_field(&self, key: &str) { map.get_mut(0); struct Lcm; }", bad);
    }
    check(other_words, "a.rs", "let a = \"<parents>\";", "let parent = 1;");
    check(other_words, "a.rs", "// sources, see the parent module", "// every child of it");
    check(talk, "a.rs", "/// Answers `todo` items.\nlet skeleton = 1;", "//! Skeleton.");
    let path = "crates/lcm-core/src/storage/head.rs";
    let good = "#[derive(Serialize)]\nstruct A {\n a: u64,\n}\nfn b(c: usize) {}\n";
    check(widths, path, good, "#[derive(Serialize)]\nstruct A {\n a: usize,\n}\n");
    check(widths, BOUNDARY[0], good.split_at(46).0, "pub a: usize,");
}
