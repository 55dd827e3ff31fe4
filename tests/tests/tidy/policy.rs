//! The policy is in the engine: no host contains a name or a number of it.
//!
//! A host passes the configuration on as one JSON object and never reads it. So the code of a host
//! must contain neither the keys of that object nor their defaults. Tests of hosts may configure
//! the engine, and documents may explain the keys.

use crate::{
    Finding, assert_none,
    code::{Code, words},
    files::{self, File},
};

/// Keys of the configuration that belong to the policy, without their units.
const KEYS: [&str; 17] = [
    "context_threshold",
    "fresh_tail_count",
    "fresh_tail_max",
    "fresh_tail_messages_max",
    "fresh_tail_tokens_max",
    "leaf_chunk_tokens",
    "leaf_tokens_target",
    "leaf_target_tokens",
    "condensed_tokens_target",
    "condensed_target_tokens",
    "condense_leaves_min",
    "condense_summaries_min",
    "condense_min_hard",
    "sweep_depth_max",
    "summary_prefix_tokens_target",
    "summary_overage_factor",
    "fallback_tokens_max",
];

/// Default values of the keys.
const NUMBERS: [&str; 7] = ["750", "20000", "2400", "25000", "4000", "0.75", "0.3"];

/// Words that a line with a number of the policy has. In other lines 20,000 may be milliseconds.
const SUBJECTS: [&str; 9] =
    ["token", "threshold", "budget", "leaf", "chunk", "tail", "condense", "summar", "sweep"];

/// Types of the configuration, generated from `schema/`: they name each key and have no policy.
const CONFIGURATION_TYPES: [&str; 3] = [
    "crates/lcm-host/src/shapes/configuration.rs",
    "host-examples/node/types/configuration.d.ts",
    "host-examples/python/src/lcm_engine/shapes/configuration.py",
];

/// Returns whether a file is a source of a host, without tests and the types of the configuration.
fn is_host(file: &File) -> bool {
    let folders = ["crates/lcm-host/", "crates/lcm-cli/", "host-examples/"];
    folders.iter().any(|folder| file.path.starts_with(folder))
        && !file.is_test()
        && !CONFIGURATION_TYPES.contains(&file.path.as_str())
}

fn policy(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in shipped_lines(file) {
        let plain = plain(&line);
        for key in KEYS {
            // Without `_`, so that every spelling of a name is found.
            if plain.contains(&key.replace('_', "")) {
                findings.push(format!("{}:{number}: the policy `{key}`", file.path));
            }
        }
        let about = SUBJECTS.iter().any(|subject| plain.contains(subject));
        for default in NUMBERS.into_iter().filter(|default| about && has_number(&line, default)) {
            findings.push(format!("{}:{number}: the number {default} of the policy", file.path));
        }
    }
    findings
}

/// Returns the lines outside tests, including literals: a string may contain policy, too.
fn shipped_lines(file: &File) -> Vec<(usize, String)> {
    let lines = file.text.lines().map(str::to_owned);
    if file.is(&[".rs"]) {
        let code = Code::of(&file.text);
        let numbered = (1..).zip(lines.zip(code.test.iter().zip(&code.comments)));
        let shipped = numbered.filter(|(_, (_, (test, _)))| !**test);
        return shipped
            .map(|(number, (line, (_, comment)))| {
                let comment = comment.trim();
                (number, if comment.is_empty() { line } else { line.replace(comment, "") })
            })
            .collect();
    }
    let mut in_docstring = false;
    let mut runs = |line: &String| {
        let line = line.trim_start();
        let comment = ["//", "#", "*", "/*"].iter().any(|start| line.starts_with(start));
        let quotes = line.matches("\"\"\"").count();
        let docstring = in_docstring || line.starts_with("\"\"\"");
        in_docstring ^= quotes % 2 == 1;
        !comment && !docstring
    };
    (1..).zip(lines).filter(|(_, line)| runs(line)).collect()
}

fn plain(line: &str) -> String {
    line.chars().filter(|character| *character != '_').flat_map(char::to_lowercase).collect()
}

/// Returns whether a line has the number by itself, with or without separators of digit groups.
fn has_number(line: &str, number: &str) -> bool {
    if number.contains('.') {
        let digit = |character: Option<char>| character.is_some_and(|c| c.is_ascii_digit());
        return line.match_indices(number).any(|(at, _)| {
            let before = line.get(..at).and_then(|text| text.chars().next_back());
            let after = line.get(at + number.len()..).and_then(|text| text.chars().next());
            // The match must not be a part of a longer number or of a version.
            !digit(before) && before != Some('.') && !digit(after) && after != Some('.')
        });
    }
    words(line).any(|word| {
        let digits: String = word.chars().filter(|character| *character != '_').collect();
        digits.strip_suffix("u32").or(digits.strip_suffix("u64")).unwrap_or(&digits) == number
    })
}

#[test]
fn no_policy_stands_in_a_host() {
    let files = files::all(&[".rs", ".js", ".mjs", ".cjs", ".ts", ".py"]);
    let hosts: Vec<&File> = files.iter().filter(|file| is_host(file)).collect();
    assert!(hosts.len() > 5, "the sources of the hosts are not where they are looked for");
    assert_none(&hosts.into_iter().flat_map(policy).collect::<Vec<_>>());
}

#[test]
fn the_rule_for_policy_can_fail() {
    let path = "crates/lcm-host/src/a.rs";
    for bad in [
        "let leaf_chunk_tokens_max = 1;",
        "const LEAF_CHUNK_TOKENS_MAX: u32 = 1;",
        "let due = tokens > budget * 750 / 1000;",
        "let chunk = 20_000;",
        "let chunk = 20_000u32;",
        "let due = budget * 0.75;",
        "let config = r#\"{\"leafChunkTokens\": 1}\"#;",
    ] {
        assert_eq!(policy(&File::new(path, bad)).len(), 1, "{bad}");
    }
    assert_eq!(policy(&File::new("host-examples/node/a.js", "{ leafChunkTokens: 9 }")).len(), 1);
    for good in [
        "// the engine's leaf_chunk_tokens_max",
        "#[cfg(test)]\nmod tests { const A: u32 = 750; }",
        "let a = [1750, 7500, 24000]; let version = \"10.0.75\";",
        "config.insert(name, value);",
        "const START_MS_MAX: u64 = 20_000;",
    ] {
        assert_eq!(policy(&File::new(path, good)), Vec::<Finding>::new(), "{good}");
    }
    let docstring = "def a():\n    \"\"\"Takes\n    leafChunkTokens.\"\"\"\n    return 1\n";
    assert_eq!(policy(&File::new("host-examples/python/a.py", docstring)), Vec::<Finding>::new());
    assert!(is_host(&File::new(path, "")) && !is_host(&File::new("crates/lcm-core/src/a.rs", "")));
}
