//! Tests of the projection of the `lcm` dialect.

use alloc::{format, string::String, vec};

use super::*;
use crate::{
    base::{
        error::ErrorCode,
        json::{self, ByteSpan},
        tokens::{self, estimate},
    },
    types::api::Dialect,
};

fn read(raw: &str) -> ParsedMessage {
    parse(Dialect::Lcm, raw).unwrap()
}

fn same(a: &str, b: &str) -> bool {
    read(a).identity == read(b).identity
}

/// Returns for each part its kind and the texts of its fields, for short comparisons; `-`: the
/// field is absent.
fn outline(raw: &str) -> String {
    let text = |span: Option<ByteSpan>| span.map_or("-", |span| json::slice_span(raw, span));
    let mut out = String::new();
    for part in read(raw).parts {
        out += &match part {
            Part::Text { text: t } => format!("text {}", text(Some(t))),
            Part::Reasoning { text: t } => format!("reasoning {}", text(Some(t))),
            Part::ToolCall { id, name, input } => {
                format!("call {} {} {}", text(id), text(name), text(input))
            }
            Part::ToolResult { call_id, name, output, is_error } => {
                format!("result {} {} {} {is_error}", text(call_id), text(name), text(output))
            }
            Part::File { name, mime, text: t, data } => {
                format!("file {} {} {} {}", text(name), text(mime), text(t), text(data))
            }
            Part::Other { value } => format!("other {}", text(Some(value))),
        };
        out += "; ";
    }
    out
}

#[test]
fn content_is_one_text() {
    let raw = r#"{"role":"user","content":"hello"}"#;
    let message = read(raw);
    assert_eq!(message.role, Role::User);
    assert_eq!(outline(raw), "text \"hello\"; ");
    assert_eq!(message.tokens, 1);
    assert_eq!((message.timestamp, message.entry_id, message.event_key), (None, None, None));
    assert!(!message.is_discriminating && !message.is_failed_and_empty);
}

#[test]
fn every_documented_part_is_read() {
    let parts = r#"[{"type":"text","text":"t"},{"type":"reasoning","text":"r"},
        {"type":"tool_call","id":"c1","name":"n","input":{"a": 1}},
        {"type":"tool_result","call_id":"c1","name":"n","output":[1],"is_error":true},
        {"type":"file","name":"f","mime":"m","text":"x"},
        {"type":"file","data":"QUJD"},{"type":"tool_call"},{"type":"tool_result","call_id":7}]"#;
    let expected = "text \"t\"; reasoning \"r\"; call \"c1\" \"n\" {\"a\": 1}; \
        result \"c1\" \"n\" [1] true; file \"f\" \"m\" \"x\" -; file - - - \"QUJD\"; call - - -; \
        result 7 - - false; ";
    for key in ["parts", "content"] {
        let raw = format!("{{\"role\":\"assistant\",\"{key}\":{parts}}}");
        assert_eq!(outline(&raw), expected, "{key}");
    }
}

#[test]
fn what_is_odd_is_kept_and_never_an_error() {
    let check = |members: &str, expected: &str| {
        let raw = format!("{{\"role\":\"user\",{members}}}");
        assert_eq!(outline(&raw), expected, "{members}");
    };
    check(r#""content":null"#, "other null; ");
    check(r#""content":12.5"#, "other 12.5; ");
    check(r#""content":{"type":"text","text":"x"}"#, "other {\"type\":\"text\",\"text\":\"x\"}; ");
    check(r#""x":1"#, "");
    check(r#""content":[]"#, "");
    check(r#""content":"a","parts":null"#, "text \"a\"; ");
    check(r#""content":"a","parts":7"#, "text \"a\"; other 7; ");
    check(r#""content":"a","parts":[]"#, "text \"a\"; ");
    check(r#""content":"a","parts":[{"type":"text","text":"b"}]"#, "text \"b\"; ");
    check(
        r#""content":"a","parts":[{"type":"reasoning","text":"b"}]"#,
        "text \"a\"; reasoning \"b\"; ",
    );
    check(r#""content":"","parts":[{"type":"reasoning","text":"b"}]"#, "reasoning \"b\"; ");
    for odd in [
        r#""bare""#,
        "7",
        "null",
        "[1]",
        "{}",
        r#"{"type":1}"#,
        r#"{"type":"image","source":{}}"#,
        r#"{"type":"text"}"#,
        r#"{"type":"text","text":null}"#,
        r#"{"type":"text","text":["x"]}"#,
        r#"{"type":"reasoning","text":5}"#,
        r#"{"type":"tool_call","id":{}}"#,
        r#"{"type":"tool_call","name":5}"#,
        r#"{"type":"tool_result","is_error":"yes"}"#,
        r#"{"type":"file","data":[1]}"#,
        r#"{"type":"Text","text":"x"}"#,
    ] {
        check(&format!("\"parts\":[{odd}]"), &format!("other {odd}; "));
    }
    check(r#""parts":[{"type":"tool_call","id":""}]"#, "call - - -; ");
    check(r#""parts":[{"type":"text","text":"\ud800"}]"#, "text \"\\ud800\"; ");
    check(r#""parts":[{"type":"reasoning","type":"text","text":"last"}]"#, "text \"last\"; ");
}

#[test]
fn a_message_of_very_many_parts_ends_with_the_rest_of_its_list() {
    let text = r#"{"type":"text","text":"a"}"#;
    let read_list = |elements: &[&str]| {
        let raw = format!("{{\"role\":\"user\",\"content\":[{}]}}", elements.join(" , "));
        (read(&raw), raw)
    };
    let (message, _) = read_list(&[text; 1023]);
    assert_eq!(message.parts.len(), 1023);
    assert!(message.parts.iter().all(|part| matches!(part, Part::Text { .. })));
    // An `a` costs 6 sixteenths of a token, that is two quarters.
    assert_eq!(message.tokens, (2 * 1023_u32).div_ceil(4));

    let (message, raw) = read_list(&[&[text; 1023][..], &["null", "[1, 2]", text]].concat());
    assert_eq!(message.parts.len(), 1023);
    assert!(matches!(message.parts[1021], Part::Text { .. }));
    let rest = format!("{text} , null , [1, 2] , {text}");
    let Part::Other { value } = message.parts[1022] else { panic!("no rest") };
    assert_eq!(json::slice_span(&raw, value), rest);
    assert_eq!(json::text(&raw, value), rest);
    assert_eq!(
        u64::from(message.tokens),
        (2 * 1022 + tokens::estimate_quarter_tokens(&rest)).div_ceil(4)
    );

    let (message, raw) = read_list(&["0"; 1_000_000]);
    assert_eq!(message.parts.len(), 1023);
    assert!(message.parts.capacity() <= 1024);
    assert_eq!(message.parts[0], Part::Other { value: ByteSpan { start: 26, length: 1 } });
    let Part::Other { value } = message.parts[1022] else { panic!("no rest") };
    assert!(raw.ends_with(&format!("{}]}}", json::slice_span(&raw, value))));
    let elements = json::slice_span(&raw, value).split(" , ").count();
    assert_eq!(elements, 1_000_000 - 1022);

    // An image has its flat price also in the part that covers the rest of the list, and the text
    // in `content` still becomes a part of its own.
    let image = format!("{{\"data\":\"{}\"}}", "A1".repeat(4000));
    let parts = [&["0"; 1023][..], &[&image, &image]].concat().join(",");
    let message = read(&format!("{{\"role\":\"user\",\"parts\":[{parts}],\"content\":\"a\"}}"));
    assert_eq!(message.parts.len(), 1024);
    let quarters = tokens::estimate_quarter_tokens;
    let rest = quarters("0,{\"data\":\"\"},{\"data\":\"\"}") + 2 * 4 * 1600;
    let sum = quarters("a") + 1022 * quarters("0") + rest;
    assert_eq!(u64::from(message.tokens), sum.div_ceil(4));
}

#[test]
fn a_failed_turn_with_anything_unknown_has_content() {
    let check = |members: &str, expected: bool| {
        let raw = format!("{{\"role\":\"assistant\",\"stop_reason\":\"error\",{members}}}");
        assert_eq!(read(&raw).is_failed_and_empty, expected, "{members}");
    };
    check(r#""id":1,"timestamp":2,"event_key":3,"speaker":"s","session":"t","parts":[]"#, true);
    check(r#""\u0069d":1"#, true);
    check(r#""content":"","tool_calls":[{"id":"c"}]"#, false);
    check(r#""content":"","x":null"#, false);
    check(r#""content":" ","parts":[{"type":"text","text":" "}]"#, true);
    check(r#""content":"said","parts":[{"type":"text","text":" "}]"#, false);
    check(r#""content":["said"],"parts":[{"type":"text","text":" "}]"#, false);
    let nulls = alloc::vec!["null"; 1500].join(",");
    check(&format!("\"content\":[{nulls},\"said\"]"), false);
}

#[test]
fn only_shape_role_and_depth_are_refused() {
    let nested = |depth: usize| {
        let inner = depth - 1;
        format!("{{\"role\":\"user\",\"x\":{}{}}}", "[".repeat(inner), "]".repeat(inner))
    };
    assert_eq!(read(&nested(512)).role, Role::User);
    for raw in [
        "[]",
        "",
        "{\"role\":\"user\"",
        "\u{feff}{\"role\":\"user\"}",
        "{}",
        r#"{"role":"developer","content":"x"}"#,
        r#"{"role":null}"#,
        r#"{"role":["user"]}"#,
        r#"{"role":"User"}"#,
        r#"{"role":"user","role":"other"}"#,
        &nested(513),
    ] {
        let error = parse(Dialect::Lcm, raw).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput, "{raw}");
    }
    let error = parse(Dialect::Lcm, "{\"role\":\"a\\nb\"}").unwrap_err();
    assert_eq!(
        error.message,
        "`role` must be one of system, user, assistant, tool in dialect `lcm`, got `a b`"
    );
}

#[test]
fn any_cut_of_a_message_is_refused_and_never_panics() {
    let raw = r#"{"role":"tool","parts":[{"type":"tool_result","call_id":"call_abcdefghijkl",
        "output":"\ud83d\n"}],"timestamp":"2026-01-02","id":7}"#;
    assert!(read(raw).unique_call_id.is_some());
    for end in 0..raw.len() {
        assert!(parse(Dialect::Lcm, &raw[..end]).is_err());
    }
}

#[test]
fn a_message_is_rounded_once_and_its_json_is_free() {
    let cost = |parts: &str| read(&format!("{{\"role\":\"user\",\"parts\":[{parts}]}}")).tokens;
    assert_eq!(cost(r#"{"type":"text","text":"a"},{"type":"reasoning","text":"\u4f60"}"#), 2);
    assert_eq!(cost(r#"{"type":"text","text":"a"},{"type":"text","text":"a"}"#), 1);
    let sum = |texts: [&str; 2]| {
        tokens::tokens_from_quarters(texts.map(tokens::estimate_quarter_tokens).iter().sum())
    };
    let call = r#"{"type":"tool_call","id":"ignored","name":"read","input":{ "p" : "a b" }}"#;
    assert_eq!(cost(call), sum(["read", "{\"p\":\"a b\"}"]));
    let call = r#"{"type":"tool_call","name":"read","input":"{\"p\":1}"}"#;
    assert_eq!(cost(call), sum(["read", r#""{\"p\":1}""#]));
    let result = r#"{"type":"tool_result","call_id":"ignored","name":"n","output":"a\nb"}"#;
    assert_eq!(cost(result), sum(["n", "a\nb"]));
    let result = r#"{"type":"tool_result","output":[1, 22, 333]}"#;
    assert_eq!(cost(result), estimate("[1, 22, 333]"));
    let file = |letters: usize| {
        let data = "A".repeat(letters);
        cost(&format!("{{\"type\":\"file\",\"name\":\"name\",\"data\":\"{data}\"}}"))
    };
    assert_eq!(file(4095), 1 + estimate(&"A".repeat(4095)));
    assert_eq!(file(4096), 1 + 1600);
    assert_eq!(file(1_000_000), 1 + 1600);
    assert_eq!(cost(r#"{"type":"file","mime":"ignored","text":"four","name":"four"}"#), 2);
    assert_eq!(cost(r#"{"type":"x", "y":1}"#), estimate(r#"{"type":"x", "y":1}"#));
}

#[test]
fn long_base64_has_a_flat_price() {
    let cost = |part: &str| read(&format!("{{\"role\":\"user\",\"content\":[{part}]}}")).tokens;
    let image = "iVBORw0KGgo".repeat(100_000);
    let check = |before: &str, literal: &str, after: &str, flat: bool| {
        let part = format!("{before}\"{literal}\"{after}");
        let rest = estimate(&format!("{before}\"\"{after}"));
        let expected = if flat { rest + 1600 } else { estimate(&part) };
        assert_eq!(cost(&part), expected, "{before}{after}");
    };
    check(r#"{"type":"image","source":{"type":"base64","data":"#, &image, "}}", true);
    check(r#"{"type":"image","url":"#, &format!("data:image/png;base64,{image}"), "}", true);
    check(r#"{"type":"image","title":"#, &image, "}", false);
    check(r#"{"type":"image","data":"#, &"word ".repeat(2000), "}", false);
    check(r#"{"type":"image","data":"#, &"x".repeat(9000), "}", false);
    check(r#"{"type":"image","url":"#, &format!("data: it says, {image}"), "}", false);
    let call = format!("{{\"type\":\"tool_call\",\"input\":{{ \"data\":\"{image}\" }} }}");
    assert_eq!(cost(&call), 1600 + estimate("{\"data\":\"\"}"));
}

#[test]
fn documents_and_recordings_cost_by_their_size() {
    let letters = "A1".repeat(200_000);
    let data = |start: &str, length: usize| format!("{start}{}", &letters[..length - start.len()]);
    let cost = |dialect, block: &str| {
        let key = if dialect == Dialect::Gemini { "parts" } else { "content" };
        let raw = format!("{{\"role\":\"user\",\"{key}\":[{block}]}}");
        parse(dialect, &raw).unwrap().tokens
    };
    let (pdf, mp3, wav) = (data("JVBERi0", 400_000), data("SUQz", 400_000), data("UklGR", 400_000));
    // 300,000 bytes are 6 pages and a quarter of 2,000 tokens, or 18 seconds and three quarters of
    // 32 tokens; of samples that are not compressed, half of that.
    let (pages, seconds, samples) = (12_500, 600, 300);
    let anthropic = |kind: &str, mime: &str, data: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"source\":{{\"type\":\"base64\",\"media_type\":\"{mime}\",\"data\":\"{data}\"}}}}"
        )
    };
    let inline = |mime: &str, data: &str| {
        format!("{{\"inlineData\":{{\"mimeType\":\"{mime}\",\"data\":\"{data}\"}}}}")
    };
    let document = anthropic("document", "application/pdf", &pdf);
    assert_eq!(cost(Dialect::Anthropic, &document), pages);
    assert_eq!(cost(Dialect::Gemini, &inline("application/pdf", &pdf)), pages);
    assert_eq!(cost(Dialect::Gemini, &inline("audio/aac", &data("A", 400_000))), seconds);
    let url = format!("data:application/pdf;base64,{pdf}");
    let file = format!("{{\"type\":\"input_file\",\"file_data\":\"{url}\"}}");
    assert_eq!(cost(Dialect::OpenaiResponses, &file), pages);
    let file = format!("{{\"type\":\"file\",\"file\":{{\"file_data\":\"{url}\"}}}}");
    assert_eq!(cost(Dialect::OpenaiChat, &file), pages);
    for (audio, expected) in [(&mp3, seconds), (&wav, samples)] {
        let part = format!("{{\"type\":\"input_audio\",\"input_audio\":{{\"data\":\"{audio}\"}}}}");
        assert_eq!(cost(Dialect::OpenaiChat, &part), expected);
    }
    // In the result of a tool the JSON around the document counts, too.
    let result = |block: &str| {
        format!("{{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[{block}]}}")
    };
    let around = estimate(&format!("[{}]", anthropic("document", "application/pdf", "")));
    assert_eq!(cost(Dialect::Anthropic, &result(&document)), pages + around);
    // One page at least, at most 100; a picture that begins like a recording stays a picture.
    let small = anthropic("document", "application/pdf", &data("JVBERi0", 5_000));
    assert_eq!(cost(Dialect::Anthropic, &small), 1600);
    let large = anthropic("document", "application/pdf", &letters.repeat(25));
    assert_eq!(cost(Dialect::Anthropic, &large), 200_000);
    let webp = anthropic("image", "image/webp", &wav);
    assert_eq!(cost(Dialect::Anthropic, &webp), 1600);
    let webp = anthropic("image", "image/webp", &data("UklGRiQAAABXRUJQ", 400_000));
    let around = estimate(&format!("[{}]", anthropic("image", "image/webp", "")));
    assert_eq!(cost(Dialect::Anthropic, &result(&webp)), 1600 + around);
}

#[test]
fn a_failed_turn_without_content_is_told() {
    let check = |members: &str, expected: bool| {
        let raw = format!("{{\"role\":\"assistant\",{members}}}");
        assert_eq!(read(&raw).is_failed_and_empty, expected, "{members}");
    };
    check(r#""stop_reason":"error","content":"""#, true);
    check(r#""stop_reason":"aborted","content":" \n\u3000""#, true);
    check(r#""stop_reason":"error""#, true);
    check(r#""stop_reason":"error","content":null"#, true);
    check(r#""stop_reason":"error","content":[]"#, true);
    check(r#""stop_reason":"error","content":[{"type":"reasoning","text":" "}]"#, true);
    check(r#""stop_reason":"error","content":"text""#, false);
    check(r#""stop_reason":"error","content":[{"type":"reasoning","text":"hm"}]"#, false);
    check(r#""stop_reason":"error","content":[{"type":"tool_call"}]"#, false);
    check(r#""stop_reason":"error","content":[{"type":"odd"}]"#, false);
    check(r#""stop_reason":"end_turn","content":"""#, false);
    check(r#""stop_reason":["error"],"content":"""#, false);
    assert!(!read(r#"{"role":"user","stop_reason":"error","content":""}"#).is_failed_and_empty);
}

#[test]
fn a_turn_of_calls_has_no_text_and_keeps_unknown_fields() {
    let part = r#"{"type":"tool_call","id":"c","name":"n","input":{},"cache":{"ttl": 5}}"#;
    let raw = format!("{{\"role\":\"assistant\",\"content\":\"\",\"parts\":[{part}]}}");
    let message = read(&raw);
    assert_eq!(outline(&raw), "call \"c\" \"n\" {}; ");
    assert_eq!(message.parts[0].call_id(&raw).as_deref(), Some("c"));
    assert_eq!(message.parts[0].result_id(&raw), None);
    assert!(raw.contains(part), "the raw text is what is rendered");
}

#[test]
fn times_and_ids_are_read_or_absent() {
    let time = |value: &str| {
        read(&format!("{{\"role\":\"user\",\"content\":\"\",\"timestamp\":{value}}}")).timestamp
    };
    assert_eq!(time("\"1970-01-01T00:00:01+00:00\""), Some(1000));
    assert_eq!(time("1700000000000"), Some(1_700_000_000_000));
    assert_eq!(time("1700000000000.75"), Some(1_700_000_000_000));
    for odd in ["-1", "1e12", "\"today\"", "null", "true", "99999999999999999999", "[1]"] {
        assert_eq!(time(odd), None, "{odd}");
    }
    let ids = |value: &str| {
        let raw = format!("{{\"role\":\"user\",\"id\":{value},\"event_key\":{value}}}");
        let message = read(&raw);
        assert_eq!(message.entry_id.is_some(), message.event_key.is_some());
        message.entry_id.map(|id| String::from(json::text(&raw, id)))
    };
    assert_eq!(ids("\"e\\u0031\"").as_deref(), Some("e1"));
    assert_eq!(ids("12").as_deref(), Some("12"));
    for odd in ["\"\"", "null", "true", "[]"] {
        assert_eq!(ids(odd), None, "{odd}");
    }
}

#[test]
fn identity_ignores_spelling_and_nothing_else() {
    let message = r#"{"role":"user","content":"h\u00e9 \/","x":[1,{"b":2,"a":3}]}"#;
    let equal = [
        "{ \"x\" : [1,\n{\"b\":2,\"a\":3}], \"content\":\"h\u{e9} /\",\"role\":\"user\" }",
        r#"{"role":"user","content":"h\u00E9 /","x":[1,{"\u0062":2,"a":3}],"id":"e1"}"#,
        r#"{"role":"user","content":"other","content":"h\u00e9 /","x":[1,{"b":2,"a":3}]}"#,
        r#"{"event_key":9,"role":"user","content":"h\u00e9 /","x":[1,{"b":2,"a":3}]}"#,
    ];
    for other in equal {
        assert!(same(message, other), "{other}");
    }
    let different = [
        r#"{"role":"tool","content":"h\u00e9 /","x":[1,{"b":2,"a":3}]}"#,
        r#"{"role":"user","content":"h\u00e9  /","x":[1,{"b":2,"a":3}]}"#,
        r#"{"role":"user","content":"h\u00e9 /","x":[1,{"a":3,"b":2}]}"#,
        r#"{"role":"user","content":"h\u00e9 /","x":[1.0,{"b":2,"a":3}]}"#,
        r#"{"role":"user","content":"h\u00e9 /","x":["1",{"b":2,"a":3}]}"#,
        r#"{"role":"user","content":"h\u00e9 /","x":[1,[{"b":2,"a":3}]]}"#,
        r#"{"role":"user","content":"h\u00e9 /","x":[1,{"b":2,"a":3}],"timestamp":1}"#,
        r#"{"role":"user","content":"h\u00e9 /","y":[1,{"b":2,"a":3}]}"#,
    ];
    for other in different {
        assert!(!same(message, other), "{other}");
    }
}

#[test]
fn what_cannot_be_an_id_is_content_in_every_dialect() {
    let messages = [
        (Dialect::Lcm, r#""role":"user","content":"hi""#),
        (Dialect::Anthropic, r#""role":"user","content":"hi""#),
        (Dialect::OpenaiChat, r#""role":"user","content":"hi""#),
        (Dialect::OpenaiResponses, r#""role":"user","content":"hi""#),
        (Dialect::OpenaiResponses, r#""type":"local_shell_call_output","output":"hi""#),
        (Dialect::Gemini, r#""role":"user","parts":[{"text":"hi"}]"#),
    ];
    for (dialect, message) in messages {
        let of = |key: &str, value: &str| {
            parse(dialect, &format!("{{\"{key}\":{value},{message}}}")).unwrap()
        };
        let bare = parse(dialect, &format!("{{{message}}}")).unwrap();
        for key in ["id", "event_key", "i\\u0064", "event\\u005fkey"] {
            let odd = [r#"{"$oid":"a"}"#, r#"{"$oid":"b"}"#, "[]", "[1]", "true", "false"];
            for (at, value) in odd.iter().enumerate() {
                let message = of(key, value);
                assert_eq!((message.entry_id, message.event_key), (None, None));
                assert_ne!(message.identity, bare.identity, "{dialect:?} {key} {value}");
                for other in &odd[..at] {
                    assert_ne!(message.identity, of(key, other).identity, "{dialect:?} {key}");
                }
                assert_eq!(message.identity, of(key, &format!(" {value} ")).identity);
            }
            let is_content = message.contains("local_shell") && !key.starts_with("event");
            for name in ["null", "\"\"", "\"a\"", "7"] {
                let same = of(key, name).identity == bare.identity;
                assert_eq!(same, !is_content, "{dialect:?} {key} {name}");
            }
        }
        // The last of equal keys counts.
        let twice = parse(dialect, &format!("{{\"id\":[],\"id\":null,{message}}}")).unwrap();
        assert_eq!(twice.identity, of("id", "null").identity);
    }
}

#[test]
fn identity_tells_halves_of_pairs_apart() {
    let texts = [r"\ud800", r"\ud801", r"\udc00", r"\ufffd", r"\ud800\ud800", r"\ud800\udc00"];
    let raws = texts.map(|text| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}"));
    for (at, a) in raws.iter().enumerate() {
        for b in &raws[..at] {
            assert!(!same(a, b), "{a} {b}");
        }
    }
    let literal = "{\"role\":\"user\",\"content\":\"\u{10000}\"}";
    assert!(same(&raws[5], literal));
}

#[test]
fn identity_is_part_of_the_format() {
    let hex: String = read(r#"{"role":"user","content":"hi","n":[null,true,false,-1e3,{}]}"#)
        .identity
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(hex, "c69c2b278c9e3a6aad497425a90ec8fe");
}

#[test]
fn a_strong_id_of_a_single_result_is_unique() {
    let unique = |parts: &str| {
        let raw = format!("{{\"role\":\"tool\",\"parts\":[{parts}]}}");
        let message = read(&raw);
        message.unique_call_id.map(|id| String::from(json::text(&raw, id)))
    };
    let strong = r#"{"type":"tool_result","call_id":"call_abcdefghijkl"}"#;
    assert_eq!(unique(strong).as_deref(), Some("call_abcdefghijkl"));
    assert_eq!(unique(&format!("{strong},{strong}")), None);
    assert_eq!(unique(&format!("{strong},{{\"type\":\"text\",\"text\":\"\"}}")), None);
    assert_eq!(unique(r#"{"type":"tool_result","call_id":"functions.exec:0"}"#), None);
    assert_eq!(unique(r#"{"type":"tool_call","id":"call_abcdefghijkl"}"#), None);
    assert_eq!(unique(r#"{"type":"tool_result"}"#), None);
    for weak in ["", "call_", "call_abcdefghijk", "toolu_1234567890-2", "Call_abcdefghijkl", "abcd"]
    {
        assert!(!is_unique_call_id(weak), "{weak}");
    }
    assert!(is_unique_call_id("toolu_01A2b3C4d5E6f7"));
}

#[test]
fn long_dated_or_uniquely_called_content_discriminates() {
    let check = |members: &str, expected: bool| {
        let raw = format!("{{\"role\":\"assistant\",{members}}}");
        assert_eq!(read(&raw).is_discriminating, expected, "{members}");
    };
    let (short, long) = ("x ".repeat(23), "x ".repeat(24));
    check(&format!("\"content\":\"{short}\""), false);
    check(&format!("\"content\":\"{long}\""), true);
    let halves =
        r#"{"type":"text","text":"abcdefghijkl"},{"type":"reasoning","text":"abcdefghijkl"}"#;
    check(&format!("\"content\":[{halves}]"), true);
    check(r#""content":"ok","timestamp":5"#, true);
    check(r#""content":"ok","timestamp":"unreadable""#, false);
    check(r#""content":[{"type":"tool_call","id":"call_abcdefghijkl"}]"#, true);
    check(r#""content":[{"type":"tool_result","call_id":"toolu_abcdefghijkl"}]"#, true);
    check(
        r#""content":[{"type":"tool_call","id":"call_1","input":{"command":"git status"}}]"#,
        false,
    );
    check(&format!("\"content\":[{{\"type\":\"tool_result\",\"output\":\"{long}\"}}]"), true);
    assert_eq!(
        read(&format!("{{\"role\":\"user\",\"content\":\"{long}\"}}")).parts,
        vec![Part::Text { text: ByteSpan { start: 25, length: 50 } }]
    );
}
