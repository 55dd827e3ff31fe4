//! Host code: equal runs, loose types in public signatures, and the code that drives the engine.
//!
//! | measure | definition |
//! |---|---|
//! | line of code | not blank, no comment, no docstring, no test; spaces at both ends removed |
//! | equal run | lines of code that follow each other in two files of one language |
//! | loose TypeScript type | the type `any` or `unknown` in a `.d.ts` file of the package |
//! | loose Python type | the word `Any` in a public signature or field |
//! | driving code | the files of [`DRIVING`], which carry out the engine's instructions |
//!
//! Driving code excludes stores, models, declared shapes and public signatures. Options, reports
//! and instructions are types of the interface, as in `types.d.ts` of Node and `results.py` of
//! Python. The signatures of verbs are in `verbs.rs` of Rust and `verbs/` of Python.
//!
//! A Python name is public if the name and its class start without `_`, and its file defines an
//! exported name or is in `verbs/`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context as _, Result};

/// Folders of the hosts, by the file ending of their language.
const HOSTS: [(&str, &[&str]); 3] = [
    (".rs", &["crates/lcm-host/src", "crates/lcm-cli/src", "host-examples/rust"]),
    (".js", &["host-examples/node", "host-examples/edge-worker"]),
    (".py", &["host-examples/python", "host-examples/kit"]),
];

/// For each host the folder of its package, and the files with driving code.
pub const DRIVING: [(&str, &str, &[&str]); 3] = [
    ("Rust", "crates/lcm-host/src", &["drive/mod.rs", "drive/turn.rs"]),
    ("Node", "host-examples/node/src", &["intake.js", "compact.js", "drive.js"]),
    ("Python", "host-examples/python/src/lcm_engine", &["intake.py", "compaction.py", "drive.py"]),
];

const PYTHON_PACKAGE: &str = "host-examples/python/src/lcm_engine";

/// Folders of generated files, dependencies and tests.
const SKIPPED: [&str; 9] = [
    "node_modules",
    "dist",
    "build",
    "generated",
    "target",
    "__pycache__",
    ".venv",
    "test",
    "tests",
];

/// The lines of code of one file.
pub struct CodeLines {
    /// Path below the checkout.
    pub path: String,
    /// Line number, from 1, and text of each line of code.
    pub lines: Vec<(usize, String)>,
}

/// Lines of code that two files share.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EqualRun {
    /// One file and its first line of the run.
    pub first: (String, usize),
    /// The other file and its first line of the run.
    pub second: (String, usize),
    /// Lines of code of the run.
    pub lines: usize,
}

/// Returns the lines of code of the hosts in one language each.
///
/// # Errors
///
/// When a file cannot be read.
pub fn read_hosts(root: &Path) -> Result<Vec<Vec<CodeLines>>> {
    let mut languages = Vec::new();
    for (ending, folders) in HOSTS {
        let mut files = Vec::new();
        for folder in folders {
            read_folder(root, folder, ending, &mut files)?;
        }
        languages.push(files);
    }
    Ok(languages)
}

fn read_folder(root: &Path, folder: &str, ending: &str, files: &mut Vec<CodeLines>) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return Ok(()) };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    for name in names {
        let path = format!("{folder}/{name}");
        let full = root.join(&path);
        let test = name.starts_with("test") || name.contains(".test.");
        if full.is_dir() && !full.is_symlink() && !SKIPPED.contains(&name.as_str()) {
            read_folder(root, &path, ending, files)?;
        } else if full.is_file() && name.ends_with(ending) && !test {
            let lines = code_lines(&std::fs::read_to_string(&full)?, ending);
            files.push(CodeLines { path, lines });
        }
    }
    Ok(())
}

/// Returns the lines of code of a text; `ending` names the language.
#[must_use]
pub fn code_lines(text: &str, ending: &str) -> Vec<(usize, String)> {
    let python = ending == ".py";
    let mut lines = Vec::new();
    let mut in_comment = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if ending == ".rs" && line == "#[cfg(test)]" {
            break;
        }
        let marks = if python { line.matches("\"\"\"").count() } else { 0 };
        let starts = if python { line.starts_with("\"\"\"") } else { line.starts_with("/*") };
        let comment = line.starts_with(if python { "#" } else { "//" });
        if in_comment {
            in_comment = if python { marks == 0 } else { !line.contains("*/") };
        } else if starts {
            in_comment = if python { marks == 1 } else { !line.contains("*/") };
        } else if !line.is_empty() && !comment {
            lines.push((number, line.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    lines
}

/// Returns the runs of more than `most` lines that two of `files` share.
#[must_use]
pub fn equal_runs(files: &[CodeLines], most: usize) -> Vec<EqualRun> {
    let mut places = BTreeMap::<Vec<&str>, Vec<(usize, usize)>>::new();
    for (file, code) in files.iter().enumerate() {
        for (start, window) in code.lines.windows(most + 1).enumerate() {
            let window = window.iter().map(|(_, line)| line.as_str()).collect();
            places.entry(window).or_default().push((file, start));
        }
    }
    let line = |file: usize, at: usize| files.get(file).and_then(|code| code.lines.get(at));
    let equal = |a: (usize, usize), b: (usize, usize)| match (line(a.0, a.1), line(b.0, b.1)) {
        (Some(a), Some(b)) => a.1 == b.1,
        _ => false,
    };
    let mut runs = Vec::new();
    for starts in places.values() {
        for (index, &a) in starts.iter().enumerate() {
            for &b in starts.iter().skip(index + 1).filter(|b| b.0 != a.0) {
                // Skip pairs inside a longer run: a run starts where the lines before differ.
                let before = a.1.checked_sub(1).zip(b.1.checked_sub(1));
                if before.is_some_and(|(in_a, in_b)| equal((a.0, in_a), (b.0, in_b))) {
                    continue;
                }
                let length = (0..).take_while(|step| equal((a.0, a.1 + step), (b.0, b.1 + step)));
                let place = |at: (usize, usize)| {
                    let path = files.get(at.0).map(|code| code.path.clone()).unwrap_or_default();
                    (path, line(at.0, at.1).map_or(0, |line| line.0))
                };
                runs.push(EqualRun { first: place(a), second: place(b), lines: length.count() });
            }
        }
    }
    runs
}

/// Returns the loose types of the package for Node: file, line and text.
///
/// # Errors
///
/// When a file cannot be read.
pub fn loose_typescript(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    read_folder(root, "host-examples/node", ".d.ts", &mut files)?;
    Ok(files.iter().flat_map(|file| loose_lines(file, &["any", "unknown"])).collect())
}

/// Returns a finding for each of `words` in the code of `file`.
fn loose_lines(file: &CodeLines, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in &file.lines {
        // Literals and, in TypeScript, names of fields do not count as types.
        let typescript = file.path.ends_with(".d.ts");
        let code = line.split("//").next().unwrap_or_default();
        let code: String = code.split('"').step_by(2).collect::<Vec<_>>().join(" ");
        let parts = code.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_' || c == '?'));
        let types = parts.filter(|part| !(typescript && part.ends_with(':')));
        let all = types.map(|part| part.trim_matches(|c: char| !(c.is_alphanumeric() || c == '_')));
        for word in all.filter(|word| words.contains(word)) {
            found.push(format!("{}:{number}: `{word}` in `{line}`", file.path));
        }
    }
    found
}

/// Returns the loose types of the package for Python: file, line and text.
///
/// # Errors
///
/// When a file cannot be read.
pub fn loose_python(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    read_python(root, PYTHON_PACKAGE, &mut files)?;
    let package = files.iter().find(|(path, _)| path == &format!("{PYTHON_PACKAGE}/__init__.py"));
    let exported = package.map(|(_, text)| exported_names(text)).unwrap_or_default();
    let mut found = Vec::new();
    for (path, text) in &files {
        if path.contains("/verbs/") || defines(text, &exported) {
            let lines = public_signatures(text);
            found.extend(loose_lines(&CodeLines { path: path.clone(), lines }, &["Any"]));
        }
    }
    Ok(found)
}

fn read_python(root: &Path, folder: &str, files: &mut Vec<(String, String)>) -> Result<()> {
    let mut code = Vec::new();
    read_folder(root, folder, ".py", &mut code)?;
    for file in code {
        let text = std::fs::read_to_string(root.join(&file.path))?;
        files.push((file.path, text));
    }
    Ok(())
}

/// Returns the quoted names of `__all__`.
fn exported_names(text: &str) -> BTreeSet<&str> {
    let list = text.split_once("__all__").map_or("", |(_, list)| list);
    list.split('"').skip(1).step_by(2).collect()
}

fn defines(text: &str, names: &BTreeSet<&str>) -> bool {
    text.lines().any(|line| {
        let mut words =
            line.split(|character: char| !(character.is_alphanumeric() || character == '_'));
        match words.next() {
            Some("class" | "def") => words.next().is_some_and(|name| names.contains(name)),
            Some("async") => words.nth(1).is_some_and(|name| names.contains(name)),
            // `Name = Literal[...]`.
            Some(name) => names.contains(name) && line.contains(" = "),
            None => false,
        }
    })
}

/// Returns the lines of public signatures and public fields, with their numbers.
fn public_signatures(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    // Columns of the open definitions, and whether each is a private class or a function.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut in_signature = false;
    for (number, line) in code_lines_indented(text) {
        let indent = line.len() - line.trim_start().len();
        let code = line.trim();
        if !in_signature {
            while open.last().is_some_and(|(column, _)| *column >= indent) && !code.starts_with(')')
            {
                open.pop();
            }
        }
        let hidden = open.iter().any(|(_, hidden)| *hidden);
        let definition = code.strip_prefix("async ").unwrap_or(code);
        if in_signature {
            lines.push((number, code.to_owned()));
        } else if let Some(name) = definition.strip_prefix("def ") {
            open.push((indent, true));
            in_signature = !hidden && (!name.starts_with('_') || name.starts_with("__init__"));
            if in_signature {
                lines.push((number, code.to_owned()));
            }
        } else if let Some(name) = definition.strip_prefix("class ") {
            open.push((indent, name.starts_with('_')));
        } else if !hidden && !code.starts_with('_') && is_field(code) {
            lines.push((number, code.to_owned()));
        }
        if in_signature && code.ends_with(':') {
            in_signature = false;
        }
    }
    lines
}

/// Returns whether a line declares a field (`name: type`) or an alias (`Name = ...`).
fn is_field(code: &str) -> bool {
    let name = code.chars().take_while(|c| c.is_alphanumeric() || *c == '_').count();
    let rest: String = code.chars().skip(name).take(3).collect();
    name > 0 && (rest.starts_with(": ") || rest == " = ")
}

fn code_lines_indented(text: &str) -> Vec<(usize, String)> {
    let kept: BTreeSet<usize> = code_lines(text, ".py").into_iter().map(|(line, _)| line).collect();
    let lines = (1..).zip(text.lines()).filter(|(number, _)| kept.contains(number));
    lines.map(|(number, line)| (number, line.to_owned())).collect()
}

/// The files of one host that drive the engine.
pub struct DrivingCode {
    /// Language of the host.
    pub host: &'static str,
    /// Path and lines of code of each file.
    pub files: Vec<(String, usize)>,
}

/// Returns the driving files of each host.
///
/// # Errors
///
/// When a file cannot be read.
pub fn driving_code(root: &Path) -> Result<Vec<DrivingCode>> {
    let mut hosts = Vec::new();
    for (host, folder, names) in DRIVING {
        let mut files = Vec::new();
        for name in names {
            let path = format!("{folder}/{name}");
            let ending = name.find('.').and_then(|at| name.get(at..)).unwrap_or_default();
            let text = std::fs::read_to_string(root.join(&path))
                .with_context(|| format!("reading {path}"))?;
            files.push((path, code_lines(&text, ending).len()));
        }
        hosts.push(DrivingCode { host, files });
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(path: &str, lines: &[&str]) -> CodeLines {
        let lines = (1..).zip(lines).map(|(number, line)| (number, (*line).to_owned()));
        CodeLines { path: path.to_owned(), lines: lines.collect() }
    }

    #[test]
    fn equal_runs_are_found_once() {
        let files = [
            code("a", &["x", "1", "2", "3", "4", "y"]),
            code("b", &["1", "2", "3", "4", "z"]),
            code("c", &["2", "3"]),
        ];
        let run = EqualRun { first: ("a".into(), 2), second: ("b".into(), 1), lines: 4 };
        assert_eq!(equal_runs(&files, 2), [run]);
        assert!(equal_runs(&files, 4).is_empty());
    }

    #[test]
    fn comments_are_no_code() {
        let text = "// a\n\n/** b\n * c\n */\nlet  d = 1; // e\n";
        assert_eq!(code_lines(text, ".js"), [(6, "let d = 1; // e".to_owned())]);
        let text = "\"\"\"a\n\nb\n\"\"\"\n# c\nd = 1\n\"\"\"e\"\"\"\nf = 2\n";
        let numbers: Vec<usize> = code_lines(text, ".py").into_iter().map(|line| line.0).collect();
        assert_eq!(numbers, [6, 8]);
    }

    #[test]
    fn loose_types_are_those_of_public_signatures() {
        let text = "class A:\n    b: Any\n    _c: Any\n\n    def d(\n        self, e: Any\n    ) -> Any:\n\
                    \x20       f: Any = 1\n        return f\n\n    def _g(self) -> Any:\n        pass\n\
                    class _H:\n    i: Any\n\ndef j() -> Any:\n    pass\n";
        let lines = public_signatures(text);
        let found = loose_lines(&CodeLines { path: "a.py".into(), lines }, &["Any"]);
        assert_eq!(found.len(), 4, "{found:#?}");
        let lines = ["a: any[]; // any", "b: Record<string, unknown>;", "any?: c | \"unknown\""];
        let types = code("a.d.ts", &lines);
        assert_eq!(loose_lines(&types, &["any", "unknown"]).len(), 2);
        assert!(defines("class A:\n", &exported_names("__all__ = [\"A\"]")));
    }
}
