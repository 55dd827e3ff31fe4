//! Summaries written by hand, with their sources.
//!
//! A file has several fixtures: `## name`, the source, a line `---`, the summary. In the summary
//! `{{text|other}}` marks the mention of a failure: `text` is correct, and `other` would call the
//! failure a success.

use std::{fs, path::Path};

use regex::Regex;

/// One summary and its source.
pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) source: String,
    marked: String,
}

/// Reads all fixtures of a folder, in the order of their files.
pub(crate) fn read(folder: &str) -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/verifier").join(folder);
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|file| parse(&fs::read_to_string(file).unwrap())).collect()
}

fn parse(text: &str) -> Vec<Fixture> {
    let text = format!("\n{text}");
    let parts = text.split("\n## ").skip(1);
    parts
        .map(|part| {
            let (name, rest) = part.split_once('\n').unwrap();
            let (source, marked) = rest.split_once("\n---\n").unwrap();
            let (source, marked) = (source.trim().to_owned(), marked.trim().to_owned());
            let size = source.chars().count();
            assert!((150..=1700).contains(&size), "{name}: {size} characters");
            Fixture { name: name.to_owned(), source, marked }
        })
        .collect()
}

fn marks() -> Regex {
    Regex::new(r"\{\{([^|}]*)\|([^}]*)\}\}").unwrap()
}

impl Fixture {
    /// Returns the correct summary.
    pub(crate) fn summary(&self) -> String {
        marks().replace_all(&self.marked, "$1").into_owned()
    }

    /// Returns the number of failures that the summary mentions.
    pub(crate) fn failures(&self) -> usize {
        marks().find_iter(&self.marked).count()
    }

    /// Returns the summary without the mention of failure `at`, counted from 0.
    pub(crate) fn without(&self, at: usize) -> String {
        self.with(at, |_| "")
    }

    /// Returns the summary with failure `at` described as a success.
    pub(crate) fn inverted(&self, at: usize) -> String {
        self.with(at, |other| other)
    }

    fn with(&self, at: usize, make: impl Fn(&str) -> &str) -> String {
        let mut number = 0;
        marks()
            .replace_all(&self.marked, |found: &regex::Captures<'_>| {
                number += 1;
                if number == at + 1 { make(&found[2]).to_owned() } else { found[1].to_owned() }
            })
            .into_owned()
    }
}
