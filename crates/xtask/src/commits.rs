//! The rules for the subject of a commit.
//!
//! In: the commits after the base that `.ci/commits-base` names. Out: every finding. Merges are
//! skipped, because git writes their subjects.

use anyhow::{Context as _, Result, ensure};

use crate::workspace::{self, Workspace};

/// The longest subject, in characters.
const SUBJECT_CHARS_MAX: usize = 72;

/// Imperatives that end like a participle or a third person.
const VERBS: [&str; 25] = [
    "Access", "Address", "Alias", "Assess", "Bless", "Bring", "Bypass", "Canvass", "Compress",
    "Cross", "Discuss", "Embed", "Exceed", "Express", "Feed", "Focus", "Pass", "Ping", "Press",
    "Proceed", "Process", "Seed", "Shed", "Speed", "Suppress",
];

/// Capitalised first words that are not verbs.
const NO_VERBS: [&str; 22] = [
    "A", "All", "An", "Any", "Both", "Each", "Every", "How", "If", "In", "It", "No", "On", "One",
    "That", "The", "These", "This", "What", "When", "Where", "Which",
];

/// Checks the subjects of all commits after the base.
///
/// # Errors
///
/// When git fails or a subject breaks a rule.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(&workspace.root).args(arguments);
        workspace::capture(&mut command)
    };
    if !workspace.root.join(".git").exists() {
        println!("no history: this is a copy of the files");
        return Ok(());
    }
    let file = std::fs::read_to_string(workspace.root.join(".ci/commits-base"));
    let base = base(&file.context("reading .ci/commits-base")?)?;
    let range = format!("{base}..HEAD");
    let log = ["log", "--no-merges", "--format=%h %s"];
    let history = git(&["rev-list", "HEAD"])?;
    let subjects = if history.lines().any(|commit| commit == base) {
        git(&[&log[..], &[&range]].concat())?
    } else {
        // A shallow clone does not contain the base. All its first-parent commits are newer than
        // the base, but commits of side branches may be older, so they are not checked.
        git(&[&log[..], &["--first-parent", "HEAD"]].concat())?
    };
    let findings = check_log(&subjects);
    ensure!(findings.is_empty(), "subjects of commits:\n{}", findings.join("\n"));
    println!("{} subjects of commits", subjects.lines().count());
    Ok(())
}

/// Reads the commit in the text of `.ci/commits-base`; `#` starts a comment.
fn base(text: &str) -> Result<String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let base =
        lines.find(|line| !line.is_empty()).context(".ci/commits-base must name a commit")?;
    let full = base.len() == 40 && base.chars().all(|character| character.is_ascii_hexdigit());
    ensure!(full, ".ci/commits-base: `{base}` must have 40 hex digits");
    Ok(base.to_owned())
}

/// Returns the findings of a log with a line `ID SUBJECT` for every commit.
fn check_log(log: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for line in log.lines() {
        let (commit, subject) = line.split_once(' ').unwrap_or((line, ""));
        let wrong = check_subject(subject);
        findings.extend(wrong.map(|rule| format!("{commit} \"{subject}\" {rule}")));
    }
    findings
}

/// Returns the rule that a subject breaks, if any.
fn check_subject(subject: &str) -> Option<String> {
    let first: &str = subject.split([' ', ':', ',']).next().unwrap_or_default();
    let length = subject.chars().count();
    if length > SUBJECT_CHARS_MAX {
        return Some(format!("must have at most {SUBJECT_CHARS_MAX} characters, has {length}"));
    }
    if subject.ends_with('.') {
        return Some("must not end with a full stop".to_owned());
    }
    if !first.chars().next().is_some_and(|character| character.is_ascii_uppercase()) {
        return Some("must begin with a capital".to_owned());
    }
    let ending = ["ed", "ing", "s"].into_iter().find(|ending| first.ends_with(ending));
    let imperative = VERBS.contains(&first) || (ending.is_none() && !NO_VERBS.contains(&first));
    (!imperative).then(|| format!("must begin with a verb in the imperative, not `{first}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_short_and_imperative() {
        for good in [
            "Move replay check into the core",
            "Process answers in order",
            "Embed the component",
            "Read v1.2",
        ] {
            assert_eq!(check_subject(good), None, "{good}");
        }
        let longest = format!("Add {}", "x".repeat(SUBJECT_CHARS_MAX - 4));
        assert_eq!(check_subject(&longest), None);
        for bad in [
            &format!("{longest}x"),
            "Move replay check into the core.",
            "move replay check",
            "Moved the replay check",
            "Moving the replay check",
            "Moves the replay check",
            "The replay check is in the core",
            "",
            "fix: replay",
        ] {
            assert!(check_subject(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn every_commit_of_a_log_is_looked_at() {
        let log = "aaaaaaa Add a\nbbbbbbb Added b\nccccccc Drop c\nddddddd\n";
        let findings = check_log(log);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings.iter().any(|finding| finding.starts_with("bbbbbbb \"Added b\" must")));
    }

    #[test]
    fn the_base_is_one_whole_commit() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(base(&format!("# Why.\n\n{id}\n")).unwrap(), id);
        assert!(base("# Why.\n").is_err());
        assert!(base("0123456\n").is_err());
    }
}
