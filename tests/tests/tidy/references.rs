//! No text refers its reader to something outside the repository.
//!
//! In: documents and comments. A named document must exist, a link must lead to a file, and no rule
//! or test may be cited by its number in another document: each rule is written where it applies.

use std::sync::LazyLock;

use regex::Regex;

use crate::{
    Finding, assert_none,
    code::Code,
    files::{self, File},
};

/// A document by its file name, with or without folders.
static DOCUMENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"[A-Za-z0-9_./-]*[A-Za-z0-9_]\.md\b"));

/// A link in a document to a file, without its anchor; links to web addresses do not match.
static LINK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)"));

/// A citation by number, as of a numbered rule of another document.
static CITATION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:cases?|section|criterion|criteria|requirement|issue) #?[0-9]+|\bbehaviour reference\b|\barchitecture, (?:section|rule)\b|\bfn case_[0-9]+",
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

/// Returns the prose of a file by lines: all of a document, or the comments of a source.
fn prose(file: &File) -> Vec<String> {
    if file.is(&[".rs", ".wit"]) {
        return Code::of(&file.text).comments;
    }
    let starts = ["//", "#", "*", "/*", "\"\"\""];
    let comment = |line: &&str| {
        file.is(&[".md"]) || starts.iter().any(|start| line.trim_start().starts_with(start))
    };
    file.text
        .lines()
        .map(|line| Some(line).filter(comment).unwrap_or_default().to_owned())
        .collect()
}

/// Returns whether `name`, as written in `file`, is one of `paths`.
fn is_there(file: &File, name: &str, paths: &[String]) -> bool {
    let mut folders: Vec<&str> = file.path.split('/').collect();
    folders.pop();
    for part in name.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(folders.pop()),
            part => folders.push(part),
        }
    }
    let from_file = folders.join("/");
    let inside = format!("/{name}");
    let from_file_inside = format!("{from_file}/");
    paths.iter().any(|path| {
        *path == from_file
            || path == name
            || path.ends_with(&inside)
            || path.starts_with(&from_file_inside)
    })
}

fn references(file: &File, paths: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(prose(file)) {
        let place = format!("{}:{number}", file.path);
        let addresses = line.split(' ').filter(|word| !word.contains("://"));
        let named = addresses.flat_map(|word| DOCUMENT.find_iter(word));
        for name in named.map(|found| found.as_str()) {
            if !is_there(file, name, paths) {
                findings.push(format!("{place}: `{name}` is not in the repository"));
            }
        }
        if file.is(&[".md"]) {
            for link in LINK.captures_iter(&line) {
                let target = link.get(1).unwrap().as_str();
                if !target.ends_with(".md") && !is_there(file, target, paths) {
                    findings.push(format!("{place}: the link `{target}` leads nowhere"));
                }
            }
        }
    }
    findings
}

fn citations(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = prose(file).into_iter().zip(file.text.lines());
    for (number, (prose, line)) in (1..).zip(lines) {
        let prose: String = prose.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let name = file.is(&[".rs"]).then(|| CITATION.find(line)).flatten();
        let name = name.filter(|found| found.as_str().starts_with("fn "));
        if let Some(found) = CITATION.find(&prose).or(name) {
            let text = found.as_str().trim();
            findings.push(format!("{}:{number}: `{text}` cites another document", file.path));
        }
    }
    findings
}

/// Returns the files with prose of the project; transcripts of agents are data and not checked.
fn texts() -> Vec<File> {
    let endings = [".md", ".rs", ".wit", ".py", ".js", ".mjs", ".ts", ".sh", ".toml"];
    let mut files = files::all(&endings);
    files.retain(|file| !file.path.starts_with("tests/fixtures/"));
    // This file has the forbidden patterns as data and samples.
    files.retain(|file| !file.path.ends_with("tidy/references.rs"));
    files
}

#[test]
fn every_document_that_is_named_is_in_the_repository() {
    let paths = files::paths();
    let findings = texts().into_iter().flat_map(|file| references(&file, &paths));
    assert_none(&findings.collect::<Vec<_>>());
}

#[test]
fn nothing_is_cited_by_its_number_in_another_document() {
    assert_none(&texts().iter().flat_map(citations).collect::<Vec<_>>());
}

#[test]
fn each_rule_for_references_can_fail() {
    let paths = ["README.md", "docs/size.md", "docs/decisions/001-a.md", "wit/world.wit"];
    let paths = paths.map(str::to_owned);
    let check = |path: &str, text: &str| references(&File::new(path, text), &paths).len();
    for good in
        ["see `docs/size.md`", "[a](size.md#top)", "[b](../wit/world.wit)", "[c](decisions)"]
    {
        assert_eq!(check("docs/limits.md", good), 0, "{good}");
    }
    assert_eq!(check("docs/limits.md", "[a](https://example.org/other.md) https://b.org/c.md"), 0);
    for bad in ["see `docs/gone.md`", "[a](gone.md#top)", "[b](../wit/gone.wit)", "DESIGN.md"] {
        assert_eq!(check("docs/limits.md", bad), 1, "{bad}");
    }
    assert_eq!(check("a.rs", "// see GONE.md\nlet a = \"gone.md\";"), 1);
    assert_eq!(check("a.py", "# see GONE.md\na = 'gone.md'"), 1);

    let check = |text: &str| citations(&File::new("a.rs", text)).len();
    for bad in [
        "// Case 22 says so.",
        "// most tokens (architecture, section 4)",
        "// as in issue #12",
        "fn case_22_messages_are_kept() {}",
    ] {
        assert_eq!(check(bad), 1, "{bad}");
    }
    assert_eq!(check("// a case of 22 messages, `case 1`"), 0);
}
