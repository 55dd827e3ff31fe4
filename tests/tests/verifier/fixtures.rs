//! Summaries written by hand, with their sources.
//!
//! A file holds several: `## name`, the source, a line `---`, the summary. In the summary a piece
//! `{{text|other}}` is the mention of a failure, and what would tell it as a success.

use std::{fs, path::Path};

use regex::Regex;

/// One summary and its source.
pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) source: String,
    marked: String,
}

/// All fixtures of a folder, in the order of their files.
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
    /// The summary as it should be.
    pub(crate) fn summary(&self) -> String {
        marks().replace_all(&self.marked, "$1").into_owned()
    }

    /// Failures that the summary mentions.
    pub(crate) fn failures(&self) -> usize {
        marks().find_iter(&self.marked).count()
    }

    /// The summary without one of its failures.
    pub(crate) fn without(&self, at: usize) -> String {
        self.with(at, |_| "")
    }

    /// The summary with one of its failures told as a success.
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
