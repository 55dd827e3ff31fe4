//! Writers of events as items of `openai-responses` and contents of `gemini`.

use lcm_testing::simulation::random::Random;

use crate::generate::{ADDRESSES, Event, Outcome, optional, string};

const PDF: &str =
    r#"{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}"#;

/// Members of a function call; an SDK writes those of the second kind, too.
const CALL_MEMBERS: [&str; 2] =
    [",\"status\":\"completed\"", ",\"status\":null,\"namespace\":null,\"parsed_arguments\":{}"];

/// Returns whether the calls with an id are calls of a custom tool. Call and result share nothing
/// but the id.
fn is_custom(id: Option<&String>) -> bool {
    id.is_some_and(|id| id.len().is_multiple_of(5))
}

fn name(prefix: &str, random: &mut Random) -> String {
    format!("{prefix}_{:016x}", random.between(0, u64::MAX - 1))
}

pub(crate) fn write_responses(event: &Event, random: &mut Random) -> Vec<String> {
    let said =
        |role: &str, text: &str| format!("{{\"role\":\"{role}\",\"content\":{}}}", string(text));
    let listed = |content: String| {
        format!("{{\"type\":\"message\",\"role\":\"user\",\"content\":[{content}]}}")
    };
    let text = |text: &str| format!("{{\"type\":\"input_text\",\"text\":{}}}", string(text));
    match event {
        Event::User(word) if random.chance(500) => vec![said("user", word)],
        Event::User(word) => vec![listed(text(word))],
        Event::System(word) => {
            let role = if random.chance(500) { "system" } else { "developer" };
            vec![said(role, word)]
        }
        Event::UserOfNothing => vec![listed(String::new())],
        Event::Assistant { thought, text, calls } => {
            let mut out: Vec<String> =
                thought.iter().map(|word| write_reasoning(word, random)).collect();
            out.extend(text.iter().map(|word| output_message(word, random)));
            for call in calls {
                let arguments = string(&format!("{{\"a\": {}}}", string(&call.word)));
                let (kind, key, status) = match is_custom(call.id.as_ref()) {
                    true => ("custom_tool_call", "input", ""),
                    false => ("function_call", "arguments", *random.pick(&CALL_MEMBERS)),
                };
                out.push(format!(
                    "{{\"type\":\"{kind}\",\"id\":\"{}\"{},\"name\":\"read\",\"{key}\":{arguments}\
                     {status}}}",
                    name("fc", random),
                    optional("call_id", call.id.as_ref()),
                ));
            }
            if out.is_empty() {
                out.push(r#"{"type":"message","role":"assistant","content":[]}"#.into());
            }
            out
        }
        Event::Results { list, text } => {
            let mut out: Vec<String> = list.iter().map(|one| output(one, random)).collect();
            out.extend(text.iter().map(|word| said("user", word)));
            out
        }
        Event::Served { id, word, is_answered } if random.chance(300) => {
            write_program(id, word, *is_answered)
        }
        Event::Served { word, is_answered, .. } => write_search(word, *is_answered, random),
        Event::Media(word) => vec![listed(
            [
                text(word),
                "{\"type\":\"input_image\",\"detail\":\"auto\",\
                 \"image_url\":\"data:image/png;base64,iVBORw0K\"}"
                    .into(),
                r#"{"type":"input_image","file_id":"file-1","detail":"low"}"#.into(),
                PDF.into(),
            ]
            .join(","),
        )],
        Event::Unknown(word) => {
            vec![r#"{"type":"of_tomorrow","x":"\ud800"}"#.into(), said("user", word)]
        }
    }
}

/// Returns a web search with its reasoning, and a text if it is answered.
fn write_search(word: &str, is_answered: bool, random: &mut Random) -> Vec<String> {
    let mut out = vec![
        write_reasoning("look it up", random),
        format!(
            "{{\"type\":\"web_search_call\",\"id\":\"{}\",\"status\":\"completed\",\
             \"action\":{{\"type\":\"search\",\"query\":\"q\",\"sources\":null}}}}",
            name("ws", random)
        ),
    ];
    out.extend(is_answered.then(|| output_message(word, random)));
    out
}

/// Returns a program of the provider, a function call that it made, the result of the call, and the
/// output of the program if it is answered.
fn write_program(id: &str, word: &str, is_answered: bool) -> Vec<String> {
    let mut out = vec![
        format!(
            "{{\"type\":\"program\",\"id\":\"pr_{id}\",\"call_id\":\"{id}\",\"code\":\"rows()\",\
             \"fingerprint\":\"f\"}}"
        ),
        format!(
            "{{\"type\":\"function_call\",\"call_id\":\"in_{id}\",\"name\":\"rows\",\
             \"arguments\":\"{{}}\",\"caller\":{{\"type\":\"program\",\"caller_id\":\"{id}\"}}}}"
        ),
        format!("{{\"type\":\"function_call_output\",\"call_id\":\"in_{id}\",\"output\":\"3\"}}"),
    ];
    out.extend(is_answered.then(|| {
        format!(
            "{{\"type\":\"program_output\",\"id\":\"out_{id}\",\"call_id\":\"{id}\",\
             \"result\":{},\"status\":\"completed\"}}",
            string(word)
        )
    }));
    out
}

fn write_reasoning(word: &str, random: &mut Random) -> String {
    let encrypted = if random.chance(500) { ",\"encrypted_content\":\"ZW5j\"" } else { "" };
    format!(
        "{{\"type\":\"reasoning\",\"id\":\"{}\",\"summary\":[{{\"type\":\"summary_text\",\
         \"text\":{}}}]{encrypted}}}",
        name("rs", random),
        string(word)
    )
}

fn output_message(word: &str, random: &mut Random) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"{}\",\"role\":\"assistant\",\"status\":\"completed\",\
         \"content\":[{{\"type\":\"output_text\",\"text\":{},\"annotations\":[]}}]}}",
        name("msg", random),
        string(word)
    )
}

fn output(one: &Outcome, random: &mut Random) -> String {
    let kind = if is_custom(one.id.as_ref()) { "custom_tool_call" } else { "function_call" };
    let text = format!("{{\"type\":\"input_text\",\"text\":{}}}", string(&one.word));
    let output = match random.between(0, 3) {
        0 => format!("[{text}]"),
        1 => format!(
            "[{text},{{\"type\":\"input_image\",\"detail\":\"auto\",\
             \"image_url\":\"{}\"}}]",
            random.pick(&ADDRESSES)
        ),
        2 => format!("{{\"says\":{}}}", string(&one.word)),
        _ => string(&one.word),
    };
    let id = optional("call_id", one.id.as_ref());
    format!("{{\"type\":\"{kind}_output\"{id},\"output\":{output}}}")
}

pub(crate) fn write_gemini(event: &Event, random: &mut Random) -> Vec<String> {
    let content = |role: &str, parts: Vec<String>| {
        format!("{{\"role\":\"{role}\",\"parts\":[{}]}}", parts.join(","))
    };
    let more = *random.pick(&["", "", ",\"thought\":null,\"index\":0"]);
    let text = |text: &str| format!("{{\"text\":{}{more}}}", string(text));
    vec![match event {
        Event::User(word) if random.chance(100) => format!("{{\"parts\":[{}]}}", text(word)),
        Event::User(word) => content("user", vec![text(word)]),
        Event::System(word) => content("system", vec![text(word)]),
        Event::UserOfNothing => content("user", Vec::new()),
        Event::Assistant { thought, text: said, calls } => {
            let mut parts = Vec::new();
            parts.extend(
                thought
                    .iter()
                    .map(|word| format!("{{\"thought\":true,\"text\":{}}}", string(word))),
            );
            parts.extend(said.iter().map(|word| text(word)));
            if random.chance(200) {
                parts.push(r#"{"text":"","thoughtSignature":"c2ln"}"#.into());
            }
            parts.extend(calls.iter().map(|call| {
                format!(
                    "{{\"functionCall\":{{\"name\":\"read\",\"args\":{{\"a\": {}}}{}}},\
                     \"thoughtSignature\":\"c2ln\"}}",
                    string(&call.word),
                    optional("id", call.id.as_ref()),
                )
            }));
            if random.chance(150) {
                // A content for each part, as hosts write streamed chunks.
                return parts.into_iter().map(|part| content("model", vec![part])).collect();
            }
            content("model", parts)
        }
        Event::Results { list, text: said } => {
            let mut parts: Vec<String> = list.iter().map(|one| response(one, random)).collect();
            parts.extend(said.iter().map(|word| text(word)));
            let role = random.pick(&["user", "user", "user", "function", "tool"]);
            content(role, parts)
        }
        Event::Served { word, is_answered, .. } => {
            let mut parts = vec![
                r#"{"executableCode":{"language":"PYTHON","code":"print(1)"}}"#.into(),
                r#"{"code_execution_result":{"outcome":"OUTCOME_OK","output":"1"}}"#.into(),
            ];
            parts.extend(is_answered.then(|| text(word)));
            content("model", parts)
        }
        Event::Media(word) => content(
            "user",
            vec![
                text(word),
                r#"{"inlineData":{"mimeType":"image/png","data":"iVBORw0K"}}"#.into(),
                format!(
                    "{{\"fileData\":{{\"mimeType\":\"image/png\",\"fileUri\":\"{}\"}}}}",
                    random.pick(&ADDRESSES)
                ),
                r#"{"text":"two","inlineData":{"mimeType":"image/png","data":"iVBORw0K"}}"#.into(),
            ],
        ),
        Event::Unknown(word) => content(
            "user",
            vec![r#"{"ofTomorrow":{"x":"\ud800"}}"#.into(), "{}".into(), text(word)],
        ),
    }]
}

fn response(one: &Outcome, random: &mut Random) -> String {
    let word = string(&one.word);
    let (response, parts) = match random.between(0, 4) {
        0 => (format!("{{\"result\":{word}}}"), ""),
        1 => (format!("{{\"says\":{word},\"more\":1}}"), ""),
        2 => (
            format!("{{\"output\":{word}}}"),
            ",\"parts\":[{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"iVBO\"}}]",
        ),
        _ => (format!("{{\"{}\":{word}}}", if one.is_error { "error" } else { "output" }), ""),
    };
    let id = optional("id", one.id.as_ref());
    format!("{{\"functionResponse\":{{\"name\":\"read\"{id},\"response\":{response}{parts}}}}}")
}
