//! A search for an expression over several answers: together they have the hits of one scan.

use std::collections::BTreeSet;

use lcm_testing::{
    Host, Json,
    host::StoreMode,
    scripted_model::ScriptedModel,
    vector_runner::{Answers, drive},
};
use serde_json::{Value, json};

use super::Numbers;

/// Tokens that no conversation here fits, so that compaction does what is asked.
const BUDGET: u64 = 1_000_000;

/// A hit: its conversation and its id.
type Hit = (String, String);

/// The texts of the messages of a history, and the expression to search for.
#[derive(Clone, Copy)]
struct Kind {
    pattern: &'static str,
    /// First characters of a message. If they are not ASCII, only the slow simulation of the
    /// expression can read the message.
    begins: &'static str,
    filler: usize,
    count: usize,
}

/// Two kinds of histories; one query can search only a part of each.
const KINDS: [Kind; 2] = [
    Kind { pattern: r"needle \d+", begins: "", filler: 1_700, count: 500 },
    Kind { pattern: r"\bneedle\b[a-z 0-9]{0,70}", begins: "\u{e9} ", filler: 3, count: 1_400 },
];

/// The conversations of each history; the first two are a family.
const CONVERSATIONS: [&str; 3] = ["a", "b", "c"];

struct World {
    host: Host,
    numbers: Numbers,
    kind: Kind,
    /// Number of messages so far.
    said: usize,
    /// All messages that match.
    matching: BTreeSet<Hit>,
}

impl World {
    fn new(kind: Kind, seed: u64) -> Self {
        let host = Host::new(None, StoreMode::Plain).unwrap();
        Self { host, numbers: Numbers(seed), kind, said: 0, matching: BTreeSet::new() }
    }

    /// Appends messages whose times ascend, descend, are equal, or are random.
    fn append(&mut self, conversation: &str, count: usize) {
        let order = self.numbers.below(4);
        let mut seq = self.messages(conversation);
        let together = if self.kind.filler > 100 { 20 } else { 60 };
        for batch in 0..count.div_ceil(together) {
            let mut messages = Vec::new();
            for at in batch * together..count.min(together * (batch + 1)) {
                let ms = 1_600_000_000_000
                    + match order {
                        0 => at * 1_000,
                        1 => (count - at) * 1_000,
                        2 => 0,
                        _ => self.numbers.below(50) * 1_000,
                    };
                let is_match = self.numbers.below(3) == 0;
                let word = if is_match { "needle" } else { "needles" };
                let filler = "and so on ".repeat(self.kind.filler);
                let text = format!("{}{word} {} {filler}", self.kind.begins, self.said);
                messages.push(json!({"role": "user", "content": text, "timestamp": ms}));
                self.said += 1;
                seq += 1;
                if is_match {
                    self.matching.insert((conversation.into(), format!("seq {seq}")));
                }
            }
            let args = json!({"conversation": conversation, "messages": messages,
                "options": {"append_mode": "new"}});
            self.host.told("ingest.append", &args.to_string()).unwrap();
        }
        if conversation != "c" {
            let args = json!({"conversation": conversation, "verb": "family",
                "arguments_json": {"family": "f"}});
            self.host.told("admin.call", &args.to_string()).unwrap();
        }
    }

    fn messages(&mut self, conversation: &str) -> u64 {
        let args = json!({"conversation": conversation}).to_string();
        self.host.told("admin.status", &args).map_or(0, |status| status.number("messages"))
    }

    /// Compacts a conversation with a scripted model; every second summary has a match.
    fn compact(&mut self, conversation: &str) {
        let script = r#"[{"text":"\u00e9 a needle 7 in hay","purpose":"leaf","times":1},
            {"text":"nothing but hay","purpose":"leaf","times":1},
            {"text":"\u00e9 a needle 8 in hay","times":0}]"#;
        self.host.model = ScriptedModel::new(Json::of(script).elements()).unwrap();
        let options = json!({"force": true});
        let args = json!({"conversation": conversation, "budget": BUDGET, "options": options});
        let _ = drive(&mut self.host, &Json::of(&args.to_string()), Answers::Scripted).unwrap();
    }

    /// Returns all current matches of these conversations.
    fn expected(&mut self, conversations: &[&str], scope: &str) -> BTreeSet<Hit> {
        let mut expected = BTreeSet::new();
        let is_of = |hit: &&Hit| conversations.contains(&hit.0.as_str());
        if scope != "summaries" {
            expected.extend(self.matching.iter().filter(is_of).cloned());
        }
        for conversation in conversations.iter().filter(|_| scope != "messages") {
            let mut cursor = Value::Null;
            loop {
                let args = json!({"kind": "summaries", "conversation": conversation,
                    "cursor": cursor});
                let page = self.host.told("admin.listing", &args.to_string()).unwrap();
                for item in page.field("items").unwrap().elements() {
                    let id = item.text("id");
                    let args = json!({"conversation": conversation, "id": id});
                    let told = self.host.told("recall.describe", &args.to_string()).unwrap();
                    if told.text("text").contains("needle") {
                        expected.insert(((*conversation).into(), id));
                    }
                }
                match page.field("cursor").and_then(Json::as_str) {
                    Some(next) => cursor = next.into(),
                    None => break,
                }
            }
        }
        expected
    }

    fn grep(&mut self, query: &Value, grant: Option<&str>) -> Value {
        let args = json!({"conversation": "a", "query_json": query, "grant": grant}).to_string();
        let answer = self.host.ask("recall.grep", &Json::parse(&args).unwrap());
        let answer = answer.unwrap_or_else(|error| panic!("{query}: {error:?}"));
        serde_json::from_str(answer.as_str().unwrap()).unwrap()
    }

    /// Returns the hits of a query and of all its continuations; calls `meanwhile` before each
    /// continuation.
    fn pages(
        &mut self,
        mut query: Value,
        grant: Option<&str>,
        meanwhile: &mut dyn FnMut(&mut Self),
    ) -> (BTreeSet<Hit>, usize) {
        let (mut hits, mut answers, mut total) = (BTreeSet::new(), 0, 0);
        loop {
            let answer = self.grep(&query, grant);
            answers += 1;
            let next = answer["cursor"].as_str().map(str::to_owned);
            for hit in answer["matches"].as_array().unwrap() {
                let text = |key: &str| hit[key].as_str().unwrap_or_default().to_owned();
                let is_message = hit["type"] == "message";
                let id = if is_message { format!("seq {}", hit["seq"]) } else { text("id") };
                let hit = (text("conversation"), id);
                assert!(hits.insert(hit.clone()), "{hit:?} twice, at {query}");
            }
            total += answer["total"].as_u64().unwrap() as usize;
            assert!(answers > 1 || next.is_some() || total >= hits.len());
            let notes = answer["notes"].as_array().unwrap();
            assert_eq!(notes.contains(&"scan-limited".into()), next.is_some());
            assert_eq!(total, hits.len(), "{answer}");
            let Some(next) = next else { return (hits, answers) };
            assert!(answer["truncated"] == true);
            assert!(answers < 3_000, "{query} does not end");
            query["cursor"] = next.into();
            meanwhile(self);
        }
    }
}

/// Members of a query that choose the searched conversations, with these conversations.
const SEARCHED: [(&str, &[&str]); 3] = [
    (r#"{"only":true}"#, &["a"]),
    ("{}", &["a", "b"]),
    (r#"{"all_conversations":true}"#, &CONVERSATIONS),
];

fn query(kind: Kind, searched: &str, scope: &str, limit: usize) -> Value {
    let mut query: Value = serde_json::from_str(searched).unwrap();
    query["pattern"] = kind.pattern.into();
    query["mode"] = "regex".into();
    query["scope"] = scope.into();
    query["limit"] = limit.into();
    query
}

/// Goal: a search with continuations finds the same as one scan, each hit once, and ends. Method:
/// histories with times in any order; one query can search only a part of each.
#[test]
fn answers_that_go_on_are_together_what_one_scan_finds() {
    for (kind, seed) in KINDS.into_iter().zip(1..) {
        let mut world = World::new(kind, seed);
        for conversation in CONVERSATIONS.into_iter().cycle().take(6) {
            let count = 1 + world.numbers.below(kind.count / 3);
            world.append(conversation, count);
            world.compact(conversation);
        }
        world.append("a", kind.count);
        for (searched, conversations) in SEARCHED {
            for (scope, limit) in [("both", 200), ("messages", 50), ("both", 7)] {
                let expected = world.expected(conversations, scope);
                assert!(expected.len() > 200);
                let query = query(kind, searched, scope, limit);
                let (found, answers) = world.pages(query.clone(), None, &mut |_| {});
                assert_eq!(found, expected, "{query}");
                assert!(answers > 2 && answers >= found.len().div_ceil(limit), "{answers}");
            }
        }
    }
}

/// Goal: messages and summaries that are added between two answers do not change the hits among the
/// earlier ones. Method: as above, with appends to all conversations and compaction before each
/// continuation.
#[test]
fn a_search_goes_on_while_conversations_grow() {
    for (kind, seed) in KINDS.into_iter().zip(11..) {
        let mut world = World::new(kind, seed);
        for conversation in CONVERSATIONS {
            world.append(conversation, kind.count);
        }
        for (searched, conversations) in SEARCHED {
            world.compact("a");
            let before = world.expected(conversations, "both");
            let mut turn = 0;
            let (found, answers) =
                world.pages(query(kind, searched, "both", 100), None, &mut |world| {
                    turn += 1;
                    world.append(CONVERSATIONS[turn % 3], 20);
                    world.compact(CONVERSATIONS[turn % 3]);
                });
            assert!(answers > 2, "{answers}");
            let missed: Vec<&Hit> = before.difference(&found).collect();
            assert_eq!(missed, Vec::<&Hit>::new(), "{searched}");
            let after = world.expected(conversations, "both");
            let more: Vec<&Hit> = found.difference(&after).collect();
            assert_eq!(more, Vec::<&Hit>::new(), "{searched}");
        }
    }
}

/// Goal: a search with a grant continues, too; the next grant continues where the last one was
/// spent. Method: several grants that cover everything; each can read a part.
#[test]
fn a_search_goes_on_with_another_grant() {
    let kind = KINDS[1];
    let mut world = World::new(kind, 5);
    world.append("a", 400);
    world.append("b", 400);
    let expected = world.expected(&["a", "b"], "both");
    let mut asked = query(kind, "{}", "both", 200);
    let mut found = BTreeSet::new();
    for turn in 0.. {
        assert!(turn < 100);
        let limits = json!({"conversations": ["a", "b"], "tokens_max": 300});
        let args = json!({"conversation": "a", "grant_json": limits}).to_string();
        let grant = world.host.told("recall.grant", &args).unwrap().text("id");
        let answer = world.grep(&asked, Some(&grant));
        for hit in answer["matches"].as_array().unwrap() {
            let conversation = hit["conversation"].as_str().unwrap().to_owned();
            assert!(found.insert((conversation, format!("seq {}", hit["seq"]))));
        }
        let args = json!({"conversation": "a", "grant": grant}).to_string();
        world.host.told("recall.revoke", &args).unwrap();
        let Some(next) = answer["cursor"].as_str() else { break };
        asked["cursor"] = next.into();
    }
    assert_eq!(found, expected);
}

/// Goal: a model that makes the calls that answers name sees each match once, even if an answer has
/// fewer lines than its search has matches. Method: calls of the tool with the named arguments.
#[test]
fn a_model_that_goes_on_as_it_is_told_sees_each_match_once() {
    let kind = KINDS[1];
    let mut world = World::new(kind, 9);
    world.append("a", 1_500);
    world.append("b", 300);
    world.compact("a");
    for (more, conversations) in
        [(r#"{"conversationId":"a"}"#, &["a"][..]), (r#"{"neighbours":2}"#, &["a", "b"])]
    {
        let expected = world.expected(conversations, "both");
        let mut arguments: Value = serde_json::from_str(more).unwrap();
        (arguments["pattern"], arguments["mode"]) = (kind.pattern.into(), "regex".into());
        let (mut found, mut answers) = (BTreeSet::new(), 0);
        loop {
            let args = json!({"conversation": "a", "name": "lcm_grep",
                "arguments_json": arguments.to_string(), "scope": "store"});
            let answer = world.host.told("tools.call", &args.to_string()).unwrap();
            let text = answer.field("done").unwrap().text("text");
            answers += 1;
            assert!(answers < 200, "{text}");
            for line in text.lines().filter(|line| line.starts_with("- ")) {
                let id = line.split(' ').nth(1).unwrap();
                let is_b = line.contains(" of b: ");
                let of = if is_b { "b" } else { "a" };
                let seq = line.split(" seq ").nth(1).filter(|_| id.starts_with("msg_"));
                let name = seq.map(|seq| seq.split([' ', ':']).next().unwrap());
                let name = name.map_or(id.to_owned(), |seq| format!("seq {seq}"));
                assert!(found.insert((of.to_owned(), name)), "twice: {line}");
            }
            let Some((_, rest)) = text.split_once("\"startId\":\"") else { break };
            arguments["startId"] = rest.split('"').next().unwrap().into();
        }
        assert_eq!(found, expected, "{more}");
        assert!(answers > 10, "{answers}");
    }
}

/// Goal: a search with a grant for some summaries reads only the messages below these summaries.
/// Method: a conversation of which one query searches a part, and a grant for its first leaves,
/// which one query searches completely.
#[test]
fn a_grant_for_summaries_looks_through_nothing_else() {
    let kind = KINDS[1];
    let mut world = World::new(kind, 7);
    world.append("a", 200);
    world.compact("a");
    let page = world.host.told("admin.listing", r#"{"kind":"summaries","conversation":"a"}"#);
    let page = page.unwrap();
    let leaves = page.field("items").unwrap().elements();
    let leaf = leaves.iter().find(|leaf| leaf.number("seq_first") == 1).unwrap();
    let last = leaf.number("seq_last");
    world.append("a", 1_500);
    let mut within = world.expected(&["a"], "messages");
    within.retain(|(_, seq)| seq["seq ".len()..].parse::<u64>().unwrap() <= last);
    let limits = json!({"summary_ids": [leaf.text("id")], "tokens_max": 1_000_000});
    let args = json!({"conversation": "a", "grant_json": limits}).to_string();
    let grant = world.host.told("recall.grant", &args).unwrap().text("id");
    let all = query(kind, r#"{"only":true}"#, "messages", 200);
    assert!(world.grep(&all, None)["cursor"].is_string());
    let (found, answers) = world.pages(all, Some(&grant), &mut |_| {});
    assert!(last > 20 && !within.is_empty());
    assert_eq!((found, answers), (within, 1));
}

fn refusal(world: &mut World, query: &Value) -> (String, String) {
    let args = json!({"conversation": "a", "query_json": query}).to_string();
    let error = world.host.ask("recall.grep", &Json::parse(&args).unwrap()).unwrap_err();
    (format!("{:?}", error.code), error.message.clone())
}

/// Goal: a cursor works as the answer gave it, and an error names what is wrong with another one.
/// Method: one example of each error.
#[test]
fn where_to_go_on_must_be_of_the_search() {
    let kind = KINDS[1];
    let mut world = World::new(kind, 3);
    world.append("a", 900);
    world.append("c", 10);
    let whole = query(kind, r#"{"all_conversations":true}"#, "messages", 50);
    let answer = world.grep(&whole, None);
    let id = answer["cursor"].as_str().unwrap();
    let start = |id: &str, more: &str| {
        let mut query = query(kind, r#"{"all_conversations":true}"#, "messages", 50);
        query["cursor"] = id.into();
        let more: Value = serde_json::from_str(more).unwrap();
        more.as_object().unwrap().iter().for_each(|(key, value)| query[key] = value.clone());
        query
    };
    world.grep(&start(id, "{}"), None);
    let (name, _) = id.rsplit_once('m').unwrap();
    for (query, code) in [
        (start("msg_0123456789abcdef", "{}"), "InvalidInput"),
        (start("scan_zz", "{}"), "InvalidInput"),
        (start(&format!("{name}m0"), "{}"), "InvalidInput"),
        (start(&format!("{name}m1000"), "{}"), "InvalidInput"),
        (start(&format!("{name}s1"), "{}"), "InvalidInput"),
        (start("scan_0123456789abcdef_m1", "{}"), "InvalidInput"),
        (start(id, r#"{"start_byte":1}"#), "InvalidInput"),
        (start(id, r#"{"mode":"full-text"}"#), "InvalidInput"),
        (start(id, r#"{"scope":"files"}"#), "InvalidInput"),
        // Cursors of other queries, which search other entries.
        (start(id, r#"{"scope":"both"}"#), "InvalidInput"),
        (start(id, r#"{"pattern":"needle"}"#), "InvalidInput"),
        (start(id, r#"{"since":"2001-01-01"}"#), "InvalidInput"),
        (start(id, r#"{"before":"2071-01-01"}"#), "InvalidInput"),
        (start(id, r#"{"all_conversations":false}"#), "InvalidInput"),
        (start(id, r#"{"all_conversations":false,"only":true}"#), "InvalidInput"),
    ] {
        let (found, message) = refusal(&mut world, &query);
        assert_eq!(found, code, "{query}: {message}");
        assert!(
            message.contains("`cursor`")
                || message.contains("`start_byte`")
                || message.contains(id),
            "{message}"
        );
    }
    // The bound on matches and the number of neighbours may change.
    world.grep(&start(id, r#"{"limit":3,"neighbours":1}"#), None);
    let args = json!({"conversation": "c", "query_json": start(id, "{}")}).to_string();
    let error = world.host.ask("recall.grep", &Json::parse(&args).unwrap()).unwrap_err();
    assert_eq!(format!("{:?}", error.code), "InvalidInput");
}

/// Goal: an expression that needs too many steps for the newest messages gives the same error in
/// every scope with messages. Method: an expression with hundreds of states at once in its
/// simulation.
#[test]
fn an_expression_that_is_too_costly_is_an_error_in_every_scope() {
    let mut world = World::new(KINDS[1], 3);
    world.append("a", 900);
    world.append("b", 20);
    world.compact("a");
    for scope in ["messages", "both"] {
        for searched in [r#"{"only":true}"#, "{}", r#"{"all_conversations":true}"#] {
            let mut query = query(KINDS[1], searched, scope, 50);
            query["pattern"] = r"\bneedle\b(?s).{0,900}[QZ]?".into();
            let (code, message) = refusal(&mut world, &query);
            assert_eq!(code, "LimitExceeded", "{query}");
            assert!(message.starts_with("`pattern` takes too many steps"), "{message}");
        }
    }
}
