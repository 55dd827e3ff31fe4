//! Generator of agent histories, with the faults that occur in practice.

use lcm_testing::simulation::random::Random;
use lcm_text::types::api::Dialect;

use crate::{frameworks, write};

/// Addresses of files. Only Gemini takes the last one.
pub(crate) const ADDRESSES: [&str; 3] =
    ["https://a.example/b", "http://a.example/b.png", "gs://a-bucket/b"];

/// An event of a conversation, independent of a dialect.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    User(String),
    UserOfNothing,
    System(String),
    Assistant {
        thought: Option<String>,
        text: Option<String>,
        calls: Vec<Call>,
    },
    Results {
        list: Vec<Outcome>,
        text: Option<String>,
    },
    /// A server tool call, which the provider answers.
    Served {
        id: String,
        word: String,
        is_answered: bool,
    },
    Media(String),
    Unknown(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) word: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) id: Option<String>,
    pub(crate) word: String,
    pub(crate) is_error: bool,
}

/// A generator of events; every text has a unique word.
pub(crate) struct Generator {
    pub(crate) random: Random,
    words: u64,
    ids: u64,
    /// Results that are delayed.
    late: Vec<Outcome>,
    /// Used ids.
    known: Vec<String>,
    /// Whether the history has no faults.
    pub(crate) is_clean: bool,
    /// Whether blocks of unknown types occur.
    pub(crate) has_unknown: bool,
}

impl Generator {
    pub(crate) fn new(seed: u64, is_clean: bool) -> Self {
        let (late, known) = (Vec::new(), Vec::new());
        Self {
            random: Random::new(seed),
            words: 0,
            ids: 0,
            late,
            known,
            is_clean,
            has_unknown: true,
        }
    }

    fn word(&mut self) -> String {
        self.words += 1;
        let filler = "lorem ipsum ".repeat(self.random.between(0, 12) as usize);
        format!("w{}x {filler}", self.words)
    }

    fn odd(&mut self, permille: u64) -> bool {
        !self.is_clean && self.random.chance(permille)
    }

    fn id(&mut self) -> Option<String> {
        if self.odd(60) {
            return None;
        }
        if self.odd(120) && !self.known.is_empty() {
            return Some(self.random.pick(&self.known).clone());
        }
        self.ids += 1;
        let number = self.ids;
        let id = match self.random.between(0, if self.is_clean { 2 } else { 4 }) {
            0 => format!("toolu_{number:014}"),
            1 => format!("call_{number:024}"),
            2 => format!("c{number}"),
            3 => format!("functions.exec:{}", number % 3),
            _ => format!("call-{number}-{}", "y".repeat(50)),
        };
        self.known.push(id.clone());
        Some(id)
    }

    /// Returns the next events: one event, or a turn of calls with its results.
    pub(crate) fn next(&mut self) -> Vec<Event> {
        let mut out = Vec::new();
        match self.random.between(0, 19) {
            0..=4 => out.push(Event::User(self.word())),
            5..=8 => {
                let text = Some(self.word());
                let thought = self.random.chance(300).then(|| self.word());
                out.push(Event::Assistant { thought, text, calls: Vec::new() });
            }
            9 if !self.is_clean => self.interleaved(&mut out),
            9..=15 => self.calls(&mut out),
            16 if !self.is_clean => {
                let thought = Some(self.word());
                out.push(Event::Assistant { thought, text: None, calls: Vec::new() });
            }
            17 if !self.is_clean => out.push(match self.random.between(0, 3) {
                0 => Event::UserOfNothing,
                1 => Event::User("  ".into()),
                2 => Event::Assistant { thought: None, text: None, calls: Vec::new() },
                _ if self.has_unknown => Event::Unknown(self.word()),
                _ => Event::User(self.word()),
            }),
            18 if !self.is_clean => {
                self.ids += 1;
                // A gateway may have ids of its own, which the provider refuses.
                let prefix = if self.random.chance(900) { "srvtoolu" } else { "search" };
                let id = format!("{prefix}_{}", self.ids);
                let is_answered = self.random.chance(700);
                out.push(Event::Served { id, word: self.word(), is_answered });
            }
            19 if self.random.chance(300) => out.push(Event::System(self.word())),
            _ => out.push(Event::Media(self.word())),
        }
        if self.odd(150) && !self.late.is_empty() {
            let list = std::mem::take(&mut self.late);
            out.push(Event::Results { list, text: None });
        }
        out
    }

    /// Appends two messages with calls, then the results of both in alternation.
    fn interleaved(&mut self, out: &mut Vec<Event>) {
        let mut results = Vec::new();
        for _ in 0..2 {
            let calls: Vec<Call> = (0..self.random.between(1, 2))
                .map(|_| Call { id: self.id(), word: self.word() })
                .collect();
            results.extend(calls.iter().map(|call| call.id.clone()));
            let text = self.random.chance(500).then(|| self.word());
            out.push(Event::Assistant { thought: None, text, calls });
        }
        let (even, odd): (Vec<_>, Vec<_>) =
            results.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
        for (_, id) in even.into_iter().chain(odd) {
            let outcome = Outcome { id, word: self.word(), is_error: false };
            out.push(Event::Results { list: vec![outcome], text: None });
        }
    }

    fn calls(&mut self, out: &mut Vec<Event>) {
        let mut list = Vec::new();
        let calls: Vec<Call> = (0..self.random.between(1, 3))
            .map(|_| Call { id: self.id(), word: self.word() })
            .collect();
        for call in &calls {
            let (word, is_error) = (self.word(), self.random.chance(150));
            let outcome = Outcome { id: call.id.clone(), word, is_error };
            if self.odd(80) {
                // The result is missing.
            } else if self.odd(80) {
                self.late.push(outcome);
            } else if self.odd(60) {
                out.push(Event::Results { list: vec![outcome], text: None });
            } else {
                if self.odd(60) {
                    list.push(outcome.clone());
                }
                list.push(outcome);
            }
        }
        if self.odd(60) {
            list.push(Outcome { id: Some("unknown".into()), word: self.word(), is_error: false });
        }
        if self.odd(200) {
            list.reverse();
        }
        let thought = self.random.chance(300).then(|| self.word());
        let text = self.random.chance(500).then(|| self.word());
        out.push(Event::Assistant { thought, text, calls });
        if self.odd(80) {
            out.push(Event::User(self.word()));
        }
        if self.odd(50) {
            out.push(Event::System(self.word()));
        }
        let text = self.odd(100).then(|| self.word());
        if self.random.chance(500) || text.is_some() {
            out.push(Event::Results { list, text });
        } else {
            out.extend(list.into_iter().map(|one| Event::Results { list: vec![one], text: None }));
        }
    }
}

pub(crate) fn string(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

pub(crate) fn optional(key: &str, value: Option<&String>) -> String {
    value.map_or(String::new(), |value| format!(",\"{key}\":{}", string(value)))
}

/// Writes an event as messages of a dialect.
pub(crate) fn write(dialect: Dialect, event: &Event, random: &mut Random) -> Vec<String> {
    match dialect {
        Dialect::Lcm => vec![write_lcm(event)],
        Dialect::Anthropic => write_anthropic(event, random),
        Dialect::OpenaiChat => write_chat(event, random),
        Dialect::OpenaiResponses => write::write_responses(event, random),
        Dialect::Gemini => write::write_gemini(event, random),
        Dialect::AiSdk | Dialect::Openclaw | Dialect::Langchain | Dialect::OpenaiAgents => {
            frameworks::write(dialect, event, random)
        }
    }
}

fn write_lcm(event: &Event) -> String {
    let parts = |role: &str, parts: Vec<String>| {
        format!("{{\"role\":\"{role}\",\"parts\":[{}]}}", parts.join(","))
    };
    let text = |text: &String| format!("{{\"type\":\"text\",\"text\":{}}}", string(text));
    match event {
        Event::User(said) => format!("{{\"role\":\"user\",\"content\":{}}}", string(said)),
        Event::System(said) => format!("{{\"role\":\"system\",\"content\":{}}}", string(said)),
        Event::UserOfNothing => r#"{"role":"user","content":[]}"#.into(),
        Event::Assistant { thought, text: said, calls } => {
            let mut list = Vec::new();
            list.extend(
                thought
                    .iter()
                    .map(|said| format!("{{\"type\":\"reasoning\",\"text\":{}}}", string(said))),
            );
            list.extend(said.iter().map(text));
            list.extend(calls.iter().map(|call| {
                format!(
                    "{{\"type\":\"tool_call\"{},\"name\":\"read it\",\"input\":[{}]}}",
                    optional("id", call.id.as_ref()),
                    string(&call.word),
                )
            }));
            parts("assistant", list)
        }
        Event::Results { list, text: said } => {
            let mut all: Vec<String> = list
                .iter()
                .map(|one| {
                    format!(
                        "{{\"type\":\"tool_result\"{},\"output\":{{\"says\":{}}},\"is_error\":{}}}",
                        optional("call_id", one.id.as_ref()),
                        string(&one.word),
                        one.is_error,
                    )
                })
                .collect();
            all.extend(said.iter().map(text));
            parts("tool", all)
        }
        Event::Served { word, .. } => parts("assistant", vec![text(word)]),
        Event::Media(word) => parts(
            "user",
            vec![
                text(word),
                r#"{"type":"file","name":"a.png","mime":"image/png","data":"iVBORw0K"}"#.into(),
                r#"{"type":"file","name":"b.zip","mime":"application/zip","data":"UEsDBA"}"#.into(),
            ],
        ),
        Event::Unknown(word) => {
            parts("user", vec![format!("{{\"type\":\"odd\",\"x\":{}}}", string(word)), text(word)])
        }
    }
}

fn write_anthropic(event: &Event, random: &mut Random) -> Vec<String> {
    let message = |role: &str, blocks: Vec<String>| {
        let content = blocks.join(",");
        format!("{{\"role\":\"{role}\",\"content\":[{content}],\"id\":null,\"usage\":{{}}}}")
    };
    let more = match random.between(0, 99) {
        0..=5 => ",\"cache_control\":{\"type\":\"ephemeral\"}",
        // An SDK adds these members.
        6..=30 => ",\"index\":0,\"citations\":null",
        _ => "",
    };
    let text = |text: &String| format!("{{\"type\":\"text\",\"text\":{}{more}}}", string(text));
    vec![match event {
        Event::User(said) if random.chance(500) => {
            format!("{{\"role\":\"user\",\"content\":{}}}", string(said))
        }
        Event::User(said) => message("user", vec![text(said)]),
        Event::System(said) => format!("{{\"role\":\"system\",\"content\":{}}}", string(said)),
        Event::UserOfNothing => message("user", vec![]),
        Event::Assistant { thought, text: said, calls } => {
            let said = said.iter().map(text).collect();
            let blocks = assistant_blocks(thought.as_ref(), said, calls, random);
            if random.chance(150) {
                // A message for each block, as session files have them.
                return blocks.into_iter().map(|one| message("assistant", vec![one])).collect();
            }
            message("assistant", blocks)
        }
        Event::Results { list, text: said } => {
            let mut all: Vec<String> = list.iter().map(|one| result_block(one, random)).collect();
            all.extend(said.iter().map(text));
            message("user", all)
        }
        Event::Served { id, word, is_answered } => {
            return write_served(id, &text(word), *is_answered, random);
        }
        Event::Media(word) => message(
            "user",
            vec![
                text(word),
                format!(
                    "{{\"type\":\"image\",\"source\":{{\"type\":\"url\",\"url\":\"{}\"}}}}",
                    random.pick(&ADDRESSES)
                ),
                "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/bmp\",\
                 \"data\":\"Qk0A\"}}"
                    .into(),
                "{\"type\":\"document\",\"source\":{\"type\":\"base64\",\"media_type\":\
                 \"application/pdf\",\"data\":\"JVBE\"}}"
                    .into(),
            ],
        ),
        Event::Unknown(word) => {
            message("user", vec![r#"{"type":"novel","x":"\ud800"}"#.into(), text(word)])
        }
    }]
}

/// Returns a call that the provider answers, and its result with a text: in one message, on two
/// sides of what the user said, or around a tool of the host that the provider's code calls.
fn write_served(id: &str, text: &str, is_answered: bool, random: &mut Random) -> Vec<String> {
    let message =
        |role: &str, content: &str| format!("{{\"role\":\"{role}\",\"content\":[{content}]}}");
    let kind = random.between(0, 3);
    let name = if kind == 0 { "code_execution" } else { "web_search" };
    let call = format!(
        "{{\"type\":\"server_tool_use\",\"id\":\"{id}\",\"name\":\"{name}\",\"input\":{{}}}}"
    );
    let content = match kind {
        0 => {
            "{\"type\":\"code_execution_result\",\"stdout\":\"3\",\"stderr\":\"\",\
             \"return_code\":0,\"content\":[]}"
        }
        _ => "[]",
    };
    let result = format!(
        "{{\"type\":\"{name}_tool_result\",\"tool_use_id\":\"{id}\",\"content\":{content}}},{text}"
    );
    let mut out = match kind {
        0 => {
            let inner = format!(
                "{call},{{\"type\":\"tool_use\",\"id\":\"in_{id}\",\"name\":\"read\",\"input\":{{}},\
                 \"caller\":{{\"type\":\"code_execution_20250825\",\"tool_id\":\"{id}\"}}}}"
            );
            let answer = format!(
                "{{\"type\":\"tool_result\",\"tool_use_id\":\"in_{id}\",\"content\":\"rows\"}}"
            );
            vec![message("assistant", &inner), message("user", &answer)]
        }
        1 => {
            let hook = "{\"type\":\"text\",\"text\":\"a hook ran\"}";
            vec![message("assistant", &call), message("user", hook)]
        }
        _ if is_answered => return vec![message("assistant", &format!("{call},{result}"))],
        _ => vec![message("assistant", &call)],
    };
    out.extend(is_answered.then(|| message("assistant", &result)));
    out
}

/// Returns the thinking, texts and calls of an assistant; sometimes a text is last.
fn assistant_blocks(
    thought: Option<&String>,
    said: Vec<String>,
    calls: &[Call],
    random: &mut Random,
) -> Vec<String> {
    let mut list = Vec::new();
    list.extend(thought.iter().map(|said| {
        let signature = if random.chance(800) { "c2ln" } else { "" };
        format!(
            "{{\"type\":\"thinking\",\"thinking\":{},\"signature\":\"{signature}\"}}",
            string(said)
        )
    }));
    let mut call = |call: &Call| {
        format!(
            "{{\"type\":\"tool_use\"{},\"name\":\"read\",\"input\":{{\"a\": {}}}{}}}",
            optional("id", call.id.as_ref()),
            string(&call.word),
            random.pick(&["", "", ",\"index\":1,\"partial_json\":\"{}\""]),
        )
    };
    let called: Vec<String> = calls.iter().map(&mut call).collect();
    let (first, second) = if random.chance(100) { (called, said) } else { (said, called) };
    list.extend(first);
    list.extend(second);
    list
}

fn result_block(one: &Outcome, random: &mut Random) -> String {
    let text = |text: &str| format!("{{\"type\":\"text\",\"text\":{}}}", string(text));
    let image = "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\
        \"media_type\":\"image/png\",\"data\":\"iVBO\"}}";
    let content = match random.between(0, 2) {
        0 => string(&one.word),
        1 => format!("[{},{}]", text(&one.word), text("")),
        _ => format!("[{},{image}]", text(&one.word)),
    };
    format!(
        "{{\"type\":\"tool_result\"{},\"content\":{content},\"is_error\":{}}}",
        optional("tool_use_id", one.id.as_ref()),
        one.is_error,
    )
}

/// Returns the calls of a message of `openai-chat`, some with a member of a streamed chunk.
fn chat_calls(calls: &[Call], random: &mut Random) -> Vec<String> {
    let call = |call: &Call| {
        let arguments = format!("{{\"a\": {}}}", string(&call.word));
        let kind = if random.chance(950) { "function" } else { "" };
        format!(
            "{{\"type\":\"{kind}\"{},\"function\":{{\"name\":\"read\",\"arguments\":{}}}{}}}",
            optional("id", call.id.as_ref()),
            string(&arguments),
            random.pick(&["", "", ",\"index\":0"]),
        )
    };
    calls.iter().map(call).collect()
}

fn write_chat(event: &Event, random: &mut Random) -> Vec<String> {
    let message = |role: &str, members: String| format!("{{\"role\":\"{role}\"{members}}}");
    let content = |text: &String| format!(",\"content\":{}", string(text));
    vec![match event {
        Event::User(said) => {
            let name = *random.pick(&["", "", "", ",\"name\":\"ann\"", ",\"name\":\"Ann B\""]);
            message("user", name.to_owned() + &content(said))
        }
        Event::System(said) => {
            let role = if random.chance(500) { "system" } else { "developer" };
            message(role, content(said))
        }
        Event::UserOfNothing => message("user", ",\"content\":[]".into()),
        Event::Assistant { thought, text, calls } => {
            let mut members = optional("reasoning_content", thought.as_ref());
            members += &text.as_ref().map_or(",\"content\":null".into(), content);
            let listed = chat_calls(calls, random);
            if listed.len() > 1 && random.chance(200) {
                // A message for each call, as hosts write streamed chunks.
                let bare = |call| message("assistant", format!(",\"tool_calls\":[{call}]"));
                let first = message("assistant", members);
                return [first].into_iter().chain(listed.into_iter().map(bare)).collect();
            }
            if !listed.is_empty() || random.chance(100) {
                members += &format!(",\"tool_calls\":[{}]", listed.join(","));
            }
            members += ",\"refusal\":null,\"annotations\":[],\"timestamp\":5";
            message("assistant", members)
        }
        Event::Results { list, text } => {
            let mut all: Vec<String> = list
                .iter()
                .map(|one| {
                    let id = optional("tool_call_id", one.id.as_ref());
                    message("tool", id + &content(&one.word))
                })
                .collect();
            all.extend(text.iter().map(|said| message("user", content(said))));
            return all;
        }
        Event::Served { word, .. } => message("assistant", content(word)),
        Event::Media(word) => message(
            "user",
            format!(
                ",\"content\":[{{\"type\":\"text\",\"text\":{}}},{{\"type\":\"image_url\",\
                 \"image_url\":{{\"url\":\"data:image/png;base64,iVBORw0K\"}}}}]",
                string(word)
            ),
        ),
        Event::Unknown(word) => message(
            "user",
            format!(
                ",\"content\":[{{\"type\":\"odd\"}},{{\"type\":\"text\",\"text\":{}}},7]",
                string(word)
            ),
        ),
    }]
}
