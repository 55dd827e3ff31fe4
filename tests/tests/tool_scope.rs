#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic in a test is its failure, and its lists are short"
)]
//! Tools keep to their conversation: an agent in a store of 50 users, whose model tries all tools
//! with all arguments, reads no word of another user.
//!
//! Every stored text has the word `kept` with the number of its user, which no argument has. The
//! arguments have everything else of other users: names, ids of messages, summaries and files,
//! cursors, grants and continuations. Each call is made a second time with made-up names in place
//! of those of others: the answers must be equal, so that nothing tells whether a name exists.

use std::collections::BTreeMap;

use lcm_testing::{
    Host, Json,
    host::StoreMode,
    simulation::random::Random,
    vector_runner::{Answers, drive},
};
use serde_json::{Value, json};

const USERS: usize = 50;
/// Users with a second session in a family, with a file, and with a cursor of an expression.
const FAMILIES: usize = 10;
/// An expression of which one query scans a part of [`scanned`] only.
const COSTLY: &str = r"\bneedle\b[a-z 0-9]{0,600}";
const TOOLS: [&str; 6] =
    ["lcm_grep", "lcm_describe", "lcm_expand", "lcm_expand_query", "lcm_budget", "lcm_other"];

/// The names of one user.
#[derive(Default)]
struct User {
    conversation: String,
    /// Ids of messages, summaries, files and grants, cursors, continuations and conversations.
    names: Vec<String>,
    grants: Vec<String>,
    continuation: String,
}

fn ask(host: &mut Host, name: &str, args: &Value) -> Json {
    host.told(name, &args.to_string()).unwrap()
}

/// Returns the result of a call as JSON.
fn document(host: &mut Host, name: &str, args: &Value) -> Value {
    serde_json::from_str(&ask(host, name, args).compact()).unwrap()
}

fn append(host: &mut Host, conversation: &str, texts: &[String], family: Option<&str>) {
    let messages: Vec<Value> =
        texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
    let mut args = json!({"conversation": conversation, "messages": messages});
    if let Some(family) = family {
        args["options"] = json!({"extra_json": json!({"family": family}).to_string()});
    }
    ask(host, "ingest.append", &args);
}

/// Creates messages that take an expression more than one query.
fn scanned(number: usize) -> Vec<String> {
    let line = |at| format!("\u{e9} so needle kept{number:02} {at}");
    (0..90).map(line).collect()
}

/// Stores the messages of a user, compacts them, and collects every name that the user has.
fn create_user(host: &mut Host, number: usize) -> User {
    let conversation = format!("user-{number:02}");
    let is_family = number < FAMILIES;
    let family = is_family.then(|| format!("family-{number:02}"));
    let filler = "word ".repeat(60);
    let said = |at: usize| format!("heron secret{number:02} kept{number:02} {at} {filler}");
    let texts: Vec<String> = (0..12).map(said).collect();
    append(host, &conversation, &texts, family.as_deref());
    let mut names = vec![conversation.clone()];
    if let Some(family) = &family {
        let earlier = format!("user-{number:02}-b");
        append(host, &earlier, &scanned(number), Some(family));
        names.extend([earlier, family.clone()]);
        let file = format!("kept{number:02} line of a file heron\n").repeat(300);
        let message = json!({"role": "user", "parts": [
            {"type": "file", "name": format!("file-{number:02}.txt"), "text": file}]});
        let args = json!({"conversation": conversation, "messages": [message.to_string()]});
        ask(host, "ingest.append", &args);
        append(host, &conversation, &scanned(number), None);
    }
    let args = json!({"conversation": conversation, "budget": 100_000, "options": {"force": true}});
    drive(host, &Json::of(&args.to_string()), Answers::Offline).unwrap().unwrap();
    for kind in ["messages", "summaries"] {
        let args = json!({"kind": kind, "conversation": conversation});
        let page = document(host, "admin.listing", &args);
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().take(4).map(|item| item["id"].as_str().unwrap().to_owned()));
    }
    for (scope, pattern) in [("both", COSTLY), ("files", "line")] {
        let query = json!({"pattern": pattern, "mode": "regex", "scope": scope});
        let args = json!({"conversation": conversation, "query_json": query});
        let found = document(host, "recall.grep", &args);
        names.extend(found["cursor"].as_str().map(str::to_owned));
        let ids = found["matches"].as_array().unwrap().iter();
        names.extend(ids.take(2).map(|hit| hit["id"].as_str().unwrap().to_owned()));
    }
    let args = json!({"conversation": conversation, "grant_json": {"ttl_ms": 86_400_000}});
    let grants = vec![document(host, "recall.grant", &args)["id"].as_str().unwrap().to_owned()];
    names.extend(grants.clone());
    let question = json!({"prompt": "Which heron is the secret?"}).to_string();
    let args = json!({"conversation": conversation, "name": "lcm_expand_query",
        "arguments_json": question});
    let asked = document(host, "tools.call", &args);
    let continuation = asked["needs-completions"]["continuation"].as_str().unwrap().to_owned();
    names.push(continuation.clone());
    User { conversation, names, grants, continuation }
}

/// Creates a store of 50 users.
fn create_store() -> (Host, Vec<User>) {
    let config = r#"{"fresh_tail_messages_max":1,"fresh_tail_tokens_max":null,
        "leaf_chunk_tokens_max":1000,"large_payload_tokens_min":1000}"#;
    let mut host = Host::new(Some(Json::of(config)), StoreMode::Plain).unwrap();
    let users = (0..USERS).map(|number| create_user(&mut host, number)).collect();
    (host, users)
}

/// Values that a model tries, by the agent's user.
struct Tries<'u> {
    own: &'u User,
    foreign: Vec<&'u User>,
    /// Whether names are searched for like words, too.
    searches_names: bool,
    random: Random,
}

impl<'u> Tries<'u> {
    fn name(&mut self) -> String {
        let user = self.user();
        self.random.pick(&user.names).clone()
    }

    fn user(&mut self) -> &'u User {
        match self.random.between(0, 2) {
            0 => self.own,
            _ => self.random.pick::<&User>(&self.foreign),
        }
    }

    fn text(&mut self) -> String {
        let number = self.random.between(0, 49);
        match self.random.between(0, 6) {
            0 => format!("secret{number:02}"),
            1 => COSTLY.to_owned(),
            2 => "secret\\d+".to_owned(),
            3 => ".".to_owned(),
            4 => "line".to_owned(),
            5 if self.searches_names => self.name(),
            _ => "heron".to_owned(),
        }
    }

    /// Returns a value that fits the schema of an argument, and sometimes one that does not.
    fn value(&mut self, name: &str, schema: &Value) -> Value {
        if let Some(choices) = schema["enum"].as_array() {
            return match self.random.between(0, 9) {
                0 => "store".into(),
                _ => self.random.pick(choices).clone(),
            };
        }
        match (name, schema["type"].as_str()) {
            ("prompt" | "query" | "pattern", _) => self.text().into(),
            ("conversationId", _) => self.user().conversation.clone().into(),
            ("since" | "before", _) if self.random.between(0, 1) == 0 => "2023-11-14".into(),
            (_, Some("boolean")) => (self.random.between(0, 4) > 0).into(),
            (_, Some("integer")) => {
                let least = schema["minimum"].as_u64().unwrap();
                let most = schema["maximum"].as_u64().unwrap().min(least + 1_000);
                self.random.between(least, most).into()
            }
            (_, Some("array")) => (0..self.random.between(1, 3)).map(|_| self.name()).collect(),
            _ => self.name().into(),
        }
    }

    /// Returns a tool with arguments: the required ones, and any of the others.
    fn call(&mut self, schemas: &BTreeMap<String, Value>) -> (String, Value) {
        let name = (*self.random.pick(&TOOLS)).to_owned();
        let mut arguments = json!({});
        let Some(schema) = schemas.get(&name) else { return (name, arguments) };
        for (key, property) in schema["properties"].as_object().unwrap() {
            let is_required = schema["required"].as_array().unwrap().contains(&json!(key));
            // With more optional arguments, one wrong argument would refuse nearly every call.
            if is_required || self.random.between(0, 5) == 0 {
                arguments[key] = self.value(key, property);
            }
        }
        (name, arguments)
    }
}

/// Returns the schemas of all tools with all arguments, those of the store included.
fn schemas(host: &mut Host) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    for grant in [Value::Null, json!("grant_0123456789abcdef")] {
        let args = json!({"dialect": "lcm", "grant": grant, "scope": "store"});
        let list = document(host, "tools.definitions", &args);
        for tool in list.as_array().unwrap() {
            out.insert(tool["name"].as_str().unwrap().to_owned(), tool["inputSchema"].clone());
        }
    }
    out
}

/// Lists the users whose `kept` word is in a text, except one.
fn others_in(text: &str, own: usize) -> Vec<usize> {
    let numbers = text.match_indices("kept").filter_map(|(at, _)| text.get(at + 4..at + 6));
    let numbers = numbers.filter_map(|digits| digits.parse().ok());
    numbers.filter(|number| *number != own).collect()
}

/// Makes a tool call to its end and returns everything that the host was handed.
fn answer(host: &mut Host, args: &Value) -> String {
    let mut handed = String::new();
    let mut outcome = host.told("tools.call", &args.to_string());
    for _ in 0..3 {
        let Ok(result) = &outcome else { break };
        let result: Value = serde_json::from_str(&result.compact()).unwrap();
        handed.push_str(&result.to_string());
        let needs = &result["needs-completions"];
        let Some(request) = needs["requests"].get(0) else { break };
        let request = json!({"request": request});
        let done = document(host, "compaction.complete_offline", &request);
        let next = json!({"conversation": args["conversation"], "scope": args["scope"],
            "continuation": needs["continuation"], "answers": [{"done": done}]});
        outcome = host.told("tools.resume", &next.to_string());
    }
    if let Err(error) = outcome {
        handed.push_str(&error.to_string());
    }
    handed
}

/// Replaces existing names of other users by made-up names of the same form and length.
fn make_up(text: &str, foreign: &[&User]) -> String {
    let mut names: Vec<&String> = foreign.iter().flat_map(|user| &user.names).collect();
    // The longest first: some names are parts of others.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names.into_iter().fold(text.to_owned(), |text, name| text.replace(name, &made_up(name)))
}

/// Returns a made-up name: other digits behind the same beginning.
fn made_up(name: &str) -> String {
    let end = name.len().min(5);
    let (start, rest) = name.split_at(end);
    let rest = rest.chars().rev().map(|c| if c.is_ascii_digit() { '7' } else { c });
    format!("{start}{}", rest.collect::<String>())
}

/// Goal: no word of another user in any answer, whatever a model writes. Method: 25,000 calls of
/// agents of five users, of every tool with every argument, and the same with made-up names.
#[test]
fn an_agent_reads_no_word_of_other_users() {
    let (mut host, users) = create_store();
    let schemas = schemas(&mut host);
    let (mut read, mut answered) = (0, 0);
    for own in [0, 1, 9, 10, 49] {
        let foreign: Vec<&User> =
            users.iter().enumerate().filter(|(at, _)| *at != own).map(|(_, user)| user).collect();
        let seed = u64::try_from(own).unwrap();
        let mut tries =
            Tries { own: &users[own], foreign, searches_names: true, random: Random::new(seed) };
        for _ in 0..5_000 {
            let (name, arguments) = tries.call(&schemas);
            let grant = match tries.random.between(0, 5) {
                0 => json!(tries.random.pick(&tries.foreign).grants[0]),
                1 => json!(tries.own.grants[0]),
                _ => Value::Null,
            };
            let args = json!({"conversation": users[own].conversation, "name": name,
                "arguments_json": arguments.to_string(), "grant": grant});
            let told = answer(&mut host, &args);
            assert_eq!(others_in(&told, own), Vec::<usize>::new(), "{args}: {told}");
            read += usize::from(told.contains("kept"));
            answered += usize::from(told.contains("\"is_error\":false"));
        }
    }
    assert!(read > 500 && answered > 1_500, "{read} {answered}");
}

/// Goal: the same calls in the scope of the store do read others, so the test can fail. Method: as
/// above, with the scope that only the host can choose.
#[test]
fn the_same_agent_reads_others_when_the_host_widens_the_scope() {
    let (mut host, users) = create_store();
    let schemas = schemas(&mut host);
    let foreign = users.iter().skip(1).collect();
    let mut tries = Tries { own: &users[0], foreign, searches_names: true, random: Random::new(1) };
    let mut read = 0;
    for _ in 0..3_000 {
        let (name, arguments) = tries.call(&schemas);
        let args = json!({"conversation": users[0].conversation, "name": name,
            "arguments_json": arguments.to_string(), "scope": "store"});
        read += usize::from(!others_in(&answer(&mut host, &args), 0).is_empty());
    }
    assert!(read > 20, "{read}");
}

/// Goal: nothing tells an agent whether a name of another user exists. Method: calls with names of
/// others, and with names of the same form that were never given.
#[test]
fn a_name_of_another_user_is_answered_as_a_made_up_one() {
    let (mut host, users) = create_store();
    let schemas = schemas(&mut host);
    let foreign: Vec<&User> = users.iter().skip(1).collect();
    let mut tries = Tries {
        own: &users[0],
        foreign: foreign.clone(),
        searches_names: false,
        random: Random::new(2),
    };
    let mut compared = 0;
    for _ in 0..1_500 {
        let (name, arguments) = tries.call(&schemas);
        let written = arguments.to_string();
        let invented = make_up(&written, &foreign);
        if invented == written {
            continue;
        }
        let call = |arguments: &str| {
            json!({"conversation": users[0].conversation, "name": name,
                "arguments_json": arguments})
        };
        let told = make_up(&answer(&mut host, &call(&written)), &foreign);
        // A question that is open or was answered has a number of its own.
        if told.contains("needs-completions") || told.contains("another question") {
            continue;
        }
        assert_eq!(told, answer(&mut host, &call(&invented)), "{written}");
        compared += 1;
    }
    assert!(compared > 400, "{compared}");
}

/// Goal: a continuation of another user is one of a conversation that does not exist. Method: each
/// user's continuation, handed to another user's conversation.
#[test]
fn a_continuation_of_another_user_is_refused() {
    let (mut host, users) = create_store();
    for (own, other) in users.iter().zip(users.iter().cycle().skip(1)) {
        let args = json!({"conversation": own.conversation, "continuation": other.continuation,
            "answers": [{"done": {"text": "x"}}]});
        let error = host.told("tools.resume", &args.to_string()).unwrap_err();
        let expected = format!("conversation `{}` does not exist", other.conversation);
        assert_eq!((error.code.as_str(), error.message.as_str()), ("not-found", &*expected));
    }
}
