#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Neighbours: the messages beside those that a search finds.

use lcm_testing::{
    Host, Json,
    host::StoreMode,
    vector_runner::{Answers, drive},
};

fn append(host: &mut Host, messages: Vec<Json>) {
    let args = Json::object([
        ("conversation", "c".into()),
        ("messages", Json::Array(messages)),
        ("options", Json::object([("append_mode", "new".into())])),
    ]);
    host.ask("ingest.append", &args).unwrap();
}

fn said(text: &str) -> Json {
    Json::object([("role", "user".into()), ("content", text.into())])
}

fn grep(host: &mut Host, query: &str, grant: Option<&str>) -> Json {
    let mut args = vec![("conversation", "c".into()), ("query_json", Json::of(query))];
    args.extend(grant.map(|grant| ("grant", grant.into())));
    let args = Json::Object(args.into_iter().map(|(key, one)| (key.to_owned(), one)).collect());
    let answer = host.ask("recall.grep", &args).unwrap();
    Json::of(answer.as_str().unwrap())
}

fn seqs(json: &Json, side: &str) -> Vec<u64> {
    json.list(side).iter().map(|one| one.number("seq")).collect()
}

/// Goal: every hit has the messages beside it, for any other hits, in packs or sealed; a query for
/// no neighbours gets none. Method: numbered messages; the numbers give the expected neighbours.
#[test]
fn every_message_that_is_found_has_those_beside_it() {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    for from in (1..=600).step_by(100) {
        append(&mut host, (from..from + 100).map(|n| said(&format!("word number{n}"))).collect());
    }
    for round in 0..2 {
        for count in 0..=3 {
            let query = format!(
                r#"{{"pattern":"word","scope":"messages","limit":200,"neighbours":{count}}}"#
            );
            let answer = grep(&mut host, &query, None);
            assert_eq!(answer.list("matches").len(), 200);
            for one in answer.list("matches") {
                if count == 0 {
                    assert!(
                        one.field("neighbours_before").is_none()
                            && one.field("neighbours_after").is_none()
                    );
                    continue;
                }
                let seq = one.number("seq");
                let expected: Vec<u64> = (seq.saturating_sub(count).max(1)..seq).collect();
                assert_eq!(seqs(one, "neighbours_before"), expected, "{round}");
                let expected: Vec<u64> = (seq + 1..=600.min(seq + count)).collect();
                assert_eq!(seqs(one, "neighbours_after"), expected, "{round}");
                for beside in
                    one.list("neighbours_before").iter().chain(one.list("neighbours_after"))
                {
                    let text = format!("word number{}", beside.number("seq"));
                    assert_eq!(beside.field("snippet").unwrap().as_str(), Some(text.as_str()));
                }
            }
        }
        let args = Json::object([
            ("budget", 1_000_u64.into()),
            ("options", Json::object([("force", Json::Bool(true))])),
        ]);
        drive(&mut host, &args, Answers::Offline).unwrap().unwrap();
    }
}

/// Goal: messages that a grant does not cover are not shown as neighbours of a hit, and every shown
/// neighbour is charged.
#[test]
fn neighbours_end_where_a_grant_does() {
    let config = Json::object([
        ("leaf_chunk_tokens_max", 1_000_u64.into()),
        ("fresh_tail_messages_max", 4_u64.into()),
    ]);
    let mut host = Host::new(Some(config), StoreMode::Plain).unwrap();
    append(&mut host, (0..60).map(|n| said(&format!("w{n} {}", "words ".repeat(60)))).collect());
    let args = Json::object([
        ("budget", 3_000_u64.into()),
        ("options", Json::object([("force", Json::Bool(true))])),
    ]);
    drive(&mut host, &args, Answers::Offline).unwrap().unwrap();
    let args = Json::object([("kind", "summaries".into()), ("conversation", "c".into())]);
    let page = host.ask("admin.listing", &args).unwrap();
    let page = Json::of(page.as_str().unwrap());
    let leaf = page.list("items").iter().find(|one| one.number("depth") == 0).unwrap();
    let (first, last) = (leaf.number("seq_first"), leaf.number("seq_last"));
    assert!(first + 2 <= last && last < 60, "{first} {last}");
    let id = leaf.field("id").unwrap().as_str().unwrap();
    let limits = Json::of(&format!("{{\"summary_ids\":[\"{id}\"]}}"));
    let args = Json::object([("conversation", "c".into()), ("grant_json", limits)]);
    let made = host.ask("recall.grant", &args).unwrap();
    let made = Json::of(made.as_str().unwrap());
    let grant = made.field("id").unwrap().as_str().unwrap();
    let query = r#"{"pattern":"words","scope":"messages","limit":200,"neighbours":3}"#;
    let answer = grep(&mut host, query, Some(grant));
    assert_eq!(answer.list("matches").len(), usize::try_from(last + 1 - first).unwrap());
    let mut tokens = 0;
    let cost = |one: &Json| {
        lcm_text::base::tokens::estimate(one.field("snippet").unwrap().as_str().unwrap())
    };
    for one in answer.list("matches") {
        let seq = one.number("seq");
        let all: Vec<u64> =
            [seqs(one, "neighbours_before"), vec![seq], seqs(one, "neighbours_after")].concat();
        let expected: Vec<u64> = (first.max(seq.saturating_sub(3))..=last.min(seq + 3)).collect();
        assert_eq!(all, expected);
        tokens += cost(one);
        let beside = one.list("neighbours_before").iter().chain(one.list("neighbours_after"));
        tokens += beside.map(cost).sum::<u32>();
    }
    assert_eq!(answer.field("grant").unwrap().number("tokens"), u64::from(tokens));
}

/// Goal: an answer with neighbours is bounded in its bytes, in the bytes read for it, and in the
/// tokens of the tool, which shows at least one match. Method: long Chinese messages, which have
/// the most tokens for their length.
#[test]
fn answers_with_neighbours_are_bounded() {
    let mut host = Host::new(None, StoreMode::Plain).unwrap();
    let long = "\u{6570}\u{636e}\u{5e93}".repeat(4_000);
    for number in 0..80 {
        let each = |part: u64| said(&format!("needle {number} {part} {long}"));
        append(&mut host, (0..2).map(each).collect());
    }
    let query = r#"{"pattern":"needle","scope":"messages","limit":200,"neighbours":3}"#;
    host.store.begin_call();
    let answer = grep(&mut host, query, None);
    let matches = answer.list("matches");
    let notes: Vec<_> = answer.list("notes").iter().filter_map(Json::as_str).collect();
    assert!(notes.contains(&"neighbours-limited"), "{notes:?}");
    assert_eq!(matches.len(), 160);
    let with: Vec<bool> =
        matches.iter().map(|one| one.field("neighbours_before").is_some()).collect();
    assert!(with[0] && !with[159] && with.is_sorted_by(|one, next| one >= next), "{with:?}");
    assert!(answer.to_string().len() < 500_000);
    let arguments = r#"{"pattern":"needle","neighbours":3}"#;
    let args = Json::object([
        ("conversation", "c".into()),
        ("name", "lcm_grep".into()),
        ("arguments_json", Json::of(arguments)),
    ]);
    let outcome = host.ask("tools.call", &args).unwrap();
    let text = outcome.field("done").unwrap().field("text").unwrap().as_str().unwrap();
    assert!(lcm_text::base::tokens::estimate(text) <= 1_500, "{text}");
    assert!(text.lines().any(|line| line.starts_with("- msg_")), "{text}");
    assert!(
        text.lines()
            .any(|line| line.starts_with("  before msg_") || line.starts_with("  after msg_")),
        "{text}"
    );
}
