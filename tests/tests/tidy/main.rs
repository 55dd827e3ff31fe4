//! Gates over the text of the project: what every file must be, whatever it does.
//!
//! In: every file of the workspace that a person wrote. Out: a failure that lists file, line and
//! rule. A rule is a function from text to findings, and each has a test beside it that shows it
//! can fail. What the code does is not looked at here.
#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

mod code;
mod documents;
mod files;
mod hosts;
mod interface;
mod policy;
mod prose;
mod references;
mod rust;
mod structure;
mod versions;
mod vocabulary;

/// One thing that is wrong: where, and what.
type Finding = String;

/// Fails when there are more findings than a rule still puts up with. The number only falls;
/// where it is 0, the rule becomes [`assert_none`].
#[track_caller]
fn assert_at_most(most: usize, findings: &[Finding]) {
    let count = findings.len();
    assert!(count <= most, "{count} findings, at most {most}:\n{}", findings.join("\n"));
}

/// Fails with every finding at once, so that one run shows all there is to do.
#[track_caller]
fn assert_none(findings: &[Finding]) {
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}
