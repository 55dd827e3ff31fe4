//! Tests of the rules: each rule reports messages that break the rule, and no other messages.

use alloc::format;

use super::*;

fn findings(dialect: Dialect, messages: &str) -> String {
    validate(dialect, messages).unwrap()
}

fn refuses(dialect: Dialect, messages: &str, finding: &str) {
    let found = findings(dialect, messages);
    assert!(found.contains(finding), "{messages}: {found}");
}

/// Returns a conversation with this content of the assistant, and this content of the user's answer
/// to it.
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
    refuses("[7]", "not a JSON object");
    refuses(r#"[{"role":"user","content":"q","id":1}]"#, "member `id`");
    refuses(r#"[{"role":"tool","content":"q"}]"#, "role `tool`");
    refuses(&turn(&TEXT.replace("}", ",\"index\":0}"), TEXT), "member `index`");
    refuses(r#"[{"role":"assistant","content":"q"}]"#, "the last message is the assistant's");
    refuses(&turn(&format!("{CALL},{TEXT}"), RESULT), "text behind a tool use");
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
    refuses(&turn(&CALL.replace("c1", &"c".repeat(129)), RESULT), "call id `ccc");
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
    refuses(&turn(CALL, &RESULT.replace("\"r\"", r#"[{"type":"image","source":{}}]"#)), "a source");
    let image = r#"[{"type":"image","source":{"type":"url","url":"u"}}],"is_error":true"#;
    refuses(&turn(CALL, &RESULT.replace("\"r\"", image)), "`image` in a result");
    let served = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"n","input":{}}"#;
    let answer = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;
    assert_eq!(findings(Dialect::Anthropic, &turn(&format!("{served},{answer}"), TEXT)), "[]");
    let foreign = |text: &str| text.replace("srvtoolu_1", "srvtoolu-1");
    let both = format!("{},{}", foreign(served), foreign(answer));
    refuses(&turn(&both, TEXT), "id `srvtoolu-1` of a server tool use");
    refuses(&turn(served, TEXT), "without its result");
    refuses(&turn(answer, TEXT), "without its call");
    let turns = |blocks: &[&str]| {
        let roles = ["user", "assistant"].into_iter().cycle();
        let mut out = String::from("[");
        for (blocks, role) in blocks.iter().zip(roles) {
            let comma = if out.len() > 1 { "," } else { "" };
            out.push_str(&format!(r#"{comma}{{"role":"{role}","content":[{blocks}]}}"#));
        }
        out + "]"
    };
    refuses(&turns(&[TEXT, served, TEXT, answer, TEXT]), "without its result");
    let called =
        CALL.replace("{}", r#"{},"caller":{"type":"code_execution","tool_id":"srvtoolu_1"}"#);
    let waits = format!("{served},{called}");
    assert_eq!(findings(Dialect::Anthropic, &turns(&[TEXT, &waits, RESULT])), "[]");
    assert_eq!(findings(Dialect::Anthropic, &turns(&[TEXT, &waits, RESULT, answer, TEXT])), "[]");
    refuses(&turns(&[TEXT, &waits, &format!("{RESULT},{TEXT}")]), "without its result");
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
    refuses("[7]", "not a JSON object");
    refuses(r#"[{"role":"user","content":"q","timestamp":1}]"#, "member `timestamp`");
    refuses(r#"[{"role":"user","content":"q","trust":"trusted"}]"#, "member `trust`");
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
    refuses(&turn(&call.replace("\"type\":\"function\",", ""), result), "a call of type ``");
    refuses(&turn(call, &result.replace("\"r\"", "null")), "without text");
    refuses(r#"[{"role":"user","content":"q","name":"a b"}]"#, "name `a b`");
    refuses(r#"[{"role":"user","content":[{"type":"image_url","image_url":"u"}]}]"#, "no content");
}

#[test]
fn openai_responses_rules() {
    let refuses = |items: &str, finding: &str| refuses(Dialect::OpenaiResponses, items, finding);
    let call = r#"{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}"#;
    let result = r#"{"type":"function_call_output","call_id":"c1","output":"r"}"#;
    let thought = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let of = |items: &[&str]| format!("[{}]", items.join(","));
    let program = r#"{"type":"program","id":"p","call_id":"p1","code":"","fingerprint":"f"}"#;
    let caller = r#""caller":{"type":"program","caller_id":"p1"}}"#;
    let called = [call.strip_suffix('}').unwrap(), ",", caller].concat();
    let output =
        r#"{"type":"program_output","id":"o","call_id":"p1","result":"","status":"completed"}"#;
    let said = r#"{"role":"user","content":"q"}"#;
    assert_eq!(findings(Dialect::OpenaiResponses, &of(&[program, &called, result])), "[]");
    let whole = of(&[program, &called, result, output, said]);
    assert_eq!(findings(Dialect::OpenaiResponses, &whole), "[]");
    refuses(&of(&[program, &called, result, said]), "a program without its output");
    refuses(&of(&[&called, result]), "`function_call` of no program `p1`");
    refuses(&of(&[output]), "`program_output` of no program `p1`");
    let fine = of(&[r#"{"role":"user","content":"q"}"#, thought, call, r#"{"id":"x"}"#, result]);
    assert_eq!(findings(Dialect::OpenaiResponses, &fine), "[]");
    refuses("[7]", "not a JSON object");
    refuses(r#"[{"role":"user","content":"q","timestamp":1}]"#, "member `timestamp`");
    refuses(r#"[{"role":"user","content":"q","trust":"trusted"}]"#, "member `trust`");
    refuses(
        r#"[{"role":"user","content":"q","id":"e1"}]"#,
        "id `e1` does not have the prefix of a `message`",
    );
    refuses(r#"[{"role":"tool","content":"q"}]"#, "role `tool`");
    refuses(r#"[{"role":"user","content":[]}]"#, "no content");
    refuses(r#"[{"role":"user","content":[{"type":"output_text","text":"t"}]}]"#, "no content");
    refuses(r#"[{"role":"assistant","content":[{"type":"input_text","text":""}]}]"#, "no content");
    refuses(r#"[{"role":"user","content":[{"type":"input_text"}]}]"#, "no content");
    refuses(&of(&[call]), "no result of the calls");
    refuses(&of(&[result, call]), "of no open call");
    refuses(&of(&[call, result, result]), "of no open call");
    refuses(&of(&[call, call, result]), "two calls");
    refuses(&of(&[call, &result.replace("function", "custom_tool")]), "of no open call");
    refuses(&of(&[call, &result.replace("\"r\"", "{}")]), "no content");
    refuses(&of(&[call, &result.replace("\"r\"", "[{}]")]), "no content");
    refuses(&of(&[&call.replace("c1", &"c".repeat(65))]), "call id");
    refuses(&of(&[&call.replace("\"n\"", "\"a b\""), result]), "tool name");
    refuses(&of(&[&call.replace("\"{}\"", "{}"), result]), "is no string");
    refuses(&of(&[thought]), "reasoning without the item");
    refuses(&of(&[thought, call, thought, call]), "two items `rs_1`");
    refuses(&of(&[thought, r#"{"role":"user","content":"q"}"#]), "reasoning without the item");
    refuses(&of(&[&thought.replace("[]", "7"), call, result]), "without a list");
    refuses(r#"[{"type":"item_reference"}]"#, "a reference without `id`");
    refuses(r#"[{"type":"mcp_approval_response","approval_request_id":"r"}]"#, "no request `r`");
}

#[test]
fn gemini_rules() {
    let refuses = |items: &str, finding: &str| refuses(Dialect::Gemini, items, finding);
    let turn = |model: &str, user: &str| {
        format!(
            r#"[{{"parts":[{{"text":"q"}}]}},{{"role":"model","parts":[{model}]}},
                {{"role":"user","parts":[{user}]}}]"#
        )
    };
    let text = r#"{"text":"t"}"#;
    let call = r#"{"functionCall":{"name":"n","args":{}}}"#;
    let result = r#"{"functionResponse":{"name":"n","response":{}}}"#;
    assert_eq!(findings(Dialect::Gemini, &turn(call, result)), "[]");
    refuses("[7]", "not a JSON object");
    refuses(r#"[{"role":"user","parts":[{"text":"q"}],"id":1}]"#, "member `id`");
    refuses(r#"[{"role":"system","parts":[{"text":"q"}]}]"#, "role `system`");
    refuses(r#"[{"role":"model","parts":[{"text":"q"}]}]"#, "not the user's");
    refuses(r#"[{"role":"user","parts":[]}]"#, "no parts");
    refuses(r#"[{"role":"user","parts":[{"text":""}]}]"#, "blank text");
    refuses(r#"[{"role":"user","parts":[{"thoughtSignature":"s"}]}]"#, "a part without data");
    refuses(r#"[{"role":"user","parts":[7]}]"#, "no object");
    refuses(r#"[{"parts":[{"inlineData":{"data":"QQ"}}]}]"#, "without a type");
    refuses(r#"[{"parts":[{"fileData":{"mimeType":"m"}}]}]"#, "without its address");
    refuses(&turn(text, result), "1 responses to 0 calls");
    refuses(&turn(call, text), "0 responses to 1 calls");
    assert_eq!(findings(Dialect::Gemini, &turn(call, &format!("{result},{text}"))), "[]");
    let double = r#"{"text":"t","inlineData":{"mimeType":"image/png","data":"QQ"}}"#;
    refuses(&turn(text, double), "a part with two kinds of data");
    refuses(&turn(call, &result.replace("\"n\"", "\"m\"")), "response of no open call `m`");
    refuses(&turn(call, &result.replace("{}", "7")), "a response that is no object");
    refuses(&turn(&call.replace("{}", "[]"), result), "no object");
    refuses(&turn(&call.replace("\"n\"", "\"1n\""), result), "tool name `1n`");
    refuses(&turn(result, text), "a model's function response");
    refuses(&turn(text, call), "a user's function call");
    refuses(&turn(text, &format!("{text}]}},{{\"role\":\"model\",\"parts\":[{text}")), {
        "the last content is the model's"
    });
    let twice = format!("{text}]}},{{\"role\":\"model\",\"parts\":[{call}");
    refuses(&turn(&twice, result), "do not follow a user's");
}

#[test]
fn what_is_no_array_is_an_error() {
    for odd in ["", "{}", "7", "[", "[1]]", "[],\"x\":[]", "null"] {
        let error = validate(Dialect::Anthropic, odd).unwrap_err();
        assert_eq!(error.code, crate::base::error::ErrorCode::InvalidInput, "{odd}");
    }
    let error = validate(Dialect::Lcm, "[]").unwrap_err();
    assert_eq!(error.code, crate::base::error::ErrorCode::Unsupported);
}
