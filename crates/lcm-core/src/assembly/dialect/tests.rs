//! Tests of rendering in the dialects of the providers, for cases that the vectors and the
//! generated histories do not isolate.

use alloc::string::String;
use alloc::{format, vec};

use super::{array_writer::JsonFragment, tool_output::ToolOutputPiece, *};
use lcm_text::{
    base::json,
    message::{self, provider_limits},
};

const PROVIDERS: [Dialect; 4] =
    [Dialect::Anthropic, Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Gemini];

fn entry(seq: u64, dialect: Dialect, raw: &str) -> RenderEntry {
    let message = message::parse(dialect, raw).unwrap();
    let (role, parts) = (message.role, message.parts);
    let origin = EntryOrigin::Message { dialect, role };
    RenderEntry { index: 0, seq, origin, text: EntryText::Own(raw.into(), parts.into()) }
}

fn rendered(out: Dialect, dialect: Dialect, raws: &[&str]) -> String {
    let entries: Vec<RenderEntry> =
        (1..).zip(raws).map(|(seq, raw)| entry(seq, dialect, raw)).collect();
    format!("[{}]", render(out, &entries, ArrayPart::Whole).json)
}

#[test]
fn only_lone_surrogates_are_replaced() {
    let written = |json: &str| JsonFragment::new(0, json.into()).json;
    assert_eq!(written(r#"{"a":"\ud800","b":"\ud83d\ude00 \u00e9"}"#), {
        "{\"a\":\"\u{fffd}\",\"b\":\"\\ud83d\\ude00 \\u00e9\"}"
    });
    for same in [r#"{"a":"\\ud800"}"#, r#"{"\"":"\\\"","b":"\ud83d\ude00"}"#, "7"] {
        assert_eq!(written(same), same);
    }
}

#[test]
fn tool_output_is_texts_and_media_or_one_text() {
    let text = |text: &'static str| ToolOutputPiece::Text(text.into());
    assert_eq!(tool_output::split_output("\"a\\n\""), [text("a\n")]);
    assert_eq!(tool_output::split_output(""), []);
    assert_eq!(tool_output::split_output("null"), []);
    assert_eq!(tool_output::split_output("{ \"a\" : 1}"), [text("{\"a\":1}")]);
    assert_eq!(tool_output::split_output("[1, 2]"), [text("[1,2]")]);
    let image = r#"{"type":"image","source":{}}"#;
    let list = format!("[{{\"type\":\"text\",\"text\":\"a\"}}, {image}]");
    assert_eq!(tool_output::split_output(&list), [text("a"), ToolOutputPiece::Media(image)]);
    let screen = r#"{"type":"computer_screenshot","image_url":"data:image/png;base64,QQ"}"#;
    assert_eq!(tool_output::split_output(screen), [ToolOutputPiece::Media(screen)]);
    let image = super::file_content::read_media(screen).unwrap();
    assert_eq!((&*image.mime, image.data.as_deref()), ("image/png", Some("QQ")));
    let other = r#"[{"type":"text","text":"a"},{"type":"row"}]"#;
    assert_eq!(tool_output::split_output(other), [text(other)]);
}

#[test]
fn an_input_is_an_object() {
    let check = |input: &str, expected: &str| {
        assert_eq!(provider_limits::to_input_object(input), expected, "{input}");
        assert!(json::parse_object(expected).is_ok());
    };
    check("{ \"a\" : 1.50 }", "{\"a\":1.50}");
    check("", "{}");
    check("null", "{}");
    check("\"\"", "{}");
    check("\" {\\\"a\\\": 1}\"", "{\"a\":1}");
    check("\"text\"", "{\"input\":\"text\"}");
    check("[1, 2]", "{\"input\":[1,2]}");
    check("7", "{\"input\":7}");
}

#[test]
fn text_behind_a_result_of_the_same_message_stays_behind_it() {
    let raws = [
        r#"{"role":"user","content":"q"}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"before"},
            {"type":"server_tool_use","id":"s1","name":"search","input":{}},
            {"type":"web_search_tool_result","tool_use_id":"s1","content":"found"},
            {"type":"text","text":"after"}]}"#,
    ];
    let out = rendered(Dialect::OpenaiChat, Dialect::Anthropic, &raws);
    let at = |text: &str| out.find(text).unwrap_or_else(|| panic!("{text}: {out}"));
    assert!(at("before") < at("s1") && at("s1") < at("found") && at("found") < at("after"));
    assert_eq!(lcm_text::message::validate::validate(Dialect::OpenaiChat, &out).unwrap(), "[]");
}

/// Goal: a server tool call is written once, wherever its id is repeated.
#[test]
fn a_server_tool_call_is_written_once() {
    let pair = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"search","input":{}},
        {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;
    let twice = format!(r#"{{"role":"assistant","content":[{pair},{pair}]}}"#);
    let once = format!(r#"{{"role":"assistant","content":[{pair}]}}"#);
    let question = r#"{"role":"user","content":"q"}"#;
    for raws in [vec![question, &*twice], vec![question, &*once, question, &*once]] {
        let out = rendered(Dialect::Anthropic, Dialect::Anthropic, &raws);
        assert_eq!(lcm_text::message::validate::validate(Dialect::Anthropic, &out).unwrap(), "[]");
        assert_eq!(out.matches("server_tool_use").count(), 1, "{out}");
        assert_eq!(out.matches("web_search_tool_result").count(), 1, "{out}");
    }
}

#[test]
fn a_call_with_the_id_of_a_server_tool_call_gets_another_id() {
    let raws = [
        r#"{"role":"user","content":"q"}"#,
        r#"{"role":"assistant","content":[
            {"type":"server_tool_use","id":"s1","name":"search","input":{}},
            {"type":"web_search_tool_result","tool_use_id":"s1","content":[]},
            {"type":"tool_use","id":"s1","name":"look","input":{}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"s1","content":"a"}]}"#,
    ];
    let out = rendered(Dialect::Anthropic, Dialect::Anthropic, &raws);
    assert_eq!(lcm_text::message::validate::validate(Dialect::Anthropic, &out).unwrap(), "[]");
    assert!(out.contains("s1_2_2"), "{out}");
}

#[test]
fn an_image_without_a_url_is_named_and_omitted() {
    let raw = r#"{"role":"user","content":[{"type":"image","source":{"type":"url","url":""}}]}"#;
    for dialect in PROVIDERS {
        let out = rendered(dialect, Dialect::Anthropic, &[raw]);
        assert_eq!(lcm_text::message::validate::validate(dialect, &out).unwrap(), "[]");
        assert!(dialect == Dialect::Anthropic || out.contains("[image left out]"), "{out}");
    }
}

#[test]
fn a_function_call_beside_a_text_in_one_part_is_omitted() {
    let raws = [
        r#"{"role":"user","parts":[{"text":"q"}]}"#,
        r#"{"role":"model","parts":[{"text":"hm","functionCall":{"name":"look","args":{}}},
            {"functionCall":{"id":"f2","name":"list"}}]}"#,
    ];
    let entries: Vec<RenderEntry> =
        (1..).zip(raws).map(|(seq, raw)| entry(seq, Dialect::Gemini, raw)).collect();
    let output = render(Dialect::Gemini, &entries, ArrayPart::Whole);
    let out = format!("[{}]", output.json);
    assert_eq!(lcm_text::message::validate::validate(Dialect::Gemini, &out).unwrap(), "[]");
    assert!(out.contains("hm") && !out.contains("look"), "{out}");
    assert!(output.notes.format_counts(&|_| true).contains("block-left-out 1"));
}

#[test]
fn half_a_server_tool_call_is_omitted() {
    let blocks = [
        r#"{"type":"server_tool_use","id":"s1","input":{}}"#,
        r#"{"type":"web_search_tool_result","content":[]}"#,
    ];
    for block in blocks {
        let raw = format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"a"}},{block},
                {{"type":"text","text":"b"}}]}}"#
        );
        let raws = [r#"{"role":"user","content":"q"}"#, &*raw];
        let out = rendered(Dialect::Anthropic, Dialect::Anthropic, &raws);
        assert_eq!(lcm_text::message::validate::validate(Dialect::Anthropic, &out).unwrap(), "[]");
        assert!(!out.contains("s1"), "{out}");
    }
}

#[test]
fn a_function_call_without_its_output_is_answered() {
    let call = r#"{"type":"function_call","call_id":"call_2","name":"n","arguments":"{}"}"#;
    let raws = [
        r#"{"role":"user","content":"q"}"#,
        call,
        r#"{"type":"function_call_output","call_id":"call_2","status":"completed"}"#,
    ];
    let out = rendered(Dialect::OpenaiResponses, Dialect::OpenaiResponses, &raws);
    assert_eq!(
        lcm_text::message::validate::validate(Dialect::OpenaiResponses, &out).unwrap(),
        "[]"
    );
}

#[test]
fn a_function_call_with_an_empty_name_gets_one() {
    let raws = [
        r#"{"role":"user","content":"q"}"#,
        r#"{"type":"function_call","id":"fc_2","call_id":"call_2","name":"","arguments":"{}"}"#,
        r#"{"type":"function_call_output","call_id":"call_2","output":"done"}"#,
    ];
    let out = rendered(Dialect::OpenaiResponses, Dialect::OpenaiResponses, &raws);
    assert_eq!(
        lcm_text::message::validate::validate(Dialect::OpenaiResponses, &out).unwrap(),
        "[]"
    );
}

#[test]
fn media_without_a_block_in_the_dialect_are_named() {
    let raw = r#"{"role":"user","parts":[{"type":"file","name":"a b.zip","mime":"application/zip",
        "data":"UEs"},{"type":"file","name":"n.txt","text":"notes"}]}"#;
    for dialect in PROVIDERS {
        let output = render(dialect, &[entry(1, Dialect::Lcm, raw)], ArrayPart::Whole);
        assert!(output.json.contains("[file a b.zip (application/zip) left out]"));
        assert!(output.json.contains("file n.txt\\nnotes"));
        assert_eq!(output.notes.format_counts(&|_| true), "block-left-out 1");
    }
}

#[test]
fn ids_and_names_become_valid() {
    let raw = format!(
        r#"{{"role":"assistant","parts":[
            {{"type":"tool_call","id":"{}","name":"a.b"}},{{"type":"tool_call"}}]}}"#,
        "long:".repeat(20)
    );
    for dialect in PROVIDERS {
        let first = r#"{"role":"user","content":"q"}"#;
        let out = rendered(dialect, Dialect::Lcm, &[first, &raw]);
        assert_eq!(lcm_text::message::validate::validate(dialect, &out).unwrap(), "[]");
        if dialect == Dialect::Gemini {
            // Gemini accepts longer ids, more names, and calls without an id.
            assert!(out.contains("\"long:long:") && out.contains("\"a.b\""), "{out}");
            assert!(!out.contains("call_2_1"), "{out}");
            continue;
        }
        assert!(out.contains("\"long_long_long_l_2_0\"") && out.contains("\"call_2_1\""), "{out}");
        assert!(out.contains("\"a_b\"") && out.contains("\"tool\""));
    }
}

#[test]
fn tool_names_become_valid() {
    let gemini =
        |name: &str| provider_limits::sanitize_tool_name(Dialect::Gemini, name).into_owned();
    assert_eq!(gemini("a.b:c-d"), "a.b:c-d");
    assert_eq!(gemini("_a"), "_a");
    assert_eq!(gemini("1a"), "_1a");
    assert_eq!(gemini("\u{e9}a"), "_a");
    assert_eq!(gemini(&"n".repeat(140)).len(), 128);
    assert_eq!(gemini(&format!(".{}", "n".repeat(140))).len(), 128);
    let responses =
        provider_limits::sanitize_tool_name(Dialect::OpenaiResponses, &"n".repeat(70)).into_owned();
    assert_eq!(responses.len(), 64);
    assert_eq!(provider_limits::sanitize_tool_name(Dialect::OpenaiResponses, "1a.b"), "1a_b");
}

#[test]
fn an_id_that_a_host_gave_to_an_item_is_removed() {
    let sent = |raw: &str| rendered(Dialect::OpenaiResponses, Dialect::OpenaiResponses, &[raw]);
    assert_eq!(sent(r#"{"role":"user","content":"q","id":"e1"}"#), {
        r#"[{"role":"user","content":"q"}]"#
    });
    let own = r#"{"role":"user","content":"q","id":"msg_1"}"#;
    assert_eq!(sent(own), format!("[{own}]"));
    let other = r#"{"type":"of_tomorrow","id":"e1"}"#;
    assert_eq!(sent(other), format!("[{other}]"));
}

#[test]
fn calls_of_one_response_are_answered_together() {
    let raws = [
        r#"{"role":"user","content":"q"}"#,
        r#"{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}"#,
        r#"{"type":"reasoning","summary":[]}"#,
        r#"{"type":"function_call","call_id":"c2","name":"n","arguments":"{}"}"#,
        r#"{"type":"function_call_output","call_id":"c2","output":"2"}"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"1"}"#,
        r#"{"type":"function_call","call_id":"c3","name":"n","arguments":"{}"}"#,
        r#"{"type":"function_call_output","call_id":"c3","output":"3"}"#,
    ];
    let out = rendered(Dialect::OpenaiResponses, Dialect::OpenaiResponses, &raws);
    assert_eq!(out, format!("[{}]", raws.join(",")));
    let out = rendered(Dialect::Gemini, Dialect::OpenaiResponses, &raws);
    assert_eq!(out.matches("\"role\":\"model\"").count(), 2, "{out}");
    let out = rendered(Dialect::OpenaiChat, Dialect::OpenaiResponses, &raws);
    assert_eq!(lcm_text::message::validate::validate(Dialect::OpenaiChat, &out).unwrap(), "[]");
}

#[test]
fn media_in_a_function_response_are_noted_in_other_dialects() {
    let raws = [
        r#"{"role":"user","parts":[{"text":"q"}]}"#,
        r#"{"role":"model","parts":[{"functionCall":{"name":"n"}}]}"#,
        r#"{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"r"},
            "parts":[{"inlineData":{"mimeType":"image/png","data":"QQ"}}]}}]}"#,
    ];
    let entries: Vec<RenderEntry> =
        (1..).zip(raws).map(|(seq, raw)| entry(seq, Dialect::Gemini, raw)).collect();
    for dialect in PROVIDERS {
        let notes = render(dialect, &entries, ArrayPart::Whole).notes.format_counts(&|_| true);
        assert_eq!(notes.contains("block-left-out"), dialect != Dialect::Gemini, "{notes}");
    }
}

/// Goal: a repeated short id names another call, also if the first call was interrupted.
#[test]
fn a_result_belongs_to_the_nearest_call_before_it() {
    let call = |id: &str, at: u32| {
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function",
                "function":{{"name":"n","arguments":"{{\"at\":{at}}}"}}}}]}}"#
        )
    };
    let result = |id: &str, text: &str| {
        format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
    };
    let user = String::from(r#"{"role":"user","content":"q"}"#);
    let raws = [
        user.clone(),
        call("c", 1),
        user.clone(),
        call("c", 2),
        result("c", "two"),
        user.clone(),
        call("c", 3),
        result("c", "three"),
        call("c", 4),
        user,
    ];
    let raws: Vec<&str> = raws.iter().map(String::as_str).collect();
    for dialect in PROVIDERS {
        let out = rendered(dialect, Dialect::OpenaiChat, &raws);
        let place = |text: &str| out.find(text).unwrap_or_else(|| panic!("{text}: {out}"));
        // Gemini and Anthropic write the arguments as JSON, the others as text.
        let asked = |at: u32| {
            let plain = format!("\"at\":{at}");
            out.find(&plain).unwrap_or_else(|| place(&format!("at\\\":{at}")))
        };
        let order = [asked(1), asked(2), place("two"), asked(3), place("three"), asked(4)];
        assert!(order.is_sorted(), "{out}");
        assert_eq!(out.matches("the result of this call is missing").count(), 2, "{out}");
    }
    // A call that is repeated before any result is written once.
    let twice = [raws[0], raws[1], raws[1], raws[4]];
    let out = rendered(Dialect::OpenaiChat, Dialect::OpenaiChat, &twice);
    assert_eq!(out.matches("arguments").count(), 1, "{out}");
}

/// Goal: a tool result is not lost if a summary covers its call.
#[test]
fn a_result_without_its_call_is_text() {
    let raws = [
        r#"{"role":"user","content":"q"}"#,
        r#"{"role":"tool","tool_call_id":"call_0123456789ab","content":"returned"}"#,
        r#"{"role":"tool","tool_call_id":"x","content":"[the result of this call is missing]"}"#,
    ];
    for dialect in PROVIDERS {
        let out = rendered(dialect, Dialect::OpenaiChat, &raws);
        assert!(out.contains("its call is not shown]\\nreturned"), "{out}");
        // A placeholder of an earlier assembly is not a result.
        assert!(!out.contains("is missing"), "{out}");
    }
}

/// Goal: an item does not refer to reasoning that was omitted.
#[test]
fn an_item_whose_reasoning_was_omitted_has_no_id() {
    let raws = [
        r#"{"type":"reasoning","id":"rs_1","summary":[]}"#,
        r#"{"role":"user","content":"q"}"#,
        r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"n","arguments":"{}"}"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"r"}"#,
        r#"{"type":"message","id":"msg_1","role":"assistant","content":[
            {"type":"output_text","text":"a","annotations":[]}]}"#,
        r#"{"type":"reasoning","id":"rs_2","summary":[]}"#,
        r#"{"type":"function_call","id":"fc_2","call_id":"c2","name":"n","arguments":"{}"}"#,
        r#"{"type":"function_call_output","call_id":"c2","output":"r"}"#,
    ];
    let out = rendered(Dialect::OpenaiResponses, Dialect::OpenaiResponses, &raws);
    let is_there = ["rs_1", "fc_1", "msg_1", "rs_2", "fc_2"].map(|id| out.contains(id));
    assert_eq!(is_there, [false, false, false, true, true], "{out}");
}

/// Goal: two elements are equal only if their bytes in the array are equal.
#[test]
fn elements_of_different_roles_differ() {
    let elements_of = |roles: &[&str]| {
        let of = |role: &&str| format!(r#"{{"role":"{role}","content":"go on"}}"#);
        let raws: Vec<String> = roles.iter().map(of).collect();
        let entries: Vec<RenderEntry> =
            (1..).zip(&raws).map(|(seq, raw)| entry(seq, Dialect::Anthropic, raw)).collect();
        let elements = render(Dialect::Anthropic, &entries, ArrayPart::Whole).elements;
        elements.into_iter().map(|element| element.text).collect::<Vec<_>>()
    };
    let two = elements_of(&["user", "user"]);
    let other = elements_of(&["user", "assistant", "user"]);
    assert_eq!(two[0], other[0]);
    assert_ne!(two[1], other[1]);
}

/// Goal: a cache mark is only on a block that can have one.
#[test]
fn a_cache_mark_is_on_the_last_block_that_can_have_one() {
    let marked = |message: &str, is_marked| {
        let mut out = String::new();
        push_with_cache_control(&mut out, message, is_marked);
        out
    };
    let text = |text: &str, mark: &str| format!("{{\"type\":\"text\",\"text\":\"{text}\"{mark}}}");
    let message = |blocks: &[String]| {
        format!("{{\"role\":\"assistant\",\"content\":[{}]}}", blocks.join(","))
    };
    const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";
    let thinking = String::from(r#"{"type":"thinking","thinking":"t","signature":"s"}"#);
    let plain = message(&[text("a", ""), text("b", ""), thinking.clone()]);
    let one = message(&[text("a", ""), text("b", MARK), thinking.clone()]);
    assert_eq!(marked(&plain, true), one);
    assert_eq!(marked(&plain, false), plain);
    // Earlier marks are removed.
    assert_eq!(marked(&message(&[text("a", MARK), text("b", ""), thinking.clone()]), true), one);
    assert_eq!(marked(&one, false), plain);
    // A mark on thinking is removed.
    let thought = [thinking.replace("}", &format!("{MARK}}}")), text("a", "")];
    let raw = format!("{{\"role\":\"assistant\",\"content\":[{}]}}", thought.join(","));
    let out = rendered(Dialect::Anthropic, Dialect::Anthropic, &[&raw]);
    assert!(out.contains("thinking") && !out.contains("cache_control"), "{out}");
}

#[test]
fn notes_are_counted_and_listed() {
    let mut notes = RenderNotes::default();
    let raw = r#"{"role":"user","content":"q"}"#;
    let entries: Vec<RenderEntry> = (1..=12).map(|seq| entry(seq, Dialect::Lcm, raw)).collect();
    for at in 0..12 {
        notes.add_note(at, RenderNote::OrphanResult);
        notes.add_note(at, RenderNote::Merged);
    }
    assert_eq!(notes.format_counts(&|at| at < 3), "merged 3, orphan-result-as-text 3");
    assert_eq!(
        notes.format_warnings(&entries),
        vec![
            "orphan-result-as-text: results whose call is not in the context became text \
             (messages 1, 2, 3, 4, 5, 6, 7, 8 and 4 more)"
        ]
    );
}
