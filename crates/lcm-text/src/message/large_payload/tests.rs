//! Tests of large payloads: which texts become payloads, and which references replace them.

use alloc::{format, string::String, vec::Vec};

use super::*;
use crate::{
    base::{int, json},
    message::{self, Part},
    types::api::Dialect,
};

const ROOT: &str = "root";

fn made(dialect: Dialect, raw: &str, least: u32) -> Option<NewPlaceholder> {
    let message = message::parse(dialect, raw).unwrap();
    build_placeholder(dialect, raw, &message, least, ROOT)
}

/// Returns the content of each payload, decoded as a read of the stored payload decodes it.
fn contents(raw: &str, made: &NewPlaceholder) -> Vec<String> {
    let read = |file: &PayloadRecord| {
        let start = int::to_usize(u64::from(file.place.start));
        let end = start + int::to_usize(u64::from(file.place.length));
        let mut out = String::new();
        walk(&raw[start..end], file.place.is_text, &mut |piece, _| {
            out.push_str(piece);
            true
        });
        out
    };
    made.files.iter().map(|(_, file)| read(file)).collect()
}

fn literal(text: &str) -> String {
    let mut out = String::new();
    json::write_string(&mut out, text);
    out
}

fn user(text: &str) -> String {
    format!("{{\"role\":\"user\",\"content\":{}}}", literal(text))
}

#[test]
fn a_file_block_is_large_from_the_threshold_on() {
    let block = |letters: usize| {
        let body = "x".repeat(letters);
        user(&format!("see <file name=\"a.csv\" mime=\"text/csv\">{body}</file> please"))
    };
    // 4 letters cost one token, the first seven 10 sixteenths less; the estimate rounds up.
    assert!(made(Dialect::Lcm, &block(7_998), 2_000).is_none());
    for letters in [7_999, 8_000] {
        let raw = block(letters);
        let made = made(Dialect::Lcm, &raw, 2_000).unwrap();
        let [(id, file)] = made.files.as_slice() else { panic!("{made:?}") };
        assert_eq!((file.kind, file.name.as_deref()), (PayloadKind::File, Some("a.csv")));
        assert_eq!((file.mime.as_str(), file.bytes), ("text/csv", int::to_u64(letters)));
        let bytes = if letters == 8_000 { "8,000" } else { "7,999" };
        let first =
            format!("see [LCM File: {} | a.csv | text/csv | {bytes} bytes]", format_name(*id));
        let message = message::parse(Dialect::Lcm, &made.raw).unwrap();
        let Part::Text { text } = message.parts[0] else { panic!() };
        let shown = json::text(&made.raw, text);
        assert!(shown.starts_with(&first) && shown.ends_with(" please"), "{shown}");
        assert_eq!(contents(&raw, &made), ["x".repeat(letters)]);
        assert!(made.tokens < 500);
    }
}

#[test]
fn of_two_blocks_only_the_large_one_is_replaced() {
    let small = "<FILE NAME='b.txt'>small</FILE>";
    let large = format!("<File mime=text/plain name=c.txt>{}</file>", "word ".repeat(2_000));
    let raw = user(&format!("one {small} two {large} three"));
    let made = made(Dialect::Lcm, &raw, 2_000).unwrap();
    assert_eq!(contents(&raw, &made), ["word ".repeat(2_000)]);
    let (before, after) = made.raw.split_once("[LCM File: ").unwrap();
    assert_eq!(before, format!("{{\"role\":\"user\",\"content\":\"one {small} two "));
    assert!(after.ends_with(" three\"}"), "{after}");
    assert_eq!(made.files[0].1.name.as_deref(), Some("c.txt"));
}

#[test]
fn many_small_blocks_are_too_large_together() {
    let block = |name: &str| format!("<file name={name}>{}</file>", name.repeat(7_000));
    let raw = user(&["a", "b", "c", "d"].map(block).concat());
    let made = made(Dialect::Lcm, &raw, 2_000).unwrap();
    let names: Vec<_> = made.files.iter().map(|(_, file)| file.name.clone().unwrap()).collect();
    assert_eq!(names, ["c", "d"]);
    assert_eq!(contents(&raw, &made), ["c".repeat(7_000), "d".repeat(7_000)]);
}

#[test]
fn escaped_tags_are_tags() {
    let body = "line\\n".repeat(2_000);
    let raw = format!(
        "{{\"role\":\"user\",\"content\":\"\\u003cfile name=\\\"a\\\"\\u003e{body}\\u003c\\/file\\u003e\"}}"
    );
    let made = made(Dialect::Lcm, &raw, 2_000).unwrap();
    assert_eq!(contents(&raw, &made), ["line\n".repeat(2_000)]);
    assert_eq!((made.files[0].1.lines, made.files[0].1.name.as_deref()), (2_000, Some("a")));
}

#[test]
fn a_result_keeps_its_call_and_is_the_same_file_again() {
    let output = literal(&"row of output\n".repeat(10_000));
    let raw = format!(
        "{{\"role\":\"tool\",\"parts\":[{{\"type\":\"tool_result\",\"call_id\":\"call_abcdefghijkl\",\
         \"name\":\"bash\",\"output\":{output}}}]}}"
    );
    let first = made(Dialect::Lcm, &raw, 25_000).unwrap();
    let message = message::parse(Dialect::Lcm, &first.raw).unwrap();
    assert_eq!(message.parts[0].result_id(&first.raw).as_deref(), Some("call_abcdefghijkl"));
    assert!(first.raw.contains("[LCM Tool Output: file_") && first.raw.contains("| tool=bash |"));
    assert_eq!(first.files[0].1.lines, 10_000);
    let again = made(Dialect::Lcm, &format!(" {raw}"), 25_000).unwrap();
    assert_eq!(first.files[0].0, again.files[0].0);
    let other = made(Dialect::Lcm, &raw.replace("abcdefghijkl", "abcdefghijkm"), 25_000).unwrap();
    assert_ne!(first.files[0].0, other.files[0].0);
}

#[test]
fn results_are_replaced_in_the_form_of_their_dialect() {
    let text = literal(&"some words \u{4f60} and\n".repeat(3_000));
    let numbers = format!("[{}1]", "{\"a\":1},".repeat(4_000));
    let cases = [
        (
            Dialect::Anthropic,
            format!(
                "{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\
                 \"toolu_0123456789ab\",\"content\":[{{\"type\":\"text\",\"text\":\"short\"}},\
                 {{\"type\":\"text\",\"text\":{text}}}]}}]}}"
            ),
        ),
        (
            Dialect::OpenaiChat,
            format!("{{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":{text}}}"),
        ),
        (
            Dialect::OpenaiResponses,
            format!(
                "{{\"type\":\"function_call_output\",\"call_id\":\"call_1\",\"output\":{text}}}"
            ),
        ),
        (
            Dialect::Gemini,
            format!(
                "{{\"role\":\"user\",\"parts\":[{{\"functionResponse\":{{\"name\":\"f\",\
                 \"response\":{{\"rows\":{numbers}}}}}}}]}}"
            ),
        ),
        (
            Dialect::Lcm,
            format!(
                "{{\"role\":\"tool\",\"parts\":[{{\"type\":\"tool_result\",\"call_id\":\"1\",\
                 \"output\":{numbers}}}]}}"
            ),
        ),
    ];
    for (dialect, raw) in cases {
        let made = made(dialect, &raw, 5_000).unwrap();
        assert_eq!(made.files.len(), 1, "{dialect:?}");
        assert!(made.tokens < 1_000, "{dialect:?}: {}", made.raw);
        let before = message::parse(dialect, &raw).unwrap();
        let after = message::parse(dialect, &made.raw).unwrap();
        let id = |raw, parts: &[Part]| parts[0].result_id(raw).map(|id| String::from(&*id));
        assert_eq!(id(raw.as_str(), &before.parts), id(made.raw.as_str(), &after.parts));
        assert_eq!(after.role, before.role);
        let contents = contents(&raw, &made);
        let is_text = made.files[0].1.place.is_text;
        let wanted = if is_text {
            json::text(&text, json::ByteSpan::from_range(0, text.len()))
        } else {
            "".into()
        };
        assert!(if is_text { contents[0] == *wanted } else { contents[0].contains(&numbers) });
        if dialect == Dialect::Gemini {
            assert!(
                made.raw.contains("\"response\":{\"output\":\"[LCM Tool Output: "),
                "{}",
                made.raw
            );
        }
    }
}

#[test]
fn what_this_engine_answered_stays() {
    let content = literal(&"x".repeat(160_000));
    let answer = format!(
        "{{\"bytes\":1,\"content\":{content},\"exploration\":\"e\",\"id\":\"file_0123456789abcdef\"}}"
    );
    let result = |fields: &str, output: &str| {
        let output = literal(output);
        format!(
            "{{\"role\":\"tool\",\"parts\":[{{\"type\":\"tool_result\",{fields}\"output\":{output}}}]}}"
        )
    };
    assert!(made(Dialect::Lcm, &result("", &answer), 25_000).is_none());
    let named = result("\"name\":\"lcm_describe\",", &"y".repeat(160_000));
    assert!(made(Dialect::Lcm, &named, 25_000).is_none());
    let answer_of_tool =
        format!("{}\n{}", crate::message::trust::BACKGROUND_LINE, "y".repeat(160_000));
    assert!(made(Dialect::Lcm, &result("", &answer_of_tool), 25_000).is_none());
    let in_a_block = format!(
        "{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\
         \"content\":[{{\"type\":\"text\",\"text\":{}}}]}}]}}",
        literal(&answer_of_tool)
    );
    assert!(made(Dialect::Anthropic, &in_a_block, 25_000).is_none());
    let of_others = in_a_block.replace("[lcm: ", "[LCM: ");
    assert!(made(Dialect::Anthropic, &of_others, 25_000).is_some());
    let other = result("", &answer.replace("file_0123456789abcdef", "row 7"));
    assert!(made(Dialect::Lcm, &other, 25_000).is_some());
}

#[test]
fn a_message_gives_up_its_longest_texts_and_keeps_what_is_replayed() {
    let [long, middle, short] =
        [40_000, 20_000, 2_000].map(|letters| literal(&"w".repeat(letters)));
    let parts = |extra: &str| {
        format!(
            "{{\"role\":\"assistant\",\"parts\":[{{\"type\":\"text\",\"text\":{short}}},\
             {{\"type\":\"text\",\"text\":{middle}}},{{\"type\":\"text\",\"text\":{long}}}{extra}]}}"
        )
    };
    let raw = parts("");
    let one = made(Dialect::Lcm, &raw, 10_000).unwrap();
    assert_eq!(contents(&raw, &one), ["w".repeat(40_000)]);
    let two = made(Dialect::Lcm, &raw, 3_000).unwrap();
    assert_eq!(contents(&raw, &two), ["w".repeat(20_000), "w".repeat(40_000)]);
    assert!(two.raw.contains("role=assistant | reason=large_raw_message"));
    let call = ",{\"type\":\"tool_call\",\"id\":\"1\",\"name\":\"f\",\"input\":{}}";
    assert!(made(Dialect::Lcm, &parts(call), 3_000).is_none());
    let system = raw.replace("assistant", "system");
    assert!(made(Dialect::Lcm, &system, 3_000).is_none());
}

#[test]
fn of_very_many_payloads_the_longest_are_replaced() {
    let results: Vec<String> = (0..300)
        .map(|number| {
            let output = literal(&"r".repeat(4_100 + number));
            format!("{{\"type\":\"tool_result\",\"call_id\":\"{number}\",\"output\":{output}}}")
        })
        .collect();
    let raw = format!("{{\"role\":\"tool\",\"parts\":[{}]}}", results.join(","));
    let made = made(Dialect::Lcm, &raw, 1_000).unwrap();
    let lengths: Vec<u64> = made.files.iter().map(|(_, file)| file.bytes).collect();
    assert_eq!(lengths, (4_336..4_400).collect::<Vec<u64>>());
}

#[test]
fn marks_and_measures_fit_the_text() {
    let text: String = (0..200_000).map(|n| if n % 7 == 0 { "\n" } else { "a\u{e9}\"" }).collect();
    let raw = user(&text);
    let made = made(Dialect::Lcm, &raw, 25_000).unwrap();
    let file = &made.files[0].1;
    assert_eq!(file.bytes, int::to_u64(text.len()));
    assert_eq!(file.lines, int::to_u64(text.lines().count()));
    assert!(file.place.seek_points.len() >= 3);
    let start = int::to_usize(u64::from(file.place.start));
    let end = start + int::to_usize(u64::from(file.place.length));
    for mark in &file.place.seek_points {
        let at = int::to_usize(u64::from(mark.at));
        let mut before = String::new();
        walk(&raw[start..start + at], true, &mut |piece, _| {
            before.push_str(piece);
            true
        });
        assert_eq!(before, text[..int::to_usize(u64::from(mark.bytes))]);
        assert_eq!(before.matches('\n').count(), int::to_usize(u64::from(mark.line_ends)));
        assert!(start + at < end);
    }
}
