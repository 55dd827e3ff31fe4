//! Gates over `cargo metadata`: which crate may depend on which, and that the engine stays small
//! and without `std`.
//!
//! In: the manifests of the workspace. Out: a failure that names the forbidden dependency. A test
//! beside each rule shows that the rule can fail.
#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::{Value, json};

/// The allowed dependencies of the engine; `lcm-loops` is the only one from this workspace.
const ENGINE: [&str; 10] = [
    "hashbrown",
    "lcm-loops",
    "lcm-text",
    "miniz_oxide",
    "postcard",
    "regex-automata",
    "regex-syntax",
    "serde",
    "sha2",
    "thiserror",
];

/// For each crate of the workspace, all crates of the workspace that it may depend on, also in
/// tests.
const ARROWS: [(&str, &[&str]); 10] = [
    ("lcm-loops", &[]),
    ("lcm-text", &["lcm-loops"]),
    ("lcm-core", &["lcm-loops", "lcm-text"]),
    ("lcm-component", &["lcm-core", "lcm-text"]),
    ("lcm-testing", &["lcm-core", "lcm-text"]),
    ("lcm-host", &[]),
    ("lcm-cli", &["lcm-host"]),
    ("lcm-bench", &["lcm-core", "lcm-host", "lcm-text"]),
    ("xtask", &[]),
    ("lcm-tests", &["lcm-core", "lcm-host", "lcm-testing", "lcm-text", "xtask"]),
];

/// Hosts use the bytes of the component and must not depend on the engine, not even in tests.
const HOSTS: [&str; 2] = ["lcm-host", "lcm-cli"];

/// Names of the crates that each crate depends on, of any kind of dependency.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn cargo(arguments: &[&str]) -> String {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(program)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn metadata() -> Value {
    serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap()
}

/// Returns the packages of `metadata` with their dependencies, including `dev` and `build`.
fn dependencies(metadata: &Value) -> Vec<(String, Vec<Value>)> {
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let name = package["name"].as_str().unwrap().to_owned();
            (name, package["dependencies"].as_array().unwrap().clone())
        })
        .collect()
}

fn graph(metadata: &Value) -> Graph {
    let name = |dependency: &Value| dependency["name"].as_str().unwrap().to_owned();
    dependencies(metadata)
        .into_iter()
        .map(|(package, names)| (package, names.iter().map(name).collect()))
        .collect()
}

/// Returns all crates that `start` depends on, directly or not, without `start`.
fn reachable(graph: &Graph, start: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![start.to_owned()];
    while let Some(name) = open.pop() {
        for next in graph.get(&name).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

fn check_arrows(graph: &Graph) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, dependencies) in graph {
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| known == name) else {
            // Other packages, as the examples, count as hosts.
            if reachable(graph, name).contains("lcm-core") {
                findings.push(format!("`{name}` reaches lcm-core"));
            }
            continue;
        };
        for dependency in dependencies.iter().filter(|dependency| graph.contains_key(*dependency)) {
            if !allowed.contains(&dependency.as_str()) {
                findings.push(format!("`{name}` depends on `{dependency}`"));
            }
        }
    }
    for host in HOSTS {
        if reachable(graph, host).contains("lcm-core") {
            findings.push(format!("`{host}` reaches lcm-core"));
        }
    }
    findings
}

/// Checks that the dependencies of the engine are in [`ENGINE`] and without default features.
fn check_engine(metadata: &Value) -> Vec<String> {
    let all = dependencies(metadata);
    let (_, engine) = all.iter().find(|(name, _)| name == "lcm-core").unwrap();
    let mut findings = Vec::new();
    for dependency in engine.iter().filter(|dependency| dependency["kind"] != "dev") {
        let name = dependency["name"].as_str().unwrap();
        if !ENGINE.contains(&name) {
            findings.push(format!("lcm-core depends on `{name}`"));
        }
        if dependency["uses_default_features"] != false {
            findings.push(format!("lcm-core takes the default features of `{name}`"));
        }
    }
    findings
}

/// Returns the crates of a tree that are built with `std`. Each line is `name feature,feature`.
fn with_std(tree: &str) -> Vec<&str> {
    let std = |line: &&str| {
        let features = line.split_whitespace().nth(1).unwrap_or_default();
        features.split(',').any(|feature| feature == "std")
    };
    tree.lines().filter(std).collect()
}

#[test]
fn every_arrow_points_the_right_way() {
    let graph = graph(&metadata());
    for (name, _) in ARROWS {
        assert!(graph.contains_key(name), "the crate `{name}` is gone");
    }
    assert_eq!(check_arrows(&graph), Vec::<String>::new());
    let component = graph.get("lcm-component").unwrap();
    assert!(component.contains("lcm-core"), "the component is no component of the engine");
}

#[test]
fn the_engine_has_few_dependencies() {
    assert_eq!(check_engine(&metadata()), Vec::<String>::new());
}

/// A dependency with `std` compiles on the wasm target, so only this test finds it.
#[test]
fn the_dependencies_of_the_engine_are_built_without_std() {
    let tree = cargo(&[
        "tree",
        "--package=lcm-core",
        "--edges=normal,no-proc-macro",
        "--target=wasm32-unknown-unknown",
        "--prefix=none",
        "--format={lib} {f}",
    ]);
    assert!(tree.contains("postcard"), "{tree}");
    assert_eq!(with_std(&tree), Vec::<&str>::new());
}

#[test]
fn each_rule_for_dependencies_can_fail() {
    let graph_of = |arrows: &[(&str, &[&str])]| -> Graph {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        arrows.iter().map(|(name, to)| ((*name).to_owned(), set(to))).collect()
    };
    let good = graph_of(&ARROWS);
    assert_eq!(check_arrows(&good), Vec::<String>::new());
    for (from, to) in [
        ("lcm-host", "lcm-core"),
        ("lcm-cli", "lcm-testing"),
        ("lcm-cli", "lcm-bench"),
        ("lcm-core", "lcm-testing"),
        ("lcm-component", "lcm-host"),
        ("an-example", "lcm-testing"),
    ] {
        let mut bad = good.clone();
        bad.entry(from.to_owned()).or_default().insert(to.to_owned());
        assert!(!check_arrows(&bad).is_empty(), "{from} -> {to}");
    }

    let engine = |name: &str, default_features: bool, kind: Value| {
        let dependency =
            json!({"name": name, "uses_default_features": default_features, "kind": kind});
        json!({"packages": [{"name": "lcm-core", "dependencies": [dependency]}]})
    };
    assert_eq!(check_engine(&engine("serde", false, Value::Null)), Vec::<String>::new());
    assert_eq!(check_engine(&engine("serde", true, Value::Null)).len(), 1);
    assert_eq!(check_engine(&engine("tokio", false, Value::Null)).len(), 1);
    assert_eq!(check_engine(&engine("proptest", true, json!("dev"))), Vec::<String>::new());

    assert_eq!(with_std("serde alloc,std\nsha2 alloc\nthiserror \n"), ["serde alloc,std"]);
}
