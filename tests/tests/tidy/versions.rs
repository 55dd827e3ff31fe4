//! One version for every package, and one heading of the changelog for that version.

use crate::{
    Finding, assert_none,
    files::{self, File},
};

/// Files that name the version, with the text before and after the version.
const PLACES: [(&str, &str, &str); 7] = [
    ("Cargo.toml", "[workspace.package]\nversion = \"", "\""),
    ("wit/world.wit", "package lcm:engine@", ";"),
    ("host-examples/node/package.json", "\"version\": \"", "\""),
    ("host-examples/node/package-lock.json", "\"version\": \"", "\""),
    ("host-examples/edge-worker/package.json", "\"version\": \"", "\""),
    ("host-examples/edge-worker/package-lock.json", "\"version\": \"", "\""),
    ("host-examples/python/pyproject.toml", "\nversion = \"", "\""),
];

/// Text before the version of an interface in the sources of a host.
const INTERFACES: [&str; 2] = ["lcm:engine/store@", "lcm:engine/setup@"];

fn versions(files: &[File], version: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, before, behind) in PLACES {
        let file = files.iter().find(|file| file.path == path);
        let text = file.map(|file| file.text.as_str()).unwrap_or_default();
        let rest = text.split_once(before).map(|(_, rest)| rest).unwrap_or_default();
        let found = rest.split(behind).next().unwrap_or_default();
        if found != version {
            findings.push(format!("{path}: version `{found}`, must be `{version}`"));
        }
    }
    for file in files {
        for before in INTERFACES {
            for rest in file.text.split(before).skip(1) {
                let digits = |c: &char| c.is_ascii_digit() || *c == '.';
                let found: String = rest.chars().take_while(digits).collect();
                if !found.is_empty() && found != version {
                    findings.push(format!("{}: `{before}{found}`, must be {version}", file.path));
                }
            }
        }
    }
    findings
}

#[test]
fn every_package_has_the_version_of_the_workspace() {
    let endings = ["Cargo.toml", ".wit", "package.json", "package-lock.json", "pyproject.toml"];
    let mut files = files::all(&endings);
    files.extend(files::all(&[".rs", ".js", ".mjs", ".py"]));
    assert_none(&versions(&files, env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_rule_for_versions_can_fail() {
    let files = |version: &str| -> Vec<File> {
        let text =
            |(path, before, behind)| File::new(path, &format!("\n{before}{version}{behind}"));
        PLACES.map(text).into()
    };
    assert_eq!(versions(&files("1.2.3"), "1.2.3"), Vec::<Finding>::new());
    assert_eq!(versions(&files("1.2.3"), "1.2.4").len(), PLACES.len());
    let mut with_host = files("1.2.3");
    with_host.push(File::new("a.js", &format!("\"{}1.2.2\"", INTERFACES[0])));
    assert_eq!(versions(&with_host, "1.2.3").len(), 1);
}
