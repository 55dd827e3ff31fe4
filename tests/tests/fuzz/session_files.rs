#![expect(clippy::indexing_slicing, reason = "a panic is the finding")]
//! Damaged session files for their readers: lines are cut, doubled, mixed up, left out or damaged.
//!
//! A file is read, or refused with the number of the wrong line. Each message is JSON with its own
//! id. Messages keep their ids when the file grows.

use std::collections::BTreeMap;

use lcm_host::session_files::{Format, LineError, SessionFile, read};
use lcm_testing::{mutate::mutate, simulation::random::Random};
use serde_json::value::RawValue;

use super::rounds_of;

/// Smallest number of rounds of each reader; they take about two seconds.
const ROUNDS: u64 = 10_000;

/// Largest length of the reason of a refusal, which is one line for a person.
const REASON_BYTES_MAX: usize = 600;

const CLAUDE_CODE: &str = r#"
{"type":"file-history-snapshot","messageId":"x","snapshot":{}}
{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"look \ud83d\ude00"},"uuid":"u1","timestamp":"2026-01-02T03:04:05.000Z","sessionId":"s","cwd":"/w"}
{"parentUuid":"u1","isSidechain":false,"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"a":[1,{}]}}]},"uuid":"u2","sessionId":"s"}
{"parentUuid":"u2","isSidechain":false,"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Bash","input":{}}],"message_id":"own","timestamp":5},"uuid":"u3","timestamp":"2026-01-02T03:04:06.000Z","sessionId":"s"}
{"parentUuid":"u2","isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"out"}]},"uuid":"u4","sessionId":"s"}
{"parentUuid":"u3","isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"out"}]}]},"uuid":"u5","sessionId":"s"}
{"parentUuid":"u5","type":"progress","uuid":"p"}
{"parentUuid":null,"logicalParentUuid":"p","type":"system","subtype":"compact_boundary","uuid":"b"}
{"parentUuid":"b","isSidechain":false,"type":"user","isCompactSummary":true,"message":{"role":"user","content":"what was said"},"uuid":"c","sessionId":"s"}
{"parentUuid":"u1","isSidechain":true,"type":"user","message":{"role":"user","content":"task"},"uuid":"s1","sessionId":"s"}
{"parentUuid":"c","isSidechain":false,"type":"user","isMeta":true,"message":{"role":"user","content":"go on"},"uuid":"u6","sessionId":"s"}
"#;

const CODEX: &str = r#"
{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"s"}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,iVBO"}]}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"event_msg","payload":{"type":"user_message","message":"see"}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"response_item","payload":{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA","summary":[{"type":"summary_text","text":"hm"}]}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"response_item","payload":{"type":"function_call","call_id":"c1","name":"shell","arguments":"{\"command\":[\"ls\"]}"}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a"}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c2","output":{"content":"no","success":false}}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"response_item","payload":{"type":"local_shell_call","call_id":"c3","action":{"command":["ls"]}}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"response_item","payload":{"type":"web_search_call","action":{"query":"q"}}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"compacted","payload":{"message":"before"}}
{"timestamp":"2026-01-02T03:04:05.000Z","type":"event_msg","payload":{"type":"thread_rolled_back"}}
"#;

const CODEX_EARLY: &str = r#"
{"id":"s","timestamp":"2025-06-01T00:00:00Z","instructions":null}
{"type":"message","role":"user","content":[{"type":"input_text","text":"ok"}]}
{"record_type":"state"}
{"type":"function_call","id":"fc_1","call_id":"c1","name":"shell","arguments":"{}"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"ok"}]}
"#;

const OPEN_CLAW: &str = r#"
{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05.000Z"}
{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"hi","timestamp":5}}
{"type":"message","id":"2","parentId":"1","message":{"role":"assistant","stopReason":"toolUse","content":[{"type":"thinking","thinking":"t","thinkingSignature":"g"},{"type":"toolCall","id":"c","name":"bash","arguments":{"a":1.0}}]}}
{"type":"message","id":"3","parentId":"2","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"text","text":"out"}],"isError":true}}
{"type":"message","id":"4","parentId":"3","message":{"role":"assistant","content":[],"stopReason":"error"}}
{"type":"branch_summary","id":"5","parentId":"3","fromId":"4","summary":"tried"}
{"type":"message","id":"6","parentId":"5","message":{"role":"bashExecution","command":"pwd","output":"/w"}}
{"type":"compaction","id":"7","parentId":"6","summary":"all"}
{"type":"custom_message","id":"8","parentId":"7","content":"note","customType":"x","display":true}
{"type":"custom","id":"9","parentId":"8","customType":"x"}
{"type":"message","id":"a","parentId":"9","message":{"role":"user","content":[{"type":"image","data":"iVBO","mimeType":"image/png"}]}}
"#;

/// Messages of every dialect, which are no session files.
const MESSAGES: &str = r#"
{"role":"user","content":"hello"}
{"role":"assistant","parts":[{"type":"text","text":"x"}]}
{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}
{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"n","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"t","content":"x"}
{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}
{"role":"model","parts":[{"text":"x"}]}
{"parts":[{"functionResponse":{"name":"n","response":{"output":"x"}}}]}
"#;

fn lines(file: &str) -> Vec<String> {
    file.trim().lines().map(str::to_owned).collect()
}

/// Returns a file with lines left out, doubled, swapped, inserted and damaged.
fn damaged(random: &mut Random, file: &[String], others: &[String]) -> Vec<String> {
    let mut lines = file.to_vec();
    for _ in 0..random.between(0, 4) {
        let last = u64::try_from(lines.len()).unwrap();
        let at = usize::try_from(random.between(0, last - 1)).unwrap();
        let other = usize::try_from(random.between(0, last - 1)).unwrap();
        match random.between(0, 6) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => lines.insert(at, random.pick(others).clone()),
            4 => lines.truncate(at + 1),
            _ => lines[at] = mutate(random, &lines[at], &lines[other]),
        }
    }
    // A reader of lines gives lines without line ends and no blank lines.
    let lines = lines.iter().flat_map(|line| line.split('\n'));
    lines.filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Reads a file and checks the properties that are true for any file.
fn checked(lines: &[String]) -> Result<SessionFile, LineError> {
    let read = read(lines.to_vec());
    match &read {
        Ok(file) => {
            let aside = file.branches.iter().flat_map(|branch| &branch.messages);
            let all = file.messages.iter().chain(aside);
            let at: Vec<usize> = all.map(|message| message.line).collect();
            assert!(at.iter().all(|line| *line < lines.len()), "{at:?}");
            assert!(file.format.is_some() || file.messages.is_empty());
            for message in &file.messages {
                check_message(file.format, &message.text, &lines[message.line]);
            }
            for warning in &file.warnings {
                assert!(!warning.contains('\n'), "{warning}");
            }
        }
        Err(error) => {
            let of_whole = error.line.is_none() && error.reason.contains("`--dialect`");
            let of_line = error.line.is_some_and(|line| line < lines.len());
            assert!(of_whole || of_line, "{error:?}");
            assert!(!error.reason.chars().any(char::is_control), "{error}");
            assert!((1..=REASON_BYTES_MAX).contains(&error.reason.len()), "{error}");
        }
    }
    read
}

/// Checks that a message of a session has an id from its reader, and has the content of its line.
fn check_message(format: Option<Format>, text: &str, line: &str) {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap();
    let is_session = !matches!(format, Some(Format::Messages(_)));
    if is_session {
        let id: String = serde_json::from_str(members["id"].get()).unwrap();
        assert!(
            !id.is_empty() && members.contains_key("role") || format == Some(Format::ClaudeCode)
        );
    } else {
        // A damaged line may have other records beside the message.
        assert!(line.contains(text), "{text}");
    }
    let whole = serde_json::from_str::<BTreeMap<String, &RawValue>>(line);
    if let (Some(Format::ClaudeCode), Ok(line)) = (format, whole)
        && line.contains_key("message")
    {
        let said: BTreeMap<String, &RawValue> =
            serde_json::from_str(line["message"].get()).unwrap();
        for (key, value) in said {
            let kept = |name: &str| members.get(name).is_some_and(|kept| kept.get() == value.get());
            let is_kept = match key.as_str() {
                "id" => members.keys().any(|name| name.starts_with("message_id") && kept(name)),
                "timestamp" if !kept("timestamp") => {
                    members.keys().any(|name| name.starts_with("message_timestamp") && kept(name))
                }
                key => kept(key),
            };
            assert!(is_kept, "`{key}` is gone: {text}");
        }
    }
}

/// Checks that messages keep id and text when the file has grown, if both readings accept them.
fn check_growth(random: &mut Random, lines: &[String], whole: &SessionFile) {
    let last = u64::try_from(lines.len()).unwrap();
    let count = usize::try_from(random.between(0, last)).unwrap();
    let Ok(before) = checked(&lines[..count]) else { return };
    if before.format != whole.format {
        return;
    }
    let of = |file: &SessionFile| -> BTreeMap<usize, String> {
        file.messages.iter().map(|message| (message.line, message.text.clone())).collect()
    };
    let whole = of(whole);
    for (line, text) in of(&before) {
        if let Some(now) = whole.get(&line) {
            assert_eq!(&text, now, "line {line} of {count} is another message in {}", lines.len());
        }
    }
}

fn fuzz(name: &str, files: &[&str], expected: &[Format]) {
    let files: Vec<Vec<String>> = files.iter().map(|file| lines(file)).collect();
    let others: Vec<String> = files.concat();
    for file in &files {
        let read = checked(file).unwrap();
        let found = read.format.unwrap();
        assert!(expected.contains(&found), "{found:?}");
        assert!(read.messages.len() > 2, "{read:?}");
    }
    let (mut taken, mut refused) = (0_u64, 0_u64);
    rounds_of(&format!("session_files::{name}"), ROUNDS, |random| {
        let file = random.pick(&files).clone();
        let lines = damaged(random, &file, &others);
        match checked(&lines) {
            Ok(read) => {
                taken += 1;
                check_growth(random, &lines, &read);
            }
            Err(_) => refused += 1,
        }
    });
    println!("{name}: {taken} read, {refused} refused");
}

#[test]
fn claude_code() {
    fuzz("claude_code", &[CLAUDE_CODE], &[Format::ClaudeCode]);
}

#[test]
fn codex() {
    fuzz("codex", &[CODEX, CODEX_EARLY], &[Format::Codex]);
}

#[test]
fn open_claw() {
    fuzz("open_claw", &[OPEN_CLAW], &[Format::OpenClaw]);
}

/// The format of a file is detected, even if the file mixes lines of all formats and dialects.
#[test]
fn detection() {
    let forms = [CLAUDE_CODE, CODEX, CODEX_EARLY, OPEN_CLAW, MESSAGES].map(lines);
    let (mut taken, mut refused) = (0_u64, 0_u64);
    rounds_of("session_files::detection", ROUNDS, |random| {
        let (file, others) = (random.pick(&forms).clone(), random.pick(&forms).clone());
        let mut few = Vec::new();
        for _ in 0..random.between(1, 4) {
            few.push(random.pick(&file).clone());
        }
        let lines = damaged(random, &few, &others);
        match checked(&lines) {
            Ok(read) => {
                taken += 1;
                for line in &lines {
                    if let Ok(alone) = checked(std::slice::from_ref(line)) {
                        assert!(alone.count_messages() <= line.matches('{').count(), "{line}");
                    }
                }
                check_growth(random, &lines, &read);
            }
            Err(_) => refused += 1,
        }
    });
    println!("detection: {taken} read, {refused} refused");
}
