//! Rules for `wit/`: every item has prose, and the version in which it was added.

use crate::{
    Finding, assert_none,
    files::{self, File},
};

/// Beginning of the line with the version in which an item was added.
const SINCE: &str = "/// @since ";

fn prose(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.trim();
        if line.starts_with("///") {
            comment.push(line);
            continue;
        }
        if let Some(kind) = declaration(line) {
            let place = format!("{}:{number}: `{line}`", file.path);
            if comment.first().is_none_or(|first| first.len() < 8) {
                findings.push(format!("{place} has no prose"));
            } else if kind == Kind::Item && !comment.iter().any(|line| line.starts_with(SINCE)) {
                findings.push(format!("{place} does not say since when"));
            }
        }
        comment.clear();
    }
    findings
}

#[derive(PartialEq)]
enum Kind {
    /// Something that has a name in the package.
    Item,
    /// A field or a case.
    Part,
}

fn declaration(line: &str) -> Option<Kind> {
    let first = line.split_whitespace().next()?;
    match first {
        "package" | "use" | "import" | "export" | "}" | "//" => None,
        "interface" | "world" | "record" | "enum" | "variant" | "flags" | "type" | "resource" => {
            Some(Kind::Item)
        }
        _ if line.contains(": func(") => Some(Kind::Item),
        _ => Some(Kind::Part),
    }
}

#[test]
fn every_item_of_the_interface_has_prose() {
    let mut files = files::all(&[".wit"]);
    files.retain(|file| file.path.starts_with("wit/"));
    assert!(files.iter().any(|file| file.path == "wit/store.wit"), "wit/ is not there");
    assert_none(&files.iter().flat_map(prose).collect::<Vec<_>>());
}

/// The author of a store must read its obligations before its functions.
#[test]
fn the_store_states_its_obligations_before_its_functions() {
    let files = files::all(&["store.wit"]);
    let store = files.iter().find(|file| file.path == "wit/store.wit").unwrap();
    let (before, _) = store.text.split_once("interface store").unwrap();
    for obligation in ["S1", "S2", "S3", "S4", "S5", "S6"] {
        assert!(before.contains(&format!("/// - {obligation}, ")), "{obligation} is gone");
    }
}

#[test]
fn the_rule_for_the_interface_can_fail() {
    let item = |text: &str| prose(&File::new("wit/a.wit", text)).len();
    assert_eq!(item("/// Opens it.\n///\n/// @since 0.1.0\nopen: func();\n"), 0);
    assert_eq!(item("/// Opens it.\nopen: func();\n"), 1);
    assert_eq!(item("open: func();\n"), 1);
    assert_eq!(
        item("/// A pair.\n/// @since 0.1.0\nrecord pair {\n/// One of it.\na: u8,\n}\n"),
        0
    );
    assert_eq!(item("/// A pair.\n/// @since 0.1.0\nrecord pair {\na: u8,\n}\n"), 1);
    assert_eq!(item("///\n/// @since 0.1.0\nenum a {\n"), 1);
}
