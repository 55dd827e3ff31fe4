//! A payload that occurs in several messages is a file of each of these messages.

use std::collections::BTreeMap;

use lcm_testing::scripted_model::ScriptedModel;

use super::{Answers, Host, Json, StoreMode, ask, drive, literal, number, query};

/// Returns a result of a tool with its own id, at the time `minute`.
fn said(id: usize, call: &str, output: &str, minute: usize) -> String {
    format!(
        "{{\"id\":\"m{id}\",\"role\":\"tool\",\"timestamp\":{},\"parts\":[{{\"type\":\
         \"tool_result\",\"call_id\":\"{call}\",\"name\":\"cat\",\"output\":{}}}]}}",
        at(minute),
        literal(output)
    )
}

fn at(minute: usize) -> usize {
    1_700_000_000_000 + 60_000 * minute
}

/// Returns the seqs and ids of the matches.
fn found(answer: &Json) -> Vec<(usize, String)> {
    answer.list("matches").iter().map(|one| (number(one, "seq"), one.text("id"))).collect()
}

#[test]
fn a_payload_is_found_at_the_newest_mention_that_fits() {
    let mut host = super::host();
    let text = "a heron walks\n".repeat(2_000);
    for (id, minute) in [(1, 10), (2, 30), (3, 20)] {
        super::append(&mut host, &said(id, "7", &text, minute));
    }
    let mut seqs = |more: [(&str, Json); 1]| {
        let answer = ask(&mut host, query("heron", "full-text", more)).unwrap();
        let mut seqs: Vec<usize> = found(&answer).into_iter().map(|(seq, _)| seq).collect();
        seqs.dedup();
        seqs
    };
    let time = |minute: usize| Json::from(u64::try_from(at(minute)).unwrap());
    assert_eq!(seqs([("all_conversations", Json::Bool(false))]), [3], "the newest by seq");
    assert_eq!(seqs([("before", time(20))]), [1]);
    assert_eq!(seqs([("since", time(25))]), [2]);
    assert_eq!(seqs([("before", time(10))]), Vec::<usize>::new());
    let all = ask(&mut host, query("heron", "full-text", [])).unwrap();
    let ids = Json::Array(vec![found(&all)[0].1.as_str().into()]);
    let named = query("heron", "full-text", [("file_ids", ids), ("before", time(20))]);
    assert_eq!(found(&ask(&mut host, named).unwrap())[0].0, 1);
}

/// Goal: a search over several queries shows each file once, whichever of its messages is in the
/// time range. Method: more files than one query searches; some are repeated before, and all after
/// the time that the query names.
#[test]
fn a_search_before_the_last_mention_goes_on() {
    let mut host = super::host();
    let text = |number: usize| format!("book{number}\n{}", "nothing here\n".repeat(18_000));
    let mut id = 0;
    let mut say = |host: &mut Host, number: usize, minute: usize| {
        id += 1;
        super::append(host, &said(id, &number.to_string(), &text(number), minute));
        id
    };
    let mut expected = BTreeMap::new();
    for number in 0..30 {
        expected.insert(number, say(&mut host, number, number));
        if number % 3 == 2 {
            // Repeats the file from two messages before.
            expected.insert(number - 2, say(&mut host, number - 2, number));
        }
    }
    for number in 0..30 {
        say(&mut host, number, 1_000);
    }
    let (mut shown, mut answers) = (BTreeMap::new(), 0);
    let mut start: [(&str, Json); 2] =
        [("all_conversations", Json::Bool(false)), ("only", Json::Bool(true))];
    loop {
        let before = ("before", u64::try_from(at(500)).unwrap().into());
        let [one, other] = start;
        let more = [before, ("limit", 200_u64.into()), one, other];
        let answer = ask(&mut host, query("book\\d+", "regex", more)).unwrap();
        answers += 1;
        assert!(answers < 50, "{answer}");
        for one in answer.list("matches") {
            let number: usize = one.text("snippet")["book".len()..].trim().parse().unwrap();
            let seq = super::number(one, "seq");
            assert_eq!(shown.insert(number, seq), None, "{number} twice");
        }
        let Some(cursor) = answer.field("cursor").and_then(Json::as_str) else { break };
        start = [("cursor", cursor.into()), ("only", Json::Bool(true))];
    }
    assert_eq!(shown, expected);
    assert!(answers > 2, "{answers}");
}

/// Goal: a grant reads a payload of a message that it covers, and no payload whose id such a
/// message only quotes. Method: a payload in the first leaf and after it, and another payload in
/// the second leaf, which also quotes the id of the first payload.
#[test]
fn a_grant_covers_what_its_messages_have() {
    let config = r#"{"large_payload_tokens_min":1000,"fresh_tail_messages_max":1,
        "fresh_tail_tokens_max":null,"leaf_chunk_tokens_max":1000}"#;
    let mut host = Host::new(Some(Json::of(config)), StoreMode::Plain).unwrap();
    let (mine, other) = ("a heron walks\n".repeat(2_000), "a wren flies\n".repeat(2_000));
    let filler = format!(r#"{{"role":"user","content":"{}"}}"#, "so ".repeat(500));
    super::append(&mut host, &said(1, "7", &mine, 1));
    let answer = ask(&mut host, query("heron", "full-text", [])).unwrap();
    let id = found(&answer)[0].1.clone();
    (0..4).for_each(|_| super::append(&mut host, &filler));
    super::append(&mut host, &said(2, "8", &format!("[LCM File: {id} | x]\n{other}"), 2));
    super::append(&mut host, &format!(r#"{{"role":"user","content":"and {id}"}}"#));
    let quoted = literal(&other);
    super::append(
        &mut host,
        &format!(
            r#"{{"role":"user","parts":[{{"type":"text","text":"see {id}"}},
            {{"type":"file","name":"a.txt","text":{quoted}}}]}}"#
        ),
    );
    (0..4).for_each(|_| super::append(&mut host, &filler));
    super::append(&mut host, &said(3, "7", &mine, 3));
    (0..8).for_each(|_| super::append(&mut host, &filler));
    host.model = ScriptedModel::new(Json::of(r#"[{"tokens":80,"times":0}]"#).elements()).unwrap();
    let args = r#"{"conversation":"c","budget":100000,"options":{"force":true}}"#;
    drive(&mut host, &Json::of(args), Answers::Scripted).unwrap().unwrap();
    let page = host.told("admin.listing", r#"{"kind":"summaries","conversation":"c"}"#).unwrap();
    let mut seen = Vec::new();
    for leaf in
        page.field("items").unwrap().elements().iter().filter(|one| one.number("depth") == 0)
    {
        let (first, last) = (leaf.number("seq_first"), leaf.number("seq_last"));
        let limits = format!(r#"{{"summary_ids":["{}"],"tokens_max":1000000}}"#, leaf.text("id"));
        let args = format!(r#"{{"conversation":"c","grant_json":{limits}}}"#);
        let grant = host.told("recall.grant", &args).unwrap().text("id");
        let covered = [1, 13].iter().filter(|seq| (first..=last).contains(*seq)).max().copied();
        let args = format!(
            r#"{{"conversation":"c","id":"{id}","options_json":{{"bytes_max":1024}},
            "grant":"{grant}"}}"#
        );
        let told = host.told("recall.describe", &args).ok();
        assert_eq!(told.as_ref().map(|told| told.number("seq")), covered, "{first} to {last}");
        let content = told.as_ref().map(|told| told.text("content"));
        assert!(content.is_none_or(|content| content.starts_with("a heron walks")));
        let args = format!(
            r#"{{"conversation":"c","grant":"{grant}","query_json":{{"pattern":"heron",
            "scope":"files","mode":"full-text"}}}}"#
        );
        let answer = host.told("recall.grep", &args).unwrap();
        let shown = found(&answer).first().map(|(seq, _)| u64::try_from(*seq).unwrap());
        assert_eq!(shown, covered, "{first} to {last}");
        seen.push(covered);
    }
    assert!([Some(1), Some(13), None].iter().all(|one| seen.contains(one)), "{seen:?}");
}
