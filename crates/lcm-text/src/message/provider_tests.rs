//! Tests of the projection of the providers' dialects.

use alloc::{format, string::String};

use super::*;
use crate::{
    base::{
        error::ErrorCode,
        json::{self, ByteSpan},
    },
    types::api::{Dialect, ReadDialect},
};

/// Returns the role, and for each part its kind and the texts of its fields; `-`: the field is
/// absent.
fn outline(dialect: Dialect, raw: &str) -> String {
    let message = parse(dialect, raw).unwrap();
    let text = |span: Option<ByteSpan>| span.map_or("-", |span| json::slice_span(raw, span));
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
    check(
        "user",
        r#"[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"}]}},
            {"type":"search_result","source":"s","title":"t","content":[]},
            {"type":"search_result","source":"s","title":"","content":"c"}]"#,
        r#"user: file - - [{"type":"text","text":"a"}] -; file "t" - [] -; file "s" - "c" -;"#,
    );
    for odd in [
        "7",
        "null",
        r#"{"type":"text"}"#,
        r#"{"type":"tool_use","id":"i"}"#,
        r#"{"type":"image","source":{"type":"url","url":"u"}}"#,
        r#"{"type":"image","source":{"type":"content","content":"c"}}"#,
        r#"{"type":"document","source":{"type":"text"}}"#,
        r#"{"type":"document","source":{"type":"content"}}"#,
        r#"{"type":"search_result","source":"s","title":"t"}"#,
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
        parse(Dialect::Anthropic, &format!("{{\"role\":\"user\",\"content\":[{content}]}}"))
            .unwrap()
    };
    let alone = of(result.into());
    assert_eq!(alone.role, Role::Tool);
    assert!(alone.unique_call_id.is_some());
    assert_eq!(of(format!("{result},{result}")).role, Role::Tool);
    let mixed = of(format!("{result},{text}"));
    assert_eq!(mixed.role, Role::User);
    assert!(!mixed.is_user_text(), "it must stay with its call");
    assert!(of(text.into()).is_user_text());
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
    for (dialect, role) in [
        (Dialect::Anthropic, "tool"),
        (Dialect::OpenaiChat, "model"),
        (Dialect::OpenaiResponses, "tool"),
        (Dialect::Gemini, "assistant"),
    ] {
        let error = parse(dialect, &format!("{{\"role\":\"{role}\"}}")).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput);
        assert!(error.message.contains(role), "{error}");
        assert!(parse(dialect, "[]").is_err() && parse(dialect, "{}").is_err());
    }
}

#[test]
fn a_provider_message_of_very_many_parts_is_bounded() {
    let calls = alloc::vec![r#"{"id":"i","function":{"name":"n"}}"#; 2_000].join(",");
    let texts = alloc::vec![r#"{"type":"text","text":"t"}"#; 2_000].join(",");
    let raw = format!("{{\"role\":\"assistant\",\"tool_calls\":[{calls}],\"content\":[{texts}]}}");
    let message = parse(Dialect::OpenaiChat, &raw).unwrap();
    assert_eq!(message.parts.len(), 680);
    for rest in [339, 679] {
        let Part::Other { value } = message.parts[rest] else { panic!("no rest") };
        assert!(!json::slice_span(&raw, value).contains(']'), "one list only");
    }
    assert_eq!(read_blocks(Dialect::OpenaiChat, &raw).len(), 4_000);
    let raw = format!("{{\"role\":\"user\",\"content\":[{texts}],\"parts\":[{texts}]}}");
    assert_eq!(parse(Dialect::Anthropic, &raw).unwrap().parts.len(), 1_023);
    assert_eq!(parse(Dialect::Gemini, &raw).unwrap().parts.len(), 1_023);
    let raw = format!(
        "{{\"type\":\"reasoning\",\"summary\":[{texts}],\"content\":[{texts}],\
         \"encrypted_content\":\"e\"}}"
    );
    assert_eq!(parse(Dialect::OpenaiResponses, &raw).unwrap().parts.len(), 681);
}

#[test]
fn any_cut_of_a_provider_message_is_refused_and_never_panics() {
    let raw = r#"{"role":"assistant","content":[{"type":"text","text":"\ud83d"}],"tool_calls":
        [{"id":"i","function":{"name":"n","arguments":"{}"}}],"audio":{"id":"a"}}"#;
    let content = r#"{"role":"model","parts":[{"text":"\ud83d"},{"functionCall":{"name":"n"}}]}"#;
    assert!(parse(Dialect::Gemini, content).is_ok());
    for end in 0..content.len() {
        assert!(parse(Dialect::Gemini, &content[..end]).is_err());
    }
    for dialect in [Dialect::Anthropic, Dialect::OpenaiChat, Dialect::OpenaiResponses] {
        assert!(parse(dialect, raw).is_ok());
        for end in 0..raw.len() {
            assert!(parse(dialect, &raw[..end]).is_err());
        }
    }
}

fn item(raw: &str) -> String {
    outline(Dialect::OpenaiResponses, raw)
}

#[test]
fn openai_responses_items_are_read() {
    let check = |raw: &str, expected: &str| assert_eq!(item(raw), expected, "{raw}");
    check(r#"{"role":"user","content":"hi"}"#, "user: text \"hi\";");
    check(r#"{"type":null,"role":"developer","content":"hi"}"#, "system: text \"hi\";");
    check(
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},
            {"type":"refusal","refusal":"b"},{"type":"output_text"},7]}"#,
        "assistant: text \"a\"; text \"b\"; other {\"type\":\"output_text\"}; other 7;",
    );
    check(
        r#"{"role":"user","content":[{"type":"input_file","filename":"f","file_data":"d"},
            {"type":"input_audio","input_audio":{"data":"QQ"}},{"type":"input_image"}]}"#,
        "user: file \"f\" - - \"d\"; file - - - \"QQ\"; other {\"type\":\"input_image\"};",
    );
    check(
        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}],
            "content":[{"text":"c"}],"encrypted_content":"e"}"#,
        "assistant: reasoning \"s\"; reasoning \"c\"; other \"e\";",
    );
    let bare = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    check(&format!(" {bare}\n"), &format!("assistant: other {bare};"));
    check(
        r#"{"type":"function_call","call_id":"c","id":"fc","name":"n","arguments":"{}"}"#,
        "assistant: call \"c\" \"n\" \"{}\";",
    );
    check(
        r#"{"type":"computer_call","call_id":"c","action":{"type":"wait"}}"#,
        "assistant: call \"c\" \"computer_call\" {\"type\":\"wait\"};",
    );
    check(
        r#"{"type":"shell_call_output","call_id":"c","output":[1],"status":"failed"}"#,
        "tool: result \"c\" - [1] true;",
    );
    check(r#"{"type":"local_shell_call_output","id":"c","output":"o"}"#, {
        "tool: result \"c\" - \"o\" false;"
    });
    check(
        r#"{"type":"mcp_call","id":"m","name":"n","arguments":"{}","output":null,"error":"e"}"#,
        "assistant: call \"m\" \"n\" \"{}\"; result \"m\" - \"e\" true;",
    );
    check(
        r#"{"type":"web_search_call","id":"w","status":"completed","action":{}}"#,
        "assistant: call \"w\" \"web_search_call\" {}; result \"w\" - \"completed\" false;",
    );
    check(r#"{"type":"image_generation_call","id":"i","result":"QQ"}"#, {
        "assistant: file - - - \"QQ\";"
    });
    for (role, kept) in [
        ("assistant", r#"{"type":"of_tomorrow","x":1}"#),
        ("user", r#"{"type":"of_tomorrow","role":"user"}"#),
        ("assistant", r#"{"type":"item_reference","id":"m"}"#),
        ("assistant", r#"{"id":"m"}"#),
        ("user", r#"{"type":"mcp_approval_response","approve":true}"#),
        ("assistant", r#"{"type":"image_generation_call","result":null}"#),
    ] {
        check(kept, &format!("{role}: other {kept};"));
    }
}

#[test]
fn the_id_of_a_reference_is_what_it_says() {
    let of = |raw: &str| parse(Dialect::OpenaiResponses, raw).unwrap();
    let reference = |id: &str| of(&format!("{{\"type\":\"item_reference\",\"id\":\"{id}\"}}"));
    assert_eq!(reference("a").entry_id, None);
    assert_eq!(reference("a").identity, reference("a").identity);
    assert_ne!(reference("a").identity, reference("b").identity);
    let call = |id: &str| of(&format!("{{\"type\":\"function_call\",\"id\":\"{id}\"}}"));
    assert!(call("a").entry_id.is_some());
    assert_eq!(call("a").identity, call("b").identity);
    let output = "{\"type\":\"function_call_output\",\"call_id\":\"call_abcdefghijkl\"}";
    assert!(of(output).unique_call_id.is_some());
    assert_eq!(of(&output.replace("abcdefghijkl", "1")).unique_call_id, None);
    // The call and the result of a tool that the provider runs are in one item, so the item is not
    // only a result.
    let served = r#"{"type":"mcp_call","id":"call_abcdefghijkl","output":"o"}"#;
    assert_eq!(of(served).unique_call_id, None);
}

#[test]
fn gemini_contents_are_read() {
    let check = |role: &str, parts: &str, expected: &str| {
        let raw = format!("{{\"role\":\"{role}\",\"parts\":{parts}}}");
        assert_eq!(outline(Dialect::Gemini, &raw), expected, "{parts}");
    };
    check("user", r#"[{"text":"a","thoughtSignature":"s"}]"#, "user: text \"a\";");
    check("system", r#"[{"text":"a"}]"#, "system: text \"a\";");
    check("user", "[]", "user:");
    check("user", "\"odd\"", "user: other \"odd\";");
    assert_eq!(outline(Dialect::Gemini, r#"{"parts":[{"text":"a"}]}"#), "user: text \"a\";");
    check(
        "model",
        r#"[{"text":"t","thought":true},{"functionCall":{"id":"i","name":"n","args":{}}},
            {"function_call":{"name":"m"}},{"executableCode":{"code":"c"}},
            {"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"o"}}]"#,
        "assistant: reasoning \"t\"; call \"i\" \"n\" {}; call - \"m\" -; \
         call - \"executableCode\" {\"code\":\"c\"}; result - - \"o\" true;",
    );
    check(
        "function",
        r#"[{"functionResponse":{"name":"n","response":{"output":"o"}}},
            {"functionResponse":{"id":"i","name":"n","response":{"error":{"a":1}}}},
            {"function_response":{"name":"n","response":{"output":1,"b":2}}}]"#,
        "tool: result - \"n\" \"o\" false; result \"i\" \"n\" {\"a\":1} true; \
         result - \"n\" {\"output\":1,\"b\":2} false;",
    );
    check(
        "user",
        r#"[{"functionResponse":{"name":"n"}},{"inline_data":{"mime_type":"m","data":"QQ"}}]"#,
        "user: result - \"n\" - false; file - \"m\" - \"QQ\";",
    );
    for odd in
        ["7", "{}", r#"{"text":5}"#, r#"{"functionCall":{}}"#, r#"{"fileData":{"fileUri":"u"}}"#]
    {
        check("user", &format!("[{odd}]"), &format!("user: other {odd};"));
    }
}

/// Returns the dialect that the mismatch of a message names; `-`: no mismatch; `?`: a mismatch
/// without a recognised dialect.
fn taken_for(dialect: Dialect, raw: &str) -> &'static str {
    match parse(dialect, raw).unwrap().dialect_mismatch {
        None => "-",
        Some(misfit) => misfit.looks_like.map_or("?", Dialect::as_str),
    }
}

#[test]
fn a_message_of_another_dialect_is_told() {
    use Dialect::{Anthropic, Gemini, Lcm, OpenaiChat, OpenaiResponses};
    let call = r#"{"type":"tool_use","id":"toolu_1","name":"ls","input":{"a":"b"}}"#;
    let calls = r#"[{"id":"call_1","type":"function","function":{"name":"ls"}}]"#;
    let list = |element: &str| {
        let text = r#"{"type":"text","text":"Look."}"#;
        format!(r#"{{"role":"user","content":[{text},{element}]}}"#)
    };
    let alone = |element: &str| format!(r#"{{"role":"user","content":[{element}]}}"#);
    let parts = |element: &str| format!(r#"{{"role":"user","parts":[{element}]}}"#);
    let result = r#"{"type":"tool_result","tool_use_id":"toolu_1","content":"a"}"#;
    let own_result = r#"{"type":"tool_result","call_id":"c1","output":"a"}"#;
    let image = r#"{"type":"image","source":{"type":"base64","data":"AA=="}}"#;
    let url = r#"{"image_url":{"url":"https://a.example/a.png"},"type":"image_url"}"#;
    for (raw, dialect, expected) in [
        (list(call), Lcm, "anthropic"),
        (alone(call), Lcm, "anthropic"),
        (list(result), Lcm, "anthropic"),
        (list(image), Lcm, "anthropic"),
        (list(url), Lcm, "openai-chat"),
        (list(r#"{"type":"file","file":{"file_data":"AA=="}}"#), Lcm, "openai-chat"),
        (alone(r#"{"type":"input_text","text":"a"}"#), Lcm, "openai-responses"),
        (parts(r#"{"text":"a"}"#), Lcm, "gemini"),
        (parts(r#"{"functionCall":{"name":"ls"}}"#), Lcm, "gemini"),
        (alone(r#"{"type":"thinking","thinking":"a"}"#), Lcm, "?"),
        (r#"{"role":"user","text":"a"}"#.into(), Lcm, "?"),
        (format!(r#"{{"role":"assistant","tool_calls":{calls}}}"#), Lcm, "openai-chat"),
        (
            format!(r#"{{"role":"assistant","content":"a","tool_calls":{calls}}}"#),
            Lcm,
            "openai-chat",
        ),
        (r#"{"role":"tool","tool_call_id":"call_1","content":"a"}"#.into(), Lcm, "openai-chat"),
        (
            format!(r#"{{"role":"assistant","content":null,"tool_calls":{calls}}}"#),
            Anthropic,
            "openai-chat",
        ),
        (parts(r#"{"text":"a"}"#), Anthropic, "gemini"),
        (parts(r#"{"type":"text","text":"a"}"#), Anthropic, "lcm"),
        (list(own_result), Anthropic, "lcm"),
        (list(url), Anthropic, "openai-chat"),
        (parts(r#"{"text":"a"}"#), OpenaiChat, "gemini"),
        (list(call), OpenaiChat, "anthropic"),
        (list(result), OpenaiChat, "anthropic"),
        (list(own_result), OpenaiChat, "lcm"),
        (r#"{"role":"tool","parts":[{"text":"a"}]}"#.into(), OpenaiChat, "gemini"),
        (list(call), OpenaiResponses, "anthropic"),
        (list(url), OpenaiResponses, "openai-chat"),
        (alone(r#"{"type":"text","text":"a"}"#), Gemini, "?"),
        (r#"{"role":"user","content":"a"}"#.into(), Gemini, "?"),
        (alone(call), Gemini, "anthropic"),
        (r#"{"role":"user","content":["a"]}"#.into(), Anthropic, "?"),
    ] {
        assert_eq!(taken_for(dialect, &raw), expected, "{dialect:?}: {raw}");
    }
}

/// Returns the dialect with which `auto` reads a message.
fn found_for(raw: &str) -> &'static str {
    super::parse_given(ReadDialect::Auto, raw).unwrap().dialect.as_str()
}

#[test]
fn the_dialect_is_found_per_message() {
    for (raw, expected) in [
        // Text alone means the same in several dialects.
        (r#"{"role":"system","content":"You are Bot."}"#, "lcm"),
        (r#"{"role":"user","content":"hi"}"#, "lcm"),
        (r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#, "lcm"),
        (r#"{"role":"developer","content":"hi"}"#, "openai-chat"),
        (r#"{"role":"user","content":"hi","name":"ann"}"#, "openai-chat"),
        (r#"{"role":"assistant","content":"a","reasoning_content":"b"}"#, "openai-chat"),
        (
            r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}"#,
            "openai-chat",
        ),
        (
            r#"{"role":"assistant",
                "content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"b"}]}"#,
            "anthropic",
        ),
        (
            r#"{"role":"assistant",
                "content":[{"type":"tool_use","id":"t","name":"shot","input":{}}]}"#,
            "anthropic",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}
            ]}]}"#,
            "anthropic",
        ),
        (r#"{"type":"message","role":"user","content":"hi"}"#, "anthropic"),
        (r#"{"role":"user","content":[{"type":"input_text","text":"hi"}]}"#, "openai-responses"),
        (r#"{"type":"reasoning","summary":[],"encrypted_content":"AA"}"#, "openai-responses"),
        (r#"{"type":"function_call_output","call_id":"c","output":"a"}"#, "openai-responses"),
        (r#"{"role":"user","parts":[{"text":"q"}]}"#, "gemini"),
        (r#"{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}"#, "gemini"),
        (
            r#"{"role":"function",
                "parts":[{"functionResponse":{"name":"f","response":{"r":"1"}}}]}"#,
            "gemini",
        ),
        (r#"{"role":"tool","parts":[{"type":"tool_result","call_id":"c","output":"a"}]}"#, "lcm"),
        (
            r#"{"type":"ai","content":[{"type":"mcp_tool_use","id":"m","name":"f","input":{}},
                {"type":"mcp_tool_result","tool_use_id":"m","content":[]},
                {"type":"text","text":"a"}]}"#,
            "langchain",
        ),
    ] {
        assert_eq!(found_for(raw), expected, "{raw}");
    }
    let refusal = super::parse_given(ReadDialect::Auto, r#"{"role":"pilot","content":"a"}"#);
    assert!(refusal.unwrap_err().message.contains("got `pilot`"));
}

#[test]
fn a_dialect_that_loses_tools_is_refused() {
    use Dialect::{Anthropic, Gemini, Lcm, OpenaiChat};
    let far = (0..40).map(|_| r#"{"type":"poll"},"#).collect::<alloc::string::String>();
    let call = r#"{"type":"tool_use","id":"t","name":"ls","input":{}}"#;
    for (dialect, raw, other) in [
        (Lcm, format!(r#"{{"role":"user","content":[{far}{call}]}}"#), "anthropic"),
        (
            Lcm,
            r#"{"role":"assistant","content":"a","function_call":{"name":"ls","arguments":"{}"}}"#
                .into(),
            "openai-chat",
        ),
        (
            Lcm,
            r#"{"role":"assistant",
                "content":[{"type":"server_tool_use","id":"s","name":"web_search"}]}"#
                .into(),
            "anthropic",
        ),
        (
            OpenaiChat,
            r#"{"role":"user",
                "parts":[{"text":"a"},{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}]}"#
                .into(),
            "gemini",
        ),
        (Gemini, format!(r#"{{"role":"user","content":["a",{call}]}}"#), "anthropic"),
        (
            Anthropic,
            r#"{"role":"user","parts":[{"type":"tool_result","call_id":"c"}]}"#.into(),
            "lcm",
        ),
    ] {
        let error = super::parse_given(dialect.into(), &raw).unwrap_err();
        let expected = format!("`dialect` must be `{other}` or `auto`, got `{}`", dialect.as_str());
        assert!(error.message.starts_with(&expected), "{}: {raw}", error.message);
        // A stored message is read with its stored dialect, without an error.
        assert!(parse(dialect, &raw).unwrap().dialect_mismatch.unwrap().loses_tools);
    }
    for (dialect, raw) in [
        (
            Lcm,
            r#"{"role":"user",
                "content":[{"type":"image","source":{"type":"base64","data":"AA=="}}]}"#,
        ),
        (Anthropic, r#"{"role":"user","parts":[{"text":"a"}]}"#),
        (Lcm, r#"{"role":"user","content":"a","tool_calls":[],"x":{"type":"tool_use"}}"#),
        (Anthropic, r#"{"role":"assistant","content":"a","tool_calls":[]}"#),
    ] {
        assert!(super::parse_given(dialect.into(), raw).is_ok(), "{raw}");
    }
}

/// SDKs such as Mistral's and Cohere's have camelCase members, in which a dialect reads no call.
#[test]
fn calls_in_the_names_of_an_sdk_are_refused() {
    use Dialect::{Anthropic, Gemini, Lcm, OpenaiChat, OpenaiResponses};
    let calls = r#""toolCalls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]"#;
    for dialect in [Lcm, Anthropic, OpenaiChat, OpenaiResponses, Gemini] {
        for content in ["\"\"", "null", "\"Let me look.\""] {
            let raw = format!(r#"{{"role":"assistant","content":{content},{calls}}}"#);
            let error = super::parse_given(dialect.into(), &raw).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidInput, "{raw}");
        }
    }
    let read = r#""tool_calls":[{"id":"c","type":"function","function":{"name":"f"}}]"#;
    let raw = format!(r#"{{"role":"assistant","content":null,{read},{calls}}}"#);
    assert!(super::parse_given(OpenaiChat.into(), &raw).is_ok());
}

#[test]
fn content_in_the_form_of_a_framework_is_stored_and_in_doubt() {
    let doubt = DialectMismatch { looks_like: None, loses_tools: false };
    for (dialect, raw) in [
        (Dialect::Lcm, r#"{"role":"user","blocks":[{"block_type":"text","text":"a"}]}"#),
        (Dialect::OpenaiChat, r#"{"role":"user","blocks":[{"block_type":"text","text":"a"}]}"#),
        (Dialect::Gemini, r#"{"kind":"request","parts":[{"part_kind":"user-prompt"}]}"#),
    ] {
        let message = super::parse_given(dialect.into(), raw).unwrap();
        assert_eq!(message.dialect_mismatch, Some(doubt), "{raw}");
    }
    for (dialect, raw) in [
        (Dialect::Gemini, r#"{"parts":[{"text":"a"}]}"#),
        (Dialect::Gemini, r#"{"role":"model","parts":[{"newPart":{}}]}"#),
        (Dialect::OpenaiChat, r#"{"role":"assistant","content":null,"annotations":[{}]}"#),
        (Dialect::OpenaiChat, r#"{"role":"tool","tool_call_id":"c","content":"a"}"#),
        (Dialect::OpenaiChat, r#"{"role":"assistant","content":"a","toolCallId":""}"#),
    ] {
        let message = super::parse_given(dialect.into(), raw).unwrap();
        assert_eq!(message.dialect_mismatch, None, "{raw}");
    }
}

#[test]
fn numbers_of_a_time_are_seconds_or_milliseconds() {
    for (number, expected) in [
        ("0", Some(0)),
        ("1773478800", Some(1_773_478_800_000)),
        ("1773478800.5", Some(1_773_478_800_500)),
        ("1773478800.123456", Some(1_773_478_800_123)),
        ("1773478800000.9", Some(1_773_478_800_000)),
        ("99999999999", Some(99_999_999_999_000)),
        ("100000000000", Some(100_000_000_000)),
        ("1.7734788e9", None),
        ("17734788e2", None),
        ("-1", None),
        ("99999999999999999999", None),
    ] {
        let raw = format!(r#"{{"role":"user","content":"a","timestamp":{number}}}"#);
        let message = parse(Dialect::Lcm, &raw).unwrap();
        assert_eq!(message.timestamp, expected, "{number}");
        assert_eq!(message.has_invalid_timestamp, expected.is_none(), "{number}");
    }
}

#[test]
fn what_fits_its_dialect_is_not_doubted() {
    use Dialect::{Anthropic, Gemini, Lcm, OpenaiChat, OpenaiResponses};
    for (dialect, raw) in [
        (Lcm, r#"{"role":"user"}"#),
        (Lcm, r#"{"role":"user","content":null}"#),
        (Lcm, r#"{"role":"user","content":[],"text":""}"#),
        (Lcm, r#"{"role":"user","content":"a","tool_calls":[],"x":{"type":"tool_use"}}"#),
        (Lcm, r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"poll"}]}"#),
        (Lcm, r#"{"role":"tool","parts":[{"type":"tool_result","call_id":"c"}]}"#),
        (Lcm, r#"{"role":"user","parts":[{"type":"file","name":"a.txt"}]}"#),
        (Anthropic, r#"{"role":"user","content":""}"#),
        (Anthropic, r#"{"role":"user","content":[{"type":"container_upload","file_id":"f"}]}"#),
        (Anthropic, r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}"#),
        (
            Anthropic,
            r#"{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}"#,
        ),
        (OpenaiChat, r#"{"role":"assistant","content":null,"tool_calls":[]}"#),
        (OpenaiChat, r#"{"role":"assistant","content":null,"audio":{"id":"audio_1"}}"#),
        (OpenaiChat, r#"{"role":"tool","tool_call_id":"c","content":""}"#),
        (OpenaiChat, r#"{"role":"user","content":[{"type":"image_url","image_url":{}}]}"#),
        (OpenaiResponses, r#"{"id":"msg_1"}"#),
        (OpenaiResponses, r#"{"type":"reasoning","summary":[],"encrypted_content":"AA"}"#),
        (OpenaiResponses, r#"{"type":"program","text":"a"}"#),
        (Gemini, r#"{"role":"user","parts":[{"fileData":{"fileUri":"a"}}]}"#),
        (Gemini, r#"{"role":"model","parts":[]}"#),
    ] {
        assert_eq!(taken_for(dialect, raw), "-", "{dialect:?}: {raw}");
    }
}

#[test]
fn a_time_that_is_none_is_told() {
    for (time, expected) in [
        ("\"2024-03-01T10:00:00Z\"", false),
        ("1709287200000", false),
        ("null", false),
        ("\"yesterday\"", true),
        ("\"\"", true),
        ("{}", true),
    ] {
        let raw = format!(r#"{{"role":"user","content":"a","timestamp":{time}}}"#);
        assert_eq!(parse(Dialect::Lcm, &raw).unwrap().has_invalid_timestamp, expected, "{time}");
    }
}
