//! Tests of the rules: each refuses what it is about, and nothing else.

use alloc::format;

use super::*;

fn findings(dialect: Dialect, messages: &str) -> String {
    validate(dialect, messages).unwrap()
}

fn refuses(dialect: Dialect, messages: &str, finding: &str) {
    let found = findings(dialect, messages);
    assert!(found.contains(finding), "{messages}: {found}");
}

/// A conversation around the content of an assistant and of the user's answer.
fn turn(assistant: &str, user: &str) -> String {
    format!(
        r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{assistant}]}},
            {{"role":"user","content":[{user}]}}]"#
    )
}

const TEXT: &str = r#"{"type":"text","text":"t"}"#;
const CALL: &str = r#"{"type":"tool_use","id":"c1","name":"n","input":{}}"#;
const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"c1","content":"r"}"#;

#[test]
fn anthropic_rules() {
    let refuses = |messages: &str, finding: &str| refuses(Dialect::Anthropic, messages, finding);
    assert_eq!(findings(Dialect::Anthropic, &turn(CALL, RESULT)), "[]");
    refuses("[7]", "no object");
    refuses(r#"[{"role":"user","content":"q","id":1}]"#, "member `id`");
    refuses(r#"[{"role":"system","content":"q"}]"#, "role `system`");
    refuses(r#"[{"role":"assistant","content":"q"}]"#, "not the user's");
    refuses(r#"[{"role":"user","content":"q"},{"role":"user","content":"q"}]"#, "follows");
    refuses(r#"[{"role":"user","content":" "}]"#, "blank content");
    refuses(r#"[{"role":"user","content":[]}]"#, "no content");
    refuses(r#"[{"role":"user","content":["\ud800"]}]"#, "surrogate");
    refuses(&turn(TEXT, "{}"), "a block without a type");
    refuses(&turn(TEXT, RESULT), "result of no open call `c1`");
    refuses(&turn(CALL, TEXT), "no result of the calls");
    refuses(&turn(CALL, &format!("{TEXT},{RESULT}")), "behind other content");
    refuses(&turn(CALL, &format!("{RESULT},{RESULT}")), "two results");
    refuses(&turn(&format!("{CALL},{CALL}"), RESULT), "two calls `c1`");
    refuses(&turn(&CALL.replace("c1", "c:1"), RESULT), "call id `c:1`");
    refuses(&turn(&CALL.replace("\"n\"", "\"a b\""), RESULT), "tool name `a b`");
    refuses(&turn(&CALL.replace("{}", "[]"), RESULT), "no object");
    refuses(&turn(TEXT, CALL), "a user's tool use");
    refuses(&turn(RESULT, TEXT), "an assistant's result");
    let thought = r#"{"type":"thinking","thinking":"t","signature":"s"}"#;
    assert_eq!(findings(Dialect::Anthropic, &turn(&format!("{thought},{TEXT}"), TEXT)), "[]");
    refuses(&turn(thought, TEXT), "ends with thinking");
    refuses(&turn(&format!("{},{TEXT}", thought.replace("\"s\"", "\"\"")), TEXT), "the model's");
    refuses(&turn(&format!("{TEXT},{}", r#"{"type":"image","source":{}}"#), TEXT), "`image`");
    refuses(&turn(CALL, &RESULT.replace("\"r\"", "7")), "no content");
    refuses(&turn(CALL, &RESULT.replace("\"r\"", "[{}]")), "in a result");
    refuses(&turn(CALL, &RESULT.replace("\"r\"", "\" \",\"is_error\":true")), "blank error");
    let image = r#"[{"type":"image","source":{}}],"is_error":true"#;
    refuses(&turn(CALL, &RESULT.replace("\"r\"", image)), "`image` in a result");
    let served = r#"{"type":"server_tool_use","id":"s","name":"n","input":{}}"#;
    let answer = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[]}"#;
    assert_eq!(findings(Dialect::Anthropic, &turn(&format!("{served},{answer}"), TEXT)), "[]");
    refuses(&turn(served, TEXT), "without its result");
    refuses(&turn(answer, TEXT), "without its call");
    let marked = r#"{"type":"text","text":"t","cache_control":{}}"#;
    refuses(&turn(TEXT, &[marked; 5].join(",")), "5 blocks with `cache_control`");
}

#[test]
fn openai_chat_rules() {
    let refuses = |messages: &str, finding: &str| refuses(Dialect::OpenaiChat, messages, finding);
    let call = r#"{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}}"#;
    let turn = |calls: &str, rest: &str| {
        format!(r#"[{{"role":"assistant","content":null,"tool_calls":[{calls}]}}{rest}]"#)
    };
    let result = r#",{"role":"tool","tool_call_id":"c1","content":"r"}"#;
    assert_eq!(findings(Dialect::OpenaiChat, &turn(call, result)), "[]");
    refuses("[7]", "no object");
    refuses(r#"[{"role":"user","content":"q","timestamp":1}]"#, "member `timestamp`");
    refuses(r#"[{"role":"model","content":"q"}]"#, "role `model`");
    refuses(r#"[{"role":"user","content":null}]"#, "no content");
    refuses(r#"[{"role":"user","content":[]}]"#, "no content");
    refuses(r#"[{"role":"user","content":[{"type":"text"}]}]"#, "no content");
    refuses(r#"[{"role":"system","content":[{"type":"image_url"}]}]"#, "no content");
    refuses(r#"[{"role":"assistant","content":null}]"#, "no content");
    refuses(r#"[{"role":"assistant","content":"a","tool_calls":[]}]"#, "without a call");
    refuses(&turn(call, ""), "no result of the calls");
    refuses(&turn(call, r#",{"role":"user","content":"q"}"#), "no result of the calls");
    refuses(&turn(call, &format!("{result}{result}")), "no open call");
    refuses(&turn(&format!("{call},{call}"), result), "two calls");
    refuses(&turn(&call.replace("c1", &"c".repeat(41)), ""), "call id");
    refuses(&turn(&call.replace("\"n\"", "\"a b\""), result), "tool name");
    refuses(&turn(&call.replace("\"{}\"", "{}"), result), "is no string");
    refuses(&turn(call, &result.replace("\"r\"", "null")), "without text");
}

#[test]
fn what_is_no_array_is_an_error() {
    for odd in ["", "{}", "7", "[", "[1]]", "[],\"x\":[]", "null"] {
        let error = validate(Dialect::Anthropic, odd).unwrap_err();
        assert_eq!(error.code, crate::ErrorCode::InvalidInput, "{odd}");
    }
    let error = validate(Dialect::Lcm, "[]").unwrap_err();
    assert_eq!(error.code, crate::ErrorCode::Unsupported);
}
