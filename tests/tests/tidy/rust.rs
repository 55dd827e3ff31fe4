//! Rules for every Rust file: size, ASCII, an opening, no leftovers; and no `std` in the engine.

use xtask::structure::items;

use crate::{
    Finding, assert_none,
    code::{Code, has_word},
    files::{self, File},
};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;

/// Largest number of characters after the end of a text in a long line, as a prompt has.
const TEXT_END_MAX: usize = 3;

/// Macros that say "not finished".
const UNFINISHED: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

fn size(file: &File) -> Vec<Finding> {
    let lines = file.text.lines().count();
    let long = (lines > FILE_LINES_MAX)
        .then(|| format!("{}: {lines} lines, at most {FILE_LINES_MAX}", file.path));
    long.into_iter().collect()
}

fn columns(file: &File) -> Vec<Finding> {
    let code = Code::of(&file.text);
    let mut findings = Vec::new();
    for (number, (line, comment)) in (1..).zip(code.lines.iter().zip(&code.comments)) {
        let beyond = |line: &str| {
            line.chars().skip(COLUMNS_MAX).filter(|character| !character.is_whitespace()).count()
        };
        if beyond(line) > TEXT_END_MAX || beyond(comment) > 0 {
            findings.push(format!("{}:{number}: over {COLUMNS_MAX} columns", file.path));
        }
    }
    findings
}

fn ascii(file: &File) -> Vec<Finding> {
    let lines = (1..).zip(file.text.lines()).filter(|(_, line)| !line.is_ascii());
    lines.map(|(number, _)| format!("{}:{number}: not ASCII", file.path)).collect()
}

/// Finds functions that are too long, from the line with `fn` to that of the closing brace.
fn functions(file: &File) -> Vec<Finding> {
    let code = Code::of(&file.text);
    let mut findings = Vec::new();
    // Functions whose end is not reached: first line, name, number of open braces before it.
    let mut open: Vec<(usize, String, u32)> = Vec::new();
    let mut announced: Option<(usize, String)> = None;
    let mut braces = 0_u32;
    for (number, line) in (1..).zip(&code.lines) {
        if let Some(name) = function_name(line) {
            announced = Some((number, name));
        }
        for character in line.chars() {
            match character {
                '{' => {
                    if let Some((first, name)) = announced.take() {
                        open.push((first, name, braces));
                    }
                    braces += 1;
                }
                '}' => {
                    braces = braces.saturating_sub(1);
                    if open.last().is_some_and(|(_, _, before)| *before == braces) {
                        let (first, name, _) = open.pop().unwrap();
                        let lines = number + 1 - first;
                        if lines > FUNCTION_LINES_MAX {
                            findings
                                .push(format!("{}:{first}: `{name}` has {lines} lines", file.path));
                        }
                    }
                }
                // A semicolon ends a declaration without a body. In a line with `[` it may belong
                // to an array type of a parameter; then the body of the function still follows.
                ';' if announced.is_some() && !line.contains('[') => announced = None,
                _ => {}
            }
        }
    }
    findings
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "fn");
    words.next()?;
    let name = words.next()?;
    Some(name.split(['(', '<']).next().unwrap_or_default().to_owned())
}

/// Finds a file whose first line, after attributes, is no `//!` comment with its purpose.
fn opening(file: &File) -> Vec<Finding> {
    let first = file.text.lines().find(|line| line.starts_with("//!") || is_item(line));
    let opened = first.is_some_and(|line| line.starts_with("//! ") && line.len() > 14);
    let finding = (!opened).then(|| format!("{}:1: does not open with its purpose", file.path));
    finding.into_iter().collect()
}

fn is_item(line: &str) -> bool {
    let starts = ["use ", "mod ", "pub ", "fn ", "const ", "static ", "extern ", "//", "#["];
    starts.iter().any(|start| line.starts_with(start))
}

fn leftovers(file: &File) -> Vec<Finding> {
    let code = Code::of(&file.text);
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(&code.lines) {
        for left in UNFINISHED {
            let name = left.trim_end_matches('!');
            if line.contains(left) && has_word(line, name) {
                findings.push(format!("{}:{number}: `{left}`", file.path));
            }
        }
    }
    findings
}

/// Finds `std` in the engine, which is `no_std`; on the wasm target code with `std` would compile.
fn standard_library(file: &File) -> Vec<Finding> {
    let code = Code::of(&file.text);
    let lines = code.shipped().filter(|(_, line)| has_word(line, "std"));
    lines.map(|(number, _)| format!("{}:{number}: `std` in the engine", file.path)).collect()
}

fn engine_files() -> Vec<File> {
    let mut files = files::all(&[".rs"]);
    let folders = ["crates/lcm-core/src/", "crates/lcm-loops/src/", "crates/lcm-text/src/"];
    files.retain(|file| folders.iter().any(|folder| file.path.starts_with(folder)));
    files
}

#[test]
fn files_are_at_most_800_lines() {
    let files = files::all(&[".rs", ".wit", ".py", ".js", ".mjs", ".ts", ".sh"]);
    assert_none(&files.iter().flat_map(size).collect::<Vec<_>>());
}

#[test]
fn lines_of_code_are_at_most_100_columns() {
    assert_none(&files::all(&[".rs"]).iter().flat_map(columns).collect::<Vec<_>>());
}

#[test]
fn code_is_ascii() {
    assert_none(&files::all(&[".rs", ".wit"]).iter().flat_map(ascii).collect::<Vec<_>>());
}

#[test]
fn functions_are_at_most_70_lines() {
    assert_none(&files::all(&[".rs"]).iter().flat_map(functions).collect::<Vec<_>>());
}

#[test]
fn every_module_opens_with_its_purpose() {
    let mut files = files::all(&[".rs"]);
    // Files that examples of the documentation include are no modules.
    files.retain(|file| !file.path.starts_with("crates/lcm-core/doc/"));
    assert_none(&files.iter().flat_map(opening).collect::<Vec<_>>());
}

#[test]
fn nothing_unfinished_is_left() {
    assert_none(&files::all(&[".rs"]).iter().flat_map(leftovers).collect::<Vec<_>>());
}

#[test]
fn the_engine_does_not_use_the_standard_library() {
    let files = engine_files();
    let shipped = files.iter().filter(|file| !file.is_test());
    assert_none(&shipped.flat_map(standard_library).collect::<Vec<_>>());
    for name in xtask::structure::ENGINE {
        let path = format!("crates/{name}/src/lib.rs");
        let root = files.iter().find(|file| file.path == path).unwrap();
        for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            assert!(root.text.lines().any(|line| line == attribute), "{path}: {attribute} is gone");
        }
    }
}

/// Smallest number of examples in the documentation of the engine's crates.
const EXAMPLES_MIN: usize = 15;

#[test]
fn the_engine_has_examples_in_its_documentation() {
    let mut files = engine_files();
    files.retain(|file| {
        ["crates/lcm-core/", "crates/lcm-text/"].iter().any(|folder| file.path.starts_with(folder))
    });
    let count: usize = files.iter().map(|file| items::count_examples(&file.text)).sum();
    assert!(count >= EXAMPLES_MIN, "{count} examples, at least {EXAMPLES_MIN} are wanted");
}

#[test]
fn each_rule_for_rust_can_fail() {
    let check = |rule: fn(&File) -> Vec<Finding>, good: &str, bad: &str| {
        assert_eq!(rule(&File::new("a.rs", good)), Vec::<Finding>::new());
        assert_eq!(rule(&File::new("a.rs", bad)).len(), 1, "{bad}");
    };
    check(size, &"\n".repeat(800), &"\n".repeat(801));
    check(columns, &"x".repeat(100), &"x".repeat(104));
    check(columns, &format!("a(\"{}\")", "x".repeat(100)), &format!("// {}", "x".repeat(100)));
    check(ascii, "a", "\u{e9}");
    let function = |lines: usize| format!("fn a() {{\n{}}}\n", "{ }\n".repeat(lines - 2));
    check(functions, &function(70), &function(71));
    let method = |lines: usize| format!("impl A {{\n{}}}\n", function(lines));
    check(functions, &method(70), &method(71));
    check(opening, "#![expect(\n    a\n)]\n//! Tests of nothing.\n", "//! Skeleton.\n");
    check(leftovers, "fn todo() {} // todo!()", "fn a() { todo!() }");
    let counts = ["/// ```\n/// a();\n/// ```\n", "/// ```text\n/// a\n/// ```\n"];
    assert_eq!(counts.map(items::count_examples), [1, 0]);
    let test_only = "#![no_std]\n#[cfg(test)]\nmod tests { extern crate std; }\n";
    check(standard_library, test_only, "use std::fmt;\n");
    check(standard_library, test_only, "#[cfg(test)]\nmod tests;\nextern crate std;\n");
}
