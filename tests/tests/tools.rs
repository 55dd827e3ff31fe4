#![expect(clippy::unwrap_used, reason = "a panic in a test is its failure")]
//! The tools of an agent: every answer keeps its bound for any stored texts, and the calls that
//! answers name lead to the whole text.

use lcm_testing::{
    Host, Json,
    host::StoreMode,
    scripted_model::ScriptedModel,
    simulation::random::Random,
    vector_runner::{Answers, drive},
};
use lcm_text::base::tokens;

/// Bound on the tokens of an answer, as in the interface.
const ANSWER_TOKENS_MAX: u32 = 2_000;

/// Calls a tool that may read the whole store.
fn ask(host: &mut Host, conversation: &str, name: &str, arguments: Json) -> (String, bool) {
    let args = Json::object([
        ("conversation", conversation.into()),
        ("name", name.into()),
        ("arguments_json", arguments),
        ("scope", "store".into()),
    ]);
    let answer = host.ask("tools.call", &args).unwrap();
    let done = answer.field("done").unwrap();
    let text = done.field("text").and_then(Json::as_str).unwrap().to_owned();
    (text, done.field("is_error") == Some(&Json::Bool(true)))
}

/// Creates text of every token price: letters, characters of a token and a half, escapes, lines.
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
            // Every line after the head, the count and the next call is a match.
            assert!(answer.lines().skip(3).all(|line| line.starts_with("- msg_")), "{answer}");
        }
        let wrong = Json::object([("id", conversation.as_str().into())]);
        let (answer, is_error) = ask(&mut host, "other", "lcm_describe", wrong.clone());
        assert!(is_error && answer.lines().count() == 1 && tokens::estimate(&answer) <= 200);
        // The conversation's own id describes the conversation.
        let (answer, is_error) = ask(&mut host, &conversation, "lcm_describe", wrong);
        assert!(!is_error && answer.lines().count() == 3 && tokens::estimate(&answer) <= 300);
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

/// Makes a call as an agent does that may read the whole store, with a model that quotes passages.
fn told(host: &mut Host, caller: Option<&str>, name: &str, arguments: &Json) -> String {
    let args = Json::object([
        ("conversation", "a".into()),
        ("name", name.into()),
        ("arguments_json", arguments.clone()),
        ("grant", caller.map_or(Json::Null, Json::from)),
        ("scope", "store".into()),
    ]);
    let mut outcome = host.ask("tools.call", &args).unwrap();
    while let Some(needs) = outcome.field("needs-completions") {
        let request = needs.field("requests").unwrap().element(0).unwrap().clone();
        let args = Json::object([("request", request)]);
        let done = host.ask("compaction.complete_offline", &args).unwrap();
        let args = Json::object([
            ("conversation", "a".into()),
            ("continuation", needs.field("continuation").unwrap().clone()),
            ("answers", Json::Array(vec![Json::object([("done", done)])])),
            ("scope", "store".into()),
        ]);
        outcome = host.ask("tools.resume", &args).unwrap();
    }
    let done = outcome.field("done").unwrap();
    let text = done.field("text").and_then(Json::as_str).unwrap().to_owned();
    assert_eq!(done.field("is_error"), Some(&Json::Bool(false)), "{name} {arguments:?}: {text}");
    text
}

/// Returns the calls that an answer prints.
fn printed(answer: &str) -> Vec<(String, Json)> {
    let call = |line: &str| {
        let (name, rest) = line.strip_prefix("Next: ")?.split_once(" {")?;
        let (arguments, _) = rest.rsplit_once('}')?;
        Some((name.to_owned(), Json::parse(&format!("{{{arguments}}}")).unwrap()))
    };
    answer.lines().filter_map(call).collect()
}

const ELSEWHERE: &str = "b \"quoted\"";

/// Creates the conversations `a` and [`ELSEWHERE`] without a family, both compacted, and a grant of
/// `a` for the other.
fn apart() -> (Host, String) {
    let config = Json::object([
        ("fresh_tail_messages_max", 1_u64.into()),
        ("leaf_chunk_tokens_max", 1_000_u64.into()),
    ]);
    let mut host = Host::new(Some(config), StoreMode::Plain).unwrap();
    for (conversation, bird) in [("a", "wren"), (ELSEWHERE, "heron")] {
        let of = |number: u64| {
            let filler = "so ".repeat(99);
            message(&format!("the {bird} number {number} is called {bird}_{number} {filler}"))
        };
        append(&mut host, conversation, (0..30).map(of).collect());
        let args = Json::object([
            ("conversation", conversation.into()),
            ("budget", 100_000_u64.into()),
            ("options", Json::object([("force", Json::Bool(true))])),
        ]);
        drive(&mut host, &args, Answers::Offline).unwrap().unwrap();
    }
    let limits = Json::object([
        ("conversations", Json::Array(vec![ELSEWHERE.into()])),
        ("tokens_max", 100_000_u64.into()),
    ]);
    let args = Json::object([("conversation", "a".into()), ("grant_json", limits)]);
    let grant = host.ask("recall.grant", &args).unwrap();
    let grant = Json::parse(grant.as_str().unwrap()).unwrap();
    let id = grant.field("id").and_then(Json::as_str).unwrap().to_owned();
    (host, id)
}

/// Goal: a question with too few tokens gets an answer about the tokens, not about missing facts.
/// Method: a stored fact and an unknown word, each with and without a cap too small for a passage.
#[test]
fn a_cap_that_holds_no_passage_is_not_told_as_nothing_found() {
    let (mut host, _) = apart();
    let mut ask = |prompt: &str, cap: u64| {
        let arguments = [("prompt", prompt.into()), ("tokenCap", cap.into())];
        told(&mut host, None, "lcm_expand_query", &Json::object(arguments))
    };
    let (known, unknown) = ("What is the wren number 7 called?", "zeppelin");
    let cut = "What was found does not fit into the tokens that may be read.";
    let none = "Nothing was found for the question.";
    assert!(ask(known, 1).contains(cut) && !ask(known, 1).contains(none));
    assert!(ask(known, 1_000).contains("wren_7"));
    for cap in [1, 1_000] {
        let answer = ask(unknown, cap);
        assert!(answer.contains(none) && !answer.contains(cut), "{answer}");
    }
}

/// Goal: `all_conversations` and `only` exclude each other. Method: both options together are
/// refused by name; a tool with a conversation and `allConversations` searches all conversations.
#[test]
fn all_and_only_do_not_go_together() {
    let (mut host, _) = apart();
    let both = |key| {
        Json::object([
            (key, "wren".into()),
            ("all_conversations", Json::Bool(true)),
            ("only", Json::Bool(true)),
        ])
    };
    for (name, key, document) in [
        ("recall.grep", "query_json", both("pattern")),
        ("recall.ask_plan", "question_json", both("question")),
    ] {
        let args = Json::object([("conversation", "a".into()), (key, document)]);
        let refused = host.ask(name, &args).unwrap_err().to_string();
        let rule = "`only` and `all_conversations` are mutually exclusive";
        assert!(refused.contains(rule), "{name}: {refused}");
    }
    let arguments = Json::object([
        ("pattern", "heron_7".into()),
        ("conversationId", "a".into()),
        ("allConversations", Json::Bool(true)),
    ]);
    assert!(told(&mut host, None, "lcm_grep", &arguments).contains("heron_7"));
}

/// Lists calls from `a` about the other conversation: of the agent, and on a grant.
fn calls_about_elsewhere(grant: &str) -> Vec<(Option<&str>, String, Json)> {
    let place = ("conversationId", Json::from(ELSEWHERE));
    let all = ("allConversations", Json::Bool(true));
    let mut calls = Vec::new();
    let mut add = |caller, name: &str, members: &[(&'static str, Json)], further: &[_]| {
        let members = [members, further].concat().into_iter();
        let members = members.map(|(key, value): (&str, Json)| (key.to_owned(), value)).collect();
        calls.push((caller, name.to_owned(), Json::Object(members)));
    };
    let scoped = |scope: &str| [("pattern", Json::from("heron")), ("scope", scope.into())];
    for further in [all, place.clone()] {
        let further = [further];
        add(None, "lcm_grep", &scoped("messages"), &further);
        add(None, "lcm_grep", &scoped("summaries"), &further);
        let prompt = [("prompt", Json::from("How is heron number 7 called?"))];
        add(None, "lcm_expand_query", &prompt, &further);
    }
    for further in [&[][..], &[place]] {
        add(Some(grant), "lcm_grep", &scoped("messages"), further);
        add(Some(grant), "lcm_grep", &scoped("summaries"), further);
        for messages in [false, true] {
            let query = [("query", Json::from("heron")), ("includeMessages", Json::Bool(messages))];
            add(Some(grant), "lcm_expand", &query, further);
        }
    }
    calls
}

/// Goal: a call that an answer prints works unchanged. Method: calls about a conversation without a
/// family, from another conversation; the test makes each printed call, and the calls that the
/// answers print.
#[test]
fn a_call_that_an_answer_prints_works_as_printed() {
    let (mut host, grant) = apart();
    let mut calls = calls_about_elsewhere(&grant);
    let (begun, mut made) = (calls.len(), 0);
    for depth in 0..4 {
        let mut following = Vec::new();
        for (caller, name, arguments) in calls {
            let answer = told(&mut host, caller, &name, &arguments);
            assert!(answer.contains("heron"), "{name} {arguments:?}: {answer}");
            let printed = printed(&answer);
            let is_whole = depth > 0 || name == "lcm_expand";
            assert!(is_whole || !printed.is_empty(), "{name} {arguments:?}: {answer}");
            following.extend(printed.into_iter().map(|(name, args)| (caller, name, args)));
            made += 1;
        }
        calls = following;
    }
    assert!(made >= 2 * begun, "{made} of {begun}");
}

/// Goal: a model that makes the calls printed by `lcm_expand` sees every message and summary once,
/// even if no answer holds the whole of a summary. Method: messages of every size and several caps,
/// some too small for one message.
#[test]
fn the_calls_that_an_expansion_prints_show_everything_once() {
    let config = r#"{"fresh_tail_messages_max":1,"fresh_tail_tokens_max":null,
        "leaf_chunk_tokens_max":6000,"condense_leaves_min":3,"condensed_tokens_target":512,
        "summary_prefix_tokens_target":1000}"#;
    let mut host = Host::new(Some(Json::of(config)), StoreMode::Plain).unwrap();
    let mut random = Random::new(3);
    // Each text has its number: lists are compared by what they say.
    let said = |random: &mut Random, number: usize| {
        let words = *random.pick(&[3, 40, 40, 200, 700]);
        message(&format!("{number} {} heron", "word ".repeat(words)))
    };
    for batch in 0..15 {
        let messages = (0..10).map(|place| said(&mut random, 10 * batch + place)).collect();
        append(&mut host, "a", messages);
    }
    let script = r#"[{"tokens":300,"purpose":"leaf","times":0},
        {"tokens":200,"purpose":"condensed","times":0}]"#;
    host.model = ScriptedModel::new(Json::of(script).elements()).unwrap();
    let args = r#"{"conversation":"a","budget":100000,"options":{"force":true}}"#;
    drive(&mut host, &Json::of(args), Answers::Scripted).unwrap().unwrap();
    let page = host.told("admin.listing", r#"{"kind":"summaries","conversation":"a"}"#).unwrap();
    let items = page.field("items").unwrap().elements().to_vec();
    let top = items.iter().find(|item| item.number("depth") == 1).unwrap();
    let (first, last) = (top.number("seq_first"), top.number("seq_last"));
    let is_below = |item: &&Json| item.number("depth") == 0 && item.number("seq_last") <= last;
    let leaves: Vec<String> = items.iter().filter(is_below).map(|item| item.text("id")).collect();
    assert!(leaves.len() > 2 && last > 40);
    for (roots, cap) in [
        (vec![top.text("id")], None),
        (vec![top.text("id")], Some(700)),
        (leaves.clone(), None),
        (leaves.clone(), Some(1_000)),
        (leaves.iter().rev().cloned().collect(), Some(150)),
    ] {
        let limits = r#"{"conversation":"a","grant_json":{"tokens_max":1000000}}"#;
        let grant = host.told("recall.grant", limits).unwrap().text("id");
        let ids = Json::Array(roots.iter().map(|id| id.as_str().into()).collect());
        let arguments = Json::object([
            ("summaryIds", ids),
            ("includeMessages", Json::Bool(true)),
            ("tokenCap", cap.map_or(Json::Null, |cap: u64| cap.into())),
        ]);
        let mut calls = vec![("lcm_expand".to_owned(), arguments)];
        let (mut seen, mut expansions) = (Vec::new(), 0);
        while let Some((name, arguments)) = calls.pop() {
            let answer = told(&mut host, Some(&grant), &name, &arguments);
            if name == "lcm_describe" {
                // Another test covers the pieces of a text.
                seen.push(arguments.text("id"));
                continue;
            }
            expansions += 1;
            assert!(expansions < 400, "{answer}");
            calls.extend(printed(&answer));
            let lines = answer.lines().filter(|line| line.starts_with("- "));
            lines.clone().for_each(|line| has_its_range(line, &items));
            seen.extend(lines.map(|line| line.split(' ').nth(1).unwrap().to_owned()));
        }
        let mut expected: Vec<String> =
            (first..=last).map(|seq| format!("msg_{}{seq:010x}", tag(&seen))).collect();
        if roots.len() == 1 {
            expected.extend(leaves.iter().cloned());
        }
        seen.sort();
        expected.sort();
        assert_eq!(seen, expected, "{roots:?} {cap:?}");
        assert!(expansions > 2, "{expansions}");
    }
}

/// Checks that the line of a summary names the same messages as the listing.
fn has_its_range(line: &str, items: &[Json]) {
    let id = line.split(' ').nth(1).unwrap();
    if !id.starts_with("sum_") {
        return;
    }
    let item = items.iter().find(|item| item.text("id") == id).unwrap();
    let (first, last) = (item.number("seq_first"), item.number("seq_last"));
    assert!(line.contains(&format!("messages {first} to {last}: ")), "{line}");
}

/// Returns the digits by which message ids name their conversation.
fn tag(seen: &[String]) -> String {
    let id = seen.iter().find_map(|id| id.strip_prefix("msg_")).unwrap();
    id.get(..6).unwrap().to_owned()
}

/// Goal: an error names an id after which an expansion cannot continue. Method: one id of each
/// kind.
#[test]
fn an_expansion_goes_on_behind_what_is_below_it() {
    let config = r#"{"fresh_tail_messages_max":1,"leaf_chunk_tokens_max":1000}"#;
    let mut host = Host::new(Some(Json::of(config)), StoreMode::Plain).unwrap();
    append(&mut host, "a", (0..12).map(|_| message(&"word ".repeat(150))).collect());
    let script = r#"[{"tokens":100,"times":0}]"#;
    host.model = ScriptedModel::new(Json::of(script).elements()).unwrap();
    let args = r#"{"conversation":"a","budget":100000,"options":{"force":true}}"#;
    drive(&mut host, &Json::of(args), Answers::Scripted).unwrap().unwrap();
    let page = host.told("admin.listing", r#"{"kind":"summaries","conversation":"a"}"#).unwrap();
    let id = page.field("items").unwrap().element(0).unwrap().text("id");
    let grant = host.told("recall.grant", r#"{"conversation":"a","grant_json":{}}"#).unwrap();
    let mut refused = |arguments: String| {
        let args = Json::object([
            ("conversation", "a".into()),
            ("name", "lcm_expand".into()),
            ("arguments_json", Json::of(&arguments)),
            ("grant", grant.text("id").as_str().into()),
        ]);
        let done = host.ask("tools.call", &args).unwrap().field("done").unwrap().clone();
        assert_eq!(done.field("is_error"), Some(&Json::Bool(true)), "{done}");
        done.text("text")
    };
    for after in ["msg_0123456789abcdef", "sum_0123456789abcdef", "x"] {
        let more = r#""includeMessages":true"#;
        let told = refused(format!(r#"{{"summaryIds":["{id}"],{more},"after":"{after}"}}"#));
        assert!(told.contains("`after` must be an entry that this call lists below"), "{told}");
        assert!(told.contains(&format!("got `{after}`")), "{told}");
    }
    let told = refused(r#"{"query":"word","after":"x"}"#.to_owned());
    assert!(told.contains("`after` must not be given with `query`"), "{told}");
}
