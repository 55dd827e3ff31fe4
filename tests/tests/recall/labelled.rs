//! Reads labelled conversations of others, in the formats of two published sets.
//!
//! In: a file in the format of LoCoMo (people who talk over months) or of LongMemEval (a user and
//! an assistant, with the evidence marked in the messages). Out: conversations with questions for
//! [`crate::measure`]. The sets are not in this repository, because their licences do not allow it.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    Conversation,
    compose::Message,
    world::{Question, Stock, World, iso, seconds},
};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Seconds between two messages of a session; only the time of its beginning is known.
const MESSAGE_SECONDS: i64 = 30;

/// Reads a file in either format.
pub(crate) fn read(file: &Path) -> Vec<Conversation> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|why| panic!("{file:?}: {why}"));
    let samples: Vec<Value> = serde_json::from_str(&text).unwrap();
    let numbered = samples.iter().enumerate();
    numbered
        .map(|(number, sample)| match sample.get("haystack_sessions") {
            Some(_) => of_an_assistant(number, sample),
            None => of_people(number, sample),
        })
        .collect()
}

fn conversation(
    name: String,
    kind: &str,
    messages: Vec<Message>,
    questions: Vec<Question>,
) -> Conversation {
    let world = World {
        name,
        kind: kind.to_owned(),
        half: "others".to_owned(),
        seed: 0,
        messages_min: 0,
        scenes: Vec::new(),
        stock: Stock::default(),
        questions,
    };
    Conversation { world, messages }
}

fn message(id: &str, at: i64, role: &'static str, speaker: Option<&str>, text: &str) -> Message {
    let mut raw = json!({"role": role, "content": text, "id": id, "timestamp": iso(at)});
    if let Some(speaker) = speaker {
        raw["speaker"] = speaker.into();
    }
    Message {
        id: id.to_owned(),
        at,
        role,
        speaker: speaker.map(str::to_owned),
        is_written: true,
        text: text.to_owned(),
        raw: raw.to_string(),
    }
}

/// Reads a conversation of two people: sessions of turns, each with an id that questions name.
fn of_people(number: usize, sample: &Value) -> Conversation {
    let talk = &sample["conversation"];
    let mut messages = Vec::new();
    for session in 1.. {
        let Some(turns) = talk[format!("session_{session}")].as_array() else {
            if talk.get(format!("session_{session}_date_time")).is_none() {
                break;
            }
            continue;
        };
        let at = clock(talk[format!("session_{session}_date_time")].as_str().unwrap());
        for (turn, time) in turns.iter().zip((at..).step_by(MESSAGE_SECONDS as usize)) {
            let text = |key: &str| turn[key].as_str().unwrap_or_default();
            let shown = match text("blip_caption") {
                "" => text("text").to_owned(),
                caption => format!("{} [picture: {caption}]", text("text")),
            };
            messages.push(message(text("dia_id"), time, "user", Some(text("speaker")), &shown));
        }
    }
    let known = |id: &String| messages.iter().any(|message| message.id == *id);
    let questions = sample["qa"].as_array().unwrap().iter().filter_map(|row| {
        let named = row["evidence"].as_array()?.iter().filter_map(Value::as_str);
        let ids = named.flat_map(|ids| ids.split([';', ',', ' '])).map(str::to_owned);
        let evidence: Vec<String> = ids.filter(known).collect();
        (!evidence.is_empty()).then(|| Question {
            kind: format!("kind {}", row["category"]),
            text: row["question"].as_str().unwrap().to_owned(),
            answer: row["answer"].to_string(),
            evidence,
            now: None,
        })
    });
    let questions = questions.collect();
    conversation(format!("talk-{number}"), "pair", messages, questions)
}

/// Reads a conversation of a user and an assistant: sessions of messages, some of which are marked
/// as evidence for the only question.
fn of_an_assistant(number: usize, sample: &Value) -> Conversation {
    let list = |key: &str| sample[key].as_array().unwrap();
    let (mut messages, mut evidence) = (Vec::new(), Vec::new());
    let mut sessions: Vec<(i64, &Vec<Value>)> = list("haystack_dates")
        .iter()
        .zip(list("haystack_sessions"))
        .map(|(date, turns)| (day(date.as_str().unwrap()), turns.as_array().unwrap()))
        .collect();
    sessions.sort_by_key(|(at, _)| *at);
    for (session, (at, turns)) in sessions.into_iter().enumerate() {
        for (turn, (row, time)) in
            turns.iter().zip((at..).step_by(MESSAGE_SECONDS as usize)).enumerate()
        {
            let id = format!("{session}:{turn}");
            let role = if row["role"] == "assistant" { "assistant" } else { "user" };
            messages.push(message(&id, time, role, None, row["content"].as_str().unwrap()));
            if row["has_answer"] == true {
                evidence.push(id);
            }
        }
    }
    let question = Question {
        kind: sample["question_type"].as_str().unwrap_or_default().to_owned(),
        text: sample["question"].as_str().unwrap().to_owned(),
        answer: sample["answer"].to_string(),
        evidence,
        now: sample["question_date"].as_str().map(day),
    };
    let questions = Some(question).filter(|question| !question.evidence.is_empty());
    let questions = questions.into_iter().collect();
    conversation(format!("help-{number}"), "assistant", messages, questions)
}

/// Parses a time like `1:56 pm on 8 May, 2023` to seconds since 1970.
fn clock(text: &str) -> i64 {
    let parts: Vec<&str> = text.split([' ', ',', ':']).filter(|part| !part.is_empty()).collect();
    let [hour, minute, half, "on", day, month, year] = parts[..] else {
        panic!("`{text}` is no time of a session");
    };
    let hour: u32 = hour.parse::<u32>().unwrap() % 12 + if half == "pm" { 12 } else { 0 };
    let month = 1 + MONTHS.iter().position(|name| *name == month).unwrap();
    seconds(&format!("{year}-{month}-{day} {hour}:{minute}"))
}

/// Parses a time like `2023/05/20 (Sat) 02:21` to seconds since 1970.
fn day(text: &str) -> i64 {
    let (date, rest) = text.split_once(' ').unwrap();
    let time = rest.split_once(") ").map_or(rest, |(_, time)| time);
    seconds(&format!("{} {time}", date.replace('/', "-")))
}

#[test]
fn both_forms_are_read() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/labelled");
    let people = read(&fixtures.join("locomo.json"));
    let [talk] = &people[..] else { panic!("one conversation") };
    assert_eq!(talk.messages.len(), 5);
    assert_eq!(iso(talk.messages[0].at), "2024-03-03T16:05:00.000Z");
    assert_eq!(iso(talk.messages[3].at), "2024-04-18T00:30:00.000Z");
    assert!(talk.messages[2].text.ends_with("[picture: a ticket on a table]"));
    let evidence: Vec<&[String]> =
        talk.world.questions.iter().map(|question| question.evidence.as_slice()).collect();
    assert_eq!(evidence, [&["D1:3".to_owned()][..], &["D2:1".to_owned(), "D2:2".to_owned()]]);
    let help = &read(&fixtures.join("longmemeval.json"))[0];
    assert_eq!((help.messages.len(), help.messages[1].role), (4, "assistant"));
    assert_eq!(help.world.questions[0].evidence, ["0:0"]);
    assert_eq!(help.world.questions[0].now.map(iso).unwrap(), "2023-05-30T23:40:00.000Z");
}
