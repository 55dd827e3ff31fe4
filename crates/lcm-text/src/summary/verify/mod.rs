//! Checks a summary against its sources, without a model.
//!
//! Input: the source text as the summariser read it, and the answer. Output: findings, each with a
//! kind and a quote. There are two rules.
//!
//! **Names in the answer must occur in the source.** The rule covers identifiers, paths, URLs,
//! versions, numbers and exit codes.
//!
//! - An identifier has mixed letters and digits, underscores or inner capitals, or stands alone in
//!   backticks.
//! - Names are compared by letters and digits, without case, between word boundaries. So a base
//!   name, a relative path and `foo()` equal the full name. A name may consist of two pieces that
//!   each occur.
//! - Numbers are compared as values, and rounded where the text rounds (decimals, `12k`, `about`,
//!   another unit).
//! - Whole numbers up to 12 without unit or sign may be counts made by the summary and are not
//!   checked, except exit codes.
//! - A time on the full or half hour may be 30 minutes off.
//!
//! **Failures of the source must be mentioned.** A failure is a tool's error, an exit code other
//! than 0, or a statement that something failed, crashed, was killed, was aborted or timed out.
//!
//! - A failure is closed when the source later reports a success of the same thing or of the same
//!   call.
//! - A sentence mentions a failure if it has a word of failure and the same subject, or no subject
//!   that failed otherwise.
//! - A sentence on the subject with words of success and none of failure inverts the failure.
//!
//! Callers decide what follows from findings. Names of people, claims without a name and omissions
//! other than failures are not checked, because that would need an understanding of the text.

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

/// Returns the ranges that report failures without taking them back: clauses, and of a clause over
/// `bytes_max` its pieces of at most so many bytes.
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

/// Returns where a piece of at most `bytes_max` bytes ends. A piece ends after a JSON record, so
/// that a success in the next record does not take back a failure in this one; else after a value
/// or a word.
fn find_piece_end(text: &str, bytes_max: usize) -> usize {
    if text.len() <= bytes_max {
        return text.len();
    }
    let most = text.floor_char_boundary(bytes_max).max(text.ceil_char_boundary(1));
    let piece = text.get(..most).unwrap_or(text);
    let place = piece.find('}').or(piece.rfind(',')).or(piece.rfind(' '));
    place.map_or(most, |at| at + 1)
}

/// Most bytes of a finding's quote.
const QUOTE_BYTES_MAX: usize = 80;
/// Most findings of one answer, so that their lines stay below 2 KiB.
const FINDINGS_MAX: usize = 16;

/// The kind of a finding.
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
    /// Returns the description of the kind.
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

/// A claim of an answer that its source does not support, or a failure that the answer drops.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The kind of the finding.
    pub kind: FindingKind,
    /// The piece concerned, on one line, at most 80 bytes.
    pub quote: String,
}

impl Finding {
    fn new(kind: FindingKind, text: &str) -> Self {
        Self { kind, quote: claims::quote_one_line(text, QUOTE_BYTES_MAX) }
    }

    /// Formats the finding as one line.
    #[must_use]
    pub fn to_line(&self) -> String {
        format!("{}: {}", self.kind.as_str(), self.quote)
    }
}

/// Checks `answer` against `source`. Returns at most 16 findings: failures in the order of the
/// source, then claims in the order of the answer. An answer without findings passes.
///
/// Truncation notes are removed from the answer first.
#[must_use]
pub fn verify(source: &str, answer: &str) -> Vec<Finding> {
    let answer = transcript::strip_truncation_notes(answer);
    let mut findings = failures::find_unmentioned_failures(source, &answer);
    findings.extend(claims::SourceFacts::new(source).find_unsupported(&answer));
    findings.truncate(FINDINGS_MAX);
    findings
}

/// Formats findings as lines, less than 2 KiB together.
#[must_use]
pub fn format_findings(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_line).collect()
}
