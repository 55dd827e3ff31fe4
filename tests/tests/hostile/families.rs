//! Patterns of a careless or hostile caller.
//!
//! Out: patterns as in the JSON of a query, by family. Each has a size that is costly to search.

use super::workload::word;

/// Bytes of a long pattern.
const LONG_BYTES: usize = 100_000;
/// Number of terms of a pattern with many terms.
const MANY: u64 = 10_000;

/// A pattern with the name of its family.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// The pattern as a JSON string, without its quotes.
    pub(crate) json: String,
}

/// Repeats a piece up to the size of a long pattern.
fn long(piece: &str) -> String {
    piece.repeat(LONG_BYTES / piece.len())
}

/// Joins [`MANY`] pieces, each made from its number.
fn many(piece: impl Fn(u64) -> String) -> String {
    (0..MANY).map(piece).collect::<Vec<String>>().join(" ")
}

fn texts() -> Vec<(&'static str, String)> {
    vec![
        ("100 KB of words", long("lorem kopra stori ")),
        ("100 KB without a space", long("abcdefghij")),
        ("100 KB of one letter", long("a")),
        ("100 KB of brackets", long("[")),
        ("100 KB of open classes", long("[a-")),
        ("100 KB of brackets, closed", long("[") + "]"),
        ("100 KB of bars", long("a|")),
        ("unbalanced quotes", long("\"the error ") + "\""),
        ("quotes alone", long("\"") + "\""),
        ("operators alone", long("+ - -- ++ | || & ~ ^ * : ( ) ")),
        ("signs before nothing", long("+- -+ -\" +\" ")),
        ("filters without a value", long("role: tool: speaker: since: before: ")),
        ("since: nonsense", many(|n| format!("since:{n}-99-99 before:never since:\"\""))),
        ("control characters", long("\u{1}\u{7f}\u{85}\u{200b}\u{202e}\u{feff} ")),
        ("nulls", long("\u{0}")),
        ("emoji, 100 KB", long("\u{1f600}\u{1f468}\u{200d}\u{1f469}")),
        ("Chinese, 100 KB", long("\u{6570}\u{636e}\u{5e93}\u{4e00}")),
        ("Chinese words", long("\u{6570}\u{636e} \u{4e00}\u{4e01} ")),
        ("combining marks", long("e\u{301}\u{300}\u{302}")),
        ("10,000 rare terms", many(|n| word(20_000 - n))),
        ("10,000 frequent terms", many(|n| word(32 + n))),
        ("60 frequent terms?", (32..92).map(word).collect::<Vec<_>>().join(" ") + "?"),
        ("10,000 -terms", many(|n| format!("-{}", word(32 + n)))),
        ("10,000 +terms", many(|n| format!("+{}", word(32 + n)))),
        ("a word and -terms", format!("error {}", many(|n| format!("-{}", word(32 + n))))),
        ("10,000 phrases", many(|n| format!("\"{} {}\"", word(n), word(n + 1)))),
        ("frequent phrases", many(|n| format!("\"{} {}\"", word(n % 9), word(n / 9 % 9)))),
        ("a phrase of 10,000 words", format!("\"{}\"", many(word))),
        ("a phrase of the, 10,000 times", format!("\"{}\"", many(|_| word(0)))),
        ("stop words alone", long("what did the and of to ")),
        ("four stop words", "the of and to".into()),
        ("filters alone", "role:tool -tool:nothing".into()),
        ("a speaker alone", "speaker:dana".into()),
        ("nobody", "speaker:nobody".into()),
        ("nobody else", "-speaker:nobody".into()),
        ("10,000 speakers", many(|n| format!("speaker:{}", word(n)))),
        ("identifiers", many(|n| format!("src/{n}.rs::fooBar_{n}"))),
    ]
}

fn expressions() -> Vec<(&'static str, String)> {
    let alternatives = |count: u64| (0..count).map(word).collect::<Vec<_>>().join("|");
    vec![
        ("regex: (a+)+b", "(a+)+b".into()),
        ("regex: groups in groups", format!("{}a{}", "(".repeat(99), ")+".repeat(99))),
        ("regex: too many groups", format!("{}a{}", "(".repeat(4_000), ")+".repeat(4_000))),
        ("regex: alternatives, 9 KB", alternatives(1_200).chars().take(9_900).collect()),
        ("regex: alternatives, 100 KB", alternatives(10_000)),
        ("regex: everywhere", ".*".into()),
        ("regex: everything", "(?s).+".into()),
        ("regex: begins", "^".into()),
        ("regex: ends", "$".into()),
        ("regex: empty alternatives", "a|".repeat(2_000)),
        ("regex: no gram", r"\b\w\w\d\b".into()),
        ("regex: digits that are not there", r"[0-9]{14}".into()),
        ("regex: classes", r"[^x]{300}[qz]{3}".into()),
        ("regex: counted words", r"(\w+\s+){20}[Z]".into()),
        ("regex: overlap", "(x+x+)+[yY]".into()),
        ("regex: ever new states", ".*[ab].{14}[cd].{14}[ef]$".into()),
        ("regex: ever new states, long", "(?s)[a-e].{900}[QZ]".into()),
        ("regex: any letter", r"\p{L}{200}[^a-z]{50}".into()),
        ("regex: words of any script", r"(?i)\b[\w\s]{100}\bQ{2}".into()),
        ("regex: counts of counts", "(((a{9}){9}){9}){9}".into()),
        ("regex: too many counts", "((((a{99}){99}){99}){99}){99}".into()),
        ("regex: any case", "(?i)[a-z]+[k-s][0-9]ing".into()),
        ("regex: frequent words", r"\bthe\s+\w+\s+of\b".into()),
        ("regex: lines", r"(?m)^\s*$".into()),
        ("regex: not closed", "(((".into()),
    ]
}

/// Returns every family.
pub(crate) fn all() -> Vec<Family> {
    let quoted = |text: String| {
        let json = serde_json::Value::String(text).to_string();
        json[1..json.len() - 1].to_owned()
    };
    let mut out: Vec<Family> = texts()
        .into_iter()
        .chain(expressions())
        .map(|(name, text)| Family { name, json: quoted(text) })
        .collect();
    // A Rust string cannot contain lone surrogates, so they are written as JSON escapes.
    out.push(Family { name: "lone surrogates", json: long(r"\ud800x\udc00 ") });
    out
}
