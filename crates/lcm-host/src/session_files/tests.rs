//! Files of every form, written for these tests.

use serde_json::{Value, json};

use super::*;

fn file(lines: &[Value]) -> Result<SessionFile, LineError> {
    read(lines.iter().map(ToString::to_string).collect())
}

fn messages(file: &SessionFile) -> Vec<Value> {
    file.messages.iter().map(|message| serde_json::from_str(&message.text).unwrap()).collect()
}

fn ids(file: &SessionFile) -> Vec<String> {
    messages(file).iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
}

/// A line of a Claude Code session.
fn line(uuid: &str, on: &str, kind: &str, message: Value) -> Value {
    let parent = if on.is_empty() { Value::Null } else { json!(on) };
    json!({"parentUuid": parent, "isSidechain": false, "type": kind, "message": message,
        "uuid": uuid, "timestamp": "2026-01-02T03:04:05.000Z", "sessionId": "s", "cwd": "/w"})
}

fn said(uuid: &str, on: &str, text: &str) -> Value {
    line(uuid, on, "user", json!({"role": "user", "content": text}))
}

fn answer(uuid: &str, on: &str, id: &str, block: &Value) -> Value {
    let message = json!({"id": id, "role": "assistant", "model": "m", "content": [block]});
    line(uuid, on, "assistant", message)
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}})
}

fn answered(uuid: &str, on: &str, id: &str) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": id, "content": "out"});
    line(uuid, on, "user", json!({"role": "user", "content": [block]}))
}

#[test]
fn claude_code_keeps_the_message_as_it_is_written() {
    let raw = r#"{"uuid":"u1","type":"assistant","timestamp":"2026-01-02T03:04:05Z","message":{"id":"msg_1","role":"assistant","content":[ {"type":"text", "text":"\u00e9 \ud800"} ],"usage":{"output_tokens":3.0}},"sessionId":"s"}"#;
    let read = read(vec![raw.to_owned()]).unwrap();
    let expected = r#"{"id":"u1","timestamp":"2026-01-02T03:04:05Z","message_id":"msg_1","role":"assistant","content":[ {"type":"text", "text":"\u00e9 \ud800"} ],"usage":{"output_tokens":3.0}}"#;
    assert_eq!(read.messages[0].text, expected);
    assert_eq!((read.format, read.dialect), (Some(Format::ClaudeCode), Dialect::Anthropic));
}

#[test]
fn claude_code_replaces_nothing_of_the_message_by_what_its_line_says() {
    let of = |line: &str| read(vec![line.to_owned()]).unwrap().messages[0].text.clone();
    let all = r#"{"type":"user","uuid":"u","timestamp":"T","isMeta":true,"message":{"role":"user","content":"x","message_id":1,"id":"m","id":2,"timestamp":"t","message_timestamp":{},"isMeta":"own","isMeta_":0}}"#;
    assert_eq!(
        of(all),
        r#"{"id":"u","timestamp":"T","role":"user","content":"x","message_id":1,"message_id_":"m","message_id_":2,"message_timestamp_":"t","message_timestamp":{},"isMeta":"own","isMeta_":0,"isMeta__":true}"#
    );
    // Without a time of the line that of the message is its own.
    let alone = r#"{"type":"user","uuid":"u","message":{"timestamp":"t","role":"user","message_id":null,"content":"x"}}"#;
    assert_eq!(
        of(alone),
        r#"{"id":"u","timestamp":"t","role":"user","message_id":null,"content":"x"}"#
    );
}

#[test]
fn a_system_message_of_gemini_is_one() {
    let system = json!({"role": "system", "parts": [{"text": "be short"}]});
    let read = file(&[system, json!({"role": "model", "parts": [{"text": "yes"}]})]).unwrap();
    assert_eq!(read.dialect, Dialect::Gemini);
}

#[test]
fn claude_code_takes_results_of_calls_made_side_by_side() {
    let lines = [
        json!({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}),
        said("u1", "", "look"),
        answer("u2", "u1", "msg_1", &call("t1")),
        answer("u3", "u2", "msg_1", &call("t2")),
        answered("u4", "u2", "t1"),
        answered("u5", "u3", "t2"),
        json!({"type": "progress", "uuid": "p", "parentUuid": "u5"}),
        answer("u6", "p", "msg_2", &json!({"type": "text", "text": "done"})),
        json!({"type": "system", "subtype": "turn_duration", "uuid": "d", "parentUuid": "u6"}),
        json!({"type": "system", "subtype": "local_command", "uuid": "l", "content": "/cost"}),
        json!({"type": "hologram", "uuid": "h", "parentUuid": "u6"}),
    ];
    let read = file(&lines).unwrap();
    assert_eq!(ids(&read), ["u1", "u2", "u3", "u4", "u5", "u6"]);
    assert_eq!(read.messages[5].line, 7);
    let expected = "not taken: lines that are no messages: 1 `hologram`, 1 `system local_command`";
    assert_eq!(read.warnings, [expected]);
}

#[test]
fn claude_code_names_a_last_prompt_that_no_line_says() {
    let last = |text: &str| json!({"type": "last-prompt", "lastPrompt": text, "sessionId": "s"});
    let warnings =
        |text: &str| file(&[said("u1", "", "look\nat this"), last(text)]).unwrap().warnings;
    assert_eq!(warnings("look at this"), [""; 0]);
    assert_eq!(warnings("look at\u{2026}"), [""; 0]);
    for other in ["look at", "go on", ""] {
        let expected = "not taken: lines that are no messages: 1 `last-prompt`";
        assert_eq!(warnings(other), [expected], "{other}");
    }
}

#[test]
fn claude_code_follows_the_live_branch() {
    let mut side = said("s1", "", "task");
    side["isSidechain"] = json!(true);
    let lines = [
        said("u1", "", "first"),
        said("u2", "u1", "given up"),
        answer("u3", "u2", "msg_0", &call("t0")),
        answered("u4", "u3", "t0"),
        side.clone(),
        said("u5", "u1", "better"),
    ];
    let read = file(&lines).unwrap();
    assert_eq!(ids(&read), ["u1", "u5"]);
    assert!(read.warnings[0].starts_with("set aside (3): "));
    let branch = &read.branches[0];
    assert_eq!((read.branches.len(), branch.after.as_deref()), (1, Some("u1")));
    assert_eq!(branch.messages.len(), 3);
    assert_eq!(read.warnings[1], "not taken (1): messages of sub-agents");
    // A file of nothing else is the session of one.
    assert_eq!(ids(&file(&[side]).unwrap()), ["s1"]);
}

#[test]
fn claude_code_goes_on_behind_a_compaction_and_keeps_a_summary_that_stands_alone() {
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "b",
        "parentUuid": null, "logicalParentUuid": "u1"});
    let mut summary = said("c1", "b", "what was said before");
    summary["isCompactSummary"] = json!(true);
    let tail = said("u2", "c1", "go on");
    let whole = file(&[said("u1", "", "first"), boundary, summary.clone(), tail.clone()]).unwrap();
    assert_eq!(ids(&whole), ["u1", "u2"]);
    let alone = file(&[summary, tail]).unwrap();
    assert_eq!(ids(&alone), ["c1", "u2"]);
    assert_eq!(messages(&alone)[0]["isCompactSummary"], json!(true));
}

#[test]
fn an_id_that_comes_again_hides_nothing() {
    let read = file(&[said("u1", "", "a"), said("u1", "", "b"), said("u1", "", "a")]).unwrap();
    assert_eq!(ids(&read), ["u1", "u1#77715f4b7e84009d", "u1"]);
}

fn item(payload: &Value) -> Value {
    json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": "response_item", "payload": payload})
}

fn meta() -> Value {
    json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": "session_meta", "payload": {"id": "s"}})
}

#[test]
fn codex_items_become_messages() {
    let lines = [
        meta(),
        item(&json!({"type": "message", "role": "developer",
            "content": [{"type": "input_text", "text": "rules"}]})),
        item(&json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "low"},
            {"type": "input_image", "image_url": "https://example.org/a.png"}]})),
        json!({"type": "event_msg", "payload": {"type": "user_message", "message": "see"}}),
        item(&json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
            "summary": [{"type": "summary_text", "text": "hm"}]})),
        item(&json!({"type": "function_call", "call_id": "c1", "name": "shell",
            "arguments": "{\"command\":[\"ls\"]}"})),
        item(&json!({"type": "function_call_output", "call_id": "c1", "output": "a"})),
        item(&json!({"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch",
            "input": "*** Begin Patch", "status": "completed"})),
        item(&json!({"type": "custom_tool_call_output", "call_id": "c2",
            "output": {"content": "no", "success": false}})),
        item(&json!({"type": "web_search_call", "action": {"query": "q"}})),
        item(&json!({"type": "ghost_snapshot", "ghost_commit": {}})),
    ];
    let read = file(&lines).unwrap();
    assert_eq!((read.format, read.dialect), (Some(Format::Codex), Dialect::Lcm));
    let messages = messages(&read);
    let parts: Vec<&Value> = messages.iter().map(|message| &message["parts"]).collect();
    assert_eq!(messages[0]["role"], "system");
    assert_eq!(messages[0]["source"]["role"], "developer");
    assert_eq!(
        parts[1][1],
        json!({"type": "file", "mime": "image/png", "data": "iVBO",
        "detail": "low"})
    );
    assert_eq!(parts[1][2]["image_url"], "https://example.org/a.png");
    assert_eq!(messages[2]["id"], "s/rs_1");
    assert_eq!(
        (&parts[2][0]["text"], &parts[2][0]["encrypted_content"]),
        (&json!("hm"), &json!("gAAA"))
    );
    assert_eq!(
        parts[3][0],
        json!({"type": "tool_call", "id": "c1", "name": "shell",
        "input": {"command": ["ls"]}})
    );
    assert_eq!(parts[4][0], json!({"type": "tool_result", "call_id": "c1", "output": "a"}));
    assert_eq!(parts[5][0]["input"], "*** Begin Patch");
    assert_eq!(
        parts[6][0],
        json!({"type": "tool_result", "call_id": "c2", "output": "no",
        "is_error": true, "success": false})
    );
    assert_eq!(parts[7][0], json!({"type": "web_search_call", "action": {"query": "q"}}));
    assert_eq!(messages.len(), 8);
    assert_eq!(read.warnings[0], "not taken (1): snapshots of the program");
}

fn event_line(kind: &str, text: &str) -> Value {
    json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": "event_msg",
        "payload": {"type": kind, "message": text}})
}

#[test]
fn codex_takes_each_prompt_once_at_its_place() {
    let user = |text: &str| {
        item(&json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": text}]}))
    };
    let answer = |text: &str| {
        item(&json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": text}]}))
    };
    let prompt = |text: &str| event_line("user_message", text);
    let roles_and_texts = |lines: &[Value]| -> Vec<String> {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let files = read_bytes(lines.join("\n").as_bytes(), Growth::Ended).unwrap();
        assert_eq!(files[0].warnings, [""; 0]);
        let said = messages(&files[0]);
        let of = |it: &Value| format!("{} {}", it["role"], it["parts"][0]["text"]).replace('"', "");
        said.iter().map(of).collect()
    };
    let both = ["user a", "assistant b"];
    assert_eq!(roles_and_texts(&[meta(), prompt("a"), user("a"), answer("b")]), both);
    assert_eq!(roles_and_texts(&[meta(), user("a"), prompt("a"), answer("b")]), both);
    assert_eq!(roles_and_texts(&[meta(), prompt("a"), answer("b"), user("a")])[0], "assistant b");
    assert_eq!(roles_and_texts(&[meta(), prompt("a"), answer("b")]), both);
    // The text of an event of the model may differ from that of its item.
    let lines = [meta(), prompt("a"), event_line("agent_message", "b!"), answer("b")];
    assert_eq!(roles_and_texts(&lines), both);
    let lines = [meta(), prompt("a"), answer("b"), prompt("a"), user("a"), answer("c")];
    assert_eq!(roles_and_texts(&lines), ["user a", "assistant b", "user a", "assistant c"]);
    assert_eq!(roles_and_texts(&[meta(), prompt("a"), prompt("a"), user("a")]).len(), 2);
    let lines = [meta(), prompt("a"), event_line("agent_message", "b")];
    assert_eq!(roles_and_texts(&lines), both);
}

#[test]
fn codex_names_events_that_it_does_not_know() {
    let user = item(&json!({"type": "message", "role": "user", "content": "a"}));
    let lines =
        [meta(), user, event_line("token_count", ""), event_line("entered_review_mode", "look")];
    let expected = "not taken: lines that are no messages: 1 `event_msg entered_review_mode`";
    assert_eq!(file(&lines).unwrap().warnings, [expected]);
}

#[test]
fn codex_files_of_the_first_form_have_bare_items() {
    let ok = json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "ok"}]});
    let header = json!({"id": "s", "timestamp": "2025-06-01T00:00:00Z", "instructions": null});
    let state = json!({"record_type": "state"});
    let read = file(&[header, ok.clone(), state, ok]).unwrap();
    assert_eq!(read.format, Some(Format::Codex));
    let ids = ids(&read);
    assert_eq!(ids[1], format!("{}#2", ids[0]));
}

#[test]
fn codex_keeps_a_summary_only_where_nothing_stands_before_it() {
    let compacted = json!({"type": "compacted", "payload": {"message": "before"}});
    let ok = item(&json!({"type": "message", "role": "user", "content": "ok"}));
    let alone = file(&[meta(), compacted.clone(), ok.clone()]).unwrap();
    assert_eq!(messages(&alone)[0]["content"], "before");
    assert_eq!(file(&[meta(), ok, compacted]).unwrap().messages.len(), 1);
}

fn entry(id: &str, on: &str, message: &Value) -> Value {
    let parent = if on.is_empty() { Value::Null } else { json!(on) };
    json!({"type": "message", "id": id, "parentId": parent,
        "timestamp": "2026-01-02T03:04:05.000Z", "message": message})
}

fn session() -> Value {
    json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-02T03:04:05.000Z"})
}

#[test]
fn open_claw_entries_become_messages() {
    let lines = [
        session(),
        entry("1", "", &json!({"role": "user", "content": "hi", "timestamp": 5})),
        entry(
            "2",
            "1",
            &json!({"role": "assistant", "stopReason": "toolUse", "model": "m",
            "content": [{"type": "thinking", "thinking": "t", "thinkingSignature": "g"},
                {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"a": 1.0}}]}),
        ),
        entry(
            "3",
            "2",
            &json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash",
            "content": [{"type": "text", "text": "out"}], "isError": true}),
        ),
        entry(
            "4",
            "3",
            &json!({"role": "assistant", "content": [], "stopReason": "error",
            "errorMessage": "busy"}),
        ),
        json!({"type": "compaction", "id": "5", "parentId": "4", "summary": "all"}),
        entry("6", "5", &json!({"role": "bashExecution", "command": "pwd", "output": "/w"})),
        json!({"type": "custom_message", "id": "7", "parentId": "6", "content": "note",
            "customType": "x", "display": true}),
        json!({"type": "custom", "id": "8", "parentId": "7", "customType": "x"}),
    ];
    let read = file(&lines).unwrap();
    assert_eq!((read.format, read.dialect), (Some(Format::OpenClaw), Dialect::Openclaw));
    assert_eq!(ids(&read), ["s/1", "s/2", "s/3", "s/4", "s/6", "s/7"]);
    let messages = messages(&read);
    let time = "2026-01-02T03:04:05.000Z";
    assert_eq!(
        messages[0],
        json!({"role": "user", "content": "hi", "timestamp": 5, "id": "s/1"}),
        "the message of the agent, with the id of its entry"
    );
    for (message, line) in messages[1..5].iter().zip([2, 3, 4, 6]) {
        let mut given = lines[line]["message"].clone();
        given["id"] = json!(format!("s/{}", lines[line]["id"].as_str().unwrap()));
        given["timestamp"] = json!(time);
        assert_eq!(*message, given);
    }
    assert_eq!(
        messages[5],
        json!({"role": "custom", "content": "note", "customType": "x", "display": true,
            "id": "s/7"})
    );
    assert!(read.warnings[0].starts_with("not taken (1): summaries"));
}

#[test]
fn open_claw_follows_the_live_branch_and_keeps_what_was_said_of_others() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let lines = [
        session(),
        entry("1", "", &user("a")),
        entry("2", "1", &user("given up")),
        json!({"type": "branch_summary", "id": "3", "parentId": "1", "fromId": "2",
            "summary": "tried"}),
        entry("4", "3", &user("b")),
    ];
    let read = file(&lines).unwrap();
    assert_eq!(ids(&read), ["s/1", "s/3", "s/4"]);
    assert_eq!(messages(&read)[1]["summary"], "tried");
    assert_eq!(messages(&read)[1]["role"], "branchSummary");
    // Of the first version, without ids.
    let old = json!({"type": "message", "timestamp": "2025-01-01T00:00:00Z", "message": user("x")});
    assert!(ids(&file(&[session(), old]).unwrap())[0].starts_with("line:"));
}

#[test]
fn dialects_are_told_apart_by_what_only_they_have() {
    let plain = json!({"role": "user", "content": "hello"});
    let cases = [
        (json!({"role": "assistant", "parts": [{"type": "text", "text": "x"}]}), Dialect::Lcm),
        (json!({"role": "assistant", "content": [call("t")]}), Dialect::Anthropic),
        (json!({"role": "tool", "tool_call_id": "t", "content": "x"}), Dialect::OpenaiChat),
        (json!({"role": "tool", "content": "x"}), Dialect::Lcm),
        (json!({"type": "function_call", "call_id": "c", "name": "n"}), Dialect::OpenaiResponses),
        (json!({"role": "model", "parts": [{"text": "x"}]}), Dialect::Gemini),
    ];
    for (one, dialect) in cases {
        // A message of Gemini has no `content`.
        let before = if dialect == Dialect::Gemini { one.clone() } else { plain.clone() };
        let read = file(&[before, one.clone()]).unwrap();
        assert_eq!(read.format, Some(Format::Messages(dialect)), "{one}");
        assert_eq!(read.messages[1].text, one.to_string());
    }
    // What is the same in all of them is no guess.
    let text = json!({"role": "assistant", "content": [{"type": "text", "text": "x"}]});
    assert_eq!(file(&[plain, text]).unwrap().dialect, Dialect::Lcm);
    assert_eq!(file(&[]).unwrap().format, None);
}

#[test]
fn nothing_is_guessed() {
    let reason = |lines: &[Value]| file(lines).unwrap_err();
    let unknown = reason(&[json!({"role": "user", "content": "a"}), json!({"a": 1, "b": 2})]);
    assert_eq!(unknown.line, Some(1));
    assert!(unknown.reason.contains("got `a`, `b`"), "{unknown}");
    let novel = json!({"role": "user", "content": [{"type": "hologram"}]});
    let doubt = reason(&[novel]);
    assert!(doubt.reason.contains("`lcm`") && doubt.reason.contains("`--dialect`"), "{doubt}");
    let mixed = reason(&[said("u1", "", "a"), meta()]);
    assert_eq!(mixed.line, Some(1));
    assert!(mixed.reason.contains("Codex") && mixed.reason.contains("Claude Code"), "{mixed}");
    let mixed = reason(&[answer("u", "", "m", &call("t")), json!({"role": "user", "content": ""})]);
    assert_eq!(mixed.line, Some(1));
}

/// Each message says by itself which dialect it has, so nothing of a mixed file is a guess.
#[test]
fn a_file_of_two_dialects_is_read_message_by_message() {
    let mixed = [
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}),
        json!({"role": "tool", "tool_call_id": "t", "content": ""}),
    ];
    let read = file(&mixed).unwrap();
    assert_eq!((read.dialect, read.messages.len()), (Dialect::Auto, 2));
}

#[test]
fn a_line_that_is_no_object_is_named() {
    let good = json!({"role": "user", "content": "a"}).to_string();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases = [
        (r#"{"role":"user","content":"a"#.to_owned(), "ends in the middle"),
        ("{\"role\":\"user\",\"content\":\"\0\"}".to_owned(), "NUL"),
        ("\0\0\0".to_owned(), "NUL"),
        ("[1]".to_owned(), "a JSON object"),
        (format!("\"{}\"", "x".repeat(1_000)), "a JSON object, got another value"),
        (r#"{"role":"user"} {}"#.to_owned(), "a JSON object"),
        (deep.clone(), "a JSON object"),
    ];
    for (bad, says) in cases {
        let error = read(vec![bad.clone()]).unwrap_err();
        assert_eq!(error.line, Some(0));
        assert!(error.reason.contains(says) && error.reason.len() < 500, "{error}");
        // Beside whole records it is skipped and named.
        let read = read(vec![good.clone(), bad]).unwrap();
        assert_eq!(read.messages.len(), 1);
        assert!(read.warnings[0].starts_with("damaged lines (1): line 2 "), "{read:?}");
    }
    // Depth inside of a value is the component's to judge.
    let nested = format!(r#"{{"role":"user","content":"","deep":{deep}}}"#);
    assert_eq!(read(vec![nested.clone()]).unwrap().messages[0].text, nested);
    let missing = json!({"type": "user", "uuid": "u", "parentUuid": null});
    assert_eq!(file(&[said("a", "", "x"), missing]).unwrap_err().line, Some(1));
}

#[test]
fn lists_of_conversations_are_read_to_a_depth() {
    let nest = |depth: usize, inside: &str| {
        let begin = "{\"conversations\":[".repeat(depth);
        format!("{begin}{inside}{}", "]}".repeat(depth))
    };
    let chat = r#"{"messages":[{"role":"user","content":"a"}]}"#;
    let read = |text: String| read_bytes(text.as_bytes(), Growth::Ended);
    let files = read(nest(4, chat)).unwrap();
    assert_eq!(files[0].messages.len(), 1);
    for depth in [5, 20_000] {
        for text in [nest(depth, chat), format!("[{}]", nest(depth, chat))] {
            let error = read(text).unwrap_err();
            assert!(error.reason.contains("at most 4 lists of `conversations`"), "{error}");
        }
    }
    // Without an end, or without a message inside.
    for text in ["{\"conversations\":[".repeat(20_000), nest(20_000, "")] {
        assert!(read(text.clone()).is_err());
        let _ = read_bytes(text.as_bytes(), Growth::Growing);
    }
}

#[test]
fn damaged_files_are_read_or_refused_in_one_line() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let files: [Vec<Value>; 4] = [
        vec![said("u1", "", "a"), answer("u2", "u1", "m", &call("t")), answered("u3", "u2", "t")],
        vec![
            meta(),
            item(&json!({"type": "function_call", "call_id": "c", "name": "n",
            "arguments": "{\"a\":[1,{}]}"})),
            item(&json!({"type": "message", "role": "user",
            "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]})),
        ],
        vec![
            session(),
            entry("1", "", &user("a")),
            entry(
                "2",
                "1",
                &json!({"role": "assistant",
            "content": [{"type": "toolCall", "id": "c", "name": "n", "arguments": {}}]}),
            ),
        ],
        vec![user("a"), json!({"role": "tool", "tool_call_id": "t", "content": "b"})],
    ];
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = |below: usize| {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 1).unwrap() % below.max(1)
    };
    let (mut taken, mut refused) = (0, 0);
    for round in 0..20_000 {
        let lines = &files[round % files.len()];
        let mut lines: Vec<Vec<u8>> =
            lines.iter().map(|line| line.to_string().into_bytes()).collect();
        for _ in 0..=random(3) {
            let at = random(lines.len());
            let other = lines[random(lines.len())].clone();
            let line = &mut lines[at];
            let (from, to) = (random(line.len()), random(line.len()));
            match random(6) {
                0 => line.truncate(from),
                1 => drop(line.drain(from.min(to)..from.max(to))),
                2 if !line.is_empty() => line[from] = b"\"{}[],:\\0a\0"[random(11)],
                3 => line.extend_from_within(from.min(to)..from.max(to)),
                4 => *line = other,
                _ => lines.swap(at, from % files.len().min(2)),
            }
        }
        let lines: Vec<String> =
            lines.into_iter().filter_map(|line| String::from_utf8(line).ok()).collect();
        let count = lines.len();
        match read(lines) {
            Ok(file) => {
                taken += 1;
                assert!(file.messages.iter().all(|message| message.line < count));
                let texts = file.messages.iter().map(|message| &message.text);
                texts.for_each(|text| drop(serde_json::from_str::<Value>(text).unwrap()));
            }
            Err(error) => {
                refused += 1;
                assert!(error.line.is_none_or(|line| line < count), "{error}");
                assert!(!error.reason.contains('\n') && error.reason.len() < 500, "{error}");
            }
        }
    }
    assert!(taken > 1_000 && refused > 1_000, "{taken} and {refused}");
}
