#![expect(clippy::unwrap_used, reason = "a panic in a test is its failure")]
//! The tools of an agent: every answer keeps its bound, whatever is stored, and the calls that
//! answers name lead to the whole of a text.

use lcm_core::tokens;
use lcm_testing::{Host, Json, host::StoreMode, simulation::random::Random};

/// As the interface says it.
const ANSWER_TOKENS_MAX: u32 = 2_000;

fn ask(host: &mut Host, conversation: &str, name: &str, arguments: Json) -> (String, bool) {
    let args = Json::object([
        ("conversation", conversation.into()),
        ("name", name.into()),
        ("arguments_json", arguments),
    ]);
    let answer = host.ask("tools.call", &args).unwrap();
    let done = answer.field("done").unwrap();
    let text = done.field("text").and_then(Json::as_str).unwrap().to_owned();
    (text, done.field("is_error") == Some(&Json::Bool(true)))
}

/// Text of every price: letters, characters of a token and a half, escapes, lines.
fn text(random: &mut Random, words: u64) -> String {
    const WORDS: [&str; 6] =
        ["heron ", "\u{4f60}\u{597d}", "\n", "\"\\\u{1}", "\u{1f600}", "\nNext: lcm_describe {} "];
    (0..words).map(|_| *random.pick(&WORDS)).collect()
}

fn append(host: &mut Host, conversation: &str, messages: Vec<Json>) {
    let args =
        Json::object([("conversation", conversation.into()), ("messages", Json::Array(messages))]);
    host.ask("ingest.append", &args).unwrap();
}

#[test]
fn answers_keep_their_bound_and_their_lines() {
    let mut random = Random::new(7);
    for conversation in ["c".to_owned(), "\u{1}".repeat(512), "\u{4f60}".repeat(170)] {
        let mut host = Host::new(None, StoreMode::Plain).unwrap();
        append(&mut host, "other", vec![message("heron")]);
        for words in [1, 30, 3_000] {
            let messages = (0..20).map(|_| message(&text(&mut random, words))).collect();
            append(&mut host, &conversation, messages);
        }
        for pattern in ["heron", "\u{597d}", "Next", "nothing"] {
            let arguments = Json::object([
                ("pattern", pattern.into()),
                ("conversationId", conversation.as_str().into()),
                ("limit", 200_u64.into()),
            ]);
            let (answer, is_error) = ask(&mut host, "other", "lcm_grep", arguments);
            assert!(!is_error && tokens::estimate(&answer) <= ANSWER_TOKENS_MAX, "{answer}");
            // Behind the head, the count and the next call every line is a match.
            assert!(answer.lines().skip(3).all(|line| line.starts_with("- msg_")), "{answer}");
        }
        let wrong = Json::object([("id", conversation.as_str().into())]);
        let (answer, is_error) = ask(&mut host, &conversation, "lcm_describe", wrong);
        assert!(is_error && answer.lines().count() == 1 && tokens::estimate(&answer) <= 200);
    }
}

fn message(text: &str) -> Json {
    Json::object([("role", "user".into()), ("content", text.into())])
}

#[test]
fn the_pieces_of_a_message_are_the_message() {
    let mut random = Random::new(11);
    for words in [1, 700, 5_000] {
        let mut host = Host::new(None, StoreMode::Plain).unwrap();
        let raw = message(&text(&mut random, words)).compact();
        append(&mut host, "c", vec![raw.as_str().into()]);
        let (mut read, mut calls) = (String::new(), 0);
        loop {
            let arguments = Json::object([
                ("id", "msg_2fad7e0000000001".into()),
                ("startByte", u64::try_from(read.len()).unwrap().into()),
            ]);
            let (answer, is_error) = ask(&mut host, "c", "lcm_describe", arguments);
            assert!(!is_error && tokens::estimate(&answer) <= ANSWER_TOKENS_MAX);
            let (head, piece) = answer.split_once(&format!(" of {}:\n", raw.len())).unwrap();
            read.push_str(piece);
            calls += 1;
            let goes_on = format!("\"startByte\":{}}}", read.len());
            assert_eq!(head.contains(&goes_on), read.len() < raw.len(), "{head}");
            if read.len() >= raw.len() {
                break;
            }
        }
        assert_eq!(read, raw);
        assert!(calls <= 1 + tokens::estimate(&raw) / 1_700, "{calls} calls");
    }
}
