//! Tests of the scanner, against fixed documents and against `serde_json`.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use super::*;

fn whole(raw: &str) -> ByteSpan {
    ByteSpan::from_range(0, raw.len())
}

fn nested(depth: usize) -> String {
    let inner = depth - 1;
    format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner))
}

#[test]
fn members_are_spans_of_the_original() {
    let raw = " { \"a\" : [1, {\"b\":2}] ,\"c\":\"x\\n\",\"d\":-0.5e+3,\"e\":null,\"f\":true}\n";
    let members = parse_object(raw).unwrap();
    let seen: Vec<_> = members
        .iter()
        .map(|m| (slice_span(raw, m.key), slice_span(raw, m.value), m.kind))
        .collect();
    assert_eq!(
        seen,
        vec![
            ("\"a\"", "[1, {\"b\":2}]", JsonKind::Array),
            ("\"c\"", "\"x\\n\"", JsonKind::String),
            ("\"d\"", "-0.5e+3", JsonKind::Number),
            ("\"e\"", "null", JsonKind::Null),
            ("\"f\"", "true", JsonKind::Bool),
        ]
    );
    for m in &members {
        assert_eq!(kind(raw, m.value), m.kind);
    }
    let items = list_elements(raw, members[0].value);
    assert_eq!(slice_span(raw, items[1].span), "{\"b\":2}");
    let inner = super::list_members(raw, items[1].span);
    assert_eq!(slice_span(raw, inner[0].value), "2");
}

#[test]
fn of_duplicate_keys_the_last_counts_however_it_is_spelled() {
    let raw = r#"{"k":1,"\u006b":2,"other":3}"#;
    let members = parse_object(raw).unwrap();
    assert_eq!(members.len(), 3);
    assert_eq!(slice_span(raw, find_member(&members, raw, "k").unwrap().value), "2");
    assert_eq!(find_member(&members, raw, "absent"), None);
}

#[test]
fn half_a_surrogate_pair_is_kept_and_shows_as_a_replacement_character() {
    let check = |raw: &str, expected: &str| {
        let members = parse_object(raw).unwrap();
        assert_eq!(text(raw, members[0].value), expected, "{raw}");
    };
    check(r#"{"t":"a\ud83db"}"#, "a\u{fffd}b");
    check(r#"{"t":"\ude00"}"#, "\u{fffd}");
    check(r#"{"t":"\ud83d\ud83d\ude00"}"#, "\u{fffd}\u{1f600}");
    check(r#"{"t":"\uD83D\uDE00"}"#, "\u{1f600}");
    check(r#"{"t":"\ud83d\u0041"}"#, "\u{fffd}A");
    check(r#"{"t":"\ud83d\n"}"#, "\u{fffd}\n");
    check(r#"{"t":"\u0000\u001f\"\\\/\b\f\n\r\t"}"#, "\0\u{1f}\"\\/\u{8}\u{c}\n\r\t");
    check(r#"{"t":"\u00e9"}"#, "\u{e9}");
}

#[test]
fn text_of_other_values_is_their_json() {
    let raw = r#"{"t":{"a": [1, "x y"]}}"#;
    let value = parse_object(raw).unwrap()[0].value;
    assert_eq!(text(raw, value), r#"{"a": [1, "x y"]}"#);
    assert_eq!(compact_value(raw, value), r#"{"a":[1,"x y"]}"#);
}

#[test]
fn nesting_is_followed_to_512() {
    assert_eq!(parse_object(&nested(300)).unwrap().len(), 1);
    assert_eq!(parse_object(&nested(512)).unwrap().len(), 1);
    let error = parse_object(&nested(513)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid-input: must be one JSON object: nesting deeper than 512 at byte 516"
    );
    let error = parse_object(&format!("{{\"a\":{}", "[{\"a\":".repeat(1_000_000))).unwrap_err();
    assert!(error.message.contains("deeper"), "{error}");
}

#[test]
fn what_is_not_one_object_is_refused_with_its_offset() {
    let refused = [
        ("", 0),
        (" ", 1),
        ("[]", 0),
        ("null", 0),
        ("\"a\"", 0),
        ("12", 0),
        ("{", 1),
        ("{}x", 2),
        ("{}{}", 2),
        ("{} ,", 3),
        ("\u{feff}{}", 0),
        ("\u{a0}{}", 0),
        ("{\"a\"}", 4),
        ("{\"a\":}", 5),
        ("{\"a\":1,}", 7),
        ("{,}", 1),
        ("{a:1}", 1),
        ("{'a':1}", 1),
        ("{\"a\":01}", 6),
        ("{\"a\":+1}", 5),
        ("{\"a\":.5}", 5),
        ("{\"a\":1.}", 7),
        ("{\"a\":1e}", 7),
        ("{\"a\":-}", 6),
        ("{\"a\":-01}", 7),
        ("{\"a\":NaN}", 5),
        ("{\"a\":nul}", 5),
        ("{\"a\":True}", 5),
        ("{\"a\":truex}", 9),
        ("{\"a\":[1,]}", 8),
        ("{\"a\":[1}", 7),
        ("{\"a\":{]}", 6),
        ("{\"a\":[}", 6),
        ("{\"a\":\"\n\"}", 6),
        ("{\"a\":\"\0\"}", 6),
        ("{\"a\":\"\\x\"}", 6),
        ("{\"a\":\"\\u12g4\"}", 6),
        ("{\"a\":\"\\u123\"}", 6),
        ("{\"a\":\"\\", 6),
        ("{\"a\" 1}", 5),
        ("{\"a\":1 \"b\":2}", 7),
        ("{\"a\":1}//", 7),
    ];
    for (raw, at) in refused {
        let error = parse_object(raw).unwrap_err();
        assert_eq!(error.code, crate::base::error::ErrorCode::InvalidInput);
        assert!(error.message.ends_with(&format!(" at byte {at}")), "{raw:?}: {error}");
    }
}

#[test]
fn huge_numbers_stay_as_written() {
    let digits = "9".repeat(5000);
    let raw = format!("{{\"n\":-{digits}.{digits}E+{digits}}}");
    let value = parse_object(&raw).unwrap()[0].value;
    assert_eq!(slice_span(&raw, value).len(), 15_004);
}

#[test]
fn truncated_or_damaged_input_is_refused_and_never_panics() {
    let raw = r#" {"a":[1,{"b":"x\n\ud83d\u00e9"},-1.5e-7,true,null],"c":"\\","d":{"e":[]}}"#;
    assert_eq!(parse_object(raw).unwrap().len(), 3);
    for end in 0..raw.len() {
        assert!(parse_object(&raw[..end]).is_err(), "{end}");
        for start in 0..=end {
            // Arbitrary spans: no call may panic, and no returned span may leave the text.
            let span = ByteSpan::from_range(start, end);
            let _ = (list_members(raw, span), list_elements(raw, span), kind(raw, span));
            let _ = text(raw, span);
            assert!(compact_value(raw, span).len() <= span.length as usize);
        }
    }
}

#[test]
fn a_span_outside_the_text_is_empty() {
    let raw = "{\"\u{e9}\":1}";
    for (start, length) in [(0, 99), (99, 1), (3, 1), (u32::MAX, u32::MAX), (2, 1)] {
        let span = ByteSpan { start, length };
        assert_eq!(slice_span(raw, span), "");
        assert_eq!(text(raw, span), "");
        assert_eq!(compact_value(raw, span), "");
        assert_eq!(kind(raw, span), JsonKind::Null);
        assert!(list_members(raw, span).is_empty() && list_elements(raw, span).is_empty());
    }
}

#[test]
fn a_written_string_reads_back() {
    let nasty = "\0\u{1}\u{1f}\u{7f} \"\\/\n\r\t\u{8}\u{c}\u{2028}\u{1f600}";
    let mut out = String::new();
    write_string(&mut out, nasty);
    assert_eq!(out, "\"\\u0000\\u0001\\u001f\u{7f} \\\"\\\\/\\n\\r\\t\\b\\f\u{2028}\u{1f600}\"");
    assert_eq!(text(&out, whole(&out)), nasty);
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn string(&mut self) -> String {
        let nasty = ['a', '"', '\\', '\n', '\0', ' ', '\u{e9}', '\u{1f600}', '\u{fffd}', '{', ','];
        (0..self.below(8)).map(|_| nasty[self.below(11) as usize]).collect()
    }

    fn value(&mut self, depth: u64) -> serde_json::Value {
        match self.below(if depth == 0 { 5 } else { 9 }) {
            0 => serde_json::Value::Null,
            1 => (self.below(2) == 0).into(),
            2 => self.below(u64::MAX).into(),
            3 => (self.below(1000) as f64 / -7e9).into(),
            4 => self.string().into(),
            5 | 6 => (0..self.below(6)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let members = (0..self.below(6)).map(|_| (self.string(), self.value(depth - 1)));
                serde_json::Value::Object(members.collect())
            }
        }
    }
}

#[test]
fn agrees_with_serde_json_on_valid_documents() {
    let mut random = Random(42);
    for round in 0..4000 {
        let document = serde_json::json!({ "v": random.value(5) });
        let raw = if round % 2 == 0 { format!("{document:#}") } else { document.to_string() };
        let found = parse_object(&raw).unwrap()[0];
        assert_eq!(compact_value(&raw, found.value), document["v"].to_string());
        match &document["v"] {
            serde_json::Value::String(s) => assert_eq!(&text(&raw, found.value), s),
            serde_json::Value::Array(list) => {
                let items = list_elements(&raw, found.value);
                assert_eq!(items.len(), list.len());
                for (item, expected) in items.iter().zip(list) {
                    assert_eq!(compact_value(&raw, item.span), expected.to_string());
                }
            }
            serde_json::Value::Object(map) => {
                let inner = super::list_members(&raw, found.value);
                assert_eq!(inner.len(), map.len());
                for (key, expected) in map {
                    let found = find_member(&inner, &raw, key).unwrap();
                    assert_eq!(compact_value(&raw, found.value), expected.to_string());
                }
            }
            _ => {}
        }
    }
}

#[test]
fn accepts_exactly_what_serde_json_accepts() {
    // Goal: the grammar. Method: every value of up to 5 characters from an alphabet of the
    // characters that the grammar distinguishes.
    let alphabet = "[]{}:,\"a0-.e \\";
    let mut accepted = 0;
    let mut values = vec![String::new()];
    while let Some(value) = values.pop() {
        let raw = format!("{{\"a\":{value}}}");
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&raw).is_ok();
        assert_eq!(parse_object(&raw).is_ok(), theirs, "{raw}");
        accepted += usize::from(theirs);
        if value.len() < 5 {
            values.extend(alphabet.chars().map(|c| format!("{value}{c}")));
        }
    }
    assert!(accepted > 1000, "{accepted}");
}

#[test]
fn any_text_written_reads_back() {
    let mut random = Random(7);
    for _ in 0..2000 {
        let plain = random.string();
        let mut out = String::new();
        write_string(&mut out, &plain);
        assert_eq!(text(&out, whole(&out)), plain);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), plain);
    }
}
