//! The rules for dependencies: licence, source, versions and compiler.
//!
//! In: `deny.toml` and `cargo metadata`. Out: every finding. A test of the workspace checks the
//! dependencies between its crates.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use semver::Version;
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use crate::{
    deny::Rules,
    workspace::{self, Workspace},
};

/// The only allowed registry, as `cargo metadata` writes the name.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks every dependency of the workspace.
///
/// # Errors
///
/// When `deny.toml` cannot be read, cargo fails, or a dependency breaks a rule.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let rules = std::fs::read_to_string(workspace.root.join("deny.toml"));
    let rules = Rules::parse(&rules.context("reading deny.toml")?).context("deny.toml")?;
    let mut arguments = vec!["metadata", "--locked", "--all-features", "--format-version", "1"];
    for target in &rules.targets {
        arguments.extend(["--filter-platform", target]);
    }
    let metadata = workspace::capture(&mut workspace.cargo(&arguments))?;
    let metadata: Metadata = serde_json::from_str(&metadata)?;
    let findings = metadata.check(&rules)?;
    ensure!(findings.is_empty(), "deny.toml is not kept:\n{}", findings.join("\n"));
    println!("{} packages keep the rules of deny.toml", metadata.packages.len());
    Ok(())
}

/// Output of `cargo metadata`.
#[derive(Clone, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
}

#[derive(Clone, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: Version,
    license: Option<String>,
    source: Option<String>,
    rust_version: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Clone, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

impl Metadata {
    fn check(&self, rules: &Rules) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        for package in &self.packages {
            let wrong = [
                package.licence(rules),
                self.source(package),
                package.ban(rules),
                package.wildcard(),
            ];
            let wrong = wrong.into_iter().flatten();
            findings.extend(wrong.map(|what| format!("{} {what}", package.title())));
        }
        findings.extend(self.duplicates(rules));
        findings.extend(self.compilers()?);
        Ok(findings)
    }

    fn is_member(&self, package: &Package) -> bool {
        self.workspace_members.contains(&package.id)
    }

    fn source(&self, package: &Package) -> Option<String> {
        match &package.source {
            None if self.is_member(package) => None,
            None => Some("lies in a folder outside of the workspace".to_owned()),
            Some(source) if source == REGISTRY => None,
            Some(source) => Some(format!("comes from {source}")),
        }
    }

    /// Returns older versions without a rule, and rules without a version.
    fn duplicates(&self, rules: &Rules) -> Vec<String> {
        let mut crates: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
        for package in &self.packages {
            crates.entry(&package.name).or_default().push(package);
        }
        for packages in crates.values_mut() {
            packages.sort_by(|a, b| a.version.cmp(&b.version));
            packages.pop();
        }
        let older: Vec<&Package> = crates.into_values().flatten().collect();
        let named = |package: &Package| {
            rules.older.iter().any(|spec| spec.matches(&package.name, &package.version))
        };
        let unnamed = older.iter().filter(|package| !named(package));
        let unnamed =
            unnamed.map(|package| format!("{} stands beside a newer version", package.title()));
        let idle = rules.older.iter().filter(|spec| {
            !older.iter().any(|package| spec.matches(&package.name, &package.version))
        });
        let idle =
            idle.map(|spec| format!("bans.skip: `{}` ({}) is not needed", spec.text, spec.reason));
        unnamed.chain(idle).collect()
    }

    /// Returns the findings about compilers. The rules: all crates of the workspace name the same
    /// version, and no dependency needs a newer version.
    fn compilers(&self) -> Result<Vec<String>> {
        let members = self.packages.iter().filter(|package| self.is_member(package));
        let oldest = members.filter_map(|package| package.rust_version.as_deref()).next();
        let oldest = oldest.context("no crate of the workspace has a `rust-version`")?;
        let mut findings = Vec::new();
        for package in &self.packages {
            let title = package.title();
            match package.rust_version.as_deref() {
                Some(version) if version == oldest => {}
                _ if self.is_member(package) => {
                    findings.push(format!("{title} does not name Rust {oldest}"));
                }
                Some(version) if release(version)? > release(oldest)? => {
                    findings.push(format!("{title} needs Rust {version}, not {oldest}"));
                }
                _ => {}
            }
        }
        Ok(findings)
    }
}

/// Parses `1.95` or `1.95.0`.
fn release(version: &str) -> Result<Version> {
    let full = if version.matches('.').count() == 1 { ".0" } else { "" };
    Version::parse(&format!("{version}{full}")).with_context(|| format!("Rust `{version}`"))
}

impl Package {
    fn title(&self) -> String {
        format!("`{} {}`", self.name, self.version)
    }

    fn licence(&self, rules: &Rules) -> Option<String> {
        let Some(text) = &self.license else { return Some("names no licence".to_owned()) };
        let Ok(expression) = Expression::parse_mode(text, ParseMode::LAX) else {
            return Some(format!("has a licence that cannot be read: {text}"));
        };
        let allowed =
            expression.evaluate(|needed| rules.licences.iter().any(|one| one.satisfies(needed)));
        (!allowed).then(|| format!("has a licence that is not allowed: {text}"))
    }

    fn ban(&self, rules: &Rules) -> Option<String> {
        let ban = rules.banned.iter().find(|spec| spec.matches(&self.name, &self.version))?;
        Some(format!("is banned: {}", ban.reason))
    }

    fn wildcard(&self) -> Option<String> {
        let any = |dependency: &&Dependency| dependency.req == "*" && dependency.path.is_none();
        let found = self.dependencies.iter().find(any)?;
        Some(format!("takes any version of `{}`", found.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deny::tests::RULES;

    fn package(name: &str, version: &str) -> Package {
        Package {
            id: format!("{name} {version}"),
            name: name.to_owned(),
            version: Version::parse(version).unwrap(),
            license: Some("MIT/Apache-2.0".to_owned()),
            source: Some(REGISTRY.to_owned()),
            rust_version: None,
            dependencies: Vec::new(),
        }
    }

    /// A workspace of one crate, which uses two versions of another.
    fn good() -> Metadata {
        let mut member = package("lcm-core", "0.1.0");
        member.source = None;
        member.rust_version = Some("1.95".to_owned());
        let workspace_members = vec![member.id.clone()];
        let packages = vec![member, package("syn", "2.0.1"), package("syn", "3.0.0")];
        Metadata { packages, workspace_members }
    }

    /// Returns the findings after `change` has changed the workspace's crate and the newest `syn`.
    fn findings(change: impl FnOnce(&mut Package, &mut Package)) -> Vec<String> {
        let mut metadata = good();
        let [member, _, newest] = metadata.packages.as_mut_slice() else { unreachable!() };
        change(newest, member);
        metadata.check(&Rules::parse(RULES).unwrap()).unwrap()
    }

    #[test]
    fn each_rule_for_a_package_can_fail() {
        assert_eq!(findings(|_, _| {}), Vec::<String>::new());
        let wildcard = Dependency { name: "quote".to_owned(), req: "*".to_owned(), path: None };
        let in_workspace = Dependency { path: Some("quote".to_owned()), ..wildcard.clone() };
        let cases = [
            findings(|newest, _| newest.license = None),
            findings(|newest, _| newest.license = Some("MIT AND GPL-3.0-only".to_owned())),
            findings(|newest, _| newest.license = Some("ask me".to_owned())),
            findings(|newest, _| newest.source = None),
            findings(|newest, _| newest.source = Some("git+https://example.org/syn".to_owned())),
            findings(|newest, _| newest.name = "openssl-sys".to_owned())
                .into_iter()
                .filter(|finding| finding.contains("no OpenSSL"))
                .collect(),
            findings(|newest, _| newest.dependencies.push(wildcard)),
            findings(|newest, _| newest.rust_version = Some("1.96.0".to_owned())),
        ];
        for (number, case) in cases.iter().enumerate() {
            assert_eq!(case.len(), 1, "case {number}: {case:?}");
        }
        assert_eq!(findings(|_, member| member.dependencies.push(in_workspace)), [""; 0]);
        let older = |newest: &mut Package, _: &mut Package| {
            newest.rust_version = Some("1.95.0".to_owned());
            newest.license = Some("GPL-3.0-only OR MIT".to_owned());
        };
        assert_eq!(findings(older), [""; 0]);
    }

    #[test]
    fn an_older_version_is_named_and_a_name_is_needed() {
        let third = package("syn", "1.0.0");
        let mut metadata = good();
        metadata.packages.push(third);
        let rules = Rules::parse(RULES).unwrap();
        assert_eq!(metadata.check(&rules).unwrap(), ["`syn 1.0.0` stands beside a newer version"]);

        let idle = findings(|newest, _| newest.name = "quote".to_owned());
        assert_eq!(idle, ["bans.skip: `syn:^2` (macros) is not needed"]);
    }

    #[test]
    fn every_crate_of_the_workspace_names_the_compiler() {
        let mut metadata = good();
        let mut other = package("lcm-host", "0.1.0");
        (other.source, other.rust_version) = (None, Some("1.94".to_owned()));
        metadata.workspace_members.push(other.id.clone());
        metadata.packages.push(other);
        let rules = Rules::parse(RULES).unwrap();
        let findings = metadata.check(&rules).unwrap();
        assert_eq!(findings, ["`lcm-host 0.1.0` does not name Rust 1.95"]);
        metadata.packages.iter_mut().for_each(|package| package.rust_version = None);
        assert!(metadata.check(&rules).is_err());
    }
}
