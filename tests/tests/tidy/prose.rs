//! Rules for sentences: the documents that a newcomer reads first, and error texts.

use crate::{
    Finding, assert_at_most, assert_none,
    files::{self, File},
};

/// Largest size of the README, in bytes.
const README_BYTES_MAX: usize = 7 << 10;

/// Largest number of words of a sentence.
const SENTENCE_WORDS_MAX: usize = 40;

/// Number of sentences of the interface that may still be longer.
const LONG_SENTENCES_LEFT: usize = 0;

/// Number of error texts that may still name no rule.
const VAGUE_ERRORS_LEFT: usize = 5;

/// Finds a README that is too long to be read.
fn front_page(file: &File) -> Vec<Finding> {
    let bytes = file.text.len();
    let is_long = bytes > README_BYTES_MAX;
    is_long
        .then(|| format!("{}: {bytes} bytes, at most {README_BYTES_MAX}", file.path))
        .into_iter()
        .collect()
}

/// Returns the prose of a document or of an interface: paragraphs without code, tables and
/// headings.
fn paragraphs(file: &File) -> Vec<String> {
    let is_wit = file.path.ends_with(".wit");
    let mut paragraphs = vec![String::new()];
    let mut is_code = false;
    for line in file.text.lines() {
        let line = match is_wit {
            true => line.trim().strip_prefix("///").unwrap_or_default().trim(),
            false => line.trim(),
        };
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let starts = ["#", "|", "```", "<"].iter().any(|mark| line.starts_with(mark));
        let item = line.strip_prefix("- ").or(line.strip_prefix("* "));
        if line.is_empty() || starts || is_code || item.is_some() {
            paragraphs.push(String::new());
        }
        if !starts
            && !is_code
            && let Some(paragraph) = paragraphs.last_mut()
        {
            paragraph.push_str(item.unwrap_or(line));
            paragraph.push(' ');
        }
    }
    paragraphs
}

/// Finds sentences of more than [`SENTENCE_WORDS_MAX`] words.
fn long_sentences(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for paragraph in paragraphs(file) {
        for sentence in paragraph.split_inclusive(". ") {
            let words = sentence.split_whitespace().count();
            if words > SENTENCE_WORDS_MAX {
                let start: Vec<&str> = sentence.split_whitespace().take(8).collect();
                findings.push(format!("{}: {words} words: {} ...", file.path, start.join(" ")));
            }
        }
    }
    findings
}

/// Words with which an error text names the violated rule.
const RULES: [&str; 24] = [
    "must",
    "requires",
    "does not exist",
    "not found",
    "is not",
    "are not",
    "has no",
    "already",
    "cannot",
    "unknown",
    "at most",
    "at least",
    "exclusive",
    "expected",
    "missing",
    "needs",
    "there is no",
    "only",
    "ended",
    "revoked",
    "expired",
    "archived",
    "changed",
    "supported",
];

/// Finds error texts without a rule: literals in the arguments of the constructors of `Error`.
fn vague_errors(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for constructor in ["invalid_input(", "limit_exceeded(", "not_found(", "not_supported("] {
        let call = format!("Error::{constructor}");
        let mut line = 1;
        for (before, behind) in calls(&file.text, &call) {
            line += before.matches('\n').count();
            let Some((arguments, behind)) = behind.split_once('"') else { continue };
            // A literal after a semicolon belongs to another call.
            if arguments.contains(';') {
                continue;
            }
            let literal = behind.split('"').next().unwrap_or_default();
            if has_words(literal) && !RULES.iter().any(|rule| literal.contains(rule)) {
                findings.push(format!("{}:{line}: `{literal}`", file.path));
            }
        }
    }
    findings
}

/// Returns for each `call` the text between the call before and this call, and the text after it.
fn calls<'t>(text: &'t str, call: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (before, behind) = rest.split_once(call)?;
        rest = behind;
        Some((before, behind))
    })
}

/// Returns whether a literal has words outside `{...}`. The texts of the inserted values are
/// elsewhere.
fn has_words(literal: &str) -> bool {
    let mut outside = literal.split('}').filter_map(|part| part.split('{').next());
    outside.any(|part| part.contains(char::is_alphabetic))
}

/// Returns the files of the engine without tests.
fn engine_files() -> Vec<File> {
    let mut files = files::all(&[".rs"]);
    files.retain(|file| {
        let is_engine = |name| file.path.starts_with(&format!("crates/{name}/src/"));
        xtask::structure::ENGINE.iter().any(is_engine) && !file.is_test()
    });
    files
}

fn documents() -> Vec<File> {
    let mut files = files::all(&[".md", ".wit"]);
    files.retain(|file| {
        ["README.md", "ARCHITECTURE.md"].contains(&file.path.as_str())
            || file.path.starts_with("wit/")
    });
    files
}

#[test]
fn the_front_page_is_short() {
    let files = files::all(&["README.md"]);
    assert_none(&front_page(files.iter().find(|file| file.path == "README.md").unwrap()));
}

#[test]
fn sentences_are_short() {
    let (interface, pages): (Vec<File>, Vec<File>) =
        documents().into_iter().partition(|file| file.path.starts_with("wit/"));
    assert_none(&pages.iter().flat_map(long_sentences).collect::<Vec<_>>());
    let findings: Vec<Finding> = interface.iter().flat_map(long_sentences).collect();
    assert_at_most(LONG_SENTENCES_LEFT, &findings);
}

#[test]
fn errors_say_what_must_hold() {
    let findings: Vec<Finding> = engine_files().iter().flat_map(vague_errors).collect();
    assert_at_most(VAGUE_ERRORS_LEFT, &findings);
}

#[test]
fn each_rule_for_prose_can_fail() {
    let long = "word ".repeat(41);
    assert_eq!(front_page(&File::new("README.md", &"a".repeat(7 << 10))), Vec::<Finding>::new());
    assert_eq!(front_page(&File::new("README.md", &"a".repeat((7 << 10) + 1))).len(), 1);
    let good = format!("A sentence. Another.\n\n```text\n{long}\n```\n| {long} |\n");
    assert_eq!(long_sentences(&File::new("README.md", &good)), Vec::<Finding>::new());
    assert_eq!(long_sentences(&File::new("README.md", &format!("{long}."))).len(), 1);
    assert_eq!(long_sentences(&File::new("wit/a.wit", &format!("/// {long}"))).len(), 1);
    let text = |text: &str| format!("Err(Error::invalid_input(\"{text}\"))");
    let good = text("`limit` must be between 1 and 200");
    assert_eq!(vague_errors(&File::new("a.rs", &good)), Vec::<Finding>::new());
    assert_eq!(vague_errors(&File::new("a.rs", &text("target: below 1"))).len(), 1);
    let filled = text("{name}: {fault}");
    assert_eq!(vague_errors(&File::new("a.rs", &filled)), Vec::<Finding>::new());
}
