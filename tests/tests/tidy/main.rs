//! Gates over the text of the project: rules for every file, independent of its purpose.
//!
//! In: every file of the workspace that a person wrote. Out: a failure that lists file, line and
//! rule. A rule is a function from text to findings; beside each rule a test shows that the rule
//! can fail. The behaviour of the code is not tested here.
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

/// One violation of a rule: its place and a description.
type Finding = String;

/// Fails if there are more findings than a rule still allows. A change may only lower the number;
/// at 0 the rule uses [`assert_none`].
#[track_caller]
fn assert_at_most(most: usize, findings: &[Finding]) {
    let count = findings.len();
    assert!(count <= most, "{count} findings, at most {most}:\n{}", findings.join("\n"));
}

/// Fails with all findings at once, so that one run shows everything.
#[track_caller]
fn assert_none(findings: &[Finding]) {
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}
