//! Tests of the projection of the providers' dialects.

use super::*;
use crate::ErrorCode;
use alloc::{format, string::String};

/// Role, and the kind of each part with what it was told by.
fn outline(dialect: Dialect, raw: &str) -> String {
    let message = project(dialect, raw).unwrap();
    let text = |span: Option<Span>| span.map_or("-", |span| json::slice(raw, span));
    let mut out = format!("{}:", message.role.as_str());
    for part in &message.parts {
        out += &match *part {
            Part::Text { text: t } => format!(" text {}", text(Some(t))),
            Part::Reasoning { text: t } => format!(" reasoning {}", text(Some(t))),
            Part::ToolCall { id, name, input } => {
                format!(" call {} {} {}", text(id), text(name), text(input))
            }
            Part::ToolResult { call_id, name, output, is_error } => {
                format!(" result {} {} {} {is_error}", text(call_id), text(name), text(output))
            }
            Part::File { name, mime, text: t, data } => {
                format!(" file {} {} {} {}", text(name), text(mime), text(t), text(data))
            }
            Part::Other { value } => format!(" other {}", text(Some(value))),
        };
        out.push(';');
    }
    out
}

fn anthropic(role: &str, content: &str) -> String {
    outline(Dialect::Anthropic, &format!("{{\"role\":\"{role}\",\"content\":{content}}}"))
}

fn openai(members: &str) -> String {
    outline(Dialect::OpenaiChat, &format!("{{{members}}}"))
}

#[test]
fn anthropic_blocks_are_read() {
    let check = |role: &str, content: &str, expected: &str| {
        assert_eq!(anthropic(role, content), expected, "{content}");
    };
    check("user", "\"hi\"", "user: text \"hi\";");
    check("system", "\"hi\"", "system: text \"hi\";");
    check("user", "[]", "user:");
    check("user", "null", "user:");
    check("user", r#"[{"type":"text","text":"a","x":1}]"#, "user: text \"a\";");
    check(
        "assistant",
        r#"[{"type":"thinking","thinking":"t","signature":"s"},
            {"type":"redacted_thinking","data":"d"},
            {"type":"tool_use","id":"i","name":"n","input":{"a": 1}},
            {"type":"server_tool_use","id":"j","name":"m","input":{}},
            {"type":"web_search_tool_result","tool_use_id":"j","content":[]}]"#,
        "assistant: reasoning \"t\"; reasoning \"d\"; call \"i\" \"n\" {\"a\": 1}; \
         call \"j\" \"m\" {}; result \"j\" - [] false;",
    );
    check(
        "user",
        r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ"}},
            {"type":"document","title":"t","source":{"type":"text","media_type":"m","data":"x"}}]"#,
        "user: file - \"image/png\" - \"QQ\"; file \"t\" \"m\" \"x\" -;",
    );
    for odd in [
        "7",
        "null",
        r#"{"type":"text"}"#,
        r#"{"type":"tool_use","id":"i"}"#,
        r#"{"type":"image","source":{"type":"url","url":"u"}}"#,
        r#"{"type":"search_result","source":"s","title":"t","content":[]}"#,
        r#"{"type":"novel"}"#,
    ] {
        check("user", &format!("[{odd}]"), &format!("user: other {odd};"));
    }
}

#[test]
fn a_message_of_results_is_the_tools() {
    let result = r#"{"type":"tool_result","tool_use_id":"toolu_abcdefghijkl","content":"r"}"#;
    let text = r#"{"type":"text","text":"t"}"#;
    let of = |content: String| {
        project(Dialect::Anthropic, &format!("{{\"role\":\"user\",\"content\":[{content}]}}"))
            .unwrap()
    };
    let alone = of(result.into());
    assert_eq!(alone.role, Role::Tool);
    assert!(alone.unique_call_id.is_some());
    assert_eq!(of(format!("{result},{result}")).role, Role::Tool);
    let mixed = of(format!("{result},{text}"));
    assert_eq!(mixed.role, Role::User);
    assert!(!mixed.is_said_by_user(), "it must stay with its call");
    assert!(of(text.into()).is_said_by_user());
}

#[test]
fn openai_chat_messages_are_read() {
    let check = |members: &str, expected: &str| assert_eq!(openai(members), expected, "{members}");
    check(r#""role":"user","content":"hi""#, "user: text \"hi\";");
    check(r#""role":"developer","content":"hi""#, "system: text \"hi\";");
    check(r#""role":"assistant","content":null"#, "assistant:");
    check(r#""role":"assistant","content":null,"refusal":"no""#, "assistant: text \"no\";");
    check(
        r#""role":"assistant","reasoning_content":"r","content":"t","tool_calls":[
            {"id":"i","type":"function","function":{"name":"n","arguments":"{}"}},
            {"id":"j","type":"custom","custom":{"name":"m","input":"x"}},{"id":"k"}]"#,
        "assistant: reasoning \"r\"; text \"t\"; call \"i\" \"n\" \"{}\"; call \"j\" \"m\" \"x\"; \
         other {\"id\":\"k\"};",
    );
    check(
        r#""role":"assistant","function_call":{"name":"n","arguments":"{}"}"#,
        "assistant: call - \"n\" \"{}\";",
    );
    check(r#""role":"tool","tool_call_id":"i","content":"r""#, "tool: result \"i\" - \"r\" false;");
    check(
        r#""role":"tool","tool_call_id":"i","content":[{"type":"text","text":"r"}]"#,
        "tool: result \"i\" - [{\"type\":\"text\",\"text\":\"r\"}] false;",
    );
    check(r#""role":"function","name":"f","content":"r""#, "tool: result - \"f\" \"r\" false;");
    check(
        r#""role":"assistant","audio":{"id":"a","transcript":"said"}"#,
        "assistant: text \"said\";",
    );
    check(
        r#""role":"user","content":[{"type":"input_audio","input_audio":{"data":"QQ"}},
            {"type":"file","file":{"filename":"f","file_data":"d"}},
            {"type":"image_url","image_url":{"url":"u"}}]"#,
        "user: file - - - \"QQ\"; file \"f\" - - \"d\"; \
         other {\"type\":\"image_url\",\"image_url\":{\"url\":\"u\"}};",
    );
}

#[test]
fn a_role_of_another_dialect_is_refused_by_name() {
    for (dialect, role) in [(Dialect::Anthropic, "tool"), (Dialect::OpenaiChat, "model")] {
        let error = project(dialect, &format!("{{\"role\":\"{role}\"}}")).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput);
        assert!(error.message.contains(role), "{error}");
        assert!(project(dialect, "[]").is_err() && project(dialect, "{}").is_err());
    }
}

#[test]
fn a_provider_message_of_very_many_parts_is_bounded() {
    let calls = alloc::vec![r#"{"id":"i","function":{"name":"n"}}"#; 2_000].join(",");
    let texts = alloc::vec![r#"{"type":"text","text":"t"}"#; 2_000].join(",");
    let raw = format!("{{\"role\":\"assistant\",\"tool_calls\":[{calls}],\"content\":[{texts}]}}");
    let message = project(Dialect::OpenaiChat, &raw).unwrap();
    assert_eq!(message.parts.len(), 680);
    for rest in [339, 679] {
        let Part::Other { value } = message.parts[rest] else { panic!("no rest") };
        assert!(!json::slice(&raw, value).contains(']'), "one list only");
    }
    assert_eq!(blocks(Dialect::OpenaiChat, &raw).len(), 4_000);
    let raw = format!("{{\"role\":\"user\",\"content\":[{texts}]}}");
    assert_eq!(project(Dialect::Anthropic, &raw).unwrap().parts.len(), 1_023);
}

#[test]
fn any_cut_of_a_provider_message_is_refused_and_never_panics() {
    let raw = r#"{"role":"assistant","content":[{"type":"text","text":"\ud83d"}],"tool_calls":
        [{"id":"i","function":{"name":"n","arguments":"{}"}}],"audio":{"id":"a"}}"#;
    for dialect in [Dialect::Anthropic, Dialect::OpenaiChat] {
        assert!(project(dialect, raw).is_ok());
        for end in 0..raw.len() {
            assert!(project(dialect, &raw[..end]).is_err());
        }
    }
}
