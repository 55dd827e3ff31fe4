//! Rules for the code of the hosts: no long equal passages, and little code that drives the engine.

use std::path::PathBuf;

use xtask::structure::hosts::{CodeLines, DrivingCode, driving_code, equal_runs, read_hosts};

use crate::{Finding, assert_none};

/// Largest number of consecutive equal lines of code in two files of hosts.
const EQUAL_LINES_MAX: usize = 30;

/// Largest number of lines of each host's code that drives the engine.
const DRIVING_LINES_MAX: [(&str, usize); 3] = [("Rust", 246), ("Node", 200), ("Python", 200)];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn long_equal_runs(files: &[CodeLines]) -> Vec<Finding> {
    let runs = equal_runs(files, EQUAL_LINES_MAX);
    let line = |place: &(String, usize)| format!("{}:{}", place.0, place.1);
    runs.iter()
        .map(|run| format!("{} and {}: {} lines", line(&run.first), line(&run.second), run.lines))
        .collect()
}

fn long_driving_code(hosts: &[DrivingCode]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (host, most) in DRIVING_LINES_MAX {
        let files = hosts.iter().filter(|code| code.host == host).flat_map(|code| &code.files);
        let lines: usize = files.map(|(_, lines)| lines).sum();
        if lines == 0 || lines > most {
            findings.push(format!("{host}: {lines} lines drive the engine, 1 to {most} may"));
        }
    }
    findings
}

#[test]
fn hosts_share_no_long_runs_of_code() {
    let languages = read_hosts(&root()).unwrap();
    assert_none(&languages.iter().flat_map(|files| long_equal_runs(files)).collect::<Vec<_>>());
}

#[test]
fn hosts_have_little_code_that_drives_the_engine() {
    assert_none(&long_driving_code(&driving_code(&root()).unwrap()));
}

#[test]
fn each_rule_for_hosts_can_fail() {
    let code = |path: &str, count: usize| {
        let lines = (1..=count).map(|line| (line, format!("call({line});"))).collect();
        CodeLines { path: path.to_owned(), lines }
    };
    let equal = |count| long_equal_runs(&[code("a.js", count), code("b.js", count)]).len();
    assert_eq!((equal(EQUAL_LINES_MAX), equal(EQUAL_LINES_MAX + 1)), (0, 1));
    let driving = |more: usize| {
        let files = |most: usize| vec![("a".to_owned(), most + more)];
        let hosts = DRIVING_LINES_MAX.map(|(host, most)| DrivingCode { host, files: files(most) });
        long_driving_code(&hosts).len()
    };
    assert_eq!((driving(0), driving(1)), (0, 3));
}
