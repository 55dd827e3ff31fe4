//! The table of hosts in `docs/hosts.md`, made from the reports of their test runs.
//!
//! In: `dist/vectors-HOST.json` of every host. Out: the table between the marker lines, and a
//! failure when a host is missing, failed, or has other store bytes than the rest.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::workspace::{Workspace, write_if_changed};

/// The page with the table, from the root of the workspace.
const PAGE: &str = "docs/hosts.md";
const BEGIN: &str = "<!-- hosts -->\n";
const END: &str = "<!-- /hosts -->";

/// Required hosts, with their names in the table.
const HOSTS: [(&str, &str); 8] = [
    ("native", "Rust, without WebAssembly (the engine as a crate)"),
    ("wasmtime", "Rust, wasmtime"),
    ("node-20", "Node 20"),
    ("node-22", "Node 22"),
    ("node-26", "Node 26"),
    ("python", "Python, wasmtime"),
    ("edge-worker", "Edge worker, workerd"),
    ("kit", "Python, wasmtime, from the conformance kit alone"),
];

/// Report of the vector runner of a host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    /// Name of the host in [`HOSTS`].
    host: String,
    /// Vectors that were run.
    vectors: u32,
    /// Vectors that passed.
    passed: u32,
    /// Vectors that passed with a store that answers every first read with `would-block`.
    would_block_passed: u32,
    /// SHA-256 of the store after each vector, by file name below `tests/vectors`.
    digests: BTreeMap<String, String>,
}

/// Rewrites the table in `docs/hosts.md`.
///
/// # Errors
///
/// When the hosts do not agree or the file has no markers.
pub(crate) fn rewrite(workspace: &Workspace) -> Result<()> {
    let table = table(&reports(workspace)?)?;
    let path = workspace.root.join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("reading {PAGE}"))?;
    write_if_changed(&path, replaced(&page, &table)?.as_bytes())
}

/// Compares the table in `docs/hosts.md` with the last test run.
///
/// # Errors
///
/// When the hosts do not agree, or the table in the file differs.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let table = table(&reports(workspace)?)?;
    print!("{table}");
    let path = workspace.root.join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("reading {PAGE}"))?;
    ensure!(
        replaced(&page, &table)? == page,
        "the host table of {PAGE} is not that of this run: `cargo run -p xtask host-table`"
    );
    Ok(())
}

/// Removes the reports of an earlier run, so that a host that did not run is noticed.
///
/// # Errors
///
/// When a report cannot be removed.
pub(crate) fn forget(workspace: &Workspace) -> Result<()> {
    for (host, _) in HOSTS {
        let path = report_path(workspace, host)?;
        if path.exists() {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn report_path(workspace: &Workspace, host: &str) -> Result<PathBuf> {
    Ok(workspace.dist()?.join(format!("vectors-{host}.json")))
}

fn reports(workspace: &Workspace) -> Result<Vec<Report>> {
    let read = |(host, _): (&str, &str)| {
        let text = std::fs::read_to_string(report_path(workspace, host)?)
            .with_context(|| format!("the vectors of `{host}` were not run"))?;
        let report: Report =
            serde_json::from_str(&text).with_context(|| format!("dist/vectors-{host}.json"))?;
        ensure!(report.host == host, "dist/vectors-{host}.json is of `{}`", report.host);
        Ok(report)
    };
    HOSTS.into_iter().map(read).collect()
}

/// Builds the table if every host passed every vector with the same store bytes.
fn table(reports: &[Report]) -> Result<String> {
    let first = reports.first().context("no host")?;
    ensure!(first.vectors > 0, "the reports must have at least one vector");
    let mut rows = String::from(
        "| host | vectors passed | with an asynchronous store | same store bytes |\n\
         |---|---|---|---|\n",
    );
    for report in reports {
        let Report { host, vectors, passed, would_block_passed, digests } = report;
        ensure!(vectors == passed, "{host}: {passed} of {vectors} vectors passed");
        ensure!(
            vectors == would_block_passed,
            "{host}: {would_block_passed} of {vectors} vectors passed with `would-block`"
        );
        ensure!(*vectors == first.vectors, "{host} ran {vectors} vectors, not {}", first.vectors);
        compare(first, report)?;
        let name = HOSTS.iter().find(|(known, _)| known == host).map_or(host.as_str(), |row| row.1);
        let same = digests.len();
        rows += &format!(
            "| {name} | {passed} of {vectors} | {would_block_passed} of {vectors} \
             | {same} of {vectors} |\n"
        );
    }
    Ok(rows)
}

fn compare(first: &Report, other: &Report) -> Result<()> {
    for (vector, digest) in &first.digests {
        match other.digests.get(vector) {
            Some(same) if same == digest => {}
            Some(_) => {
                bail!("`{vector}`: {} and {} end with different bytes", first.host, other.host)
            }
            None => bail!("`{vector}` has no digest of {}", other.host),
        }
    }
    let same_number = first.digests.len() == other.digests.len();
    ensure!(same_number, "{} has digests of vectors that {} did not run", other.host, first.host);
    let all = u32::try_from(other.digests.len()) == Ok(other.vectors);
    ensure!(all, "{} has {} digests of {} vectors", other.host, other.digests.len(), other.vectors);
    Ok(())
}

fn replaced(page: &str, table: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("the page has no `<!-- hosts -->`")?;
    let (_, after) = rest.split_once(END).context("the page has no `<!-- /hosts -->`")?;
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(host: &str, digest: &str) -> Report {
        Report {
            host: host.into(),
            vectors: 1,
            passed: 1,
            would_block_passed: 1,
            digests: BTreeMap::from([("ingest/a.json".into(), digest.into())]),
        }
    }

    #[test]
    fn hosts_that_agree_make_a_table_between_the_markers() {
        let table = table(&[report("node-20", "aa"), report("python", "aa")]).unwrap();
        assert!(table.contains("| Node 20 | 1 of 1 | 1 of 1 | 1 of 1 |\n"), "{table}");
        let page = "before\n<!-- hosts -->\nold\n<!-- /hosts -->\nafter\n";
        let new = replaced(page, &table).unwrap();
        assert!(new.starts_with("before\n<!-- hosts -->\n| host |"), "{new}");
        assert!(new.ends_with("|\n<!-- /hosts -->\nafter\n"), "{new}");
        assert_eq!(replaced(&new, &table).unwrap(), new);
        assert!(replaced("no markers", &table).is_err());
    }

    #[test]
    fn hosts_that_differ_fail() {
        let good = report("node-20", "aa");
        let error = table(&[good.clone(), report("python", "bb")]).unwrap_err().to_string();
        assert_eq!(error, "`ingest/a.json`: node-20 and python end with different bytes");
        let failed = Report { passed: 0, ..report("python", "aa") };
        let blocked = Report { would_block_passed: 0, ..report("python", "aa") };
        let fewer = Report { vectors: 0, passed: 0, would_block_passed: 0, ..good.clone() };
        let without = Report { digests: BTreeMap::new(), ..good.clone() };
        for bad in [failed, blocked, fewer, without] {
            assert!(table(&[good.clone(), bad.clone()]).is_err(), "{bad:?}");
        }
        assert!(table(&[]).is_err());
    }
}
