//! Checks a summary against its sources, without a model.
//!
//! In: the source text as the summariser read it, and the answer. Out: findings, each a kind and
//! the quoted piece. Two rules:
//!
//! **What is named must occur.** Identifiers (mixed letters and digits, underscores, inner
//! capitals, whatever stands alone in backticks), paths, URLs, versions, numbers and exit codes of
//! the answer must occur in the source. Names are compared by their letters and digits, without
//! case, from one boundary of a word to another, so that a base name, a relative path, `foo()` and
//! another style of writing are the same name; a name may be put together of two pieces that each
//! occur. Numbers are compared as values, rounded where they say so (decimals, `12k`, `about`,
//! another unit). Whole numbers up to 12 without unit or sign are counts that the summary may have
//! made itself and are not checked, unless they are exit codes. A time on the full or half hour may
//! be 30 minutes off.
//!
//! **What failed must not vanish.** An outcome of the source that is a failure (a tool's error, an
//! exit code other than 0, a statement that something failed, crashed, was killed, was aborted or
//! timed out) must be mentioned as one, unless the source says later that the same thing went well
//! or the same call later did. A failure is mentioned by a sentence with a word of failure about
//! the same subject, or about nothing else that failed. A sentence about its subject with words of
//! success and none of failure is the failure turned into success.
//!
//! What follows from findings is deliberately not here, and so is everything that would need to
//! understand the text: names of people, claims without a name, what was left out but for failures.

mod claims;
mod failures;
mod numbers;
mod outcomes;
mod source_index;
mod spelled_numbers;
#[cfg(test)]
mod tests;

use alloc::{format, string::String, vec::Vec};
use core::ops::Range;

use crate::summary::transcript;

/// Where a text reports failures that nothing in the same clause takes back: clauses, and of a
/// clause over `bytes_max` the pieces of at most so many bytes that report one.
pub(crate) fn find_failing_pieces(text: &str, bytes_max: usize) -> Vec<Range<usize>> {
    let lexicon = outcomes::OutcomeLexicon::new();
    let mut keys = Vec::new();
    let mut fails = |piece: &str| {
        keys.clear();
        lexicon.read_clause(piece, &mut keys).is_failure()
    };
    let mut found = Vec::new();
    let mut line_from = 0;
    for line in text.split_inclusive('\n') {
        // Clauses follow one another without a gap.
        let mut from = line_from;
        outcomes::for_each_clause(line, &mut |clause, _| {
            let end = from + clause.len();
            while from < end {
                let rest = text.get(from..end).unwrap_or("");
                let piece = rest.get(..find_piece_end(rest, bytes_max)).unwrap_or(rest);
                if fails(piece) {
                    found.push(from..from + piece.len());
                }
                from += piece.len();
            }
        });
        line_from += line.len();
    }
    found
}

/// Where a piece of at most so many bytes ends: behind a record of JSON, so that what went well in
/// the next does not take back what failed in this; else behind a value or a word.
fn find_piece_end(text: &str, bytes_max: usize) -> usize {
    if text.len() <= bytes_max {
        return text.len();
    }
    let most = text.floor_char_boundary(bytes_max).max(text.ceil_char_boundary(1));
    let piece = text.get(..most).unwrap_or(text);
    let place = piece.find('}').or(piece.rfind(',')).or(piece.rfind(' '));
    place.map_or(most, |at| at + 1)
}

/// Most bytes of the piece that a finding quotes.
const QUOTE_BYTES_MAX: usize = 80;
/// Most findings of one answer, so that their lines stay below 2 KiB.
const FINDINGS_MAX: usize = 16;

/// What is wrong with a piece of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FindingKind {
    /// An exit code that the source does not report.
    ExitCode,
    /// A failure of the source that the answer does not mention; the quote is the source's.
    FailureDropped,
    /// A failure of the source that the answer calls a success; the quote is the answer's.
    FailureInverted,
    /// An identifier that does not occur.
    Identifier,
    /// A number that does not occur.
    Number,
    /// A path that does not occur.
    Path,
    /// A URL that does not occur.
    Url,
    /// A version that does not occur.
    Version,
}

impl FindingKind {
    /// What is wrong, in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExitCode => "exit code not in the material",
            Self::FailureDropped => "failure left out",
            Self::FailureInverted => "failure told as a success",
            Self::Identifier => "identifier not in the material",
            Self::Number => "number not in the material",
            Self::Path => "path not in the material",
            Self::Url => "URL not in the material",
            Self::Version => "version not in the material",
        }
    }

    const fn as_u8(self) -> u8 {
        match self {
            Self::ExitCode => 0,
            Self::FailureDropped => 1,
            Self::FailureInverted => 2,
            Self::Identifier => 3,
            Self::Number => 4,
            Self::Path => 5,
            Self::Url => 6,
            Self::Version => 7,
        }
    }
}

/// One thing that is wrong with an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The piece that it is wrong with, on one line, of at most 80 bytes.
    pub quote: String,
}

impl Finding {
    fn new(kind: FindingKind, text: &str) -> Self {
        Self { kind, quote: claims::quote_one_line(text, QUOTE_BYTES_MAX) }
    }

    /// The finding on one line.
    #[must_use]
    pub fn to_line(&self) -> String {
        format!("{}: {}", self.kind.as_str(), self.quote)
    }
}

/// Checks `answer` against `source`: failures in the order of the source, then pieces in the order
/// of the answer, at most 16 together; none: it passes.
///
/// The notes that say that an answer was cut are not part of it.
#[must_use]
pub fn verify(source: &str, answer: &str) -> Vec<Finding> {
    let answer = transcript::strip_truncation_notes(answer);
    let mut findings = failures::find_unmentioned_failures(source, &answer);
    findings.extend(claims::SourceFacts::new(source).find_unsupported(&answer));
    findings.truncate(FINDINGS_MAX);
    findings
}

/// The findings as lines, less than 2 KiB together.
#[must_use]
pub fn format_findings(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_line).collect()
}
