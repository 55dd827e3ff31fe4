//! Checks that the set is a fair measure: sizes, ids, evidence, answers.
//!
//! In: composed conversations. Out: findings. The checks of an answer depend on its notation, which
//! the `README.md` of the set defines.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Conversation,
    compose::Message,
    world::{KINDS, Question, iso},
};

/// Smallest number of messages of a conversation.
const MESSAGES_MIN: usize = 500;
/// Smallest number of questions of the whole set; `OF_A_KIND_MIN`: of each kind in a conversation.
const QUESTIONS_MIN: usize = 400;
const OF_A_KIND_MIN: usize = 12;
/// Largest number of messages that one question may need.
const EVIDENCE_MAX: usize = 5;
/// Smallest and largest size of an assistant's answer, in tokens of four characters.
const ANSWER_TOKENS: (usize, usize) = (300, 1_000);
/// Words that a question may use only if it has a time.
const RELATIVE: [&str; 11] = [
    "yesterday",
    "today",
    "tomorrow",
    "tonight",
    "ago",
    "last week",
    "last month",
    "last night",
    "this week",
    "this month",
    "this morning",
];

/// Returns findings about the set as a whole.
pub(crate) fn sizes(conversations: &[Conversation]) -> Vec<String> {
    let mut findings = Vec::new();
    for kind in ["people", "pair", "assistant", "agent"] {
        for half in ["tune", "held-out"] {
            let is_meant = |one: &&Conversation| one.world.kind == kind && one.world.half == half;
            if !conversations.iter().any(|one| is_meant(&one)) {
                findings.push(format!("no conversation of the kind {kind} in the half {half}"));
            }
        }
    }
    let total: usize = conversations.iter().map(|one| one.world.questions.len()).sum();
    if total < QUESTIONS_MIN {
        findings.push(format!("{total} questions, not {QUESTIONS_MIN}"));
    }
    findings
}

/// Returns findings about the messages of a conversation.
pub(crate) fn messages(conversation: &Conversation) -> Vec<String> {
    let Conversation { world, messages } = conversation;
    let mut findings = Vec::new();
    let mut find = |what: String| findings.push(format!("{}: {what}", world.name));
    if messages.len() < MESSAGES_MIN {
        find(format!("{} messages, not {MESSAGES_MIN}", messages.len()));
    }
    let mut ids = BTreeSet::new();
    for message in messages {
        if !ids.insert(&message.id) {
            find(format!("two messages `{}`", message.id));
        }
        let tokens = message.text.chars().count() / 4;
        let (low, high) = ANSWER_TOKENS;
        let is_answer = world.kind == "assistant" && message.role == "assistant";
        if is_answer && !(low..=high).contains(&tokens) {
            find(format!("the answer `{}` has {tokens} tokens", message.id));
        }
        if world.is_talk() && message.speaker.is_none() {
            find(format!("nobody says `{}`", message.id));
        }
        if message.text.contains("[[") || message.text.contains("]]") {
            find(format!("a slot is left in `{}`: {}", message.id, message.text));
        }
    }
    for pair in messages.windows(2).filter(|pair| pair[0].at >= pair[1].at) {
        find(format!("`{}` is not later than `{}`", pair[1].id, pair[0].id));
    }
    findings
}

/// Returns findings about the questions of a conversation.
pub(crate) fn questions(conversation: &Conversation) -> Vec<String> {
    let Conversation { world, messages } = conversation;
    let mut findings = Vec::new();
    for kind in KINDS {
        let count = world.questions.iter().filter(|question| question.kind == kind).count();
        if count < OF_A_KIND_MIN {
            findings.push(format!("{}: {count} questions of the kind {kind}", world.name));
        }
    }
    for question in &world.questions {
        let found = one(question, messages);
        let found =
            found.into_iter().map(|what| format!("{}: {}: {what}", world.name, question.text));
        findings.extend(found);
    }
    findings
}

/// Returns the questions that occur twice.
pub(crate) fn distinct(conversations: &[Conversation]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let questions = conversations.iter().flat_map(|one| &one.world.questions);
    let is_second = |question: &&Question| !seen.insert(plain(&question.text));
    questions.filter(is_second).map(|question| format!("asked twice: {}", question.text)).collect()
}

fn plain(text: &str) -> String {
    text.to_lowercase().chars().filter(|character| character.is_alphanumeric()).collect()
}

fn one(question: &Question, messages: &[Message]) -> Vec<String> {
    let mut findings = Vec::new();
    if !KINDS.contains(&question.kind.as_str()) {
        findings.push(format!("no kind `{}`", question.kind));
    }
    let labels: BTreeSet<&String> = question.evidence.iter().collect();
    let wanted = if question.kind == "facts" { 2..=EVIDENCE_MAX } else { 1..=EVIDENCE_MAX };
    if labels.len() != question.evidence.len() || !wanted.contains(&labels.len()) {
        findings.push(format!("{} distinct messages as evidence", labels.len()));
    }
    let is_evidence = |message: &&Message| labels.contains(&message.id);
    let evidence: Vec<&Message> = messages.iter().filter(is_evidence).collect();
    for label in &labels {
        match evidence.iter().find(|message| message.id == **label) {
            None => findings.push(format!("there is no message `{label}`")),
            Some(message) if !message.is_written => {
                findings.push(format!("`{label}` is not written by hand"));
            }
            Some(message) if question.now.is_some_and(|now| now <= message.at) => {
                findings.push(format!("`{label}` is later than the question"));
            }
            Some(_) => {}
        }
    }
    let text = question.text.to_lowercase();
    if question.now.is_none() && RELATIVE.iter().any(|word| holds(&text, word)) {
        findings.push("a relative time needs the time of the question".to_owned());
    }
    findings.extend(answer(question, &evidence, messages));
    findings
}

/// Returns findings if the evidence does not support the answer, or another message does.
fn answer(question: &Question, evidence: &[&Message], messages: &[Message]) -> Vec<String> {
    let mut findings = Vec::new();
    let answer = question.answer.as_str();
    if answer.trim_start_matches(['=', '@', '>']).trim().is_empty() {
        return vec!["no answer".to_owned()];
    }
    if let Some(name) = answer.strip_prefix('>') {
        for message in evidence.iter().filter(|one| one.speaker.as_deref() != Some(name)) {
            findings.push(format!("`{}` is not said by {name}", message.id));
        }
    } else if let Some(days) = answer.strip_prefix('@') {
        for day in days.split(" + ") {
            if !evidence.iter().any(|message| iso(message.at).starts_with(day)) {
                findings.push(format!("no evidence is of {day}"));
            }
        }
    } else if let Some(exact) = answer.strip_prefix('=') {
        let is_only = exact.starts_with('=');
        let parts: Vec<&str> = exact.trim_start_matches('=').split(" + ").collect();
        let supports = |message: &Message| parts.iter().any(|part| holds(&message.text, part));
        for part in parts.iter().filter(|part| !evidence.iter().any(|one| holds(&one.text, part))) {
            findings.push(format!("no evidence holds `{part}`"));
        }
        for message in evidence.iter().filter(|message| !supports(message)) {
            findings.push(format!("`{}` holds nothing of the answer", message.id));
        }
        let others = messages.iter().filter(|one| !question.evidence.contains(&one.id));
        if is_only {
            let others = others.filter(|message| supports(message)).take(4);
            findings.extend(others.map(|one| format!("`{}` also holds it", one.id)));
        }
    }
    findings
}

/// Returns whether a text contains another one, not as a piece of a longer word or number.
fn holds(text: &str, part: &str) -> bool {
    let (text, part) = (text.to_lowercase(), part.to_lowercase());
    text.match_indices(&part).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + part.len()..].chars().next();
        let joins = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        !joins(before) && !joins(after)
    })
}

/// Returns the sizes of the conversations, one line for each.
pub(crate) fn summary(conversations: &[Conversation]) -> String {
    let mut lines = Vec::new();
    for Conversation { world, messages } in conversations {
        let written = messages.iter().filter(|message| message.is_written).count();
        let characters: usize = messages.iter().map(|message| message.text.chars().count()).sum();
        let mut used: BTreeMap<&str, usize> = BTreeMap::new();
        for id in world.questions.iter().flat_map(|question| &question.evidence) {
            *used.entry(id).or_default() += 1;
        }
        lines.push(format!(
            "{:12} {:8}: {} messages ({written} in scenes), {} k characters, {} questions, \
             {} messages as evidence",
            world.name,
            world.half,
            messages.len(),
            characters / 1_000,
            world.questions.len(),
            used.len(),
        ));
    }
    lines.join("\n")
}

#[test]
fn a_part_of_a_word_or_number_is_not_held() {
    assert!(holds("It is 14, they say", "14") && holds("Gate B", "gate b"));
    assert!(!holds("It is 140", "14") && !holds("undone", "one"));
}

/// Goal: each rule for questions can fail. Method: a sound question, broken in one way at a time.
#[test]
fn each_rule_for_questions_can_fail() {
    let message = |id: &str, text: &str| Message {
        id: id.to_owned(),
        at: 1_000_000,
        role: "user",
        speaker: Some("ada".to_owned()),
        is_written: id != "composed",
        text: text.to_owned(),
        raw: String::new(),
    };
    let messages =
        [message("a", "gate 14"), message("b", "the gate"), message("composed", "gate 15")];
    let check = |kind: &str, text: &str, answer: &str, evidence: &str| {
        let question = Question {
            kind: kind.to_owned(),
            text: text.to_owned(),
            answer: answer.to_owned(),
            evidence: evidence.split(' ').map(str::to_owned).collect(),
            now: None,
        };
        one(&question, &messages).len()
    };
    for answer in ["==14", "=gate", ">ada", "@1970-01-12", "fourteen"] {
        assert_eq!(check("fact", "which gate?", answer, "a"), 0, "{answer}");
    }
    for (kind, text, answer, evidence) in [
        ("guess", "which gate?", "=14", "a"),
        ("facts", "which gate?", "=14", "a"),
        ("fact", "which gate?", "x", "c"),
        ("fact", "which gate?", "x", "composed"),
        ("time", "which gate yesterday?", "=14", "a"),
        ("fact", "which gate?", ">bob", "a"),
        ("fact", "which gate?", "@1970-01-13", "a"),
        ("fact", "which gate?", "=14 + 16", "a"),
        ("fact", "which gate?", "=14", "a b"),
        ("fact", "which gate?", "=", "a"),
    ] {
        assert_eq!(check(kind, text, answer, evidence), 1, "{kind} {text} {answer} {evidence}");
    }
    assert_eq!(check("fact", "which gate?", "==gate", "a"), 2, "two others hold it");
}
