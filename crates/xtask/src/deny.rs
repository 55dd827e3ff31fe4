//! The rules of `deny.toml` that need no database.
//!
//! In: the text of the file. Out: typed rules. `cargo deny` reads the same file, so this module
//! refuses keys and levels that it does not check.

use anyhow::{Context as _, Result};
use semver::{Version, VersionReq};
use serde::Deserialize;
use spdx::Licensee;

/// Rules for the dependencies of the workspace.
pub(crate) struct Rules {
    /// Targets whose dependencies are checked.
    pub(crate) targets: Vec<String>,
    /// Allowed licences.
    pub(crate) licences: Vec<Licensee>,
    /// Banned crates.
    pub(crate) banned: Vec<Spec>,
    /// Older versions that are allowed beside a newer version of the same crate.
    pub(crate) older: Vec<Spec>,
}

/// Versions of a crate, with the reason of the rule.
pub(crate) struct Spec {
    /// The entry as written.
    pub(crate) text: String,
    /// Reason of the rule.
    pub(crate) reason: String,
    name: String,
    versions: VersionReq,
}

impl Rules {
    /// Parses the text of `deny.toml`.
    ///
    /// # Errors
    ///
    /// When the text is not TOML, or has an unknown key or level, or an invalid licence or version.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text)?;
        let licence =
            |name: &String| Licensee::parse(name).with_context(|| format!("the licence `{name}`"));
        let specs = |entries: Vec<Entry>| -> Result<Vec<Spec>> {
            entries.into_iter().map(Spec::parse).collect()
        };
        Ok(Self {
            targets: file.graph.targets,
            licences: file.licenses.allow.iter().map(licence).collect::<Result<_>>()?,
            banned: specs(file.bans.deny).context("bans.deny")?,
            older: specs(file.bans.skip).context("bans.skip")?,
        })
    }
}

impl Spec {
    /// Reads `name`, `name@version` or `name:requirement`.
    fn parse(entry: Entry) -> Result<Self> {
        let Entry { text, reason } = entry;
        let (name, versions) = match text.split_once(['@', ':']) {
            None => (text.as_str(), Ok(VersionReq::STAR)),
            Some((name, version)) if text.contains('@') => {
                (name, VersionReq::parse(&format!("={version}")))
            }
            Some((name, requirement)) => (name, VersionReq::parse(requirement)),
        };
        let versions = versions.with_context(|| format!("the version of `{text}`"))?;
        Ok(Self { name: name.to_owned(), versions, text, reason })
    }

    /// Returns whether the entry covers this version of this crate.
    pub(crate) fn matches(&self, name: &str, version: &Version) -> bool {
        self.name == name && self.versions.matches(version)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    graph: Graph,
    #[expect(dead_code, reason = "advisories stand in a database, which `cargo deny` fetches")]
    advisories: toml::Table,
    licenses: Licenses,
    bans: Bans,
    #[expect(dead_code, reason = "it has one value")]
    sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Graph {
    targets: Vec<String>,
    #[expect(dead_code, reason = "it has one value")]
    all_features: Always,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(dead_code, reason = "levels have one value")]
struct Bans {
    multiple_versions: Level,
    wildcards: Level,
    allow_wildcard_paths: Always,
    deny: Vec<Entry>,
    skip: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(dead_code, reason = "levels have one value")]
struct Sources {
    unknown_registry: Level,
    unknown_git: Level,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(rename = "crate")]
    text: String,
    reason: String,
}

/// The only accepted level.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Level {
    Deny,
}

/// The value `true`; other values are refused.
#[derive(Deserialize)]
#[serde(try_from = "bool")]
struct Always;

impl TryFrom<bool> for Always {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        value.then_some(Self).ok_or("must be true")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Rules with one entry of each kind.
    pub(crate) const RULES: &str = r#"
        graph = { targets = ["wasm32-unknown-unknown"], all-features = true }
        advisories = { yanked = "deny" }
        licenses = { allow = ["MIT", "Apache-2.0 WITH LLVM-exception"] }
        [bans]
        multiple-versions = "deny"
        wildcards = "deny"
        allow-wildcard-paths = true
        deny = [{ crate = "openssl-sys", reason = "no OpenSSL" }]
        skip = [{ crate = "syn:^2", reason = "macros" }]
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
    "#;

    #[test]
    fn a_rule_that_is_not_checked_is_refused() {
        assert!(Rules::parse(RULES).is_ok());
        for (part, other) in [
            ("wildcards = \"deny\"", "wildcards = \"warn\""),
            ("all-features = true", "all-features = false"),
            ("unknown-git = \"deny\"", "unknown-git = \"deny\"\nallow-git = [\"somewhere\"]"),
            ("reason = \"macros\"", "version = \"2\""),
            ("\"MIT\"", "\"No such licence\""),
            ("syn:^2", "syn:two"),
        ] {
            assert!(Rules::parse(&RULES.replacen(part, other, 1)).is_err(), "{other}");
        }
    }

    #[test]
    fn a_crate_is_named_with_all_one_or_some_of_its_versions() {
        let matches = |text: &str, version: &str| {
            let entry = Entry { text: text.to_owned(), reason: "a test".to_owned() };
            Spec::parse(entry).unwrap().matches("syn", &Version::parse(version).unwrap())
        };
        assert!(matches("syn", "3.0.0"));
        assert!(matches("syn@2.0.1", "2.0.1") && !matches("syn@2.0.1", "2.0.2"));
        assert!(matches("syn:^2", "2.0.119") && !matches("syn:^2", "3.0.0"));
        assert!(!matches("synstructure", "3.0.0"));
    }
}
