//! Rules for documents and data: the changelog, and no folders of one machine in any text.

use crate::{
    Finding, assert_none,
    files::{self, File},
};

/// Headings of a version in the changelog, in their order.
const HEADINGS: [&str; 4] = ["### WIT", "### Store format", "### Core", "### Hosts"];

/// Folders of one machine or one session, in two halves, so that this file does not contain them.
const MACHINE: [(&str, &str); 6] = [
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("/Us", "ers/"),
    ("/wo", "rk/"),
    ("C:", "\\Users"),
    // A test may mention this folder; no other file may use it.
    ("/tm", "p/"),
];

fn machine(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let everywhere = if file.is_test() { 5 } else { 6 };
        for (first, second) in MACHINE.into_iter().take(everywhere) {
            let folder = format!("{first}{second}");
            // A folder of that name inside another folder is no folder of the machine.
            let found = line.match_indices(&folder).any(|(at, _)| {
                let before = line.get(..at).and_then(|text| text.chars().next_back());
                !before.is_some_and(|c| c.is_alphanumeric() || "._-*}$)".contains(c))
            });
            if found {
                findings.push(format!("{}:{number}: the path `{folder}`", file.path));
            }
        }
    }
    findings
}

/// Finds registries in a lock file other than the public one.
fn registry(file: &File) -> Vec<Finding> {
    let public = "https://registry.npmjs.org/";
    let foreign = |line: &&str| {
        let address = line.split_once("\"resolved\": \"").map(|(_, address)| address);
        address.is_some_and(|address| address.contains("://") && !address.starts_with(public))
    };
    let lines = (1..).zip(file.text.lines()).filter(|(_, line)| foreign(line));
    lines.map(|(number, _)| format!("{}:{number}: another registry", file.path)).collect()
}

fn changelog(text: &str, version: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !text.starts_with("# Changelog\n") {
        findings.push("the changelog has no title".to_owned());
    }
    let mut versions = text.split("\n## ").skip(1).peekable();
    if !versions.peek().is_some_and(|newest| newest.starts_with(&format!("{version} ("))) {
        findings.push(format!("the changelog does not begin with {version} and a date"));
    }
    for release in versions {
        let name = release.lines().next().unwrap_or_default();
        let (introduction, sections) = release.split_once("\n### ").unwrap_or((release, ""));
        if introduction.lines().skip(1).all(|line| line.trim().is_empty()) {
            findings.push(format!("{name}: no paragraph for people"));
        }
        let sections = format!("### {sections}");
        let headings: Vec<&str> =
            sections.lines().filter(|line| line.starts_with("### ")).collect();
        if headings != HEADINGS {
            findings.push(format!("{name}: the headings are {headings:?}, not {HEADINGS:?}"));
        }
        let empty = |section: &&str| section.lines().skip(1).all(|line| line.trim().is_empty());
        for section in sections.split("### ").skip(1).filter(empty) {
            findings.push(format!("{name}: nothing under {}", section.trim()));
        }
    }
    findings
}

#[test]
fn no_text_names_a_machine() {
    let endings = [
        ".rs",
        ".wit",
        ".toml",
        ".md",
        ".sh",
        ".js",
        ".mjs",
        ".cjs",
        ".ts",
        ".py",
        ".capnp",
        ".yml",
        ".yaml",
        ".txt",
        "run",
        "fmt",
        "lint",
        "test",
        "component",
        "commits",
        "dependencies",
        "package.json",
    ];
    let mut files = files::all(&endings);
    // Transcripts of agents are data and may say anything.
    files.retain(|file| !file.path.starts_with("tests/fixtures/"));
    assert_none(&files.iter().flat_map(machine).collect::<Vec<_>>());
}

/// Largest number of lines of a program in the README.
const PROGRAM_LINES_MAX: usize = 8;

/// Checks that the README has a short program in each language. The tests of the packages run these
/// programs, and in Rust the documentation test of `lcm-host`.
fn programs(readme: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for language in ["python", "js", "rust"] {
        let fence = format!("```{language}\n");
        let blocks = readme.split(&fence).skip(1);
        let blocks: Vec<&str> = blocks.filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
        if blocks.is_empty() {
            findings.push(format!("README.md: no program in {language}"));
        }
        let long = blocks.iter().filter(|block| block.lines().count() > PROGRAM_LINES_MAX);
        findings.extend(long.map(|block| {
            let lines = block.lines().count();
            format!("README.md: a program in {language} has {lines} lines")
        }));
    }
    findings
}

#[test]
fn the_programs_of_the_readme_are_short() {
    let files = files::all(&["README.md"]);
    let readme = files.iter().find(|file| file.path == "README.md").unwrap();
    assert_none(&programs(&readme.text));
    let long = format!("```rust\n{}```", "a\n".repeat(PROGRAM_LINES_MAX + 1));
    assert_eq!(programs(&long).len(), 3);
}

/// Finds cells of the table of hosts that count other than all vectors. The table is made by a run
/// of all hosts; this rule tells at once that a new vector needs such a run.
fn host_table(page: &str, vectors: usize) -> Vec<Finding> {
    let table = page.split("<!-- hosts -->").nth(1).unwrap_or_default();
    let all = format!("{vectors} of {vectors}");
    let cells = table.split('|').map(str::trim).filter(|cell| cell.contains(" of "));
    let found = cells.filter(|cell| *cell != all);
    found.map(|cell| format!("docs/hosts.md: `{cell}`, of {vectors} vectors")).collect()
}

#[test]
fn the_table_of_hosts_counts_all_vectors() {
    let vectors = files::paths();
    let is_vector = |path: &&String| path.starts_with("tests/vectors/") && path.ends_with(".json");
    let vectors = vectors.iter().filter(is_vector).count();
    let page = files::all(&["docs/hosts.md"]);
    let page = &page.first().unwrap().text;
    assert_none(&host_table(page, vectors));
    assert!(host_table(page, vectors + 1).len() > 8, "the table was not found");
}

#[test]
fn lock_files_name_the_public_registry_only() {
    let files = files::all(&["package-lock.json"]);
    assert_none(&files.iter().flat_map(registry).collect::<Vec<_>>());
}

#[test]
fn the_changelog_has_its_shape() {
    let files = files::all(&["CHANGELOG.md"]);
    let changelog_file = files.iter().find(|file| file.path == "CHANGELOG.md").unwrap();
    assert_none(&changelog(&changelog_file.text, env!("CARGO_PKG_VERSION")));
}

#[test]
fn each_rule_for_documents_can_fail() {
    let home = format!("see {}me/somebody/file", "/ho");
    assert_eq!(machine(&File::new("a.md", &home)).len(), 1);
    let inside = format!("see {}{}me/file", "./docs", "/ho");
    assert_eq!(machine(&File::new("a.md", &inside)), Vec::<Finding>::new());
    let lock = |host: &str| format!("  \"resolved\": \"https://{host}/a/-/a-1.tgz\",\n");
    assert_eq!(registry(&File::new("l", &lock("registry.npmjs.org"))), Vec::<Finding>::new());
    assert_eq!(registry(&File::new("l", &lock("mirror.example"))).len(), 1);

    let good = "# Changelog\n\n## 1.0.0 (2026-01-01)\n\nFirst.\n\n### WIT\n\na\n\n\
                ### Store format\n\nb\n\n### Core\n\nc\n\n### Hosts\n\nd\n";
    assert_eq!(changelog(good, "1.0.0"), Vec::<Finding>::new());
    assert_eq!(changelog(good, "2.0.0").len(), 1);
    for (part, other) in
        [("# Changelog", "# Changes"), ("First.", ""), ("\n### Core\n\nc\n", ""), ("\nb\n", "\n")]
    {
        assert_eq!(changelog(&good.replacen(part, other, 1), "1.0.0").len(), 1, "{part:?}");
    }
}
