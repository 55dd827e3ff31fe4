//! Tests of each rule of the verifier with small texts. `docs/verifier.md` has measurements of how
//! often the verifier is wrong.

use alloc::format;

use super::*;

fn check(source: &str, answer: &str) -> Vec<String> {
    format_findings(&verify(source, answer))
}

/// Asserts that the answer passes, and that it fails if one of `false_forms` replaces `piece`.
fn holds(source: &str, answer: &str, piece: &str, false_forms: &[&str]) {
    assert_eq!(check(source, answer), [""; 0], "{answer}");
    assert!(answer.contains(piece), "{answer}");
    for form in false_forms {
        let other = answer.replace(piece, form);
        assert!(!check(source, &other).is_empty(), "{other}");
    }
}

#[test]
fn names_are_compared_by_their_letters_and_digits() {
    let source = "[2026-05-03 10:00 user]\nOpen ./src/auth/login.rs:42, see `fn parse_config` and \
        crate::net::HttpPool (commit 3f9c2ab81d), user getUserById in https://a.example/docs?x=1.";
    for answer in [
        "login.rs and auth/login.rs.",
        "parseConfig(), parse_config and `parse_config()`.",
        "net::HttpPool, HttpPools",
        "commit 3f9c2ab",
        "https://a.example/docs.",
        "src/auth/login.rs:42",
        "getUserById's argument",
    ] {
        assert_eq!(check(source, answer), [""; 0], "{answer}");
    }
    holds(source, "see src/auth/login.rs", "login", &["logout", "signin"]);
    holds(source, "call getUserById", "ById", &["ByName", "s_all"]);
    holds(source, "commit 3f9c2ab", "3f9c2ab", &["3f9c2ac", "9f9c2ab"]);
    holds(source, "https://a.example/docs", "docs", &["help"]);
    assert_eq!(check(source, "In `vault-api`."), ["identifier not in the material: vault-api"]);
}

#[test]
fn numbers_are_compared_as_values() {
    let source =
        "1,234,567 rows in 3187 ms, 12.5 %, 18,4 GB, twenty-five people, 0.9731, 90 minutes";
    for answer in [
        "1234567 rows, about 1.2 million, 1.23M",
        "3.2 s and 3,187 ms",
        "12.5% or 12.5 percent",
        "18.4 GB for 25 people",
        "97.3% in 1.5 hours",
        "2 parts, 3 files, 12 people",
        "1. first\n2. second",
    ] {
        assert_eq!(check(source, answer), [""; 0], "{answer}");
    }
    holds(source, "there are 1,234,567 rows", "1,234", &["1,243", "1,134", "2,234"]);
    holds(source, "it took 3187 ms", "3187", &["3178", "4187", "31"]);
    holds(source, "it is 97.3%", "97.3", &["97.8", "93.7"]);
    assert_eq!(check(source, "It is 7%."), ["number not in the material: 7"]);
}

#[test]
fn times_and_dates_are_written_in_many_ways() {
    let source = "[2026-05-03 14:22 user]\nMeet on May 9 at 2:05 pm, back at half past nine.";
    for answer in [
        "On 2026-05-09 at 14:05.",
        "9 May, around 2 pm",
        "on 9.5. at 2:05 pm, from 9:30",
        "about 14:30 on 2026-05-03",
    ] {
        assert_eq!(check(source, answer), [""; 0], "{answer}");
    }
    holds(source, "at 14:05", "14:05", &["14:07", "15:05", "44:05"]);
    holds(source, "on 2026-05-09", "05-09", &["05-29", "07-09"]);
}

#[test]
fn versions_and_exit_codes_are_exact() {
    let source = "Python 3.11.4, v1.39.7; the job ended with exit code 3, retries: 2";
    holds(source, "1.39.7 ended with exit code 3", "1.39.7", &["1.38.7", "1.39.8"]);
    holds(source, "it ended with exit code 3", "3", &["2", "4"]);
    assert_eq!(check(source, "exited with 2"), ["exit code not in the material: 2"]);
}

const DEPLOY: &str = "[2026-05-03 10:00 assistant]\ntool call deploy: {\"service\":\"billing\"}\n\n\
    [2026-05-03 10:01 tool]\ntool result deploy:\nprobe failed: HTTP 503\nexit code: 1";

#[test]
fn a_failure_must_be_mentioned_as_one() {
    assert_eq!(check(DEPLOY, "Deploying billing failed with exit code 1."), [""; 0]);
    assert_eq!(check(DEPLOY, "Billing could not be deployed."), [""; 0]);
    assert_eq!(check(DEPLOY, "We looked around."), ["failure left out: probe failed: HTTP 503"]);
    assert_eq!(
        check(DEPLOY, "Billing was deployed successfully."),
        ["failure told as a success: Billing was deployed successfully."]
    );
}

#[test]
fn a_negative_exit_code_is_a_failure() {
    for code in ["exit code -1073741819", "exit code: -1", "exited with -9"] {
        let source = DEPLOY.replace("probe failed: HTTP 503\nexit code: 1", code);
        assert_eq!(check(&source, "We looked around."), [format!("failure left out: {code}")]);
    }
    let source = DEPLOY.replace("probe failed: HTTP 503\nexit code: 1", "exit code -0");
    assert_eq!(check(&source, "We looked around."), [""; 0]);
}

#[test]
fn what_was_resolved_need_not_be_mentioned() {
    let again = "\n\n[2026-05-03 10:04 assistant]\ntool call deploy: {\"service\":\"billing\"}\n\n\
        [2026-05-03 10:05 tool]\ntool result deploy:\nall pods healthy";
    let said = "\n\n[2026-05-03 10:05 assistant]\nThe deploy of billing works now.";
    for later in [again, said] {
        assert_eq!(check(&format!("{DEPLOY}{later}"), "Billing is deployed."), [""; 0]);
    }
    let other = "\n\n[2026-05-03 10:05 assistant]\nThe import of members completed.";
    assert_eq!(check(&format!("{DEPLOY}{other}"), "Members are imported.").len(), 1);
}

#[test]
fn what_is_asked_feared_or_searched_is_no_outcome() {
    for source in [
        "[2026-05-03 10:00 user]\nWhat does the 401 error mean? And if the webhook failed?",
        "[2026-05-03 10:00 assistant]\nIf the probe fails, it might be killed. I retry failed jobs.",
        "[2026-05-03 10:00 assistant]\nNo test failed, 0 errors, nothing crashed.",
        "[2026-05-03 10:00 assistant]\ntool call grep: {\"pattern\":\"x\"}\n\n\
            [2026-05-03 10:00 tool]\ntool result grep:\nlog.txt: request failed: timed out",
    ] {
        assert_eq!(check(source, "Nothing of note."), [""; 0], "{source}");
    }
}

#[test]
fn two_failures_are_two() {
    let source = "[2026-05-03 10:00 assistant]\nThe iOS upload was aborted because of a profile.\n\
        The Android upload timed out after 900 s.";
    let both = "The iOS upload was aborted for its profile; the Android upload timed out.";
    assert_eq!(check(source, both), [""; 0]);
    assert_eq!(check(source, "The iOS upload was aborted for its profile.").len(), 1);
    assert_eq!(check(source, "The Android upload timed out.").len(), 1);
}

#[test]
fn findings_are_bounded_and_always_the_same() {
    let answer: String =
        (0..400).map(|n| format!("id_{n}x see /a/b{n}/c.rs, {}\n", n * 7919)).collect();
    let found = check("nothing", &answer);
    assert!(found.len() <= FINDINGS_MAX && found.join("\n").len() < 2048, "{found:?}");
    assert_eq!(found, check("nothing", &answer));
    let long = "x".repeat(50_000) + "_" + &"\u{4f60}".repeat(9_000);
    for text in [long.as_str(), "", "\n\n", "[", "``", "1.", "9999999999999999999999999999", "v."] {
        let _ = (verify(text, text), verify(DEPLOY, text), verify(text, DEPLOY));
    }
    assert_eq!(check("a", "[Truncated from 4711 tokens]"), [""; 0]);
}

#[test]
fn the_engine_of_a_summary_knows_other_languages() {
    let source = "[2026-05-03 10:00 assistant]\n\u{90e8}\u{7f72}\u{5931}\u{8d25}\u{ff0c}\
        \u{9000}\u{51fa}\u{7801} 137\u{3002}";
    assert_eq!(check(source, "\u{90e8}\u{7f72}\u{5931}\u{8d25}\u{3002}"), [""; 0]);
    assert_eq!(check(source, "\u{90e8}\u{7f72}\u{6210}\u{529f}\u{3002}").len(), 1);
}

#[test]
fn a_reported_status_is_an_outcome() {
    for line in [
        "status: failed",
        "Status: FAILED",
        r#"{"job":"db-3","status":"failed","tries":2}"#,
        r#"{"job":"db-3","status":"failed"}"#,
        "state=failed job=db-3",
        "conclusion: failure",
        r#"{"status": "error", "job": "db-3"}"#,
        "status: killed",
        "job db-3 status: aborted",
        "status: timed_out",
        r#"{"result":"FAILURE","build":77}"#,
    ] {
        assert!(!failing_pieces::find_failing_pieces(line, 1_000).is_empty(), "{line}");
    }
    for line in ["status: ok", r#"{"status":"passed"}"#, "status: 200", "error status of db-3"] {
        assert!(failing_pieces::find_failing_pieces(line, 1_000).is_empty(), "{line}");
    }
}
