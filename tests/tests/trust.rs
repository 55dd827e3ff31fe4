#![expect(clippy::unwrap_used, reason = "a panic in a test is its failure")]
//! Texts that a summariser must never read, and the speaker that a summary must never have.

use lcm_testing::{
    Host, Json,
    host::StoreMode,
    simulation::random::Random,
    vector_runner::{Answers, drive},
};

const DIALECTS: [&str; 5] = ["lcm", "anthropic", "openai-chat", "openai-responses", "gemini"];
/// Marks at the beginning of every thought, all media and every injected text; no other text has
/// one.
const NEVER: [&str; 3] = ["hiddenthought", "iVBORhidden", "injectedword"];

fn host(config: [(&str, Json); 2]) -> Host {
    Host::new(Some(Json::object(config)), StoreMode::Plain).unwrap()
}

fn append(host: &mut Host, dialect: &str, messages: Vec<Json>) {
    let args = Json::object([
        ("dialect", dialect.into()),
        ("messages", Json::Array(messages)),
        ("options", Json::object([("append_mode", "new".into())])),
    ]);
    host.ask("ingest.append", &args).unwrap();
}

/// Returns a text like base64 that begins with the mark of media.
fn media(random: &mut Random, bytes: usize) -> String {
    const LETTERS: &[&str] = &["aB3", "Qz9", "x7K", "mN2", "iVBORhidden", "0pL", "u8R", "W5e"];
    let mut out = String::from("iVBORhidden");
    while out.len() < bytes {
        let letters: &&str = random.pick(LETTERS);
        out.push_str(letters);
    }
    out
}

/// Returns a text with its own word, and sometimes with media.
fn said(random: &mut Random, number: u64) -> String {
    let word = format!("saidword{number} is what hall_12 reports of parcel {number}.");
    match random.between(0, 4) {
        0 => format!("{word} data:image/png;base64,{} and on", media(random, 40)),
        1 => format!("{word}\\n{}\\nmore", media(random, 300)),
        _ => word,
    }
}

/// Returns a text of a user with its own word; sometimes a plugin adds an injected text.
fn asked(random: &mut Random, number: u64) -> String {
    let word = format!("saidword{number} is what hall_12 reports of parcel {number}.");
    let tag = *random.pick(&["relevant-memories", "active_memory_plugin", "hindsight_memories"]);
    match random.between(0, 4) {
        0 => format!("<{tag} n=\\\"1\\\">\\ninjectedword{number}\\n</{tag}>\\n\\n{word}"),
        1 => format!(
            "{word}\\nUntrusted context (metadata):\\n<{tag}>injectedword<{tag}/></{tag}>\\nmore"
        ),
        _ => said(random, number),
    }
}

/// Makes the turn of a number in a dialect.
type Turn = fn(&mut Random, u64) -> [String; 3];

/// Makes a turn in the dialect `lcm`: a question, thinking with a call, a result.
fn lcm_turn(random: &mut Random, number: u64) -> [String; 3] {
    let asked = asked(random, number);
    let (answered, returned) = (said(random, number), said(random, number));
    let (picture, id) = (media(random, 30), format!("functions.look:{number}"));
    [
        format!(
            "{{\"role\":\"user\",\"parts\":[{{\"type\":\"text\",\"text\":\"{asked}\"}},\
             {{\"type\":\"file\",\"name\":\"a.png\",\"mime\":\"image/png\",\"data\":\"{picture}\"}}]}}"
        ),
        format!(
            "{{\"role\":\"assistant\",\"parts\":[{{\"type\":\"reasoning\",\
             \"text\":\"hiddenthought {number}\"}},{{\"type\":\"text\",\"text\":\"{answered}\"}},\
             {{\"type\":\"tool_call\",\"id\":\"{id}\",\"name\":\"look\",\
             \"input\":{{\"at\":\"{answered}\"}}}}]}}"
        ),
        format!(
            "{{\"role\":\"tool\",\"parts\":[{{\"type\":\"tool_result\",\"call_id\":\"{id}\",\
             \"name\":\"look\",\"output\":\"{returned}\"}}]}}"
        ),
    ]
}

/// Makes the same turn in the dialect `anthropic`.
fn anthropic_turn(random: &mut Random, number: u64) -> [String; 3] {
    let asked = asked(random, number);
    let (answered, returned) = (said(random, number), said(random, number));
    let (picture, id) = (media(random, 30), format!("toolu_{number:012}"));
    [
        format!(
            "{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"{asked}\"}},\
             {{\"type\":\"image\",\"source\":{{\"type\":\"base64\",\"media_type\":\"image/png\",\
             \"data\":\"{picture}\"}}}}]}}"
        ),
        format!(
            "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"thinking\",\
             \"thinking\":\"hiddenthought {number}\",\"signature\":\"hiddenthought\"}},\
             {{\"type\":\"text\",\"text\":\"{answered}\"}},{{\"type\":\"tool_use\",\
             \"id\":\"{id}\",\"name\":\"look\",\"input\":{{\"at\":\"{answered}\"}}}}]}}"
        ),
        format!(
            "{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\
             \"tool_use_id\":\"{id}\",\"content\":[{{\"type\":\"text\",\"text\":\"{returned}\"}},\
             {{\"type\":\"image\",\"source\":{{\"type\":\"base64\",\"media_type\":\"image/png\",\
             \"data\":\"{picture}\"}}}}]}}]}}"
        ),
    ]
}

/// Goal: requests to a model at any depth have no thoughts, media or injected texts, and together
/// have every other word. Method: a generated conversation is compacted to several depths; the test
/// reads every request.
#[test]
fn thoughts_media_and_injected_context_never_reach_a_model() {
    let turns_of: [(&str, Turn); 2] = [("lcm", lcm_turn), ("anthropic", anthropic_turn)];
    for (dialect, turn) in turns_of {
        let mut random = Random::new(7);
        let few =
            [("fresh_tail_messages_max", 1_u64.into()), ("leaf_chunk_tokens_max", 900_u64.into())];
        let mut host = host(few);
        let turns = 120;
        for number in 0..turns {
            append(&mut host, dialect, turn(&mut random, number).map(Json::string).into());
        }
        let (mut leaves, mut condensed) = (String::new(), 0);
        loop {
            let options = Json::object([("force", true.into()), ("target", 300_u64.into())]);
            let args = Json::object([("budget", 6_000_u64.into()), ("options", options)]);
            let plan = host.ask("compaction.plan", &args).unwrap();
            let requests = plan.field("requests").unwrap().elements();
            for request in requests {
                let text = |key: &str| request.field(key).unwrap().as_str().unwrap();
                let sent = [text("system"), text("prompt")].concat();
                for never in NEVER {
                    assert!(!sent.contains(never), "{dialect}: {never} in {sent}");
                }
                if text("purpose") == "leaf" {
                    leaves.push_str(&sent)
                } else {
                    condensed += 1
                }
                let args = Json::object([("request", request.clone())]);
                let answer = host.ask("compaction.complete_offline", &args).unwrap();
                let args = Json::object([
                    ("request_id", text("id").into()),
                    ("answer", Json::object([("done", answer)])),
                ]);
                host.ask("compaction.apply", &args).unwrap();
            }
            if requests.is_empty() {
                break;
            }
        }
        assert!(condensed > 0, "{dialect}");
        for number in 0..turns - 1 {
            assert!(leaves.contains(&format!("saidword{number} ")), "{dialect}: {number}");
        }
        let all = Json::object([("seq_first", 1_u64.into()), ("seq_last", (3 * turns).into())]);
        let stored = host.ask("recall.messages", &all).unwrap().compact();
        assert!(NEVER.iter().all(|never| stored.contains(never)), "{dialect}");
    }
}

/// Goal: no text of a model appears as a message of the host. Method: summaries of only system
/// messages, of trusted and of other messages, rendered in every dialect; a text with the mark of a
/// summary always has the role of a user.
#[test]
fn no_summary_speaks_with_the_authority_of_the_host() {
    const MARK: &str = "summarymark";
    for roles in [["system", "system"], ["user", "user"], ["system", "assistant"]] {
        let mut host = host([
            ("fresh_tail_messages_max", 1_u64.into()),
            ("leaf_chunk_tokens_max", 300_u64.into()),
        ]);
        let long = "The parcel of hall_12 waits. ".repeat(20);
        let message =
            |role: &str| Json::object([("role", role.into()), ("content", long.as_str().into())]);
        // System messages that begin a conversation would fill the slot.
        append(&mut host, "openai-chat", vec![message("user")]);
        for round in 0..6_usize {
            append(&mut host, "openai-chat", vec![message(roles.get(round % 2).unwrap())]);
        }
        append(&mut host, "openai-chat", vec![message("user")]);
        let script = Json::parse(&format!("{{\"text\":\"{MARK}: obey\",\"times\":0}}")).unwrap();
        host.model = lcm_testing::scripted_model::ScriptedModel::new(&[script]).unwrap();
        let options = Json::object([("force", true.into())]);
        let args = Json::object([("budget", 20_000_u64.into()), ("options", options)]);
        drive(&mut host, &args, Answers::Scripted).unwrap().unwrap();
        for dialect in DIALECTS {
            let args = Json::object([("budget", 20_000_u64.into()), ("dialect", dialect.into())]);
            let assembled = host.ask("context.assemble", &args).unwrap();
            let system = assembled.field("system").unwrap().compact();
            assert!(!system.contains(MARK) && !system.contains("<summary"), "{dialect}: {system}");
            let messages = assembled.field("messages_json").unwrap().as_str().unwrap();
            let messages = Json::parse(messages).unwrap();
            let marked: Vec<&Json> =
                messages.elements().iter().filter(|one| one.compact().contains(MARK)).collect();
            assert!(!marked.is_empty(), "{dialect}");
            for message in marked {
                let role = message.field("role").and_then(Json::as_str);
                assert_eq!(role, Some("user"), "{dialect}: {}", message.compact());
            }
        }
    }
}
