//! Checks a summary against its sources, without a model.
//!
//! Input: the source text as the summariser read it, and the answer of a model. Output: findings,
//! each with a kind and a quote. There are two rules.
//!
//! **Names in the answer must occur in the source.** The rule covers identifiers, paths, URLs,
//! versions, numbers and exit codes.
//!
//! - An identifier has mixed letters and digits, underscores or inner capitals, or stands alone in
//!   backticks.
//! - Names are compared by letters and digits, without case, between word boundaries. So the base
//!   name of a path, a relative path and `foo()` are found in the full name. A name may consist of
//!   two pieces that each occur.
//! - Numbers are compared as values, and rounded where the answer rounds (decimals, `12k`, `about`,
//!   another unit).
//! - Whole numbers up to 12 may be counts made by the summary and are not checked. Exit codes and
//!   numbers with a unit of measure, `#` or a currency sign are checked at any size. Of the units
//!   of time, only `ms`, `s` and `sec` count as units of measure.
//! - A time on the full or half hour may be 30 minutes off.
//!
//! **Failures of the source must be mentioned.** A failure is a tool's error or an exit code other
//! than 0. A statement that something failed, crashed, was killed, was aborted or timed out is a
//! failure as well.
//!
//! - A failure is closed when the source later reports a success of the same subject or of
//!   everything, or has a repeated call. If the repeated call fails, that failure is a new one.
//! - The results of calls that only read or search are no failures.
//! - The answer must mention the last 6 failures that are not closed.
//! - A clause of the answer with a word of failure mentions the failures whose subject shares words
//!   with the clause. A clause that shares no words with any failure mentions the failures of its
//!   kind.
//! - A failure without such a clause is inverted by a clause on its subject that reports only a
//!   success, and otherwise omitted.
//!
//! Callers decide how to react to findings. Names of people, claims without a name and omissions
//! other than failures are not checked, because these checks would need an understanding of the
//! text.

mod claims;
pub(crate) mod failing_pieces;
mod failures;
mod finding;
mod numbers;
mod outcomes;
mod source_index;
mod spelled_numbers;
#[cfg(test)]
mod tests;

use alloc::{string::String, vec::Vec};

pub use self::finding::{Finding, FindingKind};
use crate::summary::transcript;

/// Most findings of one answer, so that their lines stay below 2 KiB.
const FINDINGS_MAX: usize = 16;

/// Checks `answer` against `source`. Returns at most 16 findings: failures in the order of the
/// source, then claims in the order of the answer. An answer without findings passes.
///
/// Truncation notes are removed from the answer first.
///
/// ```
/// use lcm_text::summary::verify::{format_findings, verify};
///
/// let source = "[2026-01-02 03:04 user]\nRaise the limit in config.toml to 4096.";
/// assert_eq!(verify(source, "The limit in config.toml becomes 4096."), []);
///
/// let findings = verify(source, "The limit in settings.toml becomes 4096.");
/// assert_eq!(format_findings(&findings), ["path not in the material: settings.toml"]);
/// ```
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
