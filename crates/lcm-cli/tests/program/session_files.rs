//! `lcm ingest --dialect auto` and `--tail`: session files from end to end.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use crate::{DEMO, Place};

const AUTO: [&str; 3] = ["ingest", "--dialect", "auto"];

fn jsonl(lines: &[Value]) -> String {
    lines.iter().map(|line| line.to_string() + "\n").collect()
}

/// A session of Claude Code with so many turns.
fn claude_code(turns: usize) -> Vec<Value> {
    let mut lines = Vec::new();
    for turn in 0..turns {
        let on = if turn == 0 { Value::Null } else { json!(format!("a{}", turn - 1)) };
        lines.push(json!({"type": "user", "uuid": format!("u{turn}"), "parentUuid": on,
            "sessionId": "s", "message": {"role": "user", "content": "ok"}}));
        lines.push(json!({"type": "assistant", "uuid": format!("a{turn}"),
            "parentUuid": format!("u{turn}"), "sessionId": "s",
            "message": {"id": format!("msg_{turn}"), "role": "assistant",
                "content": [{"type": "text", "text": format!("answer {turn}")}]}}));
    }
    lines
}

/// A session of Codex; its items have no ids, and say the same again.
fn codex(items: usize) -> Vec<Value> {
    let item = |at: usize| {
        json!({"timestamp": format!("2026-01-02T03:04:{at:02}.000Z"), "type": "response_item",
            "payload": {"type": "message", "role": if at.is_multiple_of(2) { "user" } else { "assistant" },
                "content": [{"type": "input_text", "text": "ok"}]}})
    };
    let meta = json!({"timestamp": "2026-01-02T03:04:00.000Z", "type": "session_meta",
        "payload": {"id": "s"}});
    std::iter::once(meta).chain((0..items).map(item)).collect()
}

fn open_claw(entries: usize) -> Vec<Value> {
    let entry = |at: usize| {
        let on = if at == 0 { Value::Null } else { json!(format!("{}", at - 1)) };
        json!({"type": "message", "id": at.to_string(), "parentId": on,
            "timestamp": "2026-01-02T03:04:05.000Z",
            "message": {"role": "user", "content": "ok"}})
    };
    let header = json!({"type": "session", "id": "s", "timestamp": "2026-01-02T03:04:05.000Z"});
    std::iter::once(header).chain((0..entries).map(entry)).collect()
}

#[test]
fn a_session_is_stored_once_and_in_halves() {
    let cases = [(claude_code(6), 12), (codex(12), 12), (open_claw(12), 12)];
    for (lines, count) in cases {
        let place = Place::new();
        let half = place.write("half.jsonl", jsonl(lines.split_at(lines.len() / 2 + 1).0));
        let whole = place.write("whole.jsonl", jsonl(&lines));
        let first = place.json(&[&AUTO[..], &[&half]].concat())["ingested"].as_u64().unwrap();
        assert!(first > 4 && first < count, "{first}");
        let rest = place.json(&[&AUTO[..], &[&whole]].concat());
        assert_eq!(rest["ingested"], count - first, "exactly what was missing");
        let again = place.json(&[&AUTO[..], &[&whole]].concat());
        assert_eq!((&again["ingested"], &again["skipped"]), (&json!(0), &json!(count)));
        assert!(again["format"].as_str().unwrap().ends_with("session"), "{again}");
        assert_eq!(place.json(&["check"])["ok"], true);
        assert_eq!(place.run(&["messages", "--raw"]).ok().out.lines().count(), 12);
    }
}

#[test]
fn a_session_can_be_assembled_for_its_provider() {
    let place = Place::new();
    let call = |uuid: &str, on: &str, id: &str| {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": on, "message": {"id": "m1",
            "role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash",
                "input": {}}]}})
    };
    let result = |uuid: &str, on: &str, id: &str| {
        json!({"type": "user", "uuid": uuid, "parentUuid": on, "message": {"role": "user",
            "content": [{"type": "tool_result", "tool_use_id": id, "content": "out"}]}})
    };
    let lines = [
        json!({"type": "user", "uuid": "u", "parentUuid": null,
            "message": {"role": "user", "content": "go"}}),
        call("a1", "u", "toolu_1"),
        call("a2", "a1", "toolu_2"),
        result("r1", "a1", "toolu_1"),
        result("r2", "a2", "toolu_2"),
    ];
    let file = place.write("s.jsonl", jsonl(&lines));
    place.json(&[&AUTO[..], &[&file]].concat());
    let context = place.json(&["assemble", "--budget", "4000", "--dialect", "anthropic"]);
    // Calls made side by side are several lines, and one message of the context.
    let messages = context["messages"].as_array().unwrap();
    let ids: Vec<(&Value, &Value)> = messages
        .iter()
        .skip(1)
        .flat_map(|message| message["content"].as_array().unwrap())
        .map(|block| (&block["id"], &block["tool_use_id"]))
        .collect();
    let (one, two, none) = (json!("toolu_1"), json!("toolu_2"), Value::Null);
    assert_eq!(ids, [(&one, &none), (&two, &none), (&none, &one), (&none, &two)], "{context}");
    assert_eq!(context["warnings"], json!([]));
}

#[test]
fn plain_messages_are_recognised_too() {
    let place = Place::new();
    let report = place.json(&[&AUTO[..], &[DEMO]].concat());
    assert_eq!((&report["ingested"], &report["format"]), (&json!(83), &json!("messages of `lcm`")));
    assert_eq!(place.json(&["ingest", DEMO])["ingested"], 0, "the same messages");
    let bytes = fs::read(DEMO).unwrap();
    assert_eq!(place.run(&["messages", "--raw"]).ok().out.as_bytes(), bytes);
}

#[test]
fn a_changed_message_of_a_file_without_ids_is_stored_once() {
    let demo: Vec<Value> = fs::read_to_string(DEMO)
        .unwrap()
        .lines()
        .map(|line| {
            let mut message: Value = serde_json::from_str(line).unwrap();
            for key in ["id", "timestamp", "session"] {
                message.as_object_mut().unwrap().remove(key);
            }
            message
        })
        .collect();
    let place = Place::new();
    let file = place.write("s.jsonl", jsonl(&demo));
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 83);
    let mut changed = demo.clone();
    changed[10]["content"] = json!("this was written into the file afterwards");
    changed[10].as_object_mut().unwrap().remove("parts");
    let file = place.write("s.jsonl", jsonl(&changed));
    let stored = place.json(&[&AUTO[..], &[&file]].concat());
    assert_eq!(stored["ingested"], 1, "{stored}");
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 0);
}

#[test]
fn a_changed_line_without_an_id_of_its_own_is_kept_as_another_entry() {
    let place = Place::new();
    let lines = codex(20);
    let file = place.write("s.jsonl", jsonl(&lines));
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 20);
    let mut changed = lines.clone();
    changed[10] = json!({"timestamp": "2026-01-02T03:04:59.000Z", "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": "changed"}});
    let file = place.write("s.jsonl", jsonl(&changed));
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 1);
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 0);
}

#[test]
fn damaged_lines_are_skipped_and_named() {
    let place = Place::new();
    let good = jsonl(&claude_code(2));
    let cut = good.trim_end().strip_suffix('}').unwrap().to_owned();
    let cases: [(Vec<u8>, &str, u64); 4] = [
        (cut.into_bytes(), "line 4 ends in the middle", 3),
        ([good.as_bytes(), b"\0\0\0\n"].concat(), "line 5 has a NUL byte", 4),
        ([good.as_bytes(), b"\n\xFF\n"].concat(), "line 6 must be a JSON object", 4),
        ([good.as_bytes(), b"nonsense\n"].concat(), "line 5 must be a JSON object", 4),
    ];
    for (at, (bytes, says, count)) in cases.into_iter().enumerate() {
        place.write("s.jsonl", bytes);
        let conversation = at.to_string();
        let named = ["--conversation", &conversation];
        let read = place.json(&[&AUTO[..], &named, &["s.jsonl"]].concat());
        assert_eq!(read["ingested"], count, "{read}");
        let warnings = read["warnings"].to_string();
        assert!(warnings.contains("damaged lines (1): ") && warnings.contains(says), "{warnings}");
    }
}

#[test]
fn lines_of_another_form_are_named_and_store_nothing() {
    let place = Place::new();
    let good = jsonl(&claude_code(2));
    let deep = format!(
        "{{\"type\":\"user\",\"uuid\":\"x\",\"message\":{{\"role\":\"user\",\
        \"content\":{}{}}}}}\n",
        "[".repeat(600),
        "]".repeat(600)
    );
    let cases: [(Vec<u8>, &str); 4] = [
        ([good.as_bytes(), deep.as_bytes()].concat(), "`s.jsonl` line 5: "),
        ([good.as_bytes(), jsonl(&codex(1)).as_bytes()].concat(), "line 5 looks like a Codex"),
        (
            [good.as_bytes(), b"{\"role\":\"user\",\"content\":\"a\"}\n"].concat(),
            "line 5 looks like",
        ),
        (b"{\"kind\":\"unheard\"}\n".to_vec(), "must have one of the formats Claude Code, Codex"),
    ];
    for (bytes, says) in cases {
        place.write("s.jsonl", bytes);
        let ran = place.run(&[&AUTO[..], &["s.jsonl"]].concat());
        ran.failed(2, "invalid-input", says);
    }
    place.run(&["conversations"]).ok();
    assert_eq!(place.json(&["conversations"])["conversations"], json!([]));
}

/// A rollout whose second turn was rolled back before the third.
fn rolled_back() -> Vec<Value> {
    let item = |second: u32, role: &str, text: &str| {
        json!({"timestamp": format!("2026-01-02T03:04:{second:02}.000Z"), "type": "response_item",
            "payload": {"type": "message", "role": role,
                "content": [{"type": "input_text", "text": text}]}})
    };
    vec![
        json!({"timestamp": "2026-01-02T03:04:00.000Z", "type": "session_meta",
            "payload": {"id": "s"}}),
        item(1, "user", "paint it red"),
        item(2, "assistant", "red"),
        item(3, "user", "paint it green"),
        item(4, "assistant", "green"),
        json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": "event_msg",
            "payload": {"type": "thread_rolled_back", "num_turns": 1}}),
        item(6, "user", "paint it blue"),
        item(7, "assistant", "blue"),
    ]
}

/// Texts of the assembled context.
fn context(place: &Place) -> Vec<String> {
    let context = place.json(&["assemble", "--budget", "4000", "--dialect", "openai-chat"]);
    let messages = context.get("messages").and_then(Value::as_array).unwrap().iter();
    let text = |message: &Value| message.get("content").and_then(Value::as_str).unwrap().to_owned();
    messages.map(text).collect()
}

#[test]
fn turns_that_were_rolled_back_are_stored_and_set_aside() {
    let place = Place::new();
    let lines = rolled_back();
    let file = place.write("s.jsonl", jsonl(&lines));
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 6);
    let live = ["paint it red", "red", "paint it blue", "blue"];
    assert_eq!(context(&place), live);
    let found = place.json(&["grep", "green"]);
    assert_eq!(found["matches"][0]["withdrawn"], "set-aside", "{found}");
    let digest = place.digest();
    let again = place.json(&[&AUTO[..], &[&file]].concat());
    assert_eq!((&again["ingested"], &again["skipped"]), (&json!(0), &json!(6)));
    assert_eq!(place.digest(), digest, "a second ingest changes nothing");
    assert_eq!(place.json(&["check"])["ok"], true);
    // While the file grows, the turns are live until they are rolled back.
    let place = Place::new();
    let file = place.write("s.jsonl", jsonl(&lines[..5]));
    let mut tail = Tail::of(&place, &file);
    assert_eq!(tail.ingested(), 4);
    append(&file, &jsonl(&lines[5..]));
    assert_eq!(tail.ingested(), 2);
    drop(tail);
    assert_eq!(context(&place), live);
}

#[test]
fn abandoned_branches_are_stored_where_they_left_the_conversation() {
    let place = Place::new();
    let mut lines = claude_code(3);
    for (turn, text) in ["first try", "second try"].iter().enumerate() {
        let edited = json!({"type": "user", "uuid": format!("e{turn}"), "parentUuid": "a0",
            "sessionId": "s", "message": {"role": "user", "content": text}});
        lines.insert(2, edited);
    }
    let file = place.write("s.jsonl", jsonl(&lines));
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 8);
    assert_eq!(context(&place).len(), 6);
    let found = place.json(&["grep", "try"]);
    assert_eq!(found["total"], 2);
    assert_eq!(place.json(&["check"])["ok"], true);
    let digest = place.digest();
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 0);
    assert_eq!(place.digest(), digest);
    // A message of another caller keeps branches from being set aside.
    let other = place.write("o.jsonl", "{\"role\":\"user\",\"content\":\"from elsewhere\"}\n");
    place.json(&["ingest", "--append-mode", "new", &other]);
    lines.insert(
        4,
        json!({"type": "user", "uuid": "e9", "parentUuid": "a0", "sessionId": "s",
        "message": {"role": "user", "content": "third try"}}),
    );
    let file = place.write("s.jsonl", jsonl(&lines));
    let report = place.json(&[&AUTO[..], &[&file]].concat());
    assert_eq!(report["ingested"], 0, "{report}");
    assert!(report["warnings"].to_string().contains("another caller"), "{report}");
}

#[test]
fn a_folder_gives_one_conversation_for_each_session() {
    let place = Place::new();
    let project = place.folder.join("projects/-w");
    fs::create_dir_all(&project).unwrap();
    let write = |name: &str, text: &str| fs::write(project.join(name), text).unwrap();
    let mut lines = claude_code(2);
    lines[0]["cwd"] = json!("/w");
    let name = "f0000000-0000-4000-8000-000000000001";
    write(&format!("{name}.jsonl"), &jsonl(&lines));
    write("rollout.jsonl", &jsonl(&rolled_back()));
    let export = json!([
        {"uuid": "chat-1", "chat_messages": [{"uuid": "m1", "sender": "human", "text": "one"}]},
        {"uuid": "chat-2", "chat_messages": [{"uuid": "m2", "sender": "human", "text": "two"}]}]);
    write("conversations.json", &export.to_string());
    write("settings.json", "{\"theme\": \"dark\"}");
    write("notes.txt", "no session");
    let folder = [&AUTO[..], &["projects"]].concat();
    let dry = place.json(&[&folder[..], &["--dry-run"]].concat());
    let named = |report: &Value| -> Vec<String> {
        let rows = report["conversations"].as_array().unwrap().iter();
        rows.map(|row| format!("{} {}", row["conversation"], row["messages"])).collect()
    };
    let of_claude = format!("\"{name}\" 4");
    let expected =
        ["\"chat-1\" 1", "\"chat-2\" 1", of_claude.as_str(), "\"s\" 6"].map(str::to_owned);
    assert_eq!(named(&dry), expected, "{dry}");
    assert!(!place.folder.join("default.lcm.db").exists(), "a dry run stores nothing");
    let report = place.json(&folder);
    assert_eq!((named(&report), &report["ingested"]), (expected.to_vec(), &json!(12)));
    assert_eq!(report["conversations"][2]["family"], "/w");
    let family = report["conversations"][3]["family"].as_str().unwrap();
    assert!(family.starts_with('/') && family.ends_with("projects/-w"), "{family}");
    assert_eq!(report["not_read"].as_array().unwrap().len(), 1, "{report}");
    let again = place.json(&folder);
    assert_eq!((&again["ingested"], &again["skipped"]), (&json!(0), &json!(12)));
    let later = place.json(&[&folder[..], &["--since", "2999-01-01"]].concat());
    assert_eq!((&later["older_files"], &later["conversations"]), (&json!(4), &json!([])));
    let ran = place.run(&[&folder[..], &["--since", "soon"]].concat());
    ran.failed(2, "invalid-input", "`--since` must be a date");
    place.run(&["ingest", "projects"]).failed(2, "invalid-input", "`--dialect auto`");
    fs::create_dir_all(place.folder.join("empty")).unwrap();
    let ran = place.run(&[&AUTO[..], &["empty"]].concat());
    ran.failed(2, "invalid-input", "must have session files");
}

#[test]
fn sessions_in_files_of_one_name_are_conversations_of_their_own() {
    let place = Place::new();
    let said = |report: &Value, key: &str| -> Vec<String> {
        let rows = report["conversations"].as_array().unwrap().iter();
        rows.map(|row| row[key].to_string()).collect()
    };
    for run in 1..=3 {
        let folder = place.folder.join(format!("runs/{run}"));
        fs::create_dir_all(&folder).unwrap();
        let line = json!({"type": "user", "uuid": format!("u{run}"), "sessionId": format!("s{run}"),
            "cwd": format!("/w{run}"), "message": {"role": "user", "content": format!("run {run}")}});
        fs::write(folder.join("output.jsonl"), format!("{line}\n")).unwrap();
        let message = json!({"messages": [{"role": "user", "content": format!("chat {run}")}]});
        fs::write(folder.join("chat.json"), message.to_string()).unwrap();
    }
    let folder = [&AUTO[..], &["runs"]].concat();
    let report = place.json(&folder);
    let expected = ["runs/1/chat", "s1", "runs/2/chat", "s2", "runs/3/chat", "s3"];
    assert_eq!(said(&report, "conversation"), expected.map(|name| format!("\"{name}\"")));
    assert_eq!(said(&report, "ingested"), ["1"; 6], "{report}");
    // One conversation is refused, and the others are stored.
    let line = json!({"type": "user", "uuid": "u4", "sessionId": "s4", "cwd": "/w4",
        "message": {"role": "user", "content": "run 4"}});
    fs::create_dir_all(place.folder.join("runs/4")).unwrap();
    fs::write(place.folder.join("runs/4/output.jsonl"), format!("{line}\n")).unwrap();
    place.json(&["ingest", "--dialect", "auto", "--family", "/w1", "runs/4/output.jsonl"]);
    place.json(&[
        "--conversation",
        "s4",
        "ingest",
        "--dialect",
        "auto",
        "--family",
        "/other",
        "runs/4/output.jsonl",
    ]);
    fs::create_dir_all(place.folder.join("runs/5")).unwrap();
    let line = line.to_string().replace("u4", "u5").replace("s4", "s5");
    fs::write(place.folder.join("runs/5/output.jsonl"), format!("{line}\n")).unwrap();
    let ran = place.run(&folder);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("not stored: `runs/4/output.jsonl` conversation `s4`"), "{}", ran.out);
    assert!(ran.out.contains("s5: 1 message, 1 stored"), "{}", ran.out);
}

#[test]
fn the_storage_of_opencode_is_a_session() {
    let place = Place::new();
    let storage = place.folder.join("storage");
    for folder in ["message/ses_1", "part/msg_1", "part/msg_2"] {
        fs::create_dir_all(storage.join(folder)).unwrap();
    }
    let write = |name: &str, value: Value| {
        fs::write(storage.join(name), value.to_string()).unwrap();
    };
    for (id, role) in [("msg_1", "user"), ("msg_2", "assistant")] {
        write(
            &format!("message/ses_1/{id}.json"),
            json!({"id": id, "role": role, "sessionID": "ses_1", "time": {"created": 1}}),
        );
        write(&format!("part/{id}/prt_1.json"), json!({"type": "text", "text": "word"}));
    }
    let report = place.json(&[&AUTO[..], &["storage"]].concat());
    let row = &report["conversations"][0];
    assert_eq!((&row["conversation"], &row["ingested"]), (&json!("ses_1"), &json!(2)), "{report}");
}

#[test]
fn a_search_of_one_project_has_no_words_of_another() {
    let place = Place::new();
    let write = |name: &str, value: Value| {
        let path = place.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    };
    for project in ["aaaa", "bbbb"] {
        let text = format!("the secret of {project} is zanzibar");
        let said = json!({"id": format!("u-{project}"), "type": "user", "content": text});
        write(
            &format!("tmp/{project}/chats/session.json"),
            json!({"sessionId": format!("gemini-{project}"), "projectHash": project,
                "messages": [said]}),
        );
        let (session, message) = (format!("ses_{project}"), format!("msg_{project}"));
        write(
            &format!("storage/message/{session}/{message}.json"),
            json!({"id": message, "role": "user", "sessionID": session}),
        );
        write(&format!("storage/part/{message}/p.json"), json!({"type": "text", "text": text}));
        write(
            &format!("storage/session/{project}/{session}.json"),
            json!({"id": session, "directory": format!("/w/{project}")}),
        );
    }
    for folder in ["tmp", "storage"] {
        assert_eq!(place.json(&[&AUTO[..], &[folder]].concat())["ingested"], 2);
    }
    for (project, other) in [("aaaa", "bbbb"), ("bbbb", "aaaa")] {
        for session in ["gemini-", "ses_"] {
            let id = format!("{session}{project}");
            let found = place.json(&["grep", "zanzibar", "--conversation", &id]).to_string();
            assert!(found.contains(project) && !found.contains(other), "{id}: {found}");
        }
    }
}

#[test]
fn documents_and_notes_are_read() {
    let place = Place::new();
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "which port"}]});
    let pretty = serde_json::to_string_pretty(&request).unwrap();
    let file = place.write("request.json", pretty);
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 1);
    let file = place.write("notes.md", "the first thought\n\nthe second\nthought\n");
    let notes = ["ingest", "--conversation", "notes", "--as", "user", &file];
    let read = place.json(&notes);
    assert_eq!((&read["ingested"], &read["format"]), (&json!(2), &json!("notes")));
    assert_eq!(place.json(&notes)["ingested"], 0);
}

/// Forms whose files grow line by line, each with its first lines and the rest.
#[test]
fn tail_follows_every_growing_form() {
    let said = |id: u32, text: &str| json!({"id": id.to_string(), "type": "user", "content": text});
    let copilot = |id: u32, text: &str| {
        let data = json!({"content": text});
        json!({"type": "user.message", "id": id.to_string(), "data": data})
    };
    let step = |step: u32, text: &str| {
        json!({"step_index": step, "source": "USER_EXPLICIT", "type": "USER_INPUT",
            "content": text})
    };
    let answer = |id: u32, text: &str| {
        json!({"type": "item.completed", "item": {"id": format!("item_{id}"),
            "type": "agent_message", "text": text}})
    };
    let forms: [Vec<Value>; 6] = [
        vec![json!({"sessionId": "g", "projectHash": "h"}), said(1, "one"), said(2, "two")],
        vec![copilot(1, "one"), copilot(2, "two"), copilot(3, "three")],
        vec![step(0, "one"), step(1, "two"), step(2, "three")],
        vec![json!({"type": "thread.started", "thread_id": "t"}), answer(0, "a"), answer(1, "b")],
        vec![
            json!({"role": "_checkpoint", "id": 0}),
            json!({"role": "user", "content": "one"}),
            json!({"role": "user", "content": "two"}),
        ],
        open_claw(3),
    ];
    for lines in forms {
        let place = Place::new();
        let file = place.write("s.jsonl", jsonl(&lines[..2]));
        let mut tail = Tail::of(&place, &file);
        let first = tail.ingested();
        assert!(first >= 1, "{lines:?}");
        append(&file, "{\"torn\": \n");
        append(&file, &jsonl(&lines[2..]));
        let mut stored = tail.ingested();
        if stored == 0 {
            stored = tail.ingested();
        }
        assert!(stored >= 1, "{lines:?}");
        drop(tail);
        assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 0);
    }
}

#[test]
fn files_of_two_dialects_are_no_transcript() {
    let place = Place::new();
    let one = place.write("one.jsonl", jsonl(&claude_code(1)));
    let two = place.write("two.jsonl", jsonl(&codex(1)));
    let ran = place.run(&[&AUTO[..], &[&one, &two]].concat());
    ran.failed(2, "invalid-input", "each format on its own");
}

#[test]
fn tail_needs_one_file_and_no_other_mode() {
    let place = Place::new();
    place.run(&["ingest", "--tail"]).failed(2, "invalid-input", "one file");
    place.run(&["ingest", "--tail", DEMO, DEMO]).failed(2, "invalid-input", "one file");
    place.run(&["ingest", "--tail", "--append-mode", "new", DEMO]).failed(
        2,
        "invalid-input",
        "--append-mode",
    );
    place.run(&["ingest", "--tail", "none.jsonl"]).failed(3, "not-found", "none.jsonl");
}

/// A running `lcm ingest --tail`, ended with the test.
struct Tail {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Tail {
    fn of(place: &Place, file: &str) -> Self {
        let mut command = place.command(&["ingest", "--dialect", "auto", "--tail", "--json", file]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// The next result; waits for it.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ingested(&mut self) -> u64 {
        self.next().get("ingested").and_then(Value::as_u64).unwrap()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn append(file: &str, bytes: &str) {
    let mut opened = fs::OpenOptions::new().append(true).open(file).unwrap();
    opened.write_all(bytes.as_bytes()).unwrap();
}

#[test]
fn tail_follows_growth_and_waits_for_whole_lines() {
    let place = Place::new();
    let lines = claude_code(3);
    let file = place.write("s.jsonl", jsonl(&lines[..2]));
    let mut tail = Tail::of(&place, &file);
    assert_eq!(tail.ingested(), 2);
    let third = lines[2].to_string();
    let (begin, end) = third.split_at(third.len() / 2);
    append(&file, begin);
    // Two polls: half a line is nothing.
    std::thread::sleep(std::time::Duration::from_millis(700));
    append(&file, &format!("{end}\n{}", jsonl(&lines[3..4])));
    assert_eq!(tail.ingested(), 2);
    append(&file, &jsonl(&lines[4..]));
    assert_eq!(tail.ingested(), 2);
    drop(tail);
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 0);
    assert_eq!(place.json(&["check"])["ok"], true);
}

#[test]
fn tail_finds_what_is_new_after_a_rotation_or_a_cut() {
    let place = Place::new();
    let lines = codex(6);
    let file = place.write("s.jsonl", jsonl(&lines));
    let mut tail = Tail::of(&place, &file);
    assert_eq!(tail.ingested(), 6);
    // Cut, and then as it was with one more.
    place.write("s.jsonl", jsonl(&lines[..4]));
    let cut = tail.next();
    assert_eq!((&cut["ingested"], &cut["skipped"]), (&json!(0), &json!(3)));
    place.write("s.jsonl", jsonl(&codex(7)));
    assert_eq!(tail.ingested(), 1);
    // Replaced by the file of another session.
    let other = claude_code(2);
    fs::rename(&file, place.folder.join("old.jsonl")).unwrap();
    place.write("new.jsonl", jsonl(&other));
    fs::rename(place.folder.join("new.jsonl"), &file).unwrap();
    assert_eq!(tail.ingested(), 4);
    // Somebody else writes in between: the revision of the checkpoint is gone.
    let more = place.write("more.jsonl", "{\"role\":\"user\",\"content\":\"from elsewhere\"}\n");
    place.json(&["ingest", "--append-mode", "new", &more]);
    append(&file, &jsonl(&claude_code(3)[4..]));
    assert_eq!(tail.ingested(), 2);
    drop(tail);
    assert_eq!(place.run(&["messages", "--raw"]).ok().out.lines().count(), 14);
}

/// A message a line, without ids.
fn plain(texts: &[&str]) -> String {
    let line = |text: &&str| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
    texts.iter().map(line).collect()
}

fn contents(place: &Place) -> Vec<String> {
    let lines = place.run(&["messages", "--raw"]).ok().out;
    let text = |line: &str| {
        let message: Value = serde_json::from_str(line).unwrap();
        message.get("content").and_then(Value::as_str).unwrap().to_owned()
    };
    lines.lines().map(text).collect()
}

#[test]
fn tail_reads_a_rotated_file_to_its_end_and_then_the_new_one() {
    let place = Place::new();
    let file = place.write("log", plain(&["one"]));
    let mut tail = Tail::of(&place, &file);
    assert_eq!(tail.ingested(), 1);
    // Written, renamed and made anew between two looks; the last line has no end.
    append(&file, plain(&["two", "three"]).trim_end());
    let old = place.folder.join("log.1");
    fs::rename(&file, &old).unwrap();
    place.write("log", plain(&["four"]));
    assert_eq!(tail.ingested(), 2);
    // Its writer goes on for a moment.
    append(old.to_str().unwrap(), &format!("\n{}", plain(&["three and a half"])));
    assert_eq!(tail.ingested(), 1);
    assert_eq!(tail.ingested(), 1);
    // Renamed alone, it is followed on; then there is another.
    let old = place.folder.join("log.2");
    fs::rename(&file, &old).unwrap();
    append(old.to_str().unwrap(), &plain(&["five"]));
    assert_eq!(tail.ingested(), 1);
    append(old.to_str().unwrap(), &plain(&["six"]));
    place.write("log", plain(&["seven"]));
    assert_eq!(tail.ingested(), 1);
    assert_eq!(tail.ingested(), 1);
    // Copied and cut in place.
    fs::copy(&file, place.folder.join("log.3")).unwrap();
    place.write("log", "");
    append(&file, &plain(&["eight", "nine"]));
    assert_eq!(tail.ingested(), 2);
    drop(tail);
    let expected = [
        "one",
        "two",
        "three",
        "three and a half",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
    ];
    assert_eq!(contents(&place), expected);
    assert_eq!(place.json(&["check"])["ok"], true);
}

#[test]
fn half_a_line_at_the_end_of_a_replaced_file_is_skipped() {
    let place = Place::new();
    let file = place.write("log", plain(&["one"]));
    let mut tail = Tail::of(&place, &file);
    assert_eq!(tail.ingested(), 1);
    append(&file, &format!("{}{{\"role\":", plain(&["two"])));
    fs::rename(&file, place.folder.join("log.1")).unwrap();
    place.write("log", plain(&["three"]));
    let mut count = tail.ingested();
    while count < 2 {
        count += tail.ingested();
    }
    drop(tail);
    assert_eq!(contents(&place), ["one", "two", "three"]);
}

#[test]
fn tail_says_the_same_again_without_losing_it() {
    // No ids, no times: only the checkpoint and the running hash tell these apart.
    let place = Place::new();
    let ok = "{\"role\":\"user\",\"content\":\"ok\"}\n";
    let file = place.write("s.jsonl", ok);
    let mut tail = Tail::of(&place, &file);
    assert_eq!(tail.ingested(), 1);
    for _ in 0..3 {
        append(&file, ok);
        assert_eq!(tail.ingested(), 1);
    }
    drop(tail);
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_tail_with_a_sound_store() {
    let place = Place::new();
    let file = place.write("s.jsonl", jsonl(&claude_code(2)));
    let mut tail = Tail::of(&place, &file);
    assert_eq!(tail.ingested(), 4);
    let id = tail.child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(sent.success());
    assert_eq!(tail.child.wait().unwrap().code(), Some(130));
    assert_eq!(place.json(&["check"])["ok"], true);
    assert_eq!(place.json(&[&AUTO[..], &[&file]].concat())["ingested"], 0);
}

#[test]
fn a_bad_line_does_not_end_a_tail() {
    let place = Place::new();
    let file = place.write("s.jsonl", jsonl(&claude_code(1)));
    let mut tail = Tail::of(&place, &file);
    assert_eq!(tail.ingested(), 2);
    append(&file, &format!("{}nonsense\n", jsonl(&claude_code(2)[2..])));
    let next = tail.next();
    assert_eq!(next["ingested"], 2);
    append(&file, &jsonl(&claude_code(3)[4..]));
    let next = tail.next();
    assert_eq!(next["ingested"], 2);
    assert!(next["warnings"].to_string().contains("line 5 "), "{next}");
}
