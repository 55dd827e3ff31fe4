//! Tests of outlines: the exact outline of one small payload of each kind, and the limits for
//! mutated payloads.

use alloc::{
    borrow::ToOwned,
    format,
    string::{String, ToString},
    vec::Vec,
};

use proptest::prelude::*;

use super::*;
use crate::base::tokens::{estimate, estimate_quarter_tokens};

fn payload<'a>(name: &'a str, head: &'a str) -> PayloadText<'a> {
    let lines = u64::try_from(head.lines().count()).unwrap();
    let bytes = u64::try_from(head.len()).unwrap();
    let name = (!name.is_empty()).then_some(name);
    PayloadText { name, mime: None, head, tail: "", bytes, lines, is_whole: true }
}

/// Returns a partial payload: `head` is the beginning of a payload of ten times as many bytes and
/// lines.
fn partial<'a>(name: &'a str, head: &'a str, tail: &'a str) -> PayloadText<'a> {
    let whole = payload(name, head);
    PayloadText { tail, bytes: whole.bytes * 10, lines: whole.lines * 10, is_whole: false, ..whole }
}

#[track_caller]
fn check(name: &str, head: &str, kind: PayloadFormat, mime: &str, text: &str) {
    let found = build_outline(&payload(name, head));
    assert_eq!((found.kind, found.mime), (kind, mime));
    assert_eq!(found.text, text);
}

fn base64(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let six = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap();
            let shown = place <= chunk.len();
            out.push(if shown { char::from(alphabet[six]) } else { '=' });
        }
    }
    out
}

const JSON: &str = "{\"version\": \"1\", \"items\": [{\"id\": 1, \"tags\": []}, {\"id\": 2, \
                    \"tags\": []}, 3, 4], \"next\": null, \"deep\": {\"a\": {\"b\": {\"c\": {}}}}}";

#[test]
fn json_shows_its_shape() {
    check(
        "a/b.JSON",
        JSON,
        PayloadFormat::Json,
        "application/json",
        "JSON, 1 line, 126 bytes\n\
         Shape: object of 4 {version: string, items: array of 4 [object of 2 {id: number, tags: \
         array of 0}, number, ...], next: null, deep: object of 1 {a: object of 1 {b: object of \
         1}}}",
    );
    check(
        "",
        "[true, -1e3]",
        PayloadFormat::Json,
        "application/json",
        "JSON, 1 line, 12 bytes\nShape: array of 2 [boolean, number]",
    );
}

#[test]
fn json_lines_show_the_first() {
    check(
        "",
        "{\"a\": 1}\n{\"a\": [2]}\n",
        PayloadFormat::Json,
        "application/json",
        "JSON lines, 2 lines, 20 bytes\nFirst line: object of 1 {a: number}",
    );
}

#[test]
fn json_with_a_fault_says_where() {
    check(
        "a.json",
        "{\"a\": 1,\n \"b\": [1,2,}\n",
        PayloadFormat::Json,
        "application/json",
        "JSON that does not parse (expected a value at line 2, byte 20), shown as text, 2 lines, \
         22 bytes, 22 characters, 4 words\nAll of it: {\"a\": 1, \"b\": [1,2,}",
    );
}

#[test]
fn a_shape_that_is_too_long_shows_fewer_levels() {
    let inner: Vec<String> =
        (0..9).map(|key| format!("\"member_number_{key}\": {{\"inside\": [1, 2, 3]}}")).collect();
    let outer: Vec<String> =
        (0..40).map(|key| format!("\"section_{key}\": {{{}}}", inner.join(", "))).collect();
    let text = build_outline(&payload("", &format!("{{{}}}", outer.join(",")))).text;
    assert!(text.contains("object of 40 {section_0: object of 9, section_1: "), "{text}");
    assert!(text.ends_with("section_9: object of 9, ...}"), "{text}");
}

#[test]
fn tables_name_their_columns() {
    check(
        "t.csv",
        "a,b,c\n1,\"x, \ny\",3\n4,5\n",
        PayloadFormat::Csv,
        "text/csv",
        "CSV, 4 lines, 22 bytes\n2 rows below the header, 1 with another number of columns\n\
         3 columns: a, b, c\nFirst row: 1,\"x, y\",3",
    );
    check(
        "",
        "name\t\"size\"\nx\t1\n",
        PayloadFormat::Tsv,
        "text/tab-separated-values",
        "TSV, 2 lines, 16 bytes\n1 row below the header\n2 columns: name, size\nFirst row: x 1",
    );
    let three = build_outline(&payload("", "a,b,c\n1,2,3\n4,5,6"));
    assert_eq!(three.kind, PayloadFormat::Csv);
    assert!(three.text.contains("3 columns: a, b, c"), "{}", three.text);
    let long = format!("a;b\n{};x\n", "word ".repeat(100));
    let text = build_outline(&payload("t.csv", &long)).text;
    let row = text.rsplit("First row: ").next().unwrap();
    assert!((160..=180).contains(&estimate_quarter_tokens(row)), "{row}");
    assert!(row.ends_with("..."));
}

#[test]
fn yaml_lists_its_keys() {
    check(
        "",
        "# c\nname: x\n\"on\":\n  push: y\njobs: {}\n---\n- b\n",
        PayloadFormat::Yaml,
        "application/yaml",
        "YAML, 7 lines, 45 bytes\n2 documents, 1 top-level list item\n\
         3 top-level keys: 2: name, 3: on, 5: jobs",
    );
}

#[test]
fn tags_are_counted() {
    check(
        "feed.xml",
        "<?xml version=\"1.0\"?><r a=\"1\"><!-- <x> --><i/><i>t</i><n:k></n:k></r>",
        PayloadFormat::Xml,
        "application/xml",
        "XML, 1 line, 69 bytes\nRoot: r\n2 tags: i (2), n:k (1)",
    );
    check(
        "",
        "<!DOCTYPE html>\n<html><head><title>A  page</title></head><body><p>x<p>y</body></html>",
        PayloadFormat::Xml,
        "text/html",
        "HTML, 2 lines, 85 bytes\nRoot: html\nTitle: A page\n\
         4 tags: head (1), title (1), body (1), p (2)",
    );
}

#[test]
fn code_lists_definitions_with_their_lines() {
    check(
        "src/lib.rs",
        "use alloc::vec;\n\npub(crate) fn first(a: u32) -> u32 {\n    fn inner() {}\n}\nstruct B;\n",
        PayloadFormat::Code("Rust"),
        "text/x-rust",
        "Rust, 6 lines, 84 bytes\n1 import: alloc::vec\n2 definitions:\n\
         3: pub(crate) fn first(a: u32) -> u32\n6: struct B",
    );
    check(
        "",
        "#!/usr/bin/env python3.12\nimport os\nfrom a import b\nclass A(B):\n    def c(self): pass\n\
         async def d():\n",
        PayloadFormat::Code("Python"),
        "text/x-python",
        "Python, 6 lines, 101 bytes\n2 imports: os, a import b\n2 definitions:\n4: class A(B)\n\
         6: async def d()",
    );
    check(
        "x.sql",
        "create table users (\n id int);\nCREATE TABLE orders(id int);\ninsert into users;\n",
        PayloadFormat::Code("SQL"),
        "application/sql",
        "SQL, 4 lines, 79 bytes\n2 definitions:\n1: create table users\n\
         3: CREATE TABLE orders(id int)",
    );
}

/// Returns the definitions that the outline of a file with this name lists.
fn definitions(name: &str, text: &str) -> Vec<String> {
    let text = build_outline(&payload(name, text)).text;
    let list = text.split_once("definition").map_or("", |(_, list)| list);
    list.lines().skip(1).map(ToOwned::to_owned).collect()
}

#[test]
fn other_languages_are_read_too() {
    let java = "package a.b;\nimport java.util.List;\npublic class A {\n    private int x = f(1);\n    \
                public void run(int a) {\n        if (a) {\n        }\n    }\n}\n";
    assert_eq!(definitions("A.java", java), ["3: public class A", "5: public void run(int a)"]);
    let c = "#include <stdio.h>\nint x = f(2);\nstatic int f(int a)\n{\n  return g(a);\n}\nint g(int);\n";
    assert_eq!(definitions("a.c", c), ["3: static int f(int a)"]);
    let go = "package main\nimport (\n\t\"fmt\"\n)\nfunc main() {\n\tfmt.Println()\n}\n";
    assert_eq!(definitions("a.go", go), ["5: func main()"]);
    let script = "import a from \"b\";\nexport default async function f() {}\nconst g = 1;\nf();\n";
    assert_eq!(
        definitions("a.mjs", script),
        ["2: export default async function f() {}", "3: const g = 1"]
    );
    let shell = "source x\nrun() {\n  echo\n}\nfunction stop {\n}\nx=$(ls) {\n";
    assert_eq!(definitions("a.sh", shell), ["2: run()", "5: function stop"]);
    assert_eq!(definitions("a.kt", "data class A(val b: Int)\n"), ["1: data class A(val b: Int)"]);
    let none = build_outline(&payload("a.rb", "puts 1\n")).text;
    assert_eq!(none, "Ruby, 1 line, 7 bytes\nOpening: puts 1");
}

#[test]
fn markdown_shows_headings_opening_and_closing() {
    check(
        "",
        "# Title\n\nSome *words*.\n\n```\n# no heading\n```\n\n## Second\n\nEnd.\n",
        PayloadFormat::Markdown,
        "text/markdown",
        "Markdown, 11 lines, 62 bytes, 62 characters, 12 words\n\
         2 headings: 1: Title, 9: Second\n\
         All of it: # Title Some *words*. ``` # no heading ``` ## Second End.",
    );
    let long = format!("Begin {} finish", "middle ".repeat(400));
    let found = build_outline(&payload("notes.txt", &long));
    assert_eq!((found.kind, found.mime), (PayloadFormat::Text, "text/plain"));
    assert!(found.text.starts_with(
        "Text, 1 line, 2813 bytes, 2813 characters, 402 words\nOpening: Begin middle "
    ));
    assert!(found.text.contains("...\nClosing: ...middle "), "{}", found.text);
    assert!(found.text.ends_with(" middle finish") && found.text.len() > 900, "{}", found.text);
}

#[test]
fn logs_show_times_levels_and_errors() {
    let log = "2024-05-01 10:00:00,123 [INFO] a: started\n\
               2024-05-01 10:00:01,000 [ERROR] a: no such file\n\
               2024-05-01 10:00:02,000 [ERROR] a: no such file\n\
               2024-05-01 10:00:03 FATAL a: gone\n  at b\n2024-05-01T10:00:04Z warn x\n";
    check(
        "",
        log,
        PayloadFormat::Log,
        "text/plain",
        "Log, 6 lines, 207 bytes\nFrom 2024-05-01 10:00:00,123 to 2024-05-01T10:00:04Z\n\
         4 levels: fatal (1), error (2), warning (1), info (1)\n2 distinct error lines:\n\
         2: 2024-05-01 10:00:01,000 [ERROR] a: no such file\n4: 2024-05-01 10:00:03 FATAL a: gone",
    );
    let times = [
        ("Jan  2 10:00:09 host x", "Jan 2 10:00:09"),
        ("1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] \"GET\"", "10/Oct/2000:13:55:36"),
        ("[12:30:01.5] 10.0.0.12:8080", "12:30:01.5"),
    ];
    for (line, time) in times {
        let text = build_outline(&payload("a.log", &format!("{line}\n{line}\n"))).text;
        assert!(text.contains(&format!("From {time} to {time}\n")), "{text}");
    }
}

#[test]
fn diffs_count_by_file() {
    check(
        "",
        "diff --git a/x.rs b/x.rs\nindex 1..2\n--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,3 @@ fn\n a\n\
         --- b\n+c\n+d\n@@ -9 +9 @@\n-e\n+f\n--- old.txt\t2024\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n",
        PayloadFormat::Diff,
        "text/x-diff",
        "Diff, 16 lines, 158 bytes\n+3 -3 in 3 hunks\n2 files:\n1: x.rs +3 -2\n13: old.txt +0 -1",
    );
}

#[test]
fn images_tell_their_size() {
    let zeros = [0; 40];
    let cases: [(&[u8], PayloadFormat, &str, &str); 6] = [
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\x01\0\x02\0\0\x01\xe0",
            PayloadFormat::Image("PNG"),
            "image/png",
            "PNG image, 65538 x 480 pixels, 64 bytes, in base64",
        ),
        (
            b"GIF89a\x02\x01\x03\0",
            PayloadFormat::Image("GIF"),
            "image/gif",
            "GIF image, 258 x 3 pixels, 50 bytes, in base64",
        ),
        (
            b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08\x01\0\x02\0",
            PayloadFormat::Image("JPEG"),
            "image/jpeg",
            "JPEG image, 512 x 256 pixels, 58 bytes, in base64",
        ),
        (
            b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x10\x40\x20\0",
            PayloadFormat::Image("WebP"),
            "image/webp",
            "WebP image, 16 x 32 pixels, 70 bytes, in base64",
        ),
        (
            b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x0f\xc0\x07\0",
            PayloadFormat::Image("WebP"),
            "image/webp",
            "WebP image, 16 x 32 pixels, 65 bytes, in base64",
        ),
        (
            b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x0f\0\0\x1f\0\0",
            PayloadFormat::Image("WebP"),
            "image/webp",
            "WebP image, 16 x 32 pixels, 70 bytes, in base64",
        ),
    ];
    for (header, kind, mime, text) in cases {
        let encoded = base64(&[header, &zeros].concat());
        check("", &encoded, kind, mime, text);
        check("", &format!("data:image/png;base64,{encoded}"), kind, mime, text);
    }
    let lost = build_outline(&payload("x.png", "\u{fffd}PNG"));
    assert_eq!(lost.text, "PNG image, 6 bytes that are not text");
}

#[test]
fn other_bytes_are_binary() {
    let mut bytes: Vec<u8> = Vec::new();
    for at in 0..600_u32 {
        bytes.push(u8::try_from(at * at % 251).unwrap());
    }
    let encoded = base64(&bytes);
    let unknown = "application/octet-stream";
    check("", &encoded, PayloadFormat::Binary, unknown, "Binary data, 600 bytes, in base64");
    let pdf = format!("data:;base64,{}", base64(b"%PDF-1.7"));
    let text = "Binary data, application/pdf, 8 bytes, in base64";
    check("", &pdf, PayloadFormat::Binary, "application/pdf", text);
    let text = "Binary data, 44 bytes that are not text";
    check("", &"\u{fffd}\0x\u{1}\u{2}\u{3}y z".repeat(4), PayloadFormat::Binary, unknown, text);
}

#[test]
fn a_beginning_is_said_to_be_partial() {
    let cases = [
        (
            "a.json",
            "{\"a\": [1, 2, \"ab",
            "Shape: object of at least 1 {a: array of at least 2 [number]}",
        ),
        ("", "[[1], tru", "Shape: array of at least 1 [array of 1 [number]]"),
        ("a.csv", "a,b\n1,2\n3,", "At least 1 row below the header"),
        ("a.yaml", "a: 1\nb: 2\n", "2 top-level keys: 1: a, 2: b"),
        ("a.xml", "<a><b></b><c", "2 tags: b (1), c (1)"),
        ("a.py", "def f():\n", "1 definition:\n1: def f()"),
        ("a.md", "# a\n", "Opening: # a\nClosing: ...the end"),
        ("a.log", "10:00:00 error x\n", "From 10:00:00\n1 level: error (1)"),
        ("a.diff", "--- a\n+++ b\n@@ -1 +1 @@\n-x", "1: b +0 -1"),
        ("", "just some words", "Opening: just some words\nClosing: ...the end"),
    ];
    for (name, head, expected) in cases {
        let text = build_outline(&partial(name, head, "the end")).text;
        let read = format!("Partial: read were the first {} and the last 7", head.len());
        assert!(text.contains(&read) && text.contains(expected), "{name}: {text}");
    }
    let log = partial("a.log", "10:00:00 error x\n", "y\n10:30:00 info z\n");
    assert!(build_outline(&log).text.contains("From 10:00:00 to 10:30:00"));
    let image = format!("iVBOR{}", "w0KGgo".repeat(100));
    let text = build_outline(&partial("", &image, "")).text;
    assert!(text.ends_with("about 4537 bytes, in base64"), "{text}");
}

#[test]
fn the_name_comes_before_the_type_and_both_before_the_content() {
    let kind = |name, mime, head| build_outline(&PayloadText { mime, ..payload(name, head) }).kind;
    assert_eq!(kind("a.md", Some("text/csv"), "[]"), PayloadFormat::Markdown);
    assert_eq!(kind("a", Some("text/csv; charset=utf-8"), "[]"), PayloadFormat::Csv);
    assert_eq!(kind("a.txt", Some("text/plain"), "[]"), PayloadFormat::Json);
    assert_eq!(kind("", Some("application/ld+json"), "x"), PayloadFormat::Json);
    assert_eq!(kind("", Some("text/x-python"), "x"), PayloadFormat::Code("Python"));
    assert_eq!(kind("", Some("image/svg+xml"), "x"), PayloadFormat::Xml);
    assert_eq!(kind("", Some("video/mp4"), "x"), PayloadFormat::Binary);
    // A name in lower case without a dot is the name of a tool, not a file extension.
    assert_eq!(kind("bash", None, "x"), PayloadFormat::Text);
    assert_eq!(kind("sql", None, "x"), PayloadFormat::Text);
}

#[test]
fn prose_is_no_table_and_no_markup() {
    for text in [
        "Hello, you.\nGoodbye, you.\n",
        "# install it\nmake install\n# and run\nrun\n",
        "[see below] for more\nwords",
        "a < b and b > c\n",
        "Note: this is prose: yes.\nAnother line.\n",
        "",
    ] {
        assert_eq!(build_outline(&payload("", text)).kind, PayloadFormat::Text, "{text}");
    }
}

#[test]
fn long_lists_are_cut_from_the_end() {
    let code: String = (0..400).map(|at| format!("fn function_of_number_{at}() {{}}\n")).collect();
    let text = build_outline(&payload("a.rs", &code)).text;
    assert!(text.contains("400 definitions:\n1: fn function_of_number_0\n2: "), "{text}");
    assert!(text.contains(" and ") && text.ends_with(" more"), "{text}");
    let diff: String = (0..60)
        .map(|at| format!("--- a/some/long/path/to/the/file_{at}.rs\n+++ b/some/long/path/to/the/file_{at}.rs\n@@ -1 +1 @@\n-a\n+b\n"))
        .collect();
    let text = build_outline(&payload("", &diff)).text;
    assert!(text.contains("/file_0.rs +1 -1\n") && text.contains("60 files:"), "{text}");
    assert!(text.ends_with(" more"), "{text}");
}

/// Returns the beginnings of payloads of every kind, to be mutated.
fn samples() -> Vec<String> {
    let png = base64(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\x01\0\x02\0\0\x01\xe0 and more of it");
    let jpeg = base64(b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08\x01\0\x02\0 and more of it");
    [
        JSON,
        "{\"a\": 1}\n{\"a\": [2]}\n",
        "a,b,c\n1,\"x, \ny\",3\n4,5\n",
        "a\tb\n1\t2\n",
        "---\nname: x\non:\n  push: y\n---\n- b\n",
        "<?xml version=\"1.0\"?><r a=\"1\"><i/><title>t</title></r>",
        "use a::b;\npub fn c(d: u32) {\n}\nstruct E;\n",
        "public class A {\n    void run(int a) {\n    }\n}\n",
        "# Title\n\nWords.\n\n## Second\n\n```\nx\n```\n",
        "Jan  2 10:00:09 host error: x\n2024-05-01 10:00:00,1 [WARN] y\n",
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\n-b\n+c\n",
        "data:image/png;base64,",
        "\u{4f60}\u{597d}\u{ff0c}\u{4e16}\u{754c} \u{1f600}\n",
        &png,
        &jpeg,
    ]
    .map(ToString::to_string)
    .into()
}

const NAMES: [&str; 22] = [
    "", "a.json", "a.csv", "a.tsv", "a.yaml", "a.xml", "a.html", "a.rs", "a.py", "a.java", "a.c",
    "a.sh", "a.sql", "a.go", "a.md", "a.log", "a.diff", "a.png", "a.jpg", "a.webp", "a.pdf",
    "a.js",
];

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, ..ProptestConfig::with_cases(3_000)
    })]

    #[test]
    fn every_payload_has_a_text_within_the_bound(
        parts in prop::collection::vec((0..15_usize, 0..400_usize, 0..60_usize), 0..6),
        other in prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 0..6),
        name in prop::sample::select(&NAMES[..]),
        is_whole in any::<bool>(),
        (bytes, lines) in any::<(u64, u64)>(),
    ) {
        let samples = samples();
        let mut chars: Vec<char> = Vec::new();
        for (sample, cut, repeated) in parts {
            let text = samples[sample].repeat(repeated + 1);
            chars.extend(text.chars().take(text.len().saturating_sub(cut)));
        }
        for (at, c) in other {
            let at = at.index(chars.len() + 1);
            chars.insert(at, c);
        }
        let head: String = chars.iter().collect();
        let tail: String = chars.iter().rev().take(200).collect();
        let tail = if is_whole { "" } else { &tail };
        let payload = PayloadText { bytes, lines, is_whole, tail, ..payload(name, &head) };
        let found = build_outline(&payload);
        prop_assert!(!found.text.is_empty() && !found.mime.is_empty());
        prop_assert!(estimate(&found.text) <= TOKENS_MAX, "{}", found.text);
        prop_assert!(!found.text.contains(|c: char| c.is_control() && c != '\n'));
        prop_assert_eq!(found, build_outline(&payload));
    }
}
